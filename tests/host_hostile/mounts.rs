//! Mounts in claims: what is mounted is neither entered, nor emptied, nor asked anything (h2).

use std::fs;
use std::path::{Path, PathBuf};

use mortmain::protocol::SweepOptions;
use mortmain::sys::{Call, Errno, Host};
use mortmain::{Evidence, Hindrance, Outcome};
use mortmain_harness::ground::{is_root, names_in, outcome, sentence};
use mortmain_harness::intercept::{Intercept, Moment};
use mortmain_harness::tree::Tree;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::support::{Precious, ground, in_cell, kept};

fn bind(from: &Path, to: &Path) {
    mount(Some(from), to, None::<&str>, MsFlags::MS_BIND, None::<&str>).unwrap();
}

fn unmount(at: &Path) {
    umount2(at, MntFlags::empty()).unwrap();
}

/// A dead claim with files, all but `at`, on which there is a mount of something precious.
#[track_caller]
fn check(at: &str, plant: fn(&Path), from: &str, told: &str) {
    let (ground, precious) = (ground(), Precious::new());
    let (claim, neighbour) = (ground.dead(), ground.dead());
    fs::write(claim.join("files/first"), "text").unwrap();
    let mounted = claim.join(at);
    plant(&mounted);
    fs::write(claim.join("files/last"), "text").unwrap();
    bind(&precious.dir.join(from), &mounted);
    let before = Tree::read(&claim).unwrap();

    let report = ground.sweep();
    assert_eq!(sentence(&report, &claim), told);
    assert_eq!(Tree::read(&claim).unwrap(), before, "nothing was touched");
    precious.assert_untouched();
    assert!(matches!(outcome(&report, &neighbour), Outcome::Removed(_)), "{report}");

    unmount(&mounted);
    assert_eq!(ground.sweep().removed(), 1);
    assert_eq!(ground.names(), [""; 0]);
    precious.assert_untouched();
}

fn dirs(at: &Path) {
    fs::create_dir_all(at).unwrap();
}

fn file(at: &Path) {
    fs::write(at, "").unwrap();
}

/// Whether something can be mounted here.
fn can_mount() -> bool {
    is_root("nothing can be mounted")
}

#[test]
fn a_directory_mounted_deep_in_a_claim_keeps_it_whole() {
    in_cell(|| {
        if can_mount() {
            check("files/a/b/mnt", dirs, ".", "kept: a mount lies on `files/a/b/mnt` inside");
        }
    });
}

#[test]
fn a_directory_mounted_on_the_files_keeps_the_claim_whole() {
    in_cell(|| {
        if !can_mount() {
            return;
        }
        let (ground, precious) = (ground(), Precious::new());
        let claim = ground.dead();
        bind(&precious.dir, &claim.join("files"));
        let report = ground.sweep();
        assert_eq!(sentence(&report, &claim), "kept: a mount lies on `files` inside");
        precious.assert_untouched();
        unmount(&claim.join("files"));
        assert_eq!(ground.sweep().removed(), 1);
        precious.assert_untouched();
    });
}

#[test]
fn a_file_mounted_on_a_file_keeps_the_claim_whole() {
    in_cell(|| {
        if can_mount() {
            check("files/mnt", file, "file", "kept: a mount lies on `files/mnt` inside");
        }
    });
}

#[test]
fn a_directory_mounted_on_a_claim_keeps_what_is_below_and_above() {
    in_cell(|| {
        if !can_mount() {
            return;
        }
        let (ground, precious) = (ground(), Precious::new());
        let (claim, neighbour) = (ground.dead(), ground.dead());
        bind(&precious.dir, &claim);
        let report = ground.sweep();
        assert_eq!(sentence(&report, &claim), "kept: a mount lies on it");
        assert!(matches!(outcome(&report, &neighbour), Outcome::Removed(_)), "{report}");
        precious.assert_untouched();
        unmount(&claim);
        assert_eq!(names_in(&claim), ["commands", "files", "owner"]);
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_mount_on_a_control_part_keeps_the_claim() {
    in_cell(|| {
        if !can_mount() {
            return;
        }
        let (ground, precious) = (ground(), Precious::new());
        let (registry, entry) = (ground.dead(), ground.dead());
        bind(&precious.dir, &registry.join("commands"));
        fs::write(entry.join("commands/0"), "").unwrap();
        bind(&precious.dir.join("file"), &entry.join("commands/0"));
        let report = ground.sweep();
        let found = |claim: &PathBuf| {
            kept(&report, claim).commands.as_ref().map(|finding| finding.evidence.clone())
        };
        assert_eq!(found(&registry), Some(Evidence::CommandsUnreadable(Errno::EXDEV)));
        let unclear = Evidence::EntryUnclear { entry: 0, errno: Errno::EXDEV };
        assert_eq!(found(&entry), Some(unclear));
        precious.assert_untouched();
        unmount(&registry.join("commands"));
        unmount(&entry.join("commands/0"));
        assert_eq!(ground.sweep().removed(), 2);
    });
}

#[test]
fn a_mount_that_comes_after_the_look_is_not_entered_and_the_rest_waits_for_its_end() {
    in_cell(|| {
        if !can_mount() {
            return;
        }
        let (ground, precious) = (ground(), Precious::new());
        let claim = ground.dead();
        fs::create_dir(claim.join("files/mnt")).unwrap();
        let (from, at) = (precious.dir.clone(), claim.join("files/mnt"));
        let entombs =
            |call: &Call| matches!(call, Call::Rename { to, .. } if to.bytes().starts_with(b".t-"));
        let kernel = Intercept::once(Host, Moment::Before, entombs, move || bind(&from, &at));
        let report = ground.over(&kernel).sweep(&SweepOptions::default());
        let Outcome::Partial(obstacles) = outcome(&report, &claim) else { panic!("{report}") };
        assert_eq!(obstacles.len(), 1, "{report}");
        assert_eq!(obstacles[0].what, Hindrance::Mount);
        precious.assert_untouched();
        let tombstone = ground.root().join(&ground.names()[0]);
        assert_eq!(names_in(&tombstone), ["commands", "files", "owner"]);
        let report = ground.sweep();
        assert_eq!(sentence(&report, &tombstone), "kept: a mount lies on `files/mnt` inside");
        unmount(&tombstone.join("files/mnt"));
        assert_eq!(ground.sweep().removed(), 1);
        precious.assert_untouched();
    });
}
