//! One file that is read, changed and written as a whole, under a lock (t1–t6).
//!
//! What stands at the name is always a whole content: a new one is written beside
//! it, under a fixed name, is on the disk before it gets the name, and the name is
//! on the disk before the write is said to be done. Whoever is killed in between
//! leaves the old content or the new one, and at most one file beside it, which
//! the next write takes away.

use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::lock::{Held, LockFile, obstacle, uninterrupted};
use crate::sys::{Answer, Errno, Fd, Kernel, Kind, Name, PathBytes};

/// Bytes that one read asks for.
const READ_BYTES: u32 = 64 * 1024;

/// The mode of a file that was not there.
const FRESH_MODE: u32 = 0o600;

/// A file, with the lock that its writers take.
#[derive(Debug)]
pub struct StoreFile<K: Kernel> {
    lock: LockFile<K>,
    name: Name,
    /// What is being written.
    beside: Name,
    /// What could not be understood.
    aside: Name,
    path: PathBytes,
    bytes_max: u64,
}

impl<K: Kernel> Clone for StoreFile<K> {
    fn clone(&self) -> StoreFile<K> {
        StoreFile {
            lock: self.lock.clone(),
            name: self.name.clone(),
            beside: self.beside.clone(),
            aside: self.aside.clone(),
            path: self.path.clone(),
            bytes_max: self.bytes_max,
        }
    }
}

impl<K: Kernel> StoreFile<K> {
    /// The file `name` in the directory `dir`, which must exist.
    ///
    /// # Errors
    /// As [`LockFile::open`]; [`ErrorKind::System`] when the name is too long for
    /// those of the files beside it.
    pub fn open(kernel: &K, dir: &PathBytes, name: Name) -> Result<StoreFile<K>, Error> {
        let path = dir.join(name.bytes());
        let named = |before: &[u8], after: &[u8]| {
            Name::new(&[before, name.bytes(), after].concat())
                .ok_or_else(|| Error::system("store", &path, Errno::ENAMETOOLONG))
        };
        let (beside, aside) = (named(b".", b".new")?, named(b"", b".corrupt")?);
        let lock = LockFile::open(kernel, dir, named(b"", b".lock")?)?;
        Ok(StoreFile { lock, name, beside, aside, path, bytes_max: u64::MAX })
    }

    /// The longest content that is read or written, in bytes.
    #[must_use]
    pub fn with_bytes_max(self, bytes_max: u64) -> StoreFile<K> {
        StoreFile { bytes_max, ..self }
    }

    /// The lock that a writer has to hold.
    #[must_use]
    pub fn lock(&self) -> &LockFile<K> {
        &self.lock
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &PathBytes {
        &self.path
    }

    fn dir(&self) -> &Fd<K> {
        self.lock.dir()
    }

    /// The content, whole; `None` when there is no file. It needs no lock, since
    /// the file that was opened is never written to again.
    ///
    /// # Errors
    /// * [`ErrorKind::Obstructed`]: what stands at the name is no regular file.
    /// * [`ErrorKind::TooLarge`]: it is longer than the limit.
    /// * [`ErrorKind::System`]: a call failed.
    pub fn read(&self) -> Result<Option<Vec<u8>>, Error> {
        let fail = |errno| Error::system("read", &self.path, errno);
        let file = match uninterrupted(|| self.dir().open_file(&self.name)) {
            Ok(file) => file,
            Err(Errno::ENOENT) => return Ok(None),
            Err(errno) => {
                return Err(
                    obstacle(errno).map_or_else(|| fail(errno), |by| self.obstructed("read", by))
                );
            }
        };
        let mut content = Vec::new();
        loop {
            let offset = content.len() as u64;
            let more = uninterrupted(|| file.read(offset, READ_BYTES)).map_err(fail)?;
            if more.is_empty() {
                return Ok(Some(content));
            }
            content.extend_from_slice(&more);
            self.fits("read", content.len() as u64)?;
        }
    }

    fn obstructed(&self, operation: &'static str, by: &str) -> Error {
        let text = alloc::format!("{by} stands where the file would be");
        Error::because(ErrorKind::Obstructed, operation, &self.path, text)
    }

    fn fits(&self, operation: &'static str, bytes: u64) -> Result<(), Error> {
        // CHECK(t4-bounded): a file that somebody made endless would take all memory.
        if bytes > self.bytes_max {
            let text = alloc::format!("it is longer than {} bytes", self.bytes_max);
            return Err(Error::because(ErrorKind::TooLarge, operation, &self.path, text));
        }
        Ok(())
    }

    /// Puts a new content in the place of the old one. The lock is proof that
    /// nobody else does.
    ///
    /// # Errors
    /// The old content stands, but where the very last call fails: then the new one
    /// does, and may not outlast a power cut.
    /// * [`ErrorKind::Obstructed`]: what stands at the name is no regular file.
    /// * [`ErrorKind::TooLarge`], [`ErrorKind::NoSpace`], [`ErrorKind::System`].
    ///
    /// # Panics
    /// When the lock is another file's.
    ///
    /// # Crash behaviour
    /// Killed at any call, the caller leaves the old content or the new one, and at
    /// most one file beside it, which the next write removes. After a power cut it
    /// is the same, and the new one if this had returned.
    pub fn write(&self, lock: &Held<K>, content: &[u8]) -> Result<(), Error> {
        let fail = |errno| Error::system("write", &self.path, errno);
        self.is_locked_by(lock);
        self.fits("write", content.len() as u64)?;
        let mode = self.mode()?;
        // CHECK(t3-leftover-goes): whoever was killed while it wrote would be in every later one's
        // way.
        match self.dir().unlink(&self.beside) {
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(errno) => return Err(fail(errno)),
        }
        let named = self
            .write_beside(content, mode)
            .and_then(|()| self.dir().rename(&self.beside, &self.name));
        if let Err(errno) = named {
            // CHECK(t3-failed-goes): on a full disk it takes the room that the next one needs.
            let _ = self.dir().unlink(&self.beside);
            return Err(fail(errno));
        }
        // CHECK(t2-sync-directory): the name may stand for the old content again after a power cut
        // for half a minute.
        uninterrupted(|| self.dir().sync()).map_err(fail)?;
        Ok(())
    }

    fn is_locked_by(&self, lock: &Held<K>) {
        // CHECK(t4-own-lock): under another file's lock two could write this one at once.
        assert!(lock.path() == self.lock.path(), "another file's lock is no proof");
    }

    /// The mode that the new file is to have: the old one's.
    fn mode(&self) -> Result<u32, Error> {
        match self.dir().stat_at(&self.name) {
            Ok(stat) if stat.kind == Kind::File => Ok(stat.mode & 0o777),
            Ok(stat) => Err(self.obstructed("write", stat.kind.word())),
            Err(Errno::ENOENT) => Ok(FRESH_MODE),
            Err(errno) => Err(Error::system("write", &self.path, errno)),
        }
    }

    fn write_beside(&self, content: &[u8], mode: u32) -> Answer<()> {
        let file = uninterrupted(|| self.dir().create_file(&self.beside))?;
        // CHECK(t6-keeps-mode): what others may read they could not read after the first write.
        if mode != FRESH_MODE {
            file.chmod(mode)?;
        }
        let mut written = 0;
        while written < content.len() {
            let count = uninterrupted(|| file.write(written as u64, &content[written..]))?;
            // CHECK(t1-whole): a call may write a part, when a disk is nearly full or a signal comes.
            written = written.saturating_add(usize::try_from(count).unwrap_or(usize::MAX));
        }
        // CHECK(t1-sync-content): after a power cut the name may stand for an empty file otherwise.
        uninterrupted(|| file.sync())?;
        Ok(())
    }

    /// Puts a content aside that cannot be understood, and says so. Where there is
    /// one already, it stays where it is: nothing that somebody may need is lost.
    ///
    /// # Panics
    /// As [`StoreFile::write`].
    pub fn put_aside(&self, lock: &Held<K>, why: &str) -> Error {
        self.is_locked_by(lock);
        let aside = &self.aside;
        let done = match self.dir().stat_at(aside) {
            Err(Errno::ENOENT) => match self.dir().rename(&self.name, aside) {
                Ok(()) => alloc::format!("it is kept as {aside}"),
                Err(errno) => alloc::format!("it stays, since it could not be put aside: {errno}"),
            },
            Err(errno) => alloc::format!("it stays, since {aside} could not be looked at: {errno}"),
            // CHECK(t5-not-over-another): the one before may be the only good copy.
            Ok(_) => alloc::format!("it stays, because there is already {aside}"),
        };
        let text = alloc::format!("{why}; {done}");
        // It need not outlast a power cut: then the content is found at its name again.
        Error::because(ErrorKind::Corrupt, "update", &self.path, text)
    }
}
