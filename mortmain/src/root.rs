//! A root: a directory in which claims of one prefix lie.

use alloc::sync::Arc;

use crate::claim::{OWNER, RELEASED};
use crate::error::{Error, ErrorKind};
use crate::evidence::Seen;
use crate::fskind::FsKind;
use crate::grammar::Prefix;
use crate::record::decode_owner;
use crate::sys::{Answer, Errno, Fd, Kernel, KernelExt, Lasting, Name, PathBytes, Stat};

/// An open root. It is opened once, so that a link on the way to it cannot be
/// turned elsewhere later; clones share the descriptor.
#[derive(Debug)]
pub struct Root<K: Kernel> {
    shared: Arc<Shared<K>>,
}

#[derive(Debug)]
struct Shared<K: Kernel> {
    fd: Lasting<K>,
    path: PathBytes,
    prefix: Prefix,
}

impl<K: Kernel> Clone for Root<K> {
    fn clone(&self) -> Root<K> {
        Root { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Kernel> Root<K> {
    /// Opens the directory at `path` as a root for claims of `prefix`.
    ///
    /// # Errors
    /// [`ErrorKind::System`] when there is no such directory or it may not be
    /// read.
    pub fn open(kernel: &K, path: PathBytes, prefix: Prefix) -> Result<Root<K>, Error> {
        let opened = kernel.open_root(&path).and_then(|fd| {
            let stat = fd.stat()?;
            Ok(Lasting::new(fd, stat))
        });
        let fd = opened.map_err(|errno| Error::system("open the root", &path, errno))?;
        Ok(Root { shared: Arc::new(Shared { fd, path, prefix }) })
    }

    /// Its path, as it was given.
    #[must_use]
    pub fn path(&self) -> &PathBytes {
        &self.shared.path
    }

    /// The prefix of its claims.
    #[must_use]
    pub fn prefix(&self) -> &Prefix {
        &self.shared.prefix
    }

    pub(crate) fn fd(&self) -> &Fd<K> {
        self.shared.fd.fd()
    }

    pub(crate) fn kernel(&self) -> &K {
        self.fd().kernel()
    }

    pub(crate) fn path_of(&self, name: &Name) -> PathBytes {
        self.shared.path.join(name.bytes())
    }

    /// Who is recorded as the owner of the claim of this name, for people to
    /// read; `None` where there is no record of it. It proves nothing: in
    /// another pid namespace the number is another process's.
    #[must_use]
    pub fn recorded_owner(&self, name: &Name) -> Option<Seen> {
        let claim = self.prefix().parse(name)?;
        let dir = self.fd().open_dir(name).ok()?;
        let mut texts = [OWNER, RELEASED].into_iter().map(|part| dir.readlink(&Name::fixed(part)));
        let record = decode_owner(&texts.find_map(Answer::ok)?)?;
        let owner = Seen { pid: record.process.pid, program: record.program };
        (record.random == claim.random).then_some(owner)
    }

    /// The kind of file system, if its locks prove anything.
    pub(crate) fn protected(&self) -> Result<FsKind, Error> {
        let operation = "create a claim in";
        let magic =
            self.fd().fs_magic().map_err(|errno| Error::system(operation, self.path(), errno))?;
        // CHECK(c4-listed-file-system): elsewhere a lock may be one of this machine or mount only.
        FsKind::listed(magic)
            .map_err(|text| Error::because(ErrorKind::Unprotected, operation, self.path(), text))
    }
}

/// Opens a directory of a claim, giving it its mode back first where a command
/// took every permission from it.
///
/// Without permissions there would be no handle, so no lock, so no verdict,
/// for ever. The kernel refuses to change what is not ours (h4).
pub(crate) fn open_own<K: Kernel>(dir: &Fd<K>, name: &Name) -> Answer<Fd<K>> {
    match dir.open_dir(name) {
        Err(Errno::EACCES) => {
            // CHECK(h4-unseal-claim): a command could make its claim stay for ever.
            dir.unseal(name)?;
            dir.open_dir(name)
        }
        answer => answer,
    }
}

/// Whether a handle is still what stands at a name (c2): `None` when not.
///
/// Asked after every lock that was taken, and before every removal by name.
/// The handle is open, so its inode number cannot have been reused.
pub(crate) fn still_named<K: Kernel>(
    dir: &Fd<K>,
    name: &Name,
    handle: &Fd<K>,
) -> Answer<Option<Stat>> {
    let held = handle.stat()?;
    match dir.stat_at(name) {
        Ok(named) => Ok(named.same_inode(&held).then_some(held)),
        // A mount on it, a link or nothing: in any case not the handle.
        Err(Errno::ENOENT | Errno::EXDEV | Errno::ELOOP) => Ok(None),
        Err(errno) => Err(errno),
    }
}
