//! Whether two tellings of a story say the same of each claim.
//!
//! Compared is what the sweeps said, case by case and round by round. In a story that is told until the
//! call number n is not made any more, the same thing happens at another number in the other telling: a
//! scan makes a call for each process that there is, and on the real kernel there are others. So of
//! rounds one after the other that say the same only one counts, and the rows of what is left have to be
//! the same.

use std::collections::BTreeMap;
use std::fmt;

use super::Verdict;
use crate::scenario::Story;
use crate::scenario::fields::Count;
use crate::scenario::story::{Action, Actor};

/// A round, or the first of several that say the same, of which one telling says something else than the
/// other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What was said on the real kernel.
    pub host: Vec<Verdict>,
    /// What was said in the world.
    pub world: Vec<Verdict>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, said) in [("on the host", &self.host), ("in the world", &self.world)] {
            match said.is_empty() {
                true => write!(f, "\n  {place}: nothing more is said")?,
                false => said.iter().try_for_each(|one| write!(f, "\n  {place}: {one}"))?,
            }
        }
        Ok(())
    }
}

/// Where the two tellings of a story part first, in each case that both have told.
#[must_use]
pub fn differences(story: &Story, host: &[Verdict], world: &[Verdict]) -> Vec<Difference> {
    if is_by_chance(story) {
        return Vec::new();
    }
    let alike_is_one = story.rounds_max.is_some();
    let [host, world] = [host, world].map(|said| rounds(said, alike_is_one));
    let both = world.iter().filter_map(|(case, world)| Some((host.get(case)?, world)));
    both.filter_map(|(host, world)| part(host, world)).collect()
}

/// What was said in one round.
type Round<'v> = Vec<&'v Verdict>;

/// The rounds of each case.
fn rounds(said: &[Verdict], alike_is_one: bool) -> BTreeMap<&str, Vec<Round<'_>>> {
    let mut cases: BTreeMap<&str, Vec<Round<'_>>> = BTreeMap::new();
    for round in said.chunk_by(|one, next| (&one.case, one.round) == (&next.case, next.round)) {
        let round: Round<'_> = round.iter().collect();
        let before = cases.entry(&round[0].case).or_default();
        if !(alike_is_one && before.last().is_some_and(|last| alike(last, &round))) {
            before.push(round);
        }
    }
    cases
}

fn alike(one: &Round<'_>, other: &Round<'_>) -> bool {
    let without_round = |round: &Round<'_>| -> Vec<Verdict> {
        round.iter().map(|verdict| Verdict { round: 0, ..(*verdict).clone() }).collect()
    };
    without_round(one) == without_round(other)
}

/// The first round in which they are not alike.
fn part(host: &[Round<'_>], world: &[Round<'_>]) -> Option<Difference> {
    let at = (0..host.len().max(world.len())).find(|at| match (host.get(*at), world.get(*at)) {
        (Some(host), Some(world)) => !alike(host, world),
        _ => true,
    })?;
    let said = |rounds: &[Round<'_>]| -> Vec<Verdict> {
        rounds.get(at).into_iter().flatten().map(|verdict| (*verdict).clone()).collect()
    };
    Some(Difference { host: said(host), world: said(world) })
}

/// Whether what comes of a round hangs on who of several is the quickest, on what two calls of the same
/// number are, or on the claim at which a sweep begins that has not enough descriptors for all.
fn is_by_chance(story: &Story) -> bool {
    let is_short = |actor: &Actor| match actor {
        Actor::Sweeper(sweeper) => sweeper.descriptors.is_some(),
        _ => false,
    };
    let at_once = story.steps.iter().any(|step| match &step.action {
        Action::Sweep { by, .. } => by.len() > 1,
        _ => false,
    });
    let at_n = story.steps.iter().filter(|step| step.action.disturbed_at() == Some(Count::Round));
    story.actors.values().any(is_short) || at_once || at_n.count() > 1
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::actor::wire::Outcome;
    use crate::scenario::read;

    fn story(head: &str, steps: &str) -> Story {
        let text = format!(
            "about = \"a\"\nrules = [\"l1\"]\n{head}\n[server.a]\n[sweeper.one]\n[sweeper.two]\n\
             [[step]]\nstart = \"a\"\n{steps}"
        );
        read("a", Path::new("a.toml"), &text).expect("it is a story")
    }

    fn said(round: u64, outcome: Outcome) -> Verdict {
        let (case, of) = (String::new(), "a".to_owned());
        Verdict { case, round, sweep: 1, of, outcome, because: Vec::new() }
    }

    const SWEEP: &str = "[[step]]\nsweep = \"one\"\n";
    const STOPPED: &str = "[[step]]\nsweep = \"one\"\nstop-before = \"n\"\n\
        [[step]]\ncontinue = \"one\"\n";

    #[test]
    fn what_is_told_once_has_to_be_told_the_same() {
        let story = story("", SWEEP);
        let kept = [said(1, Outcome::Kept)];
        let both = [said(1, Outcome::Kept), said(1, Outcome::Removed)];
        assert_eq!(differences(&story, &kept, &kept), []);
        let found = differences(&story, &kept, &both[1..]);
        assert_eq!(found, [Difference { host: kept.to_vec(), world: both[1..].to_vec() }]);
        let found = differences(&story, &kept, &both);
        assert_eq!(found.len(), 1, "one of the two says more");
        assert_eq!(found[0].to_string().lines().count(), 4);
    }

    #[test]
    fn of_rounds_that_say_the_same_one_counts() {
        let story = story("rounds-max = 9", STOPPED);
        let row = |outcomes: &[Outcome]| -> Vec<Verdict> {
            (1..).zip(outcomes).map(|(round, outcome)| said(round, *outcome)).collect()
        };
        let host = row(&[Outcome::Kept, Outcome::Kept, Outcome::Removed]);
        assert_eq!(differences(&story, &host, &row(&[Outcome::Kept, Outcome::Removed])), []);
        let world = row(&[Outcome::Kept, Outcome::Removed, Outcome::Kept]);
        let found = differences(&story, &host, &world);
        assert_eq!(found, [Difference { host: Vec::new(), world: vec![world[2].clone()] }]);
        assert!(found[0].to_string().contains("on the host: nothing more is said"));
    }

    #[test]
    fn what_hangs_on_chance_is_not_compared() {
        let (kept, removed) = ([said(1, Outcome::Kept)], [said(1, Outcome::Removed)]);
        let short = "[[step]]\nsweep = \"one\"\n\n[sweeper.short]\ndescriptors = 8\n";
        for (head, steps) in [
            ("", short.to_owned()),
            ("", "[[step]]\nsweep = [\"one\", \"two\"]\n".to_owned()),
            ("rounds-max = 9", format!("{STOPPED}{}", STOPPED.replace("one", "two"))),
        ] {
            assert_eq!(differences(&story(head, &steps), &kept, &removed), [], "{steps}");
        }
    }
}
