//! The core of the library stays a function of its program, its arguments and
//! the system's answers.
//!
//! The compiler holds it to `no_std`. What it cannot see is banned here: state
//! that outlives a call, the system crates, and any word of the lab. Only the
//! real kernel and the public face may use the standard library, and single items
//! that are there for them, such as a conversion into its errors. Modules that are
//! built for tests only are left alone.

use crate::source::{Source, line_of, words};
use crate::tree::{File, Outcome, Tree};

/// A banned word, and why.
const BANNED: [(&str, &str); 11] = [
    ("static", "no state outlives a call"),
    ("thread_local", "no state outlives a call"),
    ("LazyLock", "no state outlives a call"),
    ("OnceLock", "no state outlives a call"),
    ("HashMap", "iterates in a random order"),
    ("HashSet", "iterates in a random order"),
    ("tracing", "no global state; a report says what was done"),
    ("std", "the core is `core` and `alloc`"),
    ("nix", "the system is reached through the seam"),
    ("rustix", "the system is reached through the seam"),
    ("libc", "the system is reached through the seam"),
];

const TESTS: &str = "#[cfg(test)]";
const HOST: &str = "#[cfg(feature = \"host\")]";

/// Whether the file is a part of the protocol, not of what is around it.
fn is_core(file: &File) -> bool {
    file.path
        .strip_prefix("mortmain/src/")
        .is_some_and(|path| !path.starts_with("sys/host") && !path.starts_with("face"))
}

fn check(tree: &Tree) -> Outcome {
    let mut outcome = Outcome::default();
    for file in tree.files.iter().filter(|file| file.path.starts_with("mortmain/")) {
        for at in words(&file.text, "harness") {
            let what = "the implementation does not know the lab";
            outcome.find(&file.path, line_of(&file.text, at), what);
        }
        if !is_core(file) || !file.has_extension("rs") {
            continue;
        }
        outcome.looked_at += 1;
        let source = Source::of(&file.text);
        let core = source.code_without(&file.text, &[TESTS]);
        let without_host = source.code_without(&file.text, &[TESTS, HOST]);
        for (word, why) in BANNED {
            let code = if word == "std" { &without_host } else { &core };
            for at in words(code, word).filter(|&at| !is_harmless(code, at, word)) {
                let what = format_args!("`{word}` in the core: {why}");
                outcome.find(&file.path, line_of(code, at), what);
            }
        }
    }
    outcome
}

/// `'static` is a lifetime. `extern crate std` is how the root of the crate brings
/// the standard library in for the rest of it.
fn is_harmless(code: &str, at: usize, word: &str) -> bool {
    match word {
        "static" => code[..at].ends_with('\''),
        "std" => code[..at].trim_end().ends_with("extern crate"),
        _ => false,
    }
}

#[test]
fn the_core_reaches_nothing_but_the_seam() {
    check(&Tree::real()).assert_clean();
}

#[test]
fn banned_words_are_found_in_the_core_only() {
    let code = "//! About std and static.\nuse std::fs;\nfn a(x: &'static str) {}\n\
                static X: u8 = 0;\nfn b() { HashMap::new(); \"tracing\"; }\n\
                #[cfg(test)]\nmod tests { use std::fs; static Y: u8 = 0; }\n\
                #[cfg(feature = \"host\")]\nimpl A for std::io::Error {}\n\
                #[cfg(feature = \"host\")]\nstatic Z: u8 = 0;\n";
    check(&Tree::planted(&[
        ("mortmain/src/claim.rs", code),
        ("mortmain/src/sys/host/file.rs", code),
        ("mortmain/src/face.rs", code),
        ("mortmain/tests/a.rs", code),
        ("harness/src/a.rs", code),
        ("mortmain/src/lib.rs", "#[cfg(x)]\nextern crate std;\n"),
    ]))
    .assert_found(&[
        "mortmain/src/claim.rs:4: `static` in the core: no state outlives a call",
        "mortmain/src/claim.rs:11: `static` in the core: no state outlives a call",
        "mortmain/src/claim.rs:5: `HashMap` in the core: iterates in a random order",
        "mortmain/src/claim.rs:2: `std` in the core: the core is `core` and `alloc`",
    ]);
}

#[test]
fn the_lab_is_not_named_in_the_implementation() {
    check(&Tree::planted(&[
        ("mortmain/Cargo.toml", "[dev-dependencies]\nmortmain-harness = 1\n"),
        ("mortmain/src/a.rs", "// As the harness does.\n"),
        ("harness/src/a.rs", "// The harness.\n"),
    ]))
    .assert_found(&[
        "mortmain/Cargo.toml:2: the implementation does not know the lab",
        "mortmain/src/a.rs:1: the implementation does not know the lab",
    ]);
}
