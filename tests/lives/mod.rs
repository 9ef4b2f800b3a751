//! What befalls a root in one life after another, and what the model makes of it.
//!
//! The reference knows who lives, and nothing else. What a sweep has to do with a claim it asks the
//! model's table of the three proofs; so does a close. The same lives are led in the world and on the
//! real kernel ([`Place`]).
//!
//! It is coarse on purpose: each thing is over before the next begins, but for what breaks off. Every
//! order of steps is the matter of the explorers; this goes on for long, with many claims in one root.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::ops::Range;

use mortmain::sys::PathBytes;
use mortmain_model::proof::{Answer, Proofs, Verdict};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

/// What lives are drawn from.
const SEED: u64 = 7;
/// Owners in the life of a root at most.
pub(crate) const OWNERS_MAX: usize = 8;
/// Commands of an owner at most.
pub(crate) const COMMANDS_MAX: usize = 2;
/// More calls than making a claim takes.
const CALLS_OF_A_CREATOR: u32 = 60;
/// More calls than sweeping some claims takes.
const CALLS_OF_A_SWEEP: u32 = 300;

/// What happens next.
#[derive(Clone, Debug)]
pub(crate) enum Happens {
    /// Somebody makes a claim, starts commands in it, and gives it up or not.
    Begins {
        /// How many commands.
        commands: usize,
        /// Whether it is given up at once.
        closes: bool,
    },
    /// An owner that has not given up is killed.
    OwnerIsKilled(usize),
    /// A command of an owner is killed.
    CommandIsKilled(usize, usize),
    /// Somebody is killed who makes a claim and has made so many calls.
    CreatorIsKilled(u32),
    /// Somebody sweeps.
    Sweeps,
    /// Somebody is killed who sweeps and has made so many calls.
    SweeperIsKilled(u32),
}

/// An owner, with its claim.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    /// Whether it lives and has not given the claim up.
    holds: bool,
    /// Whether they live.
    commands: Vec<bool>,
    /// Whether there has to be a claim.
    stands: bool,
}

impl Owner {
    fn verdict(&self) -> Verdict {
        let answer = |lives: bool| if lives { Answer::Alive } else { Answer::Gone };
        let commands = answer(self.commands.contains(&true));
        Proofs { lease: answer(self.holds), owner: answer(self.holds), commands }.verdict()
    }

    fn may_go(&self) -> bool {
        self.verdict() == Verdict::GoOn
    }
}

/// The reference.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lives {
    owners: Vec<Owner>,
    /// Whether creators that were killed may have left something.
    litter: bool,
}

impl ReferenceStateMachine for Lives {
    type State = Lives;
    type Transition = Happens;

    fn init_state() -> BoxedStrategy<Lives> {
        Just(Lives::default()).boxed()
    }

    fn transitions(lives: &Lives) -> BoxedStrategy<Happens> {
        let mut all = vec![
            (2, Just(Happens::Sweeps).boxed()),
            (1, (0..CALLS_OF_A_CREATOR).prop_map(Happens::CreatorIsKilled).boxed()),
            (1, (0..CALLS_OF_A_SWEEP).prop_map(Happens::SweeperIsKilled).boxed()),
        ];
        if lives.owners.len() < OWNERS_MAX {
            let begins = (0..=COMMANDS_MAX, prop::bool::weighted(0.3));
            let begins = begins.prop_map(|(commands, closes)| Happens::Begins { commands, closes });
            all.push((3, begins.boxed()));
        }
        for (at, owner) in lives.owners.iter().enumerate() {
            if owner.holds {
                all.push((1, Just(Happens::OwnerIsKilled(at)).boxed()));
            }
            let living = owner.commands.iter().enumerate().filter(|(_, lives)| **lives);
            let killed =
                living.map(|(nth, _)| (1, Just(Happens::CommandIsKilled(at, nth)).boxed()));
            all.extend(killed);
        }
        prop::strategy::Union::new_weighted(all).boxed()
    }

    /// Also of what is left of a life that is made shorter.
    fn preconditions(lives: &Lives, happens: &Happens) -> bool {
        match happens {
            Happens::Begins { .. } => lives.owners.len() < OWNERS_MAX,
            Happens::OwnerIsKilled(at) => lives.owners.get(*at).is_some_and(|owner| owner.holds),
            Happens::CommandIsKilled(at, nth) => {
                let owner = lives.owners.get(*at);
                owner.is_some_and(|owner| owner.commands.get(*nth) == Some(&true))
            }
            Happens::CreatorIsKilled(_) | Happens::Sweeps | Happens::SweeperIsKilled(_) => true,
        }
    }

    fn apply(mut lives: Lives, happens: &Happens) -> Lives {
        match happens {
            Happens::Begins { commands, closes } => {
                let (holds, commands) = (!closes, vec![true; *commands]);
                let mut owner = Owner { holds, commands, stands: true };
                owner.stands = !owner.may_go();
                lives.owners.push(owner);
            }
            Happens::OwnerIsKilled(at) => lives.owners[*at].holds = false,
            Happens::CommandIsKilled(at, nth) => lives.owners[*at].commands[*nth] = false,
            Happens::CreatorIsKilled(_) => lives.litter = true,
            Happens::Sweeps => {
                lives.litter = false;
                for owner in &mut lives.owners {
                    owner.stands &= !owner.may_go();
                }
            }
            Happens::SweeperIsKilled(_) => {}
        }
        lives
    }
}

/// Where lives are led.
pub(crate) trait Place {
    /// An empty root.
    fn fresh() -> Self;

    /// Makes it happen; answers whether a kill has broken something off.
    fn happen(&mut self, happens: &Happens) -> bool;

    /// Where the claims of all owners were made, in the order of their beginning.
    fn claims(&self) -> Vec<PathBytes>;

    /// What lies in the root.
    fn look(&self) -> BTreeSet<PathBytes>;
}

/// What happened in lives that went as the model has it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Seen {
    /// Claims that a sweep had to remove.
    pub(crate) removed: u32,
    /// Claims that a sweep had to keep, by the model's words for why.
    pub(crate) kept: BTreeMap<String, u32>,
}

impl Seen {
    fn note(&mut self, all: &[Happens]) {
        let mut lives = Lives::default();
        for happens in all {
            let standing = lives.owners.iter().filter(|owner| owner.stands);
            for owner in standing.filter(|_| matches!(happens, Happens::Sweeps)) {
                match owner.verdict() {
                    Verdict::GoOn => self.removed += 1,
                    keep => *self.kept.entry(keep.to_string()).or_default() += 1,
                }
            }
            lives = Lives::apply(lives, happens);
        }
    }
}

thread_local! {
    /// How many creators and sweepers were killed in the middle of what they did.
    static BROKEN_OFF: RefCell<[u32; 2]> = const { RefCell::new([0, 0]) };
}

/// Draws so many lives with so many things in each, leads them in a place, and tells what there was, or
/// the first life that goes otherwise than the model has it, made short.
pub(crate) fn lead<P: Place>(
    cases: u32,
    length: Range<usize>,
) -> Result<Seen, (Vec<Happens>, String)> {
    let rng_seed = RngSeed::Fixed(SEED);
    let config = Config { cases, rng_seed, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config.clone());
    let noted = RefCell::new(Seen::default());
    let led = runner.run(&Lives::sequential_strategy(length), |(first, happens, seen)| {
        noted.borrow_mut().note(&happens);
        Led::<P>::test_sequential(config.clone(), first, happens, seen);
        Ok(())
    });
    match led {
        Ok(()) => Ok(noted.into_inner()),
        Err(TestError::Fail(why, (_, happens, _))) => Err((happens, why.to_string())),
        Err(TestError::Abort(why)) => panic!("no lives can be drawn: {why}"),
    }
}

/// Leads the lives of the reference in a place, and asserts that each kind of verdict was at stake.
#[track_caller]
pub(crate) fn check<P: Place>(cases: u32, length: Range<usize>) {
    match lead::<P>(cases, length) {
        Err((happens, why)) => panic!("seed {SEED}: {why}\n{happens:#?}"),
        Ok(seen) => {
            let kept: Vec<&str> = seen.kept.keys().map(String::as_str).collect();
            assert_eq!(kept, ["keep: l1, the lease: alive", "keep: l3, the commands: alive"]);
            assert!(seen.removed > 0, "{seen:?}");
            let [creators, sweepers] = BROKEN_OFF.take();
            assert!(creators > 0 && sweepers > 0, "{creators} and {sweepers} were broken off");
        }
    }
}

/// Leads the lives of the reference in a place.
struct Led<P>(PhantomData<P>);

impl<P: Place> StateMachineTest for Led<P> {
    type SystemUnderTest = P;
    type Reference = Lives;

    fn init_test(_: &Lives) -> P {
        P::fresh()
    }

    fn apply(mut place: P, _: &Lives, happens: Happens) -> P {
        let broken_off = place.happen(&happens);
        BROKEN_OFF.with_borrow_mut(|[creators, sweepers]| match happens {
            Happens::CreatorIsKilled(_) => *creators += u32::from(broken_off),
            Happens::SweeperIsKilled(_) => *sweepers += u32::from(broken_off),
            _ => {}
        });
        place
    }

    fn check_invariants(place: &P, lives: &Lives) {
        let mut others = place.look();
        let claims = place.claims().into_iter().enumerate();
        let claims: BTreeSet<usize> =
            claims.filter(|(_, claim)| others.remove(claim)).map(|(at, _)| at).collect();
        for (at, owner) in lives.owners.iter().enumerate() {
            let verdict = owner.verdict();
            match (owner.stands, claims.contains(&at)) {
                (true, false) if owner.may_go() => {} // A sweeper that was killed came so far.
                (true, false) => {
                    panic!("the claim of owner {at} is gone, and the model: {verdict}")
                }
                (false, true) => {
                    panic!("the claim of owner {at} is there, and the model: {verdict}")
                }
                (true, true) | (false, false) => {}
            }
        }
        assert!(
            others.is_empty()
                || lives.litter
                || lives.owners.iter().any(|owner| {
                    // Half-removed, it has another name.
                    owner.stands && owner.may_go()
                }),
            "{others:?} is left and belongs to nobody: {lives:?}"
        );
    }
}
