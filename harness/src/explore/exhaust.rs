//! Every order of steps and kills, breadth first.
//!
//! A state is met once, however many ways lead to it: it is known by its
//! fingerprint (see [`crate::world::Fingerprint`] for the chance of a mistake).
//! From every state everybody is also killed at once and the last sweep is run;
//! states that leave the same behind are judged once. The first violation ends
//! the search, and no shorter list of choices leads to one, the steps of the
//! last sweep not counted.
//!
//! Memory is bounded by the number of states. A search that meets the bound is
//! not decided, and says so.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::hash::Hash;

use mortmain::sys::Pid;
use rustc_hash::FxHashSet;

use super::Setup;
use super::choice::Choice;
use super::machine::{Failure, Machine, State};
use crate::simulated::Trie;
use crate::timeline::Timeline;
use crate::world::request::Request;
use crate::world::{Fingerprint, World};

/// When a search gives up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Most states; each takes about 40 bytes, and about 500 more while it
    /// waits for its turn.
    pub states_max: u32,
}

/// What a search has done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Different states.
    pub states: u64,
    /// Choices taken between them.
    pub transitions: u64,
    /// Times that everybody was killed and the last sweep judged: L1 was
    /// evaluated so often, unless L2 is judged alone.
    pub recoveries: u64,
    /// States in which a claim was in use: S1 was evaluated so often.
    pub in_use: u64,
    /// The longest of the shortest ways to a state, in choices.
    pub depth: u64,
    /// Most states that waited for their turn.
    pub waiting_max: u64,
    /// What the processes have been learnt at.
    pub nodes: u64,
    /// Requests that were run to learn them.
    pub replayed: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} states, {} transitions, {} recoveries, {} with a claim in use, depth {}, \
             at most {} waiting, {} nodes from {} requests",
            self.states,
            self.transitions,
            self.recoveries,
            self.in_use,
            self.depth,
            self.waiting_max,
            self.nodes,
            self.replayed
        )
    }
}

/// A run that ends badly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counterexample {
    /// What it ends with.
    pub failure: Failure,
    /// The choices that lead there.
    pub schedule: Vec<Choice>,
    /// The same for people.
    pub timeline: Timeline,
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.failure)?;
        self.timeline.fmt(f)
    }
}

/// What a search has shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every state was met and none is bad.
    Holds,
    /// One is.
    Found(Box<Counterexample>),
    /// A bound was met before the end; up to there nothing was found.
    NotDecided {
        /// The bound.
        states_max: u32,
    },
    /// Whoever watched has ended it; up to there nothing was found.
    Ended,
}

/// The result of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exploration {
    /// What it has shown.
    pub verdict: Verdict,
    /// What it has done.
    pub counts: Counts,
}

/// A choice that was taken.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'t> {
    /// Which.
    pub choice: Choice,
    /// What was asked for, where it is a step of a process.
    pub request: Option<&'t Request>,
    /// The world before it.
    pub before: &'t World,
    /// The world after it.
    pub after: &'t World,
}

/// Somebody who goes along every way of a search, and may refuse a step.
pub trait Companion {
    /// What is remembered at a state.
    type Memory: Clone + Hash;

    /// What is remembered at the beginning.
    ///
    /// # Errors
    /// When there is none such: why.
    fn begin(&mut self, world: &World) -> Result<Self::Memory, String>;

    /// What is remembered after a step.
    ///
    /// # Errors
    /// When the step must not be: why.
    fn follow(&mut self, memory: &Self::Memory, step: &Taken<'_>) -> Result<Self::Memory, String>;
}

/// Nobody goes along.
struct Alone;

impl Companion for Alone {
    type Memory = ();

    fn begin(&mut self, _world: &World) -> Result<(), String> {
        Ok(())
    }

    fn follow(&mut self, _memory: &(), _step: &Taken<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// States between two questions whether to go on.
const WATCHED_EVERY: u32 = 4_096;

/// Where a state was first met from.
#[derive(Clone, Copy, Debug)]
struct Way {
    before: u32,
    choice: Choice,
}

struct Search<'s, C> {
    machine: Machine<'s, Trie<'s>>,
    companion: &'s mut C,
    met: FxHashSet<Fingerprint>,
    judged: FxHashSet<Fingerprint>,
    ways: Vec<Way>,
    counts: Counts,
}

/// A state of a search.
pub(super) type Spot = State<<Trie<'static> as crate::simulated::Engine>::Process>;

/// Stands for a state.
pub(super) fn fingerprint(state: &Spot) -> Fingerprint {
    let rest = Fingerprint::of(&(&state.left, &state.processes, &state.gone, &state.strangers));
    state.world.fingerprint().with(rest)
}

/// Stands for what is left of a state when everybody is killed, and the machine starts anew if it does:
/// then all who ever were have their like.
fn remains(setup: &Setup, state: &Spot) -> Fingerprint {
    let living = state.processes.iter().map(|(pid, _)| *pid);
    let numbers: BTreeSet<Pid> = match setup.reboots {
        true => state.gone.iter().copied().chain(living).collect(),
        false => state.strangers.clone(),
    };
    state.world.remains().with(Fingerprint::of(&numbers))
}

/// Searches all of a setup.
#[must_use]
pub fn exhaust(setup: &Setup, bounds: &Bounds) -> Exploration {
    exhaust_watched(setup, bounds, &mut |_| true)
}

/// The same, watched: `go_on` is asked every few thousand states, and ends the
/// search with its first no. It changes nothing else.
#[must_use]
pub fn exhaust_watched(
    setup: &Setup,
    bounds: &Bounds,
    go_on: &mut dyn FnMut(&Counts) -> bool,
) -> Exploration {
    exhaust_with(setup, bounds, &mut Alone, go_on)
}

/// The same, with somebody who goes along. What is remembered is a part of a state, so there may be
/// more states.
#[must_use]
pub fn exhaust_with<C: Companion>(
    setup: &Setup,
    bounds: &Bounds,
    companion: &mut C,
    go_on: &mut dyn FnMut(&Counts) -> bool,
) -> Exploration {
    let engine = match setup.merge {
        true => Trie::new(&setup.programs),
        false => Trie::of_whole_ways(&setup.programs),
    };
    let mut search = Search {
        machine: Machine::new(setup, engine),
        companion,
        met: FxHashSet::default(),
        judged: FxHashSet::default(),
        ways: Vec::new(),
        counts: Counts::default(),
    };
    let verdict = search.run(bounds, go_on);
    let trie = search.machine.engine.counts();
    let counts = Counts { nodes: trie.nodes, replayed: trie.replayed, ..search.counts };
    Exploration { verdict, counts }
}

impl<C: Companion> Search<'_, C> {
    fn run(&mut self, bounds: &Bounds, go_on: &mut dyn FnMut(&Counts) -> bool) -> Verdict {
        let first = match self.machine.begin() {
            Ok(state) => state,
            Err(failure) => return self.found(failure, Vec::new()),
        };
        let memory = match self.companion.begin(&first.world) {
            Ok(memory) => memory,
            Err(why) => return self.found(Failure::Refused(why), Vec::new()),
        };
        let mut waiting = VecDeque::new();
        let mut choices = Vec::new();
        self.meet(&first, &memory, Way { before: 0, choice: Choice::Recover });
        waiting.push_back((0, first, memory));
        // The states of this depth that still wait.
        let mut of_this_depth = 1;
        while let Some((number, state, memory)) = waiting.pop_front() {
            if number % WATCHED_EVERY == 0 && !go_on(&self.counts) {
                return Verdict::Ended;
            }
            if self.machine.setup.judged.needs_last_sweep()
                && self.judged.insert(remains(self.machine.setup, &state))
            {
                self.counts.recoveries += 1;
                if let Err(failure) = self.machine.take(&mut state.clone(), Choice::Recover) {
                    return self.found(failure, self.schedule_to(number, Choice::Recover));
                }
            }
            self.machine.choices(&state, &mut choices);
            for choice in choices.iter().copied() {
                let mut next = state.clone();
                self.counts.transitions += 1;
                let taken = self.machine.take(&mut next, choice).and_then(|()| {
                    let request = self.machine.request_of(&state, choice);
                    let step = Taken { choice, request, before: &state.world, after: &next.world };
                    self.companion.follow(&memory, &step).map_err(Failure::Refused)
                });
                let memory = match taken {
                    Ok(memory) => memory,
                    Err(failure) => return self.found(failure, self.schedule_to(number, choice)),
                };
                if let Some(number) = self.meet(&next, &memory, Way { before: number, choice }) {
                    if number >= bounds.states_max {
                        return Verdict::NotDecided { states_max: bounds.states_max };
                    }
                    waiting.push_back((number, next, memory));
                }
            }
            self.counts.waiting_max = self.counts.waiting_max.max(waiting.len() as u64);
            of_this_depth -= 1;
            if of_this_depth == 0 {
                of_this_depth = waiting.len();
                self.counts.depth += u64::from(of_this_depth > 0);
            }
        }
        Verdict::Holds
    }

    /// The number of a state that was not met before.
    fn meet(&mut self, state: &Spot, memory: &C::Memory, way: Way) -> Option<u32> {
        if !self.met.insert(fingerprint(state).with(Fingerprint::of(memory))) {
            return None;
        }
        let number = u32::try_from(self.ways.len()).expect("the bound on states is one of u32");
        self.ways.push(way);
        self.counts.states += 1;
        self.counts.in_use += u64::from(state.world.in_use());
        Some(number)
    }

    /// The schedule to a state, and one more choice.
    fn schedule_to(&self, mut number: u32, last: Choice) -> Vec<Choice> {
        let mut schedule = vec![last];
        while number != 0 {
            let Way { before, choice } = self.ways[number as usize];
            schedule.push(choice);
            number = before;
        }
        schedule.reverse();
        schedule
    }

    /// Runs what was found once more and writes down what happens.
    fn found(&mut self, failure: Failure, schedule: Vec<Choice>) -> Verdict {
        self.machine.events = Some(Vec::new());
        // It ends with the same failure, so the result says nothing new.
        let _ = self.run_again(&schedule);
        let events = self.machine.events.take().unwrap_or_default();
        Verdict::Found(Box::new(Counterexample {
            failure,
            schedule,
            timeline: Timeline { events },
        }))
    }

    fn run_again(&mut self, schedule: &[Choice]) -> Result<(), Failure> {
        let mut state = self.machine.begin()?;
        for choice in schedule {
            self.machine.take(&mut state, *choice)?;
        }
        Ok(())
    }
}
