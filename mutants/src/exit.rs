//! The exit codes, and the error that carries one.
//!
//! Errors are `anyhow` throughout. Where an error means more than "internal
//! error", a [`Stop`] is put into its chain, and [`report`] finds it there.

use std::error::Error;
use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

/// What the exit code says. The numbers are the same in every command of the
/// repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Every check that was asked for is proved.
    Proved = 0,
    /// A check is not proved, or its removal does not compile.
    NotProved = 1,
    /// Wrong usage.
    Usage = 2,
    /// Not decided: a time-out, or an interruption.
    Undecided = 3,
    /// No check matched, or no test.
    NothingMatched = 4,
    /// The unchanged workspace does not build, or a test of it fails.
    BaselineFails = 5,
    /// The comments and the catalogue do not fit together.
    CatalogueWrong = 7,
    /// A fault of this program, or of the system under it.
    Internal = 70,
    /// The platform cannot confine tests, so that none was run.
    NotConfined = 77,
}

impl Exit {
    /// The exit of two parts of a run: a finding weighs more than something undecided.
    pub(crate) fn and(self, other: Exit) -> Exit {
        let either = |exit| self == exit || other == exit;
        if either(Exit::NotProved) {
            Exit::NotProved
        } else if either(Exit::Undecided) {
            Exit::Undecided
        } else {
            self
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// An end of the command for a reason that has an exit code of its own.
#[derive(Debug)]
pub(crate) struct Stop {
    exit: Exit,
    message: String,
}

impl Stop {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Stop {
        let message = message.into();
        Stop { exit, message }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Stop {}

/// Prints the error, if it is one, and gives the exit code.
pub(crate) fn report(result: anyhow::Result<Exit>) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            // A closed standard error leaves nobody to tell; the code still says it.
            let _ = writeln!(anstream::stderr(), "error: {error:#}");
            exit_of(&error).into()
        }
    }
}

pub(crate) fn exit_of(error: &anyhow::Error) -> Exit {
    let stop = error.chain().find_map(|cause| cause.downcast_ref::<Stop>());
    stop.map_or(Exit::Internal, |stop| stop.exit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn a_stop_keeps_its_code_under_added_context() {
        let bare: anyhow::Result<()> = Err(Stop::new(Exit::BaselineFails, "x").into());
        let error = bare.context("while looking").unwrap_err();
        assert_eq!(exit_of(&error), Exit::BaselineFails);
    }

    #[test]
    fn any_other_error_is_internal() {
        assert_eq!(exit_of(&anyhow::anyhow!("disk on fire")), Exit::Internal);
    }
}
