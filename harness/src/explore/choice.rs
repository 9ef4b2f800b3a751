//! What can happen next, how it is written, and what may befall which call.

use std::fmt;

use mortmain::sys::{Call, Errno, Pid};
use mortmain_subjects::Beyond;

#[cfg(doc)]
use super::{Setup, WAIT_SECONDS};
use crate::world::Trick;
use crate::world::request::{ChildCall, Request};

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Choice {
    /// This process makes its step.
    Step(Pid),
    /// This process makes its step, and it fails.
    Fail {
        /// The process.
        pid: Pid,
        /// How it fails.
        errno: Errno,
        /// Whether what was asked for is done all the same.
        done: bool,
    },
    /// This process is killed.
    Kill(Pid),
    /// This process is killed, and at the same moment everybody whom it has started, and whom they have.
    KillTree(Pid),
    /// The adversary changes what a name stands for that this process is about to use.
    Trick {
        /// The process.
        pid: Pid,
        /// Which of the names of its next call.
        aim: Aim,
        /// What he does.
        trick: Trick,
    },
    /// Time passes, [`WAIT_SECONDS`] of it, and nothing else happens.
    Wait,
    /// A process begins that has to do with nobody here, and gets the number of one that is gone.
    Stranger(Pid),
    /// This process reads a directory, which has its names in another order.
    Order {
        /// The process.
        pid: Pid,
        /// Which: turned by so many names; from their number on, from the last to the first as well.
        order: u32,
    },
    /// Everybody but the strangers is killed at once, and one sweep runs undisturbed to its end, after as
    /// much time as the design asks for ([`Setup::rest_seconds`]), and after a restart of the machine if
    /// there is one ([`Setup::reboots`]).
    Recover,
}

/// Which of the names of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Aim {
    /// The one that it is about; of a listing, one that a claim could have.
    Name,
    /// The new one of a rename.
    NewName,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Step(pid) => write!(f, "step {}", pid.0),
            Choice::Fail { pid, errno, done } => {
                write!(f, "fail {} {}", pid.0, errno.symbol().unwrap_or("?"))?;
                f.write_str(if *done { " done" } else { "" })
            }
            Choice::Kill(pid) => write!(f, "kill {}", pid.0),
            Choice::KillTree(pid) => write!(f, "kill-tree {}", pid.0),
            Choice::Stranger(pid) => write!(f, "stranger {}", pid.0),
            Choice::Order { pid, order } => write!(f, "order {} {order}", pid.0),
            Choice::Trick { pid, aim, trick } => {
                write!(f, "trick {} {}", pid.0, trick.word())?;
                f.write_str(if *aim == Aim::NewName { " new" } else { "" })
            }
            Choice::Wait => f.write_str("wait"),
            Choice::Recover => f.write_str("recover"),
        }
    }
}

impl Choice {
    /// The choice that a text says, as it is written.
    pub(super) fn parse(text: &str) -> Option<Choice> {
        let mut words = text.split(' ');
        let verb = words.next()?;
        let mut pid = || Some(Pid(words.next()?.parse().ok()?));
        let choice = match verb {
            "step" => Choice::Step(pid()?),
            "kill" => Choice::Kill(pid()?),
            "kill-tree" => Choice::KillTree(pid()?),
            "stranger" => Choice::Stranger(pid()?),
            "order" => Choice::Order { pid: pid()?, order: words.next()?.parse().ok()? },
            "trick" => {
                let pid = pid()?;
                let word = words.next()?;
                let (_, trick) = *Trick::WORDS.iter().find(|(known, _)| *known == word)?;
                let aim = match words.next() {
                    None => Aim::Name,
                    Some("new") => Aim::NewName,
                    Some(_) => return None,
                };
                Choice::Trick { pid, aim, trick }
            }
            "wait" => Choice::Wait,
            "recover" => Choice::Recover,
            "fail" => {
                let pid = pid()?;
                let errno = errno_of(words.next()?)?;
                let done = match words.next() {
                    None => false,
                    Some("done") => true,
                    Some(_) => return None,
                };
                Choice::Fail { pid, errno, done }
            }
            _ => return None,
        };
        words.next().is_none().then_some(choice)
    }
}

/// The error of a symbol.
fn errno_of(symbol: &str) -> Option<Errno> {
    const HIGHEST: i32 = 200;
    (1..=HIGHEST).map(Errno).find(|errno| errno.symbol() == Some(symbol))
}

/// In how many other orders so many names are read than in their own: turned by some, and turned and
/// from the last to the first. Of three names or fewer these are all that there are.
pub(super) fn other_orders(names: usize) -> u32 {
    // OK because a directory has fewer names than that.
    let names = u32::try_from(names).unwrap_or(u32::MAX / 2);
    if names < 3 { names.saturating_sub(1) } else { 2 * names - 1 }
}

/// Things in one of their orders: turned by so many; from their number on, from the last to the first as
/// well.
pub(super) fn arranged<T>(mut things: Vec<T>, order: u32) -> Vec<T> {
    let (count, order) = (things.len(), order as usize);
    if count > 0 {
        things.rotate_left(order % count);
    }
    if order >= count {
        things.reverse();
    }
    things
}

/// Whether a request may fail for a reason that is not its own. A close may not: it is done whatever
/// it says, and nobody looks; a spawn would fail before its fork, when nothing has happened yet.
pub(super) fn can_fail(request: &Request) -> bool {
    match request {
        Request::Call(call) => !matches!(
            call,
            Call::Close { .. } | Call::Random | Call::Pause { .. } | Call::Wait { .. }
        ),
        Request::Beyond(call) => *call != Beyond::Now,
        Request::Child(_) => true,
        _ => false,
    }
}

/// Whether it may be done and say that it failed: what changes something.
pub(super) fn can_fail_done(request: &Request) -> bool {
    match request {
        Request::Call(call) => matches!(
            call,
            Call::Mkdir { .. }
                | Call::CreateFile { .. }
                | Call::Symlink { .. }
                | Call::Rename { .. }
                | Call::Unlink { .. }
                | Call::Rmdir { .. }
                | Call::Chmod { .. }
                | Call::Write { .. }
                | Call::KillGroup { .. }
        ),
        Request::Child(ChildCall::Symlink { .. } | ChildCall::NewGroup) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_choice_is_read_again() {
        for choice in [
            Choice::Step(Pid(10)),
            Choice::Kill(Pid(101)),
            Choice::KillTree(Pid(10)),
            Choice::Stranger(Pid(101)),
            Choice::Order { pid: Pid(20), order: 3 },
            Choice::Wait,
            Choice::Trick { pid: Pid(20), aim: Aim::Name, trick: Trick::Fifo },
            Choice::Trick { pid: Pid(20), aim: Aim::NewName, trick: Trick::Link },
            Choice::Recover,
            Choice::Fail { pid: Pid(20), errno: Errno::EIO, done: false },
            Choice::Fail { pid: Pid(20), errno: Errno::ENOSPC, done: true },
        ] {
            assert_eq!(Choice::parse(&choice.to_string()), Some(choice));
        }
        for text in [
            "",
            "step",
            "step x",
            "step 1 2",
            "fail 1",
            "fail 1 EWHAT",
            "fail 1 EIO x",
            "trick 1",
            "trick 1 dove",
            "order 1",
            "stranger",
        ] {
            assert_eq!(Choice::parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_order_is_another_one_and_of_three_they_are_all() {
        for (names, orders) in [(0, 1), (1, 1), (2, 2), (3, 6), (4, 8), (5, 10)] {
            let all = (0..=other_orders(names)).map(|order| arranged((0..names).collect(), order));
            let all: BTreeSet<Vec<usize>> = all.collect();
            assert_eq!(all.len(), orders, "{names}");
        }
        assert_eq!(arranged(vec!["a", "b", "c"], 0), ["a", "b", "c"]);
    }
}
