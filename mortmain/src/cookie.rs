//! The cookie: the list of claims that a process runs under (p4).
//!
//! It stands in the environment as `MORTMAIN_CLAIM`, so that children inherit
//! it through new sessions and double forks, and each nested claim extends it.
//! What an owner inherited is copied only as far as it is a list of claims:
//! the variable may hold anything.

use alloc::vec::Vec;

use crate::grammar::Random;

/// Name of the variable.
pub const VARIABLE: &str = "MORTMAIN_CLAIM";

/// Between two claims of the list.
const SEPARATOR: u8 = b':';

/// Claims that a list is cut to, from the outermost: deeper nesting than this
/// is a loop.
const CLAIMS_MAX: usize = 64;

/// The claims of a list; what is none is passed over.
pub fn claims(list: &[u8]) -> impl Iterator<Item = Random> + '_ {
    list.split(|byte| *byte == SEPARATOR).filter_map(Random::parse)
}

/// The list for the commands of `claim`, whose owner inherited `list`.
#[must_use]
pub(crate) fn extended(list: &[u8], claim: &Random) -> Vec<u8> {
    let mut longer = Vec::new();
    for outer in claims(list).take(CLAIMS_MAX - 1) {
        longer.extend_from_slice(outer.bytes());
        longer.push(SEPARATOR);
    }
    // CHECK(p4-own-claim): a daemon that left its group and closed everything still carries it.
    longer.extend_from_slice(claim.bytes());
    longer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(text: &[u8; 12]) -> Random {
        Random::parse(text).expect("twelve of the alphabet")
    }

    #[test]
    fn nested_claims_extend_the_list() {
        let inner = random(b"bbbbbbbbbbb3");
        assert_eq!(extended(b"", &inner), b"bbbbbbbbbbb3");
        assert_eq!(extended(b"aaaaaaaaaaa2", &inner), b"aaaaaaaaaaa2:bbbbbbbbbbb3");
    }

    #[test]
    fn what_is_no_claim_is_passed_over() {
        let inner = random(b"bbbbbbbbbbb3");
        assert_eq!(extended(b"\xff:aaaaaaaaaaa2::no", &inner), b"aaaaaaaaaaa2:bbbbbbbbbbb3");
        let endless = b"aaaaaaaaaaa2:".repeat(1000);
        assert_eq!(claims(&extended(&endless, &inner)).count(), CLAIMS_MAX);
    }
}
