//! Processes as numbers: what each program asks after each row of answers.
//!
//! A node stands for one row of answers to one beginning and holds the request
//! that follows it; an edge is an answer. An answer that a node has not had yet
//! is learnt by running that one process alone: it is started and fed with the
//! answers on the way to the node and the new one. On the way each request must
//! be the stored one; where it is not, the program is not deterministic and is
//! reported.
//!
//! The process that learnt a node waits there for a while, in case the next
//! answer comes soon. So that this does not hide what is not deterministic,
//! the first few hundred nodes and every sixteenth of the rest are learnt from
//! the beginning all the same, which runs their whole way once more.
//!
//! What a process does aside, of which it keeps only the result
//! ([`mortmain::sys::Kernel::aside`]), ends at one node for each result, however
//! many ways lead to it: at the first one that was learnt. Whoever comes there by
//! another way is run to its next request once, which must be the same.
//!
//! Nodes are numbered in the order in which they are learnt. Processes that
//! began alike share nodes as long as they are answered alike.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::engine::{Diverged, Engine, name_of};
use super::programs::{Origin, Programs, request_of};
use crate::raw::coroutine::Task;
use crate::world::Fingerprint;
use crate::world::request::{Request, Response};

/// Processes that wait at nodes at most.
const WAITING_MAX: usize = 1024;
/// Nodes that are all learnt from the beginning.
const CHECKED_ALL: usize = 512;
/// One of so many of the rest is, too.
const CHECKED_EACH: usize = 16;

/// A node by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(u32);

#[derive(Debug)]
struct Node {
    request: Arc<Request>,
    origin: u32,
    /// The number of answers on the way to it.
    depth: u32,
    /// The node before it; itself at a beginning.
    before: NodeId,
    /// Where it began what it does aside, if it does.
    aside: Option<NodeId>,
    /// What came after which answer. Few, so they are walked.
    after: Vec<(Arc<Response>, NodeId)>,
}

/// What a trie has cost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TrieCounts {
    /// Nodes learnt.
    pub nodes: u64,
    /// Requests that were run to learn them.
    pub replayed: u64,
}

/// The engine.
#[derive(Debug)]
pub struct Trie<'p> {
    programs: &'p Programs,
    nodes: Vec<Node>,
    origins: Vec<(Origin, NodeId)>,
    /// Where each result of what began at a node leads to, if they are merged.
    results: Option<FxHashMap<(NodeId, Fingerprint), NodeId>>,
    waiting: Waiting,
    counts: TrieCounts,
}

/// The processes that wait at nodes.
#[derive(Default, Debug)]
struct Waiting {
    tasks: FxHashMap<NodeId, Task>,
    /// The nodes, oldest first, some of which nobody waits at any more.
    order: VecDeque<NodeId>,
}

impl Waiting {
    fn put(&mut self, id: NodeId, task: Task) {
        self.tasks.insert(id, task);
        self.order.push_back(id);
        while self.tasks.len() > WAITING_MAX || self.order.len() > 4 * WAITING_MAX {
            let Some(oldest) = self.order.pop_front() else { return };
            self.tasks.remove(&oldest);
        }
    }

    fn take(&mut self, id: NodeId) -> Option<Task> {
        self.tasks.remove(&id)
    }
}

impl<'p> Trie<'p> {
    /// Runs these programs, and knows nothing of them yet.
    #[must_use]
    pub fn new(programs: &'p Programs) -> Trie<'p> {
        Trie {
            programs,
            nodes: Vec::new(),
            origins: Vec::new(),
            results: Some(FxHashMap::default()),
            waiting: Waiting::default(),
            counts: TrieCounts::default(),
        }
    }

    /// The same, but keeps every way to a result apart.
    #[must_use]
    pub fn of_whole_ways(programs: &'p Programs) -> Trie<'p> {
        Trie { results: None, ..Trie::new(programs) }
    }

    /// Where a process that is at a node, and goes on from it, began what it
    /// does aside.
    fn aside_after(&self, id: NodeId) -> Option<NodeId> {
        let node = self.node(id);
        match *node.request {
            Request::Aside => Some(id),
            Request::Result { .. } => node.aside.and_then(|began| self.node(began).aside),
            _ => node.aside,
        }
    }

    /// What a result of this node's is known by.
    fn result_at(&self, id: NodeId) -> Option<(NodeId, Fingerprint)> {
        let node = self.node(id);
        match (&*node.request, node.aside) {
            (Request::Result { of }, Some(began)) => Some((began, *of)),
            _ => None,
        }
    }

    /// What it has cost so far.
    #[must_use]
    pub fn counts(&self) -> TrieCounts {
        self.counts
    }

    fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    fn add(&mut self, node: impl FnOnce(NodeId) -> Node) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).expect("four billion nodes do not fit"));
        self.nodes.push(node(id));
        self.counts.nodes += 1;
        id
    }

    /// The answers on the way to a node, and the requests that they answer.
    fn way_to(&self, mut id: NodeId) -> Vec<(Arc<Request>, Arc<Response>)> {
        let mut way = Vec::new();
        while self.node(id).before != id {
            let before = self.node(self.node(id).before);
            let (response, _) = before
                .after
                .iter()
                .find(|(_, after)| *after == id)
                .expect("the node before it knows it");
            way.push((before.request.clone(), response.clone()));
            id = self.node(id).before;
        }
        way.reverse();
        way
    }

    /// Runs a process to a node and on with one more answer.
    fn learn(&mut self, id: NodeId, response: &Response) -> Result<(Task, Request), Diverged> {
        let number = self.nodes.len();
        let check = number < CHECKED_ALL || number.is_multiple_of(CHECKED_EACH);
        let mut task = match self.waiting.take(id) {
            Some(task) if !check => task,
            _ => self.run_to(id)?,
        };
        let request = request_of(task.resume(response));
        self.counts.replayed += 1;
        Ok((task, request))
    }

    /// Starts a process and runs it to a node.
    fn run_to(&mut self, id: NodeId) -> Result<Task, Diverged> {
        let (origin, _) = &self.origins[self.node(id).origin as usize];
        let differs = |at, stored: &Arc<Request>, now| Diverged {
            program: name_of(origin),
            at,
            before: stored.clone(),
            now: Arc::new(now),
        };
        let (mut task, mut request) = self.programs.start(origin);
        let way = self.way_to(id);
        let depth = way.len();
        for (at, (stored, response)) in way.into_iter().enumerate() {
            if *stored != request {
                return Err(differs(at, &stored, request));
            }
            request = request_of(task.resume(&response));
            self.counts.replayed += 1;
        }
        match &self.node(id).request {
            stored if **stored == request => Ok(task),
            stored => Err(differs(depth, stored, request)),
        }
    }
}

impl Engine for Trie<'_> {
    type Process = NodeId;

    fn begin(&mut self, origin: Origin) -> NodeId {
        if let Some((_, id)) = self.origins.iter().find(|(known, _)| *known == origin) {
            return *id;
        }
        let (_, request) = self.programs.start(&origin);
        let number = u32::try_from(self.origins.len()).expect("there are fewer than nodes");
        let id = self.add(|id| Node {
            request: Arc::new(request),
            origin: number,
            depth: 0,
            before: id,
            aside: None,
            after: Vec::new(),
        });
        self.origins.push((origin, id));
        id
    }

    fn request<'p>(&'p self, process: &'p NodeId) -> &'p Arc<Request> {
        &self.node(*process).request
    }

    fn requests(&self, process: &NodeId) -> u32 {
        self.node(*process).depth
    }

    fn answer(&mut self, process: &mut NodeId, response: Response) -> Result<(), Diverged> {
        let node = self.node(*process);
        if let Some((_, after)) = node.after.iter().find(|(known, _)| **known == response) {
            *process = *after;
            return Ok(());
        }
        let (before, origin, depth) = (*process, node.origin, node.depth + 1);
        let (task, request) = self.learn(before, &response)?;
        let result = self.result_at(before);
        let met = self.results.as_ref().zip(result).and_then(|(met, result)| met.get(&result));
        let id = match met.copied() {
            Some(id) => {
                let stored = &self.node(id).request;
                if **stored != request {
                    return Err(Diverged {
                        program: name_of(&self.origins[origin as usize].0),
                        at: depth as usize,
                        before: stored.clone(),
                        now: Arc::new(request),
                    });
                }
                id
            }
            None => {
                let (request, aside) = (Arc::new(request), self.aside_after(before));
                let after = Vec::new();
                let id = self.add(|_| Node { request, origin, depth, before, aside, after });
                self.waiting.put(id, task);
                if let (Some(results), Some(result)) = (&mut self.results, result) {
                    results.insert(result, id);
                }
                id
            }
        };
        self.nodes[before.0 as usize].after.push((Arc::new(response), id));
        *process = id;
        Ok(())
    }

    fn double(&mut self, process: &NodeId) -> Result<NodeId, Diverged> {
        Ok(*process)
    }
}
