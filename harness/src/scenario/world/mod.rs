//! Tells a story in the world, with the code that ships as simulated processes.
//!
//! Servers and sweepers take the same orders as the actors that play them on the real kernel, and the
//! same is expected of them. What happens at one of their calls happens between two steps of the world;
//! several who do something at once take turns that are drawn, the same in each telling.
//!
//! What is checked without being asked for is what is checked on the real kernel, S1 after each *step of a
//! process* and not of the story.
//!
//! Not everything can be told: the world lacks some of what machines have ([`why_not`]). A case of a
//! story that needs such a thing is left out, with the reason.
//!
//! Invariant: the same story is told in the same steps each time. There is no clock here, no thread, and
//! nothing that is read from the machine.

mod act;
mod beside;
mod expect;
mod files;
mod ledger;
mod limits;
mod machine;
mod owners;
mod program;
mod spawn;
mod stage;
mod sweeps;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use self::limits::{Feature, WhyNot, why_not};
use self::stage::Stage;
use super::Story;
use super::story::{Action, Expected};
use super::telling::{self, Counts, Outcome, Teller, Told};
use crate::actor::wire::Subject;

/// The cases of a story that can be told in the world, and those that cannot, with the reasons.
#[derive(Debug)]
pub struct Tellable<'s> {
    /// Those that can.
    pub cases: Vec<&'s Story>,
    /// What the words in angle brackets stand for in those that cannot, by the reason.
    pub untold: BTreeMap<WhyNot, Vec<&'s str>>,
}

impl<'s> Tellable<'s> {
    /// Those of this story.
    #[must_use]
    pub fn of(story: &'s Story) -> Tellable<'s> {
        let mut tellable = Tellable { cases: Vec::new(), untold: BTreeMap::new() };
        for case in std::iter::once(story).chain(&story.other_cases) {
            match why_not(case) {
                None => tellable.cases.push(case),
                Some(why) => tellable.untold.entry(why).or_default().push(&case.case),
            }
        }
        tellable
    }

    /// Tells those that can be told.
    #[must_use]
    pub fn tell(&self, subject: Subject) -> Told {
        let cases = self.cases.iter().copied();
        telling::tell(cases, |case, round| Stage::set(case, subject, round))
    }
}

impl Teller for Stage<'_> {
    fn act(&mut self, action: &Action) -> Outcome<()> {
        self.let_happen(action)
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn note_escapes(&mut self) -> Outcome<()> {
        self.find_escapes();
        Ok(())
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
