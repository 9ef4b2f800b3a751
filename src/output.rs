//! How the lab talks: results on standard output, progress on standard error.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// Between two lines of progress where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Version of the JSON lines. A field may be added within a version; none changes its meaning.
const SCHEMA: u32 = 1;

/// How to talk.
#[derive(Args, Clone, Debug)]
pub(crate) struct Output {
    /// Print one JSON object a line instead of tables
    #[arg(long, global = true)]
    json: bool,
    /// Show no progress
    #[arg(short, long, global = true)]
    quiet: bool,
    #[command(flatten)]
    color: colorchoice_clap::Color,
}

impl Output {
    /// Follows `--color` and the environment from now on.
    pub(crate) fn begin(&self) {
        self.color.write_global();
    }

    pub(crate) fn json(&self) -> bool {
        self.json
    }

    pub(crate) fn stdout(&self) -> anstream::Stdout {
        anstream::stdout()
    }

    /// One line of JSON: the schema, the type, and what a value has.
    pub(crate) fn json_line(
        &self,
        out: &mut impl Write,
        kind: &str,
        value: &impl Serialize,
    ) -> io::Result<()> {
        #[derive(Serialize)]
        struct Line<'l, T: Serialize> {
            schema: u32,
            r#type: &'l str,
            #[serde(flatten)]
            value: &'l T,
        }
        let line = Line { schema: SCHEMA, r#type: kind, value };
        let text = serde_json::to_string(&line).map_err(io::Error::other)?;
        writeln!(out, "{text}")
    }

    /// A table with its first column to the left and numbers to the right; rows that are not clean
    /// stand out.
    pub(crate) fn table(
        &self,
        out: &mut impl Write,
        head: &[&str],
        rows: impl Iterator<Item = (Vec<String>, bool)>,
    ) -> io::Result<()> {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(head);
        let mut clean = Vec::new();
        for (cells, is_clean) in rows {
            table.add_row(cells);
            clean.push(is_clean);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        for (at, line) in table.lines().enumerate() {
            // The header is the first line.
            let is_clean = at.checked_sub(1).and_then(|row| clean.get(row)).is_none_or(|row| *row);
            let line = line.trim_end();
            if is_clean { writeln!(out, "{line}")? } else { writeln!(out, "{}", self.bad(line))? }
        }
        Ok(())
    }

    /// Text that stands out as wrong.
    pub(crate) fn bad(&self, text: &str) -> String {
        styled(AnsiColor::Red.on_default().bold(), text)
    }

    /// The last line of a command.
    pub(crate) fn verdict(&self, text: &str, holds: bool) -> String {
        let color = if holds { AnsiColor::Green } else { AnsiColor::Red };
        styled(color.on_default().bold(), text)
    }

    /// Progress of one piece of work.
    pub(crate) fn progress(&self, what: &'static str) -> Progress {
        let terminal = io::stderr().is_terminal();
        let bar = (terminal && !self.quiet).then(|| {
            let bar = ProgressBar::new(0);
            let style = ProgressStyle::with_template("{msg:>18} [{bar:40}] {pos}/{len} {eta}");
            // OK because the template is a constant that a test renders.
            bar.set_style(style.expect("a template of this program").progress_chars("=> "));
            bar
        });
        Progress { what, bar, quiet: self.quiet, last: Cell::new(Instant::now()) }
    }
}

/// So many of a thing, in words.
pub(crate) fn several(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Progress of one piece of work: a bar on a terminal, a line now and then elsewhere.
#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    bar: Option<ProgressBar>,
    quiet: bool,
    last: Cell<Instant>,
}

impl Progress {
    /// So many of so many are done, and this is being done.
    pub(crate) fn at(&self, done: u64, of: u64, now: &str) {
        if let Some(bar) = &self.bar {
            bar.set_length(of);
            bar.set_position(done);
            bar.set_message(format!("{} {now}", self.what));
        } else if !self.quiet && self.last.get().elapsed() >= LINE_EVERY {
            self.last.set(Instant::now());
            // Where nobody can read progress there is none to show.
            let _ = writeln!(io::stderr(), "{}: {done} of {of}, {now}", self.what);
        }
    }

    /// So many are done, of nobody knows how many.
    pub(crate) fn count(&self, done: u64, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_length(done.max(1));
            bar.set_position(done);
            bar.set_message(format!("{} {what}", self.what));
        } else if !self.quiet && self.last.get().elapsed() >= LINE_EVERY {
            self.last.set(Instant::now());
            // Where nobody can read progress there is none to show.
            let _ = writeln!(io::stderr(), "{}: {done} {what}", self.what);
        }
    }

    /// Time passes.
    pub(crate) fn tick(&self) {
        if let Some(bar) = &self.bar {
            bar.tick();
        }
    }

    /// Nothing more comes.
    pub(crate) fn done(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_has_a_template_that_can_be_rendered() {
        let style = ProgressStyle::with_template("{msg:>18} [{bar:40}] {pos}/{len} {eta}");
        assert!(style.is_ok());
    }
}
