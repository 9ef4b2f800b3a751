//! The real kernel as a child sees it between fork and exec.
//!
//! Async-signal-safe: memory on the stack, and system calls that are made
//! directly or through a function that POSIX lists as such. The owner asks who
//! it is by the same code.

use core::ffi::CStr;

use nix::errno::Errno as Raw;
use nix::fcntl::FcntlArg;
use rustix::process::Resource;

use super::stat_line::STAT_LINE_BYTES;
use super::{IntoAnswer as _, proc, raw};
use crate::sys::{ChildIdentity, ChildKernel, Errno, Handle, IdName, Pid, ProcessId};

/// Longest target text of a link at the seam, in bytes.
pub(super) const LINK_TEXT_BYTES_MAX: usize = 255;

/// Where the lock of a command's entry goes in the command, or above.
///
/// High, so that neither the numbers that a shell gives out by itself (10 and
/// up) nor those that a script writes (`exec 9>file`) are in the way. Not as
/// high as the limit allows: the table of a process reaches to its highest
/// descriptor and is copied by every fork. Measured, a fork and its wait take
/// as long with a descriptor at 255 as with one at 10, and 55 µs (40 %) longer
/// with one at 19,999; at a million the table has eight megabytes.
const KEPT_AT: i32 = 255;

/// The lowest number above stdin, stdout and stderr.
pub(super) const ABOVE_STDIO: i32 = 3;

/// The kernel that this process runs on, for a child between fork and exec.
#[derive(Clone, Copy, Default, Debug)]
pub struct HostChild;

impl ChildKernel for HostChild {
    fn new_group(&self) -> Result<(), Errno> {
        rustix::process::setpgid(None, None).answer()
    }

    fn identity(&self) -> Result<ChildIdentity, Errno> {
        let pid = rustix::process::getpid();
        let mut line = [0u8; STAT_LINE_BYTES];
        let start_ticks = proc::stat_line(c"/proc/self/stat", &mut line)?.start_ticks;
        Ok(ChildIdentity {
            process: ProcessId {
                pid: Pid(pid.as_raw_nonzero().get()),
                start_ticks,
                pidfs: proc::pidfs(pid)?,
            },
            pid_ns: proc::pid_namespace()?,
            time_ns: proc::time_namespace()?,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        })
    }

    fn symlink(&self, dir: Handle, name: &IdName, text: &[u8]) -> Result<(), Errno> {
        // One more than the longest text, for the NUL.
        let mut target = [0u8; LINK_TEXT_BYTES_MAX + 1];
        if text.len() > LINK_TEXT_BYTES_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        target[..text.len()].copy_from_slice(text);
        let target = with_nul(&target[..=text.len()])?;
        let name = with_nul(name.with_nul())?;
        rustix::fs::symlinkat(target, raw::borrow(dir)?, name).answer()
    }

    fn keep_over_exec(&self, fd: Handle) -> Result<(), Errno> {
        let fd = raw::borrow(fd)?;
        let limit = rustix::process::getrlimit(Resource::Nofile).current;
        let below_limit = limit
            .map_or(KEPT_AT, |limit| i32::try_from(limit.saturating_sub(1)).unwrap_or(KEPT_AT));
        let mut at = KEPT_AT.min(below_limit).max(ABOVE_STDIO);
        loop {
            match nix::fcntl::fcntl(fd, FcntlArg::F_DUPFD(at)) {
                // Left open for the program.
                Ok(_kept) => return Ok(()),
                // The numbers from here up to the limit are all in use, or the limit has fallen.
                Err(Raw::EMFILE | Raw::EINVAL) if at > ABOVE_STDIO => at -= 1,
                Err(other) => return Err(other).answer(),
            }
        }
    }
}

/// `EINVAL` when there is a NUL inside.
fn with_nul(bytes: &[u8]) -> Result<&CStr, Errno> {
    CStr::from_bytes_with_nul(bytes).or(Err(Errno::EINVAL))
}
