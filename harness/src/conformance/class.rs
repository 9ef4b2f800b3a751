//! What programs are about: the operations of each class, few for short programs, many for drawn ones.

use super::operation::{Number, Operation, Word};
use super::program::{Orphans, PROCESSES_MAX};
use crate::lots::Lots;
use crate::world::Special;

/// What programs are about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Locks, and who shares them.
    Locks,
    /// Names, and what they stand for.
    Names,
    /// FIFOs, sockets and devices among names, and what opens them.
    Specials,
    /// Mounts, which are root's to make, and what enters them.
    Mounts,
    /// Births, deaths, groups.
    Processes,
    /// All of it but mounts in one program: drawn only.
    Mixed,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 6] = [
        Class::Locks,
        Class::Names,
        Class::Specials,
        Class::Mounts,
        Class::Processes,
        Class::Mixed,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::Locks => "locks",
            Class::Names => "names",
            Class::Specials => "specials",
            Class::Mounts => "mounts",
            Class::Processes => "processes",
            Class::Mixed => "mixed",
        }
    }

    /// Processes at the beginning of a short program.
    pub(super) fn first(self) -> usize {
        match self {
            Class::Locks | Class::Processes | Class::Mixed => 2,
            Class::Names | Class::Specials | Class::Mounts => 1,
        }
    }

    /// What becomes of orphans where it matters.
    pub(super) fn orphans(self) -> &'static [Orphans] {
        match self {
            Class::Processes => &[Orphans::Reaped, Orphans::Kept],
            _ => &[Orphans::Reaped],
        }
    }

    /// The operations of short programs: few names, few descriptors.
    #[must_use]
    pub fn few(self) -> Vec<Operation> {
        use Operation as Op;
        use Word::{A, B};
        match self {
            Class::Locks => vec![
                Op::OpenRoot,
                Op::Lock(3),
                Op::Lock(4),
                Op::Lock(255),
                Op::Unlock(3),
                Op::Unlock(4),
                Op::Unlock(255),
                Op::Close(3),
                Op::Close(4),
                Op::Close(255),
                Op::LockHolder(3),
                Op::LockHolder(4),
                Op::Fork,
                Op::Spawn(3, 3),
                Op::Killed,
            ],
            Class::Names => vec![
                Op::CreateFile(3, A),
                Op::Mkdir(3, A),
                Op::Mkdir(3, B),
                Op::Symlink(3, A, B),
                Op::Rename(3, A, A),
                Op::Rename(3, A, B),
                Op::Rename(3, B, A),
                Op::Unlink(3, A),
                Op::Rmdir(3, A),
                Op::Rmdir(3, B),
                Op::OpenDir(3, A),
                Op::OpenFile(3, A),
                Op::OpenRootBelow(A),
                Op::StatAt(3, A),
                Op::Readlink(3, A),
                Op::Unseal(3, A),
                Op::ReadDir(3),
                Op::ReadDirOn(3),
                Op::Mkdir(4, A),
                Op::CreateFile(4, A),
                Op::Unlink(4, A),
                Op::Rmdir(4, A),
                Op::Rename(4, A, B),
                Op::OpenDir(4, A),
                Op::StatAt(4, A),
                Op::ReadDir(4),
                Op::Stat(4),
                Op::Read(4),
                Op::Write(4),
                Op::Chmod(4),
                Op::Sync(4),
                Op::FsMagic(4),
                Op::Uses(0),
                Op::Close(4),
            ],
            Class::Specials => vec![
                Op::MakeSpecial(3, A, Special::Fifo),
                Op::MakeSpecial(3, A, Special::Socket),
                Op::MakeSpecial(3, A, Special::Device),
                Op::MakeSpecial(3, B, Special::Fifo),
                Op::CreateFile(3, B),
                Op::Mkdir(3, B),
                Op::Symlink(3, B, A),
                Op::Rename(3, A, B),
                Op::Rename(3, B, A),
                Op::Unlink(3, A),
                Op::Rmdir(3, A),
                Op::OpenDir(3, A),
                Op::OpenFile(3, A),
                Op::OpenFile(3, B),
                Op::OpenRootBelow(A),
                Op::OpenRootBelow(B),
                Op::OpenPlain(3, A),
                Op::OpenPlain(3, B),
                Op::StatAt(3, A),
                Op::Readlink(3, A),
                Op::Unseal(3, A),
                Op::ReadDir(3),
                Op::Stat(4),
                Op::Lock(4),
            ],
            Class::Mounts => vec![
                Op::Mkdir(3, A),
                Op::Mkdir(3, B),
                Op::CreateFile(3, A),
                Op::Symlink(3, B, A),
                Op::Mount(3, A, B),
                Op::Mount(3, B, A),
                Op::Mount(3, A, A),
                Op::Unmount(3, A),
                Op::Unmount(3, B),
                Op::OpenDir(3, A),
                Op::OpenDir(3, B),
                Op::OpenFile(3, A),
                Op::CreateFile(3, B),
                Op::OpenRootBelow(A),
                Op::OpenRootBelow(B),
                Op::OpenPlain(3, B),
                Op::StatAt(3, A),
                Op::StatAt(3, B),
                Op::Readlink(3, B),
                Op::Unseal(3, B),
                Op::Rename(3, A, B),
                Op::Rename(3, B, A),
                Op::Unlink(3, A),
                Op::Rmdir(3, A),
                Op::Rmdir(3, B),
                Op::Mkdir(4, A),
                Op::StatAt(4, A),
                Op::ReadDir(3),
                Op::ReadDir(4),
                Op::Stat(4),
                Op::Uses(0),
            ],
            Class::Mixed => Vec::new(),
            Class::Processes => {
                let mut few = vec![Op::Fork, Op::NewGroup, Op::Exit, Op::Killed, Op::Pids];
                for of in 0..3 {
                    few.extend([
                        Op::ProcessExists(of),
                        Op::GroupExists(of),
                        Op::Process(of),
                        Op::Pidfs(of),
                        Op::KillGroup(of),
                        Op::Look(of),
                        Op::Reap(of),
                    ]);
                }
                few.extend([Op::Whoami, Op::CloseAll]);
                few
            }
        }
    }

    /// An operation of a drawn program.
    pub(super) fn any(self, lots: &mut Lots) -> Operation {
        use Operation as Op;
        if self == Class::Mixed {
            let parts = [Class::Locks, Class::Names, Class::Specials, Class::Processes];
            return parts[lots.below(parts.len())].any(lots);
        }
        let fd = any_fd(lots);
        let (word, other) = (any_word(lots), any_word(lots));
        let of = lots.below(PROCESSES_MAX);
        let locks = [
            Op::OpenRoot,
            Op::OpenFile(fd, word),
            Op::OpenDir(fd, word),
            Op::CreateFile(fd, word),
            Op::Mkdir(fd, word),
            Op::Unlink(fd, word),
            Op::Rmdir(fd, word),
            Op::Rename(fd, word, other),
            Op::Lock(fd),
            Op::Lock(fd),
            Op::Unlock(fd),
            Op::Close(fd),
            Op::LockHolder(fd),
            Op::Uses(of),
            Op::Fork,
            Op::Spawn(any_fd(lots), fd),
            Op::CloseAll,
            Op::Killed,
            Op::Exit,
        ];
        // Directories in directories are what most of it is about.
        let names = [
            Op::OpenRoot,
            Op::OpenRootBelow(word),
            Op::OpenDir(fd, word),
            Op::OpenDir(fd, word),
            Op::OpenFile(fd, word),
            Op::CreateFile(fd, word),
            Op::Close(fd),
            Op::Close(fd),
            Op::Stat(fd),
            Op::StatAt(fd, word),
            Op::FsMagic(fd),
            Op::ReadDir(fd),
            Op::ReadDirOn(fd),
            Op::Mkdir(fd, word),
            Op::Mkdir(fd, word),
            Op::Mkdir(fd, word),
            Op::Symlink(fd, word, other),
            Op::Readlink(fd, word),
            Op::Rename(fd, word, other),
            Op::Rename(fd, word, other),
            Op::Rename(fd, word, other),
            Op::Unlink(fd, word),
            Op::Rmdir(fd, word),
            Op::Rmdir(fd, word),
            Op::Unseal(fd, word),
            Op::Chmod(fd),
            Op::Read(fd),
            Op::Write(fd),
            Op::Sync(fd),
        ];
        let processes = [
            Op::Whoami,
            Op::ProcessExists(of),
            Op::GroupExists(of),
            Op::Process(of),
            Op::Pidfs(of),
            Op::Pids,
            Op::Uses(of),
            Op::KillGroup(of),
            Op::Look(of),
            Op::Reap(of),
            Op::Fork,
            Op::Fork,
            Op::Spawn(fd, any_fd(lots)),
            Op::NewGroup,
            Op::CloseAll,
            Op::Exit,
            Op::Killed,
        ];
        match self {
            Class::Locks => locks[lots.below(locks.len())],
            Class::Names => names[lots.below(names.len())],
            Class::Specials => Class::any_special(lots, fd, (word, other)),
            Class::Mounts => Class::any_mount(lots, fd, (word, other)),
            Class::Processes | Class::Mixed => processes[lots.below(processes.len())],
        }
    }

    /// One about mounts.
    fn any_mount(lots: &mut Lots, fd: Number, (word, other): (Word, Word)) -> Operation {
        use Operation as Op;
        let all = [
            Op::Mount(fd, word, other),
            Op::Mount(fd, word, other),
            Op::Mount(fd, word, other),
            Op::Unmount(fd, word),
            Op::OpenRoot,
            Op::OpenRootBelow(word),
            Op::OpenRootBelow(word),
            Op::OpenPlain(fd, word),
            Op::OpenPlain(fd, word),
            Op::OpenDir(fd, word),
            Op::OpenFile(fd, word),
            Op::CreateFile(fd, word),
            Op::Mkdir(fd, word),
            Op::Mkdir(fd, word),
            Op::Symlink(fd, word, other),
            Op::Rename(fd, word, other),
            Op::Unlink(fd, word),
            Op::Rmdir(fd, word),
            Op::StatAt(fd, word),
            Op::Readlink(fd, word),
            Op::Unseal(fd, word),
            Op::ReadDir(fd),
            Op::Stat(fd),
            Op::Lock(fd),
            Op::Uses(0),
            Op::Close(fd),
        ];
        all[lots.below(all.len())]
    }

    /// One about FIFOs, sockets and devices.
    fn any_special(lots: &mut Lots, fd: Number, (word, other): (Word, Word)) -> Operation {
        use Operation as Op;
        let kinds = [Special::Fifo, Special::Socket, Special::Device];
        let make = Op::MakeSpecial(fd, word, kinds[lots.below(kinds.len())]);
        let all = [
            make,
            make,
            make,
            Op::OpenPlain(fd, word),
            Op::OpenPlain(fd, word),
            Op::OpenDir(fd, word),
            Op::OpenFile(fd, word),
            Op::OpenRootBelow(word),
            Op::CreateFile(fd, word),
            Op::Mkdir(fd, word),
            Op::Symlink(fd, word, other),
            Op::Rename(fd, word, other),
            Op::Unlink(fd, word),
            Op::Rmdir(fd, word),
            Op::StatAt(fd, word),
            Op::Readlink(fd, word),
            Op::Unseal(fd, word),
            Op::ReadDir(fd),
            Op::Stat(fd),
            Op::Lock(fd),
            Op::Read(fd),
            Op::Write(fd),
            Op::Close(fd),
        ];
        all[lots.below(all.len())]
    }

    /// The operations of drawn programs, each with some names and numbers.
    #[must_use]
    pub fn many(self) -> Vec<Operation> {
        let mut lots = Lots::of(0, 0);
        // Far more than it takes to draw the rarest.
        (0..4096).map(|_| self.any(&mut lots)).collect()
    }
}

fn any_fd(lots: &mut Lots) -> Number {
    [3, 3, 3, 3, 4, 4, 4, 4, 5, 255][lots.below(10)]
}

fn any_word(lots: &mut Lots) -> Word {
    use Word::{A, B, C, Id, Long};
    [A, A, A, A, A, B, B, B, B, C, Long, Id][lots.below(12)]
}
