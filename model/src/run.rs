//! A run in which something goes wrong, as people read it.

use std::fmt;

use crate::act::{Act, Actor, Step};
use crate::truth::Broken;

/// A run in which something goes wrong.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its steps.
    pub steps: Vec<Step>,
    /// What the last sweep does when everybody has ended, where that is what is wrong.
    pub last: Vec<Step>,
    /// What is wrong in the end.
    pub broken: Broken,
}

/// Steps that say nothing new when they come together, undisturbed, and what they do.
const ROUTINE: [(&[Act], &str); 4] = [
    (
        &[
            Act::Make(0),
            Act::Open(0, crate::state::Name::Staging),
            Act::Lock(true),
            Act::Compare(true),
            Act::Record(true),
            Act::Commands(true),
            Act::Files(true),
            Act::Publish(true),
        ],
        "makes directory 1, locks it and publishes it",
    ),
    (&[Act::EntryMake(true), Act::EntryLock, Act::Fork(0)], "enters and forks command 1"),
    (
        &[Act::Group(true), Act::Name(true), Act::Exec],
        "makes its group, writes its identity, executes",
    ),
    (&[Act::Lock(true), Act::Compare(true)], "locks it; it is the one at the name"),
];

impl Run {
    /// All steps, the last sweep's included.
    pub fn all(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().chain(&self.last)
    }

    /// How many steps it takes.
    pub fn len(&self) -> usize {
        self.steps.len() + self.last.len()
    }

    /// Whether nothing happens in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How many of the first steps are routine, and what they do.
fn routine(steps: &[&Step]) -> Option<(usize, &'static str)> {
    let actor = steps.first()?.actor;
    ROUTINE.into_iter().find_map(|(acts, text)| {
        let met = steps.get(..acts.len())?;
        let same = met.iter().zip(acts).all(|(step, act)| step.act == *act && step.actor == actor);
        same.then_some((acts.len(), text))
    })
}

impl fmt::Display for Run {
    /// What is wrong, then a line a step. In the short form (`{:#}`) steps that are routine
    /// share a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.broken)?;
        let steps: Vec<&Step> = self.all().collect();
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            let short = f.alternate().then(|| routine(&steps[at..])).flatten();
            let line = |f: &mut fmt::Formatter<'_>, number: &str, actor: Actor, what: &str| {
                let actor = actor.to_string();
                writeln!(f, "{number:>6}  {actor:<18} {what}")
            };
            match short {
                Some((many, text)) => {
                    line(f, &format!("{}-{}", at + 1, at + many), step.actor, text)?;
                    at += many;
                }
                None => {
                    at += 1;
                    line(f, &at.to_string(), step.actor, &step.act.to_string())?;
                }
            }
        }
        Ok(())
    }
}
