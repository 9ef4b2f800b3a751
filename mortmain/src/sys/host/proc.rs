//! What the kernel says of processes through `/proc` and pidfds, read without
//! allocating, so that a child between fork and exec can ask as well.
//!
//! Everything here goes to the kernel directly (`rustix`), with no C library
//! in between that would have to be async-signal-safe.

use core::ffi::CStr;
use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno as Raw, retry_on_intr};
use rustix::process::PidfdFlags;

use super::IntoAnswer as _;
use super::stat_line::{STAT_LINE_BYTES, StatLine};
use crate::sys::{Answer, Errno};

/// `PID_FS_MAGIC` of linux/magic.h, the file system of pidfds since Linux 6.9.
/// Before, all of them shared one anonymous inode, whose number says nothing.
const PIDFS_MAGIC: u64 = 0x5049_4446;

/// Reads a small file, as much of it as the buffer takes.
pub(super) fn read<'b>(path: &CStr, buffer: &'b mut [u8]) -> Answer<&'b [u8]> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty())).answer()?;
    let mut len = 0;
    while len < buffer.len() {
        match retry_on_intr(|| rustix::io::read(&file, &mut buffer[len..])).answer()? {
            0 => break,
            more => len += more,
        }
    }
    Ok(&buffer[..len])
}

/// Reads a `stat` file. A line that is not understood is `EIO`.
pub(super) fn stat_line<'b>(
    path: &CStr,
    buffer: &'b mut [u8; STAT_LINE_BYTES],
) -> Answer<StatLine<'b>> {
    StatLine::parse(read(path, buffer)?).ok_or(Errno::EIO)
}

/// The inode number of a namespace of the calling thread's.
///
/// By `thread-self`, since `self` shows no namespaces any more once the main
/// thread has ended.
pub(super) fn namespace(path: &CStr) -> Answer<u32> {
    let stat = retry_on_intr(|| rustix::fs::stat(path)).answer()?;
    u32::try_from(stat.st_ino).or(Err(Errno::EOVERFLOW))
}

/// The calling thread's pid namespace.
pub(super) fn pid_namespace() -> Answer<u32> {
    namespace(c"/proc/thread-self/ns/pid")
}

/// The calling thread's time namespace; 0 on a kernel without them.
pub(super) fn time_namespace() -> Answer<u32> {
    match namespace(c"/proc/thread-self/ns/time") {
        Err(Errno::ENOENT) => Ok(0),
        answer => answer,
    }
}

/// The inode number of a process's pidfd; 0 where there is none.
pub(super) fn pidfs(pid: rustix::process::Pid) -> Answer<u64> {
    let pidfd = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        // No such call, or one that a sandbox does not let through.
        Err(Raw::NOSYS | Raw::PERM) => return Ok(0),
        Err(other) => return Err(other).answer(),
    };
    if fs_magic(&pidfd)? != PIDFS_MAGIC {
        return Ok(0);
    }
    Ok(rustix::fs::fstat(&pidfd).answer()?.st_ino)
}

/// The magic number of the file system that a descriptor lies on.
pub(super) fn fs_magic(fd: impl AsFd) -> Answer<u64> {
    // A magic number has 32 bits; the field is signed, and as wide as the machine.
    Ok(rustix::fs::fstatfs(fd).answer()?.f_type as u64 & 0xFFFF_FFFF)
}
