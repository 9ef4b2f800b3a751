//! What runs, what it may do, and how often something goes wrong: the bounds of a search.

use std::fmt;

use crate::rules::Rules;
use crate::state::{COMMANDS, OWNERS, SWEEPS};

/// What commands and their children do besides running and ending.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Habits {
    /// They close every descriptor, the entry's as well.
    pub closes: bool,
    /// They unlock the descriptors that they got.
    pub unlocks: bool,
    /// A command leaves a child behind.
    pub child: bool,
    /// The child leaves the command's group.
    pub daemon: bool,
    /// They go out of the claim and come back to it by its path.
    pub leaves: bool,
    /// They lose the environment.
    pub forgets: bool,
    /// They cannot be read.
    pub unreadable: bool,
}

/// Where the root lies.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Place {
    /// On a file system whose locks are this kernel's own.
    #[default]
    Proper,
    /// On one whose locks exclude nobody.
    NoLocks,
    /// Sweeps see it through a view of another kind, where its locks seem free.
    OtherView,
    /// No claim can be renamed to a tombstone.
    Full,
}

/// What is in the first directory from the beginning: nothing, or a claim of somebody who is
/// long gone, with something particular about it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Content {
    /// There is no such claim.
    #[default]
    Nothing,
    /// Nothing particular.
    Plain,
    /// A mount lies in it.
    Mount,
    /// A link out of it lies in it.
    Link,
    /// A directory of another user lies in it.
    ForeignDir,
    /// A claim lies in it whose owner lives, in another pid namespace.
    Nested,
    /// A file lies in it that cannot be removed.
    Immutable,
    /// It is a copy of a claim, which somebody made.
    Copy,
    /// Its record is missing.
    Damage,
    /// It belongs to another user.
    ForeignClaim,
}

impl Content {
    /// Whether an undisturbed sweep has to leave it: with a reason, but for ever.
    pub fn stays(self, word: bool) -> bool {
        match self {
            Content::Nothing | Content::Plain | Content::Link => false,
            Content::Damage => !word,
            Content::Mount
            | Content::ForeignDir
            | Content::Nested
            | Content::Immutable
            | Content::Copy
            | Content::ForeignClaim => true,
        }
    }
}

/// The bounds of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The rules in force.
    pub rules: Rules,
    /// Owners: 0 to 2. A single one may make its claim a second time when it lost the first.
    pub owners: usize,
    /// Commands that the first owner starts: 0 to 2.
    pub commands: usize,
    /// Sweeps at the same time, each of which begins anew when it ends: 0 to 2.
    pub sweeps: usize,
    /// How many of the sweeps are in another pid namespace than the owners: the last ones.
    pub foreign: usize,
    /// Kills, of an owner, a child before its exec, or a sweep, each at any moment: 0 to 3.
    pub kills: usize,
    /// Probes of sweeps that fail, each at any moment: 0 to 3.
    pub failures: usize,
    /// Directories that a sweep holds at once, before it scans: 1 or 2.
    pub batch: usize,
    /// Whether the first owner closes or drops its claim.
    pub closes: bool,
    /// Whether the first owner forks a worker, which works on in the claim.
    pub worker: bool,
    /// Whether another thread of the first owner starts a child.
    pub stranger: bool,
    /// Whether the first owner loses its lease's descriptor.
    pub loses_lease: bool,
    /// Whether the sweeping processes fork workers.
    pub sweepers_fork: bool,
    /// Whether the number of a process that ended is given to another one, once.
    pub reuse: bool,
    /// Whether the machine is booted anew, once.
    pub reboot: bool,
    /// Whether an unlocked claim is moved and another directory put at its name, once.
    pub swap: bool,
    /// Whether the first sweep is an operator's, with his word for every claim.
    pub word: bool,
    /// What commands do.
    pub habits: Habits,
    /// Where the root lies.
    pub place: Place,
    /// What is there from the beginning.
    pub content: Content,
}

impl Default for Setting {
    /// One owner, one command, one sweep, one kill.
    fn default() -> Setting {
        Setting {
            rules: Rules::all(),
            owners: 1,
            commands: 1,
            sweeps: 1,
            foreign: 0,
            kills: 1,
            failures: 0,
            batch: 1,
            closes: false,
            worker: false,
            stranger: false,
            loses_lease: false,
            sweepers_fork: false,
            reuse: false,
            reboot: false,
            swap: false,
            word: false,
            habits: Habits::default(),
            place: Place::Proper,
            content: Content::Nothing,
        }
    }
}

/// Something that a setting is without unless it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    has: fn(&Setting) -> bool,
    set: fn(&mut Setting),
}

macro_rules! features {
    ($($name:literal $what:literal $($field:ident).+ $(= $value:expr)?;)+) => {
        /// All of them.
        pub const FEATURES: &[Feature] = &[$(Feature {
            name: $name,
            what: $what,
            has: |setting| features!(@has setting $($field).+ $(, $value)?),
            set: |setting| features!(@set setting $($field).+ $(, $value)?),
        },)+];
    };
    (@has $setting:ident $($field:ident).+) => { $setting.$($field).+ };
    (@has $setting:ident $($field:ident).+, $value:expr) => { $setting.$($field).+ == $value };
    (@set $setting:ident $($field:ident).+) => { $setting.$($field).+ = true };
    (@set $setting:ident $($field:ident).+, $value:expr) => { $setting.$($field).+ = $value };
}

features! {
    "closes" "the first owner closes or drops its claim" closes;
    "worker" "the first owner forks a worker, which works on in the claim" worker;
    "stranger" "another thread of the first owner starts a child" stranger;
    "loses-lease" "the first owner loses its lease's descriptor" loses_lease;
    "sweepers-fork" "sweeping processes fork workers" sweepers_fork;
    "reuse" "the number of a process that ended is given to another one, once" reuse;
    "reboot" "the machine boots anew, once" reboot;
    "swap" "an unlocked claim is moved and another directory put at its name, once" swap;
    "word" "the first sweep is an operator's, with his word for every claim" word;
    "close-all" "commands and their children close every descriptor" habits.closes;
    "unlock" "commands and their children unlock the descriptors that they got" habits.unlocks;
    "child" "commands leave a child behind" habits.child;
    "daemon" "the child leaves the group" habits.daemon;
    "leave" "commands and their children go out of the claim, and come back" habits.leaves;
    "forget" "commands and their children lose the environment" habits.forgets;
    "unreadable" "commands and their children cannot be read" habits.unreadable;
    "no-locks" "the root is on a file system whose locks exclude nobody" place = Place::NoLocks;
    "other-view" "sweeps see the root through a view of another kind" place = Place::OtherView;
    "full" "no claim can be renamed to a tombstone" place = Place::Full;
    "plain" "a dead claim is there from the beginning" content = Content::Plain;
    "mount" "the same, with a mount in it" content = Content::Mount;
    "link" "the same, with a link out of it" content = Content::Link;
    "foreign-dir" "the same, with a directory of another user in it" content = Content::ForeignDir;
    "nested" "the same, with a live claim in it" content = Content::Nested;
    "immutable" "the same, with a file in it that cannot be removed" content = Content::Immutable;
    "copy" "a copy of a claim is there from the beginning" content = Content::Copy;
    "damage" "a claim without its record is there from the beginning" content = Content::Damage;
    "foreign-claim" "another user's dead claim is there from the beginning" content = Content::ForeignClaim;
}

impl Feature {
    /// The feature of this name.
    pub fn named(name: &str) -> Option<&'static Feature> {
        FEATURES.iter().find(|feature| feature.name == name)
    }

    /// Whether a setting has it.
    pub fn is_in(&self, setting: &Setting) -> bool {
        (self.has)(setting)
    }

    /// Puts it into a setting.
    pub fn put_into(&self, setting: &mut Setting) {
        (self.set)(setting);
    }
}

/// How many owners, commands, sweeps and mishaps, and with what features.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
        let owners =
            if self.owners == 0 { "no owner".into() } else { several(self.owners, "owner") };
        write!(f, "{owners}")?;
        let bounds = [(self.commands, "command"), (self.sweeps, "sweep"), (self.kills, "kill")];
        for (number, what) in bounds.into_iter().filter(|(number, _)| *number > 0) {
            write!(f, ", {}", several(number, what))?;
            if what == "sweep" && self.foreign > 0 {
                write!(f, " ({} in another pid namespace)", self.foreign)?;
            }
        }
        if self.failures > 0 {
            write!(f, ", {}", several(self.failures, "failing probe"))?;
        }
        if self.batch > 1 {
            write!(f, ", batches of {}", self.batch)?;
        }
        let features = FEATURES.iter().filter(|feature| feature.is_in(self));
        let names: Vec<&str> = features.map(|feature| feature.name).collect();
        if !names.is_empty() {
            write!(f, "; with {}", names.join(", "))?;
        }
        Ok(())
    }
}

/// Bounds that the model has no room for: what is wrong with each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutOfBounds(Vec<String>);

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for OutOfBounds {}

impl Setting {
    /// The same with other rules.
    #[must_use]
    pub fn under(self, rules: Rules) -> Setting {
        Setting { rules, ..self }
    }

    /// Whether the model has room for it.
    ///
    /// # Errors
    ///
    /// Names every bound that is too large, or too small.
    pub fn check(&self) -> Result<(), OutOfBounds> {
        let owners = match self.content {
            Content::Nothing => ("owners", OWNERS),
            _ => ("owners beside what is there from the beginning", 1),
        };
        let commands = match self.owners {
            0 => ("commands without an owner", 0),
            _ => ("commands", COMMANDS),
        };
        let most = [
            (owners, self.owners),
            (commands, self.commands),
            (("sweeps", SWEEPS), self.sweeps),
            (("sweeps in another pid namespace", self.sweeps), self.foreign),
            (("kills", 3), self.kills),
            (("probes that fail", 3), self.failures),
            (("directories in a batch", 2), self.batch),
        ];
        let over = most.into_iter().filter(|((_, most), asked)| asked > most);
        let over = over.map(|((what, most), asked)| {
            format!("{what}: {asked} were asked for, {most} is the most")
        });
        // A sweep that may hold none looks at none.
        let none = (self.batch == 0)
            .then(|| "directories in a batch: 0 were asked for, 1 is the least".to_owned());
        let wrong: Vec<String> = over.chain(none).collect();
        if wrong.is_empty() { Ok(()) } else { Err(OutOfBounds(wrong)) }
    }

    /// Whether a sweep is in another pid namespace than the owners.
    #[inline]
    pub fn is_foreign(&self, sweep: usize) -> bool {
        sweep >= self.sweeps - self.foreign
    }

    /// Whether the sweeps may be exchanged without a difference to anything.
    pub fn sweeps_are_alike(&self) -> bool {
        self.sweeps == 2 && self.foreign != 1 && !self.word
    }
}
