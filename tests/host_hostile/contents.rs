//! What a claim may hold that must not be followed, not be opened, not be emptied, or cannot be
//! removed (h3, h5, r5).

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use mortmain::protocol::SweepOptions;
use mortmain::sys::{Call, Errno, Host};
use mortmain::{Namespace, Outcome};
use mortmain_harness::actor::Actor;
use mortmain_harness::ground::{Owned, names_in, outcome, sentence};
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::intercept::Intercept;
use mortmain_harness::scripts::RUNS_ON;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::stat::Mode;

use crate::support::{Precious, ground, in_cell, soon};

/// A claim in that of somebody else, and its name.
fn nested(mut actor: Actor, outer: &Path) -> (Owned, String) {
    let claim = actor.create("inner", &outer.join("files"));
    let name = claim.file_name().expect("it has a name").display().to_string();
    (Owned { actor, claim }, name)
}

#[test]
fn links_are_removed_and_what_they_point_at_is_not() {
    in_cell(|| {
        let (ground, precious) = (ground(), Precious::new());
        let claim = ground.dead();
        let files = claim.join("files");
        symlink(&precious.dir, files.join("to-dir")).unwrap();
        symlink(precious.dir.join("file"), files.join("to-file")).unwrap();
        symlink("nowhere", files.join("dangling")).unwrap();
        symlink("../..", files.join("upwards")).unwrap();
        symlink("to-itself", files.join("to-itself")).unwrap();
        symlink("/", claim.join("to-the-top")).unwrap();
        fs::create_dir(files.join("deep")).unwrap();
        symlink(precious.dir.join("sub"), files.join("deep/to-dir")).unwrap();
        let report = ground.sweep();
        assert!(matches!(outcome(&report, &claim), Outcome::Removed(_)), "{report}");
        assert_eq!(ground.names(), [""; 0]);
        precious.assert_untouched();
    });
}

#[test]
fn a_hard_link_takes_only_its_own_name_with_it() {
    in_cell(|| {
        let (ground, precious) = (ground(), Precious::new());
        let claim = ground.dead();
        fs::hard_link(precious.dir.join("file"), claim.join("files/second-name")).unwrap();
        assert_eq!(ground.sweep().removed(), 1);
        precious.assert_untouched();
    });
}

#[test]
fn what_is_no_file_is_removed_without_being_opened() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        // To open a FIFO wakes who waits at its other end, or waits for him.
        let inside = claim.join("files/fifo");
        nix::unistd::mkfifo(&inside, Mode::S_IRWXU).unwrap();
        UnixListener::bind(claim.join("files/s")).unwrap();
        fs::write(claim.join("files/file"), "").unwrap();
        let kept = ground.dead();
        let as_lock = kept.join("commands/0");
        nix::unistd::mkfifo(&as_lock, Mode::S_IRWXU).unwrap();

        let opened = Inotify::init(InitFlags::IN_NONBLOCK).unwrap();
        for fifo in [&inside, &as_lock] {
            opened.add_watch(fifo, AddWatchFlags::IN_OPEN).unwrap();
        }
        let report = ground.sweep();
        assert!(matches!(outcome(&report, &claim), Outcome::Removed(_)), "{report}");
        assert!(matches!(outcome(&report, &kept), Outcome::Kept(_)), "{report}");
        // That one of them is gone is told, too.
        let events = opened.read_events().unwrap_or_default();
        let opens = events.iter().filter(|event| event.mask.contains(AddWatchFlags::IN_OPEN));
        assert_eq!(opens.count(), 0, "{events:?}");
    });
}

#[test]
fn a_locked_directory_keeps_the_claim_that_it_lies_in() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let locked = claim.join("files/a/locked");
        fs::create_dir_all(locked.join("below")).unwrap();
        fs::write(claim.join("files/file"), "text").unwrap();
        let lock = File::open(&locked).unwrap();
        lock.try_lock_shared().unwrap();
        let report = ground.sweep_unseeing();
        let expected = "kept: `files/a/locked` inside is locked by somebody";
        assert_eq!(sentence(&report, &claim), expected);
        assert_eq!(names_in(&claim.join("files")), ["a", "file"], "nothing was touched");
        drop(lock);
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_living_claim_keeps_the_dead_one_that_it_lies_in() {
    in_cell(|| {
        let ground = ground();
        let outer = ground.dead();
        // Its TMPDIR was the outer one's files.
        let mut command = ground.actor_command();
        command.env_remove("MORTMAIN_CLAIM");
        let (mut inner, name) = nested(Actor::start_by(command), &outer);
        inner.actor.must("write file", "written");
        let expected = format!("kept: `files/{name}` inside is locked by somebody");
        assert_eq!(sentence(&ground.sweep_unseeing(), &outer), expected);
        assert!(inner.files().join("file").is_file());
        inner.actor.kill();
        assert_eq!(ground.sweep().removed(), 1);
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn a_command_of_a_dead_claim_keeps_the_one_that_it_lies_in() {
    in_cell(|| {
        let ground = ground();
        let outer = ground.dead();
        let (mut inner, name) = nested(ground.actor(), &outer);
        // Its owner is dead, and it holds no directory's lock.
        let command = inner.actor.spawn(RUNS_ON);
        inner.actor.said("its line");
        inner.actor.kill();
        let expected =
            format!("kept: a claim inside is in use, or might be: `files/{name}/commands`");
        assert_eq!(sentence(&ground.sweep_unseeing(), &outer), expected);
        assert!(inner.files().is_dir());
        command.kill().unwrap();
        command.gone(soon()).unwrap();
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn an_owner_without_its_lease_keeps_the_claim_that_its_own_lies_in() {
    in_cell(|| {
        let ground = ground();
        let outer = ground.dead();
        let (mut inner, name) = nested(ground.actor(), &outer);
        inner.actor.must("lose-lease", "lost 1");
        let expected = format!("kept: a claim inside is in use, or might be: `files/{name}/owner`");
        assert_eq!(sentence(&ground.sweep_unseeing(), &outer), expected);
        assert!(inner.files().is_dir());
        inner.actor.kill();
        assert_eq!(ground.sweep().removed(), 1);
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn what_has_the_names_of_a_claims_parts_and_is_none_keeps_nothing() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        // Somebody's files that happen to be called so.
        let checkout = claim.join("files/checkout");
        fs::create_dir_all(checkout.join("commands")).unwrap();
        fs::write(checkout.join("commands/README"), "how to add a command").unwrap();
        symlink("OWNERS.md", checkout.join("owner")).unwrap();
        // It is longer than any record, and no less a link.
        let vendored = checkout.join("vendored");
        fs::create_dir_all(vendored.join("commands")).unwrap();
        symlink("OWNERS".repeat(100), vendored.join("owner")).unwrap();
        let report = ground.sweep();
        assert!(matches!(outcome(&report, &claim), Outcome::Removed(_)), "{report}");
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn an_immutable_file_is_told_once_and_keeps_nothing_else() {
    in_cell(|| {
        let ground = ground();
        let (claim, neighbour) = (ground.dead(), ground.dead());
        let files = claim.join("files");
        fs::create_dir(files.join("a")).unwrap();
        fs::write(files.join("a/fixed"), "").unwrap();
        fs::write(files.join("a/other"), "").unwrap();
        fs::write(files.join("last"), "").unwrap();
        if let Err(why) = chattr("+i", &files.join("a/fixed")) {
            eprintln!("skipped: no file can be made immutable: {why}");
            return;
        }
        let report = ground.sweep();
        let expected =
            "removed in part: removing `files/a/fixed` failed: operation not permitted (EPERM)";
        assert_eq!(sentence(&report, &claim), expected);
        assert!(matches!(outcome(&report, &neighbour), Outcome::Removed(_)), "{report}");
        let tombstone = ground.root().join(&ground.names()[0]);
        assert_eq!(names_in(&tombstone), ["commands", "files", "owner"]);
        assert_eq!(names_in(&tombstone.join("files")), ["a"]);
        assert_eq!(names_in(&tombstone.join("files/a")), ["fixed"]);
        chattr("-i", &tombstone.join("files/a/fixed")).unwrap();
        assert_eq!(ground.sweep().removed(), 1);
    });
}

/// Changes an attribute of a file, if that can be done here.
fn chattr(change: &str, file: &Path) -> Result<(), String> {
    let mut command = Command::new("chattr");
    command.arg(change).arg(file);
    let mut chattr = ChildGuard::spawn(command).map_err(|e| e.to_string())?;
    let status = chattr.wait(soon()).map_err(|e| e.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("chattr ended with {status}")) }
}

#[test]
fn a_directory_that_cannot_be_opened_keeps_the_claim_and_is_not_taken_for_a_strangers() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        fs::create_dir(claim.join("files/odd")).unwrap();
        let odd = |call: &Call| match call {
            Call::OpenDir { name, .. } => name.bytes() == b"odd",
            _ => false,
        };
        let report = |errno, dry_run| {
            let options = SweepOptions { dry_run, ..SweepOptions::default() };
            ground.over(&Intercept::refusing(Host, errno, odd)).sweep(&options)
        };
        for (errno, why) in [
            (Errno::EIO, "input/output error (EIO)"),
            (Errno::EACCES, "permission denied (EACCES)"),
        ] {
            let expected = format!("kept: opening `files/odd` failed: {why}");
            assert_eq!(sentence(&report(errno, false), &claim), expected);
            assert_eq!(names_in(&claim), ["commands", "files", "owner"]);
        }
        // To a look that may change no mode, this one says only that it is sealed.
        assert!(matches!(outcome(&report(Errno::EIO, true), &claim), Outcome::Blocked(_)));
        assert!(matches!(outcome(&report(Errno::EACCES, true), &claim), Outcome::WouldRemove(_)));
    });
}

#[test]
fn a_mode_is_given_back_to_those_that_lack_it_and_to_no_other() {
    in_cell(|| {
        let ground = ground();
        for (mode, changes) in [(0o700, 0), (0o755, 0), (0o500, 1), (0o000, 1)] {
            let claim = ground.dead();
            let inside = claim.join("files/inside");
            fs::create_dir(&inside).unwrap();
            fs::set_permissions(&inside, Permissions::from_mode(mode)).unwrap();
            let is_change = |call: &Call| matches!(call, Call::Chmod { .. });
            let (kernel, counted) = Intercept::counting(Host, is_change);
            let report = ground.over(&kernel).sweep(&SweepOptions::default());
            assert_eq!((report.removed(), counted.get()), (1, changes), "{mode:o}: {report}");
        }
    });
}

#[test]
fn names_of_any_bytes_go_and_are_told_without_loss() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let long = [b'x'; 255];
        let names: [&[u8]; 10] = [
            b"line\nend",
            b"\xff\xfe",
            b"-rf",
            b" ",
            b"tail ",
            b"\x1b[31m",
            b"\"quote\\",
            b"...",
            b"\xc3\xa9",
            &long,
        ];
        for name in names {
            let dir = claim.join("files").join(OsStr::from_bytes(name));
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join(OsStr::from_bytes(name)), "").unwrap();
        }
        // One of them stays, to be told.
        let locked = claim.join("files").join(OsStr::from_bytes(b"line\nend"));
        let lock = File::open(&locked).unwrap();
        lock.try_lock().unwrap();
        let expected = "kept: `files/line\\nend` inside is locked by somebody";
        assert_eq!(sentence(&ground.sweep_unseeing(), &claim), expected);
        drop(lock);
        assert_eq!(ground.sweep().removed(), 1);
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn the_root_and_what_else_lies_in_it_stay_whatever_goes() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let precious = Precious::new();
        let moved = ground.root().join("precious");
        fs::rename(&precious.dir, &moved).unwrap();
        assert_eq!(ground.sweep().removed(), 1);
        assert!(!claim.exists());
        fs::rename(&moved, &precious.dir).unwrap();
        precious.assert_untouched();
        // Also when nothing is left in it.
        assert_eq!(Namespace::at(ground.root(), "t").unwrap().sweep().to_string(), "");
        assert!(ground.root().is_dir());
    });
}
