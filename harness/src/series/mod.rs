//! Fault series: an operation, killed and failed at every call.
//!
//! For every operation of the implementation, every position n of its undisturbed run and every
//! fault: a process of its own does the operation on the real kernel and meets the fault at its
//! n-th call; then the truth is looked at. Was anything harmed that a living process uses, or that
//! is not the implementation's at all? Once everybody has ended, does one undisturbed sweep leave
//! nothing?
//!
//! A series over n ends with the first run that has fewer than n calls; every n of the undisturbed
//! run must have fired, or the series has not tested what it says.
//!
//! Invariant: a series runs in a cell, in a process of one thread; nothing of it outlives the cell.

mod judge;
mod operation;
mod stage;
mod worker;

use std::fmt;

use mortmain::sys::Errno;
use serde::{Deserialize, Serialize};

pub use self::operation::Operation;
pub use self::worker::{Job, main};

use crate::faults::{ChildFault, Failure, Fired, Moment, Repeat};

/// The numbers that calls fail with: those that rule h8 names, and a full and a read-only file
/// system.
pub const ERRNOS: [Errno; 10] = [
    Errno::EMFILE,
    Errno::ENFILE,
    Errno::EINTR,
    Errno::EIO,
    Errno::EACCES,
    Errno::ESTALE,
    Errno::ENOLCK,
    Errno::ENOMEM,
    Errno::ENOSPC,
    Errno::EROFS,
];

/// What goes wrong at a position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// The process is killed.
    Kill(Moment),
    /// Between fork and exec, the owner is killed and the child goes on.
    KillOwner(Moment),
    /// The call fails.
    Fail(Failure, Repeat),
}

impl Fault {
    /// Every fault that is tried at a call of the seam.
    pub fn all() -> impl Iterator<Item = Fault> {
        let kills = [Moment::Before, Moment::After].into_iter().map(Fault::Kill);
        let fails = ERRNOS.into_iter().flat_map(|errno| {
            [Repeat::Once, Repeat::ForEver].map(|repeat| Fault::Fail(Failure::Errno(errno), repeat))
        });
        let rest = [
            Fault::Fail(Failure::DoneBut(Errno::EIO), Repeat::Once),
            Fault::Fail(Failure::Short, Repeat::Once),
        ];
        kills.chain(fails).chain(rest)
    }

    /// Every fault that is tried at a step between fork and exec.
    pub fn all_of_child() -> impl Iterator<Item = Fault> {
        let moments = [Moment::Before, Moment::After];
        let kills = moments.into_iter().map(Fault::Kill);
        let owners = moments.into_iter().map(Fault::KillOwner);
        let fails =
            ERRNOS.into_iter().map(|errno| Fault::Fail(Failure::Errno(errno), Repeat::Once));
        kills.chain(owners).chain(fails)
    }

    /// Whether it can happen at this kind of call.
    #[must_use]
    pub fn fits(self, call: &str) -> bool {
        match self {
            Fault::Kill(_) | Fault::KillOwner(_) => true,
            Fault::Fail(failure, _) => failure.fits(call),
        }
    }

    /// Whether it is a kill.
    #[must_use]
    pub fn is_kill(self) -> bool {
        matches!(self, Fault::Kill(_) | Fault::KillOwner(_))
    }

    fn in_child(self) -> Option<ChildFault> {
        match self {
            Fault::Kill(moment) => Some(ChildFault::Kill(moment)),
            Fault::KillOwner(moment) => Some(ChildFault::KillOwner(moment)),
            Fault::Fail(Failure::Errno(errno), Repeat::Once) => Some(ChildFault::Fail(errno)),
            Fault::Fail(..) => None,
        }
    }

    /// The fault that [`fmt::Display`] wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Fault> {
        Fault::all().chain(Fault::all_of_child()).find(|fault| fault.to_string() == text)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = |moment| match moment {
            Moment::Before => "before",
            Moment::After => "after",
        };
        let symbol = |errno: Errno| errno.symbol().unwrap_or("errno");
        match *self {
            Fault::Kill(when) => write!(f, "kill-{}", moment(when)),
            Fault::KillOwner(when) => write!(f, "kill-owner-{}", moment(when)),
            Fault::Fail(failure, repeat) => {
                match failure {
                    Failure::Errno(errno) => f.write_str(symbol(errno))?,
                    Failure::DoneBut(errno) => write!(f, "done-but-{}", symbol(errno))?,
                    Failure::Short => f.write_str("short")?,
                }
                match repeat {
                    Repeat::Once => Ok(()),
                    Repeat::ForEver => f.write_str("-for-ever"),
                }
            }
        }
    }
}

/// One case of a series: enough to run it again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Case {
    /// The operation.
    pub operation: String,
    /// The fault.
    pub fault: String,
    /// The position, from 1.
    pub position: u64,
    /// The kind of call there in the undisturbed run.
    pub call: String,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { operation, fault, position, call } = self;
        write!(f, "{operation}: {fault} at call {position} ({call})")
    }
}

/// What a worker tells of its work: a line of JSON each.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// The undisturbed run of an operation.
    Recorded {
        /// The operation.
        operation: String,
        /// Its calls, in order.
        calls: Vec<String>,
    },
    /// A case was run and judged.
    Judged {
        /// The case.
        case: Case,
        /// Whether the fault happened.
        fired: Fired,
        /// The shape of what the operation left behind, as a number.
        left: u64,
        /// What is wrong, in prose; nothing when all is well.
        wrong: Vec<String>,
    },
    /// Everything that was asked for is done.
    Done,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_read_back_from_its_name() {
        for fault in Fault::all().chain(Fault::all_of_child()) {
            assert_eq!(Fault::parse(&fault.to_string()), Some(fault), "{fault}");
        }
        assert_eq!(Fault::parse("kill"), None);
    }
}
