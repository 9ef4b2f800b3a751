//! Reads the lines that a child says, or the other end of a socket, under a deadline.
//!
//! Invariants: a read ends at its deadline, whatever the other side does; a failure says what was
//! waited for, for how long, from whom, and what came instead; the memory for what was not read yet
//! is bounded. No thread and no sleep is involved: the pipe or the socket does not block, and `poll`
//! waits.
//!
//! It deliberately knows no protocol: what a line means is the caller's business. Bytes that are no
//! UTF-8 are replaced.

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::fate::Fate;
use crate::wait::{Deadline, ready};

/// How many of the last lines a failure repeats.
const SAID_MAX: usize = 10;

/// How many bytes are kept that nobody has asked for. Beyond it the child is left to block, as it
/// would with nobody reading at all.
const UNREAD_MAX: usize = 1 << 20;

/// How long a failure waits for the status of a child whose output has ended. The two come together
/// when a process exits; one that merely closed its output is not worth more.
const STATUS_PATIENCE: Duration = Duration::from_millis(200);

/// The reading end of a pipe, or a socket, line by line.
#[derive(Debug)]
pub struct Reader {
    pipe: OwnedFd,
    who: String,
    unread: Vec<u8>,
    ended: bool,
    said: VecDeque<String>,
    said_in_all: usize,
    fate: Option<Arc<Fate>>,
}

impl Reader {
    /// A reader of `pipe`, which may be a socket, at the other end of which is `who`.
    ///
    /// # Errors
    ///
    /// When the pipe cannot be made not to block.
    pub fn new(pipe: impl Into<OwnedFd>, who: impl Into<String>) -> io::Result<Self> {
        let pipe = pipe.into();
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        Ok(Self {
            pipe,
            who: who.into(),
            unread: Vec::new(),
            ended: false,
            said: VecDeque::new(),
            said_in_all: 0,
            fate: None,
        })
    }

    /// The same, of a child whose status failures shall tell.
    pub(crate) fn of_child(
        pipe: impl Into<OwnedFd>,
        who: impl Into<String>,
        fate: Arc<Fate>,
    ) -> io::Result<Self> {
        Ok(Self { fate: Some(fate), ..Self::new(pipe, who)? })
    }

    /// The next line, without its end. `what` is what it is expected to be, for the failure.
    ///
    /// # Errors
    ///
    /// When no whole line comes before the deadline or the end of the output.
    pub fn next_line(&mut self, deadline: Deadline, what: &str) -> Result<String, ReadError> {
        self.expect_line(deadline, what, |_| true)
    }

    /// The first line that satisfies `wanted`; those before it are passed over.
    ///
    /// # Errors
    ///
    /// When none comes before the deadline or the end of the output.
    pub fn expect_line(
        &mut self,
        deadline: Deadline,
        what: &str,
        mut wanted: impl FnMut(&str) -> bool,
    ) -> Result<String, ReadError> {
        loop {
            while let Some(line) = self.take_line() {
                if wanted(&line) {
                    return Ok(line);
                }
            }
            if self.ended {
                return Err(self.error(deadline, what, ReadErrorKind::Ended));
            }
            self.more(deadline, what)?;
        }
    }

    /// Waits for the end of the output and returns the lines that came before it.
    ///
    /// The output ends when *everyone* who holds the other end has closed it or ended, the
    /// descendants of a child included.
    ///
    /// # Errors
    ///
    /// When it does not end before the deadline.
    pub fn expect_eof(&mut self, deadline: Deadline, what: &str) -> Result<Vec<String>, ReadError> {
        let mut lines = Vec::new();
        loop {
            lines.extend(std::iter::from_fn(|| self.take_line()));
            if self.ended {
                return Ok(lines);
            }
            self.more(deadline, what)?;
        }
    }

    /// The last lines that were read, and what was not read yet, for a failure that is told
    /// elsewhere: nothing, or ` that it said:` and the lines.
    pub(crate) fn summary(&self) -> String {
        let said = Said { lines: self.last_lines(), in_all: self.said_in_all };
        said.to_string()
    }

    /// What to poll to learn that [`Reader::fill`] has something to do; `None` when it has nothing
    /// to do any more, or not before somebody reads.
    pub(crate) fn poll_fd(&self) -> Option<PollFd<'_>> {
        let wants = !self.ended && self.unread.len() < UNREAD_MAX;
        wants.then(|| PollFd::new(&self.pipe, PollFlags::IN))
    }

    /// Takes in what the pipe holds, without waiting.
    pub(crate) fn fill(&mut self) -> io::Result<()> {
        let mut chunk = [0; 8192];
        while !self.ended && self.unread.len() < UNREAD_MAX {
            match rustix::io::read(&self.pipe, &mut chunk) {
                Ok(0) => self.ended = true,
                Ok(count) => self.unread.extend_from_slice(&chunk[..count]),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Waits for more, until the deadline.
    fn more(&mut self, deadline: Deadline, what: &str) -> Result<(), ReadError> {
        let Some(fd) = self.poll_fd() else {
            return Err(self.error(deadline, what, ReadErrorKind::TooLong));
        };
        match ready(&mut [fd], Some(deadline)).and_then(|any| any.then(|| self.fill()).transpose())
        {
            Ok(Some(())) => Ok(()),
            Ok(None) => Err(self.error(deadline, what, ReadErrorKind::Deadline)),
            Err(e) => Err(self.error(deadline, what, ReadErrorKind::System(e))),
        }
    }

    /// The next line that is here already. What follows the last line's end is a line, too, once
    /// nothing can follow it.
    fn take_line(&mut self) -> Option<String> {
        let (length, end) = match self.unread.iter().position(|&byte| byte == b'\n') {
            Some(at) => (at, at + 1),
            None if self.ended && !self.unread.is_empty() => (self.unread.len(), self.unread.len()),
            None => return None,
        };
        let line = String::from_utf8_lossy(&self.unread[..length]).into_owned();
        self.unread.drain(..end);
        if self.said.len() == SAID_MAX {
            self.said.pop_front();
        }
        self.said.push_back(line.clone());
        self.said_in_all += 1;
        Some(line)
    }

    fn last_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.said.iter().cloned().collect();
        let unread = String::from_utf8_lossy(&self.unread);
        // A line that is not whole may be just what was waited for, but for its end.
        lines.extend(unread.lines().map(|line| format!("{} (not read)", shortened(line))));
        lines
    }

    fn error(&self, deadline: Deadline, what: &str, kind: ReadErrorKind) -> ReadError {
        let patience = match kind {
            ReadErrorKind::Ended => deadline.or_sooner(STATUS_PATIENCE),
            _ => Deadline::after(Duration::ZERO),
        };
        let status = match self.fate.as_ref().map(|fate| fate.by(patience)) {
            Some(Ok(Some(status))) => Status::Ended(status),
            Some(Ok(None)) => Status::Runs,
            Some(Err(_)) | None => Status::Unknown,
        };
        ReadError {
            what: what.into(),
            who: self.who.clone(),
            limit: deadline.limit(),
            kind,
            status,
            said: Said { lines: self.last_lines(), in_all: self.said_in_all },
        }
    }
}

impl AsFd for Reader {
    /// What is read from. A socket can be written to by it, without blocking.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// A line that is long enough to hide the rest of a message is cut.
fn shortened(line: &str) -> String {
    const LONG: usize = 200;
    match line.char_indices().nth(LONG) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.into(),
    }
}

/// A reader did not get what it waited for.
#[derive(thiserror::Error)]
pub struct ReadError {
    what: String,
    who: String,
    limit: Duration,
    #[source]
    kind: ReadErrorKind,
    status: Status,
    said: Said,
}

impl ReadError {
    /// What kept it from coming.
    #[must_use]
    pub fn kind(&self) -> &ReadErrorKind {
        &self.kind
    }

    /// The same, to keep.
    #[must_use]
    pub fn into_kind(self) -> ReadErrorKind {
        self.kind
    }

    /// The status of the child, if there is one, it has ended, and that is known.
    #[must_use]
    pub fn status(&self) -> Option<ExitStatus> {
        match self.status {
            Status::Ended(status) => Some(status),
            Status::Runs | Status::Unknown => None,
        }
    }
}

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadErrorKind {
    /// The deadline passed.
    #[error("the deadline passed")]
    Deadline,
    /// The output ended.
    #[error("the output ended")]
    Ended,
    /// More than a mebibyte came without a line's end.
    #[error("a line is too long")]
    TooLong,
    /// The system refused to read.
    #[error("{0}")]
    System(io::Error),
}

#[derive(Debug)]
enum Status {
    Ended(ExitStatus),
    Runs,
    Unknown,
}

#[derive(Debug)]
struct Said {
    lines: Vec<String>,
    in_all: usize,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lines.is_empty() {
            return f.write_str("it said nothing");
        }
        f.write_str("it said")?;
        if self.in_all > SAID_MAX {
            write!(f, " {} lines, at last", self.in_all)?;
        }
        f.write_char(':')?;
        self.lines.iter().try_for_each(|line| write!(f, "\n  | {}", shortened(line)))
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, who, limit, .. } = self;
        write!(f, "waited up to {limit:?} for {what} from {who}, but ")?;
        match (&self.kind, &self.status) {
            (ReadErrorKind::Ended, Status::Ended(status)) => write!(f, "it ended ({status})"),
            (ReadErrorKind::Ended, Status::Runs) => {
                f.write_str("its output ended, though it still runs")
            }
            (ReadErrorKind::Deadline, Status::Ended(status)) => {
                write!(f, "it ended ({status}), and others keep its output open")
            }
            (ReadErrorKind::Deadline, Status::Runs) => {
                f.write_str("the deadline passed while it runs")
            }
            (kind, _) => write!(f, "{kind}"),
        }?;
        write!(f, "; {}", self.said)
    }
}

impl fmt::Debug for ReadError {
    // Tests unwrap these, and `unwrap` prints with `Debug`: the sentence helps, the fields do not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    const SHORT: Duration = Duration::from_millis(20);

    fn piped() -> (Reader, io::PipeWriter) {
        let (reader, writer) = io::pipe().expect("a pipe");
        (Reader::new(reader, "`peer`").expect("a reader"), writer)
    }

    fn say(writer: &mut io::PipeWriter, text: &str) {
        writer.write_all(text.as_bytes()).expect("the pipe has room");
    }

    #[test]
    fn lines_come_in_order_and_the_last_needs_no_end() {
        let (mut reader, mut writer) = piped();
        say(&mut writer, "one\n\ntwo");
        assert_eq!(reader.next_line(Deadline::secs(5), "a line").unwrap(), "one");
        assert_eq!(reader.next_line(Deadline::secs(5), "a line").unwrap(), "");
        drop(writer);
        assert_eq!(reader.next_line(Deadline::secs(5), "a line").unwrap(), "two");
        let error = reader.next_line(Deadline::secs(5), "a line").unwrap_err();
        assert!(matches!(error.kind(), ReadErrorKind::Ended), "{error}");
    }

    #[test]
    fn silence_fails_at_the_deadline_with_what_was_waited_for() {
        let (mut reader, _writer) = piped();
        let error = reader.next_line(Deadline::after(SHORT), "the banner").unwrap_err();
        let expected = "waited up to 20ms for the banner from `peer`, but the deadline passed; it said nothing";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_silent_socket_fails_at_the_deadline_and_another_with_what_came() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let mut reader = Reader::new(ours, "the service").expect("a reader");
        let mut fails = || {
            let answer =
                reader.expect_line(Deadline::after(SHORT), "an answer", |line| line == "x");
            answer.unwrap_err().to_string()
        };
        let expected =
            "waited up to 20ms for an answer from the service, but the deadline passed; ";
        assert_eq!(fails(), format!("{expected}it said nothing"));
        theirs.write_all(b"y\nx").expect("the socket has room");
        assert_eq!(fails(), format!("{expected}it said:\n  | y\n  | x (not read)"));
        drop(theirs);
        assert_eq!(reader.next_line(Deadline::secs(5), "a line").unwrap(), "x");
    }

    #[test]
    fn the_failure_repeats_the_lines_passed_over_and_the_one_that_is_not_whole() {
        let (mut reader, mut writer) = piped();
        say(&mut writer, "one\ntwo\nthr");
        let found = reader.expect_line(Deadline::after(SHORT), "three", |line| line == "three");
        let expected = "waited up to 20ms for three from `peer`, but the deadline passed; it said:\n  \
                        | one\n  | two\n  | thr (not read)";
        assert_eq!(found.unwrap_err().to_string(), expected);
    }

    #[test]
    fn of_many_lines_the_failure_repeats_the_last() {
        let (mut reader, mut writer) = piped();
        (0..25).for_each(|number| say(&mut writer, &format!("{number}\n")));
        drop(writer);
        let error = reader.expect_line(Deadline::secs(5), "an x", |line| line == "x").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("the output ended; it said 25 lines, at last:\n  | 15\n"), "{text}");
        assert!(text.ends_with("\n  | 24"), "{text}");
    }

    #[test]
    fn the_end_comes_when_the_last_holder_has_closed() {
        let (mut reader, mut writer) = piped();
        let other = writer.try_clone().expect("a copy");
        say(&mut writer, "a\nb\n");
        drop(writer);
        let error = reader.expect_eof(Deadline::after(SHORT), "the end of its output").unwrap_err();
        assert!(matches!(error.kind(), ReadErrorKind::Deadline), "{error}");
        drop(other);
        assert_eq!(
            reader.expect_eof(Deadline::secs(5), "the end").unwrap(),
            [""; 0],
            "the lines were passed over by the first attempt"
        );
    }

    #[test]
    fn a_flood_without_lines_ends_the_read_before_the_memory() {
        let (mut reader, mut writer) = piped();
        let flood = std::thread::spawn(move || {
            let chunk = [b'x'; 4096];
            // It goes on until the reader is gone.
            while writer.write_all(&chunk).is_ok() {}
        });
        let error = reader.next_line(Deadline::secs(30), "a line").unwrap_err();
        assert!(matches!(error.kind(), ReadErrorKind::TooLong), "{error}");
        assert!(error.to_string().len() < 500, "the flood is not repeated in the message");
        drop(reader);
        flood.join().expect("the writer ends with its pipe");
    }
}
