//! `mortmain-lab conformance`: the world beside the real kernel, program by program.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::ControlFlow;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use mortmain_harness::conformance::{
    Class, Difference, InWorld, OnHost, Side, SideError, Tally, Trial, draw, every, shrink,
};
use serde::Serialize;

use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{Output, several};

/// What is compared.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// What programs are about
    #[arg(long, value_name = "CLASS", value_parser = chosen(), default_value = ALL)]
    class: Chosen,
    /// Go through all programs of up to so many steps that change something; 0 for none
    #[arg(long, value_name = "N", default_value_t = 3)]
    every: usize,
    /// Draw so many programs of each class
    #[arg(long, value_name = "N", default_value_t = 2000)]
    programs: u64,
    /// What programs are drawn from; the same seed draws the same
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Steps of a program that is drawn
    #[arg(long, value_name = "L", default_value_t = 24)]
    length: usize,
}

/// All classes, in the place of the name of one.
const ALL: &str = "all";

/// What `--class` is read by.
fn chosen() -> impl TypedValueParser<Value = Chosen> {
    let names = Class::ALL.map(Class::name).into_iter().chain([ALL]);
    PossibleValuesParser::new(names).map(|name| {
        let one = Class::ALL.into_iter().find(|class| class.name() == name);
        Chosen(one.map_or(Class::ALL.to_vec(), |one| vec![one]))
    })
}

/// The classes that were asked for.
#[derive(Clone, Debug)]
struct Chosen(Vec<Class>);

/// What came of it.
struct Results {
    tally: Tally,
    found: Option<Difference>,
    interrupted: bool,
}

/// Compares, and prints what came of it.
pub(crate) fn run(options: &Options, output: &Output, interrupt: &Interrupt) -> io::Result<Exit> {
    if let (_, true) = classes(options) {
        writeln!(io::stderr(), "mortmain-lab: no mounts: they are root's to make")?;
    }
    let mut host = OnHost::start(&std::env::current_exe()?).map_err(io::Error::other)?;
    match collect(options, &mut host, output, interrupt) {
        Ok(results) => tell(options, &results, output),
        Err(SideError { code: Some(77), why }) => {
            writeln!(io::stderr(), "mortmain-lab: {why}")?;
            Ok(Exit::Missing)
        }
        Err(error) => Err(io::Error::other(error)),
    }
}

/// The classes that were asked for, without mounts where these cannot be made; and whether that is so.
fn classes(options: &Options) -> (Vec<Class>, bool) {
    let Chosen(asked) = &options.class;
    let may = rustix::process::geteuid().is_root();
    let classes: Vec<Class> =
        asked.iter().copied().filter(|class| may || *class != Class::Mounts).collect();
    let skipped = classes.len() < asked.len();
    (classes, skipped)
}

fn collect(
    options: &Options,
    host: &mut (impl Side + Send),
    output: &Output,
    interrupt: &Interrupt,
) -> Result<Results, SideError> {
    let progress = output.progress("conformance");
    let mut world = InWorld::default();
    let (classes, _) = classes(options);
    let mut alphabet = Vec::new();
    for class in &classes {
        alphabet.extend(if options.every > 0 { class.few() } else { Vec::new() });
        alphabet.extend(if options.programs > 0 { class.many() } else { Vec::new() });
    }
    let mut trial = Trial::new(&mut world, host, Tally::of(alphabet));
    let mut interrupted = false;
    for class in &classes {
        let what = format!("programs, {}", class.name());
        let mut each = |program| {
            progress.count(trial.tally.programs, &what);
            interrupted = interrupt.is_asked();
            if interrupted { ControlFlow::Break(()) } else { trial.add(program) }
        };
        let drawn =
            || (0..options.programs).map(|nth| draw(*class, options.seed, nth, options.length));
        let mut over = ControlFlow::Continue(());
        if options.every > 0 {
            over = every(*class, options.every, &mut each);
        }
        if over.is_continue() {
            over = drawn().try_for_each(each);
        }
        if over.is_break() {
            break;
        }
    }
    let (tally, found) = trial.end()?;
    let found = found.map(|found| shrink(found, &mut world, host)).transpose()?;
    progress.done();
    Ok(Results { tally, found, interrupted })
}

impl Results {
    fn exit(&self) -> Exit {
        match &self.found {
            Some(_) => Exit::Finding,
            None if self.tally.programs == 0 => Exit::Nothing,
            None if self.interrupted || !self.tally.never().is_empty() => Exit::Undecided,
            None => Exit::Holds,
        }
    }

    fn verdict(&self, options: &Options) -> String {
        let head = format!(
            "{}, {}, seed {}",
            several(self.tally.programs, "program"),
            several(self.tally.steps, "step"),
            options.seed
        );
        match &self.found {
            Some(_) => format!("{head}: the world and the kernel differ"),
            None if self.interrupted => format!("{head}: interrupted, and no difference so far"),
            None if self.tally.programs == 0 => "no program was asked for".into(),
            None if !self.tally.never().is_empty() => {
                format!("{head}: no difference, but not all of the alphabet was reached")
            }
            None => format!("{head}: the world does what the kernel does"),
        }
    }
}

#[derive(Serialize)]
struct Row<'r> {
    operation: &'r str,
    outcomes: &'r BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct Line<'l> {
    exit: u8,
    seed: u64,
    programs: u64,
    steps: u64,
    never: Vec<&'l str>,
    difference: Option<String>,
    text: String,
}

fn tell(options: &Options, results: &Results, output: &Output) -> io::Result<Exit> {
    let exit = results.exit();
    let mut out = output.stdout();
    let never = results.tally.never();
    let text = results.verdict(options);
    if output.json() {
        for (operation, outcomes) in results.tally.rows() {
            output.json_line(&mut out, "operation", &Row { operation, outcomes })?;
        }
        let Tally { programs, steps, .. } = results.tally;
        let difference = results.found.as_ref().map(Difference::to_string);
        let line =
            Line { exit: exit as u8, seed: options.seed, programs, steps, never, difference, text };
        output.json_line(&mut out, "conformance", &line)?;
        return Ok(exit);
    }
    let rows = results.tally.rows().map(|(operation, outcomes)| {
        let failed = outcomes.iter().filter(|(outcome, _)| *outcome != "done");
        let failed: Vec<String> = failed.map(|(word, count)| format!("{word} {count}")).collect();
        let done = outcomes.get("done").copied().unwrap_or_default();
        (vec![operation.into(), done.to_string(), failed.join(", ")], done > 0)
    });
    output.table(&mut out, &["operation", "done", "otherwise"], rows)?;
    if let Some(difference) = &results.found {
        writeln!(out, "\n{difference}")?;
    }
    if !never.is_empty() && results.found.is_none() {
        let text = format!("never done: {}", never.join(", "));
        writeln!(out, "{}", output.bad(&text))?;
    }
    writeln!(out, "{}", output.verdict(&text, exit == Exit::Holds))?;
    Ok(exit)
}
