//! What system calls answer with, in types of our own.

use alloc::vec::Vec;

use super::name::{Name, PathBytes};

/// A descriptor by number, as the kernel hands it out. Owned ones are
/// [`super::Fd`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle(pub i32);

/// A process by number, in the pid namespace of whoever asks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pid(pub i32);

/// What kind of thing a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// A directory.
    Dir,
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device.
    Other,
    /// The file system does not say; ask by [`super::Call::StatAt`].
    Unknown,
}

impl Kind {
    /// The kind in a word, for messages.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Kind::Dir => "a directory",
            Kind::File => "a file",
            Kind::Link => "a symbolic link",
            Kind::Other => "a FIFO, a socket or a device",
            Kind::Unknown => "of unknown kind",
        }
    }
}

/// What the kernel says of an inode.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Stat {
    /// Number of the device.
    pub dev: u64,
    /// Number of the inode on that device.
    pub ino: u64,
    /// Kind of the inode.
    pub kind: Kind,
    /// Permission bits, without the kind.
    pub mode: u32,
    /// User that owns it, as this process's user namespace sees it.
    pub uid: u32,
}

impl Stat {
    /// Whether both are the same inode. Meaningful only while one of the two
    /// is held open: a file system may reuse the number at once.
    #[must_use]
    pub fn same_inode(&self, other: &Stat) -> bool {
        (self.dev, self.ino) == (other.dev, other.ino)
    }
}

/// One entry of a directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DirEntry {
    /// Its name.
    pub name: Name,
    /// Its kind, where the listing says.
    pub kind: Kind,
}

/// The magic number of a kind of file system, as `statfs` gives it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FsMagic(pub u64);

/// The identity of a process, as exact as the kernel can give it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcessId {
    /// Number of the process.
    pub pid: Pid,
    /// Start time in clock ticks after the boot, field 22 of its `stat`.
    /// Another value is another process; the same one proves nothing, since a
    /// number can be reused within a tick.
    pub start_ticks: u64,
    /// Inode number of its pidfd, unique until the next boot (Linux 6.9);
    /// 0 where there is none.
    pub pidfs: u64,
}

/// Where process numbers and start times mean something: they can be compared
/// only between equal homes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Home {
    /// The boot, `/proc/sys/kernel/random/boot_id`.
    pub boot: [u8; 16],
    /// Inode number of the pid namespace.
    pub pid_ns: u32,
    /// Inode number of the time namespace; 0 where there is none.
    pub time_ns: u32,
}

impl Home {
    /// Inode number of the initial pid namespace, the same on every machine
    /// (`PROC_PID_INIT_INO` in the kernel's source).
    pub const INITIAL_PID_NS: u32 = 0xEFFF_FFFC;

    /// Whether process numbers of both mean the same processes.
    #[must_use]
    pub fn same_processes(&self, other: &Home) -> bool {
        (self.boot, self.pid_ns) == (other.boot, other.pid_ns)
    }
}

/// How much `/proc` can be believed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ProcView {
    /// It is that of our pid namespace, and it shows processes of others.
    Whole,
    /// It is that of our pid namespace, but hides processes (`hidepid`).
    Partial,
    /// It is not mounted, or is that of another pid namespace.
    Foreign,
}

/// What a process knows of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Which process.
    pub process: ProcessId,
    /// Where its numbers count.
    pub home: Home,
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    /// The number that stands for every user that this user namespace does
    /// not map, where no user of its own has that number.
    pub overflow_uid: Option<u32>,
    /// How much `/proc` can be believed.
    pub proc: ProcView,
    /// Name of the program, at most 15 bytes.
    pub program: Vec<u8>,
    /// The cookie that it inherited: the value of `MORTMAIN_CLAIM`, or empty.
    pub cookie: Vec<u8>,
}

/// Who a process is to its own children and to its claims: what c6 compares.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Whoami {
    /// Number of the process.
    pub pid: Pid,
    /// Inode number of its pid namespace.
    pub pid_ns: u32,
}

/// What `/proc/<pid>/stat` says of a process.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Process {
    /// Start time in clock ticks after the boot.
    pub start_ticks: u64,
    /// Process group.
    pub group: Pid,
    /// Whether its state is `Z`: the main thread has ended.
    pub zombie: bool,
    /// Number of threads that still run, the main thread of a zombie included.
    pub threads: u32,
    /// Name of the program, at most 15 bytes (`comm`).
    pub program: Vec<u8>,
}

impl Process {
    /// Whether nothing of it runs any more. A zombie whose main thread alone
    /// has ended still writes: the other threads run on.
    #[must_use]
    pub fn ended(&self) -> bool {
        // CHECK(l2-zombie-threads): the other threads run on and write.
        self.zombie && self.threads <= 1
    }
}

/// How a child ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
}

impl Ending {
    /// Whether it exited with status 0.
    #[must_use]
    pub fn success(self) -> bool {
        self == Ending::Exited(0)
    }

    /// The status that a shell reports: the exit status, or 128 + the signal.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Ending::Exited(status) => status,
            Ending::Killed(signal) => 128 + signal,
        }
    }
}

/// How long a call may wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Wait {
    /// As long as it takes.
    Forever,
    /// At most this many milliseconds; 0 only asks.
    AtMost(u32),
}

/// How a process uses a claim, as `/proc` tells it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Use {
    /// It works in it.
    WorkingDirectory,
    /// Its root directory is in it.
    Root,
    /// Its program is in it.
    Executable,
    /// It has something in it open.
    Descriptor,
    /// It has a file in it mapped.
    Map,
    /// It sees a mount of something in it, wherever that is mounted.
    MountOf,
    /// It sees a mount on something in it that we do not see.
    MountOn,
    /// It was started under it, and carries its cookie.
    Cookie,
}

/// A mount namespace as the processes with one root in it see it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MountView {
    /// Stands for the namespace.
    pub namespace: u64,
    /// The root directory, where it can be read.
    pub root: PathBytes,
}

/// What one process uses of the claims of a [`super::Sought`].
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Uses {
    /// Which claim, by its place, and how; in order, each once.
    pub found: Vec<(usize, Use)>,
    /// The mounts that were looked at as well: those of a view that the call
    /// did not know yet.
    pub mounts: Option<MountView>,
    /// Whether it could not be read, in whole or in part.
    pub unread: bool,
    /// Whether it has ended, in whole, and so uses nothing.
    pub ended: bool,
    /// Whether it is just becoming another program, whose memory is not set up
    /// yet: it has to be looked at again.
    pub unsettled: bool,
    /// Name of its program, at most 15 bytes, where something was found.
    pub program: Vec<u8>,
    /// Its users, where a cookie was found: real, effective, saved, and that of
    /// the file system.
    pub uids: Vec<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_word() {
        let kinds = [Kind::Dir, Kind::File, Kind::Link, Kind::Other, Kind::Unknown];
        assert_eq!(
            kinds.map(Kind::word),
            [
                "a directory",
                "a file",
                "a symbolic link",
                "a FIFO, a socket or a device",
                "of unknown kind",
            ]
        );
    }

    #[test]
    fn an_inode_is_told_by_its_device_and_its_number() {
        let stat = Stat { dev: 1, ino: 2, kind: Kind::Dir, mode: 0o700, uid: 3 };
        assert!(stat.same_inode(&Stat { kind: Kind::File, mode: 0, uid: 4, ..stat }));
        assert!(!stat.same_inode(&Stat { dev: 5, ..stat }));
        assert!(!stat.same_inode(&Stat { ino: 5, ..stat }));
    }

    #[test]
    fn process_numbers_count_within_one_boot_and_one_pid_namespace() {
        let home = Home { boot: [1; 16], pid_ns: 2, time_ns: 3 };
        assert!(home.same_processes(&Home { time_ns: 4, ..home }));
        assert!(!home.same_processes(&Home { boot: [4; 16], ..home }));
        assert!(!home.same_processes(&Home { pid_ns: 4, ..home }));
    }

    #[test]
    fn a_process_has_ended_when_its_last_thread_has() {
        let ended = |zombie, threads| {
            let program = Vec::new();
            Process { start_ticks: 1, group: Pid(2), zombie, threads, program }.ended()
        };
        assert!(ended(true, 1));
        assert!(!ended(true, 2), "the others run on and write");
        assert!(!ended(false, 1));
    }

    #[test]
    fn an_ending_is_what_a_shell_reports() {
        assert!(Ending::Exited(0).success());
        assert!(!Ending::Exited(1).success());
        assert!(!Ending::Killed(9).success());
        assert_eq!(Ending::Exited(3).code(), 3);
        assert_eq!(Ending::Killed(9).code(), 137);
    }
}
