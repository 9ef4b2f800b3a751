//! A lint over the source, which must never count as a proof.

#[test]
fn every_check_is_in_the_source() {
    let source = include_str!("../src/lib.rs");
    for code in ["if odd {", "if number > 1000 {", "if number == 0 {"] {
        assert!(source.contains(code), "{code} is gone");
    }
}
