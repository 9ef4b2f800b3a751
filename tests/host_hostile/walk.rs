//! How a removal walks: what it costs in descriptors, what it does without them, and where it stops
//! (h6, r5).

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use mortmain::protocol::SweepOptions;
use mortmain::sys::{Answer, Call, DirEntry, Errno, Host, Kernel as _, Kind, Reply};
use mortmain::{Outcome, Report};
use mortmain_harness::ground::{Ground, outcome};
use mortmain_harness::intercept::{Intercept, Moment};

use crate::support::{ground, in_cell};

fn answering(mut answer: impl FnMut(&Call) -> Option<Answer<Reply>> + 'static) -> Intercept<Host> {
    let adversary = move |call: &Call, moment: Moment| match moment {
        Moment::Before => answer(call),
        Moment::After => None,
    };
    Intercept::new(Host, Rc::new(RefCell::new(adversary)))
}

fn sweep(ground: &Ground, kernel: &Intercept<Host>) -> Report {
    ground.over(kernel).sweep(&SweepOptions::default())
}

/// A dead claim with directories in directories, so many, and a file in each.
fn chain(ground: &Ground, depth: usize) -> PathBuf {
    let claim = ground.dead();
    let mut at = claim.join("files");
    for _ in 0..depth {
        at = at.join("d");
        fs::create_dir(&at).unwrap();
        fs::write(at.join("file"), "").unwrap();
    }
    claim
}

/// A process that has so many descriptors left: how many of them were in use at once, and how often
/// a directory was opened.
fn scarce(left: i32) -> (Intercept<Host>, Rc<Cell<(i32, u32)>>) {
    let (used, told) = (Cell::new(0), Rc::new(Cell::new((0, 0))));
    let tell = Rc::clone(&told);
    let adversary = move |call: &Call, moment: Moment| {
        let (most, opened) = tell.get();
        match (call, moment) {
            (
                Call::OpenDir { .. } | Call::OpenFile { .. } | Call::StatAt { .. },
                Moment::Before,
            ) if used.get() == left => {
                return Some(Err(Errno::EMFILE));
            }
            (Call::OpenDir { .. } | Call::OpenFile { .. }, Moment::After) => {
                used.set(used.get() + 1);
                tell.set((most.max(used.get()), opened + 1));
            }
            (Call::Close { .. }, Moment::After) => used.set(used.get() - 1),
            _ => {}
        }
        None
    };
    (Intercept::new(Host, Rc::new(RefCell::new(adversary))), told)
}

#[test]
fn a_tree_costs_few_descriptors_and_a_few_openings_for_each_level() {
    in_cell(|| {
        let ground = ground();
        let cost = |depth| {
            let claim = chain(&ground, depth);
            let (kernel, told) = scarce(i32::MAX);
            let report = sweep(&ground, &kernel);
            assert!(matches!(outcome(&report, &claim), Outcome::Removed(_)), "{report}");
            told.get()
        };
        assert_eq!([5, 20, 100].map(cost), [(7, 17), (18, 57), (19, 407)]);
    });
}

#[test]
fn with_fewer_descriptors_a_tree_goes_as_well_and_with_too_few_it_is_left_judgeable() {
    in_cell(|| {
        let ground = ground();
        let mut gone_with = Vec::new();
        for left in 0..12 {
            let _claim = chain(&ground, 20);
            let report = sweep(&ground, &scarce(left).0);
            if report.removed() == 1 {
                gone_with.push(left);
            } else {
                assert_eq!(ground.sweep().removed(), 1, "with {left}: {report}");
            }
        }
        assert_eq!(gone_with, (5..12).collect::<Vec<_>>());
    });
}

#[test]
fn a_directory_that_is_never_empty_is_told_after_a_few_passes() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        fs::create_dir(claim.join("files/busy")).unwrap();
        let (root, passes) = (ground.root().to_owned(), Rc::new(Cell::new(0)));
        let count = Rc::clone(&passes);
        let kernel = answering(move |call| {
            if matches!(call, Call::Rmdir { name, .. } if name.bytes() == b"busy") {
                count.set(count.get() + 1);
                let claim = fs::read_dir(&root).unwrap().next().unwrap().unwrap().path();
                fs::write(claim.join("files/busy/file"), "").unwrap();
            }
            None
        });
        let report = sweep(&ground, &kernel);
        let [entry] = &report.entries[..] else { panic!("{report}") };
        let told = "removed in part: removing `files/busy` failed: directory not empty (ENOTEMPTY)";
        assert_eq!(entry.outcome.to_string(), told);
        assert_eq!(passes.get(), 4);
    });
}

#[test]
fn of_many_things_that_stay_the_first_are_told() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        (0..20).for_each(|file| fs::write(claim.join(format!("files/{file}")), "").unwrap());
        let kernel = answering(|call| match call {
            Call::Unlink { name, .. } if name.bytes().is_ascii() && name.bytes() != b"owner" => {
                Some(Err(Errno::EIO))
            }
            _ => None,
        });
        let report = sweep(&ground, &kernel);
        let [entry] = &report.entries[..] else { panic!("{report}") };
        let Outcome::Partial(told) = &entry.outcome else { panic!("{report}") };
        assert_eq!(told.len(), 16);
        let files = fs::read_dir(ground.root().join(&ground.names()[0]).join("files")).unwrap();
        assert_eq!(files.count(), 20);
    });
}

#[test]
fn what_a_listing_does_not_tell_is_looked_at() {
    in_cell(|| {
        let ground = ground();
        let claim = chain(&ground, 3);
        // As file systems do that have no kinds in their directories.
        let kernel = answering(|call| match call {
            Call::ReadDir { .. } => Some(Host.call(call.clone()).map(|reply| match reply {
                Reply::Entries(entries) => {
                    let unknown = |entry: DirEntry| DirEntry { kind: Kind::Unknown, ..entry };
                    Reply::Entries(entries.into_iter().map(unknown).collect())
                }
                other => other,
            })),
            _ => None,
        });
        let report = sweep(&ground, &kernel);
        assert!(matches!(outcome(&report, &claim), Outcome::Removed(_)), "{report}");
        assert!(!Path::new(&claim).exists());
    });
}
