//! Runs one confined program to its end, with a limit.
//!
//! Invariant: when [`run`] returns, the program and everything it has started are
//! gone. The confinement's own process is waited for, and it ends after its last
//! member.

use std::io::{self, Read as _};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::confine;
use crate::exit::{Exit, Stop};
use crate::interrupt::Interrupt;

/// How much of each output stream is kept. What comes after is read and dropped, so
/// that a program gone wild fills no memory.
const OUTPUT_MAX: usize = 64 << 20;

/// How long the confinement may take to end what it holds.
const END_LIMIT: Duration = Duration::from_secs(10);

/// The end of a program.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) how: End,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, with this code, or 128 and the number of the signal that killed it.
    Exited(i32),
    /// Ended at its limit.
    TimedOut,
    /// Ended because the user wants to stop.
    Interrupted,
    /// Ended because enough was seen.
    Stopped,
}

/// Runs a command that [`confine`] made. Each whole line of its standard output is
/// shown to `watch`, which may end the program.
pub(crate) fn run(
    mut command: Command,
    limit: Duration,
    interrupt: &Interrupt,
    watch: &mut dyn FnMut(&str) -> ControlFlow<()>,
) -> anyhow::Result<Ended> {
    let started = Instant::now();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[expect(
        clippy::disallowed_methods,
        reason = "the confinement ends with its standard input, which is held here only"
    )]
    let child = command.spawn().context("cannot start the confinement")?;
    let mut running = Running { child, stdout: Stream::default(), stderr: Stream::default() };
    let how = running.follow(started + limit, interrupt, watch)?;
    let took = started.elapsed();
    let code = running.end()?;
    let ended = Ended {
        how: how.unwrap_or(End::Exited(code)),
        stdout: running.stdout.text(),
        stderr: running.stderr.text(),
        took,
    };
    if ended.how == End::Exited(confine::FAILED) {
        return Err(Stop::new(Exit::NotConfined, ended.stderr.trim()).into());
    }
    Ok(ended)
}

struct Running {
    child: Child,
    stdout: Stream,
    stderr: Stream,
}

#[derive(Default)]
struct Stream {
    kept: Vec<u8>,
    /// How much of `kept` was shown, in whole lines.
    shown: usize,
    /// How much of `kept` was looked through for the end of a line.
    scanned: usize,
    closed: bool,
}

impl Running {
    /// Reads until both streams are closed, and says why it was ended if it was.
    fn follow(
        &mut self,
        deadline: Instant,
        interrupt: &Interrupt,
        watch: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> anyhow::Result<Option<End>> {
        while !(self.stdout.closed && self.stderr.closed) {
            if interrupt.seen() {
                return Ok(Some(End::Interrupted));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Some(End::TimedOut));
            }
            self.read_some(left, Some(interrupt))?;
            if self.stdout.show(watch).is_break() {
                return Ok(Some(End::Stopped));
            }
        }
        Ok(None)
    }

    /// Waits for output and takes in what is there.
    fn read_some(&mut self, limit: Duration, interrupt: Option<&Interrupt>) -> anyhow::Result<()> {
        // OK because both were asked for as pipes and are never taken out.
        let stdout = self.child.stdout.as_mut().context("no standard output")?;
        let stderr = self.child.stderr.as_mut().context("no standard error")?;
        // One millisecond more, so that a wait never ends just before its limit.
        let timeout =
            PollTimeout::try_from(limit + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        let mut waited = Vec::with_capacity(3);
        if !self.stdout.closed {
            waited.push(PollFd::new(stdout.as_fd(), PollFlags::POLLIN));
        }
        if !self.stderr.closed {
            waited.push(PollFd::new(stderr.as_fd(), PollFlags::POLLIN));
        }
        if let Some(interrupt) = interrupt {
            waited.push(PollFd::new(interrupt.as_fd(), PollFlags::POLLIN));
        }
        match poll(&mut waited, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => bail!("cannot wait for output: {error}"),
        }
        let mut ready = waited.iter().map(|fd| fd.any().unwrap_or(false));
        let stdout_ready = !self.stdout.closed && ready.next().unwrap_or(false);
        let stderr_ready = !self.stderr.closed && ready.next().unwrap_or(false);
        drop(ready);
        drop(waited);
        if stdout_ready {
            self.stdout.take(stdout)?;
        }
        if stderr_ready {
            self.stderr.take(stderr)?;
        }
        Ok(())
    }

    /// Ends the confinement, if it has not ended, and gives its exit code.
    fn end(&mut self) -> anyhow::Result<i32> {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + END_LIMIT;
        while !(self.stdout.closed && self.stderr.closed) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.child.kill().context("cannot kill the confinement")?;
                bail!("the confinement did not end within {END_LIMIT:?} and was killed");
            }
            self.read_some(left, None)?;
        }
        // OK to wait without a limit: the confinement itself holds the streams that are
        // closed now, so it has ended or is about to.
        let status = self.child.wait().context("cannot wait for the confinement")?;
        status.code().with_context(|| format!("the confinement was ended from outside: {status}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Reached early on an error only. Its end takes everything in it along.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Stream {
    fn take(&mut self, from: &mut dyn io::Read) -> anyhow::Result<()> {
        let mut buffer = [0; 64 << 10];
        match from.take(buffer.len() as u64).read(&mut buffer) {
            Ok(0) => self.closed = true,
            Ok(length) => {
                let room = OUTPUT_MAX - self.kept.len();
                self.kept.extend_from_slice(&buffer[..length.min(room)]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("cannot read output"),
        }
        Ok(())
    }

    fn show(&mut self, watch: &mut dyn FnMut(&str) -> ControlFlow<()>) -> ControlFlow<()> {
        while let Some(length) = self.kept[self.scanned..].iter().position(|&byte| byte == b'\n') {
            let end = self.scanned + length;
            let line = String::from_utf8_lossy(&self.kept[self.shown..end]);
            self.shown = end + 1;
            self.scanned = end + 1;
            watch(&line)?;
        }
        self.scanned = self.kept.len();
        ControlFlow::Continue(())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}
