//! Processes that change a file.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::thread;

use mortmain::protocol::StoreFile;
use mortmain::sys::{Host, Kernel, Name, PathBytes};
use mortmain::{Error, Store};

use super::{must, say, wait_for_end};
use crate::faults::kill_everywhere;

/// How often each process counts.
const ROUNDS: u32 = 20;

/// Longer than one page, so that a mixture could be seen.
const CONTENT_BYTES: usize = 10_000;

/// Counts in a file, some twenty times.
pub(super) fn count(path: &Path) -> io::Result<()> {
    let store = Store::at(path)?;
    say("ready")?;
    wait_for_end()?;
    for _ in 0..ROUNDS {
        store.update(|old| {
            // To the others, so that they meet.
            thread::yield_now();
            let text = old.and_then(|old| std::str::from_utf8(old).ok());
            let count: u32 = text.and_then(|text| text.parse().ok()).unwrap_or(0);
            Some((count + 1).to_string().into_bytes())
        })?;
    }
    say("done")
}

/// Dies at every call of a change; what stands there is the old content or the new one, and what is
/// beside it does not grow.
pub(super) fn killed(dir: &Path) -> io::Result<()> {
    let old = vec![b'o'; CONTENT_BYTES];
    let new = vec![b'n'; CONTENT_BYTES + 1];
    put(&Host, dir, &old)?;
    let mut seen_new = 0;
    let deaths = kill_everywhere(
        |kernel| put(kernel, dir, &new).map_err(io::Error::from),
        |position, moment| {
            let at = |what: &str| format!("killed at call {position}, {moment:?}: {what}");
            let content = fs::read(dir.join("data"))?;
            must(content == old || content == new, || at("it is neither the old nor the new"))?;
            seen_new += u32::from(content == new);
            for name in names(dir)? {
                let known = ["data", "data.lock", ".data.new"].contains(&name.as_str());
                must(known, || at(&format!("{name} is left")))?;
            }
            put(&Host, dir, &old)?;
            let whole = names(dir)? == ["data", "data.lock"];
            must(whole, || at("the next write has left what was killed"))
        },
    )?;
    must(seen_new > 0, || "it was never killed after the new content stood".into())?;
    say(&format!("{deaths} deaths, {seen_new} after the new content stood"))
}

fn names(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

fn put<K: Kernel>(kernel: &K, dir: &Path, content: &[u8]) -> Result<(), Error> {
    let dir = PathBytes::from(dir.as_os_str().as_bytes());
    let file = StoreFile::open(kernel, &dir, Name::fixed("data"))?;
    match file.lock().attempt()? {
        Some(held) => {
            file.write(&held, content)?;
            held.unlock()
        }
        None => Ok(()),
    }
}
