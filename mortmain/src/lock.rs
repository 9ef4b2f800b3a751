//! A lock on a name that dies with its holder (f1–f5).
//!
//! The lock is the kernel's, on an empty file that is made when it is missing and
//! never removed. There is nothing to read, so nothing can be stale, half-written
//! or forged: whoever is killed has let go. Who removes or replaces the file does
//! not break the lock for those who come later, since each compares what it has
//! locked with what stands at the name.
//!
//! One attempt is all there is here, and it never waits. How long to go on asking,
//! and in which order the threads of a process do, is the public face's part.

use alloc::string::String;
use alloc::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::evidence::Seen;
use crate::fskind::FsKind;
use crate::root::still_named;
use crate::sys::{Answer, Errno, Fd, Kernel, KernelExt, Lasting, Name, PathBytes, Probed, Whoami};

/// Rounds that one attempt goes, each of which somebody who replaced the file just
/// then has cost it.
const ROUNDS: u32 = 64;

/// Interruptions of one call that are borne.
const INTERRUPTIONS_MAX: u32 = 64;

const OPERATION: &str = "lock";

/// What can be locked: a name in a directory, which is opened once. Clones share
/// its descriptor.
#[derive(Debug)]
pub struct LockFile<K: Kernel> {
    shared: Arc<Shared<K>>,
}

#[derive(Debug)]
struct Shared<K: Kernel> {
    dir: Lasting<K>,
    name: Name,
    path: PathBytes,
}

impl<K: Kernel> Clone for LockFile<K> {
    fn clone(&self) -> LockFile<K> {
        LockFile { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Kernel> LockFile<K> {
    /// A lock on the file `name` in the directory `dir`, which must exist.
    ///
    /// # Errors
    /// * [`ErrorKind::NoLocks`]: locks there may not reach every process.
    /// * [`ErrorKind::System`]: there is no such directory, or it may not be read.
    pub fn open(kernel: &K, dir: &PathBytes, name: Name) -> Result<LockFile<K>, Error> {
        let path = dir.join(name.bytes());
        let opened = kernel.open_root(dir).and_then(|fd| {
            let stat = fd.stat()?;
            let magic = fd.fs_magic()?;
            Ok((Lasting::new(fd, stat), magic))
        });
        let (dir, magic) =
            opened.map_err(|errno| Error::system("open the directory of", &path, errno))?;
        // CHECK(f3-listed-file-system): two machines on one share would both be told that they
        // have it.
        FsKind::listed(magic)
            .map_err(|text| Error::because(ErrorKind::NoLocks, OPERATION, &path, text))?;
        Ok(LockFile { shared: Arc::new(Shared { dir, name, path }) })
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &PathBytes {
        &self.shared.path
    }

    /// The directory that it lies in.
    pub(crate) fn dir(&self) -> &Fd<K> {
        self.shared.dir.fd()
    }

    fn kernel(&self) -> &K {
        self.shared.dir.fd().kernel()
    }

    fn fail(&self, errno: Errno) -> Error {
        Error::system(OPERATION, self.path(), errno)
    }

    /// Takes the lock if nobody has it; `None` when somebody has. Never waits.
    ///
    /// # Errors
    /// * [`ErrorKind::Obstructed`]: what stands at the name is no regular file.
    /// * [`ErrorKind::Replaced`]: the file was replaced in every round.
    /// * [`ErrorKind::NoSpace`], [`ErrorKind::System`]: the file could not be made
    ///   or opened.
    ///
    /// # Crash behaviour
    /// Killed at any call, the caller leaves an empty file that nobody has locked.
    pub fn attempt(&self) -> Result<Option<Held<K>>, Error> {
        let holder = self.kernel().whoami().map_err(|errno| self.fail(errno))?;
        for _ in 0..ROUNDS {
            let Some(file) = self.open_or_make()? else { continue };
            // Unlocked again, not only closed, if it is not kept.
            let asked = Probed::new(file);
            // CHECK(f1-kernel-lock): a file that is there is nobody's lock.
            match uninterrupted(|| asked.lock()) {
                Ok(()) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(errno) => return Err(self.fail(errno)),
            }
            let named = still_named(self.shared.dir.fd(), &self.shared.name, asked.fd());
            // CHECK(f2-same-file): whoever comes next locks what is at the name by then, and both
            // would have the lock.
            let Some(stat) = named.map_err(|errno| self.fail(errno))? else { continue };
            let file = Lasting::new(asked.keep(), stat);
            return Ok(Some(Held { of: self.clone(), file, holder, given_back: false }));
        }
        let text = alloc::format!("the file was replaced {ROUNDS} times while it was being locked");
        Err(Error::because(ErrorKind::Replaced, OPERATION, self.path(), text))
    }

    /// The file, opened; `None` when it came or went in between.
    fn open_or_make(&self) -> Result<Option<Fd<K>>, Error> {
        let (dir, name) = (self.shared.dir.fd(), &self.shared.name);
        match uninterrupted(|| dir.open_file(name)) {
            Ok(file) => Ok(Some(file)),
            Err(Errno::ENOENT) => match uninterrupted(|| dir.create_file(name)) {
                Ok(file) => Ok(Some(file)),
                Err(Errno::EEXIST) => Ok(None),
                Err(errno) => Err(self.fail(errno)),
            },
            Err(errno) => match obstacle(errno) {
                Some(by) => Err(self.obstructed(by)),
                None => Err(self.fail(errno)),
            },
        }
    }

    fn obstructed(&self, by: &str) -> Error {
        let text = alloc::format!("{by} stands where the lock's file would be");
        Error::because(ErrorKind::Obstructed, OPERATION, self.path(), text)
    }

    /// Who holds the lock, where the kernel tells: not across pid namespaces, and
    /// not on every kind of file system. For messages; it proves nothing.
    #[must_use]
    pub fn holder(&self) -> Option<Seen> {
        let file = self.shared.dir.fd().open_file(&self.shared.name).ok()?;
        let pid = file.lock_holder().ok()??;
        let program = self.kernel().process(pid).map(|process| process.program);
        Some(Seen { pid, program: program.unwrap_or_default() })
    }
}

/// A lock that is held. Dropping it gives it back.
///
/// # Crash behaviour
/// When its holder dies, however that comes, the kernel gives it back.
#[derive(Debug)]
#[must_use = "a lock that is dropped is given back at once"]
pub struct Held<K: Kernel> {
    of: LockFile<K>,
    file: Lasting<K>,
    holder: Whoami,
    given_back: bool,
}

impl<K: Kernel> Held<K> {
    /// Gives the lock back, and tells whether it was one to the end.
    ///
    /// # Errors
    /// It is given back all the same, as far as it is this process's:
    /// * [`ErrorKind::LockLost`]: the file was removed or replaced, or its
    ///   descriptor closed, while the lock was held.
    /// * [`ErrorKind::Forked`]: this is a forked child of the holder, which keeps
    ///   the lock.
    /// * [`ErrorKind::System`]: a call failed.
    pub fn unlock(mut self) -> Result<(), Error> {
        let named = self.still_at_its_name();
        self.give_back()?;
        // CHECK(f2-told-when-replaced): another process may have worked beside this one.
        if !named? {
            return Err(self.lost("its file was removed or replaced while it was held".into()));
        }
        Ok(())
    }

    /// The path of the lock's file.
    #[must_use]
    pub fn path(&self) -> &PathBytes {
        self.of.path()
    }

    fn still_at_its_name(&self) -> Result<bool, Error> {
        let Shared { dir, name, .. } = &*self.of.shared;
        let named =
            still_named(dir.fd(), name, self.file.fd()).map_err(|errno| self.fail(errno))?;
        Ok(named.is_some())
    }

    fn fail(&self, errno: Errno) -> Error {
        Error::system("unlock", self.of.path(), errno)
    }

    fn lost(&self, text: String) -> Error {
        Error::because(ErrorKind::LockLost, "unlock", self.of.path(), text)
    }

    fn give_back(&mut self) -> Result<(), Error> {
        if core::mem::replace(&mut self.given_back, true) {
            return Ok(());
        }
        let me = self.of.kernel().whoami().map_err(|errno| self.fail(errno))?;
        // CHECK(f5-own-process): an unlock frees the lock for every copy of the description, and a
        // forked child's is a copy.
        if me != self.holder {
            let text = alloc::format!("process {} holds it", self.holder.pid.0);
            return Err(Error::because(ErrorKind::Forked, "unlock", self.of.path(), text));
        }
        // CHECK(f5-same-descriptor): the number may be a stranger's file by now, and the lock on
        // it a stranger's.
        if !self.file.still_is().map_err(|errno| self.fail(errno))? {
            return Err(self.lost("its descriptor was closed by somebody else".into()));
        }
        // CHECK(f4-unlock): closed only, it would be held on by a child that another thread has
        // just forked, until that child's exec.
        uninterrupted(|| self.file.fd().unlock()).map_err(|errno| self.fail(errno))?;
        Ok(())
    }
}

impl<K: Kernel> Drop for Held<K> {
    fn drop(&mut self) {
        // Nobody can be told; the descriptor is closed in any case.
        let _ = self.give_back();
    }
}

/// What stands in the way, by the error with which it is not opened as a file.
pub(crate) fn obstacle(errno: Errno) -> Option<&'static str> {
    match errno {
        Errno::EISDIR => Some("a directory"),
        Errno::ELOOP => Some("a symbolic link"),
        Errno::EINVAL => Some("a FIFO, a socket or a device"),
        Errno::EXDEV => Some("a mount"),
        _ => None,
    }
}

/// Makes a call again for as long as a signal interrupts it.
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> Answer<T>) -> Answer<T> {
    for _ in 0..INTERRUPTIONS_MAX {
        match call() {
            // CHECK(f1-interrupted): a signal is no answer to the question who has the lock.
            Err(Errno::EINTR) => {}
            answer => return answer,
        }
    }
    Err(Errno::EINTR)
}
