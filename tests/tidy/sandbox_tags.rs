//! A tag of a test's directory is used at one place.
//!
//! Two places with one tag meet in one directory, and one of them fails while the other
//! lives. Which of them, and whether at all, depends on what runs at the same time.

use std::collections::BTreeMap;

use crate::source::{Source, line_of};
use crate::tree::{Outcome, Tree};

/// The macro, and what another one ends in.
const MACRO: &str = "sandbox!(";

fn check(tree: &Tree) -> Outcome {
    let mut outcome = Outcome::default();
    let mut first: BTreeMap<(&str, String), String> = BTreeMap::new();
    for file in tree.with_extension("rs") {
        let code = Source::of(&file.text).code;
        for (at, found) in code.match_indices(MACRO) {
            outcome.looked_at += 1;
            let line = line_of(&code, at);
            let before = code[..at].rfind(|c: char| !(c.is_alphanumeric() || c == '_'));
            let name = &code[before.map_or(0, |before| before + 1)..at];
            let argument = file.text[at + found.len()..].trim_start();
            let Some(tag) = argument.strip_prefix('"').and_then(|rest| rest.split('"').next())
            else {
                outcome.find(&file.path, line, "a tag is a literal");
                continue;
            };
            let key = (tree.package_of(file), format!("{name}{tag}"));
            let here = format!("{}:{line}", file.path);
            if let Some(other) = first.get(&key) {
                let what = format_args!("the tag {tag} is used at {other}, too");
                outcome.find(&file.path, line, what);
            } else {
                first.insert(key, here);
            }
        }
    }
    outcome
}

#[test]
fn every_tag_is_used_at_one_place() {
    check(&Tree::real()).assert_clean();
}

#[test]
fn a_tag_that_is_used_twice_in_a_package_is_found() {
    check(&Tree::planted(&[
        ("a/Cargo.toml", ""),
        ("b/Cargo.toml", ""),
        ("a/src/x.rs", "fn x() { sandbox!(\"one\"); mortmain::sandbox!(\n    \"two\"); }\n"),
        ("a/tests/y.rs", "// sandbox!(\"three\")\nfn y() { mortmain::sandbox!(\"one\"); }\n"),
        ("a/tests/z.rs", "fn z() { detached_sandbox!(\"one\"); sandbox!(TAG); }\n"),
        ("b/src/x.rs", "fn x() { sandbox!(\"one\"); }\n"),
        ("tests/x.rs", "fn x() { sandbox!(\"one\"); let s = \"sandbox!(\\\"one\\\")\"; }\n"),
    ]))
    .assert_found(&[
        "a/tests/y.rs:2: the tag one is used at a/src/x.rs:1, too",
        "a/tests/z.rs:1: a tag is a literal",
    ]);
}
