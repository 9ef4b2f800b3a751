//! The way to a state, found again: no state remembers where it came from.
//!
//! Each piece of states that was looked at knows how long every shard was afterwards. So the
//! piece that led to a state first is the first one after which its shard was long enough; and
//! in that piece it was the first state with a step to it.

use super::search::Running;
use super::{Key, Machine};

impl<M: Machine> Running<'_, M> {
    /// The states from the initial one to this one.
    pub(super) fn path(&self, shard: usize, at: usize) -> Vec<Key> {
        let mut path = vec![self.shards[shard].key(at)];
        let (mut shard, mut at) = (shard, at);
        while let Some(before) = self.before(shard, at) {
            (shard, at) = before;
            path.push(self.shards[shard].key(at));
        }
        path.reverse();
        path
    }

    /// Where the state came from that came to it first; `None` for the initial one.
    ///
    /// # Panics
    ///
    /// If the machine does not do the same twice.
    fn before(&self, shard: usize, at: usize) -> Option<(usize, usize)> {
        let wanted = self.shards[shard].key(at);
        if wanted == self.machine.pack(&self.machine.initial()) {
            return None;
        }
        let piece = self.pieces.partition_point(|piece| piece.lengths[shard] as usize <= at);
        let piece = &self.pieces[piece];
        let from = &self.shards[piece.shard as usize];
        let leads_there = |at: &u32| {
            let state = self.machine.unpack(&from.key(*at as usize));
            let mut leads = false;
            self.machine.successors(&state, &mut |next| {
                leads |= self.machine.pack(next.state) == wanted;
            });
            leads
        };
        let at = (piece.start..piece.end).find(leads_there);
        let at = at.expect("the machine does the same with the same state");
        Some((piece.shard as usize, at as usize))
    }
}
