//! The command `prove`: all removals in one build, and for each a test that fails because of it.
//!
//! Order of work: plan, render all removals behind switches, build, and take those that the compiler
//! refuses apart; then for each check switch its removal on and run the test that noticed the last
//! time. It has to pass with all checks in place, which is seen once for each test, and to fail twice
//! without the one. Where it does not, the tests that were selected are recorded (`record`), and those
//! are searched that come by the removal. In the same build the stories are told without the checks
//! that they say they protect ([`tell`]). What no switch can express gets a build of its own; there
//! all suites are searched where the test of the last time does not fail.

mod apart;
mod ask;
mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, bail};

use self::ask::{Asker, Common, Controlled};
use crate::abreast::{Finish, abreast};
use crate::builder::{Build, Builder, CompilerError, Failure, TestBinaries};
use crate::catalogue::{self, Removal};
use crate::cli::{ProveOptions, Shared};
use crate::exit::{Exit, Stop};
use crate::hunt::{Hunter, Memory, Prey, Rules};
use crate::killed_by::{self, KilledBy, Named};
use crate::record::{self, Ordered};
use crate::report::{self, Outcome, Verdict};
use crate::schema::{self, Schema};
use crate::session::{Session, Timed, begin, in_copy, last_lines, select};
use crate::state::{Fate, TestRecord};
use crate::stories::{self, Shown};
use crate::targets::Targets;
use crate::tree::Applied;
use crate::workspace::Workspace;

/// How often the build is tried again without those that the compiler refuses.
const ROUNDS_MAX: usize = 12;

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
            controlled: Controlled::default(),
            hurried: BTreeSet::new(),
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

struct Prover<'a> {
    session: Session<'a>,
    sources: BTreeMap<PathBuf, String>,
    roots: BTreeMap<PathBuf, PathBuf>,
    killed_by: KilledBy,
    /// What showed the rules of the stories the last time.
    shown: Shown,
    controlled: Controlled,
    /// Tests that passed in a hurry, too, for the builds without switches.
    hurried: BTreeSet<Named>,
    /// All suites with their usual times, once they were needed.
    timed: Option<Vec<Timed>>,
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
        let enough = self.enough(wanted, options);
        let Some((schema, mut binaries, applied)) = self.build(selected, enough.as_ref())? else {
            return Ok(false);
        };
        let switched = (0..wanted.len()).filter(|place| !schema.apart.contains(place));
        let places: Vec<usize> = switched.collect();
        let (finish, open) = self.by_name(&places, wanted, &binaries, outcomes)?;
        if finish == Finish::Early {
            return Ok(false);
        }
        if !open.is_empty() {
            if enough.is_some() {
                let Some(all) = self.build_all()? else { return Ok(false) };
                binaries = all;
            }
            if self.search(&open, wanted, &binaries, outcomes)? == Finish::Early {
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

    /// The test binaries that are enough if each test of the last time notices again. Nothing if it
    /// takes all of them.
    fn enough(&self, wanted: &[&Removal], options: &ProveOptions) -> Option<Targets> {
        let Builder { workspace, packages, .. } = self.session.builder;
        let Shared { kinds, binaries, .. } = &options.common.shared;
        let mut targets = Targets::default();
        let mut all = kinds.is_empty() && binaries.is_empty();
        for removal in wanted {
            let named = self.killed_by.get(&removal.check.id)?;
            all &= packages.is_empty() || packages.contains(&named.package);
            all &= targets.add(workspace, &named.package, &named.binary);
        }
        if options.tells_stories() {
            all &= targets.add_stories(workspace);
        }
        all.then_some(targets)
    }

    /// Builds all that can be switched, with these test binaries, or all. Nothing when it was
    /// interrupted.
    fn build(
        &self,
        selected: &[&Removal],
        only: Option<&Targets>,
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
            match self.session.builder.build(only)? {
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
                        self.session.scratch.log("switches", &log)?;
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

    /// Builds the other test binaries as well. Nothing when it was interrupted.
    fn build_all(&self) -> anyhow::Result<Option<TestBinaries>> {
        let begun = Instant::now();
        self.session.progress.doing("building all tests");
        match self.session.builder.build(None)? {
            Build::Done(binaries) => {
                let (count, seconds) = (binaries.len(), begun.elapsed().as_secs_f64());
                let told = format_args!("{count} test binaries ({seconds:.1} s)");
                self.session.progress.done("built", told);
                Ok(Some(binaries))
            }
            Build::Interrupted => Ok(None),
            Build::Failed(Failure { reason, log, .. }) => {
                let log = last_lines(&log);
                let message = format!("not all tests build with switches: {reason}\n{log}");
                Err(Stop::new(Exit::BaselineFails, message).into())
            }
        }
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

    /// What all who ask about removals have in common.
    fn common<'c>(&'c self, binaries: &'c TestBinaries) -> Common<'c> {
        Common {
            shared: &self.session.options.shared,
            scratch: self.session.scratch,
            setting: &self.session.setting,
            progress: &self.session.progress,
            killed_by: &self.killed_by,
            controlled: &self.controlled,
            binaries,
        }
    }

    /// Proves checks by their switches and the tests of the last time. Gives those that these did not
    /// notice.
    fn by_name<'r>(
        &self,
        places: &[usize],
        wanted: &[&'r Removal],
        binaries: &TestBinaries,
        outcomes: &mut Vec<Outcome<'r>>,
    ) -> anyhow::Result<(Finish, Vec<usize>)> {
        let (common, mut open) = (self.common(binaries), Vec::new());
        let finish = abreast(
            places,
            self.session.setting.jobs,
            || Ok(Asker::new(&common)),
            |asker, &place| {
                if common.setting.interrupt.seen() {
                    return Ok(None);
                }
                let (begun, removal) = (Instant::now(), wanted[place]);
                let verdict = asker.switched(removal, schema::number(place));
                let verdict = verdict.with_context(|| removal.check.id.clone())?;
                Ok(Some((place, verdict, begun.elapsed())))
            },
            |(place, verdict, took)| match verdict {
                Some(verdict) => {
                    self.told(Outcome { removal: wanted[place], verdict, took }, outcomes)
                }
                None => {
                    open.push(place);
                    Ok(ControlFlow::Continue(()))
                }
            },
        )?;
        Ok((finish, open))
    }

    /// Tells about a check that is done, and whether the run goes on.
    fn told<'r>(
        &self,
        outcome: Outcome<'r>,
        outcomes: &mut Vec<Outcome<'r>>,
    ) -> anyhow::Result<ControlFlow<()>> {
        self.session.tell(&outcome)?;
        let enough = self.session.is_enough(&outcome);
        outcomes.push(outcome);
        Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Asks all tests that come by each removal, after they were recorded.
    fn search<'r>(
        &self,
        places: &[usize],
        wanted: &[&'r Removal],
        binaries: &TestBinaries,
        outcomes: &mut Vec<Outcome<'r>>,
    ) -> anyhow::Result<Finish> {
        let Some(records) = self.record(binaries)? else { return Ok(Finish::Early) };
        let (common, records) = (self.common(binaries), &*records);
        abreast(
            places,
            common.setting.jobs,
            || Ok(()),
            |(), &place| {
                if common.setting.interrupt.seen() {
                    return Ok(None);
                }
                let (begun, removal) = (Instant::now(), wanted[place]);
                let verdict = searched(&common, records, removal, schema::number(place));
                let verdict = verdict.with_context(|| removal.check.id.clone())?;
                Ok(Some(Outcome { removal, verdict, took: begun.elapsed() }))
            },
            |outcome| self.told(outcome, outcomes),
        )
    }

    /// Records all tests that were asked for. Nothing if it was interrupted.
    fn record(&self, binaries: &TestBinaries) -> anyhow::Result<Option<Vec<TestRecord>>> {
        let begun = Instant::now();
        let (setting, progress) = (&self.session.setting, &self.session.progress);
        let suites = setting.runner().selected_suites(binaries, &self.session.options.shared)?;
        let Some(suites) = suites else { return Ok(None) };
        let records = record::record(setting, binaries, &suites, Vec::new(), progress)?;
        if let Some(records) = &records {
            let (count, seconds) = (records.len(), begun.elapsed().as_secs_f64());
            progress.done("recorded", format_args!("{count} tests ({seconds:.1} s)"));
        }
        Ok(records)
    }
}

/// What the tests that come by a removal say of it.
fn searched(
    common: &Common<'_>,
    records: &[TestRecord],
    removal: &Removal,
    number: u32,
) -> anyhow::Result<Verdict> {
    let timeout = common.shared.timeout;
    let rules = Rules { timeout, matrix: false, quick: None, strict: true };
    let (memory, ordered) = (Memory::of(records), Ordered::new(common.setting, common.binaries)?);
    let mut hunter = Hunter::new(ordered, records, rules, common.progress, &memory);
    let id = &removal.check.id;
    let place = (removal.file.clone(), String::new());
    let fate = hunter.hunt(&Prey { name: id.clone(), number, place })?;
    let unsteady = memory.unsteady(records);
    Ok(match fate {
        None => Verdict::Interrupted,
        Some(Fate::Caught { killers }) => {
            common.scratch.log(id, hunter.log())?;
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
    })
}
