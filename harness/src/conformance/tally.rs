//! Which outcomes of which operations were reached, how often, and which never.

use std::collections::BTreeMap;

use super::operation::Operation;
use super::outcome::Run;
use super::program::Program;

/// The calls of the seam that no program makes, each with the reason.
pub const NOT_ASKED: &[(&str, &str)] = &[
    ("identity", "tells of the machine; its numbers of the process are asked for one by one"),
    ("descriptors-max", "is a limit of the machine"),
    ("pause", "lets time pass, which no step depends on"),
    ("random", "answers what nobody can foretell"),
];

/// How often which outcome was reached, by operation and outcome in a word each.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    counts: BTreeMap<&'static str, BTreeMap<String, u64>>,
    /// Programs that were run.
    pub programs: u64,
    /// Their steps.
    pub steps: u64,
}

impl Tally {
    /// Expects these operations to be reached.
    #[must_use]
    pub fn of(alphabet: impl IntoIterator<Item = Operation>) -> Tally {
        let words = alphabet.into_iter().map(Operation::word);
        Tally { counts: words.map(|word| (word, BTreeMap::new())).collect(), ..Tally::default() }
    }

    /// Counts a run.
    pub fn note(&mut self, program: &Program, run: &Run) {
        self.programs += 1;
        self.steps += program.steps.len() as u64;
        for (step, outcome) in program.steps.iter().zip(&run.outcomes) {
            let row = self.counts.entry(step.operation.word()).or_default();
            let word = if outcome.is_good() { "done".into() } else { outcome.word() };
            *row.entry(word).or_default() += 1;
        }
    }

    /// Each operation with its outcomes and how often each was reached.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, &BTreeMap<String, u64>)> {
        self.counts.iter().map(|(word, row)| (*word, row))
    }

    /// How often an outcome of an operation was reached.
    #[must_use]
    pub fn count(&self, operation: &str, outcome: &str) -> u64 {
        let row = self.counts.get(operation);
        row.and_then(|row| row.get(outcome)).copied().unwrap_or_default()
    }

    /// The operations that never went well.
    #[must_use]
    pub fn never(&self) -> Vec<&'static str> {
        let never = self.rows().filter(|(word, _)| self.count(word, "done") == 0);
        never.map(|(word, _)| word).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::conformance::Class;

    /// Where the words of all calls stand.
    const CALLS: &str = include_str!("../../../mortmain/src/sys/call.rs");

    #[test]
    fn every_call_is_asked_for_or_has_a_reason() {
        let words = CALLS.lines().filter_map(|line| {
            let (_, word) = line.trim().strip_prefix("Call::")?.split_once(" => \"")?;
            word.strip_suffix("\",")
        });
        let words: BTreeSet<&str> = words.collect();
        assert!(words.contains("open-root") && words.contains("random"), "{words:?}");
        let of_class = |class: Class| class.few().into_iter().chain(class.many());
        let alphabet = Class::ALL.into_iter().flat_map(of_class);
        let asked: BTreeSet<&str> = alphabet.map(Operation::word).collect();
        for word in words {
            let reason = NOT_ASKED.iter().any(|(not, why)| *not == word && !why.is_empty());
            assert!(asked.contains(word) != reason, "{word}");
        }
    }
}
