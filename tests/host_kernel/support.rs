//! What the tests of the kernel share: the way into a cell, a directory to
//! work in, and an entry to start commands by.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use mortmain::sys::{
    Answer, Call, ChildPlan, Ending, Errno, Fd, Host, HostProgram, IdName, Identity, Kernel,
    KernelExt, Name, PathBytes, Pid, Reply, Wait,
};
use mortmain_harness::cell;
use mortmain_harness::reader::Reader;
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::wait::Deadline;
use nix::sys::stat::Mode;

/// Longer than anything here takes on a loaded machine.
pub(crate) const PATIENCE_MILLIS: u32 = 20_000;

/// The cookie of commands for whose test it is of no importance.
const COOKIE: &[u8] = b"aaaaaaaaaaaa";

/// Runs the body of the current test in a cell.
#[track_caller]
pub(crate) fn in_cell(body: impl FnOnce()) {
    cell::enter(env!("CARGO_BIN_EXE_mortmain-lab"), body);
}

/// Whether the test has the rights of root; says that it skips something if
/// not.
pub(crate) fn is_root(skipped: &str) -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("skipped without root: {skipped}");
    }
    root
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).expect("one component")
}

pub(crate) fn deadline() -> Deadline {
    Deadline::secs(u64::from(PATIENCE_MILLIS / 1000))
}

/// A fresh directory, by its path and by a handle of the seam.
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) dir: Fd<Host>,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place::at(scratch_root())
    }

    pub(crate) fn at(path: PathBuf) -> Place {
        let dir = open_root(&path).expect("a directory can be opened");
        Place { path, dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn with_dir(self, name: &str) -> Place {
        fs::create_dir(self.path(name)).expect("the place is ours");
        self
    }

    pub(crate) fn with_file(self, name: &str, text: &str) -> Place {
        fs::write(self.path(name), text).expect("the place is ours");
        self
    }

    pub(crate) fn with_link(self, name: &str, target: &str) -> Place {
        symlink(target, self.path(name)).expect("the place is ours");
        self
    }

    pub(crate) fn with_fifo(self, name: &str) -> Place {
        nix::unistd::mkfifo(&self.path(name), Mode::S_IRWXU).expect("the place is ours");
        self
    }

    /// One of each kind: `dir`, `file`, `fifo`, `socket`, and `to-dir` and
    /// `to-file`, which are links.
    pub(crate) fn with_all_kinds(self) -> Place {
        let place = self
            .with_dir("dir")
            .with_file("file", "text")
            .with_fifo("fifo")
            .with_link("to-dir", "dir")
            .with_link("to-file", "file");
        // Its name stays when the listener goes.
        std::os::unix::net::UnixListener::bind(place.path("socket")).expect("the place is ours");
        place
    }
}

pub(crate) fn open_root(path: &Path) -> Answer<Fd<Host>> {
    Host.open_root(&PathBytes::from(path.as_os_str().as_encoded_bytes()))
}

/// Makes a call that answers with no value.
pub(crate) fn done(call: Call) -> Answer<()> {
    Host.call(call).map(|reply| assert_eq!(reply, Reply::Done))
}

/// A `commands` directory, in which commands are registered as a claim does.
pub(crate) struct Registry {
    pub(crate) commands: Place,
    me: Box<Identity>,
}

/// An entry that was made for a command.
pub(crate) struct Entry {
    pub(crate) lock: Fd<Host>,
    pub(crate) plan: ChildPlan,
}

impl Registry {
    pub(crate) fn new() -> Registry {
        Registry { commands: Place::new(), me: Host.identity().expect("/proc is there") }
    }

    /// A new entry, locked.
    pub(crate) fn entry(&self, n: u32) -> Entry {
        let lock = self.commands.dir.create_file(&name(&n.to_string())).expect("a free number");
        lock.lock().expect("nobody else knows it");
        let plan = ChildPlan {
            commands: self.commands.dir.raw(),
            id_name: IdName::new(n),
            lock: lock.raw(),
            home: self.me.home,
            uid: self.me.uid,
            gid: self.me.gid,
            cookie: COOKIE.into(),
        };
        Entry { lock, plan }
    }

    /// Starts a program by a new entry, and closes the owner's copy of the
    /// lock as an owner does.
    pub(crate) fn start(&self, n: u32, program: &mut HostProgram) -> Answer<Pid> {
        let entry = self.entry(n);
        Host.spawn(program, &entry.plan)
    }

    /// Whether nobody holds the lock of an entry, asked by a fresh description.
    pub(crate) fn is_free(&self, n: u32) -> bool {
        let entry = self.commands.dir.open_file(&name(&n.to_string())).expect("the entry is there");
        match entry.lock() {
            Ok(()) => true,
            Err(Errno::EAGAIN) => false,
            Err(other) => panic!("a lock is free or held, not {other}"),
        }
    }

    pub(crate) fn id(&self, n: u32) -> Answer<Vec<u8>> {
        self.commands.dir.readlink(&name(&format!("{n}.id")))
    }
}

/// A shell script as a program.
pub(crate) fn script(text: &str) -> HostProgram {
    let mut program = HostProgram::new("/bin/sh");
    program.args(["-c", text]);
    program
}

/// A script that waits for its end.
pub(crate) fn sleeper() -> HostProgram {
    script("exec sleep 1000")
}

/// Starts a program by entry `n`, waits for its end, and answers with the lines
/// that it said.
pub(crate) fn lines_of(registry: &Registry, n: u32, mut program: HostProgram) -> Vec<String> {
    let (ours, theirs) = io::pipe().expect("a pipe can be had");
    program.stdout(theirs);
    let pid = registry.start(n, &mut program).expect("it can be started");
    // It holds our copy of the writing end.
    drop(program);
    let mut reader = Reader::new(ours, format!("the command of entry {n}")).expect("it is a pipe");
    let lines = reader.expect_eof(deadline(), "the end of its output").expect("it ends");
    assert_eq!(ending_of(pid), Ending::Exited(0), "after it said {lines:?}");
    lines
}

/// Waits for the end of a child and reaps it.
pub(crate) fn ending_of(pid: Pid) -> Ending {
    let ending = Host.reap(pid, Wait::AtMost(PATIENCE_MILLIS)).expect("it is our child");
    ending.unwrap_or_else(|| panic!("{pid:?} has not ended within {PATIENCE_MILLIS} ms"))
}
