//! A sweep by an actor: as a product sweeps, or with a prober or a remover of a story's own.

use std::collections::BTreeSet;
use std::path::Path;

use mortmain::protocol;
use mortmain::sys::{Errno, Host, Kernel};
use mortmain::{
    Condemned, Entry, Error, Findings, Hindrance, Namespace, Obstacle, Outcome as Became, Proof,
    Random, Removal, Remover, Removes, Report, SweepOptions,
};

use super::disturbed::{Refusal, kill_self, open, tapped_root_to_sweep};
use super::wire::{Asked, Judged, Outcome, Subject, SweepHow, Swept};
use crate::answers::Answers;

/// The claims of this process.
#[derive(Debug, Default)]
pub(super) struct Holding {
    pub(super) claims: BTreeSet<Random>,
    /// Whether the library's own table does not have them.
    pub(super) unlisted: bool,
}

/// Sweeps, and tells the report.
pub(super) fn sweep(
    id: u64,
    prefix: &str,
    root: &Path,
    how: &SweepHow,
    Holding { claims: holding, unlisted }: Holding,
) -> Result<Swept, Refusal> {
    let mut answers = answers(how);
    let mut remover = Refuses::of(how);
    let report = match (&how.disturbed, is_plain(how)) {
        (Some(_), _) => {
            let (tap, root) = tapped_root_to_sweep(prefix, root)?;
            tap.with_hook(|hook| hook.arm(id, how.disturbed.clone()));
            let options = protocol::SweepOptions { dry_run: how.dry_run, holding };
            root.sweep_with(&options, &mut answers, &mut remover)
        }
        (None, _) if unlisted => {
            let options = protocol::SweepOptions { dry_run: how.dry_run, holding };
            open(&Host, prefix, root)?.sweep_with(&options, &mut answers, &mut remover)
        }
        (None, true) if how.beside => namespace(prefix, root)?.sweep_in_background().join()?,
        (None, true) => namespace(prefix, root)?.sweep(),
        (None, false) => {
            let namespace = namespace(prefix, root)?;
            let options = SweepOptions { dry_run: how.dry_run, ..SweepOptions::default() };
            namespace.sweep_with(&options, &mut answers, &mut remover)
        }
    };
    Ok(told(&report))
}

/// Removes a claim on an operator's word, and tells the report.
pub(super) fn reclaim(prefix: &str, root: &Path, name: &str) -> Result<Swept, Refusal> {
    Ok(told(&namespace(prefix, root)?.reclaim_on_word(name, false)?))
}

fn namespace(prefix: &str, root: &Path) -> Result<Namespace, Error> {
    Namespace::at(root, prefix)
}

/// Whether nothing but the library decides.
fn is_plain(how: &SweepHow) -> bool {
    how.subject == Subject::Mortmain
        && !how.dry_run
        && how.cannot_tell.is_empty()
        && how.not_removed.is_empty()
        && !how.dies_after_one
}

/// What a sweep answers by itself, and does not ask.
pub(crate) fn answers(how: &SweepHow) -> Answers {
    let all = (how.subject == Subject::AlwaysGone).then_some(Proof::Gone);
    let of = |asked: Asked| how.cannot_tell.contains(&asked).then_some(Proof::CannotTell).or(all);
    Answers {
        lease: of(Asked::Lease),
        owner: of(Asked::Owner),
        commands: of(Asked::Commands),
        life: of(Asked::Life),
        ..Answers::default()
    }
}

/// Fails to remove some claims, or is killed after it has removed one.
pub(crate) struct Refuses {
    names: BTreeSet<String>,
    dies_after_one: bool,
}

impl Refuses {
    /// What a sweep fails to remove.
    pub(crate) fn of(how: &SweepHow) -> Refuses {
        let names = how.not_removed.iter().cloned().collect();
        Refuses { names, dies_after_one: how.dies_after_one }
    }
}

impl<K: Kernel> Remover<K> for Refuses {
    fn remove(&mut self, claim: &Condemned<'_, K>) -> Removal {
        if self.names.contains(&claim.name().to_string()) {
            let what = Hindrance::Call { what: "removing", errno: Errno::EIO };
            return Removal::Kept(Obstacle { path: Default::default(), what });
        }
        let removal = Removes.remove(claim);
        if self.dies_after_one && removal == Removal::Removed {
            kill_self();
        }
        removal
    }
}

/// What is told of a report.
pub(crate) fn told(report: &Report) -> Swept {
    Swept {
        report: report.to_string().lines().map(String::from).collect(),
        removed: report.removed(),
        kept: report.kept(),
        blocked: report.blocked(),
        foreign: usize::try_from(report.foreign).unwrap_or(usize::MAX),
        trouble: report.trouble.map(|trouble| format!("{}: {}", trouble.what, trouble.errno)),
        claims: report.entries.iter().map(judged).collect(),
    }
}

/// What a removal rests on, but for the lease, which is the same in all.
fn codes(findings: &Findings) -> Vec<&'static str> {
    let answers = findings.owner.iter().chain(&findings.commands);
    answers.map(|finding| finding.evidence.code()).collect()
}

fn judged(entry: &Entry) -> Judged {
    let (outcome, because) = match &entry.outcome {
        Became::Removed(findings) => (Outcome::Removed, codes(findings)),
        Became::WouldRemove(findings) => (Outcome::WouldRemove, codes(findings)),
        Became::Kept(findings) => {
            let against = findings.against().map(|finding| finding.evidence.code());
            (Outcome::Kept, against.collect())
        }
        Became::Blocked(obstacle) => (Outcome::Blocked, vec![obstacle.what.code()]),
        Became::Partial(obstacles) => {
            (Outcome::Partial, obstacles.iter().map(|obstacle| obstacle.what.code()).collect())
        }
        // A kind that this does not know yet is no removal.
        _ => (Outcome::Kept, Vec::new()),
    };
    Judged {
        name: entry.name.to_string(),
        outcome,
        because: because.into_iter().map(String::from).collect(),
        told: entry.outcome.to_string(),
    }
}
