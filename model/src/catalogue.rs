//! What every rule is for: bounds in which its absence is seen, or why it is not.
//!
//! `docs/why-each-rule.md` is made of this.

use crate::rules::{Rule, Rules};
use crate::setting::{Content, Habits, Place, Setting};

/// What the model says about a rule that it can be without.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// Bounds in which its absence is seen, if it is seen in any; all rules are in force in them.
    pub setting: Setting,
    /// Where its absence is never seen: why it stays all the same.
    pub stays: Option<&'static str>,
}

/// A rule of the protocol that the model has no words for.
#[derive(Clone, Copy, Debug)]
pub struct NotExpressed {
    /// Its name in the protocol.
    pub rule: &'static str,
    /// Why.
    pub reason: &'static str,
}

/// Rules that are about what the model leaves out.
pub const NOT_EXPRESSED: &[NotExpressed] = &[
    NotExpressed {
        rule: "h1",
        reason: "How a path becomes an open handle is below a step of the model: its steps name \
                 a directory, not a path, and what they read has no length.",
    },
    NotExpressed {
        rule: "h6",
        reason: "A claim has no depth here: what lies in `files` is there or not.",
    },
    NotExpressed {
        rule: "h7",
        reason: "A process is the recorded one, its zombie, gone, or somebody else; it has no \
                 number, and no step sends a signal to one.",
    },
    NotExpressed {
        rule: "l8",
        reason: "Every directory here is a claim, in some state: nothing is somebody's who never \
                 made one.",
    },
    NotExpressed {
        rule: "b2",
        reason: "There is no time in the model, so nothing is early or late. That a sweep which is \
                 killed loses no work is in every search with a kill: it may come at each step of \
                 a sweep.",
    },
    NotExpressed {
        rule: "b3",
        reason: "The program that a sweep runs in is not in the model; that a sweep ends and goes \
                 on past what it cannot remove is L2, which is.",
    },
];

/// The letters of rules that are about other systems than claims, with what these are. The model is
/// one of claims.
pub const OTHER_SYSTEMS: &[(char, &str)] = &[
    ('f', "locks on files"),
    ('t', "stores"),
    ('a', "passed sockets"),
    ('x', "directories of tests"),
];

/// What commands do, by letters: c closes, u unlocks, h leaves a child, d it leaves the group,
/// l leaves the claim, f forgets the environment, x unreadable.
fn habits(letters: &str) -> Habits {
    let has = |letter| letters.contains(letter);
    Habits {
        closes: has('c'),
        unlocks: has('u'),
        child: has('h'),
        daemon: has('d'),
        leaves: has('l'),
        forgets: has('f'),
        unreadable: has('x'),
    }
}

impl Rule {
    /// In which bounds its absence is seen.
    pub fn shown(self) -> Shown {
        let none = Setting { kills: 0, ..Setting::default() };
        let quiet = Setting { commands: 0, ..none };
        let killed = Setting::default();
        let with = |letters| Setting { habits: habits(letters), ..killed };
        let content = |content| Setting { owners: 0, commands: 0, content, ..none };
        let elsewhere = |setting| Setting { foreign: 1, ..setting };
        let setting = match self {
            Rule::C1Lock => elsewhere(quiet),
            Rule::C2Creator => Setting { sweeps: 0, swap: true, ..quiet },
            Rule::C2Sweep => Setting { commands: 0, swap: true, ..killed },
            Rule::C3Publish | Rule::R2Again => Setting { commands: 0, ..killed },
            Rule::R1Order => Setting { place: Place::Full, kills: 3, ..with("chd") },
            Rule::C4Place => elsewhere(Setting { place: Place::NoLocks, ..quiet }),
            Rule::C5Exec => Setting { worker: true, ..with("u") },
            Rule::C5Unlock | Rule::C7Afresh => Setting { closes: true, worker: true, ..quiet },
            Rule::C6Worker => Setting { closes: true, worker: true, loses_lease: true, ..quiet },
            Rule::P1First => elsewhere(killed),
            Rule::P1Exec => Setting { stranger: true, ..killed },
            Rule::P2Group => with("chlf"),
            Rule::P2Id => with("clf"),
            Rule::P2Child => with("clf"),
            Rule::P2Lock => with("hdlf"),
            Rule::P3Copy => Setting { closes: true, ..none },
            Rule::P4Cookie => with("chdl"),
            Rule::P5Proof => with("chlf"),
            Rule::P5Lock => with("hdx"),
            Rule::P5Group => with("chx"),
            Rule::P5Order => killed,
            Rule::L1Lease => elsewhere(quiet),
            Rule::L1Kept => quiet,
            Rule::L1Kind => elsewhere(Setting { place: Place::OtherView, ..quiet }),
            Rule::L2Owner => Setting { loses_lease: true, ..quiet },
            Rule::L2Ticks => Setting { reuse: true, ..killed },
            Rule::L2Zombie => Setting { commands: 0, ..killed },
            Rule::L2Boot => Setting { commands: 0, reboot: true, reuse: true, ..none },
            Rule::L2Damage => content(Content::Damage),
            Rule::L3Commands => with("clf"),
            Rule::L3Lock => with("hdx"),
            Rule::L3Group => with("clf"),
            Rule::L3Zombie => killed,
            Rule::L3Order => Setting { loses_lease: true, ..with("lf") },
            Rule::L3Namespace => elsewhere(with("c")),
            Rule::L4Scan => with("chd"),
            Rule::L4Last => with("chdlf"),
            Rule::L5Uid => content(Content::ForeignClaim),
            Rule::L5Name => content(Content::Copy),
            Rule::L6Unlock => Setting { sweepers_fork: true, loses_lease: true, ..quiet },
            Rule::L7Word => Setting { word: true, loses_lease: true, ..quiet },
            Rule::R1Walk => content(Content::Mount),
            Rule::R1Mark => Setting { place: Place::Full, commands: 0, ..killed },
            Rule::R2Judged => {
                Setting { sweeps: 2, foreign: 1, loses_lease: true, commands: 0, ..killed }
            }
            Rule::R3Aside => quiet,
            Rule::R4Scan => Setting { closes: true, kills: 0, ..with("chd") },
            Rule::R4Release => Setting { closes: true, kills: 0, ..with("") },
            Rule::R5Goes => Setting { owners: 1, ..content(Content::Immutable) },
            Rule::R5Told => content(Content::Immutable),
            Rule::H2Mount => content(Content::Mount),
            Rule::H3Link => content(Content::Link),
            Rule::H4Uid => content(Content::ForeignDir),
            Rule::H5Held => content(Content::Nested),
            Rule::H8Errno => Setting { failures: 1, ..quiet },
            Rule::B1First => elsewhere(killed),
        };
        Shown { setting, stays: self.stays() }
    }

    /// Why a rule stays whose absence is never seen.
    fn stays(self) -> Option<&'static str> {
        match self {
            Rule::R1Order => Some(
                "A missing part is progress in a tombstone and wherever the removal was marked, so \
                 no order of the parts leaves anything that the next sweep may not judge. The \
                 record goes last all the same: it alone says which claim this was and on which \
                 kind of file system (l5, l1), and of a claim that stays half removed, for one \
                 entry that cannot go, it is all that a person has to go by.",
            ),
            _ => None,
        }
    }

    /// The rules without this one, in the bounds in which its absence is seen.
    pub fn absent(self) -> Setting {
        let shown = self.shown().setting;
        shown.under(Rules::all().without(self))
    }
}

/// Bounds that are searched with all rules in force, each with its name.
pub fn gate() -> Vec<(&'static str, Setting)> {
    let one = Setting::default();
    let closes = Setting { closes: true, ..one };
    let everything = habits("cuhdlf");
    vec![
        ("two sweeps", Setting { sweeps: 2, kills: 2, closes: true, ..one }),
        ("commands that do everything", Setting { habits: everything, ..closes }),
        ("commands that cannot be read", Setting { habits: habits("cuhdlx"), ..closes }),
        ("two commands", Setting { commands: 2, habits: habits("chd"), ..one }),
        ("a forked worker", Setting { worker: true, kills: 2, habits: habits("cu"), ..closes }),
        ("another thread", Setting { stranger: true, ..closes }),
        ("a lost lease", Setting { loses_lease: true, sweeps: 2, ..closes }),
        (
            "another pid namespace",
            Setting { sweeps: 2, foreign: 1, habits: habits("chd"), ..closes },
        ),
        (
            "a lost lease, seen from another pid namespace",
            Setting { foreign: 1, loses_lease: true, kills: 2, habits: everything, ..closes },
        ),
        ("numbers given again", Setting { reuse: true, habits: habits("chd"), ..one }),
        ("a reboot", Setting { reboot: true, reuse: true, sweeps: 2, foreign: 1, ..one }),
        (
            "two owners, batches of two",
            Setting { owners: 2, commands: 0, sweeps: 2, batch: 2, kills: 2, ..one },
        ),
        ("no rename to a tombstone", Setting { place: Place::Full, sweeps: 2, kills: 2, ..closes }),
        ("moved directories", Setting { swap: true, kills: 2, sweeps: 2, ..one }),
        ("probes that fail", Setting { failures: 2, kills: 2, sweeps: 2, ..one }),
        ("sweeping processes that fork", Setting { sweepers_fork: true, sweeps: 2, ..one }),
    ]
}
