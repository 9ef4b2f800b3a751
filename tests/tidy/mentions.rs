//! No text and no comment speaks of a rule or of a check that does not exist.
//!
//! A word is taken for a rule if it looks like one, a letter of a chapter and one
//! digit, and for a check if a rule, a hyphen and more come together in it.

use std::collections::BTreeSet;

use crate::check_comments::checks_of;
use crate::rules::{PAGE, Rules, is_id};
use crate::source::Source;
use crate::tree::{Outcome, Tree, numbered};

fn check(tree: &Tree) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(page) = tree.file(PAGE) else {
        outcome.find(PAGE, 1, "the page is missing");
        return outcome;
    };
    // What is wrong with the page itself is the matter of another check.
    let rules = Rules::read(page, &mut Outcome::default());
    let checks: BTreeSet<String> =
        tree.with_extension("rs").flat_map(checks_of).map(|check| check.slug).collect();
    for file in &tree.files {
        let comments = file.has_extension("rs").then(|| Source::of(&file.text).comments);
        let text = match &comments {
            Some(comments) => comments,
            None if file.has_extension("md") => &file.text,
            None => continue,
        };
        for (number, line) in numbered(text) {
            for word in line.split(|c: char| !(c.is_alphanumeric() || "-_".contains(c))) {
                let word = word.trim_end_matches('-');
                let (id, name) = word.split_once('-').unwrap_or((word, ""));
                if !is_id(id) {
                    continue;
                }
                outcome.looked_at += 1;
                if !rules.defined.contains_key(id) {
                    let what = format_args!("{id} is no rule of {PAGE}");
                    outcome.find(&file.path, number, what);
                } else if !name.is_empty() && !checks.contains(word) {
                    outcome.find(&file.path, number, format_args!("there is no check {word}"));
                }
            }
        }
    }
    outcome
}

#[test]
fn every_rule_and_check_that_is_spoken_of_exists() {
    check(&Tree::real()).assert_clean();
}

#[test]
fn a_word_like_a_rule_or_a_check_that_is_none_is_found() {
    check(&Tree::planted(&[
        (PAGE, "**S1** never.\n\n**c1** first.\n"),
        (
            "README.md",
            "rules `h1`, c1 and `CHECK(c1-…)`; x86, b64, e-l2, c1-a,\nc1-gone, (S2): S1_x\n",
        ),
        (
            "mortmain/src/a.rs",
            "// As c9 says: see `S1`, `c1-a`.\n// CHECK(c1-a): a reason\na(c8, \"c7\");\n",
        ),
    ]))
    .assert_found(&[
        "README.md:1: h1 is no rule of docs/protocol.md",
        "README.md:2: there is no check c1-gone",
        "README.md:2: S2 is no rule of docs/protocol.md",
        "mortmain/src/a.rs:1: c9 is no rule of docs/protocol.md",
    ]);
}
