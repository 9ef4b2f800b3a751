//! `mortmain-lab explore`: every order of steps and kills, in the simulated kernel.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use mortmain_harness::explore::{Bounds, Case, Counts, Verdict, Without, exhaust_watched};
use serde::Serialize;

use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{Output, several};

/// What to explore.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Switch a rule off, to see what it is for: l3, l4, p1, p2 or r2
    #[arg(long, value_name = "RULE", value_parser = rule)]
    without: Option<Without>,
    /// Sweeps that run at the same time [default: 2, or 1 without a rule]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=4))]
    sweeps: Option<u8>,
    /// Processes that are killed, each at any moment [default: 2, or 1 without a rule]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=4))]
    kills: Option<u8>,
    /// Calls that fail, each at any moment, done or not [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=2))]
    failures: Option<u8>,
    /// Where a finding is saved, for `replay`
    #[arg(long, value_name = "DIR", default_value = SAVED)]
    save: PathBuf,
    /// States after which the search gives up
    #[arg(long, value_name = "N", default_value_t = STATES_MAX)]
    states: u32,
}

/// Below the directory that builds go to, in which nobody looks for anything of value.
const SAVED: &str = "target/lab";

/// States of the default bounds take about half a gigabyte.
const STATES_MAX: u32 = 4_000_000;

impl Options {
    /// The gate, as the main job has it.
    pub(crate) fn gate() -> Options {
        let save = SAVED.into();
        Options {
            without: None,
            sweeps: None,
            kills: None,
            failures: None,
            save,
            states: STATES_MAX,
        }
    }

    /// One call that fails anywhere, with one sweep and one kill.
    pub(crate) fn failing() -> Options {
        Options { sweeps: Some(1), kills: Some(1), failures: Some(1), ..Options::gate() }
    }

    fn case(&self) -> Case {
        let case = self.without.map_or(Case::GATE, Without::shown_by);
        Case {
            sweeps: self.sweeps.map_or(case.sweeps, usize::from),
            kills: self.kills.map_or(case.kills, u32::from),
            failures: self.failures.map_or(case.failures, u32::from),
            ..case
        }
    }
}

fn rule(id: &str) -> Result<Without, String> {
    let found = Without::RULES.into_iter().find(|(known, _)| *known == id);
    found.map(|(_, without)| without).ok_or_else(|| {
        let ids = Without::RULES.map(|(id, _)| id).join(", ");
        format!("it can be {ids}")
    })
}

/// Explores, and prints what came of it.
pub(crate) fn run(options: &Options, output: &Output, interrupt: &Interrupt) -> io::Result<Exit> {
    let case = options.case();
    let progress = output.progress("explore");
    let bounds = Bounds { states_max: options.states };
    let exploration = exhaust_watched(&case.setup(), &bounds, &mut |counts| {
        progress.count(counts.states, "states");
        !interrupt.is_asked()
    });
    progress.done();
    let mut out = output.stdout();
    let counts = exploration.counts;
    let sweeps = several(case.sweeps as u64, "sweep");
    let mut what = format!("1 owner, 1 command, {sweeps}, {}", several(case.kills.into(), "kill"));
    if case.failures > 0 {
        what += &format!(", {}", several(case.failures.into(), "failing call"));
    }
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
    if output.json() {
        output.json_line(
            &mut out,
            "exploration",
            &Line::of(&exploration.verdict, &counts, exit),
        )?;
    } else {
        if let Verdict::Found(found) = &exploration.verdict {
            writeln!(out, "{found}")?;
            crate::replay::save(&options.save, case, found, &mut out)?;
        }
        writeln!(out, "{}", output.verdict(&verdict, exit == Exit::Holds))?;
    }
    Ok(exit)
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
    found: Option<String>,
}

impl Line {
    fn of(verdict: &Verdict, counts: &Counts, exit: Exit) -> Line {
        let found = match verdict {
            Verdict::Found(found) => Some(found.to_string()),
            _ => None,
        };
        let Counts { states, transitions, depth, .. } = *counts;
        Line { exit: exit as u8, states, transitions, depth, found }
    }
}
