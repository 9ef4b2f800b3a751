//! What the tests of a claim's life share: the way into a cell, and scripts that run in a claim.

use std::fs;
use std::io;
use std::path::Path;

use mortmain::{Child, Claim, Closed, Error, ErrorKind};
use mortmain_harness::cell;
use mortmain_harness::ground::Ground;
use mortmain_harness::reader::Reader;
use mortmain_harness::wait::Deadline;
pub(crate) use mortmain_harness::wait::hold;

pub(crate) const LAB: &str = env!("CARGO_BIN_EXE_mortmain-lab");

/// Runs the body of the current test in a cell.
#[track_caller]
pub(crate) fn in_cell(body: impl FnOnce()) {
    cell::enter(LAB, body);
}

pub(crate) fn ground() -> Ground {
    Ground::new(LAB)
}

/// Longer than anything here takes on a loaded machine.
pub(crate) fn soon() -> Deadline {
    Deadline::secs(20)
}

/// The directory of a claim, above what its user is given.
pub(crate) fn dir(claim: &Claim) -> &Path {
    claim.path().parent().expect("what the user is given lies in the claim")
}

/// A script that runs in a claim of this process.
pub(crate) struct Script {
    pub(crate) child: Child,
    lines: Reader,
}

impl Script {
    #[track_caller]
    pub(crate) fn start(claim: &Claim, text: &str) -> Script {
        let (ours, theirs) = io::pipe().expect("a pipe can be had");
        let mut command = claim.command("sh");
        command.args(["-c", text]).current_dir(claim.path()).stdout(theirs);
        let child = command.spawn().expect("it can be started");
        let lines = Reader::new(ours, format!("`{text}`")).expect("it is a pipe");
        Script { child, lines }
    }

    /// The next line that it, or what it left behind, says.
    #[track_caller]
    pub(crate) fn says(&mut self, what: &str) -> String {
        self.lines.next_line(soon(), what).unwrap()
    }

    /// Waits until everybody who could say something has ended, and returns what was said.
    #[track_caller]
    pub(crate) fn all(mut self) -> Vec<String> {
        assert!(self.child.wait().unwrap().success());
        self.lines.expect_eof(soon(), "the end of its output").unwrap()
    }
}

/// Closes a claim in use: it is refused, and comes back.
#[track_caller]
pub(crate) fn refused(claim: Claim) -> (Claim, Error) {
    match claim.close() {
        Ok(closed) => panic!("it was closed: {closed:?}"),
        Err(refused) => (refused.claim, refused.error),
    }
}

/// Closes a claim that nothing uses any more.
#[track_caller]
pub(crate) fn closes(claim: Claim) {
    let path = dir(&claim).to_owned();
    assert_eq!(claim.close().expect("nothing uses it"), Closed::Removed);
    let left = fs::symlink_metadata(&path).map_err(|e| e.kind());
    assert_eq!(left.err(), Some(io::ErrorKind::NotFound), "{} is there", path.display());
}

#[track_caller]
pub(crate) fn kind_of<T>(answer: Result<T, Error>) -> ErrorKind {
    match answer {
        Ok(_) => panic!("it did not fail"),
        Err(error) => error.kind(),
    }
}
