//! The gate for the seam: the code that ships, unchanged, on the simulated kernel; and other designs
//! in its place.
//!
//! Owners make claims and start commands, or have something else beside; sweeps run at the same time;
//! processes are killed between any two calls; from every state on the way everybody is killed at once
//! and one more sweep must leave nothing. A rule can be switched off from outside, to see what it is for.

use std::cell::Cell;
use std::rc::Rc;

use mortmain::sys::{Answer, Call, ChildKernel as _, ChildPlan, Errno, Handle, Kernel, Pid, Reply};
use mortmain::{Candidate, Evidence, Finding, Place, Prober, Probes, Proof, Removes};
use mortmain_subjects::{Beyond, Mortmain, System};

use super::careless::Careless;
use super::machine::STRANGER;
use super::subjects::Cast;
use super::{Budget, Setup, Subject};
use crate::answers::Answers;
use crate::judge::Judged;
use crate::simulated::subject::{self, Beside, Company, Manner, Then};
use crate::simulated::{Programs, WorldChild, WorldKernel};
use crate::world::request::Command;
use crate::world::{Reaping, Rules};

/// One setup of the gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// The design under test.
    pub subject: Subject,
    /// How many owners there are.
    pub owners: usize,
    /// What each has beside its directory.
    pub beside: Beside,
    /// How the command behaves.
    pub manner: Manner,
    /// How the owner goes on.
    pub then: Then,
    /// How many sweeps run beside it.
    pub sweeps: usize,
    /// How many processes are killed, each at any moment.
    pub kills: u32,
    /// How many calls fail, each at any moment, with an error that means nothing in particular and
    /// with one that says that there is no room.
    pub failures: u32,
    /// How often time passes, at any moment, more than a day each time.
    pub waits: u32,
    /// How many tricks an adversary plays, each at any moment.
    pub tricks: u32,
    /// How many processes are killed with all that they have started, each at any moment.
    pub trees: u32,
    /// How many strangers get the number of a process that is gone, each at any moment.
    pub strangers: u32,
    /// How many directories are read in another order, each at any moment.
    pub orders: u32,
    /// See [`Setup::reboots`].
    pub reboots: bool,
    /// What is judged.
    pub judged: Judged,
    /// Whether init reaps.
    pub reaping: Reaping,
    /// See [`Setup::merge`].
    pub merge: bool,
    /// The rule that is switched off; of the implementation only.
    pub without: Without,
}

/// The rule that is switched off, by a prober, a kernel or a child's part that is put around the
/// real one: nothing of the implementation is changed.
///
/// With any of l3, p1 and p2, l4 is off as well. It is the net below them: in a machine in which
/// every process can be read, it sees by the cookie what they are there for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Without {
    /// None is.
    Nothing,
    /// Commands are not asked about.
    L3,
    /// Nobody looks at who uses a claim.
    L4,
    /// The entry's lock is taken only when the command has been started.
    P1,
    /// What was left half-removed is not judged again.
    R2,
    /// The child does not say who it is.
    P2,
    /// What stands at a name is opened as it comes.
    H1,
    /// Mounts are entered.
    H2,
    /// A link is taken for what it points at.
    H3,
}

impl Without {
    /// All rules that can be switched off, by their ids.
    pub const RULES: [(&'static str, Without); 8] = [
        ("l3", Without::L3),
        ("l4", Without::L4),
        ("p1", Without::P1),
        ("p2", Without::P2),
        ("r2", Without::R2),
        ("h1", Without::H1),
        ("h2", Without::H2),
        ("h3", Without::H3),
    ];

    /// What is so while the rule is switched off, in a sentence.
    #[must_use]
    pub fn because(self) -> &'static str {
        match self {
            Without::Nothing => "no rule is switched off",
            Without::L3 => "nobody asks for the commands",
            Without::L4 => "nobody looks at who uses a claim",
            Without::P1 => {
                "the lock of a command's entry is taken only when the command has been started"
            }
            Without::R2 => "what was left half-removed is not judged again",
            Without::P2 => "the child does not say who it is",
            Without::H1 => "what stands at a name is opened as it comes",
            Without::H2 => "mounts are entered",
            Without::H3 => "a link is taken for what it points at",
        }
    }

    /// The smallest setup that shows what the rule is for.
    #[must_use]
    pub fn shown_by(self) -> Case {
        let manner = match self {
            Without::P1 => Manner::LeavesDaemon,
            Without::P2 => Manner::ClosesAll,
            Without::L4 => Manner::Escapes,
            _ => Manner::Plain,
        };
        let tricks = u32::from(matches!(self, Without::H1 | Without::H2 | Without::H3));
        Case { without: self, manner, tricks, ..Case::SMALL }
    }

    /// The programs of the implementation with the rule switched off.
    fn cast(self, programs: &mut Programs, company: Company, then: Then) -> Cast {
        let owner = programs.add("owner", move |world| match self {
            Without::P1 => {
                subject::owner::<Mortmain, _>(world, &LateLock::new(world), company, then)
            }
            _ => subject::owner::<Mortmain, _>(world, world, company, then),
        });
        let sweep = programs.add("sweep", move |world| match self {
            Without::L3 => {
                let commands = Some(Proof::Gone);
                let answers = Answers { commands, ..Answers::nobody_seen() };
                subject::sweep_with(world, answers, Removes)
            }
            Without::L4 | Without::P1 | Without::P2 => {
                subject::sweep_with(world, Answers::nobody_seen(), Removes)
            }
            Without::R2 => subject::sweep_with(world, TombstonesUnclear, Removes),
            Without::H1 => subject::sweep_with(&Careless::opens(world), Probes, Removes),
            Without::H2 => subject::sweep_with(&Careless::crosses(world), Probes, Removes),
            Without::H3 => subject::sweep_with(&Careless::follows(world), Probes, Removes),
            Without::Nothing => subject::sweep_with(world, Probes, Removes),
        });
        if self == Without::P2 {
            programs.set_child_part(nameless_child);
        }
        Cast { owner, sweep }
    }
}

impl Case {
    /// The gate: one owner, one command, two sweeps, two kills.
    pub const GATE: Case = Case {
        subject: Subject::MORTMAIN,
        owners: 1,
        beside: Beside::Command,
        manner: Manner::Plain,
        then: Then::Idle,
        sweeps: 2,
        kills: 2,
        failures: 0,
        waits: 0,
        tricks: 0,
        trees: 0,
        strangers: 0,
        orders: 0,
        reboots: false,
        judged: Judged::All,
        reaping: Reaping::AtOnce,
        merge: true,
        without: Without::Nothing,
    };

    /// Most sweeps at the same time: more are not explored in a lifetime.
    pub const SWEEPS_MAX: u8 = 4;

    /// Most owners at the same time, of which there has to be one.
    pub const OWNERS_MAX: u8 = 3;

    /// Enough for everything but what takes two sweeps, or two deaths.
    pub const SMALL: Case = Case { sweeps: 1, kills: 1, ..Case::GATE };

    /// What in it does not go together, in a sentence.
    #[must_use]
    pub fn contradiction(self) -> Option<String> {
        let Case { beside, manner, then, .. } = self;
        let word = match (beside, then) {
            (Beside::Command, _) => return None,
            (_, Then::Idle | Then::Exit | Then::Close) if manner == Manner::Plain => return None,
            (_, Then::Idle | Then::Exit | Then::Close) => manner.word(),
            _ => then.word(),
        };
        Some(format!("`{word}` is about a command, and there is none beside `{}`", beside.word()))
    }

    /// What may happen to the processes.
    #[must_use]
    pub fn budget(self) -> Budget {
        let Case { kills, failures, waits, tricks, trees, strangers, orders, .. } = self;
        Budget { kills, failures, waits, tricks, trees, strangers, orders }
    }

    /// What is explored.
    #[must_use]
    pub fn setup(self) -> Setup {
        let mut programs = Programs::default();
        let command = programs.add("command", move |world| subject::command(world, self.manner));
        let company = match self.beside {
            Beside::Command => Company::Command(command),
            Beside::Nothing => Company::Nothing,
            Beside::Copy => Company::Copy { nests: false },
            Beside::Nested => Company::Copy { nests: true },
        };
        let Cast { owner, sweep } = match self.without {
            Without::Nothing => self.subject.cast(&mut programs, company, self.then),
            without => without.cast(&mut programs, company, self.then),
        };
        let strangers = self.strangers > 0 || self.reboots;
        let stranger = strangers.then(|| programs.add(STRANGER, |world| world.idle()));
        let mut starts = vec![owner; self.owners];
        starts.extend(vec![sweep; self.sweeps]);
        Setup {
            rules: Rules {
                reaping: self.reaping,
                moves: self.subject.moves(),
                numbers_again: strangers,
                ..Rules::default()
            },
            programs,
            starts,
            last: sweep,
            budget: self.budget(),
            stranger,
            reboots: self.reboots,
            rest_seconds: self.subject.rest_seconds(),
            judged: self.judged,
            errnos: vec![Errno::EIO, Errno::ENOSPC],
            merge: self.merge,
            calls_max: 2_000,
        }
    }
}

/// r2 off.
struct TombstonesUnclear;

impl<K: Kernel> Prober<K> for TombstonesUnclear {
    fn lease(&mut self, claim: &Candidate<'_, K>) -> Finding {
        match claim.place() {
            Place::Tombstone => Finding::cannot_tell(Evidence::Injected),
            Place::Staging | Place::Published => Probes.lease(claim),
        }
    }

    fn owner(&mut self, claim: &Candidate<'_, K>) -> Finding {
        Probes.owner(claim)
    }

    fn commands(&mut self, claim: &Candidate<'_, K>) -> Finding {
        Probes.commands(claim)
    }
}

/// p1 off: the lock of a new entry is taken after the spawn, and not before.
#[derive(Clone)]
struct LateLock {
    inner: WorldKernel,
    made: Rc<Cell<Option<Handle>>>,
}

impl LateLock {
    fn new(inner: &WorldKernel) -> LateLock {
        LateLock { inner: inner.clone(), made: Rc::default() }
    }
}

impl Kernel for LateLock {
    type Program = Command;

    fn call(&self, call: Call) -> Answer<Reply> {
        if let Call::Lock { fd } = call
            && self.made.get() == Some(fd)
        {
            return Ok(Reply::Done);
        }
        let makes = matches!(call, Call::CreateFile { .. });
        let reply = self.inner.call(call)?;
        if let (true, Reply::Handle(fd)) = (makes, &reply) {
            self.made.set(Some(*fd));
        }
        Ok(reply)
    }

    fn spawn(&self, program: &mut Command, plan: &ChildPlan) -> Answer<Pid> {
        self.made.set(None);
        let pid = self.inner.spawn(program, plan)?;
        self.inner.call(Call::Lock { fd: plan.lock })?;
        Ok(pid)
    }
}

impl System for LateLock {
    fn beyond(&self, call: Beyond) -> Answer<Reply> {
        self.inner.beyond(call)
    }
}

/// p2 off: everything but the identity.
fn nameless_child(child: &WorldChild, plan: &ChildPlan) -> Answer<()> {
    child.new_group()?;
    child.keep_over_exec(plan.lock)
}
