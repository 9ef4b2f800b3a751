//! Which descriptors this process has, and what is done to them by code that closes what it did not
//! open.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;

/// Files that are opened until one of them has a number that was closed.
const OPENED_MAX: usize = 100;

/// The descriptors of this process, and what each is open on.
///
/// # Errors
///
/// When `/proc` cannot be listed.
pub fn all() -> io::Result<Vec<(RawFd, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc/thread-self/fd")? {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let (Some(number), Ok(target)) = (number, fs::read_link(entry.path())) {
            found.push((number, target));
        }
    }
    Ok(found)
}

/// The descriptors that are open on a path.
///
/// # Errors
///
/// As [`all`].
pub fn on(path: &Path) -> io::Result<Vec<RawFd>> {
    let on_it = all()?.into_iter().filter(|(_, target)| target == path);
    Ok(on_it.map(|(number, _)| number).collect())
}

/// Closes a descriptor as careless code does, and opens a stranger's file until that has its number:
/// the last of the answer.
///
/// # Errors
///
/// When the number is not open, the file cannot be opened, or the number is not given out again.
pub fn replace(number: RawFd, with: &Path) -> io::Result<Vec<File>> {
    nix::unistd::close(number)?;
    let mut opened: Vec<File> = Vec::new();
    while opened.last().map(AsRawFd::as_raw_fd) != Some(number) {
        if opened.len() == OPENED_MAX {
            return Err(Errno::EMFILE.into());
        }
        opened.push(File::open(with)?);
    }
    Ok(opened)
}
