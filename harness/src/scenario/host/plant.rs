//! Puts things where they do not belong, and takes things away.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, mknodat, utimensat};

use crate::scenario::story::Planted;

/// Puts something in the place of whatever is there.
pub(super) fn plant(what: Planted, at: &Path, precious: &Path, short: &Path) -> io::Result<()> {
    remove(at)?;
    match what {
        Planted::Fifo => {
            mknodat(CWD, at, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        }
        Planted::Directory => fs::create_dir(at)?,
        Planted::File => fs::write(at, "somebody wrote this\n")?,
        Planted::DanglingLink => symlink("nowhere", at)?,
        Planted::LinkToPrecious => symlink(precious, at)?,
        Planted::LinkToZero => symlink("/dev/zero", at)?,
        Planted::Socket => {
            // Its name must be short, and stays when the listener goes.
            let name = short.join("s");
            drop(UnixListener::bind(&name)?);
            fs::rename(name, at)?;
        }
        Planted::SparseGiant => File::create(at)?.set_len(10 << 30)?,
    }
    Ok(())
}

/// Removes whatever is there, with all that is in it. A mount is in the way.
pub(super) fn remove(at: &Path) -> io::Result<()> {
    match fs::symlink_metadata(at) {
        Ok(metadata) if metadata.is_dir() => {
            empty(at)?;
            fs::remove_dir(at)
        }
        Ok(_) => fs::remove_file(at),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes all that is in a directory.
pub(super) fn empty(at: &Path) -> io::Result<()> {
    fs::read_dir(at)?.try_for_each(|entry| remove(&entry?.path()))
}

/// Gives everything at a path and below it one time, in seconds since 1970.
pub(super) fn set_times(at: &Path, to: i64) -> io::Result<()> {
    if fs::symlink_metadata(at)?.is_dir() {
        for entry in fs::read_dir(at)? {
            set_times(&entry?.path(), to)?;
        }
    }
    let time = Timespec { tv_sec: to, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    Ok(utimensat(CWD, at, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}
