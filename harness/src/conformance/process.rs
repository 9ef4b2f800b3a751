//! A process of a program on the real kernel: does what it is told, one thing at a time.
//!
//! It is told over a socket and answers there. The sockets of all processes of a program are there from
//! the beginning, at high numbers and open over exec, so that a process that another one starts finds its
//! own, and every other descriptor has the number that it would have without them.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::{AsRawFd, IntoRawFd as _, RawFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use mortmain::sys::{
    Answer, Call, ChildKernel as _, ChildPlan, Errno, Handle, Host, HostChild, HostProgram, IdName,
    Kernel as _, PathBytes, Pid, Reply,
};
use nix::libc;
use rustix::fs::{FileType, Mode, OFlags, mknodat, openat};
use rustix::mount::{UnmountFlags, mount_bind, unmount};
use serde::{Deserialize, Serialize};

use super::operation::{Number, Operation, STATUS, Word, cookie};
use super::outcome::Outcome;
use crate::descriptors;
use crate::raw::descriptor::copy_of;
use crate::raw::fork::fork;
use crate::raw::interrupt::unless_it_waits;
use crate::world::Special;

/// The argument by which the lab becomes such a process.
pub const ROLE: &str = "conformance-process";

/// The number of the first process's socket; those of the others follow.
pub(super) const SOCKETS: RawFd = 500;
/// Where a process has its copy of its own.
const OWN: RawFd = 600;
/// Where it has a copy of a descriptor for a moment, or above.
const SPARE: RawFd = 650;

/// How often a process asks again who holds a lock when it was told that nobody does: the list of all
/// locks of the machine is read a page at a time, and a lock that somebody else gives back meanwhile lets
/// another one be passed over.
const ASKED_AGAIN: u32 = 4;

/// What a process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// What to do.
    pub(super) operation: Operation,
    /// The numbers of all processes.
    pub(super) pids: Vec<i32>,
    /// A number that no process has.
    pub(super) nobody: i32,
    /// Path of the root.
    pub(super) root: Vec<u8>,
    /// The socket of a process that is born by it.
    pub(super) socket: RawFd,
}

/// Runs the hidden subcommand with the arguments that follow its name: the socket's number.
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let socket = args.into_iter().next().and_then(|arg| arg.to_str()?.parse().ok());
    ExitCode::from(socket.map_or(2, serve))
}

/// Does what it is told until nobody tells it anything more; answers its exit code.
pub(super) fn serve(socket: RawFd) -> u8 {
    // Whoever told it sees that it is not there.
    listen(socket).unwrap_or(70)
}

fn listen(socket: RawFd) -> io::Result<u8> {
    let mut orders = BufReader::new(UnixStream::from(copy_of(socket, OWN)?));
    // That it is there.
    answer(&mut orders, &Outcome::Done)?;
    let mut line = String::new();
    while orders.read_line(&mut line)? > 0 {
        let order: Order = serde_json::from_str(&line)?;
        line.clear();
        if order.operation == Operation::Exit {
            return Ok(STATUS);
        }
        let outcome = operate(&order)?;
        answer(&mut orders, &outcome)?;
    }
    Ok(0)
}

fn answer(to: &mut BufReader<UnixStream>, outcome: &Outcome) -> io::Result<()> {
    let mut line = serde_json::to_vec(outcome)?;
    line.push(b'\n');
    to.get_mut().write_all(&line)
}

fn operate(order: &Order) -> io::Result<Outcome> {
    let pid = |who: usize| Pid(order.pids.get(who).copied().unwrap_or(order.nobody));
    if let Some(call) = order.operation.call(pid, &PathBytes(order.root.clone())) {
        let mut answer = Host.call(call.clone());
        for _ in 0..ASKED_AGAIN {
            if answer != Ok(Reply::Pids(Vec::new())) {
                break;
            }
            answer = Host.call(call.clone());
        }
        return Ok(Outcome::of(&call, answer));
    }
    Ok(match order.operation {
        Operation::Fork => Outcome::Born(fork(|| serve(order.socket))?),
        Operation::Spawn(dir, lock) => match spawn(Handle(dir), Handle(lock), order.socket) {
            Ok(pid) => Outcome::Born(pid.0),
            Err(errno) => Outcome::Failed(errno.0),
        },
        Operation::NewGroup => match HostChild.new_group() {
            Ok(()) => Outcome::Done,
            Err(errno) => Outcome::Failed(errno.0),
        },
        Operation::MakeSpecial(dir, name, special) => outcome_of(make_special(dir, name, special))?,
        Operation::OpenPlain(dir, name) => outcome_of(open_plain(dir, name))?,
        Operation::Mount(dir, from, on) => outcome_of(bind(dir, from, on))?,
        Operation::Unmount(dir, on) => outcome_of(unbind(dir, on))?,
        _ => {
            close_all()?;
            Outcome::Done
        }
    })
}

/// What came of something that is no call of the seam; what has no number breaks the program off.
fn outcome_of(done: io::Result<Outcome>) -> io::Result<Outcome> {
    done.or_else(|error| match error.raw_os_error() {
        Some(libc::EINTR) => Ok(Outcome::Waits),
        Some(number) => Ok(Outcome::Failed(number)),
        None => Err(error),
    })
}

fn make_special(dir: Number, name: Word, special: Special) -> io::Result<Outcome> {
    let kind = match special {
        Special::Fifo => FileType::Fifo,
        Special::Socket => FileType::Socket,
        // Of the number that no driver has, which everybody may make.
        Special::Device => FileType::CharacterDevice,
    };
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(copy_of(dir, SPARE)?, name.name().bytes(), kind, mode, 0)?;
    Ok(Outcome::Done)
}

fn open_plain(dir: Number, name: Word) -> io::Result<Outcome> {
    let (dir, name) = (copy_of(dir, SPARE)?, name.name());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let open = || Ok(openat(&dir, name.bytes(), flags, Mode::empty())?);
    Ok(Outcome::Handle(unless_it_waits(open)?.into_raw_fd()))
}

fn bind(dir: Number, from: Word, on: Word) -> io::Result<Outcome> {
    let dir = copy_of(dir, SPARE)?;
    mount_bind(path_in(&dir, from), path_in(&dir, on))?;
    Ok(Outcome::Done)
}

fn unbind(dir: Number, on: Word) -> io::Result<Outcome> {
    let dir = copy_of(dir, SPARE)?;
    unmount(path_in(&dir, on), UnmountFlags::empty())?;
    Ok(Outcome::Done)
}

/// A path to a name in an open directory.
fn path_in(dir: &impl AsRawFd, word: Word) -> Vec<u8> {
    let dir = format!("/proc/self/fd/{}/", dir.as_raw_fd()).into_bytes();
    [&dir, word.name().bytes()].concat()
}

fn spawn(dir: Handle, lock: Handle, socket: RawFd) -> Answer<Pid> {
    let plan = plan(dir, lock, |call| Host.call(call))?;
    let lab = std::env::current_exe().or(Err(Errno::ENOENT))?;
    let mut program = HostProgram::new(lab);
    program.args([ROLE, &socket.to_string()]);
    Host.spawn(&mut program, &plan)
}

/// The plan of a child of whoever makes the call. What is not open is refused: the standard library has
/// a pipe of its own open while it spawns, which would have the number.
pub(super) fn plan(
    commands: Handle,
    lock: Handle,
    mut call: impl FnMut(Call) -> Answer<Reply>,
) -> Answer<ChildPlan> {
    for fd in [commands, lock] {
        call(Call::Stat { fd })?;
    }
    let me = match call(Call::Identity)? {
        Reply::Identity(me) => me,
        other => unreachable!("a kernel answers a call with its own kind, not {other:?}"),
    };
    let (home, uid, gid) = (me.home, me.uid, me.gid);
    Ok(ChildPlan { commands, id_name: IdName::new(0), lock, home, uid, gid, cookie: cookie() })
}

/// Closes everything that the program has opened.
fn close_all() -> io::Result<()> {
    for (number, _) in descriptors::all()? {
        if (3..SOCKETS).contains(&number) {
            // One of them was the listing's own.
            let _closed = nix::unistd::close(number);
        }
    }
    Ok(())
}
