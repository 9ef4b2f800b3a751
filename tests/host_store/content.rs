//! What stands at the path: the old content or the new one, and never one that was lost in silence
//! (t1, t3, t4, t5, t6).

use std::cell::RefCell;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use mortmain::protocol::StoreFile;
use mortmain::sys::{Call, Errno, Host, Kernel as _, Name, PathBytes};
use mortmain::{ErrorKind, Store};
use mortmain_harness::ground::names_in;
use mortmain_harness::intercept::{Intercept, Moment};
use mortmain_harness::part;

use crate::support::{LAB, error_of, in_cell, is_free, put, soon, store_at};

#[track_caller]
fn set(store: &Store, content: &str) {
    assert!(store.update(|_| Some(content.into())).expect("it can be written"));
}

#[track_caller]
fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("it is there")
}

#[test]
fn of_what_many_processes_count_nothing_is_lost() {
    in_cell(|path| {
        part::run_together(LAB, "store-count", path, 8);
        assert_eq!(text(path), "160");
        assert_eq!(names_in(path.parent().unwrap()), ["data", "data.lock"]);
    });
}

#[test]
fn killed_at_any_call_a_writer_leaves_the_old_content_or_the_new_one() {
    in_cell(|path| {
        fs::create_dir(path).unwrap();
        let mut killed = part::start(LAB, "store-killed", path).unwrap();
        let said = killed.lines().next_line(soon(), "how many have died").unwrap();
        println!("{said}");
        let deaths: u32 = said.split(' ').next().and_then(|n| n.parse().ok()).expect(&said);
        assert!(deaths > 40, "{said}");
        assert!(killed.wait(soon()).unwrap().success());
    });
}

#[test]
fn a_change_gets_what_the_one_before_it_wrote() {
    in_cell(|path| {
        let store = store_at(path);
        assert_eq!(store.path(), path);
        assert_eq!(format!("{store:?}"), format!("Store {{ path: {path:?}, .. }}"));
        assert_eq!(store.read().unwrap(), None);
        let written = store.update(|old| {
            assert_eq!(old, None);
            Some(b"one".to_vec())
        });
        assert!(written.unwrap());
        let written = store.update(|old| {
            assert_eq!(old, Some(&b"one"[..]));
            None
        });
        assert!(!written.unwrap(), "there was nothing to write");
        assert_eq!(store.read().unwrap().as_deref(), Some(&b"one"[..]));
        assert!(is_free(path));
    });
}

#[test]
fn a_change_that_panics_has_changed_nothing_and_lets_go() {
    in_cell(|path| {
        let store = store_at(path);
        set(&store, "old");
        let panics = catch_unwind(AssertUnwindSafe(|| store.update(|_| panic!("on purpose"))));
        assert!(panics.is_err(), "it goes on to whoever called");
        assert!(is_free(path));
        assert_eq!(text(path), "old");
        set(&store, "new");
    });
}

#[test]
fn a_write_that_finds_no_room_leaves_the_old_content_and_nothing_beside_it() {
    in_cell(|path| {
        put(&Host, path, b"old").unwrap();
        for which in ["create-file", "write", "sync", "rename"] {
            // The directory is asked for last, when the new content stands.
            let kernel = Intercept::refusing(Host, Errno::ENOSPC, move |call| call.word() == which);
            let (kind, said) = error_of(put(&kernel, path, b"new"));
            assert_eq!(kind, ErrorKind::NoSpace, "{which}: {said}");
            assert_eq!(text(path), "old", "{which}");
            assert_eq!(names_in(path.parent().unwrap()), ["data", "data.lock"], "{which}");
            assert!(is_free(path));
        }
    });
}

#[test]
fn a_write_in_parts_is_written_to_its_end() {
    in_cell(|path| {
        let adversary = |call: &Call, moment: Moment| match call {
            Call::Write { fd, offset, bytes } if moment == Moment::Before => {
                let part = bytes[..1].into();
                Some(Host.call(Call::Write { fd: *fd, offset: *offset, bytes: part }))
            }
            _ => None,
        };
        let kernel = Intercept::new(Host, Rc::new(RefCell::new(adversary)));
        put(&kernel, path, b"in five parts").unwrap();
        assert_eq!(text(path), "in five parts");
    });
}

#[test]
fn the_file_keeps_its_mode() {
    in_cell(|path| {
        let store = store_at(path);
        let mode = || fs::metadata(path).unwrap().permissions().mode() & 0o777;
        set(&store, "new");
        assert_eq!(mode(), 0o600);
        for other in [0o644, 0o400] {
            fs::set_permissions(path, Permissions::from_mode(other)).unwrap();
            set(&store, "newer");
            assert_eq!(mode(), other);
        }
    });
}

fn numbers(path: &Path) -> Store {
    store_at(path).valid_if(|content| match content.iter().all(u8::is_ascii_digit) {
        true => Ok(()),
        false => Err("it is no number".into()),
    })
}

#[test]
fn a_content_that_cannot_be_understood_is_told_and_kept_aside() {
    in_cell(|path| {
        let store = numbers(path);
        let aside = PathBuf::from(format!("{}.corrupt", path.display()));
        fs::write(path, "half a numb").unwrap();
        let (kind, said) = error_of(store.read());
        assert_eq!(kind, ErrorKind::Corrupt);
        let expected = format!(
            "cannot read {}: it is no number; look at it, and repair it or remove it",
            path.display()
        );
        assert_eq!(said, expected);
        assert_eq!(text(path), "half a numb", "reading changes nothing");
        let (kind, said) = error_of(store.update(|_| panic!("it must not be asked")));
        assert_eq!(kind, ErrorKind::Corrupt);
        assert!(said.contains("it is no number; it is kept as data.corrupt"), "{said}");
        assert_eq!(text(&aside), "half a numb");
        assert!(is_free(path));
        set(&store, "1");
        // The one that was kept may be the only good copy.
        fs::write(path, "another").unwrap();
        for _ in 0..2 {
            let (kind, said) = error_of(store.update(|_| Some(b"2".to_vec())));
            assert_eq!(kind, ErrorKind::Corrupt);
            assert!(said.contains("it stays, because there is already data.corrupt"), "{said}");
            assert_eq!((text(path).as_str(), text(&aside).as_str()), ("another", "half a numb"));
        }
    });
}

#[test]
fn another_files_lock_writes_nothing() {
    in_cell(|path| {
        let dir = path.parent().expect("it lies in a directory");
        let root = PathBytes::from(dir.as_os_str().as_bytes());
        let file = |name| StoreFile::open(&Host, &root, Name::fixed(name)).unwrap();
        let (one, other) = (file("one"), file("other"));
        let lock = one.lock().attempt().unwrap().expect("nobody else wants it");
        let written = catch_unwind(AssertUnwindSafe(|| other.write(&lock, b"beside somebody")));
        let words = written.expect_err("it panics");
        let words = words.downcast_ref::<&str>().copied().unwrap_or_default();
        assert_eq!(words, "another file's lock is no proof");
        assert_eq!(names_in(dir), ["one.lock"]);
    });
}

#[test]
fn what_cannot_be_put_aside_stays_and_says_why() {
    in_cell(|path| {
        fs::write(path, "half a numb").unwrap();
        let dir = path.parent().expect("it lies in a directory").as_os_str().as_bytes();
        let looks = |call: &Call| match call {
            Call::StatAt { name, .. } => name.bytes() == b"data.corrupt",
            _ => false,
        };
        let renames = |call: &Call| matches!(call, Call::Rename { .. });
        let refusing: [(Intercept<Host>, _); 2] = [
            (
                Intercept::refusing(Host, Errno::EMFILE, looks),
                "it stays, since data.corrupt could not be looked at: too many open files",
            ),
            (
                Intercept::refusing(Host, Errno::EACCES, renames),
                "it stays, since it could not be put aside: permission denied",
            ),
        ];
        for (kernel, why) in refusing {
            let file =
                StoreFile::open(&kernel, &PathBytes::from(dir), Name::fixed("data")).unwrap();
            let lock = file.lock().attempt().unwrap().expect("nobody else wants it");
            let said = file.put_aside(&lock, "it is no number").to_string();
            assert!(said.contains(&format!("it is no number; {why}")), "{said}");
            assert_eq!(text(path), "half a numb");
        }
    });
}

#[test]
fn a_content_that_would_be_refused_is_not_written() {
    in_cell(|path| {
        let store = numbers(path);
        set(&store, "1");
        let (kind, said) = error_of(store.update(|_| Some(b"two".to_vec())));
        assert_eq!(kind, ErrorKind::Corrupt);
        assert!(said.contains("the new content is refused, and not written"), "{said}");
        assert_eq!(text(path), "1");
    });
}

#[test]
fn a_content_over_the_limit_is_neither_read_nor_written() {
    in_cell(|path| {
        let store = store_at(path).bytes_max(4);
        set(&store, "four");
        let (kind, said) = error_of(store.update(|_| Some(b"five!".to_vec())));
        assert_eq!(kind, ErrorKind::TooLarge, "{said}");
        assert_eq!(text(path), "four");
        fs::write(path, "five!").unwrap();
        let (kind, said) = error_of(store.read());
        assert_eq!(kind, ErrorKind::TooLarge, "{said}");
    });
}

#[test]
fn what_is_no_file_is_neither_read_nor_replaced() {
    in_cell(|path| {
        let plant: [&dyn Fn(); 3] =
            [&|| symlink("elsewhere", path).unwrap(), &|| fs::create_dir(path).unwrap(), &|| {
                nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap()
            }];
        for plant in plant {
            plant();
            let store = store_at(path);
            let (kind, said) = error_of(store.read());
            assert_eq!(kind, ErrorKind::Obstructed, "{said}");
            let (kind, said) = error_of(put(&Host, path, b"new"));
            assert_eq!(kind, ErrorKind::Obstructed, "{said}");
            let removed = if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
            removed.unwrap();
        }
    });
}

#[test]
fn a_change_beside_another_one_is_told() {
    in_cell(|path| {
        let store = store_at(path);
        let (kind, said) = error_of(store.update(|_| {
            fs::remove_file(path.with_extension("lock")).unwrap();
            Some(b"new".to_vec())
        }));
        assert_eq!(kind, ErrorKind::LockLost, "{said}");
        assert_eq!(text(path), "new");
    });
}
