//! Whoever dies, the cell dies: its program, the runner, the test, the supervisor and its parent.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use mortmain_harness::cell::{self, Entry, Reaping};
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::processes::process;

use crate::support::{
    Guardians, Inhabited, LAB, WITH_ORPHAN, assert_all_gone, briefly, own_cell, sh, soon,
    status_of, wait_for_all, watch,
};

/// The code of a supervisor that was abandoned, or asked by SIGTERM to stop: nobody minds which.
const STOPPED: i32 = 128 + 15;

#[test]
fn when_the_program_ends_its_orphans_have_ended() {
    cell::enter(LAB, || {
        let mut cell = Inhabited::start(own_cell(WITH_ORPHAN));
        cell.outside.close_stdin();
        assert_eq!(cell.outside.wait(soon()).unwrap().code(), Some(5));
        assert_all_gone(&cell.inside);
    });
}

#[test]
fn when_the_runner_is_killed_the_cell_and_the_test_end() {
    cell::enter(LAB, || {
        let mut guardians = Guardians::start();
        let mut cell = Inhabited::start(guardians.command(Path::new(LAB), WITH_ORPHAN));
        guardians.runner.kill_hard().unwrap();
        assert_eq!(cell.outside.wait(soon()).unwrap().code(), Some(STOPPED));
        assert_all_gone(&cell.inside);
        guardians.test.gone(soon()).unwrap();
    });
}

#[test]
fn when_the_test_is_killed_the_cell_ends() {
    cell::enter(LAB, || {
        let guardians = Guardians::start();
        let mut cell = Inhabited::start(guardians.command(Path::new(LAB), WITH_ORPHAN));
        guardians.test.kill().unwrap();
        assert_eq!(cell.outside.wait(soon()).unwrap().code(), Some(STOPPED));
        assert_all_gone(&cell.inside);
        assert!(!guardians.runner.watch().unwrap().is_gone().unwrap(), "it has other tests");
    });
}

#[test]
fn when_the_supervisor_is_killed_the_cell_ends() {
    cell::enter(LAB, || {
        let mut cell = Inhabited::start(own_cell(WITH_ORPHAN));
        assert_eq!(cell.outside.kill_hard().unwrap().signal(), Some(9));
        wait_for_all(&cell.inside);
    });
}

#[test]
fn when_the_supervisors_parent_is_killed_the_cell_ends() {
    cell::enter(LAB, || {
        let guardians = Guardians::start();
        let [runner, pid, test, test_pid] = guardians.options();
        // The shell stays, as there is more to do after the cell.
        let script =
            format!("$LAB cell {runner} {pid} {test} {test_pid} -- sh -c \"$PROGRAM\"; exit");
        let mut command = sh(&script);
        command.env("LAB", LAB).env("PROGRAM", WITH_ORPHAN);
        let mut cell = Inhabited::start(command);
        cell.outside.kill_hard().unwrap();
        wait_for_all(&cell.inside);
        assert!(!guardians.test.is_gone().unwrap(), "the test has nothing to do with it");
    });
}

#[test]
fn a_supervisor_that_is_asked_to_stop_leaves_an_empty_cell() {
    cell::enter(LAB, || {
        let mut cell = Inhabited::start(own_cell(WITH_ORPHAN));
        let kill = sh(&format!("kill -TERM {}", cell.outside.pid()));
        assert!(status_of(kill).success());
        // An exit by itself, not a death by the signal.
        assert_eq!(cell.outside.wait(soon()).unwrap().code(), Some(STOPPED));
        assert_all_gone(&cell.inside);
    });
}

#[test]
fn when_init_is_killed_the_cell_ends_with_that_signal() {
    cell::enter(LAB, || {
        let mut cell = Inhabited::start(own_cell(WITH_ORPHAN));
        cell.inside[0].kill().unwrap();
        assert_eq!(cell.outside.wait(soon()).unwrap().code(), Some(128 + 9));
        assert_all_gone(&cell.inside);
    });
}

#[test]
fn for_a_test_that_is_dead_already_no_program_is_started() {
    cell::enter(LAB, || {
        let guardians = Guardians::start();
        guardians.test.kill().unwrap();
        guardians.test.gone(soon()).unwrap();
        let command = guardians.command(Path::new(LAB), "echo started");
        let mut cell = ChildGuard::spawn(command).unwrap();
        assert_eq!(cell.lines().expect_eof(soon(), "the end").unwrap(), [""; 0]);
        assert_eq!(cell.wait(soon()).unwrap().code(), Some(STOPPED));
    });
}

#[test]
fn a_runner_that_is_not_the_tests_parent_counts_as_dead() {
    cell::enter(LAB, || {
        let (guardians, others) = (Guardians::start(), Guardians::start());
        let [runner, pid, ..] = others.options();
        let [.., test, test_pid] = guardians.options();
        let script = format!("exec {LAB} cell {runner} {pid} {test} {test_pid} -- echo started");
        let mut cell = ChildGuard::spawn(sh(&script)).unwrap();
        assert_eq!(cell.lines().expect_eof(soon(), "the end").unwrap(), [""; 0]);
        assert_eq!(cell.wait(soon()).unwrap().code(), Some(STOPPED));
        guardians.test.gone(soon()).unwrap();
        assert!(!others.test.is_gone().unwrap());
    });
}

/// A shell whose child outlives it and ends when the shell's input does. Says the child's pid.
const ORPHAN_UNTIL_EOF: &str = "exec 3<&0; cat <&3 >/dev/null & echo $!";

#[test]
fn an_init_that_never_reaps_leaves_zombies() {
    Entry::new(LAB).reaping(Reaping::Never).run(|| {
        let (orphan, _maker) = ended_orphan();
        // Reaping would follow the end at once, but not at the very moment.
        let deadline = briefly();
        while !deadline.passed() {
            let info = process(orphan).unwrap().expect("nobody reaps it");
            assert_eq!((info.state, info.ppid, info.lives()), ('Z', 1, false));
            std::thread::yield_now();
        }
    });
}

#[test]
fn an_init_that_reaps_leaves_none() {
    cell::enter(LAB, || {
        let (orphan, _maker) = ended_orphan();
        // There is no event for it that all kernels have; it follows the end at once.
        let deadline = soon();
        while let Some(info) = process(orphan).unwrap() {
            assert_eq!(info.ppid, 1);
            assert!(!deadline.passed(), "{info:?} was not reaped within {:?}", deadline.limit());
            std::thread::yield_now();
        }
    });
}

/// Makes an orphan, lets it end, and returns the pid that it had.
fn ended_orphan() -> (i32, ChildGuard) {
    let mut maker = ChildGuard::spawn_with_stdin(sh(ORPHAN_UNTIL_EOF)).unwrap();
    let orphan = maker.lines().next_line(soon(), "the orphan's pid").unwrap();
    let orphan = watch(orphan.parse().expect("it is a pid"));
    assert!(maker.wait(soon()).unwrap().success());
    assert!(!orphan.is_gone().unwrap(), "it ended with its parent");
    maker.close_stdin();
    orphan.gone(soon()).unwrap();
    (orphan.pid(), maker)
}
