//! A claim, as users of the library hold it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::prelude::rust_2024::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::command::Command;
use super::{holding, path_buf};
use crate::claim::Closed;
use crate::error::{Error, ErrorKind};
use crate::grammar::Random;
use crate::protocol;
use crate::sys::{Host, PathBytes};

/// A directory that this process owns, and that is reclaimed safely when the
/// process is killed.
///
/// Dropping it closes it as [`Claim::close`] does, silently; what may not be
/// removed yet, because a command still uses it, is left to the sweeps. In a
/// forked child that did not exec, dropping it closes its descriptors and does
/// nothing else.
///
/// # Crash behaviour
/// After a SIGKILL of this process the claim stays for as long as a command
/// that was started through it runs; the first sweep after that removes it.
#[derive(Debug)]
#[must_use = "a claim that is dropped is removed at once"]
pub struct Claim {
    shared: Arc<Shared>,
    files: PathBuf,
}

/// What a claim and its commands share.
#[derive(Debug)]
pub(super) struct Shared {
    /// `None` once the claim was given up.
    claim: Mutex<Option<protocol::Claim<Host>>>,
    random: Random,
    path: PathBytes,
    /// The owner.
    pid: u32,
}

impl Shared {
    /// Does something with the claim, if it was not given up.
    pub(super) fn with<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut protocol::Claim<Host>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match self.slot(operation)?.as_mut() {
            Some(claim) => work(claim),
            None => Err(self.closed(operation)),
        }
    }

    /// The claim's place, for the owner.
    ///
    /// In a forked child the lock may be held by a thread that does not exist
    /// there, so it is not even asked for.
    fn slot(
        &self,
        operation: &'static str,
    ) -> Result<MutexGuard<'_, Option<protocol::Claim<Host>>>, Error> {
        // CHECK(c6-no-lock-in-fork): it would wait for ever.
        if std::process::id() != self.pid {
            let text = std::format!("it belongs to process {}", self.pid);
            return Err(Error::because(ErrorKind::Forked, operation, &self.path, text));
        }
        Ok(self.claim.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn closed(&self, operation: &'static str) -> Error {
        let text = "it was given up before".into();
        Error::because(ErrorKind::Closed, operation, &self.path, text)
    }

    pub(super) fn path(&self) -> &PathBytes {
        &self.path
    }
}

/// A claim that could not be closed, and why.
#[derive(Debug)]
pub struct CloseError {
    /// The claim, still held.
    pub claim: Claim,
    /// Why.
    pub error: Error,
}

impl core::fmt::Display for CloseError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.error.fmt(f)
    }
}

impl core::error::Error for CloseError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.error.source()
    }
}

impl Claim {
    pub(super) fn new(claim: protocol::Claim<Host>) -> Claim {
        let files = path_buf(claim.files());
        let (random, path) = (claim.random(), claim.path());
        let (pid, claim) = (std::process::id(), Mutex::new(Some(claim)));
        Claim { shared: Arc::new(Shared { claim, random, path, pid }), files }
    }

    /// The directory to use: it is empty, of mode 0700, and may be filled,
    /// emptied and even removed at will.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.files
    }

    /// What the claim is called in its name and in `MORTMAIN_CLAIM`.
    #[must_use]
    pub fn random(&self) -> Random {
        self.shared.random
    }

    /// A command that may use the claim. The claim then stays at least until
    /// the command, and everything in its process group, has ended, whatever
    /// becomes of this process.
    ///
    /// The working directory is not changed.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        Command::new(Arc::clone(&self.shared), program.as_ref())
    }

    /// Removes the claim, if nothing uses it any more.
    ///
    /// # Errors
    /// The claim comes back, still held:
    /// * [`ErrorKind::InUse`]: a command runs, or might, or a claim or a mount
    ///   lies inside; the error names it.
    /// * [`ErrorKind::Forked`]: this is a forked child of its owner.
    /// * [`ErrorKind::LeaseLost`]: it was renamed, or its descriptor closed by
    ///   somebody else.
    /// * [`ErrorKind::System`]: a call failed before it was given up.
    ///
    /// # Crash behaviour
    /// Killed at any system call, this process leaves what the next sweep
    /// removes.
    pub fn close(self) -> Result<Closed, CloseError> {
        self.give_up("close", protocol::Claim::close)
    }

    /// Gives the claim up to the sweeps: its commands may go on using it, and
    /// the first sweep after their end removes it, even while this process
    /// lives.
    ///
    /// # Errors
    /// As [`Claim::close`], but for [`ErrorKind::InUse`].
    ///
    /// # Crash behaviour
    /// As [`Claim::close`].
    pub fn release(self) -> Result<(), CloseError> {
        self.give_up("release", protocol::Claim::release)
    }

    fn give_up<T>(
        self,
        operation: &'static str,
        how: impl FnOnce(protocol::Claim<Host>) -> Result<T, protocol::CloseError<Host>>,
    ) -> Result<T, CloseError> {
        match self.try_give_up(operation, how) {
            Ok(done) => Ok(done),
            Err(error) => Err(CloseError { claim: self, error }),
        }
    }

    /// Holds the claim's place to the end, so that no other thread finds it
    /// empty while the claim may still come back.
    fn try_give_up<T>(
        &self,
        operation: &'static str,
        how: impl FnOnce(protocol::Claim<Host>) -> Result<T, protocol::CloseError<Host>>,
    ) -> Result<T, Error> {
        let mut slot = self.shared.slot(operation)?;
        let claim = slot.take().ok_or_else(|| self.shared.closed(operation))?;
        match how(claim) {
            Ok(done) => {
                holding().remove(&self.shared.random);
                Ok(done)
            }
            Err(protocol::CloseError { claim, error }) => {
                *slot = Some(*claim);
                Err(error)
            }
        }
    }
}

impl AsRef<Path> for Claim {
    fn as_ref(&self) -> &Path {
        self.path()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        match self.shared.slot("close") {
            Ok(mut slot) => {
                if let Some(claim) = slot.take() {
                    drop(claim);
                    holding().remove(&self.shared.random);
                }
            }
            // In a forked child: its copies of the descriptors are closed, if its copy of the lock
            // was not caught in the middle of something.
            Err(_) => match self.shared.claim.try_lock() {
                Ok(mut slot) => drop(slot.take()),
                Err(TryLockError::Poisoned(poisoned)) => drop(poisoned.into_inner().take()),
                Err(TryLockError::WouldBlock) => {}
            },
        }
    }
}
