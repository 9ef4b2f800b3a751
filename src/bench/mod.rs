//! `mortmain-lab bench`: what a sweep costs, as a ratio to what nobody could do without.
//!
//! A figure of one machine says nothing about another, and on a machine with other work the time on
//! the wall says nothing at all. So everything is measured beside its yardstick, several rounds in
//! turn, and told as a ratio of the medians, of processor time first.
//!
//! All of it happens in a cell, on file systems of its own: nothing is left behind, whoever is killed.

mod backlog;
mod contender;
mod cost;
mod field;
mod parts;
mod place;
mod start;
mod sweep;
mod told;
mod watch;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// The first argument of what a benchmark starts itself as.
pub(crate) const ROLE: &str = "bench-part";

/// Which benchmark.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(subcommand)]
    which: Which,
}

#[derive(Subcommand, Clone, Debug)]
enum Which {
    /// A sweep of the living beside a bare probe, one of the dead beside `rm -rf`
    #[command(after_help = sweep::HELP)]
    Sweep(sweep::Options),
    /// Many leftovers, no free inode, several sweeps at once, starts that are killed
    #[command(after_help = backlog::HELP)]
    Backlog(backlog::Options),
}

/// Measures, and prints what came of it.
pub(crate) fn run(options: &Options, output: &Output, interrupt: &Interrupt) -> io::Result<Exit> {
    match &options.which {
        Which::Sweep(options) => watch::run(&options.to_args(), options.gate, output, interrupt),
        Which::Backlog(options) => watch::run(&options.to_args(), options.gate, output, interrupt),
    }
}

/// What a benchmark starts itself as: the process in the cell, or one that it measures.
pub(crate) fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<String> =
        args.into_iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match &words[..] {
        ["owner", root, count, files] => parts::owner(root, count, files),
        ["server", root] => parts::server(root),
        ["sweep", rest @ ..] => sweep::work(rest),
        ["backlog", rest @ ..] => backlog::work(rest),
        other => Err(io::Error::other(format!("`{ROLE} {}` is no part", other.join(" ")))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            told::Told::Failed { why: error.to_string() }.tell();
            ExitCode::from(Exit::Internal as u8)
        }
    }
}
