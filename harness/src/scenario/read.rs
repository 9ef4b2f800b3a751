//! Reads a scenario file into a story, or tells everything that is wrong with it at once.
//!
//! Invariant: what is read can be told: each name that is mentioned is that of an actor of the right
//! kind, each step is one thing, each need that a step has is declared, each reason is one that a
//! sweep can give.

mod actors;
mod beside;
mod demands;
mod expectations;
mod files;
mod names;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use toml::de::DeTable;

use self::demands::Declared;
use self::expectations::EXPECTATIONS;
use self::files::PLANTED;
use self::steps::VERBS;
use super::diagnostic::{Diagnostic, did_you_mean};
use super::each::{cases, unused};
use super::fields::{At, Fields, Found};
use super::needs::Need;
use super::story::{Action, Story};

/// Reads a scenario. `name` is what it is called, `path` where it stands.
///
/// # Errors
///
/// Everything that is wrong with it, in the order of the file.
pub fn read(name: &str, path: &Path, text: &str) -> Result<Story, Vec<Diagnostic>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let syntax = errors.iter().map(|error| {
        let span = error.span().unwrap_or(0..0);
        Diagnostic::new("syntax", error.message().lines().next().unwrap_or_default(), span)
    });
    let syntax: Vec<Diagnostic> = syntax.collect();
    if !syntax.is_empty() {
        return Err(syntax);
    }
    let found = Found::default();
    let (cases, words) = cases(&Fields::new("a scenario", table.get_ref(), 0..0, &found));
    let mut wrong = found.into_diagnostics();
    let mut stories = Vec::new();
    let mut used = BTreeSet::new();
    for case in cases {
        let found = Found::with(case.values);
        let fields = Fields::new("a scenario", table.get_ref(), 0..0, &found);
        let story = Reader { fields: &fields, names: BTreeMap::new() }.story();
        used.extend(found.used().iter().cloned());
        let (name, path, text) = (name.into(), path.into(), text.into());
        stories.extend(story.map(|story| Story { name, path, text, case: case.label, ..story }));
        wrong.extend(found.into_diagnostics());
    }
    wrong.extend(unused(&words, &used));
    let mut stories = stories.into_iter();
    match stories.next() {
        Some(first) if wrong.is_empty() => Ok(Story { other_cases: stories.collect(), ..first }),
        _ => {
            wrong.sort_by_key(|diagnostic| diagnostic.span.start);
            // What is wrong in every case is told once.
            wrong.dedup();
            Err(wrong)
        }
    }
}

/// Every word that a scenario can say what happens, what is planted, and what is expected with; the
/// documentation has to explain each.
#[must_use]
pub fn vocabulary() -> Vec<&'static str> {
    let verbs = VERBS.iter().map(|(verb, _)| *verb);
    let planted = PLANTED.iter().map(|(word, _)| *word);
    verbs.chain(planted).chain(EXPECTATIONS.iter().copied()).collect()
}

/// Who is called what.
pub(super) struct Named {
    pub(super) kind: &'static str,
    span: Range<usize>,
}

pub(super) struct Reader<'f> {
    pub(super) fields: &'f Fields<'f>,
    pub(super) names: BTreeMap<String, Named>,
}

/// An action, what it needs, and where it says so.
pub(super) struct Acted {
    pub(super) action: Action,
    pub(super) needs: Vec<Need>,
    /// Why it can happen on the real kernel only.
    pub(super) host_only: Option<&'static str>,
}

impl From<Action> for Acted {
    fn from(action: Action) -> Acted {
        Acted { action, needs: Vec::new(), host_only: None }
    }
}

impl Reader<'_> {
    fn story(mut self) -> Option<Story> {
        let fields = self.fields;
        let about = fields.required("about");
        let rules = self.rules();
        let classes = fields.strings("classes").unwrap_or_default();
        for class in &classes {
            let mut bytes = class.value.bytes();
            let letter = bytes.next().is_some_and(|byte| byte.is_ascii_uppercase());
            if !letter || !bytes.all(|byte| byte.is_ascii_digit()) {
                let title = format!("`{}` is no class of faults", class.value);
                let found = Diagnostic::new("unknown-class", title, class.span.clone());
                fields.report(found.note("a class is a letter, as in `E`, a case of it `E1`"));
            }
        }
        let needs: Vec<At<Need>> = fields
            .strings("needs")
            .unwrap_or_default()
            .into_iter()
            .filter_map(|at| self.need(at))
            .collect();
        let host_only = fields.string("host-only");
        let rounds_max = self.rounds("rounds-max");
        let rounds = self.rounds("rounds");
        if let (Some(_), Some(rounds)) = (&rounds_max, &rounds) {
            let title = "a story has `rounds` or `rounds-max`, not both";
            fields.report(Diagnostic::new("rounds", title, rounds.span.clone()));
        }
        let _read_before = fields.lists("each");
        let zombies_stay = fields.is("zombies-stay");
        let times = self.times(rounds.is_some() || rounds_max.is_some());
        let actors = self.everybody();
        let declared = Declared { needs, host_only: host_only.is_some() };
        self.demand_for_actors(&actors, &declared);
        let steps = self.steps(&declared, &actors, rounds_max.is_some(), rounds.is_some());
        let needs = declared.needs;
        let left_over = self.left_over();
        fields.finish();
        Some(Story {
            name: String::new(),
            path: Default::default(),
            text: String::new(),
            about: about?.value,
            rules,
            classes: classes.into_iter().map(|at| at.value).collect(),
            needs: needs.into_iter().map(|at| at.value).collect(),
            host_only: host_only.map(|at| at.value),
            rounds_max: rounds_max.map(|at| at.value),
            rounds: rounds.map(|at| at.value),
            case: String::new(),
            other_cases: Vec::new(),
            zombies_stay,
            times,
            actors,
            steps,
            left_over,
        })
    }

    fn rules(&self) -> Vec<String> {
        let fields = self.fields;
        if !fields.has("rules") {
            let title = "a scenario names the `rules` that it protects";
            fields.report(
                Diagnostic::new("missing-key", title, 0..0)
                    .note("their ids stand in docs/protocol.md: rules = [\"l3\", \"p2\"]"),
            );
        }
        let rules = fields.strings("rules").unwrap_or_default();
        for rule in &rules {
            let (letter, digits) = rule.value.split_at_checked(1).unwrap_or_default();
            let good = letter.bytes().all(|byte| byte.is_ascii_alphabetic())
                && !digits.is_empty()
                && digits.bytes().all(|byte| byte.is_ascii_digit());
            if !good {
                let title = format!("`{}` is no rule", rule.value);
                let found = Diagnostic::new("unknown-rule", title, rule.span.clone());
                fields
                    .report(found.note("a rule is a letter and a number, as in docs/protocol.md"));
            }
        }
        rules.into_iter().map(|at| at.value).collect()
    }

    fn need(&self, at: At<String>) -> Option<At<Need>> {
        if let Some(program) = at.value.strip_prefix("program:").filter(|name| !name.is_empty()) {
            return Some(At { value: Need::Program(program.into()), span: at.span });
        }
        let words = Need::WORDS.map(|(word, _)| word);
        match Need::WORDS.into_iter().find(|(word, _)| *word == at.value) {
            Some((_, need)) => Some(At { value: need, span: at.span }),
            None => {
                let title = format!("nothing is called `{}` that a machine can have", at.value);
                let found = Diagnostic::new("unknown-need", title, at.span)
                    .note(format!("it can be {}, or program:NAME", words.join(", ")));
                self.fields.report(found.help(did_you_mean(&at.value, words)));
                None
            }
        }
    }

    /// A number of rounds, from 1.
    pub(super) fn rounds(&self, key: &'static str) -> Option<At<u64>> {
        let at = self.fields.integer(key)?;
        match u64::try_from(at.value) {
            Ok(value) if value > 0 => Some(At { value, span: at.span }),
            _ => {
                let title = format!("`{key}` is at least 1");
                self.fields.report(Diagnostic::new("wrong-number", title, at.span));
                None
            }
        }
    }

    pub(super) fn times(&self, repeats: bool) -> u64 {
        let Some(at) = self.fields.integer("times") else { return 1 };
        let title = match u64::try_from(at.value) {
            Ok(0) | Err(_) => "`times` is at least 1",
            Ok(_) if repeats => "a scenario has rounds or is told several `times`, not both",
            Ok(times) => return times,
        };
        self.fields.report(Diagnostic::new("wrong-number", title, at.span));
        1
    }
}
