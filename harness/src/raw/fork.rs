//! A plain fork, for a process that is killed at an exact call.
//!
//! Invariants: as of [`super::process`], refused in a process with a second thread; the child never
//! returns into the caller's code.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::libc;

use super::process::{self, PANICKED};

/// Runs `child` in a forked process, which ends with the code that it returns, without any of the
/// exit handlers and destructors of what it shares with its parent. Answers its pid.
///
/// # Errors
///
/// `InvalidInput` when this process has more than one thread; otherwise what fork answered.
pub(crate) fn fork(child: impl FnOnce() -> u8) -> io::Result<i32> {
    process::alone()?;
    // SAFETY: a fork breaks the promises of other code only through locks that other threads hold
    // at the time: there are none, since this was the only thread above.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // Unwinding further would run the parent's code a second time.
            let code = catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED);
            // SAFETY: _exit takes any code and has no precondition.
            unsafe { libc::_exit(i32::from(code)) }
        }
        pid => Ok(pid),
    }
}
