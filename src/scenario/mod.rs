//! The command `scenario`: stories told with real processes and in the simulated kernel, and what their
//! files lack.

mod choose;
mod report;
mod tell;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use mortmain_harness::actor::wire::Subject;
use mortmain_harness::scenario::catalogue::Loaded;
use mortmain_harness::scenario::world::Tellable;
use mortmain_harness::scenario::{Diagnostic, Story};
use serde::Serialize;

use self::choose::{Refusal, chosen};

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
    /// Both, which have to agree
    #[default]
    Both,
    /// The real kernel, with real processes
    Host,
    /// The simulated kernel
    World,
}

impl On {
    fn host(self) -> bool {
        self != On::World
    }

    fn world(self) -> bool {
        self != On::Host
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            names: Vec::new(),
            list: false,
            check: false,
            table: false,
            on: On::Both,
            subject: Subject::Mortmain,
            dir: None,
        }
    }
}

pub(crate) fn subject(name: &str) -> Result<Subject, String> {
    Subject::named(name).ok_or_else(|| {
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
    report::tell_all(&stories, options, output, interrupt)
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
    /// How many of its cases the simulated kernel has what they need for, and how many there are.
    told_in_world: [usize; 2],
    /// Why the others are not told there.
    not_in_world: Vec<String>,
}

fn list(stories: &[&Story], output: &Output) -> io::Result<Exit> {
    let mut out = output.stdout();
    for story in stories {
        let tellable = Tellable::of(story);
        let listed = Listed {
            name: &story.name,
            about: &story.about,
            rules: &story.rules,
            classes: &story.classes,
            needs: story.needs.iter().map(ToString::to_string).collect(),
            missing: missing(story),
            host_only: story.host_only.as_deref(),
            told_in_world: [tellable.cases.len(), 1 + story.other_cases.len()],
            not_in_world: tellable.untold.keys().map(ToString::to_string).collect(),
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
        writeln!(out, "    {}", more.join(" · "))?;
        let [told, of] = listed.told_in_world;
        if told < of {
            let some = if told > 0 { format!("but for {told} of {of} cases: ") } else { "".into() };
            let why = listed.not_in_world.join("; ");
            writeln!(out, "    not told in the world, {some}{why}")?;
        }
        if let Some(missing) = &listed.missing {
            writeln!(out, "    cannot be told here: {missing}")?;
        }
    }
    if !output.json() {
        let untold = stories.iter().filter(|story| Tellable::of(story).cases.is_empty()).count();
        let count = several(stories.len() as u64, "scenario");
        writeln!(out, "{count}, {untold} of them on the host only")?;
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
