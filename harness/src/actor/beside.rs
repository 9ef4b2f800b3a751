//! What an actor has beside its claim: locks, test directories, passed sockets; and the stores that
//! it reads and changes.
//!
//! Locks and stores are used by their public faces, as a product does. Where something is to happen
//! meanwhile it is the protocol below them, over a kernel whose calls can be disturbed; there nobody
//! waits, and a lock that somebody has is refused as at the end of a time limit.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mortmain::activation::{self, Socket};
use mortmain::protocol::{Held, LockFile, Sandbox, StoreFile};
use mortmain::sys::{Host, Name, PathBytes};
use mortmain::{Error, FileLock, FileLockGuard, Store};

use super::disturbed::{Disturbing, Tap};
use super::play::Failure;
use super::wire::{Disturbance, Done};
use crate::faults::Tapped;

/// Who does not wait asks once.
const ONCE: Duration = Duration::ZERO;

/// All that an actor has of it.
#[derive(Default)]
pub(super) struct Beside {
    locks: BTreeMap<PathBuf, Locked>,
    sandboxes: Vec<Sandbox<Tap>>,
    sockets: Vec<Socket>,
}

/// A lock that is held.
enum Locked {
    Face(FileLockGuard),
    Tapped(Held<Tap>),
}

impl Beside {
    pub(super) fn lock(
        &mut self,
        id: u64,
        file: PathBuf,
        waits: bool,
        disturbed: Option<Disturbance>,
    ) -> Result<Done, Failure> {
        let locked = if disturbed.is_some() {
            let (dir, name) = parts(&file, ".lock")?;
            let tap = Tapped::new(Host, Disturbing::default());
            let lock = LockFile::open(&tap, &dir, name)?;
            let held = armed(&tap, id, disturbed, || lock.attempt())?;
            Locked::Tapped(held.ok_or(Failure::Held)?)
        } else {
            let lock = FileLock::at(&file)?;
            Locked::Face(if waits { lock.lock()? } else { lock.lock_timeout(ONCE)? })
        };
        self.locks.insert(file, locked);
        Ok(Done::Locked)
    }

    pub(super) fn unlock(&mut self, file: &Path) -> Result<Done, Failure> {
        match self.locks.remove(file).ok_or(Failure::NotLocked)? {
            Locked::Face(guard) => guard.unlock()?,
            Locked::Tapped(held) => held.unlock()?,
        }
        Ok(Done::Unlocked)
    }

    pub(super) fn take_sandbox(
        &mut self,
        id: u64,
        base: &Path,
        tag: &str,
        place: &str,
        disturbed: Option<Disturbance>,
    ) -> Result<Done, Failure> {
        let (base, name) = parts(&base.join(tag), "")?;
        let tap = Tapped::new(Host, Disturbing::default());
        let take = || Sandbox::take(&tap, &base, name, place);
        self.sandboxes.push(armed(&tap, id, disturbed, take)?);
        Ok(Done::Taken)
    }

    pub(super) fn take_sockets(&mut self) -> Result<Done, Failure> {
        let sockets = activation::sockets()?;
        let names = sockets.iter().map(|socket| socket.name().to_owned()).collect();
        self.sockets.extend(sockets);
        Ok(Done::Sockets { names })
    }
}

/// Adds a line to a store.
pub(super) fn append(
    id: u64,
    file: &Path,
    line: &str,
    waits: bool,
    disturbed: Option<Disturbance>,
) -> Result<Done, Failure> {
    let add = |old: Option<&[u8]>| [old.unwrap_or_default(), line.as_bytes(), b"\n"].concat();
    if disturbed.is_some() {
        let (dir, name) = parts(file, "")?;
        let tap = Tapped::new(Host, Disturbing::default());
        let store = StoreFile::open(&tap, &dir, name)?;
        armed(&tap, id, disturbed, || {
            let held = store.lock().attempt()?.ok_or(Failure::Held)?;
            store.write(&held, &add(store.read()?.as_deref()))?;
            Ok::<_, Failure>(held.unlock()?)
        })?;
        return Ok(Done::Written);
    }
    let (store, change) = (store(file)?, |old: Option<&[u8]>| Some(add(old)));
    if waits {
        store.update(change)?
    } else {
        store.update_timeout(ONCE, change)?
    };
    Ok(Done::Written)
}

/// Reads a store.
pub(super) fn read(file: &Path) -> Result<Done, Failure> {
    let content = store(file)?.read()?;
    let text = content.map(|content| String::from_utf8_lossy(&content).into_owned());
    Ok(Done::Read { content: text.unwrap_or_default() })
}

/// A store of lines of text.
fn store(file: &Path) -> Result<Store, Error> {
    Ok(Store::at(file)?.valid_if(lines_of_text))
}

/// Whether a store may hold this.
pub(crate) fn lines_of_text(content: &[u8]) -> Result<(), String> {
    match std::str::from_utf8(content) {
        Ok(text) if text.lines().all(|line| !line.contains(char::is_control)) => Ok(()),
        _ => Err("these are no lines of text".into()),
    }
}

/// Does something over a kernel at one of whose calls something happens.
fn armed<T>(tap: &Tap, id: u64, disturbed: Option<Disturbance>, work: impl FnOnce() -> T) -> T {
    tap.with_hook(|hook| hook.arm(id, disturbed));
    let done = work();
    tap.with_hook(|hook| hook.arm(id, None));
    done
}

/// The directory of a file, and its name there with this behind it.
fn parts(file: &Path, suffix: &str) -> io::Result<(PathBytes, Name)> {
    let dir = file.parent().unwrap_or(file).as_os_str().as_bytes();
    let name = file.file_name().unwrap_or_default().as_bytes();
    let name = Name::new(&[name, suffix.as_bytes()].concat());
    Ok((PathBytes::from(dir), name.ok_or(io::ErrorKind::InvalidFilename)?))
}
