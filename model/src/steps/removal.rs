//! A removal (r1), which a sweep and a close make alike, call by call.

use super::Turn;
use crate::act::Act;
use crate::rules::{Rule, Rules};
use crate::setting::{Content, Place};
use crate::state::{COMMANDS, Holder, Look, Name, Record, State, Task};
use crate::truth::{Broken, Escape, Harm, Property, Why};

/// The calls of a removal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Removal {
    Walk,
    Rename,
    Mark,
    EmptyFiles,
    EmptyCommands,
    Unlink,
    RemoveDir,
}

/// From the inside out.
const EMPTYING: [Removal; 4] =
    [Removal::EmptyFiles, Removal::EmptyCommands, Removal::Unlink, Removal::RemoveDir];

/// The other way round.
const OUTSIDE_FIRST: [Removal; 4] =
    [Removal::Unlink, Removal::EmptyCommands, Removal::EmptyFiles, Removal::RemoveDir];

fn emptying(rules: Rules) -> [Removal; 4] {
    if rules.has(Rule::R1Order) { EMPTYING } else { OUTSIDE_FIRST }
}

/// What comes after a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Then {
    On(Removal),
    /// The directory is gone.
    Finished,
    /// It stays, and is told.
    Kept,
}

/// A call that was made.
pub(super) struct Removed {
    pub(super) next: State,
    pub(super) then: Then,
    pub(super) act: Act,
    pub(super) broken: Option<Broken>,
    pub(super) escape: Option<Escape>,
}

impl Removal {
    /// The steps by the names that owners and sweeps have for them.
    const NAMES: [(Removal, Task, Look); 7] = [
        (Removal::Walk, Task::Walk, Look::Walk),
        (Removal::Rename, Task::Rename, Look::Rename),
        (Removal::Mark, Task::Mark, Look::Mark),
        (Removal::EmptyFiles, Task::EmptyFiles, Look::EmptyFiles),
        (Removal::EmptyCommands, Task::EmptyCommands, Look::EmptyCommands),
        (Removal::Unlink, Task::Unlink, Look::Unlink),
        (Removal::RemoveDir, Task::RemoveDir, Look::RemoveDir),
    ];

    pub(super) fn of_task(task: Task) -> Option<Removal> {
        Removal::NAMES.iter().find(|(_, it, _)| *it == task).map(|(step, ..)| *step)
    }

    pub(super) fn of_look(look: Look) -> Option<Removal> {
        Removal::NAMES.iter().find(|(.., it)| *it == look).map(|(step, ..)| *step)
    }

    pub(super) fn task(self) -> Task {
        // OK because the names are in the order of the steps.
        Removal::NAMES[self as usize].1
    }

    pub(super) fn look(self) -> Look {
        // OK as above.
        Removal::NAMES[self as usize].2
    }
}

impl Turn<'_> {
    /// Makes the next call of a removal, by somebody who is in another pid namespace or not.
    pub(super) fn removal(&self, dir: usize, step: Removal, foreign: bool) -> Removed {
        let mut removed = match step {
            Removal::Walk => return self.walk(dir),
            Removal::Mark => return self.mark(dir),
            Removal::Rename => self.rename(dir),
            Removal::EmptyFiles => self.empty_files(dir),
            Removal::EmptyCommands => self.empty_commands(dir),
            Removal::Unlink => {
                let mut next = *self.now;
                next.dirs[dir].set_record(Record::Missing);
                self.did(next, self.after(Removal::Unlink), Act::Unlink)
            }
            Removal::RemoveDir => self.remove_dir(dir),
        };
        self.judge(dir, foreign, &mut removed);
        removed
    }

    fn did(&self, next: State, then: Then, act: Act) -> Removed {
        Removed { next, then, act, broken: None, escape: None }
    }

    fn after(&self, step: Removal) -> Then {
        let order = emptying(self.setting.rules);
        let at = order.iter().position(|it| *it == step);
        // Behind the last of them nothing comes.
        at.and_then(|at| order.get(at + 1)).map_or(Then::Finished, |step| Then::On(*step))
    }

    /// What the step does to others, where it did anything.
    fn judge(&self, dir: usize, foreign: bool, removed: &mut Removed) {
        if removed.broken.is_some() || removed.then == Then::Kept {
            return;
        }
        if self.now.dirs[dir].name() == Name::Aside {
            removed.broken = Some(Broken::new(Property::S2, Why::Outside));
            return;
        }
        let broken = |property, why| Some(Broken::new(property, why));
        removed.broken = match self.setting.content_of(dir) {
            Content::Nested => broken(Property::S1, Why::NestedInUse),
            Content::ForeignClaim | Content::Copy => broken(Property::S2, Why::Outside),
            Content::Damage if !self.setting.word => broken(Property::S3, Why::MustBeKept),
            Content::Mount => broken(Property::S3, Why::MustBeKept),
            _ => None,
        };
        match self.now.harm(self.setting, dir, foreign) {
            Harm::None => {}
            Harm::Escape(escape) => {
                removed.escape = Some(escape);
                let loses = matches!(removed.act, Act::Unlink | Act::RemoveId | Act::RemoveEntry);
                removed.next.dirs[dir].set_lost(loses || self.now.dirs[dir].lost());
            }
            // What an escape has left proves nothing any more.
            Harm::To(_) if self.now.dirs[dir].lost() => {}
            Harm::To(actor) => removed.broken = broken(Property::S1, Why::InUse(actor)),
        }
    }

    fn walk(&self, dir: usize) -> Removed {
        let rules = self.setting.rules;
        let it = self.now.dirs[dir];
        let looks = rules.has(Rule::R1Walk);
        let in_the_way = match self.setting.content_of(dir) {
            Content::Mount if looks && !rules.has(Rule::H2Mount) => {
                let mut removed = self.did(*self.now, Then::Kept, Act::Walk(true));
                removed.broken = Some(Broken::new(Property::S2, Why::Outside));
                return removed;
            }
            Content::Mount => looks,
            Content::Nested => looks && rules.has(Rule::H5Held),
            _ => false,
        };
        let then = if in_the_way {
            Then::Kept
        } else if it.name() != Name::Published && it.name() != Name::Aside {
            // Stagings and tombstones are removed under their own names.
            Then::On(emptying(rules)[0])
        } else if self.setting.place != Place::Full {
            Then::On(Removal::Rename)
        } else if rules.has(Rule::R1Mark) {
            Then::On(Removal::Mark)
        } else {
            Then::On(emptying(rules)[0])
        };
        self.did(*self.now, then, if looks { Act::Walk(!in_the_way) } else { Act::Skip })
    }

    /// Two calls: the record's name, then the mode.
    fn mark(&self, dir: usize) -> Removed {
        let mut next = *self.now;
        if self.now.dirs[dir].record() == Record::Owner {
            next.dirs[dir].set_record(Record::Released);
            return self.did(next, Then::On(Removal::Mark), Act::Release(true));
        }
        next.dirs[dir].set_begun(true);
        self.did(next, Then::On(emptying(self.setting.rules)[0]), Act::Mark)
    }

    fn rename(&self, dir: usize) -> Removed {
        let mut next = *self.now;
        match self.now.dirs[dir].name() {
            Name::Published => {
                next.dirs[dir].set_name(Name::Tombstone);
                self.did(next, Then::On(emptying(self.setting.rules)[0]), Act::Rename(true))
            }
            // The name leads to somebody else's directory by now.
            Name::Aside => self.did(next, Then::On(Removal::EmptyFiles), Act::Rename(true)),
            _ => self.did(next, Then::Kept, Act::Rename(false)),
        }
    }

    fn empty_files(&self, dir: usize) -> Removed {
        let rules = self.setting.rules;
        let mut next = *self.now;
        let stuck = match self.setting.content_of(dir) {
            Content::Immutable => true,
            Content::ForeignDir => rules.has(Rule::H4Uid),
            Content::Mount => rules.has(Rule::H2Mount),
            Content::Nested => rules.has(Rule::H5Held),
            _ => false,
        };
        if stuck {
            return self.did(next, Then::Kept, Act::EmptyFiles(false));
        }
        next.dirs[dir].set_files(false);
        let mut removed = self.did(next, self.after(Removal::EmptyFiles), Act::EmptyFiles(true));
        let outside = match self.setting.content_of(dir) {
            Content::Link => !rules.has(Rule::H3Link),
            Content::ForeignDir | Content::Mount => true,
            _ => false,
        };
        if outside {
            removed.broken = Some(Broken::new(Property::S2, Why::Outside));
        }
        removed
    }

    /// One entry after the other, the identity of each first.
    fn empty_commands(&self, dir: usize) -> Removed {
        let mut next = *self.now;
        let again = Then::On(Removal::EmptyCommands);
        for command in 0..COMMANDS {
            if self.now.claim() != dir || !self.now.dirs[dir].commands() {
                break;
            }
            if self.now.entries[command].id() {
                next.entries[command].set_id(false);
                return self.did(next, again, Act::RemoveId);
            }
            if self.now.entries[command].file() {
                next.entries[command].set_file(false);
                return self.did(next, again, Act::RemoveEntry);
            }
        }
        next.dirs[dir].set_commands(false);
        self.did(next, self.after(Removal::EmptyCommands), Act::RemoveCommands)
    }

    fn remove_dir(&self, dir: usize) -> Removed {
        let mut next = *self.now;
        let it = self.now.dirs[dir];
        if it.files() || it.commands() || it.record() != Record::Missing {
            return self.did(next, Then::Kept, Act::RemoveDir(false));
        }
        next.dirs[dir] = Default::default();
        next.dirs[dir].set_name(Name::Removed);
        next.dirs[dir].set_lock(Holder::Nobody);
        self.did(next, Then::Finished, Act::RemoveDir(true))
    }
}
