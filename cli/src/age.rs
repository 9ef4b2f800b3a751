//! How old a claim is, for people to read.
//!
//! Nothing is decided by it: a claim that is idle for a year is as much in use as one that is not.

use std::fmt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The time since a directory was made; `None` where nobody knows.
#[expect(clippy::disallowed_methods, reason = "an age is shown, and nothing is decided by it")]
pub(crate) fn age(claim: &Path) -> Option<Duration> {
    let stat = claim.symlink_metadata().ok()?;
    let made = stat.created().or_else(|_| stat.modified()).ok()?;
    SystemTime::now().duration_since(made).ok()
}

/// A duration by its largest unit, such as `3d`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coarse(pub(crate) Duration);

impl fmt::Display for Coarse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let units = [(86_400, "d"), (3_600, "h"), (60, "m")];
        let unit = units.into_iter().find(|(length, _)| seconds >= *length);
        let (length, word) = unit.unwrap_or((1, "s"));
        write!(f, "{}{word}", seconds / length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_by_its_largest_unit() {
        for (seconds, want) in
            [(0, "0s"), (59, "59s"), (60, "1m"), (3_599, "59m"), (86_399, "23h"), (900_000, "10d")]
        {
            assert_eq!(Coarse(Duration::from_secs(seconds)).to_string(), want);
        }
    }
}
