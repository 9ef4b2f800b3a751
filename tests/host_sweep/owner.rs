//! The second question: has the owner ended (l2)?

use std::cell::RefCell;
use std::fs;
use std::process::Command;
use std::rc::Rc;

use mortmain::protocol::SweepOptions;
use mortmain::sys::{Call, Errno, Host};
use mortmain::{Ended, Evidence, Proof};
use mortmain_harness::actor::Actor;
use mortmain_harness::cell::{Entry, Reaping};
use mortmain_harness::forge::{Process, Record};
use mortmain_harness::ground::{PREFIX, is_root, sentence};
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::intercept::{Intercept, Moment};
use mortmain_harness::processes::process;
use mortmain_harness::scripts::RUNS_ON;
use mortmain_harness::wait::Watch;

use crate::support::{LAB, ground, hold, in_cell, kill, of_owner, recorded, soon, stranger};

/// A stranger with the pid of a process that has ended, begun in a later tick of the clock.
fn stranger_with(ended: &Process) -> ChildGuard {
    loop {
        fs::write("/proc/sys/kernel/ns_last_pid", (ended.pid - 1).to_string()).unwrap();
        let stranger = stranger();
        assert_eq!(stranger.pid(), ended.pid, "nobody else starts processes here");
        let began = process(ended.pid).unwrap().expect("it lives").start_ticks;
        if began != ended.start_ticks {
            return stranger;
        }
    }
}

#[test]
fn an_owner_that_was_killed_and_reaped_has_ended() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let expected = format!(
            "removed: owner {} `mortmain-lab` has ended; no command is registered",
            recorded(&claim)
        );
        assert_eq!(sentence(&ground.sweep(), &claim), expected);
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn an_owner_that_was_killed_and_not_reaped_has_ended() {
    in_cell(|| {
        let ground = ground();
        let owned = ground.owned();
        kill(&hold(&owned.actor.pid().to_string()));
        let info = process(owned.actor.pid()).unwrap().expect("nobody reaped it");
        assert_eq!(info.state, 'Z');
        let expected = format!(
            "removed: owner {} `mortmain-lab` has ended and was not reaped; no command is registered",
            owned.actor.pid()
        );
        assert_eq!(sentence(&ground.sweep(), &owned.claim), expected);
    });
}

#[test]
fn an_owner_that_nobody_ever_reaps_has_ended() {
    Entry::new(LAB).reaping(Reaping::Never).run(|| {
        let ground = ground();
        // The shell ends first, so the owner is a child of an init that does not care.
        let mut shell = Command::new("sh");
        let script = format!("exec 3<&0; {LAB} actor <&3 & exit");
        shell.args(["-c", &script]);
        let owned = ground.owned_by(Actor::start_by(shell));
        hold(&owned.actor.pid().to_string()).gone(soon()).expect("the shell ends");
        let owner = recorded(&owned.claim);
        kill(&hold(&owner.to_string()));
        let info = process(owner).unwrap().expect("nobody reaped it");
        assert_eq!((info.state, info.ppid), ('Z', 1));
        let expected = format!(
            "removed: owner {owner} `mortmain-lab` has ended and was not reaped; \
             no command is registered"
        );
        assert_eq!(sentence(&ground.sweep(), &owned.claim), expected);
    });
}

#[test]
fn a_stranger_with_the_owners_number_is_not_the_owner() {
    in_cell(|| {
        if !is_root("the next pid cannot be chosen") {
            return;
        }
        let ground = ground();
        // By its start alone, too, as on a kernel whose pidfds have no numbers.
        let claims = [ground.dead(), ground.dead()];
        let link = claims[0].join("owner");
        let ended = Record::read(&link).unwrap().process;
        Record::change(&claims[1].join("owner"), |record| {
            record.process = Process { pidfs: 0, ..ended.clone() };
        })
        .unwrap();
        let mut stranger = stranger_with(&ended);
        let expected = format!(
            "removed: owner {} `mortmain-lab` has ended, and another process has its number; \
             no command is registered",
            ended.pid
        );
        let report = ground.sweep();
        for claim in &claims {
            assert_eq!(sentence(&report, claim), expected);
        }
        stranger.send_line("lives", soon()).unwrap();
        assert_eq!(stranger.lines().next_line(soon(), "its line").unwrap(), "lives");
    });
}

#[test]
fn a_stranger_that_began_in_the_same_tick_is_told_apart_by_its_pidfd() {
    in_cell(|| {
        let ground = ground();
        let (claim, other) = (ground.dead(), ground.dead());
        let stranger = stranger();
        let start_ticks = process(stranger.pid()).unwrap().expect("it lives").start_ticks;
        // What the record would say had the stranger got the dead owner's number within a tick.
        Record::change(&claim.join("owner"), |record| {
            record.process.pid = stranger.pid();
            record.process.start_ticks = start_ticks;
        })
        .unwrap();
        // And as an owner would have written it on a kernel without such numbers.
        Record::change(&other.join("owner"), |record| {
            record.process.pid = stranger.pid();
            record.process.start_ticks = start_ticks;
            record.process.pidfs = 0;
        })
        .unwrap();
        let has_pidfs = Record::read(&claim.join("owner")).unwrap().process.pidfs != 0;
        let report = ground.sweep();
        let expected = format!("kept: owner {} `mortmain-lab` runs", stranger.pid());
        assert_eq!(sentence(&report, &other), expected);
        if !has_pidfs {
            eprintln!("skipped: this kernel has no numbers of pidfds");
            return;
        }
        let found = of_owner(&report, &claim);
        let Evidence::OwnerEnded(_, how) = &found.evidence else { panic!("{report}") };
        assert_eq!((found.proof, *how), (Proof::Gone, Ended::NumberReused));
    });
}

#[test]
fn an_owner_without_its_lease_lives_and_cannot_use_what_it_lost() {
    in_cell(|| {
        let ground = ground();
        let mut owned = ground.owned();
        owned.actor.must("lose-lease", "lost 1");
        let expected = format!("kept: owner {} `mortmain-lab` runs", owned.actor.pid());
        assert_eq!(sentence(&ground.sweep(), &owned.claim), expected);
        owned.actor.must("spawn true", "error LeaseLost");
        // It may as well be the owner itself that sweeps.
        let swept = owned.actor.sweep(PREFIX, ground.root());
        assert_eq!((swept.removed, swept.kept), (0, 1), "{:?}", swept.report);
        owned.actor.kill();
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_mark_that_the_owner_did_not_make_releases_nothing() {
    in_cell(|| {
        let ground = ground();
        let mut owned = ground.owned();
        owned.actor.must("lose-lease", "lost 1");
        // A copy beside the record, as a command may make one.
        let record = Record::read(&owned.claim.join("owner")).unwrap();
        record.write(&owned.claim.join("released")).unwrap();
        let expected = format!("kept: owner {} `mortmain-lab` runs", owned.actor.pid());
        assert_eq!(sentence(&ground.sweep(), &owned.claim), expected);
        owned.actor.kill();
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn an_owner_lives_while_any_of_its_threads_does() {
    in_cell(|| {
        let ground = ground();
        let mut owned = ground.owned();
        assert_eq!(owned.actor.ask("end-main-thread"), "goes on");
        // There is no event for it: the thread that answered is not the one that ends.
        let deadline = soon();
        while process(owned.actor.pid()).unwrap().expect("it was not reaped").state != 'Z' {
            assert!(!deadline.passed(), "its first thread has not ended");
            std::thread::yield_now();
        }
        assert_eq!(sentence(&ground.sweep(), &owned.claim), "kept: its lease is held");
        owned.actor.must("lose-lease", "lost 1");
        let expected = format!("kept: owner {} `mortmain-lab` runs", owned.actor.pid());
        assert_eq!(sentence(&ground.sweep(), &owned.claim), expected);
        owned.actor.must("write still-here", "written");
        assert!(owned.files().join("still-here").is_file());
        owned.actor.kill();
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn an_owner_without_its_first_thread_can_do_all_that_an_owner_can() {
    in_cell(|| {
        let ground = ground();
        let mut actor = ground.actor();
        assert_eq!(actor.ask("end-main-thread"), "goes on");
        let mut owned = ground.owned_by(actor);
        let command = owned.actor.spawn("exit 0");
        command.gone(soon()).unwrap();
        assert_eq!(owned.actor.ask("close"), "removed");
    });
}

#[test]
fn an_owner_that_became_another_program_has_lost_its_claims_to_itself() {
    in_cell(|| {
        let ground = ground();
        let mut owned = ground.owned();
        assert_eq!(owned.actor.ask("exec-self"), "executed");
        // To others the number is still that of the recorded process.
        let runs = format!("kept: owner {} `mortmain-lab` runs", owned.actor.pid());
        assert_eq!(sentence(&ground.sweep(), &owned.claim), runs);
        let swept = owned.actor.sweep(PREFIX, ground.root());
        assert_eq!(swept.removed, 1);
        let name = owned.claim.file_name().and_then(|name| name.to_str()).expect("it is text");
        let expected = format!(
            "{name}: removed: owner {} `mortmain-lab` has become another program; \
             no command is registered",
            owned.actor.pid()
        );
        assert_eq!(swept.report, [expected]);
    });
}

#[test]
fn an_owner_that_cannot_be_asked_about_is_kept_whatever_the_error() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let owner = recorded(&claim);
        let errors = [Errno::EPERM, Errno::EINVAL, Errno::EIO, Errno::ENOENT, Errno(199)];
        for errno in errors {
            let asks = |call: &Call| matches!(call, Call::ProcessExists { .. });
            let root = ground.over(&Intercept::refusing(Host, errno, asks));
            let report = root.sweep(&SweepOptions::default());
            let found = of_owner(&report, &claim);
            assert_eq!(found.proof, Proof::CannotTell, "{errno}: {report}");
            assert!(matches!(found.evidence, Evidence::OwnerUnclear(..)), "{errno}: {report}");
        }
        // Whatever /proc shows, or does not, "there is no such process" is the kernel's to say.
        let living = stranger();
        Record::change(&claim.join("owner"), |record| {
            record.process.pid = living.pid();
            record.process.pidfs = 0;
        })
        .unwrap();
        for errno in [Errno::ENOENT, Errno::ESRCH, Errno::EACCES, Errno::EMFILE, Errno::EIO] {
            let reads = |call: &Call| matches!(call, Call::Process { .. });
            let root = ground.over(&Intercept::refusing(Host, errno, reads));
            let report = root.sweep(&SweepOptions::default());
            let expected = format!(
                "kept: whether owner {} `mortmain-lab` runs could not be found out: {errno}",
                living.pid()
            );
            assert_eq!(sentence(&report, &claim), expected);
        }
        assert_ne!(owner, living.pid());
    });
}

#[test]
fn a_record_that_cannot_be_read_keeps_whatever_the_error() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        for errno in [Errno::EMFILE, Errno::ENFILE, Errno::EIO, Errno::EACCES, Errno::ESTALE] {
            let reads = |call: &Call| matches!(call, Call::Readlink { .. });
            let root = ground.over(&Intercept::refusing(Host, errno, reads));
            let report = root.sweep(&SweepOptions::default());
            let expected = format!("kept: the owner's record could not be read: {errno}");
            assert_eq!(sentence(&report, &claim), expected);
        }
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn commands_are_asked_about_after_the_lease_was_taken() {
    in_cell(|| {
        // The owner's last act before its death is a command. Asked before the lease, "no entries"
        // would be an answer from before it.
        let ground = ground();
        let owned = Rc::new(RefCell::new(ground.owned()));
        let (acting, done) = (Rc::clone(&owned), Rc::new(RefCell::new(None::<Watch>)));
        let command = Rc::clone(&done);
        let act = move || {
            let mut owned = acting.borrow_mut();
            *command.borrow_mut() = Some(owned.actor.spawn(RUNS_ON));
            owned.actor.said("the command's line");
            owned.actor.kill();
        };
        let locks = |call: &Call| matches!(call, Call::Lock { .. });
        let kernel = Intercept::once(Host, Moment::Before, locks, act);
        let report = ground.over(&kernel).sweep(&SweepOptions::default());
        let said = sentence(&report, &owned.borrow().claim);
        assert!(said.starts_with("kept: the lock of command 0 is held"), "{said}");
        kill(done.borrow().as_ref().expect("it was started"));
        assert_eq!(ground.sweep().removed(), 1);
    });
}
