//! The command `scenario`: stories told with real processes, and what their files lack.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use clap::{Args, ValueEnum};
use mortmain_harness::actor::wire::Subject;
use mortmain_harness::scenario::catalogue::{Loaded, load, load_all};
use mortmain_harness::scenario::host::Told;
use mortmain_harness::scenario::runner::{self, RunError};
use mortmain_harness::scenario::{Diagnostic, Story};
use serde::Serialize;

use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{Output, several};

/// What is wanted.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Scenarios by name, by chapter, or by the path of a file [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// List them with what they tell, and run nothing
    #[arg(long)]
    list: bool,
    /// Say what is wrong with their files, and run nothing
    #[arg(long, conflicts_with = "list")]
    check: bool,
    /// Print the table of fault classes and stories, as in docs/stories.md
    #[arg(long, conflicts_with_all = ["list", "check"])]
    table: bool,
    /// Where they are told
    #[arg(long, value_enum, default_value_t)]
    on: On,
    /// Which implementation sweeps
    #[arg(long, value_name = "NAME", value_parser = subject, default_value = "mortmain")]
    subject: Subject,
    /// Directory of the files [default: `scenarios` here or above]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Where a story is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum On {
    /// The real kernel, with real processes
    #[default]
    Host,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            names: Vec::new(),
            list: false,
            check: false,
            table: false,
            on: On::Host,
            subject: Subject::Mortmain,
            dir: None,
        }
    }
}

fn subject(name: &str) -> Result<Subject, String> {
    let known = Subject::ALL.into_iter().find(|subject| subject.name() == name);
    known.ok_or_else(|| {
        let all = Subject::ALL.map(Subject::name).join(", ");
        format!("there is no subject `{name}`; there are {all}")
    })
}

/// Runs the command.
pub(crate) fn run(options: &Options, output: &Output, interrupt: &Interrupt) -> io::Result<Exit> {
    let loaded = match chosen(options) {
        Ok(loaded) => loaded,
        Err(Refusal(exit, text)) => {
            writeln!(io::stderr(), "{text}")?;
            return Ok(exit);
        }
    };
    let mut out = output.stdout();
    let stories: Vec<&Story> = loaded.iter().filter_map(|one| one.story.as_ref().ok()).collect();
    if stories.len() < loaded.len() {
        return wrong(&loaded, output);
    }
    if options.check {
        let count = several(stories.len() as u64, "scenario");
        writeln!(out, "{}", output.verdict(&format!("{count} can be told"), true))?;
        return Ok(Exit::Holds);
    }
    if options.list {
        return list(&stories, output);
    }
    if options.table {
        return crate::stories::table(&stories, &mut out).map(|()| Exit::Holds);
    }
    tell_all(&stories, options.subject, output, interrupt)
}

/// Why nothing was chosen.
struct Refusal(Exit, String);

fn chosen(options: &Options) -> Result<Vec<Loaded>, Refusal> {
    let unreadable = |path: &Path, error: &io::Error| {
        Refusal(Exit::Usage, format!("cannot read {}: {error}", path.display()))
    };
    let (files, names): (Vec<&String>, Vec<&String>) =
        options.names.iter().partition(|name| name.ends_with(".toml"));
    let mut chosen = Vec::new();
    for file in &files {
        let path = Path::new(file);
        chosen.push(load(file, path).map_err(|error| unreadable(path, &error))?);
    }
    if !files.is_empty() && names.is_empty() {
        return Ok(chosen);
    }
    let dir = match &options.dir {
        Some(dir) => dir.clone(),
        None => find_dir().ok_or_else(|| {
            let text = "there is no directory `scenarios` here or above; give one with --dir";
            Refusal(Exit::Usage, text.into())
        })?,
    };
    let all = load_all(&dir).map_err(|error| unreadable(&dir, &error))?;
    if names.is_empty() {
        return Ok(all);
    }
    for name in names {
        let before = chosen.len();
        let matches = |one: &&Loaded| {
            let rest = one.name.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || name.ends_with('/'))
                || one.name.rsplit('/').next() == Some(name)
        };
        chosen.extend(all.iter().filter(matches).cloned());
        if chosen.len() == before {
            let near = mortmain_harness::scenario::diagnostic::did_you_mean(
                name,
                all.iter().map(|one| one.name.as_str()),
            );
            let near = near.map_or(String::new(), |near| format!("; {near}"));
            return Err(Refusal(Exit::Nothing, format!("no scenario is called `{name}`{near}")));
        }
    }
    Ok(chosen)
}

/// `scenarios` in the current directory or the nearest above that has one.
fn find_dir() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let found = here.ancestors().map(|dir| dir.join("scenarios")).find(|dir| dir.is_dir())?;
    Some(found.strip_prefix(&here).map(Path::to_owned).unwrap_or(found))
}

/// Tells everything that is wrong with the files.
fn wrong(loaded: &[Loaded], output: &Output) -> io::Result<Exit> {
    let mut out = output.stdout();
    let mut count = 0;
    for one in loaded {
        let Err(found) = &one.story else { continue };
        for diagnostic in found {
            count += 1;
            if output.json() {
                output.json_line(&mut out, "diagnostic", &Wrong::new(one, diagnostic))?;
            } else {
                let path = one.path.to_string_lossy();
                writeln!(out, "{}", diagnostic.render(&path, &one.text, true))?;
            }
        }
    }
    let files = loaded.iter().filter(|one| one.story.is_err()).count();
    if !output.json() {
        let what = several(count, "error");
        let files = several(files as u64, "file");
        writeln!(out, "{}", output.verdict(&format!("{what} in {files}"), false))?;
    }
    Ok(Exit::Usage)
}

#[derive(Serialize)]
struct Wrong<'w> {
    name: &'w str,
    path: &'w Path,
    line: usize,
    diagnostic: &'w Diagnostic,
}

impl<'w> Wrong<'w> {
    fn new(one: &'w Loaded, diagnostic: &'w Diagnostic) -> Wrong<'w> {
        let line = diagnostic.line(&one.text);
        Wrong { name: &one.name, path: &one.path, line, diagnostic }
    }
}

/// What a list has of a story.
#[derive(Serialize)]
struct Listed<'l> {
    name: &'l str,
    about: &'l str,
    rules: &'l [String],
    classes: &'l [String],
    needs: Vec<String>,
    missing: Option<String>,
    host_only: Option<&'l str>,
}

fn list(stories: &[&Story], output: &Output) -> io::Result<Exit> {
    let mut out = output.stdout();
    for story in stories {
        let listed = Listed {
            name: &story.name,
            about: &story.about,
            rules: &story.rules,
            classes: &story.classes,
            needs: story.needs.iter().map(ToString::to_string).collect(),
            missing: missing(story),
            host_only: story.host_only.as_deref(),
        };
        if output.json() {
            output.json_line(&mut out, "scenario", &listed)?;
            continue;
        }
        writeln!(out, "{}", listed.name)?;
        writeln!(out, "    {}", listed.about)?;
        let mut more = vec![format!("rules {}", listed.rules.join(" "))];
        if !listed.classes.is_empty() {
            more.push(format!("classes {}", listed.classes.join(" ")));
        }
        if !listed.needs.is_empty() {
            more.push(format!("needs {}", listed.needs.join(" ")));
        }
        more.extend(listed.host_only.map(|_| "on the host only".to_owned()));
        writeln!(out, "    {}", more.join(" · "))?;
        if let Some(missing) = &listed.missing {
            writeln!(out, "    cannot be told here: {missing}")?;
        }
    }
    if !output.json() {
        let host_only = stories.iter().filter(|story| story.host_only.is_some()).count();
        let count = several(stories.len() as u64, "scenario");
        writeln!(out, "{count}, {host_only} of them on the host only")?;
    }
    Ok(Exit::Holds)
}

/// Why a story cannot be told here.
fn missing(story: &Story) -> Option<String> {
    let missing = story.needs.iter().filter_map(|need| {
        let why = need.missing()?;
        Some(format!("needs {need}: {why}"))
    });
    let missing: Vec<String> = missing.collect();
    (!missing.is_empty()).then(|| missing.join("; "))
}

/// How it went with a story.
enum Went {
    Told(Told),
    Skipped(String),
    BrokeOff(RunError),
}

/// What a line of JSON has of it.
#[derive(Serialize)]
struct Row<'r> {
    name: &'r str,
    result: &'static str,
    rounds: u64,
    sweeps: u64,
    canaries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finding: Option<&'r Diagnostic>,
}

fn tell_all(
    stories: &[&Story],
    subject: Subject,
    output: &Output,
    interrupt: &Interrupt,
) -> io::Result<Exit> {
    let mut out = output.stdout();
    let lab = std::env::current_exe()?;
    let progress = output.progress("scenarios");
    let went = tell_in_cells(stories, &lab, subject, interrupt, |done, now| {
        progress.at(done, stories.len() as u64, now);
    });
    progress.done();
    let mut counts = Tally::default();
    let mut rows = Vec::new();
    let mut untold: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (story, went) in stories.iter().zip(&went) {
        let Some(went) = went else { continue };
        let row = counts.add(story, went);
        if output.json() {
            output.json_line(&mut out, "scenario", &row)?;
        }
        if let (Some(finding), false) = (row.finding, output.json()) {
            let path = story.path.to_string_lossy();
            writeln!(out, "{}", finding.render(&path, &story.text, true))?;
            let again = match subject {
                Subject::Mortmain => String::new(),
                other => format!(" --subject {}", other.name()),
            };
            writeln!(out, "  to see it again: mortmain-lab scenario {}{again}\n", story.name)?;
        }
        match &row.reason {
            Some(reason) => {
                let what = format!("{}, {reason}", row.result);
                untold.entry(what).or_default().push(row.name.to_owned());
            }
            None => {
                let counts = [row.rounds, row.sweeps, row.canaries].map(|count| count.to_string());
                let mut cells = vec![row.name.to_owned(), row.result.to_owned()];
                cells.extend(counts);
                rows.push((cells, row.result != "failed"));
            }
        }
    }
    let exit = counts.exit(stories.len());
    if output.json() {
        counts.exit = exit as u8;
        output.json_line(&mut out, "scenarios", &counts)?;
        return Ok(exit);
    }
    let head = ["scenario", "result", "rounds", "sweeps", "canaries"];
    output.table(&mut out, &head, rows.into_iter())?;
    for (why, names) in untold {
        writeln!(out, "{why}:\n    {}", names.join(", "))?;
    }
    writeln!(out, "{}", output.verdict(&counts.verdict(stories.len()), exit == Exit::Holds))?;
    Ok(exit)
}

/// What came of all.
#[derive(Default, Serialize)]
struct Tally {
    held: u64,
    /// Those that show a known escape: no pass, and no finding.
    escapes: u64,
    failed: u64,
    skipped: u64,
    broke_off: u64,
    sweeps: u64,
    canaries: u64,
    exit: u8,
    #[serde(skip)]
    no_cell: bool,
}

impl Tally {
    fn add<'r>(&mut self, story: &'r Story, went: &'r Went) -> Row<'r> {
        let mut row = Row {
            name: &story.name,
            result: "held",
            rounds: 0,
            sweeps: 0,
            canaries: 0,
            reason: None,
            line: None,
            finding: None,
        };
        match went {
            Went::Told(Told::Held { rounds, sweeps, canaries }) => {
                if story.shows_an_escape() {
                    self.escapes += 1;
                    row.result = "escape";
                } else {
                    self.held += 1;
                }
                self.sweeps += sweeps;
                self.canaries += canaries;
                (row.rounds, row.sweeps, row.canaries) = (*rounds, *sweeps, *canaries);
            }
            Went::Told(Told::Failed { finding, round }) => {
                self.failed += 1;
                (row.result, row.rounds) = ("failed", *round);
                row.line = Some(finding.line(&story.text));
                row.finding = Some(finding);
            }
            Went::Skipped(reason) => {
                self.skipped += 1;
                (row.result, row.reason) = ("skipped", Some(reason.clone()));
            }
            Went::BrokeOff(error) => {
                self.broke_off += 1;
                self.no_cell |= matches!(error, RunError::Missing(_));
                (row.result, row.reason) = ("broke off", Some(error.to_string()));
            }
        }
        row
    }

    fn told(&self) -> u64 {
        self.held + self.escapes + self.failed + self.skipped + self.broke_off
    }

    fn exit(&self, of: usize) -> Exit {
        let told = self.told();
        if self.failed > 0 {
            Exit::Finding
        } else if self.no_cell {
            Exit::Missing
        } else if self.broke_off > 0 {
            Exit::Internal
        } else if told < of as u64 {
            Exit::Undecided
        } else if self.held + self.escapes == 0 {
            Exit::Nothing
        } else {
            Exit::Holds
        }
    }

    fn verdict(&self, of: usize) -> String {
        let holds = if self.held == 1 { "holds" } else { "hold" };
        let mut text = format!("{} {holds}", several(self.held, "scenario"));
        match self.escapes {
            0 => {}
            1 => text += ", 1 shows a known escape",
            many => text += &format!(", {many} show known escapes"),
        }
        for (count, what) in
            [(self.failed, "failed"), (self.skipped, "skipped"), (self.broke_off, "broke off")]
        {
            if count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        let told = self.told();
        let untold = of as u64 - told;
        if untold > 0 {
            text += &format!(", {untold} not told");
        }
        text + &format!(": {}, {}", several(self.sweeps, "sweep"), canaries(self.canaries))
    }
}

fn canaries(count: u64) -> String {
    if count == 1 { "1 canary".into() } else { format!("{count} canaries") }
}

/// Tells the stories, as many at once as there are processors. What nobody wants to know any more is
/// left out.
fn tell_in_cells(
    stories: &[&Story],
    lab: &Path,
    subject: Subject,
    interrupt: &Interrupt,
    mut progress: impl FnMut(u64, &str),
) -> Vec<Option<Went>> {
    let queue: Mutex<VecDeque<usize>> = Mutex::new((0..stories.len()).collect());
    let mut went: Vec<Option<Went>> = stories.iter().map(|_| None).collect();
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let (tell, told) = channel();
        for _ in 0..jobs {
            let tell = tell.clone();
            let queue = &queue;
            scope.spawn(move || work(queue, stories, lab, subject, interrupt, &tell));
        }
        drop(tell);
        let mut done = 0;
        while let Ok((at, one)) = told.recv() {
            done += 1;
            progress(done, &stories[at].name);
            went[at] = Some(one);
        }
    });
    went
}

fn work(
    queue: &Mutex<VecDeque<usize>>,
    stories: &[&Story],
    lab: &Path,
    subject: Subject,
    interrupt: &Interrupt,
    tell: &Sender<(usize, Went)>,
) {
    while !interrupt.is_asked() {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(at) = next else { return };
        let story = stories[at];
        let went = match missing(story) {
            Some(reason) => Went::Skipped(reason),
            None => match runner::run(lab, story, subject) {
                Ok(told) => Went::Told(told),
                Err(error) => Went::BrokeOff(error),
            },
        };
        if tell.send((at, went)).is_err() {
            return;
        }
    }
}
