//! The first owner's spawns (p1, p3) and withdrawals (p5).

use super::Turn;
use crate::act::{Act, Actor};
use crate::proof::Answer;
use crate::rules::Rule;
use crate::state::{Stage, State, Task};

const OWNER: Actor = Actor::Owner(0);

impl Turn<'_> {
    /// The next call of a spawn or of a withdrawal.
    pub(super) fn spawn(&mut self) {
        let it = self.now.owners[0];
        let command = usize::from(it.command());
        // In the middle of a spawn other threads fork, too.
        self.fork_others();
        match it.task() {
            Task::EntryMake => self.entry_make(command),
            Task::EntryLock => {
                let mut next = *self.now;
                next.entries[command].set_locked(true);
                next.owners[0].set_entry(command, true);
                let late = !self.setting.rules.has(Rule::P1First);
                let then = if late { Task::EntryClose } else { Task::Fork };
                next.owners[0].set_task(then);
                self.go(OWNER, Act::EntryLock, next);
            }
            Task::Fork => self.fork(command),
            Task::EntryName => {
                let mut next = *self.now;
                next.entries[command].set_id(self.has_commands());
                next.owners[0].set_task(Task::EntryClose);
                self.go(OWNER, Act::Name(self.has_commands()), next);
            }
            Task::EntryClose => {
                let mut next = *self.now;
                let closes = self.setting.rules.has(Rule::P3Copy);
                if closes {
                    next.owners[0].set_entry(command, false);
                }
                next.owners[0].set_task(Task::Hold);
                self.go(OWNER, Act::EntryClose(closes), next);
            }
            task => self.withdraw(command, task == Task::WithdrawFirst),
        }
    }

    pub(super) fn begin_spawn(&mut self, command: usize) {
        let mut begun = *self.now;
        begun.owners[0].set_command(command == 1);
        let late = !self.setting.rules.has(Rule::P1First);
        begun.owners[0].set_task(if late { Task::Fork } else { Task::EntryMake });
        // To begin is no call: the first one is made at once.
        let turn = &mut Turn { setting: self.setting, now: &begun, emit: &mut *self.emit };
        if late { turn.fork(command) } else { turn.entry_make(command) }
    }

    pub(super) fn begin_withdrawal(&mut self, command: usize) {
        let entry = self.now.entries[command];
        if !(entry.file() || entry.id()) || !self.has_commands() {
            return;
        }
        let answer = self.may_withdraw(command);
        if answer != Answer::Gone {
            // It asks again when something has changed.
            return;
        }
        let mut next = *self.now;
        next.owners[0].set_command(command == 1);
        next.owners[0].set_task(Task::WithdrawFirst);
        self.go(OWNER, Act::Withdraw(answer), next);
    }

    fn has_commands(&self) -> bool {
        self.now.dirs[self.now.claim()].commands()
    }

    fn entry_make(&mut self, command: usize) {
        let mut next = *self.now;
        let done = self.has_commands();
        if done {
            next.entries[command].set_file(true);
            next.owners[0].set_task(Task::EntryLock);
        } else {
            next.owners[0].set_task(Task::Hold);
        }
        self.go(OWNER, Act::EntryMake(done), next);
    }

    fn fork(&mut self, command: usize) {
        let mut next = *self.now;
        let has = self.now.owners[0];
        let it = &mut next.commands[command];
        it.set_stage(Stage::Forked);
        it.set_entry(has.entry(command));
        it.set_lease(has.lease());
        it.set_unleased(!has.lease());
        it.set_inside(true);
        it.set_environment(true);
        let then = if !self.setting.rules.has(Rule::P1First) {
            Task::EntryMake
        } else if !self.setting.rules.has(Rule::P2Child) {
            Task::EntryName
        } else {
            Task::EntryClose
        };
        next.owners[0].set_task(then);
        self.go(OWNER, Act::Fork(command), next);
    }

    /// The proof that a withdrawal needs (p5).
    fn may_withdraw(&self, command: usize) -> Answer {
        let rules = self.setting.rules;
        if !rules.has(Rule::P5Proof) {
            let reaped = matches!(self.now.commands[command].stage(), Stage::Gone | Stage::Reused);
            return if reaped { Answer::Gone } else { Answer::Alive };
        }
        let lock = self.now.entry_lock(command);
        if lock != Answer::Gone && rules.has(Rule::P5Lock) {
            return lock;
        }
        if !rules.has(Rule::P5Group) {
            return Answer::Gone;
        }
        self.now.group(self.setting, command, false)
    }

    fn withdraw(&mut self, command: usize, first: bool) {
        let mut next = *self.now;
        let id = first == self.setting.rules.has(Rule::P5Order);
        let entry = &mut next.entries[command];
        if id {
            entry.set_id(false)
        } else {
            entry.set_file(false)
        }
        next.owners[0].set_task(if first { Task::WithdrawSecond } else { Task::Hold });
        self.go(OWNER, if id { Act::RemoveId } else { Act::RemoveEntry }, next);
    }
}

impl State {
    /// Whether the registry has anything of this command.
    pub(super) fn is_entered(&self, command: usize) -> bool {
        self.entries[command].file() || self.entries[command].id()
    }
}
