//! Every scenario is a case of its own, `host::<name>`, told in a cell with real processes.
//!
//! And each that tells of the living is told a second time, `host::always-gone/<name>`, with
//! sweeps that take everything for dead: there it has to fail, or it would not notice either.
//!
//! A case whose needs are not met here is ignored by the runner; `mortmain-lab scenario` says why.

use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use mortmain_harness::actor::wire::Subject;
use mortmain_harness::cell::REQUIRED;
use mortmain_harness::scenario::Story;
use mortmain_harness::scenario::catalogue::{Loaded, load_all};
use mortmain_harness::scenario::host::Told;
use mortmain_harness::scenario::runner::{RunError, run};

const LAB: &str = env!("CARGO_BIN_EXE_mortmain-lab");
const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");

fn main() {
    let arguments = Arguments::from_args();
    // OK because a package without its scenarios is not this one.
    let all = load_all(Path::new(SCENARIOS)).expect("the scenarios can be read");
    let mut trials = Vec::new();
    for loaded in all {
        let needs = loaded.story.iter().flat_map(|story| &story.needs);
        let ignored = needs.into_iter().any(|need| need.missing().is_some());
        let name = loaded.name.clone();
        if loaded.story.as_ref().is_ok_and(Story::tells_of_the_living) {
            let loaded = loaded.clone();
            let name = format!("host::always-gone/{name}");
            let trial = Trial::test(name, move || tell(&loaded, Subject::AlwaysGone));
            trials.push(trial.with_ignored_flag(ignored));
        }
        let trial = Trial::test(format!("host::{name}"), move || tell(&loaded, Subject::Mortmain));
        trials.push(trial.with_ignored_flag(ignored));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn tell(loaded: &Loaded, subject: Subject) -> Result<(), Failed> {
    let path = loaded.path.to_string_lossy();
    let story = match &loaded.story {
        Ok(story) => story,
        Err(found) => {
            let shown = found.iter().map(|one| one.render(&path, &loaded.text, false));
            return Err(Failed::from(shown.collect::<Vec<_>>().join("\n")));
        }
    };
    match run(LAB.as_ref(), story, subject) {
        Ok(Told::Held { .. }) if subject == Subject::AlwaysGone => {
            Err(Failed::from("it holds with sweeps that take everything for dead"))
        }
        Ok(Told::Failed { .. }) if subject == Subject::AlwaysGone => Ok(()),
        Ok(Told::Held { .. }) => Ok(()),
        Ok(Told::Failed { finding, round }) => {
            let shown = finding.render(&path, &loaded.text, false);
            Err(Failed::from(format!("in round {round}:\n{shown}")))
        }
        Err(RunError::Missing(missing)) if std::env::var_os(REQUIRED).is_none() => {
            eprintln!("skipped: {missing}");
            Ok(())
        }
        Err(error) => Err(Failed::from(error.to_string())),
    }
}
