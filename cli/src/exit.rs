//! Exit codes: what they mean, for every command of the tool.

use std::fmt;
use std::io;
use std::process::ExitCode;

use mortmain::sys::Errno;
use mortmain::{Error, ErrorKind};

/// How a command ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// It did what was asked.
    Done,
    /// It was asked for something that cannot be, such as a root that is none.
    Usage,
    /// The tool failed: a system call did, a disk is full, or there is a bug.
    Failed,
    /// The platform lacks what is needed.
    Missing,
    /// With the status of the command that was run.
    Command(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Usage => 2,
            Exit::Failed => 70,
            Exit::Missing => 77,
            Exit::Command(status) => status,
        })
    }
}

/// Why a command could not be done, and how the tool ends for it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let exit = match (error.kind(), error.errno()) {
            (_, Some(Errno::ENOSYS)) => Exit::Missing,
            (ErrorKind::NoSuchClaim | ErrorKind::NoSuchStray, _) => Exit::Usage,
            // A root that is not there, or is none.
            (ErrorKind::System, Some(Errno::ENOENT | Errno::ENOTDIR))
                if error.operation() == "open the root" =>
            {
                Exit::Usage
            }
            _ => Exit::Failed,
        };
        Failure { exit, why: error.to_string() }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        // Whoever reads has enough.
        let closed = error.kind() == io::ErrorKind::BrokenPipe;
        let exit = if closed { Exit::Done } else { Exit::Failed };
        Failure { exit, why: error.to_string() }
    }
}

/// The table for `list`, `sweep`, `adopt` and the tool as a whole. Errors in the arguments are clap's,
/// which ends with 2.
pub(crate) const TABLE: &str = "\
Exit codes:
  0   it was done; what was kept, and why, stands in the output
  2   wrong usage, a root that is no directory, or a name that stands for nothing to be removed
  70  the tool failed: a system call went wrong, or a disk is full
  77  the platform lacks what is needed: Linux 5.6 or newer, with /proc mounted";

/// The table for `run`.
pub(crate) const RUN_TABLE: &str = "\
Exit codes:
  n      the command's own exit status
  128+n  the command was killed by signal n
  126    the command was found and cannot be executed
  127    the command was not found
  2      wrong usage, or a root that is no directory; nothing was run
  70     the tool failed: a system call went wrong, or a disk is full
  77     the platform lacks what is needed: Linux 5.6 or newer, with /proc mounted";
