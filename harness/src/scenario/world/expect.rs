//! What must be true: after each step, where a story says so, and at the end.

use mortmain::sys::Pid;

use super::ledger::names_at;
use super::stage::{Stage, refused};
use crate::scenario::story::{Expected, State};
use crate::scenario::telling::{
    Counts, Failure, Judged, Outcome, check_escapes, check_left, expect_names, state_of, word,
};
use crate::world::World;

impl Stage<'_> {
    /// What must be true after every step.
    pub(super) fn check_all(&self) -> Outcome<()> {
        self.ledger.check(&self.machine.world).map_err(|failure| self.heard.with(failure))?;
        self.precious.keys().try_for_each(|name| self.check_untouched(name))
    }

    fn check_untouched(&self, name: &str) -> Outcome<()> {
        let now = self.machine.world.things_at(&self.precious_path(name)?);
        if now.as_ref() == Ok(&self.precious[name]) {
            return Ok(());
        }
        let title = format!("the precious directory `{name}` is not what it was");
        Err(self.heard.with(Failure::new("S2", title)))
    }

    /// Notes which commands live and have lost their claim.
    pub(super) fn find_escapes(&mut self) {
        for (name, running) in &self.commands {
            let described = self.story.command(name);
            let world = &self.machine.world;
            let lost = |claim| self.ledger.check_whole(world, &described.by, claim).is_err();
            if described.escapes.is_some()
                && world.lives(running.pid)
                && self.ledger.claims.get(&described.by).is_some_and(lost)
            {
                self.escaped.insert(name.clone());
            }
        }
    }

    /// Fails, with what is true instead, unless it holds.
    pub(super) fn look_whether(&mut self, expected: &Expected) -> Outcome<()> {
        match expected {
            Expected::Claim { server, is, because } => {
                self.expect_claim(server, *is, because.as_deref())
            }
            Expected::Works(who) => match self.servers.contains_key(who) {
                true => self.server_works(who),
                false => self.command_works(who),
            },
            Expected::Lives(who) => match self.somebody(who) {
                Some(pid) if self.machine.world.lives(pid) => Ok(()),
                Some(_) => Err(Failure::new("lives", format!("`{who}` has ended"))),
                None => self.lives(who).map(drop),
            },
            Expected::Ended(who) => match self.somebody(who) {
                Some(pid) => self.has_ended(who, pid),
                None if self.commands.contains_key(who) => {
                    let pid = self.running(who)?.pid;
                    self.has_ended(who, pid)
                }
                None => Ok(()),
            },
            Expected::Untouched(name) => self.check_untouched(name),
            Expected::There { place, because } => {
                let path = self.resolve(place)?;
                if let Err(errno) = self.machine.world.stands_at(&path) {
                    return Err(Failure::new("there", format!("{path}: {errno}")));
                }
                let Some(because) = because else { return Ok(()) };
                let name = path.0.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
                self.heard.expect_because(&String::from_utf8_lossy(name), because)
            }
            Expected::NotThere(place) => {
                let path = self.resolve(place)?;
                match self.machine.world.stands_at(&path) {
                    Ok(_) => Err(Failure::new("there", format!("{path} is there"))),
                    Err(_) => Ok(()),
                }
            }
            Expected::Told(words) => self.heard.expect_told(words),
            Expected::NotTold(words) => self.heard.expect_not_told(words),
            Expected::Foreign(count) => self.heard.expect_foreign(*count),
            Expected::Lock { file, holder } => self.expect_lock(file, holder.as_deref()),
            Expected::Content { file, is } => self.expect_content(file, is),
            Expected::Names { count, on: None, within } => {
                let dir = match within {
                    Some(place) => self.resolve(place)?,
                    None => World::root_path(),
                };
                let names = names_at(&self.machine.world, &dir);
                expect_names(&names, *count)
            }
            Expected::Names { on: Some(_), .. }
            | Expected::Listens(_)
            | Expected::NotListens(_) => unreachable!("the world has nothing for {expected:?}"),
        }
    }

    /// The process of a server or a stranger that was not ended and reaped.
    fn somebody(&self, who: &str) -> Option<Pid> {
        let stranger = || self.strangers.get(who).copied();
        self.servers.get(who).map(|serving| serving.pid).or_else(stranger)
    }

    fn has_ended(&self, who: &str, pid: Pid) -> Outcome<()> {
        match self.machine.world.lives(pid) {
            true => Err(Failure::new("ended", format!("`{who}` runs"))),
            false => Ok(()),
        }
    }

    fn expect_claim(&self, server: &str, is: State, because: Option<&str>) -> Outcome<()> {
        let claim = self.ledger.claim(server)?;
        let path = self.path_of(claim);
        let name = path.as_ref().and_then(|path| path.0.rsplit(|byte| *byte == b'/').next());
        let found = state_of(name.map(String::from_utf8_lossy).as_deref());
        if found != is {
            let title = format!("the claim of `{server}` is {}", word(found));
            return Err(self.heard.with(Failure::new("claim", title)));
        }
        let world = &self.machine.world;
        if is == State::Kept {
            self.ledger.check_whole(world, server, claim)?;
        }
        let Some(because) = because else { return Ok(()) };
        self.heard.expect_reason(server, because, |name| self.ledger.is_own(world, claim, name))
    }

    /// Ends everybody, sweeps once, and looks at what is left.
    pub(super) fn end_everybody(&mut self) -> Outcome<Counts> {
        if !self.over {
            check_escapes(self.story, &self.heard, &self.escaped)?;
        }
        self.machine.kill_everybody();
        self.machine.world.end_mounts();
        self.ledger.users.clear();
        self.clean_sweeps()?;
        self.check_left()?;
        self.check_all()?;
        Ok(std::mem::take(&mut self.heard.counts))
    }

    /// Fails if anything is left but what the story declares.
    fn check_left(&self) -> Outcome<()> {
        let (world, root) = (&self.machine.world, World::root_path());
        let dir = world.stands_at(&root).map_err(refused)?;
        let left = world.all_in(dir).into_iter();
        let left =
            left.filter(|(name, _)| !self.ledger.is_planted(world, &root.join(name.bytes())));
        let left = left.map(|(name, _)| name.to_string()).collect();
        check_left(self.story, &self.heard, left, |server| {
            let claim = self.ledger.claim(server)?;
            let reasons = self.heard.reasons(|name| self.ledger.is_own(world, claim, name));
            Ok(Judged { random: &claim.random, reasons })
        })
    }
}
