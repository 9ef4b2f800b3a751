//! What there is to run.

use mortmain::sys::{Answer, ChildPlan, child_part};

use super::kernel::{WorldChild, WorldKernel};
use crate::raw::coroutine::{Body, Stop, Task, ask};
use crate::world::ids::ProgramId;
use crate::world::request::{Command, Request};

/// What a child does between fork and exec.
pub type ChildPart = fn(&WorldChild, &ChildPlan) -> Answer<()>;

/// A program's code: a fresh copy of it for every process, so that none finds
/// what another has left in it.
trait Code: Send + Sync {
    fn fresh(&self) -> Body;
}

impl<F: Fn(&WorldKernel) -> i32 + Clone + Send + Sync + 'static> Code for F {
    fn fresh(&self) -> Body {
        let code = self.clone();
        Box::new(move || code(&WorldKernel::new()))
    }
}

/// Where a process begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// At the beginning of a program, with an exec or as one of the first.
    Program(ProgramId),
    /// As a child that was just forked to become a command.
    Child {
        /// What it is to become.
        command: Command,
        /// What it was told.
        plan: ChildPlan,
    },
}

/// The programs of one setup.
pub struct Programs {
    list: Vec<(ProgramId, Box<dyn Code>)>,
    child_part: ChildPart,
}

impl std::fmt::Debug for Programs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.list.iter().map(|(id, _)| id.name)).finish()
    }
}

impl Default for Programs {
    fn default() -> Programs {
        Programs { list: Vec::new(), child_part: child_part::<WorldChild> }
    }
}

impl Programs {
    /// Adds a program; its result is its exit status.
    pub fn add(
        &mut self,
        name: &'static str,
        code: impl Fn(&WorldKernel) -> i32 + Clone + Send + Sync + 'static,
    ) -> ProgramId {
        let index = u32::try_from(self.list.len()).expect("few programs are written");
        let id = ProgramId { index, name };
        self.list.push((id, Box::new(code)));
        id
    }

    /// Another child's part than the implementation's own, to show what it is
    /// for.
    pub fn set_child_part(&mut self, child_part: ChildPart) {
        self.child_part = child_part;
    }

    /// Starts a process and runs it to its first request.
    pub(super) fn start(&self, origin: &Origin) -> (Task, Request) {
        let (task, stop) = match origin {
            Origin::Program(id) => {
                let (_, code) = &self.list[id.index as usize];
                Task::start(|| code.fresh())
            }
            Origin::Child { command, plan } => {
                let child_part = self.child_part;
                Task::start(|| {
                    let (program, plan) = (command.program, plan.clone());
                    Box::new(move || run_child(child_part, program, &plan))
                })
            }
        };
        (task, request_of(stop))
    }
}

/// A child from fork to exec.
fn run_child(child_part: ChildPart, program: ProgramId, plan: &ChildPlan) -> i32 {
    let last = match child_part(&WorldChild::new(), plan) {
        Ok(()) => Request::Exec { program, cookie: plan.cookie.clone() },
        Err(errno) => Request::ChildFailed(errno),
    };
    ask(last);
    unreachable!("what follows exec or the end is not this program")
}

/// What a process asks for next; its end is a request, too.
pub(super) fn request_of(stop: Stop) -> Request {
    match stop {
        Stop::Asked(request) => request,
        Stop::Ended(status) => Request::Exit { status },
        Stop::Panicked(message) => Request::Panicked { message },
    }
}
