//! What servers have beside their claims: locks, stores, test directories.

use mortmain::sys::Pid;

use super::stage::{Stage, path, path_buf};
use crate::actor::wire::{Done, Order};
use crate::scenario::story::{Asking, Place};
use crate::scenario::telling::{Doing, Failure, Ordered, Outcome, refuse_to_fail};
use crate::world::hand::Thing;

/// How often those who wait for each other are let ask again at most.
const TURNS_MAX: u32 = 100;

impl Stage<'_> {
    /// Lets a server take the lock of a file.
    pub(super) fn take_lock(&mut self, server: &str, file: &Place, how: &Asking) -> Outcome<()> {
        let file = self.resolve_for_order(file)?;
        let disturbed = Stage::told_of(how.disturbed);
        self.order_beside(server, &Order::Lock { file, waits: how.waits, disturbed }, how).map(drop)
    }

    /// Lets it give that back.
    pub(super) fn give_lock_back(
        &mut self,
        server: &str,
        file: &Place,
        fails: Option<&str>,
    ) -> Outcome<()> {
        let order = Order::Unlock { file: self.resolve_for_order(file)? };
        self.order_beside(server, &order, &must(fails)).map(drop)
    }

    /// Lets servers add a line to a store, all at once.
    pub(super) fn write(
        &mut self,
        by: &[String],
        file: &Place,
        text: &str,
        how: &Asking,
    ) -> Outcome<()> {
        let (file, line) = (self.resolve_for_order(file)?, text.to_owned());
        let disturbed = Stage::told_of(how.disturbed);
        let waits = how.waits || by.len() > 1;
        let order = Order::Append { file, line, waits, disturbed };
        if let [server] = by {
            return self.order_beside(server, &order, how).map(drop);
        }
        let mut all = Vec::new();
        for server in by {
            self.has_waited(server)?;
            let pid = self.serving(server)?.pid;
            self.machine.make_patient(pid);
            all.push(pid);
        }
        self.order_all(all.iter().map(|pid| (*pid, &order)), how.disturbed)?;
        for pid in all {
            self.comes_to_its_end(pid)?;
            match self.hears(pid)? {
                Ordered::Done(Done::Written) => {}
                other => return Err(other.unexpected()),
            }
        }
        Ok(())
    }

    /// Lets a server read a store.
    pub(super) fn read(
        &mut self,
        server: &str,
        file: &Place,
        answer: Option<&str>,
        fails: Option<&str>,
    ) -> Outcome<()> {
        let order = Order::Read { file: self.resolve_for_order(file)? };
        match (self.order_beside(server, &order, &must(fails))?, answer) {
            (Some(Done::Read { content }), Some(answer)) if content != answer => {
                Err(Failure::new("answer", format!("it read {content:?}")))
            }
            _ => Ok(()),
        }
    }

    /// Lets a server take a test directory.
    pub(super) fn take_sandbox(&mut self, server: &str, at: &Place, how: &Asking) -> Outcome<()> {
        let disturbed = Stage::told_of(how.disturbed);
        let (base, tag) = (path_buf(path("/shared")), at.rest.clone());
        let order = Order::TakeSandbox { base, tag, place: server.into(), disturbed };
        self.order_beside(server, &order, how).map(drop)
    }

    /// Gives an order that may be disturbed or has to fail; answers what was done, if it is.
    fn order_beside(&mut self, server: &str, order: &Order, how: &Asking) -> Outcome<Option<Done>> {
        self.has_waited(server)?;
        let pid = self.serving(server)?.pid;
        if how.waits {
            self.machine.make_patient(pid);
            self.serving(server)?.stopped = Some(Doing::Waiting);
            self.order(pid, order, None)?;
            return Ok(None);
        }
        self.order(pid, order, how.disturbed)?;
        match self.hears(pid)? {
            Ordered::Done(done) => {
                refuse_to_fail(how.fails.as_deref(), &done)?;
                self.over |= how.disturbed.is_some();
                return Ok(Some(done));
            }
            Ordered::Failed { kind, message } => {
                self.heard.must_fail(how.fails.as_deref(), &kind, &message)?;
            }
            Ordered::Stopped => {
                self.serving(server)?.stopped = Some(Doing::Beside);
                self.heard.counts.disturbed = true;
            }
            Ordered::Killed => {
                self.heard.counts.disturbed = true;
                self.reaped(server);
            }
        }
        Ok(None)
    }

    /// Lets a server come to the end of what it waits for.
    pub(super) fn has_waited(&mut self, server: &str) -> Outcome<()> {
        let Some(serving) = self.servers.get_mut(server) else { return Ok(()) };
        if serving.stopped != Some(Doing::Waiting) {
            return Ok(());
        }
        serving.stopped = None;
        let pid = serving.pid;
        self.comes_to_its_end(pid)?;
        match self.hears(pid)? {
            Ordered::Done(_) => Ok(()),
            other => Err(other.unexpected()),
        }
    }

    /// Lets a process ask until it has what it waits for. The others go on meanwhile.
    fn comes_to_its_end(&mut self, pid: Pid) -> Outcome<()> {
        for _ in 0..TURNS_MAX {
            if self.machine.said(pid).is_some() {
                return Ok(());
            }
            self.machine.ask_again(pid)?;
            self.run()?;
        }
        Err(Failure::new("L2", "a lock that is waited for is not to be had"))
    }

    /// Fails unless this server has the lock of a file; or nobody, if none is named.
    pub(super) fn expect_lock(&mut self, file: &Place, holder: Option<&str>) -> Outcome<()> {
        let wanted = match holder {
            Some(server) => {
                self.has_waited(server)?;
                Some(self.serving(server)?.pid)
            }
            None => None,
        };
        let mut path = self.resolve(file)?;
        path.0.extend_from_slice(b".lock");
        let world = &self.machine.world;
        let inode = world.stands_at(&path).ok();
        let has = inode.and_then(|inode| world.holder(inode)).map(|holder| holder.by);
        if has == wanted {
            return Ok(());
        }
        let title = match has {
            None => "nobody has it".into(),
            Some(pid) => match self.servers.iter().find(|(_, serving)| serving.pid == pid) {
                Some((name, _)) => format!("`{name}` has it"),
                None => format!("process {} has it", pid.0),
            },
        };
        Err(Failure::new("lock", title))
    }

    /// Fails unless a file has one of these contents; one that is not there has none.
    pub(super) fn expect_content(&self, file: &Place, is: &[String]) -> Outcome<()> {
        let world = &self.machine.world;
        let inode = world.stands_at(&self.resolve(file)?).ok();
        let content = match inode.and_then(|inode| world.thing(inode)) {
            Some(Thing::File(content)) => content,
            None => Box::default(),
            Some(other) => {
                return Err(Failure::new("content", format!("it is no file: {other:?}")));
            }
        };
        if is.iter().any(|is| is.as_bytes() == &content[..]) {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&content);
        Err(Failure::new("content", format!("it has {text:?} in it")))
    }
}

/// Asking for something that has to fail, or not.
fn must(fails: Option<&str>) -> Asking {
    Asking { fails: fails.map(String::from), ..Asking::default() }
}
