//! Schedules that are drawn from a seed, on live processes: the same seed makes the same bytes, and
//! they find what the exhaustive search finds.
//!
//! More of them, in the optimised build:
//! `cargo lab explore --engine pct --seed 7 --iterations 1000000 --failures 1`.

use mortmain_harness::ArenaAllocator;
use mortmain_harness::explore::{
    Bounds, Case, Counterexample, SampleCounts, Sampled, Sampling, Strategy, Subject, Trace,
    Verdict, Without, exhaust, sample,
};

#[global_allocator]
static ALLOCATOR: ArenaAllocator = ArenaAllocator;

const STRATEGIES: [Strategy; 3] = [Strategy::Random, Strategy::Sticky, Strategy::Pct { depth: 3 }];

/// Every fault that there is.
const EVERYTHING: Case = Case {
    failures: 1,
    waits: 1,
    tricks: 1,
    trees: 1,
    strangers: 1,
    orders: 1,
    reboots: true,
    ..Case::GATE
};

fn sampled(
    case: Case,
    strategy: Strategy,
    iterations: u64,
    threads: usize,
) -> (Sampled, SampleCounts) {
    let sampling =
        Sampling { strategy, seed: 7, iterations: 0..iterations, threads, early_ends: true };
    sample(&case.setup(), &sampling, &mut |_| true)
}

/// Ten thousand schedules, once by one thread and once by two.
#[track_caller]
fn check_repeats(strategy: Strategy) {
    let (end, counts) = sampled(EVERYTHING, strategy, 10_000, 1);
    println!("{strategy:?}: {counts}");
    assert_eq!(end, Sampled::Nothing);
    assert_eq!((end, counts), sampled(EVERYTHING, strategy, 10_000, 2));
    assert_eq!(counts.runs, 10_000);
    assert_eq!(counts.recoveries, counts.runs, "each run ends with the last sweep");
    let faults = [counts.kills, counts.failures, counts.waits, counts.tricks];
    let faults = faults.into_iter().chain([counts.trees, counts.strangers, counts.orders]);
    assert!(faults.into_iter().all(|fired| fired > 300), "{counts}");
    assert!(counts.in_use > counts.runs, "S1 was hardly ever at stake: {counts}");
    assert_eq!(ArenaAllocator::spilled_bytes(), 0, "an arena is too small");
}

#[test]
fn ten_thousand_random_schedules_repeat_on_two_threads_and_hold() {
    check_repeats(Strategy::Random);
}

#[test]
fn ten_thousand_sticky_schedules_repeat_on_two_threads_and_hold() {
    check_repeats(Strategy::Sticky);
}

#[test]
fn ten_thousand_schedules_by_precedence_repeat_on_two_threads_and_hold() {
    check_repeats(Strategy::Pct { depth: 3 });
}

#[test]
fn another_seed_draws_other_schedules() {
    for strategy in STRATEGIES {
        let of = |seed| {
            let sampling =
                Sampling { strategy, seed, iterations: 0..50, threads: 1, early_ends: true };
            sample(&Case::SMALL.setup(), &sampling, &mut |_| true).1.digest
        };
        assert_ne!(of(1), of(2), "{strategy:?}");
    }
}

#[test]
fn one_iteration_is_the_same_alone() {
    let case = Subject::named("pid").expect("the lab knows it").shown_by();
    for strategy in STRATEGIES {
        let (Sampled::Found { iteration, found }, _) = sampled(case, strategy, 20_000, 2) else {
            panic!("{strategy:?} finds nothing");
        };
        let alone = Sampling {
            strategy,
            seed: 7,
            iterations: iteration..iteration + 1,
            threads: 1,
            early_ends: true,
        };
        let (again, counts) = sample(&case.setup(), &alone, &mut |_| true);
        assert_eq!(again, Sampled::Found { iteration, found });
        assert_eq!(counts.runs, 1);
    }
}

#[test]
fn whoever_watches_can_end_it() {
    let sampling = Sampling {
        strategy: Strategy::Sticky,
        seed: 7,
        iterations: 0..u64::MAX,
        threads: 2,
        early_ends: true,
    };
    let (end, counts) = sample(&Case::SMALL.setup(), &sampling, &mut |counts| counts.runs < 200);
    assert_eq!(end, Sampled::Ended);
    assert!((200..10_000).contains(&counts.runs), "{counts}");
}

fn exhaustively(case: Case) -> Counterexample {
    match exhaust(&case.setup(), &Bounds { states_max: 1_000_000 }).verdict {
        Verdict::Found(found) => *found,
        other => panic!("{case:?}: {other:?}"),
    }
}

/// What is wrong is found within so many schedules, is saved and replayed like any other finding, and
/// the exhaustive search finds it too, in no more choices.
#[track_caller]
fn check_finds(case: Case, strategy: Strategy, iterations: u64) {
    let (Sampled::Found { iteration, found }, counts) = sampled(case, strategy, iterations, 2)
    else {
        panic!("{case:?}: {strategy:?} finds nothing in {iterations} schedules");
    };
    println!("{:?} {:?} {strategy:?}: iteration {iteration}, {counts}", case.subject, case.without);
    assert_eq!(counts.runs, iteration + 1);
    let trace = Trace::of(case, &found).expect("live processes do the same again");
    let read = Trace::parse(&trace.to_string()).expect("it was written just now");
    read.replay(&mut |_, _, _| {}).expect("nothing has changed");
    let shortest = exhaustively(case);
    assert!(
        shortest.schedule.len() <= found.schedule.len(),
        "{found}\nis shorter than\n{shortest}"
    );
}

#[track_caller]
fn check_finds_rule(id: &str) {
    let (_, rule) = Without::RULES.into_iter().find(|(known, _)| *known == id).expect("a rule");
    for strategy in [Strategy::Sticky, Strategy::Pct { depth: 3 }] {
        check_finds(rule.shown_by(), strategy, 60_000);
    }
}

#[track_caller]
fn check_finds_subject(name: &str) {
    let case = Subject::named(name).expect("the lab knows it").shown_by();
    for strategy in STRATEGIES {
        check_finds(case, strategy, 60_000);
    }
}

#[test]
fn drawn_schedules_find_what_l3_is_for() {
    check_finds_rule("l3");
}

#[test]
fn drawn_schedules_find_what_l4_is_for() {
    check_finds_rule("l4");
}

#[test]
fn drawn_schedules_find_what_p1_is_for() {
    check_finds_rule("p1");
}

#[test]
fn drawn_schedules_find_what_p2_is_for() {
    check_finds_rule("p2");
}

#[test]
fn drawn_schedules_find_what_r2_is_for() {
    check_finds_rule("r2");
}

#[test]
fn drawn_schedules_find_what_h1_is_for() {
    check_finds_rule("h1");
}

#[test]
fn drawn_schedules_find_what_h2_is_for() {
    check_finds_rule("h2");
}

#[test]
fn drawn_schedules_find_what_h3_is_for() {
    check_finds_rule("h3");
}

#[test]
fn drawn_schedules_find_what_is_wrong_with_age() {
    check_finds_subject("age");
}

#[test]
fn drawn_schedules_find_what_is_wrong_with_an_owners_pid() {
    check_finds_subject("pid");
}

#[test]
fn drawn_schedules_find_what_is_wrong_with_an_inherited_lease() {
    check_finds_subject("inherited-lease");
}

#[test]
fn drawn_schedules_find_what_is_wrong_with_a_marker() {
    check_finds_subject("marker");
}

#[test]
fn drawn_schedules_find_what_is_wrong_with_a_lock_file() {
    check_finds_subject("lock-file");
}

#[test]
fn drawn_schedules_find_what_is_wrong_with_a_second_look() {
    check_finds_subject("second-look");
}
