//! With a second look: what seems unused is renamed, looked at once more, and renamed back if
//! somebody uses it after all.
//!
//! So do trash cans and some caches: a rename is cheap and can be undone, so the first look may be,
//! too. A sweep looks once at all processes for all directories; whose owner has ended and whom
//! nobody was seen to use is put aside, and for it alone all processes are looked at again. Commands
//! are known by a variable in their environment, which every child of theirs inherits. A directory
//! that was put aside and left there by a sweep that was killed gets its second look from the next.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use mortmain::Random;
use mortmain::sys::{Answer, Errno, Fd, KernelExt as _, Name, PathBytes, ProcessId, Sought};

use crate::design::Error;
use crate::directory::{
    Directory, Named, PREFIX, directories, has_ended, owner_in, process_text, remove_dir_all,
};
use crate::system::System;

/// What the name of a directory ends with while it is aside.
const ASIDE: &[u8] = b".aside";

/// The design.
#[derive(Clone, Copy, Debug)]
pub struct SecondLook;

impl Named for SecondLook {
    fn fresh_name<K: System>(kernel: &K) -> Answer<Name> {
        fresh_marked_name(kernel)
    }

    /// The end of its name.
    fn mark(name: &Name) -> &[u8] {
        let name = name.bytes().strip_suffix(ASIDE).unwrap_or(name.bytes());
        &name[name.len().saturating_sub(Random::BYTES)..]
    }

    /// A close is a sweep of this one directory.
    fn close<K: System>(dir: Directory<K>) -> Result<(), Error> {
        look_twice(&dir.root, &dir.name).map_err(Error::of("remove", &dir.path()))
    }

    fn sweep<K: System>(kernel: &K, root_path: &PathBytes) -> Result<(), Error> {
        let (root, names) = directories(kernel, root_path)?;
        let used = used_of(kernel, &names).map_err(Error::of("look at who uses", root_path))?;
        for name in names.iter().filter(|name| !used.contains(name)) {
            if owner_in(name).is_some_and(|owner| has_ended(kernel, owner)) {
                // What is left is for the next sweep.
                let _ = look_twice(&root, name);
            }
        }
        Ok(())
    }
}

/// Puts a directory aside, if it is not, looks at it once more, and removes it or gives it its name
/// back.
fn look_twice<K: System>(root: &Fd<K>, name: &Name) -> Answer<()> {
    let place = name.bytes().strip_suffix(ASIDE).unwrap_or(name.bytes());
    let aside = Name::new(&[place, ASIDE].concat()).ok_or(Errno::EINVAL)?;
    let place = Name::new(place).ok_or(Errno::EINVAL)?;
    if *name == place {
        root.rename(&place, &aside)?;
    }
    if used_of(root.kernel(), core::slice::from_ref(&aside))?.is_empty() {
        remove_dir_all(root, &aside)
    } else {
        root.rename(&aside, &place)
    }
}

/// Which of these directories a process is seen to use.
fn used_of<K: System>(kernel: &K, names: &[Name]) -> Answer<BTreeSet<Name>> {
    let known =
        names.iter().filter_map(|name| Some((name, Random::parse(SecondLook::mark(name))?)));
    let known: Vec<(&Name, Random)> = known.collect();
    let sought = Sought::new(&known);
    let mut used = BTreeSet::new();
    if known.is_empty() {
        return Ok(used);
    }
    for pid in kernel.pids()? {
        let uses = kernel.uses(pid, &sought, &[])?;
        used.extend(uses.found.iter().map(|(at, _)| known[*at].0.clone()));
    }
    Ok(used)
}

/// A name that says whose it is and ends with a mark: `p-<pid>-<start ticks>-<mark>`.
fn fresh_marked_name<K: System>(kernel: &K) -> Answer<Name> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    const DIGITS: &[u8; 6] = b"234567";
    let process: ProcessId = kernel.identity()?.process;
    let mut name = [PREFIX.as_bytes(), &process_text(process), b"-"].concat();
    let mut number = kernel.random()?;
    for _ in 1..Random::BYTES {
        name.push(LETTERS[(number % 32) as usize]);
        number /= 32;
    }
    name.push(DIGITS[(number % 6) as usize]);
    Name::new(&name).ok_or(Errno::EINVAL)
}
