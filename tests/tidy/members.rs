//! Every package of the tree is a member of the workspace, under its lints, and
//! everything that CI runs runs on it.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::scripts::{commands, is_cargo};
use crate::tree::{Outcome, Tree};

const ROOT: &str = "Cargo.toml";
const SCRIPT: &str = "ci/run";
const ENTRY: &str = ".ci/run";

/// What must run on every member.
const STEPS: [&str; 4] = ["clippy", "doc", "test", "nextest run"];

/// Fields of a package that the workspace sets for all.
const SHARED: [&str; 3] = ["edition", "rust-version", "license"];

fn check(tree: &Tree) -> Outcome {
    let mut outcome = Outcome::default();
    let packages = packages(tree, &mut outcome);
    let script = tree.file(SCRIPT).map_or("", |file| &file.text);
    let commands = commands(script);
    for (path, (name, table)) in &packages {
        outcome.looked_at += 1;
        inherits(path, table, &mut outcome);
        depends(path, name, table, &packages, &mut outcome);
        for step in STEPS {
            let mut runs = commands.iter().filter(|(_, command)| is_cargo(command, step));
            if !runs.any(|(_, command)| covers(command, name)) {
                let what = format_args!("no `cargo {step}` covers the package {name}");
                outcome.find(SCRIPT, 1, what);
            }
        }
    }
    if !tree.file(ENTRY).is_some_and(|file| file.text.contains(SCRIPT)) {
        outcome.find(ENTRY, 1, format_args!("does not run {SCRIPT}"));
    }
    outcome
}

fn covers(command: &str, package: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let named = |option: &str| words.windows(2).any(|pair| pair == [option, package]);
    let all = words.contains(&"--workspace") && !named("--exclude");
    all || named("-p") || named("--package")
}

/// Each package's manifest, name and contents.
fn packages(tree: &Tree, outcome: &mut Outcome) -> BTreeMap<String, (String, Table)> {
    let mut packages = BTreeMap::new();
    let mut listed = Vec::new();
    for file in tree.files.iter().filter(|file| file.name() == "Cargo.toml") {
        let table: Table = match file.text.parse() {
            Ok(table) => table,
            Err(error) => {
                outcome.find(&file.path, 1, error);
                continue;
            }
        };
        if file.path == ROOT {
            listed = members(&table, outcome);
        }
        if let Some(name) = get(&table, &["package", "name"]).and_then(Value::as_str) {
            packages.insert(file.path.clone(), (name.to_owned(), table));
        }
    }
    for path in packages.keys().filter(|path| *path != ROOT) {
        let directory = path.trim_end_matches("/Cargo.toml");
        if !listed.iter().any(|member| member == directory) {
            outcome.find(path, 1, "is no member of the workspace");
        }
    }
    packages
}

fn members(root: &Table, outcome: &mut Outcome) -> Vec<String> {
    for hides in ["exclude", "default-members"] {
        if get(root, &["workspace", hides]).is_some() {
            outcome.find(ROOT, 1, format_args!("`workspace.{hides}` hides packages from CI"));
        }
    }
    let listed = get(root, &["workspace", "members"]).and_then(Value::as_array);
    let listed = listed.into_iter().flatten().filter_map(Value::as_str);
    listed.map(str::to_owned).collect()
}

fn inherits(path: &str, table: &Table, outcome: &mut Outcome) {
    if get(table, &["lints", "workspace"]) != Some(&Value::Boolean(true)) {
        outcome.find(path, 1, "`lints.workspace = true` is missing");
    }
    for field in SHARED {
        if get(table, &["package", field, "workspace"]) != Some(&Value::Boolean(true)) {
            outcome.find(path, 1, format_args!("`{field}.workspace = true` is missing"));
        }
    }
}

/// Dependencies point from the lab to the implementation and the model, which
/// know nothing of each other or of anything else here.
fn depends(
    path: &str,
    name: &str,
    table: &Table,
    packages: &BTreeMap<String, (String, Table)>,
    outcome: &mut Outcome,
) {
    if !["mortmain", "mortmain-model"].contains(&name) {
        return;
    }
    for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
        let dependencies = table.get(kind).and_then(Value::as_table);
        for dependency in dependencies.into_iter().flat_map(Table::keys) {
            if packages.values().any(|(other, _)| other == dependency) {
                let what =
                    format_args!("{name} depends on {dependency}, which is above or beside it");
                outcome.find(path, 1, what);
            }
        }
    }
}

fn get<'t>(table: &'t Table, keys: &[&str]) -> Option<&'t Value> {
    let (last, tables) = keys.split_last()?;
    let inner = tables.iter().try_fold(table, |table, key| table.get(*key)?.as_table())?;
    inner.get(*last)
}

#[test]
fn ci_runs_everything_on_every_member() {
    check(&Tree::real()).assert_clean();
}

mod planted {
    use super::*;

    const RUN: &str = "#!/bin/x\nstep x cargo clippy --workspace\nstep x env A=b cargo doc --workspace\n\
                       step x cargo test --workspace --doc\ncargo nextest run --workspace\n";
    const ENTRY_TEXT: &str = "exec ../ci/run\n";

    fn manifest(name: &str, rest: &str) -> String {
        format!(
            "[package]\nname = \"{name}\"\nedition.workspace = true\nrust-version.workspace = true\n\
             license.workspace = true\n[lints]\nworkspace = true\n{rest}"
        )
    }

    fn root(members: &str) -> String {
        manifest("lab", &format!("[workspace]\n{members}\n"))
    }

    #[test]
    fn a_complete_workspace_is_clean() {
        check(&Tree::planted(&[
            ("Cargo.toml", &root("members = [\"a\"]")),
            ("a/Cargo.toml", &manifest("a", "")),
            (SCRIPT, RUN),
            (ENTRY, ENTRY_TEXT),
        ]))
        .assert_found(&[]);
    }

    #[test]
    fn a_package_that_a_step_passes_over_is_found() {
        let run = RUN
            .replace("clippy --workspace", "clippy -p lab")
            .replace("test --workspace", "test --workspace --exclude a");
        check(&Tree::planted(&[
            ("Cargo.toml", &root("members = [\"a\"]")),
            ("a/Cargo.toml", &manifest("a", "")),
            (SCRIPT, &run),
        ]))
        .assert_found(&[
            "ci/run:1: no `cargo clippy` covers the package a",
            "ci/run:1: no `cargo test` covers the package a",
            ".ci/run:1: does not run ci/run",
        ]);
    }

    #[test]
    fn a_package_outside_the_workspace_or_its_lints_is_found() {
        check(&Tree::planted(&[
            ("Cargo.toml", &root("members = []\nexclude = [\"b\"]")),
            ("b/Cargo.toml", &manifest("b", "").replace("[lints]\nworkspace = true\n", "")),
            (SCRIPT, RUN),
            (ENTRY, ENTRY_TEXT),
        ]))
        .assert_found(&[
            "Cargo.toml:1: `workspace.exclude` hides packages from CI",
            "b/Cargo.toml:1: is no member of the workspace",
            "b/Cargo.toml:1: `lints.workspace = true` is missing",
        ]);
    }

    #[test]
    fn a_dependency_of_the_implementation_on_the_lab_is_found() {
        let upwards = "[dev-dependencies]\nserde = \"1\"\nlab = \"1\"\n";
        check(&Tree::planted(&[
            ("Cargo.toml", &root("members = [\"mortmain\"]")),
            ("mortmain/Cargo.toml", &manifest("mortmain", upwards)),
            (SCRIPT, RUN),
            (ENTRY, ENTRY_TEXT),
        ]))
        .assert_found(&[
            "mortmain/Cargo.toml:1: mortmain depends on lab, which is above or beside it",
        ]);
    }
}
