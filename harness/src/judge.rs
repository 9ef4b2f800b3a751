//! The judges: what must be true in the world, whatever the implementation
//! believes.
//!
//! * **S1**: as long as a process lives that may use a claim, the claim is at
//!   its path with what it is used for. Judged after every step.
//! * **S2**: nothing outside of the claims changes, whatever an adversary puts in
//!   the way: what is precious stays as it is, and nobody is killed who only has the
//!   number of somebody who is gone. Judged after every step.
//! * **L1**: when everybody is dead, one undisturbed sweep leaves the root
//!   empty, but for what an adversary has made, or has changed a part of. Judged
//!   from every state.
//! * **L2**: no process makes more calls than a bound, judged after every step,
//!   and the last sweep waits for nobody.
//! * **Alone**: of what only one process at a time may do, by its own word, no two
//!   are at it. Judged after every step.
//! * A panic is a violation of its own.
//!
//! A search may judge one of them alone ([`Judged`]), so that a design that breaks two is found out in
//! both.
//!
//! S3 (unknown keeps) is S1 with calls that fail, which explorers choose. L3
//! (told) is a matter of reports.

use std::fmt;

use mortmain::sys::{PathBytes, Pid};

use crate::world::{Harm, World};

/// An invariant of `docs/protocol.md`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Property {
    /// In use.
    S1,
    /// Outside.
    S2,
    /// Unknown.
    S3,
    /// Reclaim.
    L1,
    /// Bounded.
    L2,
    /// Told.
    L3,
}

impl Property {
    /// All of them, in order of importance.
    pub const ALL: [Property; 6] =
        [Property::S1, Property::S2, Property::S3, Property::L1, Property::L2, Property::L3];

    /// Those that a search can judge.
    pub const JUDGED: [Property; 4] = [Property::S1, Property::S2, Property::L1, Property::L2];

    /// Those that it can judge without an adversary.
    pub const SEARCHED: [Property; 3] = [Property::S1, Property::L1, Property::L2];

    /// Its id.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Property::S1 => "S1",
            Property::S2 => "S2",
            Property::S3 => "S3",
            Property::L1 => "L1",
            Property::L2 => "L2",
            Property::L3 => "L3",
        }
    }
}

/// Which properties are judged. A panic, and a process that never ends, end every search.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Judged {
    /// All.
    All,
    /// One.
    Only(Property),
    /// None: somebody else judges.
    Nothing,
}

impl Judged {
    /// Whether this one is.
    #[must_use]
    pub fn counts(self, property: Property) -> bool {
        match self {
            Judged::All => true,
            Judged::Only(only) => only == property,
            Judged::Nothing => false,
        }
    }

    /// Whether something that the last sweep could break is.
    #[must_use]
    pub fn needs_last_sweep(self) -> bool {
        self.counts(Property::S2) || self.counts(Property::L1) || self.counts(Property::L2)
    }
}

/// A process as messages name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Who {
    /// Its number.
    pub pid: Pid,
    /// Its program.
    pub program: &'static str,
}

impl Who {
    /// Who lets time pass.
    pub const CLOCK: Who = Who { pid: Pid(0), program: "clock" };

    /// The machine itself.
    pub const MACHINE: Who = Who { pid: Pid(-2), program: "machine" };

    /// Who changes what names stand for.
    pub const ADVERSARY: Who = Who { pid: Pid(-1), program: "adversary" };

    /// Whether it is a process, with a number that says something.
    pub(crate) fn is_process(self) -> bool {
        self.pid.0 > 0
    }

    /// The process with this number.
    #[must_use]
    pub fn new(world: &World, pid: Pid) -> Who {
        Who { pid, program: world.program_name(pid).unwrap_or("process") }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_process() {
            return write!(f, "the {}", self.program);
        }
        write!(f, "{} {}", self.program, self.pid.0)
    }
}

/// Something that must not be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Violation {
    /// S1: a claim is not whole although somebody may use it.
    InUse {
        /// Who made the last step.
        by: Who,
        /// Which step.
        step: String,
        /// Path of the claim.
        claim: PathBytes,
        /// What is gone: a path in the claim, or empty for the claim itself.
        missing: PathBytes,
        /// Who may use it.
        users: Vec<Who>,
    },
    /// S2: something outside of the claims has changed.
    Outside {
        /// Who made the last step.
        by: Who,
        /// Which step.
        step: String,
        /// What is not as it was.
        path: PathBytes,
    },
    /// S2: somebody was killed who has to do with nobody.
    Stranger {
        /// Who made the last step.
        by: Who,
        /// Which step.
        step: String,
        /// Who is dead.
        who: Who,
    },
    /// Two processes do at once what only one at a time may do.
    NotAlone {
        /// Who made the last step.
        by: Who,
        /// Which step.
        step: String,
        /// Who is at it.
        who: Vec<Who>,
    },
    /// L1: everybody was dead, a sweep ran undisturbed, and something is left.
    Left {
        /// What is left below the root.
        paths: Vec<PathBytes>,
    },
    /// L2: a process goes on and on.
    TooLong {
        /// The process.
        who: Who,
        /// The bound on its calls.
        calls_max: u32,
    },
    /// L2: the last sweep waits, and nobody is left who could end that.
    Blocked {
        /// The process.
        who: Who,
        /// What it waits in.
        step: String,
    },
    /// A process panicked.
    Panicked {
        /// The process.
        who: Who,
        /// Where, and what it said.
        message: String,
    },
}

impl Violation {
    /// The property that does not hold, in a word.
    #[must_use]
    pub fn property(&self) -> &'static str {
        match self {
            Violation::InUse { .. } => "S1",
            Violation::Outside { .. } | Violation::Stranger { .. } => "S2",
            Violation::NotAlone { .. } => "alone",
            Violation::Left { .. } => "L1",
            Violation::TooLong { .. } | Violation::Blocked { .. } => "L2",
            Violation::Panicked { .. } => "panic",
        }
    }
}

impl Violation {
    /// Who did what, where one step is to blame.
    #[must_use]
    pub fn blamed(&self) -> Option<(Who, &str)> {
        match self {
            Violation::InUse { by, step, .. }
            | Violation::Outside { by, step, .. }
            | Violation::Stranger { by, step, .. }
            | Violation::NotAlone { by, step, .. } => Some((*by, step)),
            Violation::Blocked { who, step } => Some((*who, step)),
            Violation::Left { .. } | Violation::TooLong { .. } | Violation::Panicked { .. } => None,
        }
    }

    /// Whom or what it hits: processes whose directory is gone, or paths that stay for ever.
    #[must_use]
    pub fn victims(&self) -> Vec<String> {
        match self {
            Violation::InUse { users: who, .. } | Violation::NotAlone { who, .. } => {
                who.iter().map(Who::to_string).collect()
            }
            Violation::Left { paths } => paths.iter().map(PathBytes::to_string).collect(),
            Violation::Outside { path, .. } => vec![path.to_string()],
            Violation::Stranger { who, .. }
            | Violation::TooLong { who, .. }
            | Violation::Blocked { who, .. }
            | Violation::Panicked { who, .. } => vec![who.to_string()],
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.property())?;
        match self {
            Violation::InUse { by, step, claim, missing, users } => {
                let gone =
                    if missing.0.is_empty() { claim.clone() } else { claim.join(&missing.0) };
                write!(f, "after `{step}` of {by}, {gone} is not at its place any more, but ")?;
                list(f, users)?;
                f.write_str(if users.len() == 1 { " lives" } else { " live" })?;
                write!(f, " and may use {claim}")
            }
            Violation::Outside { by, step, path } => {
                write!(f, "after `{step}` of {by}, {path} is not as it was")
            }
            Violation::Stranger { by, step, who } => {
                write!(f, "after `{step}` of {by}, {who} is dead, who has nothing to do with it")
            }
            Violation::NotAlone { by, step, who } => {
                write!(f, "after `{step}` of {by}, ")?;
                list(f, who)?;
                f.write_str(" do at once what only one may do")
            }
            Violation::Left { paths } => {
                write!(f, "everybody was dead and a sweep ran undisturbed to its end, but ")?;
                list(f, paths)?;
                f.write_str(if paths.len() == 1 { " is left" } else { " are left" })
            }
            Violation::TooLong { who, calls_max } => {
                write!(f, "{who} has made more than {calls_max} calls and goes on")
            }
            Violation::Blocked { who, step } => {
                write!(f, "{who} waits in `{step}`, and nobody is left who could end that")
            }
            Violation::Panicked { who, message } => write!(f, "{who} panicked: {message}"),
        }
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, things: &[T]) -> fmt::Result {
    for (at, thing) in things.iter().enumerate() {
        let before = match at {
            0 => "",
            _ if at + 1 == things.len() => " and ",
            _ => ", ",
        };
        write!(f, "{before}{thing}")?;
    }
    Ok(())
}

/// What must be true after every step.
pub(crate) fn after_step(world: &World, by: Who, step: impl Fn() -> String) -> Option<Violation> {
    in_use(world, by, &step)
        .or_else(|| outside(world, by, &step))
        .or_else(|| alone(world, by, &step))
}

/// S2, after a step.
fn outside(world: &World, by: Who, step: impl FnOnce() -> String) -> Option<Violation> {
    let path = world.outside_harm()?;
    Some(Violation::Outside { by, step: step(), path })
}

fn alone(world: &World, by: Who, step: impl FnOnce() -> String) -> Option<Violation> {
    let who: Vec<Who> = world.alone().map(|pid| Who::new(world, pid)).collect();
    (who.len() > 1).then(|| Violation::NotAlone { by, step: step(), who })
}

/// S1, after a step.
fn in_use(world: &World, by: Who, step: impl FnOnce() -> String) -> Option<Violation> {
    let Harm { path, missing, users } = world.harm()?;
    let users = users.into_iter().map(|pid| Who::new(world, pid)).collect();
    Some(Violation::InUse { by, step: step(), claim: path, missing, users })
}

/// L1, when the last sweep has ended.
pub(crate) fn left(world: &World) -> Option<Violation> {
    let paths = world.left();
    if paths.is_empty() { None } else { Some(Violation::Left { paths }) }
}
