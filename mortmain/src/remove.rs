//! Removal, once the verdict is in (r1–r5, h2–h6).
//!
//! Whoever comes here holds the lease. A walk looks before anything is
//! touched; then the claim gets a tombstone's name, so that no user finds it
//! half-removed; then everything goes in an order of which every prefix can be
//! judged again: what is the user's, the registry, the owner's record, the
//! directory. A removal that is killed is finished by any later sweep.

use alloc::vec::Vec;

use crate::claim::{COMMANDS, OWNER, RELEASED};
use crate::evidence::{Hindrance, Obstacle};
use crate::grammar::{Place, Random, is_given, random_of};
use crate::life;
use crate::probe::{self, CONDEMNED_MODE};
use crate::record::{OwnerRecord, decode_owner};
use crate::root::{Root, open_own, still_named};
use crate::sys::{Answer, Errno, Fd, Handle, Identity, Kernel, Name, PathBytes, Stat};
use crate::verdict::Proof;
use crate::walk::{Again, Enter, Visitor, Walk};

/// Claims inside that are asked after at once: each process is told all of them.
const INSIDE_MAX: usize = 4096;

/// A claim whose verdict is to remove it, under a lease that we hold.
#[derive(Debug)]
pub struct Condemned<'s, K: Kernel> {
    root: &'s Root<K>,
    me: &'s Identity,
    name: &'s Name,
    random: Random,
    place: Place,
    dir: &'s Fd<K>,
    stat: Stat,
}

/// What became of a removal.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Removal {
    /// It is gone.
    Removed,
    /// Nothing was touched, because of this.
    Kept(Obstacle),
    /// Some of it is gone; these stood in the way of the rest.
    Partial(Vec<Obstacle>),
}

/// Who removes. [`Removes`] is the real one; a test can put its own in its
/// place, or around it.
pub trait Remover<K: Kernel> {
    /// Removes a claim.
    fn remove(&mut self, claim: &Condemned<'_, K>) -> Removal;
}

/// The real remover.
#[derive(Clone, Copy, Debug, Default)]
pub struct Removes;

impl<K: Kernel> Remover<K> for Removes {
    fn remove(&mut self, claim: &Condemned<'_, K>) -> Removal {
        claim.look_and_demolish()
    }
}

impl<'s, K: Kernel> Condemned<'s, K> {
    pub(crate) fn new(
        root: &'s Root<K>,
        me: &'s Identity,
        name: &'s Name,
        random: Random,
        place: Place,
        dir: &'s Fd<K>,
        stat: Stat,
    ) -> Condemned<'s, K> {
        Condemned { root, me, name, random, place, dir, stat }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.name
    }

    /// The whole of a removal.
    pub(crate) fn look_and_demolish(&self) -> Removal {
        // CHECK(r1-look-first): met in the middle of a removal, a mount leaves half a claim.
        if let Some(obstacle) = self.look(true) {
            return Removal::Kept(obstacle);
        }
        match self.entomb() {
            Ok(name) => self.demolish(&name),
            Err(obstacle) => Removal::Kept(obstacle),
        }
    }

    /// Looks for what forbids its removal, without touching anything; `unseal`
    /// lets it give its own directories their mode back where it cannot look
    /// otherwise.
    pub(crate) fn look(&self, unseal: bool) -> Option<Obstacle> {
        look(self.dir, self.me, unseal)
    }

    /// Takes the claim out of its users' sight; answers the name it has then.
    fn entomb(&self) -> Result<Name, Obstacle> {
        let failed = |what, errno| here(Hindrance::Call { what, errno });
        if self.stat.mode & 0o700 != 0o700 {
            let restored = self.dir.chmod(0o700);
            restored.map_err(|errno| failed("restoring the mode of", errno))?;
        }
        // No user looks at these.
        if self.place != Place::Published {
            return Ok(self.name.clone());
        }
        let fresh = Random::fresh(self.root.kernel())
            .map_err(|errno| failed("naming a tombstone for", errno))?;
        let tombstone = self.root.prefix().tombstone(&self.random, &fresh);
        match self.root.fd().rename(self.name, &tombstone) {
            Ok(()) => self.entombed(tombstone),
            // CHECK(r1-in-place): a full directory, an image's layer or a sticky root would keep
            // the claim for ever.
            Err(Errno::ENOSPC | Errno::EDQUOT | Errno::EXDEV | Errno::EPERM | Errno::EINVAL) => {
                self.release_in_place()
            }
            Err(errno) => Err(failed("renaming", errno)),
        }
    }

    /// Marks a published claim, so that whatever is missing from it is progress.
    fn release_in_place(&self) -> Result<Name, Obstacle> {
        // CHECK(r1-release-in-place): half-removed under its published name, it would be damage.
        match self.dir.rename(&Name::fixed(OWNER), &Name::fixed(RELEASED)) {
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(errno) => return Err(here(Hindrance::Call { what: "releasing", errno })),
        }
        // CHECK(r1-condemn-in-place): once the record is gone, too, only this tells what is left
        // from somebody's empty directory.
        match self.dir.chmod(CONDEMNED_MODE) {
            Ok(()) => Ok(self.name.clone()),
            Err(errno) => Err(here(Hindrance::Call { what: "condemning", errno })),
        }
    }

    /// Makes sure that it was ours that was renamed, and puts it back if not.
    pub(crate) fn entombed(&self, tombstone: Name) -> Result<Name, Obstacle> {
        match still_named(self.root.fd(), &tombstone, self.dir) {
            Ok(Some(_)) => Ok(tombstone),
            Err(errno) => Err(here(Hindrance::Call { what: "looking at", errno })),
            // CHECK(r1-renamed-ours): the rename goes by name, which may stand for a live claim
            // since the last look.
            Ok(None) => {
                if self.root.fd().stat_at(self.name) == Err(Errno::ENOENT) {
                    let _ = self.root.fd().rename(&tombstone, self.name);
                }
                Err(here(Hindrance::NameChanged))
            }
        }
    }

    /// Removes everything, in an order that can be judged at every step.
    fn demolish(&self, name: &Name) -> Removal {
        // CHECK(r1-control-parts-last): without them, what is left could not be judged.
        let controls = [OWNER, RELEASED, COMMANDS];
        if let Some(partial) = self.clear(&controls) {
            return partial;
        }
        if let Err(errno) = self.withdraw_identities() {
            return partial("removing the registry of", errno);
        }
        if let Some(partial) = self.clear(&[OWNER, RELEASED]) {
            return partial;
        }
        for record in [OWNER, RELEASED] {
            match self.dir.unlink(&Name::fixed(record)) {
                Ok(()) | Err(Errno::ENOENT) => {}
                // A directory is in its place (l7), which goes like anything else.
                Err(Errno::EISDIR) => {
                    if let Some(partial) = self.clear(&[]) {
                        return partial;
                    }
                }
                Err(errno) => return partial("removing the record of", errno),
            }
        }
        self.remove_dir(name)
    }

    /// Removes what never was a claim: nothing in it is a control part.
    pub(crate) fn demolish_unclaimed(&self) -> Removal {
        if let Some(obstacle) = self.look(true) {
            return Removal::Kept(obstacle);
        }
        self.clear(&[]).unwrap_or_else(|| self.remove_dir(self.name))
    }

    /// Removes a stray under the name that it was given (l8).
    pub(crate) fn demolish_stray(&self, tombstone: &Name) -> Removal {
        if self.stat.mode & 0o700 != 0o700
            && let Err(errno) = self.dir.chmod(0o700)
        {
            return partial("restoring the mode of", errno);
        }
        self.clear(&[]).unwrap_or_else(|| self.remove_dir(tombstone))
    }

    /// Removes everything in the claim but what `skip` names; answers what
    /// stayed.
    fn clear(&self, skip: &[&str]) -> Option<Removal> {
        let told = empty(self.dir, self.me, skip);
        (!told.is_empty()).then_some(Removal::Partial(told))
    }

    /// Removes the directory itself, which is empty.
    fn remove_dir(&self, name: &Name) -> Removal {
        match still_named(self.root.fd(), name, self.dir) {
            Ok(Some(_)) => {}
            // CHECK(r1-rmdir-ours): the name may stand for somebody else's empty directory now.
            Ok(None) => return Removal::Partial(alloc::vec![here(Hindrance::NameChanged)]),
            Err(errno) => return partial("looking at", errno),
        }
        match self.root.fd().rmdir(name) {
            Ok(()) | Err(Errno::ENOENT) => Removal::Removed,
            Err(errno) => partial("removing", errno),
        }
    }

    /// Removes the identities of all commands, before any lock file.
    fn withdraw_identities(&self) -> Answer<()> {
        let registry = match open_own(self.dir, &Name::fixed(COMMANDS)) {
            // It is gone, or something else is in its place (l7), which goes like anything else.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => return Ok(()),
            answer => answer?,
        };
        let mut restart = true;
        loop {
            let batch = registry.read_dir(restart)?;
            restart = false;
            if batch.is_empty() {
                return Ok(());
            }
            for entry in batch.iter().filter(|entry| entry.name.bytes().ends_with(b".id")) {
                // CHECK(r1-id-first): killed in between, an identity alone could never be judged.
                match registry.unlink(&entry.name) {
                    Ok(()) | Err(Errno::ENOENT) => {}
                    Err(errno) => return Err(errno),
                }
            }
        }
    }
}

/// The look at a stray (l8), which has no registry that was asked before.
pub(crate) fn look_at_stray<K: Kernel>(
    me: &Identity,
    dir: &Fd<K>,
    unseal: bool,
) -> Option<Obstacle> {
    // CHECK(l8-other-name): a claim that was renamed or copied has a record, and with it users
    // whom a sweep would ask about.
    match has_record(dir) {
        Ok(true) => return Some(here(Hindrance::Claim)),
        Ok(false) => {}
        Err(unclear) => return Some(here(unclear)),
    }
    let mut look = Look { me, top: None, unseal, inside: Vec::new() };
    Walk::run(dir, &[], &mut look).stopped_by
}

/// Empties a directory whose lock we hold, by the rules of a removal. Answers what
/// stood in the way.
pub(crate) fn wipe<K: Kernel>(dir: &Fd<K>, me: &Identity) -> Result<(), Obstacle> {
    match look(dir, me, true).or_else(|| empty(dir, me, &[]).into_iter().next()) {
        Some(obstacle) => Err(obstacle),
        None => Ok(()),
    }
}

/// Looks for what forbids that a directory is emptied, without touching anything.
fn look<K: Kernel>(dir: &Fd<K>, me: &Identity, unseal: bool) -> Option<Obstacle> {
    let mut look = Look { me, top: Some(dir.raw()), unseal, inside: Vec::new() };
    let stopped_by = Walk::run(dir, &[], &mut look).stopped_by;
    stopped_by.or_else(|| used_inside(dir.kernel(), me, &look.inside))
}

/// Asks who is seen to use the claims inside, by whatever names they have (l4).
fn used_inside<K: Kernel>(
    kernel: &K,
    me: &Identity,
    inside: &[(Name, Random)],
) -> Option<Obstacle> {
    let claims: Vec<(&Name, Random)> =
        inside.iter().map(|(name, random)| (name, *random)).collect();
    for claims in claims.chunks(INSIDE_MAX) {
        let scan = life::scan(kernel, me, claims, None);
        let used = scan.findings.iter().zip(claims).find(|(one, _)| one.proof != Proof::Gone);
        // CHECK(h5-life-inside): a command of a nested claim may have closed what its registry
        // knows, work elsewhere, and carry that claim's cookie alone.
        if let Some((_, (name, _))) = used {
            return Some(Obstacle { path: PathBytes::from(name.bytes()), what: Hindrance::InUse });
        }
    }
    None
}

/// Removes everything in a directory but what `skip` names; answers what stayed.
fn empty<K: Kernel>(dir: &Fd<K>, me: &Identity, skip: &[&str]) -> Vec<Obstacle> {
    Walk::run(dir, skip, &mut Empty { me }).told
}

pub(crate) fn here(what: Hindrance) -> Obstacle {
    Obstacle { path: PathBytes::default(), what }
}

fn partial(what: &'static str, errno: Errno) -> Removal {
    Removal::Partial(alloc::vec![here(Hindrance::Call { what, errno })])
}

/// Refuses directories that are not the claim's own.
fn own(uid: u32, stat: &Stat) -> Result<(), Hindrance> {
    // CHECK(h4-own-directories): root would clean what its owner's neighbour could not.
    if stat.uid != uid {
        return Err(Hindrance::Foreign { uid: stat.uid });
    }
    Ok(())
}

/// Refuses directories that somebody has locked: a claim inside this one, or
/// another tool's.
fn unlocked<K: Kernel>(dir: &Fd<K>) -> Result<(), Hindrance> {
    match dir.lock() {
        Ok(()) => {
            let _ = dir.unlock();
            Ok(())
        }
        // CHECK(h5-locked-inside): the user of a nested claim is known to nobody else.
        Err(Errno::EAGAIN) => Err(Hindrance::Locked),
        Err(errno) => Err(Hindrance::Call { what: "locking", errno }),
    }
}

/// What a failed opening means: a stranger's directory is told as one.
fn explain<K: Kernel>(uid: u32, parent: &Fd<K>, name: &Name, errno: Errno) -> Hindrance {
    match parent.stat_at(name) {
        Ok(stat) if stat.uid != uid => Hindrance::Foreign { uid: stat.uid },
        Err(Errno::EXDEV) => Hindrance::Mount,
        _ => Hindrance::Call { what: "opening", errno },
    }
}

/// The record of an owner, if that is what stands under this name in a directory.
fn record_at<K: Kernel>(dir: &Fd<K>, name: &Name) -> Result<Option<OwnerRecord>, Hindrance> {
    match dir.readlink(name) {
        Ok(text) => Ok(decode_owner(&text)),
        // Something else stands there, a link that is longer than any record, or nothing.
        Err(Errno::ENOENT | Errno::EINVAL | Errno::EXDEV | Errno::EOVERFLOW) => Ok(None),
        // CHECK(h8-record-unclear): whoever is recorded there may live.
        Err(errno) => Err(Hindrance::Call { what: "reading the record of", errno }),
    }
}

/// Whether there is the record of an owner in a directory.
fn has_record<K: Kernel>(dir: &Fd<K>) -> Result<bool, Hindrance> {
    for record in [OWNER, RELEASED] {
        if record_at(dir, &Name::fixed(record))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Refuses the record of a claim inside this one, while its owner runs.
fn no_owner_runs<K: Kernel>(me: &Identity, parent: &Fd<K>, name: &Name) -> Result<(), Hindrance> {
    if name.bytes() != OWNER.as_bytes() {
        return Ok(());
    }
    let Some(record) = record_at(parent, name)? else { return Ok(()) };
    // Our own process may hold it as well, and have lost its lease.
    let finding = probe::owner_process(parent.kernel(), me, &record, true);
    // CHECK(h5-owner-inside): the owner of a nested claim may have lost its lease, and live.
    if finding.proof != Proof::Gone {
        return Err(Hindrance::InUse);
    }
    Ok(())
}

/// Refuses the registry of a claim inside this one, while its commands run.
fn no_command_runs<K: Kernel>(
    me: &Identity,
    parent: &Fd<K>,
    name: &Name,
    dir: &Fd<K>,
) -> Result<(), Hindrance> {
    if name.bytes() != COMMANDS.as_bytes() || !has_record(parent)? {
        return Ok(());
    }
    // CHECK(h5-commands-inside): the owner of a nested claim may be dead and its command alive.
    if probe::registry(dir, me).proof != Proof::Gone {
        return Err(Hindrance::InUse);
    }
    Ok(())
}

/// The look before a removal.
struct Look<'s> {
    me: &'s Identity,
    /// The claim itself, whose own owner and registry have been asked by now; `None`
    /// for a stray, of which nothing was.
    top: Option<Handle>,
    unseal: bool,
    /// What is called as a claim is, inside.
    inside: Vec<(Name, Random)>,
}

impl<K: Kernel> Visitor<K> for Look<'_> {
    fn enter(
        &mut self,
        parent: &Fd<K>,
        name: &Name,
        dir: &Fd<K>,
        stat: &Stat,
    ) -> Result<Enter, Hindrance> {
        own(self.me.uid, stat)?;
        let Some(top) = self.top else {
            // CHECK(l8-claim-inside): what was recorded is judged by its record, and its users may
            // be seen by nothing else.
            if is_given(name) || has_record(dir)? {
                return Err(Hindrance::Claim);
            }
            return unlocked(dir).map(|()| Enter::Visit);
        };
        unlocked(dir)?;
        if parent.raw() != top {
            no_command_runs(self.me, parent, name, dir)?;
        }
        self.inside.extend(random_of(name).map(|random| (name.clone(), random)));
        Ok(Enter::Visit)
    }

    fn leaf(&mut self, parent: &Fd<K>, name: &Name) -> Result<(), Hindrance> {
        match parent.stat_at(name) {
            Ok(_) if self.top.is_some_and(|top| top != parent.raw()) => {
                no_owner_runs(self.me, parent, name)
            }
            Ok(_) | Err(Errno::ENOENT) => Ok(()),
            // CHECK(h2-mounted-file): a file can be a mount point, too.
            Err(Errno::EXDEV) => Err(Hindrance::Mount),
            Err(errno) => Err(Hindrance::Call { what: "looking at", errno }),
        }
    }

    fn leave(&mut self, _parent: &Fd<K>, _name: &Name) -> Result<Again, Hindrance> {
        Ok(Again::No)
    }

    /// What cannot be looked at keeps the claim (S3); a stranger's directory
    /// does not, since the removal will not enter it either.
    fn stops(&self, what: &Hindrance) -> bool {
        match what {
            // CHECK(l8-foreign-inside): a removal that no later one can finish is not begun on
            // what nobody made for removal.
            Hindrance::Foreign { .. } => self.top.is_none(),
            Hindrance::Call { errno: Errno::EACCES, .. } => self.unseal,
            _ => true,
        }
    }

    fn open(&self, parent: &Fd<K>, name: &Name) -> Answer<Fd<K>> {
        if self.unseal { open_own(parent, name) } else { parent.open_dir(name) }
    }

    fn explain(&self, parent: &Fd<K>, name: &Name, errno: Errno) -> Hindrance {
        explain(self.me.uid, parent, name, errno)
    }
}

/// The removal of what is in a claim.
struct Empty<'s> {
    me: &'s Identity,
}

impl<K: Kernel> Visitor<K> for Empty<'_> {
    fn enter(
        &mut self,
        parent: &Fd<K>,
        name: &Name,
        dir: &Fd<K>,
        stat: &Stat,
    ) -> Result<Enter, Hindrance> {
        if let Err(foreign) = own(self.me.uid, stat) {
            // Empty, it goes by its name alone: that enters nothing.
            return parent.rmdir(name).map(|()| Enter::Pass).or(Err(foreign));
        }
        unlocked(dir)?;
        if stat.mode & 0o700 != 0o700 {
            // CHECK(h4-restore-mode): a directory without write permission cannot be emptied.
            if let Err(errno) = dir.chmod(0o700) {
                return Err(Hindrance::Call { what: "restoring the mode of", errno });
            }
        }
        Ok(Enter::Visit)
    }

    fn leaf(&mut self, parent: &Fd<K>, name: &Name) -> Result<(), Hindrance> {
        match parent.unlink(name) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(Hindrance::Call { what: "removing", errno }),
        }
    }

    fn leave(&mut self, parent: &Fd<K>, name: &Name) -> Result<Again, Hindrance> {
        match parent.rmdir(name) {
            Ok(()) | Err(Errno::ENOENT) => Ok(Again::No),
            Err(Errno::ENOTEMPTY | Errno::EEXIST) => Ok(Again::Yes),
            Err(errno) => Err(Hindrance::Call { what: "removing", errno }),
        }
    }

    /// What cannot be removed is told, and stops nothing else (r5).
    fn stops(&self, _what: &Hindrance) -> bool {
        // CHECK(r5-go-on): one entry that stays must not keep all the others.
        false
    }

    fn open(&self, parent: &Fd<K>, name: &Name) -> Answer<Fd<K>> {
        open_own(parent, name)
    }

    fn explain(&self, parent: &Fd<K>, name: &Name, errno: Errno) -> Hindrance {
        explain(self.me.uid, parent, name, errno)
    }
}
