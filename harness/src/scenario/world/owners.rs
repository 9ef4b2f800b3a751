//! What servers do with their claims: they make and close them.

use std::os::unix::ffi::OsStrExt;

use mortmain::sys::PathBytes;

use super::ledger::{Claim, User, names_at};
use super::machine::Parent;
use super::stage::{Serving, Stage, refused};
use crate::actor::wire::{Done, Order};
use crate::scenario::fields::Count;
use crate::scenario::story::Disturbed;
use crate::scenario::telling::{Doing, Failure, Ordered, Outcome, WITNESS, refuse_to_fail};

impl Stage<'_> {
    /// Starts a server, which makes its claim.
    pub(super) fn start(
        &mut self,
        server: &str,
        sweeps: bool,
        disturbed: Option<(Disturbed, Count)>,
        fails: Option<&str>,
    ) -> Outcome<()> {
        let parent = match self.story.server(server).background {
            true => Parent::Init,
            false => Parent::Starter,
        };
        let pid = self.start_actor(parent)?;
        self.surround(pid, &self.story.server(server).surroundings);
        self.servers.insert(server.into(), Serving { pid, stopped: None });
        self.numbers.insert(server.into(), pid);
        if sweeps {
            self.sweep(&[server.to_owned()], None, false)?;
        }
        let root = self.root_for(server)?;
        let at = PathBytes::from(root.as_os_str().as_bytes());
        let before = names_at(&self.machine.world, &at);
        if let Some(more) = self.story.server(server).descriptors {
            let more = self.number(more);
            self.machine.world.limit_descriptors(pid, more);
        }
        let order = Order::Create {
            prefix: self.prefix_of(server),
            root,
            tapped: false,
            disturbed: Stage::told_of(disturbed),
        };
        self.order(pid, &order, disturbed)?;
        match self.hears(pid)? {
            Ordered::Done(done) => {
                refuse_to_fail(fails, &done)?;
                self.over |= disturbed.is_some();
                self.created(server, &done)
            }
            Ordered::Failed { kind, message } => self.heard.must_fail(fails, &kind, &message),
            Ordered::Stopped => {
                self.heard.counts.disturbed = true;
                self.staged(server, &at, &before);
                self.serving(server)?.stopped = Some(Doing::Creating);
                Ok(())
            }
            Ordered::Killed => {
                self.heard.counts.disturbed = true;
                self.staged(server, &at, &before);
                self.reaped(server);
                Ok(())
            }
        }
    }

    /// A server was killed at a call, and is reaped.
    pub(super) fn reaped(&mut self, server: &str) {
        if let Some(serving) = self.servers.remove(server) {
            self.machine.reap(serving.pid);
        }
    }

    /// A server has made its claim: it is seen, and a witness is put into it.
    pub(super) fn created(&mut self, server: &str, done: &Done) -> Outcome<()> {
        let Done::Created { claim } = done else {
            return Err(Failure::new("actor", format!("asked for a claim, it said `{done}`")));
        };
        let name = claim.file_name().unwrap_or_default().to_string_lossy();
        let random = name.rsplit('-').next().unwrap_or_default().to_owned();
        let at = PathBytes::from(claim.as_os_str().as_bytes());
        let inode = self.machine.world.stands_at(&at).map_err(refused)?;
        let (prefix, home) = (self.prefix_of(server), self.home_of(server));
        let seen = Claim { prefix, random, inode: Some(inode), touched: false, home };
        self.ledger.claims.insert(server.into(), seen);
        let pid = self.serving(server)?.pid;
        let order = Order::Write { name: WITNESS.0.into() };
        self.ask(pid, &order, |done| *done == Done::Written)?;
        self.uses(server)
    }

    /// From now on a server means to use its claim.
    fn uses(&mut self, server: &str) -> Outcome<()> {
        let pid = self.serving(server)?.pid;
        let who = format!("server `{server}`");
        self.ledger.users.push(User { pid, of: server.into(), who });
        Ok(())
    }

    /// What a creator has left behind or is still at, if it has got so far.
    fn staged(&mut self, server: &str, at: &PathBytes, before: &[String]) {
        let names = names_at(&self.machine.world, at);
        if let Some(name) = names.into_iter().find(|name| !before.contains(name)) {
            let random = name.trim_end_matches(".new").rsplit('-').next().unwrap_or_default();
            let (prefix, home) = (self.prefix_of(server), self.home_of(server));
            let staged = Claim { prefix, random: random.into(), inode: None, touched: true, home };
            self.ledger.claims.insert(server.into(), staged);
        }
    }

    pub(super) fn close(
        &mut self,
        server: &str,
        disturbed: Option<(Disturbed, Count)>,
        answer: Option<&str>,
        fails: Option<&str>,
    ) -> Outcome<()> {
        let pid = self.serving(server)?.pid;
        self.ledger.gives_up(server, pid);
        self.order(pid, &Order::Close { disturbed: Stage::told_of(disturbed) }, disturbed)?;
        match self.hears(pid)? {
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
                self.uses(server)?;
                self.heard.must_fail(fails, &kind, &message)
            }
            Ordered::Stopped => {
                self.serving(server)?.stopped = Some(Doing::Closing);
                self.heard.counts.disturbed = true;
                Ok(())
            }
            Ordered::Killed => {
                self.heard.counts.disturbed = true;
                self.reaped(server);
                Ok(())
            }
        }
    }

    /// A server does what a claim is for: it writes a file there.
    pub(super) fn server_works(&mut self, server: &str) -> Outcome<()> {
        const NAME: &str = "used-by-owner";
        let pid = self.serving(server)?.pid;
        self.ask(pid, &Order::Write { name: NAME.into() }, |done| *done == Done::Written)?;
        let claim = self.ledger.claim(server)?;
        let written = self.path_of(claim).map(|path| path.join(b"files").join(NAME.as_bytes()));
        match written.is_some_and(|path| self.machine.world.stands_at(&path).is_ok()) {
            true => Ok(()),
            false => {
                let title = format!("what server `{server}` has written is not in its claim");
                Err(self.heard.with(Failure::new("S1", title)))
            }
        }
    }
}
