//! The designs that the lab knows, what each promises, and for what reason it is rejected.
//!
//! A rejection names a rule that the design lacks; which run shows it is found by searching, and a
//! test holds the two together. `docs/subjects.md` tells more of each.

use std::fmt;

use mortmain_subjects::{
    Age, Design, InheritedLease, LockFile, Marker, Mortmain, OwnerPid, SecondLook,
};

use super::{Case, WAIT_SECONDS};
use crate::judge::Property;
use crate::simulated::subject::{self, Company, Manner, Then};
use crate::simulated::{Programs, WorldChild, WorldKernel};
use crate::world::Moves;
use crate::world::ids::ProgramId;

/// The programs of a design.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cast {
    pub(super) owner: ProgramId,
    pub(super) sweep: ProgramId,
}

/// Why a design is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rejection {
    /// What does not hold.
    pub property: Property,
    /// The rule of `docs/protocol.md` that it lacks.
    pub rule: &'static str,
    /// What goes wrong without it, in a sentence.
    pub because: &'static str,
    /// How a command and its owner behave in the shortest run that shows it.
    pub shown_by: (Manner, Then),
}

/// A design under test.
#[derive(Clone, Copy)]
pub struct Subject {
    name: &'static str,
    idea: &'static str,
    cast: fn(&mut Programs, Company, Then) -> Cast,
    rest_seconds: u64,
    moves: Moves,
    rejections: &'static [Rejection],
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// By name.
impl PartialEq for Subject {
    fn eq(&self, other: &Subject) -> bool {
        self.name == other.name
    }
}

impl Eq for Subject {}

fn cast<D: Design>(programs: &mut Programs, company: Company, then: Then) -> Cast {
    let owner = move |world: &WorldKernel| subject::owner::<D, _>(world, world, company, then);
    let owner = programs.add("owner", owner);
    let sweep = programs.add("sweep", subject::sweep::<D, _>);
    programs.set_child_part(D::child::<WorldChild>);
    Cast { owner, sweep }
}

impl Subject {
    /// The implementation.
    pub const MORTMAIN: Subject = Subject::of::<Mortmain>(
        "mortmain",
        "a lease, an owner's record and a registry of commands",
    );

    /// All that the lab knows, the implementation first.
    pub const ALL: [Subject; 7] =
        [Subject::MORTMAIN, AGE, OWNER_PID, INHERITED_LEASE, MARKER, LOCK_FILE, SECOND_LOOK];

    /// A design under a name for the command line and for saved runs: small letters, digits and
    /// hyphens; with its idea in a few words.
    #[must_use]
    pub const fn of<D: Design>(name: &'static str, idea: &'static str) -> Subject {
        Subject {
            name,
            idea,
            cast: cast::<D>,
            rest_seconds: 0,
            moves: Moves::Harm,
            rejections: &[],
        }
    }

    /// It goes by the clock: when everybody is dead, so much time passes before the last sweep.
    #[must_use]
    pub const fn rests(self, seconds: u64) -> Subject {
        Subject { rest_seconds: seconds, ..self }
    }

    /// What the judge says when it moves a directory in use: a design may promise to give it back.
    #[must_use]
    pub const fn judged_by(self, moves: Moves) -> Subject {
        Subject { moves, ..self }
    }

    /// It is known not to hold.
    #[must_use]
    pub const fn rejected(self, rejections: &'static [Rejection]) -> Subject {
        Subject { rejections, ..self }
    }

    /// The one of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Subject> {
        Subject::ALL.into_iter().find(|subject| subject.name == name)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Its idea, in a few words.
    #[must_use]
    pub fn idea(self) -> &'static str {
        self.idea
    }

    /// Why it is rejected, by property; empty for what is to hold.
    #[must_use]
    pub fn rejections(self) -> &'static [Rejection] {
        self.rejections
    }

    /// The rejection for a property.
    #[must_use]
    pub fn rejection(self, property: &str) -> Option<&'static Rejection> {
        self.rejections.iter().find(|rejection| rejection.property.id() == property)
    }

    /// The smallest setup that shows what is wrong with it, or a small one if nothing is known to be.
    #[must_use]
    pub fn shown_by(self) -> Case {
        let known = self.rejections.first().map(|rejection| rejection.shown_by);
        let (manner, then) = known.unwrap_or((Manner::Plain, Then::Idle));
        Case { subject: self, manner, then, waits: 1, ..Case::SMALL }
    }

    pub(super) fn rest_seconds(self) -> u64 {
        self.rest_seconds
    }

    pub(super) fn moves(self) -> Moves {
        self.moves
    }

    pub(super) fn cast(self, programs: &mut Programs, company: Company, then: Then) -> Cast {
        (self.cast)(programs, company, then)
    }
}

const AGE: Subject = Subject::of::<Age>("age", "what nobody has changed for a day is removed")
    .rests(WAIT_SECONDS)
    .rejected(&[Rejection {
        property: Property::S1,
        rule: "l5",
        because: "time is no proof: an owner that is idle for a day loses its directory",
        shown_by: (Manner::Plain, Then::Idle),
    }]);

const OWNER_PID: Subject =
    Subject::of::<OwnerPid>("pid", "what belongs to a process that has ended is removed").rejected(
        &[Rejection {
            property: Property::S1,
            rule: "l3",
            because: "nobody asks for the commands: one outlives its owner and loses its directory",
            shown_by: (Manner::Plain, Then::Idle),
        }],
    );

const INHERITED_LEASE: Subject = Subject::of::<InheritedLease>(
    "inherited-lease",
    "a lock that commands inherit, and the owner's pid",
)
.rejected(&[Rejection {
    property: Property::S1,
    rule: "p2",
    because: "nobody has written down that a command is there: one that closes what it inherited \
              is known by nothing else",
    shown_by: (Manner::ClosesAll, Then::Idle),
}]);

const MARKER: Subject =
    Subject::of::<Marker>("marker", "files in the directory name the owner and each command")
        .rejected(&[
            Rejection {
                property: Property::S1,
                rule: "p1",
                because: "the entry comes after the spawn: an owner killed in between leaves a \
                          command that nobody knows of",
                shown_by: (Manner::Plain, Then::Idle),
            },
            Rejection {
                property: Property::L1,
                rule: "c3",
                because: "the marker comes after the name: what was half made looks for ever as \
                          if somebody were making it",
                shown_by: (Manner::Plain, Then::Idle),
            },
        ]);

const LOCK_FILE: Subject =
    Subject::of::<LockFile>("lock-file", "a lock on a file in the directory").rejected(&[
        Rejection {
            property: Property::S1,
            rule: "c1",
            because: "the lock comes after the name: a sweep gets the newborn's lock first and \
                      removes it",
            shown_by: (Manner::Plain, Then::Idle),
        },
        Rejection {
            property: Property::L1,
            rule: "c2",
            because: "the lock is not compared with the name: its holder fills a directory \
                      without a lock file, which nobody ever removes",
            shown_by: (Manner::Plain, Then::Idle),
        },
    ]);

const SECOND_LOOK: Subject = Subject::of::<SecondLook>(
    "second-look",
    "what seems unused is renamed, looked at again, and renamed back",
)
.judged_by(Moves::ForgivenWhileTheMoverLives)
.rejected(&[Rejection {
    property: Property::S1,
    rule: "l4",
    because: "the look is stale by the time of the rename, and a kill before it is taken back \
              hides a directory from its users",
    shown_by: (Manner::Plain, Then::Exit),
}]);
