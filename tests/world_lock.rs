//! The lock that dies with its holder, in the simulated kernel: the code that ships,
//! every order of steps and kills.
//!
//! Three processes want one lock, and some of them remove or replace its file while
//! they have it, as programs do that tidy up after themselves. No two may have it at
//! once, and whoever asks when everybody is dead gets it at once. With a rule switched
//! off by a kernel put around the real one, the same search finds what it is for.

mod blind;

use mortmain::Error;
use mortmain::protocol::LockFile;
use mortmain::sys::{Errno, Kernel, KernelExt, Name, Pid};
use mortmain_harness::ArenaAllocator;
use mortmain_harness::explore::{
    Bounds, Budget, Choice, Counterexample, Failure, Setup, Verdict, exhaust,
};
use mortmain_harness::simulated::{Programs, WorldKernel};
use mortmain_harness::world::World;

use crate::blind::{Blind, Without};

#[global_allocator]
static ALLOCATOR: ArenaAllocator = ArenaAllocator;

const BOUNDS: Bounds = Bounds { states_max: 2_000_000 };

/// What a process does while it has the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Manner {
    /// It works.
    Works,
    /// It removes the lock's file.
    Removes,
    /// It puts another file in its place.
    Replaces,
    /// It does so without asking for the lock.
    RemovesUnasked,
    /// It wants nothing.
    Absent,
}

const LOCK: &str = "ledger.lock";
const OTHER: &str = "other";

fn open<K: Kernel>(kernel: &K) -> Result<LockFile<K>, Error> {
    LockFile::open(kernel, &World::root_path(), Name::fixed(LOCK))
}

/// What is done under the lock, or past it.
fn work(world: &WorldKernel, manner: Manner) {
    // A call of this one may fail, too, and then it does nothing.
    let Ok(root) = world.open_root(&World::root_path()) else { return };
    let (lock, other) = (Name::fixed(LOCK), Name::fixed(OTHER));
    // Where another one has the lock as well, these may fail, and that is found otherwise.
    let _done = match manner {
        Works | Absent => root.stat_at(&lock).map(drop),
        Removes | RemovesUnasked => root.unlink(&lock),
        Replaces => root.create_file(&other).and_then(|_| root.rename(&other, &lock)),
    };
}

/// Takes the lock, if it gets it in two attempts. Undisturbed, no attempt fails.
fn contender(world: &WorldKernel, manner: Manner, without: Without, undisturbed: bool) -> i32 {
    let kernel = Blind::new(world, without, LOCK);
    if matches!(manner, RemovesUnasked | Absent) {
        work(world, manner);
        return 0;
    }
    let Ok(lock) = open(&kernel) else {
        assert!(!undisturbed, "the root is there");
        return 1;
    };
    for _ in 0..2 {
        match lock.attempt() {
            Ok(None) => world.pause(1).expect("it cannot fail"),
            Err(error) => assert!(!undisturbed, "{error}"),
            Ok(Some(held)) => {
                world.alone(true);
                work(world, manner);
                world.alone(false);
                // It says so if the file was removed, by this one too.
                let _told = held.unlock();
                return 0;
            }
        }
    }
    3
}

/// Everybody is dead: the lock is free at once, and there is nothing but its file. (What one that
/// replaces it had beside it when it was killed is its own.)
fn last(world: &WorldKernel) -> i32 {
    let lock = open(world).expect("the root is there");
    let Ok(Some(held)) = lock.attempt() else { panic!("a dead process has the lock") };
    let root = world.open_root(&World::root_path()).expect("the root is there");
    root.unlink(&Name::fixed(LOCK)).expect("it is locked, so it is there");
    let _mine = root.unlink(&Name::fixed(OTHER));
    let _told = held.unlock();
    0
}

fn setup(manners: [Manner; 3], [kills, failures]: [u32; 2], without: Without) -> Setup {
    let mut programs = Programs::default();
    let starts = manners.map(|manner| {
        programs.add("contender", move |world| contender(world, manner, without, failures == 0))
    });
    let last = programs.add("last", last);
    Setup {
        budget: Budget { kills, failures, ..Budget::default() },
        errnos: vec![Errno::EIO],
        merge: true,
        calls_max: 1_000,
        ..Setup::undisturbed(programs, starts.into(), last)
    }
}

#[track_caller]
fn check_holds(manners: [Manner; 3], kills_and_failures: [u32; 2]) {
    let exploration = exhaust(&setup(manners, kills_and_failures, Without::Nothing), &BOUNDS);
    match &exploration.verdict {
        Verdict::Holds => {
            let [kills, failures] = kills_and_failures;
            println!(
                "{manners:?}, {kills} kills, {failures} failing calls\n    {}",
                exploration.counts
            );
        }
        Verdict::Found(found) => panic!("{manners:?}\n{found}"),
        other => panic!("{manners:?}: {other:?}, {}", exploration.counts),
    }
    assert!(exploration.counts.recoveries > 1, "{}", exploration.counts);
    assert_eq!(ArenaAllocator::spilled_bytes(), 0, "an arena is too small");
}

#[track_caller]
fn check_finds(manners: [Manner; 3], without: Without) -> Counterexample {
    let exploration = exhaust(&setup(manners, [0, 0], without), &BOUNDS);
    let Verdict::Found(found) = exploration.verdict else {
        panic!("{without:?}: {:?}, {}", exploration.verdict, exploration.counts);
    };
    println!("{manners:?}, without {without:?}\n{found}");
    let Failure::Violation(violation) = &found.failure else { panic!("{found}") };
    assert_eq!(violation.property(), "alone", "{found}");
    *found
}

use Manner::{Absent, Removes, RemovesUnasked, Replaces, Works};

#[test]
fn of_three_that_want_a_lock_one_has_it_whoever_is_killed() {
    check_holds([Works, Works, Works], [2, 0]);
}

#[test]
fn a_file_that_its_holder_removes_gives_the_lock_to_nobody_twice() {
    check_holds([Removes, Works, Works], [1, 0]);
    check_holds([Removes, Removes, Works], [1, 0]);
}

#[test]
fn a_file_that_its_holder_replaces_gives_the_lock_to_nobody_twice() {
    check_holds([Replaces, Works, Works], [1, 0]);
    check_holds([Replaces, Removes, Works], [1, 0]);
}

/// Any one call of anybody fails, done or not, and one process is killed, at any moments.
#[test]
fn a_call_that_fails_gives_the_lock_to_nobody_twice() {
    check_holds([Works, Works, Absent], [1, 1]);
    check_holds([Removes, Works, Absent], [1, 1]);
}

#[test]
fn without_the_kernels_lock_two_have_it_at_once() {
    check_finds([Works, Works, Works], Without::Lock);
}

/// One removes the file and lets go; another has opened it before, and locks what nobody else
/// will ever find; a third makes the file anew.
#[test]
fn without_the_comparison_two_have_a_lock_whose_file_was_removed() {
    let found = check_finds([Removes, Works, Works], Without::Comparison);
    let mut who: Vec<Pid> = Vec::new();
    for choice in &found.schedule {
        if let Choice::Step(pid) = choice {
            who.push(*pid);
        }
    }
    for pid in [10, 20, 30] {
        assert!(who.contains(&Pid(pid)), "{found}");
    }
}

/// What no lock on a file can prevent, and what the documentation says.
#[test]
fn who_removes_the_file_unasked_breaks_a_lock_that_is_held() {
    check_finds([RemovesUnasked, Works, Works], Without::Nothing);
}

/// The design that is written again and again: a file that is there is the lock, and one that is
/// too old was left by somebody who was killed. The age is judged rightly here.
fn breaks_what_is_old(world: &WorldKernel) -> i32 {
    let root = world.open_root(&World::root_path()).expect("the root is there");
    let lock = Name::fixed(LOCK);
    for _ in 0..2 {
        match root.create_file(&lock) {
            Ok(_) => {
                world.alone(true);
                work(world, Works);
                world.alone(false);
                let _gone = root.unlink(&lock);
                return 0;
            }
            // Of the first process, which has ended long ago.
            Err(_) if root.stat_at(&lock).is_ok_and(|stat| stat.ino >> 32 == 10) => {
                let _gone = root.unlink(&lock);
            }
            Err(_) => return 3,
        }
    }
    3
}

/// Both see that the file is old. One removes it and makes its own; the other removes that.
#[test]
fn a_lock_that_is_broken_by_its_age_has_two_holders() {
    let mut programs = Programs::default();
    let killed = programs.add("killed", |world| {
        let root = world.open_root(&World::root_path()).expect("the root is there");
        i32::from(root.create_file(&Name::fixed(LOCK)).is_err())
    });
    let breaker = programs.add("breaker", breaks_what_is_old);
    let last = programs.add("last", |world| {
        let root = world.open_root(&World::root_path()).expect("the root is there");
        let _gone = root.unlink(&Name::fixed(LOCK));
        0
    });
    let setup = Setup {
        programs,
        starts: vec![killed, breaker, breaker],
        last,
        ..setup([Absent; 3], [0, 0], Without::Nothing)
    };
    let Verdict::Found(found) = exhaust(&setup, &BOUNDS).verdict else {
        panic!("nothing is found")
    };
    println!("{found}");
    let Failure::Violation(violation) = &found.failure else { panic!("{found}") };
    assert_eq!(violation.property(), "alone", "{found}");
}
