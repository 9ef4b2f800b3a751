//! What lies in a directory: names, kinds, modes, contents.
//!
//! The judge's own eyes, by the standard library and not by the code under test. Two snapshots that
//! are equal mean that nothing was changed that anybody could see by reading.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// One thing in a tree.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Node {
    /// A directory and its permission bits.
    Dir(u32),
    /// A regular file: its permission bits and its content.
    File(u32, Vec<u8>),
    /// A symbolic link and its target text.
    Link(PathBuf),
    /// A FIFO.
    Fifo,
    /// A socket or a device.
    Other,
}

/// Everything below a directory, by its path from there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Tree(pub BTreeMap<PathBuf, Node>);

impl Tree {
    /// Reads a tree; what vanishes meanwhile is left out. Contents of more than 1 MiB are an error,
    /// since a judge compares small things.
    ///
    /// # Errors
    ///
    /// When something cannot be read.
    pub fn read(root: &Path) -> io::Result<Tree> {
        let mut tree = Tree::default();
        tree.add(root, Path::new(""))?;
        Ok(tree)
    }

    fn add(&mut self, root: &Path, below: &Path) -> io::Result<()> {
        for entry in fs::read_dir(root.join(below))? {
            let entry = entry?;
            let path = below.join(entry.file_name());
            let Some(node) = vanished(node(&entry.path()))? else { continue };
            let is_dir = matches!(node, Node::Dir(_));
            self.0.insert(path.clone(), node);
            if is_dir {
                vanished(self.add(root, &path))?;
            }
        }
        Ok(())
    }

    /// What the other has and this has not, or has otherwise.
    #[must_use]
    pub fn beyond<'t>(&self, other: &'t Tree) -> Vec<(&'t Path, &'t Node)> {
        let differs = |(path, node): &(&'t PathBuf, &'t Node)| self.0.get(*path) != Some(*node);
        other.0.iter().filter(differs).map(|(path, node)| (path.as_path(), node)).collect()
    }

    /// The names at the top.
    pub fn top(&self) -> impl Iterator<Item = &OsStr> {
        self.0.keys().filter(|path| path.components().count() == 1).map(|path| path.as_os_str())
    }

    /// The part of the tree below `top`.
    #[must_use]
    pub fn below(&self, top: &OsStr) -> Tree {
        let within = self.0.iter().filter(|(path, _)| path.starts_with(top));
        Tree(within.map(|(path, node)| (path.clone(), node.clone())).collect())
    }

    /// The tree without what differs from run to run: of names, each run of twelve characters of a
    /// random part, and of links, the text.
    #[must_use]
    pub fn shape(&self) -> Vec<String> {
        let line = |(path, node): (&PathBuf, &Node)| {
            let path = path.as_os_str().as_bytes();
            let path = String::from_utf8_lossy(&without_random(path)).into_owned();
            match node {
                Node::Dir(_) => format!("{path}/"),
                Node::File(..) => path,
                Node::Link(_) => format!("{path}@"),
                Node::Fifo => format!("{path}|"),
                Node::Other => format!("{path}="),
            }
        };
        let mut lines: Vec<String> = self.0.iter().map(line).collect();
        lines.sort_unstable();
        lines
    }
}

fn vanished<T>(answer: io::Result<T>) -> io::Result<Option<T>> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn node(path: &Path) -> io::Result<Node> {
    const CONTENT_MAX: u64 = 1 << 20;
    let metadata = fs::symlink_metadata(path)?;
    let (kind, mode) = (metadata.file_type(), metadata.permissions().mode() & 0o7777);
    if kind.is_symlink() {
        Ok(Node::Link(fs::read_link(path)?))
    } else if kind.is_dir() {
        Ok(Node::Dir(mode))
    } else if kind.is_fifo() {
        Ok(Node::Fifo)
    } else if kind.is_socket() || kind.is_block_device() || kind.is_char_device() {
        Ok(Node::Other)
    } else if metadata.len() > CONTENT_MAX {
        let text = format!("{} is too large to be compared", path.display());
        Err(io::Error::new(io::ErrorKind::FileTooLarge, text))
    } else {
        Ok(Node::File(mode, fs::read(path)?))
    }
}

/// Puts `*` for every run of twelve or more characters of the random alphabet that follows a
/// hyphen.
pub(crate) fn without_random(bytes: &[u8]) -> Vec<u8> {
    let is_random = |byte: &u8| matches!(byte, b'a'..=b'z' | b'2'..=b'7');
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, tail)) = rest.split_first() {
        out.push(*first);
        rest = tail;
        let run = rest.iter().take_while(|byte| is_random(byte)).count();
        if *first == b'-' && run >= 12 {
            out.push(b'*');
            rest = &rest[run..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_parts_have_no_shape() {
        assert_eq!(
            without_random(b".lab-abcdefghij27.dead-aaaaaaaaaaaa/owner"),
            b".lab-*.dead-*/owner"
        );
        assert_eq!(without_random(b"lab-short/x-y"), b"lab-short/x-y");
    }

    #[test]
    fn a_tree_tells_what_another_has_beyond_it() {
        let mut one = Tree::default();
        one.0.insert("kept".into(), Node::Dir(0o700));
        let mut two = one.clone();
        two.0.insert("new".into(), Node::File(0o600, b"x".to_vec()));
        assert_eq!(one.beyond(&two), [(Path::new("new"), &Node::File(0o600, b"x".to_vec()))]);
        assert!(two.beyond(&one).is_empty());
        two.0.insert("kept".into(), Node::Dir(0o755));
        assert_eq!(two.beyond(&one), [(Path::new("kept"), &Node::Dir(0o700))]);
    }
}
