//! Whether the world does what the real kernel does.
//!
//! A [`Program`] is a list of steps of several processes: calls of the seam, births and deaths. It is run
//! in the world ([`InWorld`]) and by real processes in a cell ([`OnHost`]), one step at a time on both
//! sides, so that nothing depends on time; what came of each step, and of a look at everything after the
//! last, has to be the same ([`compare()`]). Programs are gone through without a gap up to a length
//! ([`every`]), or drawn from a seed ([`draw()`]). A difference is made as short as it gets ([`shrink()`]).
//!
//! Invariants:
//! * Neither side knows what the other has answered.
//! * What may differ stands in one list, with the reason ([`DECLARED`]). Whatever else differs is an error
//!   of the world.
//! * Every call of the seam is either in the alphabet or in [`NOT_ASKED`], with the reason.
//!
//! What it deliberately is not: a test of the protocol. Its calls have no sense.

mod class;
mod compare;
mod draw;
mod in_world;
mod on_host;
mod operation;
mod outcome;
pub mod player;
pub mod process;
mod program;
mod shrink;
mod tally;
mod trial;

use std::fmt;

pub use self::class::Class;
pub use self::compare::{DECLARED, Declared, Difference, compare};
pub use self::draw::{draw, every};
pub use self::in_world::{InWorld, Lie};
pub use self::on_host::OnHost;
pub use self::operation::{Number, Operation, Who, Word};
pub use self::outcome::{Outcome, Run};
pub use self::program::{Orphans, PROCESSES_MAX, Program, Step};
pub use self::shrink::shrink;
pub use self::tally::{NOT_ASKED, Tally};
pub use self::trial::Trial;

/// One of the two that are compared.
pub trait Side {
    /// Runs programs, each from the beginning.
    ///
    /// # Errors
    ///
    /// When the side itself breaks, which says nothing of the programs.
    fn play(&mut self, programs: &[Program]) -> Result<Vec<Run>, SideError>;
}

/// Why a side could not run a program.
#[derive(Debug)]
pub struct SideError {
    /// The exit code of its process, if it has ended.
    pub code: Option<i32>,
    /// What went wrong.
    pub why: String,
}

impl SideError {
    fn new(why: impl fmt::Display) -> SideError {
        SideError { code: None, why: why.to_string() }
    }
}

impl fmt::Display for SideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for SideError {}
