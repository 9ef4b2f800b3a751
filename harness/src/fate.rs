//! How a child ended, for all who want to say it: its guard, which reaps it, and the readers of its
//! pipes, which only explain why nothing more comes.
//!
//! Invariant: looking never reaps. The one who reaps records the status here.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::OnceLock;

use rustix::process::{WaitId, WaitIdOptions, WaitIdStatus, waitid};

use crate::wait::{Deadline, Watch};

/// A child of this process, running or ended.
#[derive(Debug)]
pub(crate) struct Fate {
    pub(crate) watch: Watch,
    status: OnceLock<ExitStatus>,
}

impl Fate {
    pub(crate) fn new(watch: Watch) -> Self {
        Self { watch, status: OnceLock::new() }
    }

    /// Remembers the status for which the child was reaped.
    pub(crate) fn record(&self, status: ExitStatus) {
        self.status.get_or_init(|| status);
    }

    /// Whether the child was reaped. Its pid may be another's since.
    pub(crate) fn is_reaped(&self) -> bool {
        self.status.get().is_some()
    }

    /// The status with which the child has ended, if it has by the deadline.
    pub(crate) fn by(&self, deadline: Deadline) -> io::Result<Option<ExitStatus>> {
        if let Some(&status) = self.status.get() {
            return Ok(Some(status));
        }
        if self.watch.gone(deadline).is_err() {
            return Ok(None);
        }
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let seen = waitid(WaitId::PidFd(self.watch.as_fd()), look)?;
        Ok(seen.as_ref().and_then(from_waitid))
    }
}

/// The same in the form of `wait`, which is what `ExitStatus` is made from.
fn from_waitid(status: &WaitIdStatus) -> Option<ExitStatus> {
    /// The bit that says a core was dumped.
    const DUMPED: i32 = 0x80;
    let raw = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code << 8,
        (None, Some(signal)) if status.dumped() => signal | DUMPED,
        (None, Some(signal)) => signal,
        (None, None) => return None,
    };
    Some(ExitStatus::from_raw(raw))
}
