//! Faults between fork and exec.
//!
//! What runs here runs in a forked child, where only async-signal-safe calls are allowed: nothing
//! allocates, nothing locks.

use std::io::PipeWriter;
use std::sync::atomic::{AtomicU64, Ordering};

use mortmain::sys::{ChildIdentity, ChildKernel, Errno, Handle, IdName};

use super::kill::Moment;

/// What happens at a step of the child's part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ChildFault {
    /// The child is killed.
    Kill(Moment),
    /// Its owner is killed, and the child goes on.
    KillOwner(Moment),
    /// The call fails.
    Fail(Errno),
}

/// A child kernel that is faulty at its n-th call.
#[derive(Debug)]
pub struct FaultyChild<C> {
    kernel: C,
    n: u64,
    fault: ChildFault,
    /// Kills the calling process.
    kill: fn(),
    /// Kills its parent.
    kill_owner: fn(),
    /// Where it says, in one byte, that the fault happens now.
    told: PipeWriter,
    seen: AtomicU64,
}

impl<C: ChildKernel> FaultyChild<C> {
    /// Faulty at call `n`, from 1; the two functions have to be async-signal-safe. A byte comes
    /// through `told` when the fault happens.
    pub fn new(
        kernel: C,
        n: u64,
        fault: ChildFault,
        [kill, kill_owner]: [fn(); 2],
        told: PipeWriter,
    ) -> Self {
        FaultyChild { kernel, n, fault, kill, kill_owner, told, seen: AtomicU64::new(0) }
    }

    fn step<T>(&self, call: impl FnOnce(&C) -> Result<T, Errno>) -> Result<T, Errno> {
        if self.seen.fetch_add(1, Ordering::Relaxed) + 1 != self.n {
            return call(&self.kernel);
        }
        // A pipe takes one byte at once; whoever reads it sees to the rest.
        let _told = rustix::io::write(&self.told, b"!");
        if let ChildFault::Fail(errno) = self.fault {
            return Err(errno);
        }
        self.strike(Moment::Before);
        let answer = call(&self.kernel);
        self.strike(Moment::After);
        answer
    }

    fn strike(&self, now: Moment) {
        match self.fault {
            ChildFault::Kill(moment) if moment == now => (self.kill)(),
            ChildFault::KillOwner(moment) if moment == now => (self.kill_owner)(),
            _ => {}
        }
    }
}

impl<C: ChildKernel> ChildKernel for FaultyChild<C> {
    fn new_group(&self) -> Result<(), Errno> {
        self.step(C::new_group)
    }

    fn identity(&self) -> Result<ChildIdentity, Errno> {
        self.step(C::identity)
    }

    fn symlink(&self, dir: Handle, name: &IdName, text: &[u8]) -> Result<(), Errno> {
        self.step(|kernel| kernel.symlink(dir, name, text))
    }

    fn keep_over_exec(&self, fd: Handle) -> Result<(), Errno> {
        self.step(|kernel| kernel.keep_over_exec(fd))
    }
}
