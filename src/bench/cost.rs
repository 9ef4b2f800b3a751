//! What a piece of work costs: processor time and time on the wall.

use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use mortmain_harness::guard::ChildGuard;
use mortmain_harness::wait::Deadline;
use nix::sys::resource::{UsageWho, getrusage};

/// Longer than any one command takes.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a piece of work cost.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Cost {
    /// Processor time, of user and system together.
    pub(crate) cpu: Duration,
    /// Time on the wall.
    pub(crate) wall: Duration,
}

impl Cost {
    /// Of what this process does itself. It has to be its only work meanwhile.
    pub(crate) fn of<T>(work: impl FnOnce() -> T) -> io::Result<(T, Cost)> {
        let (before, begun) = (used(UsageWho::RUSAGE_SELF)?, Instant::now());
        let done = work();
        let wall = begun.elapsed();
        Ok((done, Cost { cpu: used(UsageWho::RUSAGE_SELF)?.saturating_sub(before), wall }))
    }

    /// Of a command and everything that it has waited for. No other child of this process may end
    /// meanwhile.
    pub(crate) fn of_command(command: Command) -> io::Result<Cost> {
        let name = command.get_program().to_string_lossy().into_owned();
        let (before, begun) = (used(UsageWho::RUSAGE_CHILDREN)?, Instant::now());
        let mut child = ChildGuard::spawn(command).map_err(io::Error::other)?;
        let status = child.wait(Deadline::after(PATIENCE)).map_err(io::Error::other)?;
        let wall = begun.elapsed();
        if !status.success() {
            return Err(io::Error::other(format!("`{name}` failed: {status}")));
        }
        Ok(Cost { cpu: used(UsageWho::RUSAGE_CHILDREN)?.saturating_sub(before), wall })
    }

    /// What is left of it without a part.
    pub(crate) fn without(self, part: Cost) -> Cost {
        let (cpu, wall) = (self.cpu.saturating_sub(part.cpu), self.wall.saturating_sub(part.wall));
        Cost { cpu, wall }
    }

    /// Both together.
    pub(crate) fn and(self, other: Cost) -> Cost {
        Cost { cpu: self.cpu + other.cpu, wall: self.wall + other.wall }
    }
}

fn used(who: UsageWho) -> io::Result<Duration> {
    let usage = getrusage(who)?;
    let micros = [usage.user_time(), usage.system_time()]
        .map(|time| time.tv_sec().unsigned_abs() * 1_000_000 + time.tv_usec().unsigned_abs());
    Ok(Duration::from_micros(micros.iter().sum()))
}
