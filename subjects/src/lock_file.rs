//! By a lock file in the directory: what nobody holds locked any more is removed.
//!
//! So do editors, package managers and browsers with their profile directories. The directory is
//! made, then the lock file in it, then the lock is taken; commands inherit it. A directory whose
//! creator was killed before there was a lock file is empty, and `rmdir` takes an empty one only, so
//! the worst that a creator can meet is that it has to begin again.

use mortmain::sys::{Answer, ChildKernel, ChildPlan, Errno, Fd, Name, PathBytes, Pid, Probed};

use crate::design::{Design, Error};
use crate::directory::{Directory, directories, empty, fresh_name, gone, leased_child};
use crate::system::System;

/// Name of the file that is locked.
const LOCK: &str = "lock";
/// Attempts at a directory before a creator gives up.
const ATTEMPTS: u32 = 16;

/// The design.
#[derive(Clone, Copy, Debug)]
pub struct LockFile;

/// A directory with its lock.
#[derive(Debug)]
pub struct Locked<K: System> {
    dir: Directory<K>,
    lock: Fd<K>,
}

impl Design for LockFile {
    type Dir<K: System> = Locked<K>;
    type Started = Pid;

    fn create<K: System>(kernel: &K, root: &PathBytes) -> Result<Locked<K>, Error> {
        for _ in 0..ATTEMPTS {
            let dir = Directory::create(kernel, root, fresh_name)?;
            match lock_new(&dir) {
                Ok(lock) => return Ok(Locked { dir, lock }),
                // A sweep was faster: it removes what there is.
                Err(Errno::ENOENT | Errno::EAGAIN) => {}
                Err(errno) => return Err(Error::of("lock", &dir.path())(errno)),
            }
        }
        Err(Error::Contended { path: root.clone(), attempts: ATTEMPTS })
    }

    fn path<K: System>(dir: &Locked<K>) -> PathBytes {
        dir.dir.path()
    }

    fn spawn<K: System>(dir: &mut Locked<K>, program: &mut K::Program) -> Result<Pid, Error> {
        dir.dir.spawn(program, Some(&dir.lock), b"")
    }

    fn child<C: ChildKernel>(child: &C, plan: &ChildPlan) -> Answer<()> {
        leased_child(child, plan)
    }

    fn wait<K: System>(dir: &mut Locked<K>, command: &Pid) -> Result<(), Error> {
        dir.dir.wait(*command)
    }

    fn end<K: System>(dir: &mut Locked<K>, command: &Pid) -> Result<(), Error> {
        dir.dir.end(*command)
    }

    /// Does what a sweep does: a command that was left behind may hold the lock.
    fn close<K: System>(dir: Locked<K>) -> Result<(), Error> {
        let Locked { dir, lock } = dir;
        drop(lock);
        remove_unlocked(&dir.root, &dir.name).map_err(Error::of("remove", &dir.path()))
    }

    fn sweep<K: System>(kernel: &K, root: &PathBytes) -> Result<(), Error> {
        let (root, names) = directories(kernel, root)?;
        for name in names {
            // What is left is for the next sweep.
            let _ = remove_unlocked(&root, &name);
        }
        Ok(())
    }
}

/// Makes the lock file in a new directory and takes the lock.
fn lock_new<K: System>(dir: &Directory<K>) -> Answer<Fd<K>> {
    let inside = dir.root.open_dir(&dir.name)?;
    let lock = inside.create_file(&Name::fixed(LOCK))?;
    lock.lock()?;
    Ok(lock)
}

/// Removes a directory whose lock nobody holds, the lock file last.
fn remove_unlocked<K: System>(root: &Fd<K>, name: &Name) -> Answer<()> {
    let lock_name = Name::fixed(LOCK);
    let dir = root.open_dir(name)?;
    let lock = match dir.open_file(&lock_name) {
        Ok(lock) => lock,
        // Not yet there, or not any more.
        Err(Errno::ENOENT) => return gone(root.rmdir(name)),
        Err(errno) => return Err(errno),
    };
    let _lock = match Probed::ask(lock) {
        Ok(lock) => lock,
        Err(Errno::EAGAIN) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    empty(&dir, &[&lock_name])?;
    gone(dir.unlink(&lock_name))?;
    gone(root.rmdir(name))
}
