//! A design against every property: each with the shortest run that breaks it.
//!
//! All designs meet the same adversary: every manner of command, owners that hold their directory until
//! they are killed, that end without a word, and that wait for their command before; a sweep beside
//! them; one kill, and the passing of a day, at any moments. Where one property does not hold, the others
//! are judged alone, so that a design which breaks two is found out in both. What an owner removes itself
//! is not compared: the question is what others may remove when it is dead.
//!
//! Invariants: a cell says that a property holds only if in each setup a search that judges it was
//! finished, and it was at stake in one of them; what no search here can judge is said to be so.

use std::fmt;

use super::causes::Causes;
use super::exhaust::{Bounds, Counterexample, Counts, Verdict, exhaust_watched};
use super::{Case, Subject};
use crate::judge::{Judged, Property};
use crate::simulated::subject::{Manner, Then};

const SEARCHED: [Property; 3] = Property::SEARCHED;

/// How owners go on.
const THENS: [Then; 3] = [Then::Idle, Then::Exit, Then::Wait];

/// The setups that a design is compared in.
pub fn cases(subject: Subject) -> impl Iterator<Item = Case> {
    let manners = Manner::WORDS.into_iter().map(|(_, manner)| manner);
    let both = manners.flat_map(|manner| THENS.map(|then| (manner, then)));
    both.map(move |(manner, then)| Case { subject, manner, then, waits: 1, ..Case::SMALL })
}

/// A run that breaks a property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Witness {
    /// What was explored.
    pub case: Case,
    /// The run.
    pub found: Counterexample,
}

impl Witness {
    /// How many choices it takes; the steps of the last sweep are none.
    #[must_use]
    pub fn choices(&self) -> usize {
        self.found.schedule.len()
    }

    /// What it breaks. What is none of those that are searched, a panic say, keeps a sweep from ending
    /// well, and counts as L2.
    fn property(&self) -> Property {
        let id = self.found.failure.property();
        SEARCHED.into_iter().find(|property| property.id() == id).unwrap_or(Property::L2)
    }
}

/// What is known of one property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Held {
    /// It holds, in all that was explored.
    Holds,
    /// It does not; no search in any of the setups has found a shorter run.
    Fails(Box<Witness>),
    /// A search was cut short, and up to there nothing was found.
    NotDecided(Cut),
    /// Nothing put it at stake, or nothing here can judge it; and why.
    NeverEvaluated(&'static str),
    /// Whoever watched has ended it, and up to there nothing was found.
    Ended,
}

/// What cut a search short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// It met its bound on states.
    States(u32),
    /// It ended with another property that does not hold, and that ends every search.
    Finding(Property),
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cut::States(states_max) => write!(f, "a search met {states_max} states"),
            Cut::Finding(property) => {
                write!(f, "a search ended with what breaks {}", property.id())
            }
        }
    }
}

/// One property of a design.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    /// The property.
    pub property: Property,
    /// What is known of it.
    pub held: Held,
    /// How often it was judged.
    pub judged: u64,
}

/// All properties of a design.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The design.
    pub subject: Subject,
    /// One for each property, in order.
    pub cells: Vec<Cell>,
    /// What its searches ended with, by their causes.
    pub causes: Causes,
    /// States of all searches.
    pub states: u64,
}

/// How far a comparison is.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The setup that is explored, from 0.
    pub case: usize,
    /// How many there are.
    pub cases: usize,
    /// States so far, of all searches.
    pub states: u64,
}

/// Why a property is not judged here.
fn out_of_reach(property: Property) -> Option<&'static str> {
    match property {
        Property::S1 | Property::L1 | Property::L2 => None,
        Property::S2 => Some("nobody plays tricks here; `explore --tricks 1` lets somebody"),
        Property::S3 => Some("no call fails here; `explore --failures 1` lets one"),
        Property::L3 => Some("a report is judged on the real kernel only"),
    }
}

/// What is known so far of the properties that are searched.
#[derive(Debug, Default)]
struct Known {
    fails: [Option<Box<Witness>>; SEARCHED.len()],
    cut: [Option<Cut>; SEARCHED.len()],
    judged: [u64; SEARCHED.len()],
    causes: Causes,
    states: u64,
    ended: bool,
}

/// Explores a design in all setups. `go_on` is asked now and then, and ends it with its first no.
#[must_use]
pub fn compare(subject: Subject, bounds: &Bounds, go_on: &mut dyn FnMut(Seen) -> bool) -> Row {
    let all: Vec<Case> = cases(subject).collect();
    compare_in(subject, &all, bounds, go_on)
}

/// The same, in setups of one's own.
#[must_use]
pub fn compare_in(
    subject: Subject,
    all: &[Case],
    bounds: &Bounds,
    go_on: &mut dyn FnMut(Seen) -> bool,
) -> Row {
    let mut known = Known::default();
    for (at, case) in all.iter().enumerate() {
        let seen = |states| Seen { case: at, cases: all.len(), states };
        known.explore(*case, bounds, &mut |states| go_on(seen(states)));
        if known.ended {
            break;
        }
    }
    let states = known.states;
    let cells = Property::ALL.into_iter().map(|property| known.cell(property)).collect();
    Row { subject, cells, causes: known.causes, states }
}

impl Known {
    /// One setup: once for all properties, and where one does not hold, once more for the others.
    fn explore(&mut self, case: Case, bounds: &Bounds, go_on: &mut dyn FnMut(u64) -> bool) {
        let Some(witness) = self.search(case, bounds, go_on) else { return };
        let first = witness.property();
        let mut met = vec![first];
        self.found(witness, true);
        for (at, property) in SEARCHED.into_iter().enumerate() {
            if property == first {
                continue;
            }
            let alone = Case { judged: Judged::Only(property), ..case };
            let Some(witness) = self.search(alone, bounds, go_on) else { continue };
            let other = witness.property();
            if other != property {
                self.cut[at] = Some(Cut::Finding(other));
            }
            let is_new = !met.contains(&other);
            met.push(other);
            self.found(witness, is_new);
        }
    }

    /// One search, and what it ends with.
    fn search(
        &mut self,
        case: Case,
        bounds: &Bounds,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Option<Witness> {
        let before = self.states;
        let exploration = exhaust_watched(&case.setup(), bounds, &mut |counts: &Counts| {
            go_on(before + counts.states)
        });
        let counts = exploration.counts;
        self.states += counts.states;
        let judged = [counts.in_use, counts.recoveries, counts.transitions];
        for (at, property) in SEARCHED.into_iter().enumerate() {
            if case.judged.counts(property) || property == Property::L2 {
                self.judged[at] += judged[at];
            }
        }
        match exploration.verdict {
            Verdict::Holds => None,
            Verdict::Found(found) => Some(Witness { case, found: *found }),
            Verdict::NotDecided { states_max } => {
                for (at, property) in SEARCHED.into_iter().enumerate() {
                    if case.judged.counts(property) {
                        self.cut[at] = Some(Cut::States(states_max));
                    }
                }
                None
            }
            Verdict::Ended => {
                self.ended = true;
                None
            }
        }
    }

    /// Keeps the shortest witness of each property, and counts the cause if the setup has not shown
    /// that property before.
    fn found(&mut self, witness: Witness, is_new: bool) {
        if is_new {
            self.causes.add(witness.case, witness.found.clone());
        }
        let property = witness.property();
        let place = SEARCHED.into_iter().zip(&mut self.fails);
        let Some((_, shortest)) = place.into_iter().find(|(other, _)| *other == property) else {
            return;
        };
        if shortest.as_ref().is_none_or(|known| witness.choices() < known.choices()) {
            *shortest = Some(Box::new(witness));
        }
    }

    fn cell(&mut self, property: Property) -> Cell {
        if let Some(why) = out_of_reach(property) {
            return Cell { property, held: Held::NeverEvaluated(why), judged: 0 };
        }
        let at = SEARCHED.iter().position(|searched| *searched == property);
        // OK because every other property is out of reach.
        let at = at.expect("it is searched");
        let judged = self.judged[at];
        let held = match (self.fails[at].take(), self.cut[at]) {
            (Some(witness), _) => Held::Fails(witness),
            (None, _) if self.ended => Held::Ended,
            (None, Some(cut)) => Held::NotDecided(cut),
            (None, None) if judged == 0 => {
                Held::NeverEvaluated("no run came to a state in which it was at stake")
            }
            (None, None) => Held::Holds,
        };
        Cell { property, held, judged }
    }
}
