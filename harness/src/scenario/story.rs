//! A scenario as it is understood: who is in it, what happens, what must be true.
//!
//! Every name that a step or an expectation mentions is that of an actor of the right kind, and every
//! need is declared: the reader (`read`) has seen to it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use super::fields::Count;
use super::needs::Need;
use super::reasons::EVIDENCE;
use crate::actor::Passed;
use crate::actor::wire::Asked;

/// A story.
#[derive(Clone, Debug)]
pub struct Story {
    /// `<chapter>/<slug>`.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Its text, for diagnostics.
    pub text: String,
    /// What it tells, in a sentence.
    pub about: String,
    /// The rules that it protects, by their ids.
    pub rules: Vec<String>,
    /// The classes of faults that it belongs to.
    pub classes: Vec<String>,
    /// What the machine must have.
    pub needs: Vec<Need>,
    /// Why it can run on the real kernel only.
    pub host_only: Option<String>,
    /// How often it is told at most, with another `n` each time.
    pub rounds_max: Option<u64>,
    /// How often it is told, with another `n` each time.
    pub rounds: Option<u64>,
    /// What the words in angle brackets stand for in this one, for who reads a finding.
    pub case: String,
    /// The same story with other words in their places.
    pub other_cases: Vec<Story>,
    /// Whether the first process leaves ended orphans as zombies.
    pub zombies_stay: bool,
    /// How often its steps are told, one time after the other on the same root.
    pub times: u64,
    /// Who is in it.
    pub actors: BTreeMap<String, Actor>,
    /// What happens.
    pub steps: Vec<Step>,
    /// What is left at the end, although nobody uses anything any more.
    pub left_over: Vec<LeftOver>,
}

impl Story {
    /// A server, as it is described.
    ///
    /// # Panics
    /// If none has this name.
    #[must_use]
    pub fn server(&self, name: &str) -> &Server {
        match self.actors.get(name) {
            Some(Actor::Server(server)) => server,
            _ => panic!("`{name}` is no server"),
        }
    }

    /// A command, as it is described.
    ///
    /// # Panics
    /// If none has this name.
    #[must_use]
    pub fn command(&self, name: &str) -> &Command {
        match self.actors.get(name) {
            Some(Actor::Command(command)) => command,
            _ => panic!("`{name}` is no command"),
        }
    }

    /// Who sweeps, as it is described; a server sweeps as any program does.
    ///
    /// # Panics
    /// If it is neither a sweeper nor a server.
    #[must_use]
    pub fn sweeper(&self, name: &str) -> Sweeper {
        match self.actors.get(name) {
            Some(Actor::Sweeper(sweeper)) => sweeper.clone(),
            _ => {
                let server = self.server(name);
                let (plain_user, prefix) = (server.plain_user, server.prefix.clone());
                Sweeper { plain_user, prefix, ..Sweeper::default() }
            }
        }
    }

    /// Whether it shows a known escape: a command that loses its claim.
    #[must_use]
    pub fn shows_an_escape(&self) -> bool {
        let escapes = |actor: &Actor| match actor {
            Actor::Command(command) => command.escapes.is_some(),
            _ => false,
        };
        self.actors.values().any(escapes)
    }

    /// Whether it tells of something that lives: a claim that is kept for what a sweep answers to its
    /// questions, and not for what stands in the way of a removal.
    #[must_use]
    pub fn tells_of_the_living(&self) -> bool {
        let expected = self.steps.iter().flat_map(|step| &step.expects);
        expected.into_iter().any(|one| match &one.what {
            Expected::Claim { is: State::Kept, because: Some(because), .. } => {
                EVIDENCE.contains(&because.as_str())
            }
            _ => false,
        })
    }
}

/// Somebody or something in a story.
#[derive(Clone, Debug)]
pub enum Actor {
    /// A program that makes a claim.
    Server(Server),
    /// A program that a server starts in its claim.
    Command(Command),
    /// A program that only sweeps.
    Sweeper(Sweeper),
    /// A directory outside of every claim whose content must never change.
    Precious(Precious),
    /// A file system of the story's own, with a root in which claims can lie.
    Disk(Disk),
    /// Many owners at once, most of them dead.
    Crowd(Crowd),
    /// A program that has nothing to do with any claim.
    Stranger,
    /// A pid namespace, in which servers and sweepers can be.
    Container(Container),
}

impl Actor {
    /// What it is, in a word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Actor::Server(_) => "server",
            Actor::Command(_) => "command",
            Actor::Sweeper(_) => "sweeper",
            Actor::Precious(_) => "precious",
            Actor::Disk(_) => "disk",
            Actor::Crowd(_) => "crowd",
            Actor::Stranger => "stranger",
            Actor::Container(_) => "container",
        }
    }

    /// The prefix that it makes or sweeps claims with, if it is not the usual one.
    #[must_use]
    pub fn prefix(&self) -> Option<&str> {
        match self {
            Actor::Server(Server { prefix, .. }) | Actor::Sweeper(Sweeper { prefix, .. }) => {
                prefix.as_deref()
            }
            _ => None,
        }
    }

    /// Whether it is another in each round.
    #[must_use]
    pub fn uses_round(&self) -> bool {
        match self {
            Actor::Server(Server { descriptors, .. })
            | Actor::Sweeper(Sweeper { descriptors, .. }) => *descriptors == Some(Count::Round),
            _ => false,
        }
    }
}

/// A program that makes a claim.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// Whether it is a user without rights over others, also where the story is told by root.
    pub plain_user: bool,
    /// The prefix of its claim, if it is not the usual one.
    pub prefix: Option<String>,
    /// The disk on which its claim lies, if not in the root that every story has.
    pub on: Option<String>,
    /// The server in whose claim its own lies.
    pub within: Option<String>,
    /// So many descriptors may it open beyond what it has open when it makes its claim.
    pub descriptors: Option<Count>,
    /// Whether the shell that was started ends, and leaves the server in the background.
    pub background: bool,
    /// What it sees of the machine.
    pub surroundings: Surroundings,
    /// Whether it is the first process of its container, which ends with it.
    pub first: bool,
    /// Whether nobody may read its program, so that nobody but root may trace it.
    pub unreadable: bool,
    /// What is passed to it as sockets are by a service manager.
    pub passed: Option<PassedSockets>,
}

/// What is passed to a program that is started, and what is said about it.
#[derive(Clone, Debug)]
pub struct PassedSockets {
    /// What is at its descriptors from 3 on.
    pub what: Vec<Passed>,
    /// Whether it is said to be another process's.
    pub to_another: bool,
    /// What the sockets are called, if that is said.
    pub names: Option<Vec<String>>,
}

/// A file system of a story's own.
#[derive(Clone, Debug)]
pub struct Disk {
    /// Its kind.
    pub kind: DiskKind,
    /// Its size; one that is not given is large enough for anything.
    pub size_kib: Option<u64>,
    /// So many files and directories fit on it.
    pub inodes: Option<u64>,
    /// The disk that is the lower layer of an overlay.
    pub lower: Option<String>,
}

/// The kind of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskKind {
    /// In memory.
    Tmpfs,
    /// In a file.
    Ext4,
    /// Two layers, of which the upper one takes all changes.
    Overlay,
    /// In memory, and of a kind whose locks nobody has vouched for.
    Ramfs,
}

/// Many owners at once.
#[derive(Clone, Debug, Default)]
pub struct Crowd {
    /// So many claims whose owners were killed.
    pub dead: u64,
    /// So many stagings whose creators were killed.
    pub half_made: u64,
    /// So many claims of an owner who lives, spread evenly among the others.
    pub living: u64,
    /// The disk on which all this lies, if not in the root that every story has.
    pub on: Option<String>,
}

/// What a process sees of the machine, if it is not what all the others see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The container that it is in.
    pub container: Option<String>,
    /// By so many seconds its clock since the boot is ahead, in a time namespace of its own.
    pub boottime_offset: Option<i64>,
}

impl Surroundings {
    /// Whether it has any namespace that others have not.
    #[must_use]
    pub fn are_own(&self) -> bool {
        self.container.is_some() || self.boottime_offset.is_some()
    }
}

/// A pid namespace, and what `/proc` shows in it.
#[derive(Clone, Debug, Default)]
pub struct Container {
    /// What `/proc` shows.
    pub proc: Proc,
}

/// What `/proc` shows in a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proc {
    /// The container's processes.
    #[default]
    Own,
    /// Those of the namespace around it.
    Outer,
    /// Of the container's, to each user those that he may trace.
    HidesProcesses,
}

/// A directory outside of every claim whose content must never change.
#[derive(Clone, Debug, Default)]
pub struct Precious {
    /// Whether it belongs to a user without rights over others.
    pub plain_user: bool,
}

/// A program that a server starts in its claim.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// Who starts it.
    pub by: String,
    /// A shell script of the story's own in the place of the usual one, which serves orders.
    pub script: Option<String>,
    /// Whether the shell that was started ends, and leaves the command in the background.
    pub background: bool,
    /// Whether it has a session, and so a group, of its own.
    pub own_session: bool,
    /// What it does about the lock of its entry.
    pub lock: Lock,
    /// Whether its working directory is not in its claim.
    pub elsewhere: bool,
    /// Whether it has dropped the cookie from its environment.
    pub without_cookie: bool,
    /// Why nothing can know that it uses its claim: a known escape, which has to happen.
    pub escapes: Option<String>,
}

/// What a command does about the lock that it inherits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lock {
    /// Nothing: it does not know about it.
    #[default]
    Kept,
    /// It closes the descriptor, as programs do that close what they do not know.
    Closed,
    /// It unlocks it.
    Unlocked,
}

/// A program that only sweeps.
#[derive(Clone, Debug, Default)]
pub struct Sweeper {
    /// Whether it only looks.
    pub dry_run: bool,
    /// Whether it is a user without rights over others, also where the story is told by root.
    pub plain_user: bool,
    /// The prefix of the claims that it looks at, if it is not the usual one.
    pub prefix: Option<String>,
    /// The questions that it cannot answer.
    pub cannot_tell: Vec<Asked>,
    /// The servers whose claims it fails to remove.
    pub not_removed: Vec<String>,
    /// So many descriptors may it open beyond what it has open when it starts to sweep.
    pub descriptors: Option<Count>,
    /// The disk that it sweeps, if not the root that every story has.
    pub on: Option<String>,
    /// What it sees of the machine.
    pub surroundings: Surroundings,
}

impl Sweeper {
    /// Whether it is a sweep as any product makes it, after which a canary must be gone.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        !self.dry_run
            && self.cannot_tell.is_empty()
            && self.not_removed.is_empty()
            && self.descriptors.is_none()
    }
}

/// Something that happens, and what must be true after it.
#[derive(Clone, Debug)]
pub struct Step {
    /// The bytes of the file that say it.
    pub span: Range<usize>,
    /// What happens.
    pub action: Action,
    /// What must be true.
    pub expects: Vec<Expectation>,
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Action {
    /// A server starts and makes its claim; as a replacement it sweeps before.
    Start {
        /// The server.
        server: String,
        /// Whether it sweeps before.
        sweeps: bool,
        /// What happens while it makes its claim.
        disturbed: Option<(Disturbed, Count)>,
        /// The kind of error by which it must fail.
        fails: Option<String>,
    },
    /// A server starts commands.
    Spawn {
        /// Which.
        commands: Vec<String>,
        /// What happens to the server meanwhile.
        disturbed: Option<(Disturbed, Count)>,
        /// Before which of its calls between fork and exec the child is held, the exec included.
        held: Option<Count>,
    },
    /// Processes get a SIGKILL.
    Kill {
        /// Which.
        who: Vec<String>,
        /// Whether their parents leave them as zombies.
        unreaped: bool,
    },
    /// Processes end by themselves.
    Exit(Vec<String>),
    /// Processes are stopped.
    Stop(Vec<String>),
    /// What was stopped goes on.
    Continue(Vec<String>),
    /// A server closes its claim.
    Close {
        /// The server.
        server: String,
        /// What happens meanwhile.
        disturbed: Option<(Disturbed, Count)>,
        /// What comes of it: `removed`, `released`, `obstructed`.
        answer: Option<String>,
        /// The kind of error by which it must be refused.
        fails: Option<String>,
    },
    /// A server gives its claim up.
    Release(String),
    /// A server drops its claim.
    Drop(String),
    /// A server forks, without an exec.
    Fork {
        /// The server.
        server: String,
        /// Whether the copy exits, or lives on.
        copy: Copy,
    },
    /// A server does something that programs do.
    Odd(String, Oddity),
    /// Somebody sweeps, or several at once.
    Sweep {
        /// Who.
        by: Vec<String>,
        /// What happens meanwhile.
        disturbed: Option<(Disturbed, Count)>,
        /// Why no canary can be asked to vanish.
        no_canary: Option<String>,
    },
    /// Something is put somewhere.
    Plant {
        /// What.
        what: Planted,
        /// Where.
        at: Place,
        /// So many directories, each in the one before.
        depth: u64,
        /// So many bytes has each name, filled up with its last.
        name_bytes: Option<u64>,
        /// Whether nothing happens if there is nothing at that place.
        if_there: bool,
    },
    /// A link of this text is put somewhere.
    Link {
        /// The text.
        text: String,
        /// Where.
        at: Place,
    },
    /// The record in a link is made another's.
    Forge {
        /// The link.
        at: Place,
        /// What is changed in it.
        change: Forged,
    },
    /// Something is copied with all that is in it, as a backup is made.
    Duplicate {
        /// What.
        what: Place,
        /// Where the copy is.
        to: Place,
    },
    /// Something is renamed.
    Move {
        /// What.
        what: Place,
        /// Where it is then.
        to: Place,
    },
    /// Something is taken away, with all that is in it.
    Remove(Place),
    /// A directory or a file is mounted over another.
    Mount {
        /// What is to be seen there.
        what: Place,
        /// Where.
        at: Place,
        /// Whether it is seen only by a process that has its own view of what is mounted.
        elsewhere: bool,
    },
    /// A mount ends.
    Unmount(Place),
    /// Every time of something and of all that is in it is set to this, in seconds since 1970.
    Age {
        /// What.
        what: Place,
        /// The time.
        to: i64,
    },
    /// A file or directory gets other permissions.
    Chmod {
        /// Which.
        at: Place,
        /// The mode.
        to: u32,
    },
    /// A file or directory is given to another user.
    Chown {
        /// Which.
        at: Place,
        /// The number of the user.
        to: u32,
    },
    /// A file can or cannot be changed and removed any more, by whomever.
    Chattr {
        /// Which.
        at: Place,
        /// Whether it cannot.
        immutable: bool,
    },
    /// Somebody who has to do with no claim locks a directory.
    Lock(Place),
    /// He unlocks it.
    Unlock(Place),
    /// A server takes the lock of a file.
    TakeLock {
        /// The server.
        server: String,
        /// The file.
        file: Place,
        /// How.
        how: Asking,
    },
    /// It gives that back.
    GiveLockBack {
        /// The server.
        server: String,
        /// The file.
        file: Place,
        /// The kind of error by which it must fail.
        fails: Option<String>,
    },
    /// Servers add a line to a store, all at once if there are several.
    Write {
        /// Who.
        by: Vec<String>,
        /// The store's file.
        file: Place,
        /// The line.
        text: String,
        /// How.
        how: Asking,
    },
    /// A server reads a store.
    Read {
        /// The server.
        server: String,
        /// The store's file.
        file: Place,
        /// What it must read.
        answer: Option<String>,
        /// The kind of error by which it must fail.
        fails: Option<String>,
    },
    /// A server takes a test directory.
    TakeSandbox {
        /// The server.
        server: String,
        /// Where it is; its name is the tag.
        at: Place,
        /// How.
        how: Asking,
    },
    /// A server takes the sockets that were passed to it.
    TakeSockets {
        /// The server.
        server: String,
        /// The names that they must have.
        answer: Option<Vec<String>>,
        /// The kind of error by which it must fail.
        fails: Option<String>,
    },
    /// A disk is filled.
    Fill {
        /// Which.
        disk: String,
        /// What it has none of then.
        with: Filler,
        /// But for so many of them.
        leaving: Option<Count>,
    },
    /// A crowd makes its claims, and most of it dies.
    Gather(String),
    /// An operator says of a server's claim that nothing uses it.
    Reclaim(String),
    /// The forked copies of a server get a SIGKILL.
    KillCopies(String),
    /// A server, and everything below it, gets a SIGKILL.
    KillTree(String),
    /// A stranger starts.
    StartStranger {
        /// Who.
        stranger: String,
        /// Whose pid it gets, who has ended.
        pid_of: Option<String>,
    },
    /// All that is in a directory is taken away.
    Empty(Place),
    /// A command puts something somewhere, or takes it away.
    ByCommand {
        /// The command.
        command: String,
        /// What it does.
        does: Deed,
        /// Where.
        at: Place,
    },
    /// `systemd-tmpfiles` cleans the root, by a rule of this age.
    Tmpfiles(String),
}

impl Action {
    /// At which of its calls something happens to who does it.
    #[must_use]
    pub fn disturbed_at(&self) -> Option<Count> {
        let disturbed = match self {
            Action::Start { disturbed, .. }
            | Action::Spawn { disturbed, .. }
            | Action::Close { disturbed, .. }
            | Action::Sweep { disturbed, .. } => *disturbed,
            Action::TakeLock { how, .. }
            | Action::Write { how, .. }
            | Action::TakeSandbox { how, .. } => how.disturbed,
            _ => None,
        };
        disturbed.map(|(_, count)| count)
    }
}

/// How something is asked for that another may have.
#[derive(Clone, Debug, Default)]
pub struct Asking {
    /// Whether it is waited for, while the story goes on.
    pub waits: bool,
    /// What happens meanwhile.
    pub disturbed: Option<(Disturbed, Count)>,
    /// The kind of error by which it must fail.
    pub fails: Option<String>,
}

/// What a disk is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filler {
    /// Content, until no block is free.
    Blocks,
    /// Files, until no inode is free.
    Inodes,
    /// Names in the root, until it has no room for one more.
    Names,
}

/// What a command can do to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Take it away, with all that is in it.
    Remove,
    /// Take away all that is in it.
    Empty,
    /// Put something there.
    Plant(Planted),
}

/// What happens at the n-th call of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbed {
    /// It stops there.
    Stopped,
    /// It is killed there.
    Killed,
}

/// What a forked copy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copy {
    /// It tries to use what it has, drops it, and exits.
    Exits,
    /// It lives on with what it has.
    Stays,
    /// It drops what it has and lives on.
    Drops,
}

/// What some programs do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// It becomes itself anew by exec.
    ReExec,
    /// Its first thread ends, another goes on.
    EndMainThread,
    /// It closes the descriptor of its lease.
    LoseLease,
}

/// What can be put somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A FIFO.
    Fifo,
    /// An empty directory.
    Directory,
    /// A file with a few words in it.
    File,
    /// A link to nowhere.
    DanglingLink,
    /// A link to the precious directory.
    LinkToPrecious,
    /// A link to a device without end.
    LinkToZero,
    /// A socket.
    Socket,
    /// A file of ten gigabytes without a block.
    SparseGiant,
    /// A FIFO that somebody has opened for writing.
    FifoWithWriter,
    /// A link to a file outside.
    LinkToFile,
    /// A file of zeros.
    Garbage,
    /// A directory with a directory and a file in it.
    FullDirectory,
    /// A device without end.
    Device,
}

/// What is changed in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forged {
    /// The number of the process.
    pub pid: Option<i32>,
    /// The version of the format.
    pub version: Option<u8>,
}

/// A place in the file system of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where the path begins.
    pub base: Base,
    /// The rest as it is written, without a slash in front; may be empty.
    pub rest: String,
}

impl Place {
    /// The rest, with the bytes that `%80` to `%ff` stand for; `None` if it has another `%`.
    #[must_use]
    pub fn rest_bytes(&self) -> Option<Vec<u8>> {
        let mut parts = self.rest.split('%');
        let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
        for part in parts {
            let (digits, text) = part.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(digits, 16).ok().filter(|byte| *byte >= 0x80)?);
            bytes.extend_from_slice(text.as_bytes());
        }
        Some(bytes)
    }
}

/// The names in angle brackets in a path: each stands for the name of that server's claim.
pub(super) fn bracketed(path: &str) -> impl Iterator<Item = &str> {
    let after = path.split('<').skip(1);
    after.filter_map(|rest| Some(rest.split_once('>')?.0))
}

/// Where a path begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// The root in which claims lie.
    Root,
    /// The directory of what several programs share: lock files, stores, test directories.
    Shared,
    /// The claim of a server.
    Claim(String),
    /// A precious directory.
    Precious(String),
}

/// What must be true after a step.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The bytes of the file that say it.
    pub span: Range<usize>,
    /// What.
    pub what: Expected,
}

/// What must be true.
#[derive(Clone, Debug)]
pub enum Expected {
    /// A claim is in a state, for a reason that the last sweep gave.
    Claim {
        /// The server whose claim it is.
        server: String,
        /// The state.
        is: State,
        /// The code of a reason.
        because: Option<String>,
    },
    /// A command lives, and can use its claim: run a program there and write a file. Or a server
    /// lives, and can write a file in its claim.
    Works(String),
    /// A process lives.
    Lives(String),
    /// A process has ended.
    Ended(String),
    /// A precious directory is what it was.
    Untouched(String),
    /// There is something at a place.
    There {
        /// The place.
        place: Place,
        /// The code of a reason that the last sweep gave about it.
        because: Option<String>,
    },
    /// There is nothing at a place.
    NotThere(Place),
    /// The report of the last sweep, or the last error, has these words in one of its lines.
    Told(String),
    /// None of its lines has.
    NotTold(String),
    /// So many names are in a root, or in another directory.
    Names {
        /// How many.
        count: u64,
        /// The disk whose root it is, if not that of every story.
        on: Option<String>,
        /// The directory, if it is no root.
        within: Option<Place>,
    },
    /// A server has the lock of a file; or, without one, nobody has.
    Lock {
        /// The file.
        file: Place,
        /// The server.
        holder: Option<String>,
    },
    /// A file has one of these contents.
    Content {
        /// The file.
        file: Place,
        /// The contents.
        is: Vec<String>,
    },
    /// Somebody listens at each socket that was passed to a server.
    Listens(String),
    /// Nobody listens there.
    NotListens(String),
    /// So many claims did the last sweep leave alone because they are other users'.
    Foreign(u64),
}

/// The state of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is at its place, and nothing of it was taken away.
    Kept,
    /// Nothing is left of it.
    Gone,
    /// It is renamed for removal.
    Tombstone,
    /// It is still being made.
    Staging,
}

/// Something that is left at the end.
#[derive(Clone, Debug)]
pub struct LeftOver {
    /// The bytes of the file that say it.
    pub span: Range<usize>,
    /// The server whose claim it is.
    pub server: String,
    /// The code of the reason that the last sweep gives.
    pub because: String,
}
