//! Lets the things happen that a story tells.

use mortmain::sys::{Call, Pid};

use super::ledger::User;
use super::machine::Parent;
use super::program::{self, Commanded};
use super::stage::{Stage, refused};
use crate::actor::wire::{Done, Order};
use crate::scenario::story::{Action, Copy, Oddity, Place};
use crate::scenario::telling::{Doing, Failure, Ordered, Outcome, each, not_running};

impl Stage<'_> {
    /// Lets something happen.
    ///
    /// # Panics
    /// When the world lacks what it takes: such a story is not told here.
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
            Action::Stop(who) => each(who, |who| {
                let pid = self.pid_of(who)?;
                self.machine.stop(pid);
                Ok(())
            }),
            Action::Continue(who) => each(who, |who| self.go_on(who)),
            Action::Close { server, disturbed, answer, fails } => {
                self.close(server, *disturbed, answer.as_deref(), fails.as_deref())
            }
            Action::Release(server) => {
                self.gives_up(server, &Order::Release, |done| *done == Done::Released)
            }
            Action::Drop(server) => {
                self.gives_up(server, &Order::Drop, |done| *done == Done::Dropped)
            }
            Action::Fork { server, copy } => self.fork(server, *copy),
            Action::Odd(server, Oddity::ReExec) => {
                self.gives_up(server, &Order::ExecSelf, |done| *done == Done::Executed)
            }
            Action::Odd(server, Oddity::LoseLease) => self.lose_lease(server),
            Action::Odd(server, Oddity::EndMainThread) => {
                let pid = self.serving(server)?.pid;
                self.machine.world.end_first_thread(pid);
                Ok(())
            }
            Action::Sweep { by, disturbed, no_canary } => {
                self.sweep(by, *disturbed, no_canary.is_some())
            }
            Action::Reclaim(server) => self.reclaim(server),
            Action::KillCopies(server) => self.kill_copies(server),
            Action::KillTree(server) => self.kill_tree(server),
            Action::StartStranger { stranger, pid_of } => {
                self.start_stranger(stranger, pid_of.as_deref())
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
            Action::Remove(at) => self.remove(at),
            Action::Empty(at) => self.empty(at),
            Action::Age { what, to } => self.age(what, *to),
            Action::Lock(at) => self.lock(at),
            Action::Unlock(at) => self.unlock(at),
            Action::ByCommand { command, does, at } => self.by_command(command, *does, at),
            Action::TakeLock { server, file, how } => self.take_lock(server, file, how),
            Action::GiveLockBack { server, file, fails } => {
                self.give_lock_back(server, file, fails.as_deref())
            }
            Action::Write { by, file, text, how } => self.write(by, file, text, how),
            Action::Read { server, file, answer, fails } => {
                self.read(server, file, answer.as_deref(), fails.as_deref())
            }
            Action::TakeSandbox { server, at, how } => self.take_sandbox(server, at, how),
            Action::Mount { what, at, elsewhere: false } => {
                let (what, at) = (self.resolve(what)?, self.resolve(at)?);
                self.machine.world.mount(&what, &at).map_err(refused)
            }
            Action::Unmount(at) => {
                let at = self.resolve(at)?;
                self.machine.world.unmount_at(&at).map_err(refused)
            }
            Action::Mount { .. }
            | Action::Chmod { .. }
            | Action::Chown { .. }
            | Action::Chattr { .. }
            | Action::TakeSockets { .. }
            | Action::Fill { .. }
            | Action::Gather(_)
            | Action::Tmpfiles(_) => unreachable!("the world has nothing for {action:?}"),
        }
    }

    /// The process of somebody who runs.
    fn pid_of(&self, who: &str) -> Outcome<Pid> {
        match self.servers.get(who) {
            Some(serving) => Ok(serving.pid),
            None => self.lives(who),
        }
    }

    fn go_on(&mut self, who: &str) -> Outcome<()> {
        if self.commands.get(who).is_some_and(|running| running.held) {
            return self.let_go(who);
        }
        let stopped = self.servers.get_mut(who).and_then(|serving| serving.stopped.take());
        stopped.iter().try_for_each(|doing| doing.check_stopped(who))?;
        if let Some(pid) = self.sweepers.remove(who) {
            self.machine.go_on(pid);
            self.run()?;
            return self.went_on(who, pid, &Doing::Sweeping);
        }
        let pid = self.pid_of(who)?;
        self.machine.go_on(pid);
        self.run()?;
        match stopped {
            Some(doing) => self.went_on(who, pid, &doing),
            None => Ok(()),
        }
    }

    /// Who had stopped has ended what it was at.
    fn went_on(&mut self, who: &str, pid: Pid, doing: &Doing) -> Outcome<()> {
        match (doing, self.hears(pid)?) {
            (Doing::Creating, Ordered::Done(done)) => self.created(who, &done),
            (Doing::Beside, Ordered::Done(_)) => Ok(()),
            (Doing::Closing, Ordered::Done(_)) => {
                self.ledger.gives_up(who, pid);
                Ok(())
            }
            (Doing::Sweeping, Ordered::Done(Done::Swept(swept))) => {
                self.heard.begin();
                self.note_sweep(swept);
                if !self.servers.contains_key(who) {
                    self.end_process(pid);
                }
                Ok(())
            }
            (Doing::Spawning(command), Ordered::Done(Done::Spawned { pid })) => {
                match self.commands.contains_key(command) {
                    true => Ok(()),
                    false => self.runs(command, Pid(pid)),
                }
            }
            (_, other) => Err(other.unexpected()),
        }
    }

    /// Kills a process, and reaps it.
    pub(super) fn end_process(&mut self, pid: Pid) {
        self.machine.kill(pid);
        self.machine.reap(pid);
    }

    /// Kills a server, a sweeper or a command.
    pub(super) fn kill(&mut self, who: &str, unreaped: bool) -> Outcome<()> {
        if unreaped {
            let pid = self.serving(who)?.pid;
            self.machine.kill(pid);
        } else if let Some(serving) = self.servers.remove(who) {
            self.end_process(serving.pid);
        } else if let Some(pid) = self.sweepers.remove(who) {
            self.end_process(pid);
        } else {
            let pid = self.lives(who)?;
            self.machine.kill(pid);
        }
        self.run()
    }

    /// Lets a server or a command end by itself.
    fn exit(&mut self, who: &str) -> Outcome<()> {
        let pid = match self.servers.remove(who) {
            Some(serving) => {
                self.ledger.gives_up(who, serving.pid);
                self.machine.tell(serving.pid, &program::line(&Order::Exit))?;
                serving.pid
            }
            None => {
                let pid = self.lives(who)?;
                self.machine.tell(pid, &program::line(&Commanded::Exit))?;
                pid
            }
        };
        self.run()?;
        if self.machine.world.lives(pid) {
            return Err(Failure::new("L2", format!("`{who}` does not end")));
        }
        self.machine.reap(pid);
        Ok(())
    }

    /// Kills the copies that a server has forked and that live on.
    fn kill_copies(&mut self, server: &str) -> Outcome<()> {
        let copies = self.copies.remove(server);
        let copies = copies.ok_or_else(|| not_running("a copy"))?;
        copies.iter().for_each(|pid| self.machine.kill(*pid));
        self.run()
    }

    /// Kills a server and everything below it, as whoever started it does who starts it anew.
    fn kill_tree(&mut self, server: &str) -> Outcome<()> {
        let serving = self.serving(server)?.pid;
        self.servers.remove(server);
        let below = self.machine.line_of(serving);
        for pid in below {
            self.machine.kill(pid);
        }
        self.copies.remove(server);
        self.machine.reap(serving);
        self.run()
    }

    /// Asks a server for something by which it stops using its claim.
    fn gives_up(
        &mut self,
        server: &str,
        order: &Order,
        good: impl Fn(&Done) -> bool,
    ) -> Outcome<()> {
        let pid = self.serving(server)?.pid;
        // It is its own to give up, and what it does from now on is no harm to it.
        self.ledger.gives_up(server, pid);
        self.ask(pid, order, good).map(drop)
    }

    fn fork(&mut self, server: &str, copy: Copy) -> Outcome<()> {
        let pid = self.serving(server)?.pid;
        let order = match copy {
            Copy::Exits => Order::ForkExit,
            Copy::Stays => Order::ForkStay,
            Copy::Drops => Order::ForkDrop,
        };
        let good = |done: &Done| matches!(done, Done::Exited { .. } | Done::Stays { .. });
        if let Done::Stays { pid } = self.ask(pid, &order, good)?
            && copy == Copy::Stays
        {
            let pid = Pid(pid);
            self.copies.entry(server.into()).or_default().push(pid);
            let who = format!("a copy of server `{server}`");
            self.ledger.users.push(User { pid, of: server.into(), who });
        }
        Ok(())
    }

    /// Starts a stranger, with the number of who has ended if that is told.
    fn start_stranger(&mut self, stranger: &str, pid_of: Option<&str>) -> Outcome<()> {
        let pid = match pid_of {
            None => self.machine.start(program::STRANGER, Parent::Starter),
            Some(who) => {
                let number = self.numbers.get(who).copied();
                let number = number.ok_or_else(|| {
                    Failure::new("not-running", format!("`{who}` was not started"))
                })?;
                self.machine.start_again(program::STRANGER, number)?;
                // It is somebody else.
                self.ledger.users.retain(|user| user.pid != number);
                number
            }
        };
        self.strangers.insert(stranger.into(), pid);
        Ok(())
    }

    /// A server closes the descriptor of its lease, as a careless daemon would.
    fn lose_lease(&mut self, server: &str) -> Outcome<()> {
        let pid = self.serving(server)?.pid;
        let claim = self.ledger.claim(server)?;
        let lease = claim.inode.and_then(|inode| self.machine.descriptor_of(pid, inode));
        let lease = lease.ok_or_else(|| Failure::new("actor", "it has no lease"))?;
        self.machine.call_for(pid, Call::Close { fd: lease }).map(drop).map_err(refused)
    }

    /// Whether there is anything at a place.
    pub(super) fn is_there(&self, place: &Place) -> bool {
        self.resolve(place).is_ok_and(|path| self.machine.world.stands_at(&path).is_ok())
    }
}
