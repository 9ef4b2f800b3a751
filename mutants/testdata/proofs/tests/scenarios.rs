//! Tests that have a file in `scenarios/`, which says what they protect.

mod host {
    /// Fails in a build with switches, whatever is switched on.
    #[test]
    fn broken() {
        let order = std::env::var("MORTMAIN_MUTANTS_ACTIVE").unwrap_or_default();
        assert!(!order.starts_with(|first: char| first.is_ascii_digit()), "{order}");
    }

    #[test]
    fn numbers() {
        assert!(proofs::half(3).is_err());
    }

    #[test]
    fn sums() {
        assert_eq!(proofs::sum([1, 3]), proofs::clamp(4));
    }

    #[test]
    fn turns() {
        assert_eq!(proofs::half(8), Ok(4));
    }

    /// Without a file: no story.
    #[test]
    fn nothing() {
        assert_eq!(proofs::half(4), Ok(2));
    }
}
