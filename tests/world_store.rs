//! A file that is changed as a whole, in the simulated kernel: the code that ships,
//! every order of steps and kills.
//!
//! Two writers change it, each call of theirs writing one byte at a time, and a reader
//! reads without a lock. What anybody reads is a whole content, at any moment; and when
//! everybody is dead, one more write leaves the file, its lock's, and nothing beside
//! them. With a rule switched off the same search finds what it is for.

use mortmain::protocol::StoreFile;
use mortmain::sys::{Answer, Call, ChildPlan, Kernel, KernelExt, Name, Pid, Reply};
use mortmain_harness::ArenaAllocator;
use mortmain_harness::explore::{Bounds, Budget, Exploration, Setup, Verdict, exhaust};
use mortmain_harness::simulated::{Programs, WorldKernel};
use mortmain_harness::world::World;
use mortmain_harness::world::request::Command;

#[global_allocator]
static ALLOCATOR: ArenaAllocator = ArenaAllocator;

const BOUNDS: Bounds = Bounds { states_max: 2_000_000 };

/// How long each content is; all of its bytes are the same.
const BYTES: usize = 2;

/// A kernel that writes one byte at a time, and may leave what was killed where it is.
#[derive(Clone)]
struct Slow {
    inner: WorldKernel,
    keeps_leftovers: bool,
}

impl Kernel for Slow {
    type Program = Command;

    fn call(&self, call: Call) -> Answer<Reply> {
        match call {
            Call::Unlink { .. } if self.keeps_leftovers => Ok(Reply::Done),
            Call::Write { fd, offset, bytes } => {
                self.inner.call(Call::Write { fd, offset, bytes: bytes[..1].into() })
            }
            call => self.inner.call(call),
        }
    }

    fn spawn(&self, program: &mut Command, plan: &ChildPlan) -> Answer<Pid> {
        self.inner.spawn(program, plan)
    }
}

fn store<K: Kernel>(kernel: &K) -> StoreFile<K> {
    StoreFile::open(kernel, &World::root_path(), Name::fixed("data")).expect("the root is there")
}

/// What stands there, which must be whole: the byte that it is made of.
fn whole<K: Kernel>(store: &StoreFile<K>) -> u8 {
    let content = store.read().expect("it is a file");
    let Some(content) = content else { return b'0' };
    assert!(content.len() == BYTES && content[0] == content[1], "a mixture: {content:?}");
    content[0]
}

/// Makes the next content of what is there, if it gets the lock.
fn change<K: Kernel>(store: &StoreFile<K>) -> bool {
    let Some(held) = store.lock().attempt().expect("nothing is in its way") else { return false };
    let next = whole(store) + 1;
    store.write(&held, &[next; BYTES]).expect("there is room");
    held.unlock().expect("nobody removes its file");
    true
}

fn setup(keeps_leftovers: bool) -> Setup {
    let slow = move |world: &WorldKernel| Slow { inner: world.clone(), keeps_leftovers };
    let mut programs = Programs::default();
    let writer = programs.add("writer", move |world| {
        // Who is late for the lock changes nothing.
        let _changed = change(&store(&slow(world)));
        0
    });
    let reader = programs.add("reader", |world| {
        let read = whole(&store(world));
        assert!(read <= b'2', "more changes than writers: {read}");
        0
    });
    let last = programs.add("last", move |world| {
        assert!(change(&store(&slow(world))), "a dead writer has the lock");
        let root = world.open_root(&World::root_path()).expect("the root is there");
        // All that may be there; the judge wants nothing more.
        for name in ["data", "data.lock"] {
            root.unlink(&Name::fixed(name)).expect("it is there");
        }
        0
    });
    Setup {
        budget: Budget { kills: 2, ..Budget::default() },
        merge: true,
        calls_max: 1_000,
        ..Setup::undisturbed(programs, vec![writer, writer, reader], last)
    }
}

fn explored(keeps_leftovers: bool) -> Exploration {
    let exploration = exhaust(&setup(keeps_leftovers), &BOUNDS);
    println!("{}", exploration.counts);
    assert_eq!(ArenaAllocator::spilled_bytes(), 0, "an arena is too small");
    exploration
}

#[test]
fn what_is_read_is_whole_and_one_write_clears_up_whoever_was_killed() {
    let exploration = explored(false);
    if let Verdict::Found(found) = &exploration.verdict {
        panic!("{found}");
    }
    assert_eq!(exploration.verdict, Verdict::Holds);
    assert!(exploration.counts.recoveries > 10, "{}", exploration.counts);
}

#[test]
fn without_clearing_up_a_killed_writer_is_in_the_way_of_every_later_one() {
    let Verdict::Found(found) = explored(true).verdict else { panic!("nothing is found") };
    println!("{found}");
    let said = found.failure.to_string();
    assert!(said.contains("there is room") && said.contains("EEXIST"), "{said}");
}
