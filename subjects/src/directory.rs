//! What most of the designs share: names, plain children, and a removal as standard libraries do it.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use mortmain::sys::{
    Answer, ChildKernel, ChildPlan, Errno, Fd, Handle, Home, IdName, Kernel, KernelExt, Kind, Name,
    PathBytes, Pid, Process, ProcessId, Wait,
};

use crate::design::{Design, Error};
use crate::system::System;

/// What the names of all directories begin with.
pub(crate) const PREFIX: &str = "p-";

/// A directory that its owner knows by its name in an open root.
#[derive(Debug)]
pub struct Directory<K: System> {
    pub(crate) root: Fd<K>,
    pub(crate) root_path: PathBytes,
    pub(crate) name: Name,
}

impl<K: System> Directory<K> {
    /// Makes a directory of a fresh name.
    pub(crate) fn create(
        kernel: &K,
        root_path: &PathBytes,
        fresh: impl FnOnce(&K) -> Answer<Name>,
    ) -> Result<Directory<K>, Error> {
        let made = kernel.open_root(root_path).and_then(|root| {
            let name = fresh(kernel)?;
            root.mkdir(&name)?;
            Ok(Directory { root, root_path: root_path.clone(), name })
        });
        made.map_err(Error::of("create a directory in", root_path))
    }

    pub(crate) fn kernel(&self) -> &K {
        self.root.kernel()
    }

    pub(crate) fn path(&self) -> PathBytes {
        self.root_path.join(self.name.bytes())
    }

    /// Removes it with all that is in it.
    pub(crate) fn remove(self) -> Result<(), Error> {
        remove_dir_all(&self.root, &self.name).map_err(Error::of("remove", &self.path()))
    }

    /// Starts a command whose entry the child does not make itself.
    pub(crate) fn spawn(
        &self,
        program: &mut K::Program,
        lease: Option<&Fd<K>>,
        cookie: &[u8],
    ) -> Result<Pid, Error> {
        let plan = plan(lease.map(Fd::raw), cookie);
        let spawned = self.kernel().spawn(program, &plan);
        spawned.map_err(Error::of("start a command in", &self.path()))
    }

    /// Waits for the end of a command and reaps it.
    pub(crate) fn wait(&self, command: Pid) -> Result<(), Error> {
        let waited = self.kernel().reap(command, Wait::Forever);
        waited.map(|_| ()).map_err(Error::of("wait for a command in", &self.path()))
    }

    /// Kills the group of a command and reaps the command.
    pub(crate) fn end(&self, command: Pid) -> Result<(), Error> {
        let killed = self.kernel().kill_group(command);
        killed.map_err(Error::of("end a command in", &self.path()))?;
        self.wait(command)
    }
}

/// A design whose owner keeps nothing but the name of its directory.
pub trait Named: 'static {
    /// A name that nobody has.
    ///
    /// # Errors
    /// The kernel's.
    fn fresh_name<K: System>(kernel: &K) -> Answer<Name>;

    /// What the commands of a directory carry in their environment.
    fn mark(_name: &Name) -> &[u8] {
        b""
    }

    /// As [`Design::close`]: it is removed, if nothing else is said.
    ///
    /// # Errors
    /// As there.
    fn close<K: System>(dir: Directory<K>) -> Result<(), Error> {
        dir.remove()
    }

    /// As [`Design::sweep`].
    ///
    /// # Errors
    /// As there.
    fn sweep<K: System>(kernel: &K, root: &PathBytes) -> Result<(), Error>;
}

impl<N: Named> Design for N {
    type Dir<K: System> = Directory<K>;
    type Started = Pid;

    fn create<K: System>(kernel: &K, root: &PathBytes) -> Result<Directory<K>, Error> {
        Directory::create(kernel, root, N::fresh_name)
    }

    fn path<K: System>(dir: &Directory<K>) -> PathBytes {
        dir.path()
    }

    fn spawn<K: System>(dir: &mut Directory<K>, program: &mut K::Program) -> Result<Pid, Error> {
        Directory::spawn(dir, program, None, N::mark(&dir.name))
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
        N::close(dir)
    }

    fn sweep<K: System>(kernel: &K, root: &PathBytes) -> Result<(), Error> {
        N::sweep(kernel, root)
    }
}

/// A name that nobody has: `p-<random>`.
pub(crate) fn fresh_name<K: System>(kernel: &K) -> Answer<Name> {
    named(&format!("{PREFIX}{:016x}", kernel.random()?))
}

/// A name that nobody has and that says whose it is: `p-<pid>-<start ticks>-<random>`.
pub(crate) fn fresh_owned_name<K: System>(kernel: &K) -> Answer<Name> {
    let ProcessId { pid, start_ticks, .. } = kernel.identity()?.process;
    named(&format!("{PREFIX}{}-{start_ticks}-{:016x}", pid.0, kernel.random()?))
}

fn named(text: &str) -> Answer<Name> {
    Name::new(text.as_bytes()).ok_or(Errno::EINVAL)
}

/// A process as a text has it: `<pid>-<start ticks>`.
pub(crate) fn process_text(process: ProcessId) -> Vec<u8> {
    format!("{}-{}", process.pid.0, process.start_ticks).into_bytes()
}

/// The process that a text of [`process_text`], or what follows one in a name, says.
pub(crate) fn process_in(text: &[u8]) -> Option<(Pid, u64)> {
    let text = core::str::from_utf8(text).ok()?;
    let mut parts = text.split('-');
    Some((Pid(parts.next()?.parse().ok()?), parts.next()?.parse().ok()?))
}

/// The owner that a name of [`fresh_owned_name`] says.
pub(crate) fn owner_in(name: &Name) -> Option<(Pid, u64)> {
    process_in(name.bytes().strip_prefix(PREFIX.as_bytes())?)
}

/// Whether a process has ended: its number is free, or is another one's, or it is a zombie. What
/// cannot be found out keeps.
pub(crate) fn has_ended<K: System>(kernel: &K, (pid, start_ticks): (Pid, u64)) -> bool {
    match kernel.process_exists(pid) {
        Err(Errno::ESRCH) => return true,
        Err(_) => return false,
        Ok(()) => {}
    }
    let shown = kernel.process(pid);
    shown.is_ok_and(|shown: Process| shown.start_ticks != start_ticks || shown.ended())
}

/// Opens a root and lists the directories of the design in it.
pub(crate) fn directories<K: System>(
    kernel: &K,
    path: &PathBytes,
) -> Result<(Fd<K>, Vec<Name>), Error> {
    let opened = kernel.open_root(path).and_then(|root| {
        let names = names_in(&root)?;
        Ok((root, names))
    });
    let (root, names) = opened.map_err(Error::of("sweep", path))?;
    let ours = names.into_iter().filter(|(name, _)| name.bytes().starts_with(PREFIX.as_bytes()));
    Ok((root, ours.map(|(name, _)| name).collect()))
}

/// Everything in a directory.
pub(crate) fn names_in<K: Kernel>(dir: &Fd<K>) -> Answer<Vec<(Name, Kind)>> {
    let mut names = Vec::new();
    let mut restart = true;
    loop {
        let entries = dir.read_dir(restart)?;
        restart = false;
        if entries.is_empty() {
            return Ok(names);
        }
        names.extend(entries.into_iter().map(|entry| (entry.name, entry.kind)));
    }
}

/// Removes a directory with all that is in it, in the order of its listing, as `remove_dir_all` of a
/// standard library does. What somebody else has removed is removed.
pub(crate) fn remove_dir_all<K: Kernel>(parent: &Fd<K>, name: &Name) -> Answer<()> {
    match parent.open_dir(name) {
        Ok(dir) => empty(&dir, &[])?,
        Err(Errno::ENOENT) => return Ok(()),
        Err(errno) => return Err(errno),
    }
    gone(parent.rmdir(name))
}

/// Removes all that is in a directory but some names.
pub(crate) fn empty<K: Kernel>(dir: &Fd<K>, but: &[&Name]) -> Answer<()> {
    for (name, kind) in names_in(dir)? {
        match kind {
            _ if but.contains(&&name) => {}
            Kind::Dir => remove_dir_all(dir, &name)?,
            _ => gone(dir.unlink(&name))?,
        }
    }
    Ok(())
}

/// What is not there is removed.
pub(crate) fn gone(removed: Answer<()>) -> Answer<()> {
    match removed {
        Err(Errno::ENOENT) => Ok(()),
        answer => answer,
    }
}

/// A child that makes a group of its own and nothing else, as most runners have it.
pub(crate) fn plain_child<C: ChildKernel>(child: &C, _plan: &ChildPlan) -> Answer<()> {
    child.new_group()
}

/// A child that inherits the lease of its directory as well.
pub(crate) fn leased_child<C: ChildKernel>(child: &C, plan: &ChildPlan) -> Answer<()> {
    plain_child(child, plan)?;
    child.keep_over_exec(plan.lock)
}

/// A plan without the parts that only the protocol's own child reads.
fn plan(lease: Option<Handle>, cookie: &[u8]) -> ChildPlan {
    ChildPlan {
        commands: Handle(-1),
        id_name: IdName::new(0),
        lock: lease.unwrap_or(Handle(-1)),
        home: Home { boot: [0; 16], pid_ns: 0, time_ns: 0 },
        uid: 0,
        gid: 0,
        cookie: Box::from(cookie),
    }
}
