//! What an outsider sees of a world: names, locks and processes as they are, whoever asks.

use mortmain::sys::{Handle, Name, Pid};

use super::World;
use super::files::Node;
use super::ids::{FileId, InodeId};
use super::process::Life;

/// A `flock` that is held.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Holder {
    /// The open file description that holds it.
    pub file: FileId,
    /// The process that took it, by whichever of the description's descriptors.
    pub by: Pid,
}

/// How far a process is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stage {
    /// There is none of this number, or none any more.
    Absent,
    /// Between fork and exec.
    Forked,
    /// It runs a program.
    Running,
    /// It has ended, and nobody has reaped it.
    Zombie,
}

impl World {
    /// The names in the directory that claims are made in, in order.
    #[must_use]
    pub fn in_root(&self) -> Vec<(Name, InodeId)> {
        self.names_in(self.root)
    }

    /// What a name in a directory stands for; `None` if there is no such name, or it is no directory.
    #[must_use]
    pub fn named_in(&self, dir: InodeId, name: &Name) -> Option<InodeId> {
        self.inodes.get(dir)?.entry(name)
    }

    /// The names in a directory, in order; none if it is no directory, or not there.
    #[must_use]
    pub fn all_in(&self, dir: InodeId) -> Vec<(Name, InodeId)> {
        if self.inodes.contains(dir) { self.names_in(dir) } else { Vec::new() }
    }

    /// Whether there is such an inode, and it is a directory.
    #[must_use]
    pub fn is_dir(&self, inode: InodeId) -> bool {
        self.inodes.get(inode).is_some_and(|inode| matches!(inode.node, Node::Dir(_)))
    }

    /// The permission bits of an inode.
    #[must_use]
    pub fn mode(&self, inode: InodeId) -> Option<u32> {
        Some(self.inodes.get(inode)?.mode())
    }

    /// Who holds the lock of an inode.
    #[must_use]
    pub fn holder(&self, inode: InodeId) -> Option<Holder> {
        self.inodes.get(inode)?.holder()
    }

    /// What a descriptor of a living process stands for.
    #[must_use]
    pub fn behind(&self, pid: Pid, fd: Handle) -> Option<(FileId, InodeId)> {
        self.processes.get(pid)?;
        let file = self.file_of(pid, fd).ok()?;
        Some((file, self.files.get(file)?.inode()))
    }

    /// How far a process is.
    #[must_use]
    pub fn stage(&self, pid: Pid) -> Stage {
        match self.processes.get(pid).map(|process| process.life) {
            None => Stage::Absent,
            Some(Life::Forked) => Stage::Forked,
            Some(Life::Running) => Stage::Running,
            Some(Life::Zombie(_)) => Stage::Zombie,
        }
    }

    /// The process that started another one, by its number.
    #[must_use]
    pub fn starter(pid: Pid) -> Pid {
        Pid(pid.0 / 10)
    }

    /// The group of a process that is there.
    #[must_use]
    pub fn group(&self, pid: Pid) -> Option<Pid> {
        Some(self.processes.get(pid)?.group())
    }
}
