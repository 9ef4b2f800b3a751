//! Simulated processes as coroutines: started, stopped at each request, killed.
//!
//! A [`Task`] runs a body on a stack of its own. When the body asks for
//! something ([`ask`]) it is suspended and the request comes out of
//! [`Task::resume`]; the next one puts the answer in. Dropping a task is a
//! SIGKILL: the body never runs again, no destructor of it runs, and stack and
//! arena are used again by a later one.
//!
//! What keeps that sound: nothing outside refers to anything of the body. What
//! comes out is copied onto the system's heap, what goes in is copied into the
//! arena, and the body itself is made inside. A body must not leave anything of
//! its own in a static or a thread-local; the implementation under test cannot
//! (it has neither), and the programs of the lab do not.
//!
//! While a body unwinds from a panic it is not suspended ([`ask`] answers
//! `None` at once): `std::thread::panicking` would be true for everybody else.
//!
//! A body that needs more than its stack hits a guard page, which kills the lab.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::ptr;
use std::sync::Once;
use std::thread;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::arena::{Arena, Inside, Outside};
use crate::world::request::{Request, Response};

const STACK_BYTES: usize = 256 << 10;

type Feed = Yielder<Option<Response>, Request>;
type Routine = Coroutine<Option<Response>, Request, i32, DefaultStack>;

/// What a process does; the result is its exit status.
pub(crate) type Body = Box<dyn FnOnce() -> i32>;

thread_local! {
    /// The way out of the body that runs on this thread; null outside of one.
    static RUNNING: Cell<*const Feed> = const { Cell::new(ptr::null()) };
    /// What the newest panic inside of a body said.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
    /// Stacks and arenas to use again.
    static POOL: RefCell<Vec<(DefaultStack, Option<Arena>)>> = const { RefCell::new(Vec::new()) };
}

/// Why a body does not run at the moment.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It asks for this.
    Asked(Request),
    /// It has returned.
    Ended(i32),
    /// It has panicked; where and what it said.
    Panicked(String),
}

/// A body that was started.
pub(crate) struct Task {
    /// Taken out only by `drop`.
    routine: Option<Routine>,
    arena: Option<Arena>,
    feed: *const Feed,
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let done = self.routine.as_ref().is_none_or(Coroutine::done);
        write!(f, "task, {}", if done { "ended" } else { "suspended" })
    }
}

/// Makes a request of the body that runs on this thread and waits for the
/// answer; `None` while it unwinds.
///
/// # Panics
/// When no body runs on this thread.
pub(crate) fn ask(request: Request) -> Option<Response> {
    if thread::panicking() {
        return None;
    }
    let feed = RUNNING.get();
    assert!(!feed.is_null(), "a handle of the world works only inside of a simulated process");
    // SAFETY: it is set only while the body runs whose stack it lies on (`Entered`), and this
    // call is made from that body, which does not end before this returns.
    let feed = unsafe { &*feed };
    let answer = feed.suspend(request);
    Some(answer.expect("every request is answered"))
}

/// While it lives a body runs, or is made to run, on this thread.
struct Entered<'a> {
    before: *const Feed,
    _inside: Option<Inside<'a>>,
}

impl<'a> Entered<'a> {
    fn new(arena: Option<&'a Arena>, feed: *const Feed) -> Entered<'a> {
        let inside = arena.map(Arena::enter);
        Entered { before: RUNNING.replace(feed), _inside: inside }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        RUNNING.set(self.before);
    }
}

impl Task {
    /// Starts a body and runs it to its first request. It is made inside of
    /// its own arena.
    pub(crate) fn start(make: impl FnOnce() -> Body) -> (Task, Stop) {
        hear_panics();
        let (stack, arena) = POOL.take_one().unwrap_or_else(|| {
            let stack = DefaultStack::new(STACK_BYTES).expect("there is memory for a stack");
            (stack, Arena::take())
        });
        let entered = Entered::new(arena.as_ref(), ptr::null());
        let body = make();
        let routine = Coroutine::with_stack(stack, move |feed: &Feed, _: Option<Response>| {
            RUNNING.set(feed);
            body()
        });
        drop(entered);
        let mut task = Task { routine: Some(routine), arena, feed: ptr::null() };
        let stop = task.go_on(None);
        (task, stop)
    }

    /// Answers the request that the body waits for and runs it to the next one.
    ///
    /// # Panics
    /// When the body has ended.
    pub(crate) fn resume(&mut self, response: &Response) -> Stop {
        self.go_on(Some(response))
    }

    fn go_on(&mut self, response: Option<&Response>) -> Stop {
        let routine = self.routine.as_mut().expect("only drop takes it");
        let entered = Entered::new(self.arena.as_ref(), self.feed);
        // A copy that belongs to the body.
        let response = response.cloned();
        let result = panic::catch_unwind(AssertUnwindSafe(|| routine.resume(response)));
        // The body has put it there when it ran for the first time.
        self.feed = RUNNING.get();
        drop(entered);
        match result {
            // A copy that belongs to us.
            Ok(CoroutineResult::Yield(request)) => Stop::Asked(request.clone()),
            Ok(CoroutineResult::Return(status)) => Stop::Ended(status),
            Err(payload) => Stop::Panicked(SAID.take().unwrap_or_else(|| text_of(&*payload))),
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let Some(mut routine) = self.routine.take() else { return };
        // SAFETY: what is on the stack is never used again. Destructors that do not run free
        // nothing but blocks of the arena, and nothing outside waits for them (the module's
        // contract). It is not unwinding: while it does it is not suspended.
        unsafe { routine.force_reset() };
        if let Some(arena) = &mut self.arena {
            // SAFETY: the body that could use its blocks never runs again, and what came out of
            // it was copied.
            unsafe { arena.clear() };
        }
        POOL.give_back((routine.into_stack(), self.arena.take()));
    }
}

/// The two things done with the pool, outside of every arena.
trait Pool {
    fn take_one(&'static self) -> Option<(DefaultStack, Option<Arena>)>;
    fn give_back(&'static self, parts: (DefaultStack, Option<Arena>));
}

impl Pool for thread::LocalKey<RefCell<Vec<(DefaultStack, Option<Arena>)>>> {
    fn take_one(&'static self) -> Option<(DefaultStack, Option<Arena>)> {
        self.with_borrow_mut(Vec::pop)
    }

    fn give_back(&'static self, parts: (DefaultStack, Option<Arena>)) {
        let _outside = Outside::enter();
        // A thread that ends has no pool any more; the parts are then freed.
        let _ = self.try_with(|pool| pool.borrow_mut().push(parts));
    }
}

/// Keeps the words of panics inside of bodies instead of printing them: they
/// are a finding, with a schedule. All others go where they went before.
fn hear_panics() {
    static ONCE: Once = Once::new();
    if thread::panicking() {
        return;
    }
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if RUNNING.get().is_null() {
                before(info);
            } else {
                let _outside = Outside::enter();
                SAID.set(Some(describe(info)));
            }
        }));
    });
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    let said = text_of(info.payload());
    match info.location() {
        Some(place) => format!("{said} ({}:{})", place.file(), place.line()),
        None => said,
    }
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a value that is no text").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    static DROPPED: AtomicU32 = AtomicU32::new(0);

    struct CountsDrops;

    impl Drop for CountsDrops {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn asks_for_ever() -> Body {
        Box::new(|| {
            let _counted = CountsDrops;
            let mut kept = Vec::new();
            loop {
                kept.push(vec![1u8; 100]);
                ask(Request::Fork);
            }
        })
    }

    #[test]
    fn dropping_a_suspended_task_runs_no_destructor() {
        let (mut task, stop) = Task::start(asks_for_ever);
        assert!(matches!(stop, Stop::Asked(Request::Fork)), "{stop:?}");
        let stop = task.resume(&Response::Done(Ok(())));
        assert!(matches!(stop, Stop::Asked(Request::Fork)), "{stop:?}");
        drop(task);
        assert_eq!(DROPPED.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_killed_task_gives_all_its_memory_back() {
        for _ in 0..100 {
            let (mut task, _) = Task::start(asks_for_ever);
            for _ in 0..50 {
                task.resume(&Response::Done(Ok(())));
            }
            let arena = task.arena.as_ref().expect("the allocator is installed");
            // All that it has, and nothing of the ones before it.
            assert!((5_000..60_000).contains(&arena.used()), "{arena:?}");
            drop(task);
            let used = POOL.with_borrow(|pool| {
                let (_, arena) = pool.last().expect("it is there to be used again");
                arena.as_ref().map(Arena::used)
            });
            assert_eq!(used, Some(0));
        }
        assert_eq!(DROPPED.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_panic_comes_out_with_its_place_and_words() {
        struct AsksAtItsEnd;
        impl Drop for AsksAtItsEnd {
            fn drop(&mut self) {
                assert_eq!(ask(Request::Fork), None);
            }
        }
        let (_task, stop) = Task::start(|| {
            Box::new(|| {
                let _asks = AsksAtItsEnd;
                panic!("no {}", 7);
            })
        });
        let Stop::Panicked(said) = stop else { panic!("{stop:?}") };
        assert!(said.starts_with("no 7 ("), "{said}");
        assert!(said.contains("coroutine.rs:"), "{said}");
    }

    #[test]
    fn a_body_returns_its_status() {
        let (_task, stop) = Task::start(|| Box::new(|| 3));
        assert!(matches!(stop, Stop::Ended(3)), "{stop:?}");
    }

    #[test]
    fn a_handle_is_of_no_use_outside() {
        let result = panic::catch_unwind(|| ask(Request::Fork));
        assert!(result.is_err());
    }
}
