//! What is drawn from a seed.

use rand_core::{Rng as _, SeedableRng as _};
use rand_xorshift::XorShiftRng;

/// Lots, in an order that a seed and a number decide.
#[derive(Clone, Debug)]
pub(crate) struct Lots(XorShiftRng);

impl Lots {
    /// Those of a number. Neighbouring seeds and numbers draw nothing alike.
    pub(crate) fn of(seed: u64, nth: u64) -> Lots {
        let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(nth);
        Lots(XorShiftRng::seed_from_u64(mixed))
    }

    /// A number below a bound that is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let product = u128::from(self.0.next_u64()) * bound as u128;
        // OK because the upper half of the product is below the bound.
        (product >> 64) as usize
    }

    /// True once in so many times.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of them; `None` if there is none.
    pub(crate) fn one_of<'t, T>(&mut self, all: &'t [T]) -> Option<&'t T> {
        let at = self.below(all.len().max(1));
        all.get(at)
    }
}
