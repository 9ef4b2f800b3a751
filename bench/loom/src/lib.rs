//! The queues of locks under loom, which goes through every order of what threads do to a mutex, an
//! atomic and to each other.
//!
//! The file is the one that ships; the lock around it and the threads are loom's, and are used as the
//! library uses its own. It is a member of its own because the library shall build nothing of loom's.
//!
//! What it deliberately does not do: threads that lose their patience, and four of them, are the
//! matter of the test beside the queues, which keeps states instead of running every order anew.

extern crate alloc;

mod sys {
    pub(crate) use mortmain::sys::PathBytes;
}
#[path = "../../../mortmain/src/turns.rs"]
mod turns;

use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicU64, Ordering as StdOrdering};

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex, MutexGuard};
use loom::thread::{self, Thread};

use crate::sys::PathBytes;
use crate::turns::Turns;

/// What threads share.
struct Shared {
    path: PathBytes,
    turns: Mutex<Turns<Thread>>,
    /// Whether somebody has the lock.
    taken: AtomicBool,
}

impl Shared {
    fn turns(&self) -> MutexGuard<'_, Turns<Thread>> {
        self.turns.lock().expect("nobody panics with it")
    }

    /// Waits for the turn, has the lock, and lets it go.
    fn pass(&self) {
        let ticket = self.turns().join(&self.path);
        while !self.turns().is_first(&self.path, ticket, thread::current()) {
            thread::park();
        }
        assert!(!self.taken.swap(true, Ordering::Relaxed), "two have the lock");
        self.taken.store(false, Ordering::Relaxed);
        let next = self.turns().leave(&self.path, ticket);
        if let Some(next) = next {
            next.unpark();
        }
    }
}

/// Lets so many threads want one lock, in every order that there is, and tells how many there were.
///
/// # Panics
///
/// When two have the lock at once, or one waits for ever: loom tells where.
#[must_use]
pub fn every_order(threads: usize) -> u64 {
    let count = StdArc::new(AtomicU64::new(0));
    let counted = StdArc::clone(&count);
    loom::model(move || {
        counted.fetch_add(1, StdOrdering::Relaxed);
        let shared = Arc::new(Shared {
            path: PathBytes::from(&b"/lock"[..]),
            turns: Mutex::new(Turns::default()),
            taken: AtomicBool::new(false),
        });
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.pass())
            })
            .collect();
        shared.pass();
        for other in others {
            other.join().expect("it passes");
        }
    });
    count.load(StdOrdering::Relaxed)
}
