//! The names in the documentation exist: paths, links and their anchors, cargo's
//! aliases, and the paths that comments in the code point to.
//!
//! A word is taken for a path if it begins with a name at the top of the tree, or
//! ends like a file of the tree. The parts of a claim on disk are no such names.

use crate::source::Source;
use crate::tree::{File, Outcome, Tree, numbered};

/// Cargo's own commands that our documents may name.
const CARGO: [&str; 13] = [
    "add", "build", "check", "clippy", "deny", "doc", "fmt", "install", "nextest", "run", "test",
    "update", "tree",
];
/// Made by a build, not a part of the tree.
const BUILT: [&str; 1] = ["target"];
const EXTENSIONS: [&str; 4] = ["md", "rs", "sh", "toml"];

fn check(tree: &Tree) -> Outcome {
    let mut outcome = Outcome::default();
    let aliases = aliases(tree);
    for file in tree.with_extension("md") {
        let mut fenced = false;
        // In a fenced map of directories, the one that the indented lines are below.
        let mut above = "";
        for (number, line) in file.lines() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
                above = "";
                continue;
            }
            if !line.starts_with(char::is_whitespace) {
                let first = line.split_whitespace().next().unwrap_or_default();
                above = if first.ends_with('/') { first } else { "" };
            }
            let mut look = |text: &str| {
                let place = Place { file, number, above };
                paths(tree, place, text, &mut outcome);
                cargo_commands(&aliases, place, text, &mut outcome);
            };
            if fenced {
                look(line);
            } else {
                code_spans(line).for_each(&mut look);
                links(tree, file, number, line, &mut outcome);
            }
        }
    }
    for file in tree.with_extension("rs") {
        for (number, line) in numbered(&Source::of(&file.text).comments) {
            for span in code_spans(line).filter(|span| span.contains('/')) {
                let place = Place { file, number, above: "" };
                paths(tree, place, span, &mut outcome);
            }
        }
    }
    outcome
}

/// Where a text stands.
#[derive(Clone, Copy)]
struct Place<'t> {
    file: &'t File,
    number: usize,
    above: &'t str,
}

impl Place<'_> {
    fn find(self, what: impl std::fmt::Display, outcome: &mut Outcome) {
        outcome.find(&self.file.path, self.number, what);
    }
}

/// What stands between single back-ticks.
fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn paths(tree: &Tree, place: Place<'_>, text: &str, outcome: &mut Outcome) {
    let words = text.split(|c: char| c.is_whitespace() || "()|;,'\"=".contains(c));
    for word in words {
        // With or without the number of a line.
        let path = word.split_once(':').map_or(word, |(path, _)| path);
        let path = path.trim_end_matches('.');
        let path = path.strip_prefix("./").unwrap_or(path);
        if !is_path(tree, path) {
            continue;
        }
        outcome.looked_at += 1;
        if !is_there(tree, place, path) {
            place.find(format_args!("there is no {path}"), outcome);
        }
    }
}

fn is_path(tree: &Tree, word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./*".contains(c);
    let first = word.split('/').next().unwrap_or_default();
    if !word.chars().all(plain) || first.is_empty() || BUILT.contains(&first) || word.contains("..")
    {
        return false;
    }
    let deep = word.contains('/') && first.chars().any(char::is_alphanumeric) && tree.has(first);
    let named = word
        .rsplit('/')
        .next()
        .and_then(|name| name.rsplit_once('.'))
        .is_some_and(|(stem, end)| !stem.is_empty() && EXTENSIONS.contains(&end));
    deep || named
}

/// From the root, from the directory above it in a map, or from any directory that
/// the file is in: a crate's own comments name its files shortly.
fn is_there(tree: &Tree, place: Place<'_>, path: &str) -> bool {
    let mut at = place.file.path.as_str();
    while let Some((directory, _)) = at.rsplit_once('/') {
        if tree.has(&format!("{directory}/{path}")) {
            return true;
        }
        at = directory;
    }
    tree.has(path) || tree.has(&format!("{}{path}", place.above))
}

/// `[text](target#anchor)`, within the tree.
fn links(tree: &Tree, file: &File, number: usize, line: &str, outcome: &mut Outcome) {
    for rest in line.split("](").skip(1) {
        let target = rest.split([')', ' ']).next().unwrap_or_default();
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        outcome.looked_at += 1;
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let directory = file.path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let path = if path.is_empty() { file.path.clone() } else { resolve(directory, path) };
        if !path.is_empty() && !tree.has(&path) {
            outcome.find(&file.path, number, format_args!("the link leads nowhere: {target}"));
        } else if !anchor.is_empty()
            && !tree.file(&path).is_some_and(|file| anchors(&file.text).any(|a| a == anchor))
        {
            outcome.find(&file.path, number, format_args!("there is no heading for {target}"));
        }
    }
}

fn resolve(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors that the headings of a document get.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

fn aliases(tree: &Tree) -> Vec<String> {
    let config = tree.file(".cargo/config.toml").map_or("", |file| &file.text);
    let config: toml::Table = config.parse().unwrap_or_default();
    let aliases = config.get("alias").and_then(toml::Value::as_table);
    aliases.into_iter().flat_map(toml::Table::keys).cloned().collect()
}

fn cargo_commands(aliases: &[String], place: Place<'_>, text: &str, outcome: &mut Outcome) {
    let words: Vec<&str> = text.split_whitespace().collect();
    for pair in words.windows(2).filter(|pair| pair[0] == "cargo") {
        let command = pair[1];
        if command.starts_with(['-', '+', '<']) {
            continue;
        }
        outcome.looked_at += 1;
        if !CARGO.contains(&command) && !aliases.iter().any(|alias| alias == command) {
            place.find(format_args!("there is no `cargo {command}`"), outcome);
        }
    }
}

#[test]
fn names_in_documents_and_comments_exist() {
    check(&Tree::real()).assert_clean();
}

#[test]
fn a_path_that_is_gone_is_found() {
    check(&Tree::planted(&[
        (
            "README.md",
            "See `src/main.rs`, `src/gone.rs` and `docs/*.md`; `other/gone.rs:3`.\n\
             Not paths: `commands/n.id`, `/proc/stat`, `files/`, `target/x.rs`, src/gone.rs.\n\
             ```sh\nci/test --no-install\nci/gone\n```\n",
        ),
        ("src/main.rs", "//! See `src/lost.rs` and `main.rs`.\n"),
        ("docs/a.md", ""),
        ("ci/test", ""),
    ]))
    .assert_found(&[
        "README.md:1: there is no src/gone.rs",
        "README.md:1: there is no other/gone.rs",
        "README.md:5: there is no ci/gone",
        "src/main.rs:1: there is no src/lost.rs",
    ]);
}

#[test]
fn a_map_of_directories_is_read_by_its_indentation() {
    check(&Tree::planted(&[
        (
            "ARCHITECTURE.md",
            "```text\na/       one\n  src/x.rs    two\n  src/gone.rs three\nb/  src/x.rs\n```\n",
        ),
        ("a/src/x.rs", ""),
        ("src/main.rs", ""),
    ]))
    .assert_found(&[
        "ARCHITECTURE.md:4: there is no src/gone.rs",
        "ARCHITECTURE.md:5: there is no src/x.rs",
    ]);
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    check(&Tree::planted(&[
        (
            "docs/a.md",
            "# One thing: here\n[x](#one-thing-here) [x](#two) [x](../src/) [x](b.md)\n\
             [x](../docs/a.md#one-thing-here) [x](https://example.org/y)\n",
        ),
        ("src/main.rs", ""),
    ]))
    .assert_found(&[
        "docs/a.md:2: there is no heading for #two",
        "docs/a.md:2: the link leads nowhere: b.md",
    ]);
}

#[test]
fn a_cargo_command_that_nobody_has_is_found() {
    check(&Tree::planted(&[
        ("a.md", "`cargo lab`, `cargo run --release`, `cargo xtask`\n"),
        (".cargo/config.toml", "[alias]\nlab = \"run\"\n"),
    ]))
    .assert_found(&["a.md:1: there is no `cargo xtask`"]);
}
