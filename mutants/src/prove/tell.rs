//! The stories' part of `prove`: each has to fail for every rule that it says it protects.

use std::ops::ControlFlow;

use anyhow::Context as _;

use super::ask::Asker;
use super::{Prover, last_lines};
use crate::abreast::{Finish, abreast};
use crate::builder::TestBinaries;
use crate::catalogue::Removal;
use crate::exit::{Exit, Stop};
use crate::run::Alone;
use crate::runtime;
use crate::schema::{self, Schema};
use crate::stories::{self, Found, Outcome, Shown, Story, Test};
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
        let setting = &self.session.setting;
        let tell = binaries.iter().filter(|(binary, _)| binary.name == stories::BINARY);
        let tell = tell.map(|(id, binary)| (id.clone(), binary.clone())).collect();
        let Some(suites) = setting.runner().suites(&tell)? else { return Ok(false) };
        let all = stories::among(&suites, &self.session.scratch.tree())?;
        let stories = stories::select(all, wanted, &self.shown)?;
        let (common, shown, options) = (self.common(binaries), &self.shown, self.session.options);
        let mut failure = None;
        let finish = abreast(
            &stories,
            setting.jobs,
            || Ok(Asker::new(&common)),
            |asker, story| {
                if common.setting.interrupt.seen() {
                    return Ok(None);
                }
                let suite = |Test { name, binary, .. }: &'_ Test| Suite::alone(binary, name);
                let tellings = story.tests.iter().map(|test| Some((suite(test)?, &*test.name)));
                let tellings: Option<Vec<_>> = tellings.collect();
                let tellings = tellings.context("a story is a test that can prove something")?;
                let mut asked =
                    Asked { asker, shown, removals, schema, story, tellings, holds: false };
                Ok(Some(asked.rules(options.fail_fast)))
            },
            |answer| {
                let outcomes = match answer {
                    Ok(outcomes) => outcomes,
                    // A story that fails anyway has shown nothing.
                    Err(error) => {
                        failure.get_or_insert(error);
                        return Ok(ControlFlow::Continue(()));
                    }
                };
                let enough = options.fail_fast && !outcomes.iter().all(Outcome::is_shown);
                if options.shared.json {
                    outcomes.iter().try_for_each(stories::json)?;
                }
                told.extend(outcomes);
                Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            },
        )?;
        match failure {
            Some(error) => Err(error),
            None => Ok(finish == Finish::All && !setting.interrupt.seen()),
        }
    }
}

/// A story that is being asked.
struct Asked<'a> {
    asker: &'a Asker<'a>,
    /// What showed the rules of the stories the last time.
    shown: &'a Shown,
    removals: &'a [&'a Removal],
    schema: &'a Schema,
    story: &'a Story,
    /// Its tests, with their names.
    tellings: Vec<(Suite, &'a str)>,
    /// Whether it was seen to hold with all checks in place.
    holds: bool,
}

impl Asked<'_> {
    /// Asks about each rule, to the first that is not shown if that is to end it, and whether the
    /// story holds with all checks in place.
    fn rules(&mut self, fail_fast: bool) -> anyhow::Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        for rule in &self.story.rules {
            let found = self.rule(rule)?;
            let outcome = Outcome { story: self.story.name.clone(), rule: rule.clone(), found };
            let ends = outcome.found == Found::Interrupted || (fail_fast && !outcome.is_shown());
            outcomes.push(outcome);
            if ends {
                return Ok(outcomes);
            }
        }
        self.control()?;
        Ok(outcomes)
    }

    /// Tells the story without the checks of a rule, one at a time, until it fails; that which is
    /// remembered first. It has to fail, to hold with all checks in place, and to fail again.
    fn rule(&mut self, rule: &str) -> anyhow::Result<Found> {
        let (mut passed, mut hung) = (Vec::new(), Vec::new());
        let common = self.asker.common;
        let remembered = stories::remembered(self.shown, self.story, rule);
        let switched = (0..self.removals.len()).filter(|place| !self.schema.apart.contains(place));
        let mut places: Vec<usize> =
            switched.filter(|&place| self.removals[place].check.rule() == rule).collect();
        // A stable sort: the others stay in their order.
        places.sort_by_key(|&place| Some(&*self.removals[place].check.id) != remembered);
        for place in places {
            let id = &self.removals[place].check.id;
            common.progress.doing(format_args!("{}: without {id}", self.story.name));
            let number = schema::number(place);
            let mut told = self.tell(number)?;
            if let Alone::Failed(_, log) = &told {
                let name = format!("{} {id}", self.story.name).replace('/', "-");
                common.scratch.log(&name, log)?;
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
        let mut told = Alone::Interrupted;
        for (suite, name) in &self.tellings {
            told = self.asker.run(suite, name, number)?;
            if !matches!(told, Alone::Passed(_)) {
                break;
            }
        }
        Ok(told)
    }
}
