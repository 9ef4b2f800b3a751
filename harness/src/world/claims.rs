//! What is true of claims in use, for the judge.
//!
//! A script says when it begins to rely on a claim and when it gives it up;
//! commands rely on theirs from fork to end. From then on the names on the way
//! to what they use must stand for the same inodes, whatever the implementation
//! believes. A claim that nobody uses is forgotten: what happens to it then is
//! not the business of S1.

use mortmain::sys::{Answer, Errno, Name, PathBytes, Pid};

use super::World;
use super::files::Node;
use super::ids::{ClaimId, InodeId, Made};
use super::process::INIT;

/// A name that must go on standing for an inode.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Link {
    dir: InodeId,
    name: Name,
    to: InodeId,
}

/// A claim in use.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Claim {
    path: PathBytes,
    /// From the root downwards.
    links: Vec<Link>,
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
    fn files_name() -> Name {
        Name::fixed("files")
    }

    /// A process relies on the claim at a path from now on. A path that leads
    /// nowhere is harm already done.
    pub(super) fn hold(&mut self, pid: Pid, path: &PathBytes) -> ClaimId {
        let id = self.next_claim(pid);
        let name = path.0.rsplit(|byte| *byte == b'/').next().and_then(Name::new);
        let name = name.unwrap_or_else(World::files_name);
        let claim = self.inode(self.root).entry(&name).unwrap_or(NOTHING);
        let mut links = vec![Link { dir: self.root, name, to: claim }];
        if claim != NOTHING {
            let name = World::files_name();
            let files = self.inode(claim).entry(&name).unwrap_or(NOTHING);
            links.push(Link { dir: claim, name, to: files });
        }
        self.claims.insert(id, Claim { path: path.clone(), links });
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
        let claim = self.claims.get(id).ok_or(Errno::ENOENT)?;
        let files = claim.links.get(1).ok_or(Errno::ENOENT)?.to;
        if self.inodes.get(files).ok_or(Errno::ENOENT)?.entry(name).is_some() {
            return Err(Errno::EEXIST);
        }
        let inode = self.next_inode(pid);
        self.make_in(inode, files, name, Node::File);
        let link = Link { dir: files, name: name.clone(), to: inode };
        self.claims.update(id, |claim| claim.links.push(link));
        Ok(())
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
            let stands = |link: &Link| {
                let dir = self.inodes.get(link.dir);
                dir.and_then(|dir| dir.entry(&link.name)) == Some(link.to)
            };
            let broken = claim.links.iter().position(|link| !stands(link))?;
            let files = PathBytes::from(World::files_name().bytes());
            let missing = match broken {
                0 => PathBytes::default(),
                1 => files,
                _ => files.join(claim.links[broken].name.bytes()),
            };
            Some(Harm { path: claim.path.clone(), missing, users: self.users(id) })
        })
    }
}
