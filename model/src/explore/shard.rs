//! A shard: the states that fall to one hash, in the order in which they were found.

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

/// Numbers by a hash: open addressing, at most 80 % full. Zero is an empty slot.
#[derive(Default)]
struct Table {
    slots: Vec<u32>,
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

    /// The number that `is` says yes to; or `new` is put in, and `None` returned.
    #[inline]
    fn find_or_put(&mut self, hash: u64, new: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = self.slot(hash);
        loop {
            match self.slots[at] {
                0 => {
                    self.slots[at] = new + 1;
                    self.used += 1;
                    return None;
                }
                number if is(number - 1) => return Some(number - 1),
                _ => at = if at + 1 == self.slots.len() { 0 } else { at + 1 },
            }
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
        let size = (self.slots.len() * 3 / 2).max(64);
        let old = std::mem::replace(&mut self.slots, vec![0; size]);
        self.used = 0;
        for number in old.into_iter().filter(|number| *number != 0) {
            self.find_or_put(hash_of(number - 1), number - 1, |_| false);
        }
    }

    fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }
}

/// A list that grows by a quarter, so that little of it is empty.
fn push<T>(list: &mut Vec<T>, value: T) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 4).max(16));
    }
    list.push(value);
}

/// The states of a shard.
#[derive(Default)]
pub(super) struct Shard {
    shared: Vec<[u64; SHARED_WORDS]>,
    shared_table: Table,
    /// The number of the shared part, and the own part.
    states: Vec<u64>,
    table: Table,
}

impl Shard {
    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// The state of this number.
    #[inline]
    pub(super) fn key(&self, at: usize) -> Key {
        let state = self.states[at];
        // OK because these are the two halves.
        Key { shared: self.shared[(state >> 32) as usize], own: state as u32 }
    }

    /// Puts a state in, whose shared part has this hash, if it is not there.
    ///
    /// # Panics
    ///
    /// If there are four thousand million states in the shard, which no memory limit allows.
    pub(super) fn put(&mut self, hash: u64, key: &Key) {
        let number = |len: usize| u32::try_from(len).expect("a shard of fewer than 2^32 states");
        let (shared, table) = (&self.shared, &mut self.shared_table);
        table.reserve(|number| super::shard::hash(&shared[number as usize]));
        let new = number(shared.len());
        let found = table.find_or_put(hash, new, |number| shared[number as usize] == key.shared);
        if found.is_none() {
            push(&mut self.shared, key.shared);
        }
        let state = u64::from(found.unwrap_or(new)) << 32 | u64::from(key.own);
        let (states, table) = (&self.states, &mut self.table);
        table.reserve(|number| mix(states[number as usize]));
        let new = number(states.len());
        let found = table.find_or_put(mix(state), new, |number| states[number as usize] == state);
        if found.is_none() {
            push(&mut self.states, state);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.shared.capacity() * size_of::<[u64; SHARED_WORDS]>()
            + self.states.capacity() * size_of::<u64>()
            + self.shared_table.bytes()
            + self.table.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_is_there_once_and_in_order() {
        let mut shard = Shard::default();
        let key = |n: u64| Key { shared: [n / 7, 1, 2], own: (n % 7) as u32 };
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
            count[shard_of(hash(&[n, 0, 0]))] += 1;
        }
        assert!(count.iter().all(|n| (800..1200).contains(n)), "{count:?}");
    }
}
