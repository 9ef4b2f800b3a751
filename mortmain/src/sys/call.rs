//! The calls of the seam, as data.
//!
//! One value a system call (or a fixed, tiny group of them that no rule needs
//! to see apart). That they are data is what makes kernels cheap to wrap, to
//! record, to kill at and to simulate: a decorator sees every call in one
//! place, and nothing can reach the system past it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::name::{Name, PathBytes};
use super::sought::Sought;
use super::types::{
    DirEntry, Ending, FsMagic, Handle, Identity, MountView, Pid, Process, Stat, Uses, Wait, Whoami,
};

/// One call. Every lookup is of one component below a directory handle, never
/// follows a link at that component, and never blocks on what it finds (h1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// Open the directory at a path, following links: the caller's own choice
    /// of a root. Answers [`Reply::Handle`].
    OpenRoot {
        /// The path.
        path: PathBytes,
    },
    /// Open a directory without entering a mount (`EXDEV` says that one is
    /// there) and without following a link. Answers [`Reply::Handle`].
    OpenDir {
        /// Directory to look in.
        dir: Handle,
        /// Name to open.
        name: Name,
    },
    /// Open a regular file for reading, likewise. Answers [`Reply::Handle`].
    OpenFile {
        /// Directory to look in.
        dir: Handle,
        /// Name to open.
        name: Name,
    },
    /// Make an empty file of mode 0600 that was not there. Answers
    /// [`Reply::Handle`].
    CreateFile {
        /// Directory to make it in.
        dir: Handle,
        /// Its name.
        name: Name,
    },
    /// Close a descriptor. Answers [`Reply::Done`]; also when it fails, the
    /// number is free afterwards.
    Close {
        /// The descriptor.
        fd: Handle,
    },
    /// What an open handle is. Answers [`Reply::Stat`].
    Stat {
        /// The handle.
        fd: Handle,
    },
    /// What a name stands for, without entering a mount (`EXDEV`) and without
    /// asking one anything. Answers [`Reply::Stat`].
    StatAt {
        /// Directory to look in.
        dir: Handle,
        /// Name to look at.
        name: Name,
    },
    /// The kind of file system a handle lies on. Answers [`Reply::FsMagic`].
    FsMagic {
        /// The handle.
        fd: Handle,
    },
    /// The next entries of a directory, at most a few thousand, in the kernel's
    /// order, without `.` and `..`; none at the end. Answers
    /// [`Reply::Entries`].
    ReadDir {
        /// The directory.
        dir: Handle,
        /// Start again at the first entry.
        restart: bool,
    },
    /// Make a directory of mode 0700 that was not there.
    Mkdir {
        /// Directory to make it in.
        dir: Handle,
        /// Its name.
        name: Name,
    },
    /// Make a symbolic link that was not there.
    Symlink {
        /// Directory to make it in.
        dir: Handle,
        /// Its name.
        name: Name,
        /// Its target text, at most 255 bytes, none of them NUL.
        text: Box<[u8]>,
    },
    /// The target text of a symbolic link. Answers [`Reply::Bytes`]; a text
    /// longer than 255 bytes answers `EOVERFLOW`, something else `EINVAL`.
    Readlink {
        /// Directory to look in.
        dir: Handle,
        /// Name of the link.
        name: Name,
    },
    /// Rename within a directory, replacing what POSIX lets it replace.
    Rename {
        /// The directory.
        dir: Handle,
        /// Old name.
        from: Name,
        /// New name.
        to: Name,
    },
    /// Remove a name that is not a directory.
    Unlink {
        /// Directory to remove it from.
        dir: Handle,
        /// The name.
        name: Name,
    },
    /// Remove an empty directory.
    Rmdir {
        /// Directory to remove it from.
        dir: Handle,
        /// The name.
        name: Name,
    },
    /// Give a directory of our own the mode 0700, without entering a mount,
    /// following a link or needing any permission on it; `EPERM` when it is
    /// not ours.
    Unseal {
        /// Directory to look in.
        dir: Handle,
        /// Name of the directory.
        name: Name,
    },
    /// Give an open directory another mode.
    Chmod {
        /// The directory.
        fd: Handle,
        /// Its permission bits from now on.
        mode: u32,
    },
    /// Take an exclusive `flock`, never waiting: `EAGAIN` when it is held.
    Lock {
        /// The handle.
        fd: Handle,
    },
    /// Give a `flock` back, for every copy of the description.
    Unlock {
        /// The handle.
        fd: Handle,
    },
    /// Who holds the `flock` of what a handle is open on, as far as `/proc/locks`
    /// tells. Answers [`Reply::Pids`]: one, or none where it does not tell. For
    /// messages; it proves nothing.
    LockHolder {
        /// The handle.
        fd: Handle,
    },
    /// The bytes of an open file from a place on, at most so many; none at its
    /// end. Answers [`Reply::Bytes`].
    Read {
        /// The file.
        fd: Handle,
        /// The place of the first byte.
        offset: u64,
        /// Most bytes.
        len: u32,
    },
    /// Write bytes into an open file from a place on. Answers
    /// [`Reply::Number`], how many were written: at least one.
    Write {
        /// The file.
        fd: Handle,
        /// The place of the first byte.
        offset: u64,
        /// The bytes; at least one.
        bytes: Box<[u8]>,
    },
    /// Wait until what is open is on the disk: a file's content and length, a
    /// directory's names.
    Sync {
        /// The handle.
        fd: Handle,
    },
    /// Who this process is, in full. Answers [`Reply::Identity`].
    Identity,
    /// Who this process is, in short. Answers [`Reply::Whoami`].
    Whoami,
    /// Whether a process number is in use: `ESRCH` when it is not, `EPERM`
    /// when it is, by somebody else's process.
    ProcessExists {
        /// The number, greater than 1.
        pid: Pid,
    },
    /// Whether a process group has a member, zombies included: `ESRCH` when it
    /// has none.
    GroupExists {
        /// The number of the group, greater than 1.
        group: Pid,
    },
    /// What `/proc` says of a process. Answers [`Reply::Process`]; `ENOENT` or
    /// `ESRCH` when it shows none, which proves nothing.
    Process {
        /// The number.
        pid: Pid,
    },
    /// The inode number of a process's pidfd. Answers [`Reply::Number`], 0
    /// where the kernel has none.
    Pidfs {
        /// The number.
        pid: Pid,
    },
    /// The numbers of the processes that `/proc` shows, rising. Answers
    /// [`Reply::Pids`].
    Pids,
    /// What one process uses of some claims: all that `/proc` says of it, its
    /// mount namespace's mounts included unless they are known. Answers
    /// [`Reply::Uses`]. A process that has ended uses nothing, and what of it
    /// may not be read is no error.
    Uses {
        /// The process.
        pid: Pid,
        /// The claims.
        of: Box<Sought>,
        /// The mounts that need not be looked at again.
        known: Vec<MountView>,
    },
    /// How many descriptors this process may have open. Answers
    /// [`Reply::Number`].
    DescriptorsMax,
    /// SIGKILL every member of a group of our own children.
    KillGroup {
        /// The number of the group, greater than 1 and not our own.
        group: Pid,
    },
    /// Wait for a child to end. Answers [`Reply::Ending`]; `None` when the time
    /// is over.
    Wait {
        /// The child.
        pid: Pid,
        /// How long.
        wait: Wait,
        /// Reap it; otherwise it stays a zombie, whose number nobody else gets.
        reap: bool,
    },
    /// Let time pass.
    Pause {
        /// For how long.
        millis: u32,
    },
    /// A random number. Answers [`Reply::Number`].
    Random,
}

/// What a call answers with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// It was done.
    Done,
    /// A new descriptor, close-on-exec.
    Handle(Handle),
    /// Of [`Call::Stat`] and [`Call::StatAt`].
    Stat(Stat),
    /// Of [`Call::FsMagic`].
    FsMagic(FsMagic),
    /// Of [`Call::ReadDir`].
    Entries(Vec<DirEntry>),
    /// Of [`Call::Readlink`] and [`Call::Read`].
    Bytes(Vec<u8>),
    /// Of [`Call::Identity`].
    Identity(Box<Identity>),
    /// Of [`Call::Whoami`].
    Whoami(Whoami),
    /// Of [`Call::Process`].
    Process(Process),
    /// Of [`Call::Pids`] and [`Call::LockHolder`].
    Pids(Vec<Pid>),
    /// Of [`Call::Uses`].
    Uses(Box<Uses>),
    /// Of [`Call::Wait`].
    Ending(Option<Ending>),
    /// Of [`Call::Random`], [`Call::Pidfs`], [`Call::DescriptorsMax`] and
    /// [`Call::Write`].
    Number(u64),
}

impl Call {
    /// The kind of call in a word, for tables and traces.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Call::OpenRoot { .. } => "open-root",
            Call::OpenDir { .. } => "open-dir",
            Call::OpenFile { .. } => "open-file",
            Call::CreateFile { .. } => "create-file",
            Call::Close { .. } => "close",
            Call::Stat { .. } => "stat",
            Call::StatAt { .. } => "stat-at",
            Call::FsMagic { .. } => "fs-magic",
            Call::ReadDir { .. } => "read-dir",
            Call::Mkdir { .. } => "mkdir",
            Call::Symlink { .. } => "symlink",
            Call::Readlink { .. } => "readlink",
            Call::Rename { .. } => "rename",
            Call::Unlink { .. } => "unlink",
            Call::Rmdir { .. } => "rmdir",
            Call::Unseal { .. } => "unseal",
            Call::Chmod { .. } => "chmod",
            Call::Lock { .. } => "lock",
            Call::Unlock { .. } => "unlock",
            Call::LockHolder { .. } => "lock-holder",
            Call::Read { .. } => "read",
            Call::Write { .. } => "write",
            Call::Sync { .. } => "sync",
            Call::Identity => "identity",
            Call::Whoami => "whoami",
            Call::ProcessExists { .. } => "process-exists",
            Call::GroupExists { .. } => "group-exists",
            Call::Process { .. } => "process",
            Call::Pidfs { .. } => "pidfs",
            Call::Pids => "pids",
            Call::Uses { .. } => "uses",
            Call::DescriptorsMax => "descriptors-max",
            Call::KillGroup { .. } => "kill-group",
            Call::Wait { .. } => "wait",
            Call::Pause { .. } => "pause",
            Call::Random => "random",
        }
    }
}

/// The call as a line of a trace, such as `mkdir 3 "commands"`.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            Call::OpenRoot { path } => write!(f, " {path}"),
            Call::OpenDir { dir, name }
            | Call::OpenFile { dir, name }
            | Call::CreateFile { dir, name }
            | Call::StatAt { dir, name }
            | Call::Mkdir { dir, name }
            | Call::Readlink { dir, name }
            | Call::Unlink { dir, name }
            | Call::Rmdir { dir, name }
            | Call::Unseal { dir, name } => write!(f, " {}/{name}", dir.0),
            Call::Symlink { dir, name, text } => {
                write!(f, " {}/{name} -> {}", dir.0, PathBytes::from(&text[..]))
            }
            Call::Rename { dir, from, to } => write!(f, " {}/{from} -> {to}", dir.0),
            Call::Chmod { fd, mode } => write!(f, " {} {mode:04o}", fd.0),
            Call::Close { fd }
            | Call::Stat { fd }
            | Call::FsMagic { fd }
            | Call::Lock { fd }
            | Call::Unlock { fd }
            | Call::LockHolder { fd }
            | Call::Sync { fd } => write!(f, " {}", fd.0),
            Call::Read { fd, offset, len } => write!(f, " {} {len} from {offset}", fd.0),
            Call::Write { fd, offset, bytes } => {
                write!(f, " {} {} from {offset}", fd.0, bytes.len())
            }
            Call::ReadDir { dir, restart } => {
                write!(f, " {}{}", dir.0, if *restart { " from the start" } else { "" })
            }
            Call::ProcessExists { pid } | Call::Process { pid } | Call::Pidfs { pid } => {
                write!(f, " {}", pid.0)
            }
            Call::Uses { pid, of, .. } => {
                write!(f, " {} of", pid.0)?;
                match of.len() {
                    1 => write!(f, " {}", PathBytes::from(of.name(0))),
                    count => write!(f, " {count} claims"),
                }
            }
            Call::GroupExists { group } | Call::KillGroup { group } => write!(f, " {}", group.0),
            Call::Wait { pid, wait, reap } => {
                write!(f, " {}", pid.0)?;
                if let Wait::AtMost(millis) = wait {
                    write!(f, " at most {millis} ms")?;
                }
                if *reap { f.write_str(" and reap") } else { Ok(()) }
            }
            Call::Pause { millis } => write!(f, " {millis} ms"),
            Call::Identity | Call::Whoami | Call::Pids | Call::DescriptorsMax | Call::Random => {
                Ok(())
            }
        }
    }
}
