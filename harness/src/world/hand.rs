//! What somebody does to names who is none of the world's processes, and what he sees.
//!
//! A story has people who put things where they do not belong, take things away and move them. They
//! are asked for nothing and open nothing, so that no lock, no descriptor and no process tells of
//! them. A name on the way may be a link, which is followed; the last one is taken as it is.

use std::collections::BTreeMap;

use mortmain::sys::{Answer, Errno, Name, PathBytes, Pid};

use super::World;
use super::files::{Node, Special};
use super::ids::{InodeId, Made, MountId};

/// Whose inodes those are that somebody makes.
const SOMEBODY: Pid = Pid(0);

/// What stands at a name, with what is in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Thing {
    /// A directory; its names have paths of their own.
    Dir,
    /// A file, and what it holds.
    File(Box<[u8]>),
    /// A symbolic link, and its text.
    Link(Box<[u8]>),
    /// A FIFO, a socket or a device.
    Special(Special),
    /// A file of nothing but zeros, which is longer than anybody could read.
    Giant,
    /// A FIFO, at whose other end somebody is who never writes anything.
    HeldFifo,
}

impl From<Thing> for Node {
    fn from(thing: Thing) -> Node {
        match thing {
            Thing::Dir => Node::Dir(Vec::new()),
            Thing::File(bytes) => Node::File(bytes),
            Thing::Link(text) => Node::Link(text),
            Thing::Special(special) => Node::Special(special),
            Thing::Giant => Node::Giant,
            Thing::HeldFifo => Node::HeldFifo,
        }
    }
}

impl From<&Node> for Thing {
    fn from(node: &Node) -> Thing {
        match node {
            Node::Dir(_) => Thing::Dir,
            Node::File(bytes) => Thing::File(bytes.clone()),
            Node::Link(text) => Thing::Link(text.clone()),
            Node::Special(special) => Thing::Special(*special),
            Node::Giant => Thing::Giant,
            Node::HeldFifo => Thing::HeldFifo,
        }
    }
}

impl World {
    /// The inode that a path stands for.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR` and `ELOOP`, as for a process.
    pub fn stands_at(&self, path: &PathBytes) -> Answer<InodeId> {
        let (dir, name) = self.parent_of(path)?;
        self.inode(dir).entry(&name).ok_or(Errno::ENOENT)
    }

    /// What an inode is, and holds; `None` if it is gone.
    #[must_use]
    pub fn thing(&self, inode: InodeId) -> Option<Thing> {
        Some(Thing::from(&self.inodes.get(inode)?.node))
    }

    /// Everything at a path and below it, by its path.
    ///
    /// # Errors
    /// As [`World::stands_at`].
    pub fn things_at(&self, path: &PathBytes) -> Answer<BTreeMap<Vec<u8>, Thing>> {
        let mut found = BTreeMap::new();
        self.collect(self.stands_at(path)?, &PathBytes::default(), &mut found);
        Ok(found)
    }

    fn collect(&self, inode: InodeId, path: &PathBytes, found: &mut BTreeMap<Vec<u8>, Thing>) {
        found.insert(path.0.clone(), Thing::from(&self.inode(inode).node));
        for (name, inode) in self.names_in(inode) {
            self.collect(inode, &path.join(name.bytes()), found);
        }
    }

    /// Puts something where nothing is.
    ///
    /// # Errors
    /// `EEXIST`, and as [`World::stands_at`].
    pub fn put(&mut self, path: &PathBytes, thing: Thing) -> Answer<InodeId> {
        let (dir, name) = self.free_at(path)?;
        Ok(self.put_in(dir, &name, thing))
    }

    /// Puts something into a directory that has nothing of this name.
    pub fn put_in(&mut self, dir: InodeId, name: &Name, thing: Thing) -> InodeId {
        let inode = InodeId(Made { by: SOMEBODY, nth: self.put_so_far });
        self.put_so_far += 1;
        self.make_in(inode, dir, name, thing.into());
        inode
    }

    /// Takes away what is there, with all that is in it.
    ///
    /// # Errors
    /// As [`World::stands_at`].
    pub fn take_away(&mut self, path: &PathBytes) -> Answer<()> {
        let (dir, name) = self.parent_of(path)?;
        let found = self.inode(dir).entry(&name).ok_or(Errno::ENOENT)?;
        self.empty_out(found);
        self.drop_name(dir, &name, found);
        Ok(())
    }

    /// Takes away all that is in a directory.
    ///
    /// # Errors
    /// As [`World::stands_at`].
    pub fn empty(&mut self, path: &PathBytes) -> Answer<()> {
        let dir = self.stands_at(path)?;
        self.empty_out(dir);
        Ok(())
    }

    fn empty_out(&mut self, dir: InodeId) {
        for (name, inode) in self.names_in(dir) {
            self.empty_out(inode);
            self.drop_name(dir, &name, inode);
        }
    }

    /// Gives something another place, where nothing is, in whichever directory.
    ///
    /// # Errors
    /// `EEXIST`, and as [`World::stands_at`].
    pub fn carry(&mut self, from: &PathBytes, to: &PathBytes) -> Answer<()> {
        let (dir, name) = self.parent_of(from)?;
        let moved = self.inode(dir).entry(&name).ok_or(Errno::ENOENT)?;
        let (to, new_name) = self.free_at(to)?;
        self.change(dir, |dir| dir.take(&name));
        self.change(to, |dir| dir.put(&new_name, moved));
        Ok(())
    }

    /// Lets what one path leads to be seen at another one.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR` and `ELOOP`, as for a process; `ENOTDIR` of a directory and something else.
    pub fn mount(&mut self, what: &PathBytes, at: &PathBytes) -> Answer<()> {
        let (root, on) = (self.resolve(what)?.inode, self.resolve(at)?);
        let id = MountId(Made { by: SOMEBODY, nth: self.put_so_far });
        self.put_so_far += 1;
        self.bind(id, root, on)
    }

    /// Ends what is mounted uppermost where a path leads.
    ///
    /// # Errors
    /// `EINVAL` where nothing is, `EBUSY` where it is in use, and as [`World::mount`].
    pub fn unmount_at(&mut self, at: &PathBytes) -> Answer<()> {
        self.unmount(self.resolve(at)?)
    }

    /// Whether what a path would lead to is hidden by a mount.
    #[must_use]
    pub fn is_hidden(&self, path: &PathBytes) -> bool {
        let cuts = path.0.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut ways = cuts.map(|(at, _)| PathBytes(path.0[..=at].to_vec()));
        // What is mounted need not have all the names of the rest.
        ways.any(|way| self.resolve(&way).is_ok_and(|dir| dir.mount.is_some()))
    }

    /// Says of something, and of all that is in it, that it was last changed then.
    ///
    /// # Errors
    /// As [`World::stands_at`].
    pub fn date(&mut self, path: &PathBytes, seconds: u64) -> Answer<()> {
        let inode = self.stands_at(path)?;
        self.date_all(inode, seconds);
        Ok(())
    }

    fn date_all(&mut self, inode: InodeId, seconds: u64) {
        for (_, below) in self.names_in(inode) {
            self.date_all(below, seconds);
        }
        self.inodes.update(inode, |inode| inode.modified = seconds);
    }

    fn free_at(&self, path: &PathBytes) -> Answer<(InodeId, Name)> {
        let (dir, name) = self.parent_of(path)?;
        match self.inode(dir).entry(&name) {
            Some(_) => Err(Errno::EEXIST),
            None => Ok((dir, name)),
        }
    }

    /// The directory that a path leads to, and the name in it.
    fn parent_of(&self, path: &PathBytes) -> Answer<(InodeId, Name)> {
        let cut = path.0.iter().rposition(|byte| *byte == b'/').ok_or(Errno::ENOENT)?;
        let (way, name) = (PathBytes(path.0[..=cut].to_vec()), &path.0[cut + 1..]);
        let dir = self.open_path(&way)?;
        Ok((dir.inode, Name::new(name).ok_or(Errno::ENOENT)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Rules;

    #[test]
    fn what_is_mounted_is_seen_until_that_ends() {
        let mut world = World::new(Rules::default());
        let [a, b, inside] = ["/r/a", "/r/b", "/r/b/x"].map(path);
        world.put(&a, Thing::Dir).expect("nothing is there");
        world.put(&path("/r/a/x"), Thing::Giant).expect("nothing is there");
        world.put(&b, Thing::Dir).expect("nothing is there");
        let before = world.fingerprint();
        assert_eq!(world.unmount_at(&b), Err(Errno::EINVAL), "nothing is mounted");
        world.mount(&a, &b).expect("both are there");
        assert_eq!(world.stands_at(&inside), world.stands_at(&path("/r/a/x")));
        assert_eq!(world.unmount_at(&inside), Err(Errno::EINVAL), "it is in it");
        for (below, hidden) in [("", false), ("/x", true), ("/y/z", true)] {
            assert_eq!(world.is_hidden(&path(&format!("/r/b{below}"))), hidden, "{below}");
        }
        world.mount(&a, &b).expect("one may lie upon another");
        world.unmount_at(&b).expect("nobody uses it");
        assert!(world.stands_at(&inside).is_ok(), "the lower one is still there");
        world.unmount_at(&b).expect("nobody uses it");
        assert_eq!(world.stands_at(&inside), Err(Errno::ENOENT));
        assert_eq!(world.fingerprint(), before);
    }

    fn path(text: &str) -> PathBytes {
        PathBytes::from(text.as_bytes())
    }

    #[test]
    fn what_is_put_is_found_and_goes_with_all_that_is_in_it() {
        let mut world = World::new(Rules::default());
        let before = world.fingerprint();
        world.put(&path("/r/a"), Thing::Dir).expect("nothing is there");
        world.put(&path("/r/a/b"), Thing::File(b"x".as_slice().into())).expect("nothing is there");
        world.put(&path("/r/l"), Thing::Link(b"a".as_slice().into())).expect("nothing is there");
        assert_eq!(world.put(&path("/r/a"), Thing::Dir), Err(Errno::EEXIST));
        assert_eq!(world.stands_at(&path("/r/l/b")), world.stands_at(&path("/r/a/b")));
        let all = world.things_at(&path("/r/a")).expect("it is there");
        assert_eq!(all.keys().collect::<Vec<_>>(), [&b""[..], b"b"]);
        world.take_away(&path("/r/l")).expect("it is there");
        assert_eq!(world.stands_at(&path("/r/a/b")).map(|_| ()), Ok(()), "it followed the link");
        world.take_away(&path("/r/a")).expect("it is there");
        assert_eq!(world.fingerprint(), before);
    }

    #[test]
    fn what_is_carried_is_the_same_at_another_place() {
        let mut world = World::new(Rules::default());
        let dir = world.put(&path("/r/a"), Thing::Dir).expect("nothing is there");
        world.put(&path("/other"), Thing::Dir).expect("nothing is there");
        world.carry(&path("/r/a"), &path("/other/b")).expect("nothing is there");
        assert_eq!(world.stands_at(&path("/other/b")), Ok(dir));
        assert_eq!(world.stands_at(&path("/r/a")), Err(Errno::ENOENT));
        assert_eq!(world.carry(&path("/other"), &path("/r")), Err(Errno::EEXIST));
    }
}
