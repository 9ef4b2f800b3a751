//! Faults one after the other along a schedule, on live processes.
//!
//! Base schedules are drawn from a seed, with kills in them and without failing calls, and judged
//! themselves first. Then at each step of each, one after the other: whoever is to make it is killed; the call fails with each error once, not
//! done and done; it fails for ever after, as on a disk that stays full: from there on every call of
//! that process fails that can; and, if there is an adversary, he plays each of his tricks. What is left of the base follows as far as it is possible, then whoever
//! was started first goes first; and at the end everybody is killed and the last sweep, which meets no
//! failing call, is judged.
//!
//! Single failures at any moment are the exhaustive search's business, too. What it cannot have is an error
//! that stays: nobody may loop on it (L2), take it for a proof (S3), or leave what no sweep removes (L1).
//!
//! Invariant: the cases are a function of setup and seed; each is a schedule like any other, which can be
//! saved and replayed.

use std::collections::BTreeSet;
use std::fmt;

use mortmain::sys::{Errno, Pid};

use super::causes::Causes;
use super::choice::{Aim, Choice};
use super::exhaust::Counterexample;
use super::machine::{Failure, Machine, State};
use super::sample::{counterexample, lengths_of};
use super::shrink::shrink;
use super::strategy::{Scheduler, Strategy};
use super::{Budget, Case, Setup};
use crate::judge::Who;
use crate::simulated::{Engine, Live};
use crate::world::Trick;

/// More failing calls than all processes of a run can make: any number.
pub const FOR_EVER: u32 = 1_000_000;

/// The errors: of the disk, of the process's own limits, of permissions, and one that nobody expects.
const ERRNOS: [Errno; 6] =
    [Errno::EIO, Errno::ENOSPC, Errno::EMFILE, Errno::ENOMEM, Errno::EACCES, Errno::ESTALE];

/// What strikes at a step.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    Once { errno: Errno, done: bool },
    ForEver { errno: Errno },
    Trick { aim: Aim, trick: Trick },
}

/// The case that the runs of a series are of: what one of them finds is saved with it.
#[must_use]
pub fn series_case(case: Case) -> Case {
    // One kill and one trick more than in the base, for the one that strikes.
    let tricks = if case.tricks > 0 { case.tricks + 1 } else { 0 };
    Case { failures: FOR_EVER, kills: case.kills + 1, tricks, ..case }
}

/// What a series has done.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SeriesCounts {
    /// Base schedules.
    pub bases: u64,
    /// Steps of them at which something struck.
    pub positions: u64,
    /// Kills that struck.
    pub kills: u64,
    /// Calls that failed once.
    pub once: u64,
    /// Processes whose calls failed for ever.
    pub for_ever: u64,
    /// Tricks that were played.
    pub tricks: u64,
    /// Runs in which a claim was in use at some moment: S1 was at stake in so many.
    pub in_use: u64,
    /// What failed: each program with each kind of call, in words.
    pub failed: BTreeSet<String>,
}

impl SeriesCounts {
    /// Cases of all kinds.
    #[must_use]
    pub fn cases(&self) -> u64 {
        self.kills + self.once + self.for_ever + self.tricks
    }
}

impl fmt::Display for SeriesCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SeriesCounts { bases, positions, kills, once, for_ever, tricks, in_use, failed } = self;
        write!(
            f,
            "bases={bases} positions={positions} kills={kills} once={once} for-ever={for_ever} \
             tricks={tricks} in-use={in_use} calls={}",
            failed.len()
        )
    }
}

/// What a series has shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Struck {
    /// A case that ends badly; none before it did.
    Found(Box<Counterexample>),
    /// None does.
    Nothing,
    /// Whoever watched has ended it.
    Ended,
}

/// Strikes at every step of so many base schedules of a case. `go_on` is asked before each base, and
/// ends it with its first no. What is found is of the [`series_case`].
pub fn series(
    case: Case,
    seed: u64,
    bases: u64,
    go_on: &mut dyn FnMut(&SeriesCounts) -> bool,
) -> (Struck, SeriesCounts) {
    let mut first = None;
    let (whole, counts) = strike_all(case, seed, bases, &mut |counts, found| match found {
        None => go_on(counts),
        Some(found) => {
            first = Some(found);
            false
        }
    });
    let struck = match first {
        Some(found) => Struck::Found(found),
        None if whole => Struck::Nothing,
        None => Struck::Ended,
    };
    (struck, counts)
}

/// The same, but it goes on after a finding: all of them, made short, by their causes; and whether it
/// came to its end. `go_on` is asked before each base and with each finding.
pub fn series_causes(
    case: Case,
    seed: u64,
    bases: u64,
    go_on: &mut dyn FnMut(&SeriesCounts) -> bool,
) -> (Causes, bool, SeriesCounts) {
    let struck = series_case(case);
    let setup = struck.setup();
    let mut causes = Causes::default();
    let (whole, counts) = strike_all(case, seed, bases, &mut |counts, found| {
        if let Some(found) = found {
            causes.add(struck, shrink(&setup, &found).found);
        }
        go_on(counts)
    });
    (causes, whole, counts)
}

/// Strikes everywhere. `watch` is asked before each base, and told of each finding; its first no is the
/// end. Whether there was none.
fn strike_all(
    case: Case,
    seed: u64,
    bases: u64,
    watch: &mut dyn FnMut(&SeriesCounts, Option<Box<Counterexample>>) -> bool,
) -> (bool, SeriesCounts) {
    let setup = &series_case(case).setup();
    let strategy = Strategy::Sticky;
    let budget = Budget { failures: 0, ..case.budget() };
    let lengths = lengths_of(setup, strategy, budget);
    let mut counts = SeriesCounts::default();
    for iteration in 0..bases {
        if !watch(&counts, None) {
            return (false, counts);
        }
        counts.bases += 1;
        let scheduler = Scheduler::new(budget, strategy, (seed, iteration), lengths);
        let base = match base(setup, scheduler) {
            Ok(base) => base,
            Err(found) => match watch(&counts, Some(found)) {
                true => continue,
                false => return (false, counts),
            },
        };
        for (at, position) in base.iter().enumerate() {
            for fault in position.faults() {
                counts.count(position, fault);
                if let Err(found) = strike(setup, &base, at, fault, &mut counts)
                    && !watch(&counts, Some(found))
                {
                    return (false, counts);
                }
            }
        }
    }
    (true, counts)
}

impl SeriesCounts {
    fn count(&mut self, position: &Position, fault: Fault) {
        match fault {
            Fault::Kill => {
                self.positions += 1;
                self.kills += 1;
                return;
            }
            Fault::Trick { .. } => {
                self.tricks += 1;
                return;
            }
            Fault::Once { .. } => self.once += 1,
            Fault::ForEver { .. } => self.for_ever += 1,
        }
        self.failed.insert(position.words.clone());
    }
}

/// One choice of a base, and what could strike there.
#[derive(Debug)]
struct Position {
    choice: Choice,
    /// The program and its kind of call.
    words: String,
    fails: bool,
    fails_done: bool,
    tricks: Vec<Choice>,
}

impl Position {
    fn new(
        machine: &Machine<'_, Live<'_>>,
        state: &mut State<<Live<'_> as Engine>::Process>,
        choice: Choice,
    ) -> Position {
        let label = machine.label(state, choice);
        let word = label.split(' ').next().unwrap_or_default();
        let (program, fails, fails_done) = match choice {
            Choice::Step(pid) => (
                Who::new(&state.world, pid).program,
                machine.can_fail(state, pid, false),
                machine.can_fail(state, pid, true),
            ),
            _ => ("", false, false),
        };
        let tricks = match (choice, machine.request_of(state, choice)) {
            (Choice::Step(pid), Some(request)) => machine.tricks(state, pid, request),
            _ => Vec::new(),
        };
        Position { choice, words: format!("{program}: {word}"), fails, fails_done, tricks }
    }

    fn faults(&self) -> Vec<Fault> {
        if !matches!(self.choice, Choice::Step(_)) {
            return Vec::new();
        }
        let mut faults = vec![Fault::Kill];
        for errno in ERRNOS {
            faults.extend(self.fails.then_some(Fault::Once { errno, done: false }));
            faults.extend(self.fails_done.then_some(Fault::Once { errno, done: true }));
            faults.extend(self.fails.then_some(Fault::ForEver { errno }));
        }
        faults.extend(self.tricks.iter().filter_map(|choice| match *choice {
            Choice::Trick { aim, trick, .. } => Some(Fault::Trick { aim, trick }),
            _ => None,
        }));
        faults
    }
}

fn found(setup: &Setup, schedule: Vec<Choice>, failure: Failure) -> Box<Counterexample> {
    Box::new(counterexample(setup, schedule, failure))
}

/// The choices of a run without its last sweep, if it ends well.
fn base(setup: &Setup, mut scheduler: Scheduler) -> Result<Vec<Position>, Box<Counterexample>> {
    let mut machine = Machine::new(setup, Live::new(&setup.programs));
    let mut state = machine.begin().map_err(|failure| found(setup, Vec::new(), failure))?;
    let (mut base, mut schedule, mut choices) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        machine.choices(&state, &mut choices);
        let choice = scheduler.next(&choices);
        schedule.push(choice);
        if choice != Choice::Recover {
            base.push(Position::new(&machine, &mut state, choice));
        }
        if let Err(failure) = machine.take(&mut state, choice) {
            return Err(found(setup, schedule, failure));
        }
        if choice == Choice::Recover {
            return Ok(base);
        }
    }
}

/// A run that is struck.
struct Run<'s> {
    machine: Machine<'s, Live<'s>>,
    state: State<<Live<'s> as Engine>::Process>,
    schedule: Vec<Choice>,
    /// Whose calls fail from now on.
    failing: Option<(Pid, Errno)>,
    in_use: bool,
}

impl Run<'_> {
    fn take(&mut self, choice: Choice) -> Result<(), Failure> {
        let choice = match (choice, self.failing) {
            (Choice::Step(pid), Some((failing, errno)))
                if pid == failing && self.machine.can_fail(&self.state, pid, false) =>
            {
                Choice::Fail { pid, errno, done: false }
            }
            _ => choice,
        };
        self.schedule.push(choice);
        self.machine.take(&mut self.state, choice)?;
        self.in_use |= self.state.world.in_use();
        Ok(())
    }

    /// What is left of the base, as far as it goes, and then everybody in order.
    fn go_on(&mut self, rest: &[Position]) -> Result<(), Failure> {
        for Position { choice, .. } in rest {
            if self.machine.can(&self.state, *choice) {
                self.take(*choice)?;
            }
        }
        let mut choices = Vec::new();
        while let Some(step) = self.machine.first_step(&self.state, &mut choices) {
            self.take(step)?;
        }
        // The last sweep meets no failing call.
        self.failing = None;
        self.take(Choice::Recover)
    }
}

/// Runs a base up to one of its steps, strikes there, and goes on to the end.
fn strike(
    setup: &Setup,
    base: &[Position],
    at: usize,
    fault: Fault,
    counts: &mut SeriesCounts,
) -> Result<(), Box<Counterexample>> {
    let mut machine = Machine::new(setup, Live::new(&setup.programs));
    let state = machine.begin().map_err(|failure| found(setup, Vec::new(), failure))?;
    let mut run = Run { machine, state, schedule: Vec::new(), failing: None, in_use: false };
    let ended = run.up_to(base, at, fault).and_then(|()| run.go_on(&base[at + 1..]));
    counts.in_use += u64::from(run.in_use);
    ended.map_err(|failure| found(setup, run.schedule, failure))
}

impl Run<'_> {
    fn up_to(&mut self, base: &[Position], at: usize, fault: Fault) -> Result<(), Failure> {
        for Position { choice, .. } in &base[..at] {
            self.take(*choice)?;
        }
        let Choice::Step(pid) = base[at].choice else {
            unreachable!("nothing strikes at what is no step");
        };
        match fault {
            Fault::Kill => self.take(Choice::Kill(pid)),
            Fault::Once { errno, done } => self.take(Choice::Fail { pid, errno, done }),
            Fault::ForEver { errno } => {
                self.failing = Some((pid, errno));
                self.take(Choice::Step(pid))
            }
            Fault::Trick { aim, trick } => {
                self.take(Choice::Trick { pid, aim, trick })?;
                self.take(Choice::Step(pid))
            }
        }
    }
}
