//! `mortmain-lab explore --engine …`: schedules that are drawn from a seed, on live processes.

use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use mortmain_harness::explore::{
    Case, Counterexample, SampleCounts, Sampled, Sampling, Shrunk, Strategy, Without, explain,
    sample, sample_causes, shrink,
};
use mortmain_harness::judge::Judged;
use serde::Serialize;

use crate::causes::All;
use crate::exit::Exit;
use crate::explore::{Engine, HOW};
use crate::interrupt::Interrupt;
use crate::output::{Output, several};
use crate::replay::{self, Drawn, Saved};

/// What is drawn.
#[derive(Args, Clone, Default, Debug)]
// Else it has the name of the options around it.
#[group(id = "drawn")]
#[command(next_help_heading = HOW)]
pub(crate) struct Options {
    /// What schedules are drawn from; the same seed draws the same [default: 1]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// How many schedules are drawn [default: 10000; of a series 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
    /// Draw this one alone, from 0
    #[arg(long, value_name = "I", conflicts_with = "iterations")]
    #[arg(value_parser = clap::value_parser!(u64).range(..u64::MAX))]
    iteration: Option<u64>,
    /// Threads that share the work, with the same result [default: one for each core]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// Of pct: moments that have to come in order for what is looked for [default: 3]
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u32).range(1..=20))]
    depth: Option<u32>,
    /// Go on after a finding, and tell all of them by their causes
    #[arg(long)]
    all: bool,
}

/// Whether an option was given, its name, and the engines that it is for.
pub(crate) type Given = (bool, &'static str, &'static [Engine]);

const SEED: u64 = 1;
const ITERATIONS: u64 = 10_000;
const BASES: u64 = 10;
const DEPTH: u32 = 3;

impl Options {
    /// How schedules are drawn, if they are.
    pub(crate) fn strategy(&self, engine: Engine) -> Option<Strategy> {
        match engine {
            Engine::Exhaustive | Engine::Series => None,
            Engine::Random => Some(Strategy::Random),
            Engine::Sticky => Some(Strategy::Sticky),
            Engine::Pct => Some(Strategy::Pct { depth: self.depth.unwrap_or(DEPTH) }),
        }
    }

    /// Whether each of these options was given, and the engines that it is for.
    pub(crate) fn given(&self) -> [Given; 6] {
        use Engine::{Pct, Random, Series, Sticky};
        [
            (self.seed.is_some(), "--seed", &[Random, Sticky, Pct, Series]),
            (self.iterations.is_some(), "--iterations", &[Random, Sticky, Pct, Series]),
            (self.iteration.is_some(), "--iteration", &[Random, Sticky, Pct]),
            (self.threads.is_some(), "--threads", &[Random, Sticky, Pct]),
            (self.depth.is_some(), "--depth", &[Pct]),
            (self.all, "--all", &[Random, Sticky, Pct, Series]),
        ]
    }

    /// Seed and number of schedules, with defaults of their own for a series.
    pub(crate) fn bases(&self) -> (u64, u64) {
        (self.seed.unwrap_or(SEED), self.iterations.unwrap_or(BASES))
    }

    /// Whether a finding is not the end.
    pub(crate) fn all(&self) -> bool {
        self.all
    }

    fn sampling(&self, strategy: Strategy) -> Sampling {
        let iterations = match self.iteration {
            // OK because the last of all is refused.
            Some(one) => one..one + 1,
            None => 0..self.iterations.unwrap_or(ITERATIONS),
        };
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.map_or_else(cores, usize::from);
        let seed = self.seed.unwrap_or(SEED);
        Sampling { strategy, seed, iterations, threads, early_ends: true }
    }
}

/// What is to be done.
pub(crate) struct Work<'w> {
    pub(crate) case: Case,
    /// The case in words.
    pub(crate) what: &'w str,
    pub(crate) strategy: Strategy,
    /// Where findings go.
    pub(crate) save: &'w Path,
}

/// Draws schedules, runs them, and prints what came of it.
pub(crate) fn run(
    options: &Options,
    work: &Work<'_>,
    output: &Output,
    interrupt: &Interrupt,
) -> io::Result<Exit> {
    let sampling = options.sampling(work.strategy);
    let drawn = sampling.iterations.end - sampling.iterations.start;
    if options.all() {
        return run_all(&sampling, work, output, interrupt);
    }
    let progress = output.progress("explore");
    let (sampled, counts) = sample(&work.case.setup(), &sampling, &mut |counts| {
        progress.at(counts.runs, drawn, "schedules");
        !interrupt.is_asked()
    });
    progress.done();
    let engine = words_of(work.strategy);
    let seed = sampling.seed;
    let what = format!("{}, {engine}, seed {seed}", work.what);
    let (exit, verdict) = match &sampled {
        Sampled::Nothing => {
            (Exit::Holds, format!("{what}: nothing found, which is no proof, {counts}"))
        }
        Sampled::Found { iteration, .. } => {
            (Exit::Finding, format!("{what}: iteration {iteration} does not hold, {counts}"))
        }
        Sampled::Ended => (Exit::Undecided, format!("{what}: interrupted, {counts} so far")),
    };
    let short = match &sampled {
        Sampled::Found { iteration, found } => {
            let name = engine.split(' ').next().unwrap_or_default();
            let stem = format!("-{name}-{seed}-{iteration}");
            let words = format!("{engine}, seed {seed}, iteration {iteration}");
            Some(Short::of(work.case, found, &Drawn { stem, words }, work.save)?)
        }
        Sampled::Nothing | Sampled::Ended => None,
    };
    let exit = short.as_ref().map_or(exit, |short| short.saved.exit);
    let mut out = output.stdout();
    if output.json() {
        let line = Line::of(&sampled, &counts, &engine, seed, exit, short.as_ref());
        output.json_line(&mut out, "sample", &line)?;
        return Ok(exit);
    }
    if let Some(short) = &short {
        short.tell(&mut out)?;
    }
    for fault in never_fired(&work.case, &counts) {
        writeln!(
            out,
            "{}",
            output.bad(&format!("no {fault} was ever drawn: draw more schedules"))
        )?;
    }
    writeln!(out, "{}", output.verdict(&verdict, exit == Exit::Holds))?;
    Ok(exit)
}

/// Goes on after each finding, and prints how often there was which cause.
fn run_all(
    sampling: &Sampling,
    work: &Work<'_>,
    output: &Output,
    interrupt: &Interrupt,
) -> io::Result<Exit> {
    let drawn = sampling.iterations.end - sampling.iterations.start;
    let progress = output.progress("explore");
    let (causes, whole, counts) = sample_causes(work.case, sampling, &mut |counts| {
        progress.at(counts.runs, drawn, "schedules");
        !interrupt.is_asked()
    });
    progress.done();
    let (engine, seed) = (words_of(work.strategy), sampling.seed);
    let name = engine.split(' ').next().unwrap_or_default();
    let all = All {
        causes: &causes,
        whole,
        of: work.what,
        counts: &counts,
        drawn: Drawn { stem: format!("-{name}-{seed}"), words: format!("{engine}, seed {seed}") },
        save: work.save,
    };
    let none = if whole { Sampled::Nothing } else { Sampled::Ended };
    all.tell(output, "sample", |exit| Line::of(&none, &counts, &engine, seed, exit, None))
}

/// A run that was drawn, made short, explained and saved.
pub(crate) struct Short {
    case: Case,
    shrunk: Shrunk,
    explained: String,
    pub(crate) saved: Saved,
}

/// The same for JSON; with nothing in it where nothing was found.
#[derive(Serialize, Default)]
pub(crate) struct ShortLine {
    found: Option<String>,
    explained: Option<String>,
    choices_before: Option<usize>,
    choices_after: Option<usize>,
    executions: Option<u32>,
    saved: Option<String>,
}

impl Short {
    pub(crate) fn of(
        case: Case,
        found: &Counterexample,
        drawn: &Drawn,
        save: &Path,
    ) -> io::Result<Short> {
        let shrunk = shrink(&case.setup(), found);
        let saved = replay::save(save, case, &shrunk.found, Some(drawn))?;
        let explained = explain(&case, &shrunk.found).to_string();
        Ok(Short { case, shrunk, explained, saved })
    }

    pub(crate) fn tell(&self, out: &mut impl Write) -> io::Result<()> {
        let Shrunk { found, choices_before, executions, done } = &self.shrunk;
        writeln!(out, "{found}")?;
        writeln!(out, "{}", self.explained)?;
        let choices = several(found.schedule.len() as u64, "choice");
        let runs = several((*executions).into(), "run");
        let given_up = if *done { "" } else { ", and given up then" };
        writeln!(out, "made short: {choices} instead of {choices_before}, in {runs}{given_up}")?;
        self.saved.tell(out)?;
        match shortest(&self.case) {
            Some(shortest) => writeln!(out, "for the shortest: {shortest}"),
            None => Ok(()),
        }
    }

    pub(crate) fn line(&self) -> ShortLine {
        let Shrunk { found, choices_before, executions, .. } = &self.shrunk;
        ShortLine {
            found: Some(found.to_string()),
            explained: Some(self.explained.clone()),
            choices_before: Some(*choices_before),
            choices_after: Some(found.schedule.len()),
            executions: Some(*executions),
            saved: self.saved.path(),
        }
    }
}

/// The command that finds the shortest run of the same kind.
fn shortest(case: &Case) -> Option<String> {
    let rule = Without::RULES.iter().find(|(_, rule)| *rule == case.without);
    let of = match rule {
        Some((id, _)) => format!("--without {id}"),
        None if case.subject.rejections().is_empty() => return None,
        None => format!("--subject {}", case.subject.name()),
    };
    let mut command = format!("mortmain-lab explore {of}");
    if let Judged::Only(property) = case.judged {
        command += &format!(" --property {}", property.id());
    }
    let more = [("trees", case.trees), ("strangers", case.strangers), ("orders", case.orders)];
    for (option, count) in more.into_iter().filter(|(_, count)| *count > 0) {
        command += &format!(" --{option} {count}");
    }
    if case.reboots {
        command += " --reboot";
    }
    Some(command)
}

/// The faults that were allowed and never came.
fn never_fired(case: &Case, counts: &SampleCounts) -> Vec<&'static str> {
    let faults = [
        ("kill", case.kills, counts.kills),
        ("failing call", case.failures, counts.failures),
        ("wait", case.waits, counts.waits),
        ("trick", case.tricks, counts.tricks),
        ("kill of a tree", case.trees, counts.trees),
        ("stranger", case.strangers, counts.strangers),
        ("other order", case.orders, counts.orders),
        ("end of everybody", 1, counts.recoveries),
    ];
    let never = faults.into_iter().filter(|(_, allowed, came)| *allowed > 0 && *came == 0);
    // Of one schedule, or of a few up to a finding, nothing else is to be expected.
    never.filter(|_| counts.runs >= ENOUGH).map(|(fault, _, _)| fault).collect()
}

/// Schedules of which one should have each fault.
const ENOUGH: u64 = 100;

fn words_of(strategy: Strategy) -> String {
    match strategy {
        Strategy::Random => "random".into(),
        Strategy::Sticky => "sticky".into(),
        Strategy::Pct { depth } => format!("pct of depth {depth}"),
    }
}

#[derive(Serialize)]
struct Line<'l> {
    exit: u8,
    engine: &'l str,
    seed: u64,
    runs: u64,
    choices: u64,
    in_use: u64,
    recoveries: u64,
    kills: u64,
    failures: u64,
    waits: u64,
    tricks: u64,
    trees: u64,
    strangers: u64,
    orders: u64,
    digest: String,
    iteration: Option<u64>,
    #[serde(flatten)]
    short: ShortLine,
}

impl<'l> Line<'l> {
    fn of(
        sampled: &Sampled,
        counts: &SampleCounts,
        engine: &'l str,
        seed: u64,
        exit: Exit,
        short: Option<&Short>,
    ) -> Line<'l> {
        let iteration = match sampled {
            Sampled::Found { iteration, .. } => Some(*iteration),
            Sampled::Nothing | Sampled::Ended => None,
        };
        let SampleCounts { runs, choices, in_use, recoveries, .. } = *counts;
        let SampleCounts { kills, failures, waits, tricks, digest, .. } = *counts;
        let SampleCounts { trees, strangers, orders, .. } = *counts;
        let digest = format!("{:032x}", digest.0);
        let exit = exit as u8;
        Line {
            exit,
            engine,
            seed,
            runs,
            choices,
            in_use,
            recoveries,
            kills,
            failures,
            waits,
            tricks,
            trees,
            strangers,
            orders,
            digest,
            iteration,
            short: short.map(Short::line).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use mortmain_harness::explore::Subject;
    use mortmain_harness::judge::Property;

    use super::*;

    #[test]
    fn the_command_for_the_shortest_run_looks_for_the_same_kind() {
        let without = Case { without: Without::L3, ..Case::SMALL };
        assert_eq!(shortest(&without).as_deref(), Some("mortmain-lab explore --without l3"));
        assert_eq!(shortest(&Case::SMALL), None, "nothing is known to be wrong with it");
        let subject = Subject::named("pid").expect("the lab knows it");
        let judged = Judged::Only(Property::L1);
        let late = Case { judged, orders: 2, reboots: true, ..subject.shown_by() };
        let command = "mortmain-lab explore --subject pid --property L1 --orders 2 --reboot";
        assert_eq!(shortest(&late).as_deref(), Some(command));
    }
}
