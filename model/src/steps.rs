//! The steps that can be taken in a state: everything that can be the case next, and nothing else.
//!
//! A step is a system call of somebody, or something that befalls somebody. Some are many calls on a
//! kernel, of whose middle the model knows nothing: a look for evidence of life or for what forbids
//! a removal, the emptying of a directory, what an owner asks before it closes or withdraws.

mod close;
mod commands;
mod create;
mod fate;
mod judge;
mod removal;
mod spawn;
mod sweep;

use crate::act::{Act, Actor, Step};
use crate::setting::Setting;
use crate::state::{DIRS, Holder, Name, State};
use crate::truth::{Broken, Escape};

pub(crate) use self::fate::Numbers;

/// One step, and what is then.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// Who did what.
    pub step: Step,
    /// What is then.
    pub next: State,
    /// A property that the step breaks.
    pub broken: Option<Broken>,
    /// A known escape that the step is.
    pub escape: Option<Escape>,
}

/// A state in which somebody is about to do something.
pub(crate) struct Turn<'t> {
    setting: &'t Setting,
    now: &'t State,
    emit: &'t mut dyn FnMut(&Move),
}

impl Turn<'_> {
    /// What is answered to who asks for the lock of a directory that it has open. Of one that is
    /// removed either, since who removed it may not have closed it yet.
    fn lock_answers(&self, dir: usize) -> impl Iterator<Item = bool> + use<> {
        let it = self.now.dirs[dir];
        let removed = it.name() == Name::Removed;
        let free = it.lock() == Holder::Nobody;
        [true, false].into_iter().filter(move |answer| removed || *answer == free)
    }

    /// This happens, and breaks nothing.
    fn go(&mut self, actor: Actor, act: Act, next: State) {
        self.end(actor, act, next, None, None);
    }

    /// This happens, and may break something or be a known escape.
    fn end(
        &mut self,
        actor: Actor,
        act: Act,
        mut next: State,
        broken: Option<Broken>,
        escape: Option<Escape>,
    ) {
        for dir in 0..DIRS {
            if next.dirs[dir].name() != self.now.dirs[dir].name() {
                next.renamed(dir);
            }
        }
        next.settle(self.setting);
        (self.emit)(&Move { step: Step { actor, act }, next, broken, escape });
    }
}

/// Every step that can be taken.
pub(crate) fn all(setting: &Setting, now: &State, emit: &mut dyn FnMut(&Move)) {
    let turn = &mut Turn { setting, now, emit };
    for owner in 0..setting.owners {
        turn.owner(owner);
    }
    for command in 0..setting.commands {
        turn.command(command);
    }
    turn.worker();
    turn.stranger();
    for sweep in 0..setting.sweeps {
        turn.sweep(sweep);
    }
    turn.fate();
}
