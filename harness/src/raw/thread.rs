//! The end of one thread, the first of its process included.
//!
//! Invariant: nothing of the thread's stack is used after it; no destructor of it runs, so whoever
//! ends a thread in this way has given away what others need of it.

use nix::libc;

/// Ends the calling thread. When it is the first of its process and others run, the process goes on
/// without it, and looks like a zombie.
pub(crate) fn end_this_thread() -> ! {
    // SAFETY: the call ends this thread and touches no memory. What is on its stack stays mapped,
    // since the first thread's stack belongs to the process and is never unmapped.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("the kernel does not return to a thread that has ended")
}
