//! Makes a run that was drawn as short as it goes.
//!
//! Steps, and whatever else happens, are taken away, and what a process does in parts is done in
//! one; whatever is left over is run again, and kept if it breaks the same property and is simpler.
//! Larger parts come first: a fault, all of a process, the second half of what it does. It ends where
//! no choice can be taken away any more, so what it finds is short, but not always the shortest: that is
//! what the exhaustive search is for.
//!
//! Invariants: what comes out is a run of the same setup that breaks the same property, and never
//! longer; it is a function of setup and run.

use std::collections::BTreeSet;

use mortmain::sys::Pid;

use super::Setup;
use super::choice::Choice;
use super::exhaust::Counterexample;
use super::follow::{End, follow, process_of};
use super::machine::Failure;
use super::sample::counterexample;

/// Choices of all runs together after which it gives up: only a run of thousands comes to that.
const CHOICES_MAX: usize = 200_000;

/// A run that was made shorter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shrunk {
    /// The run.
    pub found: Counterexample,
    /// How many choices it had before.
    pub choices_before: usize,
    /// Runs that it took.
    pub executions: u32,
    /// Whether no choice can be taken away any more; otherwise it was given up.
    pub done: bool,
}

/// What makes a schedule simpler than another one, in order of importance: choices, faults, and
/// changes from one process to another.
type Size = (usize, usize, usize);

fn size_of(schedule: &[Choice]) -> Size {
    let faults = schedule.iter().filter(|choice| is_fault(**choice)).count();
    let changes = schedule.windows(2).filter(|pair| process_of(pair[0]) != process_of(pair[1]));
    (schedule.len(), faults, changes.count())
}

fn is_fault(choice: Choice) -> bool {
    !matches!(choice, Choice::Step(_) | Choice::Recover)
}

/// Makes a run shorter. One of a program that does not repeat itself is left as it is.
#[must_use]
pub fn shrink(setup: &Setup, found: &Counterexample) -> Shrunk {
    let choices_before = found.schedule.len();
    let mut shrinker = Shrinker {
        setup,
        property: found.failure.property(),
        best: found.schedule.clone(),
        tried: BTreeSet::new(),
        executions: 0,
        choices_left: CHOICES_MAX,
    };
    while let Failure::Violation(_) = found.failure {
        let before = size_of(&shrinker.best);
        shrinker.faults();
        shrinker.processes();
        shrinker.halves();
        shrinker.parts();
        shrinker.singles();
        if size_of(&shrinker.best) == before || shrinker.choices_left == 0 {
            break;
        }
    }
    let Shrinker { best, executions, choices_left, .. } = shrinker;
    let done = choices_left > 0;
    if best == found.schedule {
        return Shrunk { found: found.clone(), choices_before, executions, done };
    }
    // OK because it was run before it was taken for the best.
    let failure = follow(setup, &best, End::There).failure.expect("it has just failed");
    Shrunk { found: counterexample(setup, best, failure), choices_before, executions, done }
}

struct Shrinker<'s> {
    setup: &'s Setup,
    property: &'static str,
    best: Vec<Choice>,
    /// What was tried and did not do.
    tried: BTreeSet<Vec<Choice>>,
    executions: u32,
    choices_left: usize,
}

impl Shrinker<'_> {
    /// Whether a schedule is simpler and does as well; it is the best from then on.
    fn does(&mut self, schedule: Vec<Choice>) -> bool {
        if size_of(&schedule) >= size_of(&self.best)
            || self.choices_left == 0
            || self.tried.contains(&schedule)
        {
            return false;
        }
        self.executions += 1;
        self.choices_left = self.choices_left.saturating_sub(schedule.len());
        let followed = follow(self.setup, &schedule, End::There);
        let does = followed.breaks(self.property);
        if does {
            self.best = followed.schedule;
        } else {
            self.tried.insert(schedule);
        }
        does
    }

    /// The best without what is at some places.
    fn without(&self, left_out: impl Fn(usize, Choice) -> bool) -> Vec<Choice> {
        let all = self.best.iter().copied().enumerate();
        all.filter(|(at, choice)| !left_out(*at, *choice)).map(|(_, choice)| choice).collect()
    }

    /// Leaves a fault out; what fails may be done well instead.
    fn faults(&mut self) {
        for at in (0..self.best.len()).rev() {
            let Some(fault) = self.best.get(at).copied().filter(|choice| is_fault(*choice)) else {
                continue;
            };
            if self.does(self.without(|other, _| other == at)) {
                continue;
            }
            if let Choice::Fail { pid, .. } | Choice::Order { pid, .. } = fault {
                let mut well = self.best.clone();
                well[at] = Choice::Step(pid);
                self.does(well);
            }
        }
    }

    fn pids(&self) -> BTreeSet<Pid> {
        self.best.iter().filter_map(|choice| process_of(*choice)).collect()
    }

    /// Leaves a process out.
    fn processes(&mut self) {
        for pid in self.pids() {
            self.does(self.without(|_, choice| process_of(choice) == Some(pid)));
        }
    }

    /// Leaves out what a process does in the end: half of it, then a quarter, and so on.
    fn halves(&mut self) {
        for pid in self.pids() {
            let places = |best: &[Choice]| -> Vec<usize> {
                let all = best.iter().enumerate();
                all.filter(|(_, choice)| **choice == Choice::Step(pid)).map(|(at, _)| at).collect()
            };
            let mut part = places(&self.best).len() / 2;
            while part > 0 {
                let steps = places(&self.best);
                let from = steps.len().saturating_sub(part);
                let last = &steps[from..];
                if !self.does(self.without(|at, _| last.contains(&at))) {
                    part /= 2;
                }
                part = part.min(places(&self.best).len());
            }
        }
    }

    /// Where what one process does in a row begins and ends.
    fn rows(&self) -> Vec<(usize, usize)> {
        let mut rows: Vec<(usize, usize)> = Vec::new();
        for at in 0..self.best.len() {
            match rows.last_mut() {
                Some((from, end)) if process_of(self.best[*from]) == process_of(self.best[at]) => {
                    *end = at + 1;
                }
                _ => rows.push((at, at + 1)),
            }
        }
        rows
    }

    /// Leaves out what a process does in a row, or does it together with the row before.
    fn parts(&mut self) {
        let mut part = self.rows().len();
        while part > 0 {
            part -= 1;
            let rows = self.rows();
            let Some((from, end)) = rows.get(part).copied() else { continue };
            if self.does(self.without(|at, _| (from..end).contains(&at))) {
                continue;
            }
            let whose = process_of(self.best[from]);
            let same =
                |row: &&(usize, usize)| whose.is_some() && process_of(self.best[row.0]) == whose;
            let Some((start, to)) = rows[..part].iter().rfind(same).copied() else { continue };
            // It comes after the row before, or that one comes before it.
            let (mut earlier, mut later) = (self.best.clone(), self.best.clone());
            earlier[to..end].rotate_right(end - from);
            later[start..from].rotate_left(to - start);
            if !self.does(earlier) {
                self.does(later);
            }
        }
    }

    /// Leaves each choice out.
    fn singles(&mut self) {
        let mut at = self.best.len();
        while at > 0 {
            at = (at - 1).min(self.best.len().saturating_sub(1));
            self.does(self.without(|other, _| other == at));
        }
    }
}
