//! Runs our explorers and their peers over the same work, in turn, and prints what they take.
//!
//! usage: mortmain-explorer-peers [ROUNDS]
//!
//! Each figure is the median of ROUNDS rounds (5, if nothing is said), in each of which everybody works
//! once; of the processor time of the whole process, which does nothing else.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, hint};

use mortmain_explorer_peers::{Execution, Nobody, Work, ours, peers};
use mortmain_harness::ArenaAllocator;
use nix::time::{ClockId, clock_gettime};

#[global_allocator]
static ALLOCATOR: ArenaAllocator = ArenaAllocator;

/// What everything is drawn from.
const SEED: u64 = 1;
/// Runs of one measurement.
const RUNS: usize = 20_000;
/// The same under loom, which takes longer for each.
const LOOM_RUNS: usize = 1_000;
/// Orders that a peer can go through while somebody waits.
const ORDERS_MAX: u128 = 100_000;
/// Searches of one measurement, where one is too short to be measured.
const SEARCHES: u64 = 20;

/// What so many of something took.
#[derive(Clone, Copy)]
struct Took {
    count: u64,
    cpu: Duration,
}

impl Took {
    fn each(self) -> f64 {
        self.cpu.as_secs_f64() / self.count as f64
    }
}

/// Somebody who works, and tells how much was done.
type Contender<'c> = &'c dyn Fn() -> u64;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let rounds = match &args[..] {
        [] => Some(5),
        [text] => text.parse().ok().filter(|rounds| *rounds > 0),
        _ => None,
    };
    let Some(rounds) = rounds else {
        writeln!(io::stderr(), "usage: mortmain-explorer-peers [ROUNDS], from 1")?;
        return Ok(ExitCode::from(2));
    };
    let mut out = io::stdout().lock();
    for work in [Work::SMALL, Work::REAL] {
        run_by_run(&mut out, &work, rounds)?;
        all_orders(&mut out, &work, rounds)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs that are made one by one, each from the beginning to the end of everybody.
fn run_by_run(out: &mut impl Write, work: &Work, rounds: usize) -> Result<(), Box<dyn Error>> {
    let took = in_turn(
        [
            &|| ours::drawn(work, 0, SEED, RUNS as u64).runs,
            &|| peers::shuttle_drawn(work, false, SEED, RUNS).executions,
            &|| peers::loom_all(work, Some(LOOM_RUNS)).executions,
            &|| unexplored(work),
            &|| ours::drawn(work, 1, SEED, RUNS as u64).runs,
            &|| peers::shuttle_drawn(work, true, SEED, RUNS).executions,
        ],
        rounds,
    )?;
    let [ours, shuttle, loom, nobody, ours_killed, shuttle_killed] = took;
    writeln!(out, "{}, run by run, each:", work.name)?;
    for (name, took, beside) in [
        ("ours", ours, ours),
        ("shuttle", shuttle, ours),
        ("loom", loom, ours),
        ("no explorer", nobody, ours),
        ("ours, with kills", ours_killed, ours_killed),
        ("shuttle, with kills", shuttle_killed, ours_killed),
    ] {
        let (each, times) = (took.each() * 1e6, took.each() / beside.each());
        writeln!(out, "  {name:<20} {each:>9.1} µs   {times:>6.2} times ours")?;
    }
    Ok(())
}

/// Everything that can happen without a kill, to the end.
fn all_orders(out: &mut impl Write, work: &Work, rounds: usize) -> Result<(), Box<dyn Error>> {
    let orders = ours::orders(work).count;
    let states = ours::all(work, true).states;
    writeln!(out, "{}, all {orders} orders of calls; {states} states of ours:", work.name)?;
    let mine = |merge| {
        move || {
            for _ in 0..SEARCHES {
                hint::black_box(ours::all(work, merge));
            }
            SEARCHES
        }
    };
    // Too many of them are not run; what they would take is worked out from some.
    let worked_out = orders > ORDERS_MAX;
    let bound = |runs| worked_out.then_some(runs);
    let took = in_turn(
        [&mine(true), &mine(false), &|| peers::shuttle_all(work, bound(RUNS)).executions, &|| {
            peers::loom_all(work, bound(LOOM_RUNS)).executions
        }],
        rounds,
    )?;
    let [ours, whole, shuttle, loom] = took;
    let all = |took: Took| match worked_out {
        true => took.each() * orders as f64,
        false => took.cpu.as_secs_f64(),
    };
    let how = if worked_out { " (worked out from some of them)" } else { "" };
    for (name, seconds, how) in [
        ("ours", ours.each(), ""),
        ("ours, nothing merged", whole.each(), ""),
        ("shuttle", all(shuttle), how),
        ("loom", all(loom), how),
    ] {
        let times = seconds / ours.each();
        writeln!(out, "  {name:<20} {seconds:>9.1e} s    {times:>9.1e} times ours{how}")?;
    }
    Ok(())
}

/// The same code and the same world, one process after the other.
fn unexplored(work: &Work) -> u64 {
    for _ in 0..RUNS {
        hint::black_box(Execution::begin(Nobody, None).undisturbed(work));
    }
    RUNS as u64
}

/// Everybody works once a round; answers the median of each.
fn in_turn<const N: usize>(
    contenders: [Contender<'_>; N],
    rounds: usize,
) -> Result<[Took; N], Box<dyn Error>> {
    let mut took: [Vec<Took>; N] = std::array::from_fn(|_| Vec::new());
    for _ in 0..rounds {
        for (contender, took) in contenders.iter().zip(&mut took) {
            let before = cpu()?;
            let count = contender();
            took.push(Took { count, cpu: cpu()? - before });
        }
    }
    Ok(took.map(|mut took| {
        took.sort_by(|one, other| one.each().total_cmp(&other.each()));
        took[took.len() / 2]
    }))
}

fn cpu() -> nix::Result<Duration> {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from)
}
