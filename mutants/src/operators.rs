//! What the operators would change in a source file: places, and for each the texts that could
//! stand there instead.
//!
//! | operator | change |
//! |---|---|
//! | body | a function does nothing but return a plain value of its type |
//! | binary | another comparison, arithmetic, bit or logical operator |
//! | unary | `!` or `-` is left out |
//! | arm | a match arm is left out, where a `_` arm takes its values |
//! | guard | a guard of a match arm is always, or never, true |
//! | field | a field of a struct expression is left to its `..base` |
//!
//! Operators work on the syntax tree: `a && b || c` with its first operator changed is `(a || b) || c`.
//!
//! What they deliberately leave alone: tests, `unsafe` code, whose mutants could do anything; what is
//! computed by the compiler (constants, `const fn`, lengths, patterns), which no switch at run time
//! can change; the arguments of macros, which are not Rust before the macro says so; and
//! constructors named `new` and `Default`, for which there is no other plain value.

mod values;
mod visit;

use std::fmt;
use std::ops::Range;

use serde::Serialize;

use crate::checks;

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Operator {
    Body,
    Binary,
    Unary,
    Arm,
    Guard,
    Field,
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operator::Body => "body",
            Operator::Binary => "binary",
            Operator::Unary => "unary",
            Operator::Arm => "arm",
            Operator::Guard => "guard",
            Operator::Field => "field",
        })
    }
}

/// A place with its changes. All ranges are bytes of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) form: Form,
    /// The path of the function around it, such as `Walk::descend`.
    pub(crate) function: String,
    pub(crate) changes: Vec<Change>,
}

/// How a switch can be written at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// An expression with others beside it.
    Expression(Range<usize>),
    /// Another value is returned at the beginning of a body, which goes from brace to brace.
    Body(Range<usize>),
    /// A guard after the pattern that ends there: the only change is that the arm is left out.
    Arm { pattern_end: usize },
    /// A guard that there is: the changes are that it is always true, and never.
    Guard(Range<usize>),
}

impl Form {
    /// What of the source the switch stands around.
    pub(crate) fn range(&self) -> Range<usize> {
        match self {
            Form::Expression(range) | Form::Body(range) | Form::Guard(range) => range.clone(),
            Form::Arm { pattern_end } => *pattern_end..*pattern_end,
        }
    }
}

/// One change at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) operator: Operator,
    /// Where the operator, or what is left out, begins.
    pub(crate) at: usize,
    /// What stands there now, and what would: for people.
    pub(crate) from: String,
    pub(crate) to: String,
    /// What is written into the switch; empty where its form says it.
    pub(crate) text: String,
}

/// A module that a file declares and does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OuterModule {
    /// The modules within the file that the declaration stands in.
    pub(crate) inside: Vec<String>,
    pub(crate) name: String,
    /// Given by an attribute `path`.
    pub(crate) path: Option<String>,
}

/// Everything about a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) sites: Vec<Site>,
    /// Behind the opening brace of each loop's body.
    pub(crate) loops: Vec<usize>,
    /// The bodies of functions, from brace to brace.
    pub(crate) bodies: Vec<Range<usize>>,
    pub(crate) modules: Vec<OuterModule>,
    /// The crate names no standard library, if this is its root.
    pub(crate) no_std: bool,
}

/// Looks through a source file.
///
/// # Errors
///
/// When the text is not Rust.
pub(crate) fn find(source: &str) -> anyhow::Result<Found> {
    let (file, base) = checks::parse(source)?;
    Ok(visit::visit(&file, source, base))
}

/// A text in one line, without the blanks that only lay it out.
fn in_one_line(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code).trim())
        .filter(|line| !line.is_empty())
        .collect();
    lines.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `from -> to` of every change in a source.
    #[track_caller]
    fn changes(source: &str) -> Vec<String> {
        let found = find(source).unwrap();
        let each = found.sites.iter().flat_map(|site| &site.changes);
        each.map(|change| format!("{} -> {}", change.from, change.to)).collect()
    }

    /// The changes within a function that takes and gives nothing, but for that of its body.
    #[track_caller]
    fn inside(code: &str) -> Vec<String> {
        let mut changes = changes(&format!("fn f() {{ {code} }}"));
        assert_eq!(changes.remove(0).split(" -> ").last(), Some("()"));
        changes
    }

    #[test]
    fn comparisons_become_others() {
        assert_eq!(inside("a == b;"), ["a == b -> a != b"]);
        assert_eq!(inside("a < b;"), ["a < b -> a == b", "a < b -> a > b", "a < b -> a <= b"]);
        assert_eq!(inside("a >= b;"), ["a >= b -> a < b"]);
    }

    #[test]
    fn the_tree_decides_and_not_the_text() {
        assert_eq!(
            inside("a && b || c;"),
            ["a && b || c -> a && b && c", "a && b -> a || b"],
            "people are shown the operator alone"
        );
        let found = find("fn f() { a && b || c; }").unwrap();
        let texts: Vec<&str> = found.sites.iter().map(|site| &*site.changes[0].text).collect();
        assert_eq!(texts[1], "((a && b) && (c))");
    }

    #[test]
    fn arithmetic_bits_and_assignments_become_others() {
        assert_eq!(inside("a + b;"), ["a + b -> a - b", "a + b -> a * b"]);
        assert_eq!(inside("a << b;"), ["a << b -> a >> b"]);
        assert_eq!(inside("a |= b;"), ["a |= b -> a &= b"]);
        assert_eq!(inside("a -= b;"), ["a -= b -> a += b", "a -= b -> a /= b"]);
    }

    #[test]
    fn signs_and_negations_are_left_out() {
        assert_eq!(inside("g(!a, -b, *c);"), ["!a -> a", "-b -> b"]);
    }

    #[test]
    fn an_arm_is_left_out_where_another_takes_its_values() {
        let told = inside("match a { 1 => b(), 2 if c => d(), _ => e() }");
        let expected = ["1 => b() -> (left out)", "2 if c -> 2 if true", "2 if c -> 2 if false"];
        assert_eq!(told, expected);
        assert_eq!(inside("match a { 1 => b(), other => c() }"), [""; 0]);
        assert_eq!(inside("match a { x if let Some(1) = x => b(), _ => c() }"), [""; 0]);
    }

    #[test]
    fn a_field_is_left_to_the_base() {
        assert_eq!(inside("S { a: 1, b: 2, ..base() };"), ["a: 1 -> ..base()", "b: 2 -> ..base()"]);
        let found = find("fn f() { S { a: 1, b: 2, ..base() }; }").unwrap();
        assert_eq!(found.sites[1].changes[1].text, "(S { a: 1,  ..base() })");
        assert_eq!(inside("S { a: 1 };"), [""; 0]);
    }

    #[test]
    fn bodies_become_plain_values() {
        let of = |ty: &str| -> Vec<String> {
            let told = changes(&format!("fn f() -> {ty} {{ g() }}"));
            told.iter().map(|change| change.rsplit(" -> ").next().unwrap().to_owned()).collect()
        };
        assert_eq!(of("bool"), ["true", "false"]);
        assert_eq!(of("i8"), ["0", "1", "-1"]);
        assert_eq!(of("&'static str"), ["\"\"", "\"xyzzy\""]);
        assert_eq!(of("Option<()>"), ["None", "Some(())"]);
        assert_eq!(
            of("io::Result<bool>"),
            ["Ok(true)", "Ok(false)", "Err(::std::io::Error::other(\"xyzzy\"))"]
        );
        assert_eq!(of("Vec<u8>"), ["vec![]", "vec![0]", "vec![1]"]);
        assert_eq!(of("(bool, u8)"), ["(true, 0)", "(true, 1)", "(false, 0)", "(false, 1)"]);
        assert_eq!(of("[u8; 2 + 1]"), ["[0; 2 + 1]", "[1; 2 + 1]"]);
        assert_eq!(of("Box<T>"), ["Box::new(Default::default())"]);
        assert_eq!(
            of("impl Iterator<Item = u8>"),
            ["::core::iter::empty()", "::core::iter::once(0)", "::core::iter::once(1)"]
        );
        assert_eq!(of("impl Display"), [""; 0]);
        assert_eq!(of("!"), [""; 0]);
        assert_eq!(changes("fn f() {}"), [""; 0], "there is nothing to take away");
        assert_eq!(changes("fn f() -> bool { true }"), ["true -> false"]);
    }

    #[test]
    fn functions_are_told_by_their_paths() {
        let source = "mod m { impl<T> S<T> { fn a() { x(); } } impl D for S { fn b() { fn c() { x(); } y(); } } trait Q { fn d() { z(); } } }";
        let found = find(source).unwrap();
        let told: Vec<&str> = found.sites.iter().map(|site| &*site.function).collect();
        assert_eq!(told, ["m::S<T>::a", "m::<D for S>::b", "m::<D for S>::b::c", "m::Q::d"]);
    }

    #[test]
    fn what_no_switch_can_change_is_left_alone() {
        for source in [
            "const K: u8 = 1 + 1;",
            "static K: u8 = 1 + 1;",
            "const fn f() -> u8 { 1 + 1 }",
            "unsafe fn f() -> u8 { 1 + 1 }",
            "enum E { A = 1 + 1 }",
            "#[cfg(test)] mod tests { fn f() -> u8 { 1 + 1 } }",
            "#[test] fn f() { g(1 + 1); }",
            "#[mutants::skip] fn f() { g(1 + 1); }",
            "impl S { fn new() -> S { S(1 + 1) } }",
            "impl Default for S { fn default() -> S { S(1 + 1) } }",
            "macro_rules! m { () => { 1 + 1 } }",
            "#![cfg(test)] fn f() { g(); }",
        ] {
            assert_eq!(changes(source), [""; 0], "{source}");
        }
        for code in [
            "let a = [0; 1 + 1];",
            "let a: [u8; 1 + 1];",
            "g::<{ 1 + 1 }>();",
            "const { 1 + 1 };",
            "unsafe { 1 + 1 };",
            "m!(1 + 1);",
            "if let A(x) = y && let B(z) = x {}",
        ] {
            assert_eq!(inside(code), [""; 0], "{code}");
        }
        assert_eq!(inside("if let A(x) = y && x == z {}"), ["x == z -> x != z"]);
        let windows = "#[cfg(not(test))] fn f() { g(); }";
        assert_eq!(changes(windows), ["g(); -> ()"], "the compiler knows");
    }

    #[test]
    fn loops_and_modules_are_found() {
        let source = "#![no_std]\nmod a; mod b { #[path = \"x.rs\"] mod c; }\nfn f() { loop { while x() {} for _ in y() {} } }";
        let found = find(source).unwrap();
        assert_eq!(found.loops.len(), 3);
        assert!(found.loops.iter().all(|&at| source.as_bytes()[at - 1] == b'{'));
        let told: Vec<(&[String], &str, Option<&str>)> =
            found.modules.iter().map(|m| (&*m.inside, &*m.name, m.path.as_deref())).collect();
        assert_eq!(told, [(&[][..], "a", None), (&["b".to_owned()][..], "c", Some("x.rs"))]);
        assert!(found.no_std);
    }
}
