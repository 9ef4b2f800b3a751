//! Every scenario is a case of its own, `host::<name>`, told in a cell with real processes; and another,
//! `world::<name>`, told in the simulated kernel as far as that has what it needs.
//!
//! Each that tells of the living is told once more by both, `host::always-gone/<name>` and
//! `world::always-gone/<name>`, with sweeps that take everything for dead: there it has to fail, or it
//! would not notice either.
//!
//! What is told on the host has to agree with what the world tells of it, sweep by sweep and claim by claim.
//!
//! A case whose needs the machine does not meet is ignored by the runner, and a story that the simulated kernel
//! cannot tell has no case there; `mortmain-lab scenario` says why.

use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use mortmain_harness::ArenaAllocator;
use mortmain_harness::actor::wire::Subject;
use mortmain_harness::cell::REQUIRED;
use mortmain_harness::scenario::Story;
use mortmain_harness::scenario::catalogue::{Loaded, load_all};
use mortmain_harness::scenario::runner::{RunError, run};
use mortmain_harness::scenario::telling::{Told, differences};
use mortmain_harness::scenario::world::Tellable;

#[global_allocator]
static ALLOCATOR: ArenaAllocator = ArenaAllocator;

const LAB: &str = env!("CARGO_BIN_EXE_mortmain-lab");
const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");

/// Tells a story of a file in one of the two ways.
type Tell = fn(&Loaded, &Story, Subject) -> Result<(), Failed>;

fn main() {
    let arguments = Arguments::from_args();
    // OK because a package without its scenarios is not this one.
    let all = load_all(Path::new(SCENARIOS)).expect("the scenarios can be read");
    let mut trials = Vec::new();
    for loaded in all {
        let story = loaded.story.as_ref();
        let needs = story.iter().flat_map(|story| &story.needs);
        let missing = needs.into_iter().any(|need| need.missing().is_some());
        let untold = story.is_ok_and(|story| Tellable::of(story).cases.is_empty());
        trials.extend(told_by("host", &loaded, missing, on_host));
        if !untold {
            trials.extend(told_by("world", &loaded, false, in_world));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// The cases of a story that is told in one way.
fn told_by(way: &str, loaded: &Loaded, ignored: bool, tell: Tell) -> Vec<Trial> {
    let case = |name: String, subject: Subject| {
        let loaded = loaded.clone();
        let trial = Trial::test(name, move || told(&loaded, subject, tell));
        trial.with_ignored_flag(ignored)
    };
    let name = &loaded.name;
    let mut cases = vec![case(format!("{way}::{name}"), Subject::Mortmain)];
    if loaded.story.as_ref().is_ok_and(Story::tells_of_the_living) {
        cases.push(case(format!("{way}::always-gone/{name}"), Subject::AlwaysGone));
    }
    cases
}

fn told(loaded: &Loaded, subject: Subject, tell: Tell) -> Result<(), Failed> {
    match &loaded.story {
        Ok(story) => tell(loaded, story, subject),
        Err(found) => {
            let path = loaded.path.to_string_lossy();
            let shown = found.iter().map(|one| one.render(&path, &loaded.text, false));
            Err(Failed::from(shown.collect::<Vec<_>>().join("\n")))
        }
    }
}

fn on_host(loaded: &Loaded, story: &Story, subject: Subject) -> Result<(), Failed> {
    match run(LAB.as_ref(), story, subject) {
        Ok(told) => {
            agrees_with_world(story, subject, &told)?;
            judge(loaded, subject, told)
        }
        Err(RunError::Missing(missing)) if std::env::var_os(REQUIRED).is_none() => {
            eprintln!("skipped: {missing}");
            Ok(())
        }
        Err(error) => Err(Failed::from(error.to_string())),
    }
}

/// Fails if the sweeps of the two tellings do not say the same, of all that both have told.
fn agrees_with_world(story: &Story, subject: Subject, told: &Told) -> Result<(), Failed> {
    let (Told::Held { verdicts: host, .. }, Told::Held { verdicts: world, .. }) =
        (told, &Tellable::of(story).tell(subject))
    else {
        return Ok(());
    };
    match &differences(story, host, world)[..] {
        [] => Ok(()),
        [first, ..] => Err(Failed::from(format!("in the world it is told otherwise:{first}"))),
    }
}

fn in_world(loaded: &Loaded, story: &Story, subject: Subject) -> Result<(), Failed> {
    judge(loaded, subject, Tellable::of(story).tell(subject))
}

/// Whether a story went as it must with a subject.
fn judge(loaded: &Loaded, subject: Subject, told: Told) -> Result<(), Failed> {
    match (told, subject) {
        (Told::Held { .. }, Subject::AlwaysGone) => {
            Err(Failed::from("it holds with sweeps that take everything for dead"))
        }
        (Told::Held { .. }, Subject::Mortmain) | (Told::Failed { .. }, Subject::AlwaysGone) => {
            Ok(())
        }
        (Told::Failed { finding, round }, Subject::Mortmain) => {
            let path = loaded.path.to_string_lossy();
            let shown = finding.render(&path, &loaded.text, false);
            Err(Failed::from(format!("in round {round}:\n{shown}")))
        }
    }
}
