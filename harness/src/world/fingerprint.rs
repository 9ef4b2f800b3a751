//! Fixed 128-bit fingerprints of plain data.
//!
//! The same value has the same fingerprint in every run of the same build, so
//! explorations repeat exactly. Two values with one fingerprint would be taken
//! for one; among n states the chance is below n² / 2^129, which is 10^-24 for
//! ten million. Not meant to withstand an adversary.

use std::hash::{Hash, Hasher};

/// 128 bits that stand for a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Fingerprint(pub u128);

impl Fingerprint {
    /// The fingerprint of one value.
    pub fn of<T: Hash + ?Sized>(value: &T) -> Fingerprint {
        let mut mixer = Mixer { a: SEED_A, b: SEED_B };
        value.hash(&mut mixer);
        mixer.end()
    }

    /// The fingerprint of a bag that gains a member: order does not count.
    #[must_use]
    pub fn with(self, member: Fingerprint) -> Fingerprint {
        Fingerprint(self.0.wrapping_add(member.0))
    }

    /// The fingerprint of a bag that loses a member.
    #[must_use]
    pub fn without(self, member: Fingerprint) -> Fingerprint {
        Fingerprint(self.0.wrapping_sub(member.0))
    }
}

// Odd numbers without pattern: digits of the golden ratio and of π.
const SEED_A: u64 = 0x9E37_79B9_7F4A_7C15;
const SEED_B: u64 = 0x243F_6A88_85A3_08D3;
const STEP_A: u64 = 0x1319_8A2E_0370_7345;
const STEP_B: u64 = 0xA409_3822_299F_31D1;
const END_A: u64 = 0xFF51_AFD7_ED55_8CCD;
const END_B: u64 = 0xC4CE_B9FE_1A85_EC53;

/// Two lanes of 64 bits, each multiplied to 128 and folded at every word.
struct Mixer {
    a: u64,
    b: u64,
}

/// Both halves of a product, so that every bit of the factors counts.
fn fold(x: u64, y: u64) -> u64 {
    let product = u128::from(x) * u128::from(y);
    (product >> 64) as u64 ^ product as u64
}

/// Spreads every bit over the whole word.
fn spread(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(END_A);
    x ^= x >> 33;
    x = x.wrapping_mul(END_B);
    x ^ (x >> 33)
}

impl Mixer {
    fn word(&mut self, word: u64) {
        self.a = fold(self.a ^ word, STEP_A);
        self.b = fold(self.b.rotate_left(23).wrapping_add(word), STEP_B).wrapping_add(word);
    }

    fn end(self) -> Fingerprint {
        let high = spread(self.a.wrapping_add(self.b.rotate_left(32)));
        let low = spread(self.b ^ high.wrapping_mul(STEP_A));
        Fingerprint(u128::from(high) << 64 | u128::from(low))
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        spread(self.a ^ self.b)
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // The length tells a tail of zeros from a shorter one.
        self.word(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
    }

    fn write_u8(&mut self, word: u8) {
        self.word(word.into());
    }

    fn write_u16(&mut self, word: u16) {
        self.word(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.word(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.word(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.word(word as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn close_values_all_differ() {
        let pairs: BTreeSet<_> =
            (0..300u32).flat_map(|x| (0..300u32).map(move |y| Fingerprint::of(&(x, y)))).collect();
        assert_eq!(pairs.len(), 90_000);
        let zeros: BTreeSet<_> =
            (0..64).map(|length| Fingerprint::of(&vec![0u8; length])).collect();
        assert_eq!(zeros.len(), 64);
    }

    #[test]
    fn each_half_alone_differs_for_close_values() {
        for half in [0, 64] {
            let seen: BTreeSet<u64> =
                (0..100_000u64).map(|x| (Fingerprint::of(&x).0 >> half) as u64).collect();
            assert_eq!(seen.len(), 100_000, "at bit {half}");
        }
    }

    #[test]
    fn a_bag_forgets_the_order_and_what_left_it() {
        let [a, b, c] = [1u8, 2, 3].map(|x| Fingerprint::of(&x));
        let empty = Fingerprint::default();
        assert_eq!(empty.with(a).with(b), empty.with(b).with(a));
        assert_eq!(empty.with(a).with(c).without(c), empty.with(a));
        assert_ne!(empty.with(a), empty.with(b));
    }
}
