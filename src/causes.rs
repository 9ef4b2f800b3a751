//! What an engine has found that goes on after each finding, by causes.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use mortmain_harness::explore::{Causes, told};
use serde::Serialize;

use crate::compare::CauseLine;
use crate::exit::Exit;
use crate::output::{Output, several};
use crate::replay::{self, Drawn};

/// All that was found.
pub(crate) struct All<'a> {
    pub(crate) causes: &'a Causes,
    /// Whether it came to its end.
    pub(crate) whole: bool,
    /// The case in words.
    pub(crate) of: &'a str,
    /// What was done, in words.
    pub(crate) counts: &'a dyn Display,
    /// What the runs were drawn from.
    pub(crate) drawn: Drawn,
    /// Where the shortest of each cause goes.
    pub(crate) save: &'a Path,
}

impl All<'_> {
    /// Saves the shortest of each cause, and prints them; in JSON a line of this kind comes last.
    pub(crate) fn tell<L: Serialize>(
        &self,
        output: &Output,
        kind: &str,
        last: impl FnOnce(Exit) -> L,
    ) -> io::Result<Exit> {
        let mut saved = Vec::new();
        for (at, (_, group)) in self.causes.iter().enumerate() {
            let Drawn { stem, words } = &self.drawn;
            let drawn = Drawn { stem: format!("{stem}-{}", at + 1), words: words.clone() };
            saved.push(replay::save(self.save, group.case, &group.shortest, Some(&drawn))?);
        }
        let (exit, verdict) = self.verdict();
        // What live processes do not repeat is a bug in the lab, whatever else was found.
        let broken = saved.iter().any(|saved| saved.exit == Exit::Internal);
        let exit = if broken { Exit::Internal } else { exit };
        let mut out = output.stdout();
        if output.json() {
            for ((cause, group), saved) in self.causes.iter().zip(&saved) {
                let cause = CauseLine::of(None, cause, group);
                let line = GroupLine { cause, saved: saved.path() };
                output.json_line(&mut out, "cause", &line)?;
            }
            output.json_line(&mut out, kind, &last(exit))?;
            return Ok(exit);
        }
        for ((cause, group), saved) in self.causes.iter().zip(&saved) {
            let choices = several(group.shortest.schedule.len() as u64, "choice");
            let count = several(group.count, "finding");
            writeln!(out, "{count} of {cause}, the shortest in {choices}")?;
            writeln!(out, "  {}", told(&group.case, &group.shortest))?;
            write!(out, "  ")?;
            saved.tell(&mut out)?;
        }
        writeln!(out, "{}", output.verdict(&verdict, exit == Exit::Holds))?;
        Ok(exit)
    }

    fn verdict(&self) -> (Exit, String) {
        let All { causes, whole, counts, .. } = self;
        let what = format!("{}, {}", self.of, self.drawn.words);
        match (causes.is_empty(), whole) {
            (true, true) => {
                (Exit::Holds, format!("{what}: nothing found, which is no proof, {counts}"))
            }
            (true, false) => (Exit::Undecided, format!("{what}: interrupted, {counts} so far")),
            (false, _) => {
                let found = several(causes.iter().map(|(_, group)| group.count).sum(), "finding");
                let groups = several(causes.iter().count() as u64, "cause");
                let so_far = if *whole { "" } else { " so far" };
                let told = format!("does not hold, {found} of {groups}, {counts}{so_far}");
                (Exit::Finding, format!("{what}: {told}"))
            }
        }
    }
}

#[derive(Serialize)]
struct GroupLine<'l> {
    #[serde(flatten)]
    cause: CauseLine<'l>,
    /// Where the shortest is saved, for `replay`.
    saved: Option<String>,
}
