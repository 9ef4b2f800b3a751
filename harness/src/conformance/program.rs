//! A program: who does what, one step after the other.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::operation::{Operation, Who};

/// Processes that a program has at most: a fork or spawn beyond is not tried.
pub const PROCESSES_MAX: usize = 6;

/// One step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The process that does it, or to which it is done.
    pub who: Who,
    /// What it does.
    pub operation: Operation,
}

/// Whether somebody reaps those whose parent has ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Orphans {
    /// At once.
    Reaped,
    /// Never.
    Kept,
}

/// Steps of some processes. Each of the first ones has a group of its own and the root open as
/// descriptor 3, by itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Program {
    /// How many processes there are at the beginning.
    pub first: usize,
    /// What becomes of orphans.
    pub orphans: Orphans,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{} {}", self.who, self.operation)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let orphans = match self.orphans {
            Orphans::Reaped => "",
            Orphans::Kept => ", orphans are never reaped",
        };
        let s = if self.first == 1 { "" } else { "es" };
        write!(f, "{} process{s} with the root as 3{orphans}", self.first)?;
        self.steps
            .iter()
            .enumerate()
            .try_for_each(|(at, step)| write!(f, "\n{:>3}. {step}", at + 1))
    }
}
