//! The stage of a series: a root with precious neighbours, and what an operation begins with.
//!
//! Everything that a case must not touch is put there once, by the worker, and looked at after every
//! case: files that are nobody's claims, names that look like claims and are none, a claim that lives.
//!
//! What a dead process leaves behind is left behind by a process that really dies, of a SIGKILL at
//! an exact call: there is no model of death here.

use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use mortmain::protocol::{Claim, Root, Started, SweepOptions};
use mortmain::sys::{Ending, Host, HostProgram, Kernel, KernelExt, PathBytes, Pid, Wait};
use mortmain::{Error, Prefix};

pub(super) use crate::faults::kill_self;
use crate::faults::{KillAt, Moment, Tapped};
use crate::raw::fork::fork;
use crate::tree::Tree;

/// The prefix of the claims of a series.
pub(super) const PREFIX: &str = "lab";

/// Names that are none of that prefix's claims, however near they come.
const STRANGERS: [&str; 5] =
    ["lab", "lab-short", "lab-abcdefghijkl.bak", "other-abcdefghijkl", ".lab-"];

/// The name of a directory that is nobody's claim and that somebody wants to be gone.
pub(super) const STRAY: &str = "stray";

/// What a case happens on.
pub(super) struct Stage {
    /// The root that is swept.
    pub(super) root: PathBuf,
    /// A directory beside it, which links in claims point to.
    pub(super) outside: PathBuf,
    /// A claim that lives: the worker's own.
    _neighbour: Claim<Host>,
    /// What lies in the root, and beside it, before any case.
    pub(super) root_before: Tree,
    pub(super) outside_before: Tree,
}

impl Stage {
    /// Builds the stage below a directory.
    pub(super) fn build(below: &Path) -> io::Result<Stage> {
        let (root, outside) = (below.join("root"), below.join("outside"));
        fs::create_dir(&root)?;
        fs::create_dir(&outside)?;
        fs::write(outside.join("precious"), "outside the root")?;
        for stranger in STRANGERS {
            fs::create_dir(root.join(stranger))?;
            fs::write(root.join(stranger).join("precious"), stranger)?;
        }
        symlink(&outside, root.join("lab-link"))?;
        let neighbour = open_root(&Host, &root)?.create()?;
        furnish(&neighbour, &outside)?;
        let (root_before, outside_before) = (Tree::read(&root)?, Tree::read(&outside)?);
        Ok(Stage { root, outside, _neighbour: neighbour, root_before, outside_before })
    }

    /// Leaves a claim behind whose owner is dead. Its command lives for as long as `lifeline` is
    /// held, or has ended if there is none.
    pub(super) fn dead_claim(&self, lifeline: Option<&Lifeline>) -> io::Result<()> {
        in_doomed_child(|| {
            let mut claim = open_root(&Host, &self.root)?.create()?;
            furnish(&claim, &self.outside)?;
            match lifeline {
                Some(lifeline) => {
                    claim.spawn(&mut lifeline.command()?)?;
                }
                None => {
                    ended_command(&mut claim)?;
                }
            }
            // It dies now, holding the claim.
            kill_self();
            Ok(())
        })
    }

    /// Leaves a stray behind, as programs do that make no claims.
    pub(super) fn stray(&self) -> io::Result<()> {
        let stray = self.root.join(STRAY);
        fs::create_dir(&stray)?;
        fill(&stray, &self.outside)
    }

    /// Leaves a staging behind that lacks its last part.
    pub(super) fn staging(&self) -> io::Result<()> {
        let mut made = 0;
        let before_third_mkdir = KillAt::first(Moment::Before, kill_self, move |step| {
            made += u32::from(step.word() == "mkdir");
            made == 3
        });
        in_doomed_child(|| {
            let made = open_root(&Tapped::new(Host, before_third_mkdir), &self.root)?.create();
            drop(made);
            Err(survived())
        })
    }

    /// Leaves a tombstone behind that is half-removed.
    pub(super) fn tombstone(&self) -> io::Result<()> {
        self.dead_claim(None)?;
        let after_first_rmdir =
            KillAt::first(Moment::After, kill_self, |step| step.word() == "rmdir");
        in_doomed_child(|| {
            let kernel = Tapped::new(Host, after_first_rmdir);
            open_root(&kernel, &self.root)?.sweep(&SweepOptions::default());
            Err(survived())
        })
    }
}

/// Opens the root of a series.
pub(super) fn open_root<K: Kernel>(kernel: &K, path: &Path) -> Result<Root<K>, Error> {
    use std::os::unix::ffi::OsStrExt;
    let prefix = Prefix::new(PREFIX).expect("a plain word is a prefix");
    Root::open(kernel, PathBytes::from(path.as_os_str().as_bytes()), prefix)
}

/// Puts something into a claim: files, directories, and a link to what is none of its business.
pub(super) fn furnish<K: Kernel>(claim: &Claim<K>, outside: &Path) -> io::Result<()> {
    use std::os::unix::ffi::OsStringExt;
    fill(&PathBuf::from(std::ffi::OsString::from_vec(claim.files().0)), outside)
}

fn fill(files: &Path, outside: &Path) -> io::Result<()> {
    fs::write(files.join("tool"), "a program")?;
    fs::create_dir_all(files.join("deep/er"))?;
    fs::write(files.join("deep/er/file"), "a file")?;
    symlink(outside, files.join("deep/link"))
}

/// Starts a command in a claim and waits for its end, without the claim's knowing.
pub(super) fn ended_command<K>(claim: &mut Claim<K>) -> Result<Started, Error>
where
    K: Kernel<Program = HostProgram>,
{
    let mut program = HostProgram::new("true");
    program.stdin(Stdio::null());
    let started = claim.spawn(&mut program)?;
    // A failure shows in what is judged later; there is nothing to do about it here.
    let _ended = Host.reap(started.pid, Wait::Forever);
    Ok(started)
}

/// What keeps a command alive: it ends when the last copy of the writing end is closed. The worker
/// has one; a process that it forked has another until it dies or becomes its program.
pub(super) struct Lifeline {
    read: io::PipeReader,
    _write: io::PipeWriter,
}

impl Lifeline {
    pub(super) fn new() -> io::Result<Lifeline> {
        let (read, write) = io::pipe()?;
        Ok(Lifeline { read, _write: write })
    }

    /// A command that lives for as long.
    pub(super) fn command(&self) -> io::Result<HostProgram> {
        self.attach(HostProgram::new("cat"))
    }

    /// Ties a command line to it.
    pub(super) fn attach(&self, mut program: HostProgram) -> io::Result<HostProgram> {
        program.stdin(OwnedFd::from(self.read.try_clone()?)).stdout(Stdio::null());
        Ok(program)
    }
}

/// Does something in a forked process that is killed at its end, if not before.
pub(super) fn in_doomed_child(work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let pid = fork(|| match work() {
        Ok(()) => {
            kill_self();
            0
        }
        Err(error) => {
            let _told =
                writeln!(io::stderr(), "mortmain-lab: in a process that was to die: {error}");
            1
        }
    })?;
    match reap(pid)? {
        Ending::Killed(9) => Ok(()),
        other => {
            Err(io::Error::other(format!("a process that was to die ended otherwise: {other:?}")))
        }
    }
}

/// What a process says that came to its end although it was to be killed on the way.
fn survived() -> io::Error {
    io::Error::other("it was not killed on the way")
}

/// Waits for a forked process.
fn reap(pid: i32) -> io::Result<Ending> {
    let ending = Host.reap(Pid(pid), Wait::Forever)?;
    ending.ok_or_else(|| io::Error::other("a wait without limit ended without an ending"))
}

/// The death of the calling process's parent. Async-signal-safe.
pub(super) fn kill_owner() {
    if let Some(parent) = rustix::process::getppid() {
        kill(parent);
    }
}

fn kill(pid: rustix::process::Pid) {
    // It can fail only for a process that is not there, whose death was wanted.
    let _sent = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}
