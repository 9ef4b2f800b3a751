//! Waiting for events under a deadline: the end of a process, the coming of a file.
//!
//! Invariants: nothing here sleeps or polls in rounds; every wait blocks in the kernel until the
//! event or the deadline; a wait that fails says what it waited for and for how long.
//!
//! It deliberately does not reap: a process that is waited for may be anybody's child.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A point in time until which to wait, however many waits it takes to get there.
///
/// It remembers the time that was granted, so that a failure can say it.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    /// The deadline that passes after `limit` from now, or sooner where the [`patience`] of this
    /// process is less.
    ///
    /// # Panics
    ///
    /// When `limit` reaches beyond what the clock can count, which is centuries.
    #[must_use]
    pub fn after(limit: Duration) -> Self {
        let limit = limit.min(patience());
        Self { at: Instant::now() + limit, limit }
    }

    /// The deadline that passes after so many seconds from now.
    #[must_use]
    pub fn secs(seconds: u64) -> Self {
        Self::after(Duration::from_secs(seconds))
    }

    /// The time that was granted in all.
    #[must_use]
    pub fn limit(self) -> Duration {
        self.limit
    }

    /// The time that is left, zero when it has passed.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Whether no time is left.
    #[must_use]
    pub fn passed(self) -> bool {
        self.remaining().is_zero()
    }

    /// The earlier of this deadline and one that passes after `limit` from now.
    #[must_use]
    pub fn or_sooner(self, limit: Duration) -> Self {
        let other = Self::after(limit);
        if other.at < self.at { other } else { self }
    }
}

/// The variable of the environment that bounds every wait, in milliseconds.
///
/// Deadlines are generous, for loaded machines. Who runs a test again that took a moment, and expects it
/// to fail this time, need not wait for all of them.
pub const PATIENCE: &str = "MORTMAIN_PATIENCE_MILLIS";

/// The longest that anything is waited for in this process: by default, for ever.
#[must_use]
pub fn patience() -> Duration {
    static TOLD: OnceLock<Duration> = OnceLock::new();
    *TOLD.get_or_init(|| patience_of(env::var(PATIENCE).ok().as_deref()))
}

/// What the variable says; nothing, and what is no number, bounds nothing.
fn patience_of(told: Option<&str>) -> Duration {
    told.and_then(|told| told.parse().ok()).map_or(Duration::MAX, Duration::from_millis)
}

/// Why a wait ended without what it waited for.
#[derive(thiserror::Error)]
pub enum WaitError {
    /// The deadline passed first.
    #[error("waited {limit:?} for {what}, in vain{came}")]
    Deadline {
        /// What was waited for, as it completes the sentence.
        what: String,
        /// The time that was granted.
        limit: Duration,
        /// What there was instead, beginning with `: `, or nothing.
        came: String,
    },
    /// It can no longer come.
    #[error("{what} can no longer come: {because}")]
    Never {
        /// What was waited for.
        what: String,
        /// What rules it out.
        because: String,
    },
    /// The system refused to wait.
    #[error("cannot wait for {what}: {source}")]
    System {
        /// What was waited for.
        what: String,
        /// The system's reason.
        source: io::Error,
    },
}

impl fmt::Debug for WaitError {
    // Tests unwrap these, and `unwrap` prints with `Debug`: the sentence helps, the fields do not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Blocks until one of the descriptors has an event (true) or the deadline has passed (false).
///
/// Looks once when the deadline has passed already. Without a deadline it waits for ever, which
/// only a supervisor may, whose own end is among the events.
pub(crate) fn ready(fds: &mut [PollFd<'_>], deadline: Option<Deadline>) -> io::Result<bool> {
    loop {
        let left = deadline.map(|deadline| {
            // OK because no deadline lies so far away that its seconds overflow 63 bits.
            Timespec::try_from(deadline.remaining())
                .expect("deadlines are within the clock's range")
        });
        match poll(fds, left.as_ref()) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Writes all of it to what does not block, however often the other side has to make room for more.
///
/// `what` is whom to wait for to take it, for the failure.
pub(crate) fn write_whole(
    to: impl AsFd,
    bytes: &[u8],
    deadline: Deadline,
    what: impl Fn() -> String,
) -> Result<(), WaitError> {
    let failed = |source| WaitError::System { what: what(), source };
    let mut left = bytes;
    while !left.is_empty() {
        match rustix::io::write(&to, left) {
            Ok(count) => left = &left[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                if !ready(&mut [PollFd::new(&to, PollFlags::OUT)], Some(deadline))
                    .map_err(failed)?
                {
                    let (limit, came) = (deadline.limit(), String::new());
                    return Err(WaitError::Deadline { what: what(), limit, came });
                }
            }
            Err(errno) => return Err(failed(errno.into())),
        }
    }
    Ok(())
}

/// A hold on one process, of whatever parent, that no reuse of its pid can fool.
#[derive(Debug)]
pub struct Watch {
    pid: i32,
    pidfd: OwnedFd,
}

/// A hold on the process whose pid was said, be it a zombie.
///
/// # Panics
///
/// When it is no pid, or nobody is there.
#[track_caller]
#[must_use]
pub fn hold(pid: &str) -> Watch {
    let watch = Watch::open(pid.trim().parse().expect("it is a pid"));
    watch.expect("the system gives a descriptor").expect("it is there")
}

impl Watch {
    /// Takes hold of the process with this pid; `None` when there is none.
    ///
    /// A zombie still counts as a process here, and [`Watch::is_gone`] is true of it at once.
    ///
    /// # Errors
    ///
    /// When the system refuses a descriptor, or `pid` is no pid.
    pub fn open(pid: i32) -> io::Result<Option<Self>> {
        let raw = (pid > 0).then(|| Pid::from_raw(pid)).flatten();
        let raw = raw.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{pid} is no pid"))
        })?;
        match pidfd_open(raw, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Some(Self { pid, pidfd })),
            Err(Errno::SRCH) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// The pid it had when it was taken hold of.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether all its threads have ended: what is left of it is a zombie or nothing.
    ///
    /// # Errors
    ///
    /// When the system cannot tell.
    pub fn is_gone(&self) -> io::Result<bool> {
        ready(&mut [self.poll_fd()], Some(Deadline::after(Duration::ZERO)))
    }

    /// Waits until [`Watch::is_gone`].
    ///
    /// # Errors
    ///
    /// When the deadline passes first; the error tells what the process does instead.
    pub fn gone(&self, deadline: Deadline) -> Result<(), WaitError> {
        let what = || format!("the end of process {}", self.pid);
        match ready(&mut [self.poll_fd()], Some(deadline)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(WaitError::Deadline {
                what: what(),
                limit: deadline.limit(),
                came: match crate::processes::process(self.pid) {
                    Ok(Some(info)) => {
                        format!(
                            ": `{}` of group {} is in state {}",
                            info.comm, info.pgid, info.state
                        )
                    }
                    _ => String::new(),
                },
            }),
            Err(source) => Err(WaitError::System { what: what(), source }),
        }
    }

    /// A second hold on the same process.
    ///
    /// # Errors
    ///
    /// When the system refuses a descriptor.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { pid: self.pid, pidfd: self.pidfd.try_clone()? })
    }

    /// Kills the process with SIGKILL, whosever child it is. Nothing happens to one that is gone.
    ///
    /// # Errors
    ///
    /// When the process may not be killed by this one.
    pub fn kill(&self) -> io::Result<()> {
        self.signal(Signal::KILL).map(drop)
    }

    /// Sends the process a signal; false when it was gone and reaped.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<bool> {
        match pidfd_send_signal(&self.pidfd, signal) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    pub(crate) fn poll_fd(&self) -> PollFd<'_> {
        PollFd::new(&self.pidfd, PollFlags::IN)
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// Waits until the process that has this pid now, if any, is gone. It need not be a child.
///
/// Whoever must be sure which process that is opens a [`Watch`] while it is known to live.
///
/// # Errors
///
/// When the deadline passes first, or the system cannot tell.
pub fn gone(pid: i32, deadline: Deadline) -> Result<(), WaitError> {
    match Watch::open(pid) {
        Ok(Some(watch)) => watch.gone(deadline),
        Ok(None) => Ok(()),
        Err(source) => Err(WaitError::System { what: format!("the end of process {pid}"), source }),
    }
}

/// Waits until there is something called `name` in `dir`, and returns its path.
///
/// A file that came and went while it was waited for has appeared, too.
///
/// # Errors
///
/// When the deadline passes first, when `dir` is removed, or cannot be watched.
pub fn file_appears(dir: &Path, name: &OsStr, deadline: Deadline) -> Result<PathBuf, WaitError> {
    let path = dir.join(name);
    let what = || format!("{} to appear", path.display());
    match appears(dir, &path, name, deadline) {
        Ok(Outcome::Appeared) => Ok(path),
        Ok(Outcome::Passed) => Err(WaitError::Deadline {
            what: what(),
            limit: deadline.limit(),
            came: match list(dir) {
                Ok(names) if names.is_empty() => ": the directory is empty".into(),
                Ok(names) => format!(": the directory holds {}", names.join(", ")),
                Err(e) => format!(": the directory cannot be listed: {e}"),
            },
        }),
        Ok(Outcome::DirectoryGone) => Err(WaitError::Never {
            what: path.display().to_string(),
            because: format!("{} was removed or moved away", dir.display()),
        }),
        Err(source) => Err(WaitError::System { what: what(), source }),
    }
}

enum Outcome {
    Appeared,
    DirectoryGone,
    Passed,
}

fn appears(dir: &Path, path: &Path, name: &OsStr, deadline: Deadline) -> io::Result<Outcome> {
    let queue = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    let events = inotify::WatchFlags::CREATE
        | inotify::WatchFlags::MOVED_TO
        | inotify::WatchFlags::DELETE_SELF
        | inotify::WatchFlags::MOVE_SELF
        | inotify::WatchFlags::ONLYDIR;
    inotify::add_watch(&queue, dir, events)?;
    // What came before the watch stood made no event, and what comes from now on makes one.
    if exists(path)? {
        return Ok(Outcome::Appeared);
    }
    let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
    loop {
        if !ready(&mut [PollFd::new(&queue, PollFlags::IN)], Some(deadline))? {
            return Ok(Outcome::Passed);
        }
        let mut reader = inotify::Reader::new(&queue, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) => {
                    let gone = inotify::ReadFlags::DELETE_SELF
                        | inotify::ReadFlags::MOVE_SELF
                        | inotify::ReadFlags::IGNORED;
                    if event.events().intersects(gone) {
                        return Ok(Outcome::DirectoryGone);
                    }
                    if event.file_name().is_some_and(|came| came.to_bytes() == name.as_bytes()) {
                        return Ok(Outcome::Appeared);
                    }
                    // Events were lost, the one that is waited for perhaps among them.
                    if event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW) && exists(path)?
                    {
                        return Ok(Outcome::Appeared);
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

/// Whether the name exists, be it a link to nowhere.
fn exists(path: &Path) -> io::Result<bool> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

fn list(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = dir
        .read_dir()?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_for_ever_unless_a_number_is_told() {
        assert_eq!(patience_of(None), Duration::MAX);
        assert_eq!(patience_of(Some("soon")), Duration::MAX);
        assert_eq!(patience_of(Some("1500")), Duration::from_millis(1500));
    }
}
