//! What must not be left in the tree: notes to oneself, tests that are switched
//! off, lints that are switched off for good, and paths of somebody's machine.

use crate::source::{Source, in_brackets, line_of, words};
use crate::tree::{File, Outcome, Tree, numbered};

// In two parts, so that this file does not find itself.
const NOTES: [&str; 3] = [concat!("FIX", "ME"), concat!("TO", "DO"), concat!("XX", "X")];
const MACHINES: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

fn check(tree: &Tree) -> Outcome {
    let mut outcome = Outcome::default();
    for file in &tree.files {
        outcome.looked_at += 1;
        machine_paths(file, &mut outcome);
        if file.has_extension("rs") {
            let source = Source::of(&file.text);
            notes(&file.path, &source.comments, &mut outcome);
            attributes(&file.path, &source.code, &mut outcome);
        } else if !file.path.ends_with(".lock") {
            notes(&file.path, &file.text, &mut outcome);
        }
    }
    outcome
}

fn notes(path: &str, text: &str, outcome: &mut Outcome) {
    for note in NOTES {
        for at in words(text, note) {
            outcome.find(path, line_of(text, at), format_args!("leftover {note}"));
        }
    }
}

/// An absolute path below somebody's directory. In the middle of a longer path
/// the same letters are nothing of the kind.
fn machine_paths(file: &File, outcome: &mut Outcome) {
    for (number, line) in numbered(&file.text) {
        for machine in MACHINES {
            let starts = line.match_indices(machine).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "_-.~*>})]".contains(c))
            });
            if starts {
                outcome.find(&file.path, number, format_args!("a path of a machine: {machine}…"));
            }
        }
    }
}

fn attributes(path: &str, code: &str, outcome: &mut Outcome) {
    for (at, _) in code.match_indices('#') {
        let open = at + 1 + usize::from(code[at + 1..].starts_with('!'));
        if !code[open..].starts_with('[') {
            continue;
        }
        let attribute = in_brackets(code, open);
        if words(attribute, "ignore").next().is_some() {
            let what = "a test that is switched off: fix it, or assert what happens today";
            outcome.find(path, line_of(code, at), what);
        }
        if words(attribute, "allow").next().is_some() {
            let what = "`allow` stays when its reason has gone: use `expect` with a reason";
            outcome.find(path, line_of(code, at), what);
        }
    }
}

#[test]
fn nothing_is_left_over() {
    check(&Tree::real()).assert_clean();
}

#[test]
fn notes_are_found_in_comments_and_texts() {
    let [fix, to_do, xxx] = NOTES;
    check(&Tree::planted(&[
        ("a.rs", &format!("// {fix}: later\nlet x = \"{to_do}\"; // {xxx}X\n")),
        ("b.md", &format!("one\ntwo ({to_do})\n")),
        ("c.sh", &format!("# {xxx}\nmktemp a.{xxx}{xxx}\n")),
    ]))
    .assert_found(&[
        &format!("a.rs:1: leftover {fix}"),
        &format!("b.md:2: leftover {to_do}"),
        &format!("c.sh:1: leftover {xxx}"),
    ]);
}

#[test]
fn machine_paths_are_found_and_parts_of_paths_are_not() {
    let [home, root, work, _] = MACHINES;
    check(&Tree::planted(&[
        ("a.rs", &format!("let p = \"{home}me\";\n")),
        ("b.md", &format!("see {root}x and `{work}y`\n")),
        ("c.md", &format!("<root>{work}x, target{work}x, ~{root}x")),
    ]))
    .assert_found(&[
        &format!("a.rs:1: a path of a machine: {home}…"),
        &format!("b.md:1: a path of a machine: {root}…"),
        &format!("b.md:1: a path of a machine: {work}…"),
    ]);
}

#[test]
fn switched_off_tests_and_lints_are_found() {
    check(&Tree::planted(&[(
        "a.rs",
        "#![allow(unused)]\n#[test]\n#[ignore = \"slow\"]\nfn a() {}\n\
         #[cfg_attr(x, ignore)]\nfn b() {}\n#[expect(dead_code, reason = \"allow, ignore\")]\n\
         fn ignore() { let s = \"#[allow(x)]\"; } // #[ignore]\n",
    )]))
    .assert_found(&[
        "a.rs:1: `allow` stays when its reason has gone: use `expect` with a reason",
        "a.rs:3: a test that is switched off: fix it, or assert what happens today",
        "a.rs:5: a test that is switched off: fix it, or assert what happens today",
    ]);
}
