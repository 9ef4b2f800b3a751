//! Sweeps, and the dead claims beside what is swept that show that they do something.

use std::path::PathBuf;

use super::act::hears;
use super::stage::{Canary, Claim, Stage};
use super::{Failure, Outcome};
use crate::actor::Actor as Process;
use crate::actor::wire::{Done, Order, SweepHow, Swept};
use crate::scenario::fields::Count;
use crate::scenario::story::{Disturbed, Sweeper};
use crate::scenario::telling::{CANARY, Doing, Ordered, whose};

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
            let own = match self.servers.get_mut(name) {
                Some(serving) => {
                    serving.process.order(order);
                    None
                }
                None => {
                    let mut process = self.start_sweeper(&described)?;
                    if let Some(more) = described.descriptors {
                        process.order(Order::LimitDescriptors { more: self.number(more) });
                        hears(&mut process, "a limit to be set")?;
                    }
                    process.order(order);
                    Some(process)
                }
            };
            sweeping.push((name.clone(), own));
        }
        self.heard.begin();
        let (of, mut happened) = (sweeping.len(), 0);
        for (name, own) in sweeping {
            happened += usize::from(self.swept(&name, own)?);
        }
        self.over |= self.heard.is_over(disturbed, happened, of);
        if plain && !self.over {
            by.iter().try_for_each(|name| self.check_canaries(name))?;
        }
        Ok(())
    }

    /// Lets an operator give his word for the claim of a server, as whoever that server was.
    pub(super) fn reclaim(&mut self, server: &str) -> Outcome<()> {
        let claim = self.claim(server)?;
        let path = self.path_of(claim);
        let path = path.ok_or_else(|| Failure::new("no-claim", "nothing is left of it"))?;
        let (prefix, root) = (claim.prefix.clone(), self.root_for(server)?);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut operator = self.start_actor(self.story.server(server).plain_user);
        operator.order(Order::Reclaim { prefix, root, name });
        match hears(&mut operator, "a claim to be reclaimed")? {
            Ordered::Done(Done::Swept(swept)) => {
                self.heard.last = vec![swept];
                Ok(())
            }
            other => Err(other.unexpected()),
        }
    }

    /// Waits for the end of a sweep, or for what was to happen in it; answers whether that happened.
    fn swept(&mut self, name: &str, own: Option<Process>) -> Outcome<bool> {
        const WHAT: &str = "a sweep to end";
        let (ordered, own) = match own {
            Some(mut process) => (hears(&mut process, WHAT)?, Some(process)),
            None => (hears(&mut self.serving(name)?.process, WHAT)?, None),
        };
        match ordered {
            Ordered::Done(Done::Swept(swept)) => {
                self.note_sweep(swept);
                Ok(false)
            }
            Ordered::Stopped => {
                match own {
                    Some(process) => drop(self.sweepers.insert(name.into(), process)),
                    None => self.serving(name)?.stopped = Some(Doing::Sweeping),
                }
                Ok(true)
            }
            Ordered::Killed => {
                match own {
                    Some(mut process) => process.kill(),
                    None => self.reap(name)?,
                }
                Ok(true)
            }
            // It could not even open the root, and says so: that is its right.
            Ordered::Failed { message, .. } if own.is_some() && message.contains("(EMFILE)") => {
                let report = vec![message.clone()];
                self.note_sweep(Swept { report, trouble: Some(message), ..Swept::default() });
                Ok(false)
            }
            other => Err(other.unexpected()),
        }
    }

    /// Notes what a sweep said.
    pub(super) fn note_sweep(&mut self, swept: Swept) {
        let random = |claim: &Claim| claim.random.clone();
        let servers = self.claims.iter().map(|(name, claim)| (random(claim), name.clone()));
        let canaries = self.canaries.iter();
        let canaries = canaries.map(|canary| (random(&canary.claim), CANARY.to_owned()));
        let known: Vec<(String, String)> = servers.chain(canaries).collect();
        self.heard.sweep(swept, |name| whose(&known, name));
    }

    /// Makes dead claims beside those that are to be swept; the next plain sweep has to remove them.
    fn plant_canaries(&mut self, by: &[String]) -> Outcome<()> {
        let old = self.canaries.len();
        for name in by {
            let described = self.story.sweeper(name);
            let (prefix, home) = (self.prefix_for(&described), self.home_of(name));
            let plain_user = described.plain_user;
            // One is enough for all who have to remove it.
            if self.canaries[old..].iter().any(|other| other.is_for(&prefix, &home, plain_user)) {
                continue;
            }
            let mut owner = self.start_actor(plain_user);
            let root = self.root_for(name)?;
            let claim = owner.create(&prefix, &root);
            owner.kill();
            let name = claim.file_name().unwrap_or_default().to_string_lossy();
            let random = name.rsplit('-').next().unwrap_or_default().to_owned();
            let claim = Claim { prefix, random, inode: None, touched: true, home };
            self.canaries.push(Canary { claim, plain_user });
        }
        Ok(())
    }

    /// Looks whether those have gone that this sweeper had to remove.
    fn check_canaries(&mut self, by: &str) -> Outcome<()> {
        let described = self.story.sweeper(by);
        let (prefix, home) = (self.prefix_for(&described), self.home_of(by));
        for canary in std::mem::take(&mut self.canaries) {
            if !canary.is_for(&prefix, &home, described.plain_user) {
                self.canaries.push(canary);
                continue;
            }
            if let Some(path) = self.path_of(&canary.claim) {
                let title = "the sweep did not remove the canary, so what it kept says nothing";
                let failure = Failure::new("canary", title);
                let failure = failure.note(format!("{} is a dead claim", path.display()));
                return Err(self.with_reports(failure));
            }
            self.heard.counts.canaries += 1;
        }
        Ok(())
    }

    fn sweep_order(
        &self,
        described: &Sweeper,
        disturbed: Option<(Disturbed, Count)>,
        root: PathBuf,
    ) -> Order {
        let claims = described.not_removed.iter().filter_map(|server| self.claims.get(server));
        let how = SweepHow {
            dry_run: described.dry_run,
            subject: self.subject,
            cannot_tell: described.cannot_tell.clone(),
            not_removed: claims.map(|claim| format!("{}-{}", claim.prefix, claim.random)).collect(),
            disturbed: self.disturbance(disturbed),
            ..SweepHow::default()
        };
        Order::Sweep { prefix: self.prefix_for(described), root, how }
    }
}
