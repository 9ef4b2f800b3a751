//! A hash that is the same on every machine and in every version: FNV-1a with 64 bits.
//!
//! It tells what has changed and gives short names; nobody is kept from making two inputs of one
//! hash.

use std::fs;
use std::io;
use std::path::Path;

use crate::tree;

#[derive(Clone, Debug)]
pub(crate) struct Hash(u64);

impl Hash {
    pub(crate) fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a part. Where one part ends and the next begins counts.
    pub(crate) fn add(&mut self, part: &[u8]) {
        for &byte in part.iter().chain(&(part.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Adds the names and contents of all that a copy of a directory would hold.
    pub(crate) fn add_tree(&mut self, directory: &Path) -> io::Result<()> {
        let mut entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let kind = entry.file_type()?;
            if kind.is_dir() {
                if tree::is_left_out(&entry.path()) {
                    continue;
                }
                self.add(entry.file_name().as_encoded_bytes());
                self.add_tree(&entry.path())?;
                self.add(b"/");
            } else if kind.is_symlink() {
                self.add(entry.file_name().as_encoded_bytes());
                self.add(fs::read_link(entry.path())?.as_os_str().as_encoded_bytes());
            } else if fs::metadata(entry.path())?.is_file() {
                self.add(entry.file_name().as_encoded_bytes());
                self.add(&fs::read(entry.path())?);
            }
        }
        Ok(())
    }

    /// Ten hexadecimal digits.
    pub(crate) fn text(&self) -> String {
        // The upper bits, which are mixed best.
        format!("{:010x}", self.0 >> 24)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_it_always_was() {
        assert_eq!(Hash::new().text(), "cbf29ce484");
        let of = |parts: &[&str]| {
            let mut hash = Hash::new();
            parts.iter().for_each(|part| hash.add(part.as_bytes()));
            hash.text()
        };
        assert_eq!(of(&["ab", "c"]), "5091916f8c");
        assert_eq!(of(&["a", "bc"]), "d3effa61b7");
    }
}
