//! A schedule that was saved, as a small file for people and programs.
//!
//! ```toml
//! # Shows it again: cargo lab replay FILE
//! version = 1
//! found = "S1"
//! says = "S1: after `rename …` of sweep 20, …"
//! case = "without=l3 manner=plain then=idle sweeps=1 kills=1 failures=0 reaping=at-once merge=yes"
//! choices = [
//!     "step 10 | mkdir 3/.p-aaaaaaaaaaa2.new",
//!     "kill 10 |",
//! ]
//! ```
//!
//! Invariants: the same trace makes the same bytes; what stands behind a bar is what a process asked for
//! when the trace was made, and a replay in which one asks for something else says where that began.
//! Whatever cannot be understood is an error with its place, never a guess. Version 2 adds to the case which
//! design it is of (`subject=`), how often time passes (`waits=`) and what is judged (`judged=`); version 3
//! what it was drawn from (`drawn`); version 4 the adversary's tricks (`tricks=`); version 5 how many owners
//! there are (`owners=`) and what they have beside their directories (`beside=`); version 6 kills of whole
//! trees (`trees=`), strangers (`strangers=`), other orders of directories (`orders=`) and whether the machine
//! starts anew in the end (`reboots=yes`). Each is written as the first version that has what it needs.

use std::fmt::{self, Write as _};

use super::choice::Choice;
use super::gate::{Case, Without};
use super::machine::Failure;
use super::replay::{ReplayError, Replayed, replay_watched};
use super::{Counterexample, Subject};
use crate::judge::{Judged, Property};
use crate::simulated::subject::{Beside, Manner, Then, word_of};
use crate::world::{Reaping, World};

/// The versions of the format: the oldest that says what there is to say is written.
const VERSIONS: [i64; 6] = [1, 2, 3, 4, 5, 6];

const JUDGED: [(&str, Judged); 5] = [
    ("all", Judged::All),
    ("s1", Judged::Only(Property::S1)),
    ("s2", Judged::Only(Property::S2)),
    ("l1", Judged::Only(Property::L1)),
    ("l2", Judged::Only(Property::L2)),
];

/// What a case says in every version.
const SAID: [&str; 8] =
    ["without", "manner", "then", "sweeps", "kills", "failures", "reaping", "merge"];

const REAPINGS: [(&str, Reaping); 2] = [("at-once", Reaping::AtOnce), ("never", Reaping::Never)];

/// A saved schedule.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What was explored.
    pub case: Case,
    /// The property that did not hold.
    pub found: String,
    /// What was found, in a sentence.
    pub says: String,
    /// The engine, the seed and the iteration that it was drawn from, before it was made short.
    pub drawn: Option<String>,
    /// The choices, and what each did.
    pub choices: Vec<(Choice, String)>,
}

/// A replay that is not the run that was saved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Differs {
    /// A choice cannot be taken.
    Cannot(ReplayError),
    /// A choice does something else.
    Does {
        /// Which, counted from 0.
        at: usize,
        /// What it did.
        was: String,
        /// What it does.
        is: String,
    },
    /// The run ends with something else.
    Ends {
        /// What it ended with.
        was: String,
        /// What it ends with.
        is: String,
    },
}

impl fmt::Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Differs::Cannot(error) => error.fmt(f),
            Differs::Does { at, was, is } => {
                write!(f, "choice {} did `{was}` when it was saved, and does `{is}`", at + 1)
            }
            Differs::Ends { was, is } => {
                write!(f, "it ended with\n  {was}\nwhen it was saved, and ends with\n  {is}")
            }
        }
    }
}

impl Trace {
    /// A trace of what a search has found.
    ///
    /// # Errors
    /// When live processes do not do the same: the search itself is wrong.
    pub fn of(case: Case, found: &Counterexample) -> Result<Trace, Differs> {
        let mut choices = Vec::new();
        let replayed = replay_watched(&case.setup(), &found.schedule, &mut |at, label, _| {
            let choice = found.schedule.get(at).copied();
            choices.extend(choice.map(|choice| (choice, label.to_owned())));
        });
        let replayed = replayed.map_err(Differs::Cannot)?;
        let says = found.failure.to_string();
        let is = ends_with(&replayed);
        if is != says {
            return Err(Differs::Ends { was: says, is });
        }
        let found = found.failure.property().into();
        Ok(Trace { case, found, says, drawn: None, choices })
    }

    /// Runs it on live processes, and compares each choice with what it did. `watch` is shown as in
    /// [`replay_watched`].
    ///
    /// # Errors
    /// At the first difference.
    pub fn replay(&self, watch: &mut dyn FnMut(usize, &str, &World)) -> Result<Replayed, Differs> {
        let schedule: Vec<Choice> = self.choices.iter().map(|(choice, _)| *choice).collect();
        let mut differs = None;
        let replayed = replay_watched(&self.case.setup(), &schedule, &mut |at, label, world| {
            if let Some((_, was)) = self.choices.get(at)
                && was != label
                && differs.is_none()
            {
                differs = Some(Differs::Does { at, was: was.clone(), is: label.to_owned() });
            }
            watch(at, label, world);
        });
        if let Some(differs) = differs {
            return Err(differs);
        }
        let replayed = replayed.map_err(Differs::Cannot)?;
        let is = ends_with(&replayed);
        if is != self.says {
            return Err(Differs::Ends { was: self.says.clone(), is });
        }
        let is = replayed.failure.as_ref().map_or("nothing", Failure::property);
        if is != self.found {
            return Err(Differs::Ends { was: self.found.clone(), is: is.into() });
        }
        Ok(replayed)
    }

    /// The oldest version that can say it.
    fn version(&self) -> i64 {
        match &self.drawn {
            _ if beyond_kills(&self.case) != [0; 4] => VERSIONS[5],
            _ if company(&self.case) != company(&Case::GATE) => VERSIONS[4],
            _ if self.case.tricks > 0 => VERSIONS[3],
            Some(_) => VERSIONS[2],
            None if extra(&self.case).is_empty() => VERSIONS[0],
            None => VERSIONS[1],
        }
    }

    /// A name for its file, the same for the same case.
    #[must_use]
    pub fn file_name(&self) -> String {
        let Case { subject, sweeps, kills, failures, waits, tricks, .. } = self.case;
        let without = Without::RULES.iter().find(|(_, rule)| *rule == self.case.without);
        let without = without.map_or("nothing", |(id, _)| id);
        let (manner, then) = (self.case.manner.word(), self.case.then.word());
        let found = self.found.to_lowercase();
        let company = match company(&self.case) {
            (1, Beside::Command) => String::new(),
            (owners, beside) => format!("-{owners}-{}", beside.word()),
        };
        let of = if subject == Subject::MORTMAIN {
            format!("without-{without}")
        } else {
            subject.name().into()
        };
        let waits = match (waits, tricks) {
            (0, 0) => String::new(),
            (_, 0) => format!("-{waits}"),
            _ => format!("-{waits}-{tricks}"),
        };
        let beyond = match beyond_kills(&self.case) {
            [0, 0, 0, 0] => String::new(),
            [trees, strangers, orders, reboots] => {
                format!("-of-{trees}-{strangers}-{orders}-{reboots}")
            }
        };
        format!(
            "{found}-{of}{company}-{manner}-{then}-{sweeps}-{kills}-{failures}{waits}{beyond}.toml"
        )
    }

    /// Reads a trace.
    ///
    /// # Errors
    /// What cannot be understood, with its line where it has one.
    pub fn parse(text: &str) -> Result<Trace, String> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| {
                text.get(..span.start).unwrap_or_default().lines().count().max(1)
            });
            format!("line {line}: {}", error.message())
        })?;
        match table.get("version").and_then(toml::Value::as_integer) {
            Some(version) if VERSIONS.contains(&version) => {}
            Some(other) => {
                let [.., newest] = VERSIONS;
                return Err(format!("it is of version {other}, and this is {newest}"));
            }
            None => return Err("it has no version, so it is no trace".into()),
        }
        let known = ["version", "found", "says", "drawn", "case", "choices"];
        if let Some(odd) = table.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("it has a key `{odd}`, which no trace has"));
        }
        let string = |key: &str| {
            let value = table.get(key).and_then(toml::Value::as_str);
            value.map(str::to_owned).ok_or_else(|| format!("`{key}` has to be a string"))
        };
        let choices = table.get("choices").and_then(toml::Value::as_array);
        let choices = choices.ok_or("`choices` has to be a list of strings")?;
        let choices = choices.iter().enumerate().map(|(at, value)| {
            let text = value.as_str().unwrap_or_default();
            let (choice, label) = text.split_once(" |").unwrap_or((text, ""));
            let choice = Choice::parse(choice)
                .ok_or_else(|| format!("choice {} is no choice: `{text}`", at + 1))?;
            Ok((choice, label.strip_prefix(' ').unwrap_or(label).to_owned()))
        });
        let choices: Vec<(Choice, String)> = choices.collect::<Result<_, String>>()?;
        let recovers = choices.iter().position(|(choice, _)| *choice == Choice::Recover);
        if let Some(at) = recovers.filter(|at| at + 1 < choices.len()) {
            return Err(format!("choice {} is `recover`, which only the last one can be", at + 1));
        }
        Ok(Trace {
            case: parse_case(&string("case")?)?,
            found: string("found")?,
            says: string("says")?,
            drawn: table.contains_key("drawn").then(|| string("drawn")).transpose()?,
            choices,
        })
    }
}

fn ends_with(replayed: &Replayed) -> String {
    replayed.failure.as_ref().map_or("nothing".into(), ToString::to_string)
}

/// The file.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# Shows it again: cargo lab replay FILE")?;
        writeln!(f, "version = {}", self.version())?;
        writeln!(f, "found = {}", quoted(&self.found))?;
        writeln!(f, "says = {}", quoted(&self.says))?;
        if let Some(drawn) = &self.drawn {
            writeln!(f, "drawn = {}", quoted(drawn))?;
        }
        writeln!(f, "case = {}", quoted(&render_case(&self.case)))?;
        writeln!(f, "choices = [")?;
        for (choice, label) in &self.choices {
            let mut line = format!("{choice} |");
            if !label.is_empty() {
                let _ = write!(line, " {label}");
            }
            writeln!(f, "    {},", quoted(&line))?;
        }
        writeln!(f, "]")
    }
}

/// The text as a string of TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

fn render_case(case: &Case) -> String {
    let without = Without::RULES.iter().find(|(_, rule)| *rule == case.without);
    let without = without.map_or("nothing", |(id, _)| id);
    let (manner, then) = (case.manner.word(), case.then.word());
    let reaping = word_of(&REAPINGS, case.reaping);
    let Case { sweeps, kills, failures, .. } = case;
    let merge = if case.merge { "yes" } else { "no" };
    format!(
        "without={without} manner={manner} then={then} sweeps={sweeps} kills={kills} \
         failures={failures} reaping={reaping} merge={merge}{}",
        extra(case)
    )
}

/// How many owners there are, and what they have.
fn company(case: &Case) -> (usize, Beside) {
    (case.owners, case.beside)
}

/// What only version 6 says.
fn beyond_kills(case: &Case) -> [u32; 4] {
    [case.trees, case.strangers, case.orders, case.reboots.into()]
}

/// What version 1 cannot say.
fn extra(case: &Case) -> String {
    let mut text = String::new();
    if case.owners != Case::GATE.owners {
        let _ = write!(text, " owners={}", case.owners);
    }
    if case.beside != Case::GATE.beside {
        let _ = write!(text, " beside={}", case.beside.word());
    }
    if case.subject != Subject::MORTMAIN {
        let _ = write!(text, " subject={}", case.subject.name());
    }
    if case.waits > 0 {
        let _ = write!(text, " waits={}", case.waits);
    }
    if case.tricks > 0 {
        let _ = write!(text, " tricks={}", case.tricks);
    }
    for (key, count) in
        [("trees", case.trees), ("strangers", case.strangers), ("orders", case.orders)]
    {
        if count > 0 {
            let _ = write!(text, " {key}={count}");
        }
    }
    if case.reboots {
        text += " reboots=yes";
    }
    if case.judged != Judged::All {
        let _ = write!(text, " judged={}", word_of(&JUDGED, case.judged));
    }
    text
}

fn parse_case(text: &str) -> Result<Case, String> {
    let mut case = Case::GATE;
    let mut said = Vec::new();
    for part in text.split_whitespace() {
        let (key, value) = part.split_once('=').ok_or_else(|| format!("`{part}` says nothing"))?;
        let wrong = || format!("`{key}` of the case cannot be `{value}`");
        let number = || value.parse::<u32>().map_err(|_error| wrong());
        if said.contains(&key) {
            return Err(format!("the case says `{key}` twice"));
        }
        said.push(key);
        match key {
            "without" if value == "nothing" => case.without = Without::Nothing,
            "without" => case.without = meaning(&Without::RULES, value).ok_or_else(wrong)?,
            "owners" if !(1..=Case::OWNERS_MAX.into()).contains(&number()?) => {
                return Err(format!("{}: 1 to {}", wrong(), Case::OWNERS_MAX));
            }
            "owners" => case.owners = number()? as usize,
            "beside" => case.beside = meaning(&Beside::WORDS, value).ok_or_else(wrong)?,
            "manner" => case.manner = meaning(&Manner::WORDS, value).ok_or_else(wrong)?,
            "then" => case.then = meaning(&Then::WORDS, value).ok_or_else(wrong)?,
            "reaping" => case.reaping = meaning(&REAPINGS, value).ok_or_else(wrong)?,
            "sweeps" if number()? > Case::SWEEPS_MAX.into() => {
                return Err(format!("{}: at most {}", wrong(), Case::SWEEPS_MAX));
            }
            "sweeps" => case.sweeps = number()? as usize,
            "kills" => case.kills = number()?,
            "failures" => case.failures = number()?,
            "waits" => case.waits = number()?,
            "tricks" => case.tricks = number()?,
            "trees" => case.trees = number()?,
            "strangers" => case.strangers = number()?,
            "orders" => case.orders = number()?,
            "reboots" if value == "yes" => case.reboots = true,
            "reboots" => return Err(wrong()),
            "subject" => case.subject = Subject::named(value).ok_or_else(wrong)?,
            "judged" => case.judged = meaning(&JUDGED, value).ok_or_else(wrong)?,
            "merge" if matches!(value, "yes" | "no") => case.merge = value == "yes",
            "merge" => return Err(wrong()),
            _ => return Err(format!("a case has no `{key}`")),
        }
    }
    if let Some(unsaid) = SAID.into_iter().find(|key| !said.contains(key)) {
        return Err(format!("the case does not say `{unsaid}`"));
    }
    if case.without != Without::Nothing && case.subject != Subject::MORTMAIN {
        let name = case.subject.name();
        return Err(format!("the case switches a rule of mortmain off, and is of {name}"));
    }
    if let Some(contradiction) = case.contradiction() {
        return Err(format!("the case contradicts itself: {contradiction}"));
    }
    Ok(case)
}

fn meaning<T: Copy>(words: &[(&'static str, T)], word: &str) -> Option<T> {
    words.iter().find(|(known, _)| *known == word).map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use mortmain::sys::Pid;

    use super::*;
    use crate::explore::{Bounds, Verdict, exhaust};

    fn found(case: Case) -> Trace {
        let exploration = exhaust(&case.setup(), &Bounds { states_max: 1_000_000 });
        let Verdict::Found(found) = exploration.verdict else { panic!("{exploration:?}") };
        Trace::of(case, &found).expect("live processes do the same")
    }

    #[test]
    fn a_trace_is_read_again_and_ends_with_the_same() {
        let rules = Without::RULES.map(|(_, rule)| rule.shown_by());
        let pid = Subject::named("pid").expect("it is known").shown_by();
        let owners = Case { owners: 2, ..pid };
        let nested = Case { beside: Beside::Nested, ..pid };
        let reboots = Case { reboots: true, judged: Judged::Only(Property::L1), ..pid };
        let others = Case { trees: 1, strangers: 1, orders: 1, ..pid };
        let more = [pid, owners, nested, reboots, others];
        for case in rules.into_iter().chain(more) {
            let trace = found(case);
            let text = trace.to_string();
            let read = Trace::parse(&text).expect("it was written just now");
            assert_eq!((read.to_string(), read.case), (text, case));
            let replayed = read.replay(&mut |_, _, _| {}).expect("nothing has changed");
            assert_eq!(replayed.failure.map(|failure| failure.to_string()), Some(trace.says));
        }
    }

    #[test]
    fn a_trace_keeps_what_it_was_drawn_from() {
        let drawn = Some("pct of depth 3, seed 7, iteration 455".to_owned());
        let trace = Trace { drawn, ..found(Without::L3.shown_by()) };
        let text = trace.to_string();
        assert!(text.contains("\nversion = 3\n"), "{text}");
        let read = Trace::parse(&text).expect("it was written just now");
        assert_eq!((read.to_string(), read.drawn), (text, trace.drawn));
    }

    #[test]
    fn a_trace_of_another_program_stops_at_the_first_difference() {
        let trace = found(Without::L3.shown_by());
        let mut other = trace.clone();
        other.choices[2].1 = "sing".into();
        let Err(Differs::Does { at, was, .. }) = other.replay(&mut |_, _, _| {}) else {
            panic!("it is not noticed");
        };
        assert_eq!((at, was.as_str()), (2, "sing"));
        let mut other = trace.clone();
        other.case.without = Without::Nothing;
        let differs = other.replay(&mut |_, _, _| {}).expect_err("it holds with the rule");
        assert!(!differs.to_string().is_empty());
        let mut other = trace.clone();
        other.found = "L1".into();
        let differs = other.replay(&mut |_, _, _| {}).expect_err("it is another property");
        assert_eq!(differs, Differs::Ends { was: "L1".into(), is: "S1".into() });
        let mut other = trace;
        other.choices[3].0 = Choice::Step(Pid(77));
        let differs = other.replay(&mut |_, _, _| {}).expect_err("there is no such process");
        assert_eq!(differs.to_string(), "choice 4 is `step 77`, which cannot be taken there");
    }

    #[test]
    fn what_is_no_trace_is_told_pointedly() {
        let good = found(Without::L3.shown_by()).to_string();
        let wrong = |from: &str, to: &str| {
            assert!(good.contains(from), "{from}");
            Trace::parse(&good.replacen(from, to, 1)).expect_err("it is wrong")
        };
        assert_eq!(wrong("version = 1", "version = 7"), "it is of version 7, and this is 6");
        assert_eq!(wrong("version = 1\n", ""), "it has no version, so it is no trace");
        assert_eq!(wrong("without=l3", "without=l9"), "`without` of the case cannot be `l9`");
        assert_eq!(wrong("kills=1", "kills=x"), "`kills` of the case cannot be `x`");
        assert_eq!(wrong("sweeps=1", "brooms=1"), "a case has no `brooms`");
        assert_eq!(
            wrong("sweeps=1", "sweeps=4000000000"),
            "`sweeps` of the case cannot be `4000000000`: at most 4"
        );
        assert_eq!(wrong("kills=1", "kills=1 kills=2"), "the case says `kills` twice");
        assert_eq!(
            wrong("kills=1", "owners=0 kills=1"),
            "`owners` of the case cannot be `0`: 1 to 3"
        );
        assert_eq!(wrong("kills=1", "beside=x kills=1"), "`beside` of the case cannot be `x`");
        assert_eq!(wrong("kills=1", "reboots=no kills=1"), "`reboots` of the case cannot be `no`");
        assert_eq!(
            wrong("then=idle", "then=wait beside=copy"),
            "the case contradicts itself: `wait` is about a command, and there is none beside `copy`"
        );
        assert_eq!(wrong("kills=1 ", ""), "the case does not say `kills`");
        assert_eq!(
            wrong("merge=yes", "merge=yes subject=pid"),
            "the case switches a rule of mortmain off, and is of pid"
        );
        assert_eq!(
            wrong("\"step 10 |", "\"recover |\", \"step 10 |"),
            "choice 1 is `recover`, which only the last one can be"
        );
        assert_eq!(wrong("case =", "drawn = 7\ncase ="), "`drawn` has to be a string");
        assert_eq!(wrong("found =", "lost ="), "it has a key `lost`, which no trace has");
        assert!(wrong("\"step 10 |", "\"stop 10 |").starts_with("choice 1 is no choice"));
        assert!(wrong("version = 1", "version =").starts_with("line 2: "));
    }
}
