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

/// What an owner has beside its directory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Beside {
    /// A command, which it starts in it.
    Command,
    /// Nothing.
    Nothing,
    /// A copy of itself, which it forked when it had the directory.
    Copy,
    /// Such a copy, which makes a directory of its own in the first one.
    Nested,
}

impl Beside {
    /// All of them, with a word for each.
    pub const WORDS: [(&'static str, Beside); 4] = [
        ("command", Beside::Command),
        ("nothing", Beside::Nothing),
        ("copy", Beside::Copy),
        ("nested", Beside::Nested),
    ];

    /// The word.
    #[must_use]
    pub fn word(self) -> &'static str {
        word_of(&Beside::WORDS, self)
    }
}

/// What an owner has beside its directory, as a program needs to know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Company {
    /// A command, which runs this program.
    Command(ProgramId),
    /// Nothing.
    Nothing,
    /// A copy of itself.
    Copy {
        /// Whether it makes a directory of its own in the first one.
        nests: bool,
    },
}

/// An owner: makes a directory, has something beside it, and goes on. Its status is 0 unless something
/// of that failed.
pub fn owner<D, K>(world: &WorldKernel, kernel: &K, company: Company, then: Then) -> i32
where
    D: Design,
    K: System<Program = Command>,
{
    let Ok(mut dir) = D::create(kernel, &World::root_path()) else { return 1 };
    let held = world.hold(&D::path(&dir), &D::files(&dir));
    let mut started = None;
    match company {
        Company::Command(program) => {
            match D::spawn(&mut dir, &mut Command { program, uses: vec![held] }) {
                Ok(command) => started = Some(command),
                Err(_) => return close::<D, K>(world, dir, held).max(3),
            }
        }
        Company::Nothing => {}
        Company::Copy { nests } => match world.fork() {
            Ok(None) if nests => return nested::<D, K>(world, kernel, dir, held, then),
            Ok(None) => return go_on::<D, K>(world, then, dir, held),
            Ok(Some(_)) => {}
            Err(_) => return close::<D, K>(world, dir, held).max(3),
        },
    }
    let waited = match (then, started) {
        (Then::WaitAndClose | Then::Wait, Some(started)) => {
            D::wait(&mut dir, &started).map_err(|_error| 4)
        }
        (Then::EndAndClose, Some(started)) => D::end(&mut dir, &started).map_err(|_error| 5),
        _ => Ok(()),
    };
    if let Err(status) = waited {
        return status;
    }
    go_on::<D, K>(world, then, dir, held)
}

/// The copy of an owner that makes a directory in its owner's: goes on with its own, and then with that
/// of its owner, as that does. What it gives up is its own word, and no more than that.
fn nested<D: Design, K: System>(
    world: &WorldKernel,
    kernel: &K,
    dir: D::Dir<K>,
    held: ClaimId,
    then: Then,
) -> i32 {
    let Ok(own) = D::create(kernel, &D::files(&dir)) else {
        return close::<D, K>(world, dir, held).max(7);
    };
    let own_held = world.hold(&D::path(&own), &D::files(&own));
    match go_on::<D, K>(world, then, own, own_held) {
        0 => go_on::<D, K>(world, then, dir, held),
        status => close::<D, K>(world, dir, held).max(status),
    }
}

/// How an owner goes on that waits for nobody any more.
fn go_on<D: Design, K: System>(
    world: &WorldKernel,
    then: Then,
    dir: D::Dir<K>,
    held: ClaimId,
) -> i32 {
    match then {
        Then::Idle | Then::Wait => world.idle(),
        Then::Exit => world.exit(0),
        Then::Close | Then::WaitAndClose | Then::EndAndClose => close::<D, K>(world, dir, held),
    }
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
