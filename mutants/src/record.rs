//! The recording run: each test by itself, with nothing changed, to see which mutants it comes by,
//! how long it takes, and how often its loops go round.
//!
//! It is the baseline as well: a test that fails in it and with nothing recorded fails the whole
//! run. One that fails once and passes once is unsteady; it is named, and no mutant is shown to it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;

use crate::builder::{BinaryId, TestBinaries};
use crate::exit::{Exit, Stop};
use crate::progress::Progress;
use crate::reach::{Heard, Listener};
use crate::run::{Alone, Runner};
use crate::runtime::{Mode, Order};
use crate::session::last_lines;
use crate::state::TestRecord;
use crate::suite::Suite;

/// Runs tests under orders.
pub(crate) struct Ordered<'a> {
    pub(crate) runner: &'a Runner<'a>,
    pub(crate) binaries: &'a TestBinaries,
    listener: Listener,
}

impl<'a> Ordered<'a> {
    pub(crate) fn new(
        runner: &'a Runner<'a>,
        binaries: &'a TestBinaries,
    ) -> anyhow::Result<Ordered<'a>> {
        let listener = Listener::new().context("cannot make a socket for the tests")?;
        Ok(Ordered { runner, binaries, listener })
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
        self.runner.give(Order { mode, rounds_max, socket })?;
        let alone = self.runner.run_alone(self.binaries, suite, test, limit)?;
        let heard = self.listener.take().context("cannot hear the tests")?;
        Ok((alone, heard))
    }
}

/// The records of all tests of some suites. `known` are taken as they are; they are of the same
/// build. Nothing if it was interrupted.
pub(crate) fn record(
    ordered: &mut Ordered<'_>,
    suites: &[Suite],
    known: Vec<TestRecord>,
    progress: &Progress,
) -> anyhow::Result<Option<Vec<TestRecord>>> {
    let name = |binary: &BinaryId, test: &str| (binary.clone(), test.to_owned());
    let mut known: BTreeMap<(BinaryId, String), TestRecord> =
        known.into_iter().map(|record| (name(&record.binary, &record.test), record)).collect();
    let all: usize = suites.iter().map(|suite| suite.tests.len()).sum();
    let mut records = Vec::new();
    let (mut failed, mut log) = (Vec::new(), String::new());
    for suite in suites {
        for test in &suite.tests {
            if let Some(record) = known.remove(&name(&suite.binary, test)) {
                records.push(record);
                continue;
            }
            let at = records.len() + failed.len() + 1;
            progress.doing(format_args!("recording {at} of {all}: {test}"));
            match one(ordered, suite, test)? {
                One::Record(record) => records.push(record),
                One::Fails(told) => {
                    log = told;
                    failed.push(format!("{} {test}", suite.binary.name));
                }
                One::Interrupted => return Ok(None),
            }
        }
    }
    if failed.is_empty() {
        return Ok(Some(records));
    }
    let (failed, log) = (failed.join(", "), last_lines(&log));
    let message = format!("tests fail in the unchanged workspace: {failed}\n{log}");
    Err(Stop::new(Exit::BaselineFails, message).into())
}

enum One {
    Record(TestRecord),
    Fails(String),
    Interrupted,
}

fn one(ordered: &mut Ordered<'_>, suite: &Suite, test: &str) -> anyhow::Result<One> {
    // Nothing is known about it yet, and recording takes its time as well.
    let limit = ordered.runner.timeout.saturating_mul(10);
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
        (Alone::Passed(took), heard) => return Ok(One::Record(record(took, heard, true))),
        (Alone::Interrupted, _) => return Ok(One::Interrupted),
        (Alone::Failed(..) | Alone::TimedOut, _) => {}
    }
    match ordered.run(suite, test, Mode::Unchanged, 0, limit)? {
        (Alone::Passed(took), heard) => Ok(One::Record(record(took, heard, false))),
        (Alone::Interrupted, _) => Ok(One::Interrupted),
        (Alone::Failed(_, log), _) => Ok(One::Fails(log)),
        (Alone::TimedOut, _) => Ok(One::Fails(format!("{test} takes more than {limit:?}"))),
    }
}
