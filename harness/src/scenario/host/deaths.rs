//! Deaths of more than one process: of forked copies, and of whole trees.

use super::Outcome;
use super::act::{gone, not_running};
use super::stage::Stage;
use crate::wait::Watch;

impl Stage<'_> {
    /// Kills the copies that a server has forked and that live on.
    pub(super) fn kill_copies(&mut self, server: &str) -> Outcome<()> {
        let copies = self.copies.remove(server).ok_or_else(|| not_running("a copy"))?;
        kill(&copies)
    }

    /// Kills a server and everything below it, as whoever started it does who starts it anew.
    pub(super) fn kill_tree(&mut self, server: &str) -> Outcome<()> {
        let mut serving = self.servers.remove(server).ok_or_else(|| not_running(server))?;
        serving.process.kill();
        // Its guard ends what it left behind.
        drop(serving);
        // A daemon is below nobody.
        let below = self.commands.values().filter(|running| running.by == server);
        for running in below {
            running.watch.kill()?;
            running.gone()?;
        }
        kill(&self.copies.remove(server).unwrap_or_default())
    }
}

/// Kills them all, and waits for their ends.
fn kill(all: &[Watch]) -> Outcome<()> {
    for watch in all {
        watch.kill()?;
    }
    all.iter().try_for_each(gone)
}
