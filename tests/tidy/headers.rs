//! Every Rust file opens with a `//!` header that says what it is for.

use crate::tree::{Outcome, Tree};

/// Fewer words say nothing.
const WORDS: usize = 5;

fn check(tree: &Tree) -> Outcome {
    let mut outcome = Outcome::default();
    for file in tree.with_extension("rs") {
        outcome.looked_at += 1;
        let header = file.text.lines().map_while(|line| line.strip_prefix("//!"));
        let words = header.flat_map(str::split_whitespace).count();
        if words == 0 {
            outcome.find(&file.path, 1, "the file does not open with a `//!` header");
        } else if words < WORDS {
            outcome.find(&file.path, 1, "the `//!` header says too little");
        }
    }
    outcome
}

#[test]
fn every_rust_file_has_a_header() {
    check(&Tree::real()).assert_clean();
}

#[test]
fn a_missing_late_or_empty_header_is_found() {
    check(&Tree::planted(&[
        ("a.rs", "//! Says what this file is for.\n\nfn a() {}\n"),
        ("b.rs", "fn b() {}\n"),
        ("c.rs", "use a;\n//! Too late to be a header of it.\n"),
        ("d.rs", "//! x\n"),
        ("e.md", "no header needed"),
    ]))
    .assert_found(&[
        "b.rs:1: the file does not open with a `//!` header",
        "c.rs:1: the file does not open with a `//!` header",
        "d.rs:1: the `//!` header says too little",
    ]);
}
