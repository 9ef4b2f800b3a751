//! What the lock is taken on: one empty file, whatever stands there and whoever replaces it
//! (f1, f2, f3).

use std::cell::RefCell;
use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::rc::Rc;
use std::time::SystemTime;

use mortmain::sys::{Call, Errno, Host};
use mortmain::{ErrorKind, FileLock};
use mortmain_harness::ground::is_root;
use mortmain_harness::intercept::{Intercept, Moment};
use mortmain_harness::part::run_together;
use nix::mount::{MsFlags, mount, umount};
use nix::sys::stat::Mode;

use crate::support::{
    LAB, error_of, file_of, in_cell, is_free, lock_at, over, soon, start, stranger,
};

/// Those who judge a lock's file by its age let two in here.
#[test]
fn of_sixteen_processes_at_an_old_leftover_one_is_inside_at_a_time() {
    in_cell(|path| {
        let file = File::create(file_of(path)).unwrap();
        file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH)).unwrap();
        run_together(LAB, "lock-rounds", path, 16);
        assert_eq!(fs::read_to_string(path.with_extension("count")).unwrap(), "320");
        assert_eq!(fs::metadata(file_of(path)).unwrap().len(), 0);
    });
}

#[test]
fn killed_at_any_call_a_holder_leaves_a_lock_that_is_free() {
    in_cell(|path| {
        fs::create_dir(path).unwrap();
        let mut killed = start("lock-killed", path);
        let said = killed.lines().next_line(soon(), "how many have died").unwrap();
        let deaths: u32 = said.strip_suffix(" deaths").and_then(|n| n.parse().ok()).expect(&said);
        assert!(deaths > 20, "{said}");
        assert!(killed.wait(soon()).unwrap().success());
    });
}

#[test]
fn the_file_stays_empty_and_takes_the_lock_again() {
    in_cell(|path| {
        let lock = lock_at(path);
        assert_eq!(lock.path(), file_of(path));
        for _ in 0..2 {
            lock.lock().unwrap().unlock().unwrap();
            assert_eq!(fs::metadata(file_of(path)).unwrap().len(), 0);
            assert!(!path.exists());
        }
    });
}

#[test]
fn two_ways_to_a_directory_lead_to_one_lock() {
    in_cell(|path| {
        let dir = path.parent().unwrap();
        symlink(dir, dir.join("link")).unwrap();
        let guard = lock_at(path).lock().unwrap();
        let other = lock_at(&dir.join("link/ledger"));
        assert_eq!(other.path(), file_of(path));
        assert!(other.try_lock().unwrap().is_none());
        guard.unlock().unwrap();
        assert!(other.try_lock().unwrap().is_some());
    });
}

#[test]
fn what_is_no_file_is_refused_and_neither_opened_nor_waited_for() {
    in_cell(|path| {
        let at = file_of(path);
        let plant: [(&str, &dyn Fn()); 5] = [
            ("a symbolic link", &|| symlink("elsewhere", &at).unwrap()),
            ("a directory", &|| fs::create_dir(&at).unwrap()),
            ("a FIFO, a socket or a device", &|| nix::unistd::mkfifo(&at, Mode::S_IRWXU).unwrap()),
            ("a FIFO, a socket or a device", &|| drop(UnixListener::bind(&at).unwrap())),
            ("a symbolic link", &|| symlink("/dev/zero", &at).unwrap()),
        ];
        for (what, plant) in plant {
            plant();
            let (kind, said) = error_of(lock_at(path).lock());
            assert_eq!(kind, ErrorKind::Obstructed, "{said}");
            let expected = format!(
                "cannot lock {}: {what} stands where the lock's file would be; move it away, or \
                 choose another path",
                at.display()
            );
            assert_eq!(said, expected);
            let removed = if at.is_dir() { fs::remove_dir(&at) } else { fs::remove_file(&at) };
            removed.unwrap();
        }
        assert!(!path.with_file_name("elsewhere").exists(), "a link was followed");
    });
}

#[test]
fn a_file_that_is_mounted_in_the_locks_place_is_refused() {
    in_cell(|path| {
        if !is_root("nothing can be mounted") {
            return;
        }
        let (at, elsewhere) = (file_of(path), path.with_file_name("elsewhere"));
        fs::write(&at, "").unwrap();
        fs::write(&elsewhere, "").unwrap();
        let none = None::<&str>;
        mount(Some(&elsewhere), &at, none, MsFlags::MS_BIND, none).unwrap();
        let (kind, said) = error_of(lock_at(path).lock());
        umount(&at).unwrap();
        assert_eq!(kind, ErrorKind::Obstructed, "{said}");
        assert!(said.contains(": a mount stands where the lock's file would be; "), "{said}");
    });
}

#[test]
fn where_locks_may_not_reach_everybody_there_is_none() {
    in_cell(|_| {
        let (kind, said) = error_of(FileLock::at("/proc/ledger"));
        assert_eq!(kind, ErrorKind::NoLocks);
        assert!(said.ends_with("; choose a directory on a local file system"), "{said}");
    });
}

#[test]
fn a_path_that_cannot_be_locked_says_why() {
    in_cell(|path| {
        let long = "n".repeat(252);
        for (path, errno) in [
            (path.join("missing"), Errno::ENOENT),
            (path.with_file_name(long), Errno::ENAMETOOLONG),
            ("/".into(), Errno::EINVAL),
        ] {
            let error = FileLock::at(&path).expect_err("it names no file");
            assert_eq!(error.errno(), Some(errno), "{error}");
        }
    });
}

/// What the next one locks must be what this one holds.
#[test]
fn a_file_that_is_replaced_between_its_opening_and_its_locking_is_not_what_is_held() {
    in_cell(|path| {
        let (at, other) = (file_of(path), path.with_file_name("other"));
        for removes in [false, true] {
            let (at, other) = (at.clone(), other.clone());
            let act = move || match removes {
                true => fs::remove_file(&at).unwrap(),
                false => {
                    fs::write(&other, "").unwrap();
                    fs::rename(&other, &at).unwrap();
                }
            };
            let is_lock = |call: &Call| matches!(call, Call::Lock { .. });
            let kernel = Intercept::once(Host, Moment::Before, is_lock, act);
            let held = over(&kernel, path).attempt().unwrap().expect("nobody else wants it");
            assert!(!is_free(path), "removed: {removes}: another one has it as well");
            held.unlock().unwrap();
            assert!(is_free(path));
        }
    });
}

#[test]
fn a_file_that_is_always_replaced_is_given_up_after_a_while_and_never_held() {
    in_cell(|path| {
        let rounds = Rc::new(RefCell::new(0));
        let (at, counted) = (file_of(path), Rc::clone(&rounds));
        let adversary = move |call: &Call, moment: Moment| {
            if matches!(call, Call::Lock { .. }) && moment == Moment::After {
                *counted.borrow_mut() += 1;
                fs::remove_file(&at).unwrap();
            }
            None
        };
        let kernel = Intercept::new(Host, Rc::new(RefCell::new(adversary)));
        let (kind, said) = error_of(over(&kernel, path).attempt());
        assert_eq!(kind, ErrorKind::Replaced, "{said}");
        assert_eq!(*rounds.borrow(), 64);
        assert!(is_free(path));
    });
}

#[test]
fn a_file_that_was_opened_and_not_kept_is_nobodys() {
    in_cell(|path| {
        let guard = lock_at(path).lock().unwrap();
        assert!(stranger(path).try_lock().unwrap().is_none());
        assert!(lock_at(path).try_lock().unwrap().is_none());
        guard.unlock().unwrap();
        assert!(is_free(path));
    });
}

#[test]
fn a_signal_is_no_answer() {
    in_cell(|path| {
        let left = RefCell::new(3);
        let adversary = move |call: &Call, moment: Moment| {
            let mut left = left.borrow_mut();
            let asks = matches!(
                call,
                Call::OpenFile { .. }
                    | Call::CreateFile { .. }
                    | Call::Lock { .. }
                    | Call::Unlock { .. }
            );
            if !asks || moment == Moment::After || *left == 0 {
                *left = if asks && moment == Moment::Before { 3 } else { *left };
                return None;
            }
            *left -= 1;
            Some(Err(Errno::EINTR))
        };
        let kernel = Intercept::new(Host, Rc::new(RefCell::new(adversary)));
        let held = over(&kernel, path).attempt().unwrap().expect("nobody else wants it");
        assert!(!is_free(path));
        held.unlock().unwrap();
        assert!(is_free(path));
        let kernel =
            Intercept::refusing(Host, Errno::EINTR, |call| matches!(call, Call::Lock { .. }));
        let (kind, said) = error_of(over(&kernel, path).attempt());
        assert_eq!(kind, ErrorKind::System, "it goes on for ever: {said}");
    });
}
