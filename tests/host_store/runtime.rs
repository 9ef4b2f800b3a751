//! A change that is awaited: no thread of the runtime waits with it, a panic is told, and a future
//! that is dropped does all or nothing (t7).

use std::fs;
use std::sync::mpsc::channel;
use std::time::Duration;

use mortmain::ErrorKind;
use tokio::runtime::{Builder, Runtime};

use crate::support::{error_of, in_cell, is_free, soon, store_at};

/// One thread for everything but what may block.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime can be had")
}

#[test]
fn a_ticker_goes_on_while_a_write_waits_for_the_lock() {
    in_cell(|path| {
        let store = store_at(path);
        runtime().block_on(async {
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
        let store = store_at(path);
        runtime().block_on(async {
            let (open, gate) = channel();
            let writes = tokio::spawn(async move {
                store
                    .update_async(move |_| {
                        gate.recv_timeout(soon().limit()).expect("it is opened");
                        Some(b"new".to_vec())
                    })
                    .await
            });
            for _ in 0..50 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert!(!writes.is_finished());
            open.send(()).unwrap();
            assert!(writes.await.unwrap().unwrap());
        });
        assert_eq!(fs::read(path).unwrap(), b"new");
    });
}

#[test]
fn a_change_that_panics_is_an_error_and_lets_go() {
    in_cell(|path| {
        let store = store_at(path);
        store.update(|_| Some(b"old".to_vec())).unwrap();
        runtime().block_on(async {
            let (kind, said) = error_of(store.update_async(|_| panic!("on purpose")).await);
            assert_eq!(kind, ErrorKind::Panicked);
            assert!(said.contains("its code panicked: on purpose"), "{said}");
            assert!(is_free(path));
            assert_eq!(fs::read(path).unwrap(), b"old");
            assert!(store.update_async(|_| Some(b"new".to_vec())).await.unwrap());
        });
    });
}

#[test]
fn a_change_that_is_dropped_while_it_waits_for_the_lock_is_not_made() {
    in_cell(|path| {
        let store = store_at(path);
        runtime().block_on(async {
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
        });
        assert!(!path.exists());
    });
}

#[test]
fn a_change_that_is_dropped_after_it_was_begun_is_made_to_its_end() {
    in_cell(|path| {
        let store = store_at(path);
        runtime().block_on(async {
            let ((open, gate), (tell, begun)) = (channel(), channel());
            let writes = tokio::spawn({
                let store = store.clone();
                async move {
                    store
                        .update_async(move |_| {
                            tell.send(()).expect("somebody waits for it");
                            gate.recv_timeout(soon().limit()).expect("it is opened");
                            Some(b"new".to_vec())
                        })
                        .await
                }
            });
            while begun.try_recv().is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            writes.abort();
            assert!(writes.await.is_err_and(|error| error.is_cancelled()));
            assert!(!path.exists() && !is_free(path));
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
