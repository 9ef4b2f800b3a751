//! A call that may wait for ever, made for as long as it takes to see that it waits.
//!
//! A signal comes in now and then and does nothing, but that a call which waits in the kernel is ended by
//! it (`EINTR`). One that does not wait is never ended so, however late it is made.
//!
//! Invariant: what `SIGALRM` did before it does again afterwards. Only for a process that sets no timer of
//! its own; another thread might get the signal, so it is refused in a process with a second one.

use std::{io, mem, ptr};

use nix::libc;

use super::process;

/// Between two signals.
const EVERY_MICROS: libc::suseconds_t = 2_000;

extern "C" fn nothing(_: libc::c_int) {}

/// Makes a call, which answers that it was interrupted if it waits.
///
/// # Errors
///
/// `InvalidInput` when this process has more than one thread; otherwise what the system refused with, or
/// the call.
pub(crate) fn unless_it_waits<T>(call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    process::alone()?;
    // SAFETY: sigaction is a plain struct, of which zero means no flags (so that the call is not begun
    // again) and an empty mask.
    let mut ours: libc::sigaction = unsafe { mem::zeroed() };
    ours.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    let before = swap_action(&ours)?;
    ring(EVERY_MICROS)?;
    let answer = call();
    ring(0)?;
    swap_action(&before)?;
    answer
}

fn swap_action(action: &libc::sigaction) -> io::Result<libc::sigaction> {
    // SAFETY: as above; it is written to before it is read.
    let mut before: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: both are alive, and the handler does nothing, which it may at any moment.
    match unsafe { libc::sigaction(libc::SIGALRM, action, &raw mut before) } {
        0 => Ok(before),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lets the signal come each time that so much has passed; with 0, never.
fn ring(micros: libc::suseconds_t) -> io::Result<()> {
    let every = libc::timeval { tv_sec: 0, tv_usec: micros };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: the timer is alive, and nobody wants to know the one before.
    match unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
