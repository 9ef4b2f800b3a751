//! A run that follows a schedule as far as it fits.
//!
//! What cannot be taken where it stands is left out: a schedule of which something was taken away, or
//! put elsewhere, is still one, and what it comes to is seen by running it. On live processes, like
//! every replay.

use mortmain::sys::Pid;

use super::Setup;
use super::choice::Choice;
use super::machine::{Failure, Machine};
use crate::simulated::Live;
use crate::timeline::Event;

/// How a run ends when its schedule does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// There.
    There,
    /// Whoever was started first goes first, as long as anybody can; then everybody is killed and the
    /// last sweep is run.
    Whole,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Followed {
    /// What was taken.
    pub(super) schedule: Vec<Choice>,
    /// What it ended with, if anything.
    pub(super) failure: Option<Failure>,
    /// What happened.
    pub(super) events: Vec<Event>,
    /// For each choice that was taken, its first event.
    pub(super) firsts: Vec<usize>,
}

impl Followed {
    /// Whether it ended with what breaks this property.
    pub(super) fn breaks(&self, property: &str) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.property() == property)
    }

    /// The event of a choice that was taken.
    pub(super) fn event(&self, at: usize) -> Option<&Event> {
        self.events.get(*self.firsts.get(at)?)
    }
}

/// Whose choice it is; `None` for what is of everybody.
pub(super) fn process_of(choice: Choice) -> Option<Pid> {
    match choice {
        Choice::Step(pid)
        | Choice::Fail { pid, .. }
        | Choice::Order { pid, .. }
        | Choice::Kill(pid)
        | Choice::KillTree(pid) => Some(pid),
        Choice::Trick { .. } | Choice::Stranger(_) | Choice::Wait | Choice::Recover => None,
    }
}

/// Follows a schedule.
pub(super) fn follow(setup: &Setup, schedule: &[Choice], end: End) -> Followed {
    let mut machine = Machine::new(setup, Live::new(&setup.programs));
    machine.events = Some(Vec::new());
    let mut followed =
        Followed { schedule: Vec::new(), failure: None, events: Vec::new(), firsts: Vec::new() };
    followed.failure = followed.run(&mut machine, schedule, end).err();
    followed.events = machine.events.take().unwrap_or_default();
    followed
}

impl Followed {
    fn run(
        &mut self,
        machine: &mut Machine<'_, Live<'_>>,
        schedule: &[Choice],
        end: End,
    ) -> Result<(), Failure> {
        let mut state = machine.begin()?;
        let mut rest = schedule.iter().copied();
        let mut choices = Vec::new();
        loop {
            let choice = match rest.next() {
                // The end of everybody is that of the schedule.
                Some(Choice::Recover) if end == End::Whole => continue,
                Some(choice) if machine.can(&state, choice) => choice,
                Some(_) => continue,
                None if end == End::There || self.schedule.last() == Some(&Choice::Recover) => {
                    return Ok(());
                }
                None => machine.first_step(&state, &mut choices).unwrap_or(Choice::Recover),
            };
            self.schedule.push(choice);
            self.firsts.push(machine.events.as_ref().map_or(0, Vec::len));
            machine.take(&mut state, choice)?;
            if choice == Choice::Recover {
                return Ok(());
            }
        }
    }
}
