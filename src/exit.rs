//! Exit codes: one table for every command of the lab.

use std::process::ExitCode;

/// How a command ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Exit {
    /// What was asked holds.
    Holds = 0,
    /// A finding: something was harmed or leaked.
    Finding = 1,
    /// Wrong usage, or a file that cannot be understood.
    Usage = 2,
    /// Interrupted, or a bound was hit, before anything could be decided.
    Undecided = 3,
    /// Nothing matched what was asked for.
    Nothing = 4,
    /// The undisturbed run already fails, so nothing was tested.
    Baseline = 5,
    /// A replay that is not the run that was saved.
    Diverged = 6,
    /// A bug in the lab.
    Internal = 70,
    /// The platform lacks what is needed.
    Missing = 77,
}

impl Exit {
    /// How two commands end together: as the one that is worse off. A finding is a finding,
    /// whatever else broke off.
    pub(crate) fn and(self, other: Exit) -> Exit {
        let rank = |exit| match exit {
            Exit::Holds => 0,
            Exit::Nothing => 1,
            Exit::Undecided => 2,
            Exit::Missing => 3,
            Exit::Usage => 4,
            Exit::Baseline => 5,
            Exit::Diverged => 6,
            Exit::Internal => 7,
            Exit::Finding => 8,
        };
        if rank(other) > rank(self) { other } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// The table, for `--help`. Errors in the arguments are clap's, which ends with 2.
pub(crate) const TABLE: &str = "\
Exit codes:
  0   what was asked holds
  1   a finding: something was harmed or leaked
  2   wrong usage, or a file that cannot be understood
  3   not decided: interrupted, or a bound was hit
  4   nothing matched what was asked for
  5   the undisturbed run already fails, so nothing was tested
  6   a replay is not the run that was saved
  70  a bug in the lab
  77  the platform lacks what is needed (no namespaces, say)";
