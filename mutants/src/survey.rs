//! The results of `mutate`: those that no test noticed for people, one JSON object a line for
//! programs.
//!
//! Both go to standard output, and nothing else does.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::exit::Exit;
use crate::mutant::{Mutant, difference};
use crate::report::{SCHEMA, print_line};
use crate::state::{Fate, TestRecord};

/// How many tests are named where there are many.
const NAMED: usize = 3;

const BAD: Style = AnsiColor::Red.on_default().bold();
const OPEN: Style = AnsiColor::Yellow.on_default();
const PLAIN: Style = Style::new();

/// A mutant with what became of it.
#[derive(Debug)]
pub(crate) struct Finding<'a> {
    pub(crate) mutant: &'a Mutant,
    pub(crate) fate: Fate,
    /// The reason why no test can notice it, if one is declared.
    pub(crate) equivalent: Option<&'a str>,
    /// The tests that come by it.
    pub(crate) tests: Vec<String>,
    pub(crate) took: Duration,
}

impl Finding<'_> {
    /// One line about it, if a person has to look at it.
    pub(crate) fn told(&self) -> Option<String> {
        let looked_at =
            matches!(self.exit(), Exit::NotProved | Exit::CatalogueWrong | Exit::Undecided);
        looked_at.then(|| line(self.mutant))
    }

    /// What is said of it.
    pub(crate) fn word(&self) -> &'static str {
        match (&self.equivalent, &self.fate) {
            (Some(_), fate) if fate.is_noticed() => "not equivalent",
            (Some(_), fate) if fate.is_missed() => "equivalent",
            (_, fate) => fate.word(),
        }
    }

    fn exit(&self) -> Exit {
        match self.word() {
            "not equivalent" => Exit::CatalogueWrong,
            "missed" | "not reached" => Exit::NotProved,
            "undecided" => Exit::Undecided,
            _ => Exit::Proved,
        }
    }
}

/// The exit code of a run. A wrong declaration weighs most: with it, a finding may be hidden.
pub(crate) fn exit(findings: &[Finding<'_>], untried: usize) -> Exit {
    let codes: Vec<Exit> = findings.iter().map(Finding::exit).collect();
    let order = [Exit::CatalogueWrong, Exit::NotProved, Exit::Undecided];
    let worst = order.into_iter().find(|code| codes.contains(code));
    let tried = findings
        .iter()
        .any(|finding| !matches!(finding.fate, Fate::DoesNotCompile { .. } | Fate::NotCompiled));
    match worst {
        Some(code) => code,
        None if untried > 0 => Exit::Undecided,
        // A run that tested nothing is not green.
        None if !tried => Exit::NothingMatched,
        None => Exit::Proved,
    }
}

/// One line about a mutant.
fn line(mutant: &Mutant) -> String {
    let Mutant { id, file, line, function, from, to, .. } = mutant;
    let (from, to) = difference(from, to);
    format!("{id}  {}:{line}  {function}: {from} → {to}", file.display())
}

/// Prints what a person has to look at, and the summary.
pub(crate) fn table(
    findings: &[Finding<'_>],
    untried: usize,
    unsteady: &[String],
    took: Duration,
) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    for finding in findings {
        let word = finding.word();
        let style = match word {
            "missed" | "not reached" | "not equivalent" => BAD,
            "undecided" => OPEN,
            _ => continue,
        };
        writeln!(out, "{style}{word:<14}{style:#}  {}", line(finding.mutant))?;
        let tests = match &finding.fate {
            Fate::Caught { killers } => killers.iter().map(|killer| killer.test.clone()).collect(),
            Fate::Undecided { tests } => tests.clone(),
            _ => finding.tests.clone(),
        };
        if !tests.is_empty() {
            writeln!(out, "{:14}  {}", "", named(word, &tests))?;
        }
        if let Fate::Missed { left_out, .. } = finding.fate
            && left_out > 0
        {
            writeln!(out, "{:14}  left out as too slow: {left_out}", "")?;
        }
    }
    for test in unsteady {
        let style = OPEN;
        writeln!(
            out,
            "{style}{:<14}{style:#}  {test}: it does not always do the same",
            "unsteady"
        )?;
    }
    let took = humantime::format_duration(Duration::from_secs(took.as_secs()));
    writeln!(out, "{}; {took}", summary(findings, untried))
}

fn named(word: &str, tests: &[String]) -> String {
    let first = tests.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if tests.len() > NAMED { ", …" } else { "" };
    let what = match word {
        "not equivalent" => "noticed by",
        "undecided" => "too slow",
        _ => "reached by",
    };
    format!("{what} ({}): {first}{more}", tests.len())
}

/// `12 mutants: 10 caught, 2 missed, 3 not tried`.
fn summary(findings: &[Finding<'_>], untried: usize) -> String {
    const ORDER: [&str; 9] = [
        "caught",
        "hung",
        "missed",
        "not reached",
        "equivalent",
        "not equivalent",
        "undecided",
        "does not compile",
        "not compiled",
    ];
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in findings {
        *counts.entry(finding.word()).or_default() += 1;
    }
    let all = findings.len() + untried;
    let mut parts = Vec::new();
    for word in ORDER {
        let count = counts.get(word).copied().unwrap_or(0);
        if count > 0 || word == "caught" {
            parts.push(format!("{count} {word}"));
        }
    }
    if untried > 0 {
        parts.push(format!("{untried} not tried"));
    }
    let plural = if all == 1 { "" } else { "s" };
    format!("{all} mutant{plural}: {}", parts.join(", "))
}

#[derive(Serialize)]
struct FindingObject<'a> {
    schema: u32,
    #[serde(flatten)]
    mutant: &'a Mutant,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    fate: Option<&'a Fate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    equivalent: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    reached_by: &'a [String],
    /// The tests that come by it are not known, since the sources have changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    out_of_date: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
}

/// Prints a mutant with what became of it as a JSON object.
pub(crate) fn json(finding: &Finding<'_>) -> io::Result<()> {
    print_line(&FindingObject {
        schema: SCHEMA,
        mutant: finding.mutant,
        fate: Some(&finding.fate),
        equivalent: finding.equivalent,
        reached_by: &finding.tests,
        out_of_date: false,
        seconds: Some(finding.took.as_secs_f64()),
    })
}

#[derive(Serialize)]
struct UnsteadyObject<'a> {
    schema: u32,
    test: &'a str,
    verdict: &'static str,
}

/// Prints a test that did not always do the same as a JSON object.
pub(crate) fn json_unsteady(test: &str) -> io::Result<()> {
    print_line(&UnsteadyObject { schema: SCHEMA, test, verdict: "unsteady" })
}

/// Prints mutants without running anything.
pub(crate) fn list(mutants: &[&Mutant], as_json: bool) -> io::Result<()> {
    mutants.iter().try_for_each(|mutant| {
        if as_json {
            print_line(&FindingObject {
                schema: SCHEMA,
                mutant,
                fate: None,
                equivalent: None,
                reached_by: &[],
                out_of_date: false,
                seconds: None,
            })
        } else {
            writeln!(anstream::stdout(), "{}", line(mutant))
        }
    })
}

/// Prints all that is known of a mutant; of its tests nothing, if they were recorded with others.
pub(crate) fn show(
    mutant: &Mutant,
    fate: Option<&Fate>,
    equivalent: Option<&str>,
    tests: Option<&[&TestRecord]>,
    as_json: bool,
) -> io::Result<()> {
    let out_of_date = tests.is_none();
    let tests = tests.unwrap_or_default();
    let names: Vec<String> = tests.iter().map(|test| test.name()).collect();
    if as_json {
        let (schema, reached_by) = (SCHEMA, &*names);
        return print_line(&FindingObject {
            schema,
            mutant,
            fate,
            equivalent,
            reached_by,
            out_of_date,
            seconds: None,
        });
    }
    let mut out = anstream::stdout().lock();
    let Mutant { file, line, column, function, operator, from, to, package, .. } = mutant;
    writeln!(out, "{}:{line}:{column} in {function} ({operator}, {package})", file.display())?;
    writeln!(out, "- {from}\n+ {to}")?;
    let style = PLAIN.bold();
    match fate {
        None => writeln!(out, "{style}not tried{style:#}")?,
        Some(fate) => {
            write!(out, "{style}{}{style:#}", fate.word())?;
            match fate {
                Fate::Caught { killers } => {
                    for killer in killers {
                        let failure = killer.failure.as_deref().unwrap_or("it failed");
                        write!(
                            out,
                            "\n  {} ({}, {} {}): {failure}",
                            killer.test, killer.kind, killer.package, killer.binary
                        )?;
                    }
                }
                Fate::Hung { test, how } => write!(out, "\n  {test}: {how:?}")?,
                Fate::DoesNotCompile { reason } => write!(out, "\n  {reason}")?,
                Fate::Undecided { tests } => write!(out, "\n  {}", tests.join(", "))?,
                Fate::Missed { .. } | Fate::NotReached | Fate::NotCompiled => {}
            }
            writeln!(out)?;
        }
    }
    if let Some(reason) = equivalent {
        writeln!(out, "declared as equivalent: {reason}")?;
    }
    if out_of_date {
        writeln!(out, "the sources have changed since its tests were recorded")?;
    }
    if !names.is_empty() {
        let (count, plural) = (names.len(), if names.len() == 1 { " comes" } else { "s come" });
        writeln!(out, "{count} test{plural} by it:")?;
        for (name, test) in names.iter().zip(tests) {
            writeln!(out, "  {:7.3} s  {name}", test.seconds)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutant::tests::plan_one;

    fn findings<'a>(mutant: &'a Mutant, fates: Vec<(Fate, Option<&'a str>)>) -> Vec<Finding<'a>> {
        let finding = |(fate, equivalent)| Finding {
            mutant,
            fate,
            equivalent,
            tests: Vec::new(),
            took: Duration::ZERO,
        };
        fates.into_iter().map(finding).collect()
    }

    #[test]
    fn what_weighs_most_decides_the_exit_code() {
        let plan = plan_one("fn f() -> bool { g() }");
        let mutant = &plan.mutants[0];
        let caught = || (Fate::Caught { killers: Vec::new() }, None);
        let missed = || (Fate::Missed { tests: 1, left_out: 0 }, None);
        let undecided = || (Fate::Undecided { tests: Vec::new() }, None);
        let exit_of = |fates, untried| exit(&findings(mutant, fates), untried);
        assert_eq!(exit_of(vec![caught()], 0), Exit::Proved);
        assert_eq!(exit_of(vec![caught()], 1), Exit::Undecided);
        assert_eq!(exit_of(vec![caught(), undecided()], 0), Exit::Undecided);
        assert_eq!(exit_of(vec![undecided(), missed()], 1), Exit::NotProved);
        assert_eq!(exit_of(vec![(Fate::NotReached, None)], 0), Exit::NotProved);
        assert_eq!(exit_of(vec![(Fate::NotReached, Some("why"))], 0), Exit::Proved);
        let noticed = (Fate::Caught { killers: Vec::new() }, Some("why"));
        assert_eq!(exit_of(vec![missed(), noticed], 0), Exit::CatalogueWrong);
        assert_eq!(exit_of(vec![(Fate::NotCompiled, None)], 0), Exit::NothingMatched);
    }

    #[test]
    fn a_summary_counts_by_words() {
        let plan = plan_one("fn f() -> bool { g() }");
        let fates = vec![
            (Fate::Missed { tests: 1, left_out: 0 }, Some("why")),
            (Fate::Missed { tests: 1, left_out: 0 }, None),
            (Fate::NotCompiled, None),
        ];
        let told = summary(&findings(&plan.mutants[0], fates), 2);
        let expected = "5 mutants: 0 caught, 1 missed, 1 equivalent, 1 not compiled, 2 not tried";
        assert_eq!(told, expected);
    }
}
