//! What the tests of the tool share: the way into a cell, and runs of the tool.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use mortmain_harness::cell;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::processes::processes;
pub(crate) use mortmain_harness::wait::hold;
use mortmain_harness::wait::{Deadline, Watch};

pub(crate) const TOOL: &str = env!("CARGO_BIN_EXE_mortmain");

/// The lab, which makes the cells.
#[track_caller]
pub(crate) fn lab() -> PathBuf {
    cell::lab_beside(TOOL)
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

/// The tool with these arguments, with standard output and error in one.
pub(crate) fn tool<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" \"$@\" 2>&1", TOOL]).args(args).env("NO_COLOR", "1");
    command
}

/// `mortmain run` of a script below a root, which waits for its sweep to end.
pub(crate) fn run_in(root: &Path, options: &[&str], script: &str) -> Command {
    let root = ["--root".as_ref(), root.as_os_str(), "--budget".as_ref(), "20s".as_ref()];
    let options = options.iter().map(OsStr::new);
    let script = ["--", "sh", "-c", script].map(OsStr::new);
    tool(["run".as_ref()].into_iter().chain(root).chain(options).chain(script))
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) lines: Vec<String>,
}

impl Ran {
    /// The exit code and what was said.
    pub(crate) fn told(&self) -> (Option<i32>, Vec<&str>) {
        (self.status.code(), self.lines.iter().map(String::as_str).collect())
    }
}

/// Waits for the end of a command, and of everybody who could say something with it.
#[track_caller]
pub(crate) fn finished(mut child: ChildGuard) -> Ran {
    let lines = child.lines().expect_eof(soon(), "the end of its output").unwrap();
    let status = child.wait(soon()).unwrap();
    assert_eq!(status.signal(), None, "{lines:#?}");
    Ran { status, lines }
}

/// Runs a command to its end.
#[track_caller]
pub(crate) fn ran(command: Command) -> Ran {
    finished(ChildGuard::spawn(command).unwrap())
}

/// The next line that a command says.
#[track_caller]
pub(crate) fn said(child: &mut ChildGuard, what: &str) -> String {
    child.lines().next_line(soon(), what).unwrap()
}

/// Kills a process and waits for its end.
#[track_caller]
pub(crate) fn kill(process: &Watch) {
    process.kill().unwrap();
    process.gone(soon()).unwrap();
}

/// Waits until nobody is left in the cell but this test and its parents. Who ends has closed what it
/// had open a moment before.
#[track_caller]
pub(crate) fn others_end(deadline: Deadline) {
    let own = i32::try_from(std::process::id()).expect("pids are positive");
    loop {
        let all = processes().unwrap();
        let parent_of = |pid: i32| all.iter().find(|info| info.pid == pid).map(|info| info.ppid);
        let kept: BTreeSet<i32> = std::iter::successors(Some(own), |pid| parent_of(*pid)).collect();
        let others = all.iter().filter(|info| info.lives() && !kept.contains(&info.pid));
        let watches: Vec<Watch> =
            others.filter_map(|info| Watch::open(info.pid).unwrap()).collect();
        if watches.is_empty() {
            return;
        }
        for watch in watches {
            watch.gone(deadline).unwrap();
        }
    }
}
