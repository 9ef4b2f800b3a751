//! The seam: the one way from the implementation to the system.
//!
//! Everything above it is ordinary code that does not know whether it runs on
//! the real kernel or on a simulated one, so that the code that ships is the
//! code that is simulated. What makes that true:
//!
//! * A [`Kernel`] is asked by one method, with the call as a value
//!   ([`Call`] → [`Reply`]), and spawns by another. There is nothing else.
//! * No type of the system crosses: numbers stand behind types of our own.
//! * Dropping a descriptor is a call. Random numbers, process numbers and the
//!   order of directories are answers. Waiting is a call with a limit.
//! * There is no fork: [`Kernel::spawn`] takes a [`ChildPlan`], which is data,
//!   and the child's part is one function without allocation,
//!   [`child_part`], over a second, smaller trait.
//! * A call owns its data and shares none, so that a copy of it is one.
//! * A process's next call depends on its program, its arguments and the
//!   answers so far, and on nothing else.
//!
//! The crate is `no_std` above the seam, which is how the compiler holds it to
//! this.

mod call;
mod child;
mod errno;
#[cfg(feature = "host")]
mod host;
mod name;
mod sought;
mod types;
pub mod windows;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;
use core::hash::Hash;

pub use self::call::{Call, Reply};
pub(crate) use self::child::OTHER_USER;
pub use self::child::{ChildIdentity, ChildKernel, ChildPlan, IdName, child_part};
pub use self::errno::Errno;
#[cfg(feature = "host")]
pub(crate) use self::host::activation;
#[cfg(feature = "host")]
pub use self::host::{Host, HostChild, HostProgram};
pub use self::name::{Name, PathBytes};
pub use self::sought::Sought;
pub use self::types::{
    DirEntry, Ending, FsMagic, Handle, Home, Identity, Kind, MountView, Pid, ProcView, Process,
    ProcessId, Stat, Use, Uses, Wait, Whoami,
};

/// What a call that answers nothing but success or failure answers.
pub type Answer<T> = Result<T, Errno>;

/// A kernel, real or simulated, as one process sees it.
///
/// Cloning gives another handle on the same kernel, for the same process.
pub trait Kernel: Clone {
    /// What [`Kernel::spawn`] starts: a command line on the real kernel, a
    /// script in a simulated one.
    type Program;

    /// Makes one call.
    ///
    /// # Errors
    /// The number that the call failed with. A call that fails may still have
    /// been done (a network file system answers so after a lost reply); the
    /// protocol takes no failure as proof that nothing happened.
    fn call(&self, call: Call) -> Answer<Reply>;

    /// Starts a child that does [`child_part`] with `plan`, then runs the
    /// program. Returns when the program runs or the child has ended without
    /// running it.
    ///
    /// # Errors
    /// The number that fork, the child's part or exec failed with. The child
    /// has then ended and is reaped.
    fn spawn(&self, program: &mut Self::Program, plan: &ChildPlan) -> Answer<Pid>;

    /// Does a part of a process's work of which the process keeps the result and
    /// nothing else.
    ///
    /// A kernel only has to do it. One that goes through all that can happen may
    /// take two ways to the same result for one from there on.
    fn aside<T: Hash>(&self, part: impl FnOnce(&Self) -> T) -> T {
        part(self)
    }
}

/// Takes the one kind of reply that a call has.
macro_rules! expect_reply {
    ($kernel:expr, $call:expr, $variant:ident) => {
        match $kernel.call($call)? {
            Reply::$variant(value) => Ok(value),
            other => unreachable!("a kernel answers a call with its own kind, not {other:?}"),
        }
    };
    ($kernel:expr, $call:expr) => {
        match $kernel.call($call)? {
            Reply::Done => Ok(()),
            other => unreachable!("a kernel answers a call with its own kind, not {other:?}"),
        }
    };
}

/// The calls without a descriptor, with their types.
pub trait KernelExt: Kernel {
    /// Opens the directory at a path; see [`Call::OpenRoot`].
    ///
    /// # Errors
    /// The kernel's.
    fn open_root(&self, path: &PathBytes) -> Answer<Fd<Self>> {
        let call = Call::OpenRoot { path: path.clone() };
        expect_reply!(self, call, Handle).map(|raw| Fd::new(self.clone(), raw))
    }

    /// Who this process is; see [`Call::Identity`].
    ///
    /// # Errors
    /// The kernel's.
    fn identity(&self) -> Answer<Box<Identity>> {
        expect_reply!(self, Call::Identity, Identity)
    }

    /// Who this process is, in short; see [`Call::Whoami`].
    ///
    /// # Errors
    /// The kernel's.
    fn whoami(&self) -> Answer<Whoami> {
        expect_reply!(self, Call::Whoami, Whoami)
    }

    /// Whether a process number is in use; see [`Call::ProcessExists`].
    ///
    /// # Errors
    /// `ESRCH` when it is not.
    fn process_exists(&self, pid: Pid) -> Answer<()> {
        // CHECK(h7-no-special-pid): 0 and negative numbers name groups, or everybody.
        if pid.0 <= 0 {
            return Err(Errno::EINVAL);
        }
        expect_reply!(self, Call::ProcessExists { pid })
    }

    /// Whether a group has members; see [`Call::GroupExists`].
    ///
    /// # Errors
    /// `ESRCH` when it has none.
    fn group_exists(&self, group: Pid) -> Answer<()> {
        // CHECK(h7-no-special-group): as with processes; `kill(-1, …)` is everybody.
        if group.0 <= 1 {
            return Err(Errno::EINVAL);
        }
        expect_reply!(self, Call::GroupExists { group })
    }

    /// What `/proc` says of a process; see [`Call::Process`].
    ///
    /// # Errors
    /// The kernel's.
    fn process(&self, pid: Pid) -> Answer<Process> {
        expect_reply!(self, Call::Process { pid }, Process)
    }

    /// The inode number of a process's pidfd; see [`Call::Pidfs`].
    ///
    /// # Errors
    /// The kernel's.
    fn pidfs(&self, pid: Pid) -> Answer<u64> {
        expect_reply!(self, Call::Pidfs { pid }, Number)
    }

    /// The processes that `/proc` shows; see [`Call::Pids`].
    ///
    /// # Errors
    /// The kernel's.
    fn pids(&self) -> Answer<Vec<Pid>> {
        expect_reply!(self, Call::Pids, Pids)
    }

    /// What a process uses of some claims; see [`Call::Uses`].
    ///
    /// # Errors
    /// The kernel's.
    fn uses(&self, pid: Pid, of: &Sought, known: &[MountView]) -> Answer<Box<Uses>> {
        let call = Call::Uses { pid, of: Box::new(of.clone()), known: known.into() };
        expect_reply!(self, call, Uses)
    }

    /// How many descriptors this process may have open; see
    /// [`Call::DescriptorsMax`].
    ///
    /// # Errors
    /// The kernel's.
    fn descriptors_max(&self) -> Answer<u64> {
        expect_reply!(self, Call::DescriptorsMax, Number)
    }

    /// Kills a group; see [`Call::KillGroup`].
    ///
    /// # Errors
    /// The kernel's; `EINVAL` for a number that no group of ours can have.
    fn kill_group(&self, group: Pid) -> Answer<()> {
        // CHECK(h7-no-special-target): a signal to 0, 1 or -1 would hit ourselves, init or everybody.
        if group.0 <= 1 {
            return Err(Errno::EINVAL);
        }
        expect_reply!(self, Call::KillGroup { group })
    }

    /// Waits for a child and reaps it; see [`Call::Wait`].
    ///
    /// # Errors
    /// The kernel's; `ECHILD` when it is no child of ours or is reaped.
    fn reap(&self, pid: Pid, wait: Wait) -> Answer<Option<Ending>> {
        expect_reply!(self, Call::Wait { pid, wait, reap: true }, Ending)
    }

    /// Waits for a child and leaves it a zombie; see [`Call::Wait`].
    ///
    /// # Errors
    /// As [`KernelExt::reap`].
    fn await_end(&self, pid: Pid, wait: Wait) -> Answer<Option<Ending>> {
        expect_reply!(self, Call::Wait { pid, wait, reap: false }, Ending)
    }

    /// Lets time pass; see [`Call::Pause`].
    ///
    /// # Errors
    /// The kernel's.
    fn pause(&self, millis: u32) -> Answer<()> {
        expect_reply!(self, Call::Pause { millis })
    }

    /// A random number; see [`Call::Random`].
    ///
    /// # Errors
    /// The kernel's.
    fn random(&self) -> Answer<u64> {
        expect_reply!(self, Call::Random, Number)
    }
}

impl<K: Kernel> KernelExt for K {}

/// An owned descriptor. Dropping it is a [`Call::Close`], whose failure nobody
/// can act on: the number is free in any case.
#[derive(Debug)]
pub struct Fd<K: Kernel> {
    kernel: K,
    raw: Handle,
}

impl<K: Kernel> Fd<K> {
    /// Takes a descriptor over.
    pub fn new(kernel: K, raw: Handle) -> Fd<K> {
        Fd { kernel, raw }
    }

    /// Its number.
    #[must_use]
    pub fn raw(&self) -> Handle {
        self.raw
    }

    /// Lets go of the number without closing it, because it turned out to be
    /// somebody else's by now.
    pub fn forget(mut self) {
        self.raw = Handle(-1);
    }

    /// The kernel it belongs to.
    #[must_use]
    pub fn kernel(&self) -> &K {
        &self.kernel
    }

    fn owned(&self, call: Call) -> Answer<Fd<K>> {
        expect_reply!(self.kernel, call, Handle).map(|raw| Fd::new(self.kernel.clone(), raw))
    }

    fn done(&self, call: Call) -> Answer<()> {
        expect_reply!(self.kernel, call)
    }

    /// Opens a directory in this one; see [`Call::OpenDir`].
    ///
    /// # Errors
    /// The kernel's; `EXDEV` when a mount is there, `ELOOP` or `ENOTDIR` when
    /// it is no directory.
    pub fn open_dir(&self, name: &Name) -> Answer<Fd<K>> {
        self.owned(Call::OpenDir { dir: self.raw, name: name.clone() })
    }

    /// Opens a regular file in this directory; see [`Call::OpenFile`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn open_file(&self, name: &Name) -> Answer<Fd<K>> {
        self.owned(Call::OpenFile { dir: self.raw, name: name.clone() })
    }

    /// Makes a file in this directory; see [`Call::CreateFile`].
    ///
    /// # Errors
    /// The kernel's; `EEXIST` when the name is taken.
    pub fn create_file(&self, name: &Name) -> Answer<Fd<K>> {
        self.owned(Call::CreateFile { dir: self.raw, name: name.clone() })
    }

    /// What this handle is; see [`Call::Stat`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn stat(&self) -> Answer<Stat> {
        expect_reply!(self.kernel, Call::Stat { fd: self.raw }, Stat)
    }

    /// What a name in this directory is; see [`Call::StatAt`].
    ///
    /// # Errors
    /// The kernel's; `EXDEV` when a mount is there.
    pub fn stat_at(&self, name: &Name) -> Answer<Stat> {
        let call = Call::StatAt { dir: self.raw, name: name.clone() };
        expect_reply!(self.kernel, call, Stat)
    }

    /// The kind of file system; see [`Call::FsMagic`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn fs_magic(&self) -> Answer<FsMagic> {
        expect_reply!(self.kernel, Call::FsMagic { fd: self.raw }, FsMagic)
    }

    /// The next entries of this directory; see [`Call::ReadDir`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn read_dir(&self, restart: bool) -> Answer<Vec<DirEntry>> {
        expect_reply!(self.kernel, Call::ReadDir { dir: self.raw, restart }, Entries)
    }

    /// Makes a directory in this one; see [`Call::Mkdir`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn mkdir(&self, name: &Name) -> Answer<()> {
        self.done(Call::Mkdir { dir: self.raw, name: name.clone() })
    }

    /// Makes a link in this directory; see [`Call::Symlink`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn symlink(&self, name: &Name, text: &[u8]) -> Answer<()> {
        self.done(Call::Symlink { dir: self.raw, name: name.clone(), text: text.into() })
    }

    /// Reads a link in this directory; see [`Call::Readlink`].
    ///
    /// # Errors
    /// The kernel's; `EINVAL` when it is no link.
    pub fn readlink(&self, name: &Name) -> Answer<Vec<u8>> {
        let call = Call::Readlink { dir: self.raw, name: name.clone() };
        expect_reply!(self.kernel, call, Bytes)
    }

    /// Renames in this directory; see [`Call::Rename`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn rename(&self, from: &Name, to: &Name) -> Answer<()> {
        self.done(Call::Rename { dir: self.raw, from: from.clone(), to: to.clone() })
    }

    /// Removes what is not a directory; see [`Call::Unlink`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn unlink(&self, name: &Name) -> Answer<()> {
        self.done(Call::Unlink { dir: self.raw, name: name.clone() })
    }

    /// Removes an empty directory; see [`Call::Rmdir`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn rmdir(&self, name: &Name) -> Answer<()> {
        self.done(Call::Rmdir { dir: self.raw, name: name.clone() })
    }

    /// Gives a directory of our own the mode 0700; see [`Call::Unseal`].
    ///
    /// # Errors
    /// The kernel's; `EPERM` when it is not ours.
    pub fn unseal(&self, name: &Name) -> Answer<()> {
        self.done(Call::Unseal { dir: self.raw, name: name.clone() })
    }

    /// Gives this directory another mode; see [`Call::Chmod`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn chmod(&self, mode: u32) -> Answer<()> {
        self.done(Call::Chmod { fd: self.raw, mode })
    }

    /// Takes the exclusive `flock` of this handle, never waiting; see
    /// [`Call::Lock`].
    ///
    /// # Errors
    /// The kernel's; `EAGAIN` when somebody holds it.
    pub fn lock(&self) -> Answer<()> {
        self.done(Call::Lock { fd: self.raw })
    }

    /// Gives the `flock` back; see [`Call::Unlock`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn unlock(&self) -> Answer<()> {
        self.done(Call::Unlock { fd: self.raw })
    }

    /// Who holds the `flock` of this inode; see [`Call::LockHolder`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn lock_holder(&self) -> Answer<Option<Pid>> {
        let holders = expect_reply!(self.kernel, Call::LockHolder { fd: self.raw }, Pids)?;
        Ok(holders.first().copied())
    }

    /// Reads from a place on; see [`Call::Read`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn read(&self, offset: u64, len: u32) -> Answer<Vec<u8>> {
        expect_reply!(self.kernel, Call::Read { fd: self.raw, offset, len }, Bytes)
    }

    /// Writes from a place on; see [`Call::Write`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Answer<u64> {
        let call = Call::Write { fd: self.raw, offset, bytes: bytes.into() };
        expect_reply!(self.kernel, call, Number)
    }

    /// Waits until it is on the disk; see [`Call::Sync`].
    ///
    /// # Errors
    /// The kernel's.
    pub fn sync(&self) -> Answer<()> {
        self.done(Call::Sync { fd: self.raw })
    }
}

impl<K: Kernel> Drop for Fd<K> {
    fn drop(&mut self) {
        if self.raw == Handle(-1) {
            return;
        }
        // The answer is of no use: a close that fails has closed.
        let _ = self.kernel.call(Call::Close { fd: self.raw });
    }
}

/// A descriptor for life, which is compared with what it was before it is
/// closed.
///
/// A program may close descriptors that it did not open (every daemon does),
/// and the number is then somebody else's file.
#[derive(Debug)]
pub struct Lasting<K: Kernel> {
    /// `None` only while it is dropped.
    fd: Option<Fd<K>>,
    was: Stat,
}

impl<K: Kernel> Lasting<K> {
    /// Remembers what a descriptor is.
    pub fn new(fd: Fd<K>, was: Stat) -> Lasting<K> {
        Lasting { fd: Some(fd), was }
    }

    /// The descriptor.
    #[must_use]
    pub fn fd(&self) -> &Fd<K> {
        self.fd.as_ref().expect("taken only by the destructor")
    }

    /// Whether the number still is what it was.
    ///
    /// # Errors
    /// The kernel's.
    pub fn still_is(&self) -> Answer<bool> {
        match self.fd().stat() {
            Ok(now) => Ok(now.same_inode(&self.was)),
            Err(Errno::EBADF) => Ok(false),
            Err(errno) => Err(errno),
        }
    }
}

impl<K: Kernel> Drop for Lasting<K> {
    fn drop(&mut self) {
        // CHECK(c7-compare-before-close): closed blindly, the number could be a file of the user's.
        if self.still_is() == Ok(false)
            && let Some(fd) = self.fd.take()
        {
            fd.forget();
        }
    }
}

/// A handle whose `flock` is taken to ask who holds it, not to keep it.
#[derive(Debug)]
pub struct Probed<K: Kernel> {
    /// `None` only once it was kept.
    fd: Option<Fd<K>>,
    /// Whether the lock may be ours: granted, or asked for with an unclear
    /// answer.
    held: Cell<bool>,
}

impl<K: Kernel> Probed<K> {
    /// A handle whose lock was not asked for yet.
    pub fn new(fd: Fd<K>) -> Probed<K> {
        Probed { fd: Some(fd), held: Cell::new(false) }
    }

    /// Asks for the lock of a handle, without waiting.
    ///
    /// # Errors
    /// The kernel's; `EAGAIN` when somebody holds it.
    pub fn ask(fd: Fd<K>) -> Answer<Probed<K>> {
        let probed = Probed::new(fd);
        probed.lock()?;
        Ok(probed)
    }

    /// Asks for the lock, without waiting.
    ///
    /// # Errors
    /// The kernel's; `EAGAIN` when somebody holds it.
    pub fn lock(&self) -> Answer<()> {
        let answer = self.fd().lock();
        self.held.set(answer != Err(Errno::EAGAIN));
        answer
    }

    /// The handle.
    #[must_use]
    pub fn fd(&self) -> &Fd<K> {
        self.fd.as_ref().expect("taken only by `keep`, which consumes it")
    }

    /// Keeps the lock for as long as the handle is open.
    #[must_use]
    pub fn keep(mut self) -> Fd<K> {
        self.fd.take().expect("taken only here, once")
    }
}

impl<K: Kernel> Drop for Probed<K> {
    fn drop(&mut self) {
        let Some(fd) = &self.fd else { return };
        if self.held.get() {
            // CHECK(l6-unlock-probed): a copy of the description in a child forked meanwhile
            // would keep the lock for that child's life if it were only closed.
            let _ = fd.unlock();
        }
    }
}
