//! Lets the things happen that a story tells.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, mount_bind, unmount};
use rustix::process::Signal;

use super::files;
use super::plant;
use super::stage::{Canary, Claim, Doing, Home, Serving, Stage, names_in};
use super::truth::{WITNESS, inode};
use super::{Failure, Outcome};
use crate::actor::Actor as Process;
use crate::actor::wire::{Disturbance, Done, Order, SweepHow, Swept, What};
use crate::processes::process;
use crate::reader::ReadErrorKind;
use crate::scenario::fields::Count;
use crate::scenario::story::{
    Action, Base, Copy, Deed, Disturbed, Oddity, Place, Planted, Sweeper,
};
use crate::wait::{Deadline, Watch};

/// Longer than anything takes on a loaded machine.
const PATIENCE_SECS: u64 = 20;

/// What an order came to that could be disturbed.
pub(super) enum Ordered {
    Done(Done),
    Failed { kind: String, message: String },
    Stopped,
    Killed,
}

impl Stage<'_> {
    /// Lets something happen.
    pub(super) fn act(&mut self, action: &Action) -> Outcome<()> {
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
            Action::Age { server, to } => self.age(server, *to),
            Action::Chmod { at, to } => {
                let mode = Permissions::from_mode(*to);
                Ok(fs::set_permissions(self.resolve(at)?, mode)?)
            }
            Action::Chown { at, to } => Ok(files::chown(&self.resolve(at)?, *to)?),
            Action::Chattr { at, immutable } => files::chattr(&self.resolve(at)?, *immutable),
            Action::Lock(at) => self.lock(at),
            Action::Unlock(at) => self.unlock(at),
            Action::Fill { disk, with, leaving } => {
                self.fill(disk, *with, leaving.map_or(0, |count| self.number(count)))
            }
            Action::Gather(crowd) => self.gather(crowd),
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

    fn start(
        &mut self,
        server: &str,
        sweeps: bool,
        disturbed: Option<(Disturbed, Count)>,
        fails: Option<&str>,
    ) -> Outcome<()> {
        let process = self.start_server(server)?;
        let serving = Serving { process, uses: false, stopped: None, owner: None };
        self.servers.insert(server.into(), serving);
        if sweeps {
            self.sweep(&[server.to_owned()], None, false)?;
        }
        let root = self.root_for(server)?;
        let before = names_in(&root);
        if let Some(more) = self.server_of(server).descriptors {
            let order = Order::LimitDescriptors { more: self.number(more) };
            self.ask(server, order, |done| *done == Done::Limited)?;
        }
        let order = Order::Create {
            prefix: self.prefix_of(server),
            root,
            tapped: self.is_disturbed(server),
            disturbed: self.disturbance(disturbed),
        };
        let serving = self.serving(server)?;
        serving.process.order(order);
        match hears(&mut serving.process, "a claim to be made")? {
            Ordered::Done(done) => {
                refuse_to_fail(fails, &done)?;
                self.over |= disturbed.is_some();
                self.created(server, &done)
            }
            Ordered::Failed { kind, message } => must_fail(fails, &kind, &message),
            Ordered::Stopped => {
                self.counts.disturbed = true;
                self.staged(server, &before);
                self.serving(server)?.stopped = Some(Doing::Creating);
                Ok(())
            }
            Ordered::Killed => {
                self.counts.disturbed = true;
                self.staged(server, &before);
                self.reap(server)
            }
        }
    }

    /// A server has made its claim: it is seen, and a witness is put into it.
    fn created(&mut self, server: &str, done: &Done) -> Outcome<()> {
        let Done::Created { claim } = done else {
            return Err(Failure::new("actor", format!("asked for a claim, it said `{done}`")));
        };
        let name = claim.file_name().unwrap_or_default().to_string_lossy();
        let random = name.rsplit('-').next().unwrap_or_default().to_owned();
        let home = self.home_of(server);
        let prefix = self.prefix_of(server);
        // There is no room for a witness.
        let full = match &home {
            Home::Disk(disk) => self.mounted(disk).is_some_and(|mounted| mounted.full),
            Home::Root | Home::Within(_) => false,
        };
        let seen = Claim { prefix, random, inode: Some(inode(claim)?), touched: full, home };
        self.claims.insert(server.into(), seen);
        self.hold_owner(server, claim)?;
        let pid = self.serving(server)?.pid();
        self.remember(server, pid)?;
        if !full {
            let order = Order::Write { name: WITNESS.0.into() };
            self.ask(server, order, |done| *done == Done::Written)?;
        }
        self.serving(server)?.uses = true;
        Ok(())
    }

    /// What a creator has left behind or is still at, if it has got so far.
    fn staged(&mut self, server: &str, before: &[String]) {
        let home = self.home_of(server);
        let names = self.root_of(&home).map_or_else(Vec::new, |root| names_in(&root));
        if let Some(name) = names.into_iter().find(|name| !before.contains(name)) {
            let random = name.trim_end_matches(".new").rsplit('-').next().unwrap_or_default();
            let (prefix, random) = (self.prefix_of(server), random.into());
            let staged = Claim { prefix, random, inode: None, touched: true, home };
            self.claims.insert(server.into(), staged);
        }
    }

    fn kill(&mut self, who: &str, unreaped: bool) -> Outcome<()> {
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
        self.kill_inside(server, &serving)?;
        serving.process.kill();
        if let Some(owner) = &serving.owner {
            gone(owner)?;
        }
        // The guard would end what it left behind, which is what the story is about.
        self.dead.push(serving);
        Ok(())
    }

    fn exit(&mut self, who: &str) -> Outcome<()> {
        if let Some(mut serving) = self.servers.remove(who) {
            let _status = serving.process.end("exit");
            self.dead.push(serving);
            return Ok(());
        }
        self.running(who)?.exits()
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
        if let Some(Doing::Held(command)) = stopped {
            let title = format!("`{who}` waits for `{command}`, which has to go on before it");
            return Err(Failure::new("held", title));
        }
        if let Some(doing) = stopped {
            let serving = self.serving(who)?;
            serving.process.go_on();
            let ordered = hears(&mut serving.process, "what was stopped to be done")?;
            return self.went_on(who, &doing, ordered);
        }
        if let Some(mut sweeper) = self.sweepers.remove(who) {
            sweeper.go_on();
            return match hears(&mut sweeper, "a sweep that was stopped to end")? {
                Ordered::Done(Done::Swept(swept)) => {
                    self.last = vec![swept];
                    self.counts.sweeps += 1;
                    Ok(())
                }
                other => Err(unexpected(&other)),
            };
        }
        self.signal(who, Signal::CONT, 'T')
    }

    /// A server that had stopped has ended what it was at.
    fn went_on(&mut self, server: &str, doing: &Doing, ordered: Ordered) -> Outcome<()> {
        match (doing, ordered) {
            (Doing::Creating, Ordered::Done(done)) => self.created(server, &done),
            (Doing::Closing, Ordered::Done(_)) => {
                self.serving(server)?.uses = false;
                Ok(())
            }
            (Doing::Sweeping, Ordered::Done(Done::Swept(swept))) => {
                self.last = vec![swept];
                self.counts.sweeps += 1;
                Ok(())
            }
            (Doing::Spawning(command), Ordered::Done(Done::Spawned { .. })) => {
                self.spawned(command)
            }
            (_, other) => Err(unexpected(&other)),
        }
    }

    fn close(
        &mut self,
        server: &str,
        disturbed: Option<(Disturbed, Count)>,
        answer: Option<&str>,
        fails: Option<&str>,
    ) -> Outcome<()> {
        let order = Order::Close { disturbed: self.disturbance(disturbed) };
        let serving = self.serving(server)?;
        serving.uses = false;
        serving.process.order(order);
        match hears(&mut serving.process, "a claim to be closed")? {
            Ordered::Done(done) => {
                refuse_to_fail(fails, &done)?;
                self.over |= disturbed.is_some();
                let said = done.to_string();
                match answer {
                    Some(answer) if !said.starts_with(answer) => {
                        Err(Failure::new("answer", format!("the close said `{said}`")))
                    }
                    _ => Ok(()),
                }
            }
            Ordered::Failed { kind, message } => {
                serving.uses = true;
                must_fail(fails, &kind, &message)
            }
            Ordered::Stopped => {
                serving.stopped = Some(Doing::Closing);
                self.counts.disturbed = true;
                Ok(())
            }
            Ordered::Killed => {
                self.counts.disturbed = true;
                self.reap(server)
            }
        }
    }

    fn fork(&mut self, server: &str, copy: Copy) -> Outcome<()> {
        let order = match copy {
            Copy::Exits => Order::ForkExit,
            Copy::Stays => Order::ForkStay,
            Copy::Drops => Order::ForkDrop,
        };
        let done = self
            .ask(server, order, |done| matches!(done, Done::Exited { .. } | Done::Stays { .. }))?;
        if let Done::Stays { pid } = done
            && Self::copy_uses(copy)
        {
            let copy = self.hold(server, pid)?;
            self.copies.entry(server.into()).or_default().push(copy);
        }
        Ok(())
    }

    fn odd(&mut self, server: &str, oddity: Oddity) -> Outcome<()> {
        match oddity {
            Oddity::ReExec => {
                self.ask(server, Order::ExecSelf, |done| *done == Done::Executed)?;
                // The program that it is now knows nothing of the claim.
                self.serving(server)?.uses = false;
            }
            Oddity::EndMainThread => {
                self.ask(server, Order::EndMainThread, |done| *done == Done::GoesOn)?;
                let pid = self.serving(server)?.pid();
                // There is no event for it: the thread that answered is not the one that ends.
                let deadline = Deadline::secs(PATIENCE_SECS);
                while process(pid)?.is_some_and(|info| info.state != 'Z') {
                    if deadline.passed() {
                        return Err(Failure::new("waited", "its first thread does not end"));
                    }
                    std::thread::yield_now();
                }
            }
            Oddity::LoseLease => {
                self.ask(server, Order::LoseLease, |done| *done == Done::Lost { count: 1 })?;
            }
        }
        Ok(())
    }

    fn sweep(
        &mut self,
        by: &[String],
        disturbed: Option<(Disturbed, Count)>,
        no_canary: bool,
    ) -> Outcome<()> {
        if !no_canary {
            self.plant_canaries(by)?;
        }
        let mut plain = disturbed.is_none() && by.len() == 1;
        let mut sweeping = Vec::new();
        for name in by {
            let described = self.sweeper_of(name);
            plain &= described.is_plain();
            let root = self.root_for(name)?;
            let order = self.sweep_order(&described, disturbed, root);
            let own = match self.servers.get_mut(name) {
                Some(serving) => {
                    serving.process.order(order);
                    None
                }
                None => {
                    let mut process = self.start_sweeper(&described)?;
                    if let Some(more) = described.descriptors {
                        process.order(Order::LimitDescriptors { more: self.number(more) });
                        hears(&mut process, "a limit to be set")?;
                    }
                    process.order(order);
                    Some(process)
                }
            };
            sweeping.push((name.clone(), own));
        }
        self.last.clear();
        for (name, own) in sweeping {
            self.swept(&name, own, disturbed)?;
        }
        if plain && !self.over {
            by.iter().try_for_each(|name| self.check_canaries(name))?;
        }
        Ok(())
    }

    /// Waits for the end of a sweep, or for what was to happen in it.
    fn swept(
        &mut self,
        name: &str,
        own: Option<Process>,
        disturbed: Option<(Disturbed, Count)>,
    ) -> Outcome<()> {
        const WHAT: &str = "a sweep to end";
        let (ordered, own) = match own {
            Some(mut process) => (hears(&mut process, WHAT)?, Some(process)),
            None => (hears(&mut self.serving(name)?.process, WHAT)?, None),
        };
        match ordered {
            Ordered::Done(Done::Swept(swept)) => {
                // A second one that was to be killed and has less to do than the first ends well.
                let stopped = disturbed.is_some_and(|(how, _)| how == Disturbed::Stopped);
                self.over |= stopped || disturbed.is_some() && !self.counts.disturbed;
                self.last.push(swept);
                self.counts.sweeps += 1;
                Ok(())
            }
            Ordered::Stopped => {
                self.counts.disturbed = true;
                match own {
                    Some(process) => drop(self.sweepers.insert(name.into(), process)),
                    None => self.serving(name)?.stopped = Some(Doing::Sweeping),
                }
                Ok(())
            }
            Ordered::Killed => {
                self.counts.disturbed = true;
                match own {
                    Some(mut process) => process.kill(),
                    None => self.reap(name)?,
                }
                Ok(())
            }
            // It could not even open the root, and says so: that is its right.
            Ordered::Failed { message, .. } if own.is_some() && message.contains("(EMFILE)") => {
                let report = vec![message.clone()];
                self.last.push(Swept { report, trouble: Some(message), ..Swept::default() });
                self.counts.sweeps += 1;
                Ok(())
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Makes dead claims beside those that are to be swept; the next plain sweep has to remove them.
    fn plant_canaries(&mut self, by: &[String]) -> Outcome<()> {
        let old = self.canaries.len();
        for name in by {
            let described = self.sweeper_of(name);
            let (prefix, home) = (self.prefix_for(&described), self.home_of(name));
            let plain_user = described.plain_user;
            // One is enough for all who have to remove it.
            if self.canaries[old..].iter().any(|other| other.is_for(&prefix, &home, plain_user)) {
                continue;
            }
            let mut owner = self.start_actor(plain_user);
            let root = self.root_for(name)?;
            let claim = owner.create(&prefix, &root);
            owner.kill();
            let name = claim.file_name().unwrap_or_default().to_string_lossy();
            let random = name.rsplit('-').next().unwrap_or_default().to_owned();
            let claim = Claim { prefix, random, inode: None, touched: true, home };
            self.canaries.push(Canary { claim, plain_user });
        }
        Ok(())
    }

    /// Looks whether those have gone that this sweeper had to remove.
    fn check_canaries(&mut self, by: &str) -> Outcome<()> {
        let described = self.sweeper_of(by);
        let (prefix, home) = (self.prefix_for(&described), self.home_of(by));
        for canary in std::mem::take(&mut self.canaries) {
            if !canary.is_for(&prefix, &home, described.plain_user) {
                self.canaries.push(canary);
                continue;
            }
            if let Some(path) = self.path_of(&canary.claim) {
                let title = "the sweep did not remove the canary, so what it kept says nothing";
                let failure = Failure::new("canary", title);
                let failure = failure.note(format!("{} is a dead claim", path.display()));
                return Err(self.with_reports(failure));
            }
            self.counts.canaries += 1;
        }
        Ok(())
    }

    fn age(&mut self, server: &str, to: i64) -> Outcome<()> {
        let claim = self.claim(server)?;
        let path = self.path_of(claim).ok_or_else(|| not_running(server))?;
        Ok(plant::set_times(&path, to)?)
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
            Base::Precious(_) => {}
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
            other => Err(unexpected(&other).note(format!("it was asked to {order:?}"))),
        }
    }

    fn sweep_order(
        &self,
        described: &Sweeper,
        disturbed: Option<(Disturbed, Count)>,
        root: PathBuf,
    ) -> Order {
        let claims = described.not_removed.iter().filter_map(|server| self.claims.get(server));
        let how = SweepHow {
            dry_run: described.dry_run,
            subject: self.subject,
            cannot_tell: described.cannot_tell.clone(),
            not_removed: claims.map(|claim| format!("{}-{}", claim.prefix, claim.random)).collect(),
            disturbed: self.disturbance(disturbed),
            ..SweepHow::default()
        };
        Order::Sweep { prefix: self.prefix_for(described), root, how }
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

fn each(names: &[String], mut act: impl FnMut(&str) -> Outcome<()>) -> Outcome<()> {
    names.iter().try_for_each(|name| act(name))
}

pub(super) fn gone(watch: &Watch) -> Outcome<()> {
    let gone = watch.gone(Deadline::secs(PATIENCE_SECS));
    gone.map_err(|error| Failure::new("waited", error.to_string()))
}

pub(super) fn not_running(who: &str) -> Failure {
    Failure::new("not-running", format!("`{who}` does not run"))
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

pub(super) fn unexpected(ordered: &Ordered) -> Failure {
    let title = match ordered {
        Ordered::Done(done) => format!("it said `{done}`"),
        Ordered::Failed { kind, message } => format!("it failed: {kind}: {message}"),
        Ordered::Stopped => "it stopped".into(),
        Ordered::Killed => "it was killed".into(),
    };
    Failure::new("actor", title)
}

fn refuse_to_fail(fails: Option<&str>, done: &Done) -> Outcome<()> {
    match fails {
        Some(kind) => {
            let title = format!("it did not fail, let alone with {kind}: it said `{done}`");
            Err(Failure::new("fails", title))
        }
        None => Ok(()),
    }
}

fn must_fail(fails: Option<&str>, kind: &str, message: &str) -> Outcome<()> {
    match fails {
        Some(wanted) if wanted == kind => Ok(()),
        _ => Err(Failure::new("fails", format!("it failed: {kind}: {message}"))),
    }
}
