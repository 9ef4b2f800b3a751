//! A claim while its owner holds it (c5–c7, r4).

use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::cookie;
use crate::error::{Error, ErrorKind};
use crate::evidence::{Evidence, Finding, Obstacle};
use crate::grammar::{Place, Random};
use crate::life;
use crate::probe;
use crate::registry::Entry;
use crate::remove::{Condemned, Removal, Remover, Removes};
use crate::root::{Root, open_own, still_named};
use crate::sys::{
    Answer, Errno, Fd, Home, Identity, Kernel, KernelExt, Lasting, Name, PathBytes, Probed, Stat,
    Use, Whoami,
};
use crate::verdict::Proof;

/// Name of the owner's record in a claim.
pub(crate) const OWNER: &str = "owner";
/// Name that the owner's record has once the owner gave the claim up.
pub(crate) const RELEASED: &str = "released";
/// Name of the registry in a claim.
pub(crate) const COMMANDS: &str = "commands";
/// Name of the part that is the user's.
pub(crate) const FILES: &str = "files";

/// A claim, held by the process that made it.
///
/// It acts only in that process: a child that was forked and did not exec has a
/// copy of the value and of its descriptors, and can do no more than close
/// them (c6).
///
/// # Crash behaviour
/// When its owner is killed the kernel drops the lease; the claim then stays
/// until every command in it has ended and a sweep comes by. Dropping the
/// value closes the claim as [`Claim::close`] does; what that may not remove
/// is released to the sweeps.
#[derive(Debug)]
#[must_use = "a claim that is dropped is removed at once"]
pub struct Claim<K: Kernel> {
    pub(crate) root: Root<K>,
    pub(crate) random: Random,
    pub(crate) name: Name,
    pub(crate) home: Home,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) cookie: Vec<u8>,
    owner: Whoami,
    /// `None` once the claim was given up.
    lease: Option<Lasting<K>>,
    pub(crate) next_entry: u32,
    /// The entries that were not withdrawn yet.
    pub(crate) entries: BTreeMap<u32, Entry>,
}

/// How a claim ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Closed {
    /// It is removed.
    Removed,
    /// It was given up, and the next sweep decides: its lock could not be had,
    /// since a forked copy of its owner or another sweep holds it at this
    /// moment, or since a call failed.
    Released,
    /// It was given up, and something in it stands in the way of its removal.
    Obstructed(Vec<Obstacle>),
}

/// A claim that could not be closed, and why.
#[derive(Debug)]
pub struct CloseError<K: Kernel> {
    /// The claim, still held. Boxed, so that a `Result` of it stays small.
    pub claim: alloc::boxed::Box<Claim<K>>,
    /// Why.
    pub error: Error,
}

impl<K: Kernel> core::fmt::Display for CloseError<K> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.error.fmt(f)
    }
}

impl<K: Kernel + core::fmt::Debug> core::error::Error for CloseError<K> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.error.source()
    }
}

/// How often, and after how long each time, a lock is asked for again that is
/// held: by another thread's child between its fork and its exec, if it passes.
const PASSING_ROUNDS: u32 = 3;
const PASSING_ROUND_MILLIS: u32 = 5;

/// Whether what still runs in a claim keeps its owner from giving it up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// Yes: refuse, naming it.
    Refuse,
    /// No: release the claim to the sweeps.
    Release,
}

impl<K: Kernel> Claim<K> {
    pub(crate) fn new(
        root: Root<K>,
        me: &Identity,
        random: Random,
        name: Name,
        lease: Lasting<K>,
    ) -> Claim<K> {
        Claim {
            root,
            random,
            name,
            home: me.home,
            uid: me.uid,
            gid: me.gid,
            cookie: cookie::extended(&me.cookie, &random),
            owner: Whoami { pid: me.process.pid, pid_ns: me.home.pid_ns },
            lease: Some(lease),
            next_entry: 0,
            entries: BTreeMap::new(),
        }
    }

    /// The random part of its name: what its record and its cookie name it by.
    #[must_use]
    pub fn random(&self) -> Random {
        self.random
    }

    /// Its own path.
    #[must_use]
    pub fn path(&self) -> PathBytes {
        self.root.path_of(&self.name)
    }

    /// The path of the part that is the user's.
    #[must_use]
    pub fn files(&self) -> PathBytes {
        self.path().join(FILES.as_bytes())
    }

    pub(crate) fn kernel(&self) -> &K {
        self.root.kernel()
    }

    pub(crate) fn fail(&self, operation: &'static str, errno: Errno) -> Error {
        Error::system(operation, &self.path(), errno)
    }

    pub(crate) fn error(&self, kind: ErrorKind, operation: &'static str, text: &str) -> Error {
        Error::because(kind, operation, &self.path(), text.to_string())
    }

    /// The registry, if the claim is held, by this process, and still is the
    /// directory at its name.
    pub(crate) fn registry(&self, operation: &'static str) -> Result<Fd<K>, Error> {
        self.own(operation)?;
        self.whole(operation)?;
        let opened = open_own(self.held(operation)?.fd(), &Name::fixed(COMMANDS));
        opened.map_err(|errno| self.fail(operation, errno))
    }

    fn held(&self, operation: &'static str) -> Result<&Lasting<K>, Error> {
        self.lease
            .as_ref()
            .ok_or_else(|| self.error(ErrorKind::Closed, operation, "it was given up before"))
    }

    /// Fails in every process but the owner.
    fn own(&self, operation: &'static str) -> Result<(), Error> {
        let me = self.kernel().whoami().map_err(|errno| self.fail(operation, errno))?;
        // CHECK(c6-own-process): a forked copy must not act on, let alone remove, what its parent
        // uses.
        if me != self.owner {
            let text = alloc::format!("it belongs to process {}", self.owner.pid.0);
            return Err(self.error(ErrorKind::Forked, operation, &text));
        }
        Ok(())
    }

    /// Fails when the lease's descriptor is not the directory at the claim's
    /// name any more.
    fn whole(&self, operation: &'static str) -> Result<(), Error> {
        let lease = self.held(operation)?;
        let lost = |text| Err(self.error(ErrorKind::LeaseLost, operation, text));
        match lease.still_is() {
            Ok(true) => {}
            Ok(false) => return lost("its lease's descriptor was closed"),
            Err(errno) => return Err(self.fail(operation, errno)),
        }
        match still_named(self.root.fd(), &self.name, lease.fd()) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => lost("its name stands for something else now"),
            Err(Errno::EBADF | Errno::ENOTDIR) => lost("its root's descriptor was closed"),
            Err(errno) => Err(self.fail(operation, errno)),
        }
    }

    /// Removes the claim, if nothing uses it any more.
    ///
    /// # Errors
    /// The claim comes back, still held, when
    /// * [`ErrorKind::InUse`]: a command runs, or might, or something that one
    ///   left behind is seen to use the claim, or a claim or a mount lies inside;
    ///   the error names it;
    /// * [`ErrorKind::Forked`]: this is not its owner;
    /// * [`ErrorKind::LeaseLost`]: its name or its descriptor was taken away;
    /// * [`ErrorKind::System`]: a call failed before the claim was given up.
    ///
    /// # Crash behaviour
    /// Killed at any call, it leaves a claim that the next sweep removes.
    pub fn close(mut self) -> Result<Closed, CloseError<K>> {
        match self.give_up("close", Patience::Refuse) {
            Ok(closed) => Ok(closed),
            Err(error) => Err(CloseError { claim: alloc::boxed::Box::new(self), error }),
        }
    }

    /// Gives the claim up to the sweeps: its commands may go on using it, and
    /// the first sweep after their end removes it.
    ///
    /// # Errors
    /// As [`Claim::close`], but for [`ErrorKind::InUse`].
    ///
    /// # Crash behaviour
    /// As [`Claim::close`].
    pub fn release(mut self) -> Result<(), CloseError<K>> {
        let operation = "release";
        let released = self.own(operation).and_then(|()| {
            self.whole(operation)?;
            self.mark_released().map_err(|errno| self.fail(operation, errno))
        });
        match released {
            Ok(()) => {
                self.lease = None;
                Ok(())
            }
            Err(error) => Err(CloseError { claim: alloc::boxed::Box::new(self), error }),
        }
    }

    fn give_up(&mut self, operation: &'static str, patience: Patience) -> Result<Closed, Error> {
        let commands = self.commands_now(operation, patience)?;
        // CHECK(r4-commands-first): a close is a removal, and a command may still use the claim.
        if commands.proof != Proof::Gone {
            return self.released_or(patience, operation, &commands.evidence);
        }
        let me = self.kernel().identity().map_err(|errno| self.fail(operation, errno))?;
        let life = self.life_now(&me, operation, patience)?;
        // CHECK(r4-asks-l4): a command that was withdrawn may have left a daemon behind, which
        // holds nothing that the registry knows.
        if life.proof != Proof::Gone {
            return self.released_or(patience, operation, &life.evidence);
        }
        // CHECK(r4-look-first): what is given up cannot be taken back, and a nested claim may live.
        if let Some(obstacle) = self.obstacle(&me, operation)? {
            return self.released_or(patience, operation, &obstacle);
        }
        self.mark_released().map_err(|errno| self.fail(operation, errno))?;
        // From here on the claim is not ours: whatever fails is left to the sweeps.
        // CHECK(c7-close-own-lease): a forked copy of the description would answer for us below.
        self.lease = None;
        Ok(self.remove_released(&me))
    }

    /// What becomes of a claim that may not be removed.
    fn released_or(
        &mut self,
        patience: Patience,
        operation: &'static str,
        why: &dyn core::fmt::Display,
    ) -> Result<Closed, Error> {
        if patience == Patience::Refuse {
            return Err(self.error(ErrorKind::InUse, operation, &why.to_string()));
        }
        self.mark_released().map_err(|errno| self.fail(operation, errno))?;
        self.lease = None;
        Ok(Closed::Released)
    }

    /// The answer to l3 for all commands. The lock of one that was reaped may be
    /// held for a moment by another thread's child between its fork and its
    /// exec.
    fn commands_now(&self, operation: &'static str, patience: Patience) -> Result<Finding, Error> {
        let asked = || {
            let registry = self.registry(operation)?;
            let me = self.kernel().identity().map_err(|errno| self.fail(operation, errno))?;
            Ok(probe::registry(&registry, &me))
        };
        let passes = |evidence: &Evidence| match evidence {
            Evidence::CommandHoldsLock { entry, .. } => self.was_reaped(*entry),
            _ => false,
        };
        self.when_passed(operation, patience, asked, passes)
    }

    /// The answer to l4, if a command was ever started. Not asked of the owner
    /// itself, which says by its close that it uses the claim no more, whatever
    /// it still has open. Its descriptors are for a moment those of another
    /// thread's child as well.
    fn life_now(
        &self,
        me: &Identity,
        operation: &'static str,
        patience: Patience,
    ) -> Result<Finding, Error> {
        if self.next_entry == 0 {
            return Ok(Finding::gone(Evidence::Unused));
        }
        let asked = || {
            let sought = [(&self.name, self.random)];
            // CHECK(r4-owners-own-word): an open log file would keep its own writer from closing.
            let but = Some(self.owner.pid);
            let scan = life::scan(self.kernel(), me, &sought, but);
            Ok(scan.findings.into_iter().next().unwrap_or_else(|| {
                // OK because a scan answers for each claim that it is given.
                unreachable!("a scan of one claim has one answer")
            }))
        };
        let passes = |evidence: &Evidence| match evidence {
            Evidence::Used { how, .. } => *how != Use::Cookie,
            _ => false,
        };
        self.when_passed(operation, patience, asked, passes)
    }

    /// An answer, asked for again a few times as long as it may pass by itself.
    /// What is released is not worth that time.
    fn when_passed(
        &self,
        operation: &'static str,
        patience: Patience,
        asked: impl Fn() -> Result<Finding, Error>,
        passes: impl Fn(&Evidence) -> bool,
    ) -> Result<Finding, Error> {
        let rounds = match patience {
            Patience::Refuse => PASSING_ROUNDS,
            Patience::Release => 0,
        };
        for _ in 0..rounds {
            let finding = asked()?;
            if !passes(&finding.evidence) {
                return Ok(finding);
            }
            let paused = self.kernel().pause(PASSING_ROUND_MILLIS);
            paused.map_err(|errno| self.fail(operation, errno))?;
        }
        asked()
    }

    /// What in the claim forbids its removal.
    fn obstacle(&self, me: &Identity, operation: &'static str) -> Result<Option<Obstacle>, Error> {
        let dir = self.held(operation)?.fd();
        let stat = dir.stat().map_err(|errno| self.fail(operation, errno))?;
        Ok(self.condemned(me, dir, stat).look(true))
    }

    fn condemned<'s>(&'s self, me: &'s Identity, dir: &'s Fd<K>, stat: Stat) -> Condemned<'s, K> {
        Condemned::new(&self.root, me, &self.name, self.random, Place::Published, dir, stat)
    }

    /// Renames the owner's record, so that an owner that lives on does not pin
    /// what it gave up.
    fn mark_released(&self) -> Answer<()> {
        let Some(lease) = &self.lease else { return Ok(()) };
        let (owner, released) = (Name::fixed(OWNER), Name::fixed(RELEASED));
        match lease.fd().rename(&owner, &released) {
            // Done by an earlier attempt that was told of a failure.
            Err(Errno::ENOENT) => lease.fd().stat_at(&released).map(|_| ()),
            answer => answer,
        }
    }

    /// Removes what was given up, if its lease can be had afresh (c7).
    fn remove_released(&self, me: &Identity) -> Closed {
        let Some(lease) = self.fresh_lease() else { return Closed::Released };
        let named = still_named(self.root.fd(), &self.name, lease.fd());
        // CHECK(c2-close): a sweep may have been here between the two locks.
        let Ok(Some(stat)) = named else { return Closed::Released };
        match Removes.remove(&self.condemned(me, lease.fd(), stat)) {
            Removal::Removed => Closed::Removed,
            Removal::Kept(obstacle) => Closed::Obstructed(alloc::vec![obstacle]),
            Removal::Partial(obstacles) => Closed::Obstructed(obstacles),
        }
    }

    /// The lease through a description of its own. Another thread's child may
    /// have the old one for a moment, between its fork and its exec.
    fn fresh_lease(&self) -> Option<Probed<K>> {
        let lease = Probed::new(self.root.fd().open_dir(&self.name).ok()?);
        for _ in 0..PASSING_ROUNDS {
            match lease.lock() {
                Ok(()) => return Some(lease),
                Err(Errno::EAGAIN) => self.kernel().pause(PASSING_ROUND_MILLIS).ok()?,
                Err(_) => return None,
            }
        }
        // CHECK(c7-fresh-lease): refused means that a forked copy of us or a sweep has it.
        None
    }
}

impl<K: Kernel> Drop for Claim<K> {
    fn drop(&mut self) {
        if self.lease.is_none() {
            return;
        }
        // CHECK(r4-drop-closes): dropping is closing, but for what may not be removed yet.
        let failure = self.give_up("close", Patience::Release).err().map(|error| error.kind());
        if !matches!(failure, None | Some(ErrorKind::Forked | ErrorKind::LeaseLost)) {
            // CHECK(r4-drop-releases): kept under a live owner's record, it would stay for that
            // owner's life. A rename needs no descriptor that could be lacking.
            let _ = self.mark_released();
        }
    }
}
