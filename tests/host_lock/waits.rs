//! Waiting for a lock: how long, for whom, and how its end is told (f6, f7).

use std::fs;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use mortmain::{Error, ErrorKind, FileLock};

use crate::support::{error_of, file_of, holder, in_cell, is_free, lock_at, soon, stranger};

/// Long enough for a few questions.
const SHORT: Duration = Duration::from_millis(50);

/// What comes of a wait of a short time, on a thread of its own, so that one that goes on for ever
/// fails the test instead of holding it up.
#[track_caller]
fn after_a_short_wait(lock: FileLock) -> Result<(), Error> {
    let (tell, told) = channel();
    let _waits = thread::spawn(move || tell.send(lock.lock_timeout(SHORT).map(drop)));
    told.recv_timeout(soon().limit()).expect("it waits for ever")
}

#[test]
fn a_wait_ends_with_its_time_and_names_the_holder() {
    in_cell(|path| {
        let mut holder = holder(path);
        let (kind, said) = error_of(after_a_short_wait(lock_at(path)));
        assert_eq!(kind, ErrorKind::TimedOut);
        let expected = format!(
            "cannot lock {}: not within 50ms: it is held by {} `mortmain-lab`; wait longer, or end \
             its holder: the lock is free when that has died",
            file_of(path).display(),
            holder.pid()
        );
        assert_eq!(said, expected);
        holder.close_stdin();
        assert!(holder.wait(soon()).unwrap().success());
        lock_at(path).lock_timeout(Duration::ZERO).expect("it is free").unlock().unwrap();
    });
}

#[test]
fn a_wait_behind_a_thread_of_the_same_process_says_so() {
    in_cell(|path| {
        let _guard = lock_at(path).lock().unwrap();
        let (kind, said) = error_of(after_a_short_wait(lock_at(path)));
        assert_eq!(kind, ErrorKind::TimedOut);
        assert!(said.contains("threads of this process wait for it, or hold it"), "{said}");
        // To those of another table it is held by a process.
        let (_, said) = error_of(after_a_short_wait(stranger(path)));
        assert!(said.contains(&format!("it is held by {} `", std::process::id())), "{said}");
    });
}

#[test]
fn whoever_waits_has_the_lock_soon_after_its_holder_has_died() {
    in_cell(|path| {
        let mut holder = holder(path);
        let (tell, told) = channel();
        let lock = lock_at(path);
        let waits = thread::spawn(move || tell.send(lock.lock().map(drop)));
        assert_eq!(told.recv_timeout(SHORT).err(), Some(RecvTimeoutError::Timeout));
        holder.kill_hard().unwrap();
        told.recv_timeout(soon().limit()).expect("it is free").unwrap();
        waits.join().unwrap().unwrap();
    });
}

#[test]
fn a_thread_that_waits_for_another_is_woken() {
    in_cell(|path| {
        let guard = lock_at(path).lock().unwrap();
        let (tell, told) = channel();
        let lock = lock_at(path);
        let waits = thread::spawn(move || tell.send(lock.lock().map(drop)));
        assert_eq!(told.recv_timeout(SHORT).err(), Some(RecvTimeoutError::Timeout));
        guard.unlock().unwrap();
        told.recv_timeout(soon().limit()).expect("it is free").unwrap();
        waits.join().unwrap().unwrap();
    });
}

#[test]
fn a_thread_with_a_time_limit_waits_for_its_turn() {
    in_cell(|path| {
        let guard = lock_at(path).lock().unwrap();
        let (tell, told) = channel();
        let lock = lock_at(path);
        let waits = thread::spawn(move || tell.send(lock.lock_timeout(soon().limit()).map(drop)));
        let early = told.recv_timeout(SHORT);
        guard.unlock().unwrap();
        assert_eq!(early.err(), Some(RecvTimeoutError::Timeout), "it is another thread's turn");
        told.recv_timeout(soon().limit()).expect("it is free").unwrap();
        waits.join().unwrap().unwrap();
    });
}

/// A cleaner by age takes the file; the holder goes on undisturbed, and the waiter gets a lock that
/// everybody else meets.
#[test]
fn a_file_that_is_removed_while_somebody_waits_is_made_anew() {
    in_cell(|path| {
        let mut holder = holder(path);
        let (tell, told) = channel();
        let lock = lock_at(path);
        let waits = thread::spawn(move || tell.send(lock.lock()));
        assert_eq!(told.recv_timeout(SHORT).err(), Some(RecvTimeoutError::Timeout));
        fs::remove_file(file_of(path)).unwrap();
        let answer = told.recv_timeout(soon().limit()).expect("it is free");
        assert!(!is_free(path), "what it has locked is not what is at the name");
        answer.unwrap().unlock().unwrap();
        waits.join().unwrap().expect("it was heard");
        holder.kill_hard().unwrap();
    });
}
