//! The hunt for a mutant: the tests that come by it, one process each, until one fails.
//!
//! First come those that noticed another mutant of the same function, then the quickest.
//!
//! Invariants:
//! * A test that fails passes with nothing changed, or it has noticed nothing.
//! * A test that does not end has to end with nothing changed, within the same limit, before that
//!   is believed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::mutant::Mutant;
use crate::progress::Progress;
use crate::record::Ordered;
use crate::run::{Alone, Killer};
use crate::runtime::Mode;
use crate::state::{Fate, Hang, TestRecord};
use crate::suite::Suite;

/// Loops may go round that many times more often than with nothing changed …
const ROUNDS_FACTOR: u64 = 200;
/// … and so much more.
const ROUNDS_SPARE: u64 = 100_000;

pub(crate) struct Hunter<'a> {
    pub(crate) ordered: Ordered<'a>,
    pub(crate) tests: &'a [TestRecord],
    /// The longest limit of one test.
    pub(crate) timeout: Duration,
    pub(crate) matrix: bool,
    pub(crate) progress: &'a Progress,
    /// Tests that passed with nothing changed after they had failed.
    controlled: BTreeSet<usize>,
    /// Tests that failed with nothing changed.
    unsteady: BTreeSet<usize>,
    /// By file and function, the tests that noticed something there.
    noticed: BTreeMap<(PathBuf, String), BTreeSet<usize>>,
}

/// What one test has to say about a mutant.
enum Said {
    Failed(Box<Killer>),
    Hung(Hang),
    Passed,
    /// It was too slow, also with nothing changed.
    TooSlow,
    /// It fails with nothing changed, too.
    Unsteady,
    Interrupted,
}

impl<'a> Hunter<'a> {
    pub(crate) fn new(
        ordered: Ordered<'a>,
        tests: &'a [TestRecord],
        timeout: Duration,
        matrix: bool,
        progress: &'a Progress,
    ) -> Hunter<'a> {
        let each = (0..).zip(tests).filter(|(_, test)| !test.steady);
        let unsteady = each.map(|(index, _)| index).collect();
        Hunter {
            ordered,
            tests,
            timeout,
            matrix,
            progress,
            controlled: BTreeSet::new(),
            unsteady,
            noticed: BTreeMap::new(),
        }
    }

    /// The names of tests that passed once and failed once with nothing changed.
    pub(crate) fn unsteady(&self) -> Vec<String> {
        self.unsteady.iter().map(|&index| self.tests[index].name()).collect()
    }

    /// What becomes of a mutant that is compiled. Nothing if it was interrupted.
    pub(crate) fn hunt(&mut self, mutant: &Mutant) -> anyhow::Result<Option<Fate>> {
        let place = (mutant.file.clone(), mutant.function.clone());
        let reached = (0..self.tests.len()).filter(|&index| {
            self.tests[index].reached.contains(&mutant.number) && !self.unsteady.contains(&index)
        });
        let mut order: Vec<usize> = reached.collect();
        if order.is_empty() {
            return Ok(Some(Fate::NotReached));
        }
        let siblings = self.noticed.get(&place).cloned().unwrap_or_default();
        order.sort_by(|&a, &b| {
            let seconds = self.tests[a].seconds.total_cmp(&self.tests[b].seconds);
            siblings.contains(&b).cmp(&siblings.contains(&a)).then(seconds)
        });
        let (mut killers, mut hung, mut slow) = (Vec::new(), None, Vec::new());
        let mut passed = 0;
        for index in order {
            let test = &self.tests[index];
            self.progress.doing(format_args!("{}: {}", mutant.id, test.test));
            match self.ask(index, mutant.number)? {
                Said::Failed(killer) => {
                    self.noticed.entry(place.clone()).or_default().insert(index);
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
            if !self.matrix && (!killers.is_empty() || hung.is_some()) {
                break;
            }
        }
        Ok(Some(if !killers.is_empty() {
            Fate::Caught { killers }
        } else if let Some(hung) = hung {
            hung
        } else if slow.is_empty() {
            Fate::Missed { tests: passed }
        } else {
            Fate::Undecided { tests: slow }
        }))
    }

    fn ask(&mut self, index: usize, number: u32) -> anyhow::Result<Said> {
        let test = &self.tests[index];
        let limit = limit(Duration::from_secs_f64(test.seconds), self.timeout);
        match self.run(index, Mode::Active(number), limit)? {
            (Alone::Passed(_), _) => Ok(Said::Passed),
            (Alone::Interrupted, _) => Ok(Said::Interrupted),
            (_, true) => Ok(Said::Hung(Hang::Rounds)),
            (Alone::Failed(killer, _), false) => self.control_failure(index, killer, limit),
            (Alone::TimedOut, false) => self.control_time(index, number, limit),
        }
    }

    /// A test failed: it has to pass with nothing changed.
    fn control_failure(
        &mut self,
        index: usize,
        killer: Killer,
        limit: Duration,
    ) -> anyhow::Result<Said> {
        if !self.controlled.contains(&index) {
            match self.run(index, Mode::Unchanged, limit)?.0 {
                Alone::Passed(_) => {
                    self.controlled.insert(index);
                }
                Alone::Interrupted => return Ok(Said::Interrupted),
                Alone::TimedOut => return Ok(Said::TooSlow),
                Alone::Failed(..) => {
                    self.unsteady.insert(index);
                    return Ok(Said::Unsteady);
                }
            }
        }
        Ok(Said::Failed(Box::new(killer)))
    }

    /// A test reached its limit: it must not with nothing changed. Where it does, the machine is
    /// busy, and it gets twice the time once.
    fn control_time(&mut self, index: usize, number: u32, limit: Duration) -> anyhow::Result<Said> {
        let longer = limit.saturating_mul(2);
        match self.run(index, Mode::Unchanged, limit)?.0 {
            Alone::Passed(_) => return Ok(Said::Hung(Hang::Time)),
            Alone::Interrupted => return Ok(Said::Interrupted),
            Alone::Failed(..) => {
                self.unsteady.insert(index);
                return Ok(Said::Unsteady);
            }
            Alone::TimedOut => {}
        }
        match self.run(index, Mode::Active(number), longer)? {
            (Alone::Passed(_), _) => return Ok(Said::Passed),
            (Alone::Interrupted, _) => return Ok(Said::Interrupted),
            (_, true) => return Ok(Said::Hung(Hang::Rounds)),
            (Alone::Failed(killer, _), false) => {
                return self.control_failure(index, killer, longer);
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

/// The limit for a test that usually takes `usual`: ten times that and four seconds, but no more
/// than the user allows, and never less than twice what it takes.
fn limit(usual: Duration, timeout: Duration) -> Duration {
    let generous = usual.saturating_mul(10) + Duration::from_secs(4);
    generous.min(timeout).max(usual.saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_the_measured_time() {
        let seconds = Duration::from_secs;
        assert_eq!(limit(seconds(1), seconds(120)), seconds(14));
        assert_eq!(limit(seconds(30), seconds(120)), seconds(120));
        assert_eq!(limit(seconds(100), seconds(120)), seconds(200));
    }
}
