//! The public face: the protocol on the real kernel, in terms of std.
//!
//! The only part of the crate with a static, a lock or a thread. It adds no
//! rule of its own.

pub mod activation;
mod claim;
mod command;
mod lock;
mod sandbox;
mod store;
mod sweep;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use self::claim::{Claim, CloseError};
pub use self::command::{Child, Command};
pub use self::lock::{FileLock, FileLockGuard, LockTable};
pub use self::sandbox::{Sandbox, Site as SandboxSite};
pub use self::store::Store;
pub use self::sweep::{BackgroundSweep, SweepOptions};
use crate::error::{Error, ErrorKind};
use crate::evidence::{Obstacle, Seen};
use crate::grammar::{Prefix, Random};
use crate::protocol::{self, Root};
use crate::report::Report;
use crate::stray::Strays;
use crate::sys::{Errno, Host, Name, PathBytes};
use std::prelude::rust_2024::*;

/// The claims that this process holds, whatever namespace made them: a claim
/// whose record names this process but that is not among them was left by the
/// program that this one replaced.
static HOLDING: Mutex<BTreeSet<Random>> = Mutex::new(BTreeSet::new());

fn holding() -> MutexGuard<'static, BTreeSet<Random>> {
    // A set of plain values is whole, whatever thread panicked beside it.
    HOLDING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bytes(path: &Path) -> PathBytes {
    PathBytes(path.as_os_str().as_bytes().into())
}

fn path_buf(path: PathBytes) -> PathBuf {
    PathBuf::from(OsString::from_vec(path.0))
}

/// A path's directory, as the kernel names it, and its last name.
fn place_of(path: &Path, operation: &'static str) -> Result<(PathBytes, OsString), Error> {
    let fail = |error: &std::io::Error| {
        let errno = error.raw_os_error().map_or(Errno::EINVAL, Errno);
        Error::system(operation, &bytes(path), errno)
    };
    let absolute = std::path::absolute(path).map_err(|error| fail(&error))?;
    let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Err(Error::system(operation, &bytes(path), Errno::EINVAL));
    };
    let parent = std::fs::canonicalize(parent).map_err(|error| fail(&error))?;
    Ok((bytes(&parent), name.into()))
}

/// What became of work that the runtime was given to do aside.
#[cfg(feature = "tokio")]
fn not_done(operation: &'static str, path: &PathBytes, error: tokio::task::JoinError) -> Error {
    let (kind, text) = match error.try_into_panic() {
        Ok(said) => {
            let said = said
                .downcast_ref::<&str>()
                .copied()
                .map(String::from)
                .or_else(|| said.downcast_ref::<String>().cloned());
            let said = said.map_or_else(String::new, |said| std::format!(": {said}"));
            (ErrorKind::Panicked, std::format!("its code panicked{said}"))
        }
        Err(_) => (ErrorKind::System, "the runtime is being shut down".into()),
    };
    Error::because(kind, operation, path, text)
}

/// A name as the seam takes it.
fn name_in(dir: &PathBytes, name: &OsStr, operation: &'static str) -> Result<Name, Error> {
    let name = name.as_bytes();
    Name::new(name).ok_or_else(|| Error::system(operation, &dir.join(name), Errno::ENAMETOOLONG))
}

/// The claims of one program: a prefix, and the directory that they lie in.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let scratch = mortmain::sandbox!("doc-namespace")?;
/// # let root = scratch.path();
/// use mortmain::Namespace;
///
/// let namespace = Namespace::at(root, "my-tool")?;
/// println!("{}", namespace.sweep()); // what killed instances left behind
///
/// let claim = namespace.create()?;
/// std::fs::write(claim.path().join("scratch"), "…")?;
/// let mut child = claim.command("sh").args(["-c", "cat scratch"]).current_dir(claim.path()).spawn()?;
/// assert!(child.wait()?.success());
/// claim.close()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Namespace {
    root: Root<Host>,
}

impl Namespace {
    /// Claims of `prefix` in the system's temporary directory.
    ///
    /// # Errors
    /// * [`ErrorKind::InvalidPrefix`]: see [`Prefix`].
    /// * [`ErrorKind::System`]: there is no such directory.
    #[expect(
        clippy::disallowed_methods,
        reason = "the default root is the system's, by its own name"
    )]
    pub fn new(prefix: &str) -> Result<Namespace, Error> {
        Namespace::at(std::env::temp_dir(), prefix)
    }

    /// Claims of `prefix` in the directory `root`, which must exist. It is
    /// opened here, once; a relative path is made absolute first.
    ///
    /// # Errors
    /// As [`Namespace::new`].
    pub fn at(root: impl AsRef<Path>, prefix: &str) -> Result<Namespace, Error> {
        let root = root.as_ref();
        let absolute = std::path::absolute(root).unwrap_or_else(|_| root.into());
        let path = bytes(&absolute);
        let prefix = Prefix::new(prefix).ok_or_else(|| {
            let text = std::format!("`{}` is not a prefix", prefix.escape_debug());
            Error::because(ErrorKind::InvalidPrefix, "name claims in", &path, text)
        })?;
        Ok(Namespace { root: Root::open(&Host, path, prefix)? })
    }

    /// The directory that the claims lie in.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        path_buf(self.root.path().clone())
    }

    /// Who is recorded as the owner of a claim that a report names, for people
    /// to read; `None` where there is no record of it. It proves nothing: in
    /// another pid namespace the number is another process's.
    #[must_use]
    pub fn recorded_owner(&self, claim: &Name) -> Option<Seen> {
        self.root.recorded_owner(claim)
    }

    /// Makes a claim, owned by this process.
    ///
    /// # Errors
    /// * [`ErrorKind::Unprotected`]: locks there prove nothing; see
    ///   [`Namespace::create_unclaimed`].
    /// * [`ErrorKind::NoSpace`], [`ErrorKind::Contended`], [`ErrorKind::System`].
    ///
    /// # Crash behaviour
    /// Killed at any system call, this process leaves what the next sweep
    /// removes. A creation that fails leaves nothing, as far as the failing
    /// system lets it.
    pub fn create(&self) -> Result<Claim, Error> {
        let claim = self.root.create()?;
        holding().insert(claim.random());
        Ok(Claim::new(claim))
    }

    /// Makes a directory without protection: no sweep ever looks at it, this
    /// process removes it or nobody does.
    ///
    /// # Errors
    /// [`ErrorKind::NoSpace`], [`ErrorKind::System`].
    ///
    /// # Crash behaviour
    /// When this process is killed the directory stays for ever.
    pub fn create_unclaimed(&self) -> Result<Unclaimed, Error> {
        let inner = self.root.create_unclaimed()?;
        let path = path_buf(inner.path());
        Ok(Unclaimed { inner, path })
    }

    /// Removes one claim, by the name that a sweep tells it by, of which the
    /// caller says that nothing uses it: where a sweep keeps it because it cannot
    /// tell, since a command was started in another pid namespace, or the claim
    /// is damaged. Whatever lives keeps it as it does in a sweep. The report has
    /// one entry; with `dry_run` it says what would be done.
    ///
    /// # Errors
    /// * [`ErrorKind::NoSuchClaim`]: there is no claim of this name, or it is
    ///   another user's.
    /// * [`ErrorKind::System`]: a call failed before anything was looked at.
    ///
    /// # Crash behaviour
    /// Killed at any system call, it leaves the claim whole, or a tombstone that
    /// the next sweep judges again.
    pub fn reclaim_on_word(&self, name: impl AsRef<OsStr>, dry_run: bool) -> Result<Report, Error> {
        let bytes = name.as_ref().as_bytes();
        let name = Name::new(bytes).ok_or_else(|| {
            let text = "that is not the name of a claim";
            let operation = "reclaim on an operator's word";
            Error::because(ErrorKind::NoSuchClaim, operation, self.root.path(), text.into())
                .about(bytes)
        })?;
        let options = protocol::SweepOptions { dry_run, holding: holding().clone() };
        self.root.reclaim_on_word(&name, &options)
    }
}

impl Namespace {
    /// Looks at the *strays* in the root: directories that are no claims of any
    /// prefix, and whose name is `wanted`. Other programs left them, and nobody
    /// recorded who uses them; so no sweep looks at them. The answer says of each
    /// by which processes it is seen to be used, and what
    /// [`Namespace::adopt`] would do. Nothing is removed; the locks of the
    /// strays, and of the directories in them, are taken for a moment.
    ///
    /// A process is seen by the paths that lead to what it uses, whichever way
    /// they begin. So a stray with a common name, such as `lib`, may be kept by
    /// who uses another directory of that name; a name of its own helps.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let scratch = mortmain::sandbox!("doc-strays")?;
    /// # let root = scratch.path();
    /// # std::fs::create_dir(root.join("build-1f3a"))?;
    /// let namespace = mortmain::Namespace::at(root, "my-tool")?;
    /// let strays = namespace.strays(|name| name.as_encoded_bytes().starts_with(b"build-"))?;
    /// for stray in &strays.entries {
    ///     println!("{stray}"); // build-1f3a: kept: process 4242 `make` has its working directory in it
    /// }
    /// # assert_eq!(strays.entries.len(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::System`]: the root could not be listed, or it could not be
    /// found out who uses what.
    pub fn strays(&self, mut wanted: impl FnMut(&OsStr) -> bool) -> Result<Strays, Error> {
        self.root.strays(&mut |name| wanted(OsStr::from_bytes(name.bytes())))
    }

    /// Removes one stray, of which the caller says that it may go. He is
    /// contradicted by a lock on it, by every process that is seen to use it
    /// (asked when its lock is held, and again when it has lost its name), and by
    /// what forbids the removal of a claim: a mount, a locked directory, a
    /// directory of another user in it; and by a claim in it, which is for sweeps
    /// to judge. The answer has one entry.
    ///
    /// # Errors
    /// * [`ErrorKind::NoSuchStray`]: the name is a claim's, no directory's,
    ///   another user's directory's, or nothing's.
    /// * [`ErrorKind::System`]: a call failed before anything was looked at.
    ///
    /// # Crash behaviour
    /// Killed at any system call, it leaves the stray as it was, but for the mode
    /// of sealed directories of the caller's, or a tombstone, which the next sweep
    /// of this namespace judges and finishes.
    pub fn adopt(&self, name: impl AsRef<OsStr>) -> Result<Strays, Error> {
        let bytes = name.as_ref().as_bytes();
        let name = Name::new(bytes).ok_or_else(|| {
            let text = "that is not the name of a directory in it".into();
            Error::because(ErrorKind::NoSuchStray, "adopt from", self.root.path(), text)
                .about(bytes)
        })?;
        self.root.adopt(&name)
    }
}

/// A directory that no sweep ever looks at; see
/// [`Namespace::create_unclaimed`]. Dropping it removes it.
#[derive(Debug)]
#[must_use = "an unclaimed directory that is dropped is removed at once"]
pub struct Unclaimed {
    inner: protocol::Unclaimed<Host>,
    path: PathBuf,
}

impl Unclaimed {
    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it where it is, for good: nobody removes it any more.
    #[must_use]
    pub fn keep(self) -> PathBuf {
        self.inner.keep();
        self.path
    }

    /// Removes it; answers what stood in the way, and can then be asked again.
    ///
    /// # Errors
    /// [`ErrorKind::Forked`] in a forked child; [`ErrorKind::LeaseLost`] when
    /// its name stands for something else; [`ErrorKind::System`].
    pub fn remove(&mut self) -> Result<Vec<Obstacle>, Error> {
        self.inner.remove()
    }
}

impl AsRef<Path> for Unclaimed {
    fn as_ref(&self) -> &Path {
        self.path()
    }
}

impl AsRef<OsStr> for Unclaimed {
    fn as_ref(&self) -> &OsStr {
        self.path().as_os_str()
    }
}
