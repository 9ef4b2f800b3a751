//! How what was condemned goes: out of sight first, judgeable at every step, and nothing else with it
//! (r1, r2, c2).

use std::cell::{Cell, RefCell};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use mortmain::protocol::SweepOptions;
use mortmain::sys::{Answer, Call, Errno, Host, Reply};
use mortmain::{Outcome, Report};
use mortmain_harness::ground::{Ground, is_root, names_in, outcome, sentence};
use mortmain_harness::intercept::{Intercept, Moment};
use mortmain_harness::scratch::scratch_root;
use nix::mount::{MsFlags, mount};

use crate::support::{LAB, ground, in_cell, soon};

fn sweep(ground: &Ground, kernel: &Intercept<Host>) -> Report {
    ground.over(kernel).sweep(&SweepOptions::default())
}

/// The real kernel, on which something comes instead of the n-th opening of a claim.
fn at_opening(n: u32, mut instead: impl FnMut() -> Option<Errno> + 'static) -> Intercept<Host> {
    let mut opened = 0;
    let adversary = move |call: &Call, moment: Moment| match (call, moment) {
        (Call::OpenDir { name, .. }, Moment::Before) if name.bytes().starts_with(b"t-") => {
            opened += 1;
            if opened == n { instead().map(Err) } else { None }
        }
        _ => None,
    };
    Intercept::new(Host, Rc::new(RefCell::new(adversary)))
}

#[test]
fn a_claim_for_which_there_is_no_descriptor_beside_others_is_asked_for_after_those() {
    in_cell(|| {
        let ground = ground();
        let _dead = [ground.dead(), ground.dead()];
        let report = sweep(&ground, &at_opening(2, || Some(Errno::EMFILE)));
        assert_eq!(report.removed(), 2, "{report}");
        let alone = ground.dead();
        let report = sweep(&ground, &at_opening(1, || Some(Errno::EMFILE)));
        assert!(sentence(&report, &alone).contains("EMFILE"), "{report}");
    });
}

#[test]
fn of_a_claim_that_another_sweep_removed_before_it_was_opened_nothing_is_told() {
    in_cell(|| {
        // Whether the opening says so or the look after it.
        for errno in [None, Some(Errno::EACCES)] {
            let ground = ground();
            let _dead = ground.dead();
            let root = ground.root().to_owned();
            let other = move || {
                let [name] = &names_in(&root)[..] else { panic!("there is one") };
                fs::rename(root.join(name), root.join("elsewhere")).unwrap();
                errno
            };
            let report = sweep(&ground, &at_opening(1, other));
            assert!(report.entries.is_empty(), "{report}");
        }
    });
}

/// A dead claim with files and with the entries of ended commands, in both orders that a listing can
/// have.
fn furnished(ground: &Ground) -> PathBuf {
    let mut owned = ground.owned();
    owned.actor.spawn("exit 0").gone(soon()).unwrap();
    owned.actor.kill();
    let commands = owned.claim.join("commands");
    let id = fs::read_link(commands.join("0.id")).unwrap();
    for entry in 1..3 {
        symlink(&id, commands.join(format!("{entry}.id"))).unwrap();
        fs::write(commands.join(entry.to_string()), "").unwrap();
    }
    fs::create_dir_all(owned.files().join("a/b")).unwrap();
    fs::write(owned.files().join("a/b/file"), "text").unwrap();
    fs::write(owned.files().join("file"), "text").unwrap();
    owned.claim
}

/// Whether this renames a claim to a tombstone.
fn entombs(call: &Call) -> bool {
    matches!(call, Call::Rename { to, .. } if to.bytes().starts_with(b".t-"))
}

fn changes(call: &Call) -> bool {
    matches!(
        call,
        Call::Rename { .. }
            | Call::Unlink { .. }
            | Call::Rmdir { .. }
            | Call::Chmod { .. }
            | Call::Unseal { .. }
    )
}

#[test]
fn where_the_rename_cannot_be_the_removal_is_done_in_place() {
    in_cell(|| {
        let ground = ground();
        for errno in [Errno::ENOSPC, Errno::EDQUOT, Errno::EXDEV, Errno::EPERM, Errno::EINVAL] {
            let claim = furnished(&ground);
            let report = sweep(&ground, &Intercept::refusing(Host, errno, entombs));
            let removed = matches!(outcome(&report, &claim), Outcome::Removed(_));
            assert!(removed, "{errno}: {report}");
            assert_eq!(ground.names(), [""; 0], "{errno}");
        }
        let claim = furnished(&ground);
        let report = sweep(&ground, &Intercept::refusing(Host, Errno::EIO, entombs));
        let expected = "kept: renaming `.` failed: input/output error (EIO)";
        assert_eq!(sentence(&report, &claim), expected);
        assert_eq!(names_in(&claim), ["commands", "files", "owner"]);
    });
}

#[test]
fn a_claim_from_the_layer_of_an_image_is_removed_where_it_is() {
    in_cell(|| {
        if !is_root("no file system can be mounted") {
            return;
        }
        let [lower, upper] = [(); 2].map(|()| scratch_root());
        let Some(image) = overlay(&lower, &upper) else { return };
        let claim = furnished(&Ground::at(LAB, image.clone()));
        nix::mount::umount(&image).unwrap();
        // A container over that image: a directory of a lower layer cannot be renamed.
        let Some(container) = overlay(&upper, &scratch_root()) else { return };
        let ground = Ground::at(LAB, container);
        let claim = ground.root().join(claim.file_name().expect("it has a name"));
        let renamed = fs::rename(&claim, ground.root().join("elsewhere")).map_err(|e| e.kind());
        assert_eq!(renamed, Err(std::io::ErrorKind::CrossesDevices));
        let report = ground.sweep();
        assert!(matches!(outcome(&report, &claim), Outcome::Removed(_)), "{report}");
        assert_eq!(ground.names(), [""; 0]);
    });
}

/// An overlay of two directories, if it can be had.
fn overlay(lower: &Path, upper: &Path) -> Option<PathBuf> {
    let (work, merged) = (scratch_root(), scratch_root());
    let (lower, upper, work) = (lower.display(), upper.display(), work.display());
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work},redirect_dir=off");
    let overlay = Some("overlay");
    match mount(overlay, &merged, overlay, MsFlags::empty(), Some(&*options)) {
        Ok(()) => Some(merged),
        Err(e) => {
            eprintln!("skipped: an overlay cannot be mounted: {e}");
            None
        }
    }
}

/// A kernel that refuses the rename to a tombstone by the given number, if any, and that lets no more
/// than so many changes through: what is on disk then is what a kill leaves at that point.
fn stopping_after(
    changes_max: usize,
    renames: Option<Errno>,
) -> (Intercept<Host>, Rc<Cell<usize>>) {
    let count = Rc::new(Cell::new(0));
    let counted = Rc::clone(&count);
    let adversary = move |call: &Call, moment: Moment| -> Option<Answer<Reply>> {
        if moment == Moment::After || !changes(call) {
            return None;
        }
        if let (true, Some(errno)) = (entombs(call), renames) {
            return Some(Err(errno));
        }
        counted.set(counted.get() + 1);
        (counted.get() > changes_max).then_some(Err(Errno::EIO))
    };
    (Intercept::new(Host, Rc::new(RefCell::new(adversary))), count)
}

/// Stops a removal after each of its changes, and lets another sweep finish it.
#[track_caller]
fn check_every_stop(ground: &Ground, renames: Option<Errno>) {
    for changes_max in 0.. {
        furnished(ground);
        let (kernel, count) = stopping_after(changes_max, renames);
        let first = sweep(ground, &kernel);
        if count.get() <= changes_max {
            // More than a file, a link, and a few directories.
            assert!(changes_max > 8, "it made {changes_max} changes in all: {first}");
            assert_eq!(ground.names(), [""; 0], "{first}");
            return;
        }
        let second = ground.sweep();
        assert_eq!(ground.names(), [""; 0], "after {changes_max} changes:\n{first}{second}");
    }
}

#[test]
fn a_removal_that_is_stopped_after_any_change_is_finished_by_the_next_sweep() {
    in_cell(|| check_every_stop(&ground(), None));
}

#[test]
fn a_removal_in_place_that_is_stopped_after_any_change_is_finished_by_the_next_sweep() {
    in_cell(|| check_every_stop(&ground(), Some(Errno::ENOSPC)));
}

#[test]
fn what_cannot_be_removed_is_told_and_the_rest_goes_but_for_the_control_parts() {
    in_cell(|| {
        let ground = ground();
        let claim = furnished(&ground);
        fs::write(claim.join("files/a/stuck"), "").unwrap();
        let stuck =
            |call: &Call| matches!(call, Call::Unlink { name, .. } if name.bytes() == b"stuck");
        let report = sweep(&ground, &Intercept::refusing(Host, Errno::EBUSY, stuck));
        let expected =
            "removed in part: removing `files/a/stuck` failed: device or resource busy (EBUSY)";
        assert_eq!(sentence(&report, &claim), expected);
        let names = ground.names();
        let tombstone = ground.root().join(&names[0]);
        assert_eq!(names_in(&tombstone), ["commands", "files", "owner"]);
        assert_eq!(names_in(&tombstone.join("files")), ["a"]);
        assert_eq!(names_in(&tombstone.join("files/a")), ["stuck"]);
        assert_eq!(names_in(&tombstone.join("commands")).len(), 6, "it can be judged again");
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_directory_that_is_filled_while_it_is_emptied_goes_unless_that_never_ends() {
    in_cell(|| {
        let ground = ground();
        for (fills_max, goes) in [(2, true), (usize::MAX, false)] {
            let claim = ground.dead();
            fs::create_dir(claim.join("files/busy")).unwrap();
            let root = ground.root().to_owned();
            let mut fills = 0;
            let fill = move |call: &Call, moment| {
                let rmdir = matches!(call, Call::Rmdir { name, .. } if name.bytes() == b"busy");
                if rmdir && moment == Moment::Before && fills < fills_max {
                    fills += 1;
                    let busy = root.join(&names_in(&root)[0]).join("files/busy");
                    fs::write(busy.join(fills.to_string()), "").unwrap();
                }
                None
            };
            let kernel = Intercept::new(Host, Rc::new(RefCell::new(fill)));
            let report = sweep(&ground, &kernel);
            let removed = matches!(outcome(&report, &claim), Outcome::Removed(_));
            assert_eq!(removed, goes, "{report}");
            if !goes {
                let expected = "removed in part: removing `files/busy` failed: \
                                directory not empty (ENOTEMPTY)";
                assert_eq!(sentence(&report, &claim), expected);
            }
            assert_eq!(ground.sweep().removed(), usize::from(!goes));
        }
    });
}

/// Puts somebody else's directory into the place of another, which goes aside.
fn swap(at: &Path, aside: &Path) {
    fs::rename(at, aside).unwrap();
    fs::create_dir(at).unwrap();
}

#[test]
fn a_directory_that_came_to_the_name_before_the_lock_is_not_judged_by_it() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let (at, aside) = (claim.clone(), ground.root().join("aside"));
        let act = move || {
            swap(&at, &aside);
            fs::write(at.join("precious"), "somebody's").unwrap();
        };
        let locks = |call: &Call| matches!(call, Call::Lock { .. });
        let report = sweep(&ground, &Intercept::once(Host, Moment::Before, locks, act));
        assert_eq!(
            report.to_string(),
            "",
            "what was there is gone, what is there was not looked at"
        );
        assert_eq!(names_in(&claim), ["precious"]);
        let aside = ground.root().join("aside");
        assert_eq!(names_in(&aside), ["commands", "files", "owner"]);
    });
}

#[test]
fn a_directory_that_came_to_the_name_before_the_rename_is_put_back() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let (at, aside) = (claim.clone(), ground.root().join("aside"));
        let act = move || {
            swap(&at, &aside);
            fs::write(at.join("precious"), "somebody's").unwrap();
        };
        let report = sweep(&ground, &Intercept::once(Host, Moment::Before, entombs, act));
        let expected = "kept: its name stands for something else now";
        assert_eq!(sentence(&report, &claim), expected);
        assert_eq!(fs::read_to_string(claim.join("precious")).unwrap(), "somebody's");
        assert_eq!(ground.names().len(), 2, "{:?}", ground.names());
        let aside = ground.root().join("aside");
        assert_eq!(names_in(&aside), ["commands", "files", "owner"]);
    });
}

#[test]
fn a_directory_that_came_to_the_name_during_a_removal_in_place_keeps_its_mode() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let (at, aside) = (claim.clone(), ground.root().join("aside"));
        let mut act = Some(move || {
            swap(&at, &aside);
            fs::write(at.join("precious"), "somebody's").unwrap();
        });
        let adversary = move |call: &Call, moment| {
            let released = matches!(call, Call::Rename { to, .. } if to.bytes() == b"released");
            if released && moment == Moment::After {
                act.take().expect("it is given up once")();
            }
            (entombs(call) && moment == Moment::Before).then_some(Err(Errno::ENOSPC))
        };
        let report = sweep(&ground, &Intercept::new(Host, Rc::new(RefCell::new(adversary))));
        let mode = fs::metadata(&claim).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o755, "{report}");
        let again = ground.sweep();
        assert_eq!(names_in(&claim), ["precious"], "{report}{again}");
    });
}

#[test]
fn an_empty_directory_that_came_to_the_tombstones_name_is_not_removed() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let (root, aside) = (ground.root().to_owned(), ground.root().join("aside"));
        let act = move || swap(&root.join(&names_in(&root)[0]), &aside);
        let record =
            |call: &Call| matches!(call, Call::Unlink { name, .. } if name.bytes() == b"owner");
        let report = sweep(&ground, &Intercept::once(Host, Moment::After, record, act));
        let expected = "removed in part: its name stands for something else now";
        assert_eq!(sentence(&report, &claim), expected);
        assert_eq!(ground.names().len(), 2, "{:?}", ground.names());
    });
}

#[test]
fn a_claim_that_vanishes_between_the_listing_and_the_look_is_not_told() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let act = move || fs::rename(&claim, claim.with_file_name("aside")).unwrap();
        let opens = |call: &Call| matches!(call, Call::OpenDir { .. });
        let report = sweep(&ground, &Intercept::once(Host, Moment::Before, opens, act));
        assert_eq!(report.to_string(), "");
        assert_eq!(ground.names(), ["aside"]);
    });
}

#[test]
fn what_vanishes_from_a_claim_while_it_is_removed_is_no_obstacle() {
    in_cell(|| {
        let ground = ground();
        let claim = furnished(&ground);
        let root = ground.root().to_owned();
        let act = move || {
            let tombstone = root.join(&names_in(&root)[0]);
            fs::rename(tombstone.join("files/a"), root.join("aside")).unwrap();
            fs::remove_file(tombstone.join("files/file")).unwrap();
        };
        let unlink =
            |call: &Call| matches!(call, Call::Unlink { name, .. } if name.bytes() == b"file");
        let report = sweep(&ground, &Intercept::once(Host, Moment::Before, unlink, act));
        assert!(matches!(outcome(&report, &claim), Outcome::Removed(_)), "{report}");
        assert_eq!(ground.names(), ["aside"]);
        assert_eq!(names_in(&ground.root().join("aside/b")), ["file"]);
    });
}
