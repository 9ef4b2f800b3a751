//! Descriptors, whatever they are of.

use std::fs;
use std::path::Path;

use mortmain::sys::{Answer, Call, Errno, Fd, Handle, Host, Kernel};

use crate::support::{Place, done, in_cell, name, open_root};

/// `O_CLOEXEC` and `O_NONBLOCK` of fcntl.h.
const CLOSE_ON_EXEC: u32 = 0o2_000_000;
const NON_BLOCKING: u32 = 0o4_000;

/// One descriptor of each call that hands one out.
fn one_of_each(place: &Place) -> [(&'static str, Answer<Fd<Host>>); 4] {
    [
        ("open-root", open_root(&place.path)),
        ("open-dir", place.dir.open_dir(&name("dir"))),
        ("open-file", place.dir.open_file(&name("file"))),
        ("create-file", place.dir.create_file(&name("new"))),
    ]
}

fn flags_of(fd: &Fd<Host>) -> u32 {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.raw().0)).expect("it is open");
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).expect("it has flags");
    u32::from_str_radix(flags.trim(), 8).expect("they are octal")
}

#[test]
fn every_descriptor_is_close_on_exec_and_does_not_block() {
    in_cell(|| {
        let place = Place::new().with_dir("dir").with_file("file", "");
        for (call, fd) in one_of_each(&place) {
            let flags = flags_of(&fd.expect("it can be opened"));
            assert_eq!(flags & CLOSE_ON_EXEC, CLOSE_ON_EXEC, "{call}: {flags:o}");
            assert_eq!(flags & NON_BLOCKING, NON_BLOCKING, "{call}: {flags:o}");
        }
    });
}

#[test]
fn no_descriptor_takes_the_place_of_a_standard_stream() {
    in_cell(|| {
        let place = Place::new().with_dir("dir").with_file("file", "");
        assert_eq!(done(Call::Close { fd: Handle(0) }), Ok(()));
        for (call, fd) in one_of_each(&place) {
            let fd = fd.expect("it can be opened");
            assert!(fd.raw().0 > 2, "{call}: {:?}", fd.raw());
            assert_eq!(flags_of(&fd) & CLOSE_ON_EXEC, CLOSE_ON_EXEC, "{call}");
        }
        let left = Path::new("/proc/self/fd/0").symlink_metadata().is_ok();
        assert!(!left, "the low number was given back");
    });
}

#[test]
fn a_closed_descriptor_is_no_descriptor() {
    in_cell(|| {
        let place = Place::new();
        let raw = open_root(&place.path).expect("it is there").raw();
        let calls = [
            Call::Stat { fd: raw },
            Call::Lock { fd: raw },
            Call::ReadDir { dir: raw, restart: false },
            Call::Mkdir { dir: raw, name: name("new") },
            Call::Close { fd: raw },
        ];
        for call in calls {
            let text = call.to_string();
            assert_eq!(Host.call(call).err(), Some(Errno::EBADF), "{text}");
        }
    });
}

#[test]
fn a_negative_number_is_no_descriptor() {
    in_cell(|| {
        // -100 is AT_FDCWD, the working directory, to the kernel.
        for raw in [Handle(-1), Handle(-100), Handle(i32::MIN)] {
            let calls = [
                Call::OpenDir { dir: raw, name: name("tests") },
                Call::StatAt { dir: raw, name: name("Cargo.toml") },
                Call::Mkdir { dir: raw, name: name("new") },
                Call::Unlock { fd: raw },
                Call::Close { fd: raw },
            ];
            for call in calls {
                let text = call.to_string();
                assert_eq!(Host.call(call).err(), Some(Errno::EBADF), "{text}");
            }
        }
    });
}
