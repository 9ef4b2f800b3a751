//! Mounts are told and not entered, whatever is asked of their names.

use mortmain::sys::{Errno, Kind};
use nix::mount::{MsFlags, mount};

use crate::support::{Place, in_cell, is_root, name, open_root};

/// A place in which `dir` is a mount of a directory and `file` one of a file,
/// both of the same file system, so that device numbers do not show them.
fn with_mounts() -> Option<Place> {
    if !is_root("a mount cannot be made") {
        return None;
    }
    let outside = Place::new().with_dir("dir").with_file("dir/inside", "").with_file("file", "");
    let place = Place::new().with_dir("dir").with_file("file", "");
    for bound in ["dir", "file"] {
        let (from, to) = (outside.path(bound), place.path(bound));
        mount(Some(&from), &to, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .expect("root may mount in its cell");
    }
    Some(place)
}

#[test]
fn a_mount_is_not_entered() {
    in_cell(|| {
        let Some(place) = with_mounts() else { return };
        let crosses = Some(Errno::EXDEV);
        assert_eq!(place.dir.open_dir(&name("dir")).err(), crosses);
        assert_eq!(place.dir.open_file(&name("file")).err(), crosses);
        assert_eq!(place.dir.unseal(&name("dir")).err(), crosses);
        for bound in ["dir", "file"] {
            assert_eq!(place.dir.stat_at(&name(bound)).err(), crosses, "{bound}");
            assert_eq!(place.dir.readlink(&name(bound)).err(), crosses, "{bound}");
            assert_eq!(place.dir.create_file(&name(bound)).err(), crosses, "{bound}");
        }
    });
}

#[test]
fn a_mount_is_not_removed() {
    in_cell(|| {
        let Some(place) = with_mounts() else { return };
        assert_eq!(place.dir.rmdir(&name("dir")), Err(Errno::EBUSY));
        assert_eq!(place.dir.unlink(&name("file")), Err(Errno::EBUSY));
        assert_eq!(place.dir.rename(&name("dir"), &name("new")), Err(Errno::EBUSY));
    });
}

#[test]
fn a_mount_may_be_a_root_itself() {
    in_cell(|| {
        let Some(place) = with_mounts() else { return };
        let root = open_root(&place.path("dir")).expect("a caller may choose it");
        assert_eq!(root.stat_at(&name("inside")).map(|stat| stat.kind), Ok(Kind::File));
    });
}
