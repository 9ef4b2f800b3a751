//! Where the commands work: the server's claim, and what lies in it.
//!
//! ```text
//! <claim>/files/bin        helper programs, first in the PATH of every command
//! <claim>/files/session    the working directory of every command
//! ```
//!
//! Invariants: a command is started through the claim and in no other way, so that the registry knows
//! it (p1); none is started once the claim was given up.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mortmain::{Claim, Closed, Command, ErrorKind, Namespace};

use crate::failure::{Failure, note};
use crate::helper;

/// A claim with its helper programs and its session directory.
#[derive(Debug)]
pub(crate) struct Workplace {
    /// `None` once it was given up.
    claim: Mutex<Option<Claim>>,
    random: String,
    session: PathBuf,
    notes: PathBuf,
    /// The `PATH` of the commands.
    path: OsString,
}

impl Workplace {
    /// Makes a claim, and what lies in it.
    pub(crate) fn make(namespace: &Namespace, notes: Option<&Path>) -> Result<Workplace, Failure> {
        let claim = namespace.create().map_err(Failure::system)?;
        let [bin, session] = ["bin", "session"].map(|name| claim.path().join(name));
        let failed = |error| Failure::system(format_args!("cannot fill the claim: {error}"));
        fs::create_dir(&bin).and_then(|()| fs::create_dir(&session)).map_err(failed)?;
        helper::link_all(&bin).map_err(failed)?;
        let before = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([bin].into_iter().chain(env::split_paths(&before)));
        let path = path.map_err(|error| {
            Failure::given(format_args!(
                "a claim in {:?} has no place in PATH: {error}",
                namespace.root()
            ))
        })?;
        let notes = match notes {
            Some(notes) => std::path::absolute(notes).map_err(Failure::given)?,
            None => claim.path().join("notes.json"),
        };
        let random = claim.random().to_string();
        Ok(Workplace { claim: Mutex::new(Some(claim)), random, session, notes, path })
    }

    /// What all names of its claim have in common.
    pub(crate) fn random(&self) -> &str {
        &self.random
    }

    /// Where the notes are kept.
    pub(crate) fn notes(&self) -> &Path {
        &self.notes
    }

    fn claim(&self) -> MutexGuard<'_, Option<Claim>> {
        // It is there or it is not, whatever thread panicked with it.
        self.claim.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A command line for the shell; `None` once the claim was given up.
    pub(crate) fn command(&self, line: &str) -> Option<Command> {
        let mut command = self.claim().as_ref()?.command("sh");
        command.args(["-c", "--", line]).current_dir(&self.session);
        command.env("PATH", &self.path);
        command.env(helper::SESSION, &self.session).env(helper::NOTES, &self.notes);
        // The server's own input is what the client says to it.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Some(command)
    }

    /// Gives the claim up. What still uses it goes on, and the sweep of a later start removes it.
    pub(crate) fn close(&self) {
        let Some(claim) = self.claim().take() else { return };
        match claim.close() {
            Ok(Closed::Removed) => {}
            Ok(_) => note("its claim is left to the next start's sweep"),
            // Dropped with the error, the claim is released.
            Err(refused) if refused.error.kind() == ErrorKind::InUse => note(format_args!(
                "its claim stays until what uses it has ended, and then goes with the next start: {}",
                refused.error.reason()
            )),
            Err(refused) => note(format_args!("its claim stays: {}", refused.error)),
        }
    }
}
