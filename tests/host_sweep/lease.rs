//! The first question: who holds the lease (l1, l6, b1, h8).

use std::cell::RefCell;
use std::fs::{self, FileTimes};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use mortmain::protocol::SweepOptions;
use mortmain::sys::{Call, Errno, FsMagic, Host, Reply};
use mortmain::{Evidence, FsKind, Namespace, Outcome, Proof, Removes};
use mortmain_harness::answers::Answers;
use mortmain_harness::ground::{Ground, is_root, outcome, sentence};
use mortmain_harness::intercept::{Intercept, Moment, copy_of};
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::scripts::RUNS_ON;
use nix::mount::{MsFlags, mount};

use crate::support::{LAB, findings, ground, in_cell, kill};

const NOTHING: Option<&str> = None;

#[test]
fn of_a_live_claim_a_sweep_asks_for_the_lease_and_reads_nothing() {
    in_cell(|| {
        let ground = ground();
        let living = ground.owned();
        let made: Rc<RefCell<Vec<String>>> = Rc::default();
        let noted = Rc::clone(&made);
        let note = move |call: &Call, moment| {
            if moment == Moment::Before {
                noted.borrow_mut().push(call.word().into());
            }
            None
        };
        let root = ground.over(&Intercept::new(Host, Rc::new(RefCell::new(note))));
        made.borrow_mut().clear();
        let report = root.sweep(&SweepOptions::default());
        assert_eq!(sentence(&report, &living.claim), "kept: its lease is held");
        let expected = ["identity", "read-dir", "read-dir", "open-dir", "stat", "lock", "close"];
        assert_eq!(*made.borrow(), expected);
    });
}

#[test]
fn a_lock_that_cannot_be_asked_for_keeps_whatever_the_error() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let errors = [
            Errno::ENOLCK,
            Errno::EMFILE,
            Errno::ENFILE,
            Errno::EINTR,
            Errno::EIO,
            Errno::EACCES,
            Errno::EPERM,
            Errno::ESTALE,
            Errno::ENOMEM,
            Errno::EBADF,
            Errno::ESRCH,
            Errno::ENOENT,
            Errno::EOPNOTSUPP,
            Errno(199),
        ];
        for errno in errors {
            let locks = |call: &Call| matches!(call, Call::Lock { .. });
            let root = ground.over(&Intercept::refusing(Host, errno, locks));
            let report = root.sweep(&SweepOptions::default());
            let lease = &findings(&report, &claim).lease;
            let expected = (Proof::CannotTell, &Evidence::LeaseUnclear(errno));
            assert_eq!((lease.proof, &lease.evidence), expected);
            let expected = format!("kept: its lease could not be asked for: {errno}");
            assert_eq!(sentence(&report, &claim), expected);
        }
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_claim_that_cannot_be_opened_is_told_whatever_the_error() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        for errno in [Errno::EMFILE, Errno::ENFILE, Errno::EIO, Errno::ENOMEM, Errno(199)] {
            let opens = |call: &Call| matches!(call, Call::OpenDir { .. });
            let root = ground.over(&Intercept::refusing(Host, errno, opens));
            let report = root.sweep(&SweepOptions::default());
            let expected = format!("kept: its lease could not be asked for: {errno}");
            assert_eq!(sentence(&report, &claim), expected);
        }
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn no_time_that_is_long_ago_or_to_come_is_a_proof() {
    in_cell(|| {
        let ground = ground();
        let (living, dead) = (ground.owned(), [ground.dead(), ground.dead()]);
        let century = Duration::from_secs(3_000_000_000);
        let date = |claim: &Path, time: SystemTime| {
            let times = FileTimes::new().set_accessed(time).set_modified(time);
            for part in [claim.join("commands"), claim.join("files"), claim.into()] {
                fs::File::open(part).unwrap().set_times(times).unwrap();
            }
        };
        date(&living.claim, SystemTime::UNIX_EPOCH);
        date(&dead[0], SystemTime::UNIX_EPOCH);
        date(&dead[1], SystemTime::UNIX_EPOCH + century);
        let report = ground.sweep();
        assert_eq!(sentence(&report, &living.claim), "kept: its lease is held");
        assert_eq!(report.removed(), 2, "{report}");
    });
}

/// Puts a claim where the other is on another file system, part by part.
fn copy_claim(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(fs::read_link(from.join("owner")).unwrap(), to.join("owner")).unwrap();
    fs::create_dir(to.join("commands")).unwrap();
    fs::create_dir(to.join("files")).unwrap();
}

#[test]
fn on_a_kind_of_file_system_that_is_not_listed_a_free_lease_is_no_proof() {
    in_cell(|| {
        if !is_root("no file system can be mounted") {
            return;
        }
        let dead = ground().dead();
        let root = scratch_root();
        mount(NOTHING, &root, Some("ramfs"), MsFlags::empty(), NOTHING).unwrap();
        let claim = root.join(dead.file_name().expect("it has a name"));
        copy_claim(&dead, &claim);
        let report = Namespace::at(&root, "t").unwrap().sweep();
        let expected = "kept: locks on a file system of kind 0x858458f6 prove nothing";
        assert_eq!(sentence(&report, &claim), expected);
        assert!(claim.join("owner").is_symlink());
    });
}

#[test]
fn a_lease_that_is_held_in_an_overlay_is_not_believed_free_in_the_upper_directory() {
    in_cell(|| {
        if !is_root("no file system can be mounted") {
            return;
        }
        let [lower, upper, work, merged] = [(); 4].map(|()| scratch_root());
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            lower.display(),
            upper.display(),
            work.display()
        );
        let overlay = Some("overlay");
        if let Err(e) = mount(overlay, &merged, overlay, MsFlags::empty(), Some(&*options)) {
            eprintln!("skipped: an overlay cannot be mounted: {e}");
            return;
        }
        let (above, below) = (Ground::at(LAB, merged), Ground::at(LAB, upper));
        let mut owned = above.owned();
        let hidden = below.root().join(owned.claim.file_name().expect("it has a name"));

        let report = below.sweep();
        let expected = "kept: its owner saw overlay here and we see tmpfs, so the lease is not \
                        asked of the same kernel or mount";
        assert_eq!(sentence(&report, &hidden), expected);
        assert_eq!(sentence(&above.sweep(), &owned.claim), "kept: its lease is held");
        owned.actor.kill();
        assert!(matches!(outcome(&below.sweep(), &hidden), Outcome::Kept(_)), "it cannot be told");
        assert_eq!(above.sweep().removed(), 1);
    });
}

#[test]
fn a_lease_that_the_owner_took_on_another_kind_of_file_system_is_no_proof() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        // EXT4_SUPER_MAGIC, where the owner saw tmpfs.
        let ext4 = |call: &Call, moment| {
            let asked = matches!((call, moment), (Call::FsMagic { .. }, Moment::Before));
            asked.then_some(Ok(Reply::FsMagic(FsMagic(0xEF53))))
        };
        let kernel = Intercept::new(Host, Rc::new(RefCell::new(ext4)));
        let report = ground.over(&kernel).sweep(&SweepOptions::default());
        let lease = &findings(&report, &claim).lease;
        let found = FsKind::Ext4;
        let Evidence::OtherFileSystem { recorded, found: seen } = lease.evidence else {
            panic!("{report}")
        };
        assert_eq!((lease.proof, seen), (Proof::CannotTell, found));
        assert_ne!(recorded, found);
        assert_eq!(ground.sweep().removed(), 1);
    });
}

/// A kernel of a process that forks a child at each lock that it is granted.
fn forking() -> (Intercept<Host>, Rc<RefCell<Vec<OwnedFd>>>) {
    let copies: Rc<RefCell<Vec<OwnedFd>>> = Rc::default();
    let kept = Rc::clone(&copies);
    let copy = move |call: &Call, moment| {
        if let (Call::Lock { fd }, Moment::After) = (call, moment) {
            kept.borrow_mut().push(copy_of(*fd).expect("it is open"));
        }
        None
    };
    (Intercept::new(Host, Rc::new(RefCell::new(copy))), copies)
}

#[test]
fn a_sweep_gives_every_lock_back_even_with_copies_of_its_descriptors_about() {
    in_cell(|| {
        let ground = ground();
        let mut owned = ground.owned();
        let command = owned.actor.spawn(RUNS_ON);
        owned.actor.said("the command's line");
        owned.actor.kill();
        let in_use = |sentence: String| sentence.starts_with("kept: the lock of command 0 is held");

        let (kernel, copies) = forking();
        let report = ground.over(&kernel).sweep(&SweepOptions::default());
        assert!(in_use(sentence(&report, &owned.claim)), "{report}");
        assert!(copies.borrow().len() >= 2, "of the lease and of the command's lock");
        let report = ground.sweep();
        assert!(in_use(sentence(&report, &owned.claim)), "the copy has the lease: {report}");

        kill(&command);
        let (kernel, others) = forking();
        let look = SweepOptions { dry_run: true, ..SweepOptions::default() };
        let mut unseeing = Answers::nobody_seen();
        let report = ground.over(&kernel).sweep_with(&look, &mut unseeing, &mut Removes);
        assert!(matches!(outcome(&report, &owned.claim), Outcome::WouldRemove(_)), "{report}");
        // The lease, the command's lock, and the locks of the directories inside.
        assert!(others.borrow().len() >= 4, "{} locks", others.borrow().len());
        assert_eq!(ground.sweep_unseeing().removed(), 1);
    });
}
