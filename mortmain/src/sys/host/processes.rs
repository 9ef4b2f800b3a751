//! Other processes on the real kernel: who is there, and how they end.

use core::ffi::CStr;
use std::ffi::CString;
use std::format;
use std::time::{Duration, Instant};
use std::vec::Vec;

use nix::sys::signal::{Signal, kill};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::retry_on_intr;
use rustix::process::{PidfdFlags, WaitId, WaitIdOptions};
use rustix::rand::GetRandomFlags;

use super::stat_line::{STAT_LINE_BYTES, number};
use super::{IntoAnswer as _, proc};
use crate::sys::{Answer, Ending, Errno, Pid, Process, Wait};

/// Bytes of entries that one listing of `/proc` asks for.
const LISTING_BYTES: usize = 32 * 1024;

/// Time between two looks at a child that is traced, and whose end is therefore
/// not ours to see yet, or not the only thing there is to see.
const ASK_AGAIN_MILLIS: u32 = 1;

/// A number that a signal or a wait may go to.
fn target(pid: Pid) -> Answer<i32> {
    // CHECK(h7-host-special): here 0 is our own group, 1 is init, -1 is everybody and every other
    // negative number is a group.
    if pid.0 <= 1 {
        return Err(Errno::EINVAL);
    }
    Ok(pid.0)
}

pub(super) fn process_exists(pid: Pid) -> Answer<()> {
    // CHECK(h7-host-process): 0 is our own group, -1 is everybody; init may be asked after.
    if pid.0 <= 0 {
        return Err(Errno::EINVAL);
    }
    kill(nix::unistd::Pid::from_raw(pid.0), None).answer()
}

pub(super) fn group_exists(group: Pid) -> Answer<()> {
    signal_group(group, None)
}

pub(super) fn kill_group(group: Pid) -> Answer<()> {
    // CHECK(h7-not-our-group): a child that has not made its group yet still has ours.
    if group.0 == nix::unistd::getpgrp().as_raw() {
        return Err(Errno::EINVAL);
    }
    signal_group(group, Some(Signal::SIGKILL))
}

fn signal_group(group: Pid, signal: Option<Signal>) -> Answer<()> {
    kill(nix::unistd::Pid::from_raw(-target(group)?), signal).answer()
}

pub(super) fn process(pid: Pid) -> Answer<Process> {
    if pid.0 <= 0 {
        return Err(Errno::EINVAL);
    }
    let path = CString::new(format!("/proc/{}/stat", pid.0)).expect("OK because digits are no NUL");
    process_at(&path)
}

/// What a `stat` file of `/proc` says.
pub(super) fn process_at(path: &CStr) -> Answer<Process> {
    let mut buffer = [0u8; STAT_LINE_BYTES];
    let line = proc::stat_line(path, &mut buffer)?;
    Ok(Process {
        start_ticks: line.start_ticks,
        group: Pid(line.group),
        zombie: line.zombie(),
        threads: line.threads,
        program: line.program(),
    })
}

pub(super) fn pidfs(pid: Pid) -> Answer<u64> {
    proc::pidfs(rustix_pid(pid)?)
}

fn rustix_pid(pid: Pid) -> Answer<rustix::process::Pid> {
    rustix::process::Pid::from_raw(target(pid)?).ok_or(Errno::EINVAL)
}

pub(super) fn pids() -> Answer<Vec<Pid>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = retry_on_intr(|| rustix::fs::open(c"/proc", flags, Mode::empty())).answer()?;
    let mut buffer = Vec::with_capacity(LISTING_BYTES);
    let mut listing = RawDir::new(&proc, buffer.spare_capacity_mut());
    let mut pids = Vec::new();
    while let Some(entry) = listing.next() {
        // Whatever else lies in /proc has no number for a name.
        pids.extend(number(entry.answer()?.file_name().to_bytes()).map(Pid));
    }
    pids.sort_unstable();
    Ok(pids)
}

pub(super) fn descriptors_max() -> Answer<u64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    Ok(limit.current.unwrap_or(u64::MAX))
}

pub(super) fn wait(pid: Pid, wait: Wait, reap: bool) -> Answer<Option<Ending>> {
    let child = rustix_pid(pid)?;
    let how =
        if reap { WaitIdOptions::EXITED } else { WaitIdOptions::EXITED | WaitIdOptions::NOWAIT };
    match wait {
        Wait::Forever => loop {
            let ending = ending(child, how)?;
            if ending.is_some() {
                return Ok(ending);
            }
            // Something of a child that we trace ourselves, which is not its end.
            pause(ASK_AGAIN_MILLIS);
        },
        Wait::AtMost(millis) => {
            let time = Duration::from_millis(millis.into());
            wait_at_most(child, how | WaitIdOptions::NOHANG, time)
        }
    }
}

fn wait_at_most(
    child: rustix::process::Pid,
    how: WaitIdOptions,
    time: Duration,
) -> Answer<Option<Ending>> {
    let at_once = ending(child, how)?;
    if at_once.is_some() || time.is_zero() {
        return Ok(at_once);
    }
    let deadline = Instant::now() + time;
    // The number is still this child's: it has not been reaped.
    let pidfd = rustix::process::pidfd_open(child, PidfdFlags::empty()).answer()?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).or(Err(Errno::EINVAL))?;
        let mut ended = [PollFd::new(&pidfd, PollFlags::IN)];
        let woken = rustix::event::poll(&mut ended, Some(&timeout));
        let ending = ending(child, how)?;
        if ending.is_some() || left.is_zero() {
            return Ok(ending);
        }
        match woken {
            // It has ended, and whoever traces it has to see that first.
            Ok(1..) => pause(ASK_AGAIN_MILLIS),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Err(other) => return Err(other).answer(),
        }
    }
}

/// The end of a child, if it has come.
///
/// By `rustix`, since `nix` has no value for a real-time signal and would lose
/// the end of a child that one of them killed, with the child already reaped.
fn ending(child: rustix::process::Pid, how: WaitIdOptions) -> Answer<Option<Ending>> {
    let status = retry_on_intr(|| rustix::process::waitid(WaitId::Pid(child), how)).answer()?;
    let Some(status) = status else { return Ok(None) };
    let exited = status.exit_status().map(Ending::Exited);
    Ok(exited.or_else(|| status.terminating_signal().map(Ending::Killed)))
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that lets time pass, for everything above the seam"
)]
pub(super) fn pause(millis: u32) {
    std::thread::sleep(Duration::from_millis(millis.into()));
}

pub(super) fn random() -> Answer<u64> {
    let mut bytes = [0u8; 8];
    let len = rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty()).answer()?;
    if len < bytes.len() {
        // Only a signal cuts an answer of this size.
        return Err(Errno::EINTR);
    }
    Ok(u64::from_ne_bytes(bytes))
}
