//! The workers of a series: each a process in a cell of its own.

use std::io;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mortmain_harness::guard::ChildGuard;
use mortmain_harness::series::{Job, Told};
use mortmain_harness::wait::Deadline;

/// How long a worker may take for one case, on a machine that has other things to do.
const CASE: Duration = Duration::from_secs(120);

/// What comes from the workers.
#[derive(Debug)]
pub(crate) enum News {
    /// A worker told something.
    Told(Told),
    /// A worker is done, or has failed, with its exit code and why.
    Ended(Result<(), (Option<i32>, String)>),
}

/// Workers that run. Dropping them ends their cells.
#[derive(Debug)]
pub(crate) struct Workers {
    news: Receiver<News>,
    /// The threads that read, and the processes that they read from.
    readers: Vec<JoinHandle<()>>,
    stop: Vec<Sender<()>>,
}

impl Workers {
    /// Starts one for each job.
    pub(crate) fn start(jobs: &[Job]) -> io::Result<Workers> {
        let (tell, news) = channel();
        let mut workers = Workers { news, readers: Vec::new(), stop: Vec::new() };
        for job in jobs {
            let mut guard = start(job)?;
            let tell = tell.clone();
            let (stop, stopped) = channel();
            workers.stop.push(stop);
            workers.readers.push(thread::spawn(move || {
                let ended = listen(&mut guard, &tell, &stopped);
                // Whoever does not listen any more does not want to know.
                let _ = tell.send(News::Ended(ended));
            }));
        }
        Ok(workers)
    }

    /// The next news; `None` when nothing comes for so long.
    pub(crate) fn next(&self, limit: Duration) -> Option<News> {
        self.news.recv_timeout(limit).ok()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.clear();
        for reader in self.readers.drain(..) {
            // A reader that panicked has dropped its guard, too.
            let _ = reader.join();
        }
    }
}

fn start(job: &Job) -> io::Result<ChildGuard> {
    let lab = std::env::current_exe()?;
    let mut command = Command::new(&lab);
    command.args(["cell", "--test", &std::process::id().to_string(), "--"]);
    command.arg(&lab).arg("fault-worker").args(job.to_args());
    ChildGuard::spawn(command).map_err(io::Error::other)
}

/// Passes on what a worker tells, until it is done or nobody wants it any more.
fn listen(
    guard: &mut ChildGuard,
    tell: &Sender<News>,
    stopped: &Receiver<()>,
) -> Result<(), (Option<i32>, String)> {
    use std::sync::mpsc::TryRecvError::Disconnected;
    loop {
        if stopped.try_recv() == Err(Disconnected) {
            return Ok(());
        }
        let line = match guard.lines().next_line(Deadline::after(CASE), "the next case of a series")
        {
            Ok(line) => line,
            Err(error) => {
                let status = guard.wait(Deadline::secs(5)).ok();
                return Err((status.and_then(|status| status.code()), error.to_string()));
            }
        };
        match serde_json::from_str(&line) {
            Ok(Told::Done) => return Ok(()),
            Ok(told) => {
                if tell.send(News::Told(told)).is_err() {
                    return Ok(());
                }
            }
            Err(error) => return Err((None, format!("a worker said `{line}`: {error}"))),
        }
    }
}
