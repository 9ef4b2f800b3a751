//! The guard ends what it started and all below it, however that tried to get away.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use mortmain_harness::cell;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::processes::{process, processes};
use mortmain_harness::wait::{WaitError, Watch};

use crate::support::{LAB, assert_all_gone, briefly, living_below, own_pid, sh, soon, watch};

/// Starts the script and reads as many pids as it says, one a line.
fn with_pids(script: &str, count: usize) -> (ChildGuard, Vec<Watch>) {
    let mut child = ChildGuard::spawn_with_stdin(sh(script)).unwrap();
    let mut pids = Vec::new();
    for _ in 0..count {
        let pid = child.lines().next_line(soon(), "a pid").unwrap();
        pids.push(watch(pid.parse().expect("it is a pid")));
    }
    (child, pids)
}

/// Asserts that in this cell there is nobody but init, this test, and its reaped past.
#[track_caller]
fn assert_alone() {
    let own = own_pid();
    let others: Vec<_> = processes()
        .unwrap()
        .into_iter()
        .filter(|info| info.lives() && info.pid != 1 && info.pid != own)
        .collect();
    assert!(others.is_empty(), "they live: {others:?}");
}

#[test]
fn the_whole_group_and_grandchildren_outside_it_end_with_the_guard() {
    cell::enter(LAB, || {
        // A grandchild in a session of its own, with a child there; and one whose parent has ended,
        // which is in the group still.
        let script = "
            setsid sh -c 'echo $$; sleep 600 & echo $!; wait' &
            echo $(sh -c 'sleep 600 >/dev/null & echo $!')
            wait";
        let (child, watches) = with_pids(script, 3);
        let child_watch = child.watch().unwrap();
        let (groups, of_init): (Vec<_>, Vec<_>) = watches
            .iter()
            .map(|watch| process(watch.pid()).unwrap().expect("it lives"))
            .map(|info| (info.pgid == child.pid(), info.ppid == 1))
            .unzip();
        assert_eq!(groups.iter().filter(|&&in_group| in_group).count(), 1);
        assert_eq!(of_init.iter().filter(|&&of_init| of_init).count(), 1);

        drop(child);
        assert_all_gone(&watches);
        assert_all_gone(&[child_watch]);
        assert_alone();
    });
}

#[test]
fn a_tree_that_keeps_growing_ends_with_the_guard() {
    cell::enter(LAB, || {
        let script = "
            i=0
            while [ $i -lt 400 ]; do
                setsid sh -c 'echo $$; sleep 600 & wait' &
                i=$((i + 1))
            done
            wait";
        let (child, _) = with_pids(script, 20);
        drop(child);
        assert_alone();
    });
}

#[test]
fn a_guard_that_goes_by_panic_ends_its_child_too() {
    cell::enter(LAB, || {
        let (child, mut watches) = with_pids("setsid sleep 600 & echo $!; wait", 1);
        watches.push(child.watch().unwrap());
        let panicked = catch_unwind(AssertUnwindSafe(move || {
            let _child = child;
            panic!("this failure is a part of the test");
        }));
        assert!(panicked.is_err());
        assert_all_gone(&watches);
    });
}

#[test]
fn killed_alone_a_child_leaves_its_children_until_the_guard_goes() {
    cell::enter(LAB, || {
        let script = "setsid sleep 600 & echo $!; sleep 600 & echo $!; wait";
        let (mut child, watches) = with_pids(script, 2);
        let status = child.kill_hard().unwrap();
        assert_eq!(status.to_string(), "signal: 9 (SIGKILL)");
        assert_eq!(process(child.pid()).unwrap(), None, "it was reaped");
        for watch in &watches {
            let info = process(watch.pid()).unwrap().expect("it was not killed");
            assert_eq!(info.ppid, 1);
            assert!(info.lives() && info.state != 'T', "it does not live on undisturbed: {info:?}");
        }
        assert_eq!(child.kill_hard().unwrap(), status, "the second time nothing is left to do");
        drop(child);
        assert_all_gone(&watches);
        assert_alone();
    });
}

#[test]
fn after_its_own_end_a_childs_group_ends_with_the_guard() {
    cell::enter(LAB, || {
        let (mut child, watches) = with_pids("sleep 600 & echo $!; exit 7", 1);
        assert_eq!(child.wait(soon()).unwrap().code(), Some(7));
        assert!(!watches[0].is_gone().unwrap());
        drop(child);
        assert_all_gone(&watches);
    });
}

#[test]
fn waiting_reads_what_the_child_says_so_that_it_can_end() {
    cell::enter(LAB, || {
        // Several times what a pipe holds.
        let mut child = ChildGuard::spawn(sh("seq 1 60000; exit 5")).unwrap();
        assert_eq!(child.wait(soon()).unwrap().code(), Some(5));
        let lines = child.lines().expect_eof(soon(), "the end").unwrap();
        assert_eq!(lines.len(), 60000);
        assert_eq!(lines.last().map(String::as_str), Some("60000"));
    });
}

#[test]
fn waiting_in_vain_tells_what_the_child_does_instead() {
    cell::enter(LAB, || {
        let mut child = ChildGuard::spawn_with_stdin(sh("echo one; echo two; read line")).unwrap();
        child.lines().expect_line(soon(), "two", |line| line == "two").unwrap();
        let error = child.wait(briefly()).unwrap_err();
        assert!(matches!(error, WaitError::Deadline { .. }), "{error}");
        let expected = format!(
            "waited 100ms for the end of `sh` (pid {}), in vain: it is in state S; it said:\n  | \
             one\n  | two",
            child.pid()
        );
        assert_eq!(error.to_string(), expected);
    });
}

#[test]
fn a_program_that_is_not_there_is_told_by_name() {
    let Err(error) = ChildGuard::spawn(Command::new("/nonexistent/program")) else {
        panic!("it was started");
    };
    assert_eq!(
        error.to_string(),
        "cannot start `/nonexistent/program`: No such file or directory (os error 2)"
    );
}

#[test]
fn a_line_that_the_child_does_not_take_fails_at_the_deadline() {
    cell::enter(LAB, || {
        let mut child = ChildGuard::spawn_with_stdin(sh("exec sleep 600")).unwrap();
        let error = child.send_line(&"x".repeat(1 << 20), briefly()).unwrap_err();
        let expected =
            format!("waited 100ms for `sh` (pid {}) to take a line, in vain", child.pid());
        assert_eq!(error.to_string(), expected);
    });
}

#[test]
fn a_line_to_a_child_that_has_closed_its_input_fails_at_once() {
    cell::enter(LAB, || {
        let mut child = ChildGuard::spawn_with_stdin(sh("exec 0<&-; echo closed; exec sleep 600"));
        let child = child.as_mut().unwrap();
        child.lines().next_line(soon(), "`closed`").unwrap();
        let error = child.send_line("x", soon()).unwrap_err();
        assert!(
            matches!(&error, WaitError::System { source, .. }
            if source.kind() == std::io::ErrorKind::BrokenPipe),
            "{error}"
        );
    });
}

#[test]
fn a_child_has_its_own_group() {
    cell::enter(LAB, || {
        let child = ChildGuard::spawn_with_stdin(sh("read line")).unwrap();
        let below = living_below(own_pid());
        assert_eq!(below.len(), 1, "{below:?}");
        assert_eq!((below[0].pid, below[0].pgid), (child.pid(), child.pid()));
    });
}
