//! The gate for the seam: the code that ships, unchanged, on the simulated
//! kernel.
//!
//! An owner makes a claim and starts a command; two sweeps run at the same
//! time; processes are killed between any two calls; from every state on the
//! way everybody is killed at once and one more sweep must leave nothing. The
//! library holds. With a rule switched off, by a prober or a kernel put around
//! the real one, the same search finds what the rule is for.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use mortmain::sys::{Answer, Call, ChildPlan, Kernel, KernelExt as _, Name, Pid, Reply, Wait};
use mortmain_harness::ArenaAllocator;
use mortmain_harness::explore::{
    Bounds, Budget, Case, Choice, Counterexample, Exploration, Failure, Replayed, Setup, Subject,
    Verdict, Without, exhaust, explain, replay,
};
use mortmain_harness::judge::{Judged, Property, Violation};
use mortmain_harness::simulated::subject::{self, Beside, Company, Manner, Then};
use mortmain_harness::simulated::{Programs, WorldKernel};
use mortmain_harness::world::request::Command;
use mortmain_harness::world::{Reaping, World};
use mortmain_subjects::{Beyond, Mortmain, System};

#[global_allocator]
static ALLOCATOR: ArenaAllocator = ArenaAllocator;

const BOUNDS: Bounds = Bounds { states_max: 2_000_000 };

#[track_caller]
fn check_holds(case: Case) -> Exploration {
    let exploration = exhaust(&case.setup(), &BOUNDS);
    let counts = exploration.counts;
    match &exploration.verdict {
        Verdict::Holds => println!("{case:?}\n    {counts}"),
        Verdict::Found(found) => panic!("{case:?}\n{found}"),
        Verdict::NotDecided { states_max } => panic!("{case:?}: not decided at {states_max}"),
        Verdict::Ended => unreachable!("nobody ends it"),
    }
    assert!(counts.in_use > 0, "S1 was never at stake: {counts}");
    assert!(counts.recoveries > 1, "L1 was never at stake: {counts}");
    assert_eq!(ArenaAllocator::spilled_bytes(), 0, "an arena is too small");
    exploration
}

/// What a search ends with, which must be a violation of this property; and
/// the same on live processes.
#[track_caller]
fn check_finds(case: Case, property: &str) -> Counterexample {
    let setup = case.setup();
    let exploration = exhaust(&setup, &BOUNDS);
    let Verdict::Found(found) = exploration.verdict else {
        panic!("{case:?}: {:?}, {}", exploration.verdict, exploration.counts);
    };
    println!("{case:?}\n{} states\n{found}", exploration.counts.states);
    let Failure::Violation(violation) = &found.failure else { panic!("{found}") };
    assert_eq!(violation.property(), property, "{found}");
    let Replayed { failure, timeline, .. } =
        replay(&setup, &found.schedule).expect("the schedule fits");
    assert_eq!(failure.as_ref(), Some(&found.failure), "{timeline}");
    assert_eq!(timeline, found.timeline);
    *found
}

fn kills(found: &Counterexample) -> usize {
    found.schedule.iter().filter(|choice| matches!(choice, Choice::Kill(_))).count()
}

#[test]
fn create_spawn_two_sweeps_and_two_kills_hold() {
    check_holds(Case::GATE);
}

/// Any one call of anybody fails, done or not, and one process is killed, at any moments.
#[test]
fn one_failing_call_and_one_kill_hold() {
    let case = Case { failures: 1, ..Case::SMALL };
    let exploration = check_holds(case);
    let without = check_holds(Case::SMALL);
    assert!(exploration.counts.states > 10 * without.counts.states, "{}", exploration.counts);
}

#[test]
fn two_owners_hold() {
    for then in [Then::Idle, Then::Exit] {
        check_holds(Case { owners: 2, beside: Beside::Nothing, then, ..Case::SMALL });
    }
}

/// The copy has the same lease, and says of nothing but itself that it does not use the claim any more.
#[test]
fn an_owner_and_its_copy_hold() {
    check_holds(Case { beside: Beside::Copy, then: Then::Close, ..Case::SMALL });
    check_copies(Beside::Copy);
}

#[test]
fn a_nested_claim_and_the_one_around_it_hold() {
    check_copies(Beside::Nested);
}

/// Owners with copies that give nothing up, with one sweep and one kill, and with a call that fails.
#[track_caller]
fn check_copies(beside: Beside) {
    for then in [Then::Idle, Then::Exit] {
        for (failures, reaping) in [(0, Reaping::AtOnce), (0, Reaping::Never), (1, Reaping::AtOnce)]
        {
            check_holds(Case { beside, then, failures, reaping, ..Case::SMALL });
        }
    }
}

/// Everything that this manner of command and an owner can do, with one sweep
/// and one kill.
#[track_caller]
fn check_every_end(manner: Manner, ends: &[Then]) {
    for then in ends.iter().copied() {
        for reaping in [Reaping::AtOnce, Reaping::Never] {
            check_holds(Case { manner, then, reaping, ..Case::SMALL });
        }
    }
}

#[test]
fn every_end_of_a_plain_command_holds() {
    let ends = [Then::Idle, Then::Exit, Then::Close, Then::WaitAndClose, Then::EndAndClose];
    check_every_end(Manner::Plain, &ends);
}

#[test]
fn every_end_of_a_command_that_closes_its_lock_holds() {
    let ends = [Then::Idle, Then::Exit, Then::Close, Then::WaitAndClose, Then::EndAndClose];
    check_every_end(Manner::ClosesAll, &ends);
}

#[test]
fn every_end_of_a_command_that_leaves_a_daemon_holds() {
    // Not `EndAndClose`: it asks for a second whether the daemon has ended.
    let ends = [Then::Idle, Then::Exit, Then::Close, Then::WaitAndClose];
    check_every_end(Manner::LeavesDaemon, &ends);
}

/// The pass over a group lists who is there and then looks at each. A command
/// that was listed alive can fork and end in between, and is then seen as the
/// zombie that nobody reaps; its child is in no list yet.
#[test]
fn every_end_of_a_command_that_leaves_a_child_in_its_group_holds() {
    let ends = [Then::Idle, Then::Exit, Then::Close, Then::WaitAndClose];
    check_every_end(Manner::LeavesChild, &ends);
}

/// A daemon by the book is seen by its cookie alone; and not by the first list of processes, if the
/// command that forks it ends before it is looked at.
#[test]
fn every_end_of_a_command_that_leaves_a_daemon_without_descriptors_holds() {
    check_every_end(Manner::Escapes, &[Then::Idle, Then::Exit]);
}

// By themselves, since each takes longer than all the others.

#[test]
fn a_close_beside_a_daemon_without_descriptors_holds() {
    check_every_end(Manner::Escapes, &[Then::Close]);
}

#[test]
fn a_close_after_a_command_that_left_a_daemon_without_descriptors_holds() {
    check_every_end(Manner::Escapes, &[Then::WaitAndClose]);
}

#[test]
fn without_l4_a_sweep_takes_a_claim_from_a_daemon_that_closed_everything() {
    let found = check_finds(Without::L4.shown_by(), "S1");
    let Failure::Violation(Violation::InUse { by, users, .. }) = &found.failure else {
        unreachable!("the property is S1");
    };
    assert_eq!(by.program, "sweep");
    assert!(users.iter().all(|user| user.program == "command"), "{found}");
    assert_eq!(kills(&found), 1, "{found}");
}

#[test]
fn without_l3_a_sweep_takes_a_claim_from_a_command() {
    let found = check_finds(Without::L3.shown_by(), "S1");
    let Failure::Violation(Violation::InUse { by, users, .. }) = &found.failure else {
        unreachable!("the property is S1");
    };
    assert_eq!(by.program, "sweep");
    assert!(users.iter().all(|user| user.program != "sweep"), "{found}");
    // The owner must be dead, and nothing else.
    assert_eq!(kills(&found), 1, "{found}");
}

#[test]
fn without_p1_a_sweep_takes_a_claim_from_a_daemon() {
    let case = Without::P1.shown_by();
    let found = check_finds(case, "S1");
    assert_eq!(kills(&found), 1, "{found}");
}

#[test]
fn without_p2_a_sweep_takes_a_claim_from_a_command_that_closed_its_lock() {
    let case = Without::P2.shown_by();
    let found = check_finds(case, "S1");
    assert_eq!(kills(&found), 1, "{found}");
}

#[test]
fn without_r2_a_removal_that_was_killed_is_never_finished() {
    let found = check_finds(Without::R2.shown_by(), "L1");
    let Failure::Violation(Violation::Left { paths }) = &found.failure else {
        unreachable!("the property is L1");
    };
    // The sweep had begun: all that is left is what it had put aside.
    assert!(paths.iter().all(|path| path.to_string().contains(".dead-")), "{found}");
    // The owner dies, a sweep begins, and everybody dies.
    assert_eq!(kills(&found), 1, "{found}");
}

#[test]
fn a_search_repeats_exactly() {
    for without in [Without::Nothing, Without::L3, Without::R2] {
        let case = Case { without, ..Case::SMALL };
        let first = exhaust(&case.setup(), &BOUNDS);
        assert_eq!(first, exhaust(&case.setup(), &BOUNDS));
    }
}

#[test]
fn merging_changes_no_verdict() {
    let rules = Without::RULES.map(|(_, without)| without);
    for without in rules.into_iter().chain([Without::Nothing]) {
        let case = without.shown_by();
        let merged = exhaust(&case.setup(), &BOUNDS);
        let whole = exhaust(&Case { merge: false, ..case }.setup(), &BOUNDS);
        let property = |exploration: &Exploration| match &exploration.verdict {
            Verdict::Found(found) => found.failure.property(),
            Verdict::Holds => "holds",
            Verdict::NotDecided { .. } => "not decided",
            Verdict::Ended => unreachable!("nobody ends it"),
        };
        assert_eq!(property(&merged), property(&whole), "{without:?}");
        assert!(merged.counts.states < whole.counts.states, "{without:?}");
    }
}

#[test]
fn a_bound_that_was_met_is_said() {
    let exploration = exhaust(&Case::GATE.setup(), &Bounds { states_max: 1_000 });
    assert_eq!(exploration.verdict, Verdict::NotDecided { states_max: 1_000 });
}

/// A setup of one program that runs alone, with a sweep in the end.
fn alone(program: impl Fn(&WorldKernel) -> i32 + Clone + Send + Sync + 'static) -> Setup {
    let mut programs = Programs::default();
    let program = programs.add("program", program);
    let sweep = programs.add("sweep", subject::sweep::<Mortmain, _>);
    Setup { calls_max: 100, ..Setup::undisturbed(programs, vec![program], sweep) }
}

#[track_caller]
fn check_alone(setup: &Setup, want: &str) {
    let Verdict::Found(found) = exhaust(setup, &BOUNDS).verdict else { panic!("nothing found") };
    assert_eq!(found.failure.to_string(), want);
}

#[test]
fn a_panic_is_found_with_its_words() {
    let setup = alone(|world| {
        world.identity().expect("it can be asked");
        panic!("there is none")
    });
    let Verdict::Found(found) = exhaust(&setup, &BOUNDS).verdict else { panic!("nothing found") };
    let said = found.failure.to_string();
    assert!(said.starts_with("panic: program 10 panicked: there is none ("), "{said}");
}

#[test]
fn a_process_that_never_ends_is_found() {
    let setup = alone(|world| {
        loop {
            world.pause(1).expect("it cannot fail");
        }
    });
    check_alone(&setup, "L2: program 10 has made more than 100 calls and goes on");
}

#[test]
fn a_last_sweep_that_waits_is_found() {
    let mut setup = alone(|_| 0);
    setup.last = setup.programs.add("sweep", |world| world.idle());
    for judged in [Judged::All, Judged::Only(Property::L2)] {
        setup.judged = judged;
        check_alone(&setup, "L2: sweep 20 waits in `idle`, and nobody is left who could end that");
    }
}

#[test]
fn a_program_that_looks_past_its_answers_is_found() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let setup = alone(|world| {
        world.whoami().expect("it can be asked");
        world.pause(RUNS.fetch_add(1, Ordering::Relaxed)).expect("it cannot fail");
        0
    });
    check_alone(
        &setup,
        "program is not deterministic: after the same answers, its request 1 was `pause 0 ms` \
         and is `pause 1 ms`",
    );
}

/// With something more that may happen a case holds, and comes to more states: it has happened.
#[track_caller]
fn check_holds_as_well(case: Case, more: Case) {
    let (with, without) = (check_holds(more), check_holds(case));
    assert!(with.counts.states > without.counts.states, "{more:?}: it never came");
}

/// A process with the number of one that is gone is in nobody's way, and nobody does it any harm.
#[test]
fn numbers_that_come_again_hold() {
    check_holds_as_well(
        Case { kills: 2, ..Case::SMALL },
        Case { kills: 2, strangers: 2, ..Case::SMALL },
    );
    for case in [
        Case { then: Then::EndAndClose, ..Case::SMALL },
        Case { beside: Beside::Nested, ..Case::SMALL },
        Case { reaping: Reaping::Never, ..Case::SMALL },
    ] {
        check_holds_as_well(case, Case { strangers: 1, ..case });
    }
}

#[test]
fn a_restart_of_the_machine_holds() {
    for case in [
        Case { kills: 2, ..Case::SMALL },
        Case { failures: 1, ..Case::SMALL },
        Case { beside: Beside::Nested, then: Then::Exit, ..Case::SMALL },
    ] {
        check_holds(Case { reboots: true, ..case });
    }
}

/// Nothing but the boot's id tells the owner from whoever has its number and its start time.
#[test]
fn who_does_not_ask_for_the_boot_leaves_something_after_a_restart() {
    for name in ["pid", "inherited-lease", "second-look"] {
        let subject = Subject::named(name).expect("the lab knows it");
        let stays_up = Case { judged: Judged::Only(Property::L1), ..subject.shown_by() };
        let case = Case { reboots: true, ..stays_up };
        check_holds(stays_up);
        let found = check_finds(case, "L1");
        let explained = explain(&case, &found).to_string();
        assert!(explained.ends_with("without the restart, it would hold"), "{explained}");
    }
}

#[test]
fn directories_in_other_orders_hold() {
    check_holds_as_well(Case::SMALL, Case { orders: 2, ..Case::SMALL });
    for case in [
        Case { owners: 2, beside: Beside::Nothing, kills: 0, ..Case::SMALL },
        Case { then: Then::Close, ..Case::SMALL },
    ] {
        check_holds_as_well(case, Case { orders: 1, ..case });
    }
}

#[test]
fn trees_that_are_killed_hold() {
    for manner in [Manner::Plain, Manner::LeavesChild, Manner::LeavesDaemon] {
        let case = Case { manner, ..Case::SMALL };
        check_holds_as_well(case, Case { trees: 1, ..case });
    }
}

/// An owner and what it has started, in one stroke: nobody is left to use anything.
#[test]
fn who_is_killed_with_a_tree_dies_at_the_same_moment() {
    let case = Case { kills: 0, without: Without::L3, ..Case::SMALL };
    // Without the rule a command's directory is removed as soon as its owner alone is dead.
    check_finds(Case { kills: 1, ..case }, "S1");
    check_holds_as_well(case, Case { trees: 1, ..case });
}

/// A program that goes by the order of names that it was given.
#[test]
fn who_relies_on_the_order_of_a_directory_is_found_out() {
    let setup = alone(|world| {
        let root = world.open_root(&World::root_path()).expect("it is there");
        for name in ["p-a", "p-b", "p-c"] {
            root.mkdir(&Name::fixed(name)).expect("nothing is there");
        }
        let names = root.read_dir(true).expect("it can be read");
        assert_ne!(names[0].name, Name::fixed("p-b"), "the first is the second");
        0
    });
    let setup = Setup { judged: Judged::Only(Property::L2), ..setup };
    assert!(matches!(exhaust(&setup, &BOUNDS).verdict, Verdict::Holds));
    let setup = Setup { budget: Budget { orders: 1, ..setup.budget }, ..setup };
    let Verdict::Found(found) = exhaust(&setup, &BOUNDS).verdict else { panic!("nothing found") };
    assert!(found.failure.to_string().contains("the first is the second"), "{found}");
    let last = found.schedule.last();
    assert_eq!(last, Some(&Choice::Order { pid: Pid(10), order: 1 }), "{found}");
}

/// Takes notice of an end before it kills the group: the number may be another's by then.
#[derive(Clone)]
struct ReapsFirst {
    inner: WorldKernel,
    ended: Rc<RefCell<Option<Reply>>>,
}

impl Kernel for ReapsFirst {
    type Program = Command;

    fn call(&self, call: Call) -> Answer<Reply> {
        match call {
            Call::KillGroup { group } => {
                let reaps = Call::Wait { pid: group, wait: Wait::AtMost(0), reap: true };
                let ended = self.inner.call(reaps).ok();
                *self.ended.borrow_mut() = ended.filter(|reply| *reply != Reply::Ending(None));
                self.inner.call(call)
            }
            Call::Wait { .. } => match self.ended.borrow().clone() {
                Some(ended) => Ok(ended),
                None => self.inner.call(call),
            },
            _ => self.inner.call(call),
        }
    }

    fn spawn(&self, program: &mut Command, plan: &ChildPlan) -> Answer<Pid> {
        self.inner.spawn(program, plan)
    }
}

impl System for ReapsFirst {
    fn beyond(&self, call: Beyond) -> Answer<Reply> {
        self.inner.beyond(call)
    }
}

#[test]
fn who_kills_by_a_number_that_was_reaped_kills_a_stranger() {
    let setup = |strangers| {
        let case = Case { then: Then::EndAndClose, kills: 0, strangers, ..Case::SMALL };
        let mut setup = case.setup();
        let command = setup.programs.add("command", |world| subject::command(world, Manner::Plain));
        let owner = setup.programs.add("owner", move |world| {
            let company = Company::Command(command);
            let kernel = ReapsFirst { inner: world.clone(), ended: Rc::default() };
            subject::owner::<Mortmain, _>(world, &kernel, company, case.then)
        });
        Setup { starts: vec![owner], ..setup }
    };
    let nobody_comes = exhaust(&setup(0), &BOUNDS).verdict;
    assert!(matches!(nobody_comes, Verdict::Holds), "{nobody_comes:?}");
    check_alone(
        &setup(1),
        "S2: after `kill-group 101` of owner 10, stranger 101 is dead, who has nothing to do with it",
    );
}
