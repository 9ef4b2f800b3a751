//! A directory without protection, for callers that prefer it to none (c4).

use crate::error::{Error, ErrorKind};
use crate::evidence::Obstacle;
use crate::grammar::{Place, Random};
use crate::remove::{Condemned, Removal};
use crate::root::{Root, open_own, still_named};
use crate::sys::{Errno, Kernel, KernelExt, Lasting, Name, PathBytes, Whoami};

const OPERATION: &str = "create an unclaimed directory in";

/// A directory that no sweep ever looks at: its owner removes it, or nobody.
///
/// # Crash behaviour
/// When its owner is killed it stays for ever.
#[derive(Debug)]
#[must_use = "an unclaimed directory that is dropped is removed at once"]
pub struct Unclaimed<K: Kernel> {
    root: Root<K>,
    name: Name,
    random: Random,
    owner: Whoami,
    /// Open for life, so that what is removed is what was made.
    dir: Lasting<K>,
    /// Whether there is nothing to remove any more.
    done: bool,
}

impl<K: Kernel> Root<K> {
    /// Makes a directory that is no claim, where a claim could not be
    /// protected.
    ///
    /// # Errors
    /// [`ErrorKind::NoSpace`], [`ErrorKind::System`].
    pub fn create_unclaimed(&self) -> Result<Unclaimed<K>, Error> {
        let fail = |errno| Error::system(OPERATION, self.path(), errno);
        let owner = self.kernel().whoami().map_err(fail)?;
        let random = Random::fresh(self.kernel()).map_err(fail)?;
        // CHECK(c4-unclaimed-name): a name of the grammar would be a claim without an owner.
        let name = self.prefix().unclaimed(&random);
        self.fd().mkdir(&name).map_err(fail)?;
        let opened = open_own(self.fd(), &name).and_then(|dir| {
            let stat = dir.stat()?;
            Ok(Lasting::new(dir, stat))
        });
        match opened {
            Ok(dir) => Ok(Unclaimed { root: self.clone(), name, random, owner, dir, done: false }),
            Err(errno) => {
                let _ = self.fd().rmdir(&name);
                Err(fail(errno))
            }
        }
    }
}

impl<K: Kernel> Unclaimed<K> {
    /// Its path.
    #[must_use]
    pub fn path(&self) -> PathBytes {
        self.root.path_of(&self.name)
    }

    /// Leaves it where it is, for good: nobody removes it any more.
    pub fn keep(mut self) {
        self.done = true;
    }

    /// Removes it, by the same walk that removes claims; answers what stood in
    /// the way, and can then be asked again.
    ///
    /// # Errors
    /// [`ErrorKind::Forked`] in every process but its owner;
    /// [`ErrorKind::LeaseLost`] when its name stands for something else;
    /// [`ErrorKind::System`].
    pub fn remove(&mut self) -> Result<alloc::vec::Vec<Obstacle>, Error> {
        let operation = "remove";
        let path = self.path();
        let fail = |errno| Error::system(operation, &path, errno);
        let root = &self.root;
        // CHECK(c6-unclaimed-own-process): a forked copy must not remove what its parent uses.
        if root.kernel().whoami().map_err(fail)? != self.owner {
            let text = alloc::format!("it belongs to process {}", self.owner.pid.0);
            return Err(Error::because(ErrorKind::Forked, operation, &path, text));
        }
        let me = root.kernel().identity().map_err(fail)?;
        let dir = self.dir.fd();
        let named = still_named(root.fd(), &self.name, dir);
        // CHECK(c4-unclaimed-ours): its name may stand for something else by now.
        let Some(stat) = named.map_err(fail)? else {
            if root.fd().stat_at(&self.name) == Err(Errno::ENOENT) {
                self.done = true;
                return Ok(alloc::vec::Vec::new());
            }
            let text = "its name stands for something else now".into();
            return Err(Error::because(ErrorKind::LeaseLost, operation, &path, text));
        };
        let (name, random) = (&self.name, self.random);
        let condemned = Condemned::new(root, &me, name, random, Place::Tombstone, dir, stat);
        Ok(match condemned.demolish_unclaimed() {
            Removal::Removed => {
                self.done = true;
                alloc::vec::Vec::new()
            }
            Removal::Kept(obstacle) => alloc::vec![obstacle],
            Removal::Partial(obstacles) => obstacles,
        })
    }
}

impl<K: Kernel> Drop for Unclaimed<K> {
    fn drop(&mut self) {
        if !self.done {
            // Nobody can be told; what is left is as after a kill.
            let _ = self.remove();
        }
    }
}
