//! One schedule, on live processes.

use std::fmt;

use super::Setup;
use super::machine::{Choice, Failure, Machine};
use crate::simulated::Live;
use crate::timeline::Timeline;

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
        write!(f, "choice {} is `{}`, which cannot be taken there", self.at, self.choice)
    }
}

impl std::error::Error for ReplayError {}

/// Runs a schedule; what it ends with, if anything, and what happened.
///
/// # Errors
/// When a choice cannot be taken where it stands: the programs have changed
/// since it was made.
pub fn replay(
    setup: &Setup,
    schedule: &[Choice],
) -> Result<(Option<Failure>, Timeline), ReplayError> {
    let mut machine = Machine::new(setup, Live::new(&setup.programs));
    machine.events = Some(Vec::new());
    let failure = run(&mut machine, schedule)?;
    let events = machine.events.take().unwrap_or_default();
    Ok((failure, Timeline { events }))
}

fn run(
    machine: &mut Machine<'_, Live<'_>>,
    schedule: &[Choice],
) -> Result<Option<Failure>, ReplayError> {
    let mut state = match machine.begin() {
        Ok(state) => state,
        Err(failure) => return Ok(Some(failure)),
    };
    for (at, choice) in schedule.iter().copied().enumerate() {
        if !machine.can(&state, choice) {
            return Err(ReplayError { at, choice });
        }
        if let Err(failure) = machine.take(&mut state, choice) {
            // What is left of the schedule is of a run that goes on after it.
            return if at + 1 == schedule.len() {
                Ok(Some(failure))
            } else {
                Err(ReplayError { at: at + 1, choice: schedule[at + 1] })
            };
        }
    }
    Ok(None)
}
