//! Tests that count as tests of the world by the name of this file.

#[test]
fn flags_are_strict() {
    assert_eq!(proofs::flags() & 1, 1);
}
