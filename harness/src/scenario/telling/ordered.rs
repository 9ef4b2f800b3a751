//! What comes of an order, and what a process was doing when it stopped.

use super::{Failure, Outcome};
use crate::actor::wire::Done;

/// What an order came to that could be disturbed.
pub(in crate::scenario) enum Ordered {
    Done(Done),
    Failed { kind: String, message: String },
    Stopped,
    Killed,
}

impl Ordered {
    /// The same as a failure, where something else had to come.
    pub(in crate::scenario) fn unexpected(&self) -> Failure {
        let title = match self {
            Ordered::Done(done) => format!("it said `{done}`"),
            Ordered::Failed { kind, message } => format!("it failed: {kind}: {message}"),
            Ordered::Stopped => "it stopped".into(),
            Ordered::Killed => "it was killed".into(),
        };
        Failure::new("actor", title)
    }
}

/// What a process was doing when it stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::scenario) enum Doing {
    Creating,
    Closing,
    Sweeping,
    /// Starting this command.
    Spawning(String),
    /// Waiting for the child that is to become this command, and is held.
    Held(String),
    /// Something that is about no claim.
    Beside,
    /// Waiting for a lock, without having stopped.
    Waiting,
}

impl Doing {
    /// Fails if who is at this goes on by itself, or by somebody else.
    pub(in crate::scenario) fn check_stopped(&self, who: &str) -> Outcome<()> {
        match self {
            Doing::Waiting => {
                let title = format!("`{who}` waits for a lock, and is not stopped");
                Err(Failure::new("not-stopped", title))
            }
            Doing::Held(command) => {
                let title = format!("`{who}` waits for `{command}`, which has to go on before it");
                Err(Failure::new("held", title))
            }
            _ => Ok(()),
        }
    }
}

/// Somebody is asked for who does not run.
pub(in crate::scenario) fn not_running(who: &str) -> Failure {
    Failure::new("not-running", format!("`{who}` does not run"))
}

/// Lets the same happen to each of several, one after the other.
pub(in crate::scenario) fn each(
    names: &[String],
    mut act: impl FnMut(&str) -> Outcome<()>,
) -> Outcome<()> {
    names.iter().try_for_each(|name| act(name))
}
