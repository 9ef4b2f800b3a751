//! A process that is short of descriptors keeps what it cannot ask about, and removes what it can as
//! soon as it has a few (h8, b2).

use std::error::Error as _;
use std::fs::{self, File};
use std::os::fd::AsRawFd;

use mortmain::Closed;
use mortmain::sys::Errno;
use mortmain_harness::ground::names_in;
use mortmain_harness::scripts::RUNS_ON;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::support::{ground, in_cell};

/// More than a sweep needs for a claim without deep directories.
const ENOUGH: u64 = 16;

/// Lets this process open so many descriptors more, for as long as `work` takes.
fn with_descriptors<T>(count: u64, work: impl FnOnce() -> T) -> T {
    // Every number below the highest in use is taken, so that those left are those above it.
    let mut fill = vec![File::open("/dev/null").unwrap()];
    let highest = fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let highest = highest.max().expect("it has some");
    while fill.last().map(AsRawFd::as_raw_fd).is_some_and(|last| last < highest) {
        fill.push(File::open("/dev/null").unwrap());
    }
    let first_free = fill.iter().map(AsRawFd::as_raw_fd).max().expect("there is one") + 1;
    let first_free = u64::try_from(first_free).expect("numbers are positive");
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, first_free + count, hard).unwrap();
    let done = work();
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    done
}

#[test]
fn a_close_for_which_there_is_no_descriptor_says_so_and_can_be_tried_again() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let refused = with_descriptors(0, || claim.close()).expect_err("it has to look into it");
        let source = refused.source().and_then(|source| source.downcast_ref());
        assert_eq!(source, Some(&Errno::EMFILE), "{refused}");
        assert_eq!(refused.claim.close().unwrap(), Closed::Removed);
    });
}

#[test]
fn with_any_number_of_descriptors_left_the_living_stay_and_with_a_few_the_dead_go() {
    in_cell(|| {
        let ground = ground();
        let living = ground.owned();
        let mut dead = ground.dead();
        let namespace = ground.namespace();
        let mut gone_with = Vec::new();
        for count in 0..ENOUGH {
            let report = with_descriptors(count, || namespace.sweep());
            assert_eq!(
                names_in(&living.claim),
                ["commands", "files", "owner"],
                "{count}: {report}"
            );
            if dead.exists() {
                let whole = names_in(&dead);
                assert_eq!(whole, ["commands", "files", "owner"], "{count}: {report}");
                let told = report.to_string();
                assert!(told.contains("EMFILE"), "with {count} it says:\n{told}");
            } else {
                gone_with.push(count);
                dead = ground.dead();
            }
        }
        let first = *gone_with.first().expect("a few are enough");
        assert!((1..=8).contains(&first), "{first} were needed");
        let all: Vec<u64> = (first..ENOUGH).collect();
        assert_eq!(gone_with, all, "with more it goes, too");
        assert_eq!(ground.sweep().kept(), 1);
    });
}

#[test]
fn a_creation_without_descriptors_fails_and_leaves_nothing() {
    in_cell(|| {
        let ground = ground();
        let namespace = ground.namespace();
        let mut made_with = Vec::new();
        for count in 0..ENOUGH {
            match with_descriptors(count, || namespace.create()) {
                Ok(claim) => {
                    made_with.push(count);
                    let _closed = claim.close().expect("nothing uses it");
                }
                Err(error) => {
                    let emfile = Some(Errno::EMFILE);
                    assert_eq!(error.errno(), emfile, "with {count}: {error}");
                    assert!(
                        error.to_string().ends_with("raise the limit (`ulimit -n`)"),
                        "{error}"
                    );
                }
            }
            // What it could not take back for want of a descriptor goes with the next sweep.
            let report = ground.sweep();
            assert_eq!(report.kept() + report.blocked(), 0, "with {count}: {report}");
            assert_eq!(ground.names(), [""; 0], "with {count}");
        }
        assert!(made_with.first().is_some_and(|first| *first <= 6), "{made_with:?}");
    });
}

#[test]
fn a_deep_tree_goes_with_a_few_more_and_with_less_it_is_left_judgeable() {
    in_cell(|| {
        let ground = ground();
        let namespace = ground.namespace();
        let mut gone_with = Vec::new();
        for count in (0..32).step_by(4) {
            let dead = ground.dead();
            let mut at = dead.join("files");
            for _ in 0..60 {
                at = at.join("d");
                fs::create_dir(&at).unwrap();
            }
            fs::write(at.join("file"), "").unwrap();
            let report = with_descriptors(count, || namespace.sweep());
            if ground.names().is_empty() {
                gone_with.push(count);
            } else {
                let last = ground.sweep();
                assert_eq!(last.removed(), 1, "{count}: {report}{last}");
                assert_eq!(ground.names(), [""; 0], "{count}");
            }
        }
        let first = *gone_with.first().expect("a few are enough");
        assert!(first <= 8, "{first} were needed");
    });
}

#[test]
fn whatever_a_sweep_meets_it_leaves_no_descriptor_open() {
    in_cell(|| {
        let ground = ground();
        let namespace = ground.namespace();
        let open = || fs::read_dir("/proc/self/fd").unwrap().count();
        let living = ground.owned();
        let used = ground.orphaned(RUNS_ON);
        let (damaged, locked, dead) = (ground.dead(), ground.dead(), ground.dead());
        fs::write(damaged.join("commands/notes"), "").unwrap();
        fs::create_dir_all(dead.join("files/a/b/c")).unwrap();
        fs::create_dir(locked.join("files/nested")).unwrap();
        let lock = File::open(locked.join("files/nested")).unwrap();
        lock.try_lock().unwrap();
        let before = open();
        for report in [namespace.dry_run(), namespace.sweep(), namespace.sweep()] {
            assert_eq!(open(), before, "{report}");
        }
        let claim = namespace.create().unwrap();
        for _ in 0..3 {
            assert!(claim.command("true").status().unwrap().success());
        }
        let _closed = claim.close().expect("nothing uses it");
        assert_eq!(open(), before);
        assert!(living.claim.exists() && used.claim.exists());
    });
}
