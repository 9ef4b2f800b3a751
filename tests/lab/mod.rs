//! The lab's command as a test runs it.

use std::process::Command;

use mortmain_harness::cell;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::wait::Deadline;

/// Where it is.
pub(crate) const LAB: &str = env!("CARGO_BIN_EXE_mortmain-lab");

/// Runs it; answers its exit code and what it printed. A run makes cells of its own.
#[track_caller]
pub(crate) fn lab(args: &[&str]) -> (Option<i32>, Vec<String>) {
    run(Command::new(LAB).args(args))
}

/// Runs a command as if it were the lab's own.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> (Option<i32>, Vec<String>) {
    command.env("NO_COLOR", "1").env_remove("MORTMAIN_JOBS");
    let command = std::mem::replace(command, Command::new(LAB));
    let mut child = ChildGuard::spawn(command).expect("the lab starts");
    let deadline = Deadline::secs(100);
    let lines = child.lines().expect_eof(deadline, "the end of the lab's output").expect("it ends");
    let status = child.wait(deadline).expect("it ends");
    (status.code(), lines)
}

/// Whether nothing can be told on the real kernel here; a test that cannot says why.
pub(crate) fn without_cells() -> bool {
    let Err(missing) = cell::probe(LAB.as_ref()) else { return false };
    assert!(std::env::var_os(cell::REQUIRED).is_none(), "{missing}");
    eprintln!("skipped: {missing}");
    true
}
