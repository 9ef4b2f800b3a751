//! Every saved run is a case of its own, `world::<file>`: it has to end as it did when it was saved.
//!
//! What is kept here are runs of the protocol with a rule switched off, each the shortest that shows
//! what the rule is for, and of designs that were rejected, each the shortest that shows why. A change
//! of the protocol's calls makes them anew; a run that ends otherwise, or that the programs do not make
//! any more, is a change that somebody has to look at.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use mortmain_harness::ArenaAllocator;
use mortmain_harness::explore::Trace;

#[global_allocator]
static ALLOCATOR: ArenaAllocator = ArenaAllocator;

const SAVED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/regressions");

fn main() {
    let arguments = Arguments::from_args();
    let mut paths = Vec::new();
    // OK because a package without its saved runs is not this one.
    for entry in fs::read_dir(SAVED).expect("the saved runs can be listed") {
        paths.push(entry.expect("the saved runs can be listed").path());
    }
    paths.sort_unstable();
    let trials = paths.into_iter().map(|path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Trial::test(format!("world::{name}"), move || ends_as_before(&path))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

fn ends_as_before(path: &PathBuf) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let trace = Trace::parse(&text).map_err(Failed::from)?;
    trace.replay(&mut |_, _, _| {}).map_err(|differs| Failed::from(differs.to_string()))?;
    if trace.to_string() != text {
        return Err(Failed::from("written again it is not the same file"));
    }
    let wanted = trace.file_name();
    match Path::new(&wanted).file_name() == path.file_name() {
        true => Ok(()),
        false => Err(Failed::from(format!("its name has to be {wanted}"))),
    }
}
