//! Asking the test of the last time: it has to pass with all checks in place, which is seen once for
//! each, and to fail twice without the one.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::builder::TestBinaries;
use crate::catalogue::Removal;
use crate::cli::Shared;
use crate::exit::{Exit, Stop};
use crate::killed_by::{KilledBy, Named};
use crate::progress::Progress;
use crate::report::Verdict;
use crate::run::{Alone, Runner, Setting, patience};
use crate::runtime::{self, Order};
use crate::session::last_lines;
use crate::suite::Suite;
use crate::tree::Scratch;

/// What all that ask at the same time have in common.
pub(super) struct Common<'a> {
    pub(super) shared: &'a Shared,
    pub(super) scratch: &'a Scratch,
    pub(super) setting: &'a Setting<'a>,
    pub(super) progress: &'a Progress,
    pub(super) killed_by: &'a KilledBy,
    pub(super) controlled: &'a Controlled,
    pub(super) binaries: &'a TestBinaries,
}

/// Tests that passed with all checks in place, and how long they took.
#[derive(Debug, Default)]
pub(super) struct Controlled(Mutex<BTreeMap<Named, Duration>>);

impl Controlled {
    pub(super) fn usual(&self, named: &Named) -> Option<Duration> {
        self.known().get(named).copied()
    }

    pub(super) fn insert(&self, named: Named, usual: Duration) {
        self.known().insert(named, usual);
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Named, Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One test, about one removal.
#[derive(Clone, Copy)]
struct Question<'q> {
    /// The check that is removed.
    id: &'q str,
    number: u32,
    named: &'q Named,
    suite: &'q Suite,
}

/// Asks one test at a time.
pub(super) struct Asker<'a> {
    pub(super) common: &'a Common<'a>,
    runner: Runner<'a>,
}

impl<'a> Asker<'a> {
    pub(super) fn new(common: &'a Common<'a>) -> Asker<'a> {
        Asker { common, runner: common.setting.runner() }
    }

    /// Asks about a removal by its switch. Nothing if the test of the last time does not say that
    /// it is noticed.
    pub(super) fn switched(
        &self,
        removal: &Removal,
        number: u32,
    ) -> anyhow::Result<Option<Verdict>> {
        let id = &removal.check.id;
        let Some((named, suite)) = self.common.named(id) else { return Ok(None) };
        self.common.progress.doing(format_args!("{id}: {}", named.test));
        self.ask(Question { id, number, named: &named, suite: &suite })
    }

    /// Without the check a test may wait for what never comes, as long as a loaded machine might need.
    /// With all of them it shows how long it needs, and at first it may wait for little more.
    fn ask(&self, question: Question<'_>) -> anyhow::Result<Option<Verdict>> {
        let usual = match self.usual(question)? {
            Ok(usual) => usual,
            Err(verdict) => return Ok(verdict),
        };
        let hurried = self.ask_within(Some(patience(usual)), question)?;
        if hurried.is_some() {
            return Ok(hurried);
        }
        self.ask_within(None, question)
    }

    /// How long a test takes with all checks in place; the verdict if it does not pass, which may be
    /// none.
    fn usual(&self, question: Question<'_>) -> anyhow::Result<Result<Duration, Option<Verdict>>> {
        let named = question.named;
        if let Some(usual) = self.common.controlled.usual(named) {
            return Ok(Ok(usual));
        }
        match self.alone(runtime::NONE, question)? {
            Alone::Passed(usual) => {
                self.common.controlled.insert(named.clone(), usual);
                Ok(Ok(usual))
            }
            Alone::Interrupted => Ok(Err(Some(Verdict::Interrupted))),
            Alone::TimedOut => Ok(Err(None)),
            Alone::Failed(_, log) => {
                let (test, binary, log) = (&named.test, &named.binary, last_lines(&log));
                let message = format!("{test} of {binary} fails with all checks in place\n{log}");
                Err(Stop::new(Exit::BaselineFails, message).into())
            }
        }
    }

    /// Runs a test with a removal on, where it ran into the end of its patience with all checks in
    /// place, and with the removal on again.
    fn ask_within(
        &self,
        patience: Option<Duration>,
        question: Question<'_>,
    ) -> anyhow::Result<Option<Verdict>> {
        self.runner.patience.set(patience);
        let verdict = self.on_off_on(patience, question);
        self.runner.patience.set(None);
        verdict
    }

    fn on_off_on(
        &self,
        patience: Option<Duration>,
        question: Question<'_>,
    ) -> anyhow::Result<Option<Verdict>> {
        let begun = Instant::now();
        let (killer, log) = match self.alone(question.number, question)? {
            Alone::Failed(killer, log) => (killer, log),
            Alone::Interrupted => return Ok(Some(Verdict::Interrupted)),
            Alone::Passed(_) | Alone::TimedOut => return Ok(None),
        };
        // Had it waited longer, it might have passed: so it must with all checks in place.
        if patience.is_some_and(|patience| begun.elapsed() >= patience) {
            match self.alone(runtime::NONE, question)? {
                Alone::Passed(_) => {}
                Alone::Interrupted => return Ok(Some(Verdict::Interrupted)),
                Alone::Failed(..) | Alone::TimedOut => return Ok(None),
            }
        }
        Ok(match self.alone(question.number, question)? {
            Alone::Failed(..) => {
                self.common.scratch.log(question.id, &log)?;
                Some(Verdict::Proved(killer))
            }
            Alone::Interrupted => Some(Verdict::Interrupted),
            Alone::Passed(_) | Alone::TimedOut => None,
        })
    }

    /// Runs a test by itself, with a removal on, or none.
    fn alone(&self, number: u32, question: Question<'_>) -> anyhow::Result<Alone> {
        self.run(question.suite, &question.named.test, number)
    }

    /// The same for any test.
    pub(super) fn run(&self, suite: &Suite, test: &str, number: u32) -> anyhow::Result<Alone> {
        self.runner.give(Order::active(number));
        let Common { binaries, shared, .. } = self.common;
        self.runner.run_alone(binaries, suite, test, shared.timeout)
    }
}

impl Common<'_> {
    /// The test that noticed the last time, if it is there and among those that are asked for.
    pub(super) fn named(&self, id: &str) -> Option<(Named, Suite)> {
        let named = self.killed_by.get(id)?.clone();
        let suite = named.suite(self.binaries)?;
        self.shared.selects(&suite).then_some((named, suite))
    }
}
