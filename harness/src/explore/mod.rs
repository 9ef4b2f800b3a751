//! Exploring: every order of steps and kills that a budget allows.
//!
//! A [`Setup`] says which programs run, who starts, and what may happen to them ([`Budget`]).
//! A [`Choice`] is who goes next and what happens to it; a list of them, a schedule, repeats a run exactly.
//! [`exhaust()`] goes through all of them, breadth first, so that what it finds is as
//! short as can be; [`sample()`] draws schedules from a seed, for what is too large for
//! that; [`compare()`] asks of a design each property by itself; [`replay()`] runs one
//! schedule on live processes, and a [`Trace`] is a schedule that was saved.
//! What was drawn is made short by [`shrink()`], and [`explain()`] says why a run ends badly.

mod adversary;
mod budget;
mod careless;
mod causes;
mod choice;
mod compare;
mod exhaust;
mod explain;
mod follow;
mod gate;
mod machine;
mod replay;
mod sample;
mod series;
mod shrink;
mod strategy;
mod subjects;
#[cfg(test)]
mod tests;
mod trace;

use mortmain::sys::{Errno, Pid};

pub use self::budget::Budget;
pub use self::causes::{Cause, Causes, Group};
pub use self::choice::{Aim, Choice};
pub use self::compare::{Cell, Cut, Held, Row, Seen, Witness, cases, compare, compare_in};
pub use self::exhaust::{
    Bounds, Companion, Counterexample, Counts, Exploration, Taken, Verdict, exhaust,
    exhaust_watched, exhaust_with,
};
pub use self::explain::{Explanation, Turn, explain, told};
pub use self::gate::{Case, Without};
pub use self::machine::Failure;
pub use self::replay::{ReplayError, Replayed, replay, replay_watched};
pub use self::sample::{SampleCounts, Sampled, Sampling, sample, sample_causes};
pub use self::series::{FOR_EVER, SeriesCounts, Struck, series, series_case, series_causes};
pub use self::shrink::{Shrunk, shrink};
pub use self::strategy::Strategy;
pub use self::subjects::{Rejection, Subject};
pub use self::trace::{Differs, Trace};
use crate::judge::Judged;
use crate::simulated::Programs;
use crate::world::Rules;
use crate::world::ids::ProgramId;

/// How much time passes at once, in seconds: more than a day, which is what designs that go by the
/// clock wait for.
pub const WAIT_SECONDS: u64 = 25 * 60 * 60;

/// What is explored.
#[derive(Debug)]
pub struct Setup {
    /// The kind of world.
    pub rules: Rules,
    /// What there is to run.
    pub programs: Programs,
    /// What runs from the beginning: 10 is the first, 20 the second and so on.
    pub starts: Vec<ProgramId>,
    /// What cleans up in the end, when everybody is dead.
    pub last: ProgramId,
    /// What may happen to them.
    pub budget: Budget,
    /// What a stranger runs. Without it there are none.
    pub stranger: Option<ProgramId>,
    /// Whether the machine is started anew before the last sweep. If so, strangers have the numbers of all
    /// that are gone, and began at the same moments since the boot.
    pub reboots: bool,
    /// Time that passes when everybody is dead, before the last sweep, in seconds: what a design asks
    /// for, if it goes by the clock.
    pub rest_seconds: u64,
    /// What is judged.
    pub judged: Judged,
    /// The errors that they fail with.
    pub errnos: Vec<Errno>,
    /// Whether fewer states are told apart, with the same verdict: requests that
    /// concern nobody else are done together with the one before them
    /// ([`crate::world::World::is_private`]), and of what a process does aside only
    /// the result counts ([`mortmain::sys::Kernel::aside`]).
    pub merge: bool,
    /// Most calls that a process may make (L2).
    pub calls_max: u32,
}

impl Setup {
    /// These programs, with nothing that befalls them and every call as a step of its own.
    #[must_use]
    pub fn undisturbed(programs: Programs, starts: Vec<ProgramId>, last: ProgramId) -> Setup {
        Setup {
            rules: Rules::default(),
            programs,
            starts,
            last,
            budget: Budget::default(),
            stranger: None,
            reboots: false,
            rest_seconds: 0,
            judged: Judged::All,
            errnos: Vec::new(),
            merge: false,
            calls_max: 2_000,
        }
    }

    fn pid(place: usize) -> Pid {
        let place = i32::try_from(place).expect("few processes start");
        Pid(10 * (place + 1))
    }

    /// The processes that run from the beginning.
    pub(crate) fn first_processes(&self) -> impl Iterator<Item = (Pid, ProgramId)> {
        self.starts.iter().enumerate().map(|(place, program)| (Setup::pid(place), *program))
    }

    /// The process that cleans up in the end.
    fn last_process(&self) -> Pid {
        Setup::pid(self.starts.len())
    }
}
