//! A prober that gives answers of its own to some of the questions, and the real ones to the rest.
//!
//! What a sweep does with an answer, and what the real prober answers, can so be looked at apart:
//! "the commands have ended, as far as this probe can see" of a claim whose owner lives, or "the
//! owner cannot be found out about" of one that is dead.
//!
//! Invariant: a question that is answered here is not asked of the system at all.

use mortmain::protocol::{Root, SweepOptions};
use mortmain::sys::{Kernel, Name};
use mortmain::{
    Candidate, Evidence, Finding, Findings, Outcome, Prober, Probes, Proof, Question, Removes,
    Report, Scan,
};

/// Answers of a test's own; where there is none, the real prober is asked.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// To l1.
    pub lease: Option<Proof>,
    /// To l2.
    pub owner: Option<Proof>,
    /// To l3.
    pub commands: Option<Proof>,
    /// To l4, of every claim.
    pub life: Option<Proof>,
    /// What was asked so far of the three, in order.
    pub asked: Vec<Question>,
}

impl Answers {
    /// Says that nobody has the lease and the owner has ended, whatever is true, so that everything
    /// hangs on the commands.
    #[must_use]
    pub fn but_for_commands() -> Self {
        Self { lease: Some(Proof::Gone), owner: Some(Proof::Gone), ..Self::default() }
    }
}

impl Answers {
    /// Says that nobody is seen to use a claim (l4), whatever is true.
    #[must_use]
    pub fn nobody_seen() -> Self {
        Self { life: Some(Proof::Gone), ..Self::default() }
    }
}

fn or_real(answer: Option<Proof>, real: impl FnOnce() -> Finding) -> Finding {
    match answer {
        Some(proof) => Finding { proof, evidence: Evidence::Injected },
        None => real(),
    }
}

impl<K: Kernel> Prober<K> for Answers {
    fn lease(&mut self, claim: &Candidate<'_, K>) -> Finding {
        self.asked.push(Question::Lease);
        or_real(self.lease, || Probes.lease(claim))
    }

    fn owner(&mut self, claim: &Candidate<'_, K>) -> Finding {
        self.asked.push(Question::Owner);
        or_real(self.owner, || Probes.owner(claim))
    }

    fn commands(&mut self, claim: &Candidate<'_, K>) -> Finding {
        self.asked.push(Question::Commands);
        or_real(self.commands, || Probes.commands(claim))
    }

    fn life(&mut self, claims: &[&Candidate<'_, K>]) -> Scan {
        match self.life {
            Some(proof) => {
                let finding = Finding { proof, evidence: Evidence::Injected };
                Scan { findings: vec![finding; claims.len()], unread: 0 }
            }
            None => Probes.life(claims),
        }
    }
}

/// Gives a verdict of everything in a root by these answers, and touches nothing.
pub fn dry_run<K: Kernel>(root: &Root<K>, answers: &mut Answers) -> Report {
    let options = SweepOptions { dry_run: true, ..SweepOptions::default() };
    root.sweep_with(&options, answers, &mut Removes)
}

/// What the real prober says now of the commands of a claim, whoever holds its lease.
///
/// # Panics
///
/// When the claim is not there.
#[must_use]
#[track_caller]
pub fn commands_now<K: Kernel>(root: &Root<K>, claim: &Name) -> Finding {
    let report = dry_run(root, &mut Answers::but_for_commands());
    let entry = report.entries.iter().find(|entry| entry.name == *claim);
    match entry.map(|entry| &entry.outcome) {
        Some(
            Outcome::Kept(Findings { commands, .. })
            | Outcome::WouldRemove(Findings { commands, .. }),
        ) => commands.clone().expect("it was asked"),
        other => panic!("{claim} was not judged: {other:?} in:\n{report}"),
    }
}
