//! One state of a world with its processes, and what a choice makes of it.
//!
//! The same code moves states for every explorer and every engine, so that what
//! one of them finds is what another one replays.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use mortmain::sys::{Call, ChildPlan, Errno, Pid, Reply};

use super::choice::{Choice, arranged, can_fail, can_fail_done, other_orders};
use super::{Budget, Setup, WAIT_SECONDS};
use crate::judge::{self, Property, Violation, Who};
use crate::simulated::{Diverged, Engine, Origin};
use crate::timeline::{Called, Event, EventKind, SIGKILL};
use crate::world::request::{ChildCall, Request, Response};
use crate::world::{Effect, World};

/// Why a run stops before its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// A property does not hold.
    Violation(Violation),
    /// A program is not deterministic.
    Diverged(Diverged),
    /// Who goes along refuses the step, for this reason.
    Refused(String),
}

impl Failure {
    /// The property that does not hold, in a word.
    #[must_use]
    pub fn property(&self) -> &'static str {
        match self {
            Failure::Violation(violation) => violation.property(),
            Failure::Diverged(_) => "diverged",
            Failure::Refused(_) => "refused",
        }
    }
}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Failure {
        Failure::Violation(violation)
    }
}

impl From<Diverged> for Failure {
    fn from(diverged: Diverged) -> Failure {
        Failure::Diverged(diverged)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Violation(violation) => violation.fmt(f),
            Failure::Diverged(diverged) => diverged.fmt(f),
            Failure::Refused(why) => f.write_str(why),
        }
    }
}

/// A world with its processes.
#[derive(Clone, Debug)]
pub(super) struct State<P> {
    pub(super) world: World,
    /// Those that live, in order.
    pub(super) processes: Vec<(Pid, P)>,
    pub(super) left: Budget,
    /// Numbers of processes that have ended, while strangers may still get them.
    pub(super) gone: BTreeSet<Pid>,
    /// Those that have come. They live on until the explorer is done.
    pub(super) strangers: BTreeSet<Pid>,
}

impl<P> State<P> {
    fn process(&mut self, pid: Pid) -> Option<&mut P> {
        let at = self.processes.binary_search_by_key(&pid, |(other, _)| *other).ok()?;
        Some(&mut self.processes[at].1)
    }

    fn put(&mut self, pid: Pid, process: P) {
        let at = self.processes.partition_point(|(other, _)| *other < pid);
        self.processes.insert(at, (pid, process));
    }

    /// Forgets the processes that do not live any more, but not their numbers.
    fn bury(&mut self) {
        let world = &self.world;
        self.gone.extend(
            self.processes.extract_if(.., |(pid, _)| !world.lives(*pid)).map(|(pid, _)| pid),
        );
    }
}

/// Moves states.
#[derive(Debug)]
pub(super) struct Machine<'s, E> {
    pub(super) setup: &'s Setup,
    pub(super) engine: E,
    /// What happened, if somebody wants to know.
    pub(super) events: Option<Vec<Event>>,
}

impl<'s, E: Engine> Machine<'s, E> {
    pub(super) fn new(setup: &'s Setup, engine: E) -> Machine<'s, E> {
        Machine { setup, engine, events: None }
    }

    pub(super) fn tell(&mut self, who: Who, kind: EventKind, text: impl FnOnce() -> String) {
        if let Some(events) = &mut self.events {
            events.push(Event { who, kind, text: text(), called: None });
        }
    }

    /// Tells a step and what came of it; of one that failed, how.
    fn tell_step(&mut self, who: Who, request: &Arc<Request>, effect: &Effect, how: Option<&str>) {
        let Some(events) = &mut self.events else { return };
        let (kind, text) = match (effect, how) {
            (_, Some(how)) => (EventKind::Failed, format!("{request}: {how}")),
            (Effect::Answer(response), _) => (EventKind::Step, format!("{request}: {response}")),
            (Effect::Born { child }, _) => {
                (EventKind::Step, format!("{request}: forks process {}", child.0))
            }
            (Effect::Forked { child }, _) => {
                (EventKind::Step, format!("{request}: process {}", child.0))
            }
            (Effect::Image(program), _) => (EventKind::Step, format!("{request}: {program}")),
            (Effect::Ended, _) => (EventKind::Ended, request.to_string()),
        };
        let called = Some(Called { request: request.clone(), effect: effect.clone() });
        events.push(Event { who, kind, text, called });
    }

    /// The state in which everybody has just been started.
    pub(super) fn begin(&mut self) -> Result<State<E::Process>, Failure> {
        let mut state = State {
            world: World::new(self.setup.rules),
            processes: Vec::new(),
            left: self.setup.budget,
            gone: BTreeSet::new(),
            strangers: BTreeSet::new(),
        };
        if self.setup.budget.tricks > 0 {
            state.world.invite_adversary();
        }
        for (pid, program) in self.setup.first_processes() {
            self.start(&mut state, pid, Origin::Program(program))?;
        }
        Ok(state)
    }

    fn start(
        &mut self,
        state: &mut State<E::Process>,
        pid: Pid,
        origin: Origin,
    ) -> Result<(), Failure> {
        if let Origin::Program(program) = &origin {
            state.world.start(pid, *program);
        }
        self.tell(Who::new(&state.world, pid), EventKind::Born, || "starts".into());
        self.enter(state, pid, origin)
    }

    /// Puts a process at the beginning of a program.
    fn enter(
        &mut self,
        state: &mut State<E::Process>,
        pid: Pid,
        origin: Origin,
    ) -> Result<(), Failure> {
        let process = self.engine.begin(origin);
        match state.process(pid) {
            Some(old) => *old = process,
            None => state.put(pid, process),
        }
        self.settle(state, pid)
    }

    /// What could happen next; all but steps only while there are some left, and
    /// after the steps, so that of two ways of the same length the one with fewer of them is met first.
    pub(super) fn choices(&self, state: &State<E::Process>, choices: &mut Vec<Choice>) {
        choices.clear();
        for (pid, process) in &state.processes {
            if state.world.enabled(*pid, self.engine.request(process)) {
                choices.push(Choice::Step(*pid));
            }
        }
        if state.left.failures > 0 {
            for (pid, process) in &state.processes {
                let request = self.engine.request(process);
                if !state.world.enabled(*pid, request) {
                    continue;
                }
                for errno in self.setup.errnos.iter().copied() {
                    let fail = |done| Choice::Fail { pid: *pid, errno, done };
                    choices.extend(can_fail(request).then(|| fail(false)));
                    choices.extend(can_fail_done(request).then(|| fail(true)));
                }
            }
        }
        if state.left.waits > 0 {
            choices.push(Choice::Wait);
        }
        // A stranger is nobody's business, dead or alive.
        let killed = state.processes.iter().map(|(pid, _)| *pid);
        let killed = killed.filter(|pid| !state.strangers.contains(pid));
        if state.left.kills > 0 {
            choices.extend(killed.clone().map(Choice::Kill));
        }
        if state.left.tricks > 0 {
            for (pid, process) in &state.processes {
                let request = self.engine.request(process);
                if state.world.enabled(*pid, request) {
                    choices.extend(self.tricks(state, *pid, request));
                }
            }
        }
        if state.left.trees > 0 {
            let trees = killed.filter(|pid| !state.world.below(*pid).is_empty());
            choices.extend(trees.map(Choice::KillTree));
        }
        if state.left.strangers > 0 && self.setup.stranger.is_some() {
            let free = state.gone.iter().filter(|pid| state.world.is_free(**pid));
            choices.extend(free.map(|pid| Choice::Stranger(*pid)));
        }
        if state.left.orders > 0 {
            for (pid, process) in &state.processes {
                let orders = other_orders(listed(&state.world, *pid, self.engine.request(process)));
                choices.extend((1..=orders).map(|order| Choice::Order { pid: *pid, order }));
            }
        }
    }

    /// The step of whoever was started first, of those who can make one; `choices` is room for all.
    pub(super) fn first_step(
        &self,
        state: &State<E::Process>,
        choices: &mut Vec<Choice>,
    ) -> Option<Choice> {
        self.choices(state, choices);
        choices.iter().copied().find(|choice| matches!(choice, Choice::Step(_)))
    }

    /// Whether a choice could be taken.
    pub(super) fn can(&self, state: &State<E::Process>, choice: Choice) -> bool {
        let mut choices = Vec::new();
        self.choices(state, &mut choices);
        match choice {
            Choice::Recover => true,
            // With any error, also one that no search of the setup would choose.
            Choice::Fail { pid, done, .. } => {
                state.left.failures > 0
                    && choices.contains(&Choice::Step(pid))
                    && self.can_fail(state, pid, done)
            }
            _ => choices.contains(&choice),
        }
    }

    /// Whether the next call of a process may fail, not done or done.
    pub(super) fn can_fail(&self, state: &State<E::Process>, pid: Pid, done: bool) -> bool {
        let request = self.request_of(state, Choice::Step(pid));
        request.is_some_and(if done { can_fail_done } else { can_fail })
    }

    /// What a choice asks for, if it is a step of a process.
    pub(super) fn request_of<'r>(
        &'r self,
        state: &'r State<E::Process>,
        choice: Choice,
    ) -> Option<&'r Request> {
        match choice {
            Choice::Step(pid) | Choice::Fail { pid, .. } | Choice::Order { pid, .. } => {
                self.request(state, pid)
            }
            _ => None,
        }
    }

    /// What a process that lives asks for.
    pub(super) fn request<'r>(
        &'r self,
        state: &'r State<E::Process>,
        pid: Pid,
    ) -> Option<&'r Request> {
        let (_, process) = state.processes.iter().find(|(other, _)| *other == pid)?;
        Some(self.engine.request(process))
    }

    /// What a choice is about to do, in words that say the same in every run; of a trick, what it comes
    /// before.
    pub(super) fn label(&self, state: &State<E::Process>, choice: Choice) -> String {
        let request = match choice {
            Choice::Trick { pid, .. } => self.request(state, pid),
            _ => self.request_of(state, choice),
        };
        request.map_or_else(String::new, Request::to_string)
    }

    /// Takes a choice, which must be possible.
    pub(super) fn take(
        &mut self,
        state: &mut State<E::Process>,
        choice: Choice,
    ) -> Result<(), Failure> {
        if let Some(left) = state.left.of(choice) {
            *left -= 1;
        }
        match choice {
            Choice::Step(pid) => self.step(state, pid, 0),
            Choice::Order { pid, order } => self.step(state, pid, order),
            Choice::Fail { pid, errno, done } => self.fail(state, pid, errno, done),
            Choice::Kill(pid) => {
                let who = Who::new(&state.world, pid);
                self.kill(state, pid);
                self.judge_step(state, who, || SIGKILL.into())
            }
            Choice::KillTree(pid) => {
                let who = Who::new(&state.world, pid);
                let below = state.world.below(pid);
                for pid in [vec![pid], below].concat() {
                    self.kill(state, pid);
                }
                self.judge_step(state, who, || format!("{SIGKILL} to all of its tree"))
            }
            Choice::Stranger(pid) => {
                state.gone.remove(&pid);
                self.forget_numbers(state);
                self.come(state, pid, true)
            }
            Choice::Trick { pid, aim, trick } => {
                self.play(state, pid, aim, trick);
                self.judge_step(state, Who::ADVERSARY, || trick.word().into())
            }
            Choice::Wait => {
                self.pass(state, WAIT_SECONDS);
                Ok(())
            }
            Choice::Recover => self.recover(state),
        }
    }

    /// A stranger begins, with the number of a process that is gone, after it or at the same moment since
    /// another boot.
    fn come(
        &mut self,
        state: &mut State<E::Process>,
        pid: Pid,
        after: bool,
    ) -> Result<(), Failure> {
        // OK because nobody becomes a stranger otherwise.
        let stranger = self.setup.stranger.expect("there is a program for it");
        match after {
            true => state.world.start_again(pid, stranger),
            false => state.world.start(pid, stranger),
        }
        state.strangers.insert(pid);
        let text = || "starts, a stranger with this number".into();
        self.tell(Who::new(&state.world, pid), EventKind::Born, text);
        self.enter(state, pid, Origin::Program(stranger))
    }

    /// Lets time pass.
    fn pass(&mut self, state: &mut State<E::Process>, seconds: u64) {
        if seconds > 0 {
            let text = || format!("{} hours pass", seconds / 3600);
            self.tell(Who::CLOCK, EventKind::Step, text);
            state.world.pass(seconds);
        }
    }

    /// What must be true after every step; S1 and S2 only if they are judged.
    fn judge_step(
        &self,
        state: &State<E::Process>,
        by: Who,
        step: impl Fn() -> String,
    ) -> Result<(), Failure> {
        match judge::after_step(&state.world, by, &step) {
            Some(Violation::InUse { .. }) if !self.setup.judged.counts(Property::S1) => Ok(()),
            Some(Violation::Outside { .. }) if !self.setup.judged.counts(Property::S2) => Ok(()),
            Some(violation) => Err(violation.into()),
            None => self.judge_strangers(state, by, step),
        }
    }

    /// S2 for those who have to do with nobody.
    fn judge_strangers(
        &self,
        state: &State<E::Process>,
        by: Who,
        step: impl Fn() -> String,
    ) -> Result<(), Failure> {
        let dead = state.strangers.iter().find(|pid| !state.world.lives(**pid));
        match dead.filter(|_| self.setup.judged.counts(Property::S2)) {
            Some(pid) => {
                let who = Who { pid: *pid, program: STRANGER };
                Err(Violation::Stranger { by, step: step(), who }.into())
            }
            None => Ok(()),
        }
    }

    fn kill(&mut self, state: &mut State<E::Process>, pid: Pid) {
        self.tell(Who::new(&state.world, pid), EventKind::Killed, || "is killed".into());
        state.world.kill(pid);
        self.forget(state);
    }

    /// Forgets whoever does not live any more, but for the number where a stranger may get it.
    fn forget(&self, state: &mut State<E::Process>) {
        state.bury();
        self.forget_numbers(state);
    }

    /// Forgets who is gone, if nobody can have the number any more.
    fn forget_numbers(&self, state: &mut State<E::Process>) {
        if state.left.strangers == 0 && !self.setup.reboots {
            state.gone.clear();
        }
    }

    /// Forgets whoever does not live any more, and tells of those whom somebody else has ended.
    fn bury(&mut self, state: &mut State<E::Process>) {
        if let Some(events) = &mut self.events {
            for (pid, _) in state.processes.iter().filter(|(pid, _)| !state.world.lives(*pid)) {
                let last = events.iter().rfind(|event| event.who.pid == *pid);
                let Some(last) = last.filter(|last| !last.kind.is_end()) else { continue };
                let (who, text) = (last.who_then(), "is killed".into());
                events.push(Event { who, kind: EventKind::Killed, text, called: None });
            }
        }
        self.forget(state);
    }

    /// A step; of one that reads a directory, with its names in this order.
    fn step(&mut self, state: &mut State<E::Process>, pid: Pid, order: u32) -> Result<(), Failure> {
        let process = state.process(pid).expect("only processes that live are chosen");
        let request = self.engine.request(process).clone();
        let who = Who::new(&state.world, pid);
        let effect = match state.world.exec(pid, &request) {
            Effect::Answer(Response::Reply(Ok(Reply::Entries(entries)))) => {
                let entries = Reply::Entries(arranged(entries, order));
                Effect::Answer(Response::Reply(Ok(entries)))
            }
            effect => effect,
        };
        self.tell_step(who, &request, &effect, None);
        let ended = matches!(effect, Effect::Ended);
        match effect {
            Effect::Answer(response) => {
                // It may have killed itself.
                if state.world.lives(pid) {
                    self.answer(state, pid, response)?;
                }
            }
            Effect::Born { child } => {
                let Request::Spawn { command, plan } = &*request else {
                    unreachable!("only a spawn has a child that it waits for");
                };
                let (command, plan) = (command.clone(), ChildPlan::clone(plan));
                let origin = Origin::Child { command, plan };
                self.start(state, child, origin)?;
            }
            Effect::Forked { child } => {
                let process = state.process(pid).expect("it has just made a step");
                let second = self.engine.double(process)?;
                state.put(child, second);
                self.tell(Who::new(&state.world, child), EventKind::Born, || "starts".into());
                self.answer(state, child, Response::Forked(Ok(None)))?;
                self.answer(state, pid, Response::Forked(Ok(Some(child))))?;
            }
            Effect::Image(program) => {
                self.enter(state, pid, Origin::Program(program))?;
            }
            Effect::Ended => {}
        }
        // The step may have ended its own process, or others.
        if ended || matches!(&*request, Request::Call(Call::KillGroup { .. })) {
            self.bury(state);
        }
        self.judge_step(state, who, || request.to_string())
    }

    /// A step that fails, done or not.
    fn fail(
        &mut self,
        state: &mut State<E::Process>,
        pid: Pid,
        errno: Errno,
        done: bool,
    ) -> Result<(), Failure> {
        let process = state.process(pid).expect("only processes that live are chosen");
        let request = self.engine.request(process).clone();
        let who = Who::new(&state.world, pid);
        let response = match &*request {
            Request::Child(ChildCall::Identity) => Response::Identity(Err(errno)),
            Request::Child(_) => Response::Done(Err(errno)),
            _ => Response::Reply(Err(errno)),
        };
        // Whatever it answers when it is done, nobody hears it.
        let effect = match done {
            true => state.world.exec(pid, &request),
            false => Effect::Answer(response.clone()),
        };
        let how = if done { "is done, and fails" } else { "fails" };
        let how = format!("{how}: {}", errno.symbol().unwrap_or("?"));
        self.tell_step(who, &request, &effect, Some(&how));
        self.bury(state);
        self.judge_step(state, who, || request.to_string())?;
        self.answer(state, pid, response)
    }

    fn answer(
        &mut self,
        state: &mut State<E::Process>,
        pid: Pid,
        response: Response,
    ) -> Result<(), Failure> {
        let process = state.process(pid).expect("only processes that live are answered");
        self.engine.answer(process, response)?;
        self.settle(state, pid)
    }

    /// Does what needs no moment of its own: marks, and, if the setup wants it
    /// so, requests that concern nobody else. Looks at what the process asks
    /// for after them.
    fn settle(&mut self, state: &mut State<E::Process>, pid: Pid) -> Result<(), Failure> {
        loop {
            let process = state.process(pid).expect("it has just been answered");
            let request = self.engine.request(process).clone();
            let calls = self.engine.requests(process);
            self.check(&state.world, pid, &request, calls)?;
            // What can fail needs a moment of its own.
            let fails = state.left.failures > 0 && can_fail(&request);
            let private = self.setup.merge && !fails && state.world.is_private(pid, &request);
            if !private && !request.is_mark() {
                return Ok(());
            }
            let effect = state.world.exec(pid, &request);
            if !request.is_silent() {
                self.tell_step(Who::new(&state.world, pid), &request, &effect, None);
            }
            let Effect::Answer(response) = effect else {
                unreachable!("what concerns nobody else is answered at once");
            };
            let process = state.process(pid).expect("it is still there");
            self.engine.answer(process, response)?;
        }
    }

    /// Looks at what a process asks for: it must not have panicked, nor go on
    /// for ever (L2).
    fn check(&self, world: &World, pid: Pid, request: &Request, calls: u32) -> Result<(), Failure> {
        let who = || Who::new(world, pid);
        if let Request::Panicked { message } = request {
            return Err(Violation::Panicked { who: who(), message: message.clone() }.into());
        }
        let calls_max = self.setup.calls_max;
        if calls > calls_max {
            return Err(Violation::TooLong { who: who(), calls_max }.into());
        }
        Ok(())
    }

    /// Kills everybody but the strangers, runs the last sweep, and looks at what is left.
    fn recover(&mut self, state: &mut State<E::Process>) -> Result<(), Failure> {
        for pid in state.world.living().collect::<Vec<_>>() {
            if !state.strangers.contains(&pid) {
                self.kill(state, pid);
            }
        }
        if self.setup.reboots {
            self.reboot(state)?;
        }
        self.pass(state, self.setup.rest_seconds);
        let last = self.setup.last_process();
        self.start(state, last, Origin::Program(self.setup.last))?;
        while let Some(process) = state.process(last) {
            let request = self.engine.request(process).clone();
            if !state.world.enabled(last, &request) {
                if !self.setup.judged.counts(Property::L2) {
                    return Ok(());
                }
                let who = Who::new(&state.world, last);
                return Err(Violation::Blocked { who, step: request.to_string() }.into());
            }
            self.step(state, last, 0)?;
        }
        match judge::left(&state.world) {
            Some(violation) if self.setup.judged.counts(Property::L1) => Err(violation.into()),
            _ => Ok(()),
        }
    }

    /// The machine starts anew. All that were gone have their like.
    fn reboot(&mut self, state: &mut State<E::Process>) -> Result<(), Failure> {
        let before = std::mem::take(&mut state.strangers);
        state.world.reboot();
        state.processes.clear();
        self.tell(Who::MACHINE, EventKind::Step, || "starts anew".into());
        for pid in std::mem::take(&mut state.gone).into_iter().chain(before) {
            self.come(state, pid, false)?;
        }
        Ok(())
    }
}

/// What a stranger is called.
pub(super) const STRANGER: &str = "stranger";

/// How many names a process is about to read.
fn listed(world: &World, pid: Pid, request: &Request) -> usize {
    if !matches!(request, Request::Call(Call::ReadDir { .. })) {
        return 0;
    }
    match world.clone().exec(pid, request) {
        Effect::Answer(Response::Reply(Ok(Reply::Entries(entries)))) => entries.len(),
        _ => 0,
    }
}
