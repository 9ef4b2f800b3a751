//! The code beside the model: that it holds, what it has taken along, and that the model refuses code
//! without a rule.

use super::*;
use crate::explore::{Failure, Without};

const BOUNDS: Bounds = Bounds { states_max: 1_000_000 };

fn run(case: Case) -> Refined {
    refine(case, &BOUNDS, &mut |_| true).expect("room for the case")
}

/// The kinds of steps that were never taken, where every step of the code was one of the model's.
#[track_caller]
fn never(case: Case) -> Vec<String> {
    let refined = run(case);
    match &refined.exploration.verdict {
        Verdict::Holds => refined.never.iter().map(Step::to_string).collect(),
        Verdict::Found(found) => panic!("{found}"),
        verdict => panic!("{verdict:?}"),
    }
}

/// Why the model refuses a step.
#[track_caller]
fn refused(case: Case) -> String {
    match run(case).exploration.verdict {
        Verdict::Found(found) => match found.failure {
            Failure::Refused(why) => why,
            failure => panic!("{failure}"),
        },
        verdict => panic!("{verdict:?}"),
    }
}

#[test]
fn every_step_of_an_owner_that_closes_is_the_models_and_every_kind_of_its_steps_is_taken() {
    let nothing: [&str; 0] = [];
    assert_eq!(never(Case { then: Then::WaitAndClose, ..Case::SMALL }), nothing);
}

#[test]
fn every_step_beside_children_daemons_and_what_escapes_is_the_models() {
    for manner in [Manner::ClosesAll, Manner::LeavesChild, Manner::LeavesDaemon, Manner::Escapes] {
        // An owner that holds its claim until it is killed withdraws nothing.
        let nothing = ["owner 1: removes the file of an entry"];
        assert_eq!(never(Case { manner, ..Case::SMALL }), nothing, "{manner:?}");
    }
}

#[test]
fn an_owner_that_exits_is_to_the_model_one_that_was_killed() {
    let case = Case { then: Then::Exit, kills: 0, ..Case::SMALL };
    assert_eq!(run(case).exploration.verdict, Verdict::Holds);
}

#[test]
fn the_way_of_a_third_claim_is_followed_no_further_and_counted() {
    let refined = run(Case { sweeps: 2, kills: 0, ..Case::GATE });
    assert_eq!(refined.exploration.verdict, Verdict::Holds);
    assert!(refined.beyond > 0, "{refined}");
    assert!(refined.to_string().ends_with("transitions lie beyond its bounds"), "{refined}");
    let whole = run(Case { sweeps: 1, kills: 0, ..Case::GATE });
    assert_eq!(whole.beyond, 0, "{whole}");
}

#[test]
fn code_without_a_rule_takes_a_step_that_the_model_refuses() {
    for (id, without) in Without::RULES {
        // Without r2 something is left in the end, and nothing is done that must not be; and the model
        // has no adversary.
        if id == "r2" || without.shown_by().tricks > 0 {
            continue;
        }
        let why = refused(without.shown_by());
        assert!(why.starts_with("the model allows no such step"), "{id}: {why}");
    }
}

#[test]
fn what_is_seen_after_a_step_that_is_refused_is_told() {
    let why = refused(Without::L3.shown_by());
    let told = "directory 1 is a tombstone with an owner's record, commands, files, locked by a \
                sweep; the owner is dead; command 1 ";
    assert!(why.contains(told), "{why}");
}

#[test]
fn a_case_that_the_model_has_no_room_for_is_refused() {
    let why = |case| refine(case, &BOUNDS, &mut |_| true).expect_err("no room").to_string();
    assert_eq!(
        why(Case { kills: 3, ..Case::SMALL }),
        "the model has no room for 3 kills: 2 is the most"
    );
    assert_eq!(
        why(Case { failures: 1, ..Case::SMALL }),
        "the model has no room for calls that fail: only its probes do"
    );
    assert_eq!(why(Case { tricks: 1, ..Case::SMALL }), "the model has no room for an adversary");
    assert_eq!(
        why(Case { trees: 1, ..Case::SMALL }),
        "the model has no room for several that are killed at the same moment"
    );
    for case in [Case { strangers: 1, ..Case::SMALL }, Case { reboots: true, ..Case::SMALL }] {
        assert_eq!(why(case), "the model has no room for strangers");
    }
    let sweeps = why(Case { sweeps: 3, ..Case::SMALL });
    assert!(sweeps.contains("sweeps: 3 were asked for, 2 is the most"), "{sweeps}");
}

#[test]
fn whoever_watches_can_end_it() {
    let refined = refine(Case::SMALL, &BOUNDS, &mut |_| false).expect("room for the case");
    assert_eq!(refined.exploration.verdict, Verdict::Ended);
    assert!(refined.never.is_empty(), "nobody knows yet what is never taken");
}
