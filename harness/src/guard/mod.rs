//! The only way to start a child in tests and in the lab.
//!
//! Invariants:
//! * A child has its own process group, and its output is a pipe that the guard holds from the
//!   start, so nobody else waits for its end. Its standard error is the caller's: the test runner's
//!   leak detection sees any survivor that holds it.
//! * However the guard goes, by return, by `?` or by panic, the child, its group and everything
//!   below it are dead when it has gone, and the child is reaped. A guard that cannot achieve this
//!   panics: a leak is a failure of the test.
//! * Pids are never trusted across time: who is to be killed is held by a pidfd from the moment it
//!   was found, and the group's number is used only while it cannot be another's.
//!
//! What it deliberately does not do: become a subreaper. That would bring the orphans of the child
//! back below the test, where this walk would find them; but it is a setting of the whole process,
//! which under `cargo test` runs many tests at once, it makes the test the reaper of everybody's
//! orphans, and above all it changes what is tested, since an orphan's parent is then not pid 1. So
//! a daemon that has left both its group and its parents escapes the guard, and ends with the
//! [cell](crate::cell) that every such test runs in.

mod tree;

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Signal;

use crate::fate::Fate;
use crate::processes::process;
use crate::reader::Reader;
use crate::wait::{Deadline, WaitError, Watch, ready, write_whole};
use tree::Tree;

/// How long a SIGKILL may take, on a machine that is busy with other things.
const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// A child that cannot outlive this value.
#[derive(Debug)]
pub struct ChildGuard {
    child: Child,
    name: String,
    fate: Arc<Fate>,
    stdin: Option<ChildStdin>,
    reader: Reader,
    /// What was below the child when it was killed alone.
    survivors: Vec<Watch>,
}

/// A child could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {name}: {source}")]
pub struct SpawnError {
    /// The program.
    pub name: String,
    /// The system's reason.
    pub source: io::Error,
}

impl ChildGuard {
    /// Starts the command with no input. Its redirections, if it has any, are replaced.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn spawn(command: Command) -> Result<Self, SpawnError> {
        Self::start(command, Stdio::null())
    }

    /// Starts the command with a pipe as input, for [`ChildGuard::send_line`].
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn spawn_with_stdin(command: Command) -> Result<Self, SpawnError> {
        Self::start(command, Stdio::piped())
    }

    #[expect(clippy::disallowed_methods, reason = "this is the guard that is to be used instead")]
    fn start(mut command: Command, stdin: Stdio) -> Result<Self, SpawnError> {
        let name = format!("`{}`", command.get_program().to_string_lossy());
        command.process_group(0).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(source) => return Err(SpawnError { name, source }),
        };
        match Self::adopt(&mut child, &name) {
            Ok((fate, stdin, reader)) => {
                Ok(Self { child, name, fate, stdin, reader, survivors: Vec::new() })
            }
            Err(source) => {
                // There is no guard yet to do it. Both fail only if the child is gone already.
                let _killed = child.kill();
                let _reaped = child.wait();
                Err(SpawnError { name, source })
            }
        }
    }

    fn adopt(child: &mut Child, name: &str) -> io::Result<(Arc<Fate>, Option<ChildStdin>, Reader)> {
        let pid = pid_of(child);
        // OK because a child that was not reaped has its pid, be it a zombie.
        let watch = Watch::open(pid)?.expect("the child was not reaped");
        let fate = Arc::new(Fate::new(watch));
        let stdin = child.stdin.take();
        if let Some(stdin) = &stdin {
            fcntl_setfl(stdin, fcntl_getfl(stdin)? | OFlags::NONBLOCK)?;
        }
        // OK because `start` asked for a pipe.
        let stdout = child.stdout.take().expect("the output is a pipe");
        let reader = Reader::of_child(stdout, format!("{name} (pid {pid})"), Arc::clone(&fate))?;
        Ok((fate, stdin, reader))
    }

    /// The child's pid, which is its group's number too. Once the child was reaped, it may become
    /// another's.
    #[must_use]
    pub fn pid(&self) -> i32 {
        pid_of(&self.child)
    }

    /// What the child says.
    pub fn lines(&mut self) -> &mut Reader {
        &mut self.reader
    }

    /// Writes a line to the child's input.
    ///
    /// # Errors
    ///
    /// When the child does not take it before the deadline, or has closed its input.
    ///
    /// # Panics
    ///
    /// When the child was started without input, or its input was closed.
    pub fn send_line(&mut self, line: &str, deadline: Deadline) -> Result<(), WaitError> {
        let what = || format!("{} (pid {}) to take a line", self.name, pid_of(&self.child));
        let stdin = self.stdin.as_ref().expect("the child was started with an input that is open");
        write_whole(stdin, format!("{line}\n").as_bytes(), deadline, what)
    }

    /// Ends the child's input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// A hold on the child that outlasts the guard.
    ///
    /// # Errors
    ///
    /// When the system refuses a descriptor.
    pub fn watch(&self) -> io::Result<Watch> {
        self.fate.watch.try_clone()
    }

    /// Waits for the child's own end, and reaps it. What it says meanwhile is kept for
    /// [`ChildGuard::lines`]. What is below it lives on, until the guard goes.
    ///
    /// # Errors
    ///
    /// When it does not end before the deadline.
    pub fn wait(&mut self, deadline: Deadline) -> Result<ExitStatus, WaitError> {
        loop {
            let mut fds = vec![self.fate.watch.poll_fd()];
            // A child that nobody reads from could not end for want of room in its pipe.
            fds.extend(self.reader.poll_fd());
            let any = ready(&mut fds, Some(deadline)).map_err(|e| self.cannot_wait(e))?;
            if !any {
                return Err(self.still_there(deadline));
            }
            let ended = !fds[0].revents().is_empty();
            self.reader.fill().map_err(|e| self.cannot_wait(e))?;
            if ended {
                return self.reap().map_err(|e| self.cannot_wait(e));
            }
        }
    }

    /// Kills the child alone, at whatever it was doing, and reaps it: the death whose consequences
    /// are tested. Its group and its children live on, until the guard goes.
    ///
    /// The child is stopped before it is killed, so that what is below it at its end is known: its
    /// children are nobody's afterwards. A stop and a kill are one and the same to the child, which
    /// executes nothing in between.
    ///
    /// # Errors
    ///
    /// When the child does not die, or `/proc` cannot be read.
    pub fn kill_hard(&mut self) -> Result<ExitStatus, WaitError> {
        let deadline = Deadline::after(KILL_PATIENCE);
        if !self.fate.is_reaped() {
            let below = tree::below_stopped(&self.fate.watch, deadline);
            self.survivors = below.map_err(|e| self.cannot_wait(e))?;
            self.fate.watch.signal(Signal::KILL).map_err(|e| self.cannot_wait(e))?;
        }
        self.fate.watch.gone(deadline)?;
        self.reap().map_err(|e| self.cannot_wait(e))
    }

    /// Reaps the child, which has ended.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        // Its pidfd said that all its threads have ended, so this does not block.
        let status = self.child.wait()?;
        self.fate.record(status);
        Ok(status)
    }

    fn end_of_child(&self) -> String {
        format!("the end of {} (pid {})", self.name, self.pid())
    }

    fn cannot_wait(&self, source: io::Error) -> WaitError {
        WaitError::System { what: self.end_of_child(), source }
    }

    fn still_there(&self, deadline: Deadline) -> WaitError {
        let state = match process(self.pid()) {
            Ok(Some(info)) => format!(": it is in state {}", info.state),
            _ => String::new(),
        };
        WaitError::Deadline {
            what: self.end_of_child(),
            limit: deadline.limit(),
            came: format!("{state}; {}", self.reader.summary()),
        }
    }

    /// Ends everything and tells what could not be ended.
    fn end_all(&mut self) -> io::Result<Vec<String>> {
        let deadline = Deadline::after(KILL_PATIENCE);
        let mut tree = Tree::new(self.pid(), self.fate.is_reaped());
        for survivor in self.survivors.drain(..) {
            tree.add(survivor);
        }
        if !self.fate.is_reaped() {
            tree.add(self.fate.watch.try_clone()?);
        }
        let left = tree.end(deadline)?;
        if !self.fate.is_reaped() && self.fate.watch.is_gone()? {
            self.reap()?;
        }
        Ok(left)
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let trouble = match self.end_all() {
            Ok(left) if left.is_empty() => return,
            Ok(left) => format!("{} left behind: {}", self.name, left.join(", ")),
            Err(e) => format!("cannot tell what {} left behind: {e}", self.name),
        };
        if std::thread::panicking() {
            // A second panic would abort, and hide the first. Nobody can be told that standard
            // error is closed.
            let _written = writeln!(io::stderr(), "{trouble}");
        } else {
            panic!("{trouble}");
        }
    }
}

fn pid_of(child: &Child) -> i32 {
    // OK because pids are below 2^22.
    i32::try_from(child.id()).expect("pids are positive")
}
