//! Trees of any depth go with a constant number of descriptors, and a walk that comes back to a
//! directory makes sure that it is still the one (h6, h1).

use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

use mortmain::protocol::SweepOptions;
use mortmain::sys::{Call, Errno, Host};
use mortmain::{Hindrance, Outcome};
use mortmain_harness::ground::{outcome, sentence};
use mortmain_harness::intercept::{Intercept, Moment};
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};

use crate::support::{ground, in_cell};

/// Makes a chain of directories of this name below another, and a file in the last.
fn chain(below: &Path, name: &str, depth: usize) {
    let mut dir: OwnedFd = File::open(below).unwrap().into();
    for _ in 0..depth {
        mkdirat(&dir, name, Mode::S_IRWXU).unwrap();
        dir = openat(&dir, name, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Mode::empty()).unwrap();
    }
    let create = OFlag::O_CREAT | OFlag::O_WRONLY;
    openat(&dir, "file", create, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
}

/// What a process did: descriptors that are open, the most that ever were, and directories that were
/// opened in all.
#[derive(Clone, Copy, Default)]
struct Count {
    open: i32,
    most: i32,
    opened: usize,
}

/// A kernel that counts, and that refuses to open more than so many directories.
fn counting(opened_max: usize) -> (Intercept<Host>, Rc<Cell<Count>>) {
    let count = Rc::new(Cell::new(Count::default()));
    let counted = Rc::clone(&count);
    let adversary = move |call: &Call, moment| {
        let mut count = counted.get();
        match (call, moment) {
            (Call::OpenDir { .. }, Moment::Before) if count.opened == opened_max => {
                return Some(Err(Errno::EIO));
            }
            (Call::OpenDir { .. }, Moment::After) => {
                count.open += 1;
                count.opened += 1;
            }
            (Call::OpenFile { .. }, Moment::After) => count.open += 1,
            (Call::Close { .. }, Moment::After) => count.open -= 1,
            _ => {}
        }
        count.most = count.most.max(count.open);
        counted.set(count);
        None
    };
    (Intercept::new(Host, Rc::new(RefCell::new(adversary))), count)
}

#[test]
fn a_tree_of_1000_levels_goes_with_a_constant_number_of_descriptors() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        chain(&claim.join("files"), "d", 1000);
        let (kernel, count) = counting(usize::MAX);
        let report = ground.over(&kernel).sweep(&SweepOptions::default());
        assert!(matches!(outcome(&report, &claim), Outcome::Removed(_)));
        let Count { most, .. } = count.get();
        assert!(most < 40, "{most} descriptors were open at once");
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn a_tree_of_5000_levels_costs_some_calls_for_each_level_and_not_for_each_pair() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let depth = 5000;
        chain(&claim.join("files"), "d", depth);
        let (kernel, count) = counting(50 * depth);
        let report = ground.over(&kernel).sweep(&SweepOptions::default());
        let opened = count.get().opened;
        let removed = matches!(outcome(&report, &claim), Outcome::Removed(_));
        // Without the report, whose paths are as long as the tree is deep.
        assert!(removed, "it gave up after {opened} directories were opened, of {depth}");
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn names_that_add_up_to_more_than_any_path_go() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        // PATH_MAX is 4096.
        chain(&claim.join("files"), &"n".repeat(255), 40);
        assert_eq!(ground.sweep().removed(), 1);
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn a_wide_and_deep_tree_goes() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        for branch in 0..20 {
            let dir = claim.join("files").join(branch.to_string());
            fs::create_dir(&dir).unwrap();
            chain(&dir, "d", 30);
            (0..100).for_each(|file| fs::write(dir.join(format!("f{file}")), "").unwrap());
        }
        assert_eq!(ground.sweep().removed(), 1);
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn a_directory_that_was_replaced_while_the_walk_was_below_it_is_not_emptied() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        // Deep enough that the walk has let the upper ones go.
        chain(&claim.join("files"), "d", 60);
        let root = ground.root().to_owned();
        let act = move || {
            // Somebody moves the tree out of the claim, and has one like it of his own there.
            let files = root.join(&mortmain_harness::ground::names_in(&root)[0]).join("files");
            fs::rename(files.join("d"), root.join("moved-out")).unwrap();
            chain(&files, "d", 60);
        };
        let last =
            |call: &Call| matches!(call, Call::Unlink { name, .. } if name.bytes() == b"file");
        let kernel = Intercept::once(Host, Moment::After, last, act);
        let report = ground.over(&kernel).sweep(&SweepOptions::default());
        let Outcome::Partial(obstacles) = outcome(&report, &claim) else { panic!("{report}") };
        let changed = obstacles.iter().any(|obstacle| obstacle.what == Hindrance::NameChanged);
        assert!(changed, "{report}");
        let names = ground.names();
        let tombstone = names.iter().find(|name| *name != "moved-out").expect("it is not gone");
        let mut depth = 0;
        let mut at = ground.root().join(tombstone).join("files");
        while at.join("d").is_dir() {
            at = at.join("d");
            depth += 1;
        }
        assert_eq!((depth, at.join("file").is_file()), (60, true), "what came there was touched");
        // What it was told stays true, and the next sweep judges what is there by then.
        let second = ground.sweep();
        assert_eq!(second.removed(), 1, "{second}: {}", sentence(&report, &claim));
    });
}
