//! The operations of a series: what each begins with, and what is done under fault.

use std::fmt;
use std::io::{self, Read};

use mortmain::Outcome;
use mortmain::protocol::{Claim, Root, SweepOptions};
use mortmain::sys::{Host, HostChild, HostProgram, Kernel, KernelExt, Name, Wait};

use super::Fault;
use super::stage::{
    Lifeline, STRAY, Stage, ended_command, furnish, kill_owner, kill_self, open_root,
};
use crate::faults::{Armed, ChildFault, FaultyChild, Fired, FromTheFirst, Hook, Tapped};

/// What is killed and failed at each of its calls.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operation {
    /// Opening a root and making a claim.
    Create,
    /// Starting a command, as its owner sees it.
    Spawn,
    /// Starting a command, as the child sees it between fork and exec.
    SpawnChild,
    /// Waiting for a command, which withdraws its entry.
    Wait,
    /// Ending a command that runs.
    End,
    /// Closing a claim whose command has ended.
    Close,
    /// Dropping a claim whose command runs on: it is released.
    Drop,
    /// Sweeping a claim whose owner and command are dead.
    SweepDead,
    /// Sweeping what a creator left that was killed before it published.
    SweepStaging,
    /// Sweeping what a sweep left that was killed.
    SweepTombstone,
    /// Sweeping a claim whose owner is dead and whose command runs.
    SweepInUse,
    /// Adopting a stray that nobody uses.
    Adopt,
}

impl Operation {
    /// All of them, in the order of a claim's life.
    pub const ALL: [Operation; 12] = [
        Operation::Create,
        Operation::Spawn,
        Operation::SpawnChild,
        Operation::Wait,
        Operation::End,
        Operation::Close,
        Operation::Drop,
        Operation::SweepDead,
        Operation::SweepStaging,
        Operation::SweepTombstone,
        Operation::SweepInUse,
        Operation::Adopt,
    ];

    /// Its name on the command line and in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Operation::Create => "create",
            Operation::Spawn => "spawn",
            Operation::SpawnChild => "spawn-child",
            Operation::Wait => "wait",
            Operation::End => "end",
            Operation::Close => "close",
            Operation::Drop => "drop",
            Operation::SweepDead => "sweep-dead",
            Operation::SweepStaging => "sweep-staging",
            Operation::SweepTombstone => "sweep-tombstone",
            Operation::SweepInUse => "sweep-in-use",
            Operation::Adopt => "adopt",
        }
    }

    /// The operation of a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Operation> {
        Operation::ALL.into_iter().find(|operation| operation.name() == name)
    }

    /// Every fault that is tried at its positions.
    pub fn faults(self) -> Vec<Fault> {
        match self {
            Operation::SpawnChild => Fault::all_of_child().collect(),
            _ => Fault::all().collect(),
        }
    }

    /// Sets up what it begins with and what dead processes left.
    pub(super) fn prepare(self, stage: &Stage, lifeline: &Lifeline) -> io::Result<()> {
        match self {
            Operation::SweepDead => stage.dead_claim(None),
            Operation::SweepStaging => stage.staging(),
            Operation::SweepTombstone => stage.tombstone(),
            Operation::SweepInUse => stage.dead_claim(Some(lifeline)),
            Operation::Adopt => stage.stray(),
            _ => Ok(()),
        }
    }

    /// Does it, in the calling process, under a hook that is off until the operation itself begins.
    /// Answers how it went, in the inner result: under a fault it may fail, undisturbed it may not.
    pub(super) fn run<H: Hook>(
        self,
        kernel: &Tapped<Host, Armed<H>>,
        stage: &Stage,
        lifeline: &Lifeline,
    ) -> io::Result<Result<(), String>> {
        match self {
            Operation::Create => {
                kernel.with_hook(Armed::arm);
                // Held until the process dies.
                Ok(answer(open_root(kernel, &stage.root).and_then(|root| root.create())))
            }
            Operation::Spawn | Operation::SpawnChild => {
                let mut claim = self.claim(kernel, stage)?;
                let mut program = lifeline.command()?;
                kernel.with_hook(Armed::arm);
                let spawned = answer(claim.spawn(&mut program));
                hold(claim);
                Ok(spawned)
            }
            Operation::Wait => {
                let mut claim = self.claim(kernel, stage)?;
                let mut program = HostProgram::new("true");
                let started = claim.spawn(&mut program)?;
                kernel.with_hook(Armed::arm);
                let waited = answer(claim.wait(&started, Wait::Forever));
                hold(claim);
                Ok(waited)
            }
            Operation::End => {
                let mut claim = self.claim(kernel, stage)?;
                let started = claim.spawn(&mut lifeline.command()?)?;
                kernel.with_hook(Armed::arm);
                let ended = answer(claim.end(&started));
                hold(claim);
                Ok(ended)
            }
            Operation::Close => {
                let mut claim = self.claim(kernel, stage)?;
                ended_command(&mut claim)?;
                kernel.with_hook(Armed::arm);
                Ok(answer(claim.close()))
            }
            Operation::Drop => {
                let mut claim = self.claim(kernel, stage)?;
                claim.spawn(&mut lifeline.command()?)?;
                kernel.with_hook(Armed::arm);
                drop(claim);
                // A drop says nothing.
                Ok(Ok(()))
            }
            Operation::SweepDead
            | Operation::SweepStaging
            | Operation::SweepTombstone
            | Operation::SweepInUse => {
                kernel.with_hook(Armed::arm);
                let kernel = FromTheFirst::new(kernel.clone());
                let root: Result<Root<_>, _> = open_root(&kernel, &stage.root);
                Ok(root.map_err(|error| error.to_string()).and_then(|root| {
                    let report = root.sweep(&SweepOptions::default());
                    let trouble = report.trouble.map(|trouble| format!("{} failed", trouble.what));
                    hold((root, report));
                    trouble.map_or(Ok(()), Err)
                }))
            }
            Operation::Adopt => {
                kernel.with_hook(Armed::arm);
                Ok(adopt(kernel, stage))
            }
        }
    }

    /// Does the spawn with a fault at a step of the child's part; answers whether it happened.
    pub(super) fn run_in_child(
        self,
        n: u64,
        fault: Fault,
        stage: &Stage,
        lifeline: &Lifeline,
    ) -> io::Result<Fired> {
        let fault = fault.in_child().ok_or_else(|| io::Error::other("no fault of a child"))?;
        let mut claim = open_root(&Host, &stage.root)?.create()?;
        furnish(&claim, &stage.outside)?;
        let (mut heard, told) = io::pipe()?;
        let child = FaultyChild::new(HostChild, n, fault, [kill_self, kill_owner], told);
        let mut program = lifeline.attach(HostProgram::with_child("cat", child))?;
        let spawned = claim.spawn(&mut program);
        hold(claim);
        drop(program);
        // The child's copy is closed when it becomes its program, and when it dies.
        let mut said = Vec::new();
        heard.read_to_end(&mut said)?;
        if said.is_empty() {
            return Ok(Fired::No);
        }
        if let (ChildFault::Kill(_), Ok(started)) = (fault, spawned) {
            // A process that dies closes its descriptors first; to whoever looks at it then it lives.
            Host.await_end(started.pid, Wait::Forever)?;
        }
        Ok(Fired::Yes)
    }

    fn claim<H: Hook>(
        self,
        kernel: &Tapped<Host, Armed<H>>,
        stage: &Stage,
    ) -> io::Result<Claim<Tapped<Host, Armed<H>>>> {
        let claim = open_root(kernel, &stage.root)?.create()?;
        furnish(&claim, &stage.outside)?;
        Ok(claim)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Adopts the stray of a stage; it has to go.
pub(super) fn adopt<K: Kernel>(kernel: &K, stage: &Stage) -> Result<(), String> {
    let root = open_root(kernel, &stage.root).map_err(|error| error.to_string())?;
    // OK because it is a plain word.
    let name = Name::new(STRAY.as_bytes()).expect("it is one component");
    let strays = root.adopt(&name).map_err(|error| error.to_string())?;
    let stays = strays.entries.iter().find(|one| !matches!(one.outcome, Outcome::Removed(_)));
    let stays = stays.map(ToString::to_string);
    hold((root, strays));
    stays.map_or(Ok(()), Err)
}

/// How something went, its value kept to the end of the process.
fn answer<T, E: fmt::Display>(went: Result<T, E>) -> Result<(), String> {
    went.map(hold).map_err(|error| error.to_string())
}

/// Keeps a value to the end of the process, which is a kill: no destructor of it ever runs.
#[expect(clippy::mem_forget, reason = "a process that is killed drops nothing")]
fn hold<T>(value: T) {
    std::mem::forget(value);
}
