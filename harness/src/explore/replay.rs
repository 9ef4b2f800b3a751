//! One schedule, on live processes.

use std::fmt;

use super::Setup;
use super::choice::Choice;
use super::machine::{Failure, Machine};
use crate::simulated::Live;
use crate::timeline::Timeline;
use crate::world::World;

/// A schedule does not fit the programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayError {
    /// Which choice, counted from 0.
    pub at: usize,
    /// The choice that cannot be taken there.
    pub choice: Choice,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "choice {} is `{}`, which cannot be taken there", self.at + 1, self.choice)
    }
}

impl std::error::Error for ReplayError {}

/// What came of a schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// What it ended with, if anything.
    pub failure: Option<Failure>,
    /// What happened.
    pub timeline: Timeline,
    /// For each choice, the place of its first event in the timeline.
    pub firsts: Vec<usize>,
}

/// Runs a schedule.
///
/// # Errors
/// When a choice cannot be taken where it stands: the programs have changed
/// since it was made.
pub fn replay(setup: &Setup, schedule: &[Choice]) -> Result<Replayed, ReplayError> {
    replay_watched(setup, schedule, &mut |_, _, _| {})
}

/// The same, watched: before each choice `watch` is shown its place, what it is
/// about to do, and the world; and after the last one the world once more.
///
/// # Errors
/// As [`replay`].
pub fn replay_watched(
    setup: &Setup,
    schedule: &[Choice],
    watch: &mut dyn FnMut(usize, &str, &World),
) -> Result<Replayed, ReplayError> {
    let mut machine = Machine::new(setup, Live::new(&setup.programs));
    machine.events = Some(Vec::new());
    let mut firsts = Vec::new();
    let failure = run(&mut machine, schedule, &mut firsts, watch)?;
    let events = machine.events.take().unwrap_or_default();
    Ok(Replayed { failure, timeline: Timeline { events }, firsts })
}

fn run(
    machine: &mut Machine<'_, Live<'_>>,
    schedule: &[Choice],
    firsts: &mut Vec<usize>,
    watch: &mut dyn FnMut(usize, &str, &World),
) -> Result<Option<Failure>, ReplayError> {
    let mut state = match machine.begin() {
        Ok(state) => state,
        Err(failure) => return Ok(Some(failure)),
    };
    for (at, choice) in schedule.iter().copied().enumerate() {
        if !machine.can(&state, choice) {
            return Err(ReplayError { at, choice });
        }
        firsts.push(machine.events.as_ref().map_or(0, Vec::len));
        watch(at, &machine.label(&state, choice), &state.world);
        if let Err(failure) = machine.take(&mut state, choice) {
            watch(at + 1, "", &state.world);
            // What is left of the schedule is of a run that goes on after it.
            return match schedule.get(at + 1) {
                None => Ok(Some(failure)),
                Some(next) => Err(ReplayError { at: at + 1, choice: *next }),
            };
        }
    }
    watch(schedule.len(), "", &state.world);
    Ok(None)
}
