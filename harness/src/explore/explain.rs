//! Why a run ends badly: who did what to whom, the rule that is missing, and what would have had to
//! come in another order.
//!
//! The turn of a run is an order of its choices in which everybody does the same and that ends as badly,
//! with two choices of different processes side by side; let them change places, and it ends well. It is
//! looked for from the end of the run, so that of several the one nearest to the harm is shown: each
//! choice is moved towards the beginning, and each one before it towards it, past what others do in
//! between, as long as nobody does anything else; and if it is a fault of whichever kind, it is left out. A run that is to end well is carried on until nobody can go on, and judged with a last
//! sweep, so that the harm has not just moved; where the end of everybody is what it took, that stays
//! where it is.
//!
//! Invariants: both runs of a turn were run; an explanation is a function of case and run.

use std::collections::BTreeMap;
use std::fmt;

use mortmain::sys::{Call, Pid};

use super::Setup;
use super::choice::Choice;
use super::exhaust::Counterexample;
use super::follow::{End, Followed, follow, process_of};
use super::gate::{Case, Without};
use super::machine::Failure;
use crate::judge::{Violation, Who};
use crate::timeline::{Called, Event, EventKind, SIGKILL, Timeline};
use crate::world::Effect;
use crate::world::request::{Request, Response};

/// Choices of all runs together that the turn of a run is looked for in.
const CHOICES_MAX: usize = 200_000;

/// What there is to say of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// Who did what to whom, and the rule that is missing.
    pub told: String,
    /// What would have ended well; nothing is said of a program that does not repeat itself.
    pub turn: Option<Turn>,
}

/// What would have ended well.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Two choices in the other order.
    Swap {
        /// Where they stand in the run, in its order; others may be between them, whose order to the
        /// two means nothing.
        places: [usize; 2],
        /// Which two: the one that came later, and should have come first, before the other.
        later: String,
        /// The one that came first.
        first: String,
        /// The two as they were.
        were: [String; 2],
        /// And as they would have been.
        would_be: [String; 2],
    },
    /// The run without one of its faults.
    Without {
        /// The fault.
        fault: String,
    },
    /// No two choices, and no fault, make the difference.
    Nothing,
    /// There were too many to look at all.
    GivenUp,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told)?;
        self.turn.as_ref().map_or(Ok(()), |turn| write!(f, "\n{turn}"))
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Turn::Swap { later, first, were, would_be, .. } => {
                writeln!(f, "if {later} had come before {first}, it would hold")?;
                writeln!(f, "  it was       {}", were[0])?;
                writeln!(f, "               {}", were[1])?;
                writeln!(f, "  it would be  {}", would_be[0])?;
                write!(f, "               {}", would_be[1])
            }
            Turn::Without { fault } => write!(f, "without {fault}, it would hold"),
            Turn::Nothing => {
                f.write_str("no two steps in another order, and no fault less, would make it hold")
            }
            Turn::GivenUp => f.write_str("it is too long to look for what makes the difference"),
        }
    }
}

/// Explains a run.
#[must_use]
pub fn explain(case: &Case, found: &Counterexample) -> Explanation {
    let turn = match &found.failure {
        Failure::Violation(_) => Some(turn(&case.setup(), found)),
        Failure::Diverged(_) | Failure::Refused(_) => None,
    };
    let stays_up = Case { reboots: false, ..*case };
    let turn = match turn {
        Some(Turn::Nothing) if case.reboots && is_prevented(&stays_up.setup(), found) => {
            Some(Turn::Without { fault: "the restart".into() })
        }
        turn => turn,
    };
    Explanation { told: told(case, found), turn }
}

/// A choice of a run in words.
fn in_words(event: &Event) -> String {
    let who = event.who;
    match (event.kind, &event.called) {
        _ if who == Who::ADVERSARY => format!("{who}, who {}", event.text),
        (EventKind::Killed, _) => format!("the kill of {who}"),
        (EventKind::Born, _) => format!("the coming of {who}"),
        (EventKind::Failed, Some(called)) => {
            format!("the failure of `{}` of {who}", called.request)
        }
        (_, Some(called)) => format!("`{}` of {who}", called.request),
        // Only time passes without a call.
        (_, None) => format!("the {}", event.text.trim_end_matches(" pass")),
    }
}

/// An event as a line of a timeline has it.
fn line_of(event: &Event) -> String {
    format!("{}: {}", event.who, event.text)
}

struct Search<'s> {
    setup: &'s Setup,
    property: &'static str,
    /// Whether the run ends with the kill of everybody and the last sweep.
    recovers: bool,
    /// What each process does in the run.
    deeds: BTreeMap<Pid, Vec<String>>,
    choices_left: usize,
}

/// There were too many choices to look at all.
struct TooMany;

/// What each process does.
fn deeds(events: &[Event]) -> BTreeMap<Pid, Vec<String>> {
    let mut deeds: BTreeMap<Pid, Vec<String>> = BTreeMap::new();
    for event in events {
        deeds.entry(event.who.pid).or_default().push(event.text.clone());
    }
    deeds
}

/// What an order of the choices comes to.
enum Order {
    /// Everybody does the same, and the run ends as badly.
    Bad(Followed),
    /// It ends well.
    Well(Followed),
    /// It is no run, or ends in another way.
    Other,
}

/// What two neighbours in the other order come to.
enum Swapped {
    /// The run ends well.
    Turns(Turn),
    /// Everybody does the same, and it ends as badly.
    Bad,
    /// It is no run, or ends in another way.
    Other,
}

impl Search<'_> {
    /// Runs an order of the choices to its end; up to a place it has to fit.
    fn run(&mut self, order: &[Choice], fits_to: usize) -> Result<Order, TooMany> {
        self.choices_left = self.choices_left.checked_sub(order.len()).ok_or(TooMany)?;
        let followed = match self.recovers {
            true => follow(self.setup, &[order, &[Choice::Recover]].concat(), End::There),
            false => follow(self.setup, order, End::Whole),
        };
        let fits = followed.schedule.get(..fits_to).is_some_and(|taken| taken == &order[..fits_to]);
        Ok(match &followed.failure {
            None if fits => Order::Well(followed),
            _ if fits && self.is_same(&followed) => Order::Bad(followed),
            _ => Order::Other,
        })
    }

    /// Whether a run ends as badly as the one that is explained, and nobody does anything else in it up
    /// to there.
    fn is_same(&self, followed: &Followed) -> bool {
        let same = |(pid, deeds): (&Pid, &Vec<String>)| {
            self.deeds.get(pid).is_some_and(|known| known.starts_with(deeds))
        };
        followed.breaks(self.property) && deeds(&followed.events).iter().all(same)
    }

    /// Lets the neighbours at a place and after it change places; in the run that is explained, they
    /// stand at `places`.
    fn swap(
        &mut self,
        order: &[Choice],
        at: usize,
        places: [usize; 2],
    ) -> Result<Swapped, TooMany> {
        // Elsewhere it would be another trick: which name it is about is said by the call after it.
        if order[at..=at + 1].iter().any(|choice| matches!(choice, Choice::Trick { .. })) {
            return Ok(Swapped::Other);
        }
        let mut other = order.to_vec();
        other.swap(at, at + 1);
        let well = match self.run(&other, at + 2)? {
            Order::Well(well) => well,
            Order::Bad(_) => return Ok(Swapped::Bad),
            Order::Other => return Ok(Swapped::Other),
        };
        let Order::Bad(bad) = self.run(order, at + 2)? else { return Ok(Swapped::Other) };
        let pair = |run: &Followed| Some([run.event(at)?.clone(), run.event(at + 1)?.clone()]);
        let (Some(were), Some(would_be)) = (pair(&bad), pair(&well)) else {
            return Ok(Swapped::Other);
        };
        Ok(Swapped::Turns(Turn::Swap {
            places,
            later: in_words(&were[1]),
            first: in_words(&were[0]),
            were: were.each_ref().map(line_of),
            would_be: would_be.each_ref().map(line_of),
        }))
    }

    /// The turn whose later choice stands at a place.
    fn turn_at(&mut self, schedule: &[Choice], at: usize) -> Result<Option<Turn>, TooMany> {
        // Towards the beginning, past what others do.
        let mut order = schedule.to_vec();
        for before in (0..at).rev() {
            if process_of(order[before]) == process_of(order[before + 1]) {
                break;
            }
            match self.swap(&order, before, [before, at])? {
                Swapped::Turns(turn) => return Ok(Some(turn)),
                Swapped::Bad => order.swap(before, before + 1),
                Swapped::Other => break,
            }
        }
        // Each one before it towards it, if it is the last of its process.
        for before in (0..at.saturating_sub(1)).rev() {
            let whose = process_of(schedule[before]);
            if schedule[before + 1..=at].iter().any(|choice| process_of(*choice) == whose) {
                continue;
            }
            let mut order = schedule.to_vec();
            order[before..at].rotate_left(1);
            if let Swapped::Turns(turn) = self.swap(&order, at - 1, [before, at])? {
                return Ok(Some(turn));
            }
        }
        Ok(None)
    }

    /// The run without the fault at a place, if one is there.
    fn without(&mut self, schedule: &[Choice], at: usize) -> Result<Option<Turn>, TooMany> {
        let mut other = schedule.to_vec();
        match schedule[at] {
            Choice::Step(_) | Choice::Recover => return Ok(None),
            Choice::Fail { pid, .. } | Choice::Order { pid, .. } => other[at] = Choice::Step(pid),
            Choice::Kill(_)
            | Choice::KillTree(_)
            | Choice::Stranger(_)
            | Choice::Wait
            | Choice::Trick { .. } => drop(other.remove(at)),
        }
        let Order::Well(_) = self.run(&other, 0)? else { return Ok(None) };
        let followed = follow(self.setup, &schedule[..=at], End::There);
        let other =
            if let Choice::Order { .. } = schedule[at] { "the other order of " } else { "" };
        let fault = |event| format!("{other}{}", in_words(event));
        Ok(followed.event(at).map(|event| Turn::Without { fault: fault(event) }))
    }

    /// The turn that is nearest to the end.
    fn last(&mut self, schedule: &[Choice]) -> Result<Turn, TooMany> {
        for at in (0..schedule.len()).rev() {
            if let Some(turn) = self.turn_at(schedule, at)? {
                return Ok(turn);
            }
            if let Some(turn) = self.without(schedule, at)? {
                return Ok(turn);
            }
        }
        // The end of everybody is a fault as well.
        if self.recovers && follow(self.setup, schedule, End::Whole).failure.is_none() {
            return Ok(Turn::Without { fault: "the kill of everybody at that moment".into() });
        }
        Ok(Turn::Nothing)
    }
}

/// What would have ended well.
fn turn(setup: &Setup, found: &Counterexample) -> Turn {
    let (schedule, recovers) = match found.schedule.split_last() {
        Some((Choice::Recover, rest)) => (rest, true),
        _ => (&found.schedule[..], false),
    };
    let property = found.failure.property();
    let deeds = deeds(&found.timeline.events);
    let mut search = Search { setup, property, recovers, deeds, choices_left: CHOICES_MAX };
    search.last(schedule).unwrap_or(Turn::GivenUp)
}

/// Who did what to whom in a run, and the rule that is missing.
#[must_use]
pub fn told(case: &Case, found: &Counterexample) -> String {
    let told = match &found.failure {
        Failure::Violation(violation) => deed(violation, &found.timeline),
        Failure::Diverged(diverged) => diverged.to_string(),
        Failure::Refused(why) => why.clone(),
    };
    match missing(case, found) {
        Some((rule, because)) => format!("{told}, because {because} ({rule})"),
        None => told,
    }
}

/// The rule that is missing: of a design the one that is known for the property, of the implementation
/// the one that is switched off, if it makes the difference; and what is so without it.
pub(super) fn missing(case: &Case, found: &Counterexample) -> Option<(&'static str, &'static str)> {
    if let Some(known) = case.subject.rejection(found.failure.property()) {
        return Some((known.rule, known.because));
    }
    let (rule, without) = Without::RULES.into_iter().find(|(_, rule)| *rule == case.without)?;
    let with_it = Case { without: Without::Nothing, ..*case };
    is_prevented(&with_it.setup(), found).then(|| (rule, without.because()))
}

/// Whether the choices of a run do not come to the same in another setup.
fn is_prevented(setup: &Setup, found: &Counterexample) -> bool {
    !follow(setup, &found.schedule, End::There).breaks(found.failure.property())
}

fn deed(violation: &Violation, timeline: &Timeline) -> String {
    match violation {
        Violation::InUse { by, step, claim, missing, users } => {
            let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
            let claim = name(&claim.to_string());
            let (gone, last) = match missing.to_string() {
                none if none.is_empty() => (claim.clone(), claim),
                below => (format!("{claim}/{below}"), name(&below)),
            };
            let lived = alive(users);
            let upto = timeline.blamed(violation).unwrap_or(timeline.events.len());
            let before = timeline.events.iter().take(upto + 1);
            let taken =
                before.rev().find_map(|event| taken(event, &last).map(|how| (event.who, how)));
            match taken {
                Some((who, how)) if who == *by && step == SIGKILL => {
                    format!("{who} {} and was killed, while {lived}", how.of(&gone))
                }
                Some((who, how)) if who == *by => {
                    format!("{who} {} while {lived}", how.of(&gone))
                }
                Some((who, how)) => {
                    format!("{who} {}, and {by} relied on it from its `{step}` on", how.of(&gone))
                }
                None => format!("with `{step}` of {by}, {gone} is gone while {lived}"),
            }
        }
        Violation::Outside { by, step, path } => format!("{by} changed {path} with `{step}`"),
        Violation::Left { paths } => {
            let paths = paths.iter().map(ToString::to_string);
            let tops: Vec<String> = paths.filter(|path| !path.contains('/')).collect();
            let last =
                timeline.events.last().map_or("the last sweep".into(), |e| e.who.to_string());
            format!("{last} left {} when everybody was dead", tops.join(", "))
        }
        other => {
            let told = other.to_string();
            told.split_once(": ").map_or(told.clone(), |(_, told)| told.into())
        }
    }
}

/// Who was alive.
fn alive(users: &[Who]) -> String {
    let names: Vec<String> = users.iter().map(Who::to_string).collect();
    let was = if users.len() == 1 { "was" } else { "were" };
    format!("{} {was} alive", names.join(" and "))
}

/// How a name went.
enum Taken {
    Removed,
    Moved,
}

impl Taken {
    fn of(&self, what: &str) -> String {
        match self {
            Taken::Removed => format!("removed {what}"),
            Taken::Moved => format!("moved {what} away"),
        }
    }
}

/// Whether with an event something of a name went, and how.
fn taken(event: &Event, what: &str) -> Option<Taken> {
    let Called { request, effect } = event.called.as_ref()?;
    if !matches!(effect, Effect::Answer(Response::Reply(Ok(_)))) {
        return None;
    }
    let Request::Call(call) = &**request else { return None };
    let (name, how) = match call {
        Call::Rmdir { name, .. } | Call::Unlink { name, .. } => (name, Taken::Removed),
        Call::Rename { from, .. } => (from, Taken::Moved),
        _ => return None,
    };
    (name.to_string() == what).then_some(how)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::explore::{Bounds, Verdict, exhaust};
    use crate::simulated::Diverged;

    /// With room for ten runs of it, nobody looks at all.
    #[test]
    fn a_search_for_the_turn_has_a_bound() {
        let setup = Without::L3.shown_by().setup();
        let exploration = exhaust(&setup, &Bounds { states_max: 1_000_000 });
        let Verdict::Found(found) = exploration.verdict else { panic!("{exploration:?}") };
        let deeds = deeds(&found.timeline.events);
        let choices_left = 10 * found.schedule.len();
        let (setup, property) = (&setup, found.failure.property());
        let mut search = Search { setup, property, recovers: false, deeds, choices_left };
        assert!(search.last(&found.schedule).is_err());
        assert!(matches!(turn(setup, &found), Turn::Swap { .. }));
    }

    #[test]
    fn a_rule_is_missing_only_where_it_would_have_prevented_the_run() {
        let case = Without::L3.shown_by();
        let exploration = exhaust(&case.setup(), &Bounds { states_max: 1_000_000 });
        let Verdict::Found(found) = exploration.verdict else { panic!("{exploration:?}") };
        assert!(!is_prevented(&case.setup(), &found));
        assert!(is_prevented(&Case { without: Without::Nothing, ..case }.setup(), &found));
        assert_eq!(missing(&case, &found).map(|(rule, _)| rule), Some("l3"));
        let nothing_off = Case { without: Without::Nothing, ..case };
        assert_eq!(missing(&nothing_off, &found), None);
    }

    #[test]
    fn a_program_that_does_not_repeat_itself_has_no_turn() {
        let idle = Arc::new(Request::Idle);
        let program = "owner".into();
        let diverged = Diverged { program, at: 0, before: idle.clone(), now: idle };
        let said = diverged.to_string();
        let (failure, timeline) = (Failure::Diverged(diverged), Timeline::default());
        let found = Counterexample { failure, schedule: vec![Choice::Recover], timeline };
        assert_eq!(explain(&Case::SMALL, &found).to_string(), said);
        assert_eq!(explain(&Case::SMALL, &found).turn, None);
    }
}
