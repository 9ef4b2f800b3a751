//! Lets the things happen that a story tells.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, mount_bind, unmount};
use rustix::process::Signal;

use super::files;
use super::plant;
use super::stage::Stage;
use super::{Failure, Outcome};
use crate::actor::Actor as Process;
use crate::actor::wire::{Disturbance, Done, Order, What};
use crate::processes::process;
use crate::reader::ReadErrorKind;
use crate::scenario::fields::Count;
use crate::scenario::story::{Action, Base, Deed, Disturbed, Place, Planted};
use crate::scenario::telling::{Doing, Ordered, WITNESS, each, not_running};
use crate::wait::{Deadline, Watch};

/// Longer than anything takes on a loaded machine.
const PATIENCE_SECS: u64 = 20;

impl Stage<'_> {
    /// Lets something happen.
    pub(super) fn let_happen(&mut self, action: &Action) -> Outcome<()> {
        match action {
            Action::Start { server, sweeps, disturbed, fails } => {
                self.start(server, *sweeps, *disturbed, fails.as_deref())
            }
            Action::Spawn { commands, disturbed, held } => {
                each(commands, |command| self.spawn(command, *disturbed, *held))
            }
            Action::Kill { who, unreaped } => each(who, |who| self.kill(who, *unreaped)),
            Action::Exit(who) => each(who, |who| self.exit(who)),
            Action::Stop(who) => each(who, |who| self.signal(who, Signal::STOP, 'T')),
            Action::Continue(who) => each(who, |who| self.go_on(who)),
            Action::Close { server, disturbed, answer, fails } => {
                self.close(server, *disturbed, answer.as_deref(), fails.as_deref())
            }
            Action::Release(server) => {
                self.ask(server, Order::Release, |done| *done == Done::Released)?;
                self.serving(server)?.uses = false;
                Ok(())
            }
            Action::Drop(server) => {
                self.ask(server, Order::Drop, |done| *done == Done::Dropped)?;
                self.serving(server)?.uses = false;
                Ok(())
            }
            Action::Fork { server, copy } => self.fork(server, *copy),
            Action::Odd(server, oddity) => self.odd(server, *oddity),
            Action::Sweep { by, disturbed, no_canary } => {
                self.sweep(by, *disturbed, no_canary.is_some())
            }
            Action::Plant { what, at, depth, name_bytes, if_there } => {
                if *if_there && !self.is_there(at) {
                    return Ok(());
                }
                self.plant(*what, at, *depth, *name_bytes)
            }
            Action::Link { text, at } => self.plant_link(text, at),
            Action::Forge { at, change } => self.forge(at, *change),
            Action::Duplicate { what, to } => self.duplicate(what, to),
            Action::Move { what, to } => self.move_to(what, to),
            // What is gone already need not be taken away.
            Action::Remove(at) if !self.is_there(at) => Ok(()),
            Action::Remove(at) => {
                let path = self.resolve_to_change(at)?;
                Ok(plant::remove(&path)?)
            }
            Action::Mount { what, at, elsewhere } => {
                let (what, at) = (self.resolve(what)?, self.resolve(at)?);
                if *elsewhere {
                    return self.mount_elsewhere(&what, &at);
                }
                mount_bind(what, &at).map_err(io::Error::from)?;
                self.mounts.push(at);
                Ok(())
            }
            Action::Unmount(at) => {
                let at = self.resolve(at)?;
                unmount(&at, UnmountFlags::empty()).map_err(io::Error::from)?;
                self.mounts.retain(|other| *other != at);
                Ok(())
            }
            Action::Age { what, to } => Ok(plant::set_times(&self.resolve(what)?, *to)?),
            Action::Chmod { at, to } => {
                let mode = Permissions::from_mode(*to);
                Ok(fs::set_permissions(self.resolve(at)?, mode)?)
            }
            Action::Chown { at, to } => Ok(files::chown(&self.resolve(at)?, *to)?),
            Action::Chattr { at, immutable } => files::chattr(&self.resolve(at)?, *immutable),
            Action::Lock(at) => self.lock(at),
            Action::Unlock(at) => self.unlock(at),
            Action::TakeLock { server, file, how } => self.take_lock(server, file, how),
            Action::GiveLockBack { server, file, fails } => {
                self.give_lock_back(server, file, fails.as_deref())
            }
            Action::Write { by, file, text, how } => self.write(by, file, text, how),
            Action::Read { server, file, answer, fails } => {
                self.read(server, file, answer.as_deref(), fails.as_deref())
            }
            Action::TakeSandbox { server, at, how } => self.take_sandbox(server, at, how),
            Action::TakeSockets { server, answer, fails } => {
                self.take_sockets(server, answer.as_deref(), fails.as_deref())
            }
            Action::Fill { disk, with, leaving } => {
                self.fill(disk, *with, leaving.map_or(0, |count| self.number(count)))
            }
            Action::Gather(crowd) => self.gather(crowd),
            Action::Reclaim(server) => self.reclaim(server),
            Action::KillCopies(server) => self.kill_copies(server),
            Action::KillTree(server) => self.kill_tree(server),
            Action::StartStranger { stranger, pid_of } => {
                self.start_stranger(stranger, pid_of.as_deref())
            }
            Action::Empty(at) => {
                let path = self.resolve_to_change(at)?;
                Ok(plant::empty(&path)?)
            }
            Action::ByCommand { command, does, at } => {
                let path = self.resolve_to_change(at)?;
                self.running(command)?.does_to(command, word(*does), &path)
            }
            Action::Tmpfiles(age) => self.tmpfiles(age),
        }
    }

    fn signal(&mut self, who: &str, signal: Signal, state: char) -> Outcome<()> {
        let watch = match self.servers.get(who) {
            Some(serving) => Watch::open(serving.pid())?.ok_or_else(|| not_running(who))?,
            None => self.running(who)?.watch.try_clone()?,
        };
        watch.signal(signal)?;
        // There is no event for it that one who is not the parent could wait for.
        let deadline = Deadline::secs(PATIENCE_SECS);
        while signal == Signal::STOP
            && process(watch.pid())?.is_some_and(|info| info.state != state)
        {
            if deadline.passed() {
                return Err(Failure::new("waited", format!("`{who}` does not stop")));
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    fn go_on(&mut self, who: &str) -> Outcome<()> {
        if self.commands.get(who).is_some_and(|running| running.held) {
            return self.let_go(who);
        }
        let stopped = self.servers.get_mut(who).and_then(|serving| serving.stopped.take());
        if let Some(doing) = stopped {
            doing.check_stopped(who)?;
            let serving = self.serving(who)?;
            serving.process.go_on();
            let ordered = hears(&mut serving.process, "what was stopped to be done")?;
            return self.went_on(who, &doing, ordered);
        }
        if let Some(mut sweeper) = self.sweepers.remove(who) {
            sweeper.go_on();
            return match hears(&mut sweeper, "a sweep that was stopped to end")? {
                Ordered::Done(Done::Swept(swept)) => {
                    self.heard.begin();
                    self.note_sweep(swept);
                    Ok(())
                }
                other => Err(other.unexpected()),
            };
        }
        self.signal(who, Signal::CONT, 'T')
    }

    /// A server that had stopped has ended what it was at.
    fn went_on(&mut self, server: &str, doing: &Doing, ordered: Ordered) -> Outcome<()> {
        match (doing, ordered) {
            (Doing::Creating, Ordered::Done(done)) => self.created(server, &done),
            (Doing::Beside, Ordered::Done(_)) => Ok(()),
            (Doing::Closing, Ordered::Done(_)) => {
                self.serving(server)?.uses = false;
                Ok(())
            }
            (Doing::Sweeping, Ordered::Done(Done::Swept(swept))) => {
                self.heard.begin();
                self.note_sweep(swept);
                Ok(())
            }
            (Doing::Spawning(command), Ordered::Done(Done::Spawned { .. })) => {
                self.spawned(command)
            }
            (_, other) => Err(other.unexpected()),
        }
    }

    /// The path of a place that is about to be changed.
    pub(super) fn resolve_to_change(&mut self, place: &Place) -> Outcome<PathBuf> {
        let path = self.resolve(place)?;
        match &place.base {
            Base::Root => self.planted.push(path.clone()),
            Base::Claim(server) => {
                if place.rest.is_empty() {
                    self.planted.push(path.clone());
                }
                if let Some(claim) = self.claims.get_mut(server) {
                    let witness = Path::new("files").join(WITNESS.0);
                    claim.touched |= witness.starts_with(&place.rest);
                }
            }
            Base::Shared | Base::Precious(_) => {}
        }
        Ok(path)
    }

    /// Asks a server for something that has to go well.
    pub(super) fn ask(
        &mut self,
        server: &str,
        order: Order,
        good: impl Fn(&Done) -> bool,
    ) -> Outcome<Done> {
        let serving = self.serving(server)?;
        serving.process.order(order.clone());
        match hears(&mut serving.process, "an answer")? {
            Ordered::Done(done) if good(&done) => Ok(done),
            other => Err(other.unexpected().note(format!("it was asked to {order:?}"))),
        }
    }

    pub(super) fn disturbance(&self, disturbed: Option<(Disturbed, Count)>) -> Option<Disturbance> {
        disturbed.map(|(how, count)| match (how, count) {
            (Disturbed::Stopped, Count::First(call)) => Disturbance::StopBeforeFirst(call.into()),
            (Disturbed::Killed, Count::First(call)) => Disturbance::KillBeforeFirst(call.into()),
            (Disturbed::Stopped, _) => Disturbance::StopBefore(self.number(count)),
            (Disturbed::Killed, _) => Disturbance::KillBefore(self.number(count)),
        })
    }

    pub(super) fn number(&self, count: Count) -> u64 {
        match count {
            Count::Fixed(number) => number,
            Count::Round => self.round,
            // Only a call has a name, and is found by it.
            Count::First(_) => 1,
        }
    }
}

/// Waits for what an actor says about its order.
pub(super) fn hears(process: &mut Process, what: &str) -> Outcome<Ordered> {
    match process.hears(what) {
        Ok(What::Done(done)) => Ok(Ordered::Done(done)),
        Ok(What::Failed { kind, message }) => Ok(Ordered::Failed { kind, message }),
        Ok(What::Stopped { .. }) => Ok(Ordered::Stopped),
        Err(error) if matches!(error.kind(), ReadErrorKind::Ended) => {
            // By its own hand, as it was told to; anything else is told with what it said.
            match process.is_killed() {
                Ok(true) => Ok(Ordered::Killed),
                _ => Err(Failure::new("actor", error.to_string())),
            }
        }
        Err(error) => Err(Failure::new("L2", error.to_string())),
    }
}

pub(super) fn gone(watch: &Watch) -> Outcome<()> {
    let gone = watch.gone(Deadline::secs(PATIENCE_SECS));
    gone.map_err(|error| Failure::new("waited", error.to_string()))
}

/// What a command is told for it.
fn word(does: Deed) -> &'static str {
    match does {
        Deed::Remove => "remove",
        Deed::Empty => "empty",
        Deed::Plant(Planted::Fifo) => "fifo",
        Deed::Plant(Planted::Directory) => "directory",
        Deed::Plant(Planted::DanglingLink) => "dangling-link",
        // The reader lets no command plant anything else.
        Deed::Plant(_) => "file",
    }
}
