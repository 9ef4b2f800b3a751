//! The work under the explorers of others.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use mortmain_harness::world::Fingerprint;
use shuttle::rand::Rng as _;
use shuttle::scheduler::{DfsScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, Runner};

use crate::execution::{End, Execution, Kill, Nobody, Point};
use crate::work::Work;

/// What a thread has for its stack, in bytes; in loom's count, of words.
const STACK: usize = 0x4_0000;
/// Points of one run under loom at most.
const BRANCHES_MAX: usize = 100_000;

/// What was seen.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Seen {
    /// Runs.
    pub executions: u64,
    /// Calls in them, each of which was a point.
    pub calls: u64,
    /// Runs in which a directory in use was missed, or after which something was left.
    pub bad: u64,
    /// The worlds in which both were over.
    pub ends: BTreeSet<Fingerprint>,
}

impl Seen {
    fn note(&mut self, end: End) {
        self.executions += 1;
        self.calls += end.calls;
        self.bad += u64::from(end.harmed || !end.left.is_empty());
        self.ends.insert(end.world);
    }
}

/// What runs have to note it in.
type Notes = Arc<Mutex<Seen>>;

fn note(notes: &Notes, end: End) {
    notes.lock().unwrap_or_else(PoisonError::into_inner).note(end);
}

fn noted(notes: &Notes) -> Seen {
    notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// A point of shuttle's: any use of what threads share is one.
struct ShuttlePoint(shuttle::sync::atomic::AtomicUsize);

impl Point for ShuttlePoint {
    fn pass(&self) {
        self.0.load(shuttle::sync::atomic::Ordering::SeqCst);
    }
}

/// Draws so many runs under shuttle. With `kills`, three of four have a kill, before any of the calls of
/// an undisturbed run.
#[must_use]
pub fn shuttle_drawn(work: &Work, kills: bool, seed: u64, runs: usize) -> Seen {
    let length = Execution::begin(Nobody, None).undisturbed(work).calls;
    let scheduler = RandomScheduler::new_from_seed(seed, runs);
    under_shuttle(scheduler, *work, move || {
        let mut rng = shuttle::rand::thread_rng();
        let whom = if rng.gen_bool(0.5) { Execution::OWNER } else { Execution::SWEEP };
        let kill = Kill { before: rng.gen_range(0..length), whom };
        (kills && rng.gen_bool(0.75)).then_some(kill)
    })
}

/// Goes through all orders under shuttle, or through so many.
#[must_use]
pub fn shuttle_all(work: &Work, runs_max: Option<usize>) -> Seen {
    under_shuttle(DfsScheduler::new(runs_max, false), *work, || None)
}

fn under_shuttle(
    scheduler: impl Scheduler + 'static,
    work: Work,
    kill: impl Fn() -> Option<Kill> + Send + Sync + 'static,
) -> Seen {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.failure_persistence = FailurePersistence::None;
    let notes = Notes::default();
    let noting = Arc::clone(&notes);
    Runner::new(scheduler, config).run(move || {
        let point = ShuttlePoint(shuttle::sync::atomic::AtomicUsize::new(0));
        let execution = Execution::begin(point, kill());
        let sweep = execution.process(Execution::SWEEP);
        let sweep = shuttle::thread::spawn(move || work.sweep(&sweep));
        // On the first thread: a third one would have more orders.
        work.own(&execution.process(Execution::OWNER));
        sweep.join().expect("no thread panics");
        note(&noting, execution.end(&work));
    });
    noted(&notes)
}

/// A point of loom's.
struct LoomPoint(loom::sync::atomic::AtomicUsize);

impl Point for LoomPoint {
    fn pass(&self) {
        self.0.fetch_add(1, loom::sync::atomic::Ordering::SeqCst);
    }
}

/// Goes through all orders under loom, or through so many.
#[must_use]
pub fn loom_all(work: &Work, runs_max: Option<usize>) -> Seen {
    let work = *work;
    let notes = Notes::default();
    let noting = Arc::clone(&notes);
    let mut builder = loom::model::Builder::new();
    builder.max_branches = BRANCHES_MAX;
    // It ends before the run of this number, and looks at the bound only so often; a file, which it would
    // write then, is not asked for.
    let end = runs_max.map(|max| max.saturating_add(1));
    builder.max_permutations = end;
    builder.checkpoint_interval = end.unwrap_or(builder.checkpoint_interval);
    builder.check(move || {
        let point = LoomPoint(loom::sync::atomic::AtomicUsize::new(0));
        let execution = Execution::begin(point, None);
        let thread = |part: fn(&Work, &Execution)| {
            let execution = execution.clone();
            let builder = loom::thread::Builder::new().stack_size(STACK);
            builder.spawn(move || part(&work, &execution)).expect("a thread starts")
        };
        // The first thread's stack is too small for either.
        let threads = [
            thread(|work, execution| work.own(&execution.process(Execution::OWNER))),
            thread(|work, execution| work.sweep(&execution.process(Execution::SWEEP))),
        ];
        for thread in threads {
            thread.join().expect("no thread panics");
        }
        note(&noting, execution.end(&work));
    });
    noted(&notes)
}
