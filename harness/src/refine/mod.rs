//! Refinement: whether what runs in the world only ever does what the model allows.
//!
//! The model is written from the rules and knows nothing of the code; the world runs the code and
//! knows nothing of the rules. Here both go the same ways: at every state of a search stands the set
//! of all states that the model can be in by then, and after every step of the world the model takes
//! any number of its own, of the same process, to states in which everything that can be seen is as
//! it is in the world. If there is none, one of the two is wrong, and the way there is told.
//!
//! What can be seen is what others can find out: names and parts of claims, their locks and whose
//! they are, entries, how far owners, commands and their children are, and whether a sweep has ended.
//! What a process believes cannot be seen; it follows from what the model lets it do next. A lock of a
//! claim that was asked for is seen with its answer, so that the model's processes ask when those of
//! the world ask, and not at some other time.
//!
//! Not here: calls that fail for no reason of their own, since the model lets only probes fail; the
//! last sweep that a search runs from every state; a third claim, for which the model has no room.
//! Where somebody makes one, nothing more is asked on that way, and that is counted.

mod cast;
mod follow;
mod shown;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use mortmain::sys::Call;
use mortmain_model::explore::Machine as _;
use mortmain_model::setting::{Habits, Setting};
use mortmain_model::{Act, Actor, Model, Step};
use rustc_hash::{FxHashMap, FxHashSet};

use self::cast::{Cast, Players};
use self::follow::{Deed, Follower, States};
use self::shown::Shown;
use crate::explore::{
    Bounds, Case, Choice, Companion, Counts, Exploration, Taken, Verdict, exhaust_with,
};
use crate::judge::Judged;
use crate::simulated::subject::{Manner, Then};
use crate::world::World;
use crate::world::request::Request;

/// Most kills of a case: the model has room for three, and an owner that ends by itself takes one.
pub const KILLS_MAX: u32 = 2;
/// Most sweeps at the same time.
pub const SWEEPS_MAX: usize = mortmain_model::state::SWEEPS;

/// What came of it.
#[derive(Debug)]
pub struct Refined {
    /// What the search has shown; what it found may be a step that the model does not allow.
    pub exploration: Exploration,
    /// Steps that lie beyond what the model has room for.
    pub beyond: u64,
    /// Most states that the model could be in at one state of the world.
    pub states_max: usize,
    /// The kinds of steps that the model took along.
    pub covered: BTreeSet<Step>,
    /// Those that it could have taken within the same bounds, and never did.
    pub never: BTreeSet<Step>,
}

/// A case that the model has no room for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the model has no room for {0}")]
pub struct NoRoom(String);

/// Goes through every order of a case, with the model beside it.
///
/// # Errors
/// When the model has no room for the case.
pub fn refine(
    case: Case,
    bounds: &Bounds,
    go_on: &mut dyn FnMut(&Counts) -> bool,
) -> Result<Refined, NoRoom> {
    let model = model_of(&case)?;
    // The model alone judges: it refuses the step at which something goes wrong, or one before it.
    let setup = Case { judged: Judged::Nothing, ..case }.setup();
    let mut companion = Refinement {
        players: Players::of(&setup),
        follower: Follower::new(model),
        known: FxHashMap::default(),
        beyond: 0,
        states_max: 1,
    };
    let exploration = exhaust_with(&setup, bounds, &mut companion, go_on);
    let covered = companion.follower.covered();
    let never = match exploration.verdict {
        Verdict::Holds => possible(&model).difference(&covered).copied().collect(),
        _ => BTreeSet::new(),
    };
    let Refinement { beyond, states_max, .. } = companion;
    Ok(Refined { exploration, beyond, states_max, covered, never })
}

/// The model within the bounds of a case.
fn model_of(case: &Case) -> Result<Model, NoRoom> {
    if case.kills > KILLS_MAX {
        return Err(NoRoom(format!("{} kills: {KILLS_MAX} is the most", case.kills)));
    }
    if case.failures > 0 {
        return Err(NoRoom("calls that fail: only its probes do".into()));
    }
    if case.tricks > 0 {
        return Err(NoRoom("an adversary".into()));
    }
    if case.trees > 0 {
        return Err(NoRoom("several that are killed at the same moment".into()));
    }
    if case.strangers > 0 || case.reboots {
        return Err(NoRoom("strangers".into()));
    }
    let manner = case.manner;
    let closes = matches!(manner, Manner::ClosesAll | Manner::LeavesChild | Manner::Escapes);
    let child = matches!(manner, Manner::LeavesChild | Manner::LeavesDaemon | Manner::Escapes);
    let daemon = matches!(manner, Manner::LeavesDaemon | Manner::Escapes);
    let setting = Setting {
        sweeps: case.sweeps,
        // An owner that ends by itself without giving its claim up is to others what was killed.
        kills: case.kills as usize + usize::from(case.then == Then::Exit),
        batch: 2,
        closes: matches!(case.then, Then::Close | Then::WaitAndClose | Then::EndAndClose),
        habits: Habits { closes, child, daemon, ..Habits::default() },
        ..Setting::default()
    };
    let model = Model::new(setting).map_err(|why| NoRoom(why.to_string()))?;
    Ok(model.told_apart())
}

/// The kinds of steps that the model can take at all.
fn possible(model: &Model) -> BTreeSet<Step> {
    let mut found = BTreeSet::new();
    let first = model.pack(&model.initial());
    let mut met = FxHashSet::from_iter([first]);
    let mut waiting = vec![first];
    while let Some(key) = waiting.pop() {
        for step in model.steps(&model.unpack(&key)) {
            found.insert(kind(step.step));
            let next = model.pack(&step.next);
            if met.insert(next) {
                waiting.push(next);
            }
        }
    }
    found
}

/// A step without the number of who takes it, and of what it is about.
fn kind(step: Step) -> Step {
    let actor = match step.actor {
        Actor::Owner(_) => Actor::Owner(0),
        Actor::Command(_) => Actor::Command(0),
        Actor::Child(_) => Actor::Child(0),
        Actor::Sweep(_) => Actor::Sweep(0),
        actor => actor,
    };
    let act = match step.act {
        Act::Make(_) => Act::Make(0),
        Act::Open(_, name) => Act::Open(0, name),
        Act::Fork(_) => Act::Fork(0),
        Act::Swap(_) => Act::Swap(0),
        act => act,
    };
    Step { actor, act }
}

/// What is remembered at a state of the world.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Memory {
    cast: Arc<Cast>,
    /// `None` beyond what the model has room for.
    states: Option<States>,
}

/// A question that was answered before.
type Asked = (States, Option<Deed>, Option<bool>, Shown);

/// The model, going along.
#[derive(Debug)]
struct Refinement {
    players: Players,
    follower: Follower,
    known: FxHashMap<Asked, Option<States>>,
    beyond: u64,
    states_max: usize,
}

impl Companion for Refinement {
    type Memory = Memory;

    fn begin(&mut self, world: &World) -> Result<Memory, String> {
        let cast = Cast::default();
        let shown = Shown::of(world, &self.players, &cast)?;
        let states = self.follower.begin(&shown);
        let states = states.ok_or_else(|| format!("the model does not begin so: {shown}"))?;
        Ok(Memory { cast: Arc::new(cast), states: Some(states) })
    }

    fn follow(&mut self, memory: &Memory, step: &Taken<'_>) -> Result<Memory, String> {
        let mut memory = memory.clone();
        let Some(states) = memory.states.take() else {
            self.beyond += 1;
            return Ok(memory);
        };
        if !Arc::make_mut(&mut memory.cast).meet(&self.players, step.after)? {
            self.beyond += 1;
            return Ok(memory);
        }
        let shown = Shown::of(step.after, &self.players, &memory.cast)?;
        let deed = self.deed(&memory.cast, step);
        let lock = self.lock(&memory.cast, step);
        let asked = (states, deed, lock, shown);
        let next = match self.known.get(&asked) {
            Some(known) => known.clone(),
            None => {
                let (states, deed, lock, shown) = &asked;
                let next = self.follower.follow(states, *deed, *lock, shown);
                self.known.insert(asked.clone(), next.clone());
                next
            }
        };
        let next = next.ok_or_else(|| {
            let (states, _, _, shown) = asked;
            format!(
                "the model allows no such step: from none of the {} states that it may be in by \
                 then does anything lead to what is seen after it: {shown}",
                states.len()
            )
        })?;
        self.states_max = self.states_max.max(next.len());
        memory.states = Some(next);
        Ok(memory)
    }
}

impl Refinement {
    /// Who did what, as far as the model has a name for who it was.
    fn deed(&self, cast: &Cast, step: &Taken<'_>) -> Option<Deed> {
        match step.choice {
            Choice::Kill(pid) => Some(Deed::Killed(cast.actor(&self.players, pid)?)),
            Choice::Step(pid) | Choice::Fail { pid, .. } | Choice::Order { pid, .. } => {
                let actor = cast.actor(&self.players, pid)?;
                Some(match step.request? {
                    Request::Exit { .. } => Deed::Ends(actor),
                    Request::Call(Call::KillGroup { .. }) => Deed::EndsOthers(actor),
                    _ => Deed::Acts(actor),
                })
            }
            Choice::KillTree(_)
            | Choice::Stranger(_)
            | Choice::Trick { .. }
            | Choice::Wait
            | Choice::Recover => None,
        }
    }

    /// The answer to whoever asked for the lock of a claim.
    fn lock(&self, cast: &Cast, step: &Taken<'_>) -> Option<bool> {
        let (Choice::Step(pid), Some(Request::Call(Call::Lock { fd }))) =
            (step.choice, step.request)
        else {
            return None;
        };
        let (file, inode) = step.before.behind(pid, *fd)?;
        cast.is_dir(inode)
            .then(|| step.after.holder(inode).is_some_and(|holder| holder.file == file))
    }
}

impl fmt::Display for Refined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { states, transitions, .. } = self.exploration.counts;
        write!(f, "{states} states, {transitions} transitions")?;
        write!(f, ", at most {} of the model beside one of them", self.states_max)?;
        if self.exploration.verdict == Verdict::Holds {
            let (taken, never) = (self.covered.len(), self.never.len());
            write!(f, "; {taken} of {} kinds of its steps were taken", taken + never)?;
        }
        if self.beyond > 0 {
            write!(f, "; {} transitions lie beyond its bounds", self.beyond)?;
        }
        Ok(())
    }
}
