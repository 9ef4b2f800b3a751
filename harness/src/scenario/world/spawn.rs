//! Commands are started: with their server killed or stopped meanwhile, or held between fork and exec.

use mortmain::sys::Pid;

use super::ledger::User;
use super::program::{self, Become, Commanded};
use super::stage::{Running, Stage};
use crate::actor::wire::{Done, Order};
use crate::scenario::fields::Count;
use crate::scenario::story::{Deed, Disturbed, Lock, Place, Planted};
use crate::scenario::telling::{Doing, Failure, Ordered, Outcome};

impl Stage<'_> {
    /// Lets a server start a command.
    pub(super) fn spawn(
        &mut self,
        name: &str,
        disturbed: Option<(Disturbed, Count)>,
        held: Option<Count>,
    ) -> Outcome<()> {
        let by = &self.story.command(name).by;
        let pid = self.serving(by)?.pid;
        // One that is started again is another.
        self.commands.remove(name);
        if let Some(count) = held {
            let before = self.number(count);
            self.machine.hold_child_of(pid, before);
        }
        let order = Order::Spawn {
            script: String::new(),
            input: None,
            output: None,
            disturbed: Stage::told_of(disturbed),
            held: None,
        };
        let births = self.machine.line_of(pid).len();
        self.order(pid, &order, disturbed)?;
        let child = self.machine.line_of(pid).get(births).copied();
        if held.is_some() {
            return self.held(name, pid, child);
        }
        match self.hears(pid)? {
            Ordered::Done(Done::Spawned { pid }) => {
                self.over |= disturbed.is_some();
                self.runs(name, Pid(pid))
            }
            Ordered::Stopped if disturbed.is_some() => {
                self.serving(by)?.stopped = Some(Doing::Spawning(name.into()));
                self.heard.counts.disturbed = true;
                child.map_or(Ok(()), |child| self.runs(name, child))
            }
            Ordered::Killed if disturbed.is_some() => {
                self.heard.counts.disturbed = true;
                self.reaped(by);
                child.map_or(Ok(()), |child| self.runs(name, child))
            }
            other => Err(other.unexpected()),
        }
    }

    /// The child of a spawn is held, and its server waits for it.
    fn held(&mut self, name: &str, server: Pid, child: Option<Pid>) -> Outcome<()> {
        match child {
            Some(child) if self.machine.has_stopped(child) => {
                self.is_there_now(name, child, true);
                self.heard.counts.disturbed = true;
                let by = &self.story.command(name).by;
                self.serving(by)?.stopped = Some(Doing::Held(name.into()));
                Ok(())
            }
            // It has no such call.
            _ => {
                self.over = true;
                self.has_spawned(server)
            }
        }
    }

    /// A server says that it has started a command.
    fn has_spawned(&mut self, server: Pid) -> Outcome<()> {
        match self.hears(server)? {
            Ordered::Done(Done::Spawned { .. }) => Ok(()),
            other => Err(other.unexpected()),
        }
    }

    /// From now on a command uses the claim of its server.
    fn is_there_now(&mut self, name: &str, pid: Pid, held: bool) {
        let described = self.story.command(name);
        self.commands.insert(name.into(), Running { pid, held });
        self.numbers.insert(name.into(), pid);
        self.ledger.users.retain(|user| user.who != who(name));
        if described.escapes.is_none() {
            let (of, who) = (described.by.clone(), who(name));
            self.ledger.users.push(User { pid, of, who });
        }
    }

    /// Lets what was started become what the command is meant to be.
    pub(super) fn runs(&mut self, name: &str, first: Pid) -> Outcome<()> {
        self.is_there_now(name, first, false);
        let described = self.story.command(name);
        let claim = self.ledger.claim(&described.by)?;
        let files = self.path_of(claim).unwrap_or_default().join(b"files").0;
        let mut wanted = Become {
            files,
            works_there: !described.elsewhere,
            background: described.background || described.own_session,
            leaves_group: described.own_session,
            closes_lock: described.lock == Lock::Closed,
            unlocks: described.lock == Lock::Unlocked,
            without_cookie: described.without_cookie,
        };
        self.becomes(first, &wanted)?;
        let line = self.machine.line_of(first);
        let now = line.into_iter().find(|pid| self.machine.said(*pid).is_some());
        let now = now.ok_or_else(|| {
            Failure::new("command", format!("command `{name}` has ended before it was one"))
        })?;
        self.is_there_now(name, now, false);
        if wanted.without_cookie {
            // It is at its beginning again, with another environment.
            wanted = Become {
                works_there: false,
                background: false,
                leaves_group: false,
                closes_lock: false,
                unlocks: false,
                without_cookie: false,
                ..wanted
            };
            self.becomes(now, &wanted)?;
        }
        self.did_well(name, now)
    }

    fn becomes(&mut self, pid: Pid, what: &Become) -> Outcome<()> {
        self.machine.tell(pid, &program::line(&Commanded::Become(what.clone())))?;
        self.run()
    }

    /// Fails unless the last thing that a command was told to do went well.
    fn did_well(&self, name: &str, pid: Pid) -> Outcome<()> {
        match self.says_well(pid) {
            true => Ok(()),
            false => {
                let title = format!("command `{name}` could not do what it was told");
                Err(Failure::new("command", title))
            }
        }
    }

    fn says_well(&self, pid: Pid) -> bool {
        self.machine.said(pid).is_some_and(program::understood::<bool>)
    }

    /// Lets a child that was held become its program.
    pub(super) fn let_go(&mut self, name: &str) -> Outcome<()> {
        let pid = self.running(name)?.pid;
        self.machine.was_struck(pid);
        self.machine.go_on(pid);
        self.run()?;
        self.runs(name, pid)?;
        let by = &self.story.command(name).by;
        let Some(serving) = self.servers.get_mut(by) else { return Ok(()) };
        serving.stopped = None;
        let server = serving.pid;
        match self.machine.world.lives(server) {
            true => self.has_spawned(server),
            // Nobody has reaped it, and it says nothing any more.
            false => Ok(()),
        }
    }

    /// Lets a command use its claim.
    pub(super) fn command_works(&mut self, name: &str) -> Outcome<()> {
        let pid = self.lives(name)?;
        self.machine.tell(pid, &program::line(&Commanded::Use))?;
        self.run()?;
        match self.says_well(pid) {
            true => Ok(()),
            false => {
                let title = format!("command `{name}` cannot use its claim any more");
                Err(self.heard.with(Failure::new("S1", title)))
            }
        }
    }

    /// Lets a command do something to a place.
    pub(super) fn by_command(&mut self, name: &str, deed: Deed, at: &Place) -> Outcome<()> {
        let path = self.resolve_to_change(at)?;
        let pid = self.lives(name)?;
        let deed = match deed {
            Deed::Remove => program::Deed::Remove,
            Deed::Empty => program::Deed::Empty,
            Deed::Plant(Planted::Directory) => program::Deed::Directory,
            Deed::Plant(Planted::DanglingLink) => program::Deed::DanglingLink,
            Deed::Plant(Planted::Fifo) => program::Deed::Fifo,
            // The reader lets no command plant anything else.
            Deed::Plant(_) => program::Deed::File,
        };
        self.machine.tell(pid, &program::line(&Commanded::Do(deed, path.0)))?;
        self.run()?;
        self.did_well(name, pid)
    }
}

fn who(command: &str) -> String {
    format!("command `{command}`")
}
