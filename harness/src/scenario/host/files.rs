//! What is done to files and directories by people who have to do with no claim.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Gid, Mode, OFlags, Uid, fchown, mkdirat, open, openat};

use super::disks::run;
use super::stage::Stage;
use super::{Failure, Outcome, plant};
use crate::guard::ChildGuard;
use crate::scenario::needs::find_program;
use crate::scenario::story::{Base, Place, Planted};
use crate::wait::Deadline;

/// Longer than anything takes on a loaded machine.
const PATIENCE_SECS: u64 = 20;

impl Stage<'_> {
    /// Puts something somewhere. What is put into a claim is its user's.
    pub(super) fn plant(
        &mut self,
        what: Planted,
        at: &Place,
        depth: u64,
        name_bytes: Option<u64>,
    ) -> Outcome<()> {
        let path = lengthened(self.resolve_to_change(at)?, name_bytes);
        plant::set_aside(&path, &self.attic)?;
        let outside = self.precious_path(super::stage::OUTSIDE)?;
        let user = match &at.base {
            Base::Claim(server) => self.path_of(self.claim(server)?),
            Base::Root | Base::Shared | Base::Precious(_) => None,
        };
        let user = user.map(fs::symlink_metadata).transpose()?.map(|dir| (dir.uid(), dir.gid()));
        if depth > 1 {
            return Ok(chain(&path, depth, user)?);
        }
        self.held.extend(plant::plant(what, &path, &outside, &self.control)?);
        self.know(&path)?;
        match user {
            Some((uid, gid)) => Ok(lchown(&path, Some(uid), Some(gid))?),
            None => Ok(()),
        }
    }

    /// Locks a directory, as a tool does that marks what is its own.
    pub(super) fn lock(&mut self, at: &Place) -> Outcome<()> {
        let path = self.resolve(at)?;
        let dir = File::open(&path)?;
        dir.try_lock().map_err(io::Error::from)?;
        self.locks.push((path, dir));
        Ok(())
    }

    /// Unlocks it.
    pub(super) fn unlock(&mut self, at: &Place) -> Outcome<()> {
        let path = self.resolve(at)?;
        let before = self.locks.len();
        // Nobody has a copy of the descriptor, so that its end is that of the lock.
        self.locks.retain(|(other, _)| *other != path);
        match self.locks.len() < before {
            true => Ok(()),
            false => Err(Failure::new("lock", format!("nobody locked {}", path.display()))),
        }
    }

    /// Mounts something in the view of one process alone.
    pub(super) fn mount_elsewhere(&mut self, what: &Path, at: &Path) -> Outcome<()> {
        const MOUNTED: &str = "mounted";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c"]);
        // It stays until its input ends.
        command.arg(format!("mount --bind \"$0\" \"$1\" && echo {MOUNTED} && read -r _"));
        command.arg(what).arg(at);
        let failed = |why: String| Failure::new("system", format!("cannot mount elsewhere: {why}"));
        let spawned = ChildGuard::spawn_with_stdin(command);
        let mut other = spawned.map_err(|error| failed(error.to_string()))?;
        let deadline = Deadline::secs(PATIENCE_SECS);
        let said = other.lines().next_line(deadline, "something to be mounted elsewhere");
        match said.as_deref() {
            Ok(MOUNTED) => {
                self.elsewhere.push(other);
                Ok(())
            }
            Ok(said) => Err(failed(format!("it said `{said}`"))),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

/// Gives a file a flag that not even root passes over.
pub(super) fn chattr(at: &Path, immutable: bool) -> Outcome<()> {
    let mut command = Command::new(find_program("chattr").unwrap_or_default());
    command.arg(if immutable { "+i" } else { "-i" }).arg(at);
    run(command)
}

/// Gives a file or directory to a user.
pub(super) fn chown(at: &Path, to: u32) -> io::Result<()> {
    lchown(at, Some(to), Some(to))
}

/// The path with its last name filled up by its last byte.
fn lengthened(path: PathBuf, bytes: Option<u64>) -> PathBuf {
    let Some(bytes) = bytes else { return path };
    let mut name = path.file_name().unwrap_or_default().to_owned().into_vec();
    let last = name.last().copied().unwrap_or(b'x');
    // OK because no name is longer than a few hundred bytes.
    name.resize(name.len().max(bytes as usize), last);
    path.with_file_name(OsString::from_vec(name))
}

/// Makes a directory, one in it, and so on. No path leads to the last ones.
fn chain(at: &Path, depth: u64, user: Option<(u32, u32)>) -> io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let (parent, name) = (at.parent().unwrap_or(at), at.file_name().unwrap_or_default());
    let mut dir: OwnedFd = open(parent, flags, Mode::empty())?;
    for _ in 0..depth {
        mkdirat(&dir, name, Mode::RWXU)?;
        dir = openat(&dir, name, flags, Mode::empty())?;
        if let Some((uid, gid)) = user {
            fchown(&dir, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_filled_up_and_never_cut() {
        let long = lengthened("/a/bc".into(), Some(5));
        assert_eq!(long, Path::new("/a/bcccc"));
        assert_eq!(lengthened("/a/bc".into(), Some(1)), Path::new("/a/bc"));
        assert_eq!(lengthened("/a/bc".into(), None), Path::new("/a/bc"));
    }
}
