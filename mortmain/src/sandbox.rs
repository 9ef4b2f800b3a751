//! A test's directory, at a fixed place (x1–x4).
//!
//! It is called by its tag, and by nothing that changes from run to run, so a suite
//! that is killed leaves one directory a tag, however often that happens: the next
//! run takes it over and empties it. Who uses it holds its `flock`, which the kernel
//! drops at the user's death, and has noted in it where in the source it was taken.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::remove::wipe;
use crate::root::{open_own, still_named};
use crate::sweep::is_foreign;
use crate::sys::{Errno, Fd, Kernel, KernelExt, Lasting, Name, PathBytes, Probed, Whoami};

/// Where it is noted who uses it: a link, whose text is the place in the source.
const USER: &str = "user";

/// What the test is given.
const FILES: &str = "files";

/// The longest note: as long as a link's text may be across the seam.
const SITE_BYTES_MAX: usize = 255;

/// Rounds of taking a directory, each of which its last user has cost it by removing
/// it just then.
const ROUNDS: u32 = 16;

const OPERATION: &str = "take the test directory";

/// A test's directory. Dropping it removes it.
///
/// # Crash behaviour
/// When its user is killed it stays, and the next user of the same place empties it.
#[derive(Debug)]
#[must_use = "a test directory that is dropped is removed at once"]
pub struct Sandbox<K: Kernel> {
    base: Lasting<K>,
    name: Name,
    /// Locked.
    dir: Lasting<K>,
    path: PathBytes,
    owner: Whoami,
}

impl<K: Kernel> Sandbox<K> {
    /// Takes the directory `name` in `base`, which must exist; `site` is the place in
    /// the source where that is said.
    ///
    /// # Errors
    /// * [`ErrorKind::TagInUse`]: somebody has it; the message names both places.
    /// * [`ErrorKind::Obstructed`]: something that is no directory stands there, or
    ///   another user's directory, or something in it must not be removed: a mount, or
    ///   a directory that somebody has locked.
    /// * [`ErrorKind::NoSpace`], [`ErrorKind::System`].
    ///
    /// # Crash behaviour
    /// Killed at any call, the caller leaves a directory that the next one takes.
    pub fn take(kernel: &K, base: &PathBytes, name: Name, site: &str) -> Result<Sandbox<K>, Error> {
        let path = base.join(name.bytes());
        let fail = |errno| Error::system(OPERATION, &path, errno);
        let me = kernel.identity().map_err(fail)?;
        let owner = kernel.whoami().map_err(fail)?;
        let obstructed = |text| Error::because(ErrorKind::Obstructed, OPERATION, &path, text);
        let base = kernel.open_root(base).map_err(fail)?;
        for _ in 0..ROUNDS {
            match base.mkdir(&name) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(errno) => return Err(fail(errno)),
            }
            let dir = match open_own(&base, &name) {
                Ok(dir) => dir,
                Err(Errno::ENOENT) => continue,
                Err(Errno::ENOTDIR | Errno::ELOOP) => {
                    return Err(obstructed("something that is no directory stands there".into()));
                }
                Err(errno) => return Err(fail(errno)),
            };
            let stat = dir.stat().map_err(fail)?;
            // CHECK(x4-own-user): in the system's temporary directory anybody may have made it.
            if is_foreign(&me, stat.uid) {
                return Err(obstructed(format!("it belongs to user {}", stat.uid)));
            }
            // Unlocked again, not only closed, if it is not kept.
            let asked = Probed::new(dir);
            // CHECK(x1-one-user): two tests would work in one directory, and one of them empty it.
            match asked.lock() {
                Ok(()) => {}
                Err(Errno::EAGAIN) => return Err(in_use(&path, asked.fd(), site)),
                Err(errno) => return Err(fail(errno)),
            }
            let dir = asked.fd();
            let named = still_named(&base, &name, dir);
            // CHECK(x1-same-directory): its last user may have removed it just before the lock.
            let Some(stat) = named.map_err(fail)? else { continue };
            // CHECK(x2-wiped): what a killed test has left would be found by the next one.
            wipe(dir, &me).map_err(|obstacle| obstructed(format!("{obstacle}")))?;
            let mut site = Vec::from(site.as_bytes());
            site.truncate(SITE_BYTES_MAX);
            dir.symlink(&Name::fixed(USER), &site).map_err(fail)?;
            dir.mkdir(&Name::fixed(FILES)).map_err(fail)?;
            let base_stat = base.stat().map_err(fail)?;
            let (base, dir) = (Lasting::new(base, base_stat), Lasting::new(asked.keep(), stat));
            return Ok(Sandbox { base, name, dir, path, owner });
        }
        let text = format!("in {ROUNDS} rounds somebody removed it each time");
        Err(Error::because(ErrorKind::TagInUse, OPERATION, &path, text))
    }

    /// What the test is given: an empty directory, of mode 0700 less the umask.
    #[must_use]
    pub fn files(&self) -> PathBytes {
        self.path.join(FILES.as_bytes())
    }

    /// Empties and removes it, as far as that goes; what stays is the next user's to
    /// remove.
    fn remove(&self) {
        let kernel = self.base.fd().kernel();
        // CHECK(x3-own-process): a forked child would take the directory from its parent's test.
        if kernel.whoami() != Ok(self.owner) {
            return;
        }
        let (base, dir) = (self.base.fd(), self.dir.fd());
        // CHECK(x3-same-descriptor): the number may be a stranger's by now, who would lose its lock.
        if self.base.still_is() != Ok(true) || self.dir.still_is() != Ok(true) {
            return;
        }
        let Ok(me) = kernel.identity() else { return };
        let is_named = || matches!(still_named(base, &self.name, dir), Ok(Some(_)));
        // CHECK(x3-still-named): who has moved it away wants to keep it.
        let is_ours = is_named();
        if is_ours && wipe(dir, &me).is_ok() && is_named() {
            // What came into it meanwhile stays.
            let _ = base.rmdir(&self.name);
        }
        // CHECK(x1-unlock): a program that the test has left running would keep the tag in use.
        let _ = dir.unlock();
    }
}

impl<K: Kernel> Drop for Sandbox<K> {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Says who uses a directory, as far as that is noted.
fn in_use<K: Kernel>(path: &PathBytes, dir: &Fd<K>, site: &str) -> Error {
    let user = match dir.readlink(&Name::fixed(USER)) {
        Ok(text) => format!("{}", PathBytes(text)),
        Err(_) => String::from("a place that is not noted"),
    };
    let text = format!("it is in use by {user}, and wanted by {site}");
    Error::because(ErrorKind::TagInUse, OPERATION, path, text)
}
