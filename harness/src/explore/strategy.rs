//! How a run on live processes goes on: who is next, and when a fault strikes.
//!
//! * *random*: each time anybody, all alike;
//! * *sticky*: seven times of eight whoever went last, so that one process comes far while the others
//!   stand still;
//! * *PCT* (probabilistic concurrency testing, Burckhardt et al., ASPLOS 2010): a random order of
//!   precedence, in which whoever runs falls behind everybody at d − 1 random moments. What takes d
//!   moments in order is met by one run with a probability of 1/(n·(2k)^(d−1)) or more, with n
//!   processes and k steps; the factor of two is for how moments are drawn here. Kills come on top.
//!
//! What a [`Budget`] allows is put at random moments, and so is the end of half of the runs: a
//! fault that is only drawn for when it could strike comes nearly always early. Half of the moments lie
//! within the length of a run that nothing disturbs, half within that of the longest: what happens after
//! a fault makes runs longer, and a second one may have to come there.
//!
//! Invariant: everything is drawn from one generator, which is a function of seed and iteration.

use mortmain::sys::Pid;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xorshift::XorShiftRng;

use super::budget::Budget;
use super::choice::Choice;
use crate::world::Fingerprint;

/// Who goes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// Anybody.
    Random,
    /// Mostly whoever went last.
    Sticky,
    /// By precedence.
    Pct {
        /// The number of moments that a fault takes, d.
        depth: u32,
    },
}

/// One of so many times a sticky schedule goes on with anybody.
const ANYBODY_EACH: u64 = 8;

/// What tells a kind of fault, and how many of it a budget has.
type Kind = (fn(&Choice) -> bool, fn(Budget) -> u32);

/// All kinds.
const FAULTS: [Kind; 7] = [
    (|choice| matches!(choice, Choice::Kill(_)), |budget| budget.kills),
    (|choice| matches!(choice, Choice::Wait), |budget| budget.waits),
    (|choice| matches!(choice, Choice::Fail { .. }), |budget| budget.failures),
    (|choice| matches!(choice, Choice::Trick { .. }), |budget| budget.tricks),
    (|choice| matches!(choice, Choice::KillTree(_)), |budget| budget.trees),
    (|choice| matches!(choice, Choice::Stranger(_)), |budget| budget.strangers),
    (|choice| matches!(choice, Choice::Order { .. }), |budget| budget.orders),
];

/// The moments of the faults of one run, each sorted, as numbers of choices.
#[derive(Debug, Default)]
struct Moments {
    /// Of each kind of [`FAULTS`].
    faults: [Vec<u32>; FAULTS.len()],
    changes: Vec<u32>,
    /// When everybody is killed; at the end, if nothing else is said.
    end: Option<u32>,
}

/// How many choices runs take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    /// When nothing disturbs them.
    pub(super) undisturbed: u32,
    /// At most.
    pub(super) longest: u32,
}

/// Draws the choices of one run.
#[derive(Debug)]
pub(super) struct Scheduler {
    rng: XorShiftRng,
    strategy: Strategy,
    moments: Moments,
    /// How many choices were drawn.
    at: u32,
    last: Option<Pid>,
    /// Who was seen, and how much each precedes others.
    precedence: Vec<(Pid, u64)>,
}

impl Scheduler {
    /// The one of an iteration, with so many faults in runs that are so long.
    pub(super) fn new(
        budget: Budget,
        strategy: Strategy,
        (seed, iteration): (u64, u64),
        lengths: Lengths,
    ) -> Scheduler {
        let print = Fingerprint::of(&(seed, iteration));
        let mut scheduler = Scheduler {
            rng: XorShiftRng::from_seed(print.0.to_le_bytes()),
            strategy,
            moments: Moments::default(),
            at: 0,
            last: None,
            precedence: Vec::new(),
        };
        let changes = match strategy {
            Strategy::Pct { depth } => depth.saturating_sub(1),
            Strategy::Random | Strategy::Sticky => 0,
        };
        scheduler.moments = Moments {
            faults: FAULTS.map(|(_, count)| scheduler.some_moments(count(budget), lengths)),
            changes: scheduler.moments(changes, lengths),
            end: if scheduler.below(2) == 0 { Some(scheduler.moment(lengths)) } else { None },
        };
        scheduler
    }

    /// The same, but it goes on for as long as anybody does.
    pub(super) fn without_an_end(mut self) -> Scheduler {
        self.moments.end = None;
        self
    }

    /// A number below a bound, as good as evenly: bounds here are small.
    fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.rng.next_u64()) * u128::from(bound);
        // OK because the upper half of the product is below the bound.
        (product >> 64) as u64
    }

    fn moment(&mut self, lengths: Lengths) -> u32 {
        let within_longest = self.below(2) == 0;
        let length = if within_longest { lengths.longest } else { lengths.undisturbed };
        // OK because it is below a number of 32 bits.
        self.below(length.max(1).into()) as u32
    }

    fn moments(&mut self, count: u32, lengths: Lengths) -> Vec<u32> {
        let mut moments: Vec<u32> = (0..count).map(|_| self.moment(lengths)).collect();
        moments.sort_unstable();
        moments
    }

    /// The moments of at most so many faults: one in four strikes nobody, so that less than all of
    /// them is tried as well.
    fn some_moments(&mut self, count: u32, lengths: Lengths) -> Vec<u32> {
        let strike = (0..count).filter(|_| self.below(4) > 0).count();
        // OK because it is not more than `count`.
        self.moments(strike as u32, lengths)
    }

    /// The next choice, of those that are possible, steps first.
    pub(super) fn next(&mut self, choices: &[Choice]) -> Choice {
        let at = self.at;
        self.at += 1;
        // They stand before everything else.
        let steps = choices.iter().take_while(|choice| matches!(choice, Choice::Step(_))).count();
        let steps = &choices[..steps];
        if steps.is_empty() || self.moments.end.is_some_and(|end| end <= at) {
            return Choice::Recover;
        }
        for (fault, (is_one, _)) in FAULTS.into_iter().enumerate() {
            if self.moments.faults[fault].first().is_none_or(|moment| *moment > at) {
                continue;
            }
            let those = || choices.iter().filter(|choice| is_one(choice));
            let nth = self.below(those().count() as u64);
            if let Some(choice) = those().nth(nth as usize) {
                self.moments.faults[fault].remove(0);
                return *choice;
            }
        }
        let pid = self.next_process(at, steps);
        self.last = Some(pid);
        Choice::Step(pid)
    }

    fn next_process(&mut self, at: u32, steps: &[Choice]) -> Pid {
        match self.strategy {
            Strategy::Random => self.anybody(steps),
            Strategy::Sticky => {
                let last = self.last.filter(|last| steps.contains(&Choice::Step(*last)));
                match last {
                    Some(last) if self.below(ANYBODY_EACH) > 0 => last,
                    _ => self.anybody(steps),
                }
            }
            Strategy::Pct { .. } => self.first_of(at, steps),
        }
    }

    fn anybody(&mut self, steps: &[Choice]) -> Pid {
        let at = self.below(steps.len() as u64);
        match steps.get(at as usize) {
            Some(Choice::Step(pid)) => *pid,
            _ => unreachable!("there are steps, and nothing else among them"),
        }
    }

    /// Whoever precedes all others who can make a step. At a moment of change that one falls behind.
    fn first_of(&mut self, at: u32, steps: &[Choice]) -> Pid {
        let mut able = Vec::new();
        for step in steps {
            let Choice::Step(pid) = *step else { continue };
            let known = self.precedence.iter().position(|(known, _)| *known == pid);
            let known = known.unwrap_or_else(|| {
                // The upper half, so that everybody who fell behind is behind.
                let fresh = self.rng.next_u64() | 1 << 63;
                self.precedence.push((pid, fresh));
                self.precedence.len() - 1
            });
            able.push(known);
        }
        let first = |precedence: &[(Pid, u64)]| {
            let first = able.iter().copied().max_by_key(|at| precedence[*at].1);
            first.unwrap_or_else(|| unreachable!("there are steps"))
        };
        let falls = self.moments.changes.first().is_some_and(|moment| *moment <= at);
        if falls {
            self.moments.changes.remove(0);
            let runs = first(&self.precedence);
            // Each is behind those that fell before it.
            self.precedence[runs].1 = self.moments.changes.len() as u64;
        }
        self.precedence[first(&self.precedence)].0
    }
}
