//! The command's own process, be it registered in a claim or not; and what `/proc` says of ours.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::ExitStatus;

use mortmain::{Claim, ErrorKind};
use nix::unistd::Pid;

use crate::exit::{Exit, Failure};

/// What the directory is called for the command.
const VARIABLES: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// A process that was started, in a group of its own.
#[derive(Debug)]
pub(crate) enum Process {
    /// A command of a claim.
    Registered(mortmain::Child),
    /// One that no registry knows, in an unclaimed directory.
    Plain(std::process::Child),
}

impl Process {
    /// Starts a command line in a claim.
    pub(crate) fn registered(claim: &Claim, line: &[OsString]) -> Result<Process, Failure> {
        let mut command = claim.command(&line[0]);
        command.args(&line[1..]).envs(VARIABLES.map(|name| (name, claim.path())));
        match command.spawn() {
            Ok(child) => Ok(Process::Registered(child)),
            Err(error) => match (error.kind(), error.errno()) {
                (ErrorKind::NotStarted, Some(errno)) => Err(not_started(&line[0], errno.into())),
                _ => Err(error.into()),
            },
        }
    }

    /// Starts a command line in a directory that is no claim.
    #[expect(clippy::disallowed_methods, reason = "there is no claim that it could be started in")]
    pub(crate) fn plain(directory: &Path, line: &[OsString]) -> Result<Process, Failure> {
        let mut command = std::process::Command::new(&line[0]);
        command.args(&line[1..]).envs(VARIABLES.map(|name| (name, directory)));
        let started = command.process_group(0).spawn();
        started.map(Process::Plain).map_err(|error| not_started(&line[0], error))
    }

    /// Its number, and that of its group.
    pub(crate) fn pid(&self) -> Pid {
        let id = match self {
            Process::Registered(child) => child.id(),
            Process::Plain(child) => child.id(),
        };
        // OK because pids are below 2^22.
        Pid::from_raw(i32::try_from(id).expect("a pid is small"))
    }

    /// How it ended, if it has.
    pub(crate) fn try_wait(&mut self) -> Result<Option<ExitStatus>, Failure> {
        Ok(match self {
            Process::Registered(child) => child.try_wait()?,
            Process::Plain(child) => child.try_wait()?,
        })
    }
}

/// A command that could not be started, with the exit codes that shells have for it.
pub(crate) fn not_started(program: &OsString, error: io::Error) -> Failure {
    let found = error.kind() != io::ErrorKind::NotFound;
    let why = format!("cannot run `{}`: {error}", program.display());
    Failure { exit: Exit::Command(if found { 126 } else { 127 }), why }
}

/// Where a process stands, by `/proc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Standing {
    parent: i32,
    group: i32,
    session: i32,
}

impl Standing {
    fn of(pid: i32) -> Option<Standing> {
        Standing::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(stat: &[u8]) -> Option<Standing> {
        // The name, in parentheses, may have anything in it.
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
        let mut fields = rest.split_ascii_whitespace().skip(1).map(|field| field.parse().ok());
        let mut next = || fields.next()?;
        Some(Standing { parent: next()?, group: next()?, session: next()? })
    }
}

/// Whether nobody outside our group could continue us after a stop: no process of the session is
/// the parent of somebody in it. The kernel then ignores Ctrl-Z.
pub(crate) fn is_orphaned() -> bool {
    // OK because pids are below 2^22.
    let pid = i32::try_from(std::process::id()).expect("a pid is small");
    let Some(ours) = Standing::of(pid) else { return true };
    let mut parent = ours.parent;
    while let Some(standing) = Standing::of(parent) {
        if standing.group != ours.group {
            return standing.session != ours.session;
        }
        parent = standing.parent;
    }
    // The parent of the first process is nobody.
    true
}

/// The signals that this process ignores, by number: whoever started it wants them ignored in the
/// command as well.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_is_read_past_any_name() {
        let stat = b"42 (a) (b) 7) S 40 41 39 34816 41 4194304 1";
        let want = Standing { parent: 40, group: 41, session: 39 };
        assert_eq!(Standing::parse(stat), Some(want));
        assert_eq!(Standing::parse(b"42 (a) S x"), None);
    }
}
