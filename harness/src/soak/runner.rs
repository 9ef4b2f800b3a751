//! Draws and tells a story in a cell of its own, from outside.
//!
//! Whoever tells it is the lab's binary in its hidden role `soak-teller`; it says how the story went in a
//! line of JSON. Whatever it leaves behind ends with its cell.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use super::{Asked, Went, tell};
use crate::actor::wire::Subject;
use crate::cell::Reaping;
use crate::scenario::runner::{RunError, complain, in_a_cell, say};

/// The hidden role.
pub const ROLE: &str = "soak-teller";

/// Draws and tells a story in a cell of its own.
///
/// # Errors
///
/// When there can be no cell, or the teller breaks off.
pub fn run(lab: &Path, asked: &Asked) -> Result<Went, RunError> {
    let Asked { seed, iteration, steps, subject } = asked;
    let numbers = [seed, iteration, steps].map(|number| OsString::from(number.to_string()));
    let args = [OsString::from(ROLE)].into_iter().chain(numbers);
    in_a_cell(lab, Reaping::Always, args.chain([OsString::from(subject.name())]))
}

/// Runs the hidden role with the arguments that follow its name. Only for a cell.
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Some((asked, lab)) = asked(args).zip(std::env::current_exe().ok()) else {
        return complain(ROLE, "it needs a seed, a number, how many steps, and a subject", 2);
    };
    // What panics is told as a finding, with what was waited for.
    std::panic::set_hook(Box::new(|_| {}));
    match tell(&asked, &lab) {
        Ok(went) => say(ROLE, &went, matches!(went, Went::Failed { .. })),
        Err(mistake) => complain(ROLE, &mistake.to_string(), 70),
    }
}

fn asked(args: impl IntoIterator<Item = OsString>) -> Option<Asked> {
    let mut args = args.into_iter().map(|arg| arg.into_string().ok());
    let mut number = || args.next()??.parse().ok();
    let (seed, iteration, steps) = (number()?, number()?, number()?);
    let subject = Subject::named(&args.next()??)?;
    Some(Asked { seed, iteration, steps, subject })
}
