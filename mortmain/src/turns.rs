//! Whose turn it is among the threads of one process that want one lock (f7).
//!
//! Only the first in each queue asks the kernel, and the others wait for it, in the
//! order in which they came. This is a plain value: the lock around it, the clock
//! and the threads are the public face's, which does each of these operations in
//! one piece. So all that threads can do to each other here is the order of the
//! operations, and a test goes through every one.

use alloc::collections::{BTreeMap, VecDeque};

use crate::sys::PathBytes;

/// A place in a queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Ticket(u64);

/// The queues, by what they are for. `W` wakes whoever waits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Turns<W> {
    queues: BTreeMap<PathBytes, VecDeque<Waiting<W>>>,
    next: u64,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Waiting<W> {
    ticket: Ticket,
    waker: Option<W>,
}

impl<W> Default for Turns<W> {
    fn default() -> Turns<W> {
        Turns { queues: BTreeMap::new(), next: 0 }
    }
}

impl<W> Turns<W> {
    /// Joins a queue, as its last.
    pub(crate) fn join(&mut self, path: &PathBytes) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        let queue = self.queues.entry(path.clone()).or_default();
        // CHECK(f7-in-order): whoever came first would wait for as long as others go on coming.
        queue.push_back(Waiting { ticket, waker: None });
        ticket
    }

    /// Whether it is this one's turn; if not, it is woken when that has become
    /// worth asking again.
    pub(crate) fn is_first(&mut self, path: &PathBytes, ticket: Ticket, waker: W) -> bool {
        let Some(queue) = self.queues.get_mut(path) else { return false };
        let Some(at) = queue.iter().position(|waiting| waiting.ticket == ticket) else {
            return false;
        };
        // CHECK(f7-one-at-a-time): two that ask the kernel at once have no order.
        if at > 0 {
            queue[at].waker = Some(waker);
            return false;
        }
        true
    }

    /// Leaves a queue, from whichever place; answers whom to wake.
    pub(crate) fn leave(&mut self, path: &PathBytes, ticket: Ticket) -> Option<W> {
        let queue = self.queues.get_mut(path)?;
        let at = queue.iter().position(|waiting| waiting.ticket == ticket)?;
        queue.remove(at);
        // CHECK(f7-wake-next): nobody else would ever tell it that its turn has come.
        let woken =
            if at == 0 { queue.front_mut().and_then(|next| next.waker.take()) } else { None };
        if queue.is_empty() {
            self.queues.remove(path);
        }
        woken
    }

    /// Whether nobody waits for anything.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec;
    use alloc::vec::Vec;
    use std::println;

    use super::*;

    /// How far a thread is that wants the lock once.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    enum At {
        Start,
        /// It is about to ask whether it is first.
        Asks(Ticket),
        /// It is parked.
        Sleeps(Ticket),
        Inside(Ticket),
        /// It has left the queue and is about to wake the next.
        Wakes(Option<usize>),
        Done,
    }

    /// Threads, and what they share. A thread is a number.
    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
    struct State {
        turns: Turns<usize>,
        threads: Vec<At>,
        /// Whose token to go on lies there, as with `park` and `unpark`.
        tokens: Vec<bool>,
        /// Who came and has not left, in order.
        line: Vec<usize>,
    }

    /// Every state that threads can come to, each going on in operations of the table,
    /// in every order; `patience` of them may each lose theirs at any moment.
    struct Search {
        path: PathBytes,
        patience: bool,
        met: BTreeSet<State>,
        transitions: u64,
        runs: u64,
    }

    impl Search {
        fn run(threads: usize, patience: bool) -> Search {
            let mut search = Search {
                path: PathBytes::from(&b"/lock"[..]),
                patience,
                met: BTreeSet::new(),
                transitions: 0,
                runs: 0,
            };
            search.visit(State {
                turns: Turns::default(),
                threads: vec![At::Start; threads],
                tokens: vec![false; threads],
                line: Vec::new(),
            });
            search
        }

        fn visit(&mut self, state: State) {
            if !self.met.insert(state.clone()) {
                return;
            }
            let inside = |at: &&At| matches!(at, At::Inside(_));
            assert!(state.threads.iter().filter(inside).count() <= 1, "two are inside: {state:?}");
            let mut next = Vec::new();
            for thread in 0..state.threads.len() {
                self.steps(&state, thread, &mut next);
            }
            if next.is_empty() {
                let all_done = state.threads.iter().all(|at| *at == At::Done);
                assert!(all_done, "nobody can go on: {state:?}");
                assert!(state.turns.is_empty(), "somebody is still in a queue: {state:?}");
                self.runs += 1;
            }
            for state in next {
                self.transitions += 1;
                self.visit(state);
            }
        }

        /// What a thread can do next.
        fn steps(&self, state: &State, thread: usize, next: &mut Vec<State>) {
            let go = |at: At, change: &dyn Fn(&mut State)| {
                let mut state = state.clone();
                state.threads[thread] = at;
                change(&mut state);
                state
            };
            let give_up = |ticket: Ticket| {
                let mut state = state.clone();
                let woken = state.turns.leave(&self.path, ticket);
                state.line.retain(|other| *other != thread);
                state.threads[thread] = At::Wakes(woken);
                state
            };
            match state.threads[thread] {
                At::Start => {
                    let mut state = state.clone();
                    let ticket = state.turns.join(&self.path);
                    state.line.push(thread);
                    state.threads[thread] = At::Asks(ticket);
                    next.push(state);
                }
                At::Asks(ticket) => {
                    let mut state = state.clone();
                    let first = state.turns.is_first(&self.path, ticket, thread);
                    assert!(!first || state.line[0] == thread, "out of turn: {state:?}");
                    state.threads[thread] =
                        if first { At::Inside(ticket) } else { At::Sleeps(ticket) };
                    next.push(state);
                }
                At::Sleeps(ticket) => {
                    if state.tokens[thread] {
                        next.push(go(At::Asks(ticket), &|state| state.tokens[thread] = false));
                    }
                    if self.patience {
                        next.push(give_up(ticket));
                    }
                }
                At::Inside(ticket) => next.push(give_up(ticket)),
                At::Wakes(woken) => next.push(go(At::Done, &|state| {
                    if let Some(woken) = woken {
                        state.tokens[woken] = true;
                    }
                })),
                At::Done => {}
            }
        }
    }

    /// All that threads do to each other are operations on the table, each in one piece under
    /// its mutex, and tokens. So every order of those is every way that they can go.
    #[test]
    fn in_every_order_one_is_inside_at_most_and_nobody_is_forgotten() {
        for (threads, patience) in [(2, true), (3, true), (4, false), (4, true)] {
            let Search { met, transitions, runs, .. } = Search::run(threads, patience);
            println!(
                "{threads} threads, losing patience: {patience}: {} states, {transitions} \
                 transitions, {runs} ends",
                met.len()
            );
            assert!(met.len() > 20 && runs > 0);
        }
    }

    #[test]
    fn queues_of_different_paths_have_nothing_to_do_with_each_other() {
        let mut turns = Turns::default();
        let paths = [b"/a", b"/b"].map(|path| PathBytes::from(&path[..]));
        let tickets = [0, 1].map(|at: usize| turns.join(&paths[at]));
        for at in [0, 1] {
            assert!(turns.is_first(&paths[at], tickets[at], ()));
        }
        let second = turns.join(&paths[0]);
        assert!(!turns.is_first(&paths[0], second, ()));
        assert_eq!(turns.leave(&paths[1], tickets[1]), None);
        assert_eq!(turns.leave(&paths[0], tickets[0]), Some(()));
        assert!(turns.is_first(&paths[0], second, ()));
    }
}
