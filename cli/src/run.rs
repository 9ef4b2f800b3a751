//! `mortmain run`: a command with its temporary directory in a claim, and a sweep beside it.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use clap::Args;
use mortmain::sys::Name;
use mortmain::{BackgroundSweep, Claim, Closed, ErrorKind, Namespace, Prefix, Unclaimed};

use crate::exit::{Exit, Failure, RUN_TABLE};
use crate::job::{Job, Listener};
use crate::output::{note, several, warn};
use crate::place::Place;
use crate::process::Process;
use crate::terminal::{Terminal, in_foreground, is_interactive};

const EXAMPLES: &str = "\
Examples:
  mortmain run -- cargo nextest run
  mortmain run --root /var/tmp -- pytest -x
  mortmain run -- sh -c 'cd \"$TMPDIR\" && make -f ~/project/Makefile'

The command finds a fresh directory in TMPDIR, TMP and TEMP. It is removed when the command has
ended; where something that the command started still runs, by the first later run or sweep after
its end. If this tool is killed the command runs on, and the directory stays until it has ended.

Signals are passed on to the command's process group, and on a terminal it can be interrupted,
stopped and continued as any job. What it was interrupted by from the terminal (Ctrl-C) ends this
tool, too.";

/// What to run, and where.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{RUN_TABLE}"))]
pub(crate) struct Options {
    #[command(flatten)]
    place: Place,
    /// How long to wait for the sweep once the command has ended
    #[arg(long, value_name = "TIME", default_value = "200ms")]
    #[arg(value_parser = humantime::parse_duration)]
    budget: Duration,
    /// Leave the directory where it is, for good, and tell its path
    #[arg(long)]
    keep: bool,
    /// Say nothing, not even what could not be protected or removed
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Tell what became of every claim that was there
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    color: colorchoice_clap::Color,
    /// The command, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Where the command works.
enum Directory {
    Claim(Claim),
    /// Removed at the end, or by nobody.
    Unclaimed(Unclaimed),
}

impl Directory {
    /// The name that a sweep knows the claim by.
    fn name(&self) -> Option<OsString> {
        match self {
            Directory::Claim(claim) => Some(claim.path().parent()?.file_name()?.into()),
            Directory::Unclaimed(_) => None,
        }
    }
}

/// Runs the command and ends as it does.
pub(crate) fn run(options: &Options) -> Result<Exit, Failure> {
    options.color.write_global();
    let namespace = options.place.open()?;
    let directory = options.directory(&namespace)?;
    let mut listener = Listener::new()?;
    let terminal = Terminal::controlling();
    let foreground = is_interactive() && terminal.as_ref().is_some_and(Terminal::is_ours);
    let line = if foreground { in_foreground(&options.command) } else { options.command.clone() };
    let process = match &directory {
        Directory::Claim(claim) => Process::registered(claim, &line)?,
        Directory::Unclaimed(unclaimed) => Process::plain(unclaimed.path(), &line)?,
    };
    // After the command, which nothing here may delay.
    let sweep = namespace.sweep_in_background();
    let mut job = Job::new(process, terminal, is_interactive());
    let status = job.wait(&mut listener)?;
    listener.close()?;
    let own = directory.name();
    options.finish(directory);
    options.tell(sweep, own.as_deref());
    job.end_with_it(status);
    Ok(Exit::Command(code(status)))
}

/// 128 + n for one that signal n killed, as shells have it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    // OK because a status has eight bits and there are 64 signals.
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

impl Options {
    fn directory(&self, namespace: &Namespace) -> Result<Directory, Failure> {
        if self.keep {
            return Ok(Directory::Unclaimed(namespace.create_unclaimed()?));
        }
        match namespace.create() {
            Ok(claim) => Ok(Directory::Claim(claim)),
            Err(error) if error.kind() == ErrorKind::Unprotected => {
                if !self.quiet {
                    warn(format_args!("{error}"));
                    warn("the directory will stay for good if this run is killed");
                }
                Ok(Directory::Unclaimed(namespace.create_unclaimed()?))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the directory, if nothing uses it; tells if something does.
    fn finish(&self, directory: Directory) {
        let told = match directory {
            Directory::Unclaimed(unclaimed) if self.keep => {
                note(format_args!("kept {}", unclaimed.keep().display()));
                None
            }
            Directory::Unclaimed(mut unclaimed) => match unclaimed.remove() {
                Ok(obstacles) => obstacles
                    .first()
                    .map(|obstacle| format!("{} stays: {obstacle}", unclaimed.path().display())),
                Err(error) => Some(error.to_string()),
            },
            Directory::Claim(claim) => close(claim),
        };
        if let Some(told) = told.filter(|_| !self.quiet) {
            note(told);
        }
    }

    /// Waits for the sweep, if there is time, and tells what it did.
    fn tell(&self, sweep: BackgroundSweep, own: Option<&OsStr>) {
        match sweep.wait_at_most(self.budget) {
            Ok(Some(mut report)) if self.verbose => {
                // That it was in use is no news, nor that it was being removed.
                if let Some(own) = own {
                    let (prefix, own) = (&self.place.prefix, own.as_bytes());
                    report.entries.retain(|entry| !is_same(prefix, entry.name.bytes(), own));
                }
                report.to_string().lines().for_each(note);
            }
            Ok(Some(report)) if report.removed() > 0 && !self.quiet => {
                // In a log it is one more line that nobody asked for.
                if io::stderr().is_terminal() {
                    let claims = several(report.removed(), "claim");
                    note(format_args!("removed {claims} that killed runs had left"));
                }
            }
            Ok(Some(_)) => {}
            Ok(None) if self.verbose => note("the sweep was not done in time; the next goes on"),
            Ok(None) => {}
            Err(error) if !self.quiet => warn(error),
            Err(_) => {}
        }
    }
}

/// Whether two names of a prefix are of the same claim, wherever it stands in its life.
fn is_same(prefix: &str, one: &[u8], other: &[u8]) -> bool {
    let prefix = Prefix::new(prefix);
    let random = |name: &[u8]| Some(prefix.as_ref()?.parse(&Name::new(name)?)?.random);
    random(one).is_some_and(|one| random(other) == Some(one))
}

/// Closes a claim, or leaves it to the sweeps; answers what there is to tell.
fn close(claim: Claim) -> Option<String> {
    let path = claim.path().display().to_string();
    match claim.close() {
        Ok(Closed::Obstructed(obstacles)) => {
            obstacles.first().map(|obstacle| format!("{path} stays: {obstacle}"))
        }
        // Removed, or in the hands of a sweep.
        Ok(_) => None,
        Err(refused) => {
            let why = refused.error.reason();
            let in_use = refused.error.kind() == ErrorKind::InUse;
            let left = match refused.claim.release() {
                Ok(()) if in_use => format!(
                    "{path} stays, since something still uses it ({why}); the first run or sweep \
                     after its end removes it"
                ),
                Ok(()) => format!("{path} stays for the next run or sweep: {why}"),
                Err(failed) => failed.error.to_string(),
            };
            Some(left)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sweep may meet the own claim while it is being removed.
    #[test]
    fn a_claim_is_the_same_wherever_it_stands_in_its_life() {
        let is_own = |name: &[u8]| is_same("p", name, b"p-abcdefghij27");
        assert!(is_own(b"p-abcdefghij27"));
        assert!(is_own(b".p-abcdefghij27.dead-aaaaaaaaaaa2"));
        assert!(is_own(b".p-abcdefghij27.new"));
        for other in [
            &b"p-abcdefghij26"[..],
            b".p-abcdefghij26.dead-aaaaaaaaaaa2",
            b"p-abcdefghij27.dead-aaaaaaaaaaa2",
            b"q-abcdefghij27",
            b"p",
        ] {
            assert!(!is_own(other), "{}", other.escape_ascii());
        }
    }
}
