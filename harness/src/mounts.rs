//! What is mounted below a directory, whatever became of the paths that it was mounted at.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::mount::{UnmountFlags, unmount};

/// Unmounts all that is mounted below a directory: again and again the last one that its path leads to,
/// with all that is mounted in it, since a mount can lie below another one.
pub(crate) fn unmount_below(dir: &Path) -> io::Result<()> {
    let below = [dir.as_os_str().as_bytes(), b"/"].concat();
    loop {
        let mounts = std::fs::read("/proc/self/mountinfo")?;
        // Nothing is mounted at a name with anything in it that would be escaped.
        let points = mounts
            .split(|byte| *byte == b'\n')
            .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
            .filter(|point| point.starts_with(&below));
        let mut last = Ok(());
        let done = points.rev().any(|point| {
            last = unmount(point, UnmountFlags::DETACH);
            last.is_ok()
        });
        if !done {
            return Ok(last?);
        }
    }
}
