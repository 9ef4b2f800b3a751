//! Where the model can be after a step of the world.

use std::collections::BTreeSet;
use std::sync::Arc;

use mortmain_model::explore::{Key, Machine as _};
use mortmain_model::{Act, Actor, Model, Step};
use rustc_hash::{FxHashMap, FxHashSet};

use super::kind;
use super::shown::Shown;

/// States of the model, in order.
pub(super) type States = Arc<[Key]>;

/// What somebody did, as far as it says which steps of the model it can be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Deed {
    /// Made a call.
    Acts(Actor),
    /// Made a call that ends others.
    EndsOthers(Actor),
    /// Ended by itself.
    Ends(Actor),
    /// Was killed.
    Killed(Actor),
}

impl Deed {
    /// Whether a step of the model can be a part of it.
    fn allows(self, step: Step) -> bool {
        let is_end = matches!(step.act, Act::Killed | Act::End);
        match self {
            Deed::Acts(actor) => step.actor == actor && step.act != Act::Killed,
            Deed::EndsOthers(actor) => {
                let other = matches!(step.actor, Actor::Command(_) | Actor::Child(_));
                step.actor == actor && step.act != Act::Killed || other && is_end
            }
            // To who asks later, a sweep that ends by itself has come to its end.
            Deed::Ends(actor @ Actor::Sweep(_)) => step.actor == actor && step.act != Act::Killed,
            Deed::Ends(actor) => step.actor == actor,
            Deed::Killed(actor) => step.actor == actor && is_end,
        }
    }
}

/// A state on the way to another, and whether a lock was asked for on it.
type Place = (Key, bool);

/// The model, with what it has learnt of itself.
#[derive(Debug)]
pub(super) struct Follower {
    model: Model,
    /// The steps from a state.
    steps: FxHashMap<Key, Arc<[(Step, Key)]>>,
    covered: FxHashSet<Step>,
}

impl Follower {
    pub(super) fn new(model: Model) -> Follower {
        Follower { model, steps: FxHashMap::default(), covered: FxHashSet::default() }
    }

    /// The kinds of steps that it took.
    pub(super) fn covered(&self) -> BTreeSet<Step> {
        self.covered.iter().copied().collect()
    }

    /// The states in which it begins, if it begins so.
    pub(super) fn begin(&self, shown: &Shown) -> Option<States> {
        let initial = self.model.initial();
        shown.is_of(&initial).then(|| Arc::from([self.model.pack(&initial)]))
    }

    fn steps(&mut self, key: Key) -> Arc<[(Step, Key)]> {
        if let Some(steps) = self.steps.get(&key) {
            return steps.clone();
        }
        let steps = self.model.steps(&self.model.unpack(&key));
        let steps: Arc<[_]> =
            steps.into_iter().map(|step| (step.step, self.model.pack(&step.next))).collect();
        self.steps.insert(key, steps.clone());
        steps
    }

    /// Every state that steps of the deed lead to, none included, and that shows what is seen. `lock`
    /// is the answer to whoever asked for the lock of a claim: the model asks just then, with the same
    /// answer. `None` if there is no such state.
    pub(super) fn follow(
        &mut self,
        from: &States,
        deed: Option<Deed>,
        lock: Option<bool>,
        shown: &Shown,
    ) -> Option<States> {
        let mut ways: FxHashMap<Place, Option<(Place, Step)>> = FxHashMap::default();
        let mut waiting: Vec<Place> = from.iter().map(|key| (*key, false)).collect();
        ways.extend(waiting.iter().map(|place| (*place, None)));
        let mut found = BTreeSet::new();
        while let Some(place @ (key, asked)) = waiting.pop() {
            if asked == lock.is_some() && shown.is_of(&self.model.unpack(&key)) {
                found.insert(key);
                self.cover(&ways, place);
            }
            for (step, next) in self.steps(key).iter() {
                let asks = match step.act {
                    Act::Lock(granted) if asked || lock != Some(granted) => continue,
                    Act::Lock(_) => true,
                    _ => asked,
                };
                // Who has ended is reaped at any time.
                let reaped = step.act == Act::Reaped;
                if !reaped && !deed.is_some_and(|deed| deed.allows(*step)) {
                    continue;
                }
                ways.entry((*next, asks)).or_insert_with(|| {
                    waiting.push((*next, asks));
                    Some((place, *step))
                });
            }
        }
        (!found.is_empty()).then(|| found.into_iter().collect())
    }

    /// Counts the steps on the way to a place.
    fn cover(&mut self, ways: &FxHashMap<Place, Option<(Place, Step)>>, mut place: Place) {
        while let Some(Some((before, step))) = ways.get(&place) {
            self.covered.insert(kind(*step));
            place = *before;
        }
    }
}
