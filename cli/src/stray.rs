//! Directories that are no claims, in the words of the tool.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use mortmain::{Outcome, Stray, Strays};
use serde::Serialize;

use crate::age::{Coarse, age};
use crate::output::{Text, json_line, note, warn};
use crate::size::{Size, size};
use crate::table;
use crate::verdict::{Process, Word, because, why};

/// What is seen of a directory, while it is there.
pub(crate) struct Look {
    age: Option<Duration>,
    size: Option<Size>,
}

impl Look {
    /// Looks; at the room that it takes only if that is asked for, since it takes a while.
    pub(crate) fn at(path: &Path, sizes: bool) -> Look {
        Look { age: age(path), size: sizes.then(|| size(path)) }
    }
}

/// One directory, and what is shown of it.
pub(crate) struct Row<'r> {
    pub(crate) stray: &'r Stray,
    pub(crate) look: Look,
}

/// What became of it, in a word.
fn word(stray: &Stray) -> &'static str {
    match Word::of(&stray.outcome) {
        Word::Remove => "unused",
        word => word.text(),
    }
}

/// Why, one for each process where there are any.
fn reasons(stray: &Stray) -> Vec<String> {
    let own = match &stray.outcome {
        Outcome::WouldRemove(findings) => {
            findings.life.as_ref().map(|life| life.evidence.to_string())
        }
        Outcome::Kept(_) if !stray.users.is_empty() => None,
        outcome => Some(why(outcome)),
    };
    let users = stray.users.iter().map(ToString::to_string);
    own.into_iter().chain(users).collect()
}

/// Prints a row for each, and a line for each process that uses it.
pub(crate) fn print_table(out: &mut impl Write, rows: &[Row<'_>], sizes: bool) -> io::Result<()> {
    let mut headings = vec!["directory", "age"];
    headings.extend(sizes.then_some("size"));
    headings.extend(["verdict", "why"]);
    let cells = rows.iter().map(|row| {
        let age = row.look.age.map_or_else(|| "-".to_owned(), |age| Coarse(age).to_string());
        let mut cells = vec![row.stray.name.to_string(), age];
        cells.extend(row.look.size.map(|size| size.to_string()));
        cells.extend([word(row.stray).into(), reasons(row.stray).join("\n")]);
        (cells, Word::of(&row.stray.outcome).style())
    });
    table::print(out, &headings, if sizes { 1..3 } else { 1..2 }, cells)
}

/// Prints a line of JSON for each, and one for all.
pub(crate) fn print_json(
    out: &mut impl Write,
    strays: &Strays,
    rows: &[Row<'_>],
    dry_run: bool,
) -> io::Result<()> {
    for row in rows {
        json_line(out, "stray", &Line::new(strays, row))?;
    }
    json_line(out, "summary", &Summary::of(strays, dry_run))
}

/// A directory, as a line of JSON.
#[derive(Serialize)]
struct Line {
    name: Text,
    path: Text,
    verdict: &'static str,
    why: String,
    because: Vec<&'static str>,
    users: Vec<User>,
    #[serde(skip_serializing_if = "Option::is_none")]
    age_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

/// A process that uses it.
#[derive(Serialize)]
struct User {
    #[serde(flatten)]
    process: Process,
    uses: Vec<&'static str>,
}

impl Line {
    fn new(strays: &Strays, row: &Row<'_>) -> Line {
        let stray = row.stray;
        let user = |user: &mortmain::User| User {
            process: user.process.clone().into(),
            uses: user.uses.iter().map(|how| how.code()).collect(),
        };
        Line {
            name: Text::from(stray.name.bytes()),
            path: Text(strays.root.join(stray.name.bytes()).0),
            verdict: word(stray),
            why: reasons(stray).join("; "),
            because: because(&stray.outcome),
            users: stray.users.iter().map(user).collect(),
            age_seconds: row.look.age.map(|age| age.as_secs()),
            bytes: row.look.size.map(|size| size.bytes),
        }
    }
}

/// What it came to, as a line of JSON.
#[derive(Serialize)]
struct Summary {
    root: Text,
    dry_run: bool,
    unused: usize,
    removed: usize,
    kept: usize,
    blocked: usize,
    claims: u64,
    foreign: u64,
    unread: u64,
    partial_view: bool,
}

impl Summary {
    fn of(strays: &Strays, dry_run: bool) -> Summary {
        let count = |words: &[Word]| {
            let of = |stray: &&Stray| words.contains(&Word::of(&stray.outcome));
            strays.entries.iter().filter(of).count()
        };
        Summary {
            root: Text(strays.root.0.clone()),
            dry_run,
            unused: count(&[Word::Remove]),
            removed: count(&[Word::Removed]),
            kept: count(&[Word::Keep]),
            blocked: count(&[Word::Blocked, Word::Partial]),
            claims: strays.claims,
            foreign: strays.foreign,
            unread: strays.unread,
            partial_view: strays.partial_view,
        }
    }
}

/// Says what the table does not.
pub(crate) fn tell(strays: &Strays) {
    let others = [
        (strays.claims, "called as claims are, which `mortmain sweep` judges"),
        (strays.foreign, "of other users, not shown"),
    ];
    for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
        note(format_args!("{}: {count} {what}", strays.root));
    }
    if strays.entries.is_empty() {
        return;
    }
    match strays.unread {
        0 => {}
        1 => warn("1 process could not be read, and may use any of these"),
        many => warn(format_args!("{many} processes could not be read, and may use any of these")),
    }
    if strays.partial_view {
        warn(
            "this is not the machine's first pid namespace, or /proc hides processes: those that \
             are not seen from here may use any of these",
        );
    }
}
