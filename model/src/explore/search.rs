//! The search itself: level after level, in blocks of pieces.

use super::parallel::each;
use super::shard::{self, SHARDS, Shard, hash, shard_of};
use super::{Key, Machine};

/// States in a piece: what one worker looks at in one go, and how far a step back has to look.
const PIECE: usize = 1024;
/// Pieces in a block: what is looked at before the shards are filled.
const BLOCK: usize = 64;

/// When to give up, and how many work.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most different states, and a thousand million at most; checked after every block, so
    /// that a few more may be met.
    pub states_max: u64,
    /// The most bytes for states and tables, checked as well after every block.
    pub bytes_max: u64,
    /// Threads that work, at least one.
    pub workers: usize,
}

/// How far a search is.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// States that steps led to, the initial one included.
    pub states: u64,
    /// Different ones.
    pub unique: u64,
    /// Levels: a state is on the level of the number of steps to it. The first is 1.
    pub depth: u64,
    /// Bytes that states and tables take.
    pub bytes: u64,
}

/// What was found: a shortest way to something wrong.
#[derive(Clone, Debug)]
pub struct Found<B> {
    /// The states on the way, from the initial one on.
    pub path: Vec<Key>,
    /// What is wrong with the last state, or with a step from it.
    pub broken: B,
}

/// How a search ended.
#[derive(Clone, Debug)]
pub enum Outcome<B> {
    /// All states were looked at, and nothing is wrong.
    Holds,
    /// Something is wrong.
    Found(Found<B>),
    /// There are more states than were allowed.
    TooManyStates,
    /// The states take more memory than was allowed.
    TooMuchMemory,
    /// Whoever watched did not want to go on.
    Interrupted,
}

/// A search that ended.
#[derive(Clone, Debug)]
pub struct Search<B> {
    /// How.
    pub outcome: Outcome<B>,
    /// How far it came.
    pub counts: Counts,
    /// The bits that steps told.
    pub bits: u32,
}

/// Where a piece begins, and how many states each shard had when it was done with.
pub(super) struct Piece {
    pub(super) shard: u32,
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) lengths: [u32; SHARDS],
}

/// What the states of a piece lead to.
struct Successors<B> {
    shard: usize,
    start: usize,
    end: usize,
    /// The states, each with the hash of its shared part, by shard, and in each in the order in
    /// which they were met. Not a list for each shard: most states of a piece lead to its own, so
    /// that every list would become as long as the longest.
    by_shard: Vec<(u64, Key)>,
    /// Where each shard begins in that.
    starts: [u32; SHARDS + 1],
    states: u64,
    bits: u32,
    /// The first state of the piece with something wrong.
    broken: Option<(usize, B)>,
}

impl<B> Successors<B> {
    fn new() -> Successors<B> {
        Successors {
            shard: 0,
            start: 0,
            end: 0,
            by_shard: Vec::new(),
            starts: [0; SHARDS + 1],
            states: 0,
            bits: 0,
            broken: None,
        }
    }

    /// Takes what was met, shard by shard.
    fn take(&mut self, met: &[(u64, Key)]) {
        self.starts = [0; SHARDS + 1];
        for (hash, _) in met {
            self.starts[shard_of(*hash) + 1] += 1;
        }
        for shard in 0..SHARDS {
            self.starts[shard + 1] += self.starts[shard];
        }
        let mut next = self.starts;
        self.by_shard.resize(met.len(), (0, Key::default()));
        for state in met {
            let place = &mut next[shard_of(state.0)];
            self.by_shard[*place as usize] = *state;
            *place += 1;
        }
    }

    /// What was met of a shard.
    fn of_shard(&self, shard: usize) -> &[(u64, Key)] {
        &self.by_shard[self.starts[shard] as usize..self.starts[shard + 1] as usize]
    }
}

/// What a worker has of its own. It changes no result.
struct Worker<M: Machine> {
    memo: M::Memo,
    met: Vec<(u64, Key)>,
}

impl<M: Machine> Worker<M> {
    fn new() -> Worker<M> {
        Worker { memo: M::Memo::default(), met: Vec::new() }
    }
}

/// A search that is under way.
pub(super) struct Running<'m, M: Machine> {
    pub(super) machine: &'m M,
    pub(super) shards: Vec<Shard>,
    pub(super) pieces: Vec<Piece>,
    counts: Counts,
    bits: u32,
}

/// Searches all that can be reached. `watch` is told the counts now and then, and says whether
/// to go on.
///
/// # Panics
///
/// If the machine does, or is no pure function.
pub fn explore<M: Machine>(
    machine: &M,
    limits: &Limits,
    watch: &mut dyn FnMut(&Counts) -> bool,
) -> Search<M::Broken> {
    let shards = (0..SHARDS).map(|_| Shard::default()).collect();
    let mut running =
        Running { machine, shards, pieces: Vec::new(), counts: Counts::default(), bits: 0 };
    let outcome = running.run(limits, watch);
    Search { outcome, counts: running.counts, bits: running.bits }
}

impl<M: Machine> Running<'_, M> {
    fn run(
        &mut self,
        limits: &Limits,
        watch: &mut dyn FnMut(&Counts) -> bool,
    ) -> Outcome<M::Broken> {
        let mut workers: Vec<Worker<M>> =
            (0..limits.workers.max(1)).map(|_| Worker::new()).collect();
        let mut block: Vec<Successors<M::Broken>> = Vec::new();
        let initial = self.machine.pack(&self.machine.initial());
        let initial_hash = hash(&initial.shared);
        self.shards[shard_of(initial_hash)].put(initial_hash, &initial);
        self.counts = Counts { states: 1, unique: 1, depth: 0, bytes: 0 };
        let mut looked_at = [0; SHARDS];
        loop {
            let level: Vec<(usize, usize, usize)> = self.level(&looked_at);
            if level.is_empty() {
                return Outcome::Holds;
            }
            self.counts.depth += 1;
            for (length, shard) in looked_at.iter_mut().zip(&self.shards) {
                *length = shard.len();
            }
            for pieces in level.chunks(BLOCK) {
                self.expand(pieces, &mut block, &mut workers);
                if let Some(found) = self.first_broken(&block[..pieces.len()]) {
                    return Outcome::Found(found);
                }
                self.fill(&mut block[..pieces.len()], &mut workers);
                let full = self.shards.iter().any(|shard| shard.len() > shard::STATES_MAX);
                if full || self.counts.unique > limits.states_max {
                    return Outcome::TooManyStates;
                }
                if self.counts.bytes > limits.bytes_max {
                    return Outcome::TooMuchMemory;
                }
                if !watch(&self.counts) {
                    return Outcome::Interrupted;
                }
            }
        }
    }

    /// The states that were not looked at, in pieces: shard, beginning, end.
    fn level(&self, looked_at: &[usize; SHARDS]) -> Vec<(usize, usize, usize)> {
        let mut level = Vec::new();
        for (shard, states) in self.shards.iter().enumerate() {
            let mut start = looked_at[shard];
            while start < states.len() {
                let end = states.len().min(start + PIECE);
                level.push((shard, start, end));
                start = end;
            }
        }
        level
    }

    /// What a block of pieces leads to.
    fn expand(
        &mut self,
        pieces: &[(usize, usize, usize)],
        block: &mut Vec<Successors<M::Broken>>,
        workers: &mut [Worker<M>],
    ) {
        while block.len() < pieces.len() {
            block.push(Successors::new());
        }
        let block = &mut block[..pieces.len()];
        for (job, (shard, start, end)) in block.iter_mut().zip(pieces) {
            (job.shard, job.start, job.end) = (*shard, *start, *end);
        }
        let (machine, shards) = (self.machine, &self.shards);
        each(workers, block, |worker, job| look(machine, &shards[job.shard], worker, job));
        for job in block.iter() {
            self.counts.states += job.states;
            self.bits |= job.bits;
        }
    }

    fn first_broken(&self, block: &[Successors<M::Broken>]) -> Option<Found<M::Broken>> {
        let job = block.iter().find(|job| job.broken.is_some())?;
        let (at, broken) = job.broken?;
        Some(Found { path: self.path(job.shard, at), broken })
    }

    /// Puts what was found into the shards, in the order of the pieces.
    fn fill(&mut self, block: &mut [Successors<M::Broken>], workers: &mut [Worker<M>]) {
        let mut jobs: Vec<(&mut Shard, Vec<u32>)> =
            self.shards.iter_mut().map(|shard| (shard, Vec::new())).collect();
        let mut numbered: Vec<(usize, &mut (&mut Shard, Vec<u32>))> =
            jobs.iter_mut().enumerate().collect();
        let done = &*block;
        each(workers, &mut numbered, |_, (number, (shard, lengths))| {
            for successors in done {
                for (hash, key) in successors.of_shard(*number) {
                    shard.put(*hash, key);
                }
                // OK because a number of a state has 24 bits.
                lengths.push(shard.len() as u32);
            }
        });
        for (at, successors) in block.iter().enumerate() {
            let lengths = std::array::from_fn(|shard| jobs[shard].1[at]);
            self.pieces.push(Piece {
                shard: successors.shard as u32,
                start: successors.start as u32,
                end: successors.end as u32,
                lengths,
            });
        }
        self.counts.unique = self.shards.iter().map(|shard| shard.len() as u64).sum();
        let states: usize = self.shards.iter().map(Shard::bytes).sum();
        let pieces = self.pieces.capacity() * size_of::<Piece>();
        self.counts.bytes = (states + pieces) as u64;
    }
}

/// Looks at the states of a piece.
fn look<M: Machine>(
    machine: &M,
    shard: &Shard,
    worker: &mut Worker<M>,
    job: &mut Successors<M::Broken>,
) {
    worker.met.clear();
    (job.states, job.bits, job.broken) = (0, 0, None);
    for at in job.start..job.end {
        let key = shard.key(at);
        let state = machine.unpack(&key);
        let mut broken = machine.judge(&key, &state, &mut worker.memo);
        let (met, states, bits) = (&mut worker.met, &mut job.states, &mut job.bits);
        machine.successors(&state, &mut |next| {
            *states += 1;
            *bits |= next.bits;
            broken = broken.or(next.broken);
            let key = machine.pack(next.state);
            met.push((hash(&key.shared), key));
        });
        if let Some(broken) = broken {
            job.broken = Some((at, broken));
            return;
        }
    }
    job.take(&worker.met);
}
