//! A check under a test that fails anyway.

/// One more, up to a bound.
pub fn next(number: u32) -> u32 {
    // CHECK(a1-bound): the bound
    if number >= 10 {
        return 10;
    }
    number + 1
}

#[cfg(test)]
mod tests {
    #[test]
    fn is_wrong_about_the_bound() {
        assert_eq!(super::next(11), 11, "the bound is ten");
    }
}
