//! Runs the program under test on a fixture, and keeps what it says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;

use mortmain_harness::guard::ChildGuard;
use mortmain_harness::wait::{Deadline, Watch};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{getpid, getppid};

/// Runs use all cores and one build directory a fixture; under `cargo test` the tests
/// are threads and would meet there.
static ALONE: Mutex<()> = Mutex::new(());

/// Long enough for builds on a loaded machine. Nothing waits that long but a test that
/// fails.
pub(crate) fn soon() -> Deadline {
    Deadline::secs(180)
}

/// A fixture and the directory in which it is built, which stays from run to run.
pub(crate) struct Fixture {
    name: &'static str,
    _alone: MutexGuard<'static, ()>,
}

/// A finished run.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Fixture {
    pub(crate) fn new(name: &'static str) -> Fixture {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        end_with_runner();
        let fixture = Fixture { name, _alone: alone };
        fs::create_dir_all(fixture.target()).unwrap();
        fixture
    }

    pub(crate) fn source(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(self.name)
    }

    fn target(&self) -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mutants-{}", self.name))
    }

    /// Where a run keeps its copy, its build and its logs.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.target().join("mutants")
    }

    /// Starts a command, with one stream for its results and its progress.
    pub(crate) fn start(&self, subcommand: &str, arguments: &[&str]) -> ChildGuard {
        ChildGuard::spawn(self.command(subcommand, "exec \"$@\" 2>&1", arguments)).unwrap()
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, subcommand: &str, arguments: &[&str]) -> Finished {
        self.run_by("exec \"$@\"", subcommand, arguments)
    }

    /// Runs a command to its end, by a script whose words it is.
    pub(crate) fn run_by(&self, script: &str, subcommand: &str, arguments: &[&str]) -> Finished {
        let errors = self.target().join("stderr.txt");
        let mut command =
            self.command(subcommand, &format!("exec 2>\"$ERRORS\"; {script}"), arguments);
        command.env("ERRORS", &errors);
        let mut guard = ChildGuard::spawn(command).unwrap();
        let status = guard.wait(soon()).unwrap();
        let lines = guard.lines().expect_eof(soon(), "the end of the results").unwrap();
        Finished {
            code: status.code(),
            stdout: lines.iter().map(|line| format!("{line}\n")).collect(),
            stderr: fs::read_to_string(errors).unwrap(),
        }
    }

    fn command(&self, subcommand: &str, script: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", script, "sh", env!("CARGO_BIN_EXE_mortmain-mutants")])
            // Also when the test itself is killed.
            .args([subcommand, "--die-with-parent"])
            .args(arguments)
            .current_dir(self.source())
            .env("CARGO_TARGET_DIR", self.target())
            .env("NO_COLOR", "1");
        command
    }
}

/// Ends this process when its runner ends. It could go on for as long as its builds
/// take, and the program under test with it, which ends with this process.
fn end_with_runner() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // A parent of 0 is one that this namespace does not see.
        let runner = getppid().as_raw();
        let Some(runner) = (runner > 0).then(|| Watch::open(runner).unwrap()) else { return };
        thread::spawn(move || {
            let ended = runner.is_none_or(|runner| runner.gone(Deadline::secs(3600)).is_ok());
            if ended {
                kill(getpid(), Signal::SIGKILL).unwrap();
            }
        });
    });
}
