//! One file that is changed as a whole, as users of the library do.

use std::fmt;
use std::format;
use std::path::{Path, PathBuf};
use std::prelude::rust_2024::*;
use std::sync::Arc;
use std::time::Duration;

use super::lock::{FileLock, FileLockGuard};
use super::path_buf;
use crate::error::{Error, ErrorKind};
use crate::protocol::StoreFile;
use crate::sys::Host;

/// The longest content, unless it is said otherwise: 64 MiB.
const BYTES_MAX: u64 = 64 << 20;

/// Says what is wrong with a content.
type Check = dyn Fn(&[u8]) -> Result<(), String> + Send + Sync;

/// A file that many processes read, and change one after the other.
///
/// What stands at its path is always a whole content, the old one or the new one,
/// whatever is killed at whatever moment, and after a power cut, too: a change is
/// written beside it, and is on the disk before it takes its place. Writers take
/// the [`FileLock`] of the path; readers need no lock.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let scratch = mortmain::sandbox!("doc-store")?;
/// # let path = scratch.path().join("visits");
/// use mortmain::Store;
///
/// let store = Store::at(&path)?.valid_if(|content| match std::str::from_utf8(content) {
///     Ok(text) if text.parse::<u64>().is_ok() => Ok(()),
///     _ => Err("it is no number".into()),
/// });
/// store.update(|old| {
///     let visits = old.and_then(|old| std::str::from_utf8(old).ok()?.parse().ok()).unwrap_or(0u64);
///     Some((visits + 1).to_string().into_bytes())
/// })?;
/// assert_eq!(store.read()?.as_deref(), Some(&b"1"[..]));
/// # Ok(()) }
/// ```
///
/// # Beside the file
/// `<name>.lock` stays, empty. `.<name>.new` is there during a write, and after one
/// that was killed until the next. `<name>.corrupt` keeps a content that was refused;
/// see [`Store::update`]. The file gets a new inode with each change: another name
/// for the old one (a hard link) keeps the old content, and the owner is whoever
/// wrote. Its mode stays. Where the path is a symbolic link it is refused: give the
/// path that it points to.
#[derive(Clone)]
pub struct Store {
    file: StoreFile<Host>,
    lock: FileLock,
    check: Option<Arc<Check>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Store {
    /// The file at `path`, which need not exist; its directory must. A relative path
    /// is made absolute, and links on the way to its directory are followed, once,
    /// here.
    ///
    /// # Errors
    /// As [`FileLock::at`].
    pub fn at(path: impl AsRef<Path>) -> Result<Store, Error> {
        let (dir, name) = super::place_of(path.as_ref(), "store")?;
        let name = super::name_in(&dir, &name, "store")?;
        let file = StoreFile::open(&Host, &dir, name)?.with_bytes_max(BYTES_MAX);
        let lock = FileLock::of(file.lock().clone());
        Ok(Store { file, lock, check: None })
    }

    /// The longest content that it reads or writes, in bytes; 64 MiB unless it is
    /// said here.
    #[must_use]
    pub fn bytes_max(self, bytes_max: u64) -> Store {
        Store { file: self.file.with_bytes_max(bytes_max), ..self }
    }

    /// What a content has to be, for it to be believed; the error says what it is
    /// instead. Every content passes unless it is said here.
    #[must_use]
    pub fn valid_if(
        self,
        check: impl Fn(&[u8]) -> Result<(), String> + Send + Sync + 'static,
    ) -> Store {
        Store { check: Some(Arc::new(check)), ..self }
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        path_buf(self.file.path().clone())
    }

    /// The lock that its writers take, for what has to be done together with a
    /// change. It is not re-entrant: [`Store::update`] in a thread that holds it
    /// waits for itself.
    #[must_use]
    pub fn lock(&self) -> &FileLock {
        &self.lock
    }

    /// The content, as the last change left it; `None` when there is no file. Takes
    /// no lock and changes nothing.
    ///
    /// # Errors
    /// * [`ErrorKind::Corrupt`]: the check refuses it.
    /// * [`ErrorKind::TooLarge`]: it is longer than the limit.
    /// * [`ErrorKind::Obstructed`]: a link, a directory, a FIFO or something else that
    ///   is no regular file stands at the path. It is neither followed nor opened.
    /// * [`ErrorKind::System`]: a call failed.
    pub fn read(&self) -> Result<Option<Vec<u8>>, Error> {
        let content = self.file.read()?;
        match content.as_deref().map_or(Ok(()), |content| self.check(content)) {
            Ok(()) => Ok(content),
            Err(why) => Err(self.corrupt("read", why)),
        }
    }

    /// Changes the file: takes the lock, for as long as that takes, reads the
    /// content, and writes what `change` makes of it, if it makes something. Answers
    /// whether it did. A panic of `change` leaves the content as it was, gives the
    /// lock back and goes on.
    ///
    /// # Errors
    /// The old content stands, but where it is said otherwise.
    /// * [`ErrorKind::Corrupt`]: the check refuses the content, which is put aside as
    ///   `<name>.corrupt`, so that the next change begins without one; or it stays, if
    ///   there is such a file already. Or the check refuses the new content.
    /// * [`ErrorKind::LockLost`]: what was written stands, but the lock's file was removed
    ///   meanwhile, so that another process's change may have been lost.
    /// * [`ErrorKind::NoSpace`], [`ErrorKind::TooLarge`].
    /// * [`ErrorKind::System`]: a call failed. If it was the last one the new content
    ///   stands, and may not outlast a power cut.
    /// * As [`FileLock::lock`].
    ///
    /// # Crash behaviour
    /// Killed at any system call, this process leaves the old content or the new one.
    /// After a power cut it is the same, and the new one if this had returned.
    pub fn update<F>(&self, change: F) -> Result<bool, Error>
    where
        F: FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    {
        self.change(self.lock.lock()?, change)
    }

    /// The same, but waits for the lock at most for `limit`.
    ///
    /// # Errors
    /// * [`ErrorKind::TimedOut`]: somebody held the lock all the time.
    /// * Otherwise as [`Store::update`].
    ///
    /// # Crash behaviour
    /// As [`Store::update`].
    pub fn update_timeout<F>(&self, limit: Duration, change: F) -> Result<bool, Error>
    where
        F: FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    {
        self.change(self.lock.lock_timeout(limit)?, change)
    }

    fn change<F>(&self, guard: FileLockGuard, change: F) -> Result<bool, Error>
    where
        F: FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    {
        // CHECK(t4-read-under-lock): what was read before may be another one's old content.
        let old = self.file.read()?;
        if let Some(Err(why)) = old.as_deref().map(|old| self.check(old)) {
            // CHECK(t5-kept-aside): the next change would begin with nothing, and what was there
            // would be lost without a word.
            return Err(self.file.put_aside(&guard.held, &why));
        }
        let Some(new) = change(old.as_deref()) else {
            return guard.unlock().map(|()| false);
        };
        // CHECK(t5-new-is-valid): it would be put aside by the next change, and this one be lost.
        if let Err(why) = self.check(&new) {
            let text = format!("the new content is refused, and not written: {why}");
            return Err(self.corrupt("update", text));
        }
        self.file.write(&guard.held, &new)?;
        guard.unlock().map(|()| true)
    }

    fn corrupt(&self, operation: &'static str, why: String) -> Error {
        Error::because(ErrorKind::Corrupt, operation, self.file.path(), why)
    }

    fn check(&self, content: &[u8]) -> Result<(), String> {
        self.check.as_ref().map_or(Ok(()), |check| check(content))
    }

    /// The content, read by a thread that may wait for the disk.
    ///
    /// # Errors
    /// As [`Store::read`].
    ///
    /// # Panics
    /// Outside a runtime of tokio.
    #[cfg(feature = "tokio")]
    pub async fn read_async(&self) -> Result<Option<Vec<u8>>, Error> {
        let store = self.clone();
        self.aside("read", move || store.read()).await
    }

    /// Changes the file as [`Store::update`] does, without holding up a thread of the
    /// runtime: neither while it waits for the lock nor while it waits for the disk.
    ///
    /// A future that is dropped while it waits for the lock has changed nothing, and
    /// will not. Once `change` has been called it is done to its end, whether the
    /// future is still there or not, and the lock is given back then.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let scratch = mortmain::sandbox!("doc-store-async")?;
    /// # let path = scratch.path().join("log");
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    /// # runtime.block_on(async {
    /// let store = mortmain::Store::at(&path)?;
    /// store.update_async(|old| Some([old.unwrap_or_default(), b"a line\n"].concat())).await?;
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    /// * [`ErrorKind::Panicked`]: `change` panicked. The content is as it was, and the
    ///   lock given back.
    /// * Otherwise as [`Store::update`].
    ///
    /// # Panics
    /// Outside a runtime of tokio, and in one without time.
    ///
    /// # Crash behaviour
    /// As [`Store::update`].
    #[cfg(feature = "tokio")]
    pub async fn update_async<F>(&self, change: F) -> Result<bool, Error>
    where
        F: FnOnce(Option<&[u8]>) -> Option<Vec<u8>> + Send + 'static,
    {
        // CHECK(t7-waits-aside): everything else that runs on this thread would wait as well.
        let guard = self.lock.lock_async().await?;
        let store = self.clone();
        self.aside("update", move || store.change(guard, change)).await
    }

    /// Does something on a thread that may wait.
    #[cfg(feature = "tokio")]
    async fn aside<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        // CHECK(t7-works-aside): a disk can take seconds, and a panic would be its caller's.
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => done,
            Err(error) => Err(super::not_done(operation, self.file.path(), error)),
        }
    }
}
