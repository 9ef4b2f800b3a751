//! `mortmain-lab model`: every run of the protocol's pure model, within bounds.

use std::io::{self, Write};
use std::path::Path;
use std::thread;

use clap::Args;
use mortmain_model::catalogue::gate;
use mortmain_model::explore::{Counts, Limits};
use mortmain_model::rules::{Rule, Rules};
use mortmain_model::setting::{FEATURES, Feature, Setting};
use mortmain_model::{Model, NoPage, Run, Searched, Verdict, proof};
use serde::Serialize;

use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{Output, Progress};

/// What to search.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Options {
    /// Search only the named bounds whose name has one of these in it
    #[arg(value_name = "NAME", conflicts_with_all = ["without", "Bounds"])]
    names: Vec<String>,
    /// Leave a rule out, in the bounds that show what it is for
    #[arg(long, value_name = "RULE", value_parser = rule)]
    without: Option<Rule>,
    /// Threads that search [default: one for each processor]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    /// States after which a search gives up
    #[arg(long, value_name = "N", default_value_t = STATES_MAX, help_heading = "Limits")]
    states: u64,
    /// Memory for states, in MiB, after which a search gives up
    #[arg(long, value_name = "MIB", default_value_t = MEMORY_MAX, help_heading = "Limits")]
    memory: u64,
    /// List the rules, the features and the named bounds, and search nothing
    #[arg(long, conflicts_with_all = ["names", "without", "Bounds", "table", "write_docs"])]
    list: bool,
    /// Print the table of the 27 combinations of proofs, and search nothing
    #[arg(long, conflicts_with_all = ["names", "without", "Bounds", "write_docs"])]
    table: bool,
    /// Write docs/why-each-rule.md anew, in the directory that this is run in
    #[arg(long, conflicts_with_all = ["names", "without", "Bounds"])]
    write_docs: bool,
    #[command(flatten)]
    bounds: Bounds,
}

/// Bounds of one's own.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Bounds (with --without they begin with those that show the rule)")]
struct Bounds {
    /// Owners: 0 to 2 [default: 1]
    #[arg(long, value_name = "N")]
    owners: Option<usize>,
    /// Commands that the first owner starts: 0 to 2 [default: 1]
    #[arg(long, value_name = "N")]
    commands: Option<usize>,
    /// Sweeps at the same time: 0 to 2 [default: 1]
    #[arg(long, value_name = "N")]
    sweeps: Option<usize>,
    /// How many of them are in another pid namespace [default: 0]
    #[arg(long, value_name = "N")]
    foreign: Option<usize>,
    /// Kills, each at any moment: 0 to 3 [default: 1]
    #[arg(long, value_name = "N")]
    kills: Option<usize>,
    /// Probes that fail, each at any moment: 0 to 3 [default: 0]
    #[arg(long, value_name = "N")]
    failures: Option<usize>,
    /// Directories that a sweep holds before it scans: 1 or 2 [default: 1]
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// What is done besides; `--list` has all
    #[arg(long, value_name = "FEATURE", value_delimiter = ',', value_parser = feature)]
    with: Vec<&'static Feature>,
}

/// States of the default: about two gigabytes of them are told apart in some minutes.
const STATES_MAX: u64 = 100_000_000;

/// Some twenty bytes a state.
const MEMORY_MAX: u64 = 2048;

/// Where the page is, from the root of the repository.
const PAGE: &str = "docs/why-each-rule.md";

fn rule(id: &str) -> Result<Rule, String> {
    Rule::named(id).ok_or_else(|| {
        let ids: Vec<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
        format!("it can be {}", ids.join(", "))
    })
}

fn feature(name: &str) -> Result<&'static Feature, String> {
    Feature::named(name).ok_or_else(|| {
        let names: Vec<&str> = FEATURES.iter().map(|feature| feature.name).collect();
        format!("it can be {}", names.join(", "))
    })
}

impl Bounds {
    /// The setting with what is given changed; `None` if nothing is.
    fn put_into(&self, mut setting: Setting) -> Option<Setting> {
        let numbers = [
            (self.owners, &mut setting.owners),
            (self.commands, &mut setting.commands),
            (self.sweeps, &mut setting.sweeps),
            (self.foreign, &mut setting.foreign),
            (self.kills, &mut setting.kills),
            (self.failures, &mut setting.failures),
            (self.batch, &mut setting.batch),
        ];
        let mut is_given = !self.with.is_empty();
        for (given, bound) in numbers {
            is_given |= given.is_some();
            *bound = given.unwrap_or(*bound);
        }
        self.with.iter().for_each(|feature| feature.put_into(&mut setting));
        is_given.then_some(setting)
    }

    /// What is wrong with what they make of a setting.
    fn wrong(&self, setting: &Setting) -> Option<String> {
        if let Some(lost) = self.with.iter().find(|feature| !feature.is_in(setting)) {
            let name = lost.name;
            return Some(format!("--with {name} is excluded by another feature that is asked for"));
        }
        let error = setting.check().err()?;
        let none = self.owners == Some(0) && self.commands.is_none();
        let hint = if none { "; give --commands 0" } else { "" };
        Some(format!("the model has no room: {error}{hint}"))
    }
}

impl Options {
    /// All named bounds, as the main job has them.
    pub(crate) fn named() -> Options {
        Options {
            names: Vec::new(),
            without: None,
            jobs: None,
            states: STATES_MAX,
            memory: MEMORY_MAX,
            list: false,
            table: false,
            write_docs: false,
            bounds: Bounds::default(),
        }
    }

    fn limits(&self) -> Limits {
        let processors = || thread::available_parallelism().map_or(1, usize::from);
        Limits {
            states_max: self.states,
            bytes_max: self.memory.saturating_mul(1 << 20),
            workers: self.jobs.map_or_else(processors, usize::from),
        }
    }

    /// What is to be searched, each with its name.
    fn cases(&self) -> Vec<(&'static str, Setting)> {
        if let Some(rule) = self.without {
            let shown = rule.shown().setting;
            let setting = self.bounds.put_into(shown).unwrap_or(shown);
            return vec![("", setting.under(Rules::all().without(rule)))];
        }
        if let Some(setting) = self.bounds.put_into(Setting::default()) {
            return vec![("", setting)];
        }
        let asked = |name: &str| {
            self.names.is_empty() || self.names.iter().any(|part| name.contains(part.as_str()))
        };
        gate().into_iter().filter(|(name, _)| asked(name)).collect()
    }

    /// A name that is in that of no bounds.
    fn unknown(&self) -> Option<&str> {
        let gate = gate();
        let is_known = |part: &str| gate.iter().any(|(name, _)| name.contains(part));
        self.names.iter().map(String::as_str).find(|part| !is_known(part))
    }
}

/// Searches, and prints what came of it.
pub(crate) fn run(options: &Options, output: &Output, interrupt: &Interrupt) -> io::Result<Exit> {
    if options.list {
        return list(output);
    }
    if options.table {
        write!(output.stdout(), "{}", proof::table())?;
        return Ok(Exit::Holds);
    }
    if options.write_docs {
        return write_docs(options, output, interrupt);
    }
    if let Some(unknown) = options.unknown() {
        let names: Vec<&str> = gate().iter().map(|(name, _)| *name).collect();
        let names = names.join("; ");
        writeln!(
            io::stderr(),
            "mortmain-lab: no bounds have `{unknown}` in their name; there are: {names}"
        )?;
        return Ok(Exit::Nothing);
    }
    let mut cases = Vec::new();
    for (name, setting) in options.cases() {
        if let Some(wrong) = options.bounds.wrong(&setting) {
            writeln!(io::stderr(), "mortmain-lab: {wrong}")?;
            return Ok(Exit::Usage);
        }
        cases.push((name, Model::new(setting).map_err(io::Error::other)?));
    }
    each(&cases, &|| interrupt.is_asked(), &mut |(name, model)| {
        let progress = output.progress("model");
        let searched = model.search(&options.limits(), &mut watch(&progress, interrupt));
        progress.done();
        tell(options, name, model.setting(), &searched, output)
    })
}

/// Searches one after the other. What an interrupt leaves out is not decided.
fn each<C>(
    cases: &[C],
    is_asked: &dyn Fn() -> bool,
    search: &mut dyn FnMut(&C) -> io::Result<Exit>,
) -> io::Result<Exit> {
    let mut all = Exit::Holds;
    for (at, case) in cases.iter().enumerate() {
        if is_asked() {
            let left = cases.len() - at;
            writeln!(io::stderr(), "mortmain-lab: interrupted, {left} not searched")?;
            return Ok(all.and(Exit::Undecided));
        }
        all = all.and(search(case)?);
    }
    Ok(all)
}

fn watch(progress: &Progress, interrupt: &Interrupt) -> impl FnMut(&Counts) -> bool {
    |counts| {
        progress.count(counts.unique, "states");
        !interrupt.is_asked()
    }
}

fn tell(
    options: &Options,
    name: &str,
    setting: &Setting,
    searched: &Searched,
    output: &Output,
) -> io::Result<Exit> {
    let counts = &searched.counts;
    let totals =
        format!("states={} unique={} depth={}", counts.states, counts.unique, counts.depth);
    let (exit, verdict) = match &searched.verdict {
        Verdict::Holds => (Exit::Holds, format!("holds, {totals}")),
        Verdict::Found(_) => (Exit::Finding, format!("does not hold, {totals}")),
        Verdict::NotDecided(why) => (Exit::Undecided, format!("not decided: {why}, {totals}")),
    };
    let mut out = output.stdout();
    if output.json() {
        let line = Line::of(options, name, setting, searched, exit);
        output.json_line(&mut out, "model", &line)?;
        return Ok(exit);
    }
    if let Verdict::Found(run) = &searched.verdict {
        writeln!(out, "{run}")?;
    }
    let colon = if name.is_empty() { "" } else { ": " };
    let without = options.without.map_or_else(String::new, |rule| format!(", without {rule}"));
    let text = format!("{name}{colon}{setting}{without}: {verdict}");
    writeln!(out, "{}", output.verdict(&text, exit == Exit::Holds))?;
    for escape in &searched.escapes {
        writeln!(out, "    known escape, met: {escape}")?;
    }
    Ok(exit)
}

fn list(output: &Output) -> io::Result<Exit> {
    let mut out = output.stdout();
    if output.json() {
        for rule in Rule::ALL {
            let line = Named { name: rule.id(), what: rule.without() };
            output.json_line(&mut out, "rule", &line)?;
        }
        for feature in FEATURES {
            let line = Named { name: feature.name, what: feature.what };
            output.json_line(&mut out, "feature", &line)?;
        }
        for (name, setting) in gate() {
            let line = Named { name, what: &setting.to_string() };
            output.json_line(&mut out, "bounds", &line)?;
        }
        return Ok(Exit::Holds);
    }
    writeln!(out, "Rules, for --without, and what is done in their place:")?;
    for rule in Rule::ALL {
        writeln!(out, "  {:<14} {}", rule.id(), rule.without())?;
    }
    writeln!(out, "\nFeatures, for --with:")?;
    for feature in FEATURES {
        writeln!(out, "  {:<14} {}", feature.name, feature.what)?;
    }
    writeln!(out, "\nNamed bounds:")?;
    for (name, setting) in gate() {
        writeln!(out, "  {name}: {setting}")?;
    }
    Ok(Exit::Holds)
}

fn write_docs(options: &Options, output: &Output, interrupt: &Interrupt) -> io::Result<Exit> {
    if !Path::new(PAGE).parent().is_some_and(Path::is_dir) {
        writeln!(io::stderr(), "mortmain-lab: there is no docs here; run it in the repository")?;
        return Ok(Exit::Usage);
    }
    let progress = output.progress("rules");
    let all = Rule::ALL.len() as u64;
    let mut done = 0;
    let mut told = |rule: Rule| {
        progress.at(done, all, rule.id());
        done += 1;
    };
    let watch = &mut |_: &Counts| !interrupt.is_asked();
    let page = mortmain_model::page(&options.limits(), &mut told, watch);
    progress.done();
    match page {
        Ok(page) => {
            std::fs::write(PAGE, page)?;
            writeln!(output.stdout(), "{PAGE} is written")?;
            Ok(Exit::Holds)
        }
        Err(NoPage::Disagree(how)) => {
            writeln!(io::stderr(), "mortmain-lab: model and catalogue disagree: {how}")?;
            Ok(Exit::Finding)
        }
        Err(NoPage::NotDecided(why)) => {
            writeln!(io::stderr(), "mortmain-lab: not decided, and not written: {why}")?;
            Ok(Exit::Undecided)
        }
    }
}

#[derive(Serialize)]
struct Named<'n> {
    name: &'n str,
    what: &'n str,
}

#[derive(Serialize)]
struct Line<'l> {
    exit: u8,
    name: &'l str,
    bounds: String,
    without: Option<&'static str>,
    states: u64,
    unique: u64,
    depth: u64,
    bytes: u64,
    escapes: Vec<String>,
    undecided: Option<&'static str>,
    broken: Option<String>,
    steps: Vec<String>,
}

impl<'l> Line<'l> {
    fn of(
        options: &Options,
        name: &'l str,
        setting: &Setting,
        searched: &Searched,
        exit: Exit,
    ) -> Line<'l> {
        let run: Option<&Run> = match &searched.verdict {
            Verdict::Found(run) => Some(run),
            _ => None,
        };
        let undecided = match searched.verdict {
            Verdict::NotDecided(why) => Some(why),
            _ => None,
        };
        let Counts { states, unique, depth, bytes } = searched.counts;
        Line {
            exit: exit as u8,
            name,
            bounds: setting.to_string(),
            without: options.without.map(Rule::id),
            states,
            unique,
            depth,
            bytes,
            escapes: searched.escapes.iter().map(ToString::to_string).collect(),
            undecided,
            broken: run.map(|run| run.broken.to_string()),
            steps: run.into_iter().flat_map(Run::all).map(ToString::to_string).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_an_interrupt_leaves_out_is_not_decided() {
        for (asked_after, exits, expected) in [
            (1, &[Exit::Holds, Exit::Holds][..], Exit::Undecided),
            (1, &[Exit::Finding, Exit::Holds], Exit::Finding),
            // Everything was searched by then.
            (2, &[Exit::Holds, Exit::Holds], Exit::Holds),
            (0, &[Exit::Holds], Exit::Undecided),
        ] {
            let done = Cell::new(0);
            let exit = each(exits, &|| done.get() >= asked_after, &mut |exit| {
                done.set(done.get() + 1);
                Ok(*exit)
            });
            assert_eq!(exit.expect("nothing fails"), expected, "{exits:?}");
        }
    }
}
