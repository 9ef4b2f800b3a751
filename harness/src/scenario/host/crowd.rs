//! Many owners at once, most of them dead, with claims that lie among those of the living.

use std::path::{Path, PathBuf};

use super::stage::Stage;
use super::truth::inode;
use super::{Failure, Outcome};
use crate::actor::Actor as Process;
use crate::actor::wire::{Done, Order, What};
use crate::scenario::story::Actor;
use crate::scenario::telling::PREFIX;

/// A process that owns many claims and lives.
pub(super) struct Gathered {
    _owner: Process,
    /// Its claims, and the inodes of their directories.
    claims: Vec<(PathBuf, u64)>,
}

impl Stage<'_> {
    /// Makes the claims of a crowd; who is to be dead is killed.
    pub(super) fn gather(&mut self, name: &str) -> Outcome<()> {
        let Some(Actor::Crowd(crowd)) = self.story.actors.get(name) else {
            panic!("`{name}` is no crowd");
        };
        let root = self.root_for(name)?;
        let mut owner = self.start_actor(false);
        let mut claims = Vec::new();
        let parts = crowd.living.max(1);
        for part in 0..parts {
            let share = |of: u64| of * (part + 1) / parts - of * part / parts;
            let mut dying = self.start_actor(false);
            make_many(&mut dying, &root, share(crowd.dead), share(crowd.half_made))?;
            dying.kill();
            if part < crowd.living {
                for claim in make_many(&mut owner, &root, 1, 0)? {
                    let inode = inode(&claim)?;
                    claims.push((claim, inode));
                }
            }
        }
        self.crowds.insert(name.into(), Gathered { _owner: owner, claims });
        Ok(())
    }

    /// Fails unless every claim of those who live is what it was.
    pub(super) fn check_crowds(&self) -> Outcome<()> {
        for (name, gathered) in &self.crowds {
            for (claim, before) in &gathered.claims {
                let whole = ["owner", "commands", "files"]
                    .iter()
                    .all(|part| claim.join(part).symlink_metadata().is_ok());
                if !whole || inode(claim).ok() != Some(*before) {
                    let title = format!("a claim of somebody in `{name}` who lives is gone");
                    let failure = Failure::new("S1", title);
                    return Err(failure.note(claim.display().to_string()));
                }
            }
        }
        Ok(())
    }
}

fn make_many(
    actor: &mut Process,
    root: &Path,
    whole: u64,
    half_made: u64,
) -> Outcome<Vec<PathBuf>> {
    let root = root.to_owned();
    actor.order(Order::CreateMany { prefix: PREFIX.into(), root, whole, half_made });
    match actor.hears("many claims to be made") {
        Ok(What::Done(Done::CreatedMany { claims })) => Ok(claims),
        Ok(other) => Err(Failure::new("actor", format!("asked for many claims: `{other}`"))),
        Err(error) => Err(Failure::new("waited", error.to_string())),
    }
}
