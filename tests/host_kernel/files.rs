//! Files, directories and links, by each call that touches them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use mortmain::sys::{Call, Errno, FsMagic, Kind, PathBytes};
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use crate::support::{PATIENCE_MILLIS, Place, done, in_cell, is_root, name, open_root};

#[test]
fn a_root_is_opened_through_a_link_and_must_be_a_directory() {
    in_cell(|| {
        let place = Place::new().with_all_kinds();
        let through = open_root(&place.path("to-dir")).expect("a caller's root may be a link");
        let direct = place.dir.open_dir(&name("dir")).expect("it is a directory");
        assert_eq!(through.stat(), direct.stat());
        for (other, errno) in
            [("file", Errno::ENOTDIR), ("fifo", Errno::ENOTDIR), ("none", Errno::ENOENT)]
        {
            assert_eq!(open_root(&place.path(other)).err(), Some(errno), "{other}");
        }
        let nul = Call::OpenRoot { path: PathBytes(b"a\0b".to_vec()) };
        assert_eq!(done(nul), Err(Errno::EINVAL));
    });
}

#[test]
fn only_a_directory_is_opened_as_one() {
    in_cell(|| {
        let place = Place::new().with_all_kinds();
        let opened = place.dir.open_dir(&name("dir")).expect("it is a directory");
        assert_eq!(opened.stat().map(|stat| stat.kind), Ok(Kind::Dir));
        for (other, errno) in [
            ("file", Errno::ENOTDIR),
            ("fifo", Errno::ENOTDIR),
            ("socket", Errno::ENOTDIR),
            ("to-dir", Errno::ENOTDIR),
            ("to-file", Errno::ENOTDIR),
            ("none", Errno::ENOENT),
        ] {
            assert_eq!(place.dir.open_dir(&name(other)).err(), Some(errno), "{other}");
        }
    });
}

#[test]
fn only_a_regular_file_is_opened_as_one() {
    in_cell(|| {
        let place = Place::new().with_all_kinds();
        let opened = place.dir.open_file(&name("file")).expect("it is a file");
        assert_eq!(opened.stat().map(|stat| stat.kind), Ok(Kind::File));
        for (other, errno) in [
            ("dir", Errno::EISDIR),
            ("fifo", Errno::EINVAL),
            ("socket", Errno::EINVAL),
            ("to-file", Errno::ELOOP),
            ("to-dir", Errno::ELOOP),
            ("none", Errno::ENOENT),
        ] {
            assert_eq!(place.dir.open_file(&name(other)).err(), Some(errno), "{other}");
        }
        let devices = open_root("/dev".as_ref()).expect("every machine has one");
        assert_eq!(devices.open_file(&name("null")).err(), Some(Errno::EINVAL));
    });
}

#[test]
fn what_is_no_file_is_not_even_opened_to_see_that() {
    in_cell(|| {
        let place = Place::new().with_fifo("fifo").with_file("file", "");
        let opens = Inotify::init(InitFlags::IN_NONBLOCK).expect("inotify is there");
        for watched in ["fifo", "file"] {
            opens.add_watch(&place.path(watched), AddWatchFlags::IN_OPEN).expect("it exists");
        }
        assert_eq!(place.dir.open_file(&name("fifo")).err(), Some(Errno::EINVAL));
        assert_eq!(place.dir.stat_at(&name("fifo")).map(|stat| stat.kind), Ok(Kind::Other));
        let seen = || opens.read_events().map(|events| events.len());
        assert_eq!(seen(), Err(nix::errno::Errno::EAGAIN), "nothing was opened");
        place.dir.open_file(&name("file")).expect("it is a file");
        assert_eq!(seen(), Ok(1), "an open is seen");
    });
}

#[test]
fn a_fifo_that_takes_a_files_place_neither_blocks_nor_is_handed_out() {
    in_cell(|| {
        // The two are exchanged between the look and the open 15 times or more in so many rounds,
        // on a machine with a load of 15; more often on a quiet one.
        const ROUNDS: usize = 20_000;
        let place = Place::new().with_file("name", "").with_fifo("other");
        let paths = [place.path("name"), place.path("other")];
        let stop = AtomicBool::new(false);
        let (told, tally) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let [name, other] = &paths;
                    renameat2(AT_FDCWD, name, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE)
                        .expect("both exist");
                }
            });
            let dir = &place.dir;
            scope.spawn(move || {
                let mut seen = [0usize; 2];
                for _ in 0..ROUNDS {
                    match dir.open_file(&name("name")) {
                        Ok(file) => {
                            assert_eq!(file.stat().map(|stat| stat.kind), Ok(Kind::File));
                            seen[0] += 1;
                        }
                        Err(errno) => {
                            assert_eq!(errno, Errno::EINVAL);
                            seen[1] += 1;
                        }
                    }
                }
                told.send(seen)
            });
            let seen = tally.recv_timeout(Duration::from_millis(PATIENCE_MILLIS.into()));
            if seen.is_err() {
                // Who is blocked in the FIFO is let go by a writer, so that the test can end.
                for path in &paths {
                    let _writer = fs::OpenOptions::new().write(true).read(true).open(path);
                }
            }
            stop.store(true, Ordering::Relaxed);
            let [files, fifos] = seen.expect("no round blocks or fails");
            assert!(files > 0 && fifos > 0, "both were met: {files} files, {fifos} FIFOs");
        });
    });
}

#[test]
fn a_file_is_made_only_where_nothing_was() {
    in_cell(|| {
        let place = Place::new().with_all_kinds().with_link("dangling", "target");
        let made = place.dir.create_file(&name("new")).expect("the name is free");
        let stat = made.stat().expect("it is open");
        assert_eq!((stat.kind, stat.mode), (Kind::File, 0o600));
        assert_eq!(fs::metadata(place.path("new")).expect("it is there").len(), 0);
        for taken in ["new", "file", "dir", "fifo", "to-file", "dangling"] {
            let again = place.dir.create_file(&name(taken)).err();
            assert_eq!(again, Some(Errno::EEXIST), "{taken}");
        }
        assert!(!place.path("target").exists(), "the link was not followed");
    });
}

#[test]
fn a_name_is_seen_as_what_it_is() {
    in_cell(|| {
        let place = Place::new().with_all_kinds();
        for (there, kind) in [
            ("dir", Kind::Dir),
            ("file", Kind::File),
            ("fifo", Kind::Other),
            ("socket", Kind::Other),
            ("to-dir", Kind::Link),
            ("to-file", Kind::Link),
        ] {
            let stat = place.dir.stat_at(&name(there)).expect("it is there");
            let std = fs::symlink_metadata(place.path(there)).expect("it is there");
            assert_eq!(stat.kind, kind, "{there}");
            let of_std = (std.dev(), std.ino(), std.mode() & 0o7777, std.uid());
            assert_eq!((stat.dev, stat.ino, stat.mode, stat.uid), of_std, "{there}");
        }
        assert_eq!(place.dir.stat_at(&name("none")).err(), Some(Errno::ENOENT));
        let file = place.dir.open_file(&name("file")).expect("it is a file");
        assert_eq!(file.stat(), place.dir.stat_at(&name("file")));
    });
}

#[test]
fn a_kind_of_file_system_is_its_magic_number() {
    in_cell(|| {
        let of = |path: &str| open_root(path.as_ref()).expect("it is there").fs_magic();
        assert_eq!(Place::new().dir.fs_magic(), Ok(FsMagic(0x0102_1994)), "tmpfs");
        assert_eq!(of("/proc"), Ok(FsMagic(0x9FA0)), "proc");
    });
}

#[test]
fn a_listing_tells_each_entry_once_and_then_its_end() {
    in_cell(|| {
        let place = Place::new().with_all_kinds();
        let mut expected: Vec<String> = (0..4_000).map(|n| format!("entry-{n:04}")).collect();
        for file in &expected {
            fs::write(place.path(file), "").expect("the place is ours");
        }
        let all_kinds = ["dir", "fifo", "file", "socket", "to-dir", "to-file"];
        expected.extend(all_kinds.map(String::from));
        expected.sort_unstable();
        for restart in [false, true] {
            let mut entries = place.dir.read_dir(restart).expect("it is a directory");
            let mut calls = 1;
            loop {
                let more = place.dir.read_dir(false).expect("it is a directory");
                if more.is_empty() {
                    break;
                }
                entries.extend(more);
                calls += 1;
            }
            assert!(calls > 1, "one call gives a part of a large directory");
            assert_eq!(place.dir.read_dir(false), Ok(Vec::new()), "the end stays the end");
            for entry in &entries {
                let stat = place.dir.stat_at(&entry.name).expect("it is there");
                assert_eq!(entry.kind, stat.kind, "{}", entry.name);
            }
            let mut names: Vec<String> =
                entries.iter().map(|entry| entry.name.to_string()).collect();
            names.sort_unstable();
            assert_eq!(names, expected, "from the start: {restart}");
        }
    });
}

#[test]
fn an_empty_directory_ends_at_once() {
    in_cell(|| {
        let place = Place::new();
        assert_eq!(place.dir.read_dir(false), Ok(Vec::new()));
        let file = Place::new().with_file("file", "");
        let file = file.dir.open_file(&name("file")).expect("it is a file");
        assert_eq!(file.read_dir(false), Err(Errno::ENOTDIR));
    });
}

#[test]
fn a_directory_is_made_only_where_nothing_was() {
    in_cell(|| {
        let place = Place::new().with_all_kinds().with_link("dangling", "target");
        assert_eq!(place.dir.mkdir(&name("new")), Ok(()));
        let stat = place.dir.stat_at(&name("new")).expect("it is there");
        assert_eq!((stat.kind, stat.mode), (Kind::Dir, 0o700));
        for taken in ["new", "file", "dir", "to-dir", "dangling"] {
            assert_eq!(place.dir.mkdir(&name(taken)), Err(Errno::EEXIST), "{taken}");
        }
        assert!(!place.path("target").exists(), "the link was not followed");
    });
}

#[test]
fn a_link_holds_its_text_exactly() {
    in_cell(|| {
        let place = Place::new();
        let longest = [b'x'; 255];
        for (link, text) in [("a", &b"text"[..]), ("b", b"\xff/../\n"), ("c", &longest)] {
            assert_eq!(place.dir.symlink(&name(link), text), Ok(()));
            assert_eq!(place.dir.readlink(&name(link)).as_deref(), Ok(text), "{link}");
            assert_eq!(place.dir.symlink(&name(link), b"other"), Err(Errno::EEXIST), "{link}");
        }
        assert_eq!(place.dir.symlink(&name("d"), &[b'x'; 256]), Err(Errno::ENAMETOOLONG));
        assert_eq!(place.dir.symlink(&name("d"), b"a\0b"), Err(Errno::EINVAL));
        assert_eq!(place.dir.stat_at(&name("d")).err(), Some(Errno::ENOENT));
    });
}

#[test]
fn only_a_link_is_read_and_no_more_than_its_bound() {
    in_cell(|| {
        let place = Place::new().with_all_kinds().with_link("long", &"x".repeat(256));
        assert_eq!(place.dir.readlink(&name("long")), Err(Errno::EOVERFLOW));
        for other in ["file", "dir", "fifo", "socket"] {
            assert_eq!(place.dir.readlink(&name(other)), Err(Errno::EINVAL), "{other}");
        }
        assert_eq!(place.dir.readlink(&name("none")), Err(Errno::ENOENT));
    });
}

#[test]
fn a_rename_replaces_what_posix_lets_it_replace() {
    in_cell(|| {
        let place = Place::new()
            .with_file("file", "new")
            .with_file("other", "old")
            .with_dir("dir")
            .with_dir("empty")
            .with_dir("full")
            .with_file("full/inside", "");
        let rename = |from: &str, to: &str| place.dir.rename(&name(from), &name(to));
        assert_eq!(rename("file", "other"), Ok(()));
        assert_eq!(fs::read_to_string(place.path("other")).expect("it is there"), "new");
        assert_eq!(rename("dir", "empty"), Ok(()));
        assert_eq!(rename("empty", "full"), Err(Errno::ENOTEMPTY));
        assert_eq!(rename("other", "full"), Err(Errno::EISDIR));
        assert_eq!(rename("full", "other"), Err(Errno::ENOTDIR));
        assert_eq!(rename("none", "other"), Err(Errno::ENOENT));
    });
}

#[test]
fn a_name_is_removed_as_what_it_is() {
    in_cell(|| {
        let place = Place::new().with_all_kinds().with_dir("full").with_file("full/inside", "");
        let (unlink, rmdir) =
            (|n: &str| place.dir.unlink(&name(n)), |n: &str| place.dir.rmdir(&name(n)));
        assert_eq!(unlink("dir"), Err(Errno::EISDIR));
        assert_eq!(rmdir("file"), Err(Errno::ENOTDIR));
        assert_eq!(rmdir("to-dir"), Err(Errno::ENOTDIR));
        assert_eq!(rmdir("full"), Err(Errno::ENOTEMPTY));
        assert_eq!(unlink("none"), Err(Errno::ENOENT));
        assert_eq!(rmdir("none"), Err(Errno::ENOENT));
        for there in ["to-dir", "to-file", "fifo", "socket"] {
            assert_eq!(unlink(there), Ok(()), "{there}");
        }
        assert!(place.path("dir").exists() && place.path("file").exists(), "no link was followed");
        assert_eq!((unlink("file"), rmdir("dir")), (Ok(()), Ok(())));
    });
}

#[test]
fn a_sealed_directory_of_our_own_is_unsealed() {
    in_cell(|| {
        let place = Place::new().with_all_kinds();
        let mode = |n: &str| place.dir.stat_at(&name(n)).expect("it is there").mode;
        let seal = |n: &str, mode| {
            fs::set_permissions(place.path(n), fs::Permissions::from_mode(mode))
                .expect("it is ours");
        };
        seal("dir", 0);
        if !nix::unistd::geteuid().is_root() {
            assert_eq!(place.dir.open_dir(&name("dir")).err(), Some(Errno::EACCES));
        }
        assert_eq!(place.dir.unseal(&name("dir")), Ok(()));
        assert_eq!(mode("dir"), 0o700);
        seal("dir", 0o3777);
        assert_eq!(place.dir.unseal(&name("dir")), Ok(()));
        assert_eq!(mode("dir"), 0o700, "exactly");

        seal("dir", 0);
        seal("file", 0);
        for (other, errno) in [
            ("file", Errno::ENOTDIR),
            ("fifo", Errno::ENOTDIR),
            ("to-dir", Errno::ENOTDIR),
            ("none", Errno::ENOENT),
        ] {
            assert_eq!(place.dir.unseal(&name(other)), Err(errno), "{other}");
        }
        assert_eq!((mode("dir"), mode("file")), (0, 0), "nothing else was touched");
    });
}

#[test]
fn a_directory_of_another_user_is_not_unsealed() {
    in_cell(|| {
        if !is_root("a directory of another user cannot be made") {
            return;
        }
        let place = Place::new().with_dir("foreign");
        let path = place.path("foreign");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o500)).expect("it is ours");
        chown(&path, Some(4242), None).expect("root may");
        assert_eq!(place.dir.unseal(&name("foreign")), Err(Errno::EPERM));
        let stat = place.dir.stat_at(&name("foreign")).expect("it is there");
        assert_eq!((stat.mode, stat.uid), (0o500, 4242));
    });
}

/// The same as of the simulated kernel.
#[test]
fn a_file_keeps_what_was_written_and_a_read_ends_with_it() {
    in_cell(|| {
        let place = Place::new();
        let file = place.dir.create_file(&name("f")).expect("the name is free");
        assert_eq!(file.read(0, 9), Ok(vec![]));
        for (offset, text) in [(0, &b"abc"[..]), (2, b"CD"), (6, b"x")] {
            assert_eq!(file.write(offset, text), Ok(text.len() as u64));
        }
        assert_eq!(file.read(0, 9), Ok(b"abCD\0\0x".into()));
        assert_eq!(file.read(3, 2), Ok(b"D\0".into()));
        assert_eq!(file.read(7, 2), Ok(vec![]));
        assert_eq!(place.dir.read(0, 1), Err(Errno::EISDIR));
        assert_eq!((file.sync(), place.dir.sync()), (Ok(()), Ok(())));
        let opened = place.dir.open_file(&name("f")).expect("it is there");
        assert_eq!(opened.read(0, 4), Ok(b"abCD".into()));
        assert_eq!(opened.write(0, b"y"), Err(Errno::EBADF), "it was opened to be read");
    });
}
