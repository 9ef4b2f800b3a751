//! What a service manager has passed to this process: which numbers of descriptors
//! are not ours to use.
//!
//! The variables are read once, at the first descriptor that is handed out: they are
//! of the program's start, and a forked child, which is another process, loses
//! nothing by keeping away from the same numbers.

use std::env;
use std::ffi::OsStr;
use std::sync::LazyLock;

/// The variables by which sockets are passed, all of them: the process that they are
/// for, its pidfd's inode, the number of descriptors, their names.
pub(crate) const VARIABLES: [&str; 4] =
    ["LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// The number of the first descriptor that is passed (`SD_LISTEN_FDS_START`).
pub(crate) const FIRST: i32 = 3;

/// More descriptors than any service manager passes.
pub(crate) const COUNT_MAX: i32 = 128;

/// The lowest number above those that were passed to this process; 0 where none was.
pub(super) fn lowest() -> i32 {
    static LOWEST: LazyLock<i32> = LazyLock::new(|| {
        let value = |name: &str| env::var_os(name);
        let ours = number(value("LISTEN_PID").as_deref()) == Some(std::process::id().into());
        let count = number(value("LISTEN_FDS").as_deref()).unwrap_or(0);
        let count = i32::try_from(count).unwrap_or(COUNT_MAX).clamp(0, COUNT_MAX);
        if ours { FIRST + count } else { 0 }
    });
    *LOWEST
}

/// A variable that is a number and nothing else.
pub(crate) fn number(value: Option<&OsStr>) -> Option<i64> {
    let text = value?.to_str()?;
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_digits_and_nothing_else() {
        for (text, value) in [
            ("0", Some(0)),
            ("17", Some(17)),
            ("4294967296", Some(4_294_967_296)),
            ("", None),
            ("-1", None),
            ("+1", None),
            (" 1", None),
            ("1\n", None),
            ("0x1", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(number(Some(OsStr::new(text))), value, "{text:?}");
        }
        assert_eq!(number(None), None);
    }
}
