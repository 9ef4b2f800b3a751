//! Why the server does not start, or does not go on, and what it says beside the protocol.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// A reason to end, and the exit code that stands for it.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    why: String,
}

impl Failure {
    /// Something that the server was given cannot be used.
    pub(crate) fn given(why: impl fmt::Display) -> Failure {
        Failure { code: 2, why: why.to_string() }
    }

    /// The system refuses something.
    pub(crate) fn system(why: impl fmt::Display) -> Failure {
        Failure { code: 70, why: why.to_string() }
    }

    /// Says why, and answers how to end.
    pub(crate) fn told(self) -> ExitCode {
        note(format_args!("error: {}", self.why));
        self.code.into()
    }
}

/// Says a line on standard error. Standard output is the client's: a line in it that is not of the
/// protocol would break the connection.
pub(crate) fn note(text: impl fmt::Display) {
    // In one piece: others write there as well, and one after the other is not together.
    let line = format!("mortmain-server: {text}\n");
    // There is nowhere to tell that standard error is closed.
    let _ = io::stderr().write_all(line.as_bytes());
}
