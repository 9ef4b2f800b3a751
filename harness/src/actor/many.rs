//! Many claims of one process, some of them as a creator leaves them that was killed at its work.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mortmain::{Claim, Namespace};

/// The parts of a claim, in the order in which they are made.
const PARTS: [&str; 3] = ["owner", "commands", "files"];

/// Makes claims, and stagings that have come to have none, one, two or all of the parts. Whole ones
/// and half-made ones take turns.
pub(super) fn create_many(
    prefix: &str,
    root: &Path,
    whole: u64,
    half_made: u64,
) -> io::Result<Vec<Claim>> {
    let namespace = Namespace::at(root, prefix).map_err(io::Error::other)?;
    let mut made = Vec::new();
    for number in 0..whole.max(half_made) {
        if number < whole {
            made.push(namespace.create().map_err(io::Error::other)?);
        }
        if number < half_made {
            let claim = namespace.create().map_err(io::Error::other)?;
            undo(&path_of(&claim), number as usize % (PARTS.len() + 1))?;
            made.push(claim);
        }
    }
    Ok(made)
}

/// Where a claim lies, whose files are what its user knows.
pub(super) fn path_of(claim: &Claim) -> PathBuf {
    let mut path = claim.path().to_owned();
    path.pop();
    path
}

/// Takes a claim back to what it was when it had so many parts.
fn undo(claim: &Path, parts: usize) -> io::Result<()> {
    let mut name = std::ffi::OsString::from(".");
    name.push(claim.file_name().unwrap_or_default());
    name.push(".new");
    let staging = claim.with_file_name(name);
    fs::rename(claim, &staging)?;
    for part in PARTS[parts..].iter().rev().map(|part| staging.join(part)) {
        match part.symlink_metadata()?.is_dir() {
            true => fs::remove_dir(&part)?,
            false => fs::remove_file(&part)?,
        }
    }
    Ok(())
}
