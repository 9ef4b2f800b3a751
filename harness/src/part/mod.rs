//! Small programs for the systems of the library that are no claims: the lab's hidden subcommand
//! `part`.
//!
//! A lock, a store, a passed socket and a test's directory are tried by processes that are killed,
//! forked and started by others. Each part is one such process, does one thing, and says how it went
//! in words, a line each; what goes wrong is said on standard error, and is exit code 1.
//!
//! Invariant: a part that waits ends with its input.

mod activation;
mod lock;
mod sandbox;
mod store;

use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use mortmain::sys::{Ending, Host, KernelExt as _, Pid, Wait};

use crate::guard::{ChildGuard, SpawnError};
use crate::raw::fork::fork;
use crate::wait::Deadline;

/// Longer than anything here takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs the hidden subcommand with the arguments that follow its name.
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    let role = args.next().unwrap_or_default();
    let path = PathBuf::from(args.next().unwrap_or_default());
    let done = match role.to_str() {
        Some("lock-hold") => lock::hold(&path),
        Some("lock-rounds") => lock::rounds(&path),
        Some("lock-forked") => lock::forked(&path),
        Some("lock-killed") => lock::killed(&path),
        Some("adopt") => activation::adopt(&path),
        Some("serve") => activation::serve(),
        Some("sd-notify") => activation::sd_notify(),
        Some("sandbox-suite") => sandbox::suite(),
        Some("sandbox-hold") => sandbox::hold(),
        Some("sandbox-hold-by-pid") => sandbox::hold_by_pid(),
        Some("sandbox-static") => sandbox::never_dropped(),
        Some("sandbox-forked") => sandbox::forked(),
        Some("store-count") => store::count(&path),
        Some("store-killed") => store::killed(&path),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no such part")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nowhere to tell that standard error is closed.
            let _written = writeln!(io::stderr(), "mortmain-lab part: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts a part of the lab at this path.
///
/// # Errors
///
/// When it cannot be started.
pub fn start(lab: &str, role: &str, path: &Path) -> Result<ChildGuard, SpawnError> {
    let mut command = Command::new(lab);
    command.args(["part", role]).arg(path);
    ChildGuard::spawn_with_stdin(command)
}

/// Starts so many of a part, lets all go at the same time when each has said that it is ready, and
/// waits until all have ended well.
///
/// # Panics
///
/// When one does not.
#[track_caller]
pub fn run_together(lab: &str, role: &str, path: &Path, count: usize) {
    let deadline = Deadline::after(PATIENCE);
    let start = |_| start(lab, role, path).unwrap_or_else(|error| panic!("{error}"));
    let mut all: Vec<ChildGuard> = (0..count).map(start).collect();
    for one in &mut all {
        match one.lines().next_line(deadline, "that it is ready") {
            Ok(line) => assert_eq!(line, "ready"),
            Err(error) => panic!("{error}"),
        }
    }
    all.iter_mut().for_each(ChildGuard::close_stdin);
    for one in &mut all {
        match one.wait(deadline) {
            Ok(status) => assert!(status.success(), "one of {count} ended so: {status}"),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Says a line.
fn say(line: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{line}")
}

/// Waits for the end of the input.
fn wait_for_end() -> io::Result<()> {
    let mut line = String::new();
    while io::stdin().lock().read_line(&mut line)? > 0 {}
    Ok(())
}

/// Does something in a forked child; answers its pid.
fn in_child(mut work: impl FnMut() -> io::Result<()>) -> io::Result<i32> {
    fork(|| match work() {
        Ok(()) => 0,
        Err(error) => {
            let _told = writeln!(io::stderr(), "a forked child: {error}");
            1
        }
    })
}

/// Waits for a forked child, which must not have failed.
fn ends_well(pid: i32, what: &str) -> io::Result<()> {
    let ending = Host.reap(Pid(pid), Wait::Forever)?;
    must(ending == Some(Ending::Exited(0)), || format!("a child that {what} ended so: {ending:?}"))
}

/// What must be; says what it was if it is not.
fn must(holds: bool, what: impl FnOnce() -> String) -> io::Result<()> {
    if holds { Ok(()) } else { Err(io::Error::other(what())) }
}
