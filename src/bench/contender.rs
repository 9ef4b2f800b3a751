//! Who removes the same tree of dead claims: a sweep, and the commands that people use today.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use mortmain::sys::Host;
use mortmain::{
    Candidate, Finding, Namespace, Prober, Probes, Removes, Report, Scan, SweepOptions,
};
use mortmain_harness::scenario::Need;
use mortmain_harness::scratch::scratch_root;

use super::cost::Cost;
use super::parts::PREFIX;
use super::place::run;

/// A command that removes everything in a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    program: &'static str,
    command: fn(&Path) -> io::Result<Command>,
}

/// The yardstick first.
pub(crate) const ALL: [Contender; 4] = [
    Contender { name: "rm -rf", program: "rm", command: rm },
    Contender { name: "find -exec rm -rf {} +", program: "find", command: find },
    Contender {
        name: "systemd-tmpfiles --clean",
        program: "systemd-tmpfiles",
        command: systemd_tmpfiles,
    },
    Contender { name: "tmpreaper", program: "tmpreaper", command: tmpreaper },
];

impl Contender {
    /// Why it cannot be asked here.
    pub(crate) fn missing(self) -> Option<String> {
        Need::Program(self.program.into()).missing()
    }

    /// Lets it remove what is in a directory; fails if it leaves something.
    pub(crate) fn clean(self, root: &Path) -> io::Result<Cost> {
        let command = (self.command)(root)?;
        let cost = Cost::of_command(command)?;
        let left = fs::read_dir(root).map_or(0, |entries| entries.count());
        match left {
            0 => Ok(cost),
            left => Err(io::Error::other(format!("`{}` has left {left} of them", self.name))),
        }
    }
}

fn rm(root: &Path) -> io::Result<Command> {
    let mut command = Command::new("rm");
    command.arg("-rf").arg(root);
    Ok(command)
}

fn find(root: &Path) -> io::Result<Command> {
    let mut command = Command::new("find");
    command.arg(root).args(["-mindepth", "1", "-maxdepth", "1", "-exec", "rm", "-rf", "{}", "+"]);
    Ok(command)
}

fn systemd_tmpfiles(root: &Path) -> io::Result<Command> {
    let rules = scratch_root().join("bench.conf");
    // An age of 0 is that of everything.
    fs::write(&rules, format!("e {} - - - 0\n", root.display()))?;
    let mut command = Command::new("systemd-tmpfiles");
    command.arg("--clean").arg(&rules);
    Ok(command)
}

fn tmpreaper(root: &Path) -> io::Result<Command> {
    // It goes by the age of each entry, and touches a directory while it empties it.
    let mut ages = Command::new("find");
    ages.arg(root).args(["-exec", "touch", "-h", "-d", "40 days ago", "{}", "+"]);
    run(ages)?;
    let mut command = Command::new("tmpreaper");
    command.args(["--all", "--runtime=0", "--delay=0", "--symlinks", "1d"]).arg(root);
    Ok(command)
}

/// What a sweep cost, and how much of that its scans of all processes.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Swept {
    pub(crate) whole: Cost,
    pub(crate) scans: Cost,
    pub(crate) scans_made: u64,
}

/// Sweeps, as a program does that uses the library.
pub(crate) fn sweep(root: &Path) -> io::Result<(Report, Swept)> {
    let namespace = Namespace::at(root, PREFIX).map_err(io::Error::other)?;
    let mut prober = Timed::default();
    let swept = || namespace.sweep_with(&SweepOptions::default(), &mut prober, &mut Removes);
    let (report, whole) = Cost::of(swept)?;
    if let Some(error) = prober.failed {
        return Err(error);
    }
    Ok((report, Swept { whole, scans: prober.scans, scans_made: prober.made }))
}

/// The real prober, with a watch on what its scans take.
#[derive(Default, Debug)]
struct Timed {
    scans: Cost,
    made: u64,
    /// Why a cost is not known.
    failed: Option<io::Error>,
}

impl Prober<Host> for Timed {
    fn lease(&mut self, claim: &Candidate<'_, Host>) -> Finding {
        Probes.lease(claim)
    }

    fn owner(&mut self, claim: &Candidate<'_, Host>) -> Finding {
        Probes.owner(claim)
    }

    fn commands(&mut self, claim: &Candidate<'_, Host>) -> Finding {
        Probes.commands(claim)
    }

    fn life(&mut self, claims: &[&Candidate<'_, Host>]) -> Scan {
        self.made += 1;
        let mut scan = None;
        match Cost::of(|| scan = Some(Probes.life(claims))) {
            Ok(((), cost)) => self.scans = self.scans.and(cost),
            Err(error) => self.failed = Some(error),
        }
        // What could not be asked for cannot be told, and the claims stay.
        scan.unwrap_or(Scan { findings: Vec::new(), unread: 0 })
    }
}
