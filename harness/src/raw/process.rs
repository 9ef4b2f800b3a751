//! A fork into new namespaces.
//!
//! Invariants: it is refused in a process with a second thread, whose locks the copy would hold for
//! ever; the child never returns into the caller's code and never unwinds out of here; the parent
//! gets a pidfd made with the child, so that there is no moment at which the pid could be another's.
//!
//! It deliberately sets nothing up: what the child does is the caller's business.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::libc;

/// The exit code of a child that panicked: an internal error.
pub(super) const PANICKED: u8 = 70;

/// Refuses in a process with a second thread.
pub(super) fn alone() -> io::Result<()> {
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        let text = format!("a process of {threads} threads cannot fork safely");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(())
}

/// Lets the signals that ask a process to end or to stop do what they do by default. A shell starts
/// what it runs in the background with some of them ignored, and a program hands that on.
///
/// # Errors
///
/// When the system refuses.
pub(crate) fn default_signals() -> io::Result<()> {
    const ASKED: [libc::c_int; 7] = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
    ];
    for signal in ASKED {
        // SAFETY: no handler is installed, so there is no function that could be called at a bad
        // moment, and the numbers are those of signals.
        if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Runs `child` in a forked process that is the first in new pid and mount namespaces, and in a
/// new user namespace when `user` says so. The child ends with the code that `child` returns,
/// without any of the exit handlers that it shares with its parent.
///
/// # Errors
///
/// `InvalidInput` when this process has more than one thread; otherwise what the kernel said, of
/// which EPERM, ENOSPC (the limit of namespaces, which may be 0), EINVAL and ENOSYS mean that such
/// namespaces cannot be had here.
pub(crate) fn fork_into_namespaces(user: bool, child: impl FnOnce() -> u8) -> io::Result<OwnedFd> {
    alone()?;

    let mut flags = libc::CLONE_PIDFD | libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    if user {
        flags |= libc::CLONE_NEWUSER;
    }
    let mut pidfd: RawFd = -1;
    // SAFETY: clone_args is a plain struct of integers, of which zero means "not used".
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    // OK because the flags are positive numbers below 2^31.
    args.flags = u64::from(flags.cast_unsigned());
    args.pidfd = (&raw mut pidfd).expose_provenance() as u64;
    args.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());

    // SAFETY: `args` is a valid clone_args of the size given, and `pidfd` is alive and writable, as
    // the kernel writes the descriptor there. Without CLONE_VM and with no stack of its own the
    // child runs on a copy of this memory, as after fork(2). A fork can break the promises of other
    // code only through locks that other threads hold at the time: there are none, since this was
    // the only thread above and nobody else could start one since.
    let pid =
        unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<libc::clone_args>()) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // Unwinding further would run the parent's code, and destructors, a second time.
            let code = catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED);
            // SAFETY: _exit takes any code and has no precondition.
            unsafe { libc::_exit(i32::from(code)) }
        }
        // SAFETY: the clone has succeeded, so the kernel stored a new descriptor that is ours alone.
        _ => Ok(unsafe { OwnedFd::from_raw_fd(pidfd) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_several_threads_is_refused() {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let second = std::thread::spawn(move || stopped.recv().is_err());
        let refused = fork_into_namespaces(false, || unreachable!("nothing was forked"));
        drop(stop);
        assert!(second.join().expect("it only waits"));
        let error = refused.expect_err("it was forked");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
    }
}
