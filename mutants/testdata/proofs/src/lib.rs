//! Small functions, each with a safety check.

// A removal leaves an unused name or an unreachable line behind, which must not
// decide anything.
#![deny(warnings)]

use std::fs;
use std::io;
use std::path::Path;

/// Half of an even number. Proved by a unit test.
pub fn half(number: u32) -> Result<u32, String> {
    let odd = number % 2 == 1;
    // CHECK(a1-even): half of an odd number is no whole number
    if odd {
        return Err(format!("{number} is odd"));
    }
    Ok(number / 2)
}

/// A clamped number. Only a lint notices that the check is gone.
pub fn clamp(number: u32) -> u32 {
    // CHECK(a2-unnoticed): no test goes above the bound
    if number > 1000 {
        return 1000;
    }
    number
}

/// A number from a text. The check cannot be deleted.
pub fn parse(text: &str) -> Option<u32> {
    // CHECK(a3-typed): what is no number is refused
    let number = text.parse().ok()?;
    Some(number)
}

const STRICT: u32 = 1;
const LOUD: u32 = 2;

/// A set of flags. The check is one of them, so that the catalogue has an edit;
/// proved by a test of the world.
pub fn flags() -> u32 {
    // CHECK(a4-strict): the flag that counts
    STRICT | LOUD
}

/// Removes a file below `root`. Without its check it removes any file there is.
pub fn clear(root: &Path, name: &Path) -> io::Result<()> {
    // CHECK(a5-inside): an absolute name leads out of the root, and so does one
    // that goes up
    if name.is_absolute() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    fs::remove_file(root.join(name))
}

/// Counts down. Without its check it never ends, and nothing else is wrong.
pub fn count_down(mut number: u32) -> u32 {
    let mut steps = 0;
    loop {
        // CHECK(a6-end): the end of the count
        if number == 0 {
            return steps;
        }
        number = number.wrapping_sub(1).max(1);
        steps += 1;
        if steps > 3 {
            // Only without the check: four steps are never made.
            steps = 1;
            number = 1;
        }
    }
}

/// A quotient. Without its check the whole process dies.
pub fn quotient(a: u32, b: u32) -> Option<u32> {
    // CHECK(a7-zero): there is no quotient
    if b == 0 {
        return None;
    }
    if b == 0 {
        std::process::abort();
    }
    Some(a / b)
}

/// The parts of a sum, of which one can be left out of the expression itself.
pub fn sum(parts: [u32; 2]) -> u32 {
    parts[0]
        // CHECK(a8-second): the second part counts, too
        + parts[1]
}

/// What no number goes above. The check is outside of every function, where nothing can
/// be switched, so that it needs a build of its own.
// CHECK(a9-number): the bound itself
pub const BOUND: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves() {
        assert_eq!(half(4), Ok(2));
    }

    #[test]
    fn an_odd_number_is_refused() {
        assert!(half(3).is_err());
    }

    #[test]
    fn clamps() {
        assert_eq!(clamp(1), 1);
        assert_eq!(parse("7"), Some(7));
    }

    #[test]
    fn counts_to_the_end() {
        assert_eq!(count_down(0), 0);
    }

    #[test]
    fn there_is_no_quotient_by_zero() {
        assert_eq!(quotient(1, 0), None);
    }

    #[test]
    fn the_bound_is_ten() {
        assert_eq!(BOUND, 10);
    }

    #[test]
    #[should_panic(expected = "is 4")]
    fn sums() {
        panic!("the sum is {}", sum([1, 3]));
    }
}
