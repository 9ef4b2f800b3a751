//! By a marker and a registry in the directory: what says that its owner and its commands have
//! ended is removed.
//!
//! So do tools that keep a `.pid` file beside their data. The owner writes who it is into a file in
//! the directory, and for every command that it has started a file that names it, which it takes
//! away when it has reaped the command. A directory without a whole marker is left alone: somebody
//! may be making it.

use alloc::vec::Vec;

use mortmain::sys::{
    Answer, ChildKernel, ChildPlan, Errno, Fd, KernelExt as _, Name, PathBytes, Pid, ProcessId,
};

use crate::design::{Design, Error};
use crate::directory::{
    Directory, directories, fresh_name, gone, has_ended, names_in, plain_child, process_in,
    process_text, remove_dir_all,
};
use crate::system::System;

/// Name of the file that says who the owner is.
const OWNER: &str = "owner";
/// Bytes of the marker that are read; the numbers in it take fewer.
const MARKER_BYTES_MAX: u32 = 64;
/// What the name of a command's entry begins with.
const COMMAND: &[u8] = b"command-";

/// The design.
#[derive(Clone, Copy, Debug)]
pub struct Marker;

/// A directory with its marker.
#[derive(Debug)]
pub struct Marked<K: System> {
    dir: Directory<K>,
    inside: Fd<K>,
}

/// A command with its entry.
#[derive(Debug)]
pub struct Entered {
    command: Pid,
    entry: Name,
}

impl Design for Marker {
    type Dir<K: System> = Marked<K>;
    type Started = Entered;

    fn create<K: System>(kernel: &K, root: &PathBytes) -> Result<Marked<K>, Error> {
        let dir = Directory::create(kernel, root, fresh_name)?;
        let marked = kernel.identity().and_then(|me| {
            let inside = dir.root.open_dir(&dir.name)?;
            let marker = inside.create_file(&Name::fixed(OWNER))?;
            marker.write(0, &process_text(me.process))?;
            Ok(inside)
        });
        let inside = marked.map_err(Error::of("mark", &dir.path()))?;
        Ok(Marked { dir, inside })
    }

    fn path<K: System>(dir: &Marked<K>) -> PathBytes {
        dir.dir.path()
    }

    /// The entry comes after the spawn: only then is there a number to name it by.
    fn spawn<K: System>(dir: &mut Marked<K>, program: &mut K::Program) -> Result<Entered, Error> {
        let command = dir.dir.spawn(program, None, b"")?;
        let entry = dir.inside.kernel().process(command).and_then(|shown| {
            let process = ProcessId { pid: command, start_ticks: shown.start_ticks, pidfs: 0 };
            let name = [COMMAND, &process_text(process)].concat();
            let entry = Name::new(&name).ok_or(Errno::EINVAL)?;
            dir.inside.create_file(&entry)?;
            Ok(entry)
        });
        match entry {
            Ok(entry) => Ok(Entered { command, entry }),
            Err(errno) => {
                // It must not run without an entry.
                dir.dir.end(command)?;
                Err(Error::of("enter a command of", &dir.dir.path())(errno))
            }
        }
    }

    fn child<C: ChildKernel>(child: &C, plan: &ChildPlan) -> Answer<()> {
        plain_child(child, plan)
    }

    fn wait<K: System>(dir: &mut Marked<K>, started: &Entered) -> Result<(), Error> {
        dir.dir.wait(started.command)?;
        withdraw(dir, &started.entry)
    }

    fn end<K: System>(dir: &mut Marked<K>, started: &Entered) -> Result<(), Error> {
        dir.dir.end(started.command)?;
        withdraw(dir, &started.entry)
    }

    fn close<K: System>(dir: Marked<K>) -> Result<(), Error> {
        dir.dir.remove()
    }

    fn sweep<K: System>(kernel: &K, root: &PathBytes) -> Result<(), Error> {
        let (root, names) = directories(kernel, root)?;
        for name in names {
            if is_left(&root, &name).unwrap_or(false) {
                // What is left is for the next sweep.
                let _ = remove_dir_all(&root, &name);
            }
        }
        Ok(())
    }
}

fn withdraw<K: System>(dir: &Marked<K>, entry: &Name) -> Result<(), Error> {
    gone(dir.inside.unlink(entry)).map_err(Error::of("withdraw a command of", &dir.dir.path()))
}

/// Whether the owner and all commands that a directory names have ended.
fn is_left<K: System>(root: &Fd<K>, name: &Name) -> Answer<bool> {
    let kernel = root.kernel();
    let dir = root.open_dir(name)?;
    let marker = dir.open_file(&Name::fixed(OWNER))?;
    let Some(owner) = process_in(&marker.read(0, MARKER_BYTES_MAX)?) else { return Ok(false) };
    if !has_ended(kernel, owner) {
        return Ok(false);
    }
    let entries: Vec<Name> = names_in(&dir)?.into_iter().map(|(name, _)| name).collect();
    let mut commands = entries.iter().filter_map(|name| name.bytes().strip_prefix(COMMAND));
    Ok(commands.all(|command| {
        process_in(command).is_some_and(|command| {
            has_ended(kernel, command) && kernel.group_exists(command.0) == Err(Errno::ESRCH)
        })
    }))
}
