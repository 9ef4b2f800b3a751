//! The one room of this crate with `unsafe` code: three system calls that have no
//! safe wrapper.
//!
//! Deliberately thin. What the calls are used for is in [`confine`](crate::confine).

#![expect(
    unsafe_code,
    reason = "fork, _exit and mount_setattr have no safe wrapper in nix or rustix"
)]

use std::fs;
use std::io;

use nix::libc;
use nix::unistd::{self, ForkResult};

/// Forks, after having seen that this process has one thread only.
///
/// # Errors
///
/// When there are other threads, or when the system refuses.
pub(crate) fn fork_single_threaded() -> io::Result<ForkResult> {
    let threads = fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        let message = format!("fork was asked for with {threads} threads running");
        return Err(io::Error::other(message));
    }
    // SAFETY: the danger of fork is a lock that another thread holds, which nobody
    // would ever release in the child. There is no other thread: only this one could
    // start one, and since the count above it has not.
    let forked = unsafe { unistd::fork() }?;
    Ok(forked)
}

/// Ends the process at once, without running destructors or exit handlers, from
/// whichever thread.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` takes any number, touches no memory of ours and does not return.
    unsafe { libc::_exit(code) }
}

/// Makes every mount from the root down read-only, in this mount namespace.
///
/// # Errors
///
/// Whatever `mount_setattr(2)` says; ENOSYS before Linux 5.12.
pub(crate) fn make_all_mounts_read_only() -> io::Result<()> {
    // The kernel's `struct mount_attr`.
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    const RECURSIVE: libc::c_int = 0x8000;
    const READ_ONLY: u64 = 1;

    let attributes = MountAttr { set: READ_ONLY, clear: 0, propagation: 0, user_namespace: 0 };
    // SAFETY: the path is a NUL-terminated constant; `attributes` has the layout that
    // the kernel documents, lives until the call returns, and its true size is given;
    // the kernel only reads it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            c"/".as_ptr(),
            RECURSIVE,
            &raw const attributes,
            size_of::<MountAttr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
