//! Stories: tests that say in a file which rules they protect, and for which that is shown.
//!
//! A test `host::NAME`, or `world::NAME`, of the binary `scenarios` with a file of that name in `scenarios/` tells
//! a story; the file's `rules` are those that it protects. For each of them one of the tellings has to fail,
//! twice, without one of the rule's checks, and all have to hold with all of them. Which check that was the
//! last time stands in `mutants/stories.toml`:
//!
//! ```toml
//! "owners/zombie" = ["l2-zombie", "l4-own-process"]
//! ```
//!
//! The file is a memory and decides nothing, as that of the checks ([`crate::killed_by`]): the story has
//! to fail again. It is committed, so that a story that lost its point is seen.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::builder::BinaryId;
use crate::checks::rule_of;
use crate::document::read_toml;
use crate::exit::{Exit, Stop};
use crate::report::{SCHEMA, print_line};
use crate::suite::{Kind, Suite};

/// Where the files of the stories are, from the root of the workspace.
const DIRECTORY: &str = "scenarios";

/// The test binary that tells them.
pub(crate) const BINARY: &str = "scenarios";

/// Where it is remembered what showed each rule of a story.
const PATH: &str = "mutants/stories.toml";

const HEAD: &str = "\
# For each rule that a story protects, a check of it without which the story fails.
# Written by `ci/prove --bless`; `ci/prove` lets each fail again.

";

/// A story, with the tests that tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Story {
    pub(crate) name: String,
    /// From quick to slow.
    pub(crate) tests: Vec<Test>,
    pub(crate) rules: Vec<String>,
}

/// A test, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) binary: BinaryId,
    kind: Kind,
}

/// What of a scenario's file is read here.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    rules: Vec<String>,
}

/// The stories among the tests of a workspace, by their names.
///
/// # Errors
///
/// [`Exit::CatalogueWrong`] when the file of one cannot be understood.
pub(crate) fn among(suites: &[Suite], root: &Path) -> anyhow::Result<Vec<Story>> {
    let mut stories: Vec<Story> = Vec::new();
    for suite in suites {
        for test in &suite.tests {
            let name = test.strip_prefix("host::").or_else(|| test.strip_prefix("world::"));
            let Some(name) = name else { continue };
            let Suite { binary, kind, .. } = suite;
            let told = Test { name: test.clone(), binary: binary.clone(), kind: *kind };
            if let Some(story) = stories.iter_mut().find(|story| story.name == name) {
                story.tests.push(told);
                continue;
            }
            let file = format!("{DIRECTORY}/{name}.toml");
            let Some(Head { rules }) = read_toml(root, &file)? else { continue };
            stories.push(Story { name: name.to_owned(), tests: vec![told], rules });
        }
    }
    for story in &mut stories {
        story.tests.sort_by_key(|test| test.kind);
    }
    stories.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(stories)
}

/// Those that are wanted, all if none is named.
///
/// # Errors
///
/// [`Exit::NothingMatched`] when one that is wanted is not there, and when none is there though some
/// are remembered.
pub(crate) fn select(
    mut all: Vec<Story>,
    wanted: &[String],
    shown: &Shown,
) -> anyhow::Result<Vec<Story>> {
    let stop = |message: String| Err(Stop::new(Exit::NothingMatched, message).into());
    if let Some(name) = wanted.iter().find(|name| all.iter().all(|story| story.name != **name)) {
        return stop(format!("no story is named {name}"));
    }
    if all.is_empty() && !shown.is_empty() {
        return stop(format!("there is no story, and {PATH} names {}", shown.len()));
    }
    all.retain(|story| wanted.is_empty() || wanted.contains(&story.name));
    Ok(all)
}

/// By the name of the story: the checks without which it fails.
pub(crate) type Shown = BTreeMap<String, Vec<String>>;

/// The check of a rule that is remembered for a story.
pub(crate) fn remembered<'a>(shown: &'a Shown, story: &Story, rule: &str) -> Option<&'a str> {
    let check = shown.get(&story.name)?.iter().find(|check| rule_of(check) == rule)?;
    Some(check)
}

/// Reads what is remembered below the root of a workspace.
///
/// # Errors
///
/// [`Exit::CatalogueWrong`] when it cannot be understood.
pub(crate) fn read(root: &Path) -> anyhow::Result<Shown> {
    Ok(read_toml(root, PATH)?.unwrap_or_default())
}

/// Writes it below the root of a workspace.
pub(crate) fn write(root: &Path, shown: &Shown) -> anyhow::Result<()> {
    fs::write(root.join(PATH), render(shown)).with_context(|| format!("cannot write {PATH}"))
}

fn render(shown: &Shown) -> String {
    let mut text = HEAD.to_owned();
    for (story, checks) in shown {
        let checks: Vec<String> = checks.iter().map(|check| format!("\"{check}\"")).collect();
        let _ = writeln!(text, "\"{story}\" = [{}]", checks.join(", "));
    }
    text
}

/// Remembers what was found out. What was not stays as it is, but for the rules that a story which
/// was asked to its end does not name any more, and, if all were, for the stories that are gone.
pub(crate) fn remember(shown: &mut Shown, outcomes: &[Outcome], all: bool) {
    for (name, checks) in shown.iter_mut() {
        let own: Vec<&Outcome> = outcomes.iter().filter(|one| one.story == *name).collect();
        if all || (!own.is_empty() && own.iter().all(|one| one.is_decided())) {
            checks.retain(|check| own.iter().any(|one| one.rule == rule_of(check)));
        }
    }
    for Outcome { story, rule, found } in outcomes.iter().filter(|one| one.is_decided()) {
        let checks = shown.entry(story.clone()).or_default();
        checks.retain(|check| rule_of(check) != rule);
        if let Found::Shown(check) = found {
            checks.push(check.clone());
        }
    }
    shown.retain(|_, checks| !checks.is_empty());
}

/// What was found out about a rule of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The story fails without this check of the rule.
    Shown(String),
    /// It passes without any of these, one at a time.
    NotShown(Vec<String>),
    /// It passes, but without these it does not end.
    TimedOut(Vec<String>),
    /// The run was stopped before anything was found out.
    Interrupted,
}

impl Found {
    fn word(&self) -> &'static str {
        match self {
            Found::Shown(_) => "shown",
            Found::NotShown(_) => "not shown",
            Found::TimedOut(_) => "timeout",
            Found::Interrupted => "interrupted",
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Found::Shown(_) => Exit::Proved,
            Found::NotShown(_) => Exit::NotProved,
            Found::TimedOut(_) | Found::Interrupted => Exit::Undecided,
        }
    }
}

/// A rule of a story, with what was found out.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) story: String,
    pub(crate) rule: String,
    pub(crate) found: Found,
}

impl Outcome {
    pub(crate) fn is_shown(&self) -> bool {
        matches!(self.found, Found::Shown(_))
    }

    fn is_decided(&self) -> bool {
        matches!(self.found, Found::Shown(_) | Found::NotShown(_))
    }
}

/// The exit code of all of them.
pub(crate) fn exit(outcomes: &[Outcome], stopped: bool) -> Exit {
    let begin = if stopped { Exit::Undecided } else { Exit::Proved };
    outcomes.iter().fold(begin, |exit, outcome| exit.and(outcome.found.exit()))
}

const BAD: Style = AnsiColor::Red.on_default().bold();

/// Prints the rules that are not shown, and how many are.
pub(crate) fn table(outcomes: &[Outcome]) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    for Outcome { story, rule, found } in outcomes {
        let word = found.word();
        match found {
            Found::Shown(_) => {}
            Found::NotShown(passed) if passed.is_empty() => {
                writeln!(
                    out,
                    "{story}: {rule} {BAD}{word}{BAD:#}, no check of it can be switched"
                )?;
            }
            Found::NotShown(passed) => {
                let passed = passed.join(", ");
                writeln!(out, "{story}: {rule} {BAD}{word}{BAD:#}, holds without {passed}")?;
            }
            Found::TimedOut(hung) => {
                let hung = hung.join(", ");
                writeln!(out, "{story}: {rule} {word}, does not end without {hung}")?;
            }
            Found::Interrupted => writeln!(out, "{story}: {rule} {word}")?,
        }
    }
    writeln!(out, "{}", Summary(outcomes))
}

/// `114 stories protect 231 rules: 230 shown, 1 not shown`.
struct Summary<'a>(&'a [Outcome]);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut stories: Vec<&str> = self.0.iter().map(|outcome| &*outcome.story).collect();
        stories.dedup();
        let (stories, rules) = (stories.len(), self.0.len());
        let (story, protect) =
            if stories == 1 { ("story", "protects") } else { ("stories", "protect") };
        let rule = if rules == 1 { "rule" } else { "rules" };
        let mut parts = Vec::new();
        for word in ["shown", "not shown", "timeout", "interrupted"] {
            let count = self.0.iter().filter(|outcome| outcome.found.word() == word).count();
            if count > 0 || word == "shown" {
                parts.push(format!("{count} {word}"));
            }
        }
        write!(f, "{stories} {story} {protect} {rules} {rule}: {}", parts.join(", "))
    }
}

#[derive(Serialize)]
struct StoryObject<'a> {
    schema: u32,
    story: &'a str,
    rule: &'a str,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    holds_without: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    hangs_without: &'a [String],
}

/// Prints what was found out as a JSON object.
pub(crate) fn json(outcome: &Outcome) -> io::Result<()> {
    print_line(&object(outcome))
}

fn object(outcome: &Outcome) -> StoryObject<'_> {
    let Outcome { story, rule, found } = outcome;
    let mut object = StoryObject {
        schema: SCHEMA,
        story,
        rule,
        verdict: found.word(),
        check: None,
        holds_without: &[],
        hangs_without: &[],
    };
    match found {
        Found::Shown(check) => object.check = Some(check),
        Found::NotShown(passed) => object.holds_without = passed,
        Found::TimedOut(hung) => object.hangs_without = hung,
        Found::Interrupted => {}
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(story: &str, found: Found) -> Outcome {
        Outcome { story: story.to_owned(), rule: "l1".to_owned(), found }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let checks = vec!["l1-x".to_owned(), "r3-y".to_owned()];
        let shown = Shown::from([("a/b".to_owned(), checks)]);
        let text = render(&shown);
        assert!(text.ends_with("\n\"a/b\" = [\"l1-x\", \"r3-y\"]\n"), "{text}");
        assert_eq!(toml::from_str::<Shown>(&text).unwrap(), shown);
    }

    #[test]
    fn rules_that_are_not_shown_weigh_more_than_what_is_undecided() {
        let shown = || outcome("a", Found::Shown("l1-x".to_owned()));
        let not = || outcome("a", Found::NotShown(Vec::new()));
        let hung = || outcome("b", Found::TimedOut(Vec::new()));
        assert_eq!(exit(&[shown()], false), Exit::Proved);
        assert_eq!(exit(&[shown()], true), Exit::Undecided);
        assert_eq!(exit(&[shown(), hung()], false), Exit::Undecided);
        assert_eq!(exit(&[hung(), not()], false), Exit::NotProved);
        let told = Summary(&[shown(), not(), hung()]).to_string();
        assert_eq!(told, "2 stories protect 3 rules: 1 shown, 1 not shown, 1 timeout");
    }

    fn remembered(list: &[(&str, &[&str])]) -> Shown {
        let owned = |checks: &[&str]| checks.iter().map(|&check| check.to_owned()).collect();
        list.iter().map(|&(name, checks)| (name.to_owned(), owned(checks))).collect()
    }

    #[test]
    fn what_was_not_decided_stays_remembered() {
        let before = || {
            remembered(&[
                ("a", &["l1-old", "l2-unnamed"]),
                ("b", &["l1-old", "l2-old"]),
                ("gone", &["l1-old"]),
                ("weak", &["l1-old"]),
            ])
        };
        let outcomes = [
            outcome("a", Found::Shown("l1-new".to_owned())),
            outcome("weak", Found::NotShown(Vec::new())),
            outcome("b", Found::Interrupted),
        ];
        let mut shown = before();
        remember(&mut shown, &outcomes, false);
        let expected =
            [("a", &["l1-new"][..]), ("b", &["l1-old", "l2-old"]), ("gone", &["l1-old"])];
        assert_eq!(shown, remembered(&expected), "the run was stopped");
        remember(&mut shown, &outcomes[..2], true);
        assert_eq!(shown, remembered(&expected[..1]), "all others are gone");
        let mut shown = before();
        remember(&mut shown, &[], false);
        assert_eq!(shown, before(), "nothing was asked");
    }

    #[test]
    fn a_run_without_stories_is_none_where_some_are_remembered() {
        let binary =
            BinaryId { package: "p".to_owned(), target: "test".to_owned(), name: "b".to_owned() };
        let test = Test { name: "host::a".to_owned(), binary, kind: Kind::Host };
        let story = Story { name: "a".to_owned(), tests: vec![test], rules: Vec::new() };
        let shown = remembered(&[("a", &["l1-x"])]);
        let selected = |all: &[&Story], wanted: &[String], shown: &Shown| {
            let all = all.iter().map(|&story| story.clone()).collect();
            select(all, wanted, shown).map(|selected| selected.len())
        };
        assert_eq!(selected(&[&story], &[], &shown).unwrap(), 1);
        assert_eq!(selected(&[&story], &["a".to_owned()], &shown).unwrap(), 1);
        assert!(selected(&[&story], &["b".to_owned()], &shown).is_err());
        assert_eq!(selected(&[], &[], &Shown::new()).unwrap(), 0);
        let told = selected(&[], &[], &shown).unwrap_err().to_string();
        assert_eq!(told, "there is no story, and mutants/stories.toml names 1");
    }

    #[test]
    fn what_holds_and_what_hangs_is_told_in_json() {
        let told = |found| serde_json::to_string(&object(&outcome("a", found))).unwrap();
        let checks = || vec!["l1-x".to_owned()];
        let begin = r#"{"schema":1,"story":"a","rule":"l1","verdict""#;
        assert_eq!(
            told(Found::NotShown(checks())),
            format!(r#"{begin}:"not shown","holds_without":["l1-x"]}}"#)
        );
        assert_eq!(
            told(Found::TimedOut(checks())),
            format!(r#"{begin}:"timeout","hangs_without":["l1-x"]}}"#)
        );
    }
}
