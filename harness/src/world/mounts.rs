//! Mounts of one directory or file over another one, of the same file system, which no device number shows.
//!
//! A mount is met by whoever comes by the name that it is on, in the mount that this name is in: not by
//! those who have open what lies below it, and not from elsewhere. The lookups of the seam enter none
//! (`EXDEV`); the way to a root and an open without care do. What a mount is on is neither removed nor
//! renamed (`EBUSY`), wherever that is tried.
//!
//! There is one mount namespace, and nothing is ever unmounted.

use mortmain::sys::{Answer, Errno, MountView, Name, PathBytes, Pid};

use super::World;
use super::files::Node;
use super::ids::{FileId, InodeId, MountId};

/// What a path leads to: an inode, in the mount by which it was come to, if by one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Place {
    pub(super) mount: Option<MountId>,
    pub(super) inode: InodeId,
}

/// A mount.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Mount {
    /// What it hides.
    pub(super) on: Place,
    /// What is seen there.
    pub(super) root: InodeId,
}

impl World {
    /// What is seen at a place: the uppermost of what is mounted there.
    pub(super) fn crossed(&self, at: Place) -> Place {
        let upper = self.mounts.iter().find(|(_, mount)| mount.on == at);
        upper.map_or(at, |(id, mount)| self.crossed(Place { mount: Some(id), inode: mount.root }))
    }

    /// Refuses a place that something is mounted on.
    pub(super) fn uncrossed(&self, at: Place) -> Answer<Place> {
        if self.crossed(at) == at { Ok(at) } else { Err(Errno::EXDEV) }
    }

    /// Refuses what something is mounted on, wherever that is seen.
    pub(super) fn not_mounted_on(&self, inode: InodeId) -> Answer<()> {
        match self.mounts.iter().any(|(_, mount)| mount.on.inode == inode) {
            true => Err(Errno::EBUSY),
            false => Ok(()),
        }
    }

    /// Whether something is seen elsewhere, too.
    pub(super) fn is_mounted(&self, inode: InodeId) -> bool {
        self.mounts.iter().any(|(_, mount)| mount.root == inode)
    }

    /// The mounts as every process sees them, if there are any.
    pub(super) fn mount_view(&self) -> Option<MountView> {
        let root = PathBytes::from(&b"/"[..]);
        (!self.mounts.is_empty()).then_some(MountView { namespace: 1, root })
    }

    /// Where what is mounted lies below the root of claims.
    pub(super) fn mounted_paths(&self) -> Vec<PathBytes> {
        let roots = self.mounts.iter().map(|(_, mount)| mount.root);
        roots.filter_map(|inode| self.path_to(Place { mount: None, inode })).collect()
    }

    /// Lets what one name stands for be seen at another one, links followed.
    pub(super) fn bind(&mut self, pid: Pid, dir: FileId, from: &Name, on: &Name) -> Answer<()> {
        let on = self.find_plain(dir, on)?;
        let root = self.find_plain(dir, from)?.inode;
        // Nothing can be mounted on what is removed and only seen or held open.
        if self.inode(on.inode).is_removed() {
            return Err(Errno::ENOENT);
        }
        let is_dir = |inode| matches!(self.inode(inode).node, Node::Dir(_));
        if is_dir(root) != is_dir(on.inode) {
            return Err(Errno::ENOTDIR);
        }
        let id = self.next_mount(pid);
        self.mounts.insert(id, Mount { on, root });
        Ok(())
    }
}
