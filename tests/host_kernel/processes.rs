//! Other processes: whether they are there, and what is said of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use mortmain::sys::{Call, Ending, Errno, Host, HostProgram, KernelExt, Pid, Wait};

use crate::support::{PATIENCE_MILLIS, Registry, done, ending_of, in_cell, lines_of, sleeper};

/// What the tests themselves and the cell are numbered by in no case.
const NOBODY: Pid = Pid(4_000_000);

#[test]
fn a_process_exists_until_it_is_reaped() {
    in_cell(|| {
        let pid = Registry::new().start(0, &mut sleeper()).expect("it starts");
        assert_eq!(Host.process_exists(pid), Ok(()));
        assert_eq!(Host.group_exists(pid), Ok(()));
        assert_eq!(Host.kill_group(pid), Ok(()));
        let killed = Host.await_end(pid, Wait::AtMost(PATIENCE_MILLIS));
        assert_eq!(killed, Ok(Some(Ending::Killed(9))));
        assert_eq!(Host.process_exists(pid), Ok(()), "a zombie is there");
        assert_eq!(Host.group_exists(pid), Ok(()), "and is a member of its group");
        assert_eq!(ending_of(pid), Ending::Killed(9));
        assert_eq!(Host.process_exists(pid), Err(Errno::ESRCH));
        assert_eq!(Host.group_exists(pid), Err(Errno::ESRCH));
        assert_eq!(Host.kill_group(pid), Err(Errno::ESRCH));
    });
}

#[test]
fn a_number_that_is_not_one_process_or_group_is_never_asked_or_hit() {
    in_cell(|| {
        assert_eq!(done(Call::ProcessExists { pid: Pid(1) }), Ok(()), "init may be asked after");
        for pid in [0, 1, -1, -2, i32::MIN].map(Pid) {
            let group = pid;
            if pid != Pid(1) {
                assert_eq!(done(Call::ProcessExists { pid }), Err(Errno::EINVAL), "{pid:?}");
            }
            for call in [
                Call::GroupExists { group },
                Call::KillGroup { group },
                Call::Pidfs { pid },
                Call::Wait { pid, wait: Wait::AtMost(0), reap: true },
            ] {
                // Past the seam's own check, which is in front of this one.
                let text = call.to_string();
                assert_eq!(done(call), Err(Errno::EINVAL), "{text}");
            }
        }
        assert_eq!(Host.process(Pid(0)).err(), Some(Errno::EINVAL));
        assert_eq!(Host.process(Pid(-1)).err(), Some(Errno::EINVAL));
    });
}

#[test]
fn our_own_group_is_never_hit() {
    in_cell(|| {
        let group = Pid(nix::unistd::getpgrp().as_raw());
        assert_eq!(Host.kill_group(group), Err(Errno::EINVAL));
        nix::unistd::setpgid(nix::unistd::Pid::from_raw(0), nix::unistd::Pid::from_raw(0))
            .expect("the test leads no session");
        let group = Pid(nix::unistd::getpid().as_raw());
        assert_eq!(Host.kill_group(group), Err(Errno::EINVAL));
    });
}

#[test]
fn a_group_is_hit_as_a_whole() {
    in_cell(|| {
        let registry = Registry::new();
        let (ours, theirs) = std::io::pipe().expect("a pipe can be had");
        let mut program = crate::support::script("sleep 1000 & sleep 1000 & echo ready; wait");
        program.stdout(theirs);
        let leader = registry.start(0, &mut program).expect("it starts");
        drop(program);
        let mut reader =
            mortmain_harness::reader::Reader::new(ours, "the group").expect("it is a pipe");
        let deadline = crate::support::deadline();
        assert_eq!(reader.next_line(deadline, "the leader's word").expect("it comes"), "ready");
        assert_eq!(Host.kill_group(leader), Ok(()));
        assert_eq!(ending_of(leader), Ending::Killed(9));
        // All three held the pipe, and the entry's lock.
        let rest = reader.expect_eof(deadline, "the end of all of the group").expect("they end");
        assert_eq!(rest, Vec::<String>::new());
    });
}

#[test]
fn what_proc_says_of_a_process_is_understood() {
    in_cell(|| {
        let registry = Registry::new();
        let path = registry.commands.path(") Z 1 (x");
        fs::write(&path, "#!/bin/sh\nread line\n").expect("the place is ours");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("it is ours");
        let (theirs, ours) = std::io::pipe().expect("a pipe can be had");
        let mut program = HostProgram::new(&path);
        program.stdin(theirs);
        let pid = registry.start(0, &mut program).expect("it starts");
        drop(program);
        let alive = Host.process(pid).expect("/proc shows it");
        assert_eq!(alive.program, b") Z 1 (x", "the name does not shift what follows it");
        assert_eq!((alive.group, alive.threads, alive.zombie), (pid, 1, false));
        assert!(!alive.ended());
        let me = Host.identity().expect("/proc is there");
        assert!(alive.start_ticks >= me.process.start_ticks, "a child is younger");

        drop(ours);
        let wait = Wait::AtMost(PATIENCE_MILLIS);
        assert_eq!(Host.await_end(pid, wait), Ok(Some(Ending::Exited(1))), "nothing to read");
        let ended = Host.process(pid).expect("/proc shows a zombie");
        assert!(ended.zombie && ended.ended(), "{ended:?}");
        assert_eq!((ended.group, ended.start_ticks), (pid, alive.start_ticks));
        assert_eq!(ending_of(pid), Ending::Exited(1));
        assert_eq!(Host.process(pid).err(), Some(Errno::ENOENT));
    });
}

#[test]
fn no_two_processes_have_the_same_pidfs_inode() {
    in_cell(|| {
        let registry = Registry::new();
        let [first, second] = [0, 1].map(|n| registry.start(n, &mut sleeper()).expect("it starts"));
        let [a, b] = [first, second].map(|pid| Host.pidfs(pid).expect("it lives"));
        assert!(a != b || (a, b) == (0, 0), "both have {a}");
        assert_eq!(Host.pidfs(first), Ok(a), "and it stays the same");
        assert_eq!(Host.pidfs(NOBODY), Err(Errno::ESRCH));
        assert_eq!(Host.process_exists(NOBODY), Err(Errno::ESRCH));
    });
}

#[test]
fn the_processes_of_the_cell_are_listed_in_order() {
    in_cell(|| {
        let pid = Registry::new().start(0, &mut sleeper()).expect("it starts");
        let pids = Host.pids().expect("/proc is there");
        assert!(pids.is_sorted() && pids.contains(&Pid(1)) && pids.contains(&pid), "{pids:?}");
        let me = Pid(nix::unistd::getpid().as_raw());
        assert!(pids.contains(&me), "{me:?} is not in {pids:?}");
        assert!(!pids.contains(&NOBODY), "{pids:?}");
    });
}

#[test]
fn random_numbers_differ() {
    in_cell(|| {
        let mut drawn: Vec<u64> = (0..64).map(|_| Host.random().expect("it is there")).collect();
        // All 64 bits come in both values; a miss has a chance of 2^-57.
        assert_eq!(drawn.iter().fold(0, |seen, number| seen | number), u64::MAX);
        assert_eq!(drawn.iter().fold(u64::MAX, |seen, number| seen & number), 0);
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 64);
    });
}

#[test]
fn a_pause_lasts_as_long_as_it_was_asked_for() {
    in_cell(|| {
        let began = std::time::Instant::now();
        assert_eq!(Host.pause(20), Ok(()));
        assert!(began.elapsed().as_millis() >= 20, "{:?}", began.elapsed());
    });
}

#[test]
fn a_command_inherits_nothing_but_its_lock() {
    in_cell(|| {
        let registry = Registry::new();
        let lines = lines_of(&registry, 0, crate::support::script("ls -l /proc/$$/fd"));
        let below = registry.commands.path.to_str().expect("it is plain text").to_owned();
        let ours: Vec<&str> =
            lines.iter().filter(|line| line.contains(&below)).map(String::as_str).collect();
        let [lock] = ours[..] else { panic!("one descriptor of ours: {lines:?}") };
        assert!(lock.ends_with(&format!(" 255 -> {below}/0")), "{lock}");
    });
}
