//! Results: a table for people, one JSON object a line for programs.
//!
//! Both go to standard output, and nothing else does.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::catalogue::{How, Removal};
use crate::exit::Exit;
use crate::run::Killer;
use crate::suite::Kind;

/// The version of the JSON objects.
pub(crate) const SCHEMA: u32 = 1;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const OPEN: Style = AnsiColor::Yellow.on_default();

/// What was found out about a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A test fails when the check is gone.
    Proved(Killer),
    /// All tests pass without it. How many of each kind there are; those that failed
    /// once and passed alone prove nothing and are named.
    NotProved { passed: BTreeMap<Kind, usize>, unsteady: Vec<String> },
    /// The compiler notices, or the removal is none.
    DoesNotCompile(String),
    /// No test fails, but some do not end. Those that failed once and passed alone are named, too.
    TimedOut { hung: Vec<String>, unsteady: Vec<String> },
    /// The run was stopped before anything was found out.
    Interrupted,
}

impl Verdict {
    /// One word, in the report and in JSON.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Verdict::Proved(_) => "proved",
            Verdict::NotProved { .. } => "not proved",
            Verdict::DoesNotCompile(_) => "does not compile",
            Verdict::TimedOut { .. } => "timeout",
            Verdict::Interrupted => "interrupted",
        }
    }

    /// The tests that failed once and passed alone.
    fn unsteady(&self) -> &[String] {
        match self {
            Verdict::NotProved { unsteady, .. } | Verdict::TimedOut { unsteady, .. } => unsteady,
            Verdict::Proved(_) | Verdict::DoesNotCompile(_) | Verdict::Interrupted => &[],
        }
    }

    fn style(&self) -> Style {
        match self {
            Verdict::Proved(_) => GOOD,
            Verdict::NotProved { .. } | Verdict::DoesNotCompile(_) => BAD,
            Verdict::TimedOut { .. } | Verdict::Interrupted => OPEN,
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Verdict::Proved(_) => Exit::Proved,
            Verdict::NotProved { .. } | Verdict::DoesNotCompile(_) => Exit::NotProved,
            Verdict::TimedOut { .. } | Verdict::Interrupted => Exit::Undecided,
        }
    }
}

/// A check with its verdict.
#[derive(Debug)]
pub(crate) struct Outcome<'a> {
    pub(crate) removal: &'a Removal,
    pub(crate) verdict: Verdict,
    pub(crate) took: Duration,
}

/// The exit code of a run.
pub(crate) fn exit(outcomes: &[Outcome<'_>], untried: usize) -> Exit {
    let begin = if untried > 0 { Exit::Undecided } else { Exit::Proved };
    outcomes.iter().fold(begin, |exit, outcome| exit.and(outcome.verdict.exit()))
}

/// Prints the table of a run and its summary.
pub(crate) fn table(outcomes: &[Outcome<'_>], untried: usize, took: Duration) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    let ids = outcomes.iter().map(|outcome| outcome.removal.check.id.len());
    let width = ids.max().unwrap_or(0);
    for Outcome { removal, verdict, .. } in outcomes {
        let check = &removal.check;
        write!(out, "{:<3} {:<width$}  ", check.rule(), check.id)?;
        let style = verdict.style();
        let place = format_args!("{}:{}", removal.file.display(), check.line);
        match verdict {
            Verdict::Proved(killer) => writeln!(out, "{style}→{style:#} {}", Told(killer))?,
            Verdict::NotProved { passed, .. } => {
                writeln!(out, "{style}NOT PROVED{style:#}  {place}, passed: {}", Counts(passed))?;
            }
            Verdict::DoesNotCompile(reason) => {
                writeln!(out, "{style}does not compile{style:#}  {reason}")?;
            }
            Verdict::TimedOut { hung, .. } => {
                writeln!(out, "{style}timeout{style:#}  {place}, in {}", hung.join(", "))?;
            }
            Verdict::Interrupted => writeln!(out, "{style}interrupted{style:#}")?,
        }
        let unsteady = verdict.unsteady().join(", ");
        if !unsteady.is_empty() {
            writeln!(out, "{:width$}      failed once and passed alone: {unsteady}", "")?;
        }
    }
    if !outcomes.is_empty() {
        writeln!(out)?;
    }
    // Whole seconds: nobody compares runs by less.
    let took = humantime::format_duration(Duration::from_secs(took.as_secs()));
    writeln!(out, "{}; {took}", Summary { outcomes, untried })
}

/// `12 checks: 10 proved, 2 not proved, 3 not tried`.
struct Summary<'a> {
    outcomes: &'a [Outcome<'a>],
    untried: usize,
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ORDER: [&str; 5] =
            ["proved", "not proved", "does not compile", "timeout", "interrupted"];
        let all = self.outcomes.len() + self.untried;
        write!(f, "{all} check{}: ", if all == 1 { "" } else { "s" })?;
        let mut parts = Vec::new();
        for word in ORDER {
            let count = self.outcomes.iter().filter(|o| o.verdict.word() == word).count();
            if count > 0 || word == "proved" {
                parts.push(format!("{count} {word}"));
            }
        }
        if self.untried > 0 {
            parts.push(format!("{} not tried", self.untried));
        }
        f.write_str(&parts.join(", "))
    }
}

/// A killer with its kind and where it is.
struct Told<'a>(&'a Killer);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Killer { test, package, binary, kind, .. } = self.0;
        // A package's own tests are in a binary of its name.
        if *binary == package.replace('-', "_") || binary == package {
            write!(f, "{test} ({kind}, {package})")
        } else {
            write!(f, "{test} ({kind}, {package} {binary})")
        }
    }
}

/// `10 unit, 3 world, 2 host`.
struct Counts<'a>(&'a BTreeMap<Kind, usize>);

impl fmt::Display for Counts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> =
            self.0.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        f.write_str(if parts.is_empty() { "no test" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

#[derive(Serialize)]
struct CheckObject<'a> {
    schema: u32,
    check: &'a str,
    rule: &'a str,
    why: &'a str,
    file: &'a std::path::Path,
    line: usize,
    removal: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    outcome: Option<OutcomeObject<'a>>,
}

#[derive(Serialize)]
struct OutcomeObject<'a> {
    verdict: &'static str,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    killer: Option<&'a Killer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    passed: Option<BTreeMap<&'static str, usize>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    unsteady: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    hung: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// Prints a check with its verdict as a JSON object.
pub(crate) fn json(outcome: &Outcome<'_>) -> io::Result<()> {
    print_object(outcome.removal, Some(outcome_object(outcome)))
}

fn outcome_object<'a>(outcome: &'a Outcome<'_>) -> OutcomeObject<'a> {
    let mut object = OutcomeObject {
        verdict: outcome.verdict.word(),
        seconds: outcome.took.as_secs_f64(),
        killer: None,
        passed: None,
        unsteady: outcome.verdict.unsteady(),
        hung: &[],
        reason: None,
    };
    match &outcome.verdict {
        Verdict::Proved(killer) => object.killer = Some(killer),
        Verdict::NotProved { passed, .. } => {
            let passed = passed.iter().map(|(kind, count)| (kind.name(), *count));
            object.passed = Some(passed.collect());
        }
        Verdict::DoesNotCompile(reason) => object.reason = Some(reason),
        Verdict::TimedOut { hung, .. } => object.hung = hung,
        Verdict::Interrupted => {}
    }
    object
}

fn print_object(removal: &Removal, outcome: Option<OutcomeObject<'_>>) -> io::Result<()> {
    let check = &removal.check;
    let object = CheckObject {
        schema: SCHEMA,
        check: &check.id,
        rule: check.rule(),
        why: &check.why,
        file: &removal.file,
        line: check.line,
        removal: removal.how.to_string(),
        outcome,
    };
    print_line(&object)
}

/// Prints a JSON object, in a line.
pub(crate) fn print_line(object: &impl Serialize) -> io::Result<()> {
    let line = serde_json::to_string(object)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            How::Deletion(kind, line) => write!(f, "delete the {kind} `{line}`"),
            How::Patch(1) => f.write_str("edit of the catalogue"),
            How::Patch(count) => write!(f, "{count} edits of the catalogue"),
        }
    }
}

/// Prints the checks without running anything.
pub(crate) fn list(removals: &[&Removal], as_json: bool) -> io::Result<()> {
    if as_json {
        return removals.iter().try_for_each(|removal| print_object(removal, None));
    }
    let mut out = anstream::stdout().lock();
    let place = |removal: &Removal| format!("{}:{}", removal.file.display(), removal.check.line);
    let ids = removals.iter().map(|removal| removal.check.id.len()).max().unwrap_or(0);
    let places = removals.iter().map(|removal| place(removal).len()).max().unwrap_or(0);
    for removal in removals {
        let check = &removal.check;
        let (rule, id, place, how) = (check.rule(), &check.id, place(removal), &removal.how);
        writeln!(out, "{rule:<3} {id:<ids$}  {place:<places$}  {how}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Check;

    fn removal() -> Removal {
        Removal {
            check: Check {
                id: "a1-x".to_owned(),
                why: "why".to_owned(),
                line: 1,
                scope: 0..0,
                target: None,
            },
            file: "a.rs".into(),
            how: How::Patch(1),
            edits: BTreeMap::new(),
            files: BTreeMap::new(),
        }
    }

    fn killer(binary: &str) -> Killer {
        Killer {
            test: "t".to_owned(),
            package: "some-package".to_owned(),
            binary: binary.to_owned(),
            kind: Kind::Host,
            failure: None,
        }
    }

    #[test]
    fn a_finding_weighs_more_than_something_undecided() {
        let removal = removal();
        let outcomes = |verdicts: Vec<Verdict>| -> Vec<Outcome<'_>> {
            let outcome = |verdict| Outcome { removal: &removal, verdict, took: Duration::ZERO };
            verdicts.into_iter().map(outcome).collect()
        };
        let proved = || Verdict::Proved(killer("x"));
        let broken = || Verdict::DoesNotCompile(String::new());
        let hung = || Verdict::TimedOut { hung: Vec::new(), unsteady: Vec::new() };
        assert_eq!(exit(&outcomes(vec![proved(), proved()]), 0), Exit::Proved);
        assert_eq!(exit(&outcomes(vec![proved()]), 1), Exit::Undecided);
        assert_eq!(exit(&outcomes(vec![proved(), hung()]), 0), Exit::Undecided);
        assert_eq!(exit(&outcomes(vec![hung(), broken()]), 1), Exit::NotProved);

        let outcomes = outcomes(vec![proved(), hung(), broken()]);
        let summary = Summary { outcomes: &outcomes, untried: 2 };
        let told = "5 checks: 1 proved, 1 does not compile, 1 timeout, 2 not tried";
        assert_eq!(summary.to_string(), told);
    }

    #[test]
    fn tests_that_hang_and_unsteady_ones_are_told_in_json() {
        let verdict = Verdict::TimedOut {
            hung: vec!["waits".to_owned()],
            unsteady: vec!["wavers".to_owned()],
        };
        let outcome = Outcome { removal: &removal(), verdict, took: Duration::ZERO };
        assert_eq!(
            serde_json::to_string(&outcome_object(&outcome)).unwrap(),
            r#"{"verdict":"timeout","seconds":0.0,"unsteady":["wavers"],"hung":["waits"]}"#
        );
    }

    #[test]
    fn a_killer_is_told_with_kind_and_place() {
        assert_eq!(Told(&killer("some_package")).to_string(), "t (host, some-package)");
        assert_eq!(Told(&killer("host_x")).to_string(), "t (host, some-package host_x)");
    }
}
