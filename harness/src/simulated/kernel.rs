//! The world as a process of it sees it: the two traits of the seam.
//!
//! A handle holds nothing. It speaks for whichever process runs on this thread,
//! which is the one that holds it, since a handle cannot leave its process.

use std::hash::Hash;
use std::marker::PhantomData;

use mortmain::sys::{
    Answer, Call, ChildIdentity, ChildKernel, ChildPlan, Errno, Handle, IdName, Kernel, Name,
    PathBytes, Pid, Reply,
};

use mortmain_subjects::{Beyond, System};

use crate::raw::coroutine::ask;
use crate::world::ids::{ClaimId, ProgramId};
use crate::world::request::{ChildCall, Command, Request, Response};
use crate::world::{Fingerprint, Special};

/// What a call answers that a panicking process makes while it unwinds. It is
/// not done: the process ends at once, and the panic is a finding.
const UNWINDING: Errno = Errno::EIO;

/// The kernel of a process in the world.
#[derive(Clone, Debug)]
pub struct WorldKernel {
    _of_one_thread: PhantomData<*const ()>,
}

/// Takes the one kind of response that a request has.
macro_rules! answer {
    ($request:expr, $variant:ident) => {
        match ask($request) {
            Some(Response::$variant(answer)) => answer,
            Some(other) => unreachable!("the world answers in kind, not {other:?}"),
            None => Err(UNWINDING),
        }
    };
}

impl WorldKernel {
    pub(super) fn new() -> WorldKernel {
        WorldKernel { _of_one_thread: PhantomData }
    }

    /// Doubles the process: `None` in the child, which goes on from here.
    ///
    /// # Errors
    /// `EAGAIN` when it has had too many children.
    pub fn fork(&self) -> Answer<Option<Pid>> {
        answer!(Request::Fork, Forked)
    }

    /// Leaves its group for one of its own, as `setsid` does.
    pub fn leave_group(&self) {
        let done: Answer<()> = answer!(Request::Child(ChildCall::NewGroup), Done);
        // It cannot fail, but for a process that unwinds.
        let _ = done;
    }

    /// Closes every descriptor, as daemons and careful commands do.
    pub fn close_all(&self) {
        let done: Answer<()> = answer!(Request::CloseAll, Done);
        // It cannot fail, but for a process that unwinds.
        let _ = done;
    }

    /// Goes to work in a directory.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn work_in(&self, path: &PathBytes) -> Answer<()> {
        answer!(Request::WorkIn { path: path.clone() }, Done)
    }

    /// Makes a FIFO, a socket or a device.
    ///
    /// # Errors
    /// `EEXIST`, and those of the directory.
    pub fn make_special(&self, dir: Handle, name: &Name, special: Special) -> Answer<()> {
        answer!(Request::MakeSpecial { dir, name: name.clone(), special }, Done)
    }

    /// Writes a new file into what this process uses of its claim.
    ///
    /// # Errors
    /// `ENOENT` when it uses none, or it is not at its place; `EEXIST`.
    pub fn touch(&self, name: &Name) -> Answer<()> {
        answer!(Request::Touch { name: name.clone() }, Done)
    }

    /// Tells the judge that this process relies on the claim at a path, and on `files`, the same or
    /// below it, which is what its users are given.
    #[must_use]
    pub fn hold(&self, claim: &PathBytes, files: &PathBytes) -> ClaimId {
        match ask(Request::Hold { claim: claim.clone(), files: files.clone() }) {
            Some(Response::Held(claim)) => claim,
            other => unreachable!("a mark is always answered in kind, not with {other:?}"),
        }
    }

    /// Tells the judge that this process does not rely on a claim any more.
    pub fn give_up(&self, claim: ClaimId) {
        let done: Answer<()> = answer!(Request::GiveUp { claim }, Done);
        // It cannot fail, but for a process that unwinds.
        let _ = done;
    }

    /// Tells the judge that this process begins, or ends, what only one process at
    /// a time may do.
    pub fn alone(&self, begins: bool) {
        let done: Answer<()> = answer!(Request::Alone { begins }, Done);
        // It cannot fail, but for a process that unwinds.
        let _ = done;
    }

    /// Says a line to whoever tells it what to do, and waits for the next one.
    ///
    /// # Errors
    /// When the process unwinds.
    pub fn line(&self, said: &[u8]) -> Answer<Box<[u8]>> {
        match ask(Request::Line { said: said.into() }) {
            Some(Response::Line(line)) => Ok(line),
            Some(other) => unreachable!("a line is answered by a line, not {other:?}"),
            None => Err(UNWINDING),
        }
    }

    /// Becomes another program, with this value of `MORTMAIN_CLAIM`.
    pub fn exec(&self, program: ProgramId, cookie: &[u8]) -> ! {
        ask(Request::Exec { program, cookie: cookie.into() });
        unreachable!("what follows an exec is not this program")
    }

    /// Lives on and does nothing, until it is killed.
    pub fn idle(&self) -> ! {
        ask(Request::Idle);
        unreachable!("an idle process is never resumed")
    }

    /// Ends at once, without any destructor.
    pub fn exit(&self, status: i32) -> ! {
        ask(Request::Exit { status });
        unreachable!("a process that has ended is never resumed")
    }
}

impl Kernel for WorldKernel {
    type Program = Command;

    fn call(&self, call: Call) -> Answer<Reply> {
        answer!(Request::Call(call), Reply)
    }

    fn spawn(&self, command: &mut Command, plan: &ChildPlan) -> Answer<Pid> {
        answer!(Request::Spawn { command: command.clone(), plan: plan.clone().into() }, Spawned)
    }

    fn aside<T: Hash>(&self, part: impl FnOnce(&Self) -> T) -> T {
        // Marks are always answered, but in a process that unwinds.
        let _ = ask(Request::Aside);
        let result = part(self);
        let _ = ask(Request::Result { of: Fingerprint::of(&result) });
        result
    }
}

impl System for WorldKernel {
    fn beyond(&self, call: Beyond) -> Answer<Reply> {
        answer!(Request::Beyond(call), Reply)
    }
}

/// The kernel of a child between fork and exec.
#[derive(Clone, Debug)]
pub struct WorldChild {
    _of_one_thread: PhantomData<*const ()>,
}

impl WorldChild {
    pub(super) fn new() -> WorldChild {
        WorldChild { _of_one_thread: PhantomData }
    }

    fn done(call: ChildCall) -> Answer<()> {
        answer!(Request::Child(call), Done)
    }
}

impl ChildKernel for WorldChild {
    fn new_group(&self) -> Answer<()> {
        WorldChild::done(ChildCall::NewGroup)
    }

    fn identity(&self) -> Answer<ChildIdentity> {
        answer!(Request::Child(ChildCall::Identity), Identity)
    }

    fn symlink(&self, dir: Handle, name: &IdName, text: &[u8]) -> Answer<()> {
        let name = Name::new(name.bytes()).ok_or(Errno::EINVAL)?;
        WorldChild::done(ChildCall::Symlink { dir, name, text: text.into() })
    }

    fn keep_over_exec(&self, fd: Handle) -> Answer<()> {
        WorldChild::done(ChildCall::KeepOverExec { fd })
    }
}
