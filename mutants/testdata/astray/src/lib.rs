//! Checks that cannot be removed as they stand.

/// The check heads nothing.
pub fn nothing() -> u32 {
    1
    // CHECK(a1-nothing): the end of the block follows
}

/// The check has a name that another one has.
pub fn twice(number: u32) -> u32 {
    // CHECK(a2-twice): first
    if number > 1 {
        return 1;
    }
    // CHECK(a2-twice): second
    if number > 2 {
        return 2;
    }
    number
}

/// The check gives no reason.
pub fn unexplained(number: u32) -> u32 {
    // CHECK(a3-unexplained)
    if number > 1 {
        return 1;
    }
    number
}

/// The text of the check's edit is gone.
pub fn moved(number: u32) -> u32 {
    // CHECK(a4-moved): why
    number.min(1)
}
