//! A helper for test directories that leaks, and what takes its place.
//!
//! ```text
//! cargo run --package mortmain --example sandbox
//! ```
//!
//! Plays a suite that is killed five times in the middle of a test, as a timeout or an
//! impatient developer kills one, once with each helper, and counts what is left. What it
//! makes itself lies in a directory of a tag, too, and is gone at its end.

use std::error::Error;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io, process};

use mortmain::Sandbox;

/// What is found in many suites. It is removed by nobody when the suite is killed, and not
/// at its end either where it is held by a static; each run has another pid.
mod before {
    use super::*;

    pub(crate) struct Scratch(pub(crate) PathBuf);

    pub(crate) fn scratch(root: &Path, test: &str) -> io::Result<Scratch> {
        let dir = root.join(format!("{test}-{}", process::id()));
        fs::create_dir_all(&dir)?;
        Ok(Scratch(dir))
    }

    impl Drop for Scratch {
        #[expect(clippy::disallowed_methods, reason = "the helper is shown as it is found")]
        fn drop(&mut self) {
            let _nobody_is_told = fs::remove_dir_all(&self.0);
        }
    }
}

/// The same with a tag: a fixed place in the build tree, emptied when it is taken.
mod after {
    use super::*;

    pub(crate) fn scratch() -> Result<Sandbox, mortmain::Error> {
        mortmain::sandbox!("parses-a-long-line")
    }
}

/// A test that works in its directory until its input ends.
fn works_in(dir: &Path) -> io::Result<()> {
    fs::write(dir.join("input"), "a long line")?;
    println!("{}", dir.display());
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop)
}

/// Runs this program as a suite, kills it in its test, and returns where that worked.
#[expect(clippy::disallowed_methods, reason = "it is killed and reaped, and ends with its input")]
fn killed_suite(helper: &str, root: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let mut command = Command::new(env::current_exe()?);
    command.arg(helper).arg(root).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut suite = command.spawn()?;
    let mut line = String::new();
    let said = suite.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
    suite.kill()?;
    suite.wait()?;
    said.transpose()?;
    Ok(line.trim_end().into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    if let (Some(helper), Some(root)) = (args.next(), args.next()) {
        match &*helper {
            "before" => works_in(&before::scratch(root.as_ref(), "parses-a-long-line")?.0)?,
            _ => works_in(after::scratch()?.path())?,
        }
        return Ok(());
    }
    let root = mortmain::sandbox!("example")?;
    for (helper, kind) in [("before", "a pid in its name"), ("after", "a tag")] {
        let mut left = Vec::new();
        for _ in 0..5 {
            left.push(killed_suite(helper, root.path())?);
        }
        left.sort_unstable();
        left.dedup();
        left.retain(|dir| dir.is_dir());
        println!("{kind}: 5 killed suites left {} behind", left.len());
    }
    // The next suite takes it, and removes it at its end.
    drop(after::scratch()?);
    Ok(())
}
