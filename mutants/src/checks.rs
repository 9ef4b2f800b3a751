//! The named checks of a source file: `CHECK` comments and the syntax under them.
//!
//! A check is a comment on its own line, `// CHECK(rule-slug): why`, which may go on
//! in further `//` lines. It heads the smallest piece of syntax that begins at the
//! next token and can be deleted: a statement, a match arm, an item, a field of a
//! struct expression, a call in a chain, an operand with its operator, an element of
//! an array. The compiler decides whether the deletion makes sense.
//!
//! Invariants:
//! * Only real comments count: the words in a string or a doc comment are no check.
//! * A comment that means to be a check and is malformed is an error, so that none
//!   is lost in silence.

mod comment;
mod target;

use std::ops::Range;
use std::str::FromStr as _;

use anyhow::{Context as _, anyhow};
use proc_macro2::TokenStream;

use self::comment::Comment;
pub(crate) use self::target::{Target, TargetKind};
use self::target::{flatten, place};

/// A check, as one file tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) id: String,
    pub(crate) why: String,
    /// Counted from 1.
    pub(crate) line: usize,
    /// The code under the comment, to the end of the innermost item that it stands in
    /// or heads.
    pub(crate) scope: Range<usize>,
    pub(crate) target: Option<Target>,
}

impl Check {
    /// The part of the id before its slug.
    pub(crate) fn rule(&self) -> &str {
        rule_of(&self.id)
    }
}

/// `l3` of `l3-lock-held`.
pub(crate) fn rule_of(id: &str) -> &str {
    id.split_once('-').map_or(id, |(rule, _)| rule)
}

/// A comment that means to be a check and is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) line: usize,
    pub(crate) problem: String,
}

/// All checks of a file in their order, and the comments that are malformed.
///
/// # Errors
///
/// When the text is not Rust.
pub(crate) fn find(source: &str) -> anyhow::Result<(Vec<Check>, Vec<Malformed>)> {
    if !source.contains("CHECK(") {
        return Ok((Vec::new(), Vec::new()));
    }
    let base = code_start(source);
    let stream = lex(source, base)?;
    let mut tokens = Vec::new();
    flatten(stream.clone(), base, &mut tokens);
    let file: syn::File = syn::parse2(stream).context("cannot parse")?;

    let mut checks = Vec::new();
    let mut malformed = Vec::new();
    for (at, _) in source.match_indices("CHECK(") {
        if tokens.iter().any(|token| token.range.contains(&at)) {
            continue;
        }
        let Some(comment) = Comment::around(source, at) else {
            continue;
        };
        match comment.parse() {
            Ok((id, why)) => {
                let (target, scope) = place(&file, &tokens, base, comment.after, source.len());
                checks.push(Check { id, why, line: comment.line, scope, target });
            }
            Err(problem) => malformed.push(Malformed { line: comment.line, problem }),
        }
    }
    Ok((checks, malformed))
}

/// A source file as the compiler reads it, and where its code begins, from which its spans count.
///
/// # Errors
///
/// When the text is not Rust.
pub(crate) fn parse(source: &str) -> anyhow::Result<(syn::File, usize)> {
    let base = code_start(source);
    Ok((syn::parse2(lex(source, base)?).context("cannot parse")?, base))
}

fn lex(source: &str, base: usize) -> anyhow::Result<TokenStream> {
    TokenStream::from_str(&source[base..]).map_err(|error| anyhow!("{error}"))
}

/// Where the code begins: after a byte order mark or an interpreter line, which the
/// lexer does not take.
fn code_start(source: &str) -> usize {
    const BOM: &str = "\u{feff}";
    let bom = if source.starts_with(BOM) { BOM.len() } else { 0 };
    let rest = &source[bom..];
    match rest.strip_prefix("#!") {
        Some(line) if !line.trim_start().starts_with('[') => {
            bom + rest.find('\n').unwrap_or(rest.len())
        }
        _ => bom,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::{self, Edit};

    /// The source without what its only check heads, and without blanks at line ends
    /// and empty lines.
    #[track_caller]
    fn removed(source: &str) -> (TargetKind, String) {
        let (checks, malformed) = find(source).unwrap();
        assert_eq!(malformed, []);
        let [check] = checks.as_slice() else {
            panic!("one check expected, found {checks:?}");
        };
        let target = check.target.clone().expect("something under the check");
        let edit = Edit::blank(source, target.range);
        let text = edit::apply(source, &[edit]).unwrap();
        let lines = text.lines().map(str::trim_end);
        let left: Vec<&str> =
            lines.filter(|line| !line.is_empty() && !line.contains("//")).collect();
        (target.kind, left.join("\n"))
    }

    #[test]
    fn each_kind_of_code_can_be_headed() {
        use TargetKind::*;
        let cases = [
            (
                Statement,
                "fn f() {\n  // CHECK(a1-x): why\n  if a {\n    return;\n  }\n  b();\n}",
                "fn f() {\n  b();\n}",
            ),
            (
                Statement,
                "fn f() {\n  // CHECK(a1-x): why\n  check(a)?;\n  b();\n}",
                "fn f() {\n  b();\n}",
            ),
            (
                Statement,
                "fn f() {\n  // CHECK(a1-x): why\n  let _lock = lock();\n  b();\n}",
                "fn f() {\n  b();\n}",
            ),
            (
                Statement,
                "fn f() {\n  // CHECK(a1-x): why\n  assert!(a);\n  b();\n}",
                "fn f() {\n  b();\n}",
            ),
            (
                Statement,
                "fn f() {\n  // CHECK(a1-x): why\n  #[cfg(unix)]\n  a();\n  b();\n}",
                "fn f() {\n  b();\n}",
            ),
            (
                Arm,
                "fn f() {\n  match a {\n    // CHECK(a1-x): why\n    1 if b => c(),\n    _ => d(),\n  }\n}",
                "fn f() {\n  match a {\n    _ => d(),\n  }\n}",
            ),
            (
                Item,
                "struct S;\n// CHECK(a1-x): why\n/// Told.\nimpl Drop for S {\n  fn drop(&mut self) {}\n}\nfn g() {}",
                "struct S;\nfn g() {}",
            ),
            (
                Item,
                "struct S;\n/// Told.\n#[a([b])]\n// CHECK(a1-x): why\n#[c]\nimpl Drop for S {}\nfn g() {}",
                "struct S;\nfn g() {}",
            ),
            (
                Item,
                "impl T for S {\n  // CHECK(a1-x): why\n  fn f() {}\n  fn g() {}\n}",
                "impl T for S {\n  fn g() {}\n}",
            ),
            (
                Field,
                "fn f() -> S {\n  S {\n    // CHECK(a1-x): why\n    strict: true,\n    ..S::new()\n  }\n}",
                "fn f() -> S {\n  S {\n    ..S::new()\n  }\n}",
            ),
            (
                Call,
                "fn f() {\n  open()\n    // CHECK(a1-x): why\n    .custom_flags::<u8>(f(1))\n    .read();\n}",
                "fn f() {\n  open()\n    .read();\n}",
            ),
            (
                Operand,
                "fn f() {\n  if a\n    // CHECK(a1-x): why\n    && b == c\n    && d\n  {\n    e();\n  }\n}",
                "fn f() {\n  if a\n    && d\n  {\n    e();\n  }\n}",
            ),
            (
                Operand,
                "fn f() {\n  g(A\n    // CHECK(a1-x): why\n    | B);\n}",
                "fn f() {\n  g(A\n       );\n}",
            ),
            (
                Element,
                "const K: &[u8] = &[\n  1,\n  // CHECK(a1-x): why\n  2,\n  3,\n];",
                "const K: &[u8] = &[\n  1,\n  3,\n];",
            ),
        ];
        for (kind, source, left) in cases {
            assert_eq!(removed(source), (kind, left.to_owned()), "{source}");
        }
    }

    #[test]
    fn the_smallest_piece_is_taken() {
        // The array begins where its first element's own array does not.
        let source = "const K: &[&[u8]] = &[\n  // CHECK(a1-x): why\n  &[1, 2],\n  &[3],\n];";
        assert_eq!(removed(source).1, "const K: &[&[u8]] = &[\n  &[3],\n];");
    }

    #[test]
    fn positions_hold_behind_marks_and_wide_characters() {
        let code = "fn f() {\n  let ä = \"ö\"; // ü\n  // CHECK(a1-x): wäre\n  g();\n}";
        for prefix in ["", "\u{feff}", "#!/usr/bin/env run\n", "#![allow(x)]\n"] {
            let source = format!("{prefix}{code}");
            let (checks, _) = find(&source).unwrap();
            let target = checks[0].target.clone().unwrap();
            assert_eq!(&source[target.range], "g();", "after {prefix:?}");
        }
    }

    #[test]
    fn a_reason_goes_on_until_the_comment_ends() {
        let source = "fn f() {\n  // CHECK(a1-x): first\n  // and second\n  //\n  // CHECK(b2-y): other\n  g();\n}";
        let (checks, _) = find(source).unwrap();
        let told: Vec<(&str, &str, usize)> =
            checks.iter().map(|c| (&*c.id, &*c.why, c.line)).collect();
        assert_eq!(told, [("a1-x", "first and second", 2), ("b2-y", "other", 5)]);
        assert_eq!(checks[0].target, checks[1].target);
        assert_eq!(checks[1].rule(), "b2");
    }

    #[test]
    fn words_in_strings_doc_comments_and_prose_are_no_checks() {
        let source = r##"
/// // CHECK(a1-x): in a doc comment
fn f() {
    // see CHECK(a1-x) for the reason
    g("
    // CHECK(a1-x): in a string
    ", r#"// CHECK(a1-x): raw"#);
}
"##;
        assert_eq!(find(source).unwrap(), (Vec::new(), Vec::new()));
    }

    #[test]
    fn malformed_checks_are_told() {
        let problem = |comment: &str| {
            let source = format!("fn f() {{\n{comment}\n  g();\n}}");
            let (checks, malformed) = find(&source).unwrap();
            assert_eq!(checks, [], "{comment}");
            assert_eq!(malformed[0].line, 2);
            malformed[0].problem.clone()
        };
        assert!(problem("  a(); // CHECK(a1-x): why").contains("line of its own"));
        assert!(problem("  // CHECK(a1-x: why").contains("not closed"));
        assert!(problem("  // CHECK(a1-x) why").contains("colon"));
        assert!(problem("  // CHECK(a1-x):").contains("no reason"));
        for id in ["", "a1", "a-x", "1a-x", "a1-", "a1-X", "a1-x_y", "a1--x"] {
            assert!(problem(&format!("  //CHECK({id}): why")).contains("is no id"), "{id}");
        }
    }

    #[test]
    fn a_check_at_the_end_of_a_block_heads_nothing() {
        let (checks, _) = find("fn f() {\n  g();\n  // CHECK(a1-x): why\n}\n").unwrap();
        assert_eq!(checks[0].target, None);
    }

    #[test]
    fn the_scope_of_a_check_ends_with_the_item_around_it() {
        let source = "impl S {\n  // CHECK(a1-x): why\n  fn f() { 1 }\n  fn g() {\n    // CHECK(a2-x): why\n    2;\n  }\n}\n// CHECK(a3-x): why\n";
        let (checks, _) = find(source).unwrap();
        let ends: Vec<&str> =
            checks.iter().map(|check| source[check.scope.clone()].trim()).collect();
        assert_eq!(ends, ["fn f() { 1 }", "2;\n  }", ""]);
    }
}
