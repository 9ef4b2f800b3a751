//! What a command says, read while it runs and kept up to a limit.
//!
//! Invariants: the pipe never blocks and is read to its end, whatever is kept of it, so that nobody
//! stops for want of room; the memory is bounded; a read that is given up in the middle loses nothing.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::{Errno, read};
use tokio::net::unix::pipe::Receiver;

/// How much is kept of one stream, in bytes.
pub(crate) const KEPT_MAX: usize = 64 << 10;

/// The most that a pipe can hold, in reads, unless an administrator has allowed more.
const READS_IN_PIPE: usize = (1 << 20) / CHUNK;

const CHUNK: usize = 16 << 10;

/// The reading end of a command's standard output or error.
#[derive(Debug)]
pub(crate) struct Capture {
    pipe: Receiver,
    text: Text,
}

/// The beginning of what was said, and how much more it was.
#[derive(Debug, Default)]
pub(crate) struct Text {
    kept: Vec<u8>,
    cut: u64,
}

impl Capture {
    /// Of a pipe, if there is one.
    pub(crate) fn of(pipe: Option<impl Into<OwnedFd>>) -> io::Result<Capture> {
        let pipe = Receiver::from_owned_fd(pipe.ok_or(Errno::BADF)?.into())?;
        Ok(Capture { pipe, text: Text::default() })
    }

    /// Reads until nobody has the other end any more.
    pub(crate) async fn fill(&mut self) {
        let mut chunk = [0; CHUNK];
        while self.pipe.readable().await.is_ok() {
            match self.pipe.try_read(&mut chunk) {
                Ok(0) => return,
                Ok(count) => self.text.add(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    /// Reads what is left there by who has ended, and waits for nobody.
    pub(crate) fn finish(mut self) -> Text {
        let mut chunk = [0; CHUNK];
        // Bounded, since somebody who goes on may go on to write. The pipe itself is asked: what the
        // runtime knows of it may be older than its end.
        for _ in 0..READS_IN_PIPE {
            match read(&self.pipe, &mut chunk) {
                Ok(0) => break,
                Ok(count) => self.text.add(&chunk[..count]),
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        self.text
    }
}

impl Text {
    fn add(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(KEPT_MAX - self.kept.len());
        self.kept.extend_from_slice(&bytes[..kept]);
        self.cut += (bytes.len() - kept) as u64;
    }

    /// What is kept, with what is no UTF-8 replaced, and how many bytes are not.
    pub(crate) fn told(self) -> (String, u64) {
        (String::from_utf8_lossy(&self.kept).into_owned(), self.cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_limit_is_counted() {
        let mut text = Text::default();
        text.add(&[b'x'; KEPT_MAX - 1]);
        text.add(b"yz\xff");
        text.add(b"more");
        let (kept, cut) = text.told();
        assert_eq!((kept.len(), cut), (KEPT_MAX, 6));
        assert!(kept.ends_with("xy"));
    }

    #[test]
    fn what_is_no_utf_8_is_replaced() {
        let mut text = Text::default();
        text.add(b"a\xffb");
        assert_eq!(text.told(), ("a\u{fffd}b".into(), 0));
    }
}
