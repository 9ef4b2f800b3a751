//! The supervisor: makes a cell, watches those on whose behalf it is, and ends with it.
//!
//! It waits in one `poll` for the end of init, for the death of a guardian (the runner, the test,
//! its own parent), and for a request to stop. Whatever comes first, it ends init, waits until init
//! is reaped, and returns. It has no other state to be caught in.
//!
//! A parent-death signal would not do for the guardians: the runner is not the parent, the signal
//! is lost when uid or gid change, and it fires at the end of the parent's *thread*. For init, whose
//! parent has one thread and which never changes its uid, it is right.
//!
//! Invariants:
//! * The process has one thread (the fork demands it), and so nothing else to attend to.
//! * A guardian is known by its pidfd, and the relations test → runner and supervisor → parent are
//!   verified after the descriptors are open, so that a pid that was reused in between is not
//!   watched as if it were the guardian. A guardian that cannot be verified counts as dead.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::{SigSet, SigmaskHow, Signal as NixSignal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{
    Signal, WaitId, WaitIdOptions, WaitIdStatus, getegid, geteuid, getppid, pidfd_send_signal,
    waitid,
};

use super::init::{self, Failed, Plan, Step};
use super::{
    CELL, CellError, Ended, Guardian, Missing, REAPING, Reaping, SCRATCH, Spec, UidMap, mount_point,
};
use crate::processes::process;
use crate::raw::process::fork_into_namespaces;
use crate::wait::{Watch, ready};

/// Runs the program in a cell until it ends or a guardian dies. When this returns, nothing of the
/// cell is left.
///
/// When the runner has died, the test, which nobody waits for any more, is killed as well.
///
/// It is meant for a process that does nothing else: it blocks the signals that ask a process to
/// stop, to wait for them, and leaves them blocked.
///
/// # Errors
///
/// When a cell cannot be had here, the program cannot be started, or init is killed from outside.
pub fn supervise(spec: &Spec) -> Result<Ended, CellError> {
    let requests = Requests::open().map_err(supervisor("take over its signals"))?;
    let guardians = Guardians::open(spec).map_err(supervisor("watch its guardians"))?;
    if let Some(dead) = guardians.first_dead().map_err(supervisor("watch its guardians"))? {
        guardians.abandon(dead);
        return Ok(Ended::Abandoned(dead));
    }

    let words = spec.args.iter().map(|arg| arg.as_os_str()).chain([spec.program.as_os_str()]);
    let furniture = Furniture::new(mount_point::needed(words))?;
    let cell = Cell::make(spec.uid_map, |user| Plan {
        id_maps: user.then(id_maps),
        mount_point: furniture.mount_point.clone(),
        mask: requests.mask_before,
        reaping: spec.reaping,
        program: Some(furniture.command(spec)),
    })?;

    let ended = cell.watch(&guardians, &requests).map_err(supervisor("watch its cell"))?;
    if ended.is_some() {
        cell.kill().map_err(supervisor("end its cell"))?;
    }
    if let Some(Ended::Abandoned(dead)) = ended {
        guardians.abandon(dead);
    }
    let left = cell.end().map_err(supervisor("reap its cell"))?;
    match ended {
        Some(ended) => Ok(ended),
        None => left.judge(spec),
    }
}

/// Makes a cell without a program, to see whether one can be made here. Like [`supervise`] it works
/// in a process of one thread only; [`super::probe`] has no such limit.
///
/// # Errors
///
/// [`CellError::Missing`] with the reason when a cell cannot be made, others for failures of ours.
pub fn try_cell() -> Result<(), CellError> {
    let furniture = Furniture::new(mount_point::needed([]))?;
    let mask =
        SigSet::thread_get_mask().map_err(|errno| supervisor("read its mask")(errno.into()))?;
    let cell = Cell::make(UidMap::AsNeeded, |user| Plan {
        id_maps: user.then(id_maps),
        mount_point: furniture.mount_point.clone(),
        mask,
        reaping: Reaping::Always,
        program: None,
    })?;
    let left = cell.end().map_err(supervisor("reap its cell"))?;
    match left {
        Left { failed: Some(failed), .. } => Err(Missing::step(failed).into()),
        Left { status, .. } => match status.terminating_signal() {
            Some(signal) => Err(CellError::InitKilled(signal)),
            None => Ok(()),
        },
    }
}

fn supervisor(doing: &'static str) -> impl Fn(io::Error) -> CellError {
    move |source| CellError::Supervisor { doing, source }
}

/// The lines for `uid_map` and `gid_map` by which the current ids stand for themselves.
fn id_maps() -> (String, String) {
    let itself = |id: u32| format!("{id} {id} 1\n");
    (itself(geteuid().as_raw()), itself(getegid().as_raw()))
}

/// What differs between cells in the way of mounts and environment.
struct Furniture {
    mount_point: CString,
}

impl Furniture {
    fn new(needed: BTreeSet<PathBuf>) -> Result<Self, Missing> {
        let path = mount_point::choose(&needed).map_err(|reason| Missing { reason })?;
        // OK because no path that the system has resolved holds a NUL.
        let mount_point = CString::new(path.as_os_str().as_bytes()).expect("paths hold no NUL");
        Ok(Self { mount_point })
    }

    fn command(&self, spec: &Spec) -> Command {
        let scratch = OsStr::from_bytes(self.mount_point.to_bytes());
        let mut command = Command::new(&spec.program);
        command
            .args(&spec.args)
            .env(CELL, "1")
            .env(REAPING, spec.reaping.word())
            .env(SCRATCH, scratch)
            .env("TMPDIR", scratch);
        command
    }
}

/// A cell from its supervisor's side. While it exists, init has not been reaped.
struct Cell {
    init: OwnedFd,
    /// Init writes here what failed; its end of it closes when it dies.
    link: UnixStream,
}

impl Cell {
    fn make(uid_map: UidMap, plan: impl Fn(bool) -> Plan) -> Result<Self, CellError> {
        let attempt = |user| {
            let (link, inits) = UnixStream::pair()?;
            let mut link = Some(link);
            let plan = plan(user);
            let init = fork_into_namespaces(user, || {
                // This is the child: with a copy of our end it would never see us die.
                drop(link.take());
                init::run(plan, inits)
            })?;
            // OK because only the child took it, out of its own memory.
            Ok(Self { init, link: link.expect("the parent still has its end") })
        };
        let made = match uid_map {
            UidMap::Current => attempt(true),
            UidMap::AsNeeded => attempt(false).or_else(|e: io::Error| match e.kind() {
                io::ErrorKind::PermissionDenied => attempt(true),
                _ => Err(e),
            }),
        };
        made.map_err(|e| match e.raw_os_error() {
            Some(_) => Missing::namespaces(&e).into(),
            None => supervisor("make a cell")(e),
        })
    }

    /// Waits for what comes first: `None` is the end of init.
    fn watch(&self, guardians: &Guardians, requests: &Requests) -> io::Result<Option<Ended>> {
        loop {
            let mut fds = vec![
                PollFd::new(&self.init, PollFlags::IN),
                PollFd::new(&requests.signals, PollFlags::IN),
            ];
            fds.extend(guardians.living().map(Watch::poll_fd));
            ready(&mut fds, None)?;
            let event = |fd: &PollFd<'_>| !fd.revents().is_empty();
            if event(&fds[0]) {
                return Ok(None);
            }
            if event(&fds[1])
                && let Some(request) = requests.signals.read_signal()?
            {
                // OK because signals are small positive numbers.
                return Ok(Some(Ended::Interrupted(request.ssi_signo.cast_signed())));
            }
            if let Some(dead) = guardians.first_dead()? {
                return Ok(Some(Ended::Abandoned(dead)));
            }
        }
    }

    fn kill(&self) -> io::Result<()> {
        match pidfd_send_signal(&self.init, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Waits until init, and with it everything in the cell, has ended and been reaped.
    fn end(mut self) -> io::Result<Left> {
        let status = loop {
            match waitid(WaitId::PidFd(self.init.as_fd()), WaitIdOptions::EXITED) {
                Ok(Some(status)) => break status,
                Ok(None) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        };
        let mut told = Vec::new();
        // This cannot block: the program did not inherit the other end, and init is dead.
        self.link.read_to_end(&mut told)?;
        Ok(Left { status, failed: Failed::from_bytes(&told) })
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        // Reached with a living init only when the supervisor has failed and has something to tell.
        let _killed = self.kill();
    }
}

/// What is left of a cell that has ended.
struct Left {
    status: WaitIdStatus,
    failed: Option<Failed>,
}

impl Left {
    fn judge(self, spec: &Spec) -> Result<Ended, CellError> {
        if let Some(failed) = self.failed {
            return Err(match failed.step {
                Step::Program => CellError::Program {
                    program: spec.program.to_string_lossy().into_owned(),
                    source: io::Error::from_raw_os_error(failed.errno),
                },
                _ => Missing::step(failed).into(),
            });
        }
        match (self.status.exit_status(), self.status.terminating_signal()) {
            // OK because the kernel keeps eight bits of what a process exits with.
            (Some(code), _) => Ok(Ended::Program(u8::try_from(code).unwrap_or(u8::MAX))),
            (None, Some(signal)) => Err(CellError::InitKilled(signal)),
            (None, None) => unreachable!("only an end was waited for: {:?}", self.status),
        }
    }
}

/// Requests to stop, as an event among others instead of a death that leaves the rest to the
/// kernel: when the supervisor has ended, its cell is empty.
struct Requests {
    signals: SignalFd,
    mask_before: SigSet,
}

impl Requests {
    fn open() -> io::Result<Self> {
        let signals: SigSet =
            [NixSignal::SIGHUP, NixSignal::SIGINT, NixSignal::SIGQUIT, NixSignal::SIGTERM]
                .into_iter()
                .collect();
        let mask_before = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self { signals: SignalFd::with_flags(&signals, flags)?, mask_before })
    }
}

/// Those on whose behalf the cell is; `None` in place of one that is dead already.
struct Guardians(Vec<(Guardian, Option<Watch>)>);

impl Guardians {
    fn open(spec: &Spec) -> io::Result<Self> {
        let mut all = vec![(Guardian::Test, Watch::open(spec.test)?)];
        // A parent outside this pid namespace cannot be seen, and its death kills the namespace.
        if let Some(parent) = getppid() {
            let watch = Watch::open(parent.as_raw_nonzero().get())?;
            let verified = getppid() == Some(parent);
            all.push((Guardian::Parent, watch.filter(|_| verified)));
        }
        if let Some(runner) = spec.runner {
            let watch = Watch::open(runner)?;
            let verified = process(spec.test)?.is_none_or(|test| test.ppid == runner);
            all.push((Guardian::Runner, watch.filter(|_| verified)));
        }
        Ok(Self(all))
    }

    fn living(&self) -> impl Iterator<Item = &Watch> {
        self.0.iter().filter_map(|(_, watch)| watch.as_ref())
    }

    fn first_dead(&self) -> io::Result<Option<Guardian>> {
        for (guardian, watch) in &self.0 {
            match watch {
                Some(watch) if !watch.is_gone()? => {}
                _ => return Ok(Some(*guardian)),
            }
        }
        Ok(None)
    }

    /// Kills the test when it has lost its runner.
    fn abandon(&self, dead: Guardian) {
        let test = self.0.iter().find(|(guardian, _)| *guardian == Guardian::Test);
        if dead == Guardian::Runner
            && let Some((_, Some(test))) = test
        {
            // A test of another user cannot be killed, and there is nobody left to tell.
            let _killed = test.signal(Signal::KILL);
        }
    }
}
