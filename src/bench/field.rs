//! Many claims, of owners who live and of owners who were killed.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use mortmain_harness::guard::ChildGuard;
use mortmain_harness::wait::Deadline;

use super::ROLE;
use super::parts::MADE;

/// Claims of one owner, each of which takes descriptors of it.
const EACH: u64 = 2_000;
/// Files in each claim.
pub(crate) const FILES: u64 = 3;
/// Longer than an owner takes for its claims on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Owners who live. Their claims are given up when it goes.
#[derive(Debug)]
pub(crate) struct Living {
    owners: Vec<(ChildGuard, Vec<PathBuf>)>,
}

impl Living {
    /// Where their claims lie.
    pub(crate) fn claims(&self) -> impl Iterator<Item = &PathBuf> {
        self.owners.iter().flat_map(|(_, claims)| claims)
    }
}

/// Makes so many claims whose owners live.
pub(crate) fn living(root: &Path, count: u64, files: u64) -> io::Result<Living> {
    let mut owners = Vec::new();
    for part in parts(count) {
        owners.push(owner(root, part, files)?);
    }
    Ok(Living { owners })
}

/// Makes so many claims, and kills their owners.
pub(crate) fn dead(root: &Path, count: u64, files: u64) -> io::Result<()> {
    for part in parts(count) {
        owner(root, part, files)?.0.kill_hard().map_err(io::Error::other)?;
    }
    Ok(())
}

/// The shares of owners in so many claims.
fn parts(count: u64) -> impl Iterator<Item = u64> {
    (0..count).step_by(EACH as usize).map(move |begun| EACH.min(count - begun))
}

fn owner(root: &Path, count: u64, files: u64) -> io::Result<(ChildGuard, Vec<PathBuf>)> {
    let mut command = Command::new(env::current_exe()?);
    command.args([ROLE, "owner"]).arg(root).args([count.to_string(), files.to_string()]);
    let mut owner = ChildGuard::spawn_with_stdin(command).map_err(io::Error::other)?;
    let mut claims = Vec::new();
    loop {
        let said = owner.lines().next_line(Deadline::after(PATIENCE), "claims to be made");
        match said.map_err(io::Error::other)? {
            said if said == MADE => return Ok((owner, claims)),
            claim if Path::new(&claim).is_absolute() => claims.push(claim.into()),
            other => return Err(io::Error::other(format!("an owner said `{other}`"))),
        }
    }
}

/// Processes that do nothing, so that a scan has something to look at.
#[derive(Debug)]
pub(crate) struct Crowd {
    _guard: Option<ChildGuard>,
}

impl Crowd {
    /// As many as there have to be for so many in the whole cell.
    pub(crate) fn up_to(processes: u64) -> io::Result<Crowd> {
        let there = mortmain_harness::processes::processes()?.len() as u64;
        let missing = processes.saturating_sub(there);
        if missing == 0 {
            return Ok(Crowd { _guard: None });
        }
        let mut command = Command::new("sh");
        // The shell is one of them, and stays although it may have no other to wait for.
        let script =
            "i=1; while [ $i -lt $0 ]; do sleep 1000000 & i=$((i + 1)); done; echo; read end";
        command.args(["-c", script, &missing.to_string()]);
        let mut guard = ChildGuard::spawn_with_stdin(command).map_err(io::Error::other)?;
        let all_there = guard.lines().next_line(Deadline::after(PATIENCE), "a crowd to gather");
        all_there.map_err(io::Error::other)?;
        Ok(Crowd { _guard: Some(guard) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_share_claims_without_a_rest() {
        for count in [0, 1, EACH - 1, EACH, EACH + 1, 50_000] {
            assert_eq!(parts(count).sum::<u64>(), count);
            assert!(parts(count).all(|part| (1..=EACH).contains(&part)));
        }
    }
}
