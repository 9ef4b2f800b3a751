//! A number above a bound.

/// Whether a number is above the bound.
pub fn is_above(number: u32) -> bool {
    number > 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_is_not_four() {
        assert!(is_above(5));
        assert!(!is_above(4));
        assert!(!is_above(3));
    }
}
