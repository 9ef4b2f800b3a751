//! The command `mutate`: the usual operators over whole packages, all mutants in one build.
//!
//! Order of work: find the mutants, ask the compiler which it takes, build everything once, record
//! which test comes by which mutant, and show each mutant to those tests only. What a run found out
//! about the compiler and the tests is kept for the next (`state`).

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use glob::Pattern;

use crate::abreast::abreast;
use crate::builder::{Builder, TestBinaries};
use crate::cli::{
    CheckOptions, CompareOptions, MutateCommand, MutateOptions, ProveOptions, ShowOptions,
};
use crate::compare;
use crate::confine::Confinement;
use crate::equivalents::{self, Equivalents};
use crate::exit::{Exit, Stop};
use crate::hash::Hash;
use crate::hunt::{Hunter, Memory, Prey, Rules};
use crate::interrupt::Interrupt;
use crate::mutant::{Mutant, Plan};
use crate::progress::Progress;
use crate::prove;
use crate::record::{self, Ordered};
use crate::run::Setting;
use crate::session::{begin, existing};
use crate::state::{Fate, Recorded, Settled, State, TestRecord};
use crate::survey::{self, Finding};
use crate::switched::Switched;
use crate::targets::Targets;
use crate::tree::Scratch;
use crate::workspace::{Workspace, own_package};

pub(crate) fn mutate(options: &MutateOptions) -> anyhow::Result<Exit> {
    if !(options.checks.is_empty() && options.rules.is_empty()) {
        return prove::prove(&named_checks(options));
    }
    begin(&options.shared)?;
    match &options.command {
        Some(MutateCommand::Show(options)) => return show(options),
        Some(MutateCommand::Compare(options)) => return compare(options),
        None => {}
    }
    let workspace = Workspace::find(options.shared.manifest_path.as_deref())?;
    let test_packages = existing(&workspace, &options.shared.test_packages)?;
    if options.list {
        return list(options, &workspace);
    }
    let scratch = Scratch::take(&workspace.target_directory)?;
    let mut state = State::read(scratch.root());
    let packages = packages(&workspace, asked(options, &state.packages))?;
    let plan = Plan::of(&workspace, &packages)?;
    let equivalents = equivalents::read(&workspace, &packages, &plan.mutants)?;
    state.packages = packages.clone();
    let selected = select(&plan, options, &state)?;
    let interrupt = Interrupt::watch().context("cannot watch for signals")?;
    let confinement = Confinement::around(&workspace, &scratch, &interrupt)?;
    let run = Run {
        options,
        plan: &plan,
        equivalents: &equivalents,
        packages: &packages,
        builder: Builder {
            scratch: &scratch,
            tree: scratch.switched(),
            workspace: &workspace,
            packages: &test_packages,
            jobs: options.shared.jobs,
            interrupt: &interrupt,
        },
        setting: Setting::new(scratch.switched(), &confinement, &interrupt, &options.shared),
        progress: Progress::new(selected.len(), options.shared.verbose),
    };
    run.all(&selected, &mut state)
}

/// The options of `prove` for named checks.
fn named_checks(options: &MutateOptions) -> ProveOptions {
    ProveOptions {
        stories: Vec::new(),
        bless: false,
        common: CheckOptions {
            checks: options.checks.clone(),
            rules: options.rules.clone(),
            list: options.list,
            fail_fast: false,
            shared: options.shared.clone(),
        },
    }
}

/// Prints the mutants that the command line asks for.
fn list(options: &MutateOptions, workspace: &Workspace) -> anyhow::Result<Exit> {
    let state = State::read(&Scratch::path(&workspace.target_directory));
    let packages = packages(workspace, asked(options, &state.packages))?;
    let plan = Plan::of(workspace, &packages)?;
    equivalents::read(workspace, &packages, &plan.mutants)?;
    survey::list(&select(&plan, options, &state)?, options.shared.json)?;
    Ok(Exit::Proved)
}

/// The packages that the command line asks for. What was missed was missed in those of the last run.
fn asked<'o>(options: &'o MutateOptions, last: &'o [String]) -> &'o [String] {
    if options.missed && options.packages.is_empty() { last } else { &options.packages }
}

/// The packages that are mutated.
fn packages(workspace: &Workspace, asked: &[String]) -> anyhow::Result<Vec<String>> {
    if asked.is_empty() {
        let mut packages = workspace.default_members.clone();
        packages.retain(|name| name != own_package());
        return Ok(packages);
    }
    existing(workspace, asked)
}

/// The mutants that the command line asks for.
fn select<'p>(
    plan: &'p Plan,
    options: &MutateOptions,
    state: &State,
) -> anyhow::Result<Vec<&'p Mutant>> {
    for id in &options.mutants {
        if !plan.mutants.iter().any(|mutant| mutant.id == *id) {
            return Err(Stop::new(Exit::NothingMatched, format!("no mutant is named {id}")).into());
        }
    }
    let wanted = |mutant: &&Mutant| {
        let (functions, ids) = (&options.functions, &options.mutants);
        is_in(&options.files, mutant)
            && (functions.is_empty() || functions.iter().any(|part| mutant.function.contains(part)))
            && (ids.is_empty() || ids.contains(&mutant.id))
            && (!options.missed || state.fates.get(&mutant.id).is_some_and(Fate::is_missed))
    };
    let matching = plan.mutants.iter().filter(wanted).enumerate();
    let in_slice = matching
        .filter(|(place, _)| options.partition.is_none_or(|partition| partition.holds(*place)));
    let selected: Vec<&Mutant> = in_slice.map(|(_, mutant)| mutant).collect();
    if selected.is_empty() {
        return Err(Stop::new(Exit::NothingMatched, "there is no such mutant").into());
    }
    Ok(selected)
}

/// Whether a mutant is in one of some files; without any, it may be anywhere.
fn is_in(files: &[Pattern], mutant: &Mutant) -> bool {
    files.is_empty() || files.iter().any(|glob| glob.matches_path(&mutant.file))
}

/// Everything that a run needs.
struct Run<'a> {
    options: &'a MutateOptions,
    plan: &'a Plan,
    equivalents: &'a Equivalents,
    packages: &'a [String],
    builder: Builder<'a>,
    setting: Setting<'a>,
    progress: Progress,
}

impl<'a> Run<'a> {
    fn all(self, selected: &[&'a Mutant], state: &mut State) -> anyhow::Result<Exit> {
        let started = Instant::now();
        let (mut findings, mut unsteady) = (Vec::new(), Vec::new());
        let mut failure = None;
        if let Some((binaries, records)) = self.prepare(state)? {
            let told = self.hunt_all(selected, state, &binaries, &records, &mut findings);
            match told {
                Ok(names) => unsteady = names,
                Err(error) => failure = Some(error),
            }
            state.fates.retain(|id, _| self.plan.mutants.iter().any(|mutant| mutant.id == *id));
            state.write(self.builder.scratch.root())?;
        }
        let untried = selected.len() - findings.len();
        drop(self.progress);
        if self.options.shared.json {
            unsteady.iter().try_for_each(|test| survey::json_unsteady(test))?;
        } else {
            survey::table(&findings, untried, &unsteady, started.elapsed())?;
        }
        // What was found before is worth its time all the same.
        match failure {
            Some(error) => Err(error),
            None => Ok(survey::exit(&findings, untried)),
        }
    }

    /// Builds the tests and records them, as far as the last run has not. Nothing if it was
    /// interrupted.
    fn prepare(
        &self,
        state: &mut State,
    ) -> anyhow::Result<Option<(TestBinaries, Vec<TestRecord>)>> {
        let scratch = self.builder.scratch;
        let switched = Switched {
            plan: self.plan,
            builder: &self.builder,
            packages: self.packages,
            order: scratch.order(),
            progress: &self.progress,
        };
        let key = switched.key()?;
        let known = state.settled.take().filter(|settled| settled.key == key);
        let settled = match known {
            Some(settled) => Some(settled),
            None => switched.settle(key)?,
        };
        let Some(mut settled) = settled else { return Ok(None) };
        let Builder { workspace, packages, .. } = self.builder;
        let only = Targets::of(workspace, packages, &self.options.shared.binaries);
        let built = switched.build(&mut settled, only.as_ref())?;
        state.settled = Some(settled);
        state.write(scratch.root())?;
        let Some(binaries) = built else { return Ok(None) };

        let mut hash = Hash::new();
        hash.add_tree(&scratch.switched()).context("cannot read the copy")?;
        let key = hash.text();
        let known = state.recorded.take().filter(|recorded| recorded.key == key);
        let known = known.map(|recorded| recorded.tests).unwrap_or_default();
        let suites = self.setting.runner().selected_suites(&binaries, &self.options.shared)?;
        let Some(suites) = suites else { return Ok(None) };
        let begun = Instant::now();
        let (setting, progress) = (&self.setting, &self.progress);
        let records = record::record(setting, &binaries, &suites, known.clone(), progress)?;
        let Some(records) = records else { return Ok(None) };
        let seconds = begun.elapsed().as_secs_f64();
        self.progress.done("recorded", format_args!("{} tests ({seconds:.1} s)", records.len()));
        // Those that were not selected this time are kept for another.
        let others = known.into_iter().filter(|record| {
            !records.iter().any(|own| own.binary == record.binary && own.test == record.test)
        });
        let tests = records.iter().cloned().chain(others).collect();
        state.recorded = Some(Recorded { key, plan: self.plan.key(), tests });
        state.write(scratch.root())?;
        Ok(Some((binaries, records)))
    }

    /// Hunts every mutant, and gives the tests that turned out to be unsteady.
    fn hunt_all(
        &self,
        selected: &[&'a Mutant],
        state: &mut State,
        binaries: &TestBinaries,
        records: &[TestRecord],
        findings: &mut Vec<Finding<'a>>,
    ) -> anyhow::Result<Vec<String>> {
        let settled = state.settled.clone().unwrap_or_default();
        let rules = Rules {
            timeout: self.options.shared.timeout,
            matrix: self.options.matrix,
            quick: self.options.quick,
            strict: false,
        };
        let memory = Memory::of(records);
        abreast(
            selected,
            self.setting.jobs,
            || {
                let ordered = Ordered::new(&self.setting, binaries)?;
                Ok(Hunter::new(ordered, records, rules, &self.progress, &memory))
            },
            |hunter, &mutant| {
                let begun = Instant::now();
                let Some(fate) = fate(hunter, &settled, mutant)? else { return Ok(None) };
                let reached = records.iter().filter(|test| test.reached.contains(&mutant.number));
                Ok(Some(Finding {
                    mutant,
                    fate,
                    equivalent: self.equivalents.get(&mutant.number).map(String::as_str),
                    tests: reached.map(TestRecord::name).collect(),
                    took: begun.elapsed(),
                }))
            },
            |finding| {
                state.fates.insert(finding.mutant.id.clone(), finding.fate.clone());
                self.tell(&finding)?;
                findings.push(finding);
                Ok(ControlFlow::Continue(()))
            },
        )?;
        Ok(memory.unsteady(records))
    }

    /// Tells about a mutant that is done: on the terminal only what a person has to look at.
    fn tell(&self, finding: &Finding<'_>) -> anyhow::Result<()> {
        if let Some(told) = finding.told() {
            self.progress.done(finding.word(), told);
        }
        self.progress.advance();
        if self.options.shared.json {
            survey::json(finding)?;
        }
        Ok(())
    }
}

/// What becomes of a mutant. Nothing if it was interrupted.
fn fate(
    hunter: &mut Hunter<'_>,
    settled: &Settled,
    mutant: &Mutant,
) -> anyhow::Result<Option<Fate>> {
    if let Some(reason) = settled.dropped.get(&mutant.number) {
        return Ok(Some(Fate::DoesNotCompile { reason: reason.clone() }));
    }
    if !settled.compiled.contains(&mutant.number) {
        return Ok(Some(Fate::NotCompiled));
    }
    hunter.hunt(&prey(mutant))
}

fn prey(mutant: &Mutant) -> Prey {
    Prey {
        name: mutant.id.clone(),
        number: mutant.number,
        place: (mutant.file.clone(), mutant.function.clone()),
    }
}

/// The workspace of the last run, with what is known of it, and its mutants.
fn last_run(manifest: Option<&Path>) -> anyhow::Result<(Workspace, State, Plan)> {
    let workspace = Workspace::find(manifest)?;
    let mut state = State::read(&Scratch::path(&workspace.target_directory));
    // Those of the last run: their numbers are those of its records.
    state.packages = packages(&workspace, &state.packages)?;
    let plan = Plan::of(&workspace, &state.packages)?;
    Ok((workspace, state, plan))
}

fn compare(options: &CompareOptions) -> anyhow::Result<Exit> {
    let (workspace, state, plan) = last_run(options.manifest_path.as_deref())?;
    let mutants: Vec<&Mutant> =
        plan.mutants.iter().filter(|mutant| is_in(&options.files, mutant)).collect();
    compare::compare(&workspace.root, &mutants, &state, &options.directory)
}

/// Prints what is known of one mutant.
fn show(options: &ShowOptions) -> anyhow::Result<Exit> {
    let (workspace, state, plan) = last_run(options.manifest_path.as_deref())?;
    let Some(mutant) = plan.mutants.iter().find(|mutant| mutant.id == options.id) else {
        let message = format!("no mutant of the last run is named {}", options.id);
        return Err(Stop::new(Exit::NothingMatched, message).into());
    };
    let equivalents = equivalents::read(&workspace, &state.packages, &plan.mutants)?;
    let reached = reached(state.recorded.as_ref(), &plan, mutant);
    let equivalent = equivalents.get(&mutant.number).map(String::as_str);
    survey::show(
        mutant,
        state.fates.get(&mutant.id),
        equivalent,
        reached.as_deref(),
        options.json,
    )?;
    Ok(Exit::Proved)
}

/// The tests that come by a mutant. Nothing where they were recorded with other mutants, whose numbers
/// they know.
fn reached<'s>(
    recorded: Option<&'s Recorded>,
    plan: &Plan,
    mutant: &Mutant,
) -> Option<Vec<&'s TestRecord>> {
    let Some(recorded) = recorded else { return Some(Vec::new()) };
    let own = recorded.tests.iter().filter(|test| test.reached.contains(&mutant.number));
    (recorded.plan == plan.key()).then(|| own.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::BinaryId;
    use crate::cli::{Arguments, Command};
    use crate::mutant::tests::plan_one;
    use crate::suite::Kind;
    use clap::Parser as _;

    #[track_caller]
    fn options(line: &[&str]) -> Box<MutateOptions> {
        let line = ["mortmain-mutants", "mutate"].iter().chain(line);
        match Arguments::try_parse_from(line).unwrap().command {
            Command::Mutate(options) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_missed_is_looked_for_where_the_last_run_was() {
        let last = ["last".to_owned()];
        assert_eq!(asked(&options(&["--missed"]), &last), ["last"]);
        assert_eq!(asked(&options(&["--missed", "--package=other"]), &last), ["other"]);
        assert_eq!(asked(&options(&[]), &last), [""; 0]);
    }

    #[test]
    fn a_record_is_about_the_mutants_that_it_was_made_with() {
        let plan = plan_one("fn f() -> bool { a == b }");
        let test = TestRecord {
            binary: BinaryId {
                package: "p".to_owned(),
                target: "lib".to_owned(),
                name: "p".to_owned(),
            },
            kind: Kind::Unit,
            test: "t".to_owned(),
            seconds: 0.0,
            rounds: 0,
            reached: [3].into(),
            steady: true,
        };
        let recorded = Recorded { key: String::new(), plan: plan.key(), tests: vec![test] };
        let of = |plan: &Plan, nth: usize| {
            reached(Some(&recorded), plan, &plan.mutants[nth]).map(|tests| tests.len())
        };
        assert_eq!([of(&plan, 1), of(&plan, 2)], [Some(0), Some(1)]);
        let moved = plan_one("// moved\nfn f() -> bool { a == b }");
        assert_eq!(of(&moved, 2), Some(1));
        let changed = plan_one("fn e() -> bool { c }\nfn f() -> bool { a == b }");
        assert_eq!(of(&changed, 2), None);
    }
}
