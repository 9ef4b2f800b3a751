//! How a test gets into a cell: it runs itself once more, there.
//!
//! Outside, the test starts a supervisor that runs this very test binary for this one test, and
//! judges by how that ends. Inside, the same call runs the body. Under nextest and under `cargo
//! test`, whose tests are threads of one process, this is the same.
//!
//! Invariants:
//! * A body that did not run to its end never passes. libtest is content with zero tests when a name
//!   matches none, and a body may exit; so the inner side says when it enters and leaves, and the
//!   outer one insists on both.
//! * A test whose cell cannot be made is skipped with the reason, or fails when
//!   `MORTMAIN_CELL_REQUIRED` is set, as CI should do.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::process::getppid;

use super::{EXIT_MISSING, Missing, REQUIRED, Reaping, current_reaping};
use crate::guard::ChildGuard;
use crate::processes::{processes, with_descendants};
use crate::reader::{ReadError, ReadErrorKind};
use crate::wait::Deadline;

/// Set to the whole name of the test that was run once more.
const TEST: &str = "MORTMAIN_CELL_TEST";

const ENTERED: &str = "mortmain-cell: entered ";
const LEFT: &str = "mortmain-cell: left ";

/// Longer than any honest test takes on a loaded machine, shorter than anybody waits.
const DEADLINE: Duration = Duration::from_secs(60);

/// Runs the body of the current test in a cell. `lab` is the lab's binary, which a test of the root
/// package knows as `env!("CARGO_BIN_EXE_mortmain-lab")`.
///
/// # Panics
///
/// When the body fails, or does not end within a minute.
#[track_caller]
pub fn enter(lab: impl AsRef<Path>, body: impl FnOnce()) {
    Entry::new(lab).run(body);
}

/// The lab's binary for a test of another package: it lies beside that package's own program in every
/// build of the workspace.
///
/// # Panics
///
/// When it was not built.
#[track_caller]
#[must_use]
pub fn lab_beside(program: impl AsRef<Path>) -> PathBuf {
    let lab = program.as_ref().with_file_name("mortmain-lab");
    assert!(lab.exists(), "the lab makes the cell: `cargo build --package mortmain-lab` first");
    lab
}

/// As [`enter`], for a test whose thread does not have its name, as in harnesses other than libtest.
///
/// # Panics
///
/// As [`enter`].
#[track_caller]
pub fn in_cell(test_path: &str, lab: &Path, body: impl FnOnce()) {
    Entry::new(lab).test(test_path).run(body);
}

/// Tells whether a cell can be made here, by making one.
///
/// # Errors
///
/// The reason why not.
pub fn probe(lab: &Path) -> Result<(), Missing> {
    let reason = |reason: String| Missing { reason };
    let mut command = Command::new(lab);
    command.args(["cell", "--probe"]);
    let mut child = ChildGuard::spawn(command).map_err(|e| reason(e.to_string()))?;
    let deadline = Deadline::after(DEADLINE);
    let said = child.lines().expect_eof(deadline, "the end of the probe");
    let said = said.map_err(|e| reason(e.to_string()))?.join(" ");
    let status = child.wait(deadline).map_err(|e| reason(e.to_string()))?;
    if status.success() {
        return Ok(());
    }
    let said = said.strip_prefix(Missing::PREFIX).unwrap_or(&said);
    match status.code() {
        Some(code) if code == i32::from(EXIT_MISSING) => Err(reason(said.into())),
        _ => Err(reason(format!("the probe failed ({status}): {said}"))),
    }
}

/// A way into a cell, with other settings than [`enter`] has.
#[derive(Clone, Debug)]
#[must_use]
pub struct Entry {
    lab: PathBuf,
    test: Option<String>,
    reaping: Reaping,
    deadline: Duration,
}

impl Entry {
    /// An entry by the lab's binary: named after the thread, with an init that reaps, for a minute.
    pub fn new(lab: impl AsRef<Path>) -> Self {
        Self { lab: lab.as_ref().into(), test: None, reaping: Reaping::Always, deadline: DEADLINE }
    }

    /// The test's whole name. Default: the name of the current thread, which libtest gives it.
    pub fn test(mut self, path: &str) -> Self {
        self.test = Some(path.into());
        self
    }

    /// What init does about the orphans that it inherits. Default: it reaps them.
    pub fn reaping(mut self, reaping: Reaping) -> Self {
        self.reaping = reaping;
        self
    }

    /// How long the body may take, the making of the cell included. Default: 60 s.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = limit;
        self
    }

    /// Runs the body in a cell: here if this is one of the kind asked for.
    ///
    /// # Panics
    ///
    /// When the body fails, or does not end before the deadline.
    #[track_caller]
    #[expect(
        clippy::print_stderr,
        reason = "a skipped test tells why where the runner captures it"
    )]
    pub fn run(self, body: impl FnOnce()) {
        let thread = std::thread::current();
        let test = match self.test.as_deref().or_else(|| thread.name()) {
            Some(test) => test.to_owned(),
            None => panic!("this thread has no name: give the test's to `Entry::test`"),
        };
        let current = current_reaping();
        let again = current.is_some() && std::env::var(TEST).is_ok_and(|again| again == test);
        if again && current != Some(self.reaping) {
            // It would run itself once more at each entry that it comes by, without end.
            panic!("`{test}` enters two cells of different kinds: it can have one");
        }
        if current == Some(self.reaping) {
            if again {
                announce(ENTERED, &test);
            }
            body();
            if again {
                announce(LEFT, &test);
            }
            return;
        }
        match self.run_again(&test) {
            Ok(()) => {}
            Err(Failure::Missing(missing)) if std::env::var_os(REQUIRED).is_none() => {
                eprintln!("skipped: {test}: {missing}");
            }
            Err(failure) => panic!("{failure}"),
        }
    }

    /// Runs this test binary for this test in a cell.
    fn run_again(&self, test: &str) -> Result<(), Failure> {
        let mut cell = ChildGuard::spawn(self.command(test)?).map_err(io::Error::other)?;
        let deadline = Deadline::after(self.deadline);
        let (entered, left) = match relay(&mut cell, test, deadline) {
            Ok(seen) => seen,
            Err(source) => {
                let living = living_below(cell.pid());
                return Err(Failure::Stuck { test: test.into(), source: Box::new(source), living });
            }
        };
        let status = cell.wait(deadline).map_err(io::Error::other)?;
        match (status.code(), entered, left) {
            (Some(0), true, true) => Ok(()),
            (Some(0), false, _) => Err(Failure::NeverRan { test: test.into() }),
            (Some(code), false, _) if code == i32::from(EXIT_MISSING) => match probe(&self.lab) {
                Err(missing) => Err(Failure::Missing(missing)),
                Ok(()) => Err(Failure::Ended { test: test.into(), status }),
            },
            _ => Err(Failure::Ended { test: test.into(), status }),
        }
    }

    fn command(&self, test: &str) -> io::Result<Command> {
        let mut command = Command::new(&self.lab);
        command.arg("cell");
        // None when the parent is outside this pid namespace; the namespace dies with it.
        if let Some(runner) = getppid() {
            command.args(["--runner", &runner.as_raw_nonzero().to_string()]);
        }
        command
            .args(["--test", &std::process::id().to_string()])
            .args(["--reaping", self.reaping.word(), "--"])
            .arg(std::env::current_exe()?)
            // An ignored test that was asked for by name must not be ignored the second time.
            .args([test, "--exact", "--nocapture", "--include-ignored"])
            .env(TEST, test);
        Ok(command)
    }
}

/// Repeats what the test says in the cell, as said by this test, until the cell is empty. Returns
/// whether the body was entered and left.
#[expect(clippy::print_stdout, reason = "the test runner captures what a test prints")]
fn relay(cell: &mut ChildGuard, test: &str, deadline: Deadline) -> Result<(bool, bool), ReadError> {
    let (mut entered, mut left) = (false, false);
    loop {
        match cell.lines().next_line(deadline, &format!("the end of `{test}` in its cell")) {
            Ok(line) if line.strip_prefix(ENTERED) == Some(test) => entered = true,
            Ok(line) if line.strip_prefix(LEFT) == Some(test) => left = true,
            Ok(line) => println!("{line}"),
            Err(e) if matches!(e.kind(), ReadErrorKind::Ended) => return Ok((entered, left)),
            Err(e) => return Err(e),
        }
    }
}

/// On a line of its own, whatever libtest has begun to say; and past libtest's capture, which holds
/// `print!` only.
fn announce(what: &str, test: &str) {
    // If nobody listens, nobody minds.
    let _written = writeln!(io::stdout(), "\n{what}{test}");
}

/// Who lives in a cell that does not end, for the message.
fn living_below(supervisor: i32) -> String {
    let Ok(all) = processes() else {
        return String::new();
    };
    let below = with_descendants(&all, [supervisor].into());
    let living: Vec<String> = all
        .iter()
        .filter(|info| below.contains(&info.pid) && info.pid != supervisor && info.lives())
        .map(|info| format!("{} `{}` in state {}", info.pid, info.comm, info.state))
        .collect();
    if living.is_empty() { String::new() } else { format!("\nin it live: {}", living.join(", ")) }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Missing(Missing),
    #[error("the cell of `{test}` does not end: {source}{living}")]
    Stuck { test: String, source: Box<ReadError>, living: String },
    #[error("`{test}` never ran in its cell: is that the whole name of the test?")]
    NeverRan { test: String },
    #[error("`{test}` failed in its cell ({status}); what it said is above")]
    Ended { test: String, status: ExitStatus },
    #[error("cannot run a test in a cell: {0}")]
    System(#[from] io::Error),
}
