//! The protocol as something that can be searched, and what a run of it looks like.

use crate::act::{Act, Actor, Step};
use crate::bits::Few;
use crate::explore::{Counts, Found, Key, Limits, Machine, Next, Outcome, SHARED_WORDS, explore};
use crate::run::Run;
use crate::setting::{Content, OutOfBounds, Place, Setting};
use crate::state::{
    Command, DIRS, Dir, Entry, ForkedProcess, Left, Name, Owner, Record, State, Sweep,
};
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

/// How parts lie in a word, each behind the one before.
#[derive(Clone, Copy)]
struct Layout<const N: usize> {
    starts: [u32; N],
    widths: [u32; N],
}

/// The first shared word of a key.
const FIRST: Layout<7> = Layout::of([
    Dir::BITS,
    Dir::BITS,
    Entry::BITS,
    Entry::BITS,
    Left::BITS,
    ForkedProcess::BITS,
    ForkedProcess::BITS,
]);
/// The second.
const SECOND: Layout<4> = Layout::of([Owner::BITS, Owner::BITS, Command::BITS, Command::BITS]);
/// The word of a state's own.
const OWN: Layout<2> = Layout::of([Sweep::BITS, Sweep::BITS]);
const _: () = assert!(2 * Sweep::BITS <= u32::BITS, "two sweeps do not fit a key");

impl<const N: usize> Layout<N> {
    const fn of(widths: [u32; N]) -> Layout<N> {
        let (mut at, mut end, mut starts) = (0, 0, [0; N]);
        while at < N {
            starts[at] = end;
            end += widths[at];
            at += 1;
        }
        assert!(end <= u64::BITS, "the parts do not fit a word");
        Layout { starts, widths }
    }

    #[inline]
    fn join(self, parts: [u16; N]) -> u64 {
        let placed = parts.into_iter().zip(self.starts);
        placed.fold(0, |all, (bits, start)| all | u64::from(bits) << start)
    }

    #[inline]
    fn part(self, word: u64, at: usize) -> u16 {
        // OK because a part has sixteen bits at most.
        ((word >> self.starts[at]) & ((1 << self.widths[at]) - 1)) as u16
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
            let [w, f] = [state.worker, state.stranger].map(ForkedProcess::bits);
            Key {
                shared: [
                    FIRST.join([d, e, n, m, state.left.bits(), w, f]),
                    SECOND.join([o, p, c, b]),
                ],
                // OK because they take no more bits.
                own: OWN.join([s, t]) as u32,
            }
        };
        if exchange { key(&state.exchanged()) } else { key(state) }
    }

    fn unpack(&self, key: &Key) -> State {
        let [first, second] = key.shared;
        let (first, second) = (|at| FIRST.part(first, at), |at| SECOND.part(second, at));
        State {
            dirs: [Dir::of(first(0)), Dir::of(first(1))],
            entries: [Entry::of(first(2)), Entry::of(first(3))],
            left: Left::of(first(4)),
            worker: ForkedProcess::of(first(5)),
            stranger: ForkedProcess::of(first(6)),
            owners: [Owner::of(second(0)), Owner::of(second(1))],
            commands: [Command::of(second(2)), Command::of(second(3))],
            sweeps: [0, 1].map(|at| Sweep::of(OWN.part(key.own.into(), at))),
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
