//! A command that may use a claim, as users of the library start it.

use std::ffi::OsStr;
use std::io::Read;
use std::ops::{Deref, DerefMut};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::prelude::rust_2024::*;
use std::process::{
    ChildStderr, ChildStdin, ChildStdout, Command as StdCommand, ExitStatus, Output, Stdio,
};
use std::sync::Arc;
use std::time::Duration;

use super::claim::Shared;
use crate::error::{Error, ErrorKind};
use crate::protocol::Started;
use crate::sys::{Ending, Errno, Host, HostProgram, KernelExt, Wait};

/// A command line whose process is registered in a claim; made by
/// [`crate::Claim::command`].
///
/// It is built as [`std::process::Command`] is, and derefs to it for what is
/// not repeated here. Three things differ: it is started by the `spawn`,
/// `status` and `output` of *this* type (those of the standard library's
/// refuse with `EINVAL`, since the process would be in no registry), it
/// runs in a process group of its own, and it keeps the user and group of its
/// owner. A hook ([`CommandExt::pre_exec`]) is set on its own line, since its
/// builder answers with the standard library's type.
///
/// In a group of its own the command is in the background of a terminal: where
/// it reads from the terminal it is stopped (SIGTTIN), until somebody makes its
/// group the terminal's foreground group. Give it an input of its own, or none.
#[derive(Debug)]
pub struct Command {
    shared: Arc<Shared>,
    program: HostProgram,
    /// Which of the standard streams were set.
    set: Streams,
}

#[derive(Clone, Copy, Default, Debug)]
struct Streams {
    stdin: bool,
    stdout: bool,
    stderr: bool,
}

/// The methods of the standard library's builder, which would answer with its
/// own type, so that a chain of them would lose this one.
macro_rules! builder {
    ($($(#[$doc:meta])* $name:ident $(<$($param:ident: $bound:path),+>)? ($($arg:ident: $type:ty),*);)*) => {
        $(
            $(#[$doc])*
            pub fn $name$(<$($param: $bound),+>)?(&mut self $(, $arg: $type)*) -> &mut Command {
                self.program.$name($($arg),*);
                self
            }
        )*
    };
}

impl Command {
    pub(super) fn new(shared: Arc<Shared>, program: &OsStr) -> Command {
        Command { shared, program: HostProgram::new(program), set: Streams::default() }
    }

    builder! {
        /// Adds an argument.
        arg<S: AsRef<OsStr>>(arg: S);
        /// Sets a variable of the environment. `MORTMAIN_CLAIM` is set when
        /// the command starts, whatever is set here.
        env<K: AsRef<OsStr>, V: AsRef<OsStr>>(key: K, value: V);
        /// Removes a variable from the environment.
        env_remove<K: AsRef<OsStr>>(key: K);
        /// Starts with an empty environment.
        env_clear();
        /// Sets the working directory.
        current_dir<P: AsRef<Path>>(dir: P);
        /// Sets the first argument, which the program takes for its own name.
        arg0<S: AsRef<OsStr>>(arg: S);
    }

    /// Sets the standard input.
    pub fn stdin(&mut self, stdin: impl Into<Stdio>) -> &mut Command {
        self.set.stdin = true;
        self.program.stdin(stdin);
        self
    }

    /// Sets the standard output.
    pub fn stdout(&mut self, stdout: impl Into<Stdio>) -> &mut Command {
        self.set.stdout = true;
        self.program.stdout(stdout);
        self
    }

    /// Sets the standard error.
    pub fn stderr(&mut self, stderr: impl Into<Stdio>) -> &mut Command {
        self.set.stderr = true;
        self.program.stderr(stderr);
        self
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(&mut self, args: impl IntoIterator<Item = S>) -> &mut Command {
        self.program.args(args);
        self
    }

    /// Sets variables of the environment.
    pub fn envs<K: AsRef<OsStr>, V: AsRef<OsStr>>(
        &mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> &mut Command {
        self.program.envs(variables);
        self
    }

    /// Starts the command. It can be started more than once.
    ///
    /// # Errors
    /// * [`crate::ErrorKind::NotStarted`]: fork or exec failed.
    /// * [`crate::ErrorKind::OtherUser`]: it would have run as another user or
    ///   group.
    /// * [`crate::ErrorKind::NoSpace`]: no room for its entry.
    /// * [`crate::ErrorKind::Forked`], [`crate::ErrorKind::LeaseLost`],
    ///   [`crate::ErrorKind::Closed`]: the claim cannot be used here, or any
    ///   more.
    ///
    /// # Crash behaviour
    /// Killed at any system call, this process leaves an entry by which every
    /// later sweep can tell whether the command runs.
    pub fn spawn(&mut self) -> Result<Child, Error> {
        let program = &mut self.program;
        let started = self.shared.with("start a command in", |claim| claim.spawn(program));
        let started =
            started.map_err(|error| error.about(self.program.get_program().as_bytes()))?;
        Ok(Child {
            shared: Arc::clone(&self.shared),
            started,
            ending: None,
            stdin: self.program.take_stdin(),
            stdout: self.program.take_stdout(),
            stderr: self.program.take_stderr(),
        })
    }

    /// Starts the command and waits for its own process to end.
    ///
    /// # Errors
    /// Of [`Command::spawn`] and [`Child::wait`].
    pub fn status(&mut self) -> Result<ExitStatus, Error> {
        self.spawn()?.wait()
    }

    /// Starts the command with its output and error in pipes and without an
    /// input, as far as none of them was set; waits until nobody holds the
    /// pipes any more and its own process has ended.
    ///
    /// # Errors
    /// Of [`Command::spawn`] and [`Child::wait_with_output`].
    pub fn output(&mut self) -> Result<Output, Error> {
        if !self.set.stdin {
            self.program.stdin(Stdio::null());
        }
        if !self.set.stdout {
            self.program.stdout(Stdio::piped());
        }
        if !self.set.stderr {
            self.program.stderr(Stdio::piped());
        }
        self.spawn()?.wait_with_output()
    }
}

impl Deref for Command {
    type Target = StdCommand;

    fn deref(&self) -> &StdCommand {
        &self.program
    }
}

impl DerefMut for Command {
    fn deref_mut(&mut self) -> &mut StdCommand {
        &mut self.program
    }
}

/// A command that was started. Dropping it leaves the command running.
#[derive(Debug)]
pub struct Child {
    shared: Arc<Shared>,
    started: Started,
    ending: Option<Ending>,
    /// Our end of its standard input, if it was asked for as a pipe.
    pub stdin: Option<ChildStdin>,
    /// Our end of its standard output, likewise.
    pub stdout: Option<ChildStdout>,
    /// Our end of its standard error, likewise.
    pub stderr: Option<ChildStderr>,
}

impl Child {
    /// The number of its process, and of its group.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.started.pid.0.unsigned_abs()
    }

    /// Waits for its own process to end, after closing its standard input.
    ///
    /// What it left in the background may still run; the claim then cannot be
    /// closed.
    ///
    /// # Errors
    /// [`crate::ErrorKind::System`], with `ECHILD` when somebody else has
    /// reaped it.
    pub fn wait(&mut self) -> Result<ExitStatus, Error> {
        self.stdin = None;
        let ended = self.wait_for(Wait::Forever)?;
        ended.ok_or_else(|| self.fail(WAIT, Errno::ECHILD))
    }

    /// Asks whether its own process has ended.
    ///
    /// # Errors
    /// As [`Child::wait`].
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.wait_for(Wait::AtMost(0))
    }

    /// Waits for its own process to end, for so long; `None` when it runs on.
    /// The time is cut to whole milliseconds, and to 49 days.
    ///
    /// # Errors
    /// As [`Child::wait`].
    pub fn wait_timeout(&mut self, limit: Duration) -> Result<Option<ExitStatus>, Error> {
        let millis = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
        self.wait_for(Wait::AtMost(millis))
    }

    /// Waits until nobody holds its output any more and its own process has
    /// ended.
    ///
    /// # Errors
    /// As [`Child::wait`], and those of reading.
    pub fn wait_with_output(mut self) -> Result<Output, Error> {
        self.stdin = None;
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        let read = std::thread::scope(|scope| {
            let other = std::thread::Builder::new().spawn_scoped(scope, move || drained(stderr))?;
            let stdout = drained(stdout);
            // OK because reading a pipe into memory does not panic.
            let stderr = other.join().expect("a reader of a pipe does not panic");
            stdout.and_then(|stdout| Ok((stdout, stderr?)))
        });
        let status = self.wait()?;
        let (stdout, stderr) = read.map_err(|error: std::io::Error| {
            let errno = error.raw_os_error().map_or(Errno::EIO, Errno);
            self.fail("read the output of a command of", errno)
        })?;
        Ok(Output { status, stdout, stderr })
    }

    /// Ends it, and everything in its process group, by SIGKILL.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InUse`] when something of it still runs a second
    /// later; [`crate::ErrorKind::System`].
    pub fn end(&mut self) -> Result<Option<ExitStatus>, Error> {
        let (started, operation) = (self.started, "end a command of");
        let ended = match self.shared.with(operation, |claim| claim.end(&started)) {
            Err(error) if error.kind() == ErrorKind::Closed => self.end_outside(operation)?,
            answer => answer?,
        };
        self.ending = self.ending.or(ended);
        Ok(self.ending.map(exit_status))
    }

    /// Ends a command of a claim that was given up; the sweeps see to its entry.
    fn end_outside(&self, operation: &'static str) -> Result<Option<Ending>, Error> {
        let (pid, now) = (self.started.pid, Wait::AtMost(0));
        match Host.await_end(pid, now) {
            Err(Errno::ECHILD) => return Ok(None),
            answer => answer.map_err(|errno| self.fail(operation, errno))?,
        };
        // Not reaped yet, so the number is still its own.
        match Host.kill_group(pid) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(errno) => return Err(self.fail(operation, errno)),
        }
        let reaped = Host.reap(pid, Wait::AtMost(END_MILLIS));
        reaped.map_err(|errno| self.fail(operation, errno))
    }

    fn fail(&self, operation: &'static str, errno: Errno) -> Error {
        Error::system(operation, self.shared.path(), errno)
    }

    fn wait_for(&mut self, wait: Wait) -> Result<Option<ExitStatus>, Error> {
        if self.ending.is_none() {
            self.ending = self.reaped(wait)?;
        }
        Ok(self.ending.map(exit_status))
    }

    /// Waits without the claim, so that other threads can use it, and without
    /// reaping, so that the number stays the command's; then reaps with it.
    fn reaped(&self, wait: Wait) -> Result<Option<Ending>, Error> {
        let fail = |errno| self.fail(WAIT, errno);
        if Host.await_end(self.started.pid, wait).map_err(fail)?.is_none() {
            return Ok(None);
        }
        let now = Wait::AtMost(0);
        match self.shared.with(WAIT, |claim| claim.wait(&self.started, now)) {
            // The claim was given up; the command is still our child.
            Err(error) if error.kind() == ErrorKind::Closed => {
                Host.reap(self.started.pid, now).map_err(fail)
            }
            answer => answer,
        }
    }
}

const WAIT: &str = "wait for a command of";

/// How long ending a command may take where there is no claim to ask.
const END_MILLIS: u32 = 1_000;

fn exit_status(ending: Ending) -> ExitStatus {
    // The encoding of `wait`: the status in the second byte, the signal in the first.
    ExitStatus::from_raw(match ending {
        Ending::Exited(status) => (status & 0xff) << 8,
        Ending::Killed(signal) => signal,
    })
}

fn drained(pipe: Option<impl Read>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_is_an_exit_status() {
        assert_eq!(exit_status(Ending::Exited(3)).code(), Some(3));
        assert_eq!(exit_status(Ending::Killed(9)).signal(), Some(9));
        assert!(exit_status(Ending::Exited(0)).success());
    }
}
