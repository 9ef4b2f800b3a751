//! The kinds of file system whose locks can be believed (c4, l1).
//!
//! A `flock` is a proof only where every process that could hold it asks the
//! same kernel for it. A network or user-space file system may keep it to one
//! machine, to one mount, or only pretend. So the list is short, and what is
//! not on it is refused at creation and is "cannot tell" in a sweep.

use alloc::string::String;

use crate::sys::FsMagic;

macro_rules! kinds {
    ($($kind:ident = $code:literal, $magic:literal, $name:literal;)*) => {
        /// A kind of file system on the list.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum FsKind {
            $(#[doc = $name] $kind,)*
        }

        impl FsKind {
            /// The kind that a magic number stands for; `None` when it is not
            /// on the list.
            #[must_use]
            pub fn from_magic(magic: FsMagic) -> Option<FsKind> {
                match magic.0 { $($magic => Some(FsKind::$kind),)* _ => None }
            }

            /// Its name, as `mount` shows it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(FsKind::$kind => $name,)* }
            }

            /// Its number in a record.
            pub(crate) fn code(self) -> u8 {
                match self { $(FsKind::$kind => $code,)* }
            }

            /// The kind that a number in a record stands for.
            pub(crate) fn from_code(code: u8) -> Option<FsKind> {
                match code { $($code => Some(FsKind::$kind),)* _ => None }
            }
        }
    };
}

impl FsKind {
    /// The kind that a magic number stands for; in words why a lock there is none, when it is not
    /// on the list.
    pub(crate) fn listed(magic: FsMagic) -> Result<FsKind, String> {
        FsKind::from_magic(magic).ok_or_else(|| {
            alloc::format!(
                "locks on a file system of kind {:#x} may not reach every process that uses it",
                magic.0
            )
        })
    }
}

// Magic numbers: linux/magic.h, and the file systems' own headers for zfs and bcachefs.
kinds! {
    Tmpfs = 1, 0x0102_1994, "tmpfs";
    Ext4 = 2, 0xEF53, "ext4";
    Xfs = 3, 0x5846_5342, "xfs";
    Btrfs = 4, 0x9123_683E, "btrfs";
    F2fs = 5, 0xF2F5_2010, "f2fs";
    Zfs = 6, 0x2FC1_2FC1, "zfs";
    Bcachefs = 7, 0xCA45_1A4E, "bcachefs";
    Overlayfs = 8, 0x794C_7630, "overlay";
    Apfs = 9, 0x1A, "apfs";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_survives_its_record() {
        for code in 0..=255 {
            if let Some(kind) = FsKind::from_code(code) {
                assert_eq!(kind.code(), code);
            }
        }
        assert_eq!(FsKind::from_code(0), None);
    }

    #[test]
    fn network_and_user_space_file_systems_are_not_on_the_list() {
        for (magic, name) in [
            (0x6969, "nfs"),
            (0x6573_5546, "fuse"),
            (0x0102_1997, "9p"),
            (0xFF53_4D42, "cifs"),
            (0x786F_4256, "vboxsf"),
            (0x0000_517B, "smb"),
        ] {
            assert_eq!(FsKind::from_magic(FsMagic(magic)), None, "{name}");
        }
    }
}
