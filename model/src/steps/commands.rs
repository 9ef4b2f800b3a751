//! Commands and their children (p2), and what else the first owner forks.

use super::Turn;
use crate::act::{Act, Actor};
use crate::rules::Rule;
use crate::state::{COMMANDS, Child, Forked, ForkedProcess, Holder, Stage, State, Task};

impl Turn<'_> {
    /// What a command or its child can do next.
    pub(super) fn command(&mut self, command: usize) {
        match self.now.commands[command].stage() {
            Stage::Forked | Stage::Grouped | Stage::Named => self.before_exec(command),
            Stage::Running => self.running(command),
            Stage::Zombie => {
                let mut next = *self.now;
                next.commands[command].set_stage(Stage::Gone);
                self.go(Actor::Command(command), Act::Reaped, next);
            }
            _ => {}
        }
        if self.now.commands[command].child().lives() {
            self.child(command);
        }
    }

    /// Between fork and exec.
    fn before_exec(&mut self, command: usize) {
        let rules = self.setting.rules;
        let actor = Actor::Command(command);
        let mut next = *self.now;
        // Where the entry comes later, a child that is faster has none to write into.
        let entered = rules.has(Rule::P1First) || self.now.entries[command].file();
        let writes = rules.has(Rule::P2Child) && rules.has(Rule::P2Id) && entered;
        match self.now.commands[command].stage() {
            Stage::Forked => {
                next.commands[command].set_stage(Stage::Grouped);
                self.go(actor, Act::Group(rules.has(Rule::P2Group)), next);
            }
            Stage::Grouped if writes => {
                let done = self.now.dirs[self.now.claim()].commands();
                if done {
                    next.entries[command].set_id(true);
                    next.commands[command].set_stage(Stage::Named);
                } else {
                    next.end_command(command);
                }
                self.go(actor, Act::Name(done), next);
            }
            _ => {
                let it = &mut next.commands[command];
                it.set_stage(Stage::Running);
                if rules.has(Rule::C5Exec) {
                    it.set_lease(false);
                }
                self.go(actor, Act::Exec, next);
            }
        }
    }

    fn running(&mut self, command: usize) {
        let habits = self.setting.habits;
        let actor = Actor::Command(command);
        let it = self.now.commands[command];
        let mut change = |act, change: &dyn Fn(&mut State)| {
            let mut next = *self.now;
            change(&mut next);
            self.go(actor, act, next);
        };
        change(Act::End, &|next| next.end_command(command));
        if habits.child && it.child() == Child::None {
            change(Act::LeaveChild, &|next| {
                let it = &mut next.commands[command];
                it.set_child(Child::InGroup);
                it.set_child_entry(it.entry());
                it.set_child_inside(it.inside());
                it.set_child_environment(it.environment());
                it.set_child_lease(it.lease());
            });
        }
        if habits.closes && (it.entry() || it.lease()) {
            change(Act::CloseAll, &|next| {
                next.commands[command].set_entry(false);
                next.commands[command].set_lease(false);
            });
        }
        if habits.leaves {
            let inside = !it.inside();
            change(move_act(inside), &|next| next.commands[command].set_inside(inside));
        }
        if habits.forgets && it.environment() {
            change(Act::Forget, &|next| next.commands[command].set_environment(false));
        }
        if habits.unlocks {
            self.unlock(actor, command, it.entry(), it.lease());
        }
    }

    fn child(&mut self, command: usize) {
        let habits = self.setting.habits;
        let actor = Actor::Child(command);
        let it = self.now.commands[command];
        let mut change = |act, change: &dyn Fn(&mut State)| {
            let mut next = *self.now;
            change(&mut next);
            self.go(actor, act, next);
        };
        change(Act::End, &|next| next.end_child(command));
        if habits.daemon && it.child() == Child::InGroup {
            change(Act::LeaveGroup, &|next| next.commands[command].set_child(Child::Outside));
        }
        if habits.closes && (it.child_entry() || it.child_lease()) {
            change(Act::CloseAll, &|next| {
                next.commands[command].set_child_entry(false);
                next.commands[command].set_child_lease(false);
            });
        }
        if habits.leaves {
            let inside = !it.child_inside();
            change(move_act(inside), &|next| next.commands[command].set_child_inside(inside));
        }
        if habits.forgets && it.child_environment() {
            change(Act::Forget, &|next| next.commands[command].set_child_environment(false));
        }
        if habits.unlocks {
            self.unlock(actor, command, it.child_entry(), it.child_lease());
        }
    }

    /// An unlock frees the lock for every holder of the description.
    fn unlock(&mut self, actor: Actor, command: usize, entry: bool, lease: bool) {
        let survives = self.setting.rules.has(Rule::P2Lock);
        let mut next = *self.now;
        if entry && survives {
            next.entries[command].set_locked(false);
        }
        let dir = self.now.claim();
        if lease && next.dirs[dir].lock() == Holder::Owner {
            next.dirs[dir].set_lock(Holder::Nobody);
        }
        if next != *self.now {
            self.go(actor, Act::Unlock, next);
        }
    }

    /// The worker: it closes all that belongs to the claim when it is asked to close it (c6).
    pub(super) fn worker(&mut self) {
        let it = self.now.worker;
        if it.life() != Forked::Copied {
            return;
        }
        if it.task() != Task::Hold {
            if it.task() != Task::Done {
                self.close(Actor::Worker);
            }
            return;
        }
        let mut next = *self.now;
        next.end_worker(Forked::Ended);
        self.go(Actor::Worker, Act::End, next);
        if self.setting.rules.has(Rule::C6Worker) {
            let mut next = *self.now;
            next.end_worker(Forked::Parted);
            self.go(Actor::Worker, Act::CloseAll, next);
        } else {
            self.close_ask(Actor::Worker);
        }
    }

    /// The child of another thread.
    pub(super) fn stranger(&mut self) {
        let rules = self.setting.rules;
        let it = self.now.stranger;
        let mut next = *self.now;
        match it.life() {
            Forked::Copied => {
                next.stranger.exec(rules.has(Rule::C5Exec), rules.has(Rule::P1Exec));
                self.go(Actor::Stranger, Act::Exec, next);
            }
            Forked::Parted => {
                next.stranger = Default::default();
                next.stranger.set_life(Forked::Ended);
                self.go(Actor::Stranger, Act::End, next);
            }
            _ => {}
        }
    }
}

/// It goes into the claim, or out of it, but knows the path.
fn move_act(inside: bool) -> Act {
    if inside { Act::EnterClaim } else { Act::LeaveClaim }
}

impl ForkedProcess {
    /// What it has afterwards is what survives.
    pub(super) fn exec(&mut self, lease_goes: bool, entries_go: bool) {
        self.set_life(Forked::Parted);
        self.set_lease(self.lease() && !lease_goes);
        for command in 0..COMMANDS {
            self.set_entry(command, self.entry(command) && !entries_go);
        }
    }
}

impl State {
    /// Its descriptors are closed; it is a zombie.
    pub(super) fn end_command(&mut self, command: usize) {
        let it = &mut self.commands[command];
        it.set_stage(Stage::Zombie);
        it.set_entry(false);
        it.set_lease(false);
        it.set_inside(false);
        it.set_environment(false);
    }

    pub(super) fn end_child(&mut self, command: usize) {
        let it = &mut self.commands[command];
        it.set_child(Child::Ended);
        it.set_child_entry(false);
        it.set_child_lease(false);
        it.set_child_inside(false);
        it.set_child_environment(false);
    }

    pub(super) fn end_worker(&mut self, life: Forked) {
        self.worker = Default::default();
        self.worker.set_life(life);
        let dir = self.claim();
        if self.dirs[dir].lock() == Holder::Rogue {
            self.dirs[dir].set_lock(Holder::Nobody);
        }
    }
}
