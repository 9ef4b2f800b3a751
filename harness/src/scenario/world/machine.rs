//! The world with the processes of a story in it: who is started, told something, stopped, killed, and
//! who makes the next step.
//!
//! A process goes on until it says something and waits for its next order. Where several could make a
//! step, the first does, or, while several are told something at once, one that is drawn from the number
//! of the round: the same round is the same order of steps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use mortmain::sys::{Answer, Call, Handle, Pid, Reply, Wait};

use super::program;
use crate::lots::Lots;
use crate::scenario::fields::Count;
use crate::scenario::story::Disturbed;
use crate::scenario::telling::{Failure, Outcome};
use crate::simulated::{Engine as _, Live, LiveProcess, Origin, Programs};
use crate::world::ids::{InodeId, ProgramId};
use crate::world::request::{ChildCall, Request, Response};
use crate::world::seen::Stage;
use crate::world::{Effect, Rules, World};

/// More steps than anything takes that is told.
const STEPS_MAX: u32 = 200_000;

/// Children that one process can have.
const CHILDREN_MAX: u32 = 9;

/// Between the numbers of those that nobody starts; those of children lie between.
const NUMBERS_APART: i32 = 100;

/// Who starts everybody, and has no program of its own.
const STARTER: ProgramId = ProgramId { index: u32::MAX, name: "starter" };

/// What there is to run.
static PROGRAMS: LazyLock<Programs> = LazyLock::new(|| {
    let mut programs = Programs::default();
    let added = [
        programs.add(program::SERVER.name, program::serve),
        programs.add(program::COMMAND.name, program::command),
        programs.add(program::STRANGER.name, |kernel| kernel.idle()),
    ];
    assert_eq!(added, [program::SERVER, program::COMMAND, program::STRANGER]);
    programs
});

/// Who reaps a process that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Parent {
    /// Whoever started it, when it is told to.
    Starter,
    /// The first process of the world.
    Init,
}

/// Something that is to happen to a process at one of its calls.
#[derive(Debug)]
struct Disturbance {
    how: Disturbed,
    at: Count,
    /// Whether the calls between fork and exec are meant.
    between: bool,
    seen: u64,
    /// How many answers it had got at the call that was counted last: what is asked in two halves is
    /// one call.
    counted: Option<u32>,
}

/// The world, and who runs in it.
pub(super) struct Machine {
    pub(super) world: World,
    engine: Live<'static>,
    processes: BTreeMap<Pid, LiveProcess>,
    /// Those that make no step until they go on.
    stopped: BTreeSet<Pid>,
    /// Those that ask for a lock again and again, and only when they are told to.
    patient: BTreeSet<Pid>,
    disturbances: BTreeMap<Pid, Disturbance>,
    /// Whose next child is disturbed between fork and exec.
    holds: Option<(Pid, u64)>,
    /// To whom what was to happen has happened.
    struck: BTreeSet<Pid>,
    /// Children in the order in which they were born, each after its parent.
    born: Vec<(Pid, Pid)>,
    /// The one who starts, and how many it has started.
    starter: Option<(Pid, u32)>,
    numbers: i32,
    /// How it is drawn who goes on, while several are told something at once.
    turns: Option<Turns>,
}

/// Draws who makes the next step: seven times of eight whoever made the last one, so that one is far
/// ahead now and then.
#[derive(Debug)]
struct Turns {
    lots: Lots,
    last: Option<Pid>,
}

impl Turns {
    fn draw(&mut self, able: &[Pid]) -> Option<Pid> {
        let again = self.last.filter(|last| able.contains(last));
        self.last = match again {
            Some(last) if !self.lots.one_in(8) => Some(last),
            _ => self.lots.one_of(able).copied(),
        };
        self.last
    }
}

impl Machine {
    pub(super) fn new(rules: Rules) -> Machine {
        Machine {
            world: World::new(rules),
            engine: Live::new(&PROGRAMS),
            processes: BTreeMap::new(),
            stopped: BTreeSet::new(),
            patient: BTreeSet::new(),
            disturbances: BTreeMap::new(),
            holds: None,
            struck: BTreeSet::new(),
            born: Vec::new(),
            starter: None,
            numbers: 0,
            turns: None,
        }
    }

    /// Starts a process, which has yet to make its first step.
    pub(super) fn start(&mut self, program: ProgramId, parent: Parent) -> Pid {
        let pid = match parent {
            Parent::Init => {
                let pid = self.fresh_number();
                self.world.start(pid, program);
                pid
            }
            Parent::Starter => self.started(program),
        };
        self.processes.insert(pid, self.engine.begin(Origin::Program(program)));
        pid
    }

    /// Starts a process with the number of one that has ended and was reaped.
    pub(super) fn start_again(&mut self, program: ProgramId, number: Pid) -> Outcome<()> {
        if self.world.stage(number) != Stage::Absent {
            let title = format!("the number {} is not free", number.0);
            return Err(Failure::new("system", title));
        }
        self.world.start_again(number, program);
        self.processes.insert(number, self.engine.begin(Origin::Program(program)));
        Ok(())
    }

    fn fresh_number(&mut self) -> Pid {
        self.numbers += NUMBERS_APART;
        Pid(self.numbers)
    }

    /// A child of the starter, in a group of its own.
    fn started(&mut self, program: ProgramId) -> Pid {
        let (starter, children) = match self.starter {
            Some((starter, children)) if children < CHILDREN_MAX => (starter, children),
            _ => {
                let starter = self.fresh_number();
                self.world.start(starter, STARTER);
                (starter, 0)
            }
        };
        self.starter = Some((starter, children + 1));
        let Effect::Forked { child } = self.world.exec(starter, &Request::Fork) else {
            unreachable!("it has had few children");
        };
        self.world.exec(child, &Request::Child(ChildCall::NewGroup));
        self.world.exec(child, &Request::Exec { program, cookie: Box::default() });
        child
    }

    /// What a process has said, if it waits for its next order.
    pub(super) fn said(&self, pid: Pid) -> Option<&[u8]> {
        match &**self.request(pid)? {
            Request::Line { said } => Some(said),
            _ => None,
        }
    }

    fn request(&self, pid: Pid) -> Option<&Arc<Request>> {
        Some(self.engine.request(self.processes.get(&pid)?))
    }

    /// Tells a process something; it has to wait for that.
    pub(super) fn tell(&mut self, pid: Pid, line: &[u8]) -> Outcome<()> {
        if self.said(pid).is_none() {
            let title = format!("process {} does not wait for an order", pid.0);
            return Err(Failure::new("not-running", title));
        }
        self.answer(pid, Response::Line(line.into()))
    }

    fn answer(&mut self, pid: Pid, response: Response) -> Outcome<()> {
        let Some(process) = self.processes.get_mut(&pid) else { return Ok(()) };
        let answered = self.engine.answer(process, response);
        answered.map_err(|diverged| Failure::new("diverged", diverged.to_string()))
    }

    /// From its next call on something is to happen to a process.
    pub(super) fn disturb(&mut self, pid: Pid, how: Disturbed, at: Count) {
        self.struck.remove(&pid);
        let disturbance = Disturbance { how, at, between: false, seen: 0, counted: None };
        self.disturbances.insert(pid, disturbance);
    }

    /// The next child of a process is to be held before its n-th call between fork and exec.
    pub(super) fn hold_child_of(&mut self, pid: Pid, before: u64) {
        self.holds = Some((pid, before));
    }

    /// Nothing is to happen to a process any more. Answers whether it did.
    pub(super) fn was_struck(&mut self, pid: Pid) -> bool {
        self.disturbances.remove(&pid);
        self.struck.remove(&pid)
    }

    /// Stops a process, as a signal does.
    pub(super) fn stop(&mut self, pid: Pid) {
        self.stopped.insert(pid);
    }

    /// Lets a process go on that has stopped.
    pub(super) fn go_on(&mut self, pid: Pid) {
        self.stopped.remove(&pid);
    }

    /// Whether a process has stopped.
    pub(super) fn has_stopped(&self, pid: Pid) -> bool {
        self.stopped.contains(&pid)
    }

    /// A process asks for a lock from now on, again each time that it is let.
    pub(super) fn make_patient(&mut self, pid: Pid) {
        self.patient.insert(pid);
    }

    /// It asks once more.
    pub(super) fn ask_again(&mut self, pid: Pid) -> Outcome<()> {
        if self.pauses(pid) {
            self.step(pid)?;
        }
        Ok(())
    }

    fn pauses(&self, pid: Pid) -> bool {
        matches!(
            self.request(pid).map(|request| &**request),
            Some(Request::Call(Call::Pause { .. }))
        )
    }

    /// A SIGKILL. Whoever started it does not reap it yet.
    pub(super) fn kill(&mut self, pid: Pid) {
        self.world.kill(pid);
        self.forget_dead();
    }

    /// Reaps a child of the starter that has ended.
    pub(super) fn reap(&mut self, pid: Pid) {
        let starter = World::starter(pid);
        if self.world.lives(starter) && self.world.program_name(starter) == Some(STARTER.name) {
            let call = Call::Wait { pid, wait: Wait::AtMost(0), reap: true };
            self.world.exec(starter, &Request::Call(call));
        }
    }

    /// Makes a call for a process that waits for an order.
    pub(super) fn call_for(&mut self, pid: Pid, call: Call) -> Answer<Reply> {
        match self.world.exec(pid, &Request::Call(call)) {
            Effect::Answer(Response::Reply(answer)) => answer,
            other => unreachable!("a call is answered in kind, not by {other:?}"),
        }
    }

    /// The first descriptor of a process that stands for an inode.
    pub(super) fn descriptor_of(&self, pid: Pid, inode: InodeId) -> Option<Handle> {
        const FEW: i32 = 64;
        let behind = |fd: &Handle| self.world.behind(pid, *fd).is_some_and(|(_, of)| of == inode);
        (0..FEW).map(Handle).find(behind)
    }

    /// Ends everybody at once.
    pub(super) fn kill_everybody(&mut self) {
        let all: Vec<Pid> = self.world.living().collect();
        for pid in all {
            self.world.kill(pid);
        }
        self.starter = None;
        self.forget_dead();
    }

    fn forget_dead(&mut self) {
        let world = &self.world;
        self.processes.retain(|pid, _| world.lives(*pid));
        self.stopped.retain(|pid| world.lives(*pid));
        self.patient.retain(|pid| world.lives(*pid));
        self.disturbances.retain(|pid, _| world.lives(*pid));
    }

    /// Everything that was born of a process, it itself first.
    pub(super) fn line_of(&self, pid: Pid) -> Vec<Pid> {
        let mut line = vec![pid];
        for (parent, child) in &self.born {
            if line.contains(parent) {
                line.push(*child);
            }
        }
        line
    }

    /// The order of steps is drawn from now on.
    pub(super) fn draw_lots(&mut self, seed: u64) {
        self.turns = Some(Turns { lots: Lots::of(seed, 0), last: None });
    }

    /// The first who can make a step does so again.
    pub(super) fn in_order(&mut self) {
        self.turns = None;
    }

    /// Lets everybody go on until nobody can, and looks after each step.
    pub(super) fn run(&mut self, look: impl Fn(&World) -> Outcome<()>) -> Outcome<()> {
        for _ in 0..STEPS_MAX {
            let Some(pid) = self.next() else { return Ok(()) };
            if self.is_struck(pid) {
                continue;
            }
            self.step(pid)?;
            look(&self.world)?;
        }
        Err(Failure::new("L2", format!("after {STEPS_MAX} steps somebody goes on")))
    }

    /// Who makes the next step.
    fn next(&mut self) -> Option<Pid> {
        let able = |(pid, process): &(&Pid, &LiveProcess)| {
            !self.stopped.contains(pid)
                && self.world.enabled(**pid, self.engine.request(process))
                && !(self.patient.contains(pid) && self.pauses(**pid))
        };
        let mut able = self.processes.iter().filter(able).map(|(pid, _)| *pid);
        if self.turns.is_none() {
            return able.next();
        }
        let able: Vec<Pid> = able.collect();
        self.turns.as_mut().and_then(|turns| turns.draw(&able))
    }

    /// Whether something happens to a process in the place of its next call.
    fn is_struck(&mut self, pid: Pid) -> bool {
        let Some(request) = self.request(pid).cloned() else { return false };
        let Some(disturbance) = self.disturbances.get_mut(&pid) else { return false };
        let counts = match disturbance.between {
            false => matches!(*request, Request::Call(_) | Request::Spawn { .. }),
            true => matches!(*request, Request::Child(_) | Request::Exec { .. }),
        };
        let answers = self.processes.get(&pid).map(|process| self.engine.requests(process));
        if !counts || disturbance.counted == answers {
            return false;
        }
        disturbance.counted = answers;
        disturbance.seen += 1;
        let word = match &*request {
            Request::Call(call) => call.word(),
            _ => "spawn",
        };
        let here = match disturbance.at {
            Count::Fixed(n) => n == disturbance.seen,
            Count::First(name) => name == word,
            // The teller gives its number.
            Count::Round => false,
        };
        if !here {
            return false;
        }
        let how = disturbance.how;
        self.disturbances.remove(&pid);
        self.struck.insert(pid);
        match how {
            Disturbed::Stopped => self.stop(pid),
            Disturbed::Killed => self.kill(pid),
        }
        true
    }

    /// Makes the next step of a process.
    fn step(&mut self, pid: Pid) -> Outcome<()> {
        let Some(request) = self.request(pid).cloned() else { return Ok(()) };
        if let Request::Panicked { message } = &*request {
            return Err(Failure::new("panic", format!("process {} panicked: {message}", pid.0)));
        }
        match self.world.exec(pid, &request) {
            Effect::Answer(response) if self.world.lives(pid) => self.answer(pid, response)?,
            Effect::Answer(_) | Effect::Ended => {}
            Effect::Born { child } => self.bear(pid, child, &request),
            Effect::Forked { child } => self.fork(pid, child)?,
            Effect::Image(program) => {
                self.processes.insert(pid, self.engine.begin(Origin::Program(program)));
            }
        }
        self.forget_dead();
        Ok(())
    }

    fn bear(&mut self, pid: Pid, child: Pid, request: &Request) {
        let Request::Spawn { command, plan } = request else {
            unreachable!("only a spawn has a child that is no copy");
        };
        let (command, plan) = (command.clone(), (**plan).clone());
        self.processes.insert(child, self.engine.begin(Origin::Child { command, plan }));
        self.born.push((pid, child));
        if let Some((_, n)) = self.holds.take_if(|(parent, _)| *parent == pid) {
            let (how, at) = (Disturbed::Stopped, Count::Fixed(n));
            let disturbance = Disturbance { how, at, between: true, seen: 0, counted: None };
            self.disturbances.insert(child, disturbance);
        }
    }

    fn fork(&mut self, pid: Pid, child: Pid) -> Outcome<()> {
        let process = &self.processes[&pid];
        let double = self.engine.double(process);
        let double = double.map_err(|error| Failure::new("diverged", error.to_string()))?;
        self.processes.insert(child, double);
        self.born.push((pid, child));
        self.answer(pid, Response::Forked(Ok(Some(child))))?;
        self.answer(child, Response::Forked(Ok(None)))
    }
}
