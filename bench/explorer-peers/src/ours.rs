//! The work under the lab's explorers.

use std::collections::{BTreeMap, BTreeSet};

use mortmain::sys::Pid;
use mortmain_harness::explore::{
    Bounds, Counts, SampleCounts, Sampled, Sampling, Setup, Strategy, Verdict, exhaust, sample,
};
use mortmain_harness::simulated::{Engine as _, Origin, Trie};
use mortmain_harness::world::request::Request;
use mortmain_harness::world::{Effect, Fingerprint, World};

use crate::execution::Execution;
use crate::work::Work;

/// More than the work has.
const STATES_MAX: u32 = 10_000_000;

/// Draws so many runs on live processes.
///
/// # Panics
///
/// When one of them finds something: the work has nothing to be found.
#[must_use]
pub fn drawn(work: &Work, kills: u32, seed: u64, runs: u64) -> SampleCounts {
    let setup = work.setup(kills);
    let sampling = Sampling {
        strategy: Strategy::Random,
        seed,
        iterations: 0..runs,
        threads: 1,
        early_ends: false,
    };
    let (sampled, counts) = sample(&setup, &sampling, &mut |_| true);
    assert!(matches!(sampled, Sampled::Nothing), "{}: {sampled:?}", work.name);
    counts
}

/// Goes through all states, and judges the end of everybody in each; with `merge` as the lab does it,
/// without with every call as a step of its own.
///
/// # Panics
///
/// When it finds something.
#[must_use]
pub fn all(work: &Work, merge: bool) -> Counts {
    let setup = Setup { merge, ..work.setup(0) };
    let exploration = exhaust(&setup, &Bounds { states_max: STATES_MAX });
    assert_eq!(exploration.verdict, Verdict::Holds, "{}", work.name);
    exploration.counts
}

/// How many orders of calls there are, and where they lead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Orders {
    /// Orders: what an explorer has to run that remembers no state and leaves none out.
    pub count: u128,
    /// States on the way.
    pub states: usize,
    /// The worlds in which both are over.
    pub ends: BTreeSet<Fingerprint>,
}

/// Counts the orders of calls of both, by states.
///
/// # Panics
///
/// When a program is not deterministic, or starts others.
#[must_use]
pub fn orders(work: &Work) -> Orders {
    let setup = work.setup(0);
    let mut counting = Counting {
        trie: Trie::of_whole_ways(&setup.programs),
        known: BTreeMap::new(),
        ends: BTreeSet::new(),
    };
    let mut world = World::new(setup.rules);
    let mut processes = Vec::new();
    for (pid, program) in [Execution::OWNER, Execution::SWEEP].into_iter().zip(&setup.starts) {
        world.start(pid, *program);
        let mut process = counting.trie.begin(Origin::Program(*program));
        counting.settle(&mut world, pid, &mut process);
        processes.push((pid, process));
    }
    let count = counting.count(&world, &processes);
    Orders { count, states: counting.known.len(), ends: counting.ends }
}

/// A process as the trie has it.
type Node<'p> = <Trie<'p> as mortmain_harness::simulated::Engine>::Process;

struct Counting<'p> {
    trie: Trie<'p>,
    known: BTreeMap<(Fingerprint, Vec<(Pid, Node<'p>)>), u128>,
    ends: BTreeSet<Fingerprint>,
}

impl<'p> Counting<'p> {
    fn count(&mut self, world: &World, processes: &[(Pid, Node<'p>)]) -> u128 {
        let key = (world.fingerprint(), processes.to_vec());
        if let Some(count) = self.known.get(&key) {
            return *count;
        }
        let mut count = 0;
        for (at, (pid, process)) in processes.iter().enumerate() {
            let request = self.trie.request(process).clone();
            if !world.enabled(*pid, &request) {
                continue;
            }
            let mut next = world.clone();
            let mut after = processes.to_vec();
            match next.exec(*pid, &request) {
                Effect::Ended => drop(after.remove(at)),
                Effect::Answer(response) => {
                    let process = &mut after[at].1;
                    self.trie.answer(process, response).expect("programs are deterministic");
                    self.settle(&mut next, *pid, process);
                }
                other => panic!("the work starts nothing, but there was {other:?}"),
            }
            count += self.count(&next, &after);
        }
        if count == 0 {
            self.ends.insert(world.fingerprint());
            count = 1;
        }
        self.known.insert(key, count);
        count
    }

    /// Answers what is no call, but a note for explorers.
    fn settle(&mut self, world: &mut World, pid: Pid, process: &mut Node<'p>) {
        loop {
            let request = self.trie.request(process).clone();
            let (Request::Aside | Request::Result { .. }) = *request else { return };
            let Effect::Answer(response) = world.exec(pid, &request) else { return };
            self.trie.answer(process, response).expect("programs are deterministic");
        }
    }
}
