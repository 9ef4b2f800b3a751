//! Mounts of one directory or file over another one, of the same file system, which no device number shows.
//!
//! A mount is met by whoever comes by the name that it is on, in the mount that this name is in: not by
//! those who have open what lies below it, and not from elsewhere. The lookups of the seam enter none
//! (`EXDEV`); the way to a root and an open without care do. What a mount is on is neither removed nor
//! renamed (`EBUSY`), wherever that is tried.
//!
//! A mount can be ended by whoever comes by a name that shows it uppermost, unless something of it is in use
//! (`EBUSY`): an open description, somebody's working directory, or another mount on something in it.
//!
//! There is one mount namespace.

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
    pub(super) fn bind_names(
        &mut self,
        pid: Pid,
        dir: FileId,
        [from, on]: [&Name; 2],
    ) -> Answer<()> {
        let on = self.find_plain(dir, on)?;
        let root = self.find_plain(dir, from)?.inode;
        let id = self.next_mount(pid);
        self.bind(id, root, on)
    }

    /// Lets an inode be seen at a place.
    pub(super) fn bind(&mut self, id: MountId, root: InodeId, on: Place) -> Answer<()> {
        // Nothing can be mounted on what is removed and only seen or held open.
        if self.inode(on.inode).is_removed() {
            return Err(Errno::ENOENT);
        }
        let is_dir = |inode| matches!(self.inode(inode).node, Node::Dir(_));
        if is_dir(root) != is_dir(on.inode) {
            return Err(Errno::ENOTDIR);
        }
        self.mounts.insert(id, Mount { on, root });
        Ok(())
    }

    /// Ends what is mounted uppermost where a name leads, links followed.
    pub(super) fn unbind(&mut self, dir: FileId, on: &Name) -> Answer<()> {
        let at = self.find_plain(dir, on)?;
        self.unmount(at)
    }

    /// Ends the mount of which a place is the root.
    pub(super) fn unmount(&mut self, at: Place) -> Answer<()> {
        let id = at.mount.ok_or(Errno::EINVAL)?;
        // OK because whoever is in a mount keeps it.
        let Mount { root, .. } = *self.mounts.get(id).expect("it is mounted");
        if at.inode != root {
            return Err(Errno::EINVAL);
        }
        let in_it = |place: Place| place.mount == Some(id);
        let open = self.files.iter().any(|(_, file)| in_it(file.place()));
        let above = self.mounts.iter().any(|(_, mount)| in_it(mount.on));
        if open || above || self.anybody_works(in_it) {
            return Err(Errno::EBUSY);
        }
        self.end_mount(id);
        Ok(())
    }

    /// Ends all mounts, whoever is in them.
    pub(crate) fn end_mounts(&mut self) {
        for id in self.mounts.iter().map(|(id, _)| id).collect::<Vec<_>>() {
            self.end_mount(id);
        }
    }

    fn end_mount(&mut self, id: MountId) {
        let root = self.mounts.get(id).map(|mount| mount.root);
        self.mounts.remove(id);
        // It may have had no other place.
        root.into_iter().for_each(|root| self.free_if_unused(root));
    }
}
