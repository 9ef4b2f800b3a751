//! A report of the library, in the words of the tool.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use mortmain::{Entry, Outcome, Proof, Report, Seen, Trouble};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output::{Text, json_line, several};

/// What became of a claim, in a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Word {
    /// Nobody uses it: it is removed.
    Removed,
    /// Nobody uses it: a sweep would remove it.
    Remove,
    /// It may be in use.
    Keep,
    /// Nobody uses it, and something in it forbids its removal.
    Blocked,
    /// The same, found when some of it was removed.
    Partial,
}

impl Word {
    pub(crate) fn of(outcome: &Outcome) -> Word {
        match outcome {
            Outcome::Removed(_) => Word::Removed,
            Outcome::WouldRemove(_) => Word::Remove,
            Outcome::Blocked(_) => Word::Blocked,
            Outcome::Partial(_) => Word::Partial,
            // What this tool does not know yet, it may be in use.
            _ => Word::Keep,
        }
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Word::Removed => "removed",
            Word::Remove => "remove",
            Word::Keep => "keep",
            Word::Blocked => "blocked",
            Word::Partial => "partial",
        }
    }

    pub(crate) fn style(self) -> Style {
        match self {
            Word::Removed | Word::Remove => AnsiColor::Green.on_default(),
            Word::Keep => Style::new(),
            Word::Blocked | Word::Partial => AnsiColor::Red.on_default(),
        }
    }
}

/// Why, without the word that the sentence begins with.
pub(crate) fn why(outcome: &Outcome) -> String {
    let sentence = outcome.to_string();
    sentence.split_once(": ").map_or(sentence.clone(), |(_, why)| why.into())
}

/// A claim, as a line of JSON.
#[derive(Serialize)]
pub(crate) struct Line<'l> {
    name: &'l str,
    path: Text,
    place: &'static str,
    verdict: Word,
    why: String,
    /// The same in words that stay what they are.
    because: Vec<&'static str>,
    proofs: Option<Proofs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<Process>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) age_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
}

/// The answers; `null` for what was not asked.
#[derive(Serialize)]
struct Proofs {
    lease: String,
    owner: Option<String>,
    commands: Option<String>,
    /// Evidence of life, which can only keep.
    life: Option<String>,
}

/// A process, as it was recorded.
#[derive(Serialize)]
pub(crate) struct Process {
    pid: i32,
    program: Text,
}

impl From<Seen> for Process {
    fn from(seen: Seen) -> Process {
        Process { pid: seen.pid.0, program: Text(seen.program) }
    }
}

impl<'l> Line<'l> {
    pub(crate) fn new(report: &Report, entry: &'l Entry) -> Line<'l> {
        let findings = match &entry.outcome {
            Outcome::Removed(findings) | Outcome::WouldRemove(findings) => Some(findings),
            Outcome::Kept(findings) => Some(findings),
            _ => None,
        };
        let word = |proof: Proof| proof.to_string();
        let proofs = findings.map(|findings| Proofs {
            lease: word(findings.lease.proof),
            owner: findings.owner.as_ref().map(|finding| word(finding.proof)),
            commands: findings.commands.as_ref().map(|finding| word(finding.proof)),
            life: findings.life.as_ref().map(|finding| word(finding.proof)),
        });
        Line {
            // OK because the grammar of names is of ASCII letters.
            name: std::str::from_utf8(entry.name.bytes()).expect("a claim's name is ASCII"),
            path: Text(report.root.join(entry.name.bytes()).0),
            place: entry.place.word(),
            verdict: Word::of(&entry.outcome),
            why: why(&entry.outcome),
            because: because(&entry.outcome),
            proofs,
            owner: None,
            age_seconds: None,
            bytes: None,
        }
    }
}

/// The codes of what an outcome rests on. Of a removal, that the lease is free is the same in all.
pub(crate) fn because(outcome: &Outcome) -> Vec<&'static str> {
    match outcome {
        Outcome::Removed(findings) | Outcome::WouldRemove(findings) => {
            let answers = findings.owner.iter().chain(&findings.commands);
            answers.map(|finding| finding.evidence.code()).collect()
        }
        Outcome::Kept(findings) => {
            findings.against().map(|finding| finding.evidence.code()).collect()
        }
        Outcome::Blocked(obstacle) => vec![obstacle.what.code()],
        Outcome::Partial(obstacles) => obstacles.iter().map(|one| one.what.code()).collect(),
        _ => Vec::new(),
    }
}

/// What it came to, as a line of JSON.
pub(crate) fn summary_line(out: &mut impl Write, report: &Report) -> io::Result<()> {
    #[derive(Serialize)]
    struct Summary<'s> {
        root: Text,
        prefix: &'s str,
        dry_run: bool,
        removed: usize,
        removable: usize,
        kept: usize,
        blocked: usize,
        foreign: u64,
        unseen: usize,
        trouble: Option<String>,
    }
    let summary = Summary {
        root: Text(report.root.0.clone()),
        prefix: report.prefix.text(),
        dry_run: report.dry_run,
        removed: report.removed(),
        removable: removable(report),
        kept: report.kept(),
        blocked: report.blocked(),
        foreign: report.foreign,
        unseen: report.unseen,
        trouble: report.trouble.as_ref().map(trouble),
    };
    json_line(out, "summary", &summary)
}

fn removable(report: &Report) -> usize {
    let of = |entry: &&Entry| matches!(entry.outcome, Outcome::WouldRemove(_));
    report.entries.iter().filter(of).count()
}

/// What it came to, in a sentence.
pub(crate) fn summary(report: &Report) -> String {
    let (done, count) = match report.dry_run {
        true => ("would be removed", removable(report)),
        false => ("removed", report.removed()),
    };
    let mut text = format!("{} {done}", several(count, "claim"));
    let others = [
        (report.kept() as u64, "kept"),
        (report.blocked() as u64, "blocked"),
        (report.foreign, "of other users"),
        (report.unseen as u64, "left for later"),
    ];
    for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!(", {count} {what}");
    }
    text
}

fn trouble(trouble: &Trouble) -> String {
    format!("{} failed: {}", trouble.what, trouble.errno)
}

/// How a command ends that has such a report.
pub(crate) fn exit(report: &Report) -> Result<Exit, Failure> {
    match &report.trouble {
        None => Ok(Exit::Done),
        Some(met) => {
            let why = format!("{}: {}", report.root, trouble(met));
            Err(Failure { exit: Exit::Failed, why })
        }
    }
}
