//! What is true, and what a run must never do: the properties, judged from the state.
//!
//! No answer of a probe counts here. Who uses a claim is read off the processes that live.

use std::fmt;

use crate::act::Actor;
use crate::rules::Rule;
use crate::setting::{Content, Setting};
use crate::state::{COMMANDS, Child, Forked, Life, Name, OWNERS, State, Task};

/// The properties, by their names in the protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Property {
    /// In use: nothing is removed that somebody may still use.
    S1,
    /// Outside: nothing outside the claim is touched.
    S2,
    /// Unknown: what cannot be understood is kept.
    S3,
    /// Reclaim: in the end an undisturbed sweep leaves nothing.
    L1,
    /// Bounded: nobody waits, and a sweep goes on past what it cannot remove.
    L2,
    /// Told: what is kept is told with its reason.
    L3,
}

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// A step of a removal, while this one may still use the claim.
    InUse(Actor),
    /// A step of a removal, while somebody uses a claim that lies inside.
    NestedInUse,
    /// A step that reaches what is not the claim's.
    Outside,
    /// A claim that must be kept is not whole any more.
    MustBeKept,
    /// The directory stays although nobody uses it.
    Stays(usize),
    /// A close is refused although nobody uses the claim.
    CloseRefused,
    /// A sweep waits.
    Waits,
    /// A sweep has kept this directory, and did not tell.
    NotTold(usize),
    /// A sweep ends before it has come to this directory.
    NotReached(usize),
}

/// A property that does not hold, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Which.
    pub property: Property,
    /// Why.
    pub why: Why,
}

impl Broken {
    pub(crate) fn new(property: Property, why: Why) -> Broken {
        Broken { property, why }
    }
}

/// A known escape of the protocol: S1 does not hold, and the protocol says so.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Escape {
    /// A process outside its group that closed every descriptor, and leaves no evidence.
    Unseen,
    /// An owner without its lease's descriptor, or what it started since, seen from another pid
    /// namespace.
    OwnerElsewhere,
    /// A daemon whose entry was withdrawn, seen from another pid namespace.
    DaemonElsewhere,
}

impl Escape {
    /// All of them.
    pub const ALL: &[Escape] = &[Escape::Unseen, Escape::OwnerElsewhere, Escape::DaemonElsewhere];

    /// As a bit of a set.
    pub fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// What a step of a removal does to who uses the claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Harm {
    /// Nobody uses it.
    None,
    /// Only those use it who are known to escape.
    Escape(Escape),
    /// This one uses it.
    To(Actor),
}

impl Harm {
    /// The worse of the two; of two alike the first.
    fn or(self, other: Harm) -> Harm {
        match (self, other) {
            (Harm::To(_), _) | (_, Harm::None) | (Harm::Escape(_), Harm::Escape(_)) => self,
            _ => other,
        }
    }
}

impl State {
    /// Whether the owner has a claim that it has not begun to give up.
    pub(crate) fn owner_uses(&self, setting: &Setting, owner: usize) -> bool {
        let it = self.owners[owner];
        let holds = (Task::Hold..=Task::WithdrawSecond).contains(&it.task());
        // Without c1 it has a published claim that it has not locked yet.
        let early = !setting.rules.has(Rule::C1Lock)
            && matches!(it.task(), Task::Lock | Task::Compare)
            && self.dirs[it.dir().get()].name() == Name::Published;
        it.life() == Life::Alive && (holds || early)
    }

    /// What a step of a removal does to the users of a directory. `foreign` says whether it is
    /// done from another pid namespace.
    pub(crate) fn harm(&self, setting: &Setting, dir: usize, foreign: bool) -> Harm {
        let mut harm = Harm::None;
        for owner in 0..OWNERS {
            let it = self.owners[owner];
            if it.dir().get() == dir && self.owner_uses(setting, owner) {
                let escapes = foreign && !it.lease();
                let to = if escapes {
                    Harm::Escape(Escape::OwnerElsewhere)
                } else {
                    Harm::To(Actor::Owner(owner))
                };
                harm = harm.or(to);
            }
        }
        if self.claim() != dir {
            return harm;
        }
        if self.worker.life() == Forked::Copied && self.worker.task() == Task::Hold {
            harm = harm.or(Harm::To(Actor::Worker));
        }
        for command in 0..COMMANDS {
            let it = self.commands[command];
            let unleased = foreign && it.unleased();
            if it.stage().lives() && unleased {
                harm = harm.or(Harm::Escape(Escape::OwnerElsewhere));
            } else if it.stage().lives() {
                harm = harm.or(Harm::To(Actor::Command(command)));
            }
            if it.child().lives() && unleased {
                harm = harm.or(Harm::Escape(Escape::OwnerElsewhere));
            } else if it.child().lives() {
                harm = harm.or(self.harm_to_child(command, foreign));
            }
        }
        harm
    }

    fn harm_to_child(&self, command: usize, foreign: bool) -> Harm {
        let it = self.commands[command];
        // From the first half of the withdrawal on: without its identity nothing ran.
        let withdrawn = !self.entries[command].id();
        if it.strayed() {
            Harm::Escape(Escape::Unseen)
        } else if it.child() == Child::Outside && foreign && withdrawn {
            Harm::Escape(Escape::DaemonElsewhere)
        } else {
            Harm::To(Actor::Child(command))
        }
    }

    /// Whether the child of a command has left its group, holds no lock, and shows nothing of
    /// what it was given: the first of the known escapes.
    pub(crate) fn child_is_out_of_sight(&self, setting: &Setting, command: usize) -> bool {
        let it = self.commands[command];
        let shows = it.child_inside() || it.child_environment() || it.child_entry();
        let seen = shows && !setting.habits.unreadable;
        let locks = it.child_entry() && self.entries[command].locked();
        it.child() == Child::Outside && !seen && !locks
    }
}

impl Setting {
    /// What lies in a directory besides what the model has a state for.
    #[inline]
    pub(crate) fn content_of(&self, dir: usize) -> Content {
        if dir == 0 { self.content } else { Content::Nothing }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl fmt::Display for Escape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Escape::Unseen => "a process outside its group that nothing shows any more",
            Escape::OwnerElsewhere => {
                "an owner without its lease's descriptor, or what it started since, seen from another pid namespace"
            }
            Escape::DaemonElsewhere => {
                "a daemon whose entry was withdrawn, seen from another pid namespace"
            }
        })
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.property)?;
        match self.why {
            Why::InUse(actor) => write!(f, "a step of a removal, while {actor} may use the claim"),
            Why::NestedInUse => f.write_str("a step of a removal, while a claim inside is in use"),
            Why::Outside => f.write_str("a step that reaches what is not the claim's"),
            Why::MustBeKept => f.write_str("a claim that must be kept is not whole any more"),
            Why::Stays(dir) => {
                write!(f, "directory {} stays, although nobody uses it any more", dir + 1)
            }
            Why::CloseRefused => f.write_str("a close is refused, although nobody uses the claim"),
            Why::Waits => f.write_str("a sweep waits for somebody else"),
            Why::NotTold(dir) => {
                write!(f, "a sweep keeps directory {}, and does not tell", dir + 1)
            }
            Why::NotReached(dir) => {
                write!(f, "a sweep ends before it has come to directory {}", dir + 1)
            }
        }
    }
}
