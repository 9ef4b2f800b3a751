//! An actor that stops, or is killed, before an exact call of what it does.
//!
//! It is stopped by waiting for its next order, not by a signal: to every other process that is the
//! same, and there is no moment at which it has said that it stops and still runs.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use mortmain::protocol::{self, Root};
use mortmain::sys::{Answer, Host, Kernel, PathBytes, Reply};
use mortmain::{Error, ErrorKind, Prefix};
use rustix::process::{Signal, getpid, kill_process};

use super::play::{next_order, say};
use super::wire::{Disturbance, Order, Said, VERSION, What};
use crate::faults::{FromTheFirst, Hook, Step, Tapped};

/// The real kernel, whose calls can be disturbed.
pub(super) type Tap = Tapped<Host, Disturbing>;
/// A claim over it.
pub(super) type TappedClaim = protocol::Claim<Tap>;

/// Waits for the call at which something is to happen.
#[derive(Debug, Default)]
pub(super) struct Disturbing {
    asked: Option<Disturbance>,
    /// The order that is being carried out.
    id: u64,
    seen: u64,
}

impl Disturbing {
    /// From the next call on, positions count from 1 again.
    pub(super) fn arm(&mut self, id: u64, asked: Option<Disturbance>) {
        *self = Disturbing { asked, id, seen: 0 };
    }
}

impl Hook for Disturbing {
    fn before(&mut self, step: Step<'_>) -> Option<Answer<Reply>> {
        self.seen += 1;
        let call = step.word();
        let (here, kills) = match &self.asked {
            Some(Disturbance::KillBefore(n)) => (*n == self.seen, true),
            Some(Disturbance::StopBefore(n)) => (*n == self.seen, false),
            Some(Disturbance::KillBeforeFirst(name)) => (name == call, true),
            Some(Disturbance::StopBeforeFirst(name)) => (name == call, false),
            None => (false, false),
        };
        if here {
            if kills {
                kill_self();
            }
            // Once, also if there are more of that name.
            self.asked = None;
            let what = What::Stopped { before: self.seen, call: call.to_owned() };
            say(&Said { v: VERSION, id: self.id, what });
            wait_for_continue();
        }
        None
    }
}

pub(super) fn kill_self() -> ! {
    // It fails for no process that may signal itself.
    let _sent = kill_process(getpid(), Signal::KILL);
    loop {
        std::thread::park();
    }
}

/// Nothing but `continue` is an order for who has stopped; the end of the input is its end.
#[expect(clippy::exit, reason = "it is in the middle of a call, and ends with its input")]
fn wait_for_continue() {
    loop {
        match next_order() {
            Ok(Some(request)) if request.order == Order::Continue => return,
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => std::process::exit(0),
        }
    }
}

/// Opens a root over a kernel whose calls can be disturbed.
pub(super) fn tapped_root(prefix: &str, root: &Path) -> Result<(Tap, Root<Tap>), Refusal> {
    let tap = Tapped::new(Host, Disturbing::default());
    let root = open(&tap, prefix, root)?;
    Ok((tap, root))
}

/// The same for one sweep, which begins at the first claim, so that positions stay what they are.
pub(super) fn tapped_root_to_sweep(
    prefix: &str,
    root: &Path,
) -> Result<(Tap, Root<FromTheFirst<Tap>>), Refusal> {
    let tap = Tapped::new(Host, Disturbing::default());
    let root = open(&FromTheFirst::new(tap.clone()), prefix, root)?;
    Ok((tap, root))
}

/// Opens a root over a kernel.
pub(super) fn open<K: Kernel>(kernel: &K, prefix: &str, root: &Path) -> Result<Root<K>, Refusal> {
    let path = PathBytes::from(root.as_os_str().as_bytes());
    let prefix = Prefix::new(prefix).ok_or(Refusal::Prefix)?;
    Ok(Root::open(kernel, path, prefix)?)
}

/// Why a root was not opened.
pub(super) enum Refusal {
    Prefix,
    Mortmain(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Mortmain(error)
    }
}

impl Refusal {
    pub(super) fn kind_and_message(&self) -> (String, String) {
        match self {
            Refusal::Prefix => (
                format!("{:?}", ErrorKind::InvalidPrefix),
                io::Error::from(io::ErrorKind::InvalidInput).to_string(),
            ),
            Refusal::Mortmain(error) => (format!("{:?}", error.kind()), error.to_string()),
        }
    }
}
