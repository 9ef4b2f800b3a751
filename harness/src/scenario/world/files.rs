//! What is done to files and directories by people who have to do with no claim, or who mean no good.

use mortmain::sys::{Answer, Call, Errno, Handle, Name, PathBytes, Reply};

use super::machine::Parent;
use super::program;
use super::stage::{Stage, file, path, refused};
use crate::forge::Record;
use crate::scenario::story::{Base, Forged, Place, Planted};
use crate::scenario::telling::{Failure, Outcome, WITNESS};
use crate::world::hand::Thing;
use crate::world::{Special, World};

/// What somebody writes into a file.
const WORDS: &[u8] = b"somebody wrote this\n";

impl Stage<'_> {
    /// The path of a place that is about to be changed.
    pub(super) fn resolve_to_change(&mut self, place: &Place) -> Outcome<PathBytes> {
        let path = self.resolve(place)?;
        match &place.base {
            Base::Root => self.ledger.planted.push(path.clone()),
            Base::Claim(server) => {
                if place.rest.is_empty() {
                    self.ledger.planted.push(path.clone());
                }
                if let Some(claim) = self.ledger.claims.get_mut(server) {
                    claim.touched |= is_on_the_way_to_the_witness(&place.rest);
                }
            }
            Base::Shared | Base::Precious(_) => {}
        }
        Ok(path)
    }

    /// Remembers what was put into the root.
    fn know(&mut self, at: &PathBytes) -> Outcome<()> {
        let below = at.0.strip_prefix(World::ROOT.as_bytes()).and_then(|b| b.strip_prefix(b"/"));
        if below.is_some_and(|name| !name.contains(&b'/')) {
            let inode = self.machine.world.stands_at(at).map_err(refused)?;
            self.ledger.planted_inodes.push(inode);
        }
        Ok(())
    }

    /// Moves whatever is there out of sight, where it goes on to be what it is.
    fn set_aside(&mut self, at: &PathBytes) -> Outcome<()> {
        let aside = path(&format!("/attic/{}", self.aside));
        self.aside += 1;
        none_is_fine(self.machine.world.carry(at, &aside))
    }

    /// Puts something somewhere, in the place of whatever is there.
    pub(super) fn plant(
        &mut self,
        what: Planted,
        at: &Place,
        depth: u64,
        name_bytes: Option<u64>,
    ) -> Outcome<()> {
        let at = lengthened(self.resolve_to_change(at)?, name_bytes);
        self.set_aside(&at)?;
        let outside = self.outside()?;
        let world = &mut self.machine.world;
        let thing = match what {
            Planted::Directory | Planted::FullDirectory => Thing::Dir,
            Planted::File => file(WORDS),
            Planted::Garbage => file(&[0; 4096]),
            Planted::DanglingLink => Thing::Link(b"nowhere".as_slice().into()),
            Planted::LinkToPrecious => Thing::Link(outside.0.into()),
            Planted::LinkToFile => Thing::Link(outside.join(b"file").0.into()),
            Planted::LinkToZero => Thing::Link(b"/dev/zero".as_slice().into()),
            Planted::Fifo => Thing::Special(Special::Fifo),
            Planted::Socket => Thing::Special(Special::Socket),
            Planted::Device => Thing::Special(Special::Device),
            Planted::FifoWithWriter => Thing::HeldFifo,
            Planted::SparseGiant => Thing::Giant,
        };
        let mut dir = world.put(&at, thing).map_err(refused)?;
        if what == Planted::FullDirectory {
            world.put(&at.join(b"deep"), Thing::Dir).map_err(refused)?;
            world.put(&at.join(b"deep/file"), file(WORDS)).map_err(refused)?;
        }
        // No path leads to the last ones.
        let name = at.0.rsplit(|byte| *byte == b'/').next().and_then(Name::new);
        for name in name.iter().cycle().take(depth.saturating_sub(1) as usize) {
            dir = world.put_in(dir, name, Thing::Dir);
        }
        self.know(&at)
    }

    /// Puts a link in the place of whatever is there.
    pub(super) fn plant_link(&mut self, text: &str, at: &Place) -> Outcome<()> {
        let at = self.resolve_to_change(at)?;
        self.set_aside(&at)?;
        self.machine.world.put(&at, Thing::Link(text.as_bytes().into())).map_err(refused)?;
        self.know(&at)
    }

    /// Changes a record, as who may write to the claim can.
    pub(super) fn forge(&mut self, at: &Place, change: Forged) -> Outcome<()> {
        let at = self.resolve(at)?;
        let world = &mut self.machine.world;
        let thing = world.stands_at(&at).map_err(refused).map(|inode| world.thing(inode))?;
        let name = at.0.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let record = match &thing {
            Some(Thing::Link(text)) => Record::of_link(name, text),
            _ => None,
        };
        let title = format!("{at} is no record");
        let mut record = record.ok_or_else(|| Failure::new("system", title))?;
        record.process.pid = change.pid.unwrap_or(record.process.pid);
        record.version = change.version.unwrap_or(record.version);
        world.take_away(&at).map_err(refused)?;
        world.put(&at, Thing::Link(record.text().into())).map(drop).map_err(refused)
    }

    /// Copies something, in the place of whatever is there.
    pub(super) fn duplicate(&mut self, what: &Place, to: &Place) -> Outcome<()> {
        let from = self.resolve(what)?;
        let to = self.resolve_to_change(to)?;
        self.set_aside(&to)?;
        let things = self.machine.world.things_at(&from).map_err(refused)?;
        for (below, thing) in things {
            let at = if below.is_empty() { to.clone() } else { to.join(&below) };
            self.machine.world.put(&at, thing).map_err(refused)?;
        }
        self.know(&to)
    }

    /// Renames something.
    pub(super) fn move_to(&mut self, what: &Place, to: &Place) -> Outcome<()> {
        let from = self.resolve_to_change(what)?;
        let target = self.resolve_to_change(to)?;
        self.machine.world.carry(&from, &target).map_err(refused)?;
        let came_from = self.moved.iter().find(|(_, place)| *place == what);
        let precious = match &what.base {
            Base::Precious(name) if what.rest.is_empty() => Some(name.clone()),
            _ => came_from.map(|(name, _)| name.clone()),
        };
        if let Some(name) = precious {
            self.moved.insert(name, to.clone());
        }
        self.know(&target)
    }

    /// Takes something away, if it is there.
    pub(super) fn remove(&mut self, at: &Place) -> Outcome<()> {
        if !self.is_there(at) {
            return Ok(());
        }
        let at = self.resolve_to_change(at)?;
        self.machine.world.take_away(&at).map_err(refused)
    }

    /// Takes away what is in a directory.
    pub(super) fn empty(&mut self, at: &Place) -> Outcome<()> {
        let at = self.resolve_to_change(at)?;
        self.machine.world.empty(&at).map_err(refused)
    }

    /// Gives something, and all that is in it, a time.
    pub(super) fn age(&mut self, what: &Place, to: i64) -> Outcome<()> {
        let at = self.resolve(what)?;
        self.machine.world.date(&at, to.try_into().unwrap_or(0)).map_err(refused)
    }

    /// Locks a directory, as a tool does that marks what is its own.
    pub(super) fn lock(&mut self, at: &Place) -> Outcome<()> {
        const FIRST: Handle = Handle(3);
        let at = self.resolve(at)?;
        let somebody = self.machine.start(program::STRANGER, Parent::Starter);
        let opened = self.machine.call_for(somebody, Call::OpenRoot { path: at.clone() });
        if opened != Ok(Reply::Handle(FIRST)) {
            return Err(Failure::new("system", format!("{at} cannot be opened: {opened:?}")));
        }
        self.machine.call_for(somebody, Call::Lock { fd: FIRST }).map_err(refused)?;
        self.locks.push((at, somebody));
        Ok(())
    }

    /// Unlocks it.
    pub(super) fn unlock(&mut self, at: &Place) -> Outcome<()> {
        let at = self.resolve(at)?;
        let found = self.locks.iter().position(|(other, _)| *other == at);
        let found = found.ok_or_else(|| Failure::new("lock", format!("nobody locked {at}")))?;
        // Nobody has a copy of the descriptor, so that its end is that of the lock.
        let (_, somebody) = self.locks.remove(found);
        self.end_process(somebody);
        Ok(())
    }
}

/// Whether what is at this place in a claim leads to what its owner has put there, or is that.
fn is_on_the_way_to_the_witness(rest: &str) -> bool {
    let witness = format!("files/{}", WITNESS.0);
    let after = witness.strip_prefix(rest);
    after.is_some_and(|after| rest.is_empty() || after.is_empty() || after.starts_with('/'))
}

/// The path with its last name filled up by its last byte.
fn lengthened(path: PathBytes, bytes: Option<u64>) -> PathBytes {
    let Some(bytes) = bytes else { return path };
    let PathBytes(mut path) = path;
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let (now, last) = (name.len(), name.last().copied().unwrap_or(b'x'));
    // OK because no name is longer than a few hundred bytes.
    let missing = (bytes as usize).saturating_sub(now);
    path.resize(path.len() + missing, last);
    PathBytes(path)
}

/// Where nothing is, nothing has to be moved.
fn none_is_fine(done: Answer<()>) -> Outcome<()> {
    match done {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(errno) => Err(refused(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_filled_up_and_never_cut() {
        let long = |bytes| lengthened(path("/a/bc"), bytes);
        assert_eq!(long(Some(5)), path("/a/bcccc"));
        assert_eq!(long(Some(1)), path("/a/bc"));
        assert_eq!(long(None), path("/a/bc"));
    }

    #[test]
    fn the_way_to_the_witness_is_what_takes_it_along() {
        for rest in ["", "files", "files/written-by-owner"] {
            assert!(is_on_the_way_to_the_witness(rest), "{rest}");
        }
        for rest in ["file", "owner", "files/written", "files/deep"] {
            assert!(!is_on_the_way_to_the_witness(rest), "{rest}");
        }
    }
}
