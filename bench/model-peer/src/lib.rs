//! The model of the protocol under a second explorer: the crate `stateright`.
//!
//! Both go through the same steps of the same model. So they have to meet the same states, and
//! to agree whether it holds; what differs is the explorer, and that is what is compared.
//!
//! The peer gets what is best for it: states in the form in which ours keeps them, packed and
//! reduced by symmetry; the next state inside of each action; and, for each of its threads, the
//! same memory of what is left in the end.

use std::cell::RefCell;

use mortmain_model::explore::{Counts, Key, Limits, Machine};
use mortmain_model::setting::Setting;
use mortmain_model::{Memo, Model, Verdict};
use stateright::{Checker as _, Property};

/// What an explorer says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Said {
    /// Whether the protocol holds.
    pub holds: bool,
    /// States that steps led to, the initial one included.
    pub states: u64,
    /// Different ones.
    pub unique: u64,
    /// Levels.
    pub depth: u64,
}

/// Our own explorer.
///
/// # Panics
///
/// If it does not decide within a hundred million states.
pub fn ours(setting: Setting, workers: usize) -> Said {
    let limits = Limits { states_max: 100_000_000, bytes_max: u64::MAX, workers };
    let searched = model(setting).search(&limits, &mut |_| true);
    let holds = match searched.verdict {
        Verdict::Holds => true,
        Verdict::Found(_) => false,
        Verdict::NotDecided(why) => panic!("not decided: {why}"),
    };
    let Counts { states, unique, depth, .. } = searched.counts;
    Said { holds, states, unique, depth }
}

/// The peer.
pub fn peer(setting: Setting, threads: usize) -> Said {
    use stateright::Model as _;

    let checker = Peer(model(setting)).checker().threads(threads).spawn_bfs().join();
    Said {
        holds: checker.discoveries().is_empty(),
        states: checker.state_count() as u64,
        unique: checker.unique_state_count() as u64,
        depth: checker.max_depth() as u64,
    }
}

fn model(setting: Setting) -> Model {
    Model::new(setting).expect("bounds that the model has room for")
}

struct Peer(Model);

/// A state as our explorer keeps it, and whether the step to it has broken anything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PeerState {
    key: Key,
    is_broken: bool,
}

thread_local! {
    static MEMO: RefCell<Memo> = RefCell::new(Memo::default());
}

impl stateright::Model for Peer {
    type State = PeerState;
    /// A step is known by where it leads to.
    type Action = PeerState;

    fn init_states(&self) -> Vec<PeerState> {
        vec![PeerState { key: self.0.pack(&self.0.initial()), is_broken: false }]
    }

    fn actions(&self, state: &PeerState, actions: &mut Vec<PeerState>) {
        self.0.successors(&self.0.unpack(&state.key), &mut |next| {
            let key = self.0.pack(next.state);
            actions.push(PeerState { key, is_broken: next.broken.is_some() });
        });
    }

    fn next_state(&self, _: &PeerState, action: PeerState) -> Option<PeerState> {
        Some(action)
    }

    fn properties(&self) -> Vec<Property<Peer>> {
        vec![Property::always("the protocol holds", |peer: &Peer, state: &PeerState| {
            let judged = || {
                let key = &state.key;
                let unpacked = peer.0.unpack(key);
                MEMO.with_borrow_mut(|memo| peer.0.judge(key, &unpacked, memo))
            };
            !state.is_broken && judged().is_none()
        })]
    }
}
