//! What Windows answers, in the numbers that the rules know (l2, h8).
//!
//! There is no kernel of the seam for Windows yet. This is the one answer of its that
//! is easily taken for a proof and is none: a process that cannot be opened. It is a
//! pure function, so that it is held to its table on every machine.

use super::{Answer, Errno};

/// `ERROR_ACCESS_DENIED` of winerror.h: it is there, and somebody else's.
const ACCESS_DENIED: u32 = 5;

/// `ERROR_INVALID_PARAMETER` of winerror.h: no process has this number. (For the
/// number 0, which no process of a user has, it is the answer as well.)
const INVALID_PARAMETER: u32 = 87;

/// What the outcome of `OpenProcess` says of a process number, as
/// [`super::Call::ProcessExists`] answers it; an error is what `GetLastError` gives.
///
/// A process that was opened need not run any more: Windows keeps an ended one for as
/// long as anybody has a handle on it. That it is there is then no proof of life, but
/// none of death either.
///
/// # Errors
/// `ESRCH` when there is no such process; `EPERM` when it may not be opened; `EIO` for
/// every other number, which proves nothing.
pub fn process_exists(opened: Result<(), u32>) -> Answer<()> {
    match opened {
        Ok(()) => Ok(()),
        Err(INVALID_PARAMETER) => Err(Errno::ESRCH),
        Err(ACCESS_DENIED) => Err(Errno::EPERM),
        // CHECK(h8-open-process): a machine that is short of memory or handles would declare every
        // owner dead.
        Err(_) => Err(Errno::EIO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_of_all_says_that_there_is_no_such_process() {
        assert_eq!(process_exists(Ok(())), Ok(()));
        let dead: alloc::vec::Vec<u32> =
            (0..=20_000).filter(|code| process_exists(Err(*code)) == Err(Errno::ESRCH)).collect();
        assert_eq!(dead, [87]);
        assert_eq!(process_exists(Err(u32::MAX)), Err(Errno::EIO));
    }

    #[test]
    fn a_process_that_may_not_be_opened_is_there() {
        assert_eq!(process_exists(Err(5)), Err(Errno::EPERM));
        // Out of memory, an invalid handle, no system resources, a remote procedure call failed.
        for code in [8, 14, 6, 1450, 1726] {
            assert_eq!(process_exists(Err(code)), Err(Errno::EIO), "{code}");
        }
    }
}
