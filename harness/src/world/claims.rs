//! What is true of claims in use, for the judge.
//!
//! A script says when it begins to rely on a claim and when it gives it up;
//! commands rely on theirs from fork to end. From then on the names on the way
//! to what they use must stand for the same inodes, whatever the implementation
//! believes. A claim that nobody uses is forgotten: what happens to it then is
//! not the business of S1.

use mortmain::sys::{Answer, Errno, Name, PathBytes, Pid};

use super::files::{Inode, Node};
use super::ids::{ClaimId, InodeId, Made};
use super::process::INIT;
use super::{Moves, World};

/// A name that must go on standing for an inode.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Link {
    dir: InodeId,
    name: Name,
    to: InodeId,
    /// Its path below the claim; empty for the claim's own.
    path: PathBytes,
}

/// A claim in use.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Claim {
    path: PathBytes,
    /// From the root downwards: the way to what its users are given, then what they made there.
    links: Vec<Link>,
    /// How many links the way has.
    way: usize,
}

/// A claim in use of which something is gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Harm {
    /// Path of the claim.
    pub path: PathBytes,
    /// What is not at its place any more, as a path below the claim, or empty
    /// for the claim itself.
    pub missing: PathBytes,
    /// Who may still use it.
    pub users: Vec<Pid>,
}

/// An inode that no name stands for: what a path that leads nowhere stands for.
const NOTHING: InodeId = InodeId(Made { by: INIT, nth: u32::MAX });

impl World {
    /// A process relies on the claim at a path from now on, and on what its users are given of it.
    /// A path that leads nowhere is harm already done.
    pub(super) fn hold(&mut self, pid: Pid, claim: &PathBytes, files: &PathBytes) -> ClaimId {
        let id = self.next_claim(pid);
        let mut links: Vec<Link> = Vec::new();
        let mut dir = self.root;
        let mut path = PathBytes::default();
        for name in names_below_root(files) {
            if dir == NOTHING {
                break;
            }
            if !links.is_empty() {
                path = path.join(name.bytes());
            }
            let to = self.inode(dir).entry(&name).unwrap_or(NOTHING);
            links.push(Link { dir, name, to, path: path.clone() });
            dir = to;
        }
        let way = links.len();
        if self.tricks.is_some() && dir != NOTHING {
            self.inodes.update(dir, Inode::give);
        }
        self.claims.insert(id, Claim { path: claim.clone(), links, way });
        self.processes.update(pid, |process| process.uses.push(id));
        id
    }

    pub(super) fn give_up(&mut self, pid: Pid, claim: ClaimId) {
        self.processes.update(pid, |process| process.uses.retain(|used| *used != claim));
        self.forget_unused_claims();
    }

    fn users(&self, claim: ClaimId) -> Vec<Pid> {
        let users = self.processes.iter().filter(|(_, process)| process.uses.contains(&claim));
        users.map(|(pid, _)| pid).collect()
    }

    pub(super) fn forget_unused_claims(&mut self) {
        if self.claims.is_empty() {
            return;
        }
        let unused: Vec<ClaimId> = self
            .claims
            .iter()
            .map(|(id, _)| id)
            .filter(|id| !self.processes.iter().any(|(_, process)| process.uses.contains(id)))
            .collect();
        for id in unused {
            self.claims.remove(id);
        }
    }

    /// A process writes a file into the first claim that it uses, by path.
    pub(super) fn touch(&mut self, pid: Pid, name: &Name) -> Answer<()> {
        let id = *self.process(pid).uses.first().ok_or(Errno::ENOENT)?;
        let Claim { links, way, .. } = self.claims.get(id).ok_or(Errno::ENOENT)?;
        let way = &links[..*way];
        if way.iter().any(|link| !self.stands(link)) {
            return Err(Errno::ENOENT);
        }
        let Link { to: files, path, .. } = way.last().ok_or(Errno::ENOENT)?;
        let (files, path) = (*files, path.join(name.bytes()));
        if self.inodes.get(files).ok_or(Errno::ENOENT)?.entry(name).is_some() {
            return Err(Errno::EEXIST);
        }
        let inode = self.next_inode(pid);
        self.make_in(inode, files, name, Node::File(Box::default()));
        let link = Link { dir: files, name: name.clone(), to: inode, path };
        self.claims.update(id, |claim| claim.links.push(link));
        Ok(())
    }

    /// Whether a name still stands for what it has to stand for.
    fn stands(&self, link: &Link) -> bool {
        let dir = self.inodes.get(link.dir);
        dir.and_then(|dir| dir.entry(&link.name)) == Some(link.to)
    }

    /// Whether what a name stood for was moved, and who moved it can move it back.
    fn is_forgiven(&self, link: &Link) -> bool {
        self.rules.moves == Moves::ForgivenWhileTheMoverLives
            && self.inodes.get(link.to).and_then(Inode::moved_by).is_some_and(|by| self.lives(by))
    }

    /// Whether a name in a directory is on the way to what somebody uses.
    pub(super) fn is_relied_on(&self, dir: InodeId, name: &Name) -> bool {
        let mut links = self.claims.iter().flat_map(|(_, claim)| &claim.links);
        links.any(|link| link.dir == dir && link.name == *name)
    }

    /// Whether anybody uses a claim.
    #[must_use]
    pub fn in_use(&self) -> bool {
        !self.claims.is_empty()
    }

    /// The first claim in use of which something is gone.
    #[must_use]
    pub fn harm(&self) -> Option<Harm> {
        self.claims.iter().find_map(|(id, claim)| {
            let broken = |link: &&Link| !self.stands(link) && !self.is_forgiven(link);
            let missing = claim.links.iter().find(broken)?.path.clone();
            Some(Harm { path: claim.path.clone(), missing, users: self.users(id) })
        })
    }
}

/// The names on a path below the root of claims.
fn names_below_root(path: &PathBytes) -> impl Iterator<Item = Name> {
    let below = path.0.strip_prefix(World::ROOT.as_bytes()).unwrap_or(&path.0);
    below.split(|byte| *byte == b'/').filter_map(Name::new)
}
