//! Many schedules on live processes, each drawn from a seed.
//!
//! Nothing is remembered from one run to the next, so there is no bound on what is explored, and no
//! proof either. What is found is a schedule like any other: it is saved, read and replayed as those of
//! the exhaustive search are, which finds a shorter one where it can.
//!
//! Invariant: a run is a function of setup, strategy, seed and iteration. Runs are told in order of
//! their iterations and up to the first that finds something, whatever the threads do; so the same seed
//! gives the same findings, counts and digest with any number of them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use super::budget::Budget;
use super::causes::Causes;
use super::choice::Choice;
use super::exhaust::Counterexample;
use super::machine::{Failure, Machine};
use super::replay::replay;
use super::shrink::shrink;
use super::strategy::{Lengths, Scheduler, Strategy};
use super::{Case, Setup};
use crate::simulated::Live;
use crate::world::Fingerprint;

/// Runs that a thread makes before it tells of them.
const CHUNK: u64 = 64;
/// Runs by which the length of runs is found out.
const PROBES: u64 = 64;
/// Between two questions whether to go on, while nothing comes.
const ASKED_EVERY: Duration = Duration::from_millis(100);

/// What is sampled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sampling {
    /// Who goes next.
    pub strategy: Strategy,
    /// What everything is drawn from, with the iteration.
    pub seed: u64,
    /// Which iterations.
    pub iterations: Range<u64>,
    /// How many threads share the work; at least one works.
    pub threads: usize,
    /// Whether half of the runs end at some moment, as the strategies have it; otherwise each goes on
    /// for as long as anybody does.
    pub early_ends: bool,
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SampleCounts {
    /// Runs.
    pub runs: u64,
    /// Choices taken in them.
    pub choices: u64,
    /// Choices after which a claim was in use: S1 was evaluated so often.
    pub in_use: u64,
    /// Times that everybody was killed and the last sweep judged: L1 was evaluated so often.
    pub recoveries: u64,
    /// Kills.
    pub kills: u64,
    /// Calls that failed.
    pub failures: u64,
    /// Times that time passed.
    pub waits: u64,
    /// Tricks of the adversary.
    pub tricks: u64,
    /// Kills of a process with all that it has started.
    pub trees: u64,
    /// Strangers that got the number of a process.
    pub strangers: u64,
    /// Directories that were read in another order.
    pub orders: u64,
    /// Stands for all schedules, in order.
    pub digest: Fingerprint,
}

impl fmt::Display for SampleCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SampleCounts { runs, choices, in_use, recoveries, .. } = self;
        let SampleCounts { kills, failures, waits, tricks, digest, .. } = self;
        let SampleCounts { trees, strangers, orders, .. } = self;
        write!(
            f,
            "runs={runs} choices={choices} in-use={in_use} recoveries={recoveries} kills={kills} \
             failures={failures} waits={waits} tricks={tricks} trees={trees} strangers={strangers} \
             orders={orders} digest={:016x}",
            (digest.0 >> 64) as u64
        )
    }
}

impl SampleCounts {
    /// Both, one after the other.
    fn then(self, other: &SampleCounts) -> SampleCounts {
        SampleCounts {
            runs: self.runs + other.runs,
            choices: self.choices + other.choices,
            in_use: self.in_use + other.in_use,
            recoveries: self.recoveries + other.recoveries,
            kills: self.kills + other.kills,
            failures: self.failures + other.failures,
            waits: self.waits + other.waits,
            tricks: self.tricks + other.tricks,
            trees: self.trees + other.trees,
            strangers: self.strangers + other.strangers,
            orders: self.orders + other.orders,
            digest: Fingerprint::of(&(self.digest, other.digest)),
        }
    }

    fn count(&mut self, choice: Choice) {
        self.choices += 1;
        match choice {
            Choice::Step(_) => {}
            Choice::Fail { .. } => self.failures += 1,
            Choice::Kill(_) => self.kills += 1,
            Choice::Wait => self.waits += 1,
            Choice::Trick { .. } => self.tricks += 1,
            Choice::KillTree(_) => self.trees += 1,
            Choice::Stranger(_) => self.strangers += 1,
            Choice::Order { .. } => self.orders += 1,
            Choice::Recover => self.recoveries += 1,
        }
    }
}

/// What sampling has shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sampled {
    /// A run that ends badly; none before it did.
    Found {
        /// Which.
        iteration: u64,
        /// The run.
        found: Box<Counterexample>,
    },
    /// None of the runs ends badly, which proves nothing of others.
    Nothing,
    /// Whoever watched has ended it; up to there nothing was found.
    Ended,
}

/// One run.
#[derive(Debug)]
struct Run {
    schedule: Vec<Choice>,
    failure: Option<Failure>,
    counts: SampleCounts,
}

/// Samples a setup. `go_on` is asked now and then, and ends it with its first no.
pub fn sample(
    setup: &Setup,
    sampling: &Sampling,
    go_on: &mut dyn FnMut(&SampleCounts) -> bool,
) -> (Sampled, SampleCounts) {
    let mut first = None;
    let (whole, counts) =
        draw(setup, sampling, Findings::EndIt, &mut |counts, found| match found {
            None => go_on(counts),
            Some(found) => {
                first = Some(found);
                false
            }
        });
    let sampled = match first {
        Some(Found { iteration, run }) => Sampled::Found { iteration, found: Box::new(run) },
        None if whole => Sampled::Nothing,
        None => Sampled::Ended,
    };
    (sampled, counts)
}

/// The same, but it goes on after a finding: all of them, made short, by their causes; and whether it
/// came to its end. `go_on` is asked now and then, and with each finding.
pub fn sample_causes(
    case: Case,
    sampling: &Sampling,
    go_on: &mut dyn FnMut(&SampleCounts) -> bool,
) -> (Causes, bool, SampleCounts) {
    let mut causes = Causes::default();
    let setup = case.setup();
    let (whole, counts) = draw(&setup, sampling, Findings::AreMadeShort, &mut |counts, found| {
        if let Some(Found { run, .. }) = found {
            causes.add(case, run);
        }
        go_on(counts)
    });
    (causes, whole, counts)
}

/// What a finding does to the drawing of more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Findings {
    /// The first is the last.
    EndIt,
    /// It goes on, and makes each of them short.
    AreMadeShort,
}

/// A run that ends badly.
#[derive(Debug)]
struct Found {
    iteration: u64,
    run: Counterexample,
}

/// Draws all runs. `watch` is asked now and then, and told of each finding, in order; its first no is
/// the end. Whether there was none.
fn draw(
    setup: &Setup,
    sampling: &Sampling,
    findings: Findings,
    watch: &mut dyn FnMut(&SampleCounts, Option<Found>) -> bool,
) -> (bool, SampleCounts) {
    let lengths = lengths_of(setup, sampling.strategy, setup.budget);
    let work = Work {
        setup,
        sampling,
        findings,
        lengths,
        next: AtomicU64::new(0),
        found_in: AtomicU64::new(u64::MAX),
        stopped: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        let (tell, told) = channel();
        for _ in 0..sampling.threads.max(1) {
            let tell = tell.clone();
            let work = &work;
            scope.spawn(move || work.run_chunks(&tell));
        }
        drop(tell);
        let mut counts = SampleCounts::default();
        let mut early = BTreeMap::new();
        let mut wanted = 0;
        let whole = 'told: loop {
            let chunk: Chunk = match told.recv_timeout(ASKED_EVERY) {
                Ok(chunk) => chunk,
                Err(RecvTimeoutError::Timeout) if watch(&counts, None) => continue,
                Err(RecvTimeoutError::Timeout) => break false,
                Err(RecvTimeoutError::Disconnected) => break true,
            };
            early.insert(chunk.number, chunk);
            while let Some(chunk) = early.remove(&wanted) {
                wanted += 1;
                counts = counts.then(&chunk.counts);
                for found in chunk.found {
                    if !watch(&counts, Some(found)) {
                        break 'told false;
                    }
                }
            }
            if !watch(&counts, None) {
                break false;
            }
        };
        work.stopped.store(true, Ordering::Relaxed);
        (whole, counts)
    })
}

/// What the threads share.
struct Work<'s> {
    setup: &'s Setup,
    sampling: &'s Sampling,
    findings: Findings,
    lengths: Lengths,
    /// The next chunk that nobody has begun.
    next: AtomicU64,
    /// The first chunk in which something was found that ends it.
    found_in: AtomicU64,
    stopped: AtomicBool,
}

/// Some runs in a row.
struct Chunk {
    number: u64,
    counts: SampleCounts,
    /// In order.
    found: Vec<Found>,
}

impl Work<'_> {
    fn run_chunks(&self, tell: &Sender<Chunk>) {
        let Range { start, end } = self.sampling.iterations;
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let from = start.saturating_add(number.saturating_mul(CHUNK));
            let done = from >= end || number > self.found_in.load(Ordering::Relaxed);
            if done || self.stopped.load(Ordering::Relaxed) {
                return;
            }
            let Some(chunk) = self.chunk(number, from..end.min(from.saturating_add(CHUNK))) else {
                return;
            };
            if self.findings == Findings::EndIt && !chunk.found.is_empty() {
                self.found_in.fetch_min(number, Ordering::Relaxed);
            }
            // Whoever does not listen any more does not want to know.
            if tell.send(chunk).is_err() {
                return;
            }
        }
    }

    /// `None` when it was stopped on the way.
    fn chunk(&self, number: u64, iterations: Range<u64>) -> Option<Chunk> {
        let mut counts = SampleCounts::default();
        let mut all = Vec::new();
        for iteration in iterations {
            if self.stopped.load(Ordering::Relaxed) {
                return None;
            }
            let of = (self.sampling.seed, iteration);
            let strategy = self.sampling.strategy;
            let mut scheduler = Scheduler::new(self.setup.budget, strategy, of, self.lengths);
            if !self.sampling.early_ends {
                scheduler = scheduler.without_an_end();
            }
            let run = run(self.setup, scheduler);
            counts = counts.then(&run.counts);
            let Some(failure) = run.failure else { continue };
            let found = counterexample(self.setup, run.schedule, failure);
            match self.findings {
                Findings::EndIt => {
                    let found = vec![Found { iteration, run: found }];
                    return Some(Chunk { number, counts, found });
                }
                Findings::AreMadeShort => {
                    all.push(Found { iteration, run: shrink(self.setup, &found).found });
                }
            }
        }
        Some(Chunk { number, counts, found: all })
    }
}

/// How many choices runs take: one in which whoever was started first goes first and no fault strikes,
/// and the longest of some that are drawn like those to come and end by themselves.
pub(super) fn lengths_of(setup: &Setup, strategy: Strategy, budget: Budget) -> Lengths {
    let undisturbed = undisturbed_length_of(setup);
    let mut longest = undisturbed;
    for iteration in 0..PROBES {
        let lengths = Lengths { undisturbed, longest };
        let scheduler = Scheduler::new(budget, strategy, (0, iteration), lengths).without_an_end();
        // OK because a process makes a bounded number of calls.
        longest = longest.max(run(setup, scheduler).schedule.len() as u32);
    }
    Lengths { undisturbed, longest }
}

fn undisturbed_length_of(setup: &Setup) -> u32 {
    let mut machine = Machine::new(setup, Live::new(&setup.programs));
    let Ok(mut state) = machine.begin() else { return 1 };
    let mut choices = Vec::new();
    let mut length = 0;
    loop {
        let step = machine.first_step(&state, &mut choices);
        match step.map(|step| machine.take(&mut state, step)) {
            Some(Ok(())) => length += 1,
            // A run that fails even so is found by the first iteration.
            Some(Err(_)) | None => return length,
        }
    }
}

fn run(setup: &Setup, mut scheduler: Scheduler) -> Run {
    let mut machine = Machine::new(setup, Live::new(&setup.programs));
    let mut schedule = Vec::new();
    let mut counts = SampleCounts { runs: 1, ..SampleCounts::default() };
    let mut choices = Vec::new();
    let mut failure = None;
    match machine.begin() {
        Err(failed) => failure = Some(failed),
        Ok(mut state) => loop {
            machine.choices(&state, &mut choices);
            let choice = scheduler.next(&choices);
            schedule.push(choice);
            counts.count(choice);
            if let Err(failed) = machine.take(&mut state, choice) {
                failure = Some(failed);
                break;
            }
            if choice == Choice::Recover {
                break;
            }
            counts.in_use += u64::from(state.world.in_use());
        },
    }
    counts.digest = Fingerprint::of(&schedule);
    Run { schedule, failure, counts }
}

/// The run once more, with what happens in it.
pub(super) fn counterexample(
    setup: &Setup,
    schedule: Vec<Choice>,
    failure: Failure,
) -> Counterexample {
    // OK because it was just taken, and whatever it depends on is in the setup.
    match replay(setup, &schedule) {
        Ok(replayed) => Counterexample { failure, schedule, timeline: replayed.timeline },
        Err(error) => unreachable!("a run of a moment ago cannot be repeated: {error}"),
    }
}
