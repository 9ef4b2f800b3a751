//! By the owner's pid: what belongs to a process that has ended is removed.
//!
//! So does every program that calls its directory by its pid. The number stands in the name, which
//! is there at once and whole, and beside it the owner's start time, so that a number that was used
//! again misleads nobody.

use mortmain::sys::{Answer, ChildKernel, ChildPlan, PathBytes, Pid};

use crate::design::{Design, Error};
use crate::directory::{
    Directory, directories, fresh_owned_name, has_ended, owner_in, plain_child, remove_dir_all,
};
use crate::system::System;

/// The design.
#[derive(Clone, Copy, Debug)]
pub struct OwnerPid;

impl Design for OwnerPid {
    type Dir<K: System> = Directory<K>;
    type Started = Pid;

    fn create<K: System>(kernel: &K, root: &PathBytes) -> Result<Directory<K>, Error> {
        Directory::create(kernel, root, fresh_owned_name)
    }

    fn path<K: System>(dir: &Directory<K>) -> PathBytes {
        dir.path()
    }

    fn spawn<K: System>(dir: &mut Directory<K>, program: &mut K::Program) -> Result<Pid, Error> {
        dir.spawn(program, None, b"")
    }

    fn child<C: ChildKernel>(child: &C, plan: &ChildPlan) -> Answer<()> {
        plain_child(child, plan)
    }

    fn wait<K: System>(dir: &mut Directory<K>, command: &Pid) -> Result<(), Error> {
        dir.wait(*command)
    }

    fn end<K: System>(dir: &mut Directory<K>, command: &Pid) -> Result<(), Error> {
        dir.end(*command)
    }

    fn close<K: System>(dir: Directory<K>) -> Result<(), Error> {
        dir.remove()
    }

    fn sweep<K: System>(kernel: &K, root: &PathBytes) -> Result<(), Error> {
        let (root, names) = directories(kernel, root)?;
        for name in names {
            if owner_in(&name).is_some_and(|owner| has_ended(kernel, owner)) {
                // Its name goes last, so the next sweep finishes what this one cannot.
                let _ = remove_dir_all(&root, &name);
            }
        }
        Ok(())
    }
}
