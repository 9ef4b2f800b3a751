//! Sweeps, the dead claims beside what is swept that show that they do something, and the end.

use std::path::PathBuf;

use mortmain::sys::Pid;

use super::ledger::{Claim, Home};
use super::machine::Parent;
use super::stage::{Stage, path_buf};
use crate::actor::wire::{Done, Order, SweepHow, Swept};
use crate::scenario::fields::Count;
use crate::scenario::story::{Disturbed, Sweeper};
use crate::scenario::telling::{Doing, Failure, Ordered, Outcome, PREFIX, prefixes};
use crate::world::World;

impl Stage<'_> {
    /// Lets them sweep, all at once.
    pub(super) fn sweep(
        &mut self,
        by: &[String],
        disturbed: Option<(Disturbed, Count)>,
        no_canary: bool,
    ) -> Outcome<()> {
        if !no_canary {
            self.plant_canaries(by)?;
        }
        let mut plain = disturbed.is_none() && by.len() == 1;
        let mut sweeping = Vec::new();
        for name in by {
            let described = self.story.sweeper(name);
            plain &= described.is_plain();
            let root = self.root_for(name)?;
            let order = self.sweep_order(&described, disturbed, root);
            let pid = match self.servers.get(name) {
                Some(serving) => serving.pid,
                None => {
                    let pid = self.start_actor(Parent::Starter)?;
                    self.surround(pid, &described.surroundings);
                    if let Some(more) = described.descriptors {
                        let more = self.number(more);
                        self.machine.world.limit_descriptors(pid, more);
                    }
                    pid
                }
            };
            sweeping.push((name, pid, order));
        }
        self.heard.begin();
        match &sweeping[..] {
            [(_, pid, order)] => self.order(*pid, order, disturbed)?,
            several => {
                let orders = several.iter().map(|(_, pid, order)| (*pid, order));
                self.order_all(orders, disturbed)?;
            }
        }
        let (of, mut happened) = (sweeping.len(), 0);
        for (name, pid, _) in sweeping {
            happened += usize::from(self.swept(name, pid)?);
        }
        self.over |= self.heard.is_over(disturbed, happened, of);
        if plain && !self.over {
            by.iter().try_for_each(|name| self.check_canaries(name))?;
        }
        Ok(())
    }

    /// Gives orders to several, who carry them out in an order of steps that the round draws. What is to
    /// happen happens to each, as in [`Stage::order`].
    pub(super) fn order_all<'o>(
        &mut self,
        orders: impl Iterator<Item = (Pid, &'o Order)> + Clone,
        disturbed: Option<(Disturbed, Count)>,
    ) -> Outcome<()> {
        for (pid, order) in orders.clone() {
            self.machine.tell(pid, &super::program::line(order))?;
        }
        if disturbed.is_some() {
            self.run()?;
            orders.into_iter().try_for_each(|(pid, _)| self.begins(pid, disturbed))?;
        }
        self.machine.draw_lots(self.round);
        let ran = self.run();
        self.machine.in_order();
        ran
    }

    fn sweep_order(
        &self,
        described: &Sweeper,
        disturbed: Option<(Disturbed, Count)>,
        root: PathBuf,
    ) -> Order {
        let claims = described.not_removed.iter();
        let claims = claims.filter_map(|server| self.ledger.claims.get(server));
        let how = SweepHow {
            dry_run: described.dry_run,
            subject: self.subject,
            cannot_tell: described.cannot_tell.clone(),
            not_removed: claims.map(Claim::name).collect(),
            disturbed: Stage::told_of(disturbed),
            ..SweepHow::default()
        };
        Order::Sweep { prefix: prefix_for(described), root, how }
    }

    /// What came of a sweep; answers whether it came to the call at which something was to happen.
    fn swept(&mut self, name: &str, pid: Pid) -> Outcome<bool> {
        let is_server = self.servers.contains_key(name);
        match self.hears(pid)? {
            Ordered::Done(Done::Swept(swept)) => {
                self.note_sweep(swept);
                if !is_server {
                    self.end_process(pid);
                }
                Ok(false)
            }
            Ordered::Stopped => {
                match is_server {
                    true => self.serving(name)?.stopped = Some(Doing::Sweeping),
                    false => drop(self.sweepers.insert(name.into(), pid)),
                }
                Ok(true)
            }
            Ordered::Killed => {
                self.servers.remove(name);
                self.machine.reap(pid);
                Ok(true)
            }
            // It could not even open the root, and says so: that is its right.
            Ordered::Failed { message, .. } if !is_server && message.contains("(EMFILE)") => {
                let report = vec![message.clone()];
                self.note_sweep(Swept { report, trouble: Some(message), ..Swept::default() });
                self.end_process(pid);
                Ok(false)
            }
            other => Err(other.unexpected()),
        }
    }

    /// Notes what a sweep said.
    pub(super) fn note_sweep(&mut self, swept: Swept) {
        let Stage { heard, ledger, .. } = self;
        heard.sweep(swept, |name| ledger.whose(name));
    }

    /// Lets an operator give his word for the claim of a server.
    pub(super) fn reclaim(&mut self, server: &str) -> Outcome<()> {
        let claim = self.ledger.claim(server)?;
        let path = self.path_of(claim);
        let path = path.ok_or_else(|| Failure::new("no-claim", "nothing is left of it"))?;
        let name = path_buf(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let order =
            Order::Reclaim { prefix: self.prefix_of(server), root: self.root_for(server)?, name };
        let operator = self.start_actor(Parent::Starter)?;
        match self.ask(operator, &order, |done| matches!(done, Done::Swept(_)))? {
            Done::Swept(swept) => self.heard.last = vec![swept],
            other => unreachable!("{other} was to be a report"),
        }
        self.end_process(operator);
        Ok(())
    }

    /// Makes dead claims beside those that are to be swept; the next plain sweep has to remove them.
    fn plant_canaries(&mut self, by: &[String]) -> Outcome<()> {
        let old = self.ledger.canaries.len();
        for name in by {
            let (prefix, home) = (prefix_for(&self.story.sweeper(name)), self.home_of(name));
            let new = &self.ledger.canaries[old..];
            // One is enough for all who have to remove it.
            if new.iter().any(|other| is_for(other, &prefix, &home)) {
                continue;
            }
            let root = self.root_for(name)?;
            let owner = self.start_actor(Parent::Starter)?;
            let order =
                Order::Create { prefix: prefix.clone(), root, tapped: false, disturbed: None };
            let good = |done: &Done| matches!(done, Done::Created { .. });
            let Done::Created { claim } = self.ask(owner, &order, good)? else {
                unreachable!("it was looked at");
            };
            self.end_process(owner);
            let name = claim.file_name().unwrap_or_default().to_string_lossy();
            let random = name.rsplit('-').next().unwrap_or_default().to_owned();
            let claim = Claim { prefix, random, inode: None, touched: true, home };
            self.ledger.canaries.push(claim);
        }
        Ok(())
    }

    /// Looks whether those have gone that this sweeper had to remove.
    fn check_canaries(&mut self, by: &str) -> Outcome<()> {
        let (prefix, home) = (prefix_for(&self.story.sweeper(by)), self.home_of(by));
        for canary in std::mem::take(&mut self.ledger.canaries) {
            if !is_for(&canary, &prefix, &home) {
                self.ledger.canaries.push(canary);
                continue;
            }
            if let Some(path) = self.path_of(&canary) {
                let title = "the sweep did not remove the canary, so what it kept says nothing";
                let failure = Failure::new("canary", title);
                return Err(self.heard.with(failure.note(format!("{path} is a dead claim"))));
            }
            self.heard.counts.canaries += 1;
        }
        Ok(())
    }

    /// A sweep of each prefix that nothing disturbs, each by a process of its own.
    pub(super) fn clean_sweeps(&mut self) -> Outcome<()> {
        self.heard.begin();
        for prefix in prefixes(self.story) {
            let sweeper = self.start_actor(Parent::Starter)?;
            let how = SweepHow { subject: self.subject, ..SweepHow::default() };
            let order = Order::Sweep { prefix, root: path_buf(World::root_path()), how };
            match self.ask(sweeper, &order, |done| matches!(done, Done::Swept(_)))? {
                Done::Swept(swept) => self.note_sweep(swept),
                other => unreachable!("{other} was to be a report"),
            }
            self.end_process(sweeper);
        }
        Ok(())
    }
}

/// The prefix of the claims that a sweeper looks at.
fn prefix_for(sweeper: &Sweeper) -> String {
    sweeper.prefix.clone().unwrap_or_else(|| PREFIX.into())
}

/// Whether sweeps of claims of this prefix there have to remove a canary.
fn is_for(canary: &Claim, prefix: &str, home: &Home) -> bool {
    canary.prefix == prefix && canary.home == *home
}
