//! Commands: how they enter the registry and leave it (p1–p5).

use alloc::vec::Vec;

use crate::claim::Claim;
use crate::error::{Error, ErrorKind};
use crate::probe;
use crate::sys::{
    Answer, ChildPlan, Ending, Errno, Fd, IdName, Kernel, KernelExt, Name, OTHER_USER, Pid, Wait,
};
use crate::verdict::Proof;

/// A command that was started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Started {
    /// Its entry in the registry.
    pub entry: u32,
    /// Its process, and the number of its group.
    pub pid: Pid,
}

/// What an owner knows of an entry of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// Whether a command may have started and was not reaped: only then is the
    /// number of its group sure to be its own.
    unreaped: bool,
}

/// How long ending a command waits for its group to vanish: rounds of this
/// many milliseconds each.
const END_ROUND_MILLIS: u32 = 2;
const END_ROUNDS: u32 = 500;
const END_MILLIS: u32 = END_ROUNDS * END_ROUND_MILLIS;

/// Entries that are tried again beside the one that a call is about.
const WITHDRAWN_BESIDE: usize = 4;

/// Name of an entry.
pub(crate) fn entry_name(entry: u32) -> Name {
    let id = IdName::new(entry);
    // OK because an id name is the digits and the three bytes `.id`.
    let digits = &id.bytes()[..id.bytes().len() - 3];
    Name::new(digits).expect("digits are one component")
}

/// Name of an entry's identity.
pub(crate) fn id_name(entry: u32) -> Name {
    Name::new(IdName::new(entry).bytes()).expect("digits and `.id` are one component")
}

impl<K: Kernel> Claim<K> {
    /// Starts a command that may use the claim.
    ///
    /// The command runs in a process group of its own, has the claim in its
    /// `MORTMAIN_CLAIM`, and inherits a descriptor whose lock says that it
    /// lives.
    ///
    /// # Errors
    /// * [`ErrorKind::NotStarted`]: fork or exec failed.
    /// * [`ErrorKind::OtherUser`]: it would have run as another user or group.
    /// * [`ErrorKind::NoSpace`]: no room for its entry.
    /// * [`ErrorKind::Forked`], [`ErrorKind::LeaseLost`], [`ErrorKind::Closed`]:
    ///   the claim cannot be used here, or any more.
    ///
    /// # Crash behaviour
    /// Killed at any call, the owner leaves an entry by which every later sweep
    /// can tell whether the command runs. A child that was killed before its
    /// exec has run nothing.
    pub fn spawn(&mut self, program: &mut K::Program) -> Result<Started, Error> {
        let operation = "start a command in";
        let registry = self.registry(operation)?;
        let (entry, lock) = self.enter(&registry).map_err(|errno| self.fail(operation, errno))?;
        let plan = ChildPlan {
            commands: registry.raw(),
            id_name: IdName::new(entry),
            lock: lock.raw(),
            home: self.home,
            uid: self.uid,
            gid: self.gid,
            cookie: self.cookie.clone().into(),
        };
        let spawned = self.kernel().spawn(program, &plan);
        // CHECK(p3-close-copy): kept, it would make every dead command look alive to its owner.
        drop(lock);
        drop(registry);
        self.entries.insert(entry, Entry { unreaped: spawned.is_ok() });
        match spawned {
            Ok(pid) => Ok(Started { entry, pid }),
            Err(errno) => {
                // What cannot be withdrawn now is tried again later.
                let _ = self.withdraw(entry);
                let kind = match errno {
                    OTHER_USER => ErrorKind::OtherUser,
                    Errno::ENOSPC | Errno::EDQUOT => ErrorKind::NoSpace,
                    _ => ErrorKind::NotStarted,
                };
                Err(Error::of_kind(kind, operation, &self.path(), errno))
            }
        }
    }

    /// Makes an entry and takes its lock, before there is anything to lock it
    /// for.
    fn enter(&mut self, registry: &Fd<K>) -> Answer<(u32, Fd<K>)> {
        loop {
            let entry = self.next_entry;
            // Also when it fails: the file may have been made all the same.
            self.next_entry += 1;
            let name = entry_name(entry);
            let lock = match registry.create_file(&name) {
                Err(Errno::EEXIST) => continue,
                answer => answer?,
            };
            // CHECK(p1-lock-before-fork): a child that is not yet named is seen by its lock alone.
            if let Err(errno) = lock.lock() {
                let _ = registry.unlink(&name);
                return Err(errno);
            }
            return Ok((entry, lock));
        }
    }

    /// Withdraws an entry, if its command is gone: answers whether it was.
    ///
    /// # Errors
    /// [`ErrorKind::System`] when the answer could not be had or the entry not
    /// removed; it is then asked again when the claim is closed.
    ///
    /// # Crash behaviour
    /// Killed between its two calls, it leaves a lock file without an identity,
    /// which nothing uses.
    pub fn withdraw(&mut self, entry: u32) -> Result<bool, Error> {
        let operation = "withdraw a command of";
        if !self.entries.contains_key(&entry) {
            return Ok(true);
        }
        let registry = self.registry(operation)?;
        let me = self.kernel().identity().map_err(|errno| self.fail(operation, errno))?;
        let finding = probe::entry(&registry, entry, &me);
        // CHECK(p5-withdraw-gone): the shell's end is not the end of what it left in the background.
        if finding.proof != Proof::Gone {
            return Ok(false);
        }
        withdraw_names(&registry, entry).map_err(|errno| self.fail(operation, errno))?;
        self.entries.remove(&entry);
        Ok(true)
    }

    /// Waits for a command's own process to end, reaps it, and withdraws its
    /// entry if nothing of it runs any more. Answers how it ended, or `None`
    /// when the time is over.
    ///
    /// # Errors
    /// [`ErrorKind::System`], with `ECHILD` when it was reaped before.
    ///
    /// # Crash behaviour
    /// As [`Claim::withdraw`].
    pub fn wait(&mut self, started: &Started, wait: Wait) -> Result<Option<Ending>, Error> {
        let operation = "wait for a command of";
        let answer = self.kernel().reap(started.pid, wait);
        if !matches!(answer, Ok(None)) {
            self.reaped(started);
        }
        let ending = answer.map_err(|errno| self.fail(operation, errno))?;
        if ending.is_some() {
            self.withdraw_some(started.entry);
        }
        Ok(ending)
    }

    /// Withdraws an entry, and a few others whose commands had ended before but
    /// could not be withdrawn then.
    fn withdraw_some(&mut self, entry: u32) {
        let others =
            self.entries.iter().filter(|(other, state)| **other != entry && !state.unreaped);
        let others: Vec<u32> = others.map(|(other, _)| *other).take(WITHDRAWN_BESIDE).collect();
        for entry in core::iter::once(entry).chain(others) {
            // What cannot be withdrawn now is tried again later, at the latest when the claim is
            // closed.
            let _ = self.withdraw(entry);
        }
    }

    /// Whether the command of an entry has been reaped.
    pub(crate) fn was_reaped(&self, entry: u32) -> bool {
        self.entries.get(&entry).is_some_and(|entry| !entry.unreaped)
    }

    fn reaped(&mut self, started: &Started) {
        if let Some(entry) = self.entries.get_mut(&started.entry) {
            entry.unreaped = false;
        }
    }

    /// Ends a command: kills its group, reaps it and withdraws its entry.
    /// Answers how it ended, or `None` when it had been reaped before.
    ///
    /// # Errors
    /// [`ErrorKind::InUse`] when something of it still runs a second later: it
    /// left the group, or cannot be killed. [`ErrorKind::System`] when a call
    /// failed.
    ///
    /// # Crash behaviour
    /// Killed at any call, it leaves an entry by which every later sweep can
    /// tell whether something of the command still runs.
    pub fn end(&mut self, started: &Started) -> Result<Option<Ending>, Error> {
        let operation = "end a command of";
        let registry = self.registry(operation)?;
        let me = self.kernel().identity().map_err(|errno| self.fail(operation, errno))?;
        // CHECK(p5-kill-before-reap): once the leader is reaped, whoever did it, the number of its
        // group can be a stranger's.
        if self.kernel().await_end(started.pid, Wait::AtMost(0)) == Err(Errno::ECHILD) {
            self.reaped(started);
        }
        // CHECK(p5-another-child): it can be the number of another child of ours by then, of which
        // the question before was answered.
        if probe::number_reused(&registry, started.entry, &me) {
            self.reaped(started);
        }
        drop(registry);
        let mut ending = None;
        if self.entries.get(&started.entry).is_some_and(|entry| entry.unreaped) {
            match self.kernel().kill_group(started.pid) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(errno) => return Err(self.fail(operation, errno)),
            }
            let reaped = self.kernel().reap(started.pid, Wait::AtMost(END_MILLIS));
            ending = reaped.map_err(|errno| self.fail(operation, errno))?;
            if ending.is_some() {
                self.reaped(started);
            }
        }
        // A leader that could not be killed has left its group; it is asked after once.
        let rounds = if self.was_reaped(started.entry) { END_ROUNDS } else { 1 };
        for _ in 0..rounds {
            if self.withdraw(started.entry)? {
                return Ok(ending);
            }
            let paused = self.kernel().pause(END_ROUND_MILLIS);
            paused.map_err(|errno| self.fail(operation, errno))?;
        }
        let text = alloc::format!("something of command {} still runs", started.pid.0);
        Err(self.error(ErrorKind::InUse, operation, &text))
    }
}

/// Removes both names of an entry.
fn withdraw_names<K: Kernel>(registry: &Fd<K>, entry: u32) -> Answer<()> {
    // CHECK(p5-id-first): an identity without its lock file could never be judged.
    unlink_if_there(registry, &id_name(entry))?;
    unlink_if_there(registry, &entry_name(entry))
}

fn unlink_if_there<K: Kernel>(dir: &Fd<K>, name: &Name) -> Answer<()> {
    match dir.unlink(name) {
        Err(Errno::ENOENT) => Ok(()),
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_and_its_identity_have_canonical_names() {
        assert_eq!(entry_name(0).bytes(), b"0");
        assert_eq!(entry_name(10).bytes(), b"10");
        assert_eq!(id_name(10).bytes(), b"10.id");
    }
}
