//! Choices of a test that differ from run to run, and are the same again for the same seed.

use std::fs;
use std::io::Read;

/// Numbers that look random, all from one seed (SplitMix64).
pub(crate) struct Numbers(u64);

impl Numbers {
    /// From `MORTMAIN_SEED`, or from a fresh seed, which is printed.
    pub(crate) fn announced() -> Numbers {
        let seed = seed();
        println!("again with MORTMAIN_SEED={seed}");
        Numbers(seed)
    }

    /// The next of them, from 0 on.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// `MORTMAIN_SEED`, or a fresh one.
fn seed() -> u64 {
    if let Ok(text) = std::env::var("MORTMAIN_SEED") {
        return text.parse().expect("a seed is a decimal number");
    }
    let mut bytes = [0; 8];
    fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).unwrap();
    u64::from_ne_bytes(bytes)
}
