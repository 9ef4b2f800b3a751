//! Findings by what they have in common: the property that does not hold, the call that does the harm,
//! and the rule that is missing.
//!
//! A call counts by its kind and its program, whatever it is made on. Where nothing is harmed but
//! something is left, it is the last one before the end of everybody: what was begun there is what
//! nobody finishes. So only short runs are to be grouped, whose last call is not there by chance.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use super::choice::Choice;
use super::exhaust::Counterexample;
use super::explain::missing;
use super::follow::{End, follow};
use super::gate::Case;
use super::machine::Failure;
use crate::judge::Violation;
use crate::timeline::{Event, EventKind};

/// What findings have in common.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cause {
    /// The property that does not hold, in a word.
    pub property: &'static str,
    /// The call, and whose.
    pub deed: String,
    /// The rule that is missing, where one is known to be.
    pub rule: Option<&'static str>,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.property, self.deed)?;
        self.rule.map_or(Ok(()), |rule| write!(f, ", lacks {rule}"))
    }
}

/// Findings of one cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// How many.
    pub count: u64,
    /// What the shortest of them was found in.
    pub case: Case,
    /// The shortest of them, and of those the first.
    pub shortest: Counterexample,
}

/// Groups of findings.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Causes {
    groups: BTreeMap<Cause, Group>,
}

impl Cause {
    /// That of a run, which ought to be a short one.
    #[must_use]
    pub fn of(case: &Case, found: &Counterexample) -> Cause {
        let property = found.failure.property();
        let rule = missing(case, found).map(|(rule, _)| rule);
        Cause { property, deed: deed(case, found), rule }
    }
}

fn deed(case: &Case, found: &Counterexample) -> String {
    let violation = match &found.failure {
        Failure::Violation(violation) => violation,
        Failure::Diverged(diverged) => return format!("the {}", diverged.program),
        Failure::Refused(why) => return why.clone(),
    };
    match violation {
        Violation::Left { .. } => {
            let steps = found.schedule.iter().filter(|choice| **choice != Choice::Recover).count();
            let followed = follow(&case.setup(), &found.schedule, End::There);
            let last = steps.checked_sub(1).and_then(|last| followed.event(last));
            last.map_or("nothing".into(), |event| format!("the end after {}", call_of(event)))
        }
        Violation::TooLong { who, .. } | Violation::Panicked { who, .. } => {
            format!("the {}", who.program)
        }
        Violation::InUse { .. }
        | Violation::Outside { .. }
        | Violation::Stranger { .. }
        | Violation::NotAlone { .. }
        | Violation::Blocked { .. } => {
            let event =
                found.timeline.blamed(violation).and_then(|at| found.timeline.events.get(at));
            event.map_or("nothing".into(), call_of)
        }
    }
}

/// The kind of call of an event, and whose it is.
fn call_of(event: &Event) -> String {
    let program = event.who.program;
    match (&event.called, event.kind) {
        (_, EventKind::Killed) => format!("the kill of the {program}"),
        (Some(called), _) => {
            let request = called.request.to_string();
            let word = request.split(' ').next().unwrap_or_default();
            format!("`{word}` of the {program}")
        }
        (None, _) => format!("the {program}"),
    }
}

impl Causes {
    /// Adds a short run.
    pub fn add(&mut self, case: Case, found: Counterexample) {
        match self.groups.entry(Cause::of(&case, &found)) {
            Entry::Vacant(entry) => {
                entry.insert(Group { count: 1, case, shortest: found });
            }
            Entry::Occupied(mut entry) => {
                let group = entry.get_mut();
                group.count += 1;
                if found.schedule.len() < group.shortest.schedule.len() {
                    (group.case, group.shortest) = (case, found);
                }
            }
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// All groups, in the order of their causes.
    pub fn iter(&self) -> impl Iterator<Item = (&Cause, &Group)> {
        self.groups.iter()
    }
}
