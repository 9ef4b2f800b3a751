//! How a claim comes to be, and what is left when it does not (c1 to c4).

use std::cell::RefCell;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use mortmain::sys::{Call, Errno, Host};
use mortmain::{ErrorKind, Namespace};
use mortmain_harness::actor::Actor;
use mortmain_harness::ground::{Ground, is_root, names_in, sentence};
use mortmain_harness::intercept::{Intercept, Moment};
use mortmain_harness::scratch::scratch_root;
use nix::mount::{MsFlags, mount};

use crate::support::{LAB, closes, dir, ground, in_cell, kind_of, soon};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// The one staging in a root.
fn staging(root: &Path) -> PathBuf {
    let names = names_in(root);
    let found = names.iter().find(|name| name.as_bytes().ends_with(b".new"));
    root.join(found.unwrap_or_else(|| panic!("there is no staging among {names:?}")))
}

/// A file system of this kind in the cell's scratch space.
fn mounted(kind: &str, options: &str) -> PathBuf {
    let at = scratch_root();
    mount(Some(kind), &at, Some(kind), MsFlags::empty(), Some(options))
        .unwrap_or_else(|e| panic!("a {kind} cannot be mounted: {e}"));
    at
}

#[test]
fn a_claim_has_its_three_parts_and_nobody_else_may_look() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let path = dir(&claim);
        let name = format!("t-{}", claim.random());
        assert_eq!(ground.names(), [name.as_str()], "it is published, and its staging is gone");
        assert_eq!(names_in(path), ["commands", "files", "owner"]);
        assert_eq!(claim.path(), path.join("files"));
        assert_eq!(names_in(claim.path()), [""; 0]);
        for part in [path, claim.path(), &path.join("commands")] {
            assert_eq!(mode(part), 0o700, "{}", part.display());
        }
        let owner = fs::read_link(path.join("owner")).expect("the record is a link");
        assert!(owner.as_os_str().len() <= 127, "{} is too long", owner.display());
    });
}

#[test]
fn a_name_that_is_no_prefix_names_no_claims() {
    in_cell(|| {
        let root = scratch_root();
        for prefix in ["", ".hidden", "-x", "a/b", "a b", &"x".repeat(65)] {
            let kind = kind_of(Namespace::at(&root, prefix));
            assert_eq!(kind, ErrorKind::InvalidPrefix, "{prefix:?}");
        }
        let kind = kind_of(Namespace::at(root.join("missing"), "t"));
        assert_eq!(kind, ErrorKind::System);
    });
}

#[test]
fn a_creator_whose_staging_is_taken_before_its_lock_begins_again() {
    in_cell(|| {
        let ground = ground();
        let root = ground.root().to_owned();
        // As a sweep does that began before there was a lock; and then there is another directory
        // at the name.
        let take = move || {
            let staging = staging(&root);
            fs::rename(&staging, root.join(".t-aaaaaaaaaaa2.dead-aaaaaaaaaaa2")).unwrap();
            fs::create_dir(&staging).unwrap();
            fs::write(staging.join("precious"), "somebody's").unwrap();
        };
        let locks = |call: &Call| matches!(call, Call::Lock { .. });
        let kernel = Intercept::once(Host, Moment::Before, locks, take);
        let claim = ground.over(&kernel).create().expect("there are more names");

        let path = PathBuf::from(claim.path().to_string());
        let precious = staging(ground.root()).join("precious");
        assert_eq!(fs::read_to_string(precious).unwrap(), "somebody's");
        assert_eq!(names_in(&path), ["commands", "files", "owner"]);
        let report = ground.sweep();
        assert_eq!(sentence(&report, &path), "kept: its lease is held");
    });
}

#[test]
fn a_creator_that_loses_every_staging_gives_up_after_a_while() {
    in_cell(|| {
        let ground = ground();
        let (root, taken) = (ground.root().to_owned(), Rc::new(RefCell::new(0)));
        let count = Rc::clone(&taken);
        let take = move |call: &Call, moment| {
            if matches!((call, moment), (Call::Lock { .. }, Moment::Before)) {
                *count.borrow_mut() += 1;
                let moved = format!("moved-{}", count.borrow());
                fs::rename(staging(&root), root.join(moved)).unwrap();
            }
            None
        };
        let kernel = Intercept::new(Host, Rc::new(RefCell::new(take)));
        assert_eq!(kind_of(ground.over(&kernel).create()), ErrorKind::Contended);
        let taken = *taken.borrow();
        assert!((2..100).contains(&taken), "it began {taken} times");
        assert_eq!(ground.names().len(), taken, "it left nothing of its own");
    });
}

#[test]
fn a_published_name_that_is_taken_is_left_to_whose_it_is() {
    in_cell(|| {
        let ground = ground();
        let root = ground.root().to_owned();
        let taken = Rc::new(RefCell::new(PathBuf::new()));
        let at = Rc::clone(&taken);
        let take = move |call: &Call, moment| {
            if let (Call::Rename { to, .. }, Moment::Before) = (call, moment)
                && at.borrow().as_os_str().is_empty()
            {
                *at.borrow_mut() = root.join(to.to_string());
                fs::create_dir(&*at.borrow()).unwrap();
                fs::write(at.borrow().join("precious"), "somebody's").unwrap();
            }
            None
        };
        let kernel = Intercept::new(Host, Rc::new(RefCell::new(take)));
        let claim = ground.over(&kernel).create().expect("there are more names");
        let path = PathBuf::from(claim.path().to_string());
        let taken = taken.borrow();
        assert_ne!(path, *taken);
        assert_eq!((names_in(&taken), mode(&taken)), (vec!["precious".into()], 0o755));
        assert_eq!(names_in(&path), ["commands", "files", "owner"]);
        assert_eq!(ground.names().len(), 2, "{:?}", ground.names());
        let report = ground.sweep();
        assert_eq!(names_in(&taken), ["precious"], "{report}");
    });
}

/// A kernel on which the rename to a claim is done though it fails, and the new name cannot be looked
/// at; nor is it condemned, if that fails as well.
fn unsure(condemns: bool) -> Intercept<Host> {
    let mut published = None;
    let adversary = move |call: &Call, moment| match (call, moment) {
        (Call::Rename { to, .. }, Moment::After) if published.is_none() => {
            published = Some(to.clone());
            Some(Err(Errno::EIO))
        }
        (Call::StatAt { name, .. }, Moment::Before) if published.as_ref() == Some(name) => {
            Some(Err(Errno::EIO))
        }
        (Call::Chmod { .. }, Moment::Before) if !condemns => Some(Err(Errno::EIO)),
        _ => None,
    };
    Intercept::new(Host, Rc::new(RefCell::new(adversary)))
}

/// It may be a claim by now, and without its parts it would be damage for ever.
#[test]
fn a_creator_that_cannot_tell_whether_it_has_published_leaves_nothing_for_ever() {
    in_cell(|| {
        let ground = ground();
        assert_eq!(kind_of(ground.over(&unsure(true)).create()), ErrorKind::System);
        // Without its record, which names who lives.
        let [name] = &ground.names()[..] else { panic!("{:?}", ground.names()) };
        assert_eq!(names_in(&ground.root().join(name)), [""; 0]);
        let report = ground.sweep();
        assert!(ground.names().is_empty(), "{:?}: {report}", ground.names());
    });
}

#[test]
fn what_may_be_a_claim_and_cannot_be_condemned_stays_whole() {
    in_cell(|| {
        let ground = ground();
        assert_eq!(kind_of(ground.over(&unsure(false)).create()), ErrorKind::System);
        let [name] = &ground.names()[..] else { panic!("{:?}", ground.names()) };
        let path = ground.root().join(name);
        assert_eq!(names_in(&path), ["commands", "files", "owner"]);
        // To others its creator owns it; that one knows better.
        let swept = Actor::start(LAB).sweep("t", ground.root());
        assert_eq!(names_in(&path), ["commands", "files", "owner"], "{swept:?}");
        let report = ground.sweep();
        assert!(ground.names().is_empty(), "{:?}: {report}", ground.names());
    });
}

#[test]
fn a_staging_that_became_a_strangers_directory_is_not_used() {
    in_cell(|| {
        if !is_root("nobody else's directory can be made") {
            return;
        }
        let ground = ground();
        let root = ground.root().to_owned();
        let take = move || {
            let staging = staging(&root);
            fs::remove_dir(&staging).unwrap();
            fs::create_dir(&staging).unwrap();
            fs::set_permissions(&staging, fs::Permissions::from_mode(0o700)).unwrap();
            chown(&staging, Some(65_534), Some(65_534)).unwrap();
        };
        let mkdir = |call: &Call| matches!(call, Call::Mkdir { .. });
        let kernel = Intercept::once(Host, Moment::After, mkdir, take);
        // To fail is as good as to begin again.
        let claim = ground.over(&kernel).create();
        for name in ground.names().iter().filter(|name| name.as_bytes().starts_with(b"t-")) {
            let metadata = fs::metadata(ground.root().join(name)).unwrap();
            let made = claim.is_ok();
            assert_eq!(metadata.uid(), 0, "{} is somebody else's; made: {made}", name.display());
        }
    });
}

#[test]
fn where_no_lock_can_be_had_there_is_no_claim() {
    in_cell(|| {
        let ground = ground();
        for (errno, kind) in [
            (Errno::ENOLCK, ErrorKind::Unprotected),
            (Errno::EOPNOTSUPP, ErrorKind::Unprotected),
            (Errno::ENOSYS, ErrorKind::Unprotected),
            (Errno::EIO, ErrorKind::System),
            (Errno::ENOMEM, ErrorKind::System),
        ] {
            let locks = |call: &Call| matches!(call, Call::Lock { .. });
            let kernel = Intercept::refusing(Host, errno, locks);
            let error = ground.over(&kernel).create().expect_err("it is refused");
            assert_eq!((error.kind(), error.errno()), (kind, Some(errno)));
            assert_eq!(ground.names(), [""; 0]);
        }
    });
}

#[test]
fn on_a_kind_of_file_system_that_is_not_listed_there_is_no_claim() {
    in_cell(|| {
        if !is_root("no file system can be mounted") {
            return;
        }
        let root = mounted("ramfs", "");
        let namespace = Namespace::at(&root, "t").unwrap();
        let error = namespace.create().expect_err("it is refused");
        assert_eq!(error.kind(), ErrorKind::Unprotected);
        let said = format!(
            "cannot create a claim in {}: locks on a file system of kind 0x858458f6 may not reach \
             every process that uses it; choose a root on a local file system, or ask for an \
             unclaimed directory, which no sweep removes",
            root.display()
        );
        assert_eq!(error.to_string(), said);
        assert_eq!(names_in(&root), [""; 0]);

        let mut unclaimed = namespace.create_unclaimed().expect("it asks for no protection");
        fs::write(unclaimed.path().join("file"), "x").unwrap();
        assert_eq!(namespace.sweep().to_string(), "");
        assert_eq!(unclaimed.remove().unwrap(), []);
        assert_eq!(names_in(&root), [""; 0]);
    });
}

#[test]
fn without_a_free_inode_there_is_no_claim_and_nothing_is_left_but_sweeps_and_closes_work() {
    in_cell(|| {
        if !is_root("no file system can be mounted") {
            return;
        }
        // A claim is a directory, a link and two more directories; the root is an inode, too.
        for free in 0..4 {
            let root = mounted("tmpfs", &format!("nr_inodes={}", 1 + free));
            let kind = kind_of(Namespace::at(&root, "t").unwrap().create());
            assert_eq!(kind, ErrorKind::NoSpace, "{free} inodes are free");
            assert_eq!(names_in(&root), [""; 0], "{free} inodes are free");
        }
        let root = mounted("tmpfs", &format!("nr_inodes={}", 1 + 2 * 4));
        let (namespace, ground) = (Namespace::at(&root, "t").unwrap(), ground());
        let dead = Ground::at(LAB, root).dead();
        let claim = namespace.create().expect("there are just enough inodes");
        assert_eq!(kind_of(claim.command("true").spawn()), ErrorKind::NoSpace);
        assert_eq!(namespace.sweep().removed(), 1, "{}", dead.display());
        assert!(!dead.exists());
        closes(claim);
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn an_odd_umask_takes_nothing_from_a_claim_or_its_commands() {
    in_cell(|| {
        let ground = Ground::of_plain_user(LAB);
        let actor = ground.actor_command();
        let script = format!("umask 777; exec {} actor", actor.get_program().display());
        let mut owned = ground.owned_by(Actor::start_by(ground.as_user("sh", &["-c", &script])));
        for part in [&owned.claim, &owned.files(), &owned.claim.join("commands")] {
            assert_eq!(mode(part), 0o700, "{}", part.display());
        }
        owned.actor.spawn("exit 0").gone(soon()).unwrap();
        assert_eq!(owned.actor.ask("close"), "removed");
    });
}
