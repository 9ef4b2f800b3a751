//! Spawning on the real kernel: a command line of the standard library's, with
//! the child's part as the first of its hooks.
//!
//! The hook is installed at the birth of the command line, so that it stands
//! before all hooks of the user's, and finds its plan at the time of the spawn
//! in a slot that it shares with its program. That is what lets one command
//! line be spawned twice.

use std::boxed::Box;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use std::sync::{Arc, Mutex, PoisonError};

use super::child::HostChild;
use super::{passed, raw};
use crate::cookie;
use crate::sys::{Answer, ChildKernel, ChildPlan, Errno, Pid};

/// Where a hook finds the plan of the spawn that is under way; empty at any
/// other time.
#[derive(Default, Debug)]
pub(super) struct PlanSlot(Mutex<Option<Box<ChildPlan>>>);

impl PlanSlot {
    /// Gives the plan to a hook. Neither waits nor allocates: in a child whose
    /// parent was just putting a plan in (which `spawn_planned` excludes, by
    /// `&mut`), there is none.
    pub(super) fn with_plan<T>(&self, ask: impl FnOnce(Option<&ChildPlan>) -> T) -> T {
        match self.0.try_lock() {
            Ok(plan) => ask(plan.as_deref()),
            Err(_) => ask(None),
        }
    }

    fn put(&self, plan: Option<Box<ChildPlan>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }

    /// Puts a plan in for as long as the answer lives.
    fn lend(&self, plan: &ChildPlan) -> Lent<'_> {
        self.put(Some(Box::new(plan.clone())));
        Lent(self)
    }
}

/// A plan that stands in a slot. Also when a spawn panics, no later one finds
/// it.
struct Lent<'s>(&'s PlanSlot);

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.put(None);
    }
}

/// A command line that [`Kernel::spawn`](crate::sys::Kernel::spawn) starts.
///
/// It derefs to [`Command`], for arguments, environment, directory, standard
/// streams and hooks. Started by any other way than the seam's spawn, such as
/// [`Command::spawn`], it fails with `EINVAL` and runs nothing; so it does
/// after another [`Command`] was assigned in its place. (One that was swapped
/// in, with the old one kept alive, is not seen.) A user or group other than
/// the owner's is refused with `EOPNOTSUPP`.
pub struct HostProgram {
    command: Command,
    slot: Arc<PlanSlot>,
    /// The last one that was started, for its pipes. Dropping it waits for
    /// nothing and reaps nothing.
    child: Option<Child>,
}

impl HostProgram {
    /// A command line for a program.
    pub fn new(program: impl AsRef<OsStr>) -> HostProgram {
        HostProgram::with_child(program, HostChild)
    }

    /// A command line whose child does its part through this kernel.
    ///
    /// It is used between fork and exec, where its calls have to be
    /// async-signal-safe, as [`ChildKernel`] demands: no allocation, no waiting
    /// for a lock.
    pub fn with_child<C>(program: impl AsRef<OsStr>, kernel: C) -> HostProgram
    where
        C: ChildKernel + Send + Sync + 'static,
    {
        let mut command = Command::new(program);
        for variable in passed::VARIABLES {
            // CHECK(a5-not-handed-on): whoever believed them would take what it has at 3 for a
            // socket. Who passes sockets of its own sets them after this.
            command.env_remove(variable);
        }
        let slot = Arc::new(PlanSlot::default());
        raw::install_child_part(&mut command, Arc::clone(&slot), kernel);
        HostProgram { command, slot, child: None }
    }

    /// Our end of the last child's standard input, if it was asked for as a
    /// pipe and not taken yet. An end that nobody takes is closed by the next
    /// spawn.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.as_mut()?.stdin.take()
    }

    /// Our end of the last child's standard output, likewise.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.as_mut()?.stdout.take()
    }

    /// Our end of the last child's standard error, likewise.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.as_mut()?.stderr.take()
    }

    /// Starts it with a plan.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one spawn of the library, which everything else goes through"
    )]
    pub(super) fn spawn_planned(&mut self, plan: &ChildPlan) -> Answer<Pid> {
        // CHECK(p2-hook-in-place): whoever has assigned another `Command` in the place of ours has
        // thrown the child's part away with it.
        if Arc::strong_count(&self.slot) < 2 {
            return Err(Errno::EINVAL);
        }
        // CHECK(p4-cookie): set at each spawn, after whatever the user did to the environment.
        self.command.env(cookie::VARIABLE, OsStr::from_bytes(&plan.cookie));
        let lent = self.slot.lend(plan);
        // Its error means that the child has ended without running anything, and is reaped.
        let spawned = self.command.spawn();
        drop(lent);
        let child = spawned.map_err(|error| number(&error))?;
        let pid = i32::try_from(child.id()).or(Err(Errno::EOVERFLOW))?;
        self.child = Some(child);
        Ok(Pid(pid))
    }
}

/// The number of an error of the standard library's. It makes one of its own
/// for a NUL in an argument, with no number.
fn number(error: &io::Error) -> Errno {
    match (error.raw_os_error(), error.kind()) {
        (Some(number), _) => Errno(number),
        (None, io::ErrorKind::InvalidInput) => Errno::EINVAL,
        (None, _) => Errno::EIO,
    }
}

impl Deref for HostProgram {
    type Target = Command;

    fn deref(&self) -> &Command {
        &self.command
    }
}

impl DerefMut for HostProgram {
    fn deref_mut(&mut self) -> &mut Command {
        &mut self.command
    }
}

impl fmt::Debug for HostProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.command.fmt(f)
    }
}
