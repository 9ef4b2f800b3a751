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
pub(crate) mod present;
mod spawn;
mod stage;
mod strangers;
mod sweeps;
mod truth;

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::Path;

use self::present::Present;
use self::stage::Stage;
use super::story::{Action, Expected, Step};
use super::telling::{self, Counts, Failure, Outcome, Teller, Telling, Told};
use super::{Diagnostic, Story};
use crate::actor::wire::{Judged, Subject};

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

/// A story that is made up while it is told.
pub(crate) struct MadeUp<'s>(Telling<Stage<'s>>);

impl<'s> MadeUp<'s> {
    /// Sets everything up for a story of which nobody knows the steps. The claims of these servers can be
    /// disturbed.
    pub(crate) fn set(
        everybody: &'s Story,
        lab: &Path,
        subject: Subject,
        tapped: BTreeSet<String>,
    ) -> Result<MadeUp<'s>, Box<Diagnostic>> {
        let stage = Stage::set(everybody, lab, subject, 1);
        Telling::begin(stage.map(|stage| Stage { tapped, ..stage }), 0..0).map(MadeUp)
    }

    /// Who is there now.
    pub(crate) fn present(&self) -> io::Result<Present> {
        self.stage().present()
    }

    /// Lets a step happen, also one in which a call is not made at which something was to happen.
    pub(crate) fn act(&mut self, step: &Step) -> Result<(), Box<Diagnostic>> {
        self.0.act(step)?;
        self.0.0.over = false;
        Ok(())
    }

    /// Looks at what must be true after a step.
    pub(crate) fn judge(&mut self, step: &Step) -> Result<(), Box<Diagnostic>> {
        self.0.judge(step)
    }

    /// Ends everybody, and looks at what is left. `last` is where the last step stands.
    pub(crate) fn end(self, last: Range<usize>) -> Result<Counts, Box<Diagnostic>> {
        self.0.end(last)
    }

    /// How many sweeps have ended, and whether a call was disturbed since this was asked last.
    pub(crate) fn heard(&mut self) -> (u64, bool) {
        let counts = &mut self.0.0.heard.counts;
        (counts.sweeps, std::mem::take(&mut counts.disturbed))
    }

    /// What the last step that swept was told, and whether somebody used each claim at its end.
    pub(crate) fn swept(&self) -> impl Iterator<Item = (&Judged, bool)> {
        let claims = self.stage().heard.last.iter().flat_map(|swept| &swept.claims);
        claims.map(|judged| (judged, self.stage().is_used(&judged.name)))
    }

    fn stage(&self) -> &Stage<'s> {
        &self.0.0
    }
}
