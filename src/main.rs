//! The lab's command, `mortmain-lab`: its arguments, and what it does for each.

mod bench;
mod causes;
mod compare;
mod conformance;
mod exit;
mod explore;
mod faults;
mod interrupt;
mod model;
mod mutate;
mod output;
mod refine;
mod replay;
mod sample;
mod scenario;
mod series;
mod soak;
mod stories;
mod workers;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mortmain_harness::conformance::{player, process};
use mortmain_harness::scenario::runner as teller;
use mortmain_harness::series as faults_of;
use mortmain_harness::soak::runner as drawer;
use mortmain_harness::{ArenaAllocator, actor, cell, part};

use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// Finds the holes in code that cleans up after killed processes.
///
/// Without a command it does its main job: it searches the pure model of the protocol, and holds every
/// step of the real code in a simulated kernel against it; it explores every order of an owner, its
/// command and two sweeps there, with two kills anywhere, and with a kill a call that fails, somebody who
/// swaps a name, a stranger with the number of who is gone, a restart, two owners, or a claim in another
/// one; it lets other designs fail there; it tells all scenarios with real processes and in the simulated
/// kernel, which have to agree, and for half a minute stories that it draws; then it kills real processes
/// at every system call of `mortmain`, lets every call fail in every way, and looks at what is true
/// afterwards.
#[derive(Parser, Debug)]
#[command(name = "mortmain-lab", version, after_help = exit::TABLE)]
struct Cli {
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Kill and fail every operation at every call, on the real kernel
    #[command(after_help = exit::TABLE)]
    Faults(faults::Options),
    /// Explore every order of steps and kills in the simulated kernel, or some that are drawn
    #[command(after_help = exit::TABLE)]
    Explore(explore::Options),
    /// Compare designs: which property holds of which, and the shortest run that breaks it
    #[command(after_help = exit::TABLE)]
    Compare(compare::Options),
    /// Compare the simulated kernel with the real one, program by program
    #[command(after_help = exit::TABLE)]
    Conformance(conformance::Options),
    /// Hold every step in the simulated kernel against the model
    #[command(after_help = exit::TABLE)]
    Refine(refine::Options),
    /// Run again what `explore` has found and saved
    #[command(after_help = exit::TABLE)]
    Replay(replay::Options),
    /// Measure what a sweep costs, beside what nobody can do without
    Bench(bench::Options),
    /// Search the pure model of the protocol, or take a rule out of it
    #[command(after_help = exit::TABLE)]
    Model(model::Options),
    /// Tell stories with real processes and in the simulated kernel, and look at what is true in them
    #[command(after_help = exit::TABLE)]
    Scenario(scenario::Options),
    /// Draw stories from a seed, tell them with real processes, and look at what is true in them
    #[command(after_help = exit::TABLE)]
    Soak(soak::Options),
    /// Change the implementation one place at a time, and look for tests that notice
    #[command(disable_help_flag = true)]
    Mutate(mutate::Options),
}

/// Processes of the simulated kernel allocate in arenas of their own, so that a kill leaks nothing.
#[global_allocator]
static ALLOCATOR: ArenaAllocator = ArenaAllocator;

fn main() -> ExitCode {
    let mut args = env::args_os().skip(1);
    // What the lab starts itself as; programs write these arguments, people do not.
    match args.next() {
        Some(role) if role == "cell" => return cell::main(args),
        Some(role) if role == "actor" => return actor::main(args),
        Some(role) if role == "part" => return part::main(args),
        Some(role) if role == "fault-worker" => return faults_of::main(args),
        Some(role) if role == teller::ROLE => return teller::main(args),
        Some(role) if role == drawer::ROLE => return drawer::main(args),
        Some(role) if role == player::ROLE => return player::main(args),
        Some(role) if role == process::ROLE => return process::main(args),
        Some(role) if role == bench::ROLE => return bench::main(args),
        _ => {}
    }
    let cli = Cli::parse();
    cli.output.begin();
    match run(&cli) {
        Ok(exit) => exit.into(),
        // Whoever reads has enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Holds.into(),
        Err(error) => {
            // There is nowhere to tell that standard error is closed.
            let _ = writeln!(io::stderr(), "mortmain-lab: {error}");
            Exit::Internal.into()
        }
    }
}

fn run(cli: &Cli) -> io::Result<Exit> {
    let interrupt = Interrupt::listen()?;
    match &cli.command {
        Some(Command::Faults(options)) => faults::run(options, &cli.output, &interrupt),
        Some(Command::Explore(options)) => explore::run(options, &cli.output, &interrupt),
        Some(Command::Compare(options)) => compare::run(options, &cli.output, &interrupt),
        Some(Command::Conformance(options)) => conformance::run(options, &cli.output, &interrupt),
        Some(Command::Refine(options)) => refine::run(options, &cli.output, &interrupt),
        Some(Command::Replay(options)) => replay::run(options, &cli.output),
        Some(Command::Bench(options)) => bench::run(options, &cli.output, &interrupt),
        Some(Command::Model(options)) => model::run(options, &cli.output, &interrupt),
        Some(Command::Scenario(options)) => scenario::run(options, &cli.output, &interrupt),
        Some(Command::Soak(options)) => soak::run(options, &cli.output, &interrupt),
        Some(Command::Mutate(options)) => Err(mutate::run(options)),
        None => {
            let modelled = model::run(&model::Options::named(), &cli.output, &interrupt)?;
            let refined = refine::run(&refine::Options::default(), &cli.output, &interrupt)?;
            let mut searched = modelled.and(refined);
            for options in explore::Options::searches() {
                searched = searched.and(explore::run(&options, &cli.output, &interrupt)?);
            }
            let compared = compare::run(&compare::Options::all(), &cli.output, &interrupt)?;
            let told = scenario::run(&scenario::Options::default(), &cli.output, &interrupt)?;
            let drawn = soak::run(&soak::Options::default(), &cli.output, &interrupt)?;
            let faults = faults::run(&faults::Options::everything(), &cli.output, &interrupt)?;
            Ok(searched.and(compared).and(told).and(drawn).and(faults))
        }
    }
}
