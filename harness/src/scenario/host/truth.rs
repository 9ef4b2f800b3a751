//! What must be true whatever happens: the judges of a story.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::stage::{Claim, Home, Stage, names_in};
use super::{Counts, Failure, Outcome};
use crate::actor::wire::{Done, Order, SweepHow, Swept, What};
use crate::mounts::unmount_below;
use crate::processes::processes;
use crate::scenario::story;
use crate::scenario::telling::{Judged, WITNESS, check_escapes, check_left, prefixes};
use crate::tree::Tree;
use crate::wait::{Deadline, Watch};

/// How long a SIGKILL may take on a machine that is busy with other things.
const KILL_PATIENCE_SECS: u64 = 20;

impl Stage<'_> {
    /// What must be true after every step.
    pub(super) fn check_all(&self) -> Outcome<()> {
        for (name, claim) in &self.claims {
            let users = self.users(name)?;
            if let Some(user) = users.first()
                && let Err(failure) = self.check_whole(name, claim)
            {
                let failure = failure.of("S1").note(format!("{user} lives and may use it"));
                return Err(self.with_reports(failure));
            }
        }
        self.check_crowds()?;
        for (name, (_, before)) in &self.precious {
            let now = Tree::read(&self.precious_path(name)?)?;
            if now != *before {
                let title = format!("the precious directory `{name}` is not what it was");
                let mut failure = Failure::new("S2", title);
                for (path, _) in before.beyond(&now).into_iter().chain(now.beyond(before)) {
                    failure = failure.note(format!("{} differs", path.display()));
                }
                return Err(self.with_reports(failure));
            }
        }
        Ok(())
    }

    /// Who may still use the claim of a server, in words.
    fn users(&self, server: &str) -> Outcome<Vec<String>> {
        let mut users = Vec::new();
        if self.servers.get(server).is_some_and(|serving| serving.uses) {
            users.push(format!("server `{server}`"));
        }
        for copy in self.copies.get(server).into_iter().flatten() {
            if !copy.is_gone()? {
                users.push(format!("a copy of server `{server}`"));
            }
        }
        for (name, running) in &self.commands {
            let escapes = self.story.command(name).escapes.is_some();
            if running.by == server && !escapes && !running.watch.is_gone()? {
                users.push(format!("command `{name}`"));
            }
        }
        for inner in self.claims.keys() {
            if self.home_of(inner) == Home::Within(server.to_owned()) {
                users.extend(self.users(inner)?);
            }
        }
        Ok(users)
    }

    /// Whether somebody may still use the claim that has this name, or had it.
    pub(super) fn is_used(&self, name: &str) -> bool {
        let mut claims = self.claims.iter().filter(|(_, claim)| name.contains(&claim.random));
        // What cannot be told counts as nobody: this is for figures, and judges nothing.
        claims.any(|(server, _)| self.users(server).is_ok_and(|users| !users.is_empty()))
    }

    /// Notes which commands live and have lost their claim.
    pub(super) fn find_escapes(&mut self) -> Outcome<()> {
        for (name, running) in &self.commands {
            let lost = |claim| self.check_whole(&running.by, claim).is_err();
            if self.story.command(name).escapes.is_some()
                && !running.watch.is_gone()?
                && self.claims.get(&running.by).is_some_and(lost)
            {
                self.escaped.insert(name.clone());
            }
        }
        Ok(())
    }

    /// Fails unless the claim is at its place, the directory that it was, and whole.
    pub(super) fn check_whole(&self, server: &str, claim: &Claim) -> Outcome<()> {
        let Some(root) = self.root_of(&claim.home) else {
            let title = format!("the claim is gone in which that of `{server}` lies");
            return Err(Failure::new("not-kept", title));
        };
        let path = root.join(format!("{}-{}", claim.prefix, claim.random));
        if self.mounts.contains(&path) {
            // What is mounted on it hides it, until that ends.
            return Ok(());
        }
        let now = match fs::symlink_metadata(&path) {
            Ok(metadata) => Some(metadata.ino()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        if now.is_none() || now != claim.inode {
            let title = format!("the claim of `{server}` is not at its place any more");
            let names = names_in(&root).join(", ");
            return Err(Failure::new("not-kept", title).note(format!("in the root: {names}")));
        }
        let (name, text) = WITNESS;
        let witness = path.join("files").join(name);
        let hidden = self.mounts.iter().any(|at| witness.starts_with(at));
        if claim.touched || hidden {
            return Ok(());
        }
        match read_unseen(&witness) {
            Ok(content) if content == text.as_bytes() => Ok(()),
            // The story took the permission to look, from a teller who is not root.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            _ => {
                let title = format!("a file in the claim of `{server}` is gone or changed");
                Err(Failure::new("not-kept", title).note(witness.display().to_string()))
            }
        }
    }

    /// Adds what the last sweeps, or the last error, said about it.
    pub(super) fn with_reports(&self, failure: Failure) -> Failure {
        self.heard.with(failure)
    }

    /// Ends everybody, sweeps once, and looks at what is left.
    pub(super) fn end_everybody(&mut self) -> Outcome<Counts> {
        if !self.over {
            check_escapes(self.story, &self.heard, &self.escaped)?;
        }
        self.servers.clear();
        self.dead.clear();
        self.sweepers.clear();
        self.commands.clear();
        self.elsewhere.clear();
        self.locks.clear();
        self.crowds.clear();
        self.copies.clear();
        self.strangers.clear();
        self.held.clear();
        self.containers.clear();
        kill_everybody()?;
        self.mounts.clear();
        // What a mount lies in may have another name by now.
        self.roots().iter().try_for_each(|root| unmount_below(root))?;
        let plain = self.story.actors.values().any(|actor| match actor {
            story::Actor::Server(server) => server.plain_user,
            _ => false,
        });
        self.heard.begin();
        let users = [false, true].into_iter().take(1 + usize::from(plain));
        for (root, plain_user) in
            self.roots().iter().flat_map(|root| users.clone().map(move |user| (root, user)))
        {
            for prefix in prefixes(self.story) {
                let swept = self.clean_sweep(prefix, root, plain_user)?;
                self.note_sweep(swept);
            }
        }
        self.check_left()?;
        self.check_all()?;
        self.unmount_disks()?;
        Ok(std::mem::take(&mut self.heard.counts))
    }

    /// A sweep that nothing disturbs, by a process of its own.
    pub(super) fn clean_sweep(
        &mut self,
        prefix: String,
        root: &Path,
        plain_user: bool,
    ) -> Outcome<Swept> {
        let mut actor = self.start_actor(plain_user);
        let how = SweepHow { subject: self.subject, ..SweepHow::default() };
        actor.order(Order::Sweep { prefix, root: root.to_owned(), how });
        match actor.hears("the end of the last sweep") {
            Ok(What::Done(Done::Swept(swept))) => Ok(swept),
            Ok(other) => Err(Failure::new("sweep", format!("asked to sweep, it said `{other}`"))),
            Err(error) => Err(Failure::new("L2", error.to_string())),
        }
    }

    /// Every directory in which a sweep may look for claims of the story.
    fn roots(&self) -> Vec<PathBuf> {
        let disks = self.disks.iter().map(|mounted| mounted.root.clone());
        [self.root.clone()].into_iter().chain(disks).collect()
    }

    /// Fails if anything is left but what the story declares.
    fn check_left(&self) -> Outcome<()> {
        let roots = self.roots();
        let paths =
            roots.iter().flat_map(|root| names_in(root).into_iter().map(|name| root.join(name)));
        let left = paths.filter(|path| !self.is_planted(path));
        let left = left.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        check_left(self.story, &self.heard, left.collect(), |server| {
            let claim = self.claim(server)?;
            Ok(Judged { random: &claim.random, reasons: self.reasons(claim) })
        })
    }

    /// The codes of the reasons that the last sweeps gave about a claim.
    pub(super) fn reasons(&self, claim: &Claim) -> Vec<&str> {
        self.heard
            .reasons(|name| name.contains(&claim.random) && !self.is_planted(&self.root.join(name)))
    }
}

/// Kills everybody in the cell but its first process and this one.
///
/// Whoever is forked meanwhile is found in the next round; there is one after which nobody is left,
/// since nobody who is killed forks.
fn kill_everybody() -> Outcome<()> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let deadline = Deadline::secs(KILL_PATIENCE_SECS);
    loop {
        let others = processes()?.into_iter().filter(|info| info.pid > 1 && info.pid != own);
        let mut found = false;
        for info in others.filter(crate::processes::ProcInfo::lives) {
            if let Some(watch) = Watch::open(info.pid)? {
                found = true;
                watch.kill()?;
                watch.gone(deadline).map_err(|e| Failure::new("waited", e.to_string()))?;
            }
        }
        if !found {
            return Ok(());
        }
    }
}

/// Reads a file, and leaves no time of access: to who goes by that, nobody was there.
fn read_unseen(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = fs::File::options().read(true).custom_flags(nix::libc::O_NOATIME).open(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The inode of a directory.
pub(super) fn inode(path: &Path) -> Outcome<u64> {
    Ok(fs::symlink_metadata(path)?.ino())
}
