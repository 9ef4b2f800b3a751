//! By age: what nobody has changed for a day is removed.
//!
//! So do systemd-tmpfiles, tmpreaper and most cron jobs. It needs no co-operation of any program and
//! survives every crash. The age of a directory is that of the newest thing in it.

use mortmain::sys::{Answer, ChildKernel, ChildPlan, Errno, Fd, Kind, Name, PathBytes, Pid};

use crate::design::{Design, Error};
use crate::directory::{Directory, directories, fresh_name, names_in, plain_child, remove_dir_all};
use crate::system::{System, SystemExt as _};

/// What is older is removed, in seconds.
const AGE_MAX: u64 = 24 * 60 * 60;

/// The design.
#[derive(Clone, Copy, Debug)]
pub struct Age;

impl Design for Age {
    type Dir<K: System> = Directory<K>;
    type Started = Pid;

    fn create<K: System>(kernel: &K, root: &PathBytes) -> Result<Directory<K>, Error> {
        Directory::create(kernel, root, fresh_name)
    }

    fn path<K: System>(dir: &Directory<K>) -> PathBytes {
        dir.path()
    }

    fn spawn<K: System>(dir: &mut Directory<K>, program: &mut K::Program) -> Result<Pid, Error> {
        dir.spawn(program, None, b"")
    }

    fn child<C: ChildKernel>(child: &C, plan: &ChildPlan) -> Answer<()> {
        plain_child(child, plan)
    }

    fn wait<K: System>(dir: &mut Directory<K>, command: &Pid) -> Result<(), Error> {
        dir.wait(*command)
    }

    fn end<K: System>(dir: &mut Directory<K>, command: &Pid) -> Result<(), Error> {
        dir.end(*command)
    }

    fn close<K: System>(dir: Directory<K>) -> Result<(), Error> {
        dir.remove()
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
