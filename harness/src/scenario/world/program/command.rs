//! A command: it becomes what the story says, and then uses its claim and does things to places, as it
//! is told.

use mortmain::sys::{
    Answer, Call, Errno, Fd, Handle, Kernel, KernelExt, Kind, Name, PathBytes, Pid,
};
use serde::{Deserialize, Serialize};

use super::server::write;
use super::{COMMAND, next, parts};
use crate::simulated::WorldKernel;
use crate::world::Special;

/// The number of the descriptor of its entry's lock.
const LOCK: Handle = Handle(255);
/// The program that it makes in its claim, and what it writes each time that it has run it.
const TOOL: &str = "tool";
const USED: &str = "used";

/// What a command is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::scenario::world) enum Commanded {
    /// To become what the story says.
    Become(Become),
    /// To run the program in its claim, and to write a file there.
    Use,
    /// To do something to a path.
    Do(Deed, Vec<u8>),
    /// To exit.
    Exit,
}

/// What a command is to become.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::scenario::world) struct Become {
    /// Where its files are.
    pub(in crate::scenario::world) files: Vec<u8>,
    /// Whether it goes to work there.
    pub(in crate::scenario::world) works_there: bool,
    /// Whether it leaves a child, which is the command then.
    pub(in crate::scenario::world) background: bool,
    /// Whether that leaves its group.
    pub(in crate::scenario::world) leaves_group: bool,
    /// Whether it drops the cookie.
    pub(in crate::scenario::world) without_cookie: bool,
    /// Whether it closes the descriptor of its entry's lock.
    pub(in crate::scenario::world) closes_lock: bool,
    /// Whether it unlocks that.
    pub(in crate::scenario::world) unlocks: bool,
}

/// What it does to a path.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in crate::scenario::world) enum Deed {
    /// It takes it away.
    Remove,
    /// It takes away what is in it.
    Empty,
    /// It puts a file there.
    File,
    /// It makes a directory there.
    Directory,
    /// It makes a link to nowhere there.
    DanglingLink,
    /// It makes a FIFO there.
    Fifo,
}

/// Does what it is told until it is told to exit. It says whether that went well.
pub(in crate::scenario::world) fn command(kernel: &WorldKernel) -> i32 {
    let mut files = PathBytes::default();
    let mut said = true;
    loop {
        let order: Commanded = match next(kernel, &said) {
            Ok(order) => order,
            Err(_) => return 1,
        };
        let did = match order {
            Commanded::Become(what) => {
                files = PathBytes(what.files.clone());
                match becomes(kernel, what) {
                    // Its child is the command now.
                    Ok(Some(_)) => return 0,
                    Ok(None) => write(kernel, &files, TOOL, b"#!/bin/sh\n"),
                    Err(errno) => Err(errno),
                }
            }
            Commanded::Use => uses(kernel, &files),
            Commanded::Do(deed, path) => does(kernel, deed, &path),
            Commanded::Exit => return 0,
        };
        said = did.is_ok();
    }
}

/// Becomes it, here or in a child.
fn becomes(kernel: &WorldKernel, what: Become) -> Answer<Option<Pid>> {
    if what.background
        && let Some(child) = kernel.fork()?
    {
        return Ok(Some(child));
    }
    if what.works_there {
        kernel.work_in(&PathBytes(what.files))?;
    }
    if what.leaves_group {
        kernel.leave_group();
    }
    if what.unlocks {
        kernel.call(Call::Unlock { fd: LOCK })?;
    }
    if what.closes_lock {
        kernel.call(Call::Close { fd: LOCK })?;
    }
    if what.without_cookie {
        kernel.exec(COMMAND, &[]);
    }
    Ok(None)
}

fn uses(kernel: &WorldKernel, files: &PathBytes) -> Answer<()> {
    let tool = kernel.open_root(files)?.stat_at(&Name::fixed(TOOL))?;
    match tool.kind {
        Kind::File => write(kernel, files, USED, b"used\n"),
        _ => Err(Errno::EACCES),
    }
}

fn does(kernel: &WorldKernel, deed: Deed, path: &[u8]) -> Answer<()> {
    let (dir, name) = parts(path)?;
    let dir = kernel.open_root(&dir)?;
    let name = Name::new(name).ok_or(Errno::EINVAL)?;
    match deed {
        Deed::Remove => remove(&dir, &name),
        Deed::Empty => empty(&dir.open_dir(&name)?),
        Deed::File => dir.create_file(&name)?.write(0, b"somebody wrote this\n").map(drop),
        Deed::Directory => dir.mkdir(&name),
        Deed::DanglingLink => dir.symlink(&name, b"nowhere"),
        Deed::Fifo => kernel.make_special(dir.raw(), &name, Special::Fifo),
    }
}

fn remove<K: Kernel>(dir: &Fd<K>, name: &Name) -> Answer<()> {
    match dir.open_dir(name) {
        Ok(below) => {
            empty(&below)?;
            dir.rmdir(name)
        }
        Err(Errno::ENOTDIR) => dir.unlink(name),
        Err(errno) => Err(errno),
    }
}

fn empty<K: Kernel>(dir: &Fd<K>) -> Answer<()> {
    dir.read_dir(true)?.iter().try_for_each(|entry| remove(dir, &entry.name))
}
