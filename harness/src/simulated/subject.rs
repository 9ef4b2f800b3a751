//! The programs of the lab over a design: owners, commands, sweeps.
//!
//! They do what the users of a product do, and say to the judge what they
//! rely on: an owner on its claim from the moment it has it until it begins to
//! give it up, a command from its fork to its end. Each takes the kernel that
//! the design is to see, which may be one around the world's own.

use mortmain::protocol::{Root, SweepOptions};
use mortmain::sys::{Kernel, Name};
use mortmain::{Prefix, Prober, Remover};
use mortmain_subjects::{Design, System};

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
    /// It waits for its command, and then holds its claim until it is killed.
    Wait,
}

impl Then {
    /// All of them, with a word for each.
    pub const WORDS: [(&'static str, Then); 6] = [
        ("idle", Then::Idle),
        ("exit", Then::Exit),
        ("close", Then::Close),
        ("wait-and-close", Then::WaitAndClose),
        ("end-and-close", Then::EndAndClose),
        ("wait", Then::Wait),
    ];

    /// The word.
    #[must_use]
    pub fn word(self) -> &'static str {
        word_of(&Then::WORDS, self)
    }
}

/// The word of a meaning.
pub(crate) fn word_of<T: Copy + PartialEq>(
    words: &[(&'static str, T)],
    meaning: T,
) -> &'static str {
    words.iter().find(|(_, known)| *known == meaning).map_or("?", |(word, _)| word)
}

/// An owner: makes a directory, starts a command in it, if it has one, and goes on.
/// Its status is 0 unless something of that failed.
pub fn owner<D, K>(world: &WorldKernel, kernel: &K, command: Option<ProgramId>, then: Then) -> i32
where
    D: Design,
    K: System<Program = Command>,
{
    let Ok(mut dir) = D::create(kernel, &World::root_path()) else { return 1 };
    let held = world.hold(&D::path(&dir), &D::files(&dir));
    let started = match command {
        None => None,
        Some(program) => match D::spawn(&mut dir, &mut Command { program, uses: vec![held] }) {
            Ok(started) => Some(started),
            Err(_) => return close::<D, K>(world, dir, held).max(3),
        },
    };
    match (then, started) {
        (Then::Idle, _) => world.idle(),
        (Then::Exit, _) => world.exit(0),
        (Then::WaitAndClose | Then::Wait, Some(started)) => {
            if D::wait(&mut dir, &started).is_err() {
                return 4;
            }
        }
        (Then::EndAndClose, Some(started)) => {
            if D::end(&mut dir, &started).is_err() {
                return 5;
            }
        }
        (Then::Close | Then::WaitAndClose | Then::EndAndClose | Then::Wait, _) => {}
    }
    if then == Then::Wait {
        world.idle();
    }
    close::<D, K>(world, dir, held)
}

/// Gives a directory up.
fn close<D: Design, K: System>(world: &WorldKernel, dir: D::Dir<K>, held: ClaimId) -> i32 {
    world.give_up(held);
    match D::close(dir) {
        Ok(()) => 0,
        Err(_) => 6,
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

impl Manner {
    /// All of them, with a word for each.
    pub const WORDS: [(&'static str, Manner); 5] = [
        ("plain", Manner::Plain),
        ("closes-all", Manner::ClosesAll),
        ("leaves-child", Manner::LeavesChild),
        ("leaves-daemon", Manner::LeavesDaemon),
        ("escapes", Manner::Escapes),
    ];

    /// The word.
    #[must_use]
    pub fn word(self) -> &'static str {
        word_of(&Manner::WORDS, self)
    }
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

/// A sweep of a design. Its status is 0 if it got through.
pub fn sweep<D: Design, K: System>(kernel: &K) -> i32 {
    i32::from(D::sweep(kernel, &World::root_path()).is_err())
}

/// A sweep of the implementation with a prober and a remover of its own, from the opening of the
/// root to its end. Its status is that of the trouble it met: 0 for none.
pub fn sweep_with<K, P, R>(kernel: &K, mut prober: P, mut remover: R) -> i32
where
    K: Kernel,
    P: Prober<K>,
    R: Remover<K>,
{
    let Ok(root) = Root::open(kernel, World::root_path(), prefix()) else { return 1 };
    let report = root.sweep_with(&SweepOptions::default(), &mut prober, &mut remover);
    i32::from(report.trouble.is_some())
}

/// What the claims of every program in the world are called by.
pub(crate) fn prefix() -> Prefix {
    // OK because a letter is a prefix.
    Prefix::new("p").expect("a letter is a prefix")
}
