//! Which claims there are in a story, who uses them, and what must be true of them.

use std::collections::BTreeMap;

use mortmain::sys::{Errno, PathBytes, Pid};

use crate::scenario::telling::{CANARY, Failure, Outcome, WITNESS, whose};
use crate::world::World;
use crate::world::hand::Thing;
use crate::world::ids::InodeId;

/// A claim as it was seen.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// The prefix of its names.
    pub(super) prefix: String,
    /// What all its names have in common.
    pub(super) random: String,
    /// The inode of its directory, once it was published.
    pub(super) inode: Option<InodeId>,
    /// Whether the story itself has taken something of it away.
    pub(super) touched: bool,
    /// Where it lies.
    pub(super) home: Home,
}

impl Claim {
    /// What it is called while somebody may use it.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.prefix, self.random)
    }
}

/// Where claims lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// In the root that every story has.
    Root,
    /// In the claim of a server.
    Within(String),
}

/// A process that may use the claim of a server as long as it lives.
#[derive(Clone, Debug)]
pub(super) struct User {
    pub(super) pid: Pid,
    pub(super) of: String,
    /// Who that is, in words.
    pub(super) who: String,
}

/// All that is known of claims.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) claims: BTreeMap<String, Claim>,
    pub(super) users: Vec<User>,
    /// Dead claims that the next plain sweep has to remove.
    pub(super) canaries: Vec<Claim>,
    /// Paths in a root that the story has put there.
    pub(super) planted: Vec<PathBytes>,
    /// The inodes of what lies there, since a sweep that meets it may give it back its name.
    pub(super) planted_inodes: Vec<InodeId>,
}

impl Ledger {
    /// The claim of a server.
    pub(super) fn claim(&self, server: &str) -> Outcome<&Claim> {
        let claim = self.claims.get(server);
        claim.ok_or_else(|| Failure::new("no-claim", format!("`{server}` has made no claim")))
    }

    /// Somebody does not use the claim of a server any more.
    pub(super) fn gives_up(&mut self, server: &str, pid: Pid) {
        self.users.retain(|user| user.pid != pid || user.of != server);
    }

    /// The directory in which claims lie, if there is one now.
    pub(super) fn root_of(&self, world: &World, home: &Home) -> Option<PathBytes> {
        match home {
            Home::Root => Some(World::root_path()),
            Home::Within(server) => {
                let outer = self.path_of(world, self.claims.get(server)?)?;
                let files = outer.join(b"files");
                let inode = world.stands_at(&files).ok()?;
                world.is_dir(inode).then_some(files)
            }
        }
    }

    /// The path of a claim, by whatever name it has now.
    pub(super) fn path_of(&self, world: &World, claim: &Claim) -> Option<PathBytes> {
        let root = self.root_of(world, &claim.home)?;
        let names = world.all_in(world.stands_at(&root).ok()?);
        let paths = names.iter().filter(|(name, _)| has(name.bytes(), &claim.random));
        let mut paths = paths.map(|(name, _)| root.join(name.bytes()));
        paths.find(|path| !self.is_planted(world, path))
    }

    /// Whether something in a root is there because the story has put it there.
    pub(super) fn is_planted(&self, world: &World, path: &PathBytes) -> bool {
        // Under the name that the claim had, or its own; not as somebody's tombstone.
        let hidden =
            path.0.rsplit(|byte| *byte == b'/').next().is_some_and(|n| n.starts_with(b"."));
        let known = |inode| !hidden && self.planted_inodes.contains(&inode);
        self.planted.contains(path) || world.stands_at(path).is_ok_and(known)
    }

    /// Whether a name in the root is one of this claim's.
    pub(super) fn is_own(&self, world: &World, claim: &Claim, name: &str) -> bool {
        let path = World::root_path().join(name.as_bytes());
        name.contains(&claim.random) && !self.is_planted(world, &path)
    }

    /// Whose claim has a name.
    pub(super) fn whose(&self, name: &str) -> String {
        let servers = self.claims.iter().map(|(server, claim)| (&claim.random, server.as_str()));
        let canaries = self.canaries.iter().map(|claim| (&claim.random, CANARY));
        let known = servers.chain(canaries).map(|(random, of)| (random.clone(), of.to_owned()));
        whose(&known.collect::<Vec<_>>(), name)
    }

    /// S1: fails if somebody lives who may use a claim that is not whole.
    pub(super) fn check(&self, world: &World) -> Outcome<()> {
        for user in self.users.iter().filter(|user| world.lives(user.pid)) {
            let mut of = Some(user.of.as_str());
            // A claim within another is used by whoever uses that.
            while let Some(server) = of {
                let claim = self.claim(server)?;
                if let Err(failure) = self.check_whole(world, server, claim) {
                    let why = format!("{} lives and may use it", user.who);
                    return Err(failure.of("S1").note(why));
                }
                of = match &claim.home {
                    Home::Root => None,
                    Home::Within(outer) => Some(outer),
                };
            }
        }
        Ok(())
    }

    /// Fails unless a claim is at its place, the directory that it was, and whole.
    pub(super) fn check_whole(&self, world: &World, server: &str, claim: &Claim) -> Outcome<()> {
        let Some(root) = self.root_of(world, &claim.home) else {
            let title = format!("the claim is gone in which that of `{server}` lies");
            return Err(Failure::new("not-kept", title));
        };
        let path = root.join(claim.name().as_bytes());
        let now = world.stands_at(&path).ok();
        if now.is_none() || now != claim.inode {
            let title = format!("the claim of `{server}` is not at its place any more");
            let names = names_at(world, &root).join(", ");
            return Err(Failure::new("not-kept", title).note(format!("in the root: {names}")));
        }
        let (name, text) = WITNESS;
        let witness = path.join(b"files").join(name.as_bytes());
        if claim.touched || world.is_hidden(&witness) {
            return Ok(());
        }
        let found = world.stands_at(&witness).ok().and_then(|inode| world.thing(inode));
        if found == Some(Thing::File(text.as_bytes().into())) {
            return Ok(());
        }
        let title = format!("a file in the claim of `{server}` is gone or changed");
        Err(Failure::new("not-kept", title).note(witness.to_string()))
    }
}

/// Whether a name has this in it.
fn has(name: &[u8], random: &str) -> bool {
    name.windows(random.len()).any(|part| part == random.as_bytes())
}

/// The names in a directory, in order; none where there is no such directory.
pub(super) fn names_at(world: &World, dir: &PathBytes) -> Vec<String> {
    let inode = world.stands_at(dir);
    let names = inode.map_or_else(|_: Errno| Vec::new(), |inode| world.all_in(inode));
    names.iter().map(|(name, _)| name.to_string()).collect()
}
