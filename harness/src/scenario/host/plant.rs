//! Puts things where they do not belong, and takes things away.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, makedev, mknodat, utimensat};

use crate::scenario::story::Planted;

/// Puts something where nothing is. Answers what has to be kept open for it. `precious` is the
/// directory with a `file` that links lead to; `short` is one whose path is short.
///
/// # Errors
///
/// When the system refuses to make it.
pub fn plant(what: Planted, at: &Path, precious: &Path, short: &Path) -> io::Result<Option<File>> {
    let fifo = || mknodat(CWD, at, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
    match what {
        Planted::Fifo => fifo()?,
        Planted::FifoWithWriter => {
            fifo()?;
            // For both, so that the open waits for nobody.
            return File::options().read(true).write(true).open(at).map(Some);
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
        Planted::LinkToFile => symlink(precious.join("file"), at)?,
        Planted::Garbage => fs::write(at, [0; 4096])?,
        Planted::FullDirectory => {
            fs::create_dir_all(at.join("deep"))?;
            fs::write(at.join("deep/file"), "somebody wrote this\n")?;
        }
        Planted::Device => mknodat(CWD, at, FileType::CharacterDevice, Mode::RWXU, makedev(1, 5))?,
    }
    Ok(None)
}

/// Moves whatever is there out of sight, where it goes on to be what it is. What is on another file
/// system or is mounted on is taken away instead.
pub(super) fn set_aside(at: &Path, attic: &Path) -> io::Result<()> {
    let number = fs::read_dir(attic)?.count();
    let aside: PathBuf = attic.join(number.to_string());
    match fs::rename(at, aside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(_) => remove(at),
        Ok(()) => Ok(()),
    }
}

/// Copies a tree as a backup is made: links as links, and with its modes.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(from)?;
    if metadata.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if !metadata.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        copy(&from.join(&name), &to.join(&name))?;
    }
    fs::set_permissions(to, metadata.permissions())
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
