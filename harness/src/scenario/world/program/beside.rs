//! What a server has beside its claim: locks, test directories, and the stores that it changes.
//!
//! The protocol below the public faces, which wait by a clock: here who waits asks again each time that
//! it is let, and who does not is refused as at the end of a time limit.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use mortmain::protocol::{Held, LockFile, Sandbox, StoreFile};
use mortmain::sys::{Errno, KernelExt, Name, PathBytes};

use super::parts;
use super::server::{Failure, about_to_begin};
use crate::actor::lines_of_text;
use crate::actor::wire::{Done, Order};
use crate::simulated::WorldKernel;

/// All that a server has of it.
#[derive(Default)]
pub(super) struct Beside {
    locks: BTreeMap<PathBuf, Held<WorldKernel>>,
    sandboxes: Vec<Sandbox<WorldKernel>>,
}

impl Beside {
    pub(super) fn act(&mut self, kernel: &WorldKernel, order: Order) -> Result<Done, Failure> {
        match order {
            Order::Lock { file, waits, disturbed } => {
                let (dir, name) = place(&file, ".lock")?;
                let lock = LockFile::open(kernel, &dir, name)?;
                about_to_begin(kernel, disturbed.is_some())?;
                self.locks.insert(file, take(kernel, &lock, waits)?);
                Ok(Done::Locked)
            }
            Order::Unlock { file } => {
                let held = self.locks.remove(&file);
                held.ok_or_else(|| Failure::new("Nothing", "it has no such lock"))?.unlock()?;
                Ok(Done::Unlocked)
            }
            Order::Append { file, line, waits, disturbed } => {
                let store = store(kernel, &file)?;
                about_to_begin(kernel, disturbed.is_some())?;
                append(kernel, &store, &line, waits)?;
                Ok(Done::Written)
            }
            Order::Read { file } => {
                let content = store(kernel, &file)?.read()?.unwrap_or_default();
                match lines_of_text(&content) {
                    Ok(()) => {
                        let content = String::from_utf8_lossy(&content).into_owned();
                        Ok(Done::Read { content })
                    }
                    Err(why) => Err(Failure::new("Corrupt", &why)),
                }
            }
            Order::TakeSandbox { base, tag, place, disturbed } => {
                let base = PathBytes::from(base.as_os_str().as_bytes());
                let tag = Name::new(tag.as_bytes()).ok_or(Errno::EINVAL)?;
                about_to_begin(kernel, disturbed.is_some())?;
                self.sandboxes.push(Sandbox::take(kernel, &base, tag, &place)?);
                Ok(Done::Taken)
            }
            other => Err(Failure::new("NotUnderstood", &format!("{other:?}"))),
        }
    }
}

/// Takes a lock, or refuses to wait for it.
fn take(
    kernel: &WorldKernel,
    lock: &LockFile<WorldKernel>,
    waits: bool,
) -> Result<Held<WorldKernel>, Failure> {
    loop {
        match lock.attempt()? {
            Some(held) => return Ok(held),
            None if waits => kernel.pause(1)?,
            None => return Err(Failure::new("TimedOut", "somebody has the lock")),
        }
    }
}

/// Adds a line to a store, under its lock.
fn append(
    kernel: &WorldKernel,
    store: &StoreFile<WorldKernel>,
    line: &str,
    waits: bool,
) -> Result<(), Failure> {
    let held = take(kernel, store.lock(), waits)?;
    let old = store.read()?.unwrap_or_default();
    if let Err(why) = lines_of_text(&old) {
        return Err(store.put_aside(&held, &why).into());
    }
    store.write(&held, &[&old, line.as_bytes(), b"\n"].concat())?;
    Ok(held.unlock()?)
}

fn store(kernel: &WorldKernel, file: &Path) -> Result<StoreFile<WorldKernel>, Failure> {
    let (dir, name) = place(file, "")?;
    Ok(StoreFile::open(kernel, &dir, name)?)
}

/// The directory of a file, and its name there with this behind it.
fn place(file: &Path, suffix: &str) -> Result<(PathBytes, Name), Failure> {
    let (dir, name) = parts(file.as_os_str().as_bytes())?;
    let name = Name::new(&[name, suffix.as_bytes()].concat());
    Ok((dir, name.ok_or(Errno::EINVAL)?))
}
