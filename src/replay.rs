//! `mortmain-lab replay`: a saved run once more, step by step if wanted.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use mortmain_harness::diagram::Diagram;
use mortmain_harness::explore::{
    Case, Counterexample, Differs, Explanation, Failure, Replayed, Trace, Turn, explain,
};
use mortmain_harness::world::World;
use serde::Serialize;

use crate::exit::Exit;
use crate::explore::describe;
use crate::output::Output;

/// Which run.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// A file that `explore` saved
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Show names, locks and processes before and after this choice, from 1, and its lines of the timeline
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    step: Option<u32>,
    /// Draw it: a lane a process, time downward, as an SVG of its own
    #[arg(long, value_name = "OUT")]
    svg: Option<PathBuf>,
}

/// Runs it, and prints what came of it.
pub(crate) fn run(options: &Options, output: &Output) -> io::Result<Exit> {
    let path = options.file.display();
    let read = fs::read_to_string(&options.file).map_err(|error| error.to_string());
    let trace = match read.and_then(|text| Trace::parse(&text)) {
        Ok(trace) => trace,
        Err(wrong) => {
            writeln!(io::stderr(), "cannot replay {path}: {wrong}")?;
            return Ok(Exit::Usage);
        }
    };
    let choices = trace.choices.len();
    if let Some(step) = options.step
        && step as usize > choices
    {
        writeln!(io::stderr(), "{path} has {choices} choices, and no choice {step}")?;
        return Ok(Exit::Usage);
    }
    let mut around = Around::default();
    let step = options.step.map(|step| step as usize - 1);
    let replayed = trace.replay(&mut |at, label, world| around.look(step, at, label, world));
    if let (Some(step), Ok(replayed)) = (step, &replayed) {
        around.listen(step, replayed);
    }
    let found = replayed.as_ref().ok().and_then(|replayed| found_in(&trace, replayed));
    let explanation = found.as_ref().map(|found| explain(&trace.case, found));
    let (exit, verdict) = match &replayed {
        Ok(_) => (Exit::Finding, format!("{choices} choices, and the same end: {}", trace.says)),
        Err(differs) => (Exit::Diverged, format!("not the run that was saved: {differs}")),
    };
    if let (Some(out), Ok(replayed), Some(explanation)) = (&options.svg, &replayed, &explanation)
        && let Err(error) = fs::write(out, picture(&trace, replayed, explanation))
    {
        writeln!(io::stderr(), "cannot draw it as {}: {error}", out.display())?;
        return Ok(Exit::Usage);
    }
    let mut out = output.stdout();
    if output.json() {
        let line = Line {
            exit: exit as u8,
            found: &trace.found,
            says: &trace.says,
            choices,
            drawn: trace.drawn.as_deref(),
            explained: explanation.as_ref().map(ToString::to_string),
            differs: replayed.as_ref().err().map(Differs::to_string),
            before: &around.before,
            after: &around.after,
            events: &around.events,
        };
        output.json_line(&mut out, "replay", &line)?;
        return Ok(exit);
    }
    match (step, &replayed) {
        (Some(step), _) if !around.label.is_empty() => around.print(&trace, step, &mut out)?,
        (Some(step), _) => writeln!(out, "it does not come to choice {}", step + 1)?,
        (None, Ok(replayed)) => writeln!(out, "{}", replayed.timeline)?,
        (None, Err(_)) => {}
    }
    if let (None, Some(explanation)) = (step, &explanation) {
        writeln!(out, "{explanation}")?;
    }
    if let Some(drawn) = &trace.drawn {
        writeln!(out, "it was drawn: {drawn}")?;
    }
    writeln!(out, "{}", output.verdict(&verdict, false))?;
    Ok(exit)
}

/// What a saved run has shown once more.
fn found_in(trace: &Trace, replayed: &Replayed) -> Option<Counterexample> {
    let schedule = trace.choices.iter().map(|(choice, _)| *choice).collect();
    let Replayed { failure, timeline, .. } = replayed.clone();
    Some(Counterexample { failure: failure?, schedule, timeline })
}

/// The run as an SVG.
fn picture(trace: &Trace, replayed: &Replayed, explanation: &Explanation) -> String {
    let violation = match &replayed.failure {
        Some(Failure::Violation(violation)) => Some(violation),
        Some(Failure::Diverged(_) | Failure::Refused(_)) | None => None,
    };
    let swap = match &explanation.turn {
        Some(Turn::Swap { places, .. }) => Some(places.map(|place| replayed.firsts[place])),
        _ => None,
    };
    let explained = explanation.to_string();
    let mut caption = vec![trace.says.clone()];
    caption.extend(explained.lines().map(str::to_owned));
    let (timeline, title) = (&replayed.timeline, &*describe(&trace.case));
    Diagram { timeline, violation, title, caption: &caption, swap }.to_string()
}

/// The world around one choice.
#[derive(Default)]
struct Around {
    label: String,
    before: Vec<String>,
    after: Vec<String>,
    /// What happens between the two, as lines of the timeline.
    events: Vec<String>,
}

impl Around {
    fn look(&mut self, step: Option<usize>, at: usize, label: &str, world: &World) {
        if step == Some(at) {
            label.clone_into(&mut self.label);
            self.before = world.describe();
        } else if step.is_some_and(|step| step + 1 == at) {
            self.after = world.describe();
        }
    }

    fn listen(&mut self, step: usize, replayed: &Replayed) {
        let timeline = replayed.timeline.to_string();
        let lines: Vec<String> = timeline.lines().map(str::to_owned).collect();
        let place = |step: usize| replayed.firsts.get(step).copied().unwrap_or(lines.len());
        self.events = lines[place(step)..place(step + 1)].to_vec();
    }

    /// What there is before, with what is other after it, marked; and what happens.
    fn print(&self, trace: &Trace, step: usize, out: &mut impl Write) -> io::Result<()> {
        let (choice, _) = &trace.choices[step];
        writeln!(out, "before choice {}, `{choice}`: {}", step + 1, self.label)?;
        for (mark, line) in self.marked() {
            writeln!(out, "  {mark} {line}")?;
        }
        for line in &self.events {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Lines with a mark: `-` is so before and not after, `+` after and not before. What is of one
    /// thing stands together.
    fn marked(&self) -> Vec<(char, &str)> {
        let mut come: Vec<&str> = self.after.iter().map(String::as_str).collect();
        come.retain(|line| self.before.iter().all(|before| before != line));
        let mut marked = Vec::new();
        for line in &self.before {
            if self.after.contains(line) {
                marked.push((' ', line.as_str()));
                continue;
            }
            marked.push(('-', line));
            if let Some(at) = come.iter().position(|other| thing(other) == thing(line)) {
                marked.push(('+', come.remove(at)));
            }
        }
        marked.extend(come.into_iter().map(|line| ('+', line)));
        marked
    }
}

/// The path or the process that a line is of.
fn thing(line: &str) -> &str {
    let end = match line.strip_prefix("process ") {
        Some(rest) => rest.find(' ').map(|at| at + "process ".len()),
        None => line.find(", "),
    };
    &line[..end.unwrap_or(line.len())]
}

#[derive(Serialize)]
struct Line<'l> {
    exit: u8,
    found: &'l str,
    says: &'l str,
    choices: usize,
    /// The engine, the seed and the iteration, if it was drawn.
    drawn: Option<&'l str>,
    explained: Option<String>,
    differs: Option<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    before: &'l [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    after: &'l [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    events: &'l [String],
}

/// A finding that was saved, and how a command ends that has it.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) exit: Exit,
    /// Where it is, if it could be saved.
    path: Option<PathBuf>,
}

impl Saved {
    /// Where it is, for JSON.
    pub(crate) fn path(&self) -> Option<String> {
        self.path.as_ref().map(|path| path.display().to_string())
    }

    /// Says how to see it again.
    pub(crate) fn tell(&self, out: &mut impl Write) -> io::Result<()> {
        match &self.path {
            Some(path) => writeln!(out, "to see it again: mortmain-lab replay {}", path.display()),
            None => Ok(()),
        }
    }
}

/// What a run was drawn from.
pub(crate) struct Drawn {
    /// As a part of its file's name.
    pub(crate) stem: String,
    pub(crate) words: String,
}

/// Saves what a search has found, or says on standard error why not. A finding that live processes do
/// not repeat is a bug in the lab, unless it is just that they do not repeat.
pub(crate) fn save(
    dir: &Path,
    case: Case,
    found: &Counterexample,
    drawn: Option<&Drawn>,
) -> io::Result<Saved> {
    let mut trace = match Trace::of(case, found) {
        Ok(trace) => trace,
        Err(_) if matches!(found.failure, Failure::Diverged(_)) => {
            return Ok(Saved { exit: Exit::Finding, path: None });
        }
        Err(differs) => {
            writeln!(io::stderr(), "live processes do something else: {differs}")?;
            return Ok(Saved { exit: Exit::Internal, path: None });
        }
    };
    let name = trace.file_name();
    let stem = name.strip_suffix(".toml").unwrap_or(&name);
    let how = drawn.map_or("", |drawn| &drawn.stem);
    let path = dir.join(format!("{stem}{how}.toml"));
    trace.drawn = drawn.map(|drawn| drawn.words.clone());
    let written = fs::create_dir_all(dir).and_then(|()| fs::write(&path, trace.to_string()));
    if let Err(error) = &written {
        writeln!(io::stderr(), "cannot save it as {}: {error}", path.display())?;
    }
    Ok(Saved { exit: Exit::Finding, path: written.is_ok().then_some(path) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mortmain_harness::explore::Choice;
    use mortmain_harness::judge::Violation;
    use mortmain_harness::simulated::Diverged;
    use mortmain_harness::timeline::Timeline;
    use mortmain_harness::world::request::Request;

    use super::*;

    /// How a command ends that has found this, after no choice at all; it cannot be saved.
    #[track_caller]
    fn check_is_not_saved(failure: Failure, exit: Exit) {
        let timeline = Timeline { events: Vec::new() };
        let found = Counterexample { failure, schedule: vec![Choice::Recover], timeline };
        let saved = save(Path::new("/nowhere"), Case::SMALL, &found, None).expect("it can be told");
        assert_eq!((saved.exit, saved.path()), (exit, None));
    }

    #[test]
    fn what_changes_around_a_step_stands_together() {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        let around = Around {
            before: lines(&["/r", "/r/p, locked by 20", "/r/p/x, a file", "process 2 is a zombie"]),
            after: lines(&["/r", "/r/a", "/r/p", "process 2 runs `x`", "process 20 runs `x`"]),
            ..Around::default()
        };
        let marked: Vec<String> =
            around.marked().iter().map(|(mark, line)| format!("{mark} {line}")).collect();
        let expected = [
            "  /r",
            "- /r/p, locked by 20",
            "+ /r/p",
            "- /r/p/x, a file",
            "- process 2 is a zombie",
            "+ process 2 runs `x`",
            "+ /r/a",
            "+ process 20 runs `x`",
        ];
        assert_eq!(marked, expected);
    }

    #[test]
    fn a_finding_that_live_processes_do_not_repeat_is_a_bug_in_the_lab() {
        let left = Violation::Left { paths: Vec::new() };
        check_is_not_saved(Failure::Violation(left), Exit::Internal);
    }

    #[test]
    fn a_design_that_does_not_repeat_itself_is_a_finding() {
        let idle = Arc::new(Request::Idle);
        let program = "owner".into();
        let diverged = Diverged { program, at: 0, before: idle.clone(), now: idle };
        check_is_not_saved(Failure::Diverged(diverged), Exit::Finding);
    }
}
