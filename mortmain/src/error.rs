//! The one public error.
//!
//! Its message names the operation, the path and the cause, and says what to
//! do. Callers match on [`ErrorKind`]; the number of a failed system call is
//! there as [`Error::errno`] and as the source.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use crate::sys::{Errno, PathBytes};

/// What kind of failure it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The prefix is not one; see [`crate::Prefix`].
    InvalidPrefix,
    /// Locks under this root do not prove anything, so a claim there could not
    /// be protected (c4).
    Unprotected,
    /// The file system is full, of blocks, inodes or quota.
    NoSpace,
    /// Every attempt to make a claim met a sweep that took its staging away.
    Contended,
    /// Something that uses the claim still runs, or might.
    InUse,
    /// The claim is no longer the directory at its name, or its lease's
    /// descriptor was closed by somebody else.
    LeaseLost,
    /// The claim belongs to the process that this one was forked from (c6).
    Forked,
    /// The command would have run as another user or group (p2).
    OtherUser,
    /// The command did not start.
    NotStarted,
    /// The claim was given up before.
    Closed,
    /// What was done in the background, or on another thread, panicked; it did not
    /// come to its end.
    Panicked,
    /// There is no claim of that name, or it is another user's.
    NoSuchClaim,
    /// There is no stray of that name: it is a claim, no directory, another
    /// user's, or nothing (l8).
    NoSuchStray,
    /// Locks there may not reach every process that uses the file, so one would
    /// prove nothing (f3).
    NoLocks,
    /// Something that is no regular file stands at the name of a file that is
    /// needed.
    Obstructed,
    /// Every attempt at a lock met somebody who replaced its file.
    Replaced,
    /// Somebody else held the lock until the time was over.
    TimedOut,
    /// The lock's file was removed or replaced, or its descriptor closed, while the
    /// lock was held.
    LockLost,
    /// The content of a file cannot be understood.
    Corrupt,
    /// The content of a file is longer than its limit.
    TooLarge,
    /// No sockets were passed to this process, or not as they have to be.
    NotActivated,
    /// Somebody has the directory of this tag.
    TagInUse,
    /// Another system call failed.
    System,
}

/// Why something could not be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error(Box<Inner>);

/// Boxed, so that a result of it stays small.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Inner {
    kind: ErrorKind,
    operation: &'static str,
    path: PathBytes,
    /// What it was about, where path and operation do not say.
    about: Option<PathBytes>,
    cause: Cause,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Cause {
    Errno(Errno),
    Text(String),
}

impl Error {
    fn new(kind: ErrorKind, operation: &'static str, path: &PathBytes, cause: Cause) -> Error {
        let path = path.clone();
        Error(Box::new(Inner { kind, operation, path, about: None, cause }))
    }

    pub(crate) fn system(operation: &'static str, path: &PathBytes, errno: Errno) -> Error {
        let kind = match errno {
            Errno::ENOSPC | Errno::EDQUOT => ErrorKind::NoSpace,
            _ => ErrorKind::System,
        };
        Error::of_kind(kind, operation, path, errno)
    }

    /// The same error, about something that its path does not name.
    #[cfg(feature = "host")]
    pub(crate) fn about(mut self, what: &[u8]) -> Error {
        self.0.about = Some(PathBytes::from(what));
        self
    }

    pub(crate) fn of_kind(
        kind: ErrorKind,
        operation: &'static str,
        path: &PathBytes,
        errno: Errno,
    ) -> Error {
        Error::new(kind, operation, path, Cause::Errno(errno))
    }

    pub(crate) fn because(
        kind: ErrorKind,
        operation: &'static str,
        path: &PathBytes,
        text: String,
    ) -> Error {
        Error::new(kind, operation, path, Cause::Text(text))
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What was being done, such as `create a claim in`.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// What it was being done to.
    #[must_use]
    pub fn path(&self) -> &PathBytes {
        &self.0.path
    }

    /// The number of the system call's failure, where one failed.
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        match self.0.cause {
            Cause::Errno(errno) => Some(errno),
            Cause::Text(_) => None,
        }
    }

    /// The cause alone, in words, without what was being done to what.
    #[must_use]
    pub fn reason(&self) -> String {
        match &self.0.cause {
            Cause::Errno(errno) => alloc::format!("{errno}"),
            Cause::Text(text) => text.clone(),
        }
    }

    /// What the reader can do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match (self.0.kind, self.errno()) {
            (ErrorKind::InvalidPrefix, _) => {
                "use letters, digits, `_`, `-` and `.`, at most 64, beginning with a letter or digit"
            }
            (ErrorKind::Unprotected, _) => {
                "choose a root on a local file system, or ask for an unclaimed directory, which no sweep removes"
            }
            (ErrorKind::NoSpace, _) => "free space or inodes there; a sweep needs neither",
            (ErrorKind::Contended, _) => "look for a program that sweeps this root in a loop",
            (ErrorKind::InUse, _) => {
                "end what still runs and close again, or drop the claim: a later sweep removes it"
            }
            (ErrorKind::LeaseLost, _) => {
                "look for code that closes descriptors it did not open or renames the claim; sweeps judge it now"
            }
            (ErrorKind::Forked, _) => {
                "use it in the process that made it, or make a claim of this one's own"
            }
            (ErrorKind::OtherUser, _) => "start the command as the owner's user and group",
            (ErrorKind::NotStarted, Some(Errno::EAGAIN | Errno::ENOMEM)) => {
                "the system has no room for another process now: end some, or raise the limit (`ulimit -u`)"
            }
            (ErrorKind::NotStarted, Some(Errno::E2BIG)) => {
                "give it less in its arguments and its environment, and the rest by a file or a pipe"
            }
            (ErrorKind::NotStarted | ErrorKind::System, Some(Errno::EMFILE)) => {
                "close descriptors, or raise the limit (`ulimit -n`)"
            }
            (ErrorKind::NotStarted, Some(Errno::EINVAL)) => {
                "start it by this type's own `spawn`, `status` or `output`"
            }
            (ErrorKind::NotStarted, _) => {
                "check that the program and its working directory exist and that it may be executed"
            }
            (ErrorKind::Closed, _) => "make another claim",
            (ErrorKind::Panicked, _) => {
                "report it, with what it printed; a later sweep goes on where it was"
            }
            (ErrorKind::NoSuchClaim, _) => "give the name as a sweep by the same user tells it",
            (ErrorKind::NoSuchStray, _) => {
                "give the name of a directory of yours that lies in this root and is no claim"
            }
            (ErrorKind::Corrupt, _) => "look at it, and repair it or remove it",
            (ErrorKind::TooLarge, _) => "look at what wrote it, or raise the limit",
            (ErrorKind::NotActivated, _) => {
                "let the launcher exec this program, or set LISTEN_PID and LISTEN_FDS in the child \
                 just before its exec; a launcher that passes no sockets sets neither, and the \
                 program has to open its own"
            }
            (ErrorKind::TagInUse, _) => {
                "give each user a tag of its own, or wait until the other one has ended"
            }
            (ErrorKind::NoLocks, _) => "choose a directory on a local file system",
            (ErrorKind::Obstructed, _) => "move it away, or choose another path",
            (ErrorKind::Replaced, _) => "look for a program that removes or replaces that file",
            (ErrorKind::TimedOut, _) => {
                "wait longer, or end its holder: the lock is free when that has died"
            }
            (ErrorKind::LockLost, _) => {
                "look for a program that removes lock files or closes descriptors it did not open; \
                 what was done under the lock may have been done beside another process"
            }
            (_, Some(Errno::ENAMETOOLONG)) => "choose a shorter name",
            (_, Some(Errno::ENOENT)) => "check that the directory exists and that /proc is mounted",
            (_, Some(Errno::ENOTDIR | Errno::ELOOP)) => "give the path of a directory",
            (_, Some(Errno::EACCES | Errno::EPERM)) => "check who owns the directory and its mode",
            (_, Some(Errno::ENOSYS)) => "Linux 5.6 or newer is needed",
            (_, Some(Errno::ECHILD)) => {
                "it was reaped before: look for code that waits for any child"
            }
            (ErrorKind::System, _) => "try again when the cause is gone",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: ", self.0.operation, self.0.path)?;
        if let Some(about) = &self.0.about {
            write!(f, "{about:?}: ")?;
        }
        write!(f, "{}; {}", self.reason(), self.advice())
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.0.cause {
            Cause::Errno(errno) => Some(errno),
            Cause::Text(_) => None,
        }
    }
}

impl core::error::Error for Errno {}

#[cfg(feature = "host")]
impl From<Errno> for std::io::Error {
    fn from(errno: Errno) -> std::io::Error {
        std::io::Error::from_raw_os_error(errno.0)
    }
}

/// Keeps the error whole as the inner one; its kind is that of the system
/// call's failure, where one failed.
#[cfg(feature = "host")]
impl From<Error> for std::io::Error {
    fn from(error: Error) -> std::io::Error {
        let kind = error
            .errno()
            .map_or(std::io::ErrorKind::Other, |errno| std::io::Error::from(errno).kind());
        std::io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_message_names_operation_path_cause_and_remedy() {
        let path = PathBytes(b"/srv/t\xff".to_vec());
        let error = Error::system("create a claim in", &path, Errno::ENOSPC);
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert_eq!(
            error.to_string(),
            "cannot create a claim in /srv/t\\xff: no space left on device (ENOSPC); \
             free space or inodes there; a sweep needs neither"
        );
    }

    #[test]
    fn what_to_do_is_about_what_failed() {
        let advice = |kind, errno| {
            Error::of_kind(kind, "start", &PathBytes(b"/srv/t".to_vec()), errno).advice()
        };
        for (kind, errno, expected) in [
            (ErrorKind::NotStarted, Errno::E2BIG, "by a file or a pipe"),
            (ErrorKind::NotStarted, Errno::EMFILE, "`ulimit -n`"),
            (ErrorKind::NotStarted, Errno::EAGAIN, "`ulimit -u`"),
            (ErrorKind::NotStarted, Errno::ENOENT, "that the program"),
            (ErrorKind::System, Errno::EMFILE, "`ulimit -n`"),
            (ErrorKind::System, Errno::ENOTDIR, "the path of a directory"),
            (ErrorKind::System, Errno::ELOOP, "the path of a directory"),
        ] {
            assert!(advice(kind, errno).contains(expected), "{kind:?} {errno}: {expected}");
        }
    }

    #[test]
    fn an_error_tells_its_parts() {
        use core::error::Error as _;
        let path = PathBytes(b"/srv/t".to_vec());
        let failed = Error::system("sweep", &path, Errno::EACCES);
        assert_eq!((failed.operation(), failed.path()), ("sweep", &path));
        let source = failed.source().expect("a system call failed");
        assert_eq!(source.downcast_ref::<Errno>(), Some(&Errno::EACCES));
        let refused = Error::because(ErrorKind::Closed, "use", &path, "it was given up".into());
        assert!(refused.source().is_none());
    }

    #[cfg(feature = "host")]
    #[test]
    fn the_number_survives_in_an_io_error() {
        let error = Error::system("sweep", &PathBytes::default(), Errno::EACCES);
        let io = std::io::Error::from(error);
        assert_eq!(io.kind(), std::io::ErrorKind::PermissionDenied);
        let inner = io.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        assert_eq!(inner.and_then(Error::errno), Some(Errno::EACCES));
    }
}
