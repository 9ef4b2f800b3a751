//! By the owner's pid: what belongs to a process that has ended is removed.
//!
//! So does every program that calls its directory by its pid. The number stands in the name, which
//! is there at once and whole, and beside it the owner's start time, so that a number that was used
//! again misleads nobody.

use mortmain::sys::{Answer, Name, PathBytes};

use crate::design::Error;
use crate::directory::{Named, directories, fresh_owned_name, has_ended, owner_in, remove_dir_all};
use crate::system::System;

/// The design.
#[derive(Clone, Copy, Debug)]
pub struct OwnerPid;

impl Named for OwnerPid {
    fn fresh_name<K: System>(kernel: &K) -> Answer<Name> {
        fresh_owned_name(kernel)
    }

    fn sweep<K: System>(kernel: &K, root: &PathBytes) -> Result<(), Error> {
        let (root, names) = directories(kernel, root)?;
        for name in names {
            if owner_in(&name).is_some_and(|owner| has_ended(kernel, owner)) {
                // Its name goes last, so the next sweep finishes what this one cannot.
                let _ = remove_dir_all(&root, &name);
            }
        }
        Ok(())
    }
}
