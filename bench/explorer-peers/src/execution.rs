//! One run of threads as processes of a world of its own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use mortmain::sys::{Answer, Call, ChildPlan, Errno, Kernel, PathBytes, Pid, Reply};
use mortmain_harness::world::ids::ProgramId;
use mortmain_harness::world::request::{Command, Request, Response};
use mortmain_harness::world::{Effect, Fingerprint, Rules, World};
use mortmain_subjects::{Beyond, System};

use crate::work::Work;

/// Where an explorer may go on with another thread.
pub trait Point: Send + Sync + 'static {
    /// Is passed before every call.
    fn pass(&self);
}

/// No explorer: threads run one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Point for Nobody {
    fn pass(&self) {}
}

/// A run that goes on. Clones are the same run.
#[derive(Clone)]
pub struct Execution {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Execution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Execution").field("calls", &self.shared.calls).finish_non_exhaustive()
    }
}

struct Shared {
    point: Box<dyn Point>,
    kill: Option<Kill>,
    /// Nobody waits for it: an explorer runs one thread at a time, and stops none between two points.
    world: Mutex<World>,
    calls: AtomicU64,
    harmed: AtomicBool,
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no thread panics in the world")
    }
}

/// Whom a SIGKILL hits, and before which call, counted from 0 over both.
#[derive(Clone, Copy, Debug)]
pub struct Kill {
    /// The call.
    pub before: u64,
    /// The process.
    pub whom: Pid,
}

/// What came of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// Calls of both, each of which was a point.
    pub calls: u64,
    /// Whether a directory in use was missed at any moment.
    pub harmed: bool,
    /// What the last sweep left.
    pub left: Vec<PathBytes>,
    /// The world in which both were over.
    pub world: Fingerprint,
}

/// A process, for the thread that is it.
#[derive(Clone)]
pub struct Process {
    pid: Pid,
    shared: Arc<Shared>,
    /// Whether it makes no call any more.
    over: Arc<AtomicBool>,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl Execution {
    /// The owner's number.
    pub const OWNER: Pid = Pid(10);
    /// That of the sweep beside it.
    pub const SWEEP: Pid = Pid(20);
    /// That of the sweep after everything.
    const LAST: Pid = Pid(30);

    /// A world with both in it, neither of which has made a call; one may be killed.
    #[must_use]
    pub fn begin(point: impl Point, kill: Option<Kill>) -> Execution {
        let mut world = World::new(Rules::default());
        for (pid, index, name) in [(Execution::OWNER, 0, "owner"), (Execution::SWEEP, 1, "sweep")] {
            world.start(pid, ProgramId { index, name });
        }
        let shared = Shared {
            point: Box::new(point),
            kill,
            world: Mutex::new(world),
            calls: AtomicU64::new(0),
            harmed: AtomicBool::new(false),
        };
        Execution { shared: Arc::new(shared) }
    }

    /// One of the processes.
    #[must_use]
    pub fn process(&self, pid: Pid) -> Process {
        Process { pid, shared: Arc::clone(&self.shared), over: Arc::default() }
    }

    /// Runs both, one after the other, and ends it.
    #[must_use]
    pub fn undisturbed(&self, work: &Work) -> End {
        work.own(&self.process(Execution::OWNER));
        work.sweep(&self.process(Execution::SWEEP));
        self.end(work)
    }

    /// Ends it when both are over: kills who lives, and runs the last sweep, whose calls are points as
    /// well.
    #[must_use]
    pub fn end(&self, work: &Work) -> End {
        let calls = self.shared.calls.load(Ordering::Relaxed);
        let mut world = self.shared.world();
        let before = world.fingerprint();
        for pid in [Execution::OWNER, Execution::SWEEP] {
            if world.lives(pid) {
                world.kill(pid);
            }
        }
        world.start(Execution::LAST, ProgramId { index: 1, name: "sweep" });
        drop(world);
        work.sweep(&self.process(Execution::LAST));
        let left = self.shared.world().tree();
        let harmed = self.shared.harmed.load(Ordering::Relaxed);
        End { calls, harmed, left, world: before }
    }
}

impl Process {
    /// Makes one call, if it lives and goes on.
    fn ask(&self, request: &Request) -> Option<Response> {
        if self.over.load(Ordering::Relaxed) {
            return None;
        }
        self.shared.point.pass();
        let mut world = self.shared.world();
        let nth = self.shared.calls.load(Ordering::Relaxed);
        let kill = self.shared.kill.filter(|kill| kill.before == nth && world.lives(kill.whom));
        if let Some(Kill { whom, .. }) = kill {
            world.kill(whom);
        }
        // What the thread of the dead still does is not done.
        if !world.lives(self.pid) {
            self.over.store(true, Ordering::Relaxed);
            return None;
        }
        self.shared.calls.store(nth + 1, Ordering::Relaxed);
        let effect = world.exec(self.pid, request);
        if world.harm().is_some() {
            self.shared.harmed.store(true, Ordering::Relaxed);
        }
        match effect {
            Effect::Answer(response) => Some(response),
            _ => None,
        }
    }

    /// Tells the judge that it relies on a directory.
    pub fn hold(&self, claim: &PathBytes, files: &PathBytes) {
        self.ask(&Request::Hold { claim: claim.clone(), files: files.clone() });
    }

    /// Lives on, and makes no call any more.
    pub fn idle(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Ends.
    pub fn exit(&self, status: i32) {
        self.ask(&Request::Exit { status });
        self.over.store(true, Ordering::Relaxed);
    }

    fn reply(&self, request: &Request) -> Answer<Reply> {
        match self.ask(request) {
            Some(Response::Reply(answer)) => answer,
            // The dead are not answered.
            _ => Err(Errno::EIO),
        }
    }
}

impl Kernel for Process {
    type Program = Command;

    fn call(&self, call: Call) -> Answer<Reply> {
        self.reply(&Request::Call(call))
    }

    /// The work has no commands: a second thread would have to become a third one here.
    fn spawn(&self, _: &mut Command, _: &ChildPlan) -> Answer<Pid> {
        Err(Errno::EAGAIN)
    }
}

impl System for Process {
    fn beyond(&self, call: Beyond) -> Answer<Reply> {
        self.reply(&Request::Beyond(call))
    }
}
