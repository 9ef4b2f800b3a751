//! A program in the world: its requests one after the other, without a coroutine, as nothing runs
//! between two of them.

use std::cell::RefCell;

use mortmain::sys::{
    Answer, Call, ChildIdentity, ChildKernel, Errno, Handle, IdName, Name, Pid, Reply, child_part,
};
use mortmain_subjects::Beyond;

use super::operation::{Operation, STATUS};
use super::outcome::{Known, Outcome, Run, observe};
use super::process::plan;
use super::program::{Orphans, PROCESSES_MAX, Program, Step};
use super::{Side, SideError};
use crate::world::ids::ProgramId;
use crate::world::request::{ChildCall, Command, Request, Response};
use crate::world::{Effect, Fingerprint, Reaping, Rules, World};

const PROGRAM: ProgramId = ProgramId { index: 0, name: "process" };
/// Who looks at everything at the end.
const OBSERVER: Pid = Pid(9);

/// What is done to an answer of the world before it is believed.
pub type Lie = fn(&Call, Answer<Reply>) -> Answer<Reply>;

/// The world as one side, as it is or with a lie in it.
#[derive(Clone, Copy, Debug)]
pub struct InWorld {
    lie: Lie,
}

impl Default for InWorld {
    fn default() -> InWorld {
        InWorld { lie: |_, answer| answer }
    }
}

impl InWorld {
    /// A world whose answers are changed: to show that a difference is found.
    #[must_use]
    pub fn that_lies(lie: Lie) -> InWorld {
        InWorld { lie }
    }

    fn run(self, program: &Program) -> Run {
        let mut stage = Stage::begin(program.first, program.orphans);
        stage.lie = self.lie;
        let outcomes = program.steps.iter().map(|step| stage.step(*step)).collect();
        Run { outcomes, end: stage.end() }
    }
}

impl Side for InWorld {
    fn play(&mut self, programs: &[Program]) -> Result<Vec<Run>, SideError> {
        Ok(programs.iter().map(|program| self.run(program)).collect())
    }
}

/// A world with the processes of a program.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    world: World,
    known: Known,
    lie: Lie,
}

impl Stage {
    /// The world before the first step.
    pub(super) fn begin(first: usize, orphans: Orphans) -> Stage {
        let reaping = match orphans {
            Orphans::Reaped => Reaping::AtOnce,
            Orphans::Kept => Reaping::Never,
        };
        let mut world = World::new(Rules { reaping, ..Rules::default() });
        world.start(OBSERVER, PROGRAM);
        let mut stage = Stage { world, known: Known::default(), lie: |_, answer| answer };
        for pid in (1..).map(|nth| Pid(nth * 10)).take(first) {
            stage.world.start(pid, PROGRAM);
            stage.known.pids.push(pid.0);
            let opened = stage.call(pid, Call::OpenRoot { path: World::root_path() });
            assert_eq!(opened, Ok(Reply::Handle(Handle(3))), "a process begins with the root");
        }
        stage
    }

    /// Stands for all that the steps so far have led to.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        self.world.fingerprint()
    }

    /// Whether a process is there to do something.
    pub(super) fn lives(&self, who: usize) -> bool {
        self.world.lives(self.known.pid(who))
    }

    /// Does a step.
    pub(super) fn step(&mut self, step: Step) -> Outcome {
        if !self.lives(step.who) {
            return Outcome::Nobody;
        }
        let births = matches!(step.operation, Operation::Fork | Operation::Spawn(..));
        if births && self.known.pids.len() == PROCESSES_MAX {
            return Outcome::Full;
        }
        let outcome = self.operate(self.known.pid(step.who), step.operation);
        self.known.count(outcome)
    }

    fn operate(&mut self, pid: Pid, operation: Operation) -> Outcome {
        let call = operation.call(|who| self.known.pid(who), &World::root_path());
        match (call, operation) {
            (Some(call), _) => {
                let answer = self.call(pid, call.clone());
                Outcome::of(&call, answer)
            }
            (None, Operation::Spawn(dir, lock)) => born(self.spawn(pid, Handle(dir), Handle(lock))),
            (None, Operation::Fork) => match self.world.exec(pid, &Request::Fork) {
                Effect::Forked { child } => born(Ok(child)),
                other => unreachable!("a fork was answered by {other:?}"),
            },
            (None, Operation::MakeSpecial(dir, name, special)) => {
                let (dir, name) = (Handle(dir), name.name());
                self.done(pid, &Request::MakeSpecial { dir, name, special })
            }
            (None, Operation::Mount(dir, from, on)) => {
                let (dir, from, on) = (Handle(dir), from.name(), on.name());
                self.done(pid, &Request::Mount { dir, from, on })
            }
            (None, Operation::Unmount(dir, on)) => {
                let (dir, on) = (Handle(dir), on.name());
                self.done(pid, &Request::Unmount { dir, on })
            }
            (None, Operation::OpenPlain(dir, name)) => {
                self.open_plain(pid, Handle(dir), name.name())
            }
            (None, Operation::NewGroup) => self.done(pid, &Request::Child(ChildCall::NewGroup)),
            (None, Operation::CloseAll) => self.done(pid, &Request::CloseAll),
            (None, Operation::Killed) => {
                self.world.kill(pid);
                Outcome::Ended
            }
            (None, _) => {
                let effect = self.world.exec(pid, &Request::Exit { status: STATUS.into() });
                assert_eq!(effect, Effect::Ended, "a process exits");
                Outcome::Ended
            }
        }
    }

    fn call(&mut self, pid: Pid, call: Call) -> Answer<Reply> {
        let answer = match self.world.exec(pid, &Request::Call(call.clone())) {
            Effect::Answer(Response::Reply(answer)) => answer,
            other => unreachable!("a call was answered by {other:?}"),
        };
        (self.lie)(&call, answer)
    }

    fn open_plain(&mut self, pid: Pid, dir: Handle, name: Name) -> Outcome {
        let request = Request::Beyond(Beyond::OpenPlain { dir, name });
        if !self.world.enabled(pid, &request) {
            return Outcome::Waits;
        }
        match self.world.exec(pid, &request) {
            Effect::Answer(Response::Reply(Ok(Reply::Handle(handle)))) => Outcome::Handle(handle.0),
            Effect::Answer(Response::Reply(Err(errno))) => Outcome::Failed(errno.0),
            other => unreachable!("an open was answered by {other:?}"),
        }
    }

    fn done(&mut self, pid: Pid, request: &Request) -> Outcome {
        match self.world.exec(pid, request) {
            Effect::Answer(Response::Done(Ok(()))) => Outcome::Done,
            Effect::Answer(Response::Done(Err(errno))) => Outcome::Failed(errno.0),
            other => unreachable!("{request} was answered by {other:?}"),
        }
    }

    /// Both halves of a spawn, and the child's part between them.
    fn spawn(&mut self, pid: Pid, dir: Handle, lock: Handle) -> Answer<Pid> {
        let plan = plan(dir, lock, |call| self.call(pid, call))?;
        let command = Command { program: PROGRAM, uses: Vec::new() };
        let request = Request::Spawn { command, plan: plan.clone().into() };
        let child = match self.world.exec(pid, &request) {
            Effect::Born { child } => child,
            Effect::Answer(Response::Spawned(answer)) => return answer,
            other => unreachable!("a spawn was answered by {other:?}"),
        };
        let last =
            match child_part(&Child { pid: child, world: RefCell::new(&mut self.world) }, &plan) {
                Ok(()) => Request::Exec { program: PROGRAM, cookie: plan.cookie },
                Err(errno) => Request::ChildFailed(errno),
            };
        self.world.exec(child, &last);
        assert!(self.world.enabled(pid, &request), "the child has made its report");
        match self.world.exec(pid, &request) {
            Effect::Answer(Response::Spawned(answer)) => answer,
            other => unreachable!("a spawn was answered by {other:?}"),
        }
    }

    /// What there is at the end.
    fn end(&mut self) -> Vec<String> {
        let mut known = std::mem::take(&mut self.known);
        observe(&mut known, &World::root_path(), &mut |call| self.call(OBSERVER, call))
    }
}

fn born(answer: Answer<Pid>) -> Outcome {
    match answer {
        Ok(pid) => Outcome::Born(pid.0),
        Err(errno) => Outcome::Failed(errno.0),
    }
}

/// The kernel of a child between fork and exec.
struct Child<'w> {
    pid: Pid,
    world: RefCell<&'w mut World>,
}

impl Child<'_> {
    fn ask(&self, call: ChildCall) -> Response {
        match self.world.borrow_mut().exec(self.pid, &Request::Child(call)) {
            Effect::Answer(response) => response,
            other => unreachable!("a call of a child was answered by {other:?}"),
        }
    }

    fn done(&self, call: ChildCall) -> Answer<()> {
        match self.ask(call) {
            Response::Done(answer) => answer,
            other => unreachable!("a call of a child was answered by {other:?}"),
        }
    }
}

impl ChildKernel for Child<'_> {
    fn new_group(&self) -> Answer<()> {
        self.done(ChildCall::NewGroup)
    }

    fn identity(&self) -> Answer<ChildIdentity> {
        match self.ask(ChildCall::Identity) {
            Response::Identity(answer) => answer,
            other => unreachable!("a call of a child was answered by {other:?}"),
        }
    }

    fn symlink(&self, dir: Handle, name: &IdName, text: &[u8]) -> Answer<()> {
        let name = Name::new(name.bytes()).ok_or(Errno::EINVAL)?;
        self.done(ChildCall::Symlink { dir, name, text: text.into() })
    }

    fn keep_over_exec(&self, fd: Handle) -> Answer<()> {
        self.done(ChildCall::KeepOverExec { fd })
    }
}
