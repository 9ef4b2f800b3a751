//! A lock that is awaited: no thread of the runtime waits with it, the order is that of coming, and
//! nothing is left of a future that is dropped (f6, f7).

use std::cell::{Cell, RefCell};
use std::future::Future as _;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::{LocalSet, yield_now};

use crate::support::{holder, in_cell, is_free, lock_at};

/// One thread for everything but what may block.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime can be had")
}

#[test]
fn a_runtime_of_one_thread_goes_on_while_a_lock_is_awaited() {
    in_cell(|path| {
        let mut holder = holder(path);
        let set = LocalSet::new();
        set.block_on(&runtime(), async {
            let has_it = Rc::new(Cell::new(false));
            let (tell, lock) = (Rc::clone(&has_it), lock_at(path));
            let waits = tokio::task::spawn_local(async move {
                let guard = lock.lock_async().await.unwrap();
                tell.set(true);
                guard
            });
            // Each tick takes its turn beside the one that waits, and some time.
            for _ in 0..50 {
                tokio::time::sleep(Duration::from_millis(1)).await;
                assert!(!has_it.get(), "it is held by another process");
            }
            holder.kill_hard().unwrap();
            let guard = waits.await.unwrap();
            assert!(!is_free(path));
            guard.unlock().unwrap();
        });
        assert!(is_free(path));
    });
}

#[test]
fn who_came_first_has_it_first() {
    in_cell(|path| {
        let set = LocalSet::new();
        set.block_on(&runtime(), async {
            let guard = lock_at(path).lock_async().await.unwrap();
            let order = Rc::new(RefCell::new(Vec::new()));
            let mut tasks = Vec::new();
            for number in 0..5 {
                let (order, lock) = (Rc::clone(&order), lock_at(path));
                tasks.push(tokio::task::spawn_local(async move {
                    let guard = lock.lock_async().await.unwrap();
                    order.borrow_mut().push(number);
                    yield_now().await;
                    guard.unlock().unwrap();
                }));
                // It comes to its place in the queue.
                yield_now().await;
            }
            guard.unlock().unwrap();
            for task in tasks {
                task.await.unwrap();
            }
            assert_eq!(*order.borrow(), [0, 1, 2, 3, 4]);
        });
    });
}

#[test]
fn nothing_is_left_of_a_wait_that_is_dropped() {
    in_cell(|path| {
        let runtime = runtime();
        let _inside = runtime.enter();
        let guard = lock_at(path).lock().unwrap();
        let lock = lock_at(path);
        {
            let mut waits = pin!(lock.lock_async());
            let mut context = Context::from_waker(Waker::noop());
            assert!(matches!(waits.as_mut().poll(&mut context), Poll::Pending));
        }
        guard.unlock().unwrap();
        // One that had kept its place would be before this one.
        lock_at(path).try_lock().unwrap().expect("nobody waits for it").unlock().unwrap();
    });
}

#[test]
fn a_limit_by_the_runtime_ends_a_wait() {
    in_cell(|path| {
        let _holder = holder(path);
        let lock = lock_at(path);
        runtime().block_on(async {
            let limit = Duration::from_millis(20);
            assert!(tokio::time::timeout(limit, lock.lock_async()).await.is_err());
        });
        assert!(!is_free(path));
    });
}
