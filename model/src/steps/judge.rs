//! The probes: what is answered to l2, l3 and l4, from what the asker can see.

use crate::proof::Answer;
use crate::rules::{Rule, Rules};
use crate::setting::Setting;
use crate::state::{COMMANDS, Child, Life, Name, Record, Stage, State};

impl State {
    /// l2: whether the owner of a directory is gone, asked under its lease. `opened` is the name
    /// that the asker knows it by.
    pub(super) fn owner_answer(
        &self,
        setting: &Setting,
        dir: usize,
        opened: Name,
        foreign: bool,
    ) -> Answer {
        let it = self.dirs[dir];
        match it.record() {
            Record::Released => Answer::Gone,
            Record::Missing => {
                let progress = opened != Name::Published || it.begun();
                if progress || !setting.rules.has(Rule::L2Damage) {
                    Answer::Gone
                } else {
                    Answer::CannotTell
                }
            }
            Record::Owner => self.process_answer(setting, dir, foreign),
        }
    }

    fn process_answer(&self, setting: &Setting, dir: usize, foreign: bool) -> Answer {
        let rules = setting.rules;
        // What is there from the beginning has an owner that is long gone.
        let owner = self.owners.iter().find(|owner| owner.dir().get() == dir);
        let life = match owner {
            Some(owner) if setting.content_of(dir) == crate::setting::Content::Nothing => {
                owner.life()
            }
            _ => Life::Gone,
        };
        if foreign {
            return Answer::Gone;
        }
        let alive = match life {
            Life::Before => !rules.has(Rule::L2Boot) && setting.reuse,
            Life::Alive => true,
            Life::Zombie => !rules.has(Rule::L2Zombie),
            Life::Reused => !rules.has(Rule::L2Ticks),
            Life::Unborn | Life::Gone => false,
        };
        if alive { Answer::Alive } else { Answer::Gone }
    }

    /// The first half of l3: whether the lock of an entry is free.
    pub(super) fn entry_lock(&self, command: usize) -> Answer {
        let entry = self.entries[command];
        if !entry.file() {
            // An identity without its lock file, which no owner leaves.
            return if entry.id() { Answer::CannotTell } else { Answer::Gone };
        }
        if entry.locked() { Answer::Alive } else { Answer::Gone }
    }

    /// The second half of l3, where the lock is free: whether process and group are gone.
    pub(super) fn group(&self, setting: &Setting, command: usize, foreign: bool) -> Answer {
        let rules = setting.rules;
        let it = self.commands[command];
        if !self.entries[command].id() {
            return Answer::Gone;
        }
        if foreign && rules.has(Rule::L3Namespace) {
            return Answer::CannotTell;
        }
        if foreign || !rules.has(Rule::L3Group) {
            return Answer::Gone;
        }
        let member = it.child() == Child::InGroup && rules.has(Rule::P2Group);
        let alive = it.stage().lives()
            || member
            || match it.stage() {
                Stage::Zombie => !rules.has(Rule::L3Zombie),
                Stage::Reused => !rules.has(Rule::L2Ticks),
                Stage::Before => !rules.has(Rule::L2Boot) && setting.reuse,
                _ => false,
            };
        if alive { Answer::Alive } else { Answer::Gone }
    }

    /// l3 as a whole, for an owner that closes.
    pub(super) fn commands_answer(&self, setting: &Setting, dir: usize) -> Answer {
        if self.claim() != dir {
            return Answer::Gone;
        }
        for command in 0..setting.commands {
            let lock = self.entry_lock(command);
            if lock != Answer::Gone {
                return lock;
            }
            let group = self.group(setting, command, false);
            if group != Answer::Gone {
                return group;
            }
        }
        Answer::Gone
    }

    /// Whether a scan in the owners' pid namespace sees a process that uses the directory.
    pub(super) fn is_seen(&self, setting: &Setting, dir: usize) -> bool {
        !setting.habits.unreadable
            && self.claim() == dir
            && (0..COMMANDS).any(|command| self.command_is_seen(setting.rules, command))
    }

    fn command_is_seen(&self, rules: Rules, command: usize) -> bool {
        let it = self.commands[command];
        let cookie = rules.has(Rule::P4Cookie);
        let runs = it.stage() == Stage::Running && (it.inside() || cookie && it.environment());
        let child = it.child().lives() && (it.child_inside() || cookie && it.child_environment());
        let after_exec = it.stage() == Stage::Running || it.child().lives();
        runs || child || (after_exec && self.command_has_entry(rules, command))
    }

    /// Whether a missing `commands` is progress there, and not damage.
    pub(super) fn may_lack_commands(&self, dir: usize, opened: Name) -> bool {
        let it = self.dirs[dir];
        opened != Name::Published || it.begun() || it.record() == Record::Released
    }
}
