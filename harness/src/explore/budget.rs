//! How much may happen to the processes of a run.

#[cfg(doc)]
use super::WAIT_SECONDS;
use super::choice::Choice;

/// How often each kind of thing may happen, each time at any moment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Budget {
    /// Processes that are killed.
    pub kills: u32,
    /// Calls that fail.
    pub failures: u32,
    /// Times that time passes, [`WAIT_SECONDS`] of it.
    pub waits: u32,
    /// Tricks that an adversary plays; with none there is no adversary.
    pub tricks: u32,
    /// Processes that are killed together with all that they have started.
    pub trees: u32,
    /// Strangers: processes that have to do with nobody here and get the number of one that is gone.
    pub strangers: u32,
    /// Directories that are read in another order than that of their names.
    pub orders: u32,
}

impl Budget {
    /// What a choice takes from.
    pub(super) fn of(&mut self, choice: Choice) -> Option<&mut u32> {
        match choice {
            Choice::Step(_) | Choice::Recover => None,
            Choice::Fail { .. } => Some(&mut self.failures),
            Choice::Kill(_) => Some(&mut self.kills),
            Choice::KillTree(_) => Some(&mut self.trees),
            Choice::Trick { .. } => Some(&mut self.tricks),
            Choice::Wait => Some(&mut self.waits),
            Choice::Stranger(_) => Some(&mut self.strangers),
            Choice::Order { .. } => Some(&mut self.orders),
        }
    }
}
