//! From names and paths to inodes, and back.
//!
//! The lookups of the seam are of one name below an open directory, follow nothing and enter no mount. Two
//! others do: the way to a root, which is its caller's choice, and an open without any care, which the seam
//! does not have and other designs may make.

use mortmain::sys::{Answer, Errno, Name, PathBytes};

use super::World;
use super::files::{Node, Special};
use super::ids::{FileId, InodeId};
use super::mounts::Place;

/// Links that one lookup follows at most.
const LINKS_MAX: u32 = 40;
/// `ENXIO`, which no rule looks at.
const NOBODY_LISTENS: Errno = Errno(6);

impl World {
    /// What an absolute path leads to, with all links on the way followed, and all mounts entered.
    pub(super) fn resolve(&self, path: &PathBytes) -> Answer<Place> {
        // A name of somebody's working directory is asked for by nobody.
        if path.0.starts_with(b"/") {
            self.resolve_from(self.outermost(), &path.0, &mut { LINKS_MAX })
        } else {
            Err(Errno::ENOENT)
        }
    }

    fn outermost(&self) -> Place {
        Place { mount: None, inode: self.top }
    }

    /// What a path leads to that stands in a directory, and may lead through so many links more.
    fn resolve_from(&self, dir: Place, path: &[u8], links: &mut u32) -> Answer<Place> {
        let mut at = if path.starts_with(b"/") { self.outermost() } else { dir };
        for part in path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
            let name = Name::new(part).ok_or(Errno::EINVAL)?;
            self.inode(at.inode).entries()?;
            let found = self.inode(at.inode).entry(&name).ok_or(Errno::ENOENT)?;
            at = match &self.inode(found).node {
                Node::Link(text) => {
                    *links = links.checked_sub(1).ok_or(Errno::ELOOP)?;
                    self.resolve_from(at, text, links)?
                }
                _ => self.crossed(Place { inode: found, ..at }),
            };
        }
        Ok(at)
    }

    /// The inode of a name in an open directory.
    pub(super) fn look_up(&self, dir: FileId, name: &Name) -> Answer<InodeId> {
        let dir = self.inode(self.open_file(dir).inode());
        dir.entries()?;
        dir.entry(name).ok_or(Errno::ENOENT)
    }

    /// What a name in an open directory stands for, if nothing is mounted on it.
    pub(super) fn find_below(&self, dir: FileId, name: &Name) -> Answer<Place> {
        let inode = self.look_up(dir, name)?;
        self.uncrossed(Place { inode, ..self.open_file(dir).place() })
    }

    pub(super) fn open_path(&self, path: &PathBytes) -> Answer<Place> {
        let found = self.resolve(path)?;
        self.inode(found.inode).entries()?;
        Ok(found)
    }

    pub(super) fn find_dir(&self, dir: FileId, name: &Name) -> Answer<Place> {
        let found = self.find_below(dir, name)?;
        match self.inode(found.inode).node {
            Node::Dir(_) => Ok(found),
            // Linux says so of a link as well when it is asked for a directory and not to follow.
            _ => Err(Errno::ENOTDIR),
        }
    }

    pub(super) fn find_file(&self, dir: FileId, name: &Name) -> Answer<Place> {
        let found = self.find_below(dir, name)?;
        match self.inode(found.inode).node {
            Node::Dir(_) => Err(Errno::EISDIR),
            Node::File(_) | Node::Giant => Ok(found),
            Node::Link(_) => Err(Errno::ELOOP),
            // It is looked at before it is opened.
            Node::Special(_) | Node::HeldFifo => Err(Errno::EINVAL),
        }
    }

    /// What a name stands for to whoever opens it for reading and asks for nothing else.
    pub(super) fn find_plain(&self, dir: FileId, name: &Name) -> Answer<Place> {
        self.resolve_from(self.open_file(dir).place(), name.bytes(), &mut { LINKS_MAX })
    }

    /// The same, once it can be opened.
    pub(super) fn find_to_read(&self, dir: FileId, name: &Name) -> Answer<Place> {
        let found = self.find_plain(dir, name)?;
        match self.inode(found.inode).node {
            Node::Special(Special::Socket) => Err(NOBODY_LISTENS),
            // As most temp directories, it is mounted so that no device in it does anything.
            Node::Special(Special::Device) => Err(Errno::EACCES),
            _ => Ok(found),
        }
    }

    /// Whether opening a name for reading waits: at a FIFO, until somebody opens it for writing,
    /// which nobody here does.
    pub(super) fn waits_to_read(&self, dir: FileId, name: &Name) -> bool {
        self.find_plain(dir, name)
            .is_ok_and(|found| matches!(self.inode(found.inode).node, Node::Special(Special::Fifo)))
    }

    /// The path of an open description below the root of claims, or an empty one
    /// where it has none (any more).
    pub(super) fn path_of(&self, file: FileId) -> PathBytes {
        self.path_to(self.open_file(file).place()).unwrap_or_default()
    }

    /// The same of a place.
    pub(super) fn path_to(&self, at: Place) -> Option<PathBytes> {
        let Some(mount) = at.mount.and_then(|id| self.mounts.get(id)) else {
            return self.path_below(self.root, &PathBytes::from(&b"/"[..]), at.inode);
        };
        let on = self.path_to(mount.on)?;
        if at.inode == mount.root { Some(on) } else { self.path_below(mount.root, &on, at.inode) }
    }

    fn path_below(&self, dir: InodeId, path: &PathBytes, wanted: InodeId) -> Option<PathBytes> {
        let entries = self.inode(dir).entries().ok()?;
        entries.iter().find_map(|(name, inode)| {
            let path = path.join(name.bytes());
            if *inode == wanted { Some(path) } else { self.path_below(*inode, &path, wanted) }
        })
    }

    /// Whether an open description is of something in a directory in the root of
    /// claims. It stays so for as long as it has a name: a rename leaves a name
    /// in its directory.
    pub(super) fn is_below_claims(&self, file: FileId) -> bool {
        // The slash that it begins with is no other.
        self.path_of(file).0.iter().filter(|byte| **byte == b'/').count() > 1
    }
}
