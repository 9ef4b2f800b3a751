//! Deaths: of one process, of forked copies, and of whole trees.

use super::Outcome;
use super::act::gone;
use super::container::kill_inside;
use super::stage::{Serving, Stage};
use crate::scenario::telling::not_running;
use crate::wait::Watch;

impl Stage<'_> {
    /// Kills a server, a sweeper or a command.
    pub(super) fn kill(&mut self, who: &str, unreaped: bool) -> Outcome<()> {
        if let Some(serving) = self.servers.get_mut(who) {
            if unreaped {
                let watch = Watch::open(serving.pid())?;
                let watch = watch.ok_or_else(|| not_running(who))?;
                watch.kill()?;
                gone(&watch)?;
                serving.uses = false;
                return Ok(());
            }
            return self.reap(who);
        }
        if let Some(mut sweeper) = self.sweepers.remove(who) {
            kill_inside(&self.story.sweeper(who).surroundings, &sweeper)?;
            sweeper.kill();
            return Ok(());
        }
        let running = self.running(who)?;
        running.lives(who)?;
        running.watch.kill()?;
        running.gone()
    }

    /// Kills a server and reaps it. What is below it lives on.
    pub(super) fn reap(&mut self, server: &str) -> Outcome<()> {
        let mut serving = self.servers.remove(server).ok_or_else(|| not_running(server))?;
        self.kill_owner(server, &mut serving)?;
        // The guard would end what it left behind, which is what the story is about.
        self.dead.push(serving);
        Ok(())
    }

    /// Kills the owner of a claim, whom the process that was started may not take along.
    fn kill_owner(&self, server: &str, serving: &mut Serving) -> Outcome<()> {
        let described = self.story.server(server);
        if let (Some(owner), true) = (&serving.owner, described.background) {
            owner.kill()?;
        }
        // Who made a namespace takes its first process along, who only entered one does not.
        if !described.first {
            kill_inside(&described.surroundings, &serving.process)?;
        }
        serving.process.kill();
        serving.owner.as_ref().map_or(Ok(()), gone)
    }

    /// Lets a server or a command end by itself.
    pub(super) fn exit(&mut self, who: &str) -> Outcome<()> {
        if let Some(mut serving) = self.servers.remove(who) {
            let _status = serving.process.end("exit");
            self.dead.push(serving);
            return Ok(());
        }
        self.running(who)?.exits()
    }

    /// Kills the copies that a server has forked and that live on.
    pub(super) fn kill_copies(&mut self, server: &str) -> Outcome<()> {
        let copies = self.copies.remove(server).ok_or_else(|| not_running("a copy"))?;
        kill(&copies)
    }

    /// Kills a server and everything below it, as whoever started it does who starts it anew.
    pub(super) fn kill_tree(&mut self, server: &str) -> Outcome<()> {
        let mut serving = self.servers.remove(server).ok_or_else(|| not_running(server))?;
        self.kill_owner(server, &mut serving)?;
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
