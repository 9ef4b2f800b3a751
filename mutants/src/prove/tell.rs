//! The stories' part of `prove`: each has to fail for every rule that it says it protects.

use super::{Prover, last_lines};
use crate::builder::TestBinaries;
use crate::catalogue::Removal;
use crate::exit::{Exit, Stop};
use crate::run::Alone;
use crate::runtime;
use crate::schema::{self, Schema};
use crate::stories::{self, Found, Outcome, Story, Test};
use crate::suite::Suite;

impl Prover<'_> {
    /// Asks the stories that are wanted, all if none is named, about each of their rules. Ends early
    /// when it is interrupted, and at the first rule that is not shown if that is to end it; gives
    /// whether it did not.
    ///
    /// # Errors
    ///
    /// When a story fails with all checks in place. The others are asked all the same.
    pub(super) fn stories(
        &self,
        removals: &[&Removal],
        schema: &Schema,
        binaries: &TestBinaries,
        wanted: &[String],
        told: &mut Vec<Outcome>,
    ) -> anyhow::Result<bool> {
        self.activate(runtime::NONE)?;
        let Some(suites) = self.session.runner.suites(binaries)? else { return Ok(false) };
        let all = stories::among(&suites, &self.session.scratch.tree())?;
        let mut failure = None;
        for story in &stories::select(all, wanted, &self.shown)? {
            let mut asked = Asked { prover: self, removals, schema, binaries, story, holds: false };
            let before = told.len();
            match asked.rules(told) {
                Ok(true) => {}
                Ok(false) => return failure.map_or(Ok(false), Err),
                Err(error) => {
                    // A story that fails anyway has shown nothing.
                    told.truncate(before);
                    failure.get_or_insert(error);
                }
            }
        }
        failure.map_or(Ok(true), Err)
    }
}

/// A story that is being asked.
struct Asked<'a> {
    prover: &'a Prover<'a>,
    removals: &'a [&'a Removal],
    schema: &'a Schema,
    binaries: &'a TestBinaries,
    story: &'a Story,
    /// Whether it was seen to hold with all checks in place.
    holds: bool,
}

impl Asked<'_> {
    /// Asks about each rule, and whether the story holds with all checks in place. Gives whether the
    /// run goes on.
    fn rules(&mut self, told: &mut Vec<Outcome>) -> anyhow::Result<bool> {
        let options = self.prover.session.options;
        for rule in &self.story.rules {
            let found = self.rule(rule)?;
            let outcome = Outcome { story: self.story.name.clone(), rule: rule.clone(), found };
            if options.shared.json {
                stories::json(&outcome)?;
            }
            let ends =
                outcome.found == Found::Interrupted || (options.fail_fast && !outcome.is_shown());
            told.push(outcome);
            if ends {
                return Ok(false);
            }
        }
        self.control()
    }

    /// Tells the story without the checks of a rule, one at a time, until it fails; that which is
    /// remembered first. It has to fail, to hold with all checks in place, and to fail again.
    fn rule(&mut self, rule: &str) -> anyhow::Result<Found> {
        let (mut passed, mut hung) = (Vec::new(), Vec::new());
        let remembered = stories::remembered(&self.prover.shown, self.story, rule);
        let switched = (0..self.removals.len()).filter(|place| !self.schema.apart.contains(place));
        let mut places: Vec<usize> =
            switched.filter(|&place| self.removals[place].check.rule() == rule).collect();
        // A stable sort: the others stay in their order.
        places.sort_by_key(|&place| Some(&*self.removals[place].check.id) != remembered);
        for place in places {
            let id = &self.removals[place].check.id;
            self.prover.session.progress.doing(format_args!("{}: without {id}", self.story.name));
            let number = schema::number(place);
            let mut told = self.tell(number)?;
            if let Alone::Failed(_, log) = &told {
                let name = format!("{} {id}", self.story.name).replace('/', "-");
                self.prover.session.log(&name, log)?;
                if !self.control()? {
                    return Ok(Found::Interrupted);
                }
                told = self.tell(number)?;
            }
            match told {
                Alone::Failed(..) => return Ok(Found::Shown(id.clone())),
                // Also where it has failed once before: that was not for want of the check.
                Alone::Passed(_) => passed.push(id.clone()),
                Alone::TimedOut => hung.push(id.clone()),
                Alone::Interrupted => return Ok(Found::Interrupted),
            }
        }
        Ok(if hung.is_empty() { Found::NotShown(passed) } else { Found::TimedOut(hung) })
    }

    /// Sees once that the story holds with all checks in place. Gives whether the run goes on.
    fn control(&mut self) -> anyhow::Result<bool> {
        if self.holds {
            return Ok(true);
        }
        match self.tell(runtime::NONE)? {
            Alone::Passed(_) => self.holds = true,
            Alone::Interrupted => return Ok(false),
            Alone::TimedOut => return Err(self.fails("does not end")),
            Alone::Failed(_, log) => {
                return Err(self.fails(&format!("fails\n{}", last_lines(&log))));
            }
        }
        Ok(true)
    }

    fn fails(&self, how: &str) -> anyhow::Error {
        let message = format!("with all checks in place {} {how}", self.story.name);
        Stop::new(Exit::BaselineFails, message).into()
    }

    /// Tells it once in each way, without a check, or with all of them, until it does not hold.
    fn tell(&self, number: u32) -> anyhow::Result<Alone> {
        let Asked { prover, binaries, story, .. } = self;
        prover.activate(number)?;
        let mut told = Alone::Interrupted;
        for Test { name, binary, .. } in &story.tests {
            let Some(suite) = Suite::alone(binary, name) else { continue };
            told = prover.session.runner.run_alone(binaries, &suite, name, prover.limit())?;
            if !matches!(told, Alone::Passed(_)) {
                break;
            }
        }
        Ok(told)
    }
}
