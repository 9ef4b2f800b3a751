//! What the tests of the server share: the way into a cell, runs of the server, and who lives there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mortmain_harness::cell;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::processes::processes;
use mortmain_harness::wait::{self, Deadline, Watch};

pub(crate) const SERVER: &str = env!("CARGO_BIN_EXE_mortmain-server");

/// A script that stays. It waits for itself on a FIFO in the session directory.
pub(crate) const STAYS: &str = "mkfifo never; read x <never";

/// The lab, which makes the cells.
#[track_caller]
pub(crate) fn lab() -> PathBuf {
    cell::lab_beside(SERVER)
}

/// Runs the body of the current test in a cell.
#[track_caller]
pub(crate) fn in_cell(body: impl FnOnce()) {
    cell::enter(lab(), body);
}

/// Longer than anything here takes on a loaded machine.
pub(crate) fn soon() -> Deadline {
    Deadline::secs(30)
}

/// The server with a root and further options, with standard output and error in one.
pub(crate) fn server(root: &Path, options: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" \"$@\" 2>&1", SERVER, "--root"]).arg(root).args(options);
    command
}

/// Runs a command to its end, and answers its exit code and what it said.
#[track_caller]
pub(crate) fn ran(command: Command) -> (Option<i32>, Vec<String>) {
    ran_within(soon(), command)
}

/// The same of one that may take longer.
#[track_caller]
pub(crate) fn ran_within(deadline: Deadline, command: Command) -> (Option<i32>, Vec<String>) {
    let mut child = ChildGuard::spawn(command).unwrap();
    let lines = child.lines().expect_eof(deadline, "the end of its output").unwrap();
    (child.wait(deadline).unwrap().code(), lines)
}

/// A hold on a living process.
#[track_caller]
pub(crate) fn hold(pid: &str) -> Watch {
    let watch = wait::hold(pid);
    assert!(!watch.is_gone().unwrap(), "process {pid} has ended");
    watch
}

/// Kills a process and waits for its end.
#[track_caller]
pub(crate) fn kill(process: &Watch) {
    process.kill().unwrap();
    process.gone(soon()).unwrap();
}

/// Who lives in the process group of this number.
#[track_caller]
pub(crate) fn group(number: i32) -> Vec<i32> {
    let all = processes().unwrap();
    all.iter().filter(|info| info.pgid == number && info.lives()).map(|info| info.pid).collect()
}

/// The text of a file.
#[track_caller]
pub(crate) fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}
