//! What a cell hands through to its program, and what is the cell's own.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use mortmain_harness::cell;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::scratch::scratch_root;

use crate::support::{LAB, cell_command, living_below, own_cell, own_pid, sh, soon, status_of};

#[test]
fn the_programs_exit_code_is_the_cells() {
    cell::enter(LAB, || {
        for code in [0, 3, 255] {
            assert_eq!(status_of(own_cell(&format!("exit {code}"))).code(), Some(code));
        }
    });
}

#[test]
fn a_signals_death_is_told_as_128_and_its_number() {
    cell::enter(LAB, || {
        for signal in [9, 13, 15] {
            let status = status_of(own_cell(&format!("kill -{signal} $$")));
            assert_eq!(status.code(), Some(128 + signal));
        }
    });
}

#[test]
fn a_program_that_cannot_start_has_the_codes_that_shells_give_it() {
    cell::enter(LAB, || {
        let dir = scratch_root();
        fs::write(dir.join("text"), "").unwrap();
        for (name, code) in [("nothing", 127), ("text", 126)] {
            let mut command = Command::new(LAB);
            let test = own_pid().to_string();
            command.args(["cell", "--test", &test, "--"]).arg(dir.join(name));
            assert_eq!(status_of(command).code(), Some(code), "{name}");
        }
    });
}

#[test]
fn wrong_usage_ends_with_two() {
    cell::enter(LAB, || {
        let command = cell_command(Path::new(LAB), &["--test", "0"], "exit 0");
        assert_eq!(status_of(command).code(), Some(2));
    });
}

#[test]
fn input_and_output_are_the_programs() {
    cell::enter(LAB, || {
        let mut cell = ChildGuard::spawn_with_stdin(own_cell("exec cat")).unwrap();
        cell.send_line("through and back", soon()).unwrap();
        assert_eq!(cell.lines().next_line(soon(), "the line").unwrap(), "through and back");
        cell.close_stdin();
        assert_eq!(cell.wait(soon()).unwrap().code(), Some(0));
    });
}

#[test]
fn mounts_and_processes_are_the_cells_own() {
    cell::enter(LAB, || {
        // As they are on most machines: without care, what is mounted inside is mounted here, too.
        // A plain user may not do this, and its user namespace keeps mounts in by itself.
        let shared = status_of(sh("mount --make-rshared / 2>/dev/null"));
        assert!(shared.success() || fs::metadata("/proc/self").unwrap().uid() != 0);
        let script = "
            : > $MORTMAIN_SCRATCH/inside
            echo $MORTMAIN_CELL $TMPDIR $PPID $(cat /proc/1/comm)
            echo /proc/[0-9]*
            echo $MORTMAIN_SCRATCH
            read line";
        let mut cell = ChildGuard::spawn_with_stdin(own_cell(script)).unwrap();
        let told = cell.lines().next_line(soon(), "what is seen inside").unwrap();
        let seen = cell.lines().next_line(soon(), "the processes seen inside").unwrap();
        let scratch = cell.lines().next_line(soon(), "the scratch directory").unwrap();
        assert_eq!(told, format!("1 {scratch} 1 mortmain-init"));
        assert_eq!(seen, "/proc/1 /proc/2", "init and the shell, and nobody from outside");

        let scratch = PathBuf::from(scratch);
        assert!(scratch.is_dir(), "the cell hides a directory that is there without it");
        assert!(!scratch.join("inside").exists(), "a file of the cell is seen outside");
        let init = living_below(cell.pid())[0].pid.to_string();
        assert_eq!(scratch_mounts(&init, &scratch), 1, "the tmpfs is mounted in the cell");
        assert_eq!(scratch_mounts("self", &scratch), 0, "it is mounted outside, too");
        let inside = format!("/proc/{init}/root{}/inside", scratch.display());
        let inside = fs::metadata(inside).unwrap();
        assert_ne!(inside.dev(), fs::metadata(&scratch).unwrap().dev());

        cell.close_stdin();
        cell.wait(soon()).unwrap();
    });
}

/// How many of our tmpfs a process sees mounted there.
fn scratch_mounts(pid: &str, at: &Path) -> usize {
    let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap();
    let ours =
        |line: &&str| line.contains(" mortmain-scratch ") && line.split(' ').nth(4) == at.to_str();
    mounts.lines().filter(ours).count()
}

#[test]
fn the_tmpfs_never_hides_what_the_program_was_told_of() {
    cell::enter(LAB, || {
        // The environment that the inner cell inherits names this cell's scratch space.
        let dir = scratch_root();
        fs::write(dir.join("file"), "of the outer cell\n").unwrap();
        let script = "cat $MORTMAIN_FILE; echo $MORTMAIN_SCRATCH";
        let mut command = own_cell(script);
        command.env("MORTMAIN_FILE", dir.join("file"));
        let mut cell = ChildGuard::spawn(command).unwrap();
        let lines = cell.lines().expect_eof(soon(), "the end").unwrap();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[0], "of the outer cell");
        assert!(!dir.starts_with(&lines[1]), "{} hides {}", lines[1], dir.display());
    });
}

#[test]
fn scratch_directories_differ_and_are_on_the_cells_tmpfs() {
    cell::enter(LAB, || {
        let (one, other) = (scratch_root(), scratch_root());
        assert_ne!(one, other);
        let mount = std::env::var_os(cell::SCRATCH).expect("this is a cell");
        assert!(one.starts_with(&mount) && other.starts_with(&mount));
        assert_eq!(scratch_mounts("self", Path::new(&mount)), 1);
    });
}

#[test]
fn a_forbidden_namespace_is_told_by_the_setting_that_forbids_it() {
    cell::enter(LAB, || {
        // The limits are those of the user namespace that they are written in.
        let forbid = "echo 0 > /proc/sys/user/max_pid_namespaces && exec $LAB cell --probe";
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", forbid]).env("LAB", LAB);
        let mut probe = ChildGuard::spawn(command).unwrap();
        let said = probe.lines().next_line(soon(), "the reason").unwrap();
        assert_eq!(
            said,
            "no cell can be made here: the kernel refuses new namespaces: \
             No space left on device (os error 28) (sysctl user.max_pid_namespaces is 0)"
        );
        assert_eq!(probe.wait(soon()).unwrap().code(), Some(77));
        // Without that, the same probe makes a cell.
        assert_eq!(status_of(sh(&format!("exec {LAB} cell --probe"))).code(), Some(0));
    });
}

#[test]
fn a_signal_that_the_runner_was_started_without_is_there_in_a_cell() {
    // As a shell without job control starts what it runs in the background.
    let script = format!(
        "trap '' INT QUIT; exec {LAB} cell --test $PPID -- sh -c 'kill -INT $$; echo ignored'"
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]);
    let mut child = ChildGuard::spawn(command).unwrap();
    let said = child.lines().expect_eof(soon(), "the end of the cell").unwrap();
    let status = child.wait(soon()).unwrap();
    if status.code() == Some(77) {
        assert!(std::env::var_os(cell::REQUIRED).is_none(), "{said:?}");
        return;
    }
    assert_eq!((said, status.code()), (Vec::new(), Some(130)));
}
