//! The stories' part of `prove`: each has to fail for every rule that it says it protects.

use super::{Prover, TEST_LIMIT, last_lines};
use crate::builder::TestBinaries;
use crate::catalogue::Removal;
use crate::exit::{Exit, Stop};
use crate::run::Alone;
use crate::runtime;
use crate::schema::{self, Schema};
use crate::stories::{self, Found, Outcome, Shown, Story};
use crate::suite::Suite;

impl Prover<'_> {
    /// Asks the stories that are wanted, all if none is named, about each of their rules. Ends early
    /// when it is interrupted.
    pub(super) fn stories(
        &self,
        removals: &[&Removal],
        schema: &Schema,
        binaries: &TestBinaries,
        shown: &Shown,
        wanted: &[String],
    ) -> anyhow::Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        self.activate(runtime::NONE)?;
        let Some(suites) = self.run.runner.suites(binaries)? else { return Ok(outcomes) };
        let mut all = stories::among(&suites, &self.run.scratch.tree())?;
        if let Some(name) = wanted.iter().find(|name| all.iter().all(|story| story.name != **name))
        {
            return Err(Stop::new(Exit::NothingMatched, format!("no story is named {name}")).into());
        }
        all.retain(|story| wanted.is_empty() || wanted.contains(&story.name));
        for story in &all {
            let Some(suite) = Suite::alone(&story.binary, &story.test) else { continue };
            let asked = Asked { prover: self, removals, schema, binaries, story, suite };
            for rule in &story.rules {
                let found = asked.rule(rule, stories::remembered(shown, story, rule))?;
                let (story, rule) = (story.name.clone(), rule.clone());
                let outcome = Outcome { story, rule, found };
                if self.run.options.shared.json {
                    stories::json(&outcome)?;
                }
                let ended = outcome.found == Found::Interrupted;
                outcomes.push(outcome);
                if ended {
                    return Ok(outcomes);
                }
            }
            asked.control()?;
        }
        Ok(outcomes)
    }
}

/// A story that is being asked.
struct Asked<'a> {
    prover: &'a Prover<'a>,
    removals: &'a [&'a Removal],
    schema: &'a Schema,
    binaries: &'a TestBinaries,
    story: &'a Story,
    suite: Suite,
}

impl Asked<'_> {
    /// Tells the story without the checks of a rule, one at a time, until it fails; that which is
    /// remembered first.
    fn rule(&self, rule: &str, remembered: Option<&str>) -> anyhow::Result<Found> {
        let (mut passed, mut hung) = (Vec::new(), Vec::new());
        let switched = (0..self.removals.len()).filter(|place| !self.schema.apart.contains(place));
        let mut places: Vec<usize> =
            switched.filter(|&place| self.removals[place].check.rule() == rule).collect();
        // A stable sort: the others stay in their order.
        places.sort_by_key(|&place| Some(&*self.removals[place].check.id) != remembered);
        for place in places {
            let id = &self.removals[place].check.id;
            self.prover.run.progress.doing(format_args!("{}: without {id}", self.story.name));
            self.prover.activate(schema::number(place))?;
            match self.tell()? {
                Alone::Failed(_, log) => {
                    let name = format!("{} {id}", self.story.name).replace('/', "-");
                    self.prover.run.log(&name, &log)?;
                    return Ok(Found::Shown(id.clone()));
                }
                Alone::Passed(_) => passed.push(id.clone()),
                Alone::TimedOut => hung.push(id.clone()),
                Alone::Interrupted => return Ok(Found::Interrupted),
            }
        }
        Ok(if hung.is_empty() { Found::NotShown(passed) } else { Found::TimedOut(hung) })
    }

    /// Sees that the story holds with all checks in place.
    fn control(&self) -> anyhow::Result<()> {
        self.prover.activate(runtime::NONE)?;
        match self.tell()? {
            Alone::Passed(_) | Alone::Interrupted => Ok(()),
            Alone::TimedOut => Err(self.fails("does not end")),
            Alone::Failed(_, log) => Err(self.fails(&format!("fails\n{}", last_lines(&log)))),
        }
    }

    fn fails(&self, how: &str) -> anyhow::Error {
        let message = format!("with all checks in place {} {how}", self.story.name);
        Stop::new(Exit::BaselineFails, message).into()
    }

    fn tell(&self) -> anyhow::Result<Alone> {
        let Asked { prover, binaries, story, suite, .. } = self;
        prover.run.runner.run_alone(binaries, suite, &story.test, TEST_LIMIT)
    }
}
