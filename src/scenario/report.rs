//! What came of the stories: a row for each, and one for all.

use std::collections::BTreeMap;
use std::io::{self, Write};

use mortmain_harness::actor::wire::Subject;
use mortmain_harness::scenario::runner::RunError;
use mortmain_harness::scenario::telling::{Difference, Told};
use mortmain_harness::scenario::world::Tellable;
use mortmain_harness::scenario::{Diagnostic, Story};
use serde::Serialize;

use super::tell::{OnHost, Went, tell};
use super::{On, Options};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{Output, several};

/// What a line of JSON has of a story. What stands at its top is of the telling on the host, or of
/// that in the world where there was no other; a failure is of whichever failed.
#[derive(Serialize)]
struct Row<'r> {
    name: &'r str,
    result: &'static str,
    rounds: u64,
    sweeps: u64,
    canaries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finding: Option<&'r Diagnostic>,
    /// What the two tellings do not agree on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    world: Option<InWorld<'r>>,
}

/// The telling in the simulated kernel.
#[derive(Serialize)]
struct InWorld<'r> {
    result: &'static str,
    /// How many of the cases were told, and how many there are.
    cases: [usize; 2],
    rounds: u64,
    sweeps: u64,
    canaries: u64,
    /// The cases that were not told, by what the simulated kernel lacks.
    untold: BTreeMap<String, Vec<&'r str>>,
}

/// Tells the stories, and what came of them.
pub(super) fn tell_all(
    stories: &[&Story],
    options: &Options,
    output: &Output,
    interrupt: &Interrupt,
) -> io::Result<Exit> {
    let mut out = output.stdout();
    let lab = std::env::current_exe()?;
    let progress = output.progress("scenarios");
    let went = tell(stories, &lab, options, interrupt, |done, now| {
        progress.at(done, stories.len() as u64, now);
    });
    progress.done();
    let mut tally = Tally::default();
    let mut shown = Shown::default();
    for (story, went) in stories.iter().zip(&went) {
        let Some(went) = went else { continue };
        let row = tally.add(story, went, options.on);
        match output.json() {
            true => output.json_line(&mut out, "scenario", &row)?,
            false => shown.add(story, &row, went, options, &mut out)?,
        }
    }
    let exit = tally.exit(stories.len());
    if output.json() {
        tally.exit = exit as u8;
        output.json_line(&mut out, "scenarios", &tally)?;
        return Ok(exit);
    }
    shown.end(options.on, output, &mut out)?;
    let verdict = tally.verdict(stories.len(), options.on);
    writeln!(out, "{}", output.verdict(&verdict, exit == Exit::Holds))?;
    Ok(exit)
}

/// What people are shown.
#[derive(Default)]
struct Shown {
    rows: Vec<(Vec<String>, bool)>,
    /// Those that were not told, or not to the end, by the reason.
    untold: BTreeMap<String, Vec<String>>,
}

impl Shown {
    /// Adds a story; a finding is shown at once.
    fn add(
        &mut self,
        story: &Story,
        row: &Row<'_>,
        went: &Went,
        options: &Options,
        out: &mut impl Write,
    ) -> io::Result<()> {
        if let Some(finding) = row.finding {
            let path = story.path.to_string_lossy();
            writeln!(out, "{}", finding.render(&path, &story.text, true))?;
        }
        for difference in &went.differences {
            writeln!(out, "{} is not told the same{difference}", story.name)?;
        }
        if row.finding.is_some() || !went.differences.is_empty() {
            let subject = match options.subject {
                Subject::Mortmain => String::new(),
                other => format!(" --subject {}", other.name()),
            };
            let name = &story.name;
            writeln!(out, "  to see it again: mortmain-lab scenario {name}{subject}\n")?;
        }
        if let Some(reason) = &row.reason {
            let what = format!("{}, {reason}", row.result);
            self.untold.entry(what).or_default().push(row.name.to_owned());
        }
        let world = row.world.as_ref();
        for (why, cases) in world.into_iter().flat_map(|world| &world.untold) {
            let [_, of] = world.map_or([0, 0], |world| world.cases);
            let part = match cases.len() == of {
                true => row.name.to_owned(),
                false => format!("{} ({} of {of} cases)", row.name, cases.len()),
            };
            self.untold.entry(format!("not told in the world, {why}")).or_default().push(part);
        }
        if row.reason.is_none() && row.result != "skipped" {
            let counts = [row.rounds, row.sweeps, row.canaries].map(|count| count.to_string());
            let mut cells = vec![row.name.to_owned(), row.result.to_owned()];
            cells.extend(counts);
            cells.extend(world.filter(|_| options.on == On::Both).map(|it| it.result.to_owned()));
            self.rows.push((cells, !matches!(row.result, "failed" | "differs")));
        }
        Ok(())
    }

    fn end(self, on: On, output: &Output, out: &mut impl Write) -> io::Result<()> {
        let mut head = vec!["scenario", "result", "rounds", "sweeps", "canaries"];
        head.extend((on == On::Both).then_some("world"));
        output.table(out, &head, self.rows.into_iter())?;
        for (why, names) in self.untold {
            writeln!(out, "{why}:\n    {}", names.join(", "))?;
        }
        Ok(())
    }
}

/// What came of all.
#[derive(Default, Serialize)]
struct Tally {
    held: u64,
    /// Those that show a known escape: no pass, and no finding.
    escapes: u64,
    failed: u64,
    /// Those that held in both tellings, which do not say the same of each claim.
    differ: u64,
    skipped: u64,
    broke_off: u64,
    sweeps: u64,
    canaries: u64,
    world: WorldTally,
    exit: u8,
    #[serde(skip)]
    no_cell: bool,
}

/// What came of the tellings in the simulated kernel.
#[derive(Default, Serialize)]
struct WorldTally {
    /// Those that held, an escape included.
    held: u64,
    /// Those of which some cases held there, and the others need what it lacks.
    in_part: u64,
    failed: u64,
    untold: u64,
    sweeps: u64,
    canaries: u64,
}

impl Tally {
    fn add<'r>(&mut self, story: &'r Story, went: &'r Went, on: On) -> Row<'r> {
        let mut row = Row {
            name: &story.name,
            result: "held",
            rounds: 0,
            sweeps: 0,
            canaries: 0,
            reason: None,
            line: None,
            finding: None,
            differences: went.differences.iter().map(Difference::to_string).collect(),
            world: None,
        };
        let world = on.world().then(|| self.world.add(story, went.world.as_ref()));
        match &went.host {
            Some(OnHost::Told(told)) => row.tell(story, told),
            Some(OnHost::Skipped(reason)) => {
                (row.result, row.reason) = ("skipped", Some(reason.clone()));
            }
            Some(OnHost::BrokeOff(error)) => {
                self.no_cell |= matches!(error, RunError::Missing(_));
                (row.result, row.reason) = ("broke off", Some(error.to_string()));
            }
            None => match &went.world {
                Some(told) => row.tell(story, told),
                None => row.result = "skipped",
            },
        }
        if let (Some(told @ Told::Failed { .. }), "held" | "escape") = (&went.world, row.result) {
            row.tell(story, told);
        }
        if !row.differences.is_empty() {
            row.result = "differs";
        }
        row.world = world;
        self.count(&row);
        row
    }

    fn count(&mut self, row: &Row<'_>) {
        match row.result {
            "held" => self.held += 1,
            "escape" => self.escapes += 1,
            "failed" => self.failed += 1,
            "differs" => self.differ += 1,
            "skipped" => self.skipped += 1,
            _ => self.broke_off += 1,
        }
        self.sweeps += row.sweeps;
        self.canaries += row.canaries;
    }

    fn told(&self) -> u64 {
        self.held + self.escapes + self.failed + self.differ + self.skipped + self.broke_off
    }

    fn exit(&self, of: usize) -> Exit {
        let told = self.told();
        if self.failed + self.differ > 0 {
            Exit::Finding
        } else if self.no_cell {
            Exit::Missing
        } else if self.broke_off > 0 {
            Exit::Internal
        } else if told < of as u64 {
            Exit::Undecided
        } else if self.held + self.escapes == 0 {
            Exit::Nothing
        } else {
            Exit::Holds
        }
    }

    fn verdict(&self, of: usize, on: On) -> String {
        let holds = if self.held == 1 { "holds" } else { "hold" };
        let mut text = format!("{} {holds}", several(self.held, "scenario"));
        match self.escapes {
            0 => {}
            1 => text += ", 1 shows a known escape",
            many => text += &format!(", {many} show known escapes"),
        }
        for (count, what) in [
            (self.failed, "failed"),
            (self.differ, "not told the same"),
            (self.skipped, "skipped"),
            (self.broke_off, "broke off"),
        ] {
            if count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        let told = self.told();
        let untold = of as u64 - told;
        if untold > 0 {
            text += &format!(", {untold} not told");
        }
        text += &format!(": {}, {}", several(self.sweeps, "sweep"), canaries(self.canaries));
        if on == On::Both { text + &self.world.verdict() } else { text }
    }
}

impl WorldTally {
    fn add<'r>(&mut self, story: &'r Story, told: Option<&Told>) -> InWorld<'r> {
        let tellable = Tellable::of(story);
        let untold = tellable.untold.into_iter();
        let untold: BTreeMap<String, Vec<&str>> =
            untold.map(|(why, cases)| (why.to_string(), cases)).collect();
        let cases = [tellable.cases.len(), 1 + story.other_cases.len()];
        let mut row =
            InWorld { result: "not told", cases, rounds: 0, sweeps: 0, canaries: 0, untold };
        match told {
            None => self.untold += 1,
            Some(Told::Failed { round, .. }) => {
                self.failed += 1;
                (row.result, row.rounds) = ("failed", *round);
            }
            Some(Told::Held { rounds, sweeps, canaries, .. }) => {
                let whole = cases[0] == cases[1];
                (self.held, self.in_part) =
                    (self.held + u64::from(whole), self.in_part + u64::from(!whole));
                row.result = match (whole, story.shows_an_escape()) {
                    (false, _) => "in part",
                    (true, true) => "escape",
                    (true, false) => "held",
                };
                (row.rounds, row.sweeps, row.canaries) = (*rounds, *sweeps, *canaries);
            }
        }
        self.sweeps += row.sweeps;
        self.canaries += row.canaries;
        row
    }

    fn verdict(&self) -> String {
        let mut text = format!("; in the world {}", self.held);
        for (count, what) in
            [(self.in_part, "in part"), (self.failed, "failed"), (self.untold, "not told")]
        {
            if count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        text
    }
}

impl<'r> Row<'r> {
    /// How it went in one telling.
    fn tell(&mut self, story: &Story, told: &'r Told) {
        match told {
            Told::Held { rounds, sweeps, canaries, .. } => {
                self.result = if story.shows_an_escape() { "escape" } else { "held" };
                (self.rounds, self.sweeps, self.canaries) = (*rounds, *sweeps, *canaries);
            }
            Told::Failed { finding, round } => {
                (self.result, self.rounds) = ("failed", *round);
                self.line = Some(finding.line(&story.text));
                self.finding = Some(finding);
            }
        }
    }
}

fn canaries(count: u64) -> String {
    if count == 1 { "1 canary".into() } else { format!("{count} canaries") }
}
