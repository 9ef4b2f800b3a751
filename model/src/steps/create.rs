//! Owners: making a claim (c1 to c4), and what one does that holds it.

use super::Turn;
use crate::act::{Act, Actor};
use crate::bits::Few;
use crate::rules::Rule;
use crate::setting::{Place, Setting};
use crate::state::{DIRS, Forked, Holder, Life, Name, Record, Stage, State, Task};
use crate::truth::{Broken, Property, Why};

/// The calls of a creation, in the order of the protocol.
const CREATION: [Task; 9] = [
    Task::Make,
    Task::Open,
    Task::Lock,
    Task::Compare,
    Task::Record,
    Task::Commands,
    Task::Files,
    Task::Publish,
    Task::Hold,
];

/// The same without c1: locked when it is published.
const LOCKED_LATE: [Task; 9] = [
    Task::Make,
    Task::Open,
    Task::Record,
    Task::Commands,
    Task::Files,
    Task::Publish,
    Task::Lock,
    Task::Compare,
    Task::Hold,
];

/// What comes after a call of the creation.
fn after(setting: &Setting, task: Task) -> Task {
    let order = if setting.rules.has(Rule::C1Lock) { CREATION } else { LOCKED_LATE };
    let at = order.iter().position(|it| *it == task);
    // OK because no creation goes on behind `Hold`, its last.
    order[at.expect("a call of the creation") + 1]
}

impl Turn<'_> {
    /// What an owner can do next.
    pub(super) fn owner(&mut self, owner: usize) {
        let it = self.now.owners[owner];
        match it.life() {
            Life::Unborn | Life::Alive => {}
            _ => return,
        }
        match it.task() {
            Task::Make => self.make(owner),
            Task::Open
            | Task::Lock
            | Task::Compare
            | Task::Record
            | Task::Commands
            | Task::Files
            | Task::Publish => self.create(owner),
            Task::Unmake => self.unmake(owner),
            Task::Hold => self.hold(owner),
            Task::EntryMake
            | Task::EntryLock
            | Task::Fork
            | Task::EntryName
            | Task::EntryClose
            | Task::WithdrawFirst
            | Task::WithdrawSecond => self.spawn(),
            Task::Done => {}
            _ => self.close(Actor::Owner(owner)),
        }
    }

    fn make(&mut self, owner: usize) {
        let mut next = *self.now;
        let dir = next.owners[owner].dir().get();
        let published = !self.setting.rules.has(Rule::C3Publish);
        next.dirs[dir].set_name(if published { Name::Published } else { Name::Staging });
        next.owners[owner].set_life(Life::Alive);
        next.owners[owner].set_task(after(self.setting, Task::Make));
        self.go(Actor::Owner(owner), Act::Make(dir), next);
    }

    fn create(&mut self, owner: usize) {
        let it = self.now.owners[owner];
        let task = it.task();
        let dir = it.dir().get();
        let mut next = *self.now;
        next.owners[owner].set_task(after(self.setting, task));
        let is = self.now.dirs[dir];
        let exists = is.name() != Name::Removed;
        let named = matches!(is.name(), Name::Staging | Name::Published);
        let (act, done) = match task {
            Task::Open => (Act::Open(dir, is.name()), named),
            Task::Lock => return self.lock_new(owner),
            Task::Compare => {
                (Act::Compare(named), named || !self.setting.rules.has(Rule::C2Creator))
            }
            Task::Record => {
                next.dirs[dir].set_record(Record::Owner);
                (Act::Record(exists), exists)
            }
            Task::Commands => {
                next.dirs[dir].set_commands(true);
                (Act::Commands(exists), exists)
            }
            Task::Files => {
                next.dirs[dir].set_files(true);
                (Act::Files(exists), exists)
            }
            _ => return self.publish(owner),
        };
        let next = if done { next } else { self.lost(owner) };
        self.go(Actor::Owner(owner), act, next);
    }

    /// The rename goes by the name, whatever that leads to by now.
    fn publish(&mut self, owner: usize) {
        let dir = self.now.owners[owner].dir().get();
        let mut next = *self.now;
        next.owners[owner].set_task(after(self.setting, Task::Publish));
        let (done, broken) = match self.now.dirs[dir].name() {
            Name::Staging | Name::Published => (true, None),
            Name::Aside => (true, Some(Broken::new(Property::S2, Why::Outside))),
            _ => (false, None),
        };
        if done {
            next.dirs[dir].set_name(Name::Published);
        } else {
            next = self.lost(owner);
        }
        self.end(Actor::Owner(owner), Act::Publish(done), next, broken, None);
    }

    fn lock_new(&mut self, owner: usize) {
        let dir = self.now.owners[owner].dir().get();
        let mut next = *self.now;
        next.owners[owner].set_task(after(self.setting, Task::Lock));
        next.owners[owner].set_lease(true);
        let actor = Actor::Owner(owner);
        if self.setting.place == Place::NoLocks {
            if self.setting.rules.has(Rule::C4Place) {
                let mut refused = *self.now;
                refused.dirs[dir] = Default::default();
                refused.dirs[dir].set_name(Name::Removed);
                refused.owners[owner].set_task(Task::Done);
                self.go(actor, Act::Refuse, refused);
            } else {
                self.go(actor, Act::LockNothing, next);
            }
            return;
        }
        let mut locked = next;
        locked.dirs[dir].set_lock(Holder::Owner);
        for free in self.lock_answers(dir) {
            let next = if free { locked } else { self.lost(owner) };
            self.go(actor, Act::Lock(free), next);
        }
    }

    /// A creator that lost its staging unlocks what it has.
    fn lost(&self, owner: usize) -> State {
        let mut next = *self.now;
        let dir = next.owners[owner].dir().get();
        next.owners[owner].set_lease(false);
        if next.dirs[dir].lock() == Holder::Owner {
            next.dirs[dir].set_lock(Holder::Nobody);
        }
        next.owners[owner].set_task(Task::Unmake);
        next
    }

    /// It removes what it lost, by its name and only if nothing is in it, and makes another one.
    fn unmake(&mut self, owner: usize) {
        let mut next = *self.now;
        let dir = next.owners[owner].dir().get();
        let is = self.now.dirs[dir];
        let empty = !is.files() && !is.commands() && is.record() == Record::Missing;
        let done = is.name() == Name::Staging && empty;
        if done {
            next.dirs[dir] = Default::default();
            next.dirs[dir].set_name(Name::Removed);
        }
        let more = self.setting.owners == 1 && dir + 1 < DIRS;
        if more {
            next.owners[owner].set_dir(Few::new(dir + 1));
        }
        next.owners[owner].set_task(if more { Task::Make } else { Task::Done });
        self.go(Actor::Owner(owner), Act::Unmake(done), next);
    }

    /// What an owner may begin while it uses its claim.
    fn hold(&mut self, owner: usize) {
        let actor = Actor::Owner(owner);
        let it = self.now.owners[owner];
        if self.setting.loses_lease && owner == 0 && it.lease() {
            let mut next = *self.now;
            next.owners[0].set_lease(false);
            self.go(actor, Act::LoseLease, next);
        }
        if owner != 0 {
            return;
        }
        self.fork_others();
        for command in 0..self.setting.commands {
            match self.now.commands[command].stage() {
                Stage::None => {
                    self.begin_spawn(command);
                    break;
                }
                stage if !stage.lives() => self.begin_withdrawal(command),
                _ => {}
            }
        }
        if self.setting.closes {
            self.close_ask(actor);
        }
    }

    /// A worker, and the child of another thread: they get copies of all descriptors.
    pub(super) fn fork_others(&mut self) {
        let it = self.now.owners[0];
        let entries = [it.entry(0), it.entry(1)];
        if self.setting.worker && self.now.worker.life() == Forked::None && it.lease() {
            let mut next = *self.now;
            next.worker.set_life(Forked::Copied);
            next.worker.set_lease(true);
            next.worker.set_task(Task::Hold);
            for (command, has) in entries.into_iter().enumerate() {
                next.worker.set_entry(command, has);
            }
            self.go(Actor::Owner(0), Act::ForkWorker, next);
        }
        if self.setting.stranger && self.now.stranger.life() == Forked::None {
            let mut next = *self.now;
            next.stranger.set_life(Forked::Copied);
            next.stranger.set_lease(it.lease());
            for (command, has) in entries.into_iter().enumerate() {
                next.stranger.set_entry(command, has);
            }
            self.go(Actor::Owner(0), Act::ForkStranger, next);
        }
    }
}
