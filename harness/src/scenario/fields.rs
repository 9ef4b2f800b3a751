//! Reads a table of a scenario file key by key, and reports everything that is wrong with it.
//!
//! Invariants: reading never stops at what is wrong: a key of a wrong type is reported and counts as
//! absent. The keys that a table may have are those that were asked for, so that what is documented,
//! read and suggested cannot differ.

use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostic::{Diagnostic, did_you_mean};

/// The calls by which the library reaches the system, as they are called.
const CALLS: [&str; 37] = [
    "open-root",
    "open-dir",
    "open-file",
    "create-file",
    "close",
    "stat",
    "stat-at",
    "fs-magic",
    "read-dir",
    "mkdir",
    "symlink",
    "readlink",
    "rename",
    "unlink",
    "rmdir",
    "unseal",
    "chmod",
    "lock",
    "unlock",
    "lock-holder",
    "read",
    "write",
    "sync",
    "identity",
    "whoami",
    "process-exists",
    "group-exists",
    "process",
    "pidfs",
    "pids",
    "uses",
    "descriptors-max",
    "kill-group",
    "wait",
    "pause",
    "random",
    "spawn",
];

/// A value and its place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct At<T> {
    /// The value.
    pub(super) value: T,
    /// Its bytes in the file.
    pub(super) span: Range<usize>,
}

/// A number that a file gives, or that of the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// This number.
    Fixed(u64),
    /// `"n"`: the number of the round of a scenario that repeats itself.
    Round,
    /// The first call of this name.
    First(&'static str),
}

/// Where diagnostics go, and what the words in angle brackets stand for while a file is read once
/// for each of several values.
#[derive(Debug, Default)]
pub(super) struct Found {
    diagnostics: RefCell<Vec<Diagnostic>>,
    values: BTreeMap<String, String>,
    used: RefCell<BTreeSet<String>>,
}

impl Found {
    /// With what words in angle brackets stand for.
    pub(super) fn with(values: BTreeMap<String, String>) -> Found {
        Found { values, ..Found::default() }
    }

    pub(super) fn report(&self, diagnostic: Diagnostic) {
        self.diagnostics.borrow_mut().push(diagnostic);
    }

    /// The words that stood for something.
    pub(super) fn used(&self) -> Ref<'_, BTreeSet<String>> {
        self.used.borrow()
    }

    pub(super) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics.into_inner()
    }

    /// The text, with the values in the place of the words that stand for them.
    fn filled(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (word, value) in &self.values {
            let bracketed = format!("<{word}>");
            if text.contains(&bracketed) {
                self.used.borrow_mut().insert(word.clone());
                text = text.replace(&bracketed, value);
            }
        }
        text
    }
}

/// One table, being read.
pub(super) struct Fields<'f> {
    table: &'f DeTable<'f>,
    span: Range<usize>,
    /// What the table is, for messages: `a step`.
    what: &'static str,
    asked: RefCell<Vec<&'static str>>,
    found: &'f Found,
}

impl<'f> Fields<'f> {
    pub(super) fn new(
        what: &'static str,
        table: &'f DeTable<'f>,
        span: Range<usize>,
        found: &'f Found,
    ) -> Fields<'f> {
        Fields { table, span, what, asked: RefCell::default(), found }
    }

    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    pub(super) fn report(&self, diagnostic: Diagnostic) {
        self.found.report(diagnostic);
    }

    /// The value under a key.
    fn get(&self, key: &'static str) -> Option<&'f Spanned<DeValue<'f>>> {
        self.asked.borrow_mut().push(key);
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    /// Whether the table has the key, without counting it as one that it may have.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.iter().any(|(name, _)| name.get_ref() == key)
    }

    /// The place of a key.
    pub(super) fn key_span(&self, key: &str) -> Range<usize> {
        let name = self.table.keys().find(|name| name.get_ref() == key);
        name.map_or(self.span(), Spanned::span)
    }

    /// The place of a key and its value.
    pub(super) fn entry_span(&self, key: &str) -> Range<usize> {
        let entry = self.table.iter().find(|(name, _)| name.get_ref() == key);
        entry.map_or(self.span(), |(name, value)| name.span().start..value.span().end)
    }

    pub(super) fn string(&self, key: &'static str) -> Option<At<String>> {
        let value = self.get(key)?;
        self.as_string(key, value)
    }

    /// A string that must be there.
    pub(super) fn required(&self, key: &'static str) -> Option<At<String>> {
        if !self.has(key) {
            let title = format!("{} needs `{key}`", self.what);
            self.report(Diagnostic::new("missing-key", title, self.span()));
        }
        self.string(key)
    }

    fn as_string(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<At<String>> {
        match value.get_ref().as_str() {
            Some(text) => Some(At { value: self.found.filled(text), span: value.span() }),
            None => {
                self.wrong_type(key, "a string", value);
                None
            }
        }
    }

    /// One string or several.
    pub(super) fn strings(&self, key: &'static str) -> Option<Vec<At<String>>> {
        let value = self.get(key)?;
        match value.get_ref() {
            DeValue::Array(array) => {
                Some(array.iter().filter_map(|value| self.as_string(key, value)).collect())
            }
            _ => self.as_string(key, value).map(|one| vec![one]),
        }
    }

    pub(super) fn bool(&self, key: &'static str) -> Option<At<bool>> {
        let value = self.get(key)?;
        match value.get_ref().as_bool() {
            Some(bool) => Some(At { value: bool, span: value.span() }),
            None => {
                self.wrong_type(key, "true or false", value);
                None
            }
        }
    }

    pub(super) fn is(&self, key: &'static str) -> bool {
        self.bool(key).is_some_and(|at| at.value)
    }

    pub(super) fn integer(&self, key: &'static str) -> Option<At<i64>> {
        let value = self.get(key)?;
        self.as_integer(key, "a whole number", value)
    }

    fn as_integer(
        &self,
        key: &str,
        expected: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<At<i64>> {
        let read = value.get_ref().as_integer();
        let read = read.and_then(|read| i64::from_str_radix(read.as_str(), read.radix()).ok());
        // A word in angle brackets stands for a number, too.
        let text = || self.found.filled(value.get_ref().as_str()?).parse().ok();
        match read.or_else(text) {
            Some(number) => Some(At { value: number, span: value.span() }),
            None => {
                self.wrong_type(key, expected, value);
                None
            }
        }
    }

    /// A whole number of some size.
    pub(super) fn number<N: TryFrom<i64>>(&self, key: &'static str) -> Option<N> {
        let at = self.integer(key)?;
        let number = N::try_from(at.value).ok();
        if number.is_none() {
            let title = format!("`{key}` cannot be {}", at.value);
            self.report(Diagnostic::new("wrong-number", title, at.span));
        }
        number
    }

    /// A number from 1, or `"n"`.
    pub(super) fn count(&self, key: &'static str) -> Option<At<Count>> {
        const EXPECTED: &str = "a number from 1, or \"n\" for that of the round";
        let value = self.get(key)?;
        self.as_count(key, EXPECTED, value)
    }

    /// A call among those of an operation: a number from 1, `"n"`, or the name of the call that is
    /// the first of its kind.
    pub(super) fn call(&self, key: &'static str) -> Option<At<Count>> {
        const EXPECTED: &str =
            "a number from 1, \"n\" for that of the round, or the name of a call";
        let value = self.get(key)?;
        match value.get_ref().as_str().map(|text| self.found.filled(text)) {
            Some(text) if text != "n" && text.parse::<u64>().is_err() => {
                let words = CALLS.map(|word| (word, Count::First(word)));
                self.one_of(key, At { value: text, span: value.span() }, &words)
            }
            _ => self.as_count(key, EXPECTED, value),
        }
    }

    fn as_count(
        &self,
        key: &str,
        expected: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<At<Count>> {
        if value.get_ref().as_str() == Some("n") {
            return Some(At { value: Count::Round, span: value.span() });
        }
        let at = self.as_integer(key, expected, value)?;
        match u64::try_from(at.value) {
            Ok(number) if number > 0 => Some(At { value: Count::Fixed(number), span: at.span }),
            _ => {
                self.wrong_type(key, expected, value);
                None
            }
        }
    }

    /// The lists of a table of lists: a name, and the words or numbers that it stands for in turn.
    pub(super) fn lists(&self, key: &'static str) -> Vec<(At<String>, Vec<String>)> {
        const EXPECTED: &str = "a table of lists, such as `thing = [\"fifo\", \"socket\"]`";
        let Some(value) = self.get(key) else { return Vec::new() };
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong_type(key, EXPECTED, value);
            return Vec::new();
        };
        let each = table.iter().filter_map(|(name, value)| {
            let name = At { value: name.get_ref().to_string(), span: name.span() };
            let DeValue::Array(array) = value.get_ref() else {
                self.wrong_type(&name.value, EXPECTED, value);
                return None;
            };
            let words = array.iter().filter_map(|value| match value.get_ref() {
                DeValue::String(text) => Some(text.to_string()),
                _ => self
                    .as_integer(&name.value, "a list of words or numbers", value)
                    .map(|at| at.value.to_string()),
            });
            let words: Vec<String> = words.collect();
            if words.is_empty() {
                self.wrong_type(&name.value, "a list of words or numbers", value);
                return None;
            }
            Some((name, words))
        });
        each.collect()
    }

    /// The tables of an array of tables.
    pub(super) fn tables(&self, key: &'static str, what: &'static str) -> Vec<Fields<'f>> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let DeValue::Array(array) = value.get_ref() else {
            self.wrong_type(key, "a list of tables", value);
            return Vec::new();
        };
        let each = array.iter().filter_map(|value| match value.get_ref() {
            DeValue::Table(table) => Some(Fields::new(what, table, value.span(), self.found)),
            _ => {
                self.wrong_type(key, "a list of tables", value);
                None
            }
        });
        each.collect()
    }

    /// The tables of a table, by their names.
    pub(super) fn named(
        &self,
        key: &'static str,
        what: &'static str,
    ) -> Vec<(At<String>, Fields<'f>)> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let DeValue::Table(tables) = value.get_ref() else {
            self.wrong_type(key, "a table of tables, such as `[server.first]`", value);
            return Vec::new();
        };
        let each = tables.iter().filter_map(|(name, value)| match value.get_ref() {
            DeValue::Table(table) => {
                let name = At { value: name.get_ref().to_string(), span: name.span() };
                Some((name, Fields::new(what, table, value.span(), self.found)))
            }
            _ => {
                self.wrong_type(key, "a table of tables, such as `[server.first]`", value);
                None
            }
        });
        each.collect()
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(&self, key: &'static str, words: &[(&str, T)]) -> Option<At<T>> {
        let at = self.string(key)?;
        self.one_of(key, at, words)
    }

    /// Finds the meaning of a word.
    pub(super) fn one_of<T: Copy>(
        &self,
        key: &str,
        at: At<String>,
        words: &[(&str, T)],
    ) -> Option<At<T>> {
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == at.value) {
            return Some(At { value: *meaning, span: at.span });
        }
        let all: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        let title = format!("`{key}` cannot be `{}`", at.value);
        let near = did_you_mean(&at.value, words.iter().map(|(word, _)| *word));
        let found = Diagnostic::new("unknown-word", title, at.span)
            .note(format!("it can be {}", all.join(", ")));
        self.report(found.help(near));
        None
    }

    fn wrong_type(&self, key: &str, expected: &str, value: &Spanned<DeValue<'_>>) {
        let title = format!("`{key}` has to be {expected}");
        let label = format!("this is {}", value.get_ref().type_str());
        self.report(Diagnostic::new("wrong-type", title, value.span()).label(label));
    }

    /// Reports every key that was not asked for.
    pub(super) fn finish(&self) {
        let asked = self.asked.borrow();
        for name in self.table.keys() {
            let key: &str = name.get_ref();
            if asked.contains(&key) {
                continue;
            }
            let title = format!("{} has no `{key}`", self.what);
            let near = did_you_mean(key, asked.iter().copied());
            let mut may: Vec<&str> = asked.clone();
            may.sort_unstable();
            may.dedup();
            let found = Diagnostic::new("unknown-key", title, name.span())
                .note(format!("it may have {}", may.join(", ")));
            self.report(found.help(near));
        }
    }

    /// The keys of the table, in the order of the alphabet.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        self.table.keys().map(|name| (&**name.get_ref(), name.span()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_are_those_of_the_library() {
        let source = include_str!("../../../mortmain/src/sys/call.rs");
        for word in CALLS.iter().filter(|word| **word != "spawn") {
            assert!(source.contains(&format!("=> \"{word}\",")), "no call is called `{word}`");
        }
        let (_, words) = source.split_once("pub fn word").expect("they have words");
        let (words, _) = words.split_once("/// The call as a line").expect("and lines");
        assert_eq!(words.matches("=> \"").count(), CALLS.len() - 1);
    }

    #[test]
    fn words_in_angle_brackets_are_filled_and_noted() {
        let values = BTreeMap::from([("thing".to_owned(), "fifo".to_owned())]);
        let found = Found::with(values);
        assert_eq!(found.filled("a <thing> and <other>"), "a fifo and <other>");
        assert_eq!(found.used().len(), 1);
    }
}
