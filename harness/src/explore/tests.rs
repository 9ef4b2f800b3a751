//! What the merging of private steps rests on, looked at in every state of
//! real runs.

use std::collections::BTreeSet;

use super::exhaust::{Spot, fingerprint};
use super::machine::{Choice, Machine};
use super::strategy::{Budget, Lengths, Scheduler, Strategy};
use super::{Case, Setup, Subject, Without};
use crate::simulated::subject::{Manner, Then};
use crate::simulated::{Engine as _, Live, Trie};
use crate::world::Reaping;

fn after(machine: &mut Machine<'_, Trie<'_>>, state: &Spot, choices: &[Choice]) -> Spot {
    let mut state = state.clone();
    for choice in choices {
        assert!(machine.can(&state, *choice), "{choice} is possible");
        machine.take(&mut state, *choice).expect("nothing is wrong on the way");
    }
    state
}

/// How many pairs of a private step and another choice were looked at.
fn check_private_steps(setup: &Setup) -> u64 {
    let mut machine = Machine::new(setup, Trie::new(&setup.programs));
    let first = machine.begin().expect("nothing is wrong in the beginning");
    let mut met = BTreeSet::from([fingerprint(&first)]);
    let mut waiting = vec![first];
    let mut choices = Vec::new();
    let mut pairs = 0;
    while let Some(state) = waiting.pop() {
        machine.choices(&state, &mut choices);
        for (pid, process) in &state.processes {
            let request = machine.engine.request(process);
            if !state.world.is_private(*pid, &request) {
                continue;
            }
            let step = Choice::Step(*pid);
            for other in choices.iter().copied().filter(|choice| *choice != step) {
                pairs += 1;
                let with = after(&mut machine, &state, &[step, other]);
                let order = if other == Choice::Kill(*pid) {
                    // Dead, it has not done it.
                    vec![other]
                } else {
                    vec![other, step]
                };
                let without = after(&mut machine, &state, &order);
                let (with, without) = (fingerprint(&with), fingerprint(&without));
                assert_eq!(with, without, "`{request}` of {} and {other}", pid.0);
            }
        }
        for choice in choices.clone() {
            let next = after(&mut machine, &state, &[choice]);
            if met.insert(fingerprint(&next)) {
                waiting.push(next);
            }
        }
    }
    pairs
}

#[test]
fn private_steps_commute_with_everything_that_others_do() {
    for (manner, then, reaping) in [
        (Manner::Plain, Then::Idle, Reaping::AtOnce),
        (Manner::LeavesDaemon, Then::Exit, Reaping::Never),
    ] {
        let case = Case { manner, then, reaping, waits: 1, merge: false, ..Case::SMALL };
        let pairs = check_private_steps(&case.setup());
        assert!(pairs > 1_000, "only {pairs} pairs were looked at");
    }
}

/// Runs a drawn schedule on both engines at once; how many choices it has.
fn check_both_engines(setup: &Setup, trie: &mut Machine<'_, Trie<'_>>, iteration: u64) -> u64 {
    let mut live = Machine::new(setup, Live::new(&setup.programs));
    let lengths = Lengths { undisturbed: 40, longest: 80 };
    let pct = Strategy::Pct { depth: 3 };
    let mut scheduler = Scheduler::new(Budget::of(setup), pct, (1, iteration), lengths);
    trie.events = Some(Vec::new());
    live.events = Some(Vec::new());
    let mut learnt = trie.begin().expect("nothing is wrong in the beginning");
    let mut real = live.begin().expect("nothing is wrong in the beginning");
    let (mut choices, mut others) = (Vec::new(), Vec::new());
    for taken in 1.. {
        trie.choices(&learnt, &mut choices);
        live.choices(&real, &mut others);
        assert_eq!(choices, others);
        let choice = scheduler.next(&choices);
        assert_eq!(trie.label(&mut learnt, choice), live.label(&mut real, choice));
        let came = trie.take(&mut learnt, choice);
        assert_eq!(came, live.take(&mut real, choice), "{choice} of iteration {iteration}");
        assert_eq!(learnt.world.fingerprint(), real.world.fingerprint());
        if came.is_err() || choice == Choice::Recover {
            assert_eq!(trie.events, live.events);
            return taken;
        }
    }
    unreachable!("a run ends")
}

/// So what the one finds is what the other replays, and both judge the same.
#[test]
fn learnt_and_live_processes_do_the_same_step_by_step() {
    let rules = Without::RULES.map(|(_, rule)| rule.shown_by());
    let subjects = Subject::ALL.map(Subject::shown_by);
    let everything = Case { failures: 1, waits: 1, ..Case::GATE };
    for case in rules.into_iter().chain(subjects).chain([everything]) {
        let setup = case.setup();
        let mut trie = Machine::new(&setup, Trie::new(&setup.programs));
        let taken: u64 = (0..100).map(|at| check_both_engines(&setup, &mut trie, at)).sum();
        assert!(taken > 1_000, "{case:?}: only {taken} choices");
    }
}
