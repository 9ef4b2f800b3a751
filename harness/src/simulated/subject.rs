//! The programs of the lab over the implementation: owners, commands, sweeps.
//!
//! They do what the users of the library do, and say to the judge what they
//! rely on: an owner on its claim from the moment it has it until it begins to
//! give it up, a command from its fork to its end. Each takes the kernel that
//! the implementation is to see, which may be one around the world's own.

use mortmain::protocol::{Claim, Root, SweepOptions};
use mortmain::sys::{Kernel, Name, Wait};
use mortmain::{Prefix, Prober, Remover};

use super::kernel::WorldKernel;
use crate::world::World;
use crate::world::ids::{ClaimId, ProgramId};
use crate::world::request::Command;

/// How an owner goes on after it has started its command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Then {
    /// It holds its claim until it is killed.
    Idle,
    /// It ends without giving its claim up, as a program that calls `exit`.
    Exit,
    /// It closes its claim at once, and releases it if it may not be removed.
    Close,
    /// It waits for its command and then closes.
    WaitAndClose,
    /// It ends its command and then closes.
    EndAndClose,
}

fn root<K: Kernel>(kernel: &K) -> Result<Root<K>, mortmain::Error> {
    let prefix = Prefix::new("p").expect("a letter is a prefix");
    Root::open(kernel, World::root_path(), prefix)
}

/// An owner: makes a claim, starts a command in it, if it has one, and goes on.
/// Its status is 0 unless something of that failed.
pub fn owner<K>(world: &WorldKernel, kernel: &K, command: Option<ProgramId>, then: Then) -> i32
where
    K: Kernel<Program = Command>,
{
    let Ok(root) = root(kernel) else { return 1 };
    let Ok(mut claim) = root.create() else { return 2 };
    let held = world.hold(&claim.path());
    let started = match command {
        None => None,
        Some(program) => match claim.spawn(&mut Command { program, uses: vec![held] }) {
            Ok(started) => Some(started),
            Err(_) => return close(world, claim, held).max(3),
        },
    };
    match (then, started) {
        (Then::Idle, _) => world.idle(),
        (Then::Exit, _) => world.exit(0),
        (Then::WaitAndClose, Some(started)) => {
            if claim.wait(&started, Wait::Forever).is_err() {
                return 4;
            }
        }
        (Then::EndAndClose, Some(started)) => {
            if claim.end(&started).is_err() {
                return 5;
            }
        }
        (Then::Close | Then::WaitAndClose | Then::EndAndClose, _) => {}
    }
    close(world, claim, held)
}

/// Closes a claim, or lets its destructor release it when it is still in use.
fn close<K: Kernel>(world: &WorldKernel, claim: Claim<K>, held: ClaimId) -> i32 {
    world.give_up(held);
    match claim.close() {
        Ok(_) => 0,
        Err(refused) => {
            drop(refused);
            6
        }
    }
}

/// What a command is like.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Manner {
    /// It keeps what it inherited until it ends.
    Plain,
    /// It closes every descriptor first, as careful programs do.
    ClosesAll,
    /// It closes every descriptor, leaves a child in its group, and ends.
    LeavesChild,
    /// It leaves a child in a group of its own, with all descriptors, and ends.
    LeavesDaemon,
    /// It closes every descriptor, leaves a child in a group of its own, and
    /// ends: a daemon by the book.
    Escapes,
}

/// A command: writes a file into its claim, itself or by the child that it
/// leaves, and ends.
#[must_use]
pub fn command(world: &WorldKernel, manner: Manner) -> i32 {
    if matches!(manner, Manner::ClosesAll | Manner::LeavesChild | Manner::Escapes) {
        world.close_all();
    }
    if matches!(manner, Manner::LeavesChild | Manner::LeavesDaemon | Manner::Escapes) {
        match world.fork() {
            Ok(None) => {}
            Ok(Some(_)) => return 0,
            Err(_) => return 1,
        }
    }
    if matches!(manner, Manner::LeavesDaemon | Manner::Escapes) {
        world.leave_group();
    }
    match world.touch(&Name::fixed("work")) {
        Ok(()) => 0,
        Err(_) => 2,
    }
}

/// A sweep, from the opening of the root to its end. Its status is that of the
/// trouble it met: 0 for none.
pub fn sweep<K, P, R>(kernel: &K, mut prober: P, mut remover: R) -> i32
where
    K: Kernel,
    P: Prober<K>,
    R: Remover<K>,
{
    let Ok(root) = root(kernel) else { return 1 };
    let report = root.sweep_with(&SweepOptions::default(), &mut prober, &mut remover);
    i32::from(report.trouble.is_some())
}
