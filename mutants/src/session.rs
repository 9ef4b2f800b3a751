//! A run over the named checks: a copy of the workspace, what builds and runs its tests in there,
//! and what is told of each check.
//!
//! Invariants: what is found out is told, however the run ends; the copy is put back as it was after
//! each build that differs from the source.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

use crate::builder::{Build, Builder, Failure, TestBinaries};
use crate::catalogue::{self, Removal};
use crate::cli::{CheckOptions, Shared};
use crate::confine::Confinement;
use crate::exit::{Exit, Stop};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::report::{self, Outcome, Verdict};
use crate::run::{Answer, Baseline, Setting};
use crate::suite::{Kind, Suite};
use crate::targets::Targets;
use crate::tree::Scratch;
use crate::workspace::{Workspace, own_package};

/// How much of the output of a failing test or build is shown.
const SHOWN_LINES: usize = 40;

/// What the options say about this process.
pub(crate) fn begin(shared: &Shared) -> anyhow::Result<()> {
    shared.color.write_global();
    if shared.die_with_parent {
        set_pdeathsig(Signal::SIGKILL).context("cannot tie this process to its parent")?;
    }
    Ok(())
}

/// Packages whose tests are asked for, which must be there.
pub(crate) fn existing(workspace: &Workspace, asked: &[String]) -> anyhow::Result<Vec<String>> {
    for name in asked {
        if name == own_package() {
            let message = format!("{name} is this program, which cannot change or test itself");
            return Err(Stop::new(Exit::Usage, message).into());
        }
        if !workspace.members.iter().any(|member| member.name == *name) {
            let message = format!("no package of the workspace is named {name}");
            return Err(Stop::new(Exit::NothingMatched, message).into());
        }
    }
    Ok(asked.to_vec())
}

/// Does something with the removals that are asked for, in a copy of the workspace and where tests
/// can be confined.
pub(crate) fn in_copy(
    options: &CheckOptions,
    workspace: &Workspace,
    work: impl FnOnce(Session<'_>, &[&Removal]) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let test_packages = existing(workspace, &options.shared.test_packages)?;
    let scratch = Scratch::take(&workspace.target_directory)?;
    scratch.synchronise(&workspace.root)?;
    let removals = catalogue::plan(workspace, &scratch.tree())?;
    let selected = select(&removals, options)?;

    let interrupt = Interrupt::watch().context("cannot watch for signals")?;
    let confinement = Confinement::around(workspace, &scratch, &interrupt)?;
    let session = Session {
        options,
        scratch: &scratch,
        builder: Builder {
            scratch: &scratch,
            tree: scratch.tree(),
            workspace,
            packages: &test_packages,
            jobs: options.shared.jobs,
            interrupt: &interrupt,
        },
        setting: Setting::new(scratch.tree(), &confinement, &interrupt, &options.shared),
        interrupt: &interrupt,
        progress: Progress::new(selected.len(), options.shared.verbose),
    };
    work(session, &selected)
}

/// The removals that the command line asks for.
pub(crate) fn select<'a>(
    removals: &'a [Removal],
    options: &CheckOptions,
) -> anyhow::Result<Vec<&'a Removal>> {
    let (checks, rules) = (&options.checks, &options.rules);
    for id in checks {
        if !removals.iter().any(|removal| removal.check.id == *id) {
            return Err(Stop::new(Exit::NothingMatched, format!("no check is named {id}")).into());
        }
    }
    for rule in rules {
        if !removals.iter().any(|removal| removal.check.rule() == rule) {
            return Err(
                Stop::new(Exit::NothingMatched, format!("no check is of rule {rule}")).into()
            );
        }
    }
    let all = checks.is_empty() && rules.is_empty();
    let wanted = |removal: &&Removal| {
        let check = &removal.check;
        all || checks.contains(&check.id) || rules.iter().any(|rule| rule == check.rule())
    };
    let selected: Vec<&Removal> = removals.iter().filter(wanted).collect();
    if selected.is_empty() {
        return Err(Stop::new(Exit::NothingMatched, "there is no check in the workspace").into());
    }
    Ok(selected)
}

/// What is made once for a run.
pub(crate) struct Session<'a> {
    pub(crate) options: &'a CheckOptions,
    pub(crate) scratch: &'a Scratch,
    pub(crate) builder: Builder<'a>,
    pub(crate) setting: Setting<'a>,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) progress: Progress,
}

/// A suite with the time that it takes unchanged.
pub(crate) struct Timed {
    suite: Suite,
    usual: Duration,
}

impl Session<'_> {
    /// Whether the run is to stop after this one.
    pub(crate) fn is_enough(&self, outcome: &Outcome<'_>) -> bool {
        self.options.fail_fast && !matches!(outcome.verdict, Verdict::Proved(_))
    }

    /// Prints what was found, and tells how the run ends.
    pub(crate) fn conclude(
        self,
        outcomes: &[Outcome<'_>],
        selected: usize,
        started: Instant,
        failure: Option<anyhow::Error>,
    ) -> anyhow::Result<Exit> {
        let untried = selected - outcomes.len();
        drop(self.progress);
        if !self.options.shared.json && selected > 0 {
            report::table(outcomes, untried, started.elapsed())?;
        }
        // What was found before is worth its time all the same.
        match failure {
            Some(error) => Err(error),
            None => Ok(report::exit(outcomes, untried)),
        }
    }

    /// Tells about a check that is done.
    pub(crate) fn tell(&self, outcome: &Outcome<'_>) -> anyhow::Result<()> {
        let seconds = outcome.took.as_secs_f64();
        let id = &outcome.removal.check.id;
        self.progress.done(outcome.verdict.word(), format_args!("{id} ({seconds:.1} s)"));
        self.progress.advance();
        if self.options.shared.json {
            report::json(outcome)?;
        }
        Ok(())
    }

    /// Builds and runs everything unchanged. Gives the suites, quickest first within
    /// each kind, or nothing when it was interrupted.
    pub(crate) fn baseline(&self) -> anyhow::Result<Option<Vec<Timed>>> {
        let begun = Instant::now();
        self.progress.doing("building everything unchanged");
        let binaries = match self.builder.build(None)? {
            Build::Done(binaries) => binaries,
            Build::Interrupted => return Ok(None),
            Build::Failed(Failure { reason, log, .. }) => {
                let log = last_lines(&log);
                let message = format!("the unchanged workspace does not build: {reason}\n{log}");
                return Err(Stop::new(Exit::BaselineFails, message).into());
            }
        };
        self.time_suites(&binaries, begun)
    }

    /// Runs everything unchanged that could notice a removal.
    fn time_suites(
        &self,
        binaries: &TestBinaries,
        begun: Instant,
    ) -> anyhow::Result<Option<Vec<Timed>>> {
        let runner = self.setting.runner();
        let suites = runner.selected_suites(binaries, &self.options.shared)?;
        let Some(suites) = suites else { return Ok(None) };
        let mut timed = Vec::new();
        for suite in suites {
            self.progress.doing(format_args!("running {} unchanged", suite.binary.name));
            match runner.baseline(binaries, &suite)? {
                Baseline::Passed(usual) => timed.push(Timed { suite, usual }),
                Baseline::Interrupted => return Ok(None),
                Baseline::Failed { tests, log } => {
                    let (binary, tests) = (&suite.binary.name, tests.join(", "));
                    let message = format!(
                        "tests of {binary} fail in the unchanged workspace: {tests}\n{}",
                        last_lines(&log)
                    );
                    return Err(Stop::new(Exit::BaselineFails, message).into());
                }
            }
        }
        timed.sort_by_key(|timed| (timed.suite.kind, timed.usual));
        let counts = Kind::ALL.map(|kind| {
            let own = timed.iter().filter(|timed| timed.suite.kind == kind);
            let count: usize = own.map(|timed| timed.suite.tests.len()).sum();
            format!("{count} {kind}")
        });
        let seconds = begun.elapsed().as_secs_f64();
        let counts = counts.join(", ");
        self.progress.done("baseline", format_args!("{counts} tests pass ({seconds:.1} s)"));
        Ok(Some(timed))
    }

    /// Does something in a build of these test binaries, or all, without a check, and puts the check back; the verdict of the build if
    /// there is none.
    pub(crate) fn without<T>(
        &self,
        removal: &Removal,
        only: Option<&Targets>,
        work: impl FnOnce(&TestBinaries) -> anyhow::Result<T>,
    ) -> anyhow::Result<Result<T, Verdict>> {
        let id = &removal.check.id;
        self.progress.doing(format_args!("{id}: building"));
        let applied = self.scratch.apply(&removal.files)?;
        let done = match self.builder.build(only)? {
            Build::Done(binaries) => Ok(work(&binaries)?),
            Build::Interrupted => Err(Verdict::Interrupted),
            Build::Failed(Failure { reason, log, .. }) => {
                self.scratch.log(id, &log)?;
                Err(Verdict::DoesNotCompile(reason))
            }
        };
        applied.undo()?;
        Ok(done)
    }

    /// Looks for a killer in suites, the quickest first.
    pub(crate) fn search(
        &self,
        id: &str,
        binaries: &TestBinaries,
        suites: &[Timed],
    ) -> anyhow::Result<Verdict> {
        let runner = self.setting.runner();
        let (mut all_unsteady, mut all_hung) = (Vec::new(), Vec::new());
        let mut passed: BTreeMap<Kind, usize> = BTreeMap::new();
        for Timed { suite, usual } in suites {
            self.progress.doing(format_args!("{id}: {} ({})", suite.binary.name, suite.kind));
            match runner.search(binaries, suite, *usual)? {
                Answer::Killed { killer, log } => {
                    self.scratch.log(id, &log)?;
                    return Ok(Verdict::Proved(killer));
                }
                Answer::Interrupted => return Ok(Verdict::Interrupted),
                Answer::Survived { unsteady, hung } => {
                    let odd = unsteady.len() + hung.len();
                    *passed.entry(suite.kind).or_default() += suite.tests.len().saturating_sub(odd);
                    all_unsteady.extend(unsteady);
                    all_hung.extend(hung);
                }
            }
        }
        Ok(if all_hung.is_empty() {
            Verdict::NotProved { passed, unsteady: all_unsteady }
        } else {
            Verdict::TimedOut { hung: all_hung, unsteady: all_unsteady }
        })
    }
}

pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}
