//! The rules of docs/protocol.md and the checks in the code belong together.
//!
//! A rule is defined where a line of that page, or a row of a table in it, begins
//! with its id in bold. A check is a comment `// CHECK(id-slug): why` on top of
//! the code that does it. Every rule with a small letter has at least one check in
//! the implementation, or stands in the page's line of rules that are not built yet,
//! and every check belongs to a rule. A program that is built on the implementation
//! may have checks as well, of what it has to do for a rule by itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::check_comments::checks_of;
use crate::tree::{File, Outcome, Tree};

pub(crate) const PAGE: &str = "docs/protocol.md";
const NOT_BUILT: &str = "Not built yet:";
const CHECKED: &str = "mortmain/src/";
/// Where there may be checks beside those.
const BUILT_ON_IT: &str = "server/src/";
/// A reason of fewer words is none.
const WORDS: usize = 4;

/// What the page says.
#[derive(Debug, Default)]
pub(crate) struct Rules<'t> {
    /// Each id and the line of its definition.
    pub(crate) defined: BTreeMap<&'t str, usize>,
    /// The ids that are not built yet, and the line that says so.
    not_built: BTreeSet<&'t str>,
    not_built_line: usize,
}

impl<'t> Rules<'t> {
    pub(crate) fn read(page: &'t File, outcome: &mut Outcome) -> Rules<'t> {
        let mut rules = Rules::default();
        for (number, line) in page.lines() {
            if let Some(ids) = line.strip_prefix(NOT_BUILT) {
                if rules.not_built_line != 0 {
                    outcome.find(PAGE, number, format_args!("`{NOT_BUILT}` stands here twice"));
                }
                rules.not_built_line = number;
                let ids = ids.trim().trim_end_matches('.').split(',').map(str::trim);
                rules.not_built.extend(ids.filter(|id| !id.is_empty() && *id != "none"));
            }
            let start = line.trim_start_matches('|').trim_start();
            let bold = start.strip_prefix("**").and_then(|rest| rest.split_once("**"));
            let Some((id, _)) = bold.filter(|(id, _)| is_id(id)) else {
                continue;
            };
            outcome.looked_at += 1;
            if let Some(first) = rules.defined.insert(id, number) {
                let what =
                    format_args!("rule {id} is defined a second time, first in line {first}");
                outcome.find(PAGE, number, what);
            }
        }
        if rules.not_built_line == 0 {
            outcome.find(PAGE, 1, format_args!("no line begins with `{NOT_BUILT}`"));
        }
        rules
    }
}

/// The letters of the chapters, and of the invariants, with one digit.
pub(crate) fn is_id(word: &str) -> bool {
    matches!(
        word.as_bytes(),
        [
            b'c' | b'p' | b'l' | b'r' | b'h' | b'b' | b'f' | b't' | b'a' | b'x' | b'S' | b'L',
            b'1'..=b'9'
        ]
    )
}

/// An invariant is what the rules are for; no single place in the code carries it.
fn is_invariant(id: &str) -> bool {
    id.starts_with(|letter: char| letter.is_ascii_uppercase())
}

fn check(tree: &Tree) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(page) = tree.file(PAGE) else {
        outcome.find(PAGE, 1, "the page is missing");
        return outcome;
    };
    let rules = Rules::read(page, &mut outcome);
    let checked = checks(tree, &rules, &mut outcome);
    for (&id, &line) in &rules.defined {
        let (has_check, not_built) = (checked.contains(id), rules.not_built.contains(id));
        if !has_check && !not_built && !is_invariant(id) {
            let what = format_args!("rule {id} has no `// CHECK({id}-…): why` in {CHECKED}");
            outcome.find(PAGE, line, what);
        }
        if has_check && not_built {
            let what = format_args!("rule {id} is said to be not built, and has a check");
            outcome.find(PAGE, rules.not_built_line, what);
        }
    }
    for id in rules.not_built.iter().filter(|id| !rules.defined.contains_key(*id)) {
        let what = format_args!("`{id}` is said to be not built, and is no rule");
        outcome.find(PAGE, rules.not_built_line, what);
    }
    outcome
}

/// Looks at each check, and returns the ids of the rules that have one.
fn checks(tree: &Tree, rules: &Rules<'_>, outcome: &mut Outcome) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    for check in tree.with_extension("rs").flat_map(checks_of) {
        outcome.looked_at += 1;
        let Some(id) = check.rule() else {
            let what = "not of the form `// CHECK(id-slug): why`, with a slug in small letters";
            outcome.find(check.path, check.line, what);
            continue;
        };
        let known = [CHECKED, BUILT_ON_IT];
        if !known.iter().any(|place| check.path.starts_with(place)) {
            outcome.find(check.path, check.line, format_args!("a check belongs into {CHECKED}"));
        }
        if !rules.defined.contains_key(id) {
            outcome.find(check.path, check.line, format_args!("{id} is no rule of {PAGE}"));
        }
        if check.reason.split_whitespace().count() < WORDS {
            let what = format_args!("the check {} does not say why", check.slug);
            outcome.find(check.path, check.line, what);
        }
        if check.code.is_none() {
            let what = format_args!("the check {} stands on no code", check.slug);
            outcome.find(check.path, check.line, what);
        }
        let here = format!("{}:{}", check.path, check.line);
        if let Some(other) = first.get(&check.slug) {
            let what = format_args!("the check {} stands at {other}, too", check.slug);
            outcome.find(check.path, check.line, what);
        } else {
            first.insert(check.slug.clone(), here);
        }
        // Misplaced, it is told; the rule is not told to have none as well.
        if !check.path.starts_with(BUILT_ON_IT) {
            ids.insert(id.to_owned());
        }
    }
    ids
}

#[test]
fn every_rule_has_its_check_and_every_check_its_rule() {
    check(&Tree::real()).assert_clean();
}

mod planted {
    use super::*;

    const RULES: &str = "# Rules\n\nNot built yet: l2.\n\n**S1** never.\n\n**c1** first.\n\n\
                         **c2** second, after c1.\n\n| **l2** | later |\n";

    #[track_caller]
    fn check_code(code: &str, expected: &[&str]) {
        check(&Tree::planted(&[(PAGE, RULES), ("mortmain/src/a.rs", code)])).assert_found(expected);
    }

    #[test]
    fn a_complete_tree_is_clean() {
        check_code(
            "// CHECK(c1-locked): a reason of five words\nlock()?;\n\
             // CHECK(c2-same): a reason that\n//   goes on in the next line\n\
             // Another comment.\n#[expect(x)]\nif a != b {}\n",
            &[],
        );
    }

    #[test]
    fn a_rule_without_a_check_is_found() {
        check_code(
            "// CHECK(c1-locked): a reason of five words\nlock()?;\n",
            &["docs/protocol.md:9: rule c2 has no `// CHECK(c2-…): why` in mortmain/src/"],
        );
    }

    #[test]
    fn a_check_of_a_rule_that_is_not_built_or_not_there_is_found() {
        check_code(
            "// CHECK(c1-a): a reason of five words\na();\n\
             // CHECK(c2-b): a reason of five words\nb();\n\
             // CHECK(l2-c): a reason of five words\nc();\n\
             // CHECK(z9-d): a reason of five words\nd();\n",
            &[
                "mortmain/src/a.rs:7: z9 is no rule of docs/protocol.md",
                "docs/protocol.md:3: rule l2 is said to be not built, and has a check",
            ],
        );
    }

    #[test]
    fn a_malformed_check_is_found() {
        let form = "not of the form `// CHECK(id-slug): why`, with a slug in small letters";
        for wrong in [
            "CHECK (c1-a): a reason of five words",
            "check(c1-a): a reason of five words",
            "CHECK(c1-a) a reason of five words",
            "CHECK(c1): a reason of five words",
            "CHECK(c1-): a reason of five words",
            "CHECK(c1-a--b): a reason of five words",
            "CHECK(c1-Upper): a reason of five words",
            "CHECK(S1-invariant): a reason of five words",
        ] {
            let code = format!(
                "// {wrong}\na();\n// CHECK(c1-x): a reason of five words\nx();\n\
                 // CHECK(c2-y): a reason of five words\ny();\n"
            );
            check_code(&code, &[&format!("mortmain/src/a.rs:1: {form}")]);
        }
    }

    #[test]
    fn a_check_without_reason_or_code_or_twice_is_found() {
        check_code(
            "// CHECK(c1-a): too short\na();\n\
             // CHECK(c2-b): a reason of five words\n\nb();\n\
             { // not one: CHECK(c1-a)\n// CHECK(c2-c): a reason of five words\n}\n\
             // CHECK(c1-a): a reason of five words\na();\n",
            &[
                "mortmain/src/a.rs:1: the check c1-a does not say why",
                "mortmain/src/a.rs:3: the check c2-b stands on no code",
                "mortmain/src/a.rs:7: the check c2-c stands on no code",
                "mortmain/src/a.rs:9: the check c1-a stands at mortmain/src/a.rs:1, too",
            ],
        );
    }

    #[test]
    fn a_check_outside_the_implementation_counts_as_misplaced() {
        let code = "// CHECK(c1-a): a reason of five words\na();\n\
                    // CHECK(c2-b): a reason of five words\nb();\n";
        check(&Tree::planted(&[(PAGE, RULES), ("harness/src/a.rs", code)])).assert_found(&[
            "harness/src/a.rs:1: a check belongs into mortmain/src/",
            "harness/src/a.rs:3: a check belongs into mortmain/src/",
        ]);
    }

    #[test]
    fn a_check_of_a_program_on_the_implementation_is_not_that_of_the_rule() {
        let code = "// CHECK(c1-a): a reason of five words\na();\n";
        let own = "// CHECK(c1-b): a reason of five words\nb();\n\
                   // CHECK(c2-c): a reason of five words\nc();\n";
        check(&Tree::planted(&[
            (PAGE, RULES),
            ("mortmain/src/a.rs", code),
            ("server/src/a.rs", own),
        ]))
        .assert_found(&[
            "docs/protocol.md:9: rule c2 has no `// CHECK(c2-…): why` in mortmain/src/",
        ]);
    }

    #[test]
    fn a_page_that_defines_a_rule_twice_or_lists_nonsense_is_found() {
        let page = "Not built yet: c1, q7.\n\n**c1** a.\n\n**c1** b.\n";
        check(&Tree::planted(&[(PAGE, page)])).assert_found(&[
            "docs/protocol.md:5: rule c1 is defined a second time, first in line 3",
            "docs/protocol.md:1: `q7` is said to be not built, and is no rule",
        ]);
        check(&Tree::planted(&[(PAGE, "**S1** a.\n")]))
            .assert_found(&["docs/protocol.md:1: no line begins with `Not built yet:`"]);
    }
}
