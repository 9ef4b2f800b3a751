//! What servers do with their claims: they make, close, share and lose them.

use super::act::hears;
use super::stage::{Claim, Home, Serving, Stage, names_in};
use super::truth::inode;
use super::{Failure, Outcome};
use crate::actor::wire::{Done, Order};
use crate::processes::process;
use crate::scenario::fields::Count;
use crate::scenario::story::{Copy, Disturbed, Oddity};
use crate::scenario::telling::{Doing, Ordered, WITNESS, refuse_to_fail};
use crate::wait::Deadline;

/// Longer than anything takes on a loaded machine.
const PATIENCE_SECS: u64 = 20;

impl Stage<'_> {
    /// Starts a server, which makes its claim.
    pub(super) fn start(
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
        if let Some(more) = self.story.server(server).descriptors {
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
            Ordered::Failed { kind, message } => self.heard.must_fail(fails, &kind, &message),
            Ordered::Stopped => {
                self.heard.counts.disturbed = true;
                self.staged(server, &before);
                self.serving(server)?.stopped = Some(Doing::Creating);
                Ok(())
            }
            Ordered::Killed => {
                self.heard.counts.disturbed = true;
                self.staged(server, &before);
                self.reap(server)
            }
        }
    }

    /// A server has made its claim: it is seen, and a witness is put into it.
    pub(super) fn created(&mut self, server: &str, done: &Done) -> Outcome<()> {
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

    pub(super) fn close(
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
                self.heard.must_fail(fails, &kind, &message)
            }
            Ordered::Stopped => {
                serving.stopped = Some(Doing::Closing);
                self.heard.counts.disturbed = true;
                Ok(())
            }
            Ordered::Killed => {
                self.heard.counts.disturbed = true;
                self.reap(server)
            }
        }
    }

    pub(super) fn fork(&mut self, server: &str, copy: Copy) -> Outcome<()> {
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

    pub(super) fn odd(&mut self, server: &str, oddity: Oddity) -> Outcome<()> {
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
}
