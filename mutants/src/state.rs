//! What one run of `mutate` leaves for the next: what the compiler refused, which test comes by which
//! mutant, and what became of each.
//!
//! Invariant: what it knows of the compiler and the tests saves time and decides nothing. Both parts
//! are kept under a hash of the workspace and its mutants, and are made anew when that differs; a file
//! that cannot be read counts as none. Beyond that only the fates are remembered, by the names of the
//! mutants, and the packages that they are of: for `--missed`, `show` and `compare`.
//!
//! What it deliberately does not know: whether the compiler itself is another. Cargo does, and what
//! it then refuses is dropped as well.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::builder::BinaryId;
use crate::run::Killer;
use crate::suite::Kind;

/// The version of the file.
const SCHEMA: u32 = 2;

#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct State {
    schema: u32,
    /// Those with mutants, in the last run.
    pub(crate) packages: Vec<String>,
    pub(crate) settled: Option<Settled>,
    pub(crate) recorded: Option<Recorded>,
    /// By the ids of the mutants.
    pub(crate) fates: BTreeMap<String, Fate>,
}

/// What the compiler says of the mutants.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Settled {
    /// Of the workspace, and of its sources with all switches.
    pub(crate) key: String,
    /// Those that it refuses, each with its words.
    pub(crate) dropped: BTreeMap<u32, String>,
    /// Those that it has translated; others are for other systems or features.
    pub(crate) compiled: BTreeSet<u32>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Recorded {
    /// Of everything that was built.
    pub(crate) key: String,
    /// Of the mutants whose numbers the tests know.
    pub(crate) plan: String,
    pub(crate) tests: Vec<TestRecord>,
}

/// What was seen of a test with nothing changed.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct TestRecord {
    pub(crate) binary: BinaryId,
    pub(crate) kind: Kind,
    pub(crate) test: String,
    pub(crate) seconds: f64,
    /// Most rounds of loops in one of its processes.
    pub(crate) rounds: u64,
    pub(crate) reached: BTreeSet<u32>,
    /// Whether it passed each time.
    pub(crate) steady: bool,
}

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub(crate) enum Fate {
    /// Tests fail because of it: the first, or all that do.
    Caught { killers: Vec<Killer> },
    /// A test does not end because of it.
    Hung { test: String, how: Hang },
    /// That many tests come by it, and pass; others were left out as too slow.
    Missed {
        tests: usize,
        #[serde(default, skip_serializing_if = "is_zero")]
        left_out: usize,
    },
    /// No test comes by it.
    NotReached,
    /// These tests were too slow for their limits, also with nothing changed; no other noticed.
    Undecided { tests: Vec<String> },
    /// The compiler refuses it.
    DoesNotCompile { reason: String },
    /// The compiler leaves the code out.
    NotCompiled,
}

/// How it was seen that a test does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Hang {
    /// Loops went round far more often than with nothing changed.
    Rounds,
    /// It reached its limit, and did not with nothing changed right after.
    Time,
}

impl State {
    /// Reads it from the scratch directory.
    pub(crate) fn read(scratch: &Path) -> State {
        let text = fs::read_to_string(path(scratch)).unwrap_or_default();
        let state: State = serde_json::from_str(&text).unwrap_or_default();
        if state.schema == SCHEMA { state } else { State::default() }
    }

    /// Writes it there.
    pub(crate) fn write(&mut self, scratch: &Path) -> anyhow::Result<()> {
        self.schema = SCHEMA;
        let (path, text) = (path(scratch), serde_json::to_string(self)?);
        // Beside it and renamed, so that a killed run leaves the old or the new.
        let beside = path.with_extension("new");
        fs::write(&beside, text)
            .and_then(|()| fs::rename(&beside, &path))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn path(scratch: &Path) -> PathBuf {
    scratch.join("mutate.json")
}

impl TestRecord {
    /// Package, test binary and test.
    pub(crate) fn name(&self) -> String {
        format!("{} {} {}", self.binary.package, self.binary.name, self.test)
    }
}

impl Fate {
    /// A word or two, in the report and in JSON.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Fate::Caught { .. } => "caught",
            Fate::Hung { .. } => "hung",
            Fate::Missed { .. } => "missed",
            Fate::NotReached => "not reached",
            Fate::Undecided { .. } => "undecided",
            Fate::DoesNotCompile { .. } => "does not compile",
            Fate::NotCompiled => "not compiled",
        }
    }

    /// Whether there is something that a test noticed.
    pub(crate) fn is_noticed(&self) -> bool {
        matches!(self, Fate::Caught { .. } | Fate::Hung { .. })
    }

    /// Whether a test could notice it and none does.
    pub(crate) fn is_missed(&self) -> bool {
        matches!(self, Fate::Missed { .. } | Fate::NotReached)
    }
}
