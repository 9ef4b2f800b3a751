//! Sockets that a service manager passes to this process when it starts it.
//!
//! systemd, and whoever does as it does, opens the listening sockets of a service,
//! starts the service with them as descriptors 3 and up, and says so in two
//! variables: `LISTEN_FDS`, how many there are, and `LISTEN_PID`, which process they
//! are for. Both are inherited by everybody whom that process starts; whoever
//! believes them without looking takes a stranger's file for its socket. Here they
//! are believed only when all of it fits: the pid is this process's, the number is
//! sane, and each descriptor is a socket that listens.
//!
//! ```no_run
//! use std::os::unix::net::UnixListener;
//! use mortmain::activation;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! for socket in activation::sockets()? {
//!     println!("{}", socket.name()); // FileDescriptorName= of the unit, or "unknown"
//!     let listener = UnixListener::from(socket.into_fd());
//!     # drop(listener);
//! }
//! # Ok(()) }
//! ```
//!
//! # For operators
//!
//! * Start the program itself, by `exec`: between `LISTEN_PID` and the program there
//!   must be no process more. A wrapper script ends in `exec program`.
//! * Who launches it by hand sets `LISTEN_PID` in the child, just before its exec:
//!   `sh -c 'export LISTEN_PID=$$ LISTEN_FDS=1; exec program' 3<…`. The pid of the
//!   launcher is the wrong one.
//! * A launcher that passes no sockets (a terminal, a container's entry point, a test)
//!   sets neither variable, and the program then has to open its own: ask for sockets
//!   here only where they were asked for in the program's own configuration.
//!
//! The commands that a claim starts do not get the variables, and no descriptor that
//! this library keeps is ever among the numbers that were passed.

use std::env;
use std::format;
use std::os::fd::OwnedFd;
use std::prelude::rust_2024::*;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ErrorKind};
use crate::sys::PathBytes;
use crate::sys::activation::{self as passed, COUNT_MAX, FIRST, NotOurs};

/// Whether they were taken already: a descriptor has one owner.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// A listening socket that was passed. Close-on-exec.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    name: String,
}

impl Socket {
    /// What the service manager calls it; `unknown` where it names none, and nothing
    /// where it leaves this one's name empty, as `sd_listen_fds_with_names(3)` has it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The socket, for the listener of the right kind:
    /// `std::net::TcpListener::from(socket.into_fd())`.
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> OwnedFd {
        socket.fd
    }
}

/// Takes the sockets that were passed to this process, all of them, once.
///
/// # Errors
/// [`ErrorKind::NotActivated`], and nothing is taken: a variable is not set, is no
/// number, is another process's, or says that there are none or too many; or
/// `LISTEN_FDNAMES` is set and does not have as many names; or a descriptor is closed, or
/// is no socket that listens; or they were taken before. The message names the variable
/// and what to do, and is meant to be the last line of a start that fails.
pub fn sockets() -> Result<Vec<Socket>, Error> {
    let value = |name: &str| env::var_os(name);
    let pid = value("LISTEN_PID");
    // CHECK(a1-this-process): the variables are inherited, and descriptor 3 is then anything.
    match passed::number(pid.as_deref()) {
        Some(pid) if pid == i64::from(std::process::id()) => {}
        Some(pid) => {
            let text = format!("it is {pid}, and this is process {}", std::process::id());
            return Err(refused("LISTEN_PID", text));
        }
        None => return Err(refused("LISTEN_PID", told(pid.as_deref()))),
    }
    let count = value("LISTEN_FDS");
    let count = match passed::number(count.as_deref()) {
        // CHECK(a2-sane-count): a program without a socket looks as if it had started.
        Some(0) => return Err(refused("LISTEN_FDS", "it is 0: no socket was passed".into())),
        // CHECK(a2-not-too-many): a slip of the pen would claim what the program has opened itself.
        Some(count) if count > i64::from(COUNT_MAX) => {
            let text = format!("it is {count}, and {COUNT_MAX} would be many");
            return Err(refused("LISTEN_FDS", text));
        }
        Some(count) => count,
        None => return Err(refused("LISTEN_FDS", told(count.as_deref()))),
    };
    // CHECK(a4-once): a descriptor with two owners is closed under one of them.
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Err(refused("LISTEN_FDS", "its sockets were taken before".into()));
    }
    let taken = take_all(i32::try_from(count).unwrap_or(COUNT_MAX));
    if taken.is_err() {
        TAKEN.store(false, Ordering::SeqCst);
    }
    taken
}

/// Takes so many, or none.
fn take_all(count: i32) -> Result<Vec<Socket>, Error> {
    let numbers = FIRST..FIRST + count;
    for number in numbers.clone() {
        // CHECK(a3-listens): a closed number is given to the next file that is opened.
        if let Err(what) = passed::listens(number) {
            let what = match what {
                NotOurs::Closed => "is not open",
                NotOurs::NoSocket => "is no socket",
                NotOurs::Deaf => "is a socket that does not listen",
            };
            return Err(refused(
                "LISTEN_FDS",
                format!("it is {count}, but descriptor {number} {what}"),
            ));
        }
    }
    let names = names_of(numbers.len())?;
    let fail =
        |errno| Error::of_kind(ErrorKind::NotActivated, OPERATION, &about("LISTEN_FDS"), errno);
    // Before any is taken: who has taken one closes it when the next one fails.
    for number in numbers.clone() {
        passed::keep_from_commands(number).map_err(fail)?;
    }
    let sockets = numbers
        .zip(names)
        .map(|(number, name)| Ok(Socket { fd: passed::take(number).map_err(fail)?, name }));
    sockets.collect()
}

/// What so many sockets are called.
fn names_of(count: usize) -> Result<Vec<String>, Error> {
    let Some(names) = env::var_os("LISTEN_FDNAMES") else {
        return Ok((0..count).map(|_| "unknown".into()).collect());
    };
    let Some(names) = names.to_str() else {
        let text = format!("`{}` is no text", names.as_encoded_bytes().escape_ascii());
        return Err(refused("LISTEN_FDNAMES", text));
    };
    let names: Vec<String> = names.split(':').map(Into::into).collect();
    // CHECK(a2-as-many-names): a socket would be served as what another one is.
    if names.len() != count {
        let text = format!("it has {} names, and LISTEN_FDS is {count}", names.len());
        return Err(refused("LISTEN_FDNAMES", text));
    }
    Ok(names)
}

const OPERATION: &str = "take the sockets of";

fn about(variable: &str) -> PathBytes {
    PathBytes::from(variable.as_bytes())
}

fn told(value: Option<&std::ffi::OsStr>) -> String {
    match value {
        None => "it is not set".into(),
        Some(value) => format!("`{}` is no number", value.as_encoded_bytes().escape_ascii()),
    }
}

fn refused(variable: &str, text: String) -> Error {
    Error::because(ErrorKind::NotActivated, OPERATION, &about(variable), text)
}
