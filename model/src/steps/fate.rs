//! What befalls processes and the machine: kills, reaping, numbers that are given again, a
//! reboot, a directory that is moved.

use super::Turn;
use crate::act::{Act, Actor};
use crate::bits::Few;
use crate::setting::Setting;
use crate::state::{
    COMMANDS, Child, DIRS, Forked, Holder, Life, Name, OWNERS, SWEEPS, Stage, State, Sweep, Task,
};

impl Turn<'_> {
    /// What can befall anybody.
    pub(super) fn fate(&mut self) {
        for owner in 0..self.setting.owners {
            self.fate_of_owner(owner);
        }
        if self.now.left.kills().get() > 0 {
            for command in 0..self.setting.commands {
                let stage = self.now.commands[command].stage();
                if stage.lives() && stage != Stage::Running {
                    let mut next = self.one_kill_less();
                    next.end_command(command);
                    self.go(Actor::Command(command), Act::Killed, next);
                }
            }
            for sweep in 0..self.setting.sweeps {
                if self.now.sweeps[sweep] != Sweep::default() {
                    let mut next = self.one_kill_less();
                    next.end_sweep(sweep);
                    self.go(Actor::Sweep(sweep), Act::Killed, next);
                }
            }
        }
        if self.now.left.reuse() {
            self.reuse();
        }
        if self.now.left.reboot() {
            let mut next = *self.now;
            next.left.set_reboot(false);
            next.boot();
            self.go(Actor::World, Act::Reboot, next);
        }
        if self.now.left.swap() {
            for dir in 0..DIRS {
                let it = self.now.dirs[dir];
                let named = matches!(it.name(), Name::Staging | Name::Published);
                if named && it.lock() == Holder::Nobody {
                    let mut next = *self.now;
                    next.left.set_swap(false);
                    next.dirs[dir].set_name(Name::Aside);
                    self.go(Actor::World, Act::Swap(dir), next);
                }
            }
        }
    }

    fn one_kill_less(&self) -> State {
        let mut next = *self.now;
        next.left.set_kills(Few::new(next.left.kills().get() - 1));
        next
    }

    fn fate_of_owner(&mut self, owner: usize) {
        let actor = Actor::Owner(owner);
        match self.now.owners[owner].life() {
            Life::Alive if self.now.left.kills().get() > 0 => {
                let mut next = self.one_kill_less();
                next.end_owner(owner);
                self.go(actor, Act::Killed, next);
            }
            Life::Zombie => {
                let mut next = *self.now;
                next.owners[owner].set_life(Life::Gone);
                self.go(actor, Act::Reaped, next);
            }
            _ => {}
        }
    }

    /// A number that is free is given to another process.
    fn reuse(&mut self) {
        for owner in 0..self.setting.owners {
            if self.now.owners[owner].life() == Life::Gone {
                let mut next = *self.now;
                next.left.set_reuse(false);
                next.owners[owner].set_life(Life::Reused);
                self.go(Actor::Owner(owner), Act::Reuse, next);
            }
        }
        for command in 0..self.setting.commands {
            if self.now.commands[command].is_free() {
                let mut next = *self.now;
                next.left.set_reuse(false);
                next.commands[command].set_stage(Stage::Reused);
                self.go(Actor::Command(command), Act::Reuse, next);
            }
        }
    }
}

impl crate::state::Command {
    /// Whether its number may be given away: not while its group has a member.
    fn is_free(self) -> bool {
        self.stage() == Stage::Gone && self.child() != Child::InGroup
    }
}

/// What has become of the numbers of processes that ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Numbers {
    /// Nobody has reaped them.
    Zombies,
    /// They are free.
    Free,
    /// Others have them.
    Reused,
}

impl Numbers {
    /// All that can be under a setting.
    pub(crate) fn of(setting: &Setting) -> &'static [Numbers] {
        let all = &[Numbers::Zombies, Numbers::Free, Numbers::Reused];
        if setting.reuse { all } else { &all[..2] }
    }
}

impl State {
    fn end_owner(&mut self, owner: usize) {
        let it = &mut self.owners[owner];
        it.set_life(Life::Zombie);
        it.set_task(Task::Done);
        it.set_lease(false);
        it.set_entry(0, false);
        it.set_entry(1, false);
        it.set_command(false);
        it.set_drops(false);
        let dir = it.dir().get();
        if self.dirs[dir].lock() == Holder::Closer {
            self.dirs[dir].set_lock(Holder::Nobody);
        }
    }

    fn end_sweep(&mut self, sweep: usize) {
        self.sweeps[sweep] = Sweep::default();
        for dir in 0..DIRS {
            if self.dirs[dir].lock() == Holder::sweep(sweep) {
                self.dirs[dir].set_lock(Holder::Nobody);
            }
        }
    }

    /// Everybody ends who uses anything, and every sweep. Who has nothing to do with the claims
    /// lives on, and so does what it holds.
    pub(crate) fn ended(mut self, setting: &Setting, numbers: Numbers) -> State {
        for owner in 0..OWNERS {
            // Who has given its claim up uses nothing, and lives on.
            let it = self.owners[owner];
            if it.life() == Life::Alive && it.task() != Task::Done {
                self.end_owner(owner);
            }
            let life = self.owners[owner].life();
            if matches!(life, Life::Zombie | Life::Gone) {
                self.owners[owner].set_life(match numbers {
                    Numbers::Zombies => life,
                    Numbers::Free => Life::Gone,
                    Numbers::Reused => Life::Reused,
                });
            }
        }
        for command in 0..COMMANDS {
            if self.commands[command].stage().lives() {
                self.end_command(command);
            }
            if self.commands[command].child().lives() {
                self.end_child(command);
            }
            let stage = self.commands[command].stage();
            if matches!(stage, Stage::Zombie | Stage::Gone) {
                self.commands[command].set_stage(match numbers {
                    Numbers::Zombies => stage,
                    Numbers::Free => Stage::Gone,
                    Numbers::Reused => Stage::Reused,
                });
            }
        }
        self.end_worker(Forked::Ended);
        if self.stranger.life() == Forked::Copied {
            let rules = setting.rules;
            self.stranger
                .exec(rules.has(crate::rules::Rule::C5Exec), rules.has(crate::rules::Rule::P1Exec));
        }
        for sweep in 0..SWEEPS {
            self.end_sweep(sweep);
        }
        self.left = Default::default();
        self.settle(setting);
        self
    }

    /// No process of before is left, and no lock.
    fn boot(&mut self) {
        for owner in 0..OWNERS {
            if self.owners[owner].life() != Life::Unborn {
                self.end_owner(owner);
                self.owners[owner].set_life(Life::Before);
            }
        }
        for command in 0..COMMANDS {
            if self.commands[command].stage() != Stage::None {
                self.commands[command] = Default::default();
                self.commands[command].set_stage(Stage::Before);
            }
            self.entries[command].set_locked(false);
        }
        self.worker = Default::default();
        self.worker.set_life(Forked::Ended);
        self.stranger = Default::default();
        self.stranger.set_life(Forked::Ended);
        self.sweeps = Default::default();
        for dir in 0..DIRS {
            self.dirs[dir].set_lock(Holder::Nobody);
        }
    }
}
