//! Searches of small machines whose states can be counted by hand.

use super::{Counts, Key, Limits, Machine, Next, Outcome, Search, explore};

/// Counters that are counted up, one at a time.
struct Counters {
    /// How many there are, and how far each goes.
    size: [u32; 2],
    /// A state that is wrong.
    wrong: Option<[u32; 2]>,
    /// Whether it is the state that is wrong, or the steps to it.
    state_is_wrong: bool,
}

impl Machine for Counters {
    type State = [u32; 2];
    type Broken = [u32; 2];
    type Memo = ();

    fn initial(&self) -> [u32; 2] {
        [0; 2]
    }

    fn pack(&self, state: &[u32; 2]) -> Key {
        Key { shared: [u64::from(state[0]), 0], own: state[1] }
    }

    fn unpack(&self, key: &Key) -> [u32; 2] {
        [key.shared[0] as u32, key.own]
    }

    fn successors(&self, state: &[u32; 2], tell: &mut impl FnMut(Next<'_, [u32; 2], [u32; 2]>)) {
        for (at, size) in self.size.iter().enumerate() {
            if state[at] < *size {
                let mut next = *state;
                next[at] += 1;
                let broken = self.wrong.filter(|it| *it == next && !self.state_is_wrong);
                tell(Next { state: &next, broken, bits: 1 << at });
            }
        }
    }

    fn judge(&self, _: &Key, state: &[u32; 2], (): &mut ()) -> Option<[u32; 2]> {
        self.wrong.filter(|wrong| wrong == state && self.state_is_wrong)
    }
}

const FREE: Limits = Limits { states_max: u64::MAX, bytes_max: u64::MAX, workers: 1 };

fn search(machine: &Counters, limits: Limits) -> Search<[u32; 2]> {
    explore(machine, &limits, &mut |_| true)
}

#[test]
fn every_state_is_met_once_and_every_step_is_counted() {
    let machine = Counters { size: [300, 400], wrong: None, state_is_wrong: false };
    let search = search(&machine, FREE);
    assert!(matches!(search.outcome, Outcome::Holds), "{:?}", search.outcome);
    let Counts { states, unique, depth, .. } = search.counts;
    assert_eq!(unique, 301 * 401);
    // Steps of the first counter, of the second, and the initial state.
    assert_eq!(states, 300 * 401 + 301 * 400 + 1);
    assert_eq!(depth, 701);
    assert_eq!(search.bits, 3);
}

#[test]
fn what_is_found_is_as_short_as_can_be() {
    for state_is_wrong in [false, true] {
        let machine = Counters { size: [300, 400], wrong: Some([120, 230]), state_is_wrong };
        let Outcome::Found(found) = search(&machine, FREE).outcome else {
            panic!("it is there");
        };
        assert_eq!(found.broken, [120, 230]);
        let steps = if state_is_wrong { 350 } else { 349 };
        assert_eq!(found.path.len(), steps + 1);
        let path: Vec<[u32; 2]> = found.path.iter().map(|key| machine.unpack(key)).collect();
        assert_eq!(path[0], [0, 0]);
        for pair in path.windows(2) {
            assert_eq!(pair[1].iter().sum::<u32>(), pair[0].iter().sum::<u32>() + 1, "{path:?}");
        }
    }
}

#[test]
fn the_number_of_workers_changes_nothing() {
    let machine = Counters { size: [300, 300], wrong: Some([150, 160]), state_is_wrong: false };
    let of = |workers| {
        let search = search(&machine, Limits { workers, ..FREE });
        let Outcome::Found(found) = search.outcome else {
            panic!("it is there");
        };
        (search.counts, search.bits, found.path)
    };
    let one = of(1);
    for workers in [2, 3, 5] {
        assert_eq!(of(workers), one, "with {workers} workers");
    }
}

#[test]
fn a_limit_is_no_verdict() {
    let machine = Counters { size: [3000, 3000], wrong: None, state_is_wrong: false };
    let states = search(&machine, Limits { states_max: 10_000, ..FREE });
    assert!(matches!(states.outcome, Outcome::TooManyStates), "{:?}", states.outcome);
    assert!((10_000..200_000).contains(&states.counts.unique), "{:?}", states.counts);
    let bytes = search(&machine, Limits { bytes_max: 1 << 20, ..FREE });
    assert!(matches!(bytes.outcome, Outcome::TooMuchMemory), "{:?}", bytes.outcome);
    assert!((1 << 20..3 << 20).contains(&bytes.counts.bytes), "{:?}", bytes.counts);
}

#[test]
fn who_watches_can_end_it_and_sees_it_grow() {
    let machine = Counters { size: [3000, 3000], wrong: None, state_is_wrong: false };
    let mut seen = 0;
    let search = explore(&machine, &FREE, &mut |counts| {
        assert!(counts.unique >= seen, "states do not go away");
        seen = counts.unique;
        seen < 5000
    });
    assert!(matches!(search.outcome, Outcome::Interrupted), "{:?}", search.outcome);
    assert_eq!(search.counts.unique, seen);
}
