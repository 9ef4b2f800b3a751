//! What the merging of private steps rests on, looked at in every state of
//! real runs.

use std::collections::BTreeSet;

use mortmain_subjects::Mortmain;

use super::machine::{Choice, Machine, State};
use super::strategy::{Budget, Lengths, Scheduler, Strategy};
use super::{Case, Setup, Subject, Without};
use crate::judge::Judged;
use crate::simulated::subject::{self, Manner, Then};
use crate::simulated::{Engine, Live, Programs, Trie};
use crate::world::{Fingerprint, Reaping, Rules};

type Process = <Trie<'static> as Engine>::Process;

fn setup(manner: Manner, then: Then, reaping: Reaping) -> Setup {
    let mut programs = Programs::default();
    let command = programs.add("command", move |world| subject::command(world, manner));
    let owner = programs.add("owner", move |world| {
        subject::owner::<Mortmain, _>(world, world, Some(command), then)
    });
    let sweep = programs.add("sweep", subject::sweep::<Mortmain, _>);
    Setup {
        rules: Rules { reaping, ..Rules::default() },
        programs,
        starts: vec![owner, sweep],
        last: sweep,
        kills: 1,
        failures: 0,
        waits: 1,
        rest_seconds: 0,
        judged: Judged::All,
        errnos: Vec::new(),
        merge: false,
        calls_max: 2_000,
    }
}

fn fingerprint(state: &State<Process>) -> Fingerprint {
    let left = (state.kills_left, state.failures_left, state.waits_left);
    let rest = Fingerprint::of(&(left, &state.processes));
    state.world.fingerprint().with(rest)
}

fn after(
    machine: &mut Machine<'_, Trie<'_>>,
    state: &State<Process>,
    choices: &[Choice],
) -> State<Process> {
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
        let pairs = check_private_steps(&setup(manner, then, reaping));
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
