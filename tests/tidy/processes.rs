//! Where tests with real processes belong, and how a death in them is done.
//!
//! A test binary whose name begins with `host` runs on its own, one test at a time;
//! what starts processes elsewhere would run beside others. And death in a test on
//! the host is a SIGKILL: a guard that is dropped runs all that a killed process
//! does not.
//!
//! How a process is started and read is the matter of `child_output`.

use crate::source::{Source, in_brackets, line_of, words};
use crate::tree::{File, Outcome, Tree};

/// The sources that alone may start a process and hold its pipes.
pub(crate) const GUARD: &str = "harness/src/guard/";

/// The path below the `tests` directory that the file is in, if it is in one.
pub(crate) fn below_tests(file: &File) -> Option<&str> {
    let rest = match file.path.split_once("/tests/") {
        Some((package, rest)) if !package.contains("/src") => rest,
        _ => file.path.strip_prefix("tests/")?,
    };
    file.has_extension("rs").then_some(rest)
}

/// Whether the file is a part of a test binary that counts as a host test.
fn is_host_test(file: &File) -> bool {
    below_tests(file).is_some_and(|rest| rest.starts_with("host"))
}

/// Whether the file is the root of a test binary.
fn is_test_root(file: &File) -> bool {
    below_tests(file).is_some_and(|rest| match rest.split_once('/') {
        None => true,
        Some((_, name)) => name == "main.rs",
    })
}

fn check(tree: &Tree) -> Outcome {
    let mut outcome = Outcome::default();
    for file in tree.files.iter().filter(|file| below_tests(file).is_some()) {
        outcome.looked_at += 1;
        let code = Source::of(&file.text).code;
        if is_host_test(file) {
            deaths(file, &code, &mut outcome);
        } else if is_test_root(file) {
            misplaced(file, &code, &mut outcome);
        }
    }
    outcome
}

fn is_called(code: &str, at: usize, name: &str) -> bool {
    code[at + name.len()..].starts_with('(')
}

/// Guards that are dropped or forgotten in the place of a death.
fn deaths(file: &File, code: &str, outcome: &mut Outcome) {
    let mut find = |at: usize, what: &str| {
        let why = "dropping a guard is not dying: kill the process that holds it";
        outcome.find(&file.path, line_of(code, at), format_args!("{what}: {why}"));
    };
    for at in words(code, "drop").filter(|&at| is_called(code, at, "drop")) {
        let argument = in_brackets(code, at + "drop".len());
        let names = argument.split(|c: char| !c.is_alphanumeric());
        if names.into_iter().any(|name| matches!(name, "claim" | "owner" | "lease" | "claims")) {
            find(at, &format!("drop({})", argument.trim()));
        }
    }
    for name in ["mem::drop", "mem::forget", "ManuallyDrop"] {
        for (at, _) in code.match_indices(name) {
            find(at, name);
        }
    }
}

/// A test that starts processes but would run among the deterministic ones.
fn misplaced(file: &File, code: &str, outcome: &mut Outcome) {
    for sign in ["ChildGuard", "process::Command", "Command::new"] {
        if let Some(at) = code.find(sign) {
            let what = format_args!("{sign}: a test on real processes belongs into tests/host*.rs");
            outcome.find(&file.path, line_of(code, at), what);
            return;
        }
    }
}

#[test]
fn real_processes_are_guarded_and_really_killed() {
    check(&Tree::real()).assert_clean();
}

#[test]
fn a_guard_dropped_to_kill_is_found_in_host_tests() {
    let code = "drop(claim);\ndrop(reader);\nstd::mem::drop(x);\ndrop((first_claim, 1));\n\
                mem::forget(owner);\nbackdrop(claim);\n";
    let why = "dropping a guard is not dying: kill the process that holds it";
    check(&Tree::planted(&[("tests/host_kill.rs", code), ("tests/unit.rs", code)])).assert_found(
        &[
            &format!("tests/host_kill.rs:1: drop(claim): {why}"),
            &format!("tests/host_kill.rs:4: drop((first_claim, 1)): {why}"),
            &format!("tests/host_kill.rs:3: mem::drop: {why}"),
            &format!("tests/host_kill.rs:5: mem::forget: {why}"),
        ],
    );
}

#[test]
fn a_process_in_a_deterministic_test_is_found() {
    let code = "use harness::ChildGuard;\n";
    check(&Tree::planted(&[
        ("tests/cli.rs", code),
        ("tests/host_cli.rs", code),
        ("tests/host/cli.rs", code),
        ("tests/world/main.rs", "Command::new(\"x\");\n"),
    ]))
    .assert_found(&[
        "tests/cli.rs:1: ChildGuard: a test on real processes belongs into tests/host*.rs",
        "tests/world/main.rs:1: Command::new: a test on real processes belongs into tests/host*.rs",
    ]);
}
