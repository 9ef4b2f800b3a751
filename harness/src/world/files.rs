//! Inodes, directories, open file descriptions and their locks.
//!
//! One tmpfs. An inode lives while a name or an open description refers to it.
//! An exclusive `flock` belongs to an open description: descriptors that a
//! fork copied share it, any of them gives it back, and it falls when the last
//! of them is closed.

use mortmain::sys::{Answer, DirEntry, Errno, FsMagic, Handle, Kind, Name, Pid, Reply, Stat};
use serde::{Deserialize, Serialize};

use super::ids::{FileId, InodeId, Made, MountId};
use super::mounts::Place;
use super::process::INIT;
use super::seen::Holder;
use super::{Moves, World};

/// Magic number of tmpfs, whose locks the protocol believes.
const TMPFS: FsMagic = FsMagic(0x0102_1994);
const DEVICE: u64 = 0x2a;
/// `ESPIPE`, which no rule looks at.
const NO_PLACES: Errno = Errno(29);
/// The user that everything belongs to and every process runs as.
pub(super) const UID: u32 = 1000;

/// What an inode is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Node {
    /// Sorted by name.
    Dir(Vec<(Name, InodeId)>),
    /// With what is written in it.
    File(Box<[u8]>),
    Link(Box<[u8]>),
    Special(Special),
    /// A file of nothing but zeros, which is longer than anybody could read.
    Giant,
    /// A FIFO, at whose other end somebody is who never writes anything.
    HeldFifo,
}

/// What is no directory, file or link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Special {
    /// A FIFO, at whose other end nobody is.
    Fifo,
    /// A socket that nobody listens at.
    Socket,
    /// A device, on a file system that is mounted without any.
    Device,
}

impl Special {
    /// It in a word, for messages.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Special::Fifo => "a FIFO",
            Special::Socket => "a socket",
            Special::Device => "a device",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Inode {
    pub(super) node: Node,
    mode: u32,
    /// How many names stand for it.
    links: u32,
    /// Its `flock`, while it is held.
    lock: Option<Holder>,
    /// When its content was last changed, in seconds since 1970.
    pub(super) modified: u64,
    /// Who gave it another name last, where that can be forgiven.
    moved_by: Option<Pid>,
    /// What is noted of it where there is an adversary.
    notes: Notes,
}

/// What matters of an inode where there is an adversary.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
struct Notes {
    /// Users are given it, and may put into it what they like.
    given: bool,
    /// It is a claim that the adversary has changed a part of.
    excused: bool,
}

/// An open file description.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct OpenFile {
    inode: InodeId,
    /// The mount that it was opened in, if in one.
    mount: Option<MountId>,
    /// How many descriptors refer to it, in all processes.
    refs: u32,
    /// Whether it was opened to be written to, as well.
    writable: bool,
    /// The last name that a listing through it has given.
    listed: Option<Name>,
}

impl OpenFile {
    pub(super) fn inode(&self) -> InodeId {
        self.inode
    }

    pub(super) fn place(&self) -> Place {
        Place { mount: self.mount, inode: self.inode }
    }
}

impl Inode {
    fn new(node: Node, mode: u32, modified: u64) -> Inode {
        Inode {
            node,
            mode,
            links: 1,
            lock: None,
            modified,
            moved_by: None,
            notes: Notes::default(),
        }
    }

    pub(super) fn give(&mut self) {
        self.notes.given = true;
    }

    pub(super) fn is_given(&self) -> bool {
        self.notes.given
    }

    pub(super) fn excuse(&mut self) {
        self.notes.excused = true;
    }

    pub(super) fn is_excused(&self) -> bool {
        self.notes.excused
    }

    /// Who moved it last and may move it back.
    pub(super) fn moved_by(&self) -> Option<Pid> {
        self.moved_by.filter(|_| self.links > 0)
    }

    /// The description that holds its `flock`.
    pub(super) fn lock(&self) -> Option<FileId> {
        self.lock.map(|lock| lock.file)
    }

    pub(super) fn holder(&self) -> Option<Holder> {
        self.lock
    }

    /// Whether no name stands for it any more.
    pub(super) fn is_removed(&self) -> bool {
        self.links == 0
    }

    pub(super) fn mode(&self) -> u32 {
        self.mode
    }

    fn kind(&self) -> Kind {
        match self.node {
            Node::Dir(_) => Kind::Dir,
            Node::File(_) | Node::Giant => Kind::File,
            Node::Link(_) => Kind::Link,
            Node::Special(_) | Node::HeldFifo => Kind::Other,
        }
    }

    /// The names in a directory.
    pub(super) fn entries(&self) -> Answer<&[(Name, InodeId)]> {
        match &self.node {
            Node::Dir(entries) => Ok(entries),
            _ => Err(Errno::ENOTDIR),
        }
    }

    pub(super) fn entry(&self, name: &Name) -> Option<InodeId> {
        let entries = self.entries().ok()?;
        let at = entries.binary_search_by(|(entry, _)| entry.cmp(name)).ok()?;
        Some(entries[at].1)
    }

    fn entries_mut(&mut self) -> &mut Vec<(Name, InodeId)> {
        match &mut self.node {
            Node::Dir(entries) => entries,
            _ => unreachable!("the caller has looked a name up in it"),
        }
    }

    pub(super) fn put(&mut self, name: &Name, inode: InodeId) {
        let entries = self.entries_mut();
        match entries.binary_search_by(|(entry, _)| entry.cmp(name)) {
            Ok(at) => entries[at].1 = inode,
            Err(at) => entries.insert(at, (name.clone(), inode)),
        }
    }

    pub(super) fn take(&mut self, name: &Name) {
        self.entries_mut().retain(|(entry, _)| entry != name);
    }
}

impl World {
    /// The directory `/`, and in it the one root of claims.
    pub(super) fn make_root(&mut self, name: &Name) {
        let [top, root] = [0, 1].map(|nth| InodeId(Made { by: INIT, nth }));
        let names = vec![(name.clone(), root)];
        self.inodes.insert(top, Inode::new(Node::Dir(names), 0o755, self.now));
        self.inodes.insert(root, Inode::new(Node::Dir(Vec::new()), 0o700, self.now));
        self.top = top;
        self.root = root;
    }

    pub(super) fn inode(&self, id: InodeId) -> &Inode {
        self.inodes.get(id).expect("an inode lives while something refers to it")
    }

    pub(super) fn open_file(&self, id: FileId) -> &OpenFile {
        self.files.get(id).expect("a description lives while a descriptor refers to it")
    }

    /// The names in a directory, for judges and messages.
    pub(super) fn names_in(&self, dir: InodeId) -> Vec<(Name, InodeId)> {
        self.inode(dir).entries().map(<[_]>::to_vec).unwrap_or_default()
    }

    /// Opens an inode: a new description, with one descriptor to come.
    pub(super) fn open(&mut self, id: FileId, Place { mount, inode }: Place) {
        let file = OpenFile { inode, mount, refs: 1, writable: false, listed: None };
        self.files.insert(id, file);
    }

    /// Another descriptor for a description.
    pub(super) fn share(&mut self, file: FileId) {
        self.files.update(file, |file| file.refs += 1);
    }

    /// A descriptor less; the last one gives the lock back and frees an inode
    /// that has no name.
    pub(super) fn unshare(&mut self, file: FileId) {
        let OpenFile { inode, refs, .. } = *self.open_file(file);
        if refs > 1 {
            self.files.update(file, |file| file.refs -= 1);
            return;
        }
        self.files.remove(file);
        self.unlock_inode(inode, file);
        self.free_if_unused(inode);
    }

    /// Whether closing a descriptor means nothing to anybody: no other refers
    /// to its description, which holds no lock.
    pub(super) fn is_private_file(&self, pid: Pid, fd: Handle) -> bool {
        self.file_of(pid, fd).is_ok_and(|id| {
            let file = self.open_file(id);
            file.refs == 1 && self.inode(file.inode).lock() != Some(id)
        })
    }

    fn unlock_inode(&mut self, inode: InodeId, file: FileId) {
        if self.inode(inode).lock() == Some(file) {
            self.inodes.update(inode, |inode| inode.lock = None);
        }
    }

    pub(super) fn free_if_unused(&mut self, id: InodeId) {
        let kept = self.inode(id).links > 0 || self.is_mounted(id);
        if !kept && !self.files.iter().any(|(_, file)| file.inode == id) {
            self.inodes.remove(id);
        }
    }

    pub(super) fn lock(&mut self, by: Pid, file: FileId) -> Answer<Reply> {
        let id = self.open_file(file).inode;
        match self.inode(id).lock() {
            Some(holder) if holder == file => {}
            Some(_) => return Err(Errno::EAGAIN),
            None => self.inodes.update(id, |inode| inode.lock = Some(Holder { file, by })),
        }
        Ok(Reply::Done)
    }

    pub(super) fn unlock(&mut self, file: FileId) -> Answer<Reply> {
        self.unlock_inode(self.open_file(file).inode, file);
        Ok(Reply::Done)
    }

    /// What was just made may be written to.
    pub(super) fn make_writable(&mut self, file: FileId) {
        self.files.update(file, |file| file.writable = true);
    }

    /// Whoever took the lock, also when it has ended and others hold it by now: in the initial pid
    /// namespace Linux tells even the number of a process that is long reaped.
    pub(super) fn lock_holder(&self, file: FileId) -> Answer<Reply> {
        let lock = self.inode(self.open_file(file).inode).lock;
        Ok(Reply::Pids(lock.map(|lock| lock.by).into_iter().collect()))
    }

    pub(super) fn read(&self, file: FileId, offset: u64, len: u32) -> Answer<Reply> {
        let bytes = match &self.inode(self.open_file(file).inode).node {
            Node::File(bytes) => bytes,
            Node::Giant => return Ok(Reply::Bytes(vec![0; len as usize])),
            Node::Special(_) | Node::HeldFifo => return Err(NO_PLACES),
            Node::Dir(_) | Node::Link(_) => return Err(Errno::EISDIR),
        };
        // OK because no file here is as long as that.
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        Ok(Reply::Bytes(rest[..rest.len().min(len as usize)].into()))
    }

    pub(super) fn write(&mut self, file: FileId, offset: u64, new: &[u8]) -> Answer<Reply> {
        let OpenFile { inode, writable: true, .. } = *self.open_file(file) else {
            return Err(Errno::EBADF);
        };
        // OK because no file here is as long as that.
        let (from, end) = (offset as usize, offset as usize + new.len());
        let now = self.now;
        self.inodes.update(inode, |inode| {
            let Node::File(bytes) = &mut inode.node else { return Err(Errno::EBADF) };
            let mut whole = bytes.to_vec();
            whole.resize(whole.len().max(end), 0);
            whole[from..end].copy_from_slice(new);
            *bytes = whole.into();
            inode.modified = now;
            Ok(Reply::Number(new.len() as u64))
        })
    }

    fn stat_inode(&self, id: InodeId) -> Stat {
        let inode = self.inode(id);
        Stat { dev: DEVICE, ino: id.0.number(), kind: inode.kind(), mode: inode.mode, uid: UID }
    }

    pub(super) fn stat(&self, file: FileId) -> Answer<Reply> {
        Ok(Reply::Stat(self.stat_inode(self.open_file(file).inode)))
    }

    pub(super) fn stat_at(&self, dir: FileId, name: &Name) -> Answer<Reply> {
        Ok(Reply::Stat(self.stat_inode(self.find_below(dir, name)?.inode)))
    }

    pub(super) fn fs_magic(&self) -> Answer<Reply> {
        Ok(Reply::FsMagic(TMPFS))
    }

    pub(super) fn read_dir(&mut self, file: FileId, restart: bool) -> Answer<Reply> {
        let OpenFile { inode, listed, .. } = self.open_file(file);
        let after = if restart { None } else { listed.clone() };
        let dir = self.inode(*inode);
        let entries = dir.entries()?;
        // What is removed and only held open is not empty, but no directory that could be listed.
        if dir.links == 0 {
            return Err(Errno::ENOENT);
        }
        let entries: Vec<DirEntry> = entries
            .iter()
            .filter(|(name, _)| after.as_ref().is_none_or(|after| name > after))
            .take(self.rules.entries_a_read)
            .map(|(name, id)| DirEntry { name: name.clone(), kind: self.inode(*id).kind() })
            .collect();
        let last = entries.last().map(|entry| entry.name.clone()).or(after);
        if self.open_file(file).listed != last {
            self.files.update(file, |file| file.listed = last);
        }
        Ok(Reply::Entries(entries))
    }

    pub(super) fn readlink(&self, dir: FileId, name: &Name) -> Answer<Reply> {
        match &self.inode(self.find_below(dir, name)?.inode).node {
            Node::Link(text) => Ok(Reply::Bytes(text.to_vec())),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The directory behind a handle, if a name could be made in it.
    fn room_for(&self, dir: FileId, name: &Name) -> Answer<InodeId> {
        let id = self.open_file(dir).inode;
        let dir = self.inode(id);
        dir.entries()?;
        if dir.entry(name).is_some() {
            return Err(Errno::EEXIST);
        }
        // Nothing can be made in a directory that is removed and only held open.
        if dir.links == 0 { Err(Errno::ENOENT) } else { Ok(id) }
    }

    /// Makes an inode that was not there.
    pub(super) fn make(&mut self, id: InodeId, dir: FileId, name: &Name, node: Node) -> Answer<()> {
        let dir = self.room_for(dir, name)?;
        self.make_in(id, dir, name, node);
        Ok(())
    }

    pub(super) fn make_in(&mut self, id: InodeId, dir: InodeId, name: &Name, node: Node) {
        let mode = match node {
            Node::Dir(_) => 0o700,
            Node::File(_) | Node::Giant | Node::Special(_) | Node::HeldFifo => 0o600,
            Node::Link(_) => 0o777,
        };
        self.inodes.insert(id, Inode::new(node, mode, self.now));
        self.change(dir, |dir| dir.put(name, id));
    }

    /// Changes what is in an inode.
    pub(super) fn change(&mut self, inode: InodeId, change: impl FnOnce(&mut Inode)) {
        let now = self.now;
        self.inodes.update(inode, |inode| {
            change(inode);
            inode.modified = now;
        });
    }

    /// When what a name stands for was last changed.
    pub(super) fn modified(&self, dir: FileId, name: &Name) -> Answer<Reply> {
        Ok(Reply::Number(self.inode(self.look_up(dir, name)?).modified))
    }

    pub(super) fn drop_name(&mut self, dir: InodeId, name: &Name, inode: InodeId) {
        self.change(dir, |dir| dir.take(name));
        self.inodes.update(inode, |inode| inode.links -= 1);
        self.free_if_unused(inode);
    }

    pub(super) fn unlink(&mut self, dir: FileId, name: &Name) -> Answer<Reply> {
        let found = self.look_up(dir, name)?;
        if let Node::Dir(_) = self.inode(found).node {
            return Err(Errno::EISDIR);
        }
        self.not_mounted_on(found)?;
        self.drop_name(self.open_file(dir).inode, name, found);
        Ok(Reply::Done)
    }

    pub(super) fn rmdir(&mut self, dir: FileId, name: &Name) -> Answer<Reply> {
        let found = self.look_up(dir, name)?;
        let is_empty = self.inode(found).entries()?.is_empty();
        self.not_mounted_on(found)?;
        if !is_empty {
            return Err(Errno::ENOTEMPTY);
        }
        self.drop_name(self.open_file(dir).inode, name, found);
        Ok(Reply::Done)
    }

    pub(super) fn rename(&mut self, by: Pid, dir: FileId, from: &Name, to: &Name) -> Answer<Reply> {
        let moved = self.look_up(dir, from)?;
        let dir = self.open_file(dir).inode;
        let replaced = self.inode(dir).entry(to);
        if replaced == Some(moved) {
            return Ok(Reply::Done);
        }
        match replaced.map(|replaced| (&self.inode(moved).node, &self.inode(replaced).node)) {
            None | Some((Node::Dir(_), Node::Dir(_))) => {}
            Some((Node::Dir(_), _)) => return Err(Errno::ENOTDIR),
            Some((_, Node::Dir(_))) => return Err(Errno::EISDIR),
            Some(_) => {}
        }
        self.not_mounted_on(moved)?;
        if let Some(replaced) = replaced {
            self.not_mounted_on(replaced)?;
            if matches!(&self.inode(replaced).node, Node::Dir(inside) if !inside.is_empty()) {
                return Err(Errno::ENOTEMPTY);
            }
            self.drop_name(dir, to, replaced);
        }
        self.change(dir, |dir| {
            dir.take(from);
            dir.put(to, moved);
        });
        if self.rules.moves == Moves::ForgivenWhileTheMoverLives {
            self.inodes.update(moved, |inode| inode.moved_by = Some(by));
        }
        Ok(Reply::Done)
    }

    pub(super) fn unseal(&mut self, dir: FileId, name: &Name) -> Answer<Reply> {
        let found = self.find_dir(dir, name)?;
        self.set_mode(found.inode, 0o700);
        Ok(Reply::Done)
    }

    pub(super) fn chmod(&mut self, file: FileId, mode: u32) -> Answer<Reply> {
        let inode = self.open_file(file).inode;
        self.set_mode(inode, mode);
        Ok(Reply::Done)
    }

    fn set_mode(&mut self, inode: InodeId, mode: u32) {
        if self.inode(inode).mode != mode {
            self.inodes.update(inode, |inode| inode.mode = mode);
        }
    }
}
