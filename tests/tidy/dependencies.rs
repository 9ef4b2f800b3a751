//! Every dependency is used: what a manifest asks for is named in the code of its package, and what
//! the workspace gives is asked for.
//!
//! Cargo builds what nobody uses, and says nothing.

use toml::{Table, Value};

use crate::source::{Source, words};
use crate::tree::{Outcome, Tree};

const ROOT: &str = "Cargo.toml";
const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

fn check(tree: &Tree) -> Outcome {
    let mut outcome = Outcome::default();
    let mut asked_for = Vec::new();
    for file in tree.files.iter().filter(|file| file.name() == ROOT) {
        // That it can be read is another check's.
        let table: Table = file.text.parse().unwrap_or_default();
        let package = file.path.trim_end_matches(ROOT).trim_end_matches('/');
        let own = tree.with_extension("rs").filter(|file| tree.package_of(file) == package);
        let code: Vec<String> = own.map(|file| Source::of(&file.text).code).collect();
        for (kind, name) in KINDS.iter().flat_map(|kind| names(&table, kind)) {
            outcome.looked_at += 1;
            let word = name.replace('-', "_");
            if !code.iter().any(|code| words(code, &word).next().is_some()) {
                let what = format_args!("{name} of `{kind}` is named nowhere in the package");
                outcome.find(&file.path, 1, what);
            }
            asked_for.push(name);
        }
    }
    let root: Table = tree.file(ROOT).and_then(|file| file.text.parse().ok()).unwrap_or_default();
    let given = root.get("workspace").and_then(Value::as_table).cloned().unwrap_or_default();
    for (_, name) in names(&given, KINDS[0]) {
        if !asked_for.contains(&name) {
            outcome.find(ROOT, 1, format_args!("no package asks for {name}"));
        }
    }
    outcome
}

/// The dependencies of a kind, each with it.
fn names<'k>(table: &Table, kind: &'k str) -> Vec<(&'k str, String)> {
    let all = table.get(kind).and_then(Value::as_table);
    all.into_iter().flat_map(Table::keys).map(|name| (kind, name.clone())).collect()
}

#[test]
fn every_dependency_is_used() {
    check(&Tree::real()).assert_clean();
}

#[test]
fn a_dependency_that_nobody_names_is_found() {
    check(&Tree::planted(&[
        (
            "Cargo.toml",
            "[workspace.dependencies]\na-b = \"1\"\nc = \"1\"\nd = \"1\"\n\
             [dependencies]\na-b.workspace = true\n[dev-dependencies]\nc.workspace = true\n",
        ),
        ("src/lib.rs", "use a_b::x;\n// c::x\n"),
        ("m/Cargo.toml", "[dependencies]\nc.workspace = true\n"),
        ("m/src/lib.rs", "fn x() { c::y(\"a_b\"); }\n"),
    ]))
    .assert_found(&[
        "Cargo.toml:1: c of `dev-dependencies` is named nowhere in the package",
        "Cargo.toml:1: no package asks for d",
    ]);
}
