//! By age: what nobody has changed for a day is removed.
//!
//! So do systemd-tmpfiles, tmpreaper and most cron jobs. It needs no co-operation of any program and
//! survives every crash. The age of a directory is that of the newest thing in it.

use mortmain::sys::{Answer, Errno, Fd, Kind, Name, PathBytes};

use crate::design::Error;
use crate::directory::{Named, directories, fresh_name, names_in, remove_dir_all};
use crate::system::{System, SystemExt as _};

/// What is older is removed, in seconds.
const AGE_MAX: u64 = 24 * 60 * 60;

/// The design.
#[derive(Clone, Copy, Debug)]
pub struct Age;

impl Named for Age {
    fn fresh_name<K: System>(kernel: &K) -> Answer<Name> {
        fresh_name(kernel)
    }

    fn sweep<K: System>(kernel: &K, path: &PathBytes) -> Result<(), Error> {
        // Once, and first: what is changed while the sweep goes on is young.
        let now = kernel.now().map_err(Error::of("read the clock to sweep", path))?;
        let (root, names) = directories(kernel, path)?;
        for name in names {
            let newest = newest_in(&root, &name, Kind::Dir);
            if newest.is_ok_and(|newest| now.saturating_sub(newest) > AGE_MAX) {
                // What is left is older still at the next sweep.
                let _ = remove_dir_all(&root, &name);
            }
        }
        Ok(())
    }
}

/// When the newest of a name and all below it was last changed.
fn newest_in<K: System>(parent: &Fd<K>, name: &Name, kind: Kind) -> Answer<u64> {
    let mut newest = parent.kernel().modified(parent, name)?;
    if kind == Kind::Dir {
        let dir = parent.open_dir(name)?;
        for (name, kind) in names_in(&dir)? {
            match newest_in(&dir, &name, kind) {
                Ok(other) => newest = newest.max(other),
                // It went meanwhile.
                Err(Errno::ENOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(newest)
}
