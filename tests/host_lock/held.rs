//! A lock that is held: whose it is, when it ends, and how its loss is told (f2, f4, f5).

use std::fs::{self, File};
use std::io;
use std::process::Command;

use mortmain::ErrorKind;
use mortmain::sys::Handle;
use mortmain_harness::descriptors;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::intercept::copy_of;

use crate::support::{error_of, file_of, holder, in_cell, is_free, lock_at, soon, start, stranger};

#[test]
fn a_holder_that_is_killed_has_let_go() {
    in_cell(|path| {
        let mut holder = holder(path);
        assert!(!is_free(path));
        holder.kill_hard().unwrap();
        assert!(is_free(path));
    });
}

/// What a child has that another thread has just forked, and that did not come to its exec yet.
#[test]
fn a_copy_of_the_descriptor_does_not_prolong_the_lock() {
    in_cell(|path| {
        for drops in [false, true] {
            let guard = lock_at(path).lock().unwrap();
            let fds = descriptors::on(&file_of(path)).unwrap();
            assert_eq!(fds.len(), 1, "{fds:?}");
            let _copy = copy_of(Handle(fds[0])).unwrap();
            if drops {
                let _let_go = guard;
            } else {
                guard.unlock().unwrap();
            }
            assert!(is_free(path), "dropped: {drops}");
        }
    });
}

#[test]
fn no_program_that_is_started_meanwhile_has_the_descriptor() {
    in_cell(|path| {
        let _guard = lock_at(path).lock().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "ls -l /proc/self/fd"]);
        let mut list = ChildGuard::spawn(command).unwrap();
        let open = list.lines().expect_eof(soon(), "what it has open").unwrap().join("\n");
        assert!(list.wait(soon()).unwrap().success() && open.contains(" -> "), "{open}");
        assert!(!open.contains("ledger.lock"), "{open}");
    });
}

#[test]
fn a_forked_child_neither_gives_the_lock_back_nor_has_it() {
    in_cell(|path| {
        let mut forked = start("lock-forked", path);
        assert_eq!(forked.lines().next_line(soon(), "how it went").unwrap(), "as it should be");
        assert!(forked.wait(soon()).unwrap().success());
        assert!(is_free(path));
    });
}

#[test]
fn a_lock_whose_file_was_removed_or_replaced_says_so_when_it_is_given_back() {
    in_cell(|path| {
        for replaced in [false, true] {
            let guard = lock_at(path).lock().unwrap();
            fs::remove_file(file_of(path)).unwrap();
            if replaced {
                fs::write(file_of(path), "").unwrap();
            }
            let (kind, said) = error_of(guard.unlock());
            assert_eq!(kind, ErrorKind::LockLost);
            assert!(said.contains("its file was removed or replaced while it was held"), "{said}");
            assert!(is_free(path));
        }
    });
}

/// The number of a descriptor that somebody closed is given to the next file that is opened.
#[test]
fn a_strangers_lock_at_the_number_of_a_closed_descriptor_stays() {
    in_cell(|path| {
        let guard = lock_at(path).lock().unwrap();
        let number = descriptors::on(&file_of(path)).unwrap()[0];
        let other = path.with_file_name("other");
        fs::write(&other, "").unwrap();
        let mut others = descriptors::replace(number, &other).unwrap();
        let theirs = others.pop().expect("it has just been opened");
        theirs.lock().unwrap();
        let (kind, said) = error_of(guard.unlock());
        assert_eq!(kind, ErrorKind::LockLost, "{said}");
        let asks = File::open(&other).unwrap();
        assert!(asks.try_lock().is_err(), "a stranger's lock was given back");
        theirs.metadata().expect("its descriptor was not closed");
    });
}

#[test]
fn the_command_of_the_system_takes_part() {
    in_cell(|path| {
        let flock = || {
            let mut command = Command::new("flock");
            command.arg("-n").arg(file_of(path)).arg("true");
            ChildGuard::spawn(command)
        };
        let guard = lock_at(path).lock().unwrap();
        match flock() {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => {
                eprintln!("skipped: there is no flock(1)");
                return;
            }
            started => assert_eq!(started.unwrap().wait(soon()).unwrap().code(), Some(1)),
        }
        guard.unlock().unwrap();
        assert!(flock().unwrap().wait(soon()).unwrap().success());
        assert!(stranger(path).try_lock().unwrap().is_some());
    });
}
