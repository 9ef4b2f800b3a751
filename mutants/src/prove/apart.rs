//! The checks that no switch can express: each in a build of its own, one after the other.

use std::collections::BTreeSet;
use std::time::Instant;

use super::Prover;
use crate::builder::TestBinaries;
use crate::catalogue::Removal;
use crate::report::{Outcome, Verdict};
use crate::run::{Alone, patience};
use crate::targets::Targets;

impl Prover<'_> {
    /// Sees that the tests that are to prove something in builds of their own pass with all checks in
    /// place.
    pub(super) fn control(
        &mut self,
        apart: &[&Removal],
        binaries: &TestBinaries,
    ) -> anyhow::Result<()> {
        let (runner, mut hurried) = (self.session.setting.runner(), BTreeSet::new());
        let (common, limit) = (self.common(binaries), self.session.options.shared.timeout);
        for removal in apart {
            if let Some((named, suite)) = common.named(&removal.check.id)
                && let Alone::Passed(usual) =
                    runner.run_alone(binaries, &suite, &named.test, limit)?
            {
                // Once more in a hurry, as it will be in the other build.
                runner.patience.set(Some(patience(usual)));
                let again = runner.run_alone(binaries, &suite, &named.test, limit);
                runner.patience.set(None);
                if matches!(again?, Alone::Passed(_)) {
                    hurried.insert(named.clone());
                }
                common.controlled.insert(named, usual);
            }
        }
        self.hurried.extend(hurried);
        Ok(())
    }

    /// Proves a check in a build of its own.
    pub(super) fn apart<'r>(&mut self, removal: &'r Removal) -> anyhow::Result<Outcome<'r>> {
        let begun = Instant::now();
        let verdict = match self.apart_by_name(removal)? {
            Some(verdict) => verdict,
            None => self.apart_by_search(removal)?,
        };
        let outcome = Outcome { removal, verdict, took: begun.elapsed() };
        self.session.tell(&outcome)?;
        Ok(outcome)
    }

    /// By the test that noticed the last time; nothing if it does not.
    fn apart_by_name(&self, removal: &Removal) -> anyhow::Result<Option<Verdict>> {
        let id = &removal.check.id;
        let named = self.killed_by.get(id).filter(|named| self.controlled.usual(named).is_some());
        let Some(named) = named else { return Ok(None) };
        let mut targets = Targets::default();
        let workspace = self.session.builder.workspace;
        let alone = targets.add(workspace, &named.package, &named.binary);
        let only = alone.then_some(&targets);
        let verdict = self.session.without(removal, only, |binaries| {
            let Some((named, suite)) = self.common(binaries).named(id) else { return Ok(None) };
            let (runner, limit) =
                (self.session.setting.runner(), self.session.options.shared.timeout);
            self.session.progress.doing(format_args!("{id}: {}", named.test));
            let usual = self.controlled.usual(&named).filter(|_| self.hurried.contains(&named));
            runner.patience.set(usual.map(patience));
            let alone = || runner.run_alone(binaries, &suite, &named.test, limit);
            Ok(match (alone()?, alone()?) {
                (Alone::Failed(killer, log), Alone::Failed(..)) => {
                    self.session.scratch.log(id, &log)?;
                    Some(Verdict::Proved(killer))
                }
                (Alone::Interrupted, _) | (_, Alone::Interrupted) => Some(Verdict::Interrupted),
                _ => None,
            })
        })?;
        Ok(verdict.unwrap_or_else(Some))
    }

    /// By all suites, which are run unchanged before.
    fn apart_by_search(&mut self, removal: &Removal) -> anyhow::Result<Verdict> {
        if self.timed.is_none() {
            self.timed = self.session.baseline()?;
        }
        let Some(timed) = &self.timed else { return Ok(Verdict::Interrupted) };
        let id = &removal.check.id;
        let found = self
            .session
            .without(removal, None, |binaries| self.session.search(id, binaries, timed))?;
        Ok(found.unwrap_or_else(|verdict| verdict))
    }
}
