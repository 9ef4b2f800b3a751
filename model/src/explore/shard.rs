//! A shard: the states that fall to one hash, in the order in which they were found.

use super::arena::Arena;
use super::{Key, SHARED_WORDS};

/// How many shards there are. More make the tables of each fit a cache, fewer make the work for
/// each worth a worker.
pub(super) const SHARDS: usize = 64;

/// A hash that is the same on every machine and in every run.
#[inline]
pub(super) fn hash(words: &[u64]) -> u64 {
    let mut hash = 0_u64;
    for word in words {
        hash = mix(hash ^ word);
    }
    hash
}

/// Spreads every bit over all: two folded multiplications.
#[inline]
fn mix(word: u64) -> u64 {
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        (product as u64) ^ ((product >> 64) as u64)
    };
    fold(word ^ 0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93)
}

/// The shard that a hash falls to.
#[inline]
pub(super) fn shard_of(hash: u64) -> usize {
    // OK because it is below 64.
    (hash >> 58) as usize
}

/// States of a shard at most: numbers have 24 bits, and a block may still bring some.
pub(super) const STATES_MAX: usize = (1 << 24) - (1 << 20);

/// The bits of a slot that are a number; the others are bits of the hash, so that few states are
/// compared with one that they are not.
const NUMBER: u32 = (1 << 24) - 1;

/// Numbers by a hash: open addressing, at most 80 % full. A slot holds one more than a number;
/// zero is empty.
#[derive(Default)]
struct Table {
    slots: Arena<u32>,
    used: usize,
}

impl Table {
    /// The slot in which to begin: any number of slots will do.
    #[inline]
    fn slot(&self, hash: u64) -> usize {
        let low = u128::from(hash << 6);
        // OK because it is below the number of slots.
        ((low * self.slots.len() as u128) >> 64) as usize
    }

    /// What a number has in a slot.
    #[inline]
    fn entry(hash: u64, number: u32) -> u32 {
        // OK because these are the lowest eight bits, which decide no slot.
        (hash as u32) << 24 | (number + 1)
    }

    /// The number that `is` says yes to; or `new` is put in, and `None` returned.
    #[inline]
    fn find_or_put(&mut self, hash: u64, new: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = self.slot(hash);
        let new = Table::entry(hash, new);
        loop {
            let entry = self.slots.get(at);
            if entry == 0 {
                self.slots.set(at, new);
                self.used += 1;
                return None;
            }
            let is_like = (entry ^ new) & !NUMBER == 0;
            if is_like && is((entry & NUMBER) - 1) {
                return Some((entry & NUMBER) - 1);
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
    }

    /// Makes room for one more. `hash_of` tells the hash of a number that is in it.
    #[inline]
    fn reserve(&mut self, hash_of: impl Fn(u32) -> u64) {
        if (self.used + 1) * 5 > self.slots.len() * 4 {
            self.grow(hash_of);
        }
    }

    #[cold]
    fn grow(&mut self, hash_of: impl Fn(u32) -> u64) {
        let size = (self.slots.len() * 4 / 3).max(1024);
        self.slots = Arena::of_defaults(size);
        // The numbers in it are those below `used`.
        let numbers = 0..self.used;
        self.used = 0;
        for number in numbers {
            // OK because a number has 24 bits.
            let number = number as u32;
            self.find_or_put(hash_of(number), number, |_| false);
        }
    }
}

/// The states of a shard.
#[derive(Default)]
pub(super) struct Shard {
    shared: Arena<[u64; SHARED_WORDS]>,
    shared_table: Table,
    /// The number of the shared part, and the own part.
    states: Arena<u64>,
    table: Table,
}

impl Shard {
    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// The state of this number.
    #[inline]
    pub(super) fn key(&self, at: usize) -> Key {
        let state = self.states.get(at);
        // OK because these are the two halves.
        Key { shared: self.shared.get((state >> 32) as usize), own: state as u32 }
    }

    /// Puts a state in that is not there, with the hash of its shared part.
    ///
    /// # Panics
    ///
    /// If the shard has so many states that their numbers do not fit: see [`STATES_MAX`].
    #[inline]
    pub(super) fn put(&mut self, hash: u64, key: &Key) {
        let state = u64::from(self.shared_number(hash, key)) << 32 | u64::from(key.own);
        let (states, table) = (&self.states, &mut self.table);
        table.reserve(|number| mix(states.get(number as usize)));
        let new = number(states.len());
        let is = |number: u32| states.get(number as usize) == state;
        if table.find_or_put(mix(state), new, is).is_none() {
            self.states.push(state);
        }
    }

    /// The number of a shared part, which it gets if it has none.
    #[inline]
    fn shared_number(&mut self, hash: u64, key: &Key) -> u32 {
        let (shared, table) = (&self.shared, &mut self.shared_table);
        table.reserve(|number| super::shard::hash(&shared.get(number as usize)));
        let new = number(shared.len());
        let found =
            table.find_or_put(hash, new, |number| shared.get(number as usize) == key.shared);
        if found.is_none() {
            self.shared.push(key.shared);
        }
        found.unwrap_or(new)
    }

    pub(super) fn bytes(&self) -> usize {
        self.shared.bytes()
            + self.states.bytes()
            + self.shared_table.slots.bytes()
            + self.table.slots.bytes()
    }
}

fn number(len: usize) -> u32 {
    assert!(len < NUMBER as usize, "a shard has no numbers left");
    // OK because it is below 2^24.
    len as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_is_there_once_and_in_order() {
        let mut shard = Shard::default();
        let key = |n: u64| Key { shared: [n / 7, 1], own: (n % 7) as u32 };
        for round in 0..2 {
            for n in 0..5000 {
                let key = key(n);
                shard.put(hash(&key.shared), &key);
                assert_eq!(shard.len(), if round == 0 { n as usize + 1 } else { 5000 });
            }
        }
        for n in 0..5000 {
            assert_eq!(shard.key(n as usize), key(n));
        }
        assert!(shard.table.used * 5 <= shard.table.slots.len() * 4, "too full");
        assert_eq!(shard.shared.len(), 715);
    }

    #[test]
    fn states_are_spread_over_all_shards() {
        let mut count = [0; SHARDS];
        for n in 0..64_000_u64 {
            count[shard_of(hash(&[n, 0]))] += 1;
        }
        assert!(count.iter().all(|n| (800..1200).contains(n)), "{count:?}");
    }
}
