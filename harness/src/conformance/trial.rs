//! Runs programs on both sides, many at once, until one of them differs.

use std::ops::ControlFlow;
use std::{panic, thread};

use super::compare::{Difference, compare};
use super::program::Program;
use super::tally::Tally;
use super::{Side, SideError};

/// Programs that a side is given at once: one by one, half of the time would pass between the two.
const AT_ONCE: usize = 96;

/// A comparison that goes on.
#[derive(Debug)]
pub struct Trial<'t, W, H> {
    world: &'t mut W,
    host: &'t mut H,
    waiting: Vec<Program>,
    /// What was reached, on the real kernel.
    pub tally: Tally,
    /// What came of it, if it is over.
    ended: Option<Ended>,
}

/// Why a comparison is over.
#[derive(Debug)]
enum Ended {
    /// A program differs.
    Differs(Box<Difference>),
    /// A side broke.
    Broken(SideError),
}

impl<'t, W: Side, H: Side + Send> Trial<'t, W, H> {
    /// Compares two sides.
    pub fn new(world: &'t mut W, host: &'t mut H, tally: Tally) -> Self {
        Trial { world, host, waiting: Vec::new(), tally, ended: None }
    }

    /// One more program. Breaks when the comparison is over.
    pub fn add(&mut self, program: Program) -> ControlFlow<()> {
        self.waiting.push(program);
        if self.waiting.len() < AT_ONCE { ControlFlow::Continue(()) } else { self.run() }
    }

    /// Runs those that wait, and tells whether the comparison is over.
    ///
    /// # Errors
    ///
    /// When a side broke.
    pub fn end(mut self) -> Result<(Tally, Option<Difference>), SideError> {
        if self.ended.is_none() {
            // Whether it breaks or not, this is the end.
            let _over = self.run();
        }
        match self.ended {
            None => Ok((self.tally, None)),
            Some(Ended::Differs(difference)) => Ok((self.tally, Some(*difference))),
            Some(Ended::Broken(error)) => Err(error),
        }
    }

    fn run(&mut self) -> ControlFlow<()> {
        let programs = std::mem::take(&mut self.waiting);
        // At the same time; neither sees the other.
        let (world, host) = thread::scope(|scope| {
            let host = scope.spawn(|| self.host.play(&programs));
            (self.world.play(&programs), host.join().unwrap_or_else(|it| panic::resume_unwind(it)))
        });
        self.ended = match world.and_then(|world| Ok((world, host?))) {
            Err(error) => Some(Ended::Broken(error)),
            Ok((world, host)) => {
                let runs = world.iter().zip(&host);
                programs.iter().zip(runs).find_map(|(program, (world, host))| {
                    self.tally.note(program, host);
                    compare(program, world, host).map(|found| Ended::Differs(Box::new(found)))
                })
            }
        };
        if self.ended.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
