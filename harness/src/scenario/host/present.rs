//! Who is there while a story is told, and what can be asked of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::stage::{Serving, Stage};
use crate::processes::process;
use crate::scenario::telling::Doing;

/// Where in a claim something can be mounted.
pub(crate) const MOUNT_POINT: &str = "files/mounted";

/// Who is there now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Present {
    /// Servers that were started and are not reaped.
    pub(crate) servers: BTreeMap<String, Server>,
    /// Commands that live, and whether each is held before its exec.
    pub(crate) commands: BTreeMap<String, bool>,
    /// Sweepers that have stopped before a call.
    pub(crate) sweepers: BTreeSet<String>,
    /// Servers of which forked copies live.
    pub(crate) copied: BTreeSet<String>,
    /// The servers whose claims are at their places, under their own names.
    pub(crate) claims: BTreeSet<String>,
    /// Those of them in whose claims there is a directory for a mount.
    pub(crate) mount_points: BTreeSet<String>,
}

/// A server now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// What it can be asked for.
    pub(crate) state: State,
    /// Whether it has a claim and means to use it.
    pub(crate) uses: bool,
}

/// What a process is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It does what it is told.
    Listens,
    /// It has stopped before a call.
    Stopped,
    /// It waits for a command that is held before its exec.
    Waits,
    /// It has ended, and nobody has reaped it.
    Zombie,
}

impl Stage<'_> {
    /// Who is there now.
    pub(super) fn present(&self) -> io::Result<Present> {
        let mut present = Present::default();
        for (name, serving) in &self.servers {
            let state = state(serving)?;
            present.servers.insert(name.clone(), Server { state, uses: serving.uses });
        }
        for (name, running) in &self.commands {
            if !running.watch.is_gone()? {
                present.commands.insert(name.clone(), running.held);
            }
        }
        present.sweepers = self.sweepers.keys().cloned().collect();
        for (name, copies) in &self.copies {
            for copy in copies {
                if !copy.is_gone()? {
                    present.copied.insert(name.clone());
                }
            }
        }
        let whole = |name: &str, claim| self.check_whole(name, claim).is_ok();
        for (name, claim) in self.claims.iter().filter(|(name, claim)| whole(name, claim)) {
            present.claims.insert(name.clone());
            if self.path_of(claim).is_some_and(|path| path.join(MOUNT_POINT).is_dir()) {
                present.mount_points.insert(name.clone());
            }
        }
        Ok(present)
    }
}

/// Whether a server has ended that nobody has reaped.
pub(super) fn is_a_zombie(serving: &Serving) -> io::Result<bool> {
    Ok(process(serving.pid())?.is_none_or(|info| !info.lives()))
}

fn state(serving: &Serving) -> io::Result<State> {
    if is_a_zombie(serving)? {
        return Ok(State::Zombie);
    }
    Ok(match serving.stopped {
        None => State::Listens,
        Some(Doing::Held(_)) => State::Waits,
        Some(_) => State::Stopped,
    })
}
