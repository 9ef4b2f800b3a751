//! Runs a story in a cell of its own, from outside.
//!
//! The teller is the lab's binary in its hidden role `scenario-teller`; it says how the story went in
//! a line of JSON. Whatever it leaves behind ends with its cell.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::host::tell;
use super::telling::Told;
use super::{Story, catalogue};
use crate::actor::wire::Subject;
use crate::cell::{Missing, Reaping};
use crate::guard::ChildGuard;
use crate::wait::Deadline;

/// How long a story may take on a loaded machine, with all its rounds.
const STORY: Duration = Duration::from_secs(300);

/// The hidden role.
pub const ROLE: &str = "scenario-teller";

/// Why a story was not told to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There can be no cell here.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The teller broke off.
    #[error("the story was not told to its end: {0}")]
    BrokeOff(String),
}

/// Tells a story of a file in a cell of its own.
///
/// # Errors
///
/// When there can be no cell, or the teller breaks off.
pub fn run(lab: &Path, story: &Story, subject: Subject) -> Result<Told, RunError> {
    let reaping = if story.zombies_stay { Reaping::Never } else { Reaping::Always };
    let args =
        [ROLE.as_ref(), story.name.as_ref(), story.path.as_os_str(), subject.name().as_ref()];
    in_a_cell(lab, reaping, args)
}

/// Runs the lab's binary with these arguments in a cell; answers what it says in a line of JSON.
pub(crate) fn in_a_cell<T: DeserializeOwned>(
    lab: &Path,
    reaping: Reaping,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<T, RunError> {
    let broke_off = |text: String| RunError::BrokeOff(text);
    let mut command = Command::new(lab);
    command.args(["cell", "--test", &std::process::id().to_string()]);
    command.args(["--reaping", reaping.word(), "--"]).arg(lab).args(args);
    let mut teller = ChildGuard::spawn(command).map_err(|e| broke_off(e.to_string()))?;
    let deadline = Deadline::after(STORY);
    let said = teller.lines().expect_eof(deadline, "the end of the story");
    let said = said.map_err(|e| broke_off(e.to_string()))?;
    let status = teller.wait(deadline).map_err(|e| broke_off(e.to_string()))?;
    let told = said.iter().find_map(|line| serde_json::from_str(line).ok());
    match (told, status.code()) {
        (Some(told), Some(0 | 1)) => Ok(told),
        (_, Some(77)) => Err(RunError::Missing(Missing { reason: said.join("; ") })),
        _ => Err(broke_off(format!("it ended with {status}, and said: {}", said.join("; ")))),
    }
}

/// Runs the hidden role with the arguments that follow its name. Only for a cell.
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    let (name, path, subject) = (args.next(), args.next(), args.next());
    let subject = subject.and_then(|subject| Subject::named(subject.to_str()?));
    let (Some(name), Some(path), Some(subject)) = (name, path, subject) else {
        return complain(ROLE, "it needs the name of a story, its file and a subject", 2);
    };
    let loaded = match catalogue::load(&name.to_string_lossy(), Path::new(&path)) {
        Ok(loaded) => loaded,
        Err(error) => return complain(ROLE, &format!("{}: {error}", path.display()), 70),
    };
    let (Ok(story), Ok(lab)) = (loaded.story, std::env::current_exe()) else {
        return complain(ROLE, "its file cannot be understood any more", 2);
    };
    // What panics is told as a finding, with what was waited for.
    std::panic::set_hook(Box::new(|_| {}));
    let told = tell(&story, &lab, subject);
    say(ROLE, &told, matches!(told, Told::Failed { .. }))
}

/// Says how a story went, for [`in_a_cell`], and ends so.
pub(crate) fn say(role: &str, went: &impl Serialize, failed: bool) -> ExitCode {
    let written = serde_json::to_string(went)
        .map_err(io::Error::other)
        .and_then(|line| writeln!(io::stdout(), "{line}"));
    match written {
        Ok(()) => ExitCode::from(u8::from(failed)),
        Err(error) => complain(role, &error.to_string(), 70),
    }
}

pub(crate) fn complain(role: &str, text: &str, code: u8) -> ExitCode {
    // There is nowhere to tell that standard error is closed.
    let _written = writeln!(io::stderr(), "mortmain-lab {role}: {text}");
    ExitCode::from(code)
}
