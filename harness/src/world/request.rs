//! What a simulated process can ask the world, and what it answers.
//!
//! Most of it is the seam's own calls. The rest is what the seam leaves to the
//! kernel's side (the halves of a spawn, the child's part, exec, exit), what
//! commands do without the library (fork, close everything, write a file), and
//! the marks by which a script tells the judge what it relies on.

use std::fmt;

use mortmain::sys::{
    Answer, Call, ChildIdentity, ChildPlan, Errno, Handle, Name, PathBytes, Pid, Reply,
};
use mortmain_subjects::Beyond;

use super::files::Special;
use super::fingerprint::Fingerprint;
use super::ids::{ClaimId, ProgramId};

/// What a spawn starts in the world.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// What it runs after its exec.
    pub program: ProgramId,
    /// The claims that it may use, from its fork to its end.
    pub uses: Vec<ClaimId>,
}

/// A call of the child's part, between fork and exec.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChildCall {
    /// Makes a group of its own.
    NewGroup,
    /// Asks who it is.
    Identity,
    /// Makes a symbolic link.
    Symlink {
        /// Directory to make it in.
        dir: Handle,
        /// Its name.
        name: Name,
        /// Its target text.
        text: Box<[u8]>,
    },
    /// Copies a descriptor to a high number that survives exec.
    KeepOverExec {
        /// The descriptor.
        fd: Handle,
    },
}

/// One step that a process asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// A call of the seam.
    Call(Call),
    /// A call that other designs make.
    Beyond(Beyond),
    /// A spawn. Two steps: the fork, and later the child's report.
    Spawn {
        /// What is started.
        command: Command,
        /// What the child is told; in a box, since every request is as large as the largest.
        plan: Box<ChildPlan>,
    },
    /// A call between fork and exec.
    Child(ChildCall),
    /// The child's part failed: the child ends and its owner is told.
    ChildFailed(Errno),
    /// Becomes another program.
    Exec {
        /// The program.
        program: ProgramId,
        /// The value of its `MORTMAIN_CLAIM`.
        cookie: Box<[u8]>,
    },
    /// Doubles the process; both go on.
    Fork,
    /// Closes every descriptor.
    CloseAll,
    /// Goes to work in a directory.
    WorkIn {
        /// Its path.
        path: PathBytes,
    },
    /// Makes a FIFO, a socket or a device that was not there.
    MakeSpecial {
        /// Directory to make it in.
        dir: Handle,
        /// Its name.
        name: Name,
        /// What it is.
        special: Special,
    },
    /// Mounts what one name stands for over another one, links followed.
    Mount {
        /// Directory that both names are in.
        dir: Handle,
        /// What is mounted.
        from: Name,
        /// What it hides.
        on: Name,
    },
    /// Ends what is mounted uppermost where a name leads, links followed.
    Unmount {
        /// Directory that the name is in.
        dir: Handle,
        /// The name.
        on: Name,
    },
    /// Writes a new file into what it uses of its claim.
    Touch {
        /// Name of the file.
        name: Name,
    },
    /// Tells the judge that a claim is in use from now on.
    Hold {
        /// Path of the claim.
        claim: PathBytes,
        /// Path of what its users are given: of the same, or below it.
        files: PathBytes,
    },
    /// Tells the judge that the process does not use the claim any more.
    GiveUp {
        /// The claim.
        claim: ClaimId,
    },
    /// Tells the judge that the process begins or ends what only one at a time
    /// may do.
    Alone {
        /// Whether it begins.
        begins: bool,
    },
    /// Begins a part of its work of which it will keep only the result.
    Aside,
    /// Ends such a part.
    Result {
        /// Stands for what it keeps.
        of: Fingerprint,
    },
    /// Says a line to whoever tells it what to do, and waits for the next one. The world is not
    /// asked: whoever runs the processes answers.
    Line {
        /// What it says.
        said: Box<[u8]>,
    },
    /// Does nothing more until it is killed.
    Idle,
    /// Ends.
    Exit {
        /// The status.
        status: i32,
    },
    /// Ends, because the program panicked: a finding of its own.
    Panicked {
        /// Where, and what it said.
        message: String,
    },
}

impl Request {
    /// The directory and the name that it is about; of two names the first.
    #[must_use]
    pub fn named(&self) -> Option<(Handle, &Name)> {
        match self {
            Request::Call(
                Call::OpenDir { dir, name }
                | Call::OpenFile { dir, name }
                | Call::CreateFile { dir, name }
                | Call::StatAt { dir, name }
                | Call::Mkdir { dir, name }
                | Call::Symlink { dir, name, .. }
                | Call::Readlink { dir, name }
                | Call::Rename { dir, from: name, .. }
                | Call::Unlink { dir, name }
                | Call::Rmdir { dir, name }
                | Call::Unseal { dir, name },
            )
            | Request::Beyond(Beyond::Modified { dir, name } | Beyond::OpenPlain { dir, name })
            | Request::Child(ChildCall::Symlink { dir, name, .. }) => Some((*dir, name)),
            _ => None,
        }
    }

    /// Whether it is a mark, which takes no step of its own: it is done
    /// together with the answer to the request before it.
    #[must_use]
    pub fn is_mark(&self) -> bool {
        matches!(self, Request::Hold { .. } | Request::GiveUp { .. } | Request::Alone { .. })
            || self.is_silent()
    }

    /// Whether it is a mark that no timeline shows.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        matches!(self, Request::Aside | Request::Result { .. })
    }
}

/// What the world answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Response {
    /// Of [`Request::Call`].
    Reply(Answer<Reply>),
    /// Of [`Request::Spawn`].
    Spawned(Answer<Pid>),
    /// Of [`ChildCall::Identity`].
    Identity(Answer<ChildIdentity>),
    /// Of what only succeeds or fails.
    Done(Answer<()>),
    /// Of [`Request::Fork`]: the child, and `None` in it.
    Forked(Answer<Option<Pid>>),
    /// Of [`Request::Hold`].
    Held(ClaimId),
    /// Of [`Request::Line`].
    Line(Box<[u8]>),
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A record in full would hide the rest of the line.
            Request::Call(Call::Symlink { dir, name, text }) => {
                write!(f, "symlink {}/{name} of {} bytes", dir.0, text.len())
            }
            Request::Call(call) => write!(f, "{call}"),
            Request::Beyond(call) => write!(f, "{call}"),
            Request::Spawn { .. } => f.write_str("spawn"),
            Request::Child(ChildCall::NewGroup) => f.write_str("new-group"),
            Request::Child(ChildCall::Identity) => f.write_str("identity"),
            Request::Child(ChildCall::Symlink { dir, name, text }) => {
                write!(f, "symlink {}/{name} of {} bytes", dir.0, text.len())
            }
            Request::Child(ChildCall::KeepOverExec { fd }) => {
                write!(f, "keep-over-exec {}", fd.0)
            }
            Request::ChildFailed(errno) => write!(f, "give up before exec: {errno}"),
            Request::Exec { .. } => f.write_str("exec"),
            Request::Aside => f.write_str("begin something aside"),
            Request::Result { .. } => f.write_str("keep its result"),
            Request::Fork => f.write_str("fork"),
            Request::CloseAll => f.write_str("close every descriptor"),
            Request::WorkIn { path } => write!(f, "go to work in {path}"),
            Request::MakeSpecial { dir, name, special } => {
                write!(f, "make {}/{name} {}", dir.0, special.word())
            }
            Request::Unmount { dir, on } => write!(f, "unmount {}/{on}", dir.0),
            Request::Mount { dir, from, on } => write!(f, "mount {}/{from} on {on}", dir.0),
            Request::Touch { name } => write!(f, "write the file {name} into its claim"),
            Request::Hold { claim, .. } => write!(f, "hold {claim}"),
            Request::GiveUp { .. } => f.write_str("give the claim up"),
            Request::Alone { begins: true } => f.write_str("begin what only one may do"),
            Request::Alone { begins: false } => f.write_str("end what only one may do"),
            Request::Line { .. } => f.write_str("wait for an order"),
            Request::Idle => f.write_str("idle"),
            Request::Exit { status } => write!(f, "exit {status}"),
            Request::Panicked { message } => write!(f, "panic: {message}"),
        }
    }
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Response::Reply(Ok(reply)) => show_reply(f, reply),
            Response::Spawned(Ok(pid)) | Response::Forked(Ok(Some(pid))) => {
                write!(f, "process {}", pid.0)
            }
            Response::Identity(Ok(identity)) => write!(f, "process {}", identity.process.pid.0),
            Response::Done(Ok(())) | Response::Held(_) => f.write_str("done"),
            Response::Line(line) => write!(f, "{} bytes", line.len()),
            Response::Forked(Ok(None)) => f.write_str("the child"),
            Response::Reply(Err(errno))
            | Response::Spawned(Err(errno))
            | Response::Identity(Err(errno))
            | Response::Done(Err(errno))
            | Response::Forked(Err(errno)) => match errno.symbol() {
                Some(symbol) => f.write_str(symbol),
                None => write!(f, "error {}", errno.0),
            },
        }
    }
}

fn show_reply(f: &mut fmt::Formatter<'_>, reply: &Reply) -> fmt::Result {
    match reply {
        Reply::Done => f.write_str("done"),
        Reply::Handle(handle) => write!(f, "{}", handle.0),
        Reply::Stat(stat) => write!(f, "{}, inode {:#x}", stat.kind.word(), stat.ino),
        Reply::FsMagic(magic) => write!(f, "{:#x}", magic.0),
        Reply::Entries(entries) => {
            let names: Vec<String> = entries.iter().map(|entry| entry.name.to_string()).collect();
            if names.is_empty() { f.write_str("the end") } else { f.write_str(&names.join(" ")) }
        }
        Reply::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
        Reply::Identity(identity) => write!(f, "process {}", identity.process.pid.0),
        Reply::Whoami(whoami) => write!(f, "process {}", whoami.pid.0),
        Reply::Process(process) => {
            let life = if process.ended() { "a zombie" } else { "alive" };
            write!(f, "{life}, group {}", process.group.0)
        }
        Reply::Pids(pids) => {
            let pids: Vec<String> = pids.iter().map(|pid| pid.0.to_string()).collect();
            f.write_str(&pids.join(" "))
        }
        Reply::Uses(uses) => match uses.found.as_slice() {
            [] => f.write_str("nothing"),
            found => write!(f, "{found:?}"),
        },
        Reply::Ending(None) => f.write_str("not yet"),
        Reply::Ending(Some(ending)) => write!(f, "{ending:?}"),
        Reply::Number(number) => write!(f, "{number:#x}"),
    }
}
