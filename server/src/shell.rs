//! One command line at a time: started through the claim, watched, and ended as a group.
//!
//! Invariants:
//! * A command is over when its shell has ended, its time is, its request was withdrawn, or the client
//!   or the server goes. In each case its whole group is ended before its shell is reaped, and before
//!   the answer: what it has left in the background goes with it. Only what has left the group, by a
//!   session of its own, goes on, and keeps the claim.
//! * [`Commands::finish`] returns when none of them is being watched any more.
//!
//! It deliberately gives a command no input and no terminal.

use std::convert::Infallible;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use mortmain::{Child, Error, ErrorKind};
use rmcp::schemars::JsonSchema;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::capture::Capture;
use crate::workplace::Workplace;

/// How a command went.
#[derive(Serialize, JsonSchema, Default, Debug)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Ran {
    /// The beginning of its standard output, at most 64 KiB.
    stdout: String,
    /// The same of its standard error.
    stderr: String,
    /// How many bytes of its standard output came after that, and were dropped.
    stdout_cut: u64,
    /// How many bytes of its standard error were dropped.
    stderr_cut: u64,
    /// The exit status of its shell, if that ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<i32>,
    /// The number of the signal that ended its shell, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// Whether it was ended because its time was over.
    pub(crate) timed_out: bool,
    /// What else has to be known: that it was ended with the connection, or that something of it runs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<String>,
}

impl Ran {
    /// Takes in how the command was ended.
    fn is_over(&mut self, cause: Cause, ended: Result<Option<ExitStatus>, Error>) {
        self.remark = match ended {
            Ok(status) => {
                if let (None, None, Some(status)) = (self.status, self.signal, status) {
                    (self.status, self.signal) = (status.code(), status.signal());
                }
                (cause == Cause::Over).then(|| "it was ended with the connection".into())
            }
            Err(error) if error.kind() == ErrorKind::InUse => {
                Some("something of it runs on outside of its process group".into())
            }
            Err(error) => Some(error.to_string()),
        };
    }
}

/// The commands of one client.
#[derive(Debug)]
pub(crate) struct Commands {
    workplace: Arc<Workplace>,
    /// Whether those that run at the end are left to run.
    leave: bool,
    over: watch::Sender<bool>,
    running: watch::Sender<usize>,
}

/// Counts a command for as long as it is watched.
struct Running<'c>(&'c watch::Sender<usize>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}

/// Why a command is watched no longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    Ended,
    Withdrawn,
    Over,
    TimedOut,
}

impl Commands {
    pub(crate) fn new(workplace: Arc<Workplace>, leave: bool) -> Commands {
        let (over, running) = (watch::Sender::new(false), watch::Sender::new(0));
        Commands { workplace, leave, over, running }
    }

    /// Runs a command line to its end, for at most so long, or until its request is withdrawn. The
    /// error is a sentence for the client.
    pub(crate) async fn run(
        &self,
        line: &str,
        limit: Duration,
        withdrawn: impl Future<Output = ()>,
    ) -> Result<Ran, String> {
        self.running.send_modify(|running| *running += 1);
        let _running = Running(&self.running);
        let command = self.workplace.command(line).filter(|_| !*self.over.borrow());
        let mut command = command.ok_or("nothing is started any more: the connection ends")?;
        let mut child = aside(move || command.spawn().map_err(|error| error.to_string())).await??;

        let mut watched = match Watched::of(&mut child) {
            Ok(watched) => watched,
            Err(error) => {
                ended(child).await?.map_err(|error| error.to_string())?;
                return Err(format!("the command cannot be watched: {error}"));
            }
        };
        let cause = watched.over(limit, withdrawn, told(self.over.subscribe())).await;
        let mut ran = Ran { timed_out: cause == Cause::TimedOut, ..Ran::default() };
        // Asked before it is reaped: a command of which something goes on has a status as well.
        (ran.status, ran.signal) = ending(watched.pid).unwrap_or_default();
        if cause == Cause::Over && self.leave {
            ran.remark = Some(format!("it is left running, as process {}", child.id()));
        } else {
            ran.is_over(cause, ended(child).await?);
        }
        (ran.stdout, ran.stdout_cut) = watched.stdout.finish().told();
        (ran.stderr, ran.stderr_cut) = watched.stderr.finish().told();
        Ok(ran)
    }

    /// Ends what runs, or leaves it running, as it was asked for; afterwards nothing is started.
    pub(crate) async fn finish(&self) {
        self.over.send_replace(true);
        // It cannot fail while the sender is here.
        let _ = self.running.subscribe().wait_for(|running| *running == 0).await;
    }
}

/// A command that runs.
#[derive(Debug)]
struct Watched {
    pid: Pid,
    /// Comes when a child of this process has ended, whichever that is.
    ends: Signal,
    stdout: Capture,
    stderr: Capture,
}

impl Watched {
    fn of(child: &mut Child) -> io::Result<Watched> {
        // OK because pids are below 2^22, and never 0.
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("it is a pid");
        Ok(Watched {
            pid,
            ends: signal(SignalKind::child())?,
            stdout: Capture::of(child.stdout.take())?,
            stderr: Capture::of(child.stderr.take())?,
        })
    }

    /// Waits for what ends the watch, and reads meanwhile.
    async fn over(
        &mut self,
        limit: Duration,
        withdrawn: impl Future<Output = ()>,
        over: impl Future<Output = ()>,
    ) -> Cause {
        let (pid, ends) = (self.pid, &mut self.ends);
        let ended = async {
            // What ends between the question and the wait has come by then.
            while ending(pid).is_none() && ends.recv().await.is_some() {}
        };
        let reads = async {
            tokio::join!(self.stdout.fill(), self.stderr.fill());
            // The shell may have closed both, and go on.
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            biased;
            // First, so that who has ended was ended by nobody.
            () = ended => Cause::Ended,
            () = withdrawn => Cause::Withdrawn,
            () = over => Cause::Over,
            () = tokio::time::sleep(limit) => Cause::TimedOut,
            never = reads => match never {},
        }
    }
}

/// The status, or the signal, by which a child has ended that is not reaped yet; nor is it then.
fn ending(pid: Pid) -> Option<(Option<i32>, Option<i32>)> {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let status = waitid(WaitId::Pid(pid), how).ok()??;
    Some((status.exit_status(), status.terminating_signal()))
}

/// Ends a command and everything in its group.
async fn ended(mut child: Child) -> Result<Result<Option<ExitStatus>, Error>, String> {
    aside(move || {
        // CHECK(p5-end-group): what a command leaves in its group would run on, and nobody could end
        // it when its shell is reaped.
        child.end()
    })
    .await
}

/// Waits until it is told so, or nobody can tell any more.
pub(crate) async fn told(mut what: watch::Receiver<bool>) {
    let _ = what.wait_for(|told| *told).await;
}

/// Does what may wait on a thread of its own.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    spawn_blocking(work).await.map_err(|error| error.to_string())
}
