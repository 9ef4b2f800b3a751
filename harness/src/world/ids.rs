//! Numbers of things, so made that independent steps commute.
//!
//! A counter for the whole world would tell which of two unrelated processes
//! came first, and every order of their steps would be another state. So a
//! thing is named by who made it and how many that one had made before.

use std::fmt;

use mortmain::sys::Pid;

/// A maker and a count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Made {
    /// Who made it.
    pub by: Pid,
    /// How many of the kind it had made before.
    pub nth: u32,
}

impl Made {
    /// One number for both, as the seam wants it for inodes.
    #[must_use]
    pub fn number(self) -> u64 {
        u64::from(self.by.0.cast_unsigned()) << 32 | u64::from(self.nth)
    }
}

/// An inode.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InodeId(pub Made);

/// An open file description: what descriptors share after a fork, and what a
/// `flock` belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId(pub Made);

/// A mount.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MountId(pub Made);

/// A claim, as the judge knows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClaimId(pub Made);

/// A program that processes of the world can run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProgramId {
    /// Its place in the list of programs.
    pub index: u32,
    /// What it is called.
    pub name: &'static str,
}

impl fmt::Display for ProgramId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
