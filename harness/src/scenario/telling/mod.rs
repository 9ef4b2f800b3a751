//! How a story is told, wherever that is: in all its cases and rounds, step by step, with what must be
//! true after each.
//!
//! There are two tellers, on the real kernel ([`super::host`]) and in the world ([`super::world`]). They
//! have the same words for what goes wrong, and both tell what the sweeps have said of each claim, so
//! that one can be held against the other.

mod agree;
mod ends;
mod heard;
mod ordered;

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};

pub use self::agree::{Difference, differences};
pub(super) use self::ends::{Judged, check_escapes, check_left, expect_names};
pub(super) use self::heard::{CANARY, Heard, whose};
pub(super) use self::ordered::{Doing, Ordered, each, not_running};
use super::story::{Action, Actor, Expected, State, Step};
use super::{Diagnostic, Story};
use crate::actor::wire;

/// The prefix of the claims of a story, where it names none.
pub(super) const PREFIX: &str = "story";

/// What the user's part of a claim holds from its beginning, and what it says.
pub(super) const WITNESS: (&str, &str) = ("written-by-owner", "written by its owner\n");

/// How a story went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// Everything was true that had to be.
    Held {
        /// How often it was told.
        rounds: u64,
        /// How many sweeps ended in it.
        sweeps: u64,
        /// How many canaries vanished.
        canaries: u64,
        /// What the sweeps said of each claim, in the order in which they ended.
        verdicts: Vec<Verdict>,
    },
    /// Something was not.
    Failed {
        /// What, and where in the file.
        finding: Box<Diagnostic>,
        /// In which round.
        round: u64,
    },
}

/// What a sweep has said of something in its root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Verdict {
    /// What the words in angle brackets stood for.
    pub case: String,
    /// In which round.
    pub round: u64,
    /// Which sweep of that.
    pub sweep: u64,
    /// Whose claim it is; a canary's, or something else by its name.
    pub of: String,
    /// What became of it.
    pub outcome: wire::Outcome,
    /// The codes of what that rests on.
    pub because: Vec<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { case, round, sweep, of, outcome, because } = self;
        write!(f, "round {round}, ")?;
        if !case.is_empty() {
            write!(f, "with {case}, ")?;
        }
        write!(f, "sweep {sweep}: {of}: {outcome:?}, {}", because.join(" "))
    }
}

/// Why a step or an expectation did not go as it must.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    code: &'static str,
    title: String,
    notes: Vec<String>,
    /// Where in the file, if it is not what happened last.
    span: Option<Range<usize>>,
}

impl Failure {
    pub(super) fn new(code: &'static str, title: impl Into<String>) -> Failure {
        Failure { code, title: title.into(), notes: Vec::new(), span: None }
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Failure {
        self.notes.push(note.into());
        self
    }

    /// The same as a failure of an invariant.
    pub(super) fn of(self, code: &'static str) -> Failure {
        Failure { code, ..self }
    }

    pub(super) fn about(mut self, span: Range<usize>) -> Failure {
        self.span = Some(span);
        self
    }

    fn at(self, span: Range<usize>, label: &str) -> Box<Diagnostic> {
        let span = self.span.unwrap_or(span);
        let found = Diagnostic::new(self.code, self.title, span).label(label);
        Box::new(self.notes.into_iter().fold(found, Diagnostic::note))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::new("system", format!("the system refused: {error}"))
    }
}

/// What a step comes to.
pub(super) type Outcome<T> = Result<T, Failure>;

/// What a round came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Sweeps that have ended.
    pub(crate) sweeps: u64,
    /// Canaries that have vanished.
    pub(crate) canaries: u64,
    /// Whether the call that was to be disturbed was made.
    pub(crate) disturbed: bool,
    /// What the sweeps said; of which case and round is added later.
    pub(super) verdicts: Vec<Verdict>,
}

/// Who tells one round of a story.
pub(super) trait Teller {
    /// Lets something happen.
    fn act(&mut self, action: &Action) -> Outcome<()>;

    /// Whether an operation has ended before the call at which something was to happen to it.
    fn is_over(&self) -> bool;

    /// Notes which commands live and have lost their claim.
    fn note_escapes(&mut self) -> Outcome<()>;

    /// Looks whether everything is true that must be after every step.
    fn check_truth(&self) -> Outcome<()>;

    /// Looks whether an expectation holds.
    fn expect(&mut self, expected: &Expected) -> Outcome<()>;

    /// Ends everybody, sweeps once, and looks at what is left.
    fn end(&mut self) -> Outcome<Counts>;
}

/// Tells cases of a story one after the other. `set` sets the stage for a round of one.
pub(super) fn tell<'s, T: Teller>(
    cases: impl IntoIterator<Item = &'s Story>,
    set: impl Fn(&'s Story, u64) -> Outcome<T>,
) -> Told {
    let mut all = (0, Counts::default());
    for case in cases {
        match tell_case(case, &set) {
            Ok((rounds, counts)) => {
                all.0 += rounds;
                all.1.sweeps += counts.sweeps;
                all.1.canaries += counts.canaries;
                all.1.verdicts.extend(counts.verdicts);
            }
            Err((mut finding, round)) => {
                if !case.case.is_empty() {
                    finding.notes.insert(0, format!("told with {}", case.case));
                }
                return Told::Failed { finding, round };
            }
        }
    }
    let (rounds, Counts { sweeps, canaries, verdicts, .. }) = all;
    Told::Held { rounds, sweeps, canaries, verdicts }
}

/// Tells one case of a story, in all its rounds.
fn tell_case<'s, T: Teller>(
    story: &'s Story,
    set: &impl Fn(&'s Story, u64) -> Outcome<T>,
) -> Result<(u64, Counts), (Box<Diagnostic>, u64)> {
    let mut all = Counts::default();
    let last = story.rounds_max.or(story.rounds).unwrap_or(1);
    for round in 1..=last {
        let counts = tell_round(story, || set(story, round)).map_err(|finding| (finding, round))?;
        all.sweeps += counts.sweeps;
        all.canaries += counts.canaries;
        let case = &story.case;
        all.verdicts.extend(counts.verdicts.into_iter().map(|one| Verdict {
            case: case.clone(),
            round,
            ..one
        }));
        if story.rounds_max.is_some() && !counts.disturbed {
            if round == 1 {
                let failure = Failure::new("no-round", "not even the first call was disturbed");
                return Err((failure.at(0..0, ""), round));
            }
            return Ok((round - 1, all));
        }
    }
    if story.rounds_max.is_some() {
        let title = format!("there are more than {last} calls to disturb");
        let failure = Failure::new("more-rounds", title).note("raise `rounds-max`");
        return Err((failure.at(0..0, ""), last));
    }
    Ok((last, all))
}

/// Tells it once.
fn tell_round<T: Teller>(
    story: &Story,
    set: impl FnOnce() -> Outcome<T>,
) -> Result<Counts, Box<Diagnostic>> {
    let first = story.steps.first().map_or(0..0, |step| step.span.clone());
    let mut telling = Telling::begin(set(), first)?;
    for step in (0..story.times).flat_map(|_| &story.steps) {
        if !telling.act(step)? {
            if story.rounds_max.is_some() {
                break;
            }
            // Broken off here, it would seem to hold.
            let title = "it ended before the call at which something was to happen";
            return Err(Failure::new("no-call", title).at(step.span.clone(), "this step"));
        }
        telling.judge(step)?;
    }
    // OK because a story has a step: who reads it sees to it.
    telling.end(story.steps.last().map_or(0..0, |step| step.span.clone()))
}

/// A story that is being told, step by step.
pub(super) struct Telling<T>(pub(super) T);

impl<T: Teller> Telling<T> {
    /// Begins on a stage that was set, or not. `first` is where the first step stands.
    pub(super) fn begin(
        stage: Outcome<T>,
        first: Range<usize>,
    ) -> Result<Telling<T>, Box<Diagnostic>> {
        stage.map(Telling).map_err(|failure| failure.at(first, "before this"))
    }

    /// Lets a step happen; answers whether the call was made at which something was to happen, if
    /// there is one.
    pub(super) fn act(&mut self, step: &Step) -> Result<bool, Box<Diagnostic>> {
        let Telling(stage) = self;
        guarded(|| stage.act(&step.action)).map_err(|f| f.at(step.span.clone(), "this step"))?;
        Ok(!stage.is_over())
    }

    /// Looks at what must be true after a step.
    pub(super) fn judge(&mut self, step: &Step) -> Result<(), Box<Diagnostic>> {
        let Telling(stage) = self;
        let after = |failure: Failure| failure.at(step.span.clone(), "after this step");
        guarded(|| stage.note_escapes()).map_err(after)?;
        guarded(|| stage.check_truth()).map_err(after)?;
        for expected in &step.expects {
            let holds = guarded(|| stage.expect(&expected.what));
            holds.map_err(|f| f.at(expected.span.clone(), "this does not hold"))?;
        }
        Ok(())
    }

    /// Ends everybody, and looks at what is left. `last` is where the last step stands.
    pub(super) fn end(self, last: Range<usize>) -> Result<Counts, Box<Diagnostic>> {
        let Telling(mut stage) = self;
        guarded(|| stage.end()).map_err(|failure| failure.at(last, "after the end"))
    }
}

/// Makes a failure of a panic: the tools that wait for events panic with what they waited for and
/// what came.
fn guarded<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Err(Failure::new("waited", text.unwrap_or_else(|| "something panicked".into())))
        }
    }
}

/// The state of a claim by the name that it has, if it has one.
pub(super) fn state_of(name: Option<&str>) -> State {
    match name {
        None => State::Gone,
        Some(name) if name.contains(".dead-") => State::Tombstone,
        Some(name) if name.starts_with('.') => State::Staging,
        Some(_) => State::Kept,
    }
}

/// A state in words.
pub(super) fn word(state: State) -> &'static str {
    match state {
        State::Kept => "at its place",
        State::Gone => "gone",
        State::Tombstone => "a tombstone",
        State::Staging => "still being made",
    }
}

/// Fails if something was done that has to fail.
pub(super) fn refuse_to_fail(fails: Option<&str>, done: &wire::Done) -> Outcome<()> {
    match fails {
        Some(kind) => {
            let title = format!("it did not fail, let alone with {kind}: it said `{done}`");
            Err(Failure::new("fails", title))
        }
        None => Ok(()),
    }
}

/// The prefixes of all claims of a story.
pub(super) fn prefixes(story: &Story) -> Vec<String> {
    let own = story.actors.values().filter_map(Actor::prefix).map(str::to_owned);
    let mut all: Vec<String> = own.chain([PREFIX.to_owned()]).collect();
    all.sort_unstable();
    all.dedup();
    all
}
