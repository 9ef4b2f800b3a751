//! What other designs ask of a system, and the protocol's seam does not have.
//!
//! The protocol reads no clock. As in the seam, a call is data, and typed methods stand on top of the
//! one that makes it.

use core::fmt;

use mortmain::sys::{Answer, Fd, Handle, Kernel, Name, Reply};

/// A call beyond the seam.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Beyond {
    /// The wall clock, in seconds since 1970. Answers [`Reply::Number`].
    Now,
    /// When what a name stands for was last changed (`mtime`), in seconds since 1970; no link is
    /// followed. Answers [`Reply::Number`].
    Modified {
        /// Directory to look in.
        dir: Handle,
        /// Name to look at.
        name: Name,
    },
    /// Open what a name stands for to read it, with no care at all: links are followed, and a FIFO
    /// is waited at until somebody opens it for writing. Answers [`Reply::Handle`].
    OpenPlain {
        /// Directory to look in.
        dir: Handle,
        /// Name to open.
        name: Name,
    },
}

/// The call as a line of a trace.
impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Beyond::Now => f.write_str("now"),
            Beyond::Modified { dir, name } => write!(f, "modified {}/{name}", dir.0),
            Beyond::OpenPlain { dir, name } => write!(f, "open-plain {}/{name}", dir.0),
        }
    }
}

/// A kernel that answers these calls, too.
pub trait System: Kernel {
    /// Makes one call.
    ///
    /// # Errors
    /// The number that the call failed with.
    fn beyond(&self, call: Beyond) -> Answer<Reply>;
}

/// The calls with their types.
pub trait SystemExt: System {
    /// The wall clock; see [`Beyond::Now`].
    ///
    /// # Errors
    /// The kernel's.
    fn now(&self) -> Answer<u64> {
        number(self.beyond(Beyond::Now)?)
    }

    /// When something was last changed; see [`Beyond::Modified`].
    ///
    /// # Errors
    /// The kernel's.
    fn modified(&self, dir: &Fd<Self>, name: &Name) -> Answer<u64> {
        number(self.beyond(Beyond::Modified { dir: dir.raw(), name: name.clone() })?)
    }

    /// A name opened with no care; see [`Beyond::OpenPlain`].
    ///
    /// # Errors
    /// The kernel's.
    fn open_plain(&self, dir: &Fd<Self>, name: &Name) -> Answer<Fd<Self>> {
        match self.beyond(Beyond::OpenPlain { dir: dir.raw(), name: name.clone() })? {
            Reply::Handle(handle) => Ok(Fd::new(self.clone(), handle)),
            other => unreachable!("a kernel answers a call with its own kind, not {other:?}"),
        }
    }
}

impl<K: System> SystemExt for K {}

fn number(reply: Reply) -> Answer<u64> {
    match reply {
        Reply::Number(number) => Ok(number),
        other => unreachable!("a kernel answers a call with its own kind, not {other:?}"),
    }
}
