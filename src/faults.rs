//! `mortmain-lab faults`: every operation, killed and failed at every call, on the real kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use mortmain_harness::faults::Fired;
use mortmain_harness::series::{Case, Fault, Job, Operation, Told};
use serde::Serialize;

use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{Output, Progress, several};
use crate::workers::{News, Workers};

/// What to do, and how to tell it.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Only this operation; may be given several times
    #[arg(long, value_name = "NAME", value_parser = operation)]
    operation: Vec<Operation>,
    /// Only this fault, such as `kill-before`, `EIO`, `EMFILE-for-ever`
    #[arg(long, value_name = "NAME", value_parser = fault)]
    fault: Option<Fault>,
    /// Only this position, from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    at: Option<u64>,
    /// List the operations and the faults, and run nothing
    #[arg(long)]
    list: bool,
    /// Processes that work at the same time
    #[arg(short, long, value_name = "N", env = "MORTMAIN_JOBS", default_value_t = jobs())]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=64))]
    jobs: u64,
}

impl Options {
    /// All of it.
    pub(crate) fn everything() -> Options {
        Options { operation: Vec::new(), fault: None, at: None, list: false, jobs: jobs() }
    }
}

/// One for each core, and eight at most.
pub(crate) fn jobs() -> u64 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(8) as u64)
}

fn operation(name: &str) -> Result<Operation, String> {
    Operation::parse(name).ok_or_else(|| {
        let names = Operation::ALL.map(Operation::name).join(", ");
        format!("there is none of that name; there are: {names}")
    })
}

fn fault(name: &str) -> Result<Fault, String> {
    Fault::parse(name).ok_or_else(|| "there is none of that name; see `faults --list`".into())
}

/// What came of one operation.
#[derive(Clone, Debug, Default, Serialize)]
struct Row {
    operation: String,
    /// Calls of the undisturbed run.
    positions: u64,
    /// Cases in which a process was killed.
    kills: u64,
    /// Cases in which a call failed.
    errnos: u64,
    /// Different states in which a kill left the root.
    states_left: usize,
    harmed: u64,
    leaked: u64,
    /// Positions at which a fault was due and did not happen.
    not_fired: u64,
    #[serde(skip)]
    states: BTreeSet<u64>,
}

impl Row {
    fn is_clean(&self) -> bool {
        (self.harmed, self.leaked, self.not_fired) == (0, 0, 0)
    }
}

/// A case that went wrong.
#[derive(Clone, Debug, Serialize)]
struct Finding {
    case: Case,
    wrong: Vec<String>,
    again: String,
}

/// Everything that came of a run.
#[derive(Debug, Default)]
pub(crate) struct Results {
    rows: BTreeMap<Operation, Row>,
    findings: Vec<Finding>,
    cases: u64,
    due: u64,
    broken: Vec<(Option<i32>, String)>,
    interrupted: bool,
}

/// Runs the series and prints what came of them.
pub(crate) fn run(options: &Options, output: &Output, interrupt: &Interrupt) -> io::Result<Exit> {
    if options.list {
        return list(output).map(|()| Exit::Holds);
    }
    let results = collect(options, output, interrupt)?;
    print(&results, output)?;
    Ok(results.exit())
}

fn list(output: &Output) -> io::Result<()> {
    let mut out = output.stdout();
    writeln!(out, "Operations:")?;
    for operation in Operation::ALL {
        writeln!(out, "  {operation}")?;
    }
    writeln!(out, "Faults:")?;
    for fault in Fault::all().chain(Operation::SpawnChild.faults()).collect::<BTreeSet<_>>() {
        writeln!(out, "  {fault}")?;
    }
    Ok(())
}

/// Runs the series.
pub(crate) fn collect(
    options: &Options,
    output: &Output,
    interrupt: &Interrupt,
) -> io::Result<Results> {
    let chosen = |operation: &Operation| {
        options.operation.is_empty() || options.operation.contains(operation)
    };
    let operations: Vec<Operation> = Operation::ALL.into_iter().filter(chosen).collect();
    let jobs: Vec<Job> = (0..options.jobs)
        .map(|part| Job {
            operations: operations.clone(),
            fault: options.fault,
            position: options.at,
            part,
            parts: options.jobs,
        })
        .collect();
    let mut results = Results::default();
    let workers = Workers::start(&jobs)?;
    let progress = output.progress("faults");
    let mut running = jobs.len();
    while running > 0 {
        if interrupt.is_asked() {
            results.interrupted = true;
            break;
        }
        match workers.next(Duration::from_millis(100)) {
            Some(News::Told(told)) => results.note(told, options, &progress),
            Some(News::Ended(ended)) => {
                running -= 1;
                results.broken.extend(ended.err());
            }
            None => progress.tick(),
        }
    }
    progress.done();
    Ok(results)
}

impl Results {
    fn note(&mut self, told: Told, options: &Options, progress: &Progress) {
        match told {
            Told::Recorded { operation, calls } => self.recorded(&operation, &calls, options),
            Told::Judged { case, fired, left, wrong } => {
                self.cases += 1;
                progress.at(self.cases, self.due, &case.operation);
                self.judged(case, fired, left, wrong);
            }
            Told::Done => {}
        }
    }

    fn recorded(&mut self, operation: &str, calls: &[String], options: &Options) {
        // Each worker records all of them, and one is enough.
        let Some(operation) = Operation::parse(operation) else { return };
        if self.rows.contains_key(&operation) {
            return;
        }
        let row = Row {
            operation: operation.name().into(),
            positions: calls.len() as u64,
            ..Row::default()
        };
        self.rows.insert(operation, row);
        let positions = || calls.iter().map(String::as_str).chain(["end"]).zip(1..);
        for fault in operation.faults() {
            let due = positions().filter(|(call, at)| {
                fault.fits(call)
                    && options.fault.is_none_or(|only| only == fault)
                    && options.at.is_none_or(|only| only == *at)
            });
            self.due += due.count() as u64;
        }
    }

    fn judged(&mut self, case: Case, fired: Fired, left: u64, wrong: Vec<String>) {
        let known = Operation::parse(&case.operation).and_then(|name| self.rows.get_mut(&name));
        let (Some(row), Some(fault)) = (known, Fault::parse(&case.fault)) else { return };
        // The one position past the end shows that the series has come to the end.
        let within = case.position <= row.positions;
        let as_due = matches!(
            (within, fired),
            (true, Fired::Yes | Fired::CannotHappen) | (false, Fired::No)
        );
        match fired {
            Fired::Yes if fault.is_kill() => {
                row.kills += 1;
                row.states.insert(left);
                row.states_left = row.states.len();
            }
            Fired::Yes => row.errnos += 1,
            Fired::No | Fired::CannotHappen => {}
        }
        row.not_fired += u64::from(!as_due);
        let says = |word: &str| wrong.iter().any(|line| line.starts_with(word));
        row.harmed += u64::from(says("harmed"));
        row.leaked += u64::from(says("leaked"));
        if !as_due || !wrong.is_empty() {
            let again = format!(
                "cargo lab faults --operation {} --fault {} --at {}",
                case.operation, case.fault, case.position
            );
            self.findings.push(Finding { case, wrong, again });
        }
    }

    /// How a command that ran this ends.
    pub(crate) fn exit(&self) -> Exit {
        if !self.findings.is_empty() {
            return Exit::Finding;
        }
        match self.broken.first() {
            Some((Some(77), _)) => Exit::Missing,
            Some((Some(5), _)) => Exit::Baseline,
            Some(_) => Exit::Internal,
            None if self.interrupted => Exit::Undecided,
            None if self.cases == 0 => Exit::Nothing,
            None => Exit::Holds,
        }
    }

    fn verdict(&self) -> String {
        let harmed: u64 = self.rows.values().map(|row| row.harmed).sum();
        let leaked: u64 = self.rows.values().map(|row| row.leaked).sum();
        let positions: u64 = self.rows.values().map(|row| row.positions).sum();
        let head = format!(
            "{} at {} of {}: harmed {harmed}, leaked {leaked}",
            several(self.cases, "case"),
            several(positions, "call"),
            several(self.rows.len() as u64, "operation")
        );
        match self.exit() {
            Exit::Holds => format!("{head}. What was asked holds."),
            Exit::Nothing => "no case matches what was asked for".into(),
            Exit::Undecided => {
                format!(
                    "{head}. Interrupted after {} of {}.",
                    self.cases,
                    several(self.due, "case")
                )
            }
            Exit::Finding => format!("{head}. {}.", several(self.findings.len() as u64, "finding")),
            Exit::Missing | Exit::Usage | Exit::Internal | Exit::Baseline | Exit::Diverged => {
                format!("{head}. The run broke off.")
            }
        }
    }
}

/// Prints results, as people or programs read them.
pub(crate) fn print(results: &Results, output: &Output) -> io::Result<()> {
    let mut out = output.stdout();
    if output.json() {
        for row in results.rows.values() {
            output.json_line(&mut out, "operation", row)?;
        }
        for finding in &results.findings {
            output.json_line(&mut out, "finding", finding)?;
        }
        #[derive(Serialize)]
        struct Verdict {
            exit: u8,
            text: String,
        }
        let verdict = Verdict { exit: results.exit() as u8, text: results.verdict() };
        output.json_line(&mut out, "verdict", &verdict)?;
    } else {
        let rows = results.rows.values().map(|row| {
            let cells = [row.positions, row.kills, row.errnos, row.states_left as u64];
            let cells = cells.into_iter().chain([row.harmed, row.leaked]);
            let texts = std::iter::once(row.operation.clone()).chain(cells.map(|n| n.to_string()));
            (texts.collect(), row.is_clean())
        });
        let head = ["operation", "positions", "kills", "errnos", "states left", "harmed", "leaked"];
        output.table(&mut out, &head, rows)?;
        for finding in results.findings.iter().take(FINDINGS_SHOWN) {
            writeln!(out, "\n{}", output.bad(&finding.case.to_string()))?;
            if finding.wrong.is_empty() {
                writeln!(
                    out,
                    "  the fault did not happen where it was due, or happened past the end"
                )?;
            }
            for line in &finding.wrong {
                writeln!(out, "  {line}")?;
            }
            writeln!(out, "  again: {}", finding.again)?;
        }
        if let Some(more) = results.findings.len().checked_sub(FINDINGS_SHOWN + 1) {
            writeln!(out, "\nand {} more; `--json` has them all", more + 1)?;
        }
        writeln!(out, "{}", output.verdict(&results.verdict(), results.exit() == Exit::Holds))?;
    }
    for (_, why) in &results.broken {
        writeln!(io::stderr(), "mortmain-lab: {why}")?;
    }
    Ok(())
}

/// Findings that a person is shown; a mistake in a common path gives thousands.
const FINDINGS_SHOWN: usize = 10;
