//! Processes as coroutines that really are resumed with each answer.
//!
//! For replays and for long random runs: no memory of what was, but for the
//! answers of each process, from which a fork makes its second process.

use std::sync::Arc;

use super::engine::{Diverged, Engine, name_of};
use super::programs::{Origin, Programs, request_of};
use crate::raw::coroutine::Task;
use crate::world::request::{Request, Response};

/// So many calls most processes make at most.
const CALLS: usize = 64;

/// The engine.
#[derive(Debug)]
pub struct Live<'p> {
    programs: &'p Programs,
}

/// A process of it.
#[derive(Debug)]
pub struct LiveProcess {
    origin: Origin,
    answers: Vec<Response>,
    request: Arc<Request>,
    task: Task,
}

impl<'p> Live<'p> {
    /// Runs these programs.
    #[must_use]
    pub fn new(programs: &'p Programs) -> Live<'p> {
        Live { programs }
    }
}

impl Engine for Live<'_> {
    type Process = LiveProcess;

    fn begin(&mut self, origin: Origin) -> LiveProcess {
        let (task, request) = self.programs.start(&origin);
        let answers = Vec::with_capacity(CALLS);
        LiveProcess { origin, answers, request: Arc::new(request), task }
    }

    fn request<'p>(&'p self, process: &'p LiveProcess) -> &'p Arc<Request> {
        &process.request
    }

    fn requests(&self, process: &LiveProcess) -> u32 {
        u32::try_from(process.answers.len()).unwrap_or(u32::MAX)
    }

    fn answer(&mut self, process: &mut LiveProcess, response: Response) -> Result<(), Diverged> {
        process.request = Arc::new(request_of(process.task.resume(&response)));
        process.answers.push(response);
        Ok(())
    }

    fn double(&mut self, process: &LiveProcess) -> Result<LiveProcess, Diverged> {
        let mut second = self.begin(process.origin.clone());
        for response in &process.answers {
            self.answer(&mut second, response.clone())?;
        }
        if second.request == process.request {
            return Ok(second);
        }
        Err(Diverged {
            program: name_of(&process.origin),
            at: process.answers.len(),
            before: process.request.clone(),
            now: second.request.clone(),
        })
    }
}
