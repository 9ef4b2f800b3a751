//! What happened in stories that were drawn, in numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::actor::wire::{Judged, Outcome};

/// Counts. Those of several stories add up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tally {
    /// Stories that were told.
    pub stories: u64,
    /// Those of them that were told in the simulated kernel as well.
    pub in_the_world: u64,
    /// Those of these that went another way there, and could not be told to their ends.
    pub otherwise: u64,
    /// Steps, by what happens in them.
    pub steps: BTreeMap<String, u64>,
    /// How often somebody was stopped or killed at a call, by the operation that makes it.
    pub disturbed: BTreeMap<String, u64>,
    /// Sweeps that came to their ends.
    pub sweeps: u64,
    /// Canaries that have vanished.
    pub canaries: u64,
    /// What sweeps did about claims, and for which reasons.
    pub verdicts: BTreeMap<Verdict, BTreeMap<String, u64>>,
}

/// What a sweep did about a claim, and whether anybody used it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It removed it.
    Removed,
    /// It would have, and only looked.
    WouldRemove,
    /// It kept it, and somebody uses it.
    KeptInUse,
    /// It kept it, and nobody uses it.
    KeptUnused,
    /// Something forbade its removal.
    Blocked,
    /// It removed a part of it.
    Partial,
}

impl Verdict {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Removed => "removed",
            Verdict::WouldRemove => "would be removed",
            Verdict::KeptInUse => "kept, in use",
            Verdict::KeptUnused => "kept, not in use",
            Verdict::Blocked => "left alone",
            Verdict::Partial => "removed in part",
        }
    }
}

impl Tally {
    /// A step that happens.
    pub(super) fn step(&mut self, word: &str) {
        count(&mut self.steps, word);
    }

    /// Somebody was stopped or killed at a call.
    pub(super) fn disturbed(&mut self, operation: &str) {
        count(&mut self.disturbed, operation);
    }

    /// What a sweep did about a claim.
    pub(super) fn judged(&mut self, judged: &Judged, used: bool) {
        let verdict = match (judged.outcome, used) {
            (Outcome::Removed, _) => Verdict::Removed,
            (Outcome::WouldRemove, _) => Verdict::WouldRemove,
            (Outcome::Kept, true) => Verdict::KeptInUse,
            (Outcome::Kept, false) => Verdict::KeptUnused,
            (Outcome::Blocked, _) => Verdict::Blocked,
            (Outcome::Partial, _) => Verdict::Partial,
        };
        let reason = judged.because.first().map_or("", String::as_str);
        count(self.verdicts.entry(verdict).or_default(), reason);
    }

    /// All steps.
    #[must_use]
    pub fn all_steps(&self) -> u64 {
        self.steps.values().sum()
    }

    /// So many verdicts there were of a kind.
    #[must_use]
    pub fn of(&self, verdict: Verdict) -> u64 {
        self.verdicts.get(&verdict).map_or(0, |reasons| reasons.values().sum())
    }

    /// Adds what happened in another.
    pub fn add(&mut self, other: &Tally) {
        self.stories += other.stories;
        self.in_the_world += other.in_the_world;
        self.otherwise += other.otherwise;
        self.sweeps += other.sweeps;
        self.canaries += other.canaries;
        merge(&mut self.steps, &other.steps);
        merge(&mut self.disturbed, &other.disturbed);
        for (verdict, reasons) in &other.verdicts {
            merge(self.verdicts.entry(*verdict).or_default(), reasons);
        }
    }
}

fn count(counts: &mut BTreeMap<String, u64>, word: &str) {
    *counts.entry(word.into()).or_default() += 1;
}

fn merge(all: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    for (word, count) in more {
        *all.entry(word.clone()).or_default() += count;
    }
}
