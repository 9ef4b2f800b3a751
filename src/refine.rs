//! `mortmain-lab refine`: every step in the simulated kernel, held against the model.

use std::collections::BTreeSet;
use std::io::{self, Write};

use clap::Args;
use mortmain_harness::explore::{Bounds, Case, Verdict, Without};
use mortmain_harness::refine::{KILLS_MAX, Refined, SWEEPS_MAX, refine};
use mortmain_harness::simulated::subject::{Manner, Then};
use mortmain_model::Step;
use serde::Serialize;

use crate::exit::Exit;
use crate::explore::{HOW, describe, manner, rule, then};
use crate::interrupt::Interrupt;
use crate::output::Output;

/// What is held against the model.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What is explored")]
pub(crate) struct Options {
    /// Switch a rule off in the code, to see the model refuse it: l3, l4, p1 or p2; what is so
    /// without r2 is seen in the end alone, which is not held against the model
    #[arg(long, value_name = "RULE", value_parser = rule)]
    without: Option<Without>,
    /// How the command behaves: plain, closes-all, leaves-child, leaves-daemon or escapes
    /// [default: plain, or what shows the rule]
    #[arg(long, value_name = "MANNER", value_parser = manner)]
    manner: Option<Manner>,
    /// How the owner goes on: idle, exit, close, wait-and-close, end-and-close or wait
    /// [default: wait-and-close, or what shows the rule]
    #[arg(long, value_name = "THEN", value_parser = then)]
    then: Option<Then>,
    /// Sweeps that run at the same time [default: 1]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=SWEEPS_MAX as i64))]
    sweeps: Option<u8>,
    /// Processes that are killed, each at any moment [default: 1]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=i64::from(KILLS_MAX)))]
    kills: Option<u8>,
    /// States after which the search gives up [default: 4000000]
    #[arg(long, value_name = "N", help_heading = HOW)]
    states: Option<u32>,
}

/// States of the default bound take about a gigabyte.
const STATES_MAX: u32 = 4_000_000;

impl Options {
    /// Without options an owner that waits for its command and closes, one sweep and one kill: every
    /// kind of step that the model has for that is taken.
    fn case(&self) -> Case {
        let whole = Case { then: Then::WaitAndClose, ..Case::SMALL };
        let case = self.without.map_or(whole, Without::shown_by);
        Case {
            manner: self.manner.unwrap_or(case.manner),
            then: self.then.unwrap_or(case.then),
            sweeps: self.sweeps.map_or(case.sweeps, usize::from),
            kills: self.kills.map_or(case.kills, u32::from),
            ..case
        }
    }
}

/// Explores with the model beside it, and prints what came of it.
pub(crate) fn run(options: &Options, output: &Output, interrupt: &Interrupt) -> io::Result<Exit> {
    let case = options.case();
    let what = format!("{}, beside the model", describe(&case));
    let progress = output.progress("refine");
    let bounds = Bounds { states_max: options.states.unwrap_or(STATES_MAX) };
    let refined = refine(case, &bounds, &mut |counts| {
        progress.count(counts.states, "states");
        !interrupt.is_asked()
    });
    progress.done();
    let refined = match refined {
        Ok(refined) => refined,
        Err(no_room) => {
            writeln!(io::stderr(), "{no_room}")?;
            return Ok(Exit::Usage);
        }
    };
    let (exit, verdict) = match &refined.exploration.verdict {
        Verdict::Holds => (Exit::Holds, format!("{what}: holds, {refined}")),
        Verdict::Found(_) => (Exit::Finding, format!("{what}: does not hold, {refined}")),
        Verdict::NotDecided { states_max } => {
            (Exit::Undecided, format!("{what}: not decided at {states_max} states"))
        }
        Verdict::Ended => (Exit::Undecided, format!("{what}: interrupted, {refined}")),
    };
    let mut out = output.stdout();
    if output.json() {
        output.json_line(&mut out, "refinement", &Line::of(&refined, exit))?;
        return Ok(exit);
    }
    if let Verdict::Found(found) = &refined.exploration.verdict {
        writeln!(out, "{found}")?;
    }
    for step in &refined.never {
        writeln!(out, "never taken: {step}")?;
    }
    writeln!(out, "{}", output.verdict(&verdict, exit == Exit::Holds))?;
    Ok(exit)
}

#[derive(Serialize)]
struct Line {
    exit: u8,
    states: u64,
    transitions: u64,
    /// Most states of the model beside one of the world.
    beside_max: usize,
    /// Transitions beyond what the model has room for.
    beyond: u64,
    /// The kinds of steps of the model that were taken along.
    taken: Vec<String>,
    /// Those that never were.
    never: Vec<String>,
    found: Option<String>,
}

impl Line {
    fn of(refined: &Refined, exit: Exit) -> Line {
        let counts = refined.exploration.counts;
        let words = |steps: &BTreeSet<Step>| steps.iter().map(Step::to_string).collect();
        let found = match &refined.exploration.verdict {
            Verdict::Found(found) => Some(found.to_string()),
            _ => None,
        };
        Line {
            exit: exit as u8,
            states: counts.states,
            transitions: counts.transitions,
            beside_max: refined.states_max,
            beyond: refined.beyond,
            taken: words(&refined.covered),
            never: words(&refined.never),
            found,
        }
    }
}
