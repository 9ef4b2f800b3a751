//! The cell's pid 1: it furnishes the namespaces, starts the program, reaps, and ends with it.
//!
//! Invariants: it cannot outlive its supervisor, from its first instruction on; it does nothing
//! before that is so. What fails is told to the supervisor through the link, as step and errno, so
//! that a failure of the cell is never taken for one of the program.
//!
//! It deliberately never ends what its program left behind: the kernel does, when init ends.

use std::ffi::{CStr, CString};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Command;

use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Signal, WaitOptions, WaitStatus, set_parent_process_death_signal, wait};
use rustix::thread::set_name;

use super::{INIT_NAME, Reaping, signal_code};
use crate::wait::{Deadline, ready};

/// What init is to do, made ready before the fork.
#[derive(Debug)]
pub(super) struct Plan {
    /// The line for `uid_map` and the one for `gid_map`, in a user namespace.
    pub(super) id_maps: Option<(String, String)>,
    /// Where the tmpfs goes.
    pub(super) mount_point: CString,
    /// The signal mask that the supervisor was given, and that the program gets.
    pub(super) mask: SigSet,
    pub(super) reaping: Reaping,
    /// The program; `None` when all that is asked is whether a cell can be made.
    pub(super) program: Option<Command>,
}

/// A step that can fail, in the order in which they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    DeathSignal,
    Signals,
    Setgroups,
    UidMap,
    GidMap,
    PrivateMounts,
    Proc,
    Scratch,
    Program,
}

impl Step {
    const ALL: [Self; 9] = [
        Self::DeathSignal,
        Self::Signals,
        Self::Setgroups,
        Self::UidMap,
        Self::GidMap,
        Self::PrivateMounts,
        Self::Proc,
        Self::Scratch,
        Self::Program,
    ];

    /// What it does, to complete "cannot …".
    pub(super) fn doing(self) -> &'static str {
        match self {
            Self::DeathSignal => "ask for a signal at the supervisor's death",
            Self::Signals => "restore the signal mask",
            Self::Setgroups => "give up setgroups in the user namespace",
            Self::UidMap => "map the uid in the user namespace",
            Self::GidMap => "map the gid in the user namespace",
            Self::PrivateMounts => "make the mounts private",
            Self::Proc => "mount a fresh /proc",
            Self::Scratch => "mount a tmpfs",
            Self::Program => "start the program",
        }
    }
}

/// The step that failed, and how: what init tells its supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) step: Step,
    pub(super) errno: i32,
}

impl Failed {
    fn to_bytes(self) -> [u8; 5] {
        let [a, b, c, d] = self.errno.to_le_bytes();
        // OK because there are nine steps.
        [self.step as u8, a, b, c, d]
    }

    /// Reads what init wrote; `None` when it wrote nothing, or not all of it.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&step, errno) = bytes.split_first()?;
        Some(Self {
            step: *Step::ALL.get(usize::from(step))?,
            errno: i32::from_le_bytes(errno.try_into().ok()?),
        })
    }
}

/// Init's whole life. Returns the exit code of the cell.
pub(super) fn run(mut plan: Plan, mut link: UnixStream) -> u8 {
    let ended = furnish(&plan, &link).and_then(|()| match plan.program.take() {
        None => Ok(0),
        Some(program) => start(program).map(|program| serve(program, plan.reaping)),
    });
    ended.unwrap_or_else(|failed| {
        // A supervisor that cannot be told is dead, and then so is init.
        let _told = link.write_all(&failed.to_bytes());
        super::EXIT_MISSING
    })
}

fn furnish(plan: &Plan, link: &UnixStream) -> Result<(), Failed> {
    let at = |step| move |errno: Errno| Failed { step, errno: errno.raw_os_error() };

    set_parent_process_death_signal(Some(Signal::KILL)).map_err(at(Step::DeathSignal))?;
    // The supervisor may have died before the call above, which then came too late. Its end of the
    // link, of which it had the only copy, tells: it closes before a dying process signals its
    // children. The parent's pid would not: it is 0 from here, alive or dead.
    let mut supervisor = [PollFd::new(link, PollFlags::RDHUP)];
    match ready(&mut supervisor, Some(Deadline::after(std::time::Duration::ZERO))) {
        Ok(false) => {}
        _ => {
            return Err(Failed { step: Step::DeathSignal, errno: nix::libc::EPIPE });
        }
    }
    // A name is for people, and for `init_is_ours`, which errs to the safe side without it.
    let _named = set_name(INIT_NAME);
    plan.mask
        .thread_set_mask()
        .map_err(|errno| Failed { step: Step::Signals, errno: errno as i32 })?;
    // However the runner was started, what a test does with signals is the same.
    crate::raw::process::default_signals().map_err(|error| Failed {
        step: Step::Signals,
        errno: error.raw_os_error().unwrap_or(nix::libc::EINVAL),
    })?;

    if let Some((uid_map, gid_map)) = &plan.id_maps {
        // An unprivileged process may map its gid only once it cannot drop groups any more. A
        // kernel that has no such file has no such rule.
        match write(c"/proc/self/setgroups", "deny") {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(at(Step::Setgroups)(errno)),
        }
        write(c"/proc/self/uid_map", uid_map).map_err(at(Step::UidMap))?;
        write(c"/proc/self/gid_map", gid_map).map_err(at(Step::GidMap))?;
    }

    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change(c"/", private).map_err(at(Step::PrivateMounts))?;
    let safe = MountFlags::NOSUID | MountFlags::NODEV;
    mount(c"proc", c"/proc", c"proc", safe | MountFlags::NOEXEC, None).map_err(at(Step::Proc))?;
    // Open to all, as a temporary directory is: a cell of root may hold processes of other users.
    // The size is an upper bound against a runaway test, not a reservation.
    mount(c"mortmain-scratch", &plan.mount_point, c"tmpfs", safe, c"mode=1777,size=512m")
        .map_err(at(Step::Scratch))?;
    Ok(())
}

fn write(path: &CStr, text: &str) -> Result<(), Errno> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    // The kernel takes these files in one call or not at all.
    rustix::io::write(&file, text.as_bytes()).map(drop)
}

#[expect(
    clippy::disallowed_methods,
    reason = "nothing needs to end this child: everything in the cell ends with init, its parent"
)]
fn start(mut program: Command) -> Result<i32, Failed> {
    // PIPE(program-of-init): it says what it says to whoever asked for the cell, and init is to reap
    // it among others.
    let program = program.spawn().map_err(|e| Failed {
        step: Step::Program,
        // OK because spawn fails with an errno, but for arguments that hold a NUL.
        errno: e.raw_os_error().unwrap_or(nix::libc::EINVAL),
    })?;
    // OK because pids are below 2^22.
    Ok(i32::try_from(program.id()).expect("pids are positive"))
}

/// Waits for the program's end, reaping meanwhile if asked to, and returns its exit code.
fn serve(program: i32, reaping: Reaping) -> u8 {
    loop {
        let ended = match reaping {
            Reaping::Always => wait(WaitOptions::empty()),
            Reaping::Never => rustix::process::waitpid(
                rustix::process::Pid::from_raw(program),
                WaitOptions::empty(),
            ),
        };
        match ended {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == program => {
                return code_of(status);
            }
            // An orphan, or a signal.
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => unreachable!("init has its program to wait for: {errno}"),
        }
    }
}

fn code_of(status: WaitStatus) -> u8 {
    match (status.exit_status(), status.terminating_signal()) {
        // OK because the kernel keeps eight bits of what a process exits with.
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, Some(signal)) => signal_code(signal),
        (None, None) => unreachable!("only ends were waited for: {status:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_survives_the_link() {
        for step in Step::ALL {
            let failed = Failed { step, errno: nix::libc::EPERM };
            assert_eq!(Failed::from_bytes(&failed.to_bytes()), Some(failed));
        }
        assert_eq!(Failed::from_bytes(&[]), None);
        assert_eq!(Failed::from_bytes(&[0, 1, 0, 0]), None);
        assert_eq!(Failed::from_bytes(&[Step::ALL.len() as u8, 1, 0, 0, 0]), None);
    }
}
