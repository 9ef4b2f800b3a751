//! A scenario that is told once for each of several words.
//!
//! ```toml
//! [each]
//! thing = ["fifo", "socket"]
//! place = ["owner", "released"]
//! ```
//!
//! It is told four times, and `<thing>` stands for another word each time. Every case is read as a
//! story of its own, so that what is wrong with one of them is told before anything happens.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::diagnostic::Diagnostic;
use super::fields::{At, Fields};

/// Tellings of one file at most.
const CASES_MAX: usize = 256;

/// One of the cases.
#[derive(Clone, Debug, Default)]
pub(super) struct Case {
    /// What each word stands for.
    pub(super) values: BTreeMap<String, String>,
    /// The same as a reader of a finding sees it.
    pub(super) label: String,
}

/// The words that stand for others, and where they are defined.
pub(super) type Words = Vec<(String, Range<usize>)>;

/// All cases of a file; one without any words if it has none. The words are those of the file.
pub(super) fn cases(fields: &Fields<'_>) -> (Vec<Case>, Words) {
    let mut cases = vec![Case::default()];
    let mut words = Vec::new();
    for (At { value: word, span }, values) in fields.lists("each") {
        let next = cases.iter().flat_map(|case| {
            let word = &word;
            values.iter().map(move |value| {
                let mut case = case.clone();
                case.values.insert(word.clone(), value.clone());
                let comma = if case.label.is_empty() { "" } else { ", " };
                case.label += &format!("{comma}{word} = {value}");
                case
            })
        });
        cases = next.take(CASES_MAX + 1).collect();
        if cases.len() > CASES_MAX {
            let title = format!("a scenario is told for at most {CASES_MAX} cases");
            fields.report(Diagnostic::new("too-many-cases", title, span.clone()));
            cases.truncate(1);
        }
        words.push((word, span));
    }
    (cases, words)
}

/// Tells the words that stand for something and that nothing uses.
pub(super) fn unused(words: &Words, used: &BTreeSet<String>) -> Vec<Diagnostic> {
    let unused = words.iter().filter(|(word, _)| !used.contains(word));
    let told = unused.map(|(word, span)| {
        let title = format!("nothing in this scenario depends on `{word}`");
        let help = format!("write \"<{word}>\" where it is meant");
        Diagnostic::new("unused-word", title, span.clone()).help(Some(help))
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::scenario::read;
    use crate::scenario::story::Action;

    const HEAD: &str = "about = \"x\"\nrules = [\"h1\"]\n";

    /// Reads what follows the head, and compares the codes of what is wrong with it.
    #[track_caller]
    fn check_wrong(rest: &str, codes: &[&str]) {
        let wrong = read("x", Path::new("x"), &format!("{HEAD}{rest}")).expect_err("it is wrong");
        let found: Vec<&str> = wrong.iter().map(|one| one.code.as_str()).collect();
        assert_eq!(found, codes, "{wrong:#?}");
    }

    #[test]
    fn each_word_meets_each_other() {
        let text = format!(
            "{HEAD}[each]\nthing = [\"fifo\", \"socket\"]\nend = [2, 3]\n\
             [server.a]\n[[step]]\nplant = \"<thing>\"\nat = \"root/story-aaaaaaaaaaa<end>\"\n"
        );
        let first = read("x", Path::new("x"), &text).expect("it is a story");
        let all: Vec<String> = std::iter::once(&first)
            .chain(&first.other_cases)
            .map(|story| match &story.steps[0].action {
                Action::Plant { what, at, .. } => format!("{}: {what:?} {}", story.case, at.rest),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [
            "end = 2, thing = fifo: Fifo story-aaaaaaaaaaa2",
            "end = 2, thing = socket: Socket story-aaaaaaaaaaa2",
            "end = 3, thing = fifo: Fifo story-aaaaaaaaaaa3",
            "end = 3, thing = socket: Socket story-aaaaaaaaaaa3",
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn what_is_wrong_in_every_case_is_told_once() {
        let step =
            "[server.a]\n[[step]]\nstart = \"b\"\n[[step]]\nplant = \"<x>\"\nat = \"a/owner\"\n";
        check_wrong(&format!("[each]\nx = [\"fifo\", \"file\"]\n{step}"), &["unknown-actor"]);
        check_wrong(
            &format!("[each]\nx = [\"fifo\", \"fife\"]\n{step}"),
            &["unknown-actor", "unknown-word"],
        );
    }

    #[test]
    fn a_word_that_nothing_uses_is_told() {
        let step = "[server.a]\n[[step]]\nstart = \"a\"\n";
        check_wrong(&format!("[each]\nx = [\"fifo\"]\n{step}"), &["unused-word"]);
        check_wrong(&format!("[each]\nx = []\n{step}"), &["wrong-type"]);
        check_wrong(&format!("each = 3\n{step}"), &["wrong-type"]);
    }

    #[test]
    fn there_are_not_endlessly_many_cases() {
        let many = (0..17).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
        let step = "[server.a]\n[[step]]\nforge = \"a/owner\"\npid = \"<x>\"\nversion = \"<y>\"\n";
        check_wrong(&format!("[each]\nx = [{many}]\ny = [{many}]\n{step}"), &["too-many-cases"]);
    }

    #[test]
    fn a_name_in_angle_brackets_in_a_place_is_that_of_a_server() {
        let step = "[server.a]\n[[step]]\nplant = \"file\"\nat = \"root/<b>.bak\"\n";
        check_wrong(step, &["unknown-actor"]);
    }

    #[test]
    fn a_call_is_known_by_its_name() {
        let step = "[server.a]\n[[step]]\nstart = \"a\"\nstop-before = \"renaem\"\n";
        check_wrong(step, &["unknown-word"]);
    }

    #[test]
    fn other_users_and_containers_are_needs() {
        let start = "[[step]]\nstart = \"a\"\n";
        check_wrong(
            &format!("[server.a]\n{start}expect = [{{ foreign = 1 }}]\n"),
            &["undeclared-need"],
        );
        check_wrong(
            &format!("[server.a]\n[precious.b]\nplain-user = true\n{start}"),
            &["undeclared-need"],
        );
        check_wrong(
            &format!("[server.a]\nin = \"b\"\n[container.b]\n{start}"),
            &["undeclared-need"],
        );
        check_wrong(
            &format!("[server.a]\nunreadable-program = true\n{start}"),
            &["undeclared-host-only", "unreadable"],
        );
    }
}
