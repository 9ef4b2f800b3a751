//! The command `prove`: all removals in one build, and for each a test that fails because of it.
//!
//! Order of work: plan, render all removals behind switches, build, and take those that the compiler
//! refuses apart; then for each check switch its removal on and run the test that noticed the last
//! time. It has to pass with all checks in place, which is seen once for each test, and to fail twice
//! without the one. Where it does not, the tests that were selected are recorded (`record`), and those
//! are searched that come by the removal. In the same build the stories are told without the checks
//! that they say they protect ([`tell`]). What no switch can express gets a build of its own; there
//! all suites are searched where the test of the last time does not fail.

mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::builder::{BinaryId, Build, CompilerError, Failure, TestBinaries};
use crate::catalogue::{self, Removal};
use crate::cli::ProveOptions;
use crate::exit::{Exit, Stop};
use crate::hunt::{Hunter, Prey, Rules};
use crate::killed_by::{self, KilledBy, Named};
use crate::record::{self, Ordered};
use crate::report::{self, Outcome, Verdict};
use crate::run::{Alone, Killer};
use crate::runtime::{self, Order};
use crate::schema::{self, Schema};
use crate::session::{Session, Timed, begin, in_copy, last_lines, select};
use crate::state::{Fate, TestRecord};
use crate::stories::{self, Shown};
use crate::suite::Suite;
use crate::tree::Applied;
use crate::workspace::Workspace;

/// How often the build is tried again without those that the compiler refuses.
const ROUNDS_MAX: usize = 12;

/// A test that is to fail may wait so many times as long as it takes to pass …
const PATIENCE_FACTOR: u32 = 10;

/// … but that long at least.
const PATIENCE_MIN: Duration = Duration::from_secs(4);

pub(crate) fn prove(options: &ProveOptions) -> anyhow::Result<Exit> {
    let common = &options.common;
    begin(&common.shared)?;
    let workspace = Workspace::find(common.shared.manifest_path.as_deref())?;
    if common.list {
        let removals = catalogue::plan(&workspace, &workspace.root)?;
        report::list(&select(&removals, common)?, common.shared.json)?;
        return Ok(Exit::Proved);
    }
    let killed_by = killed_by::read(&workspace.root)?;
    let shown = stories::read(&workspace.root)?;
    in_copy(common, &workspace, |session, selected| {
        let sources = catalogue::read_sources(&workspace, &session.scratch.tree())?;
        let prover = Prover {
            roots: roots(&workspace, &sources),
            sources,
            killed_by,
            shown,
            controlled: BTreeMap::new(),
            hurried: BTreeSet::new(),
            records: None,
            timed: None,
            session,
        };
        prover.all(selected, &workspace, options)
    })
}

/// The root files of the members, by the directories of their sources.
fn roots(workspace: &Workspace, sources: &BTreeMap<PathBuf, String>) -> BTreeMap<PathBuf, PathBuf> {
    let each = workspace.subjects().filter_map(|member| {
        let directory = member.directory.join("src");
        let candidates = ["lib.rs", "main.rs"].map(|name| directory.join(name));
        let root = candidates.into_iter().find(|root| sources.contains_key(root))?;
        Some((directory, root))
    });
    each.collect()
}

/// How long a test that usually takes `usual` may wait for any one thing where it is to fail.
fn patience(usual: Duration) -> Duration {
    usual.saturating_mul(PATIENCE_FACTOR).max(PATIENCE_MIN)
}

struct Prover<'a> {
    session: Session<'a>,
    sources: BTreeMap<PathBuf, String>,
    roots: BTreeMap<PathBuf, PathBuf>,
    killed_by: KilledBy,
    /// What showed the rules of the stories the last time.
    shown: Shown,
    /// Tests that passed with all checks in place, and how long they took.
    controlled: BTreeMap<Named, Duration>,
    /// Those among them that passed in a hurry, too, for the builds without switches.
    hurried: BTreeSet<Named>,
    /// All tests, with the removals that they come by, once they were needed.
    records: Option<Vec<TestRecord>>,
    /// All suites with their usual times, once they were needed.
    timed: Option<Vec<Timed>>,
}

/// One test, about one removal.
#[derive(Clone, Copy)]
struct Question<'q> {
    /// The check that is removed.
    id: &'q str,
    number: u32,
    named: &'q Named,
    suite: &'q Suite,
    binaries: &'q TestBinaries,
}

impl Prover<'_> {
    fn all(
        mut self,
        selected: &[&Removal],
        workspace: &Workspace,
        options: &ProveOptions,
    ) -> anyhow::Result<Exit> {
        let started = Instant::now();
        let wanted = if options.stories.is_empty() { selected } else { &[] };
        let (mut outcomes, mut told) = (Vec::new(), Vec::new());
        let asked = self.ask_all(selected, wanted, options, &mut outcomes, &mut told);
        let order = |outcome: &Outcome<'_>| {
            selected.iter().position(|removal| std::ptr::eq(*removal, outcome.removal))
        };
        outcomes.sort_by_key(order);
        if options.bless {
            for outcome in &outcomes {
                if let Verdict::Proved(killer) = &outcome.verdict {
                    self.killed_by.insert(outcome.removal.check.id.clone(), Named::of(killer));
                }
            }
            self.forget_lost(workspace)?;
            killed_by::write(&workspace.root, &self.killed_by)?;
            stories::remember(&mut self.shown, &told, matches!(asked, Ok(true)));
            stories::write(&workspace.root, &self.shown)?;
        }
        let interrupted = options.tells_stories() && self.session.interrupt.seen();
        let checks = self.session.conclude(&outcomes, wanted.len(), started, asked.err());
        if !options.common.shared.json && !told.is_empty() {
            stories::table(&told)?;
        }
        Ok(checks?.and(stories::exit(&told, interrupted)))
    }

    /// Asks about the checks that are wanted, and the stories. What is found out stays in `outcomes` and
    /// `told`, whatever happens then. Gives whether every story of the workspace was asked to its end.
    fn ask_all<'r>(
        &mut self,
        selected: &[&'r Removal],
        wanted: &[&'r Removal],
        options: &ProveOptions,
        outcomes: &mut Vec<Outcome<'r>>,
        told: &mut Vec<stories::Outcome>,
    ) -> anyhow::Result<bool> {
        let Some((schema, binaries, applied)) = self.build(selected)? else { return Ok(false) };
        for (place, &removal) in wanted.iter().enumerate() {
            if schema.apart.contains(&place) {
                continue;
            }
            if self.session.interrupt.seen() {
                return Ok(false);
            }
            let outcome = self.switched(place, removal, &binaries);
            outcomes.push(outcome.with_context(|| removal.check.id.clone())?);
            if outcomes.last().is_some_and(|outcome| self.session.is_enough(outcome)) {
                return Ok(false);
            }
        }
        let stories = if options.tells_stories() && !self.session.interrupt.seen() {
            self.stories(selected, &schema, &binaries, &options.stories, told)
        } else {
            Ok(false)
        };
        if self.session.options.fail_fast && told.iter().any(|outcome| !outcome.is_shown()) {
            return stories.and(Ok(false));
        }
        let apart = schema.apart.iter().filter_map(|&place| wanted.get(place).copied());
        let apart: Vec<&Removal> = apart.collect();
        // An error of a story is none of the checks.
        let checks = self.ask_apart(&apart, &binaries, applied, outcomes);
        let all = stories? && options.stories.is_empty();
        checks.map(|()| all)
    }

    /// Asks about the checks that no switch can express, after those that one can.
    fn ask_apart<'r>(
        &mut self,
        apart: &[&'r Removal],
        binaries: &TestBinaries,
        applied: Applied,
        outcomes: &mut Vec<Outcome<'r>>,
    ) -> anyhow::Result<()> {
        self.control(apart, binaries)?;
        self.session.runner.order.take();
        applied.undo()?;
        for &removal in apart {
            if self.session.interrupt.seen() {
                break;
            }
            let outcome = self.apart(removal);
            outcomes.push(outcome.with_context(|| removal.check.id.clone())?);
            if outcomes.last().is_some_and(|outcome| self.session.is_enough(outcome)) {
                break;
            }
        }
        Ok(())
    }

    /// Forgets who noticed the removal of checks that there are not any more.
    fn forget_lost(&mut self, workspace: &Workspace) -> anyhow::Result<()> {
        let removals = catalogue::plan(workspace, &workspace.root)?;
        self.killed_by.retain(|id, _| removals.iter().any(|removal| removal.check.id == *id));
        Ok(())
    }

    /// Builds all that can be switched. Nothing when it was interrupted.
    fn build(
        &self,
        selected: &[&Removal],
    ) -> anyhow::Result<Option<(Schema, TestBinaries, Applied)>> {
        let begun = Instant::now();
        self.session.builder.tell_left_out(&self.session.progress);
        let switch = self.session.scratch.order();
        let mut apart = BTreeSet::new();
        for round in 1..=ROUNDS_MAX {
            let doing = format_args!("building all removals behind switches, round {round}");
            self.session.progress.doing(doing);
            let schema = Schema::render(selected, &apart, &self.sources, &self.roots, &switch)?;
            let applied = self.session.scratch.apply(&schema.files)?;
            match self.session.builder.build()? {
                Build::Done(binaries) => {
                    let (count, alone) = (selected.len() - schema.apart.len(), schema.apart.len());
                    let seconds = begun.elapsed().as_secs_f64();
                    self.session.progress.done(
                        "built",
                        format_args!("{count} behind switches, {alone} apart ({seconds:.1} s)"),
                    );
                    return Ok(Some((schema, binaries, applied)));
                }
                Build::Interrupted => return Ok(None),
                Build::Failed(Failure { reason, log, errors }) => {
                    let blamed = self.blamed(&schema, &errors);
                    let before = schema.apart.len();
                    apart = &schema.apart | &blamed;
                    if apart.len() == before {
                        self.session.log("switches", &log)?;
                        let log = last_lines(&log);
                        let message =
                            format!("the workspace with switches does not build: {reason}\n{log}");
                        return Err(Stop::new(Exit::BaselineFails, message).into());
                    }
                }
            }
        }
        bail!("the compiler refuses switches in round after round")
    }

    /// Those that the errors of a build are about.
    fn blamed(&self, schema: &Schema, errors: &[CompilerError]) -> BTreeSet<usize> {
        let tree = self.session.scratch.tree();
        let of = |error: &CompilerError| {
            let mut blamed = error.places.iter().map(|place| {
                let file = place.file.strip_prefix(&tree).unwrap_or(&place.file);
                schema.blame(file, place.line)
            });
            blamed.find(|removals| !removals.is_empty()).unwrap_or_default()
        };
        errors.iter().flat_map(of).collect()
    }

    /// Switches a removal on for the programs to come.
    fn activate(&self, number: u32) -> anyhow::Result<()> {
        self.session.runner.give(Order::active(number))
    }

    /// The longest that one test may take by itself.
    fn limit(&self) -> Duration {
        self.session.options.shared.timeout
    }

    /// Proves a check by its switch.
    fn switched<'r>(
        &mut self,
        place: usize,
        removal: &'r Removal,
        binaries: &TestBinaries,
    ) -> anyhow::Result<Outcome<'r>> {
        let begun = Instant::now();
        let id = &removal.check.id;
        let number = schema::number(place);
        let mut verdict = None;
        if let Some((named, suite)) = self.named(id, binaries) {
            self.session.progress.doing(format_args!("{id}: {}", named.test));
            let (named, suite) = (&named, &suite);
            verdict = self.ask(Question { id, number, named, suite, binaries })?;
        }
        let verdict = match verdict {
            Some(verdict) => verdict,
            None => self.search(removal, number, binaries)?,
        };
        let outcome = Outcome { removal, verdict, took: begun.elapsed() };
        self.session.tell(&outcome)?;
        Ok(outcome)
    }

    /// The test that noticed the last time, if it is there and among those that are asked for.
    fn named(&self, id: &str, binaries: &TestBinaries) -> Option<(Named, Suite)> {
        let named = self.killed_by.get(id)?.clone();
        let of =
            |binary: &&BinaryId| binary.package == named.package && binary.name == named.binary;
        let binary = binaries.keys().find(of)?;
        let suite = Suite::alone(binary, &named.test)?;
        self.session.options.shared.selects(&suite).then_some((named, suite))
    }

    /// Asks one test: it has to pass with all checks in place, and to fail twice without the one.
    /// Nothing if it does otherwise.
    ///
    /// Without the check it may wait for what never comes, as long as a loaded machine might need.
    /// With all of them it shows how long it needs, and at first it may wait for little more.
    fn ask(&mut self, question: Question<'_>) -> anyhow::Result<Option<Verdict>> {
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
    fn usual(
        &mut self,
        question: Question<'_>,
    ) -> anyhow::Result<Result<Duration, Option<Verdict>>> {
        let named = question.named;
        if let Some(usual) = self.controlled.get(named) {
            return Ok(Ok(*usual));
        }
        match self.alone(runtime::NONE, question)? {
            Alone::Passed(usual) => {
                self.controlled.insert(named.clone(), usual);
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
        self.session.runner.patience.set(patience);
        let verdict = self.on_off_on(patience, question);
        self.session.runner.patience.set(None);
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
            Alone::Failed(..) => Some(self.proved(question.id, killer, &log)?),
            Alone::Interrupted => Some(Verdict::Interrupted),
            Alone::Passed(_) | Alone::TimedOut => None,
        })
    }

    /// Runs a test by itself, with a removal on, or none.
    fn alone(&self, number: u32, question: Question<'_>) -> anyhow::Result<Alone> {
        let Question { named, suite, binaries, .. } = question;
        self.activate(number)?;
        self.session.runner.run_alone(binaries, suite, &named.test, self.limit())
    }

    fn proved(&self, id: &str, killer: Killer, log: &str) -> anyhow::Result<Verdict> {
        self.session.log(id, log)?;
        Ok(Verdict::Proved(killer))
    }

    /// Asks all tests that come by the removal.
    fn search(
        &mut self,
        removal: &Removal,
        number: u32,
        binaries: &TestBinaries,
    ) -> anyhow::Result<Verdict> {
        if self.records.is_none() {
            self.records = self.record(binaries)?;
        }
        let Some(records) = &self.records else { return Ok(Verdict::Interrupted) };
        let rules = Rules { timeout: self.limit(), matrix: false, quick: None, strict: true };
        let ordered = Ordered::new(&self.session.runner, binaries)?;
        let mut hunter = Hunter::new(ordered, records, rules, &self.session.progress);
        let id = &removal.check.id;
        let place = (removal.file.clone(), String::new());
        let fate = hunter.hunt(&Prey { name: id.clone(), number, place })?;
        let unsteady = hunter.unsteady();
        let verdict = match fate {
            None => Verdict::Interrupted,
            Some(Fate::Caught { killers }) => {
                self.session.log(id, hunter.log())?;
                // OK because it is caught by one at least.
                killers.into_iter().next().map_or(Verdict::Interrupted, Verdict::Proved)
            }
            Some(Fate::Hung { test, .. }) => Verdict::TimedOut { hung: vec![test], unsteady },
            Some(Fate::Undecided { tests }) => Verdict::TimedOut { hung: tests, unsteady },
            Some(_) => {
                let mut passed = BTreeMap::new();
                for test in records.iter().filter(|test| test.reached.contains(&number)) {
                    *passed.entry(test.kind).or_default() += 1;
                }
                Verdict::NotProved { passed, unsteady }
            }
        };
        Ok(verdict)
    }

    /// Records all tests that were asked for. Nothing if it was interrupted.
    fn record(&self, binaries: &TestBinaries) -> anyhow::Result<Option<Vec<TestRecord>>> {
        let begun = Instant::now();
        // They are listed by programs with switches in them.
        self.activate(runtime::NONE)?;
        let suites = self.session.runner.selected_suites(binaries, &self.session.options.shared)?;
        let Some(suites) = suites else { return Ok(None) };
        let mut ordered = Ordered::new(&self.session.runner, binaries)?;
        let records = record::record(&mut ordered, &suites, Vec::new(), &self.session.progress)?;
        if let Some(records) = &records {
            let (count, seconds) = (records.len(), begun.elapsed().as_secs_f64());
            self.session.progress.done("recorded", format_args!("{count} tests ({seconds:.1} s)"));
        }
        Ok(records)
    }

    /// Sees that the tests that are to prove something in builds of their own pass with all checks in
    /// place.
    fn control(&mut self, apart: &[&Removal], binaries: &TestBinaries) -> anyhow::Result<()> {
        self.activate(runtime::NONE)?;
        for removal in apart {
            if let Some((named, suite)) = self.named(&removal.check.id, binaries)
                && let Alone::Passed(usual) =
                    self.session.runner.run_alone(binaries, &suite, &named.test, self.limit())?
            {
                // Once more in a hurry, as it will be in the other build.
                self.session.runner.patience.set(Some(patience(usual)));
                let again =
                    self.session.runner.run_alone(binaries, &suite, &named.test, self.limit());
                self.session.runner.patience.set(None);
                if matches!(again?, Alone::Passed(_)) {
                    self.hurried.insert(named.clone());
                }
                self.controlled.insert(named, usual);
            }
        }
        Ok(())
    }

    /// Proves a check in a build of its own.
    fn apart<'r>(&mut self, removal: &'r Removal) -> anyhow::Result<Outcome<'r>> {
        let begun = Instant::now();
        let verdict = match self.apart_by_name(removal)? {
            Some(verdict) => verdict,
            None => self.apart_by_search(removal)?,
        };
        let outcome = Outcome { removal, verdict, took: begun.elapsed() };
        self.session.tell(&outcome)?;
        Ok(outcome)
    }

    /// By the test that noticed the last time; nothing if it does not.
    fn apart_by_name(&self, removal: &Removal) -> anyhow::Result<Option<Verdict>> {
        let id = &removal.check.id;
        if !self.killed_by.get(id).is_some_and(|named| self.controlled.contains_key(named)) {
            return Ok(None);
        }
        let verdict = self.session.without(removal, |binaries| {
            let Some((named, suite)) = self.named(id, binaries) else { return Ok(None) };
            let runner = &self.session.runner;
            self.session.progress.doing(format_args!("{id}: {}", named.test));
            let usual = self.controlled.get(&named).filter(|_| self.hurried.contains(&named));
            runner.patience.set(usual.copied().map(patience));
            let alone = || runner.run_alone(binaries, &suite, &named.test, self.limit());
            let both = (alone(), alone());
            runner.patience.set(None);
            Ok(match (both.0?, both.1?) {
                (Alone::Failed(killer, log), Alone::Failed(..)) => {
                    Some(self.proved(id, killer, &log)?)
                }
                (Alone::Interrupted, _) | (_, Alone::Interrupted) => Some(Verdict::Interrupted),
                _ => None,
            })
        })?;
        Ok(verdict.unwrap_or_else(Some))
    }

    /// By all suites, which are run unchanged before.
    fn apart_by_search(&mut self, removal: &Removal) -> anyhow::Result<Verdict> {
        if self.timed.is_none() {
            self.timed = self.session.baseline()?;
        }
        let Some(timed) = &self.timed else { return Ok(Verdict::Interrupted) };
        let id = &removal.check.id;
        let found =
            self.session.without(removal, |binaries| self.session.search(id, binaries, timed))?;
        Ok(found.unwrap_or_else(|verdict| verdict))
    }
}
