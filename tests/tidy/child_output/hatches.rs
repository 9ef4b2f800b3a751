//! The comments that excuse a way around the guard: `// PIPE(slug): why`.
//!
//! One that is not well-formed excuses nothing, and one that excuses nothing is wrong.

use std::fmt;

use super::cases::{check, check_items, found};
use super::ways::Found;
use crate::check_comments::comments_of;
use crate::tree::{File, Outcome, Tree};

/// A hatch that is in order, with the lines of what it stands above.
pub(crate) struct Hatch {
    pub(crate) line: usize,
    pub(crate) slug: String,
    reason: String,
    lines: (usize, usize),
}

impl Hatch {
    pub(crate) fn has(&self, line: usize) -> bool {
        (self.lines.0..=self.lines.1).contains(&line)
    }
}

impl fmt::Display for Hatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PIPE({}): {}", self.slug, self.reason)
    }
}

/// The hatches of a file; what is wrong with others is noted.
pub(crate) fn of(file: &File, found: &Found, outcome: &mut Outcome) -> Vec<Hatch> {
    let mut hatches = Vec::new();
    for comment in comments_of(file, "PIPE", means_a_hatch) {
        let reason = comment.reason.split_whitespace().collect::<Vec<_>>().join(" ");
        // The widest that begins between the comment and the first line of code.
        let begins = comment.line + 1..=comment.code.unwrap_or(comment.line);
        let below = found.statements.iter().filter(|(first, _)| begins.contains(first));
        let lines = below.max_by_key(|(_, last)| *last).copied();
        let mut hatch = Hatch { line: comment.line, slug: comment.slug, reason, lines: (0, 0) };
        let wrong = match lines {
            _ if !is_slug(&hatch.slug) => "a hatch is `// PIPE(slug): why`",
            _ if hatch.reason.is_empty() => "a hatch says why",
            None => "a hatch stands directly above a statement or an item",
            Some(lines) => {
                hatch.lines = lines;
                if found.ways.iter().any(|way| hatch.has(way.line)) {
                    hatches.push(hatch);
                    continue;
                }
                "nothing here goes around the guard"
            }
        };
        outcome.find(&file.path, hatch.line, wrong);
    }
    hatches
}

fn means_a_hatch(text: &str) -> bool {
    let rest = text.strip_prefix("PIPE").map(str::trim_start);
    rest.is_some_and(|rest| rest.starts_with(['(', ':']))
}

fn is_slug(slug: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    slug.split('-').all(is_part)
}

#[test]
fn a_hatch_excuses_the_statement_or_the_item_below_it() {
    let why = "// PIPE(a-slug): the end of\n// the pipe.\n";
    check(&format!("{why}let a = child.stdout.take();"), &[]);
    check(&format!("{why}let a = run(|| {{\n    child.stdout.take()\n}});"), &[]);
    let two = format!("{why}child\n    .stdout\n    .take();\nchild.^stdin.take();");
    check(&two, &["`.stdin.take()`"]);
    check_items(&format!("{why}// More.\n#[test]\nfn a() {{\n    child.stdout.take();\n}}\n"), &[]);
    check_items(&format!("{why}/// A.\nfn a() {{ child.stdout.take(); }}\n"), &[]);
    check_items(&format!("{why}fn r#type() {{\n    child.stdout.take();\n}}\n"), &[]);
    let two = format!("{why}use std::process::Child;\nuse std::process::^ChildStdin;\n");
    check_items(&two, &["`ChildStdin`"]);
    check_items(&format!("impl A {{\n{why}fn a() {{\nchild.stdout.take();\n}}\n}}\n"), &[]);
}

#[test]
fn a_hatch_that_is_not_in_order_is_found_and_excuses_nothing() {
    #[track_caller]
    fn check(statements: &str, expected: &[&str]) {
        let code = format!("fn test() {{\n{statements}\n}}\n");
        assert_eq!(found("tests/host_a.rs", &code), expected, "{statements}");
    }
    let way = "child.stdout.take();";
    let on_line_3 = "3:7: `.stdout.take()`";
    for hatch in ["PIPE: why", "PIPE(): why", "PIPE(A b): why", "PIPE(a) why", "PIPE (a): why"] {
        let form = "2: a hatch is `// PIPE(slug): why`";
        check(&format!("// {hatch}\n{way}"), &[form, on_line_3]);
    }
    check(&format!("// PIPE(a):\n{way}"), &["2: a hatch says why", on_line_3]);
    let above = "a hatch stands directly above a statement or an item";
    let apart = [&*format!("2: {above}"), "4:7: `.stdout.take()`"];
    check(&format!("// PIPE(a): why\n\n{way}"), &apart);
    check("a();\n// PIPE(a): why", &[&format!("3: {above}")]);
    check("// PIPE(a): why\nfinished.stdout.lines();", &["2: nothing here goes around the guard"]);
    check("// PIPEs: none\n// A pipe(2): none\nlet a = \"// PIPE(a): why\";", &[]);
    let twice = format!("// PIPE(a): why\n{way}\n// PIPE(a): why\n{way}");
    check(&twice, &["4: PIPE(a) stands at tests/host_a.rs:2 already"]);
}

#[test]
fn a_failure_lists_the_hatches() {
    let code = "fn a() {\n// PIPE(b): the end\n// of it.\nchild.stdout.take();\n}\n";
    let outcome = super::check(&Tree::planted(&[("tests/host_a.rs", code)]));
    assert_eq!(outcome.findings, [""; 0]);
    assert_eq!(outcome.excused, ["tests/host_a.rs:2: PIPE(b): the end of it."]);
}
