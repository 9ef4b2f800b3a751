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

use std::path::Path;

use self::stage::Stage;
use super::Story;
use super::story::{Action, Expected};
use super::telling::{self, Counts, Failure, Outcome, Teller, Told};
use crate::actor::wire::Subject;

/// Tells a story. `lab` is the lab's binary. Only for a cell.
#[must_use]
pub fn tell(story: &Story, lab: &Path, subject: Subject) -> Told {
    let cases = std::iter::once(story).chain(&story.other_cases);
    telling::tell(cases, |case, round| Stage::set(case, lab, subject, round))
}

impl Teller for Stage<'_> {
    fn act(&mut self, action: &Action) -> Outcome<()> {
        self.let_happen(action)
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn note_escapes(&mut self) -> Outcome<()> {
        self.find_escapes()
    }

    fn check_truth(&self) -> Outcome<()> {
        self.check_all()
    }

    fn expect(&mut self, expected: &Expected) -> Outcome<()> {
        self.look_whether(expected)
    }

    fn end(&mut self) -> Outcome<Counts> {
        self.end_everybody()
    }
}
