//! The recording run: each test by itself, with nothing changed, to see which mutants it comes by,
//! how long it takes, and how often its loops go round.
//!
//! It is the baseline as well: a test that fails in it and with nothing recorded fails the whole
//! run. One that fails once and passes once is unsteady; it is named, and no mutant is shown to it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;

use crate::abreast::{Finish, abreast};
use crate::builder::{BinaryId, TestBinaries};
use crate::exit::{Exit, Stop};
use crate::progress::Progress;
use crate::reach::{Heard, Listener};
use crate::run::{Alone, Runner, Setting};
use crate::runtime::{Mode, Order};
use crate::session::last_lines;
use crate::state::TestRecord;
use crate::suite::Suite;

/// Runs tests under orders, one at a time.
pub(crate) struct Ordered<'a> {
    pub(crate) runner: Runner<'a>,
    pub(crate) binaries: &'a TestBinaries,
    listener: Listener,
}

impl<'a> Ordered<'a> {
    pub(crate) fn new(
        setting: &Setting<'a>,
        binaries: &'a TestBinaries,
    ) -> anyhow::Result<Ordered<'a>> {
        let listener = Listener::new().context("cannot make a socket for the tests")?;
        Ok(Ordered { runner: setting.runner(), binaries, listener })
    }

    /// Runs a test by itself. What its processes sent is given as well.
    pub(crate) fn run(
        &mut self,
        suite: &Suite,
        test: &str,
        mode: Mode,
        rounds_max: u64,
        limit: Duration,
    ) -> anyhow::Result<(Alone, Heard)> {
        let socket = self.listener.name().to_owned();
        self.runner.give(Order { mode, rounds_max, socket });
        let alone = self.runner.run_alone(self.binaries, suite, test, limit)?;
        let heard = self.listener.take().context("cannot hear the tests")?;
        Ok((alone, heard))
    }
}

/// The records of all tests of some suites, several at once. `known` are taken as they are; they are of the
/// same build. Nothing if it was interrupted.
pub(crate) fn record(
    setting: &Setting<'_>,
    binaries: &TestBinaries,
    suites: &[Suite],
    known: Vec<TestRecord>,
    progress: &Progress,
) -> anyhow::Result<Option<Vec<TestRecord>>> {
    let name = |binary: &BinaryId, test: &str| (binary.clone(), test.to_owned());
    let known: BTreeMap<(BinaryId, String), TestRecord> =
        known.into_iter().map(|record| (name(&record.binary, &record.test), record)).collect();
    let tests: Vec<(&Suite, &str)> = suites
        .iter()
        .flat_map(|suite| suite.tests.iter().map(move |test| (suite, &**test)))
        .collect();
    let (all, begun) = (tests.len(), AtomicUsize::new(0));
    let (mut records, mut failed, mut log) = (Vec::new(), Vec::new(), String::new());
    let finish = abreast(
        &tests,
        setting.jobs,
        || Ordered::new(setting, binaries),
        |ordered, &(suite, test)| {
            let at = begun.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(record) = known.get(&name(&suite.binary, test)) {
                return Ok(Some(One::Record(record.clone())));
            }
            progress.doing(format_args!("recording {at} of {all}: {test}"));
            one(ordered, suite, test)
        },
        |one| {
            match one {
                One::Record(record) => records.push(record),
                One::Fails { test, told } => {
                    log = told;
                    failed.push(test);
                }
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    if failed.is_empty() {
        return Ok((finish == Finish::All).then_some(records));
    }
    let (failed, log) = (failed.join(", "), last_lines(&log));
    let message = format!("tests fail in the unchanged workspace: {failed}\n{log}");
    Err(Stop::new(Exit::BaselineFails, message).into())
}

enum One {
    Record(TestRecord),
    Fails { test: String, told: String },
}

/// Records one test. Nothing if it was interrupted.
fn one(ordered: &mut Ordered<'_>, suite: &Suite, test: &str) -> anyhow::Result<Option<One>> {
    // Nothing is known about it yet, and recording takes its time as well.
    let limit = ordered.runner.setting.timeout.saturating_mul(10);
    let record = |took: Duration, heard: Heard, steady| TestRecord {
        binary: suite.binary.clone(),
        kind: suite.kind,
        test: test.to_owned(),
        seconds: took.as_secs_f64(),
        rounds: heard.rounds,
        reached: heard.reached,
        steady,
    };
    match ordered.run(suite, test, Mode::Record, 0, limit)? {
        (Alone::Passed(took), heard) => return Ok(Some(One::Record(record(took, heard, true)))),
        (Alone::Interrupted, _) => return Ok(None),
        (Alone::Failed(..) | Alone::TimedOut, _) => {}
    }
    let fails = |told| One::Fails { test: format!("{} {test}", suite.binary.name), told };
    Ok(match ordered.run(suite, test, Mode::Unchanged, 0, limit)? {
        (Alone::Passed(took), heard) => Some(One::Record(record(took, heard, false))),
        (Alone::Interrupted, _) => None,
        (Alone::Failed(_, log), _) => Some(fails(log)),
        (Alone::TimedOut, _) => Some(fails(format!("{test} takes more than {limit:?}"))),
    })
}
