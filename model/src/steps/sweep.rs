//! Sweeps: a look at every directory, call by call (l1 to l7, r2, r3, r5).

use super::Turn;
use super::removal::{Removal, Then};
use crate::act::{Act, Actor};
use crate::bits::Few;
use crate::proof::Answer;
use crate::rules::{Rule, Rules};
use crate::setting::{Content, Place, Setting};
use crate::state::{COMMANDS, DIRS, Holder, Look, Name, Seen, State, Sweep};
use crate::truth::{Broken, Property, Why};

/// The questions, in the order of the protocol.
const PROTOCOL: &[Look] = &[Look::Lock, Look::Compare, Look::Owner, Look::Entry];
/// Without l3's place behind l2.
const COMMANDS_FIRST: &[Look] = &[Look::Lock, Look::Compare, Look::Entry, Look::Owner];
/// Without b1.
const LEASE_LAST: &[Look] = &[Look::Owner, Look::Entry, Look::Lock, Look::Compare];
/// Without l4's place behind l3.
const SCAN_EARLY: &[Look] = &[Look::Lock, Look::Compare, Look::Owner, Look::Scan, Look::Entry];
/// Without the judging of tombstones.
const LEASE_ALONE: &[Look] = &[Look::Lock, Look::Compare];

fn questions(rules: Rules, opened: Name) -> &'static [Look] {
    if !rules.has(Rule::R2Judged) && opened == Name::Tombstone {
        LEASE_ALONE
    } else if !rules.has(Rule::L3Order) {
        COMMANDS_FIRST
    } else if !rules.has(Rule::B1First) {
        LEASE_LAST
    } else if !rules.has(Rule::L4Last) {
        SCAN_EARLY
    } else {
        PROTOCOL
    }
}

impl Turn<'_> {
    /// What a sweep can do next.
    pub(super) fn sweep(&mut self, sweep: usize) {
        // Before anything else.
        if !self.gives_back(sweep) {
            self.goes_by_look(sweep);
        }
        self.sweeper_forks(sweep);
    }

    fn goes_by_look(&mut self, sweep: usize) {
        let it = self.now.sweeps[sweep];
        if let Some(step) = Removal::of_look(it.look()) {
            self.sweep_removes(sweep, step);
        } else {
            match it.look() {
                Look::Idle => self.list(sweep),
                Look::Open => self.open(sweep),
                Look::Lock => self.lock(sweep),
                Look::Compare => self.compare(sweep),
                Look::Owner => self.ask_owner(sweep),
                Look::Entry => self.ask_entry(sweep),
                Look::Group => self.ask_group(sweep),
                Look::Scan => self.scan_early(sweep),
                _ => self.next(sweep),
            }
        }
    }

    /// l6: what it has told it does not hold.
    fn gives_back(&mut self, sweep: usize) -> bool {
        let it = self.now.sweeps[sweep];
        let told = |dir: &usize| matches!(it.seen(*dir), Seen::Told | Seen::Silent);
        let holds = |dir: &usize| self.now.dirs[*dir].lock() == Holder::sweep(sweep);
        let Some(dir) = (0..DIRS).filter(told).find(holds) else { return false };
        let mut next = *self.now;
        next.unlock(self.setting.rules, sweep, dir);
        self.go(Actor::Sweep(sweep), Act::GiveBack, next);
        true
    }

    /// A process that sweeps forks a worker while it holds a lock.
    fn sweeper_forks(&mut self, sweep: usize) {
        let holds = self.now.dirs.iter().any(|dir| dir.lock() == Holder::sweep(sweep));
        if self.setting.sweepers_fork && holds && !self.now.sweeps[sweep].shared() {
            let mut next = *self.now;
            next.sweeps[sweep].set_shared(true);
            self.go(Actor::Sweep(sweep), Act::ForkWorker, next);
        }
    }

    /// What is not there yet, or not under a name that a sweep looks at, is nothing to this one.
    fn list(&mut self, sweep: usize) {
        let mut next = *self.now;
        next.sweeps[sweep].set_look(Look::Open);
        for dir in (0..DIRS).filter(|dir| !self.is_met(*dir)) {
            next.sweeps[sweep].set_seen(dir, Seen::Told);
        }
        self.go(Actor::Sweep(sweep), Act::List, next);
    }

    fn open(&mut self, sweep: usize) {
        let it = self.now.sweeps[sweep];
        let held = (0..DIRS).filter(|dir| it.seen(*dir) == Seen::Candidate).count();
        let mut opened = false;
        if held < self.setting.batch {
            for dir in 0..DIRS {
                if it.seen(dir) == Seen::Unseen && self.is_met(dir) {
                    opened = true;
                    self.open_one(sweep, dir);
                }
            }
        }
        if opened {
            return;
        }
        if held > 0 {
            self.scan_batch(sweep);
        } else {
            let mut next = *self.now;
            next.sweeps[sweep] = Sweep::default();
            let broken = self.not_told(sweep);
            self.end(Actor::Sweep(sweep), Act::Finish, next, broken, None);
        }
    }

    /// L3: a sweep that is done has told every directory that is still there.
    fn not_told(&self, sweep: usize) -> Option<Broken> {
        let silent = |dir: &usize| self.now.sweeps[sweep].seen(*dir) != Seen::Told;
        let dir = (0..DIRS).filter(|dir| self.is_met(*dir)).find(silent)?;
        Some(Broken::new(Property::L3, Why::NotTold(dir)))
    }

    /// Whether a sweep meets the directory under the root.
    fn is_met(&self, dir: usize) -> bool {
        match self.now.dirs[dir].name() {
            Name::Staging | Name::Published => true,
            Name::Tombstone => self.setting.rules.has(Rule::R2Again),
            Name::Absent | Name::Removed | Name::Aside => false,
        }
    }

    fn open_one(&mut self, sweep: usize, dir: usize) {
        let name = self.now.dirs[dir].name();
        let actor = Actor::Sweep(sweep);
        let mut next = *self.now;
        let it = &mut next.sweeps[sweep];
        it.set_second(dir == 1);
        it.set_opened(name);
        it.set_entry(false);
        it.set_look(questions(self.setting.rules, name)[0]);
        let foreign = self.setting.content_of(dir) == Content::ForeignClaim;
        if foreign && self.setting.rules.has(Rule::L5Uid) {
            it.set_seen(dir, Seen::Told);
            it.set_look(Look::Open);
            return self.go(actor, Act::KeepForWhatItIs, next);
        }
        self.go(actor, Act::Open(dir, name), next);
    }

    /// A proof: on to the next question, or with all of them among the candidates.
    fn proved(&mut self, sweep: usize, act: Act, mut next: State) {
        let it = &mut next.sweeps[sweep];
        let asked = questions(self.setting.rules, it.opened());
        let now = if it.look() == Look::Group { Look::Entry } else { it.look() };
        let at = asked.iter().position(|look| *look == now);
        match at.and_then(|at| asked.get(at + 1)) {
            Some(look) => it.set_look(*look),
            None => {
                it.set_seen(it.dir(), Seen::Candidate);
                it.set_look(if asked == LEASE_ALONE { Look::Next } else { Look::Open });
            }
        }
        self.go(Actor::Sweep(sweep), act, next);
    }

    /// No proof: the directory is kept and told.
    fn keep(&mut self, sweep: usize, act: Act) {
        let mut next = *self.now;
        next.keep(sweep, next.sweeps[sweep].dir());
        next.sweeps[sweep].set_look(Look::Open);
        self.go(Actor::Sweep(sweep), act, next);
    }

    /// Whether a sweep goes on after an answer to l2 or l3, in which an operator's word may stand
    /// in (l7).
    fn goes_on(&self, sweep: usize, answer: Answer) -> bool {
        let word = self.setting.word && sweep == 0;
        let stands_in = answer == Answer::CannotTell || !self.setting.rules.has(Rule::L7Word);
        answer == Answer::Gone || (word && stands_in)
    }

    /// An answer to l2 or l3: on to the next question, or the directory is kept.
    fn answered(&mut self, sweep: usize, act: fn(Answer) -> Act, answer: Answer, next: State) {
        if self.goes_on(sweep, answer) {
            self.proved(sweep, act(answer), next);
        } else {
            self.keep(sweep, act(answer));
        }
    }

    /// The probe that comes next may fail.
    fn may_fail(&mut self, sweep: usize) {
        let left = self.now.left.failures().get();
        if left == 0 {
            return;
        }
        let mut failed = *self.now;
        failed.left.set_failures(Few::new(left - 1));
        let turn = &mut Turn { setting: self.setting, now: &failed, emit: &mut *self.emit };
        if self.setting.rules.has(Rule::H8Errno) {
            turn.keep(sweep, Act::Fail);
        } else {
            turn.proved(sweep, Act::Fail, failed);
        }
    }

    fn lock(&mut self, sweep: usize) {
        self.may_fail(sweep);
        let rules = self.setting.rules;
        let next = *self.now;
        let dir = next.sweeps[sweep].dir();
        if self.setting.place == Place::OtherView && rules.has(Rule::L1Kind) {
            return self.keep(sweep, Act::KeepForWhatItIs);
        }
        if matches!(self.setting.place, Place::OtherView | Place::NoLocks) {
            return self.proved(sweep, Act::LockNothing, next);
        }
        for free in self.lock_answers(dir) {
            self.lock_answered(sweep, free);
        }
    }

    fn lock_answered(&mut self, sweep: usize, free: bool) {
        let rules = self.setting.rules;
        let mut next = *self.now;
        if free {
            next.dirs[next.sweeps[sweep].dir()].set_lock(Holder::sweep(sweep));
            self.proved(sweep, Act::Lock(true), next);
        } else if !rules.has(Rule::L1Lease) {
            self.proved(sweep, Act::Lock(false), next);
        } else if !rules.has(Rule::R3Aside) {
            let broken = Broken::new(Property::L2, Why::Waits);
            self.end(Actor::Sweep(sweep), Act::Wait, next, Some(broken), None);
        } else {
            self.keep(sweep, Act::Lock(false));
        }
    }

    fn compare(&mut self, sweep: usize) {
        let it = self.now.sweeps[sweep];
        let same = self.now.dirs[it.dir()].name() == it.opened();
        if same || !self.setting.rules.has(Rule::C2Sweep) {
            self.proved(sweep, Act::Compare(same), *self.now);
        } else {
            self.keep(sweep, Act::Compare(false));
        }
    }

    fn ask_owner(&mut self, sweep: usize) {
        self.may_fail(sweep);
        let it = self.now.sweeps[sweep];
        let rules = self.setting.rules;
        if self.setting.content_of(it.dir()) == Content::Copy && rules.has(Rule::L5Name) {
            // Not even an operator's word is for a copy.
            return self.keep(sweep, Act::AskOwner(Answer::CannotTell));
        }
        if !rules.has(Rule::L2Owner) {
            return self.proved(sweep, Act::Skip, *self.now);
        }
        let foreign = self.setting.is_foreign(sweep);
        let answer = self.now.owner_answer(self.setting, it.dir(), it.opened(), foreign);
        self.answered(sweep, Act::AskOwner, answer, *self.now);
    }

    fn ask_entry(&mut self, sweep: usize) {
        let it = self.now.sweeps[sweep];
        let dir = it.dir();
        let rules = self.setting.rules;
        if !self.now.dirs[dir].commands() {
            let progress = self.now.may_lack_commands(dir, it.opened());
            let answer = if progress { Answer::Gone } else { Answer::CannotTell };
            return self.answered(sweep, Act::AskCommands, answer, *self.now);
        }
        if !rules.has(Rule::L3Commands) {
            return self.proved(sweep, Act::Skip, *self.now);
        }
        let from = usize::from(it.entry());
        let entered = |command: &usize| self.now.is_entered(*command);
        let own = self.now.claim() == dir;
        let Some(command) = (from..COMMANDS).filter(|_| own).find(entered) else {
            return self.proved(sweep, Act::AskCommands(Answer::Gone), *self.now);
        };
        self.may_fail(sweep);
        let mut answer = self.now.entry_lock(command);
        if answer == Answer::Alive && !rules.has(Rule::L3Lock) {
            answer = Answer::Gone;
        }
        if !self.goes_on(sweep, answer) {
            return self.keep(sweep, Act::AskEntry(answer));
        }
        let mut next = *self.now;
        next.sweeps[sweep].set_entry(command == 1);
        next.sweeps[sweep].set_look(Look::Group);
        self.go(Actor::Sweep(sweep), Act::AskEntry(answer), next);
    }

    fn ask_group(&mut self, sweep: usize) {
        self.may_fail(sweep);
        let it = self.now.sweeps[sweep];
        let command = usize::from(it.entry());
        let foreign = self.setting.is_foreign(sweep);
        let answer = self.now.group(self.setting, command, foreign);
        let more = command + 1 < COMMANDS && self.now.is_entered(command + 1);
        if !more {
            return self.answered(sweep, Act::AskGroup, answer, *self.now);
        }
        if !self.goes_on(sweep, answer) {
            return self.keep(sweep, Act::AskGroup(answer));
        }
        let mut next = *self.now;
        next.sweeps[sweep].set_entry(true);
        next.sweeps[sweep].set_look(Look::Entry);
        self.go(Actor::Sweep(sweep), Act::AskGroup(answer), next);
    }

    /// Without l4's place: the scan as a question about one directory.
    fn scan_early(&mut self, sweep: usize) {
        self.may_fail(sweep);
        if self.sees(sweep, self.now.sweeps[sweep].dir()) {
            self.keep(sweep, Act::Scan(false));
        } else {
            self.proved(sweep, Act::Scan(true), *self.now);
        }
    }

    fn sees(&self, sweep: usize, dir: usize) -> bool {
        !self.setting.is_foreign(sweep) && self.now.is_seen(self.setting, dir)
    }

    /// l4: one scan for all that is held.
    fn scan_batch(&mut self, sweep: usize) {
        let rules = self.setting.rules;
        let scans = rules.has(Rule::L4Scan) && rules.has(Rule::L4Last);
        let candidates =
            |state: &State| -> Vec<usize> { candidates(state.sweeps[sweep]).collect() };
        let failures = self.now.left.failures().get();
        if scans && failures > 0 {
            let mut next = *self.now;
            next.left.set_failures(Few::new(failures - 1));
            next.sweeps[sweep].set_look(Look::Next);
            if rules.has(Rule::H8Errno) {
                candidates(self.now).into_iter().for_each(|dir| next.keep(sweep, dir));
            }
            self.go(Actor::Sweep(sweep), Act::Fail, next);
        }
        let mut next = *self.now;
        next.sweeps[sweep].set_look(Look::Next);
        let mut none = true;
        for dir in candidates(self.now) {
            if scans && self.sees(sweep, dir) {
                none = false;
                next.keep(sweep, dir);
            } else if !rules.has(Rule::L1Kept) {
                next.unlock(rules, sweep, dir);
            }
        }
        let act = match (scans, rules.has(Rule::L4Scan)) {
            (true, _) => Act::Scan(none),
            (false, true) => Act::Judged,
            (false, false) => Act::Skip,
        };
        self.go(Actor::Sweep(sweep), act, next);
    }

    /// On with the next candidate: its removal begins with a look.
    fn next(&mut self, sweep: usize) {
        let mut next = *self.now;
        let Some(dir) = candidates(self.now.sweeps[sweep]).next() else {
            next.sweeps[sweep].set_look(Look::Open);
            return self.go(Actor::Sweep(sweep), Act::Again, next);
        };
        next.sweeps[sweep].set_second(dir == 1);
        let turn = &mut Turn { setting: self.setting, now: &next, emit: &mut *self.emit };
        turn.sweep_removes(sweep, Removal::Walk);
    }

    fn sweep_removes(&mut self, sweep: usize, step: Removal) {
        let dir = self.now.sweeps[sweep].dir();
        let foreign = self.setting.is_foreign(sweep);
        let rules = self.setting.rules;
        let mut removed = self.removal(dir, step, foreign);
        let next = &mut removed.next;
        match removed.then {
            Then::On(step) => next.sweeps[sweep].set_look(step.look()),
            Then::Finished => {
                next.sweeps[sweep].set_seen(dir, Seen::Told);
                next.sweeps[sweep].set_look(Look::Next);
            }
            Then::Kept => {
                next.keep(sweep, dir);
                next.sweeps[sweep].set_look(Look::Next);
                if !rules.has(Rule::R5Told) {
                    next.sweeps[sweep].set_seen(dir, Seen::Silent);
                }
                if !rules.has(Rule::R5Goes) {
                    removed.broken = removed.broken.or(not_reached(next, sweep));
                }
            }
        }
        self.end(Actor::Sweep(sweep), removed.act, removed.next, removed.broken, removed.escape);
    }
}

/// A sweep that ends here misses a directory that it has not looked at.
fn not_reached(state: &State, sweep: usize) -> Option<Broken> {
    let met = |dir: &usize| matches!(state.dirs[*dir].name(), Name::Staging | Name::Published);
    let unseen = |dir: &usize| state.sweeps[sweep].seen(*dir) == Seen::Unseen;
    let missed = (0..DIRS).filter(met).find(unseen);
    missed.map(|dir| Broken::new(Property::L2, Why::NotReached(dir)))
}

fn candidates(sweep: Sweep) -> impl Iterator<Item = usize> {
    (0..DIRS).filter(move |dir| sweep.seen(*dir) == Seen::Candidate)
}

impl State {
    /// A directory has another name than before: a sweep that has listed the old one, or none, will
    /// not find it, and has nothing to tell of it.
    pub(super) fn renamed(&mut self, dir: usize) {
        for sweep in &mut self.sweeps {
            let between = matches!(sweep.look(), Look::Open | Look::Next);
            let has_it_open = !between && sweep.dir() == dir;
            if sweep.look() != Look::Idle && sweep.seen(dir) == Seen::Unseen && !has_it_open {
                sweep.set_seen(dir, Seen::Told);
            }
        }
    }

    /// A sweep tells a directory, and will not remove it.
    fn keep(&mut self, sweep: usize, dir: usize) {
        self.sweeps[sweep].set_seen(dir, Seen::Told);
    }

    fn unlock(&mut self, rules: Rules, sweep: usize, dir: usize) {
        if self.dirs[dir].lock() == Holder::sweep(sweep) {
            let stays = !rules.has(Rule::L6Unlock) && self.sweeps[sweep].shared();
            self.dirs[dir].set_lock(if stays { Holder::Leftover } else { Holder::Nobody });
        }
    }

    /// Runs the first sweep alone, from its beginning to its end.
    pub(crate) fn swept(self, setting: &Setting, tell: &mut dyn FnMut(&super::Move)) -> State {
        let mut state = self;
        // A pass asks a dozen questions about each directory and makes a dozen calls for it.
        for _ in 0..100 {
            let mut first = None;
            let emit = &mut |step: &super::Move| {
                first.get_or_insert(*step);
            };
            Turn { setting, now: &state, emit }.sweep(0);
            let Some(step) = first else {
                return state;
            };
            tell(&step);
            state = step.next;
            if state.sweeps[0].look() == Look::Idle {
                return state;
            }
        }
        unreachable!("a sweep does not end: {state:?}")
    }
}
