//! The command `mutate compare`: our last run against one of `cargo-mutants` on the same package.
//!
//! Mutants of both are matched by file, line, column and operator, and in the order of the other
//! texts at one place. What differs has to be declared, each with a reason, in the workspace that both
//! worked on, as in `mutants/testdata/operators/mutants/differences.toml`:
//!
//! ```toml
//! "src/lib.rs:4:9: replace && with || in f" = "it binds a name, and can be in no parentheses"
//! ```
//!
//! The key is the other tool's name of the mutant, or, where it has none, our id. A declaration of
//! what does not differ is an error, too.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::document::read_toml;
use crate::exit::{Exit, Stop};
use crate::mutant::Mutant;
use crate::operators::Operator;
use crate::state::{Fate, State};

/// Where the declarations are, from the root of the workspace.
const PATH: &str = concat!("mutants/", "differences.toml");

/// The other tool's results, in the directory that it makes.
const OUTCOMES: &str = "outcomes.json";

#[derive(Deserialize)]
struct Outcomes {
    outcomes: Vec<Outcome>,
}

#[derive(Deserialize)]
struct Outcome {
    scenario: Scenario,
    summary: Summary,
}

#[derive(Deserialize)]
enum Scenario {
    Baseline,
    Mutant(Box<Theirs>),
}

#[derive(Deserialize)]
struct Theirs {
    name: String,
    file: PathBuf,
    genre: Genre,
    span: Span,
}

/// Its kinds of changes. Of one that is not known nothing could be compared.
#[derive(Clone, Copy, Deserialize)]
enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

/// What it says of one.
#[derive(Clone, Copy, Deserialize)]
enum Summary {
    Success,
    CaughtMutant,
    MissedMutant,
    Unviable,
    Failure,
    Timeout,
}

#[derive(Deserialize)]
struct Span {
    start: Position,
}

#[derive(Deserialize)]
struct Position {
    line: usize,
    column: usize,
}

/// Where a mutant is, and what it is.
type Key = (PathBuf, usize, usize, Operator);

/// What both tools say, in words that both have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Caught,
    Missed,
    DoesNotCompile,
    /// It was not tried, or not to an end.
    Unjudged,
    Nothing,
}

impl Said {
    fn word(self) -> &'static str {
        match self {
            Said::Caught => "caught",
            Said::Missed => "missed",
            Said::DoesNotCompile => "does not compile",
            Said::Unjudged => "not judged",
            Said::Nothing => "no such mutant",
        }
    }

    fn of_ours(fate: Option<&Fate>) -> Said {
        match fate {
            Some(Fate::Caught { .. } | Fate::Hung { .. }) => Said::Caught,
            // The other tool cannot tell what is not compiled.
            Some(Fate::Missed { .. } | Fate::NotReached | Fate::NotCompiled) => Said::Missed,
            Some(Fate::DoesNotCompile { .. }) => Said::DoesNotCompile,
            Some(Fate::Undecided { .. }) | None => Said::Unjudged,
        }
    }

    fn of_theirs(summary: Summary) -> Said {
        match summary {
            Summary::CaughtMutant | Summary::Timeout => Said::Caught,
            Summary::MissedMutant => Said::Missed,
            Summary::Unviable => Said::DoesNotCompile,
            Summary::Success | Summary::Failure => Said::Unjudged,
        }
    }
}

/// A mutant that both tools judge differently, or that none of them judges.
#[derive(Debug, PartialEq, Eq)]
struct Difference {
    name: String,
    told: String,
}

/// Compares the last run of a workspace with what is in a directory of the other tool.
pub(crate) fn compare(
    root: &Path,
    mutants: &[&Mutant],
    state: &State,
    directory: &Path,
) -> anyhow::Result<Exit> {
    let path = directory.join(OUTCOMES);
    let cannot = |error: &dyn Display| {
        let message = format!("cannot read the other tool's {}: {error}", path.display());
        Stop::new(Exit::Usage, message)
    };
    let text = fs::read_to_string(&path).map_err(|error| cannot(&error))?;
    let outcomes: Outcomes = serde_json::from_str(&text).map_err(|error| cannot(&error))?;
    let declared: BTreeMap<String, String> = read_toml(root, PATH)?.unwrap_or_default();
    let (same, differences) = differences(mutants, &state.fates, outcomes);
    let mut out = anstream::stdout().lock();
    let mut wrong = 0;
    for Difference { name, told } in &differences {
        match declared.get(name) {
            Some(reason) => writeln!(out, "declared    {name}: {told} ({reason})")?,
            None => {
                wrong += 1;
                writeln!(out, "undeclared  {name}: {told}")?;
            }
        }
    }
    for name in declared.keys().filter(|name| !differences.iter().any(|one| one.name == **name)) {
        wrong += 1;
        writeln!(out, "no difference  {name}")?;
    }
    let (all, declared) = (same + differences.len(), differences.len());
    writeln!(
        out,
        "{all} mutants: {same} judged alike, {declared} differ, {wrong} of it not as declared"
    )?;
    Ok(if wrong == 0 { Exit::Proved } else { Exit::CatalogueWrong })
}

/// How many are judged alike, and those that are not.
fn differences(
    mutants: &[&Mutant],
    fates: &BTreeMap<String, Fate>,
    outcomes: Outcomes,
) -> (usize, Vec<Difference>) {
    let mut ours: BTreeMap<Key, Vec<&Mutant>> = BTreeMap::new();
    for mutant in mutants.iter().copied() {
        let Mutant { file, line, column, operator, .. } = mutant;
        ours.entry((file.clone(), *line, *column, *operator)).or_default().push(mutant);
    }
    let mut theirs: BTreeMap<Key, Vec<(String, Said)>> = BTreeMap::new();
    for Outcome { scenario, summary } in outcomes.outcomes {
        if let Scenario::Mutant(mutant) = scenario {
            let Position { line, column } = mutant.span.start;
            let key = (mutant.file, line, column, operator(mutant.genre));
            theirs.entry(key).or_default().push((mutant.name, Said::of_theirs(summary)));
        }
    }
    let (mut same, mut differences) = (0, Vec::new());
    let mut keys: Vec<&Key> = ours.keys().chain(theirs.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let own = ours.get(key).map(Vec::as_slice).unwrap_or_default();
        let other = theirs.get(key).map(Vec::as_slice).unwrap_or_default();
        for index in 0..own.len().max(other.len()) {
            let we = own.get(index).map_or(Said::Nothing, |m| Said::of_ours(fates.get(&m.id)));
            let they = other.get(index).map_or(Said::Nothing, |(_, said)| *said);
            if we == they && we != Said::Unjudged {
                same += 1;
                continue;
            }
            let name = match (other.get(index), own.get(index)) {
                (Some((name, _)), _) => name.clone(),
                (None, Some(mutant)) => mutant.id.clone(),
                // OK because the index is below the length of one.
                (None, None) => continue,
            };
            let told = format!("we say {}, they say {}", we.word(), they.word());
            differences.push(Difference { name, told });
        }
    }
    (same, differences)
}

fn operator(genre: Genre) -> Operator {
    match genre {
        Genre::FnValue => Operator::Body,
        Genre::BinaryOperator => Operator::Binary,
        Genre::UnaryOperator => Operator::Unary,
        Genre::MatchArm => Operator::Arm,
        Genre::MatchArmGuard => Operator::Guard,
        Genre::StructField => Operator::Field,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutant::Plan;
    use crate::mutant::tests::plan_one;

    fn theirs(mutants: &[(&str, usize, &str, &str)]) -> serde_json::Result<Outcomes> {
        let outcome = |&(name, column, genre, summary): &(&str, usize, &str, &str)| {
            serde_json::json!({
                "scenario": { "Mutant": {
                    "name": name, "file": "src/lib.rs", "genre": genre,
                    "span": { "start": { "line": 1, "column": column }, "end": { "line": 1, "column": 1 } },
                } },
                "summary": summary,
            })
        };
        let mut outcomes: Vec<_> = mutants.iter().map(outcome).collect();
        outcomes.push(serde_json::json!({ "scenario": "Baseline", "summary": "Success" }));
        serde_json::from_value(serde_json::json!({ "outcomes": outcomes }))
    }

    fn all_of(plan: &Plan) -> Vec<&Mutant> {
        plan.mutants.iter().collect()
    }

    #[test]
    fn what_is_judged_alike_is_counted_and_the_rest_is_told() {
        let plan = plan_one("fn f() -> bool { a < b }");
        let fates: Vec<Fate> = vec![
            Fate::Caught { killers: Vec::new() },
            Fate::NotReached,
            Fate::Caught { killers: Vec::new() },
            Fate::Missed { tests: 1, left_out: 0 },
            Fate::DoesNotCompile { reason: String::new() },
        ];
        let fates = plan.mutants.iter().map(|mutant| mutant.id.clone()).zip(fates).collect();
        let outcomes = theirs(&[
            ("true", 18, "FnValue", "Timeout"),
            ("false", 18, "FnValue", "MissedMutant"),
            ("==", 20, "BinaryOperator", "MissedMutant"),
            (">", 20, "BinaryOperator", "MissedMutant"),
            ("stranger", 30, "UnaryOperator", "Unviable"),
        ]);
        let outcomes = outcomes.unwrap();
        let (same, differences) = differences(&all_of(&plan), &fates, outcomes);
        assert_eq!(same, 3);
        let told: Vec<String> =
            differences.iter().map(|one| format!("{}: {}", one.name, one.told)).collect();
        let last =
            format!("{}: we say does not compile, they say no such mutant", plan.mutants[4].id);
        assert_eq!(
            told,
            [
                "==: we say caught, they say missed",
                &last,
                "stranger: we say no such mutant, they say does not compile",
            ]
        );
    }

    #[test]
    fn what_nobody_judges_is_not_judged_alike() {
        let plan = plan_one("fn f() -> bool { a }");
        let outcomes = theirs(&[("true", 18, "FnValue", "Failure")]).unwrap();
        let (same, differences) = differences(&all_of(&plan), &BTreeMap::new(), outcomes);
        assert_eq!(same, 0);
        let told: Vec<&str> = differences.iter().map(|one| &*one.told).collect();
        let both = "we say not judged, they say not judged";
        assert_eq!(told, [both, "we say not judged, they say no such mutant"]);
    }

    #[test]
    fn words_that_are_not_known_are_refused() {
        assert!(theirs(&[("x", 1, "FnValue", "Timeout")]).is_ok());
        for (genre, summary) in [("NewGenre", "Timeout"), ("FnValue", "NewSummary")] {
            let error = theirs(&[("x", 1, genre, summary)]).err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| error.contains("unknown variant `New")));
        }
    }
}
