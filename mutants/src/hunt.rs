//! The hunt for a mutant: the tests that come by it, one process each, until one fails.
//!
//! First come those that noticed another mutant of the same function, then the quickest.
//!
//! Invariants:
//! * A test that fails passes with nothing changed, and fails again, or it has noticed nothing.
//! * A test that does not end has to end with nothing changed, within the same limit, before that
//!   is believed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::progress::Progress;
use crate::record::Ordered;
use crate::run::{Alone, Killer, limit, patience};
use crate::runtime::Mode;
use crate::state::{Fate, Hang, TestRecord};
use crate::suite::Suite;

/// Loops may go round that many times more often than with nothing changed …
const ROUNDS_FACTOR: u64 = 200;
/// … and so much more.
const ROUNDS_SPARE: u64 = 100_000;

/// What one test has to spare.
const SPARE: Duration = Duration::from_secs(4);

/// What is hunted.
#[derive(Clone, Debug)]
pub(crate) struct Prey {
    /// For people.
    pub(crate) name: String,
    pub(crate) number: u32,
    /// Those of one place are likely to be noticed by the same tests.
    pub(crate) place: (PathBuf, String),
}

/// How it is hunted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The longest limit of one test.
    pub(crate) timeout: Duration,
    /// All tests are run, also when one has noticed.
    pub(crate) matrix: bool,
    /// Tests that usually take longer are left out.
    pub(crate) quick: Option<Duration>,
    /// A test that does not end is not enough.
    pub(crate) strict: bool,
}

pub(crate) struct Hunter<'a> {
    ordered: Ordered<'a>,
    tests: &'a [TestRecord],
    rules: Rules,
    progress: &'a Progress,
    memory: &'a Memory,
    /// What the last test printed that failed.
    log: String,
}

/// What hunters find out about the tests, and tell each other.
#[derive(Debug)]
pub(crate) struct Memory(Mutex<Known>);

#[derive(Debug)]
struct Known {
    /// Tests that passed with nothing changed after they had failed.
    controlled: BTreeSet<usize>,
    /// Tests that did not always do the same.
    unsteady: BTreeSet<usize>,
    /// By file and function, the tests that noticed something there.
    noticed: BTreeMap<(PathBuf, String), BTreeSet<usize>>,
}

impl Memory {
    /// What is known of tests by their records.
    pub(crate) fn of(tests: &[TestRecord]) -> Memory {
        let each = (0..).zip(tests).filter(|(_, test)| !test.steady);
        Memory(Mutex::new(Known {
            controlled: BTreeSet::new(),
            unsteady: each.map(|(index, _)| index).collect(),
            noticed: BTreeMap::new(),
        }))
    }

    /// The names of tests that did not always do the same.
    pub(crate) fn unsteady(&self, tests: &[TestRecord]) -> Vec<String> {
        self.known().unsteady.iter().map(|&index| tests[index].name()).collect()
    }

    /// For a moment: nothing is run meanwhile.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one test has to say about a mutant.
enum Said {
    Failed(Box<Killer>),
    Hung(Hang),
    Passed,
    /// It was too slow, also with nothing changed.
    TooSlow,
    /// It does not always do the same.
    Unsteady,
    Interrupted,
}

impl<'a> Hunter<'a> {
    pub(crate) fn new(
        ordered: Ordered<'a>,
        tests: &'a [TestRecord],
        rules: Rules,
        progress: &'a Progress,
        memory: &'a Memory,
    ) -> Hunter<'a> {
        Hunter { ordered, tests, rules, progress, memory, log: String::new() }
    }

    /// What the last test printed that failed.
    pub(crate) fn log(&self) -> &str {
        &self.log
    }

    /// What becomes of a mutant that is compiled. Nothing if it was interrupted.
    pub(crate) fn hunt(&mut self, prey: &Prey) -> anyhow::Result<Option<Fate>> {
        let Prey { name, number, place } = prey;
        let (mut order, siblings) = self.candidates(*number, place);
        if order.is_empty() {
            return Ok(Some(Fate::NotReached));
        }
        let all = order.len();
        if let Some(quick) = self.rules.quick {
            order.retain(|&index| self.tests[index].seconds <= quick.as_secs_f64());
        }
        let left_out = all - order.len();
        order.sort_by(|&a, &b| {
            let seconds = self.tests[a].seconds.total_cmp(&self.tests[b].seconds);
            siblings.contains(&b).cmp(&siblings.contains(&a)).then(seconds)
        });
        let (mut killers, mut hung, mut slow) = (Vec::new(), None, Vec::new());
        let mut passed = 0;
        for index in order {
            let test = &self.tests[index];
            self.progress.doing(format_args!("{name}: {}", test.test));
            match self.ask(index, *number)? {
                Said::Failed(killer) => {
                    let mut known = self.memory.known();
                    known.noticed.entry(place.clone()).or_default().insert(index);
                    killers.push(*killer);
                }
                Said::Hung(how) => {
                    hung.get_or_insert(Fate::Hung { test: self.tests[index].name(), how });
                }
                Said::Passed => passed += 1,
                Said::TooSlow => slow.push(self.tests[index].name()),
                Said::Unsteady => {}
                Said::Interrupted => return Ok(None),
            }
            let enough = !killers.is_empty() || (hung.is_some() && !self.rules.strict);
            if enough && !self.rules.matrix {
                break;
            }
        }
        Ok(Some(if !killers.is_empty() {
            Fate::Caught { killers }
        } else if let Some(hung) = hung {
            hung
        } else if slow.is_empty() {
            Fate::Missed { tests: passed, left_out }
        } else {
            Fate::Undecided { tests: slow }
        }))
    }

    /// The tests that come by a mutant, and those that noticed another one of the same place.
    fn candidates(&self, number: u32, place: &(PathBuf, String)) -> (Vec<usize>, BTreeSet<usize>) {
        let known = self.memory.known();
        let reached = (0..self.tests.len()).filter(|index| {
            self.tests[*index].reached.contains(&number) && !known.unsteady.contains(index)
        });
        (reached.collect(), known.noticed.get(place).cloned().unwrap_or_default())
    }

    /// Without what was changed a test may wait for what never comes, as long as a loaded machine might
    /// need. So at first it may wait for little more than it takes with nothing changed.
    fn ask(&mut self, index: usize, number: u32) -> anyhow::Result<Said> {
        let usual = Duration::from_secs_f64(self.tests[index].seconds);
        let limit = limit(usual, SPARE, self.rules.timeout);
        let hurried = self.ask_within(Some(patience(usual)), index, number, limit)?;
        let said = match hurried {
            Said::Unsteady | Said::TooSlow => self.ask_within(None, index, number, limit)?,
            said => said,
        };
        if matches!(said, Said::Unsteady) {
            self.memory.known().unsteady.insert(index);
        }
        Ok(said)
    }

    fn ask_within(
        &mut self,
        patience: Option<Duration>,
        index: usize,
        number: u32,
        limit: Duration,
    ) -> anyhow::Result<Said> {
        self.ordered.runner.patience.set(patience);
        let begun = Instant::now();
        let run = self.run(index, Mode::Active(number), limit);
        let waited = patience.is_some_and(|patience| begun.elapsed() >= patience);
        let said = run.and_then(|run| match run {
            (Alone::Passed(_), _) => Ok(Said::Passed),
            (Alone::Interrupted, _) => Ok(Said::Interrupted),
            (_, true) => Ok(Said::Hung(Hang::Rounds)),
            (Alone::Failed(killer, log), false) => {
                self.log = log;
                self.control_failure(index, killer, number, limit, waited)
            }
            (Alone::TimedOut, false) => self.control_time(index, number, limit),
        });
        self.ordered.runner.patience.set(None);
        said
    }

    /// A test failed: it has to pass with nothing changed, which is seen once, or again where it may
    /// have waited too little, and to fail again.
    fn control_failure(
        &mut self,
        index: usize,
        killer: Killer,
        number: u32,
        limit: Duration,
        waited: bool,
    ) -> anyhow::Result<Said> {
        if waited || !self.is_controlled(index) {
            match self.run(index, Mode::Unchanged, limit)?.0 {
                Alone::Passed(_) => {
                    self.memory.known().controlled.insert(index);
                }
                Alone::Interrupted => return Ok(Said::Interrupted),
                Alone::TimedOut => return Ok(Said::TooSlow),
                Alone::Failed(..) => return Ok(Said::Unsteady),
            }
        }
        Ok(match self.run(index, Mode::Active(number), limit)?.0 {
            Alone::Failed(..) => Said::Failed(Box::new(killer)),
            Alone::Interrupted => Said::Interrupted,
            Alone::Passed(_) | Alone::TimedOut => Said::Unsteady,
        })
    }

    fn is_controlled(&self, index: usize) -> bool {
        self.memory.known().controlled.contains(&index)
    }

    /// A test reached its limit: it must not with nothing changed. Where it does, the machine is
    /// busy, and it gets twice the time once.
    fn control_time(&mut self, index: usize, number: u32, limit: Duration) -> anyhow::Result<Said> {
        let longer = limit.saturating_mul(2);
        match self.run(index, Mode::Unchanged, limit)?.0 {
            Alone::Passed(_) => return Ok(Said::Hung(Hang::Time)),
            Alone::Interrupted => return Ok(Said::Interrupted),
            Alone::Failed(..) => return Ok(Said::Unsteady),
            Alone::TimedOut => {}
        }
        match self.run(index, Mode::Active(number), longer)? {
            (Alone::Passed(_), _) => return Ok(Said::Passed),
            (Alone::Interrupted, _) => return Ok(Said::Interrupted),
            (_, true) => return Ok(Said::Hung(Hang::Rounds)),
            (Alone::Failed(killer, log), false) => {
                self.log = log;
                return self.control_failure(index, killer, number, longer, true);
            }
            (Alone::TimedOut, false) => {}
        }
        Ok(match self.run(index, Mode::Unchanged, longer)?.0 {
            Alone::Passed(_) => Said::Hung(Hang::Time),
            Alone::Interrupted => Said::Interrupted,
            Alone::TimedOut | Alone::Failed(..) => Said::TooSlow,
        })
    }

    /// Runs a test, and says whether a process of it was ended by its loops.
    fn run(&mut self, index: usize, mode: Mode, limit: Duration) -> anyhow::Result<(Alone, bool)> {
        let TestRecord { binary, test, rounds, .. } = &self.tests[index];
        let rounds_max = rounds.saturating_mul(ROUNDS_FACTOR).saturating_add(ROUNDS_SPARE);
        let Some(suite) = Suite::alone(binary, test) else {
            return Ok((Alone::Passed(Duration::ZERO), false));
        };
        let (alone, heard) = self.ordered.run(&suite, test, mode, rounds_max, limit)?;
        Ok((alone, heard.guarded))
    }
}
