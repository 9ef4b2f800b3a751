//! Tells a story on the real kernel, with real processes.
//!
//! The teller runs in a cell. Servers and sweepers are actors ([`crate::actor`]), commands are real
//! shells; everything is killed, stopped and waited for by events under a deadline.
//!
//! What is checked without being asked for, after every step and at the end:
//! * S1: a claim that somebody uses is at its place and whole;
//! * S2: what is outside of every claim is what it was;
//! * L1: when all have ended, one clean sweep leaves nothing but what the story declares.
//!
//! And a sweep that is said to have kept something must have removed a *canary* beside it, a dead
//! claim that is made for it: a sweep that does nothing keeps everything, too.
//!
//! Invariant: what the teller believes it has seen with its own eyes, in directories and in `/proc`.
//! The report of a sweep is believed only about its reasons.

mod act;
mod adverse;
mod beside;
mod command;
mod container;
mod crowd;
mod deaths;
mod disks;
mod expect;
mod files;
mod namespaces;
mod owners;
pub mod plant;
mod spawn;
mod stage;
mod strangers;
mod sweeps;
mod truth;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde::{Deserialize, Serialize};

use self::stage::Stage;
use super::{Diagnostic, Story};
use crate::actor::wire::Subject;

/// How a story went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// Everything was true that had to be.
    Held {
        /// How often it was told.
        rounds: u64,
        /// How many sweeps ended in it.
        sweeps: u64,
        /// How many canaries vanished.
        canaries: u64,
    },
    /// Something was not.
    Failed {
        /// What, and where in the file.
        finding: Box<Diagnostic>,
        /// In which round.
        round: u64,
    },
}

/// Why a step or an expectation did not go as it must.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    code: &'static str,
    title: String,
    notes: Vec<String>,
    /// Where in the file, if it is not what happened last.
    span: Option<Range<usize>>,
}

impl Failure {
    fn new(code: &'static str, title: impl Into<String>) -> Failure {
        Failure { code, title: title.into(), notes: Vec::new(), span: None }
    }

    fn note(mut self, note: impl Into<String>) -> Failure {
        self.notes.push(note.into());
        self
    }

    fn about(mut self, span: Range<usize>) -> Failure {
        self.span = Some(span);
        self
    }

    fn at(self, span: Range<usize>, label: &str) -> Box<Diagnostic> {
        let span = self.span.unwrap_or(span);
        let found = Diagnostic::new(self.code, self.title, span).label(label);
        Box::new(self.notes.into_iter().fold(found, Diagnostic::note))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::new("system", format!("the system refused: {error}"))
    }
}

/// What a step comes to.
type Outcome<T> = Result<T, Failure>;

/// Tells a story. `lab` is the lab's binary. Only for a cell.
#[must_use]
pub fn tell(story: &Story, lab: &Path, subject: Subject) -> Told {
    let mut all = (0, 0, 0);
    for case in std::iter::once(story).chain(&story.other_cases) {
        match tell_case(case, lab, subject) {
            Told::Held { rounds, sweeps, canaries } => {
                all = (all.0 + rounds, all.1 + sweeps, all.2 + canaries);
            }
            Told::Failed { mut finding, round } => {
                if !case.case.is_empty() {
                    finding.notes.insert(0, format!("told with {}", case.case));
                }
                return Told::Failed { finding, round };
            }
        }
    }
    let (rounds, sweeps, canaries) = all;
    Told::Held { rounds, sweeps, canaries }
}

/// Tells one case of a story, in all its rounds.
fn tell_case(story: &Story, lab: &Path, subject: Subject) -> Told {
    let (mut sweeps, mut canaries) = (0, 0);
    let last = story.rounds_max.or(story.rounds).unwrap_or(1);
    for round in 1..=last {
        let counts = match tell_round(story, lab, subject, round) {
            Ok(counts) => counts,
            Err(finding) => return Told::Failed { finding, round },
        };
        sweeps += counts.sweeps;
        canaries += counts.canaries;
        if story.rounds_max.is_some() && !counts.disturbed {
            if round == 1 {
                let failure = Failure::new("no-round", "not even the first call was disturbed");
                return Told::Failed { finding: failure.at(0..0, ""), round };
            }
            return Told::Held { rounds: round - 1, sweeps, canaries };
        }
    }
    if story.rounds_max.is_some() {
        let title = format!("there are more than {last} calls to disturb");
        let failure = Failure::new("more-rounds", title).note("raise `rounds-max`");
        return Told::Failed { finding: failure.at(0..0, ""), round: last };
    }
    Told::Held { rounds: last, sweeps, canaries }
}

/// What a round came to.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sweeps: u64,
    canaries: u64,
    /// Whether the call that was to be disturbed was made.
    disturbed: bool,
}

/// Tells it once.
fn tell_round(
    story: &Story,
    lab: &Path,
    subject: Subject,
    round: u64,
) -> Result<Counts, Box<Diagnostic>> {
    let whole = || story.steps.first().map_or(0..0, |step| step.span.clone());
    let set = Stage::set(story, lab, subject, round);
    let mut stage = set.map_err(|failure| failure.at(whole(), "before this"))?;
    for step in (0..story.times).flat_map(|_| &story.steps) {
        guarded(|| stage.act(&step.action)).map_err(|f| f.at(step.span.clone(), "this step"))?;
        if stage.round_is_over() {
            if story.rounds_max.is_some() {
                break;
            }
            // Broken off here, it would seem to hold.
            let title = "it ended before the call at which something was to happen";
            return Err(Failure::new("no-call", title).at(step.span.clone(), "this step"));
        }
        guarded(|| stage.note_escapes()).map_err(|f| f.at(step.span.clone(), "after this step"))?;
        guarded(|| stage.check_truth()).map_err(|f| f.at(step.span.clone(), "after this step"))?;
        for expected in &step.expects {
            let holds = guarded(|| stage.expect(&expected.what));
            holds.map_err(|f| f.at(expected.span.clone(), "this does not hold"))?;
        }
    }
    // OK because a story has a step: who reads it sees to it.
    let end = story.steps.last().map_or(0..0, |step| step.span.clone());
    guarded(|| stage.end()).map_err(|failure| failure.at(end, "after the end"))
}

/// Makes a failure of a panic: the tools that wait for events panic with what they waited for and
/// what came.
fn guarded<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Err(Failure::new("waited", text.unwrap_or_else(|| "something panicked".into())))
        }
    }
}
