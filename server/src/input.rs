//! A client's input, as it comes.
//!
//! The SDK gives no answer to a line that it cannot read, since there is no request in it that could be
//! answered, and says nothing. Whoever wrote it waits. So each such line is told on standard error.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use serde_json::Value;
use tokio::io::{AsyncRead, ReadBuf};

use crate::failure::note;

/// The longest line, in bytes; the SDK reads no longer one.
const LINE_BYTES_MAX: usize = rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH;

/// An input of which the lines are told that nobody can read.
#[derive(Debug)]
pub(crate) struct Input<R> {
    inner: R,
    line: Line,
}

impl<R> Input<R> {
    pub(crate) fn of(inner: R) -> Input<R> {
        Input { inner, line: Line::default() }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Input<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        match &buf.filled()[before..] {
            [] => self.line.end().into_iter().for_each(note),
            bytes => self.line.take(bytes, note),
        }
        Poll::Ready(Ok(()))
    }
}

/// The line that is being read.
#[derive(Default, Debug)]
struct Line {
    bytes: Vec<u8>,
    /// Whether it is longer than any that is read; its bytes are dropped then.
    too_long: bool,
}

impl Line {
    fn take(&mut self, bytes: &[u8], mut tell: impl FnMut(String)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.too_long |= self.bytes.len() + piece.len() > LINE_BYTES_MAX;
            match self.too_long {
                true => self.bytes = Vec::new(),
                false => self.bytes.extend_from_slice(piece),
            }
            if piece.ends_with(b"\n") {
                self.wrong().into_iter().for_each(&mut tell);
                *self = Line::default();
            }
        }
    }

    /// What is wrong with it.
    fn wrong(&self) -> Option<String> {
        if self.too_long {
            return Some(format!(
                "the client wrote a line of more than {LINE_BYTES_MAX} bytes, which is not answered"
            ));
        }
        let line = self.bytes.trim_ascii();
        let read = serde_json::from_slice::<Value>(line);
        let error = read.err().filter(|_| !line.is_empty())?;
        Some(format!("the client wrote a line that is no JSON, which is not answered: {error}"))
    }

    /// What is wrong with the end of the input.
    fn end(&mut self) -> Option<String> {
        let Line { bytes, too_long } = std::mem::take(self);
        (too_long || !bytes.is_empty())
            .then(|| "the client's input ended in the middle of a line".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of an input that comes in these pieces, and then ends.
    fn told(pieces: &[&[u8]]) -> Vec<String> {
        let (mut told, mut line) = (Vec::new(), Line::default());
        for piece in pieces {
            line.take(piece, |why| told.push(why));
        }
        told.extend(line.end());
        told
    }

    #[test]
    fn a_line_that_nobody_can_read_is_told_and_no_other() {
        assert_eq!(told(&[b"{\"a\":1}\n\r\n\n[]\n", b"{\"b\":", b"2}\n"]), [""; 0]);
        for wrong in ["what", "{\"a\":", "\"\\ud800\"", &"[".repeat(200)] {
            let line = format!("{wrong}\n");
            let told = told(&[line.as_bytes(), b"{}\n"]);
            let [told] = &told[..] else { panic!("{wrong}: {told:?}") };
            assert!(told.starts_with("the client wrote a line that is no JSON, "), "{told}");
        }
        assert_eq!(told(&[b"\"\xff\"\n"]).len(), 1);
    }

    #[test]
    fn a_line_that_is_too_long_is_told_once_and_not_kept() {
        let much = vec![b' '; LINE_BYTES_MAX / 2];
        assert_eq!(told(&[&much, &much[1..], b"\n{}\n"]), [""; 0]);
        let told = told(&[&much, &much, b"\n", b"{}\n"]);
        let [told] = &told[..] else { panic!("{told:?}") };
        assert!(told.contains(" of more than 16777216 bytes, "), "{told}");
        let mut line = Line::default();
        [&much, &much, &much].into_iter().for_each(|piece| line.take(piece, |_| {}));
        assert_eq!((line.bytes.capacity(), line.too_long), (0, true));
    }

    #[test]
    fn an_end_in_the_middle_of_a_line_is_told() {
        assert_eq!(told(&[b"{}\n{\"a\""]), ["the client's input ended in the middle of a line"]);
    }
}
