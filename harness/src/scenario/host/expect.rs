//! Looks whether an expectation of a story holds.

use std::path::Path;

use super::stage::{Serving, Stage, names_in};
use super::{Failure, Outcome};
use crate::guard::ChildGuard;
use crate::processes::process;
use crate::scenario::story::{Expected, State};
use crate::scenario::telling::{expect_names, state_of, word};
use crate::tree::Tree;

impl Stage<'_> {
    /// Fails, with what is true instead, unless it holds.
    pub(super) fn look_whether(&mut self, expected: &Expected) -> Outcome<()> {
        match expected {
            Expected::Claim { server, is, because } => {
                self.expect_claim(server, *is, because.as_deref())
            }
            Expected::Works(who) => match self.servers.contains_key(who) {
                true => self.server_works(who),
                false => self.running(who)?.uses(who),
            },
            Expected::Lives(who) => match self.pid_of(who) {
                Some(pid) => lives(who, pid),
                None => self.running(who)?.lives(who),
            },
            Expected::Ended(who) => match self.pid_of(who) {
                Some(pid) if process(pid)?.is_none_or(|info| !info.lives()) => Ok(()),
                Some(_) => Err(Failure::new("ended", format!("`{who}` runs"))),
                None if self.commands.contains_key(who) => self.running(who)?.gone(),
                None => Ok(()),
            },
            Expected::Untouched(name) => {
                let before = &self.precious[name].1;
                match Tree::read(&self.precious_path(name)?)? == *before {
                    true => Ok(()),
                    false => Err(Failure::new("S2", format!("`{name}` is not what it was"))),
                }
            }
            Expected::There { place, because } => {
                let path = self.resolve(place)?;
                match path.symlink_metadata() {
                    Ok(_) => self.expect_told(&path, because.as_deref()),
                    Err(error) => {
                        Err(Failure::new("there", format!("{}: {error}", path.display())))
                    }
                }
            }
            Expected::NotThere(place) => {
                let path = self.resolve(place)?;
                match path.symlink_metadata() {
                    Ok(_) => Err(Failure::new("there", format!("{} is there", path.display()))),
                    Err(_) => Ok(()),
                }
            }
            Expected::Told(words) => self.heard.expect_told(words),
            Expected::NotTold(words) => self.heard.expect_not_told(words),
            Expected::Foreign(count) => self.heard.expect_foreign(*count),
            Expected::Lock { file, holder } => self.expect_lock(file, holder.as_deref()),
            Expected::Content { file, is } => self.expect_content(file, is),
            Expected::Listens(server) => self.expect_listeners(server, true),
            Expected::NotListens(server) => self.expect_listeners(server, false),
            Expected::Names { count, on, within } => {
                let names = match (on, within) {
                    (Some(disk), _) => names_in(&self.disk(disk)?),
                    (None, Some(place)) => names_in(&self.resolve(place)?),
                    (None, None) => self.names(),
                };
                expect_names(&names, *count)
            }
        }
    }

    /// The pid of a server or a stranger that nobody has reaped.
    fn pid_of(&self, who: &str) -> Option<i32> {
        let stranger = || self.strangers.get(who).map(ChildGuard::pid);
        self.servers.get(who).map(Serving::pid).or_else(stranger)
    }

    fn expect_claim(&self, server: &str, is: State, because: Option<&str>) -> Outcome<()> {
        let claim = self.claim(server)?;
        let path = self.path_of(claim);
        let name = path.as_ref().and_then(|path| path.file_name()?.to_str());
        let found = state_of(name);
        if found != is {
            let title = format!("the claim of `{server}` is {}", word(found));
            return Err(self.with_reports(Failure::new("claim", title)));
        }
        if is == State::Kept {
            self.check_whole(server, claim)?;
        }
        let Some(because) = because else { return Ok(()) };
        self.heard.expect_reason(server, because, |name| {
            name.contains(&claim.random) && !self.is_planted(&self.root.join(name))
        })
    }

    /// Fails unless the last sweep gave this reason about a name in the root.
    fn expect_told(&self, path: &Path, because: Option<&str>) -> Outcome<()> {
        let Some(because) = because else { return Ok(()) };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.heard.expect_because(&name, because)
    }
}

fn lives(who: &str, pid: i32) -> Outcome<()> {
    match process(pid)?.is_some_and(|info| info.lives()) {
        true => Ok(()),
        false => Err(Failure::new("lives", format!("`{who}` has ended"))),
    }
}
