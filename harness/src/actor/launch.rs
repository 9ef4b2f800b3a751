//! An actor that is started with sockets, as a service manager starts a service.
//!
//! What becomes the actor puts them at its descriptors from 3 on, sets the variables that say so to
//! its own pid, and becomes it by an exec. It can be a launcher that makes mistakes.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{getpid, getppid};
use serde::{Deserialize, Serialize};

/// The argument that stands before a [`Launch`] in JSON.
pub(super) const LAUNCH: &str = "--launch";

/// The first number that is passed.
const FIRST: RawFd = 3;

/// Above all numbers that are passed.
const OUT_OF_THE_WAY: RawFd = 200;

/// What is at a descriptor that is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Passed {
    /// A socket that listens, at the path.
    Listening,
    /// A socket that is connected.
    Connected,
    /// A file, at the path.
    File,
    /// Nothing.
    Closed,
}

/// What an actor is started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// What is at each number, and a path for it.
    pub passed: Vec<(Passed, PathBuf)>,
    /// Whether the variables are another process's, that of its parent.
    pub to_another: bool,
    /// What the variable for the names has, if it is set.
    pub names: Option<String>,
}

impl Launch {
    /// The arguments of an actor that is started so.
    #[must_use]
    pub fn args(&self) -> [String; 2] {
        // OK because it is made of text and booleans.
        [LAUNCH.into(), serde_json::to_string(self).expect("a launch is JSON")]
    }

    /// Becomes the actor. Nothing is open but the standard streams. Answers why it did not.
    pub(super) fn exec(&self) -> io::Error {
        if let Err(error) = self.pass() {
            return error;
        }
        let pid = if self.to_another { getppid() } else { Some(getpid()) };
        let pid = pid.map_or(0, |pid| pid.as_raw_nonzero().get());
        let mut command = Command::new("/proc/self/exe");
        command.arg("actor").env("LISTEN_PID", pid.to_string());
        command.env("LISTEN_FDS", self.passed.len().to_string()).env_remove("LISTEN_PIDFDID");
        match &self.names {
            Some(names) => command.env("LISTEN_FDNAMES", names),
            None => command.env_remove("LISTEN_FDNAMES"),
        };
        command.exec()
    }

    /// Puts everything at its number, to stay there over an exec.
    fn pass(&self) -> io::Result<()> {
        let things = self.passed.iter().map(|(what, path)| {
            let aside = |fd: &dyn AsFd| fcntl_dupfd_cloexec(fd.as_fd(), OUT_OF_THE_WAY);
            let thing = match what {
                Passed::Listening => aside(&UnixListener::bind(path)?)?,
                Passed::Connected => aside(&UnixStream::pair()?.0)?,
                Passed::File => aside(&File::create(path)?)?,
                Passed::Closed => return Ok(None),
            };
            Ok(Some(thing))
        });
        let things: Vec<Option<OwnedFd>> = things.collect::<io::Result<_>>()?;
        for (number, thing) in (FIRST..).zip(things) {
            let Some(thing) = thing else { continue };
            let passed = fcntl_dupfd_cloexec(&thing, number)?;
            if passed.as_raw_fd() != number {
                return Err(io::Error::other(format!("descriptor {number} is taken")));
            }
            fcntl_setfd(&passed, FdFlags::empty())?;
            // It is the actor's from now on.
            let _passed = passed.into_raw_fd();
        }
        Ok(())
    }
}
