//! A suite of tests with directories, to be killed.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::LazyLock;

use mortmain::{Error, Sandbox};

use super::say;

/// Takes the directories of three tags again and again, fills them and lets them go, until it is
/// killed; says a line at every step.
pub(super) fn suite() -> io::Result<()> {
    for round in 0_u64.. {
        let first = mortmain::sandbox!("suite-first")?;
        fs::create_dir_all(first.path().join("deep/er"))?;
        say(&format!("{}", first.path().display()))?;
        let second = mortmain::sandbox!("suite-second")?;
        fs::write(second.path().join("file"), round.to_string())?;
        say(&format!("{}", second.path().display()))?;
        let detached = mortmain::detached_sandbox!("suite-detached")?;
        fs::write(detached.path().join("file"), round.to_string())?;
        say(&format!("{}", detached.path().display()))?;
    }
    Ok(())
}

/// Takes one and holds it until its input ends.
pub(super) fn hold() -> io::Result<()> {
    let sandbox = mortmain::sandbox!("held")?;
    say(&format!("{}", sandbox.path().display()))?;
    super::wait_for_end()
}

/// Does the same with a directory that is named by its process and removed at its end, as helpers of
/// suites often have it.
pub(super) fn hold_by_pid() -> io::Result<()> {
    let temp = env::var_os("TMPDIR").ok_or_else(|| io::Error::other("TMPDIR is not set"))?;
    let dir = Path::new(&temp).join(format!("suite-{}", std::process::id()));
    fs::create_dir(&dir)?;
    say(&format!("{}", dir.display()))?;
    super::wait_for_end()?;
    fs::remove_dir(dir)
}

/// Takes one for a static, which is never dropped, and makes a file that must not be there.
pub(super) fn never_dropped() -> io::Result<()> {
    static SHARED: LazyLock<Result<Sandbox, Error>> =
        LazyLock::new(|| mortmain::sandbox!("never-dropped"));
    let sandbox = SHARED.as_ref().map_err(Clone::clone)?;
    File::create_new(sandbox.path().join("file"))?;
    say(&format!("{}", sandbox.path().display()))
}

/// Takes a directory and forks; the child drops its copy and ends.
pub(super) fn forked() -> io::Result<()> {
    let mut sandbox = Some(mortmain::sandbox!("forked")?);
    let drops = super::in_child(|| {
        let _copy = sandbox.take();
        Ok(())
    })?;
    super::ends_well(drops, "drops its copy")?;
    let sandbox = sandbox.ok_or_else(|| io::Error::other("the child's copy was its parent's"))?;
    super::must(sandbox.path().is_dir(), || "a forked child has removed it".into())?;
    say("as it should be")
}
