//! `mortmain-lab explore --engine series`: every fault at every step of schedules that are drawn.

use std::io::{self, Write};
use std::path::Path;

use mortmain_harness::explore::{Case, SeriesCounts, Struck, series, series_case, series_causes};
use serde::Serialize;

use crate::causes::All;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{Output, several};
use crate::replay::Drawn;
use crate::sample::{Options, Short, ShortLine};

/// What is to be done.
pub(crate) struct Work<'w> {
    pub(crate) case: Case,
    /// The case in words.
    pub(crate) what: &'w str,
    /// Where findings go.
    pub(crate) save: &'w Path,
}

/// Strikes everywhere, and prints what came of it.
pub(crate) fn run(
    options: &Options,
    work: &Work<'_>,
    output: &Output,
    interrupt: &Interrupt,
) -> io::Result<Exit> {
    let (seed, bases) = options.bases();
    if options.all() {
        return run_all((seed, bases), work, output, interrupt);
    }
    let progress = output.progress("explore");
    let (struck, counts) = series(work.case, seed, bases, &mut |counts| {
        progress.at(counts.bases, bases, &several(counts.cases(), "fault"));
        !interrupt.is_asked()
    });
    progress.done();
    let what = format!("{}, series, seed {seed}", work.what);
    let (exit, verdict) = match &struck {
        Struck::Nothing => {
            (Exit::Holds, format!("{what}: nothing found, which is no proof, {counts}"))
        }
        Struck::Found(_) => (Exit::Finding, format!("{what}: does not hold, {counts}")),
        Struck::Ended => (Exit::Undecided, format!("{what}: interrupted, {counts} so far")),
    };
    let case = series_case(work.case);
    let short = match &struck {
        Struck::Found(found) => {
            let (stem, words) = (format!("-series-{seed}"), format!("series, seed {seed}"));
            Some(Short::of(case, found, &Drawn { stem, words }, work.save)?)
        }
        Struck::Nothing | Struck::Ended => None,
    };
    let exit = short.as_ref().map_or(exit, |short| short.saved.exit);
    let mut out = output.stdout();
    if output.json() {
        let line = Line::of(&counts, seed, exit, short.as_ref());
        output.json_line(&mut out, "series", &line)?;
        return Ok(exit);
    }
    if let Some(short) = &short {
        short.tell(&mut out)?;
    }
    writeln!(out, "{}", output.verdict(&verdict, exit == Exit::Holds))?;
    Ok(exit)
}

/// Goes on after each finding, and prints how often there was which cause.
fn run_all(
    (seed, bases): (u64, u64),
    work: &Work<'_>,
    output: &Output,
    interrupt: &Interrupt,
) -> io::Result<Exit> {
    let progress = output.progress("explore");
    let (causes, whole, counts) = series_causes(work.case, seed, bases, &mut |counts| {
        progress.at(counts.bases, bases, &several(counts.cases(), "fault"));
        !interrupt.is_asked()
    });
    progress.done();
    let all = All {
        causes: &causes,
        whole,
        of: work.what,
        counts: &counts,
        drawn: Drawn { stem: format!("-series-{seed}"), words: format!("series, seed {seed}") },
        save: work.save,
    };
    all.tell(output, "series", |exit| Line::of(&counts, seed, exit, None))
}

#[derive(Serialize)]
struct Line<'l> {
    exit: u8,
    seed: u64,
    bases: u64,
    positions: u64,
    kills: u64,
    once: u64,
    for_ever: u64,
    tricks: u64,
    in_use: u64,
    /// Each program with each kind of call that failed.
    failed: Vec<&'l str>,
    #[serde(flatten)]
    short: ShortLine,
}

impl<'l> Line<'l> {
    fn of(counts: &'l SeriesCounts, seed: u64, exit: Exit, short: Option<&Short>) -> Line<'l> {
        let SeriesCounts { bases, positions, kills, once, for_ever, tricks, in_use, .. } = *counts;
        let failed = counts.failed.iter().map(String::as_str).collect();
        let (exit, short) = (exit as u8, short.map(Short::line).unwrap_or_default());
        Line { exit, seed, bases, positions, kills, once, for_ever, tricks, in_use, failed, short }
    }
}
