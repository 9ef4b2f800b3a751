//! Names and paths as they cross the seam.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

/// One component of a path: not empty, at most 255 bytes, without `/` or NUL,
/// and neither `.` nor `..`. So nothing that is opened by a `Name` can climb
/// out of the directory it is looked up in (h1).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<[u8]>);

impl Name {
    /// The longest name that a Linux file system takes, in bytes.
    pub const BYTES_MAX: usize = 255;

    /// `None` when the bytes are not one component.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Name> {
        let one = !bytes.is_empty()
            && bytes.len() <= Name::BYTES_MAX
            && bytes != b"."
            && bytes != b".."
            && !bytes.iter().any(|byte| matches!(byte, b'/' | 0));
        one.then(|| Name(bytes.into()))
    }

    /// For the fixed names of the protocol.
    ///
    /// # Panics
    /// When the text is not one component, which is a mistake in the source.
    #[must_use]
    pub fn fixed(text: &'static str) -> Name {
        Name::new(text.as_bytes()).expect("a fixed name is one component")
    }

    /// The bytes of the name.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(f, &self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// A path of any bytes, for roots and for messages; never looked up below a
/// claim.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PathBytes(pub Vec<u8>);

impl PathBytes {
    /// The path of `name` below this one.
    #[must_use]
    pub fn join(&self, name: &[u8]) -> PathBytes {
        let mut bytes = self.0.clone();
        if !bytes.ends_with(b"/") && !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        PathBytes(bytes)
    }
}

impl From<&[u8]> for PathBytes {
    fn from(bytes: &[u8]) -> PathBytes {
        PathBytes(bytes.into())
    }
}

impl fmt::Display for PathBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(f, &self.0)
    }
}

impl fmt::Debug for PathBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// Writes bytes so that a terminal cannot be harmed and no two names look the
/// same: valid text as it is, control characters, backslashes and stray bytes
/// as escapes.
pub(crate) fn escaped(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\\' || c.is_control() {
                write!(f, "{}", c.escape_default())?;
            } else {
                f.write_char(c)?;
            }
        }
        for byte in chunk.invalid() {
            write!(f, "\\x{byte:02x}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn names_and_paths_are_told_in_quotes() {
        let name = Name::new(b"a").expect("it is one component");
        assert_eq!(format!("{name:?}"), "`a`");
        assert_eq!(format!("{:?}", PathBytes::from(&b"/a"[..])), "`/a`");
    }

    #[test]
    fn a_name_is_one_component() {
        for bad in [&b""[..], b".", b"..", b"a/b", b"a\0", &[b'a'; 256]] {
            assert_eq!(Name::new(bad), None);
        }
        for good in [&b"..."[..], b".hidden", b"\xff", b"a\n", &[b'a'; 255]] {
            assert_eq!(Name::new(good).map(|n| n.bytes().to_vec()), Some(good.to_vec()));
        }
    }

    #[test]
    fn names_are_shown_without_loss_and_without_control_characters() {
        let name = Name::new(b"a\n\xff\\\xc3\xa9").expect("one component");
        assert_eq!(format!("{name}"), "a\\n\\xff\\\\é");
    }
}
