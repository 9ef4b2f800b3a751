//! Stories that are drawn from a seed and told on the real kernel, one after the other for as long as
//! anybody wants.
//!
//! A *story* is that of [`scenario`](crate::scenario), told by the same teller and judged by the same
//! judges after every step. What happens next is drawn when the step before is over, from lots and from
//! who is there, so that every step can happen: who has ended is not killed again. Servers, commands and
//! sweeps are started, stopped and killed; servers, children and sweeps also before any of their calls.
//! What has happened is the text of a story file: it tells the same again, without a seed. And it is told
//! in the simulated kernel, as far as that has what it needs, where it has to hold as well.
//!
//! * [`tell`] draws a story and tells it; [`runner`] lets it do so in a cell;
//! * [`shrink()`] leaves out of a story that fails whatever it does not need for that.
//!
//! Invariant: a seed and a number draw the same as long as the kernel gives the same answers. Sweeps that
//! run at once may share their work otherwise; the text has what happened.

mod cast;
mod draw;
pub mod runner;
mod shrink;
mod tally;

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use self::shrink::shrink;
pub use self::tally::{Tally, Verdict};

use self::cast::Cast;
use self::draw::{Drawing, Drawn};
use crate::actor::wire::Subject;
use crate::lots::Lots;
use crate::scenario::host::MadeUp;
use crate::scenario::telling::Told;
use crate::scenario::world::Tellable;
use crate::scenario::{Diagnostic, Need, Story, read};

/// What the judges find, and no step that cannot be taken.
const JUDGED: [&str; 6] = ["S1", "S2", "L1", "L2", "canary", "panic"];

/// Which story is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What it is drawn from.
    pub seed: u64,
    /// Its number.
    pub iteration: u64,
    /// How many steps it has.
    pub steps: u64,
    /// Which implementation sweeps.
    pub subject: Subject,
}

impl Asked {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> String {
        format!("soak-{}-{}", self.seed, self.iteration)
    }

    fn about(&self) -> String {
        let Asked { seed, iteration, .. } = self;
        format!("Drawn by a soak, seed {seed}, iteration {iteration}.")
    }
}

/// How a story went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Went {
    /// Everything was true that had to be.
    Held(Tally),
    /// Something was not.
    Failed {
        /// What, and where in the text.
        finding: Box<Diagnostic>,
        /// The story so far.
        text: String,
        /// Where it was told.
        place: Place,
    },
    /// The machine has not what is needed.
    Skipped(String),
}

/// Where a story was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The real kernel.
    Host,
    /// The simulated one, when it had held on the real one.
    World,
}

/// What was drawn is no story: a mistake of this module.
#[derive(Debug, thiserror::Error)]
#[error("what was drawn is no story:\n{0}")]
pub struct NoStory(String);

/// Draws a story and tells it. `lab` is the lab's binary. Only for a cell.
///
/// # Errors
///
/// If what is drawn is no story, which is a mistake of this module.
pub fn tell(asked: &Asked, lab: &Path) -> Result<Went, NoStory> {
    let mut lots = Lots::of(asked.seed, asked.iteration);
    let cast = Cast::draw(&mut lots, rustix::process::geteuid().is_root());
    let text = Text { head: cast.head(&asked.about()), steps: String::new() };
    // Who is in it is read from a story of one step, whichever.
    let everybody = text.story("[[step]]\nsweep = \"w1\"\n")?;
    let missing = |need: &Need| Some(format!("{need}: {}", need.missing()?));
    if let Some(missing) = everybody.needs.iter().find_map(missing) {
        return Ok(Went::Skipped(missing));
    }
    let tally = Tally { stories: 1, ..Tally::default() };
    let mut making = Making { text, tally, drawing: Drawing::new(&cast, lots) };
    let begun = MadeUp::set(&everybody, lab, asked.subject, cast.tapped());
    let told = begun.map_err(Ended::Found).and_then(|telling| making.tell(telling, asked.steps));
    match told {
        Ok(()) => making.told_in_the_world(asked.subject),
        Err(Ended::Found(finding)) => {
            let text = making.text.whole();
            Ok(Went::Failed { finding, text, place: Place::Host })
        }
        Err(Ended::NoStory(mistake)) => Err(mistake),
    }
}

/// Why no step comes after the last.
enum Ended {
    Found(Box<Diagnostic>),
    NoStory(NoStory),
}

impl From<NoStory> for Ended {
    fn from(mistake: NoStory) -> Ended {
        Ended::NoStory(mistake)
    }
}

/// A story that is made up while it is told.
struct Making<'c> {
    text: Text,
    tally: Tally,
    drawing: Drawing<'c>,
}

impl Making<'_> {
    fn tell(&mut self, mut telling: MadeUp<'_>, steps: u64) -> Result<(), Ended> {
        for _ in 0..steps {
            let present = telling.present();
            let present = present.map_err(|error| Ended::Found(self.text.refused(&error)))?;
            let Some(drawn) = self.drawing.next(&present) else { break };
            self.step(&mut telling, &drawn)?;
        }
        let end = self.text.end();
        let counts = telling.end(end..end).map_err(Ended::Found)?;
        (self.tally.sweeps, self.tally.canaries) = (counts.sweeps, counts.canaries);
        Ok(())
    }

    /// Tells it in the simulated kernel as well, if that has what it needs. There the n-th call is another
    /// one, and sweeps at once come to something else, so that a later step may be impossible; what the
    /// judges find is a finding all the same.
    fn told_in_the_world(mut self, subject: Subject) -> Result<Went, NoStory> {
        let story = self.text.story(&self.text.steps)?;
        let tellable = Tellable::of(&story);
        if tellable.cases.is_empty() {
            return Ok(Went::Held(self.tally));
        }
        self.tally.in_the_world += 1;
        match tellable.tell(subject) {
            Told::Held { .. } => Ok(Went::Held(self.tally)),
            Told::Failed { finding, .. } if !JUDGED.contains(&finding.code.as_str()) => {
                self.tally.otherwise += 1;
                Ok(Went::Held(self.tally))
            }
            Told::Failed { finding, .. } => {
                let text = self.text.whole();
                Ok(Went::Failed { finding, text, place: Place::World })
            }
        }
    }

    fn step(&mut self, telling: &mut MadeUp<'_>, drawn: &Drawn) -> Result<(), Ended> {
        let with_the_call = drawn.text(true);
        let story = self.text.story(&with_the_call)?;
        let before = self.text.steps.len();
        let found = |finding| Ended::Found(placed(finding, self.text.head.len(), before));
        self.text.steps += &with_the_call;
        self.tally.step(drawn.word);
        let (before_it, _) = telling.heard();
        // OK because a story has a step: who reads it sees to it.
        let step = &story.steps[0];
        telling.act(step).map_err(found)?;
        let (sweeps, disturbed) = telling.heard();
        match &drawn.disturbed {
            Some((operation, _)) if disturbed => self.tally.disturbed(operation.word()),
            Some(_) => {
                // The call was not made, so nothing has happened at it.
                self.text.steps.truncate(before);
                self.text.steps += &drawn.text(false);
            }
            None => {}
        }
        if sweeps > before_it {
            telling.swept().for_each(|(judged, used)| self.tally.judged(judged, used));
        }
        telling.judge(step).map_err(found)
    }
}

/// What a story file has by now.
struct Text {
    head: String,
    steps: String,
}

impl Text {
    /// The story of these people in which this happens.
    fn story(&self, steps: &str) -> Result<Story, NoStory> {
        let text = format!("{}{steps}", self.head);
        read("soak", Path::new("soak.toml"), &text).map_err(|wrong| {
            let wrong = wrong.iter().map(|one| one.render("soak.toml", &text, false));
            NoStory(wrong.collect::<Vec<_>>().join("\n"))
        })
    }

    fn whole(&self) -> String {
        format!("{}{}", self.head, self.steps)
    }

    fn end(&self) -> usize {
        self.head.len() + self.steps.len()
    }

    fn refused(&self, error: &io::Error) -> Box<Diagnostic> {
        let title = format!("the system refused: {error}");
        Box::new(Diagnostic::new("system", title, self.end()..self.end()))
    }
}

/// A finding about a story of one step, told about the whole, in which so many bytes of other steps
/// stand between the head and that.
fn placed(mut finding: Box<Diagnostic>, head: usize, others: usize) -> Box<Diagnostic> {
    if finding.span.start >= head {
        finding.span = finding.span.start + others..finding.span.end + others;
    }
    finding
}
