//! Runs test binaries and looks for the test that notices a removal.
//!
//! A suite is run as a whole and ended at its first failure. The test that failed is
//! then run once more, alone: only a test that fails both times is a *killer*. Where
//! the whole does not say which test it was (a crash, a time-out), each is run alone.
//!
//! Invariants:
//! * A time-out never proves anything, also beside a failure.
//! * What a test prints decides nothing: its exit code alone, run by itself, does.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::builder::{self, TestBinaries, TestBinary};
use crate::cli::Shared;
use crate::confine::Confinement;
use crate::exit::{Exit, Stop};
use crate::interrupt::Interrupt;
use crate::process::{self, End, Ended};
use crate::runtime::{self, Order};
use crate::suite::{Kind, Suite};

/// How often a suite is run again without the tests that failed in it and passed
/// alone.
const UNSTEADY_MAX: usize = 3;

/// How many tests of a suite may reach their limit before the rest is left alone.
const HUNG_MAX: usize = 2;

/// What a suite has to spare.
const SPARE: Duration = Duration::from_secs(10);

/// A test that is to fail may wait so many times as long as it takes to pass …
const PATIENCE_FACTOR: u32 = 5;

/// … but that long at least.
const PATIENCE_MIN: Duration = Duration::from_secs(2);

/// A test that notices a removal, or another change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Killer {
    pub(crate) test: String,
    pub(crate) package: String,
    pub(crate) binary: String,
    pub(crate) kind: Kind,
    /// Where and with what words it failed, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
}

/// What a suite has to say about a removal.
#[derive(Debug)]
pub(crate) enum Answer {
    Killed {
        killer: Killer,
        log: String,
    },
    /// No test notices. Those that failed once and passed alone, and those that
    /// reached their limit, are named.
    Survived {
        unsteady: Vec<String>,
        hung: Vec<String>,
    },
    Interrupted,
}

/// What the unchanged build has to say about a suite.
#[derive(Debug)]
pub(crate) enum Baseline {
    Passed(Duration),
    Failed { tests: Vec<String>, log: String },
    Interrupted,
}

/// Where and how tests are run.
#[derive(Clone, Debug)]
pub(crate) struct Setting<'a> {
    /// The copy that was built.
    pub(crate) tree: PathBuf,
    pub(crate) confinement: &'a Confinement,
    pub(crate) interrupt: &'a Interrupt,
    /// How many checks or mutants are tried at once, and test threads of a suite.
    pub(crate) jobs: u16,
    pub(crate) timeout: Duration,
}

/// Runs tests, one process at a time. Who wants several at once gives each a runner of its own.
#[derive(Debug)]
pub(crate) struct Runner<'a> {
    pub(crate) setting: Setting<'a>,
    /// What is switched on, in a build that has switches.
    pub(crate) order: RefCell<Option<Order>>,
    /// The longest that a test may wait for any one thing, where it is to be cut short.
    pub(crate) patience: Cell<Option<Duration>>,
}

/// How a run of several tests ended.
enum Group {
    Passed,
    Failed(Vec<String>),
    /// Without the name of a test that failed. These passed before.
    Unclear(Vec<String>),
    Interrupted,
}

impl<'a> Setting<'a> {
    pub(crate) fn new(
        tree: PathBuf,
        confinement: &'a Confinement,
        interrupt: &'a Interrupt,
        shared: &Shared,
    ) -> Setting<'a> {
        let (jobs, timeout) = (shared.jobs, shared.timeout);
        Setting { tree, confinement, interrupt, jobs, timeout }
    }

    /// A runner with nothing switched on.
    pub(crate) fn runner(&self) -> Runner<'a> {
        let (order, patience) = (RefCell::new(None), Cell::new(None));
        Runner { setting: self.clone(), order, patience }
    }
}

impl Runner<'_> {
    /// The suites of all binaries.
    pub(crate) fn suites(&self, binaries: &TestBinaries) -> anyhow::Result<Option<Vec<Suite>>> {
        let mut suites = Vec::new();
        for (id, binary) in binaries {
            let mut lists = Vec::new();
            for ignored in [&[][..], &["--ignored"][..]] {
                let mut command = self.command(binary);
                command.args(["--list", "--format=terse"]).args(ignored);
                let ended =
                    self.run(command, self.setting.timeout, &mut |_| ControlFlow::Continue(()))?;
                match ended.how {
                    End::Exited(0) => lists.push(ended.stdout),
                    End::Interrupted => return Ok(None),
                    how => {
                        let told = ended.stderr.trim();
                        anyhow::bail!("{} does not list its tests: {how:?} {told}", id.name);
                    }
                }
            }
            suites.extend(Suite::sort(id, &lists[0], &lists[1]));
        }
        Ok(Some(suites))
    }

    /// Those among them that were asked for. Nothing if it was interrupted.
    pub(crate) fn selected_suites(
        &self,
        binaries: &TestBinaries,
        shared: &Shared,
    ) -> anyhow::Result<Option<Vec<Suite>>> {
        let Some(mut suites) = self.suites(binaries)? else { return Ok(None) };
        suites.retain(|suite| shared.selects(suite));
        if suites.is_empty() {
            return Err(Stop::new(Exit::NothingMatched, "no test was selected").into());
        }
        Ok(Some(suites))
    }

    /// Gives an order to the programs to come.
    pub(crate) fn give(&self, order: Order) {
        self.order.replace(Some(order));
    }

    /// Runs a suite in the unchanged build.
    pub(crate) fn baseline(
        &self,
        binaries: &TestBinaries,
        suite: &Suite,
    ) -> anyhow::Result<Baseline> {
        // Nothing is known about the suite yet. It hangs, if it does, for ten times the
        // limit, and the user sees what is being run.
        let limit = self.setting.timeout.saturating_mul(10);
        let (group, ended) = self.run_group(binaries, suite, &suite.tests, limit, false)?;
        Ok(match group {
            Group::Passed => Baseline::Passed(ended.took),
            Group::Interrupted => Baseline::Interrupted,
            Group::Failed(tests) => Baseline::Failed { tests, log: both(&ended) },
            Group::Unclear(_) => {
                Baseline::Failed { tests: vec![format!("({:?})", ended.how)], log: both(&ended) }
            }
        })
    }

    /// Looks in a suite for a killer. `usual` is what the suite took unchanged.
    pub(crate) fn search(
        &self,
        binaries: &TestBinaries,
        suite: &Suite,
        usual: Duration,
    ) -> anyhow::Result<Answer> {
        let limit = limit(usual, SPARE, self.setting.timeout);
        let mut tests = suite.tests.clone();
        let (mut unsteady, mut hung) = (Vec::new(), Vec::new());
        while !tests.is_empty() && unsteady.len() < UNSTEADY_MAX && hung.len() < HUNG_MAX {
            let (group, _) = self.run_group(binaries, suite, &tests, limit, true)?;
            let failed = match group {
                Group::Failed(failed) => failed,
                Group::Passed => break,
                Group::Interrupted => return Ok(Answer::Interrupted),
                Group::Unclear(passed) => {
                    tests.retain(|test| !passed.contains(test));
                    return self.search_alone(binaries, suite, &tests, limit, unsteady, hung);
                }
            };
            for test in failed {
                match self.run_alone(binaries, suite, &test, limit)? {
                    Alone::Failed(killer, log) => return Ok(Answer::Killed { killer, log }),
                    Alone::Interrupted => return Ok(Answer::Interrupted),
                    Alone::Passed(_) => unsteady.push(test.clone()),
                    Alone::TimedOut => hung.push(test.clone()),
                }
                tests.retain(|other| *other != test);
            }
        }
        Ok(Answer::Survived { unsteady, hung })
    }

    /// Looks for a killer among tests that did not end well together, one by one.
    fn search_alone(
        &self,
        binaries: &TestBinaries,
        suite: &Suite,
        tests: &[String],
        limit: Duration,
        mut unsteady: Vec<String>,
        mut hung: Vec<String>,
    ) -> anyhow::Result<Answer> {
        for test in tests {
            match self.run_alone(binaries, suite, test, limit)? {
                Alone::Passed(_) => continue,
                Alone::Interrupted => return Ok(Answer::Interrupted),
                Alone::TimedOut => {
                    hung.push(test.clone());
                    if hung.len() >= HUNG_MAX {
                        break;
                    }
                    continue;
                }
                Alone::Failed(..) => {}
            }
            match self.run_alone(binaries, suite, test, limit)? {
                Alone::Failed(killer, log) => return Ok(Answer::Killed { killer, log }),
                Alone::Interrupted => return Ok(Answer::Interrupted),
                Alone::Passed(_) | Alone::TimedOut => unsteady.push(test.clone()),
            }
        }
        if hung.is_empty() && unsteady.is_empty() {
            unsteady.push(format!("the tests of {} together", suite.binary.name));
        }
        Ok(Answer::Survived { unsteady, hung })
    }

    fn run_group(
        &self,
        binaries: &TestBinaries,
        suite: &Suite,
        tests: &[String],
        limit: Duration,
        fail_fast: bool,
    ) -> anyhow::Result<(Group, Ended)> {
        let mut command = self.command(self.binary(binaries, suite)?);
        let threads = if suite.kind == Kind::Host { 1 } else { self.setting.jobs };
        command.arg(format!("--test-threads={threads}"));
        if !suite.whole || tests.len() != suite.tests.len() {
            command.arg("--exact").args(tests);
        }
        let (mut passed, mut failed) = (Vec::new(), Vec::new());
        let ended = self.run(command, limit, &mut |line| {
            match result_of(line) {
                Some((test, good)) if tests.iter().any(|own| own == test) => {
                    let results = if good { &mut passed } else { &mut failed };
                    // A test that runs itself again in a cell of its own says it twice.
                    if !results.iter().any(|known| known == test) {
                        results.push(test.to_owned());
                    }
                }
                _ => {}
            }
            if fail_fast && !failed.is_empty() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        if failed.is_empty() {
            let listed = listed_failures(&ended.stdout);
            failed = tests.iter().filter(|test| listed.contains(&&***test)).cloned().collect();
        }
        let group = match ended.how {
            End::Exited(0) => Group::Passed,
            End::Interrupted => Group::Interrupted,
            _ if failed.is_empty() => Group::Unclear(passed),
            _ => Group::Failed(failed),
        };
        Ok((group, ended))
    }

    /// Runs one test by itself.
    pub(crate) fn run_alone(
        &self,
        binaries: &TestBinaries,
        suite: &Suite,
        test: &str,
        limit: Duration,
    ) -> anyhow::Result<Alone> {
        let mut command = self.command(self.binary(binaries, suite)?);
        command.args(["--test-threads=1", "--exact", test]);
        let ended = self.run(command, limit, &mut |_| ControlFlow::Continue(()))?;
        Ok(match ended.how {
            End::Exited(0) => Alone::Passed(ended.took),
            End::Interrupted => Alone::Interrupted,
            End::TimedOut | End::Stopped => Alone::TimedOut,
            End::Exited(code) => {
                let log = both(&ended);
                let killer = Killer {
                    test: test.to_owned(),
                    package: suite.binary.package.clone(),
                    binary: suite.binary.name.clone(),
                    kind: suite.kind,
                    failure: panic_message(&log).or_else(|| ended_by_signal(code)),
                };
                Alone::Failed(killer, log)
            }
        })
    }

    fn binary<'b>(
        &self,
        binaries: &'b TestBinaries,
        suite: &Suite,
    ) -> anyhow::Result<&'b TestBinary> {
        let id = &suite.binary;
        binaries.get(id).with_context(|| {
            format!("the test binary {} of {} was not built again", id.name, id.package)
        })
    }

    /// A command that starts the binary as cargo would, but confined.
    fn command(&self, binary: &TestBinary) -> Command {
        let line = self.order.borrow().as_ref().map(Order::line);
        let mut command = self.setting.confinement.for_test(&binary.executable, line.as_deref());
        builder::clean_environment(&mut command);
        command
            .current_dir(&binary.directory)
            .env("CARGO_MANIFEST_DIR", &binary.directory)
            // Snapshots are compared, never written, and looked for in the copy.
            .env("INSTA_UPDATE", "no")
            .env("INSTA_WORKSPACE_ROOT", &self.setting.tree)
            .env("RUST_BACKTRACE", "0")
            // A test that is skipped for want of namespaces would pass with any removal.
            .env("MORTMAIN_CELL_REQUIRED", "1")
            .env_remove("TMPDIR");
        if let Some(line) = line {
            command.env(runtime::VARIABLE, line);
        }
        if let Some(patience) = self.patience.get() {
            command.env("MORTMAIN_PATIENCE_MILLIS", patience.as_millis().to_string());
        }
        for (name, path) in &binary.programs {
            command.env(format!("CARGO_BIN_EXE_{name}"), path);
        }
        command
    }

    fn run(
        &self,
        command: Command,
        limit: Duration,
        watch: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> anyhow::Result<Ended> {
        process::run(command, limit, self.setting.interrupt, watch)
    }
}

/// How a test ended that was run by itself.
pub(crate) enum Alone {
    /// With the time that it took.
    Passed(Duration),
    /// With what it printed.
    Failed(Killer, String),
    TimedOut,
    Interrupted,
}

/// The limit for a run that usually takes `usual`: ten times that and something to spare,
/// for a loaded machine, but no more than the user allows and never less than twice
/// what it takes.
pub(crate) fn limit(usual: Duration, spare: Duration, timeout: Duration) -> Duration {
    let generous = usual.saturating_mul(10) + spare;
    generous.min(timeout).max(usual.saturating_mul(2))
}

/// How long a test that usually takes `usual` may wait for any one thing where it is to fail.
pub(crate) fn patience(usual: Duration) -> Duration {
    usual.saturating_mul(PATIENCE_FACTOR).max(PATIENCE_MIN)
}

/// The test that a line of a test binary reports, and whether it passed.
fn result_of(line: &str) -> Option<(&str, bool)> {
    let (test, result) = line.strip_prefix("test ")?.trim_end().rsplit_once(" ... ")?;
    // Harnesses of a test binary's own may align the results.
    let test = test.trim_end();
    let test = test.strip_suffix(" - should panic").unwrap_or(test);
    match result {
        "ok" => Some((test, true)),
        "FAILED" => Some((test, false)),
        _ => None,
    }
}

/// The tests that a test binary lists as failed at its end.
fn listed_failures(stdout: &str) -> Vec<&str> {
    let Some(at) = stdout.rfind("\nfailures:\n") else {
        return Vec::new();
    };
    let lines = stdout[at..].lines().skip(2);
    lines.map_while(|line| line.strip_prefix("    ")).collect()
}

/// The place and the words of the first panic in an output, in one line.
fn panic_message(output: &str) -> Option<String> {
    let mut lines = output.lines();
    let place = lines.find_map(|line| line.split_once(" panicked at ").map(|(_, place)| place))?;
    let place = place.trim_end_matches(':');
    let words = lines.next().unwrap_or_default().trim();
    Some(format!("{place}: {words}").trim_end_matches(": ").to_owned())
}

fn ended_by_signal(code: i32) -> Option<String> {
    (code > 128).then(|| format!("ended by signal {}", code - 128))
}

fn both(ended: &Ended) -> String {
    format!("{}{}", ended.stdout, ended.stderr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_from_the_output() {
        assert_eq!(result_of("test a::b ... FAILED"), Some(("a::b", false)));
        let panicking = "test a::b - should panic ... FAILED";
        assert_eq!(result_of(panicking), Some(("a::b", false)));
        assert_eq!(result_of("test a::b ... ok"), Some(("a::b", true)));
        assert_eq!(result_of("test a::b      ... ok"), Some(("a::b", true)));
        assert_eq!(result_of("test a::b ... ignored"), None);
        assert_eq!(result_of("FAILED"), None);
        let stdout = "\nfailures:\n\n---- a stdout ----\n\nfailures:\n    not::this\n\nfailures:\n    a\n    b::c\n\ntest result: FAILED. 1 passed";
        assert_eq!(listed_failures(stdout), ["a", "b::c"]);
        assert_eq!(listed_failures("all is well"), Vec::<&str>::new());
    }

    #[test]
    fn the_panic_is_told_with_its_place() {
        let output =
            "noise\n\nthread 'a' (12) panicked at src/lib.rs:3:5:\nassertion failed: x\nnote: more";
        let told = panic_message(output).unwrap();
        assert_eq!(told, "src/lib.rs:3:5: assertion failed: x");
        assert_eq!(panic_message("no such line"), None);
    }

    #[test]
    fn limits_grow_with_the_usual_time_and_have_bounds() {
        let seconds = Duration::from_secs;
        assert_eq!(limit(seconds(1), seconds(4), seconds(120)), seconds(14));
        let limit = |usual, timeout| limit(usual, seconds(10), timeout);
        assert_eq!(limit(seconds(1), seconds(120)), seconds(20));
        assert_eq!(limit(seconds(30), seconds(120)), seconds(120));
        assert_eq!(limit(seconds(100), seconds(120)), seconds(200));
        assert_eq!(limit(Duration::ZERO, seconds(2)), seconds(2));
    }
}
