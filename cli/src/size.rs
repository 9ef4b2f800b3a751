//! How much room a claim takes, for people to read.
//!
//! It looks at what may be hostile, as a sweep does: no mount is entered or asked anything, no link
//! is followed, and depth and number are bounded. What is not looked at is said by a `+`.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};

/// Levels, and so descriptors, that it goes down.
const DEPTH_MAX: usize = 64;
/// Entries that it looks at.
const ENTRIES_MAX: u64 = 1_000_000;

/// Room on the disk, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Size {
    pub(crate) bytes: u64,
    /// Whether that is not all.
    pub(crate) partial: bool,
    entries: u64,
}

/// The room that a directory takes.
pub(crate) fn size(claim: &Path) -> Size {
    let mut size = Size::default();
    match openat(CWD, claim, FLAGS | OFlags::DIRECTORY, Mode::empty()) {
        Ok(dir) => size.add_dir(dir, 0),
        Err(_) => size.partial = true,
    }
    size
}

/// Neither of them opens anything but a directory.
const FLAGS: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// Opens a name in a directory, if nothing is mounted there.
fn below(dir: BorrowedFd<'_>, name: &std::ffi::CStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_MAGICLINKS;
    openat2(dir, name, FLAGS | flags, Mode::empty(), resolve)
}

impl Size {
    fn add_dir(&mut self, dir: OwnedFd, depth: usize) {
        if let Ok(stat) = fstat(&dir) {
            self.bytes += u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
        }
        let Ok(entries) = Dir::read_from(&dir) else {
            self.partial = true;
            return;
        };
        for entry in entries {
            let Ok(entry) = entry else {
                self.partial = true;
                return;
            };
            let name = entry.file_name();
            if [c".", c".."].contains(&name) {
                continue;
            }
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                self.partial = true;
                return;
            }
            self.add(dir.as_fd(), name, depth);
        }
    }

    fn add(&mut self, dir: BorrowedFd<'_>, name: &std::ffi::CStr, depth: usize) {
        // Named without being opened: a FIFO or a device notices nothing.
        let Some(stat) = below(dir, name, OFlags::PATH).ok().and_then(|fd| fstat(fd).ok()) else {
            self.partial = true;
            return;
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            self.bytes += u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
            return;
        }
        match below(dir, name, OFlags::DIRECTORY) {
            Ok(inner) if depth < DEPTH_MAX => self.add_dir(inner, depth + 1),
            _ => self.partial = true,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        let unit = units.into_iter().find(|(shift, _)| self.bytes >> shift > 0);
        match unit {
            // Tenths are of interest where there are few.
            Some((shift, word)) if self.bytes >> shift < 10 => {
                let tenths = (self.bytes >> (shift - 10)) * 10 / 1024;
                write!(f, "{}.{} {word}", tenths / 10, tenths % 10)?;
            }
            Some((shift, word)) => write!(f, "{} {word}", self.bytes >> shift)?,
            None => write!(f, "{} B", self.bytes)?,
        }
        if self.partial { f.write_str("+") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_told_by_its_unit() {
        for (bytes, partial, want) in [
            (0, false, "0 B"),
            (512, false, "512 B"),
            (1_536, false, "1.5 KiB"),
            (20 << 20, false, "20 MiB"),
            ((5 << 30) + (1 << 29), true, "5.5 GiB+"),
        ] {
            assert_eq!(Size { bytes, partial, entries: 0 }.to_string(), want);
        }
    }
}
