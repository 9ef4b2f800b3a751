//! The filtersets and profiles of nextest, in its configuration and wherever a
//! text or a script uses one.
//!
//! Each filterset can be read and names something that exists, and the profiles
//! `default` and `host` are each other's complement, so that no test is in
//! neither.

use toml::{Table, Value};

use crate::filterset::{Matcher, Predicate, parse};
use crate::tree::{File, Outcome, Tree};

const CONFIG: &str = ".config/nextest.toml";

/// A filterset or the name of a profile, where it is used.
#[derive(Debug)]
enum Use {
    Filterset(String),
    Profile(String),
}

fn check(tree: &Tree) -> Outcome {
    let mut outcome = Outcome::default();
    let config: Table = match tree.file(CONFIG).map(|file| file.text.parse()) {
        Some(Ok(config)) => config,
        Some(Err(error)) => {
            outcome.find(CONFIG, 1, error);
            return outcome;
        }
        None => {
            outcome.find(CONFIG, 1, "is missing");
            return outcome;
        }
    };
    let empty = Table::new();
    let profiles = config.get("profile").and_then(Value::as_table).unwrap_or(&empty);
    let filters = configured(profiles);
    for filter in &filters {
        outcome.looked_at += 1;
        exists(tree, CONFIG, 1, filter, &mut outcome);
    }
    complement(profiles, &filters, &mut outcome);
    for file in &tree.files {
        for (number, used) in uses(file) {
            outcome.looked_at += 1;
            match used {
                Use::Filterset(text) => exists(tree, &file.path, number, &text, &mut outcome),
                Use::Profile(name) if profiles.contains_key(&name) => {}
                Use::Profile(name) => {
                    outcome.find(&file.path, number, format_args!("there is no profile {name}"));
                }
            }
        }
    }
    outcome
}

/// Every filterset of the configuration.
fn configured(profiles: &Table) -> Vec<String> {
    let mut filters = Vec::new();
    for profile in profiles.values().filter_map(Value::as_table) {
        let overrides = profile.get("overrides").and_then(Value::as_array);
        let overrides = overrides.into_iter().flatten().filter_map(|one| one.get("filter"));
        let all = profile.get("default-filter").into_iter().chain(overrides);
        filters.extend(all.filter_map(Value::as_str).map(str::to_owned));
    }
    filters
}

/// `default` is all but `host`, the overrides are for what `host` runs, and `ci`
/// runs everything.
fn complement(profiles: &Table, filters: &[String], outcome: &mut Outcome) {
    let of = |profile: &str| {
        let filter = profiles.get(profile).and_then(|profile| profile.get("default-filter"));
        filter.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let host = of("host");
    if host.is_empty() || of("default") != format!("not ({host})") {
        outcome.find(CONFIG, 1, "the profile `default` is not the complement of `host`");
    }
    if filters.iter().filter(|filter| **filter == host).count() < 2 {
        outcome.find(CONFIG, 1, "no override is for the tests of the profile `host`");
    }
    if of("ci") != "all()" {
        outcome.find(CONFIG, 1, "the profile `ci` does not run everything");
    }
}

/// Whether the filterset can be read and what it names exists. A `test(…)` is
/// looked for in the code only if it is a plain name.
fn exists(tree: &Tree, path: &str, line: usize, filterset: &str, outcome: &mut Outcome) {
    let predicates = match parse(filterset) {
        Ok(predicates) => predicates,
        Err(error) => {
            outcome.find(path, line, format_args!("filterset `{filterset}`: {error}"));
            return;
        }
    };
    for Predicate { name, matcher } in predicates {
        let there = match name.as_str() {
            "binary" if !matcher.is_simple() => {
                let what = "write a binary's pattern as /^beginning/ or /^whole$/";
                outcome.find(path, line, what);
                continue;
            }
            "binary" => binaries(tree).any(|binary| matcher.matches(binary)),
            "package" => tree.with_extension("toml").any(|manifest| {
                let table = manifest.text.parse::<Table>().unwrap_or_default();
                let name = table.get("package").and_then(|package| package.get("name"));
                name.and_then(Value::as_str).is_some_and(|name| matcher.matches(name))
            }),
            "test" => match &matcher {
                Matcher::Contains(test) | Matcher::Exactly(test) => {
                    let last = test.rsplit("::").next().unwrap_or(test);
                    tree.with_extension("rs").any(|file| file.text.contains(last))
                }
                _ => true,
            },
            _ => true,
        };
        if !there {
            let what = format_args!("filterset `{filterset}`: its `{name}` matches nothing");
            outcome.find(path, line, what);
        }
    }
}

/// The names of the test binaries from `tests` directories.
fn binaries(tree: &Tree) -> impl Iterator<Item = &str> {
    tree.with_extension("rs").filter_map(|file| {
        let below = match file.path.split_once("/tests/") {
            Some((package, below)) if !package.contains('/') => below,
            _ => file.path.strip_prefix("tests/")?,
        };
        let name = below.strip_suffix("/main.rs").or_else(|| below.strip_suffix(".rs"))?;
        (!name.contains('/')).then_some(name)
    })
}

/// Filtersets and profiles on command lines, in code spans, and on lines of their
/// own in the comments of the configuration.
fn uses(file: &File) -> Vec<(usize, Use)> {
    let mut uses = Vec::new();
    let in_config = file.path == CONFIG;
    let script = file.path.starts_with("ci/");
    if !in_config && !script && !file.has_extension("md") {
        return uses;
    }
    for (number, line) in file.lines() {
        if line.contains("nextest") || line.contains("cargo nt") {
            let words: Vec<&str> = line.split_whitespace().collect();
            for pair in words.windows(2).filter(|pair| ["--profile", "-P"].contains(&pair[0])) {
                let plain = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
                let name = pair[1].split(plain).next().unwrap_or_default();
                uses.push((number, Use::Profile(name.to_owned())));
            }
        }
        for quote in ['\'', '"'] {
            for rest in line.split(&format!("-E {quote}")).skip(1) {
                let filterset = rest.split(quote).next().unwrap_or_default();
                uses.push((number, Use::Filterset(filterset.to_owned())));
            }
        }
        let spans: Vec<&str> = if in_config {
            line.strip_prefix("#   ").into_iter().collect()
        } else {
            line.split('`').skip(1).step_by(2).collect()
        };
        for span in spans.into_iter().filter(|span| is_filterset(span)) {
            uses.push((number, Use::Filterset(span.to_owned())));
        }
    }
    uses
}

fn is_filterset(span: &str) -> bool {
    let span = span.trim_start_matches("not ").trim_start_matches('(');
    ["binary(", "package(", "test(/", "test(=", "test(~"]
        .iter()
        .any(|start| span.starts_with(start))
}

#[test]
fn filtersets_and_profiles_name_what_exists() {
    check(&Tree::real()).assert_clean();
}

mod planted {
    use super::*;

    const GOOD: &str = "[profile.default]\ndefault-filter = 'not (binary(/^host/))'\n\
                        [[profile.default.overrides]]\nfilter = 'binary(/^host/)'\n\
                        [profile.host]\ndefault-filter = 'binary(/^host/)'\n\
                        [profile.ci]\ndefault-filter = 'all()'\n";
    const HOST: (&str, &str) = ("tests/host_kill.rs", "fn killed() {}\n");

    #[test]
    fn a_good_configuration_is_clean() {
        check(&Tree::planted(&[(CONFIG, GOOD), HOST])).assert_found(&[]);
    }

    #[test]
    fn a_test_in_no_profile_is_found() {
        let bad = GOOD.replace("not (binary(/^host/))", "not (binary(/^host/) | test(/^x::/))");
        check(&Tree::planted(&[(CONFIG, &bad), HOST])).assert_found(&[
            ".config/nextest.toml:1: the profile `default` is not the complement of `host`",
        ]);
        let bad = GOOD.replace("all()", "test(killed)").replace("filter = 'bin", "x = 'bin");
        check(&Tree::planted(&[(CONFIG, &bad), HOST])).assert_found(&[
            ".config/nextest.toml:1: the profile `default` is not the complement of `host`",
            ".config/nextest.toml:1: no override is for the tests of the profile `host`",
            ".config/nextest.toml:1: the profile `ci` does not run everything",
        ]);
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_found() {
        let what =
            ".config/nextest.toml:1: filterset `binary(/^host/)`: its `binary` matches nothing";
        let negated = ".config/nextest.toml:1: filterset `not (binary(/^host/))`: its `binary` matches nothing";
        check(&Tree::planted(&[(CONFIG, GOOD), ("tests/unit.rs", "")]))
            .assert_found(&[negated, what, what]);
    }

    #[test]
    fn uses_in_texts_and_scripts_are_checked() {
        let text = "`cargo nt --profile hots` and `cargo nt --profile host`\n\
                    cargo nextest run -E 'test(killed) & binary(host_kill)'\n\
                    -E 'test(kiled)' -E \"binary(=hosts)\"\n`package(nobody)`, `test(x)`\n";
        check(&Tree::planted(&[(CONFIG, GOOD), HOST, ("README.md", text)])).assert_found(&[
            "README.md:1: there is no profile hots",
            "README.md:3: filterset `test(kiled)`: its `test` matches nothing",
            "README.md:3: filterset `binary(=hosts)`: its `binary` matches nothing",
            "README.md:4: filterset `package(nobody)`: its `package` matches nothing",
        ]);
    }
}
