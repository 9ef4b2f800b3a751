//! A test's directory, in the simulated kernel: the code that ships, every order of steps and kills.
//!
//! Three suites want the directory of one tag. No two may have it at once; whoever gets it finds it
//! empty, whatever was left in it by one that was killed; and when everybody is dead it can be taken
//! at once, and nothing stays when it is let go. With a rule switched off by a kernel put around the
//! real one, the same search finds what it is for.

mod blind;

use mortmain::ErrorKind;
use mortmain::protocol::Sandbox;
use mortmain::sys::{Errno, KernelExt, Name};
use mortmain_harness::ArenaAllocator;
use mortmain_harness::explore::{Bounds, Budget, Counterexample, Failure, Setup, Verdict, exhaust};
use mortmain_harness::simulated::{Programs, WorldKernel};
use mortmain_harness::world::World;

use crate::blind::{Blind, Without};

#[global_allocator]
static ALLOCATOR: ArenaAllocator = ArenaAllocator;

const BOUNDS: Bounds = Bounds { states_max: 2_000_000 };

const TAG: &str = "tag";

fn take(kernel: &Blind) -> Result<Sandbox<Blind>, ErrorKind> {
    Sandbox::take(kernel, &World::root_path(), Name::fixed(TAG), "a test")
        .map_err(|error| error.kind())
}

/// Makes the file that each test makes, which must not be there. Without faults, nothing is in the
/// way.
fn work(world: &WorldKernel, undisturbed: bool) {
    let made = world.open_root(&World::root_path()).and_then(|root| {
        let files = root.open_dir(&Name::fixed(TAG))?.open_dir(&Name::fixed("files"))?;
        files.create_file(&Name::fixed("result")).map(drop)
    });
    assert!(made != Err(Errno::EEXIST), "another test's file is there");
    assert!(!undisturbed || made.is_ok(), "{made:?}");
}

/// A suite: it takes the directory, works, and lets it go.
fn suite(world: &WorldKernel, without: Without, undisturbed: bool) -> i32 {
    match take(&Blind::new(world, without, TAG)) {
        Ok(sandbox) => {
            world.alone(true);
            work(world, undisturbed);
            world.alone(false);
            drop(sandbox);
            0
        }
        Err(ErrorKind::TagInUse) => 3,
        Err(kind) => {
            assert!(!undisturbed, "{kind:?}");
            1
        }
    }
}

fn setup(suites: usize, [kills, failures]: [u32; 2], without: Without) -> Setup {
    let mut programs = Programs::default();
    let undisturbed = failures == 0 && without != Without::Lock;
    let suite = programs.add("suite", move |world| suite(world, without, undisturbed));
    // The judge wants nothing to be there when it has ended.
    let last = programs.add("last", |world| {
        let sandbox = take(&Blind::new(world, Without::Nothing, TAG)).expect("everybody is dead");
        work(world, true);
        drop(sandbox);
        0
    });
    Setup {
        budget: Budget { kills, failures, ..Budget::default() },
        errnos: vec![Errno::EIO],
        merge: true,
        calls_max: 1_000,
        ..Setup::undisturbed(programs, vec![suite; suites], last)
    }
}

#[track_caller]
fn check_holds(suites: usize, kills_and_failures: [u32; 2]) {
    let exploration = exhaust(&setup(suites, kills_and_failures, Without::Nothing), &BOUNDS);
    println!("{suites} suites, {kills_and_failures:?}\n    {}", exploration.counts);
    match &exploration.verdict {
        Verdict::Holds => {}
        Verdict::Found(found) => panic!("{found}"),
        other => panic!("{other:?}"),
    }
    assert!(exploration.counts.recoveries > 1, "{}", exploration.counts);
    assert_eq!(ArenaAllocator::spilled_bytes(), 0, "an arena is too small");
}

#[track_caller]
fn check_finds(suites: usize, without: Without) -> Counterexample {
    let exploration = exhaust(&setup(suites, [0, 0], without), &BOUNDS);
    let Verdict::Found(found) = exploration.verdict else {
        panic!("{without:?}: {:?}, {}", exploration.verdict, exploration.counts);
    };
    println!("without {without:?}\n{found}");
    *found
}

#[test]
fn of_three_suites_that_want_a_tag_one_has_it_whoever_is_killed() {
    check_holds(3, [1, 0]);
}

#[test]
fn of_two_suites_each_may_be_killed() {
    check_holds(2, [2, 0]);
}

/// Any one call of anybody fails, done or not, and one suite is killed, at any moments.
#[test]
fn a_call_that_fails_gives_the_tag_to_nobody_twice() {
    check_holds(2, [1, 1]);
}

#[test]
fn without_the_lock_two_suites_work_in_one_directory() {
    let found = check_finds(2, Without::Lock);
    let Failure::Violation(violation) = &found.failure else { panic!("{found}") };
    assert_eq!(violation.property(), "alone", "{found}");
}

/// One lets the directory go; another has opened it before, and locks what is no directory of the
/// tag any more. There is nothing to be had in there, so that two have never the tag, but one that
/// nothing is wrong with fails.
#[test]
fn without_the_comparison_a_suite_fails_because_another_ended() {
    let found = check_finds(2, Without::Comparison);
    let said = found.failure.to_string();
    assert!(said.contains("Obstructed"), "{said}");
}
