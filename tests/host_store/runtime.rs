//! A change that is awaited: no thread of the runtime waits with it, a panic is told, and a future
//! that is dropped does all or nothing (t7).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use mortmain::ErrorKind;
use tokio::runtime::Builder;

use crate::support::{error_of, in_cell, is_free, soon, store_at};

/// Runs something on a runtime of one thread, for everything but what may block. That thread is
/// given up after a while, so that one that waits fails the test instead of holding it up.
#[track_caller]
fn on_one_thread<F: Future<Output = ()>>(
    path: &Path,
    body: impl FnOnce(PathBuf) -> F + Send + 'static,
) {
    let (path, (tell, told)) = (path.to_owned(), channel());
    let thread = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime can be had").block_on(body(path));
        // Whoever does not listen any more has failed.
        let _heard = tell.send(());
    });
    match told.recv_timeout(soon().limit()) {
        Err(RecvTimeoutError::Timeout) => panic!("the runtime's one thread waits"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

#[test]
fn a_ticker_goes_on_while_a_write_waits_for_the_lock() {
    in_cell(|path| {
        on_one_thread(path, |path| async move {
            let store = store_at(&path);
            let guard = store.lock().lock_async().await.unwrap();
            let other = store.clone();
            let writes =
                tokio::spawn(async move { other.update_async(|_| Some(b"new".to_vec())).await });
            for _ in 0..50 {
                tokio::time::sleep(Duration::from_millis(1)).await;
                assert!(!writes.is_finished() && !path.exists());
            }
            guard.unlock().unwrap();
            assert!(writes.await.unwrap().unwrap());
            assert_eq!(store.read_async().await.unwrap().as_deref(), Some(&b"new"[..]));
        });
    });
}

#[test]
fn a_ticker_goes_on_while_a_change_takes_its_time() {
    in_cell(|path| {
        on_one_thread(path, |path| async move {
            let (store, (open, gate), (begins, begun)) = (store_at(&path), channel(), channel());
            let change = move |_: Option<&[u8]>| {
                begins.send(()).expect("somebody waits for it");
                gate.recv_timeout(soon().limit()).expect("it is opened");
                Some(b"new".to_vec())
            };
            let writes = tokio::spawn(async move { store.update_async(change).await });
            let (mut ticks, deadline) = (0, soon());
            // So often after it has begun.
            while ticks < 50 {
                tokio::time::sleep(Duration::from_millis(1)).await;
                ticks += i32::from(ticks > 0 || begun.try_recv().is_ok());
                assert!(ticks > 0 || !deadline.passed(), "the change does not begin");
            }
            assert!(!writes.is_finished());
            open.send(()).unwrap();
            assert!(writes.await.unwrap().unwrap());
            assert_eq!(fs::read(path).unwrap(), b"new");
        });
    });
}

#[test]
fn a_change_reads_what_stands_there_when_it_has_the_lock() {
    in_cell(|path| {
        on_one_thread(path, |path| async move {
            let store = store_at(&path);
            let guard = store.lock().lock_async().await.unwrap();
            let other = store.clone();
            let after = |old: Option<&[u8]>| Some([old.unwrap_or_default(), b", after"].concat());
            let changes = tokio::spawn(async move { other.update_async(after).await });
            // It comes to wait for the lock.
            tokio::task::yield_now().await;
            fs::write(&path, "meanwhile").unwrap();
            guard.unlock().unwrap();
            changes.await.unwrap().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "meanwhile, after");
        });
    });
}

#[test]
fn a_change_that_panics_is_an_error_and_lets_go() {
    in_cell(|path| {
        on_one_thread(path, |path| async move {
            let store = store_at(&path);
            store.update(|_| Some(b"old".to_vec())).unwrap();
            let (kind, said) = error_of(store.update_async(|_| panic!("on purpose")).await);
            assert_eq!(kind, ErrorKind::Panicked);
            assert!(said.contains("its code panicked: on purpose"), "{said}");
            assert!(is_free(&path));
            assert_eq!(fs::read(&path).unwrap(), b"old");
            assert!(store.update_async(|_| Some(b"new".to_vec())).await.unwrap());
        });
    });
}

#[test]
fn a_change_that_is_dropped_while_it_waits_for_the_lock_is_not_made() {
    in_cell(|path| {
        on_one_thread(path, |path| async move {
            let store = store_at(&path);
            let guard = store.lock().lock_async().await.unwrap();
            let limit = Duration::from_millis(20);
            let writes = store.update_async(|_| Some(b"new".to_vec()));
            assert!(tokio::time::timeout(limit, writes).await.is_err());
            guard.unlock().unwrap();
            // It would be before this one.
            let old = store.update_async(|old| {
                assert_eq!(old, None);
                None
            });
            old.await.unwrap();
            assert!(!path.exists());
        });
    });
}

#[test]
fn a_change_that_is_dropped_after_it_was_begun_is_made_to_its_end() {
    in_cell(|path| {
        on_one_thread(path, |path| async move {
            let store = store_at(&path);
            let ((open, gate), (tell, begun)) = (channel(), channel());
            let change = move |_: Option<&[u8]>| {
                tell.send(()).expect("somebody waits for it");
                gate.recv_timeout(soon().limit()).expect("it is opened");
                Some(b"new".to_vec())
            };
            let other = store.clone();
            let writes = tokio::spawn(async move { other.update_async(change).await });
            while begun.try_recv().is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            writes.abort();
            assert!(writes.await.is_err_and(|error| error.is_cancelled()));
            assert!(!path.exists() && !is_free(&path));
            open.send(()).unwrap();
            // It waits for the lock, which is given back when the other is written.
            let seen = store.update_async(|old| {
                assert_eq!(old, Some(&b"new"[..]));
                None
            });
            seen.await.unwrap();
        });
    });
}
