//! The processes that a benchmark starts: owners of many claims, and servers that start among them.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use mortmain::sys::Host;
use mortmain::{
    Claim, Condemned, ErrorKind, Namespace, Probes, Removal, Remover, Removes, SweepOptions,
};

/// The prefix of all claims here.
pub(crate) const PREFIX: &str = "bench";

/// What an owner says after the paths of its claims.
pub(crate) const MADE: &str = "made";

/// What a server says first.
pub(crate) const ANSWER: &str = "answer";

/// What it says when its sweep has removed a claim for the first time.
pub(crate) const REMOVED: &str = "removed";

/// Makes claims with so many files of a hundred bytes in each, and holds them until its input ends
/// or it is killed.
pub(super) fn owner(root: &str, count: &str, files: &str) -> io::Result<()> {
    let number = |text: &str| text.parse::<u64>().map_err(io::Error::other);
    let (count, files) = (number(count)?, number(files)?);
    let namespace = Namespace::at(root, PREFIX).map_err(io::Error::other)?;
    let mut held: Vec<Claim> = Vec::new();
    for _ in 0..count {
        let claim = namespace.create().map_err(io::Error::other)?;
        fill(claim.path(), files)?;
        held.push(claim);
    }
    let paths = held.iter().filter_map(|claim| claim.path().parent()?.to_str());
    println_and_wait(&paths.chain([MADE]).collect::<Vec<_>>().join("\n"))
}

/// What a program does that the README shows, as far as its first answer, which waits for no room on
/// the disk: where there is none it goes on without a claim. It says when its sweep has removed
/// something.
pub(super) fn server(root: &str) -> io::Result<()> {
    let namespace = Namespace::at(root, PREFIX).map_err(io::Error::other)?;
    let options = SweepOptions::default();
    let _sweep = namespace.sweep_in_background_with(options, Probes, Tells(false));
    let claim = namespace.create();
    if let Err(error) = &claim
        && error.kind() != ErrorKind::NoSpace
    {
        return Err(io::Error::other(error.clone()));
    }
    println_and_wait(ANSWER)
}

/// The real remover, which says so the first time.
struct Tells(bool);

impl Remover<Host> for Tells {
    fn remove(&mut self, claim: &Condemned<'_, Host>) -> Removal {
        let removal = Removes.remove(claim);
        if removal == Removal::Removed && !self.0 {
            self.0 = true;
            // Whoever does not read does not want to know.
            let _ = writeln!(io::stdout(), "{REMOVED}");
        }
        removal
    }
}

/// Puts files into a directory.
pub(crate) fn fill(dir: &Path, files: u64) -> io::Result<()> {
    for number in 0..files {
        fs::write(dir.join(number.to_string()), [b'x'; 100])?;
    }
    Ok(())
}

fn println_and_wait(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")?;
    // Until there is no more input, or for ever.
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
