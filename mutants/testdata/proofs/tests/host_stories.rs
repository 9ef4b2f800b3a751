//! Tests that have a file in `scenarios/`, which says what they protect.

mod host {
    #[test]
    fn numbers() {
        assert!(proofs::half(3).is_err());
    }

    #[test]
    fn sums() {
        assert_eq!(proofs::sum([1, 3]), proofs::clamp(4));
    }

    /// Without a file: no story.
    #[test]
    fn nothing() {
        assert_eq!(proofs::half(4), Ok(2));
    }
}
