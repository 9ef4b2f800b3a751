//! A lock on a file's name, as users of the library hold it: with waiting.
//!
//! Whoever waits asks again and again and never sleeps in the kernel's queue, out
//! of which only a signal could take it at the end of its time. Among the threads
//! of a process only one asks at a time, and the others wait for it without a
//! system call (f6, f7).

use std::format;
use std::path::{Path, PathBuf};
use std::prelude::rust_2024::*;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::path_buf;
use crate::error::{Error, ErrorKind};
use crate::protocol::{Held, LockFile};
use crate::sys::{Host, KernelExt as _, PathBytes};
use crate::turns::{Ticket, Turns};

/// What a lock's file is called: as what it protects, and this.
const SUFFIX: &str = ".lock";

/// The first pause between two questions; each is twice as long as the one before …
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// … up to this one.
const PAUSE_MAX: Duration = Duration::from_millis(32);

/// A lock on a name that dies with its holder.
///
/// It is the kernel's lock (`flock`) on the empty file `<path>.lock`, which is made
/// when it is missing and stays when it is not needed. There is no age and no pid in
/// it, and nothing of it can be stale: when its holder dies, of a SIGKILL too, the
/// lock is free. Programs that use `flock` on the same file, such as the command
/// flock(1), take part.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let scratch = mortmain::sandbox!("doc-lock")?;
/// # let ledger = scratch.path().join("ledger");
/// use std::time::Duration;
/// use mortmain::FileLock;
///
/// let lock = FileLock::at(&ledger)?; // ledger.lock
/// let guard = lock.lock_timeout(Duration::from_secs(10))?;
/// std::fs::write(&ledger, "what nobody else writes meanwhile")?;
/// assert!(lock.try_lock()?.is_none());
/// guard.unlock()?;
/// # Ok(()) }
/// ```
///
/// # Who gets it
/// Threads of one process in the order in which they came, whichever of these
/// methods they wait in. Between processes there is no order: each asks 1 to 32
/// milliseconds after its last question, and whoever asks first when the lock is
/// free has it. A process whose threads take turns without a pause can keep it from
/// others for as long as they go on. It is not re-entrant: a thread that asks for
/// what it holds waits for itself.
///
/// # What it is not
/// It keeps out those who ask, and nobody else. Who removes or replaces the file
/// *while the lock is held* breaks it: the next one locks the new file. That is
/// told by [`FileLockGuard::unlock`], afterwards. So lock files do not belong into a
/// directory that somebody empties by age.
#[derive(Clone, Debug)]
pub struct FileLock {
    file: LockFile<Host>,
    table: Arc<LockTable>,
}

impl FileLock {
    /// The lock of the file at `path`, which need not exist; its directory must. A
    /// relative path is made absolute, and links on the way are followed, once,
    /// here: so two ways to one directory lead to one lock.
    ///
    /// # Errors
    /// * [`ErrorKind::NoLocks`]: the directory lies on a kind of file system whose
    ///   locks may not reach every process, such as a network's.
    /// * [`ErrorKind::System`]: the directory is not there or may not be read, or the
    ///   path ends in no name.
    pub fn at(path: impl AsRef<Path>) -> Result<FileLock, Error> {
        FileLock::in_table(path, Arc::clone(&DEFAULT))
    }

    /// The same, for threads that queue in a table of their own: beside those of
    /// the default one they are like another process's.
    ///
    /// # Errors
    /// As [`FileLock::at`].
    pub fn in_table(path: impl AsRef<Path>, table: Arc<LockTable>) -> Result<FileLock, Error> {
        let (dir, mut name) = super::place_of(path.as_ref(), "lock")?;
        name.push(SUFFIX);
        let name = super::name_in(&dir, &name, "lock")?;
        Ok(FileLock { file: LockFile::open(&Host, &dir, name)?, table })
    }

    /// That of a store.
    pub(super) fn of(file: LockFile<Host>) -> FileLock {
        FileLock { file, table: Arc::clone(&DEFAULT) }
    }

    /// The lock's own file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        path_buf(self.file.path().clone())
    }

    /// Takes the lock if nobody holds it and no thread of this process waits for it;
    /// `None` otherwise. Never waits.
    ///
    /// # Errors
    /// * [`ErrorKind::Obstructed`]: a link, a directory, a FIFO or something else
    ///   that is no regular file stands in the place of the lock's file. It is
    ///   neither followed nor opened.
    /// * [`ErrorKind::Replaced`]: somebody replaces the file all the time.
    /// * [`ErrorKind::NoSpace`]: there is no room for the file.
    /// * [`ErrorKind::System`]: it may not be opened.
    ///
    /// # Crash behaviour
    /// Killed at any system call, this process leaves an empty file that nobody has
    /// locked.
    pub fn try_lock(&self) -> Result<Option<FileLockGuard>, Error> {
        let turn = self.join();
        if !turn.is_mine(Waker::noop()) {
            return Ok(None);
        }
        Ok(self.file.attempt()?.map(|held| FileLockGuard { held, _turn: turn }))
    }

    /// Takes the lock, and waits for it for as long as it takes.
    ///
    /// # Errors
    /// As [`FileLock::try_lock`].
    ///
    /// # Crash behaviour
    /// As [`FileLock::try_lock`].
    pub fn lock(&self) -> Result<FileLockGuard, Error> {
        self.wait(None)
    }

    /// Takes the lock, and waits for it at most for `limit`, or a little longer: a
    /// question that has begun is brought to its end.
    ///
    /// # Errors
    /// * [`ErrorKind::TimedOut`]: somebody held it all the time. The message names
    ///   the holder's pid and program, where the kernel tells them.
    /// * Otherwise as [`FileLock::try_lock`].
    ///
    /// # Crash behaviour
    /// As [`FileLock::try_lock`].
    pub fn lock_timeout(&self, limit: Duration) -> Result<FileLockGuard, Error> {
        self.wait(Some(limit))
    }

    /// Takes the lock, and waits for it without holding up a thread of the runtime.
    ///
    /// Nothing is left of a future that is dropped: neither a lock nor a place in the
    /// queue. A question that has begun is brought to its end, and what it took is given
    /// back then. So `tokio::time::timeout` gives it a limit.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let scratch = mortmain::sandbox!("doc-lock-async")?;
    /// # let ledger = scratch.path().join("ledger");
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    /// # runtime.block_on(async {
    /// let lock = mortmain::FileLock::at(&ledger)?;
    /// let guard = lock.lock_async().await?;
    /// guard.unlock()?;
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    /// As [`FileLock::try_lock`].
    ///
    /// # Panics
    /// Outside a runtime of tokio, and in one without time.
    ///
    /// # Crash behaviour
    /// As [`FileLock::try_lock`].
    #[cfg(feature = "tokio")]
    pub async fn lock_async(&self) -> Result<FileLockGuard, Error> {
        let turn = self.join();
        std::future::poll_fn(|context| match turn.is_mine(context.waker()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        })
        .await;
        let mut pauses = Pauses::default();
        loop {
            let file = self.file.clone();
            // The disk may take its time. What it gives to a future that is gone by then is given
            // back as it is dropped.
            let attempt = tokio::task::spawn_blocking(move || file.attempt());
            let attempt = attempt.await.map_err(|error| self.not_done(error))?;
            if let Some(held) = attempt? {
                return Ok(FileLockGuard { held, _turn: turn });
            }
            tokio::time::sleep(pauses.next_one()).await;
        }
    }

    #[cfg(feature = "tokio")]
    fn not_done(&self, error: tokio::task::JoinError) -> Error {
        super::not_done("lock", self.file.path(), error)
    }

    fn join(&self) -> Turn {
        Turn::join(&self.table, self.file.path())
    }

    fn wait(&self, limit: Option<Duration>) -> Result<FileLockGuard, Error> {
        // A limit that no clock can hold is none.
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let left = || deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let turn = self.join();
        if !turn.wait(left) {
            return Err(self.timed_out(limit, "threads of this process wait for it, or hold it"));
        }
        let mut pauses = Pauses::default();
        loop {
            if let Some(held) = self.file.attempt()? {
                return Ok(FileLockGuard { held, _turn: turn });
            }
            let pause = pauses.next_one();
            let left = left().unwrap_or(pause);
            // CHECK(f6-time-limit): whoever holds it may be stopped, and never let go.
            if left.is_zero() {
                return Err(self.timed_out(limit, &self.told_holder()));
            }
            pause_for(pause.min(left));
        }
    }

    /// Who holds the lock, in words.
    fn told_holder(&self) -> String {
        match self.file.holder() {
            Some(holder) => format!("it is held by {holder}"),
            None => "somebody holds it whom the kernel does not name".into(),
        }
    }

    fn timed_out(&self, limit: Option<Duration>, who: &str) -> Error {
        let text = format!("not within {:?}: {who}", limit.unwrap_or_default());
        Error::because(ErrorKind::TimedOut, "lock", self.file.path(), text)
    }
}

/// A lock of a [`FileLock`] that is held. Dropping it gives it back; in a forked
/// child that did not exec, dropping it does nothing to its parent's.
///
/// # Crash behaviour
/// When this process dies the lock is free, unless a child that it forked, and that
/// did not exec, lives on with a copy of it.
#[derive(Debug)]
#[must_use = "a lock that is dropped is given back at once"]
pub struct FileLockGuard {
    // In this order: the next thread is woken when the lock is free.
    pub(super) held: Held<Host>,
    _turn: Turn,
}

impl FileLockGuard {
    /// Gives the lock back, and tells whether it was one to the end.
    ///
    /// # Errors
    /// It is given back all the same, as far as it is this process's:
    /// * [`ErrorKind::LockLost`]: its file was removed or replaced, or its descriptor
    ///   closed by somebody else, while it was held. Another process may have worked
    ///   beside this one.
    /// * [`ErrorKind::Forked`]: this is a forked child of the holder, which keeps it.
    /// * [`ErrorKind::System`]: a call failed.
    pub fn unlock(self) -> Result<(), Error> {
        self.held.unlock()
    }
}

/// Growing pauses between questions.
#[derive(Debug)]
struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Pauses {
        Pauses(PAUSE_MIN)
    }
}

impl Pauses {
    fn next_one(&mut self) -> Duration {
        let next = self.0;
        self.0 = (next * 2).min(PAUSE_MAX);
        next
    }
}

/// Lets time pass, at least a millisecond.
fn pause_for(time: Duration) {
    let millis = u32::try_from(time.as_millis()).unwrap_or(u32::MAX).max(1);
    // It cannot fail, and if it did, the next question would only come sooner.
    let _ = Host.pause(millis);
}

/// The table of locks that are asked for without one.
static DEFAULT: LazyLock<Arc<LockTable>> = LazyLock::new(Arc::default);

/// Which threads of a process wait for which lock, in which order.
///
/// There is one that every [`FileLock`] uses unless it is given another. A table is
/// of one process: a forked child has an empty one of its own, since the threads
/// that stood in its parent's are not there.
#[derive(Debug)]
pub struct LockTable {
    pid: u32,
    turns: Mutex<Turns<Waker>>,
    /// That of a forked child, which has this one by copy.
    forked: OnceLock<Box<LockTable>>,
}

impl Default for LockTable {
    fn default() -> LockTable {
        LockTable { pid: std::process::id(), turns: Mutex::default(), forked: OnceLock::new() }
    }
}

impl LockTable {
    /// A table in which nobody waits.
    #[must_use]
    pub fn new() -> LockTable {
        LockTable::default()
    }

    /// The one of the calling process.
    fn own(&self) -> &LockTable {
        let mut table = self;
        // CHECK(f5-own-table): the lock around a copy of the parent's may be held by a thread that
        // is not there.
        while table.pid != std::process::id() {
            table = table.forked.get_or_init(Box::default);
        }
        table
    }

    fn turns(&self) -> MutexGuard<'_, Turns<Waker>> {
        // Each operation is done whole, or not at all.
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in a queue, until it is dropped.
#[derive(Debug)]
struct Turn {
    table: Arc<LockTable>,
    pid: u32,
    path: PathBytes,
    ticket: Ticket,
}

impl Turn {
    fn join(table: &Arc<LockTable>, path: &PathBytes) -> Turn {
        let own = table.own();
        let (pid, ticket) = (own.pid, own.turns().join(path));
        Turn { table: Arc::clone(table), pid, path: path.clone(), ticket }
    }

    /// Whether it is this one's turn; if not, the waker is woken when it is worth
    /// asking again.
    fn is_mine(&self, waker: &Waker) -> bool {
        self.table.own().turns().is_first(&self.path, self.ticket, waker.clone())
    }

    /// Waits for the turn; false when no time is left.
    fn wait(&self, left: impl Fn() -> Option<Duration>) -> bool {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        while !self.is_mine(&waker) {
            match left() {
                Some(left) if left.is_zero() => return false,
                Some(left) => thread::park_timeout(left),
                None => thread::park(),
            }
        }
        true
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let own = self.table.own();
        // In a forked child there is no such place.
        if own.pid == self.pid {
            let next = own.turns().leave(&self.path, self.ticket);
            // Outside of the table, since a waker is somebody else's code.
            if let Some(next) = next {
                next.wake();
            }
        }
    }
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
