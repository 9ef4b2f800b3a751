//! `mortmain-lab explore`: every order of steps and kills, in the simulated kernel.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use mortmain_harness::explore::{
    Bounds, Case, Counts, FOR_EVER, Subject, Verdict, Without, exhaust_watched, explain,
};
use mortmain_harness::judge::{Judged, Property};
use mortmain_harness::simulated::subject::{Beside, Manner, Then};
use serde::Serialize;

use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{Output, several};
use crate::replay::{self, Saved};
use crate::sample::{self, Given};
use crate::series;

/// What to explore.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What is explored")]
pub(crate) struct Options {
    /// Switch a rule off, to see what it is for: h1, h2, h3, l3, l4, p1, p2 or r2
    #[arg(long, value_name = "RULE", value_parser = rule)]
    without: Option<Without>,
    /// Put another design in the place of mortmain; `--list` tells which there are
    #[arg(long, value_name = "NAME", value_parser = subject, conflicts_with = "without")]
    subject: Option<Subject>,
    /// List the designs, and explore nothing
    #[arg(long, conflicts_with_all = [
        "without", "subject", "property", "owners", "beside", "manner", "then", "sweeps", "kills",
        "failures", "waits", "tricks", "trees", "strangers", "orders", "reboot", "engine", "drawn", "save",
        "states",
    ])]
    list: bool,
    /// Judge one property alone: S1 (nothing in use is touched), S2 (nothing outside is changed), L1
    /// (nothing is left in the end) or L2 (nobody goes on for ever)
    #[arg(long, value_name = "ID", value_parser = property)]
    property: Option<Judged>,
    /// Owners that run at the same time
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=i64::from(Case::OWNERS_MAX)))]
    owners: u8,
    /// What each has beside its directory: command, nothing, copy (of itself, forked) or nested (a copy
    /// that makes a directory of its own in the first one)
    #[arg(long, value_name = "WHAT", value_parser = beside, default_value = "command")]
    beside: Beside,
    /// How the command behaves: plain, closes-all, leaves-child, leaves-daemon or escapes
    #[arg(long, value_name = "MANNER", value_parser = manner)]
    manner: Option<Manner>,
    /// How the owner goes on: idle, exit, close, wait-and-close, end-and-close or wait
    #[arg(long, value_name = "THEN", value_parser = then)]
    then: Option<Then>,
    /// Sweeps that run at the same time [default: 2, or 1 with --without, --tricks or another --subject]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=i64::from(Case::SWEEPS_MAX)))]
    sweeps: Option<u8>,
    /// Processes that are killed, each at any moment [default: 2, or 1 with --without, --tricks or another
    /// --subject]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=4))]
    kills: Option<u8>,
    /// Calls that fail, each at any moment, done or not [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=2))]
    failures: Option<u8>,
    /// Times that a day passes, each at any moment [default: 0, or 1 with another --subject]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=2))]
    waits: Option<u8>,
    /// Tricks of an adversary, each at any moment: a FIFO, a link, a full directory, a mount or nothing
    /// in the place of a name [default: 0, or 1 with h1, h2, h3 or S2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=2))]
    tricks: Option<u8>,
    /// Processes that are killed together with all that they have started, each at any moment
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=2))]
    trees: u8,
    /// Programs that have to do with no claim and get the number of a process that is gone, each at any
    /// moment; they live on
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=2))]
    strangers: u8,
    /// Directories that are read in another order than that of their names, each at any moment
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=2))]
    orders: u8,
    /// Start the machine anew before the last sweep; strangers then have the numbers of all that are gone
    #[arg(long)]
    reboot: bool,
    /// How schedules are come by; only the exhaustive engine proves something
    #[arg(long, value_enum, default_value_t = Engine::Exhaustive, help_heading = HOW)]
    engine: Engine,
    /// States after which the exhaustive engine gives up [default: 4000000]
    #[arg(long, value_name = "N", help_heading = HOW)]
    states: Option<u32>,
    #[command(flatten)]
    drawn: sample::Options,
    /// Where a finding is saved, for `replay`
    #[arg(long, value_name = "DIR", default_value = SAVED, help_heading = HOW)]
    save: PathBuf,
}

/// The heading of options that say how.
pub(crate) const HOW: &str = "How it is explored";

/// How schedules are come by.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Engine {
    /// All of them, breadth first
    Exhaustive,
    /// Each step by anybody
    Random,
    /// Mostly whoever went last
    Sticky,
    /// By precedence, which changes now and then
    Pct,
    /// Sticky ones, with a kill and every error, once and for ever, at every step of each
    Series,
}

/// Below the directory that builds go to, in which nobody looks for anything of value.
pub(crate) const SAVED: &str = "target/lab";

/// States of the default bounds take about half a gigabyte.
const STATES_MAX: u32 = 4_000_000;

impl Options {
    /// The gate.
    fn gate() -> Options {
        Options {
            without: None,
            subject: None,
            list: false,
            property: None,
            owners: 1,
            beside: Beside::Command,
            manner: None,
            then: None,
            sweeps: None,
            kills: None,
            failures: None,
            waits: None,
            tricks: None,
            trees: 0,
            strangers: 0,
            orders: 0,
            reboot: false,
            engine: Engine::Exhaustive,
            drawn: sample::Options::default(),
            states: None,
            save: SAVED.into(),
        }
    }

    /// What the main job explores: the gate; and with one sweep and one kill a call that fails anywhere,
    /// a trick of an adversary anywhere, two owners, an owner with a copy that makes a directory in its
    /// own, and whatever else may happen, also before a restart.
    pub(crate) fn searches() -> [Options; 7] {
        let small = || Options { sweeps: Some(1), kills: Some(1), ..Options::gate() };
        let else_once = || Options { trees: 1, strangers: 1, orders: 1, ..small() };
        [
            Options::gate(),
            Options { failures: Some(1), ..small() },
            Options { tricks: Some(1), ..Options::gate() },
            Options { owners: 2, beside: Beside::Nothing, ..small() },
            Options { beside: Beside::Nested, failures: Some(1), ..small() },
            else_once(),
            Options { reboot: true, ..else_once() },
        ]
    }

    /// What is wrong with an option that the engine has no use for.
    fn misplaced(&self) -> Option<String> {
        use Engine::{Exhaustive, Pct, Random, Sticky};
        let own: [Given; 2] = [
            (self.states.is_some(), "--states", &[Exhaustive]),
            (self.failures.is_some(), "--failures", &[Exhaustive, Random, Sticky, Pct]),
        ];
        let mut given = self.drawn.given().into_iter().chain(own);
        let useless = |(given, _, engines): &Given| *given && !engines.contains(&self.engine);
        let (_, option, engines) = given.find(useless)?;
        let names: Vec<String> = engines.iter().map(|engine| engine.name()).collect();
        let names = match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => names.concat(),
        };
        Some(format!("{option} is for --engine {names}, and not for {}", self.engine.name()))
    }

    /// The tricks that were asked for; S2 is judged with one, since else nobody could break it.
    fn tricks_or(&self, otherwise: u32) -> u32 {
        let judges_s2 = self.property == Some(Judged::Only(Property::S2));
        self.tricks.map_or(otherwise.max(judges_s2.into()), u32::from)
    }

    fn case(&self) -> Case {
        let case = match (self.without, self.subject) {
            (Some(without), _) => without.shown_by(),
            (None, Some(subject)) if subject != Subject::MORTMAIN => subject.shown_by(),
            // With one of them the others come to more states than there is room for.
            _ if self.tricks_or(0) > 0 => Case::SMALL,
            _ => Case::GATE,
        };
        // What shows soonest what is wrong with a rule or a design is a command's.
        let case = match self.beside {
            Beside::Command => case,
            Beside::Nothing | Beside::Copy | Beside::Nested => {
                Case { manner: Manner::Plain, then: Then::Idle, ..case }
            }
        };
        Case {
            judged: self.property.unwrap_or(case.judged),
            tricks: self.tricks_or(case.tricks),
            owners: self.owners.into(),
            beside: self.beside,
            manner: self.manner.unwrap_or(case.manner),
            then: self.then.unwrap_or(case.then),
            waits: self.waits.map_or(case.waits, u32::from),
            sweeps: self.sweeps.map_or(case.sweeps, usize::from),
            kills: self.kills.map_or(case.kills, u32::from),
            failures: self.failures.map_or(case.failures, u32::from),
            trees: self.trees.into(),
            strangers: self.strangers.into(),
            orders: self.orders.into(),
            reboots: self.reboot,
            ..case
        }
    }
}

impl Engine {
    fn name(self) -> String {
        // OK because no engine is hidden.
        self.to_possible_value().expect("every engine has a name").get_name().into()
    }
}

pub(crate) fn rule(id: &str) -> Result<Without, String> {
    one_of(&Without::RULES, id)
}

fn beside(word: &str) -> Result<Beside, String> {
    one_of(&Beside::WORDS, word)
}

pub(crate) fn manner(word: &str) -> Result<Manner, String> {
    one_of(&Manner::WORDS, word)
}

pub(crate) fn then(word: &str) -> Result<Then, String> {
    one_of(&Then::WORDS, word)
}

fn property(id: &str) -> Result<Judged, String> {
    one_of(&Property::JUDGED.map(|property| (property.id(), Judged::Only(property))), id)
}

/// The design of a name.
pub(crate) fn subject(name: &str) -> Result<Subject, String> {
    one_of(&Subject::ALL.map(|subject| (subject.name(), subject)), name)
}

fn one_of<T: Copy>(words: &[(&str, T)], word: &str) -> Result<T, String> {
    let found = words.iter().find(|(known, _)| *known == word);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(known, _)| *known).collect();
        format!("it can be {}", words.join(", "))
    })
}

/// Explores, and prints what came of it.
pub(crate) fn run(options: &Options, output: &Output, interrupt: &Interrupt) -> io::Result<Exit> {
    if options.list {
        return list(output);
    }
    if let Some(wrong) = options.misplaced() {
        writeln!(io::stderr(), "{wrong}")?;
        return Ok(Exit::Usage);
    }
    let case = options.case();
    if let Some(contradiction) = case.contradiction() {
        writeln!(io::stderr(), "{contradiction}")?;
        return Ok(Exit::Usage);
    }
    let what = describe(&case);
    if options.engine == Engine::Series {
        let work = series::Work { case, what: &what, save: &options.save };
        return series::run(&options.drawn, &work, output, interrupt);
    }
    if let Some(strategy) = options.drawn.strategy(options.engine) {
        let work = sample::Work { case, what: &what, strategy, save: &options.save };
        return sample::run(&options.drawn, &work, output, interrupt);
    }
    let progress = output.progress("explore");
    let bounds = Bounds { states_max: options.states.unwrap_or(STATES_MAX) };
    let exploration = exhaust_watched(&case.setup(), &bounds, &mut |counts| {
        progress.count(counts.states, "states");
        !interrupt.is_asked()
    });
    progress.done();
    let counts = exploration.counts;
    let (exit, verdict) = match &exploration.verdict {
        Verdict::Holds => (Exit::Holds, format!("{what}: holds, {}", totals(&counts))),
        Verdict::Found(_) => (Exit::Finding, format!("{what}: does not hold, {}", totals(&counts))),
        Verdict::NotDecided { states_max } => {
            (Exit::Undecided, format!("{what}: not decided at {states_max} states"))
        }
        Verdict::Ended => {
            (Exit::Undecided, format!("{what}: interrupted, {} so far", totals(&counts)))
        }
    };
    let saved = match &exploration.verdict {
        Verdict::Found(found) => Some(replay::save(&options.save, case, found, None)?),
        _ => None,
    };
    let exit = saved.as_ref().map_or(exit, |saved| saved.exit);
    let mut out = output.stdout();
    if output.json() {
        let line = Line::of(&case, &exploration.verdict, &counts, exit, saved.as_ref());
        output.json_line(&mut out, "exploration", &line)?;
        return Ok(exit);
    }
    if let (Verdict::Found(found), Some(saved)) = (&exploration.verdict, &saved) {
        writeln!(out, "{found}")?;
        writeln!(out, "{}", explain(&case, found))?;
        saved.tell(&mut out)?;
    }
    writeln!(out, "{}", output.verdict(&verdict, exit == Exit::Holds))?;
    Ok(exit)
}

/// What is explored, in words.
pub(crate) fn describe(case: &Case) -> String {
    let sweeps = several(case.sweeps as u64, "sweep");
    let mut what = String::new();
    if case.subject != Subject::MORTMAIN {
        what += &format!("{}: ", case.subject.name());
    }
    what += &several(case.owners as u64, "owner");
    let each = if case.owners > 1 { " each" } else { "" };
    what += &match case.beside {
        Beside::Command => format!(", 1 command{each}"),
        Beside::Nothing => String::new(),
        Beside::Copy => format!(", 1 copy{each}"),
        Beside::Nested => format!(", 1 copy{each} with a nested directory"),
    };
    what += &format!(", {sweeps}, {}", several(case.kills.into(), "kill"));
    if case.waits > 0 {
        what += &format!(", {} of a day", several(case.waits.into(), "wait"));
    }
    if case.tricks > 0 {
        what += &format!(", {}", several(case.tricks.into(), "trick"));
    }
    let rest = [
        (case.trees, "kill of a tree", "kills of trees"),
        (case.strangers, "stranger", "strangers"),
        (case.orders, "directory in another order", "directories in another order"),
        (case.reboots.into(), "restart", "restarts"),
    ];
    for (count, one, many) in rest.into_iter().filter(|(count, ..)| *count > 0) {
        what += &format!(", {count} {}", if count == 1 { one } else { many });
    }
    if case.failures == FOR_EVER {
        what += ", any number of failing calls";
    } else if case.failures > 0 {
        what += &format!(", {}", several(case.failures.into(), "failing call"));
    }
    if let Some((id, _)) = Without::RULES.iter().find(|(_, rule)| *rule == case.without) {
        what += &format!(", without {id}");
    }
    if let Judged::Only(property) = case.judged {
        what += &format!(", {} alone", property.id());
    }
    what
}

/// The designs that there are.
fn list(output: &Output) -> io::Result<Exit> {
    let mut out = output.stdout();
    for subject in Subject::ALL {
        let lacks: Vec<&str> = subject.rejections().iter().map(|known| known.rule).collect();
        if output.json() {
            let line = Listed { name: subject.name(), idea: subject.idea(), lacks };
            output.json_line(&mut out, "subject", &line)?;
            continue;
        }
        let lacks =
            if lacks.is_empty() { String::new() } else { format!("; lacks {}", lacks.join(", ")) };
        writeln!(out, "{:<16} {}{lacks}", subject.name(), subject.idea())?;
    }
    Ok(Exit::Holds)
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    idea: &'static str,
    lacks: Vec<&'static str>,
}

fn totals(counts: &Counts) -> String {
    format!("states={} transitions={} depth={}", counts.states, counts.transitions, counts.depth)
}

#[derive(Serialize)]
struct Line {
    exit: u8,
    states: u64,
    transitions: u64,
    depth: u64,
    /// How often S1 was evaluated.
    in_use: u64,
    /// How often L1 was, unless L2 was judged alone.
    recoveries: u64,
    found: Option<String>,
    /// Why.
    explained: Option<String>,
    /// Where that is saved, for `replay`.
    saved: Option<String>,
}

impl Line {
    fn of(
        case: &Case,
        verdict: &Verdict,
        counts: &Counts,
        exit: Exit,
        saved: Option<&Saved>,
    ) -> Line {
        let (found, explained) = match verdict {
            Verdict::Found(found) => {
                (Some(found.to_string()), Some(explain(case, found).to_string()))
            }
            _ => (None, None),
        };
        let Counts { states, transitions, depth, in_use, recoveries, .. } = *counts;
        let (exit, saved) = (exit as u8, saved.and_then(Saved::path));
        Line { exit, states, transitions, depth, in_use, recoveries, found, explained, saved }
    }
}

#[cfg(test)]
mod tests {
    use mortmain_harness::world::Trick;

    use super::*;

    #[test]
    fn the_documentation_explains_every_word_of_the_setup() {
        let page = include_str!("../docs/exploring.md");
        let manners = Manner::WORDS.map(|(word, _)| word);
        let thens = Then::WORDS.map(|(word, _)| word);
        let tricks = Trick::WORDS.map(|(word, _)| word);
        let besides = Beside::WORDS.map(|(word, _)| word);
        for word in manners.into_iter().chain(thens).chain(tricks).chain(besides) {
            assert!(page.contains(&format!("\n| `{word}` |")), "{word} is not explained");
        }
    }
}
