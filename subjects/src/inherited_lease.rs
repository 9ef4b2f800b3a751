//! By the owner's pid and a lease that its commands inherit: what nobody holds locked any more, and
//! whose owner has ended, is removed.
//!
//! So do `flock`-based runners, and daemons that pass their lock on. The lock is `flock` on the
//! directory, whose descriptor every command inherits: the kernel drops it when the last of them has
//! ended. The owner's number in the name protects the directory until the lock is taken, and when
//! the owner has lost its descriptor.

use mortmain::sys::{Answer, ChildKernel, ChildPlan, Fd, PathBytes, Pid, Probed};

use crate::design::{Design, Error};
use crate::directory::{
    Directory, directories, fresh_owned_name, has_ended, leased_child, owner_in, remove_dir_all,
};
use crate::system::System;

/// The design.
#[derive(Clone, Copy, Debug)]
pub struct InheritedLease;

/// A directory with its lease.
#[derive(Debug)]
pub struct Leased<K: System> {
    dir: Directory<K>,
    lease: Fd<K>,
}

impl Design for InheritedLease {
    type Dir<K: System> = Leased<K>;
    type Started = Pid;

    fn create<K: System>(kernel: &K, root: &PathBytes) -> Result<Leased<K>, Error> {
        let dir = Directory::create(kernel, root, fresh_owned_name)?;
        let locked = dir.root.open_dir(&dir.name).and_then(|lease| {
            lease.lock()?;
            Ok(lease)
        });
        let lease = locked.map_err(Error::of("lock", &dir.path()))?;
        Ok(Leased { dir, lease })
    }

    fn path<K: System>(dir: &Leased<K>) -> PathBytes {
        dir.dir.path()
    }

    fn spawn<K: System>(dir: &mut Leased<K>, program: &mut K::Program) -> Result<Pid, Error> {
        dir.dir.spawn(program, Some(&dir.lease), b"")
    }

    fn child<C: ChildKernel>(child: &C, plan: &ChildPlan) -> Answer<()> {
        leased_child(child, plan)
    }

    fn wait<K: System>(dir: &mut Leased<K>, command: &Pid) -> Result<(), Error> {
        dir.dir.wait(*command)
    }

    fn end<K: System>(dir: &mut Leased<K>, command: &Pid) -> Result<(), Error> {
        dir.dir.end(*command)
    }

    /// Asks for the lock afresh, as a sweep would: a command that was left behind may hold it.
    fn close<K: System>(dir: Leased<K>) -> Result<(), Error> {
        let Leased { dir, lease } = dir;
        drop(lease);
        match dir.root.open_dir(&dir.name).and_then(Probed::ask) {
            Ok(_lease) => dir.remove(),
            // The sweeps' from here on.
            Err(_) => Ok(()),
        }
    }

    fn sweep<K: System>(kernel: &K, root: &PathBytes) -> Result<(), Error> {
        let (root, names) = directories(kernel, root)?;
        for name in names {
            if !owner_in(&name).is_some_and(|owner| has_ended(kernel, owner)) {
                continue;
            }
            let Ok(lease) = root.open_dir(&name).and_then(Probed::ask) else { continue };
            // Its name goes last, so the next sweep finishes what this one cannot.
            let _ = remove_dir_all(&root, &name);
            drop(lease);
        }
        Ok(())
    }
}
