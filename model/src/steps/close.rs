//! A close of the first owner, or of a worker that acts for it (c7, r4).

use super::Turn;
use super::removal::{Removal, Then};
use crate::act::{Act, Actor};
use crate::proof::Answer;
use crate::rules::Rule;
use crate::setting::Place;
use crate::state::{Forked, Holder, Name, Record, Stage, State, Task};
use crate::truth::{Broken, Property, Why};

impl Turn<'_> {
    /// The beginning of a close: a refusal gives nothing up, a drop does.
    pub(super) fn close_ask(&mut self, actor: Actor) {
        let dir = self.now.claim();
        let mut answer = self.now.commands_answer(self.setting, dir);
        if answer == Answer::Gone && self.scans() && self.now.is_seen(self.setting, dir) {
            answer = Answer::Alive;
        }
        let mut next = *self.now;
        next.set_task(actor, Task::CloseRelease);
        if answer == Answer::Gone {
            self.go(actor, Act::CloseAsk(answer), next);
            return;
        }
        if actor == Actor::Owner(0) && !self.has_reason_to_refuse() {
            let broken = Broken::new(Property::L1, Why::CloseRefused);
            self.end(actor, Act::CloseAsk(answer), *self.now, Some(broken), None);
        }
        if actor == Actor::Owner(0) {
            next.owners[0].set_drops(true);
            self.go(actor, Act::Drop, next);
        }
    }

    /// Whether a close has to look for evidence of life: a command was started once.
    fn scans(&self) -> bool {
        let started = self.now.commands.iter().any(|it| it.stage() != Stage::None);
        started && self.setting.rules.has(Rule::R4Scan)
    }

    /// Somebody besides the owner uses the claim, or is seen to, or holds a lock in it, be it for
    /// a moment; or an escape has left nothing that could be asked.
    fn has_reason_to_refuse(&self) -> bool {
        let commands = self.now.commands.iter();
        let lives = commands.into_iter().any(|it| it.stage().lives() || it.child().lives());
        let forked = |life| life == Forked::Copied;
        let lost = self.now.dirs[self.now.claim()].lost();
        lives || lost || forked(self.now.worker.life()) || forked(self.now.stranger.life())
    }

    /// The next call of a close.
    pub(super) fn close(&mut self, actor: Actor) {
        let dir = self.now.claim();
        let task = self.now.task(actor);
        if let Some(step) = Removal::of_task(task) {
            return self.close_removes(actor, dir, step);
        }
        let published = self.now.dirs[dir].name() == Name::Published;
        let mut next = *self.now;
        match task {
            Task::CloseRelease => self.close_release(actor, dir),
            Task::CloseLease => self.close_lease(actor, dir),
            Task::CloseOpen => {
                next.set_task(actor, if published { Task::CloseLock } else { Task::Done });
                self.go(actor, Act::Open(dir, self.now.dirs[dir].name()), next);
            }
            Task::CloseLock => self.close_lock(actor, dir),
            Task::GiveBack => {
                next.close_ends(actor, dir);
                self.go(actor, Act::GiveBack, next);
            }
            Task::CloseCompare => {
                self.asked(actor, Act::Compare(published), published, Task::CloseCommands);
            }
            Task::CloseCommands => {
                let answer = self.now.commands_answer(self.setting, dir);
                let then = if self.scans() { Task::CloseScan } else { Task::Walk };
                let gone = answer == Answer::Gone;
                self.asked(actor, Act::AskCommands(answer), gone, then);
            }
            Task::CloseScan => {
                let none = !self.now.is_seen(self.setting, dir);
                self.asked(actor, Act::Scan(none), none, Task::Walk);
            }
            _ => {}
        }
    }

    /// On to the next question, or the end, with the lease given back.
    fn asked(&mut self, actor: Actor, act: Act, on: bool, then: Task) {
        let mut next = *self.now;
        next.set_task(actor, if on { then } else { Task::GiveBack });
        self.go(actor, act, next);
    }

    fn close_release(&mut self, actor: Actor, dir: usize) {
        let mut next = *self.now;
        let it = self.now.dirs[dir];
        let marks = self.setting.rules.has(Rule::R4Release) && it.record() == Record::Owner;
        if marks {
            next.dirs[dir].set_record(Record::Released);
        }
        next.set_task(actor, Task::CloseLease);
        self.go(actor, Act::Release(marks), next);
    }

    fn close_lease(&mut self, actor: Actor, dir: usize) {
        let rules = self.setting.rules;
        let mut next = *self.now;
        let drops = actor == Actor::Owner(0) && self.now.owners[0].drops();
        if !rules.has(Rule::C7Afresh) && !drops {
            // Granted, if a copy of the same description has it, or nobody.
            let lock = self.now.dirs[dir].lock();
            let granted = matches!(lock, Holder::Owner | Holder::Nobody);
            if granted {
                next.dirs[dir].set_lock(Holder::Owner);
                next.set_task(actor, Task::CloseCompare);
            } else {
                next.close_ends(actor, dir);
            }
            return self.go(actor, Act::Lock(granted), next);
        }
        match actor {
            Actor::Worker => next.worker.set_lease(false),
            _ => next.owners[0].set_lease(false),
        }
        let unlocks = !rules.has(Rule::C5Unlock);
        if unlocks && next.dirs[dir].lock() == Holder::Owner {
            next.dirs[dir].set_lock(Holder::Nobody);
        }
        next.set_task(actor, if drops { Task::Done } else { Task::CloseOpen });
        self.go(actor, if unlocks { Act::UnlockLease } else { Act::CloseLease }, next);
    }

    fn close_lock(&mut self, actor: Actor, dir: usize) {
        if self.setting.place == Place::NoLocks {
            let mut next = *self.now;
            next.set_task(actor, Task::CloseCompare);
            return self.go(actor, Act::LockNothing, next);
        }
        for free in self.lock_answers(dir) {
            let mut next = *self.now;
            if free {
                next.dirs[dir].set_lock(holder(actor));
            }
            next.set_task(actor, if free { Task::CloseCompare } else { Task::Done });
            self.go(actor, Act::Lock(free), next);
            if !free {
                // Who has it may give it back in a moment, so it asks a few times.
                self.go(actor, Act::Lock(false), *self.now);
            }
        }
    }

    fn close_removes(&mut self, actor: Actor, dir: usize, step: Removal) {
        let mut removed = self.removal(dir, step, false);
        match removed.then {
            Then::On(step) => removed.next.set_task(actor, step.task()),
            Then::Finished => removed.next.close_ends(actor, dir),
            Then::Kept => removed.next.set_task(actor, Task::GiveBack),
        }
        self.end(actor, removed.act, removed.next, removed.broken, removed.escape);
    }
}

/// Whose description a close opens.
fn holder(actor: Actor) -> Holder {
    if actor == Actor::Worker { Holder::Rogue } else { Holder::Closer }
}

impl State {
    fn task(&self, actor: Actor) -> Task {
        if actor == Actor::Worker { self.worker.task() } else { self.owners[0].task() }
    }

    fn set_task(&mut self, actor: Actor, task: Task) {
        match actor {
            Actor::Worker => self.worker.set_task(task),
            _ => self.owners[0].set_task(task),
        }
    }

    fn close_ends(&mut self, actor: Actor, dir: usize) {
        let lock = self.dirs[dir].lock();
        let kept = match actor {
            Actor::Worker => self.worker.lease(),
            _ => self.owners[0].lease(),
        };
        if lock == holder(actor) || (lock == Holder::Owner && kept) {
            self.dirs[dir].set_lock(Holder::Nobody);
        }
        self.set_task(actor, Task::Done);
    }
}
