//! Making a claim (c1–c4).
//!
//! A claim is made under a name that its users never see, is locked before
//! there is anything in it, and gets its published name as the last step. So
//! no sweep can meet a published claim whose owner does not hold the lease
//! yet, and whatever is left of a creator that was killed is a prefix of
//! (owner, commands, files), which any sweep can judge.

use crate::claim::{COMMANDS, Claim, FILES, OWNER};
use crate::error::{Error, ErrorKind};
use crate::fskind::FsKind;
use crate::grammar::Random;
use crate::probe::CONDEMNED_MODE;
use crate::record::{OwnerRecord, encode_owner};
use crate::root::{Root, open_own, still_named};
use crate::sys::{Answer, Errno, Fd, Identity, Kernel, KernelExt, Lasting, Name, Probed};

/// Attempts at a claim before a creator gives up. Each is lost only to a sweep
/// that came between two of its calls, or to a name that was taken.
const ATTEMPTS: u32 = 16;

const OPERATION: &str = "create a claim in";

/// What became of one attempt.
enum Attempt<K: Kernel> {
    Made(Claim<K>),
    /// A sweep took the staging, or the name was taken.
    Lost,
}

impl<K: Kernel> Root<K> {
    /// Makes a claim, owned by the calling process.
    ///
    /// # Errors
    /// * [`ErrorKind::Unprotected`]: locks do not work there, or may not reach
    ///   every process that uses the directory.
    /// * [`ErrorKind::NoSpace`]: the file system is full.
    /// * [`ErrorKind::Contended`]: every attempt lost its staging to a sweep.
    /// * [`ErrorKind::System`]: another call failed.
    ///
    /// # Crash behaviour
    /// Killed at any call, the caller leaves a staging or a claim that the next
    /// sweep removes. A creation that fails has removed what it made, as far
    /// as the failing system let it.
    pub fn create(&self) -> Result<Claim<K>, Error> {
        let fail = |errno| Error::system(OPERATION, self.path(), errno);
        let me = self.kernel().identity().map_err(fail)?;
        let fs = self.protected()?;
        for _ in 0..ATTEMPTS {
            if let Attempt::Made(claim) = self.attempt(&me, fs)? {
                return Ok(claim);
            }
        }
        let text = alloc::format!("{ATTEMPTS} attempts met a sweep each time");
        Err(Error::because(ErrorKind::Contended, OPERATION, self.path(), text))
    }

    fn attempt(&self, me: &Identity, fs: FsKind) -> Result<Attempt<K>, Error> {
        let fail = |errno| Error::system(OPERATION, self.path(), errno);
        let random = Random::fresh(self.kernel()).map_err(fail)?;
        let staging = self.prefix().staging(&random);
        match self.fd().mkdir(&staging) {
            Ok(()) => {}
            Err(Errno::EEXIST) => return Ok(Attempt::Lost),
            // The directory may be there all the same; it is empty, and ours by its name.
            Err(errno) => {
                let _ = self.fd().rmdir(&staging);
                return Err(fail(errno));
            }
        }
        match self.furnish(me, fs, random, &staging) {
            Ok(Some(claim)) => Ok(Attempt::Made(claim)),
            Ok(None) => {
                let _ = self.fd().rmdir(&staging);
                Ok(Attempt::Lost)
            }
            Err(error) => {
                // CHECK(c4-leave-no-staging): until somebody sweeps, each try would leave one more.
                let _ = self.fd().rmdir(&staging);
                Err(error)
            }
        }
    }

    /// Gives the directories the mode that an odd umask took from them.
    fn unmask(&self, staging: &Name, dir: &Fd<K>) -> Answer<()> {
        self.fd().unseal(staging)?;
        dir.unseal(&Name::fixed(COMMANDS))?;
        dir.unseal(&Name::fixed(FILES))
    }

    /// Locks and fills a staging and publishes it; `None` when it was lost.
    fn furnish(
        &self,
        me: &Identity,
        fs: FsKind,
        random: Random,
        staging: &Name,
    ) -> Result<Option<Claim<K>>, Error> {
        let fail = |errno| Error::system(OPERATION, self.path(), errno);
        // An odd umask takes permissions from what is made, and without them there is no handle.
        let (sealed, opened) = match self.fd().open_dir(staging) {
            Err(Errno::EACCES) => (true, open_own(self.fd(), staging)),
            answer => (false, answer),
        };
        let dir = match opened {
            Err(Errno::ENOENT) => return Ok(None),
            answer => answer.map_err(fail)?,
        };
        // Unlocked again, not only closed, if this attempt is given up.
        let lease = match Probed::ask(dir) {
            Ok(lease) => lease,
            Err(Errno::EAGAIN) => return Ok(None),
            // CHECK(c4-locks-work): a claim whose lock cannot be taken would be unprotected.
            Err(errno @ (Errno::ENOLCK | Errno::ENOSYS | Errno::EOPNOTSUPP | Errno::EBADF)) => {
                return Err(Error::of_kind(ErrorKind::Unprotected, OPERATION, self.path(), errno));
            }
            Err(errno) => return Err(fail(errno)),
        };
        let named = still_named(self.fd(), staging, lease.fd()).map_err(fail)?;
        // CHECK(c2-creator): a sweep may have renamed the directory before we had the lock.
        let Some(stat) = named else { return Ok(None) };
        // CHECK(h1-own-staging): what somebody else put in its place is somebody else's.
        if stat.uid != me.uid {
            return Ok(None);
        }
        let masked = sealed || stat.mode & 0o777 != 0o700;
        let published = self.prefix().published(&random);
        let owner = OwnerRecord {
            random,
            process: me.process,
            home: me.home,
            fs,
            program: me.program.clone(),
        };
        let filled = fill(lease.fd(), &owner)
            .and_then(|()| if masked { self.unmask(staging, lease.fd()) } else { Ok(()) });
        let done = filled.and_then(|()| {
            // CHECK(c3-publish): under the staging's name no user would find it, and no judge
            // would miss its parts.
            self.fd().rename(staging, &published)
        });
        match done {
            Ok(()) => {
                let lease = Lasting::new(lease.keep(), stat);
                Ok(Some(Claim::new(self.clone(), me, random, published, lease)))
            }
            Err(errno) => {
                // The rename may have been done although it failed: then it loses its parts now
                // under the name of a claim.
                let done = still_named(self.fd(), &published, lease.fd());
                // CHECK(c4-condemn-first): a claim without its parts is damage, and stays for ever.
                let may_empty =
                    matches!(done, Ok(None)) || lease.fd().chmod(CONDEMNED_MODE).is_ok();
                if may_empty {
                    // CHECK(c4-leave-nothing): its record names who lives, so that no sweep would take
                    // it.
                    abandon(lease.fd());
                }
                if matches!(done, Ok(Some(_))) {
                    let _ = self.fd().rmdir(&published);
                }
                match errno {
                    Errno::EEXIST | Errno::ENOTEMPTY => Ok(None),
                    _ => Err(fail(errno)),
                }
            }
        }
    }
}

/// Puts the parts into a staging, in the order that every judge relies on.
fn fill<K: Kernel>(dir: &Fd<K>, owner: &OwnerRecord) -> Answer<()> {
    // CHECK(c1-owner-first): a published claim without its record could never be judged.
    dir.symlink(&Name::fixed(OWNER), &encode_owner(owner)?)?;
    dir.mkdir(&Name::fixed(COMMANDS))?;
    dir.mkdir(&Name::fixed(FILES))
}

/// Takes the parts out again, in the reverse order, as far as that goes.
fn abandon<K: Kernel>(dir: &Fd<K>) {
    // What fails here is left to a sweep, which judges it as it judges a creator that was killed.
    let _ = dir.rmdir(&Name::fixed(FILES));
    let _ = dir.rmdir(&Name::fixed(COMMANDS));
    let _ = dir.unlink(&Name::fixed(OWNER));
}
