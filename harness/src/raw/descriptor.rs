//! A descriptor that a program was started with, by its number.
//!
//! Invariant: nothing is taken from whoever has the number: what is handed out is a copy.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rustix::io::fcntl_dupfd_cloexec;

/// A copy of the descriptor, close-on-exec, at `lowest` or above.
///
/// # Errors
///
/// When the number is not open, or no number is free.
pub(crate) fn copy_of(number: RawFd, lowest: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::Error::from(rustix::io::Errno::BADF));
    }
    // SAFETY: the number is not -1, and the borrow ends with the one call below, which reads the
    // number, answers EBADF where nothing is open, and closes nothing.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    Ok(fcntl_dupfd_cloexec(borrowed, lowest)?)
}
