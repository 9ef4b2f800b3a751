//! Who is who, and which directory is which: what the world calls by numbers of its own and the model
//! by places.
//!
//! A directory is known by its inode from the moment that it is there, whatever becomes of its name;
//! the lease by the description that its maker locked first; an entry by the inode of its file.

use mortmain::Prefix;
use mortmain::sys::{Name, Pid};
use mortmain_model::Actor;
use mortmain_model::state::{COMMANDS, DIRS};

use crate::explore::Setup;
use crate::simulated::subject::prefix;
use crate::world::World;
use crate::world::ids::{FileId, InodeId};

/// The processes that run from the beginning: one owner, and sweeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Players {
    pub(super) owner: Pid,
    pub(super) sweeps: Vec<Pid>,
    pub(super) prefix: Prefix,
}

/// A claim directory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Dir {
    pub(super) inode: InodeId,
    /// The description that its owner locked first.
    pub(super) lease: Option<FileId>,
}

/// The entry of a command.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Entry {
    pub(super) name: Name,
    pub(super) file: InodeId,
    /// The description that its owner locked first.
    pub(super) lock: Option<FileId>,
}

/// Everybody and everything that was met.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(super) struct Cast {
    pub(super) dirs: [Option<Dir>; DIRS],
    pub(super) entries: [Option<Entry>; COMMANDS],
    pub(super) commands: [Option<Pid>; COMMANDS],
    pub(super) children: [Option<Pid>; COMMANDS],
}

impl Players {
    pub(super) fn of(setup: &Setup) -> Players {
        let mut pids = setup.first_processes().map(|(pid, _)| pid);
        // OK because every case begins with its owner, and has nobody but sweeps beside it.
        let owner = pids.next().expect("an owner");
        Players { owner, sweeps: pids.collect(), prefix: prefix() }
    }

    /// The description by which the owner holds the lock of an inode, if it does.
    fn owners_lock(&self, world: &World, inode: InodeId) -> Option<FileId> {
        let holder = world.holder(inode).filter(|holder| holder.by == self.owner)?;
        Some(holder.file)
    }
}

impl Cast {
    /// Takes in whatever is new. Answers whether there is room for all of it.
    ///
    /// # Errors
    /// When something is there that nobody could have made.
    pub(super) fn meet(&mut self, players: &Players, world: &World) -> Result<bool, String> {
        Ok(self.meet_dirs(players, world)?
            && self.meet_entries(players, world)
            && self.meet_processes(players, world))
    }

    fn meet_dirs(&mut self, players: &Players, world: &World) -> Result<bool, String> {
        for (name, inode) in world.in_root() {
            let ours = players.prefix.parse(&name).is_some() && world.is_dir(inode);
            if !ours || self.is_dir(inode) {
                continue;
            }
            let maker = inode.0.by;
            if maker != players.owner {
                return Err(format!("process {} made {name}", maker.0));
            }
            let free = self.dirs.iter_mut().find(|slot| slot.is_none());
            let Some(slot) = free else { return Ok(false) };
            *slot = Some(Dir { inode, lease: None });
        }
        for dir in self.dirs.iter_mut().flatten() {
            dir.lease = dir.lease.or_else(|| players.owners_lock(world, dir.inode));
        }
        Ok(true)
    }

    fn meet_entries(&mut self, players: &Players, world: &World) -> bool {
        for (name, file) in self.registry(world).map_or_else(Vec::new, |dir| world.all_in(dir)) {
            let known = self.entries.iter().flatten().any(|entry| entry.file == file);
            if known || !name.bytes().iter().all(u8::is_ascii_digit) {
                continue;
            }
            let Some(slot) = self.entries.iter_mut().find(|entry| entry.is_none()) else {
                return false;
            };
            *slot = Some(Entry { name, file, lock: None });
        }
        for entry in self.entries.iter_mut().flatten() {
            entry.lock = entry.lock.or_else(|| players.owners_lock(world, entry.file));
        }
        true
    }

    fn meet_processes(&mut self, players: &Players, world: &World) -> bool {
        for pid in world.living() {
            if self.actor(players, pid).is_some() {
                continue;
            }
            let starter = World::starter(pid);
            let slot = if starter == players.owner {
                self.commands.iter_mut().find(|slot| slot.is_none())
            } else {
                let parent = self.commands.iter().position(|command| *command == Some(starter));
                parent.map(|at| &mut self.children[at]).filter(|slot| slot.is_none())
            };
            let Some(slot) = slot else { return false };
            *slot = Some(pid);
        }
        true
    }

    /// The registry of the owner's last claim.
    pub(super) fn registry(&self, world: &World) -> Option<InodeId> {
        let dir = self.dirs.iter().flatten().next_back()?;
        world.named_in(dir.inode, &Name::fixed("commands"))
    }

    pub(super) fn is_dir(&self, inode: InodeId) -> bool {
        self.dirs.iter().flatten().any(|dir| dir.inode == inode)
    }

    /// What the model calls a process.
    pub(super) fn actor(&self, players: &Players, pid: Pid) -> Option<Actor> {
        let slot = |pids: &[Option<Pid>]| pids.iter().position(|other| *other == Some(pid));
        let sweep = players.sweeps.iter().position(|other| *other == pid);
        (pid == players.owner)
            .then_some(Actor::Owner(0))
            .or_else(|| sweep.map(Actor::Sweep))
            .or_else(|| slot(&self.commands).map(Actor::Command))
            .or_else(|| slot(&self.children).map(Actor::Child))
    }
}
