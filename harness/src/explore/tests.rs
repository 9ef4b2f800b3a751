//! What the merging of private steps rests on, looked at in every state of
//! real runs.

use std::collections::{BTreeMap, BTreeSet};

use mortmain::sys::Pid;

use super::choice::Choice;
use super::exhaust::{Spot, fingerprint};
use super::follow::{End, follow};
use super::machine::Machine;
use super::strategy::{Lengths, Scheduler, Strategy};
use super::{Case, Setup, Subject, Without};
use crate::handles::Handles;
use crate::simulated::subject::{Manner, Then};
use crate::simulated::{Engine as _, Live, Trie};
use crate::timeline::EventKind;
use crate::world::{Reaping, World};

fn after(machine: &mut Machine<'_, Trie<'_>>, state: &Spot, choices: &[Choice]) -> Spot {
    let mut state = state.clone();
    for choice in choices {
        assert!(machine.can(&state, *choice), "{choice} is possible");
        machine.take(&mut state, *choice).expect("nothing is wrong on the way");
    }
    state
}

/// How many pairs of a private step and another choice were looked at, in so many states at most.
fn check_private_steps(setup: &Setup, states_max: usize) -> u64 {
    let mut machine = Machine::new(setup, Trie::new(&setup.programs));
    let first = machine.begin().expect("nothing is wrong in the beginning");
    let mut met = BTreeSet::from([fingerprint(&first)]);
    let mut waiting = vec![first];
    let mut choices = Vec::new();
    let mut pairs = 0;
    while let Some(state) = waiting.pop().filter(|_| met.len() < states_max) {
        machine.choices(&state, &mut choices);
        for (pid, process) in &state.processes {
            let request = machine.engine.request(process).clone();
            if !state.world.is_private(*pid, &request) {
                continue;
            }
            let step = Choice::Step(*pid);
            for other in choices.iter().copied().filter(|choice| *choice != step) {
                pairs += 1;
                let with = after(&mut machine, &state, &[step, other]);
                let mut without = after(&mut machine, &state, &[other]);
                // Dead, it has not done it.
                if without.world.lives(*pid) {
                    without = after(&mut machine, &without, &[step]);
                }
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
        // With more that may happen there are more states than time.
        let tricked = Case { tricks: 1, ..case };
        let others = Case { trees: 1, strangers: 1, orders: 1, ..case };
        for (case, states_max) in [(case, usize::MAX), (tricked, 20_000), (others, 20_000)] {
            let pairs = check_private_steps(&case.setup(), states_max);
            assert!(pairs > 1_000, "only {pairs} pairs were looked at");
        }
    }
}

/// Runs a drawn schedule on both engines at once; how many choices it has.
fn check_both_engines(setup: &Setup, trie: &mut Machine<'_, Trie<'_>>, iteration: u64) -> u64 {
    let mut live = Machine::new(setup, Live::new(&setup.programs));
    let lengths = Lengths { undisturbed: 40, longest: 80 };
    let pct = Strategy::Pct { depth: 3 };
    let mut scheduler = Scheduler::new(setup.budget, pct, (1, iteration), lengths);
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
        assert_eq!(trie.label(&learnt, choice), live.label(&real, choice));
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
    let others = Case { trees: 1, strangers: 1, orders: 1, ..Case::GATE };
    let everything = Case { failures: 1, waits: 1, tricks: 1, ..others };
    for case in rules.into_iter().chain(subjects).chain([everything]) {
        let setup = case.setup();
        let mut trie = Machine::new(&setup, Trie::new(&setup.programs));
        let taken: u64 = (0..100).map(|at| check_both_engines(&setup, &mut trie, at)).sum();
        assert!(taken > 1_000, "{case:?}: only {taken} choices");
    }
}

/// A group that its owner ends dies where the timeline says that it is ended.
#[test]
fn whom_another_process_ends_has_a_line_of_its_own() {
    let setup = Case { then: Then::EndAndClose, ..Case::SMALL }.setup();
    let mut machine = Machine::new(&setup, Live::new(&setup.programs));
    machine.events = Some(Vec::new());
    let mut state = machine.begin().expect("nothing is wrong in the beginning");
    let mut choices = Vec::new();
    while let Some(step) = machine.first_step(&state, &mut choices) {
        machine.take(&mut state, step).expect("nothing is wrong on the way");
    }
    let events = machine.events.expect("they were asked for");
    let ended = events.iter().position(|event| event.text == "kill-group 101: done");
    let ended = ended.expect("the owner ends its command");
    let next = &events[ended + 1];
    assert_eq!((next.who.to_string().as_str(), next.kind), ("command 101", EventKind::Killed));
    let killed = events.iter().filter(|event| event.kind == EventKind::Killed);
    assert_eq!(killed.count(), 1, "{events:?}");
}

/// Who holds the lock of what, by its path below the root: as the world describes it.
fn locks_of(world: &World) -> BTreeMap<String, Vec<Pid>> {
    let lines = world.describe();
    let locks = lines.iter().filter_map(|line| {
        let (what, holders) = line.split_once(", locked by ")?;
        let path = what.split(", ").next()?.strip_prefix("/r/").unwrap_or(World::ROOT);
        let holders = holders.split(" and ").map(|pid| Pid(pid.parse().expect("a number")));
        Some((path.to_owned(), holders.collect()))
    });
    locks.collect()
}

/// Compares them with what is worked out from the timeline; how many locks there were.
fn check_locks(handles: &Handles, world: &World) -> usize {
    let real = locks_of(world);
    let named: BTreeSet<String> = world.tree().iter().map(ToString::to_string).collect();
    let mut seen: BTreeMap<String, Vec<Pid>> = BTreeMap::new();
    for (pid, of) in handles.held() {
        // A file that has no name any more is in no list of the world.
        if named.contains(handles.path_of(of)) {
            seen.entry(handles.path_of(of).into()).or_default().push(pid);
        }
    }
    assert_eq!(seen, real);
    real.len()
}

#[test]
fn the_locks_of_a_timeline_are_those_of_the_world() {
    let rules = Without::RULES.map(|(_, rule)| rule.shown_by());
    let subjects = Subject::ALL.map(Subject::shown_by);
    let failing = Case { failures: 2, then: Then::EndAndClose, ..Case::GATE };
    let mut locks = 0;
    let cases = rules.into_iter().chain(subjects).chain([failing]);
    // What the adversary has taken elsewhere has no name among the claims.
    for case in cases.filter(|case| case.tricks == 0) {
        let setup = case.setup();
        for iteration in 0..40 {
            let lengths = Lengths { undisturbed: 40, longest: 80 };
            let strategy = Strategy::Sticky;
            let mut scheduler = Scheduler::new(setup.budget, strategy, (1, iteration), lengths);
            let mut machine = Machine::new(&setup, Live::new(&setup.programs));
            machine.events = Some(Vec::new());
            let mut state = machine.begin().expect("nothing is wrong in the beginning");
            let (mut handles, mut choices, mut ended) = (Handles::default(), Vec::new(), false);
            while !ended {
                machine.choices(&state, &mut choices);
                let choice = scheduler.next(&choices);
                ended = machine.take(&mut state, choice).is_err() || choice == Choice::Recover;
                for event in machine.events.replace(Vec::new()).expect("they are asked for") {
                    handles.follow(&event);
                }
                locks += check_locks(&handles, &state.world);
            }
        }
    }
    assert!(locks > 5_000, "only {locks}");
}

#[test]
fn what_does_not_fit_is_left_out_of_a_run_that_is_followed() {
    let setup = Case::SMALL.setup();
    let [nobody, owner] = [77, 10].map(|pid| Choice::Step(Pid(pid)));
    // One kill is allowed.
    let kills = [Choice::Kill(Pid(20)), Choice::Kill(Pid(10))];
    let schedule = [nobody, owner, kills[0], kills[1], owner];
    let there = follow(&setup, &schedule, End::There);
    assert_eq!(there.schedule, [owner, kills[0], owner]);
    assert_eq!((there.failure, there.firsts.len()), (None, 3));
    let whole = follow(&setup, &schedule, End::Whole);
    assert!(whole.schedule.starts_with(&there.schedule));
    assert_eq!((whole.failure, whole.schedule.last()), (None, Some(&Choice::Recover)));
    // Its own end is the one that the schedule has.
    let recovers = follow(&setup, &[owner, Choice::Recover, owner], End::There);
    assert_eq!(recovers.schedule, [owner, Choice::Recover]);
}
