//! `mortmain list`: every claim, its owner, and whether a sweep would remove it.

use std::io::Write;

use clap::Args;
use mortmain::Entry;

use crate::age::{Coarse, age};
use crate::exit::{Exit, Failure, TABLE};
use crate::output::{Output, json_line, note};
use crate::place::Place;
use crate::size::{Size, size};
use crate::table;
use crate::verdict::{Line, Word, exit, summary_line, why};

const EXAMPLES: &str = "\
Examples:
  mortmain list                             what `mortmain run` has made
  mortmain list --size --root /var/tmp      elsewhere, and how much room it takes
  mortmain list --prefix my-tool --json     the claims of a program that uses the library

Verdicts:
  remove    nobody uses it any more, and a sweep would remove it
  keep      it is in use, or it cannot be told that it is not
  blocked   nobody uses it, and something in it forbids its removal";

/// Which claims, and how.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{TABLE}"))]
pub(crate) struct Options {
    #[command(flatten)]
    place: Place,
    /// Add up the room that each claim takes
    #[arg(long)]
    size: bool,
    #[command(flatten)]
    output: Output,
}

/// One claim, and what is shown of it.
struct Row<'r> {
    entry: &'r Entry,
    owner: Option<mortmain::Seen>,
    age: Option<std::time::Duration>,
    size: Option<Size>,
}

/// Lists, and removes nothing.
pub(crate) fn run(options: &Options) -> Result<Exit, Failure> {
    options.output.begin();
    let namespace = options.place.open()?;
    let mut report = namespace.dry_run();
    report.entries.sort_by(|a, b| a.name.cmp(&b.name));
    let root = namespace.root();
    let rows: Vec<Row<'_>> = report
        .entries
        .iter()
        .map(|entry| {
            let path = root.join(entry.name.to_string());
            Row {
                entry,
                owner: namespace.recorded_owner(&entry.name),
                age: age(&path),
                size: options.size.then(|| size(&path)),
            }
        })
        .collect();
    let mut out = anstream::stdout().lock();
    if options.output.json() {
        for row in rows {
            let mut line = Line::new(&report, row.entry);
            line.owner = row.owner.map(Into::into);
            line.age_seconds = row.age.map(|age| age.as_secs());
            line.bytes = row.size.map(|size| size.bytes);
            json_line(&mut out, "claim", &line)?;
        }
        summary_line(&mut out, &report)?;
        return exit(&report);
    }
    if rows.is_empty() && report.trouble.is_none() {
        note(format_args!("there is no claim of prefix `{}` in {}", report.prefix, report.root));
    } else {
        print(&mut out, &rows, options.size)?;
    }
    if report.foreign > 0 {
        note(format_args!("{}: {} of other users, not shown", report.root, report.foreign));
    }
    exit(&report)
}

fn print(out: &mut impl Write, rows: &[Row<'_>], sizes: bool) -> std::io::Result<()> {
    let mut headings = vec!["claim", "owner", "age"];
    headings.extend(sizes.then_some("size"));
    headings.extend(["verdict", "why"]);
    let cells = rows.iter().map(|row| {
        let unknown = || "-".to_owned();
        let mut cells = vec![
            row.entry.name.to_string(),
            row.owner.as_ref().map_or_else(unknown, ToString::to_string),
            row.age.map_or_else(unknown, |age| Coarse(age).to_string()),
        ];
        cells.extend(row.size.map(|size| size.to_string()));
        let word = Word::of(&row.entry.outcome);
        cells.extend([word.text().into(), why(&row.entry.outcome)]);
        (cells, word.style())
    });
    table::print(out, &headings, if sizes { 2..4 } else { 2..3 }, cells)
}
