//! What an explorer needs of processes, whichever way they are run.

use std::fmt;
use std::sync::Arc;

use super::programs::Origin;
use crate::world::request::{Request, Response};

/// A way to run processes.
pub trait Engine {
    /// One process, stopped at a request.
    type Process;

    /// A process that has just begun.
    fn begin(&mut self, origin: Origin) -> Self::Process;

    /// What a process asks for.
    fn request<'p>(&'p self, process: &'p Self::Process) -> &'p Arc<Request>;

    /// How many requests it has made since its program began.
    fn requests(&self, process: &Self::Process) -> u32;

    /// Answers a process, which goes on to its next request.
    ///
    /// # Errors
    /// When it turns out that a process does not do the same after the same
    /// answers.
    fn answer(&mut self, process: &mut Self::Process, response: Response) -> Result<(), Diverged>;

    /// A second process that has lived through the same.
    ///
    /// # Errors
    /// As [`Engine::answer`].
    fn double(&mut self, process: &Self::Process) -> Result<Self::Process, Diverged>;
}

/// A process did something else after the same answers: it looks at a clock,
/// an address, a randomised map, something shared. Nothing that was learnt of
/// it can be believed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diverged {
    /// The program.
    pub program: String,
    /// Which of its requests, counted from 0.
    pub at: usize,
    /// What it asked for the first time.
    pub before: Arc<Request>,
    /// What it asked for this time.
    pub now: Arc<Request>,
}

impl fmt::Display for Diverged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is not deterministic: after the same answers, its request {} was `{}` and is `{}`",
            self.program, self.at, self.before, self.now
        )
    }
}

impl std::error::Error for Diverged {}

/// The name of what began there.
pub(super) fn name_of(origin: &Origin) -> String {
    match origin {
        Origin::Program(id) => id.name.into(),
        Origin::Child { command, .. } => format!("the child that becomes {}", command.program),
    }
}
