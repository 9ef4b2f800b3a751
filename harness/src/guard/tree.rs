//! Ends a process, its group, and everything below it.
//!
//! Killing from the top loses what is below: when a parent dies its children become children of
//! pid 1, and nothing tells any more whose they were. Killing from the bottom races with a parent
//! that forks. So the tree is stopped first, from the top, until a look at all processes finds
//! nothing new and nothing that still moves; then it is killed as a whole. This repeats until a look
//! finds nothing alive.
//!
//! Invariants: pid 1 and this process are never touched; a process is signalled only through a
//! pidfd that was verified, after it was opened, to be of the process that was found.
//!
//! What it deliberately does not find: an orphan that left the group before the first look, and the
//! child that is just being forked by one thread while a look sees another thread stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rustix::process::Signal;

use crate::processes::{ProcInfo, process, processes, with_descendants};
use crate::wait::{Deadline, Watch};

/// A root, its group, and what was found below it.
pub(super) struct Tree {
    /// The number of the root and of its group.
    root: i32,
    /// Whether the root was reaped, after which its number is free once its group is empty.
    reaped: bool,
    /// The living that were found.
    members: BTreeMap<i32, Watch>,
    /// Those that may not be signalled, as they have become another user's.
    untouchable: BTreeSet<i32>,
}

impl Tree {
    pub(super) fn new(root: i32, reaped: bool) -> Self {
        Self { root, reaped, members: BTreeMap::new(), untouchable: BTreeSet::new() }
    }

    /// Adds a process that is known to belong to the tree, dead or alive.
    pub(super) fn add(&mut self, watch: Watch) {
        self.members.insert(watch.pid(), watch);
    }

    /// Kills everything, and returns those that did not die, each as a few words.
    pub(super) fn end(mut self, deadline: Deadline) -> io::Result<Vec<String>> {
        loop {
            self.stop(deadline)?;
            let members = std::mem::take(&mut self.members);
            if members.is_empty() {
                let words = |pid: &i32| format!("process {pid} of another user");
                return Ok(self.untouchable.iter().map(words).collect());
            }
            for watch in members.values() {
                watch.signal(Signal::KILL)?;
            }
            let left: Vec<String> = members
                .values()
                .filter_map(|watch| watch.gone(deadline).err().map(|e| e.to_string()))
                .collect();
            if !left.is_empty() {
                return Ok(left);
            }
        }
    }

    /// Stops all members, finds what is below them, and stops that, until nothing new appears and
    /// nothing moves. What does not stop by the deadline is left to be killed all the same.
    fn stop(&mut self, deadline: Deadline) -> io::Result<()> {
        for (_, watch) in std::mem::take(&mut self.members) {
            self.take(watch)?;
        }
        loop {
            let all = processes()?;
            let mut settled = true;
            for info in belonging(&all, self.members.keys().copied(), self.group_in(&all)) {
                if self.untouchable.contains(&info.pid) {
                    continue;
                }
                settled &= is_settled(info);
                if !self.members.contains_key(&info.pid)
                    && let Some(watch) = verified(info)?
                {
                    settled = false;
                    self.take(watch)?;
                }
            }
            let mut gone = Vec::new();
            for (pid, watch) in &self.members {
                if watch.is_gone()? {
                    gone.push(*pid);
                }
            }
            gone.iter().for_each(|pid| drop(self.members.remove(pid)));
            if settled || deadline.passed() {
                return Ok(());
            }
            std::thread::yield_now();
        }
    }

    /// Stops a process and makes it a member, unless it is gone or may not be signalled.
    fn take(&mut self, watch: Watch) -> io::Result<()> {
        match watch.signal(Signal::STOP) {
            Ok(true) => {
                self.members.insert(watch.pid(), watch);
                Ok(())
            }
            Ok(false) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                self.untouchable.insert(watch.pid());
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    /// The group's number, as long as it can only mean our group: a number that is free may become
    /// another process's, but not while a group of that number has members.
    fn group_in(&self, all: &[ProcInfo]) -> Option<i32> {
        let another = self.reaped && all.iter().any(|info| info.pid == self.root);
        (!another).then_some(self.root)
    }
}

/// Stops one process and then takes hold of what is below it and of its group, which run on.
pub(super) fn below_stopped(root: &Watch, deadline: Deadline) -> io::Result<Vec<Watch>> {
    root.signal(Signal::STOP)?;
    loop {
        let all = processes()?;
        let stopped = all.iter().find(|info| info.pid == root.pid()).is_none_or(is_settled);
        if stopped || deadline.passed() {
            let below = belonging(&all, [root.pid()], Some(root.pid()));
            let others = below.into_iter().filter(|info| info.pid != root.pid());
            return others.filter_map(|info| verified(info).transpose()).collect();
        }
        std::thread::yield_now();
    }
}

/// The living among `all` that are `known`, in the group, or below one that is.
fn belonging(
    all: &[ProcInfo],
    known: impl IntoIterator<Item = i32>,
    group: Option<i32>,
) -> Vec<&ProcInfo> {
    let group = all.iter().filter(|info| Some(info.pgid) == group).map(|info| info.pid);
    let roots: BTreeSet<i32> = known.into_iter().chain(group).collect();
    let pids = with_descendants(all, roots);
    let own = std::process::id().cast_signed();
    all.iter()
        .filter(|info| pids.contains(&info.pid) && info.lives() && info.pid > 1 && info.pid != own)
        .collect()
}

/// Whether the process can neither run on nor fork.
///
/// A signal is pending before it takes effect, and a fork that had begun goes through; hence the
/// wait for the state. In `D` the process waits inside a call that cannot be interrupted. The one
/// that lasts is that of a parent whose child shares its memory until it executes: it will never
/// show `T` while the child is stopped, and its child is there to be seen.
fn is_settled(info: &ProcInfo) -> bool {
    matches!(info.state, 'T' | 't' | 'D' | 'Z' | 'X')
}

/// Takes hold of the process that a look found, unless it has ended and the pid is another's.
///
/// Parent and group may have changed since and are no part of its identity.
fn verified(found: &ProcInfo) -> io::Result<Option<Watch>> {
    let Some(watch) = Watch::open(found.pid)? else {
        return Ok(None);
    };
    let now = process(found.pid)?;
    // Asked last: what lives now is what the line before was about.
    let held = !watch.is_gone()?;
    let same = now.is_some_and(|now| now.start_ticks == found.start_ticks);
    Ok((held && same).then_some(watch))
}
