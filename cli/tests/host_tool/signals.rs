//! Signals that come to `mortmain run`, without a terminal and as the first process of a container.

use std::process::Command;

use mortmain_harness::ground::{is_root, names_in};
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::scratch::scratch_root;

use crate::support::{TOOL, finished, in_cell, ran, run_in, said};

/// A script that says `ready` and stays. It waits for itself on a FIFO that it holds both ends of.
const STAYS: &str = "mkfifo $TMPDIR/never; exec 3<>$TMPDIR/never; echo ready; read x <&3";

/// Sends a signal to a process, by its name.
#[track_caller]
fn send(signal: &str, pid: i32) {
    let mut command = Command::new("kill");
    command.args(["-s", signal, &pid.to_string()]);
    assert!(ran(command).status.success());
}

#[test]
fn a_signal_goes_on_to_the_command_and_to_its_children() {
    in_cell(|| {
        for signal in ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "WINCH"] {
            let root = scratch_root();
            // A shell sees to its own traps when its child has ended, so that both must have it.
            let reads = "while :; do read x; done";
            let child = format!("trap \"echo child; exit 0\" {signal}; echo ready; {reads}");
            let script = format!("trap 'echo caught; exit 9' {signal}; sh -c '{child}'");
            let mut run = ChildGuard::spawn_with_stdin(run_in(&root, &[], &script)).unwrap();
            assert_eq!(said(&mut run, "the line of the command's child"), "ready");
            send(signal, run.pid());
            // What comes just before the shell begins to read it sees to when it has read. From here
            // on it reads nothing, over and over, until the signal has been passed on.
            run.close_stdin();
            assert_eq!(finished(run).told(), (Some(9), vec!["child", "caught"]), "{signal}");
            assert!(names_in(&root).is_empty());
        }
    });
}

#[test]
fn a_command_that_a_passed_signal_kills_ends_it_with_its_number() {
    in_cell(|| {
        let root = scratch_root();
        for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
            let mut run = ChildGuard::spawn(run_in(&root, &[], STAYS)).unwrap();
            assert_eq!(said(&mut run, "the command's line"), "ready");
            send(signal, run.pid());
            assert_eq!(finished(run).told(), (Some(code), vec![]), "{signal}");
        }
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn what_its_parent_wants_ignored_the_command_ignores_too() {
    in_cell(|| {
        let root = scratch_root();
        let script = "grep SigIgn /proc/self/status";
        let mask = |before: &str| {
            let mut command = Command::new("sh");
            let line = format!("{before} exec \"$0\" run --root \"$1\" -- {script}");
            command.args(["-c", &line, TOOL]).arg(&root);
            let ran = ran(command);
            let mask = ran.lines[0].split_whitespace().nth(1).expect("it is a mask");
            u64::from_str_radix(mask, 16).expect("it is hexadecimal")
        };
        let hup = 1;
        assert_eq!(mask("") & hup, 0);
        assert_eq!(mask("trap '' HUP;") & hup, hup);
    });
}

#[test]
fn as_the_first_process_of_a_container_it_passes_on_reaps_and_ends() {
    in_cell(|| {
        if !is_root("no namespace can be made") {
            return;
        }
        let root = scratch_root();
        let contained = |script: &str| {
            let mut command = Command::new("unshare");
            command.args([
                "--pid",
                "--fork",
                "--mount-proc",
                "--kill-child",
                TOOL,
                "run",
                "--root",
            ]);
            command.arg(&root).args(["--", "sh", "-c", script]);
            command
        };
        // Its parent ends before it does; it is a zombie until the first process reaps it.
        let script = "sh -c 'sh -c \"exit 0\" & exit 0'; \
                      while grep -qs '^State:.Z' /proc/[0-9]*/status; do :; done; \
                      cat /proc/1/comm; exit 5";
        assert_eq!(ran(contained(script)).told(), (Some(5), vec!["mortmain"]));

        let script = "trap 'exit 7' TERM; kill -TERM 1; while :; do :; done";
        assert_eq!(ran(contained(script)).told(), (Some(7), vec![]));
        assert_eq!(ran(contained("kill -INT $$")).told(), (Some(130), vec![]));
        assert!(names_in(&root).is_empty());
    });
}
