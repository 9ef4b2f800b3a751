//! The third question: have all commands ended (l3)?

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use mortmain::Proof;
use mortmain::protocol::SweepOptions;
use mortmain::sys::{Call, Errno, Host};
use mortmain_harness::cell::{Entry, Reaping};
use mortmain_harness::forge::Record;
use mortmain_harness::ground::{is_root, sentence};
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::intercept::{Intercept, Moment};
use mortmain_harness::processes::process;
use mortmain_harness::scripts::{LEAVES_DAEMON, LEAVES_MEMBER, RUNS_IN_THREE, RUNS_ON};
use mortmain_harness::wait::Watch;

use crate::support::{
    LAB, ground, hold, id, in_cell, kill, of_commands, orphaned, soon, with_ended,
};

#[test]
fn commands_that_have_ended_are_counted_and_the_claim_goes() {
    in_cell(|| {
        let ground = ground();
        for (count, ended) in [(1, "its command has ended"), (2, "all 2 commands have ended")] {
            let owned = with_ended(&ground, count);
            let sentence = sentence(&ground.sweep(), &owned.claim);
            assert!(sentence.starts_with("removed: owner "), "{sentence}");
            assert!(sentence.ends_with(&format!(" has ended; {ended}")), "{sentence}");
        }
    });
}

#[test]
fn a_command_that_holds_its_lock_is_named() {
    in_cell(|| {
        let ground = ground();
        let (owned, shell, _) = orphaned(&ground, RUNS_ON);
        let report = ground.sweep();
        let pid = shell.pid();
        let expected = format!("kept: the lock of command 0 is held; it was started as {pid} `sh`");
        assert_eq!(sentence(&report, &owned.claim), expected);
        assert_eq!(of_commands(&report, &owned.claim).proof, Proof::Alive);
        kill(&shell);
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_daemon_in_a_session_of_its_own_keeps_by_the_lock_that_it_inherited() {
    in_cell(|| {
        let ground = ground();
        let (owned, shell, daemon) = orphaned(&ground, LEAVES_DAEMON);
        let daemon = hold(&daemon);
        shell.gone(soon()).unwrap();
        let info = process(daemon.pid()).unwrap().expect("it lives");
        assert_eq!((info.session, info.pgid), (daemon.pid(), daemon.pid()));
        let sentence = sentence(&ground.sweep(), &owned.claim);
        let expected =
            format!("kept: the lock of command 0 is held; it was started as {}", shell.pid());
        assert!(sentence.starts_with(&expected), "{sentence}");
        kill(&daemon);
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_member_of_the_group_keeps_without_the_lock() {
    in_cell(|| {
        let ground = ground();
        let (owned, shell, member) = orphaned(&ground, LEAVES_MEMBER);
        let member = hold(&member);
        shell.gone(soon()).unwrap();
        let expected =
            format!("kept: command {} `bash` runs in group {}", member.pid(), shell.pid());
        assert_eq!(sentence(&ground.sweep(), &owned.claim), expected);
        kill(&member);
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_command_that_unlocks_what_it_inherited_keeps_by_its_group() {
    in_cell(|| {
        let ground = ground();
        let script = "exec bash -c 'mkfifo never; flock --unlock 255; echo $?; read x <never'";
        let (owned, command, unlocked) = orphaned(&ground, script);
        assert_eq!(unlocked, "0");
        let pid = command.pid();
        let expected = format!("kept: command {pid} `bash` runs in group {pid}");
        assert_eq!(sentence(&ground.sweep(), &owned.claim), expected);
        kill(&command);
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn of_a_group_the_first_is_named_and_the_others_are_counted() {
    in_cell(|| {
        let ground = ground();
        let (owned, shell, _) = orphaned(&ground, RUNS_IN_THREE);
        let group = shell.pid();
        let said = sentence(&ground.sweep(), &owned.claim);
        assert_eq!(said, format!("kept: command {group} `bash` and 2 more run in group {group}"));
        // A leader that is a zombie, or gone, is not the group's end.
        kill(&shell);
        let sentence = sentence(&ground.sweep(), &owned.claim);
        assert!(
            sentence.ends_with(&format!("`bash` and 1 more run in group {group}")),
            "{sentence}"
        );
    });
}

#[test]
fn a_group_of_zombies_has_ended() {
    Entry::new(LAB).reaping(Reaping::Never).run(|| {
        let ground = ground();
        let (owned, shell, member) = orphaned(&ground, LEAVES_MEMBER);
        let member = hold(&member);
        shell.gone(soon()).unwrap();
        let keeps = sentence(&ground.sweep(), &owned.claim);
        assert!(keeps.contains(" runs in group "), "beside a zombie: {keeps}");
        kill(&member);
        for pid in [shell.pid(), member.pid()] {
            assert_eq!(process(pid).unwrap().expect("nobody reaps here").state, 'Z');
        }
        let sentence = sentence(&ground.sweep(), &owned.claim);
        assert!(sentence.ends_with("its command has ended"), "{sentence}");
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn a_command_that_joined_another_group_is_found_by_its_own_number() {
    in_cell(|| {
        let ground = ground();
        let (owned, command, said) = orphaned(&ground, &format!("exec {LAB} actor --leave-group"));
        assert_eq!(said, "left");
        let info = process(command.pid()).unwrap().expect("it lives");
        assert_ne!(info.pgid, command.pid());
        let report = ground.sweep();
        let sentence = sentence(&report, &owned.claim);
        assert!(
            sentence.contains(&format!("command {} `mortmain-lab`", command.pid())),
            "{sentence}"
        );
        assert_eq!(of_commands(&report, &owned.claim).proof, Proof::Alive);
        kill(&command);
        assert_eq!(ground.sweep().removed(), 1);
    });
}

/// A shell that ends at once, and whose child, a member of its group without the lock, forks a
/// member and ends when it is told to. Says the first member's pid, and then the second's.
const HANDS_ON: &str = "mkfifo go never; bash -c 'exec 255>&-; echo $$; read x <go; \
    { read x <never; } & echo $!' &";

#[test]
fn a_member_that_was_forked_during_the_look_at_its_group_is_found() {
    Entry::new(LAB).reaping(Reaping::Never).run(|| {
        let ground = ground();
        let (owned, shell, first) = orphaned(&ground, HANDS_ON);
        let first = hold(&first);
        shell.gone(soon()).unwrap();
        let (owned, claim) = (Rc::new(RefCell::new(owned)), ground.names().remove(0));
        let (acting, second) = (Rc::clone(&owned), Rc::new(RefCell::new(None::<Watch>)));
        let found = Rc::clone(&second);
        let act = move || {
            let mut owned = acting.borrow_mut();
            fs::write(owned.files().join("go"), "\n").unwrap();
            *found.borrow_mut() = Some(hold(&owned.actor.said("the second member's pid")));
            first.gone(soon()).unwrap();
        };
        // The list is made, with the first member in it and without the second.
        let lists = |call: &Call| matches!(call, Call::Pids);
        let kernel = Intercept::once(Host, Moment::After, lists, act);
        let report = ground.over(&kernel).sweep(&SweepOptions::default());
        let sentence = sentence(&report, Path::new(&claim));
        let second = second.borrow_mut().take().expect("it was forked");
        let expected =
            format!("kept: command {} `bash` runs in group {}", second.pid(), shell.pid());
        assert_eq!(sentence, expected);
        kill(&second);
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_stranger_that_leads_a_group_of_the_commands_number_keeps_nothing() {
    in_cell(|| {
        if !is_root("the next pid cannot be chosen") {
            return;
        }
        let ground = ground();
        let (owned, shell, _) = orphaned(&ground, RUNS_ON);
        kill(&shell);
        // It is not enough that it has ended: the number has to be free.
        let deadline = soon();
        while process(shell.pid()).unwrap().is_some() {
            assert!(!deadline.passed(), "nobody has reaped {}", shell.pid());
            std::thread::yield_now();
        }
        let began = Record::read(&id(&owned.claim)).unwrap().process.start_ticks;
        let _stranger = loop {
            fs::write("/proc/sys/kernel/ns_last_pid", (shell.pid() - 1).to_string()).unwrap();
            let stranger = ChildGuard::spawn_with_stdin(Command::new("cat")).unwrap();
            let info = process(stranger.pid()).unwrap().expect("it lives");
            assert_eq!((info.pid, info.pgid), (shell.pid(), shell.pid()));
            // Told apart by its start, once the clock has ticked.
            if info.start_ticks != began {
                break stranger;
            }
        };
        let sentence = sentence(&ground.sweep(), &owned.claim);
        assert!(sentence.ends_with("its command has ended"), "{sentence}");
    });
}

#[test]
fn a_child_that_never_came_to_its_exec_ran_nothing() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        fs::write(claim.join("commands/0"), "").unwrap();
        let sentence = sentence(&ground.sweep(), &claim);
        assert!(sentence.ends_with("its command has ended"), "{sentence}");
    });
}

#[test]
fn a_command_that_names_itself_while_it_is_asked_about_is_found() {
    in_cell(|| {
        let ground = ground();
        // The child holds the lock, unnamed. While it is asked about, it names itself, becomes its
        // program, and that closes what it does not know.
        let (owned, shell, member) = orphaned(&ground, LEAVES_MEMBER);
        shell.gone(soon()).unwrap();
        let id = id(&owned.claim);
        let record = Record::read(&id).unwrap();
        fs::remove_file(&id).unwrap();
        let lock = fs::File::open(owned.claim.join("commands/0")).unwrap();
        lock.try_lock().expect("the member has closed it");
        let act = move || {
            record.write(&id).unwrap();
            drop(lock);
        };
        let mut locks = 0;
        let second_lock = move |call: &Call| {
            locks += u32::from(matches!(call, Call::Lock { .. }));
            locks == 2
        };
        let kernel = Intercept::once(Host, Moment::Before, second_lock, act);
        let report = ground.over(&kernel).sweep(&SweepOptions::default());
        let sentence = sentence(&report, &owned.claim);
        assert!(sentence.contains(&format!("command {member} `bash` runs in group")), "{sentence}");
    });
}

#[test]
fn a_command_that_cannot_be_asked_about_keeps_whatever_the_error() {
    in_cell(|| {
        let ground = ground();
        let (owned, leader, _) = orphaned(&ground, RUNS_IN_THREE);
        kill(&leader);
        let errors = [
            Errno::EMFILE,
            Errno::ENFILE,
            Errno::EINTR,
            Errno::EIO,
            Errno::EACCES,
            Errno::EPERM,
            Errno::ESTALE,
            Errno::ENOMEM,
            Errno(199),
        ];
        let words = ["open-file", "readlink", "group-exists", "pids", "process"];
        for (word, errno) in words.into_iter().flat_map(|word| errors.map(|errno| (word, errno))) {
            let pick = move |call: &Call| {
                let of_owner =
                    matches!(call, Call::Readlink { name, .. } if name.bytes() == b"owner");
                call.word() == word && !of_owner
            };
            let root = ground.over(&Intercept::refusing(Host, errno, pick));
            let report = root.sweep(&SweepOptions::default());
            let found = of_commands(&report, &owned.claim);
            assert_eq!(found.proof, Proof::CannotTell, "{word} answers {errno}: {report}");
            assert!(owned.files().is_dir(), "{word} answers {errno}");
        }
        // What vanishes at every look has not been seen to end.
        for errno in [Errno::ENOENT, Errno::ESRCH] {
            let reads = |call: &Call| matches!(call, Call::Process { .. });
            let root = ground.over(&Intercept::refusing(Host, errno, reads));
            let report = root.sweep(&SweepOptions::default());
            let found = of_commands(&report, &owned.claim);
            assert_eq!(found.proof, Proof::CannotTell, "{errno}: {report}");
        }
    });
}
