//! What is run: programs over a design, once for our explorers and once for threads.

use mortmain_harness::explore::{Budget, Setup};
use mortmain_harness::simulated::Programs;
use mortmain_harness::simulated::subject::{self, Company, Then};
use mortmain_harness::world::World;
use mortmain_subjects::{Design, LockFile, Mortmain, OwnerPid};

use crate::execution::Process;

/// An owner and a sweep of one design.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// What it is called.
    pub name: &'static str,
    setup: fn(u32) -> Setup,
    owner: fn(&Process),
    sweep: fn(&Process),
}

impl Work {
    /// Few calls: a directory by the owner's pid.
    pub const SMALL: Work = Work::of::<OwnerPid>("pid");
    /// A design with a race: a directory that is made and then locked, by a lock file in it.
    pub const RACY: Work = Work::of::<LockFile>("lock-file");
    /// The implementation.
    pub const REAL: Work = Work::of::<Mortmain>("mortmain");

    const fn of<D: Design>(name: &'static str) -> Work {
        Work { name, setup: setup::<D>, owner: owner::<D>, sweep: sweep::<D> }
    }

    /// The same for our explorers, with at most so many kills.
    #[must_use]
    pub fn setup(&self, kills: u32) -> Setup {
        (self.setup)(kills)
    }

    /// Is the owner, as a thread.
    pub fn own(&self, process: &Process) {
        (self.owner)(process);
    }

    /// Is a sweep, as a thread.
    pub fn sweep(&self, process: &Process) {
        (self.sweep)(process);
    }
}

fn setup<D: Design>(kills: u32) -> Setup {
    let mut programs = Programs::default();
    let owner = programs
        .add("owner", |world| subject::owner::<D, _>(world, world, Company::Nothing, Then::Idle));
    let sweep = programs.add("sweep", subject::sweep::<D, _>);
    // Every call is a point for the others, so it is one here.
    let budget = Budget { kills, ..Budget::default() };
    Setup { budget, ..Setup::undisturbed(programs, vec![owner, sweep], sweep) }
}

fn owner<D: Design>(process: &Process) {
    match D::create(process, &World::root_path()) {
        Err(_) => process.exit(1),
        Ok(dir) => {
            process.hold(&D::path(&dir), &D::files(&dir));
            // It lives on and makes no call any more, not even that of a destructor.
            process.idle();
            drop(dir);
        }
    }
}

fn sweep<D: Design>(process: &Process) {
    process.exit(subject::sweep::<D, _>(process));
}
