//! A directory without protection is its owner's to remove, and nobody else's (c4, c6).

use std::fs;

use mortmain::{ErrorKind, Namespace};
use mortmain_harness::ground::PREFIX;

use crate::support::{ground, in_cell, kind_of};

#[test]
fn no_sweep_looks_at_an_unclaimed_directory() {
    in_cell(|| {
        let ground = ground();
        let mut actor = ground.actor();
        let path =
            actor.must(&format!("unclaimed {PREFIX} {}", ground.root().display()), "created");
        actor.kill();
        assert_eq!(ground.sweep().to_string(), "");
        assert!(fs::metadata(path).unwrap().is_dir());
    });
}

#[test]
fn no_sweep_of_another_prefix_looks_at_an_unclaimed_directory() {
    in_cell(|| {
        let ground = ground();
        let unclaimed = ground.namespace().create_unclaimed().unwrap();
        let name = unclaimed.path().file_name().and_then(|name| name.to_str()).expect("it is text");
        // Whatever stands before its last twelve letters might be a prefix.
        for (at, _) in name.char_indices() {
            if let Ok(other) = Namespace::at(ground.root(), &name[..at]) {
                assert_eq!(other.sweep().to_string(), "", "{}", &name[..at]);
            }
        }
        assert!(unclaimed.path().is_dir());
    });
}

#[test]
fn an_unclaimed_directory_goes_with_what_is_in_it() {
    in_cell(|| {
        let ground = ground();
        let mut unclaimed = ground.namespace().create_unclaimed().unwrap();
        fs::create_dir(unclaimed.path().join("dir")).unwrap();
        fs::write(unclaimed.path().join("dir/file"), "").unwrap();
        assert_eq!(unclaimed.remove().unwrap(), []);
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn an_unclaimed_directory_goes_whatever_its_files_are_called() {
    in_cell(|| {
        let ground = ground();
        // Names that mean something in a claim mean nothing here.
        for name in ["commands", "owner", "released", "files"] {
            let mut unclaimed = ground.namespace().create_unclaimed().unwrap();
            fs::write(unclaimed.path().join(name), "").unwrap();
            assert_eq!(unclaimed.remove().unwrap(), [], "with a file `{name}`");
            let mut unclaimed = ground.namespace().create_unclaimed().unwrap();
            fs::create_dir(unclaimed.path().join(name)).unwrap();
            assert_eq!(unclaimed.remove().unwrap(), [], "with a directory `{name}`");
        }
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn what_came_to_the_name_of_an_unclaimed_directory_is_left_alone() {
    in_cell(|| {
        let ground = ground();
        let mut unclaimed = ground.namespace().create_unclaimed().unwrap();
        let (path, aside) = (unclaimed.path().to_owned(), ground.root().join("aside"));
        fs::rename(&path, &aside).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("precious"), "somebody's").unwrap();
        assert_eq!(kind_of(unclaimed.remove()), ErrorKind::LeaseLost);
        {
            let _unclaimed = unclaimed;
        }
        assert_eq!(fs::read_to_string(path.join("precious")).unwrap(), "somebody's");
    });
}

#[test]
fn an_unclaimed_directory_goes_when_its_owner_lets_it_go() {
    in_cell(|| {
        let ground = ground();
        let mut actor = ground.actor();
        actor.must(&format!("unclaimed {PREFIX} {}", ground.root().display()), "created");
        actor.must("drop", "dropped");
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn a_forked_child_does_not_remove_what_is_unclaimed() {
    in_cell(|| {
        let ground = ground();
        let mut actor = ground.actor();
        let path =
            actor.must(&format!("unclaimed {PREFIX} {}", ground.root().display()), "created");
        assert_eq!(actor.ask("fork-exit"), "exited: remove Forked");
        assert!(fs::metadata(path).unwrap().is_dir());
    });
}

#[test]
fn an_unclaimed_directory_that_is_kept_stays_whatever_comes() {
    in_cell(|| {
        let ground = ground();
        let kept = ground.namespace().create_unclaimed().unwrap().keep();
        fs::write(kept.join("log"), "text").unwrap();
        assert!(ground.sweep().entries.is_empty());
        assert_eq!(fs::read_to_string(kept.join("log")).unwrap(), "text");
    });
}
