//! The protocol as something that can be searched, and what a run of it looks like.

use crate::act::{Act, Actor, Step};
use crate::bits::Few;
use crate::explore::{Counts, Found, Key, Limits, Machine, Next, Outcome, SHARED_WORDS, explore};
use crate::run::Run;
use crate::setting::{Content, OutOfBounds, Place, Setting};
use crate::state::{Command, DIRS, Dir, Entry, Left, Name, Owner, Record, State, Sweep};
use crate::state::{Stranger, Worker};
use crate::steps::{self, Move, Numbers};
use crate::truth::{Broken, Escape, Property, Why};

/// The protocol within bounds.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    setting: Setting,
    /// The same for the last, undisturbed sweep: in the owners' pid namespace, with their view.
    last: Setting,
    alike: bool,
}

/// What is left in the end: of states, and of their ends, of which there are few.
#[derive(Clone, Default, Debug)]
pub struct Memo {
    states: Answers,
    ends: Answers,
}

/// Answers by what they depend on. One that is in the way of another is forgotten.
#[derive(Clone, Debug)]
struct Answers(Vec<Option<([u64; SHARED_WORDS], Option<Broken>)>>);

impl Default for Answers {
    fn default() -> Answers {
        Answers(vec![None; 1 << 11])
    }
}

impl Answers {
    fn answer(
        &mut self,
        to: [u64; SHARED_WORDS],
        find: impl FnOnce() -> Option<Broken>,
    ) -> Option<Broken> {
        let at = crate::explore::hash_of(&to) as usize % self.0.len();
        match self.0[at] {
            Some((known, broken)) if known == to => broken,
            _ => {
                let broken = find();
                self.0[at] = Some((to, broken));
                broken
            }
        }
    }
}

impl Model {
    /// A model of these bounds.
    ///
    /// # Errors
    ///
    /// Names a bound that it has no room for.
    pub fn new(setting: Setting) -> Result<Model, OutOfBounds> {
        setting.check()?;
        let place = match setting.place {
            Place::OtherView => Place::Proper,
            place => place,
        };
        let last = Setting { foreign: 0, sweeps: setting.sweeps.max(1), place, ..setting };
        Ok(Model { setting, last, alike: setting.sweeps_are_alike() })
    }

    /// Its bounds.
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// The same without the reduction by symmetry: sweeps of one kind are told apart.
    #[must_use]
    pub fn told_apart(self) -> Model {
        Model { alike: false, ..self }
    }

    /// Every step that can be taken in a state.
    pub fn steps(&self, state: &State) -> Vec<Move> {
        let mut moves = Vec::new();
        steps::all(&self.setting, state, &mut |step| moves.push(*step));
        moves
    }

    /// L1: what an undisturbed sweep leaves, where everybody has ended.
    fn left_in_the_end(&self, ended: State) -> Option<Broken> {
        let end = ended.swept(&self.last, &mut |_| {});
        let stays = |dir: &usize| {
            let named =
                matches!(end.dirs[*dir].name(), Name::Staging | Name::Published | Name::Tombstone);
            // What an escape has left may be damaged.
            let lost = end.dirs[*dir].lost();
            named && !lost && !self.setting.content_of(*dir).stays(self.setting.word)
        };
        let dir = (0..DIRS).find(stays)?;
        Some(Broken::new(Property::L1, Why::Stays(dir)))
    }

    /// Searches all runs.
    pub fn search(&self, limits: &Limits, watch: &mut dyn FnMut(&Counts) -> bool) -> Searched {
        let search = explore(self, limits, watch);
        let escapes = Escape::ALL.iter().copied();
        let escapes = escapes.filter(|escape| search.bits & escape.bit() != 0).collect();
        let verdict = match search.outcome {
            Outcome::Holds => Verdict::Holds,
            Outcome::Found(found) => Verdict::Found(self.run_of(&found)),
            Outcome::TooManyStates => Verdict::NotDecided("there are more states"),
            Outcome::TooMuchMemory => Verdict::NotDecided("they take more memory"),
            Outcome::Interrupted => Verdict::NotDecided("it was interrupted"),
        };
        Searched { verdict, counts: search.counts, escapes }
    }

    /// The run to what was found, with what is true after each step of it.
    fn run_of(&self, found: &Found<Broken>) -> Run {
        let mut steps = Vec::new();
        let mut state = self.initial();
        for key in &found.path[1..] {
            let step = self.steps(&state).into_iter().find(|it| self.pack(&it.next) == *key);
            let step = step.expect("a step to the next state of the path");
            steps.push(step.step);
            state = step.next;
        }
        let same = |step: &Move| step.broken.is_some_and(|b| b.property == found.broken.property);
        match self.steps(&state).into_iter().find(same) {
            Some(step) => {
                steps.push(step.step);
                Run { steps, last: Vec::new(), broken: step.broken.unwrap_or(found.broken) }
            }
            None => Run { steps, last: self.end_of(&state), broken: found.broken },
        }
    }

    /// How the last sweep leaves something behind.
    fn end_of(&self, state: &State) -> Vec<Step> {
        let mut steps = vec![Step { actor: Actor::World, act: Act::AllEnd }];
        let leaves =
            |numbers: &&Numbers| self.left_in_the_end(state.ended(&self.last, **numbers)).is_some();
        if let Some(numbers) = Numbers::of(&self.setting).iter().find(leaves) {
            let ended = state.ended(&self.last, *numbers);
            let change = match numbers {
                Numbers::Zombies => None,
                Numbers::Free => Some(Act::Reaped),
                Numbers::Reused => Some(Act::Reuse),
            };
            steps.extend(change.map(|act| Step { actor: Actor::World, act }));
            ended.swept(&self.last, &mut |it| steps.push(it.step));
        }
        steps
    }
}

impl Machine for Model {
    type State = State;
    type Broken = Broken;
    type Memo = Memo;

    fn initial(&self) -> State {
        let mut state = State::default();
        let setting = &self.setting;
        state.left.set_kills(Few::new(setting.kills));
        state.left.set_failures(Few::new(setting.failures));
        state.left.set_reuse(setting.reuse);
        state.left.set_reboot(setting.reboot);
        state.left.set_swap(setting.swap);
        if setting.content != Content::Nothing {
            let dir = &mut state.dirs[0];
            dir.set_name(Name::Published);
            let damaged = setting.content == Content::Damage;
            dir.set_record(if damaged { Record::Missing } else { Record::Owner });
            dir.set_commands(true);
            dir.set_files(true);
            state.owners[0].set_dir(Few::new(1));
        }
        state.owners[1].set_dir(Few::new(1));
        state
    }

    fn pack(&self, state: &State) -> Key {
        // Two sweeps of one kind are told apart by nothing but their places.
        let exchange = self.alike && state.sweeps[0] > state.sweeps[1];
        let key = |state: &State| {
            let [s, t] = state.sweeps.map(Sweep::bits);
            let [d, e] = state.dirs.map(Dir::bits);
            let [n, m] = state.entries.map(Entry::bits);
            let [o, p] = state.owners.map(Owner::bits);
            let [c, b] = state.commands.map(Command::bits);
            // Each is shifted to behind the one before; the widths are those of the words' fields.
            let parts = [
                (d, 12),
                (e, 12),
                (n, 3),
                (m, 3),
                (state.left.bits(), 7),
                (state.worker.bits(), 11),
                (state.stranger.bits(), 5),
            ];
            let join = |parts: &[(u16, u32)]| {
                parts.iter().rev().fold(0, |all, (bits, width)| all << width | u64::from(*bits))
            };
            Key {
                shared: [join(&parts), join(&[(o, 16), (p, 16), (c, 16), (b, 16)])],
                own: u32::from(s) | u32::from(t) << 16,
            }
        };
        if exchange { key(&state.exchanged()) } else { key(state) }
    }

    fn unpack(&self, key: &Key) -> State {
        // OK because these are the words that the key was made of.
        let word = |of: u64, at: u32, width: u32| ((of >> at) & ((1 << width) - 1)) as u16;
        let [a, b] = key.shared;
        State {
            dirs: [Dir::of(word(a, 0, 12)), Dir::of(word(a, 12, 12))],
            entries: [Entry::of(word(a, 24, 3)), Entry::of(word(a, 27, 3))],
            left: Left::of(word(a, 30, 7)),
            worker: Worker::of(word(a, 37, 11)),
            stranger: Stranger::of(word(a, 48, 5)),
            owners: [Owner::of(word(b, 0, 16)), Owner::of(word(b, 16, 16))],
            commands: [Command::of(word(b, 32, 16)), Command::of(word(b, 48, 16))],
            sweeps: [Sweep::of(key.own as u16), Sweep::of((key.own >> 16) as u16)],
        }
    }

    fn successors(&self, state: &State, tell: &mut impl FnMut(Next<'_, State, Broken>)) {
        steps::all(&self.setting, state, &mut |step| {
            let bits = step.escape.map_or(0, Escape::bit);
            tell(Next { state: &step.next, broken: step.broken, bits });
        });
    }

    fn judge(&self, key: &Key, state: &State, memo: &mut Memo) -> Option<Broken> {
        // What is left does not depend on the sweeps, which have all ended by then.
        memo.states.answer(key.shared, || {
            Numbers::of(&self.setting).iter().find_map(|numbers| {
                let ended = state.ended(&self.last, *numbers);
                memo.ends.answer(self.pack(&ended).shared, || self.left_in_the_end(ended))
            })
        })
    }
}

impl State {
    /// The same with the two sweeps exchanged, in everything that names them.
    fn exchanged(&self) -> State {
        let mut other = *self;
        other.sweeps.swap(0, 1);
        for dir in &mut other.dirs {
            dir.set_lock(dir.lock().exchanged());
        }
        other
    }
}

/// What a search says about the protocol.
#[derive(Clone, Debug)]
pub struct Searched {
    /// Whether it holds.
    pub verdict: Verdict,
    /// How much was looked at.
    pub counts: Counts,
    /// The known escapes that were met.
    pub escapes: Vec<Escape>,
}

/// Whether the protocol holds.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// In all runs.
    Holds,
    /// Not in this one, and in no shorter one is anything wrong.
    Found(Run),
    /// Nobody knows, for this reason.
    NotDecided(&'static str),
}
