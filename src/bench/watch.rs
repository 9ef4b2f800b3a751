//! The side outside the cell: starts a benchmark, shows how far it is, and prints what came of it.

use std::env;
use std::io::{self, Write};
use std::process::Command;
use std::time::Duration;

use mortmain_harness::guard::ChildGuard;
use mortmain_harness::reader::ReadErrorKind;
use mortmain_harness::wait::Deadline;
use serde::Serialize;

use super::ROLE;
use super::told::{Row, Told};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{Output, Progress, several};

/// Between two looks at whether somebody wants it to end.
const TICK: Duration = Duration::from_millis(100);

/// Everything that came of a benchmark.
#[derive(Default, Debug)]
struct Results {
    rows: Vec<Row>,
    notes: Vec<String>,
    wrong: Vec<String>,
    /// Why it broke off, and the exit code that it had then.
    broken: Option<(Option<i32>, String)>,
    interrupted: bool,
    gate: bool,
}

/// Runs a benchmark in a cell.
pub(super) fn run(
    args: &[String],
    gate: bool,
    output: &Output,
    interrupt: &Interrupt,
) -> io::Result<Exit> {
    let lab = env::current_exe()?;
    let mut command = Command::new(&lab);
    command.args(["cell", "--test", &std::process::id().to_string(), "--"]);
    command.arg(&lab).arg(ROLE).args(args);
    let mut cell = ChildGuard::spawn(command).map_err(io::Error::other)?;
    let progress = output.progress("bench");
    let mut results = Results { gate, ..Results::default() };
    while results.hear(&mut cell, &progress) {
        if interrupt.is_asked() {
            results.interrupted = true;
            break;
        }
    }
    progress.done();
    results.print(output)?;
    Ok(results.exit())
}

impl Results {
    /// Hears what comes next; answers whether anything more is to come.
    fn hear(&mut self, cell: &mut ChildGuard, progress: &Progress) -> bool {
        let line = match cell.lines().next_line(Deadline::after(TICK), "a line of a benchmark") {
            Ok(line) => line,
            Err(error) if matches!(error.kind(), ReadErrorKind::Deadline) => {
                progress.tick();
                return true;
            }
            Err(error) => {
                let status = cell.wait(Deadline::secs(10)).ok().and_then(|status| status.code());
                self.broken = Some((status, error.to_string()));
                return false;
            }
        };
        match serde_json::from_str(&line) {
            Ok(Told::At { done, of, now }) => progress.at(done, of, &now),
            Ok(Told::Note(note)) => self.notes.push(note),
            Ok(Told::Row(row)) => self.rows.push(row),
            Ok(Told::Wrong(wrong)) => self.wrong.push(wrong),
            Ok(Told::Failed { why }) => {
                self.broken = Some((None, why));
                return false;
            }
            Ok(Told::Done) => return false,
            Err(error) => {
                self.broken = Some((None, format!("a benchmark said `{line}`: {error}")));
                return false;
            }
        }
        true
    }

    fn missed(&self) -> usize {
        self.rows.iter().filter(|row| row.reached == Some(false)).count()
    }

    fn exit(&self) -> Exit {
        match &self.broken {
            _ if !self.wrong.is_empty() => Exit::Finding,
            Some((Some(77), _)) => Exit::Missing,
            Some(_) => Exit::Internal,
            None if self.interrupted => Exit::Undecided,
            None if self.rows.is_empty() => Exit::Missing,
            None if self.gate && self.missed() > 0 => Exit::Finding,
            None => Exit::Holds,
        }
    }

    fn verdict(&self) -> String {
        let measured = several(self.rows.len() as u64, "figure");
        let aims = self.rows.iter().filter(|row| row.reached.is_some()).count();
        let reached = format!("{measured}, {} of {aims} aims reached", aims - self.missed());
        match self.exit() {
            Exit::Undecided => format!("{reached}; interrupted"),
            Exit::Missing => "nothing could be measured here".into(),
            Exit::Internal => format!("{reached}; it broke off"),
            _ => reached,
        }
    }

    fn print(&self, output: &Output) -> io::Result<()> {
        let mut out = output.stdout();
        if output.json() {
            for row in &self.rows {
                output.json_line(&mut out, "figure", row)?;
            }
            let exit = self.exit() as u8;
            let (notes, wrong) = (&self.notes, &self.wrong);
            let verdict = Verdict { exit, text: self.verdict(), notes, wrong };
            output.json_line(&mut out, "verdict", &verdict)?;
        } else {
            if !self.rows.is_empty() {
                let rows = self.rows.iter().map(|row| (cells(row), row.reached != Some(false)));
                let head = ["", "claims", "what", "cpu", "wall", "× cpu", "× wall", "aim", ""];
                output.table(&mut out, &head, rows)?;
            }
            for wrong in &self.wrong {
                writeln!(out, "{}", output.bad(wrong))?;
            }
            writeln!(out, "{}", output.verdict(&self.verdict(), self.exit() == Exit::Holds))?;
            for note in &self.notes {
                writeln!(io::stderr(), "mortmain-lab: {note}")?;
            }
        }
        if let Some((_, why)) = &self.broken {
            writeln!(io::stderr(), "mortmain-lab: {why}")?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Verdict<'v> {
    exit: u8,
    text: String,
    notes: &'v [String],
    wrong: &'v [String],
}

fn cells(row: &Row) -> Vec<String> {
    let times = |times: Option<f64>| times.map_or_else(String::new, |times| format!("{times:.2}"));
    let reached = row.reached.map_or("", |reached| if reached { "reached" } else { "missed" });
    vec![
        row.place.clone(),
        row.claims.to_string(),
        row.what.clone(),
        row.cpu_us.map_or_else(String::new, |cpu| time(cpu, &row.unit)),
        time(row.wall_us, &row.unit),
        times(row.times_cpu),
        times(row.times_wall),
        row.aim.clone().unwrap_or_default(),
        reached.into(),
    ]
}

/// So many microseconds for one of a unit.
fn time(micros: f64, unit: &str) -> String {
    match micros {
        micros if micros >= 10_000.0 => format!("{:.0} ms/{unit}", micros / 1_000.0),
        micros if micros >= 1_000.0 => format!("{:.1} ms/{unit}", micros / 1_000.0),
        micros => format!("{micros:.1} µs/{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::told::Medians;

    fn row(reached: bool) -> Row {
        let medians = Medians { cpu_us: 1.25, wall_us: 25_000.0 };
        Row::new("tmpfs", 10, "sweep", "claim", medians).aiming("≤ 1", reached)
    }

    #[test]
    fn a_missed_aim_is_a_finding_where_it_is_a_gate() {
        let results =
            |gate, reached| Results { rows: vec![row(reached)], gate, ..Results::default() };
        assert_eq!(results(false, false).exit(), Exit::Holds);
        assert_eq!(results(true, true).exit(), Exit::Holds);
        assert_eq!(results(true, false).exit(), Exit::Finding);
        assert_eq!(results(true, false).verdict(), "1 figure, 0 of 1 aims reached");
        let wrong = Results { wrong: vec!["left".into()], ..results(false, true) };
        assert_eq!(wrong.exit(), Exit::Finding);
        let interrupted = Results { interrupted: true, ..results(true, true) };
        assert_eq!(interrupted.exit(), Exit::Undecided);
    }

    #[test]
    fn a_row_is_told_in_units_that_people_read() {
        let expected =
            ["tmpfs", "10", "sweep", "1.2 µs/claim", "25 ms/claim", "", "", "≤ 1", "reached"];
        assert_eq!(cells(&row(true)), expected);
    }
}
