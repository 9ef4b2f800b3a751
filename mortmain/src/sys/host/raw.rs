//! The room for `unsafe` of the real kernel: descriptors by number, and code
//! that runs between fork and exec.
//!
//! Nothing else of the host needs it, and nothing else may have it.

#![expect(
    unsafe_code,
    reason = "descriptors cross the seam as numbers, and a hook runs after a fork"
)]

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;

use super::spawn::PlanSlot;
use crate::sys::{Answer, ChildKernel, Errno, Handle, child_part};

/// The descriptor that a number stands for, for one system call.
///
/// # Errors
/// `EBADF` for a negative number, which no descriptor has; the kernel gives
/// the same answer for a positive one that is not open. (A few negative ones
/// mean something to it: `AT_FDCWD`, -100, is the working directory.)
pub(super) fn borrow<'fd>(handle: Handle) -> Answer<BorrowedFd<'fd>> {
    if handle.0 < 0 {
        return Err(Errno::EBADF);
    }
    // SAFETY: the number is not -1, so the value is a valid one of its type. It is handed to
    // system calls only, never to code that would map its memory or take it over, and they answer
    // EBADF for a number that is not open. Whether it is open, and stays so for the call, is up to
    // the owner of the handle, an `Fd` of the seam that cannot be dropped while it is borrowed for
    // the call; a caller that makes numbers up reaches a wrong file, but no memory.
    Ok(unsafe { BorrowedFd::borrow_raw(handle.0) })
}

/// Takes over a descriptor that another process has opened for this one and passed to it.
///
/// Only for one that is open, and that nobody else in this process has taken: it is
/// closed with the value.
///
/// # Errors
/// `EBADF` for a negative number.
pub(super) fn take_over(handle: Handle) -> Answer<OwnedFd> {
    if handle.0 < 0 {
        return Err(Errno::EBADF);
    }
    // SAFETY: the number is not -1. That it is open, and has no other owner, is up to the caller,
    // who has asked the kernel what it is, and takes what was passed once in the life of the
    // process.
    Ok(unsafe { OwnedFd::from_raw_fd(handle.0) })
}

/// Makes a command line do the child's part of a spawn as the first of its
/// hooks, with the plan that stands in the slot at the time.
///
/// Without a plan it refuses with `EINVAL`: a command that is started past its
/// claim would run unregistered.
pub(super) fn install_child_part<C>(command: &mut Command, slot: Arc<PlanSlot>, kernel: C)
where
    C: ChildKernel + Send + Sync + 'static,
{
    let hook = move || {
        slot.with_plan(|plan| match plan {
            Some(plan) => child_part(&kernel, plan),
            // CHECK(p2-no-plan-no-run): a command that is started past its claim would run
            // unregistered.
            None => Err(Errno::EINVAL),
        })
        .map_err(|Errno(number)| io::Error::from_raw_os_error(number))
    };
    // SAFETY: the hook runs in the child of a process that may have other threads, so it may do
    // what a signal handler may. It does: `with_plan` tries a lock, which is one atomic exchange,
    // and never waits for it; `child_part` works on the stack and calls nothing but the methods of
    // a `ChildKernel`, which by their contract are async-signal-safe; an `io::Error` of a raw
    // number holds it inline. Nothing is allocated or freed, and no environment, output or
    // thread-local with a destructor is touched. Neither stdin, stdout or stderr is used.
    unsafe { command.pre_exec(hook) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::IntoRawFd;

    #[test]
    fn every_number_but_a_negative_one_may_be_a_descriptors() {
        assert!(borrow(Handle(0)).is_ok());
        assert_eq!(borrow(Handle(-1)).err(), Some(Errno::EBADF));
        // Given back at once: it is not closed.
        assert_eq!(take_over(Handle(0)).map(IntoRawFd::into_raw_fd), Ok(0));
        assert_eq!(take_over(Handle(-1)).err(), Some(Errno::EBADF));
    }
}
