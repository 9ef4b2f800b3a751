//! File systems to measure on, in a cell. They vanish with it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use mortmain_harness::scenario::Need;
use mortmain_harness::scratch::scratch_root;

use super::cost::Cost;
use super::told::Told;

/// Inodes that a claim takes here, with the files that are put into it.
pub(crate) const INODES_EACH: u64 = 7;
/// Bytes that a claim takes at most, on a file system with blocks of four kilobytes.
const BYTES_EACH: u64 = 7 * 4096;

/// A kind of file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// In memory, as `/dev/shm`.
    Tmpfs,
    /// With a journal, in a file in memory: a real disk that discards blocks while they are freed
    /// would be all that is measured.
    Ext4,
}

impl Kind {
    pub(crate) const ALL: [Kind; 2] = [Kind::Tmpfs, Kind::Ext4];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Tmpfs => "tmpfs",
            Kind::Ext4 => "ext4",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it can be had here; says why not.
    pub(crate) fn is_there(self) -> bool {
        if let Some(why) = self.missing() {
            Told::Note(format!("nothing was measured on {}: {why}", self.name())).tell();
            return false;
        }
        true
    }

    fn missing(self) -> Option<String> {
        let needs = match self {
            Kind::Tmpfs => vec![Need::Tmpfs],
            Kind::Ext4 => vec![Need::Loop, Need::Tmpfs, Need::Program("mkfs.ext4".into())],
        };
        needs.iter().find_map(Need::missing)
    }
}

/// A file system that is mounted.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) kind: Kind,
    at: PathBuf,
    roots: u64,
}

impl Place {
    /// Mounts one with room for so many claims; `inodes` is how many there are at all, if that is to
    /// be the limit.
    pub(crate) fn mount(kind: Kind, claims: u64, inodes: Option<u64>) -> io::Result<Place> {
        let at = scratch_root();
        // Room for what comes and goes at the same time.
        let bytes = (claims * BYTES_EACH * 2).max(64 << 20);
        match kind {
            Kind::Tmpfs => tmpfs(&at, bytes, inodes)?,
            Kind::Ext4 => {
                let below = scratch_root();
                tmpfs(&below, bytes + bytes / 4, None)?;
                let image = below.join("image");
                File::create(&image)?.set_len(bytes)?;
                let inodes = inodes.unwrap_or(claims * INODES_EACH * 2 + 10_000);
                let mut make = Command::new("mkfs.ext4");
                make.args(["-q", "-F", "-m", "0", "-N", &inodes.to_string()]).arg(&image);
                run(make)?;
                let mut mount = Command::new("mount");
                mount.args(["-t", "ext4", "-o", "loop,nodiscard,nosuid,nodev"]);
                mount.arg(&image).arg(&at);
                run(mount)?;
            }
        }
        Ok(Place { kind, at, roots: 0 })
    }

    /// A fresh directory on it.
    pub(crate) fn root(&mut self) -> io::Result<PathBuf> {
        self.roots += 1;
        let root = self.at.join(format!("root-{}", self.roots));
        fs::create_dir(&root)?;
        Ok(root)
    }

    /// The directory that it is mounted at.
    pub(crate) fn path(&self) -> &Path {
        &self.at
    }
}

fn tmpfs(at: &Path, bytes: u64, inodes: Option<u64>) -> io::Result<()> {
    let inodes = inodes.unwrap_or(0);
    let options = format!("mode=755,nosuid,nodev,size={bytes},nr_inodes={inodes}");
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at);
    run(mount)
}

/// Runs a program that has to go well.
pub(crate) fn run(command: Command) -> io::Result<()> {
    Cost::of_command(command).map(|_| ())
}
