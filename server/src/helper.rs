//! The helper programs in the claim's `bin` directory: this program under other names.
//!
//! They are links to it. A copy could not be executed below a root that is mounted `noexec`, and one
//! that is just being written cannot be executed anywhere. They need nothing of the server: a command
//! that has outlived it goes on to use them.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::ExitCode;

use crate::failure::Failure;
use crate::notes::{Change, Notes};

/// The variable that tells a command its session directory.
pub(crate) const SESSION: &str = "MORTMAIN_SESSION";
/// The variable that tells a command the file of the notes.
pub(crate) const NOTES: &str = "MORTMAIN_NOTES";

/// What a helper does with its arguments.
type Help = fn(Vec<OsString>) -> Result<(), Failure>;

const PROGRAMS: [(&str, Help); 2] = [("mortmain-session", session), ("mortmain-note", note)];

/// Puts the links into a directory.
pub(crate) fn link_all(bin: &Path) -> io::Result<()> {
    let own = env::current_exe()?;
    PROGRAMS.iter().try_for_each(|(name, _)| symlink(&own, bin.join(name)))
}

/// Does what the helper of this name does; `None` when this program was not started as one.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let called = args.next()?;
    let name = Path::new(&called).file_name()?;
    let (_, help) = PROGRAMS.iter().find(|(program, _)| name == *program)?;
    Some(help(args.collect()).map_or_else(Failure::told, |()| ExitCode::SUCCESS))
}

fn told(variable: &str) -> Result<OsString, Failure> {
    let why = format_args!("{variable} is not set: this helps a command of the server").to_string();
    env::var_os(variable).ok_or_else(|| Failure::given(why))
}

/// Prints the session directory.
fn session(_args: Vec<OsString>) -> Result<(), Failure> {
    let session = told(SESSION)?;
    io::stdout().write_all(&[session.as_bytes(), b"\n"].concat()).map_err(Failure::system)
}

/// Adds a note of its arguments, as the tool `notes` does.
fn note(args: Vec<OsString>) -> Result<(), Failure> {
    let words: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    if words.is_empty() {
        return Err(Failure::given("usage: mortmain-note WORD…"));
    }
    let notes = Notes::at(Path::new(&told(NOTES)?)).map_err(Failure::given)?;
    notes.change(&Change::Add(words.join(" "))).map(drop).map_err(Failure::system)
}
