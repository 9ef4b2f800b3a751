//! What the sweeps of a story have said.

use super::{Counts, Failure, Outcome, Verdict};
use crate::actor::wire::{Judged, Swept};
use crate::scenario::fields::Count;
use crate::scenario::story::Disturbed;
use crate::tree::without_random;

/// Whose a claim is that belongs to nobody in the story.
pub(in crate::scenario) const CANARY: &str = "canary";

/// Whose claim has a name, by what all the names of a claim have in common; if nobody's is known, what
/// it is called but for what is drawn.
pub(in crate::scenario) fn whose(known: &[(String, String)], name: &str) -> String {
    let mut found = known.iter().filter(|(random, _)| name.contains(random.as_str()));
    match found.next() {
        Some((_, server)) => server.clone(),
        None => String::from_utf8_lossy(&without_random(name.as_bytes())).into_owned(),
    }
}

/// What was said last, and what was counted so far.
#[derive(Debug, Default)]
pub(in crate::scenario) struct Heard {
    /// The reports of the last step that swept, or the last error in the place of one.
    pub(in crate::scenario) last: Vec<Swept>,
    pub(in crate::scenario) counts: Counts,
}

impl Heard {
    /// What comes is the report of a step of its own.
    pub(in crate::scenario) fn begin(&mut self) {
        self.last.clear();
    }

    /// A sweep has ended. `of` names whose claim has a name.
    pub(in crate::scenario) fn sweep(&mut self, swept: Swept, of: impl Fn(&str) -> String) {
        self.counts.sweeps += 1;
        let sweep = self.counts.sweeps;
        let mut said: Vec<Verdict> = swept
            .claims
            .iter()
            .map(|Judged { name, outcome, because, .. }| Verdict {
                case: String::new(),
                round: 0,
                sweep,
                of: of(name),
                outcome: *outcome,
                because: because.clone(),
            })
            .collect();
        // A sweep begins anywhere.
        said.sort();
        self.counts.verdicts.extend(said);
        self.last.push(swept);
    }

    /// Fails unless that is the error that has to come, which is then what was said last.
    pub(in crate::scenario) fn must_fail(
        &mut self,
        fails: Option<&str>,
        kind: &str,
        message: &str,
    ) -> Outcome<()> {
        if fails != Some(kind) {
            return Err(Failure::new("fails", format!("it failed: {kind}: {message}")));
        }
        self.last = vec![Swept { report: vec![message.into()], ..Swept::default() }];
        Ok(())
    }

    /// Notes to how many of several something has happened. Answers whether the call was not made at
    /// which it was to: one that was to be killed and has less to do than another before it ends well.
    pub(in crate::scenario) fn is_over(
        &mut self,
        disturbed: Option<(Disturbed, Count)>,
        happened: usize,
        of: usize,
    ) -> bool {
        self.counts.disturbed |= happened > 0;
        match disturbed {
            Some((Disturbed::Stopped, _)) => happened < of,
            Some((Disturbed::Killed, _)) => !self.counts.disturbed,
            None => false,
        }
    }

    fn lines(&self) -> impl Iterator<Item = &String> {
        self.last.iter().flat_map(|swept| &swept.report)
    }

    /// Adds what was said last to a failure.
    pub(in crate::scenario) fn with(&self, failure: Failure) -> Failure {
        let add = |failure: Failure, line| failure.note(format!("what was told last: {line}"));
        self.lines().fold(failure, add)
    }

    /// Fails unless a line has these words.
    pub(in crate::scenario) fn expect_told(&self, words: &str) -> Outcome<()> {
        if self.lines().any(|line| line.contains(words)) {
            return Ok(());
        }
        Err(self.with(Failure::new("told", format!("nothing said `{words}`"))))
    }

    /// Fails if a line has these words.
    pub(in crate::scenario) fn expect_not_told(&self, words: &str) -> Outcome<()> {
        if !self.lines().any(|line| line.contains(words)) {
            return Ok(());
        }
        Err(self.with(Failure::new("told", format!("a sweep said `{words}`"))))
    }

    /// Fails unless so many were said to be other users'.
    pub(in crate::scenario) fn expect_foreign(&self, count: u64) -> Outcome<()> {
        let found: usize = self.last.iter().map(|swept| swept.foreign).sum();
        if found as u64 == count {
            return Ok(());
        }
        let title = format!("the last sweep counted {found} of other users");
        Err(self.with(Failure::new("foreign", title)))
    }

    /// The codes of the reasons that were given about claims of these names.
    pub(in crate::scenario) fn reasons(&self, is_own: impl Fn(&str) -> bool) -> Vec<&str> {
        let judged = self.last.iter().flat_map(|swept| &swept.claims);
        let own = judged.filter(|judged| is_own(&judged.name));
        own.flat_map(|judged| judged.because.iter().map(String::as_str)).collect()
    }

    /// Fails unless this reason is among those given about the claim of a server.
    pub(in crate::scenario) fn expect_reason(
        &self,
        server: &str,
        because: &str,
        is_own: impl Fn(&str) -> bool,
    ) -> Outcome<()> {
        let reasons = self.reasons(is_own);
        if reasons.contains(&because) {
            return Ok(());
        }
        let title = match reasons.is_empty() {
            true => format!("the last sweep says nothing of the claim of `{server}`"),
            false => format!("the last sweep gives another reason: {}", reasons.join(", ")),
        };
        Err(self.with(Failure::new("because", title)))
    }

    /// Fails unless this reason was given about a name in the root.
    pub(in crate::scenario) fn expect_because(&self, name: &str, because: &str) -> Outcome<()> {
        let mut judged = self.last.iter().flat_map(|swept| &swept.claims);
        let told = judged.find(|judged| judged.name == name).map(|judged| &judged.because[..]);
        let title = match told {
            Some(codes) if codes.iter().any(|code| code == because) => return Ok(()),
            Some(codes) => format!("the last sweep gives another reason: {}", codes.join(", ")),
            None => format!("the last sweep says nothing of `{name}`"),
        };
        Err(self.with(Failure::new("because", title)))
    }
}
