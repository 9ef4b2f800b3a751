//! What servers have beside their claims: locks, stores, test directories, passed sockets.
//!
//! Who has a lock is seen in `/proc`, what a store holds in its file, and whether a socket is
//! open by connecting to it. An error of the library is kept as what was told last.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

use super::act::hears;
use super::stage::Stage;
use super::{Failure, Outcome};
use crate::actor::wire::{Done, Order};
use crate::actor::{Launch, Passed};
use crate::processes::processes;
use crate::scenario::story::{Asking, PassedSockets, Place};
use crate::scenario::telling::{Doing, Ordered, refuse_to_fail};

impl Stage<'_> {
    /// Lets a server take the lock of a file.
    pub(super) fn take_lock(&mut self, server: &str, file: &Place, how: &Asking) -> Outcome<()> {
        let file = self.resolve(file)?;
        let disturbed = self.disturbance(how.disturbed);
        let order = Order::Lock { file, waits: how.waits, disturbed };
        self.order_beside(server, order, how).map(drop)
    }

    /// Lets it give that back.
    pub(super) fn give_lock_back(
        &mut self,
        server: &str,
        file: &Place,
        fails: Option<&str>,
    ) -> Outcome<()> {
        let order = Order::Unlock { file: self.resolve(file)? };
        let how = Asking { fails: fails.map(String::from), ..Asking::default() };
        self.order_beside(server, order, &how).map(drop)
    }

    /// Lets servers add a line to a store, all at once.
    pub(super) fn write(
        &mut self,
        by: &[String],
        file: &Place,
        text: &str,
        how: &Asking,
    ) -> Outcome<()> {
        let (file, line) = (self.resolve(file)?, text.to_owned());
        let disturbed = self.disturbance(how.disturbed);
        let waits = how.waits || by.len() > 1;
        let order = Order::Append { file, line, waits, disturbed };
        if let [server] = by {
            return self.order_beside(server, order, how).map(drop);
        }
        for server in by {
            self.has_waited(server)?;
            self.serving(server)?.process.order(order.clone());
        }
        for server in by {
            match hears(&mut self.serving(server)?.process, "a line to be written")? {
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
        let order = Order::Read { file: self.resolve(file)? };
        let how = Asking { fails: fails.map(String::from), ..Asking::default() };
        match (self.order_beside(server, order, &how)?, answer) {
            (Some(Done::Read { content }), Some(answer)) if content != answer => {
                Err(Failure::new("answer", format!("it read {content:?}")))
            }
            _ => Ok(()),
        }
    }

    /// Lets a server take a test directory.
    pub(super) fn take_sandbox(&mut self, server: &str, at: &Place, how: &Asking) -> Outcome<()> {
        let disturbed = self.disturbance(how.disturbed);
        let (base, tag) = (self.shared.clone(), at.rest.clone());
        let order = Order::TakeSandbox { base, tag, place: server.into(), disturbed };
        self.order_beside(server, order, how).map(drop)
    }

    /// Lets a server take the sockets that were passed to it.
    pub(super) fn take_sockets(
        &mut self,
        server: &str,
        answer: Option<&[String]>,
        fails: Option<&str>,
    ) -> Outcome<()> {
        let how = Asking { fails: fails.map(String::from), ..Asking::default() };
        match (self.order_beside(server, Order::TakeSockets, &how)?, answer) {
            (Some(Done::Sockets { names }), Some(answer)) if names != answer => {
                let title = format!("it took sockets with the names {}", names.join(", "));
                Err(Failure::new("answer", title))
            }
            _ => Ok(()),
        }
    }

    /// Gives an order that may be disturbed or has to fail; answers what was done, if it is.
    fn order_beside(&mut self, server: &str, order: Order, how: &Asking) -> Outcome<Option<Done>> {
        self.has_waited(server)?;
        let serving = self.serving(server)?;
        serving.process.order(order);
        if how.waits {
            serving.stopped = Some(Doing::Waiting);
            return Ok(None);
        }
        match hears(&mut serving.process, "what a server was told to be done")? {
            Ordered::Done(done) => {
                refuse_to_fail(how.fails.as_deref(), &done)?;
                self.over |= how.disturbed.is_some();
                return Ok(Some(done));
            }
            Ordered::Failed { kind, message } => {
                self.heard.must_fail(how.fails.as_deref(), &kind, &message)?;
            }
            Ordered::Stopped => {
                serving.stopped = Some(Doing::Beside);
                self.heard.counts.disturbed = true;
            }
            Ordered::Killed => {
                self.heard.counts.disturbed = true;
                self.reap(server)?;
            }
        }
        Ok(None)
    }

    /// Lets a server come to the end of what it waits for.
    fn has_waited(&mut self, server: &str) -> Outcome<()> {
        let Some(serving) = self.servers.get_mut(server) else { return Ok(()) };
        if !matches!(serving.stopped, Some(Doing::Waiting)) {
            return Ok(());
        }
        serving.stopped = None;
        match hears(&mut serving.process, "a lock that is waited for")? {
            Ordered::Done(_) => Ok(()),
            other => Err(other.unexpected()),
        }
    }

    /// Fails unless this server has the lock of a file; or nobody, if none is named.
    pub(super) fn expect_lock(&mut self, file: &Place, holder: Option<&str>) -> Outcome<()> {
        let wanted = match holder {
            Some(server) => {
                self.has_waited(server)?;
                BTreeSet::from([self.serving(server)?.pid()])
            }
            None => BTreeSet::new(),
        };
        let mut path = self.resolve(file)?.into_os_string();
        path.push(".lock");
        let holders = holders(path.as_ref())?;
        if holders == wanted {
            return Ok(());
        }
        let known = |pid: &i32| self.servers.iter().find(|(_, serving)| serving.pid() == *pid);
        let names = holders.iter().map(|pid| match known(pid) {
            Some((name, _)) => format!("`{name}` has it"),
            None => format!("process {pid} has it"),
        });
        let names: Vec<String> = names.collect();
        let title = if names.is_empty() { "nobody has it".into() } else { names.join(", ") };
        Err(Failure::new("lock", title))
    }

    /// Fails unless a file has one of these contents.
    pub(super) fn expect_content(&self, file: &Place, is: &[String]) -> Outcome<()> {
        let content = match fs::read(self.resolve(file)?) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        if is.iter().any(|is| is.as_bytes() == content) {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&content);
        Err(Failure::new("content", format!("it has {text:?} in it")))
    }

    /// Fails unless at each socket that was passed to a server somebody listens; or nobody.
    pub(super) fn expect_listeners(&self, server: &str, listens: bool) -> Outcome<()> {
        let passed = self.story.server(server).passed.iter().flat_map(|passed| &passed.what);
        for (at, _) in passed.enumerate().filter(|(_, what)| **what == Passed::Listening) {
            let path = self.passed_at(server, at);
            let connected = match UnixStream::connect(&path) {
                Ok(_) => true,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => false,
                Err(error) => return Err(error.into()),
            };
            if connected != listens {
                let who = if connected { "somebody" } else { "nobody" };
                let title = format!("{who} listens at {}", path.display());
                return Err(Failure::new("listens", title));
            }
        }
        Ok(())
    }

    /// How a server is started to which something is passed.
    pub(super) fn launch(&self, server: &str, passed: &PassedSockets) -> Launch {
        let each = passed.what.iter().enumerate();
        Launch {
            passed: each.map(|(at, what)| (*what, self.passed_at(server, at))).collect(),
            to_another: passed.to_another,
            names: passed.names.as_ref().map(|names| names.join(":")),
        }
    }

    /// Where the path of what is passed is.
    fn passed_at(&self, server: &str, at: usize) -> PathBuf {
        self.control.join(format!("{server}.{at}"))
    }
}

/// Who has the lock of a file, as the kernel tells of each open descriptor. Its list of all locks
/// is no answer: it is read in pieces, and one that changes meanwhile is left out or told twice.
fn holders(file: &Path) -> Outcome<BTreeSet<i32>> {
    let mut holders = BTreeSet::new();
    let stat = match fs::symlink_metadata(file) {
        Ok(stat) => stat,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(holders),
        Err(error) => return Err(error.into()),
    };
    let inode = format!("{:02x}:{:02x}:{}", major(stat.dev()), minor(stat.dev()), stat.ino());
    for info in processes()? {
        // Of who ends meanwhile, or is another user's, nothing is seen.
        let Ok(open) = fs::read_dir(format!("/proc/{}/fdinfo", info.pid)) else { continue };
        for told in open.flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok()) {
            let lines = told.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
            holders.extend(lines.filter_map(|words| match words[..] {
                ["lock:", _, "FLOCK", _, _, pid, of, ..] if of == inode => pid.parse::<i32>().ok(),
                _ => None,
            }));
        }
    }
    Ok(holders)
}
