//! Processes that want a lock.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mortmain::protocol::LockFile;
use mortmain::sys::{Host, Kernel, Name, PathBytes};
use mortmain::{Error, FileLock, LockTable};

use super::{ends_well, in_child, must, say, wait_for_end};
use crate::faults::kill_everywhere;

/// Longer than anything here takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(15);

/// How often each contender takes the lock.
const ROUNDS: u32 = 20;

/// Holds the lock until its input ends.
pub(super) fn hold(path: &Path) -> io::Result<()> {
    let lock = FileLock::at(path)?;
    let guard = lock.lock()?;
    say("locked")?;
    wait_for_end()?;
    guard.unlock()?;
    Ok(())
}

/// Takes the lock some twenty times, and does what only one at a time may do: it makes a file that
/// must not be there, counts in another, and takes the first away.
pub(super) fn rounds(path: &Path) -> io::Result<()> {
    let lock = FileLock::at(path)?;
    let (inside, count) = (path.with_extension("inside"), path.with_extension("count"));
    say("ready")?;
    wait_for_end()?;
    for _ in 0..ROUNDS {
        let guard = lock.lock()?;
        File::create_new(&inside)?;
        // To the others, so that they meet.
        thread::yield_now();
        let so_far: u32 = match fs::read_to_string(&count) {
            Ok(text) => text.parse().map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        fs::write(&count, (so_far + 1).to_string())?;
        fs::remove_file(&inside)?;
        guard.unlock()?;
    }
    say("done")
}

/// Takes the lock and forks. The child drops its copy and ends, a second child asks for the lock.
pub(super) fn forked(path: &Path) -> io::Result<()> {
    let lock = FileLock::at(path)?;
    let mut guard = Some(lock.lock()?);
    let drops = in_child(|| {
        let _copy = guard.take();
        Ok(())
    })?;
    ends_well(drops, "drops its copy")?;
    let guard = guard.ok_or_else(|| io::Error::other("the child's copy was its parent's"))?;
    let stranger = FileLock::in_table(path, Arc::new(LockTable::new()))?;
    must(stranger.try_lock()?.is_none(), || {
        "a forked child has given its parent's lock back".into()
    })?;
    let asks = in_child(|| match lock.try_lock()? {
        None => Ok(()),
        Some(_) => Err(io::Error::other("it was given to a forked child as well")),
    })?;
    ends_well(asks, "asks for it")?;
    // Its copy of the table says that its parent is before it, which is never told otherwise there.
    let waits = in_child(|| Ok(lock.lock_timeout(PATIENCE)?.unlock()?))?;
    guard.unlock()?;
    ends_well(waits, "waits for it")?;
    say("as it should be")
}

/// Dies at every call of taking the lock and giving it back; whoever asks next has it at once.
pub(super) fn killed(dir: &Path) -> io::Result<()> {
    let deaths = kill_everywhere(
        |kernel| take(kernel, dir).map_err(io::Error::from),
        |position, moment| {
            let at = |what: &str| format!("killed at call {position}, {moment:?}: {what}");
            let free = lock_file(&Host, dir)?.attempt()?.is_some();
            must(free, || at("nobody has the lock, and it is not free"))?;
            let left: Vec<_> = fs::read_dir(dir)?.collect::<Result<_, _>>()?;
            must(left.len() == 1, || at("something is left beside its file"))?;
            must(left[0].metadata()?.len() == 0, || at("its file is not empty"))?;
            // The next one begins without a file.
            if position.is_multiple_of(2) { fs::remove_file(left[0].path()) } else { Ok(()) }
        },
    )?;
    say(&format!("{deaths} deaths"))
}

fn lock_file<K: Kernel>(kernel: &K, dir: &Path) -> Result<LockFile<K>, Error> {
    LockFile::open(kernel, &PathBytes::from(dir.as_os_str().as_bytes()), Name::fixed("l.lock"))
}

fn take<K: Kernel>(kernel: &K, dir: &Path) -> Result<(), Error> {
    match lock_file(kernel, dir)?.attempt()? {
        Some(held) => held.unlock(),
        None => Ok(()),
    }
}
