//! Strays: directories in a root that are no claims (l8).
//!
//! Other programs left them, before the root had claims or beside them. Nobody
//! recorded who uses them, so there is nothing that could prove that nobody
//! does, and no sweep looks at them. An operator may name one. What can still
//! be found out then keeps it: its lock, everybody who is seen to use it, and
//! all that forbids the removal of a claim.
//!
//! A stray that goes is renamed first, to a tombstone of the root's prefix: from
//! then on it is one of ours, and a removal that is killed is finished by any
//! sweep. Unlike a claim it may have users to come, who know it by its name; so
//! they are looked for once more when it has lost that.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::error::{Error, ErrorKind};
use crate::evidence::{Evidence, Finding, Hindrance, Obstacle, User};
use crate::fskind::FsKind;
use crate::grammar::{Place, Random, is_given};
use crate::life::{Census, census, finding};
use crate::remove::{Condemned, Removal, here, look_at_stray};
use crate::report::{Findings, Outcome};
use crate::root::{Root, open_own, still_named};
use crate::sweep::is_foreign;
use crate::sys::{
    Answer, DirEntry, Errno, Fd, FsMagic, Home, Identity, Kernel, KernelExt, Kind, Name, PathBytes,
    Probed, ProcView, Stat,
};
use crate::verdict::Proof;

const LIST: &str = "list the strays of";
const ADOPT: &str = "adopt";

/// Strays that are looked for in one scan of all processes.
const BATCH_MAX: usize = 1 << 16;

/// What was found out about some strays of a root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Strays {
    /// The root.
    pub root: PathBytes,
    /// The strays, in the order of their names.
    pub entries: Vec<Stray>,
    /// How many directories with a name that was asked for are called as claims
    /// are. They are sweeps' to judge.
    pub claims: u64,
    /// How many belong to other users.
    pub foreign: u64,
    /// How many processes could not be read, in whole or in part. They keep
    /// nothing.
    pub unread: u64,
    /// Whether there may be processes that cannot be seen from here: this is not
    /// the machine's first pid namespace, or `/proc` hides those of others.
    pub partial_view: bool,
}

/// A directory that is no claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stray {
    /// Its name in the root.
    pub name: Name,
    /// What became of it, or would.
    pub outcome: Outcome,
    /// Every process that is seen to use it, in the order in which they were met.
    pub users: Vec<User>,
}

impl fmt::Display for Stray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.outcome)
    }
}

impl<K: Kernel> Root<K> {
    /// Looks at every stray whose name is `wanted`, and removes nothing. The
    /// locks of the strays, and of the directories in them, are taken for a
    /// moment.
    ///
    /// # Errors
    /// [`ErrorKind::System`] when the root could not be listed, or it could not
    /// be found out who asks or who uses what.
    pub fn strays(&self, wanted: &mut dyn FnMut(&Name) -> bool) -> Result<Strays, Error> {
        let fail = |errno| Error::system(LIST, self.path(), errno);
        let me = self.kernel().identity().map_err(fail)?;
        let keeper = Keeper { root: self, me: &me };
        let mut strays = keeper.nothing_yet();
        let mut met = Vec::new();
        for name in self.directories(wanted).map_err(fail)? {
            if is_given(&name) {
                strays.claims += 1;
                continue;
            }
            match keeper.meet(&name, false) {
                Met::Nothing(_) => {}
                Met::Foreign(_) => strays.foreign += 1,
                // Its lock is given back: it is not to be removed now.
                Met::Free(..) | Met::Sealed => met.push((name, None)),
                Met::Stays(outcome) => met.push((name, Some(outcome))),
            }
        }
        met.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        // A listing beside another one of the same root can tell a name twice.
        met.dedup_by(|one, other| one.0 == other.0);
        for batch in met.chunks(BATCH_MAX) {
            let random = Random::fresh(self.kernel()).map_err(fail)?;
            let sought: Vec<_> = batch.iter().map(|(name, _)| (name, random)).collect();
            let Census { users, unread } = census(self.kernel(), &me, &sought).map_err(fail)?;
            strays.unread = strays.unread.max(unread);
            strays.entries.extend(batch.iter().zip(users).map(|((name, stays), users)| {
                let outcome = match stays {
                    Some(outcome) => outcome.clone(),
                    None => keeper.forecast(name, finding(&users)),
                };
                Stray { name: name.clone(), outcome, users }
            }));
        }
        Ok(strays)
    }

    /// Removes one stray, of which an operator says that it may go, unless
    /// anything contradicts him: a lock on it, a process that is seen to use it,
    /// or something in it that no removal may touch (l8). The answer has one
    /// entry.
    ///
    /// # Errors
    /// * [`ErrorKind::NoSuchStray`] when the name stands for no stray.
    /// * [`ErrorKind::System`] when it could not be found out who asks.
    ///
    /// # Crash behaviour
    /// Killed at any call, it leaves the stray as it was, but for the mode of
    /// sealed directories of the caller's, or a tombstone of the root's prefix,
    /// which sweeps judge and finish.
    pub fn adopt(&self, name: &Name) -> Result<Strays, Error> {
        let path = self.path_of(name);
        let fail = |errno| Error::system(ADOPT, &path, errno);
        let no_stray = |text| Error::because(ErrorKind::NoSuchStray, ADOPT, &path, text);
        // CHECK(l8-no-claim): a claim is removed by proofs, and by no word that goes round them.
        if is_given(name) {
            return Err(no_stray("it is called as claims are, which sweeps judge".into()));
        }
        let me = self.kernel().identity().map_err(fail)?;
        let keeper = Keeper { root: self, me: &me };
        let mut strays = keeper.nothing_yet();
        let (outcome, users) = match keeper.meet(name, true) {
            Met::Nothing(why) => return Err(no_stray(why.into())),
            Met::Foreign(uid) => return Err(no_stray(belongs_to(uid))),
            Met::Stays(outcome) => (outcome, Vec::new()),
            // It was given its mode back, and somebody took it again.
            Met::Sealed => {
                let sealed = Hindrance::Call { what: "opening", errno: Errno::EACCES };
                (Outcome::Blocked(here(sealed)), Vec::new())
            }
            Met::Free(dir, stat) => {
                let random = Random::fresh(self.kernel()).map_err(fail)?;
                let condemned =
                    Condemned::new(self, &me, name, random, Place::Published, dir.fd(), stat);
                let (keeper, dir) = (&keeper, dir.fd());
                let mut removal = Adoption { keeper, condemned, dir, name, random, unread: 0 };
                let done = removal.carry_out();
                strays.unread = removal.unread;
                done
            }
        };
        strays.entries.push(Stray { name: name.clone(), outcome, users });
        Ok(strays)
    }

    /// What lies in the root, is wanted, and may be a directory.
    fn directories(&self, wanted: &mut dyn FnMut(&Name) -> bool) -> Answer<Vec<Name>> {
        let mut names = Vec::new();
        let mut restart = true;
        loop {
            let batch = self.fd().read_dir(restart)?;
            restart = false;
            if batch.is_empty() {
                return Ok(names);
            }
            let may_be_one = |entry: &DirEntry| matches!(entry.kind, Kind::Dir | Kind::Unknown);
            let found = batch.into_iter().filter(|entry| may_be_one(entry) && wanted(&entry.name));
            names.extend(found.map(|entry| entry.name));
        }
    }
}

fn belongs_to(uid: u32) -> String {
    alloc::format!("it belongs to user {uid}")
}

/// What stands at a name.
enum Met<K: Kernel> {
    /// No stray; why.
    Nothing(&'static str),
    /// Another user's directory.
    Foreign(u32),
    /// One that stays.
    Stays(Outcome),
    /// One of ours that nobody may open before it is given its mode back.
    Sealed,
    /// One under its lock.
    Free(Probed<K>, Stat),
}

/// Whether processes of the machine may be out of sight in such a home.
fn is_partial(home: &Home, proc: ProcView) -> bool {
    home.pid_ns != Home::INITIAL_PID_NS || proc != ProcView::Whole
}

/// Who looks at the strays of a root.
struct Keeper<'s, K: Kernel> {
    root: &'s Root<K>,
    me: &'s Identity,
}

impl<K: Kernel> Keeper<'_, K> {
    fn nothing_yet(&self) -> Strays {
        let partial_view = is_partial(&self.me.home, self.me.proc);
        let (root, entries) = (self.root.path().clone(), Vec::new());
        Strays { root, entries, claims: 0, foreign: 0, unread: 0, partial_view }
    }

    /// Opens and locks what stands at a name; `unseal` lets it give a directory
    /// of ours its mode back first.
    fn meet(&self, name: &Name, unseal: bool) -> Met<K> {
        let failed =
            |what, errno| Met::Stays(Outcome::Blocked(here(Hindrance::Call { what, errno })));
        let fd = self.root.fd();
        let opened = if unseal { open_own(fd, name) } else { fd.open_dir(name) };
        let dir = match opened {
            Ok(dir) => dir,
            Err(Errno::ENOENT) => return Met::Nothing("there is nothing of that name"),
            Err(Errno::ENOTDIR | Errno::ELOOP) => return Met::Nothing("it is no directory"),
            Err(Errno::EXDEV) => return Met::Stays(Outcome::Blocked(here(Hindrance::Mount))),
            Err(errno) => match fd.stat_at(name) {
                Ok(stat) if is_foreign(self.me, stat.uid) => return Met::Foreign(stat.uid),
                Ok(_) if errno == Errno::EACCES => return Met::Sealed,
                _ => return failed("opening", errno),
            },
        };
        let stat = match dir.stat() {
            Ok(stat) => stat,
            Err(errno) => return failed("looking at", errno),
        };
        // CHECK(l8-own-uid): root would remove by one wrong word what its owner still needs.
        if is_foreign(self.me, stat.uid) {
            return Met::Foreign(stat.uid);
        }
        let dir = Probed::new(dir);
        match dir.lock() {
            Ok(()) => {}
            // CHECK(l8-locked): that is how other tools say that they use it.
            Err(Errno::EAGAIN) => return Met::Stays(Outcome::Blocked(here(Hindrance::Locked))),
            Err(errno) => return failed("locking", errno),
        }
        match still_named(fd, name, dir.fd()) {
            Ok(Some(_)) => {}
            // CHECK(l8-same-directory): the lock is on what was opened, which is another one's by now.
            Ok(None) => return Met::Nothing("its name stood for something else a moment later"),
            Err(errno) => return failed("looking at", errno),
        }
        match dir.fd().fs_magic() {
            // CHECK(l8-listed-file-system): where locks do not reach every user, processes that
            // nobody here sees may be those of another machine.
            Ok(magic) if FsKind::from_magic(magic).is_none() => Met::Stays(elsewhere(magic)),
            Ok(_) => Met::Free(dir, stat),
            Err(errno) => failed("looking at the file system of", errno),
        }
    }

    /// What would become of a stray that nothing was removed of.
    fn forecast(&self, name: &Name, life: Finding) -> Outcome {
        if life.proof != Proof::Gone {
            return Outcome::Kept(findings(None, life));
        }
        // Opened once more, since thousands that are held would take every descriptor.
        let obstacle = match self.meet(name, false) {
            Met::Free(dir, _) => look_at_stray(self.me, dir.fd(), false),
            // What is in it is seen when it is to go, and as little before as in those inside.
            Met::Sealed => None,
            Met::Stays(outcome) => return outcome,
            Met::Nothing(_) | Met::Foreign(_) => Some(here(Hindrance::NameChanged)),
        };
        match obstacle {
            Some(obstacle) => Outcome::Blocked(obstacle),
            None => {
                let nobody_knows = Finding::cannot_tell(Evidence::NeverRecorded);
                Outcome::WouldRemove(findings(Some(nobody_knows), life))
            }
        }
    }
}

/// A lock there proves nothing.
fn elsewhere(magic: FsMagic) -> Outcome {
    let finding = Finding::cannot_tell(Evidence::UnlistedFileSystem(magic));
    Outcome::Kept(Findings::of_lease(finding))
}

/// What is known of a stray whose lock was free.
fn findings(owner: Option<Finding>, life: Finding) -> Findings {
    let lease = Finding::gone(Evidence::LeaseFree);
    Findings { lease, owner, commands: None, life: Some(life) }
}

/// The removal of one stray, whose lock is held.
struct Adoption<'s, K: Kernel> {
    keeper: &'s Keeper<'s, K>,
    condemned: Condemned<'s, K>,
    dir: &'s Fd<K>,
    name: &'s Name,
    random: Random,
    /// Processes that could not be read.
    unread: u64,
}

impl<K: Kernel> Adoption<'_, K> {
    fn carry_out(&mut self) -> (Outcome, Vec<User>) {
        // CHECK(l8-used-stays): whoever is seen in it contradicts whoever says that nobody is.
        if let Some(kept) = self.used(self.name) {
            return kept;
        }
        // CHECK(l8-look-first): a mount, a lock or a claim inside keeps the whole of it.
        if let Some(obstacle) = look_at_stray(self.keeper.me, self.dir, true) {
            return (Outcome::Blocked(obstacle), Vec::new());
        }
        let tombstone = match self.entomb() {
            Ok(tombstone) => tombstone,
            Err(obstacle) => return (Outcome::Blocked(obstacle), Vec::new()),
        };
        // CHECK(l8-came-in): until it lost its name anybody could come in by it.
        if let Some((kept, users)) = self.used(&tombstone) {
            return (self.put_back(&tombstone).map_or(kept, Outcome::Blocked), users);
        }
        let outcome = match self.condemned.demolish_stray(&tombstone) {
            Removal::Removed => {
                let word = Evidence::OnWord(Box::new(Evidence::NeverRecorded));
                let unused = Finding::gone(Evidence::Unused);
                Outcome::Removed(findings(Some(Finding::gone(word)), unused))
            }
            Removal::Kept(obstacle) => Outcome::Blocked(obstacle),
            Removal::Partial(obstacles) => Outcome::Partial(obstacles),
        };
        (outcome, Vec::new())
    }

    /// Who keeps it, under the name that it has; `None` when nobody is seen.
    fn used(&mut self, name: &Name) -> Option<(Outcome, Vec<User>)> {
        let (root, me) = (self.keeper.root, self.keeper.me);
        let (life, users) = match census(root.kernel(), me, &[(name, self.random)]) {
            Ok(Census { mut users, unread }) => {
                self.unread = self.unread.max(unread);
                let users = users.pop().unwrap_or_default();
                (finding(&users), users)
            }
            Err(errno) => (Finding::cannot_tell(Evidence::UseUnclear(errno)), Vec::new()),
        };
        let kept = life.proof != Proof::Gone;
        kept.then(|| (Outcome::Kept(findings(None, life)), users))
    }

    /// Gives it the name of a tombstone, by which nobody else knows it.
    ///
    /// There is no removal in place as there is of claims: nothing then could be
    /// told from what its users find.
    fn entomb(&self) -> Result<Name, Obstacle> {
        let failed = |what, errno| here(Hindrance::Call { what, errno });
        let root = self.keeper.root;
        let fresh = Random::fresh(root.kernel());
        let fresh = fresh.map_err(|errno| failed("naming a tombstone for", errno))?;
        let tombstone = root.prefix().tombstone(&self.random, &fresh);
        let renamed = root.fd().rename(self.name, &tombstone);
        renamed.map_err(|errno| failed("renaming", errno))?;
        self.condemned.entombed(tombstone.clone()).map_err(|obstacle| match obstacle.what {
            // CHECK(l8-unclear-put-back): what nobody could look at would go with the next sweep.
            Hindrance::Call { .. } => self.put_back(&tombstone).unwrap_or(obstacle),
            _ => obstacle,
        })
    }

    /// Gives it its name back; answers what stands in the way.
    fn put_back(&self, tombstone: &Name) -> Option<Obstacle> {
        let root = self.keeper.root.fd();
        match root.stat_at(self.name) {
            Err(Errno::ENOENT) => {}
            // Somebody has made it anew.
            Ok(_) | Err(Errno::EXDEV) => return Some(here(Hindrance::NameChanged)),
            Err(errno) => {
                return Some(here(Hindrance::Call { what: "looking at the old name of", errno }));
            }
        }
        // CHECK(l8-put-back): whoever uses it would not find it again, and a sweep would take it
        // after his end.
        let renamed = root.rename(tombstone, self.name);
        renamed.err().map(|errno| here(Hindrance::Call { what: "naming back", errno }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_namespace_with_a_whole_proc_shows_every_process() {
        let first = Home { boot: [1; 16], pid_ns: Home::INITIAL_PID_NS, time_ns: 7 };
        let container = Home { pid_ns: 4_026_532_000, ..first };
        assert!(!is_partial(&first, ProcView::Whole));
        assert!(is_partial(&first, ProcView::Partial));
        assert!(is_partial(&container, ProcView::Whole));
    }
}
