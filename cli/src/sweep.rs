//! `mortmain sweep`: removes the claims that nobody uses any more, and tells every one.

use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

use clap::Args;
use mortmain::{Probes, Removes, SweepOptions};

use crate::exit::{Exit, Failure, TABLE};
use crate::output::{Output, json_line, styled};
use crate::place::Place;
use crate::verdict::{Line, Word, exit, summary, summary_line};

const EXAMPLES: &str = "\
Examples:
  mortmain sweep                              what killed runs left behind
  mortmain sweep --budget 2s --root /var/tmp  elsewhere, and not for longer than that
  mortmain sweep --dry-run --prefix my-tool   what would go of a program that uses the library
  mortmain sweep --claim run-abcdefghij27 --trust-me
                                              one claim that nobody can answer for any more

A sweep never waits, and removes nothing that may be in use. With a budget it stops after the claim
that it is at when the time is over; the next one begins at another place.

Some claims no sweep may remove, since nobody can answer for them: a command of a container that is
gone, or a damaged record. Who knows that nothing uses such a claim says so by --trust-me. It stands
for the answers that could not be given, and for no other: what lives keeps the claim all the same.";

/// Which claims, and for how long.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{TABLE}"))]
pub(crate) struct Options {
    #[command(flatten)]
    place: Place,
    /// Tell what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Stop after so much time, such as 500ms or 2s
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    budget: Option<Duration>,
    /// Only this claim, by the name that a list has of it
    #[arg(long, value_name = "NAME", requires = "trust_me", conflicts_with = "budget")]
    claim: Option<OsString>,
    /// You know that nothing uses the claim, where nobody else can tell
    #[arg(long, requires = "claim")]
    trust_me: bool,
    /// Print no more than what failed
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    #[command(flatten)]
    output: Output,
}

/// Sweeps, and prints a sentence a claim.
pub(crate) fn run(options: &Options) -> Result<Exit, Failure> {
    options.output.begin();
    let namespace = options.place.open()?;
    let report = match &options.claim {
        Some(claim) => namespace.reclaim_on_word(claim, options.dry_run)?,
        None => {
            let how = SweepOptions { dry_run: options.dry_run, budget: options.budget };
            namespace.sweep_with(&how, &mut Probes, &mut Removes)
        }
    };
    let mut out = anstream::stdout().lock();
    if options.output.json() {
        for entry in &report.entries {
            json_line(&mut out, "claim", &Line::new(&report, entry))?;
        }
        summary_line(&mut out, &report)?;
    } else if !options.quiet {
        for entry in &report.entries {
            let style = Word::of(&entry.outcome).style();
            writeln!(out, "{}", styled(style, &entry.to_string()))?;
        }
        writeln!(out, "{}", summary(&report))?;
    }
    exit(&report)
}
