//! An arena for each simulated process, so that a killed one leaks nothing.
//!
//! A killed process runs no destructor, so what it had on the heap would be
//! lost. Therefore it allocates from an arena of its own: while it runs, a
//! thread-local names the arena, and the allocator takes memory from it one
//! block after the other. When the process has ended in whatever way the arena
//! is empty again.
//!
//! A binary opts in:
//!
//! ```
//! use mortmain_harness::ArenaAllocator;
//!
//! #[global_allocator]
//! static ALLOCATOR: ArenaAllocator = ArenaAllocator;
//! ```
//!
//! In one that does not everything works, but each simulated process that is
//! stopped in the middle leaks what it had on the heap.
//!
//! Invariants: nothing that outlives a process refers into its arena (what
//! crosses is copied, see [`super::coroutine`]); memory of an arena is given
//! out again only by [`Arena`]'s drop. What does not fit goes to the system's
//! heap, works, and leaks when the process is killed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

const ARENA_BYTES: usize = 64 << 10;
/// Arenas in use at once, over all threads. Only addresses are reserved.
const ARENAS: usize = 4096;
const REGION_BYTES: usize = ARENA_BYTES * ARENAS;

/// The one range of addresses that all arenas lie in: null until it is
/// reserved, and then never given back.
static REGION: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// The arenas that nobody has, by number.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Bytes that did not fit into an arena.
static SPILLED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// What this thread allocates from; null is the system's heap.
    static CURRENT: Cell<*const Bump> = const { Cell::new(ptr::null()) };
}

/// How full an arena is.
struct Bump {
    base: *mut u8,
    bytes: usize,
    used: Cell<usize>,
    /// Where the newest block begins: it alone can grow, shrink and go.
    newest: Cell<usize>,
    /// Whether something did not fit.
    spilled: Cell<bool>,
}

impl Bump {
    fn new(base: *mut u8, bytes: usize) -> Bump {
        Bump { base, bytes, used: Cell::new(0), newest: Cell::new(0), spilled: Cell::new(false) }
    }

    fn allocate(&self, layout: Layout) -> Option<*mut u8> {
        // OK because the base is aligned to a page, so aligning the offset aligns the address.
        let start = self.used.get().checked_next_multiple_of(layout.align())?;
        let end = start.checked_add(layout.size())?;
        if end > self.bytes || layout.align() > PAGE {
            self.spilled.set(true);
            SPILLED.fetch_add(layout.size(), Ordering::Relaxed);
            return None;
        }
        self.newest.set(start);
        self.used.set(end);
        // SAFETY: `start <= end <= bytes`, and the arena is `bytes` long.
        Some(unsafe { self.base.add(start) })
    }

    fn is_newest(&self, place: *mut u8) -> bool {
        // An address of the system's heap is never in the region, so it is none of ours.
        place.addr().wrapping_sub(self.base.addr()) == self.newest.get() && self.used.get() > 0
    }

    /// Grows or shrinks a block where it is.
    fn resize(&self, place: *mut u8, bytes: usize) -> bool {
        let fits = self.is_newest(place)
            && self.newest.get().checked_add(bytes).is_some_and(|end| end <= self.bytes);
        if fits {
            self.used.set(self.newest.get() + bytes);
        }
        fits
    }

    fn free(&self, place: *mut u8) {
        if self.is_newest(place) {
            self.used.set(self.newest.get());
        }
    }
}

/// Arenas begin at multiples of this.
const PAGE: usize = 4096;

fn in_region(place: *mut u8) -> bool {
    let region = REGION.load(Ordering::Relaxed);
    !region.is_null() && place.addr().wrapping_sub(region.addr()) < REGION_BYTES
}

fn with_current<R>(f: impl FnOnce(&Bump) -> R) -> Option<R> {
    let current = CURRENT.get();
    if current.is_null() {
        return None;
    }
    // SAFETY: a guard of `Arena::enter` put it there; it borrows the arena, which owns the
    // `Bump`, and takes it away before the borrow ends.
    Some(f(unsafe { &*current }))
}

/// The system's heap, but an arena while a simulated process runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArenaAllocator;

impl ArenaAllocator {
    /// Bytes that simulated processes have asked for and that did not fit into
    /// their arenas, so far. Those of processes that were killed are lost.
    #[must_use]
    pub fn spilled_bytes() -> usize {
        SPILLED.load(Ordering::Relaxed)
    }
}

// SAFETY: blocks of the system's heap are the system's to keep apart. Blocks of an arena do not
// overlap, because `used` only grows past a block that is given out and only shrinks to the
// beginning of one that is given back; they stay valid until the arena is dropped, and whoever
// could still use them is gone by then (the invariant of the module). Which of the two a block is
// of shows in its address alone, so each block is freed and resized where it came from.
unsafe impl GlobalAlloc for ArenaAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(Some(place)) = with_current(|bump| bump.allocate(layout)) {
            return place;
        }
        // SAFETY: the caller's promise for `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        if in_region(place) {
            let _ = with_current(|bump| bump.free(place));
            return;
        }
        // SAFETY: not of an arena, so `System` gave it out; the rest is the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        if !in_region(place) {
            // SAFETY: not of an arena, so `System` gave it out; the rest is the caller's promise.
            return unsafe { System.realloc(place, layout, new_bytes) };
        }
        if with_current(|bump| bump.resize(place, new_bytes)) == Some(true) {
            return place;
        }
        // SAFETY: the caller promises that the new size, rounded up to the alignment, is in range.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_bytes, layout.align()) };
        // SAFETY: the caller promises a size that is not zero.
        let new_place = unsafe { self.alloc(new_layout) };
        if !new_place.is_null() {
            let bytes = layout.size().min(new_bytes);
            // SAFETY: both are valid for that many bytes, and the new block overlaps none.
            unsafe { ptr::copy_nonoverlapping(place, new_place, bytes) };
            // SAFETY: the caller's promise for `place` and `layout`; it is not used after this.
            unsafe { self.dealloc(place, layout) };
        }
        new_place
    }
}

/// The memory of one simulated process.
pub(crate) struct Arena {
    number: usize,
    bump: Box<Bump>,
}

impl std::fmt::Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "arena {}, {} bytes used", self.number, self.bump.used.get())
    }
}

impl Arena {
    /// An empty arena; none when the binary has not installed the allocator,
    /// or when all are in use.
    pub(crate) fn take() -> Option<Arena> {
        let _outside = Outside::enter();
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        if REGION.load(Ordering::Relaxed).is_null() {
            *free = (0..ARENAS).rev().collect();
            REGION.store(reserve()?.as_ptr(), Ordering::Relaxed);
        }
        let number = free.pop()?;
        let region = REGION.load(Ordering::Relaxed);
        // SAFETY: `number < ARENAS`, so the sum stays inside of the region.
        let base = unsafe { region.add(number * ARENA_BYTES) };
        Some(Arena { number, bump: Box::new(Bump::new(base, ARENA_BYTES)) })
    }

    /// From now until the guard's end this thread allocates from the arena.
    pub(crate) fn enter(&self) -> Inside<'_> {
        Inside { before: CURRENT.replace(&raw const *self.bump), _arena: self }
    }

    /// Bytes in use.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.bump.used.get()
    }

    /// Empties it.
    ///
    /// # Safety
    /// Nothing that will be used again refers to a block of it.
    pub(crate) unsafe fn clear(&mut self) {
        if cfg!(debug_assertions) {
            // SAFETY: the arena is at least `used` bytes long and, by the caller's promise,
            // nobody else refers to it.
            unsafe { self.bump.base.write_bytes(0xDD, self.bump.used.get()) };
        }
        self.bump.used.set(0);
        self.bump.newest.set(0);
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let _outside = Outside::enter();
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
    }
}

/// Reserves the region, if the binary allocates through [`ArenaAllocator`].
fn reserve() -> Option<NonNull<u8>> {
    // An arena without room: every block spills, if anybody asks it at all.
    let probe = Bump::new(ptr::null_mut(), 0);
    let before = CURRENT.replace(&raw const probe);
    drop(hint::black_box(Box::new(0u8)));
    CURRENT.set(before);
    if !probe.spilled.get() {
        return None;
    }
    SPILLED.fetch_sub(1, Ordering::Relaxed);
    let layout = Layout::from_size_align(REGION_BYTES, PAGE).ok()?;
    // SAFETY: the size is not zero.
    NonNull::new(unsafe { System.alloc(layout) })
}

/// While it lives this thread allocates from an arena.
#[derive(Debug)]
pub(crate) struct Inside<'a> {
    before: *const Bump,
    _arena: &'a Arena,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// While it lives this thread allocates from the system's heap.
#[derive(Debug)]
pub(crate) struct Outside {
    before: *const Bump,
}

impl Outside {
    pub(crate) fn enter() -> Outside {
        Outside { before: CURRENT.replace(ptr::null()) }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: ArenaAllocator = ArenaAllocator;

    fn arena() -> Arena {
        Arena::take().expect("the allocator is installed, and there are many")
    }

    #[test]
    fn inside_everything_comes_from_the_arena_and_outside_nothing() {
        let arena = arena();
        let before = vec![1u8; 10];
        let inside = arena.enter();
        let kept = vec![2u8; 1000];
        assert!(arena.used() >= 1000);
        // A block of the system's heap goes back there.
        drop(before);
        let full = arena.used();
        drop(inside);
        let after = vec![3u8; 1000];
        assert_eq!(arena.used(), full);
        // One of the arena is nobody's loss.
        drop(kept);
        assert_eq!(after, [3u8; 1000]);
    }

    #[test]
    fn the_newest_block_grows_and_goes_in_place() {
        let arena = arena();
        let inside = arena.enter();
        let mut growing = Vec::with_capacity(1);
        for number in 0..1000u64 {
            growing.push(number);
        }
        assert!(arena.used() <= 16 * 1000, "{}", arena.used());
        assert!(growing.iter().copied().eq(0..1000));
        let other = Box::new(7u8);
        growing.extend(1000..2000);
        assert!(growing.iter().copied().eq(0..2000), "moved past the other");
        assert_eq!(*other, 7);
        drop(growing);
        drop(other);
        drop(inside);
    }

    #[test]
    fn blocks_are_aligned_and_apart() {
        #[repr(align(256))]
        struct Wide(#[expect(dead_code, reason = "only its place counts")] u8);
        let arena = arena();
        let inside = arena.enter();
        let odd = Box::new(1u8);
        let wide = Box::new(Wide(2));
        let other = Box::new(Wide(3));
        let place = |wide: &Wide| ptr::from_ref(wide).addr();
        assert_eq!((place(&wide) % 256, place(&other) % 256), (0, 0));
        assert!(place(&other) - place(&wide) >= 256);
        drop((odd, wide, other));
        drop(inside);
    }

    #[test]
    fn what_does_not_fit_is_counted_and_works() {
        let arena = arena();
        let before = ArenaAllocator::spilled_bytes();
        let inside = arena.enter();
        let mut big = vec![5u8; 2 * ARENA_BYTES];
        big.extend([6; 10]);
        let sum: usize = big.iter().map(|byte| usize::from(*byte)).sum();
        assert_eq!(sum, 2 * ARENA_BYTES * 5 + 60);
        drop(big);
        drop(inside);
        assert!(ArenaAllocator::spilled_bytes() - before >= 2 * ARENA_BYTES);
        assert!(arena.bump.spilled.get());
    }
}
