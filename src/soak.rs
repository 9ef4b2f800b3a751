//! `mortmain-lab soak`: stories that are drawn from a seed, with real processes, for as long as is wanted.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use mortmain_harness::actor::wire::Subject;
use mortmain_harness::scenario::runner::{self as teller, RunError};
use mortmain_harness::scenario::telling::Told;
use mortmain_harness::scenario::world::Tellable;
use mortmain_harness::scenario::{Diagnostic, read};
use mortmain_harness::soak::{Asked, Place, Tally, Verdict, Went, runner, shrink};
use serde::Serialize;

use crate::exit::Exit;
use crate::explore::SAVED;
use crate::faults::jobs;
use crate::interrupt::Interrupt;
use crate::output::{Output, several};
use crate::scenario;

/// How long it takes where nothing is said: a part of the main job.
const DEFAULT: Duration = Duration::from_secs(30);
/// What stories are drawn from where nothing is said.
const SEED: u64 = 1;
/// Steps of a story where nothing is said.
const STEPS: u64 = 60;
/// How often a story is told at most to make it shorter.
const TELLINGS: usize = 200;
/// How long that may take: a story that fails by waiting takes its time.
const SHORTER: Duration = Duration::from_secs(120);

/// What is wanted.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Draw stories for so long, such as 30m [default: 30s]
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    time: Option<Duration>,
    /// Draw so many
    #[arg(long, value_name = "N", conflicts_with = "time")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
    /// Draw this one alone, from 0
    #[arg(long, value_name = "I", conflicts_with_all = ["time", "iterations"])]
    #[arg(value_parser = clap::value_parser!(u64).range(..u64::MAX))]
    iteration: Option<u64>,
    /// What stories are drawn from; the same seed draws the same
    #[arg(long, value_name = "S", default_value_t = SEED)]
    seed: u64,
    /// Steps of a story
    #[arg(long, value_name = "N", default_value_t = STEPS)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000))]
    steps: u64,
    /// Stories that are told at the same time
    #[arg(short, long, value_name = "N", env = "MORTMAIN_JOBS", default_value_t = jobs())]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=64))]
    jobs: u64,
    /// Which implementation sweeps
    #[arg(long, value_name = "NAME", value_parser = scenario::subject, default_value = "mortmain")]
    subject: Subject,
    /// Where a story that fails is saved, for `scenario`
    #[arg(long, value_name = "DIR", default_value = SAVED)]
    save: PathBuf,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            time: None,
            iterations: None,
            iteration: None,
            seed: SEED,
            steps: STEPS,
            jobs: jobs(),
            subject: Subject::Mortmain,
            save: SAVED.into(),
        }
    }
}

impl Options {
    fn asked(&self, iteration: u64) -> Asked {
        Asked { seed: self.seed, iteration, steps: self.steps, subject: self.subject }
    }

    /// The numbers of the stories that may be drawn, and how long they may be.
    fn bounds(&self) -> (std::ops::Range<u64>, Option<Duration>) {
        match (self.iteration, self.iterations) {
            // OK because the last of all is refused.
            (Some(one), _) => (one..one + 1, None),
            (None, Some(count)) => (0..count, None),
            (None, None) => (0..u64::MAX, Some(self.time.unwrap_or(DEFAULT))),
        }
    }
}

/// What came of it.
#[derive(Default)]
struct Results {
    tally: Tally,
    /// Stories that the machine has not what is needed for, and what that is.
    skipped: u64,
    missing: Option<String>,
    broken: Option<RunError>,
    failed: Option<Failed>,
    interrupted: bool,
}

/// A story that failed.
struct Failed {
    asked: Asked,
    finding: Box<Diagnostic>,
    text: String,
    place: Place,
}

/// Draws stories, tells them, and prints what came of it.
pub(crate) fn run(options: &Options, output: &Output, interrupt: &Interrupt) -> io::Result<Exit> {
    let lab = std::env::current_exe()?;
    let begun = Instant::now();
    let mut results = collect(options, &lab, output, interrupt);
    let took = begun.elapsed();
    let saved = match results.failed.take() {
        Some(failed) => Some(save(options, &lab, failed, output, interrupt)?),
        None => None,
    };
    tell(options, &results, saved.as_ref(), took, output)
}

fn collect(options: &Options, lab: &Path, output: &Output, interrupt: &Interrupt) -> Results {
    let (numbers, time) = options.bounds();
    let end = time.map(|time| Instant::now() + time);
    let (next, over) = (AtomicU64::new(numbers.start), AtomicBool::new(false));
    let goes_on = || {
        let late = end.is_some_and(|end| Instant::now() >= end);
        !late && !over.load(Ordering::Relaxed) && !interrupt.is_asked()
    };
    let work = |tell: &Sender<(Asked, Result<Went, RunError>)>| {
        while goes_on() {
            let iteration = next.fetch_add(1, Ordering::Relaxed);
            if iteration >= numbers.end {
                return;
            }
            let asked = options.asked(iteration);
            if tell.send((asked, runner::run(lab, &asked))).is_err() {
                return;
            }
        }
    };
    let progress = output.progress("soak");
    let mut results = Results::default();
    thread::scope(|scope| {
        let (tell, told) = channel();
        for _ in 0..options.jobs {
            let (tell, work) = (tell.clone(), &work);
            scope.spawn(move || work(&tell));
        }
        drop(tell);
        while let Ok((asked, went)) = told.recv() {
            results.add(asked, went);
            over.fetch_or(results.failed.is_some() || results.broken.is_some(), Ordering::Relaxed);
            match end {
                None => progress.at(results.told(), numbers.end - numbers.start, "stories"),
                Some(_) => progress.count(results.told(), "stories"),
            }
        }
    });
    progress.done();
    results.interrupted = interrupt.is_asked();
    results
}

impl Results {
    fn told(&self) -> u64 {
        self.tally.stories + self.skipped
    }

    fn add(&mut self, asked: Asked, went: Result<Went, RunError>) {
        match went {
            Ok(Went::Held(tally)) => self.tally.add(&tally),
            Ok(Went::Skipped(missing)) => {
                self.skipped += 1;
                self.missing = Some(missing);
            }
            // The first of several is enough.
            Ok(Went::Failed { .. }) if self.failed.is_some() => {}
            Ok(Went::Failed { finding, text, place }) => {
                self.failed = Some(Failed { asked, finding, text, place });
            }
            Err(error) => self.broken = Some(error),
        }
    }

    fn exit(&self, found: bool) -> Exit {
        match &self.broken {
            _ if found => Exit::Finding,
            Some(RunError::Missing(_)) => Exit::Missing,
            Some(RunError::BrokeOff(_)) => Exit::Internal,
            None if self.interrupted => Exit::Undecided,
            None if self.tally.stories == 0 => Exit::Nothing,
            None => Exit::Holds,
        }
    }
}

/// A story that failed, in a file.
struct Saved {
    /// The file; `None` if it could not be written.
    path: Option<PathBuf>,
    text: String,
    finding: Box<Diagnostic>,
    /// How many steps it had, and has.
    steps: [usize; 2],
    /// Whether it fails again when it is told again.
    again: bool,
    /// What comes of it on the other kernel, in words.
    elsewhere: String,
}

/// Saves a story that failed, as short as it can be made.
fn save(
    options: &Options,
    lab: &Path,
    failed: Failed,
    output: &Output,
    interrupt: &Interrupt,
) -> io::Result<Saved> {
    let Failed { asked, finding, text, place } = failed;
    let path = options.save.join(format!("{}.toml", asked.name()));
    let steps = |text: &str| text.matches("[[step]]").count();
    let before = steps(&text);
    let written = fs::create_dir_all(&options.save).and_then(|()| fs::write(&path, &text));
    if let Err(error) = written {
        writeln!(io::stderr(), "cannot save it as {}: {error}", path.display())?;
        let (steps, again, elsewhere) = ([before; 2], false, String::new());
        return Ok(Saved { path: None, text, finding, steps, again, elsewhere });
    }
    let progress = output.progress("shorter");
    // What is tried has a name of its own, so that the file has a story that fails, whatever happens.
    let mut trial = Trial {
        name: asked.name(),
        path: path.with_extension("trial.toml"),
        lab,
        subject: options.subject,
        place,
        like: &finding,
        tellings: 0,
        last: None,
    };
    let begun = Instant::now();
    let mut fails = |text: &str| {
        let enough = begun.elapsed() >= SHORTER || interrupt.is_asked();
        progress.count(trial.tellings, "tellings");
        !enough && trial.fails(text)
    };
    let again = fails(&text);
    let short = if again { shrink(&text, TELLINGS, &mut fails) } else { text };
    progress.done();
    let finding = trial.end().unwrap_or(finding);
    if let Err(error) = fs::write(&path, &short) {
        writeln!(io::stderr(), "it is saved as it was drawn: {error}")?;
    }
    let steps = [before, steps(&short)];
    let elsewhere = elsewhere(place, &path, lab, options.subject);
    Ok(Saved { path: Some(path), text: short, finding, steps, again, elsewhere })
}

/// What comes of a saved story on the kernel where it was not found, in words.
fn elsewhere(found: Place, path: &Path, lab: &Path, subject: Subject) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let Ok(story) = read("soak", path, &text) else { return "it cannot be read again".into() };
    let (kernel, told) = match found {
        Place::Host => {
            let tellable = Tellable::of(&story);
            if let Some(why) = tellable.untold.keys().next() {
                return format!("in the simulated kernel it cannot be told: {why}");
            }
            ("in the simulated kernel", tellable.tell(subject))
        }
        Place::World => match teller::run(lab, &story, subject) {
            Ok(told) => ("on the real kernel", told),
            Err(error) => return format!("on the real kernel it cannot be told: {error}"),
        },
    };
    match told {
        Told::Failed { finding, .. } => format!("{kernel} it fails as well: {}", finding.code),
        Told::Held { .. } => format!("{kernel} it holds"),
    }
}

/// Tells stories to see whether they fail as another did.
struct Trial<'t> {
    name: String,
    path: PathBuf,
    lab: &'t Path,
    subject: Subject,
    /// Where it was found.
    place: Place,
    /// What the other was found to do.
    like: &'t Diagnostic,
    tellings: u64,
    /// What the last that failed so was found to do.
    last: Option<Box<Diagnostic>>,
}

impl Trial<'_> {
    fn fails(&mut self, text: &str) -> bool {
        // What is no story is not told.
        let Ok(story) = read(&self.name, &self.path, text) else { return false };
        if fs::write(&self.path, text).is_err() {
            return false;
        }
        self.tellings += 1;
        let told = match self.place {
            Place::Host => teller::run(self.lab, &story, self.subject),
            Place::World => Ok(Tellable::of(&story).tell(self.subject)),
        };
        match told {
            Ok(Told::Failed { finding, .. }) if alike(&finding, self.like) => {
                self.last = Some(finding);
                true
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// Takes the file away; answers what the shortest story was found to do.
    fn end(self) -> Option<Box<Diagnostic>> {
        // It may never have been written.
        let _gone = fs::remove_file(&self.path);
        self.last
    }
}

/// Whether two findings are of the same kind: they say the same, but for paths and numbers.
fn alike(one: &Diagnostic, other: &Diagnostic) -> bool {
    let special = |word: &&str| !word.contains(|c: char| c == '/' || c.is_ascii_digit());
    let said = |finding: &Diagnostic| -> Vec<String> {
        finding.title.split_whitespace().filter(special).map(str::to_owned).collect()
    };
    one.code == other.code && said(one) == said(other)
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Line<'l> {
    exit: u8,
    seed: u64,
    skipped: u64,
    #[serde(flatten)]
    tally: &'l Tally,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<&'l Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finding: Option<&'l Diagnostic>,
    /// Whether it fails every time.
    #[serde(skip_serializing_if = "Option::is_none")]
    again: Option<bool>,
}

fn tell(
    options: &Options,
    results: &Results,
    saved: Option<&Saved>,
    took: Duration,
    output: &Output,
) -> io::Result<Exit> {
    let exit = results.exit(saved.is_some());
    let text = verdict(options, results, saved, took);
    let mut out = output.stdout();
    if output.json() {
        let line = Line {
            exit: exit as u8,
            seed: options.seed,
            skipped: results.skipped,
            tally: &results.tally,
            text,
            saved: saved.and_then(|saved| saved.path.as_deref()),
            finding: saved.map(|saved| &*saved.finding),
            again: saved.map(|saved| saved.again),
        };
        output.json_line(&mut out, "soak", &line)?;
        return Ok(exit);
    }
    if let Some(error) = &results.broken {
        writeln!(io::stderr(), "mortmain-lab: {error}")?;
    }
    let holds = |row: Vec<String>| (row, true);
    let happened = happened(&results.tally).into_iter().map(holds);
    output.table(&mut out, &["what happened", "times"], happened)?;
    let judged = judged(&results.tally).into_iter().map(holds);
    output.table(&mut out, &["claims", "because", "times"], judged)?;
    if let Some(missing) = &results.missing {
        writeln!(out, "{} skipped: needs {missing}", stories(results.skipped))?;
    }
    if let Some(saved) = saved {
        saved.tell(options, &mut out)?;
    }
    writeln!(out, "{}", output.verdict(&text, exit == Exit::Holds))?;
    Ok(exit)
}

fn stories(n: u64) -> String {
    if n == 1 { "1 story".into() } else { format!("{n} stories") }
}

/// What happened, and how often.
fn happened(tally: &Tally) -> Vec<Vec<String>> {
    let steps = tally.steps.iter().map(|(what, count)| (what.clone(), *count));
    let disturbed = tally.disturbed.iter();
    let disturbed = disturbed
        .map(|(operation, count)| (format!("stopped or killed at a call of {operation}"), *count));
    let sweeps = [
        ("sweeps that ended", tally.sweeps),
        ("canaries that vanished", tally.canaries),
        ("stories told in the simulated kernel as well", tally.in_the_world),
        ("of which went another way there", tally.otherwise),
    ];
    let sweeps = sweeps.map(|(what, count)| (what.to_owned(), count));
    let all = steps.chain(disturbed).chain(sweeps);
    all.map(|(what, count)| vec![what, count.to_string()]).collect()
}

/// What sweeps did about claims, why, and how often.
fn judged(tally: &Tally) -> Vec<Vec<String>> {
    let verdicts = tally.verdicts.iter().flat_map(|(verdict, reasons)| {
        let words = verdict.words();
        reasons.iter().map(move |(reason, count)| (words, reason, count))
    });
    let rows = verdicts
        .map(|(words, reason, count)| vec![words.into(), reason.clone(), count.to_string()]);
    rows.collect()
}

fn verdict(options: &Options, results: &Results, saved: Option<&Saved>, took: Duration) -> String {
    let tally = &results.tally;
    let removed = tally.of(Verdict::Removed);
    let head = format!(
        "{}, {} in {}, seed {}: {removed} claims removed, {} kept in use",
        stories(tally.stories),
        several(tally.all_steps(), "step"),
        humantime::format_duration(Duration::from_secs(took.as_secs())),
        options.seed,
        tally.of(Verdict::KeptInUse),
    );
    match (saved, &results.broken) {
        (Some(saved), _) => format!("{head}, and one story fails: {}", saved.finding.code),
        (None, Some(_)) => format!("{head}, and then it broke off"),
        (None, None) if results.interrupted => format!("{head}; interrupted, and nothing failed"),
        (None, None) => format!("{head}, harmed 0, leaked 0"),
    }
}

impl Saved {
    fn tell(&self, options: &Options, out: &mut impl Write) -> io::Result<()> {
        let Some(path) = &self.path else {
            writeln!(out, "{}\n{}", self.finding.render("soak.toml", &self.text, true), self.text)?;
            return Ok(());
        };
        let path = path.display();
        writeln!(out, "{}", self.finding.render(&path.to_string(), &self.text, true))?;
        let [before, after] = self.steps;
        match self.again {
            true => writeln!(out, "  {before} steps, of which it takes {after}")?,
            false => writeln!(out, "  told again it held: what was seen depends on a moment")?,
        }
        writeln!(out, "  {}", self.elsewhere)?;
        let subject = match options.subject {
            Subject::Mortmain => String::new(),
            other => format!(" --subject {}", other.name()),
        };
        writeln!(out, "  to see it again: mortmain-lab scenario {path}{subject}\n")
    }
}
