//! What a process of a program does: the calls of the seam over a few names, descriptors and
//! processes, and what is done to a process from outside.
//!
//! Invariants:
//! * An operation is plain data, without a number that only one side knows: processes are counted in the
//!   order of their birth, and descriptors have the numbers that both sides give out alike.
//! * [`Operation::call`] is the one translation into calls, for both sides.

use std::fmt;

use mortmain::Random;
use mortmain::sys::{Call, Handle, Name, PathBytes, Pid, Sought, Wait};
use serde::{Deserialize, Serialize};

use crate::world::Special;

/// A name of the alphabet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Word {
    /// `a`
    A,
    /// `b`
    B,
    /// `c`
    C,
    /// 255 times `l`, as long as a name can be.
    Long,
    /// `0.id`, which a spawn makes.
    Id,
}

impl Word {
    /// All of them, the simplest first.
    pub(super) const ALL: [Word; 5] = [Word::A, Word::B, Word::C, Word::Id, Word::Long];

    /// The name.
    #[must_use]
    pub fn name(self) -> Name {
        match self {
            Word::A => Name::fixed("a"),
            Word::B => Name::fixed("b"),
            Word::C => Name::fixed("c"),
            // OK because the longest name is a name.
            Word::Long => Name::new(&[b'l'; Name::BYTES_MAX]).expect("it is not too long"),
            Word::Id => Name::fixed("0.id"),
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Word::Long => f.write_str("l…"),
            other => other.name().fmt(f),
        }
    }
}

/// A descriptor's number.
pub type Number = i32;
/// A process, counted in the order of birth.
pub type Who = usize;

/// What a process does, or what is done to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is the call of the seam that has its name")]
pub enum Operation {
    OpenRoot,
    /// The same, by a path that goes through a name in the root.
    OpenRootBelow(Word),
    OpenDir(Number, Word),
    OpenFile(Number, Word),
    CreateFile(Number, Word),
    Close(Number),
    Stat(Number),
    StatAt(Number, Word),
    FsMagic(Number),
    /// With the listing begun anew.
    ReadDir(Number),
    /// With the listing gone on with.
    ReadDirOn(Number),
    Mkdir(Number, Word),
    /// The second word is what the link says.
    Symlink(Number, Word, Word),
    Readlink(Number, Word),
    Rename(Number, Word, Word),
    Unlink(Number, Word),
    Rmdir(Number, Word),
    Unseal(Number, Word),
    Chmod(Number),
    Lock(Number),
    Unlock(Number),
    LockHolder(Number),
    Read(Number),
    Write(Number),
    Sync(Number),
    Whoami,
    ProcessExists(Who),
    GroupExists(Who),
    Process(Who),
    Pidfs(Who),
    Pids,
    /// Of claims that are called `a` and `b`.
    Uses(Who),
    KillGroup(Who),
    /// Without waiting, and without reaping.
    Look(Who),
    /// Without waiting.
    Reap(Who),
    /// Doubles the process.
    Fork,
    /// Starts a command: the directory of its entry, and the descriptor that it inherits.
    Spawn(Number, Number),
    /// Makes a FIFO, a socket or a device.
    MakeSpecial(Number, Word, Special),
    /// Opens a name to read it, with no care at all.
    OpenPlain(Number, Word),
    /// Mounts what the first name stands for over the second one.
    Mount(Number, Word, Word),
    /// Ends what is mounted on a name.
    Unmount(Number, Word),
    /// Makes a group of its own.
    NewGroup,
    /// Closes every descriptor.
    CloseAll,
    /// Ends by itself.
    Exit,
    /// Is killed.
    Killed,
}

/// The status that [`Operation::Exit`] ends with.
pub(super) const STATUS: u8 = 3;
/// What [`Operation::Write`] writes, at this place.
const WRITTEN: (u64, &[u8]) = (1, b"xy");
/// The mode of [`Operation::Chmod`].
const MODE: u32 = 0o1755;
/// What the claims of [`Operation::Uses`] are called by a cookie; a spawn hands the first one on.
const RANDOMS: [&[u8]; 2] = [b"aaaaaaaaaaa2", b"baaaaaaaaaa2"];

/// The cookie of what is spawned.
pub(super) fn cookie() -> Box<[u8]> {
    RANDOMS[0].into()
}

fn sought() -> Box<Sought> {
    let names = [Word::A, Word::B].map(Word::name);
    // OK because they are of the form that claims have.
    let randoms = RANDOMS.map(|text| Random::parse(text).expect("a random part"));
    Box::new(Sought::new(&[(&names[0], randoms[0]), (&names[1], randoms[1])]))
}

impl Operation {
    /// Its call, if it is one of the seam's: with the numbers of processes, and the path of the root.
    #[must_use]
    pub fn call(self, pid: impl Fn(Who) -> Pid, root: &PathBytes) -> Option<Call> {
        use Operation as Op;
        let now = Wait::AtMost(0);
        Some(match self {
            Op::OpenRoot => Call::OpenRoot { path: root.clone() },
            Op::OpenRootBelow(word) => Call::OpenRoot { path: root.join(word.name().bytes()) },
            Op::OpenDir(dir, name) => Call::OpenDir { dir: Handle(dir), name: name.name() },
            Op::OpenFile(dir, name) => Call::OpenFile { dir: Handle(dir), name: name.name() },
            Op::CreateFile(dir, name) => Call::CreateFile { dir: Handle(dir), name: name.name() },
            Op::Close(fd) => Call::Close { fd: Handle(fd) },
            Op::Stat(fd) => Call::Stat { fd: Handle(fd) },
            Op::StatAt(dir, name) => Call::StatAt { dir: Handle(dir), name: name.name() },
            Op::FsMagic(fd) => Call::FsMagic { fd: Handle(fd) },
            Op::ReadDir(dir) => Call::ReadDir { dir: Handle(dir), restart: true },
            Op::ReadDirOn(dir) => Call::ReadDir { dir: Handle(dir), restart: false },
            Op::Mkdir(dir, name) => Call::Mkdir { dir: Handle(dir), name: name.name() },
            Op::Symlink(dir, name, to) => {
                let text = to.name().bytes().into();
                Call::Symlink { dir: Handle(dir), name: name.name(), text }
            }
            Op::Readlink(dir, name) => Call::Readlink { dir: Handle(dir), name: name.name() },
            Op::Rename(dir, from, to) => {
                Call::Rename { dir: Handle(dir), from: from.name(), to: to.name() }
            }
            Op::Unlink(dir, name) => Call::Unlink { dir: Handle(dir), name: name.name() },
            Op::Rmdir(dir, name) => Call::Rmdir { dir: Handle(dir), name: name.name() },
            Op::Unseal(dir, name) => Call::Unseal { dir: Handle(dir), name: name.name() },
            Op::Chmod(fd) => Call::Chmod { fd: Handle(fd), mode: MODE },
            Op::Lock(fd) => Call::Lock { fd: Handle(fd) },
            Op::Unlock(fd) => Call::Unlock { fd: Handle(fd) },
            Op::LockHolder(fd) => Call::LockHolder { fd: Handle(fd) },
            Op::Read(fd) => Call::Read { fd: Handle(fd), offset: 0, len: 2 },
            Op::Write(fd) => {
                let (offset, bytes) = WRITTEN;
                Call::Write { fd: Handle(fd), offset, bytes: bytes.into() }
            }
            Op::Sync(fd) => Call::Sync { fd: Handle(fd) },
            Op::Whoami => Call::Whoami,
            Op::ProcessExists(of) => Call::ProcessExists { pid: pid(of) },
            Op::GroupExists(of) => Call::GroupExists { group: pid(of) },
            Op::Process(of) => Call::Process { pid: pid(of) },
            Op::Pidfs(of) => Call::Pidfs { pid: pid(of) },
            Op::Pids => Call::Pids,
            Op::Uses(of) => Call::Uses { pid: pid(of), of: sought(), known: Vec::new() },
            Op::KillGroup(of) => Call::KillGroup { group: pid(of) },
            Op::Look(of) => Call::Wait { pid: pid(of), wait: now, reap: false },
            Op::Reap(of) => Call::Wait { pid: pid(of), wait: now, reap: true },
            Op::Fork
            | Op::Spawn(..)
            | Op::MakeSpecial(..)
            | Op::OpenPlain(..)
            | Op::Mount(..)
            | Op::Unmount(..)
            | Op::NewGroup
            | Op::CloseAll
            | Op::Exit
            | Op::Killed => return None,
        })
    }

    /// The kind of operation in a word: of a call, the call's.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Operation::Fork => "fork",
            Operation::Spawn(..) => "spawn",
            Operation::MakeSpecial(..) => "make-special",
            Operation::OpenPlain(..) => "open-plain",
            Operation::Mount(..) => "mount",
            Operation::Unmount(..) => "unmount",
            Operation::NewGroup => "new-group",
            Operation::CloseAll => "close-all",
            Operation::Exit => "exit",
            Operation::Killed => "killed",
            call => call.call(|_| Pid(0), &PathBytes::default()).map_or("", |call| call.word()),
        }
    }

    /// The descriptors that it names.
    pub(super) fn numbers_mut(&mut self) -> Vec<&mut Number> {
        use Operation as Op;
        match self {
            Op::OpenDir(fd, _)
            | Op::OpenFile(fd, _)
            | Op::CreateFile(fd, _)
            | Op::Close(fd)
            | Op::Stat(fd)
            | Op::StatAt(fd, _)
            | Op::FsMagic(fd)
            | Op::ReadDir(fd)
            | Op::ReadDirOn(fd)
            | Op::Mkdir(fd, _)
            | Op::Symlink(fd, ..)
            | Op::MakeSpecial(fd, ..)
            | Op::OpenPlain(fd, _)
            | Op::Mount(fd, ..)
            | Op::Unmount(fd, _)
            | Op::Readlink(fd, _)
            | Op::Rename(fd, ..)
            | Op::Unlink(fd, _)
            | Op::Rmdir(fd, _)
            | Op::Unseal(fd, _)
            | Op::Chmod(fd)
            | Op::Lock(fd)
            | Op::Unlock(fd)
            | Op::LockHolder(fd)
            | Op::Read(fd)
            | Op::Write(fd)
            | Op::Sync(fd) => vec![fd],
            Op::Spawn(dir, lock) => vec![dir, lock],
            _ => Vec::new(),
        }
    }

    /// The names that it has.
    pub(super) fn words_mut(&mut self) -> Vec<&mut Word> {
        use Operation as Op;
        match self {
            Op::OpenRootBelow(word)
            | Op::OpenDir(_, word)
            | Op::OpenFile(_, word)
            | Op::CreateFile(_, word)
            | Op::StatAt(_, word)
            | Op::Mkdir(_, word)
            | Op::MakeSpecial(_, word, _)
            | Op::OpenPlain(_, word)
            | Op::Unmount(_, word)
            | Op::Readlink(_, word)
            | Op::Unlink(_, word)
            | Op::Rmdir(_, word)
            | Op::Unseal(_, word) => vec![word],
            Op::Symlink(_, one, other) | Op::Rename(_, one, other) | Op::Mount(_, one, other) => {
                vec![one, other]
            }
            _ => Vec::new(),
        }
    }

    /// The process that it asks after.
    pub(super) fn who_mut(&mut self) -> Option<&mut Who> {
        use Operation as Op;
        match self {
            Op::ProcessExists(of)
            | Op::GroupExists(of)
            | Op::Process(of)
            | Op::Pidfs(of)
            | Op::Uses(of)
            | Op::KillGroup(of)
            | Op::Look(of)
            | Op::Reap(of) => Some(of),
            _ => None,
        }
    }

    /// The names that may come or go by it.
    pub(super) fn changes(mut self) -> Vec<Word> {
        match self {
            Operation::Spawn(..) => vec![Word::Id],
            Operation::CreateFile(..)
            | Operation::Mkdir(..)
            | Operation::Symlink(..)
            | Operation::MakeSpecial(..)
            | Operation::Rename(..)
            | Operation::Unlink(..)
            | Operation::Rmdir(..) => self.words_mut().into_iter().map(|word| *word).collect(),
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Operation::ProcessExists(of)
            | Operation::GroupExists(of)
            | Operation::Process(of)
            | Operation::Pidfs(of)
            | Operation::Uses(of)
            | Operation::KillGroup(of) => write!(f, "{} p{of}", self.word()),
            Operation::Look(of) => write!(f, "wait p{of} at most 0 ms"),
            Operation::Reap(of) => write!(f, "wait p{of} at most 0 ms and reap"),
            Operation::Spawn(dir, lock) => write!(f, "spawn with the entry {dir}/0.id and {lock}"),
            Operation::MakeSpecial(dir, name, special) => {
                write!(f, "make {dir}/{name} {}", special.word())
            }
            Operation::Mount(dir, from, on) => write!(f, "mount {dir}/{from} on {on}"),
            Operation::Unmount(dir, on) => write!(f, "unmount {dir}/{on}"),
            Operation::OpenPlain(dir, name) => write!(f, "open-plain {dir}/{name}"),
            Operation::Exit => write!(f, "exit {STATUS}"),
            Operation::Killed => f.write_str("is killed"),
            Operation::Readlink(dir, name) => write!(f, "readlink {dir}/{name}"),
            _ => {
                let root = PathBytes::from(&b"/r"[..]);
                match self.call(|_| Pid(0), &root) {
                    Some(call) => {
                        // The longest name would hide the rest of the line.
                        let long = Word::Long.name().to_string();
                        f.write_str(&call.to_string().replace(&long, "l…"))
                    }
                    None => f.write_str(self.word()),
                }
            }
        }
    }
}
