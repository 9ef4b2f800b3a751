//! A cell: a private world for one program, that dies with whoever asked for it.
//!
//! A test on real processes makes orphans, daemons and mounts on purpose, and may itself be killed
//! at any moment. Nothing of that may outlive it. So the program runs in namespaces of its own:
//!
//! ```text
//! runner (nextest, cargo, a shell)
//!   └─ test                                    ─┐
//!        └─ supervisor  polls the pidfds of both ┘, of its parent, and of init
//!             └─ init   pid 1 of the cell; dies by parent-death signal if the supervisor does
//!                  └─ program …                 and whatever it leaves behind
//! ```
//!
//! The kernel kills everything in a pid namespace when its pid 1 ends, and drops a mount namespace
//! when its last process has gone. So whatever ends init, and there are five ways (the program's
//! end, the death of runner, test or supervisor, a deadline), empties the cell.
//!
//! Invariants:
//! * When the supervisor has ended by itself, every process of the cell has ended and been reaped:
//!   the kernel lets init be waited for no sooner. When the supervisor was killed, they are being
//!   killed.
//! * The cell's mounts are private, and nothing of it is on any disk: its scratch space is a tmpfs
//!   over a directory that every machine has and that the program does not need (`mount_point`).
//! * Who is not root keeps its own uid and has no rights over files that it did not have outside:
//!   a directory of mode 000 stays an obstacle.
//!
//! What a cell deliberately is not: a sandbox against malice. It shares the network, the disks, the
//! clock and the descriptors that it is given.
//!
//! Inside, `MORTMAIN_CELL` is `1`, `MORTMAIN_CELL_REAPING` is `always` or `never`, and
//! `MORTMAIN_SCRATCH` and `TMPDIR` are the tmpfs.

mod command;
mod entry;
mod init;
mod missing;
mod mount_point;
mod supervisor;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

pub use command::main;
pub use entry::{Entry, enter, in_cell, lab_beside, probe};
pub use missing::Missing;
pub use supervisor::{supervise, try_cell};

/// Set to `1` for every process of a cell.
pub const CELL: &str = "MORTMAIN_CELL";
/// Set to the cell's [`Reaping`].
pub const REAPING: &str = "MORTMAIN_CELL_REAPING";
/// Set to the path of the cell's own tmpfs.
pub const SCRATCH: &str = "MORTMAIN_SCRATCH";
/// The user sets it, to anything, so that a test whose cell cannot be made fails and is not skipped.
pub const REQUIRED: &str = "MORTMAIN_CELL_REQUIRED";

/// The exit code when the platform lacks what a cell needs.
pub(crate) const EXIT_MISSING: u8 = 77;

/// The name that init goes by, at most fifteen bytes. A process whose pid 1 has it is in a cell,
/// whatever its environment was made to say.
const INIT_NAME: &std::ffi::CStr = c"mortmain-init";

/// What to run in a cell, and on whose behalf.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The parent of the test; `None` when it has none that its pid namespace can see.
    pub runner: Option<i32>,
    /// The process on whose behalf the cell is.
    pub test: i32,
    /// Whether the cell gets a user namespace.
    pub uid_map: UidMap,
    /// What init does about the orphans that it inherits.
    pub reaping: Reaping,
    /// The program, looked up in `PATH` when it is no path.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// Whether the cell gets a user namespace, which is how one who is not root may have the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UidMap {
    /// One only if the other namespaces cannot be had without.
    #[default]
    AsNeeded,
    /// One in any case, in which the current uid and gid stand for themselves and no others exist.
    Current,
}

/// What init does about the ended processes that it inherits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reaping {
    /// It reaps them, as any init does.
    #[default]
    Always,
    /// It lets them stay zombies, as the first process of a careless container does.
    Never,
}

impl Reaping {
    /// The word for it on the command line and in the environment.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Never => "never",
        }
    }

    /// The reaping that this word stands for.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Always, Self::Never].into_iter().find(|reaping| reaping.word() == word)
    }
}

/// How a cell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its program ended, with this code, or with 128 + n by the signal n.
    Program(u8),
    /// One on whose behalf it was has died.
    Abandoned(Guardian),
    /// The supervisor was asked to stop, by this signal.
    Interrupted(i32),
}

impl Ended {
    /// The supervisor's exit code: that of the program, or that of one killed by SIGTERM when
    /// nobody is left to care, or 128 + n.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Program(code) => code,
            Self::Abandoned(_) => 128 + 15,
            Self::Interrupted(signal) => signal_code(signal),
        }
    }
}

/// 128 + n, as shells have it.
fn signal_code(signal: i32) -> u8 {
    // OK because signals are below 128; there are 64 of them.
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// A process whose death ends the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guardian {
    /// The parent of the test.
    Runner,
    /// The test.
    Test,
    /// The parent of the supervisor, which mostly is the test.
    Parent,
}

/// Why there was no cell, or none that ran its program.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// This machine, or this user's rights on it, lack what a cell needs.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The program could not be started.
    #[error("cannot run `{program}`: {source}")]
    Program {
        /// The program, as it was given.
        program: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Init was killed from outside the cell.
    #[error("the cell's init was killed by signal {0} from outside")]
    InitKilled(i32),
    /// The supervisor could not do its work.
    #[error("the cell's supervisor failed to {doing}: {source}")]
    Supervisor {
        /// What it was about to do.
        doing: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl CellError {
    /// The exit code that stands for it; a program that cannot be started has the codes that
    /// shells give it.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Missing(_) => EXIT_MISSING,
            Self::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Program { .. } => 126,
            Self::InitKilled(signal) => signal_code(*signal),
            Self::Supervisor { .. } => 70,
        }
    }
}

/// The cell's tmpfs, when this process is in a cell.
///
/// The environment alone is not believed: it can leak or be forged, and what runs because it is
/// "in a cell" would run on the real machine.
pub(crate) fn scratch_mount() -> Option<PathBuf> {
    let path = std::env::var_os(SCRATCH)?;
    (std::env::var_os(CELL)? == "1" && init_is_ours()).then(|| path.into())
}

/// The reaping of the cell that this process is in, if it is in one.
pub(crate) fn current_reaping() -> Option<Reaping> {
    scratch_mount()?;
    Reaping::from_word(&std::env::var(REAPING).ok()?)
}

fn init_is_ours() -> bool {
    std::fs::read("/proc/1/comm").is_ok_and(|comm| comm.trim_ascii_end() == INIT_NAME.to_bytes())
}
