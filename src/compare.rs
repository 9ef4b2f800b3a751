//! `mortmain-lab compare`: designs against properties, each cell with its witness.

use std::io::{self, Write};

use clap::Args;
use mortmain_harness::explore::{
    Bounds, Cause, Cell, Failure, Group, Held, Row, Subject, Witness, compare, told,
};
use mortmain_harness::judge::{Property, Violation};
use serde::Serialize;

use crate::exit::Exit;
use crate::explore::subject;
use crate::interrupt::Interrupt;
use crate::output::{Output, several};

/// What to compare.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Designs, by name [default: all that `explore --list` tells]
    #[arg(value_name = "NAME", value_parser = subject)]
    names: Vec<Subject>,
    /// States after which a search gives up; there are up to three for each of fifteen setups
    #[arg(long, value_name = "N", default_value_t = STATES_MAX)]
    states: u32,
}

/// Several times what the largest search of the implementation takes.
const STATES_MAX: u32 = 1_000_000;

impl Options {
    /// All designs, as the main job has it.
    pub(crate) fn all() -> Options {
        Options { names: Vec::new(), states: STATES_MAX }
    }
}

/// Compares, and prints what came of it.
pub(crate) fn run(options: &Options, output: &Output, interrupt: &Interrupt) -> io::Result<Exit> {
    let subjects =
        if options.names.is_empty() { Subject::ALL.to_vec() } else { options.names.clone() };
    let bounds = Bounds { states_max: options.states };
    let progress = output.progress("compare");
    let mut rows = Vec::new();
    for (at, subject) in subjects.iter().enumerate() {
        let row = compare(*subject, &bounds, &mut |seen| {
            let done = (at * seen.cases + seen.case) as u64;
            let now = format!("{}, {} states", subject.name(), seen.states);
            progress.at(done, (subjects.len() * seen.cases) as u64, &now);
            !interrupt.is_asked()
        });
        rows.push(row);
    }
    progress.done();
    let (exit, verdict) = verdict(&rows);
    let mut out = output.stdout();
    if output.json() {
        for row in &rows {
            for cell in &row.cells {
                output.json_line(&mut out, "cell", &Line::of(row, cell))?;
            }
            for (cause, group) in row.causes.iter() {
                let line = CauseLine::of(Some(row.subject.name()), cause, group);
                output.json_line(&mut out, "cause", &line)?;
            }
        }
        let last = Last { exit: exit as u8, verdict: &verdict };
        output.json_line(&mut out, "verdict", &last)?;
        return Ok(exit);
    }
    let head: Vec<&str> =
        std::iter::once("subject").chain(Property::ALL.map(Property::id)).collect();
    let lines = rows.iter().map(|row| {
        let name = row.subject.name().to_owned();
        let cells = row.cells.iter().map(short);
        (std::iter::once(name).chain(cells).collect(), surprises(row).is_empty())
    });
    output.table(&mut out, &head, lines)?;
    for (row, cell) in cells(&rows) {
        if let Held::Fails(witness) = &cell.held {
            tell(row, cell, witness, &mut out)?;
        }
    }
    tell_causes(&rows, output, &mut out)?;
    tell_what_is_missing(&rows, output, &mut out)?;
    writeln!(out, "\n{}", output.verdict(&verdict, exit == Exit::Holds))?;
    Ok(exit)
}

fn cells(rows: &[Row]) -> impl Iterator<Item = (&Row, &Cell)> {
    rows.iter().flat_map(|row| row.cells.iter().map(move |cell| (row, cell)))
}

/// A cell of the table.
fn short(cell: &Cell) -> String {
    match &cell.held {
        Held::Holds => "holds".into(),
        Held::Fails(witness) => format!("fails in {}", witness.choices()),
        Held::NotDecided(_) => "NOT DECIDED".into(),
        Held::NeverEvaluated(_) => "-".into(),
        Held::Ended => "INTERRUPTED".into(),
    }
}

/// The shortest run that breaks a property, and why the design allows it.
fn tell(row: &Row, cell: &Cell, witness: &Witness, out: &mut impl Write) -> io::Result<()> {
    let (name, id) = (row.subject.name(), cell.property.id());
    let choices = several(witness.choices() as u64, "choice");
    let (manner, then) = (witness.case.manner.word(), witness.case.then.word());
    writeln!(out, "\n{name}, {id} in {choices} (command {manner}, owner {then})")?;
    writeln!(out, "  {}", witness.found.failure)?;
    writeln!(out, "  {}", told(&witness.case, &witness.found))?;
    match row.subject.rejection(id) {
        Some(_) => Ok(()),
        None => writeln!(out, "  nobody knew of this"),
    }
}

/// What all searches have found, by cause; in each setup there is one for each property at most.
fn tell_causes(rows: &[Row], output: &Output, out: &mut impl Write) -> io::Result<()> {
    let causes = rows.iter().flat_map(|row| row.causes.iter().map(move |group| (row, group)));
    let lines = causes.map(|(row, (cause, group))| {
        let lacks = cause.rule.unwrap_or("?").into();
        let name = row.subject.name().into();
        let (count, choices) = (group.count, group.shortest.schedule.len());
        let deed = cause.deed.clone();
        let line =
            vec![name, cause.property.into(), deed, lacks, count.to_string(), choices.to_string()];
        (line, cause.rule.is_some())
    });
    let lines: Vec<(Vec<String>, bool)> = lines.collect();
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let head = ["subject", "fails", "by", "lacks", "setups", "choices"];
    output.table(out, &head, lines.into_iter())
}

/// What no search has judged, or not to its end.
fn tell_what_is_missing(rows: &[Row], output: &Output, out: &mut impl Write) -> io::Result<()> {
    writeln!(out)?;
    for property in Property::ALL {
        let of_it = || cells(rows).filter(move |(_, cell)| cell.property == property);
        let id = property.id();
        let why = of_it().find_map(|(_, cell)| match cell.held {
            Held::NeverEvaluated(why) => Some(why),
            _ => None,
        });
        if let Some(why) = why {
            let never = of_it().filter(|(_, cell)| matches!(cell.held, Held::NeverEvaluated(_)));
            let names: Vec<&str> = never.map(|(row, _)| row.subject.name()).collect();
            let of = if names.len() == rows.len() { "all".into() } else { names.join(", ") };
            writeln!(out, "{}", output.bad(&format!("{id} was never evaluated, of {of}: {why}")))?;
        }
        for (row, cell) in of_it() {
            if let Held::NotDecided(cut) = cell.held {
                let text = format!("{id} of {} is not decided: {cut}", row.subject.name());
                writeln!(out, "{}", output.bad(&text))?;
            }
        }
    }
    Ok(())
}

/// Where a design is not as it is known to be. That a property was out of reach is none.
fn surprises(row: &Row) -> Vec<Property> {
    let cells = row.cells.iter().filter(|cell| match cell.held {
        Held::Holds => row.subject.rejection(cell.property.id()).is_some(),
        Held::Fails(_) => row.subject.rejection(cell.property.id()).is_none(),
        Held::NeverEvaluated(_) | Held::NotDecided(_) | Held::Ended => false,
    });
    cells.map(|cell| cell.property).collect()
}

/// A search that was cut short decides nothing, and neither does a property that had to be at stake
/// and never was.
fn is_undecided(cell: &Cell) -> bool {
    match cell.held {
        Held::NotDecided(_) | Held::Ended => true,
        Held::NeverEvaluated(_) => Property::SEARCHED.contains(&cell.property),
        Held::Holds | Held::Fails(_) => false,
    }
}

fn verdict(rows: &[Row]) -> (Exit, String) {
    let states: u64 = rows.iter().map(|row| row.states).sum();
    let what = format!("{} in {states} states", several(rows.len() as u64, "design"));
    let surprising: Vec<String> = rows
        .iter()
        .flat_map(|row| surprises(row).into_iter().map(move |property| (row, property)))
        .map(|(row, property)| format!("{} of {}", property.id(), row.subject.name()))
        .collect();
    if !surprising.is_empty() {
        return (Exit::Finding, format!("{what}: not as known: {}", surprising.join(", ")));
    }
    if cells(rows).any(|(_, cell)| is_undecided(cell)) {
        return (Exit::Undecided, format!("{what}: not decided"));
    }
    let rejected = rows.iter().filter(|row| !row.subject.rejections().is_empty()).count();
    let accepted = rows.len() - rejected;
    (
        Exit::Holds,
        format!("{what}: {accepted} accepted, {rejected} rejected, each for what it lacks"),
    )
}

#[derive(Serialize)]
struct Line<'l> {
    subject: &'l str,
    property: &'static str,
    /// `holds`, `fails`, `not-decided`, `never-evaluated` or `interrupted`.
    held: &'static str,
    /// How often it was judged.
    judged: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    witness: Option<Shown>,
}

/// The shortest run that breaks a property.
#[derive(Serialize)]
struct Shown {
    choices: usize,
    manner: &'static str,
    then: &'static str,
    says: String,
    by: Option<String>,
    step: Option<String>,
    victims: Vec<String>,
    rule: Option<&'static str>,
    because: Option<&'static str>,
}

/// Findings with the same cause.
#[derive(Serialize)]
pub(crate) struct CauseLine<'l> {
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'l str>,
    property: &'l str,
    deed: &'l str,
    rule: Option<&'l str>,
    count: u64,
    /// Of the shortest of them.
    choices: usize,
}

impl<'l> CauseLine<'l> {
    pub(crate) fn of(subject: Option<&'l str>, cause: &'l Cause, group: &Group) -> CauseLine<'l> {
        let Cause { property, deed, rule } = cause;
        let (count, choices) = (group.count, group.shortest.schedule.len());
        CauseLine { subject, property, deed, rule: *rule, count, choices }
    }
}

#[derive(Serialize)]
struct Last<'l> {
    exit: u8,
    verdict: &'l str,
}

impl<'l> Line<'l> {
    fn of(row: &'l Row, cell: &'l Cell) -> Line<'l> {
        let property = cell.property.id();
        let (held, why, witness) = match &cell.held {
            Held::Holds => ("holds", None, None),
            Held::Fails(witness) => ("fails", None, Some(Shown::of(row, property, witness))),
            Held::NotDecided(cut) => ("not-decided", Some(cut.to_string()), None),
            Held::NeverEvaluated(why) => ("never-evaluated", Some((*why).into()), None),
            Held::Ended => ("interrupted", None, None),
        };
        Line { subject: row.subject.name(), property, held, judged: cell.judged, why, witness }
    }
}

impl Shown {
    fn of(row: &Row, property: &str, witness: &Witness) -> Shown {
        let violation = match &witness.found.failure {
            Failure::Violation(violation) => Some(violation),
            Failure::Diverged(_) | Failure::Refused(_) => None,
        };
        let blamed = violation.and_then(Violation::blamed);
        let known = row.subject.rejection(property);
        Shown {
            choices: witness.choices(),
            manner: witness.case.manner.word(),
            then: witness.case.then.word(),
            says: witness.found.failure.to_string(),
            by: blamed.map(|(who, _)| who.to_string()),
            step: blamed.map(|(_, step)| step.to_owned()),
            victims: violation.map(Violation::victims).unwrap_or_default(),
            rule: known.map(|known| known.rule),
            because: known.map(|known| known.because),
        }
    }
}
