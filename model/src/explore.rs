//! An exhaustive search, breadth first: every state that can be reached, each once.
//!
//! * **Exact.** A state is never taken for another: what is kept is the state, not a hash of it.
//! * **Compact.** A state has a part that few states differ in and a small one that they do
//!   differ in ([`Key`]). The first is kept once and has a number; a state is eight bytes, and a
//!   slot of a table of four bytes, 60 to 80 % full.
//! * **Shortest.** What is found is found with the fewest steps. The way to it needs no memory
//!   in each state: of every thousand states that were looked at it is known which new ones they
//!   led to, so one step back is a thousand looks.
//! * **The same at any number of workers.** States are spread over shards by a hash. Workers
//!   make the successors of a piece of a level, sorted by shard, then fill one shard each,
//!   piece after piece in order. Which worker did what leaves no trace, so neither counts nor
//!   counterexamples depend on it.
//!
//! Nothing here knows what is searched: [`Machine`] says it.

mod arena;
mod parallel;
mod search;
mod shard;
#[cfg(test)]
mod tests;
mod trace;

pub use self::search::{Counts, Found, Limits, Outcome, Search, explore};

/// Words of the part of a state that is kept once.
pub const SHARED_WORDS: usize = 2;

/// A state as it is kept.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    /// What many states have in common.
    pub shared: [u64; SHARED_WORDS],
    /// What they differ in.
    pub own: u32,
}

/// A state that can be next.
#[derive(Clone, Copy, Debug)]
pub struct Next<'s, S, B> {
    /// The state.
    pub state: &'s S,
    /// What the step to it breaks.
    pub broken: Option<B>,
    /// Bits that the search collects.
    pub bits: u32,
}

/// What can be searched: a pure function from states to what can be next.
pub trait Machine: Sync {
    /// A state.
    type State: Copy;
    /// What is wrong with a state or a step.
    type Broken: Copy + Send + Sync;
    /// What [`Machine::judge`] remembers from one state to the next; it must not change answers.
    type Memo: Default + Send;

    /// Where it begins.
    fn initial(&self) -> Self::State;

    /// The state as it is kept. States that are alike for every purpose may have one key.
    fn pack(&self, state: &Self::State) -> Key;

    /// A state with that key.
    fn unpack(&self, key: &Key) -> Self::State;

    /// Tells every state that can be next, always in the same order.
    fn successors(
        &self,
        state: &Self::State,
        tell: &mut impl FnMut(Next<'_, Self::State, Self::Broken>),
    );

    /// What is wrong with a state, which has this key.
    fn judge(&self, key: &Key, state: &Self::State, memo: &mut Self::Memo) -> Option<Self::Broken>;
}

/// A hash that is the same in every run.
pub(crate) fn hash_of(shared: &[u64; SHARED_WORDS]) -> u64 {
    shard::hash(shared)
}
