//! The sweep: every claim under a root gets its verdict, and what may go goes.
//!
//! One judge for all names: a staging, a claim and a tombstone pass the same
//! three questions, and there is no path to a removal that goes round them. A
//! sweep asks and never waits; what it cannot tell it keeps; what it meets in
//! one claim stops it at no other.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::evidence::{Evidence, Finding, Hindrance, Obstacle};
use crate::grammar::{ClaimName, Random};
use crate::probe::{Candidate, Prober, Probes};
use crate::remove::{Condemned, Removal, Remover, Removes};
use crate::report::{Entry, Findings, Outcome, Report};
use crate::root::{Root, open_own, still_named};
use crate::sys::{Answer, Errno, Identity, Kernel, KernelExt, Name, PathBytes};
use crate::verdict::{Proof, Verdict, verdict};

/// Claims that one sweep looks at; a root with more is finished by later ones.
const CLAIMS_MAX: usize = 1 << 20;

/// What a sweep is to do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SweepOptions {
    /// Give verdicts and remove nothing. The leases of dead claims are still
    /// taken for a moment.
    pub dry_run: bool,
    /// The claims that the sweeping process itself holds. A claim whose record
    /// names this process, but which it does not hold, was left by a program
    /// that it replaced by exec.
    pub holding: BTreeSet<Random>,
}

impl<K: Kernel> Root<K> {
    /// Sweeps with the real prober and remover.
    ///
    /// See [`Root::sweep_with`].
    pub fn sweep(&self, options: &SweepOptions) -> Report {
        self.sweep_with(options, &mut Probes, &mut Removes)
    }

    /// Looks at every claim of the root's prefix, gives each its verdict, and
    /// removes what may go.
    ///
    /// See [`Root::sweep_until`].
    pub fn sweep_with<P: Prober<K>, R: Remover<K>>(
        &self,
        options: &SweepOptions,
        prober: &mut P,
        remover: &mut R,
    ) -> Report {
        self.sweep_until(options, prober, remover, &mut || false)
    }

    /// As [`Root::sweep_with`], until it is enough: that is asked after each
    /// claim, so that a sweep with however little time looks at one. It begins
    /// at a different place each time (b2).
    ///
    /// A sweep does not fail: what went wrong stands in the report, and the
    /// next sweep tries again (b3).
    ///
    /// # Crash behaviour
    /// Killed at any call, it leaves claims as they were, or tombstones that
    /// the next sweep judges again and finishes. Several sweeps at once step
    /// aside for each other.
    pub fn sweep_until<P: Prober<K>, R: Remover<K>>(
        &self,
        options: &SweepOptions,
        prober: &mut P,
        remover: &mut R,
        enough: &mut dyn FnMut() -> bool,
    ) -> Report {
        let mut report = Report::new(self, options.dry_run);
        let me = match self.kernel().identity() {
            Ok(me) => me,
            Err(errno) => return report.in_trouble("finding out who sweeps", errno),
        };
        let mut names = match self.claims() {
            Ok(names) => names,
            // CHECK(b3-never-fails): whoever starts must not fail because of what others left.
            Err(errno) => return report.in_trouble("listing the root", errno),
        };
        if names.len() >= CLAIMS_MAX {
            // The rest is a later sweep's, and told.
            report = report.in_trouble("listing more than a million claims", Errno::EOVERFLOW);
        }
        let start = self.start(names.len());
        // CHECK(b2-begins-elsewhere): killed early each time, sweeps that all begin at one end never
        // come to the other.
        names.rotate_left(start);
        let mut judge = Judge { root: self, me: &me, options, prober, remover };
        let mut unseen = names.len();
        for (name, parsed) in names {
            match judge.judge(&name, parsed) {
                Seen::Vanished => {}
                Seen::Foreign => report.foreign += 1,
                Seen::Judged(outcome) => {
                    report.entries.push(Entry { name, place: parsed.place, outcome });
                }
            }
            unseen -= 1;
            // CHECK(b2-budget): whoever gave it so much time has none left to give.
            if enough() {
                report.unseen = unseen;
                break;
            }
        }
        report
    }

    /// Where in a listing of so many to begin: at random, which needs no place
    /// to remember anything in. Where there is nothing random, at the first.
    fn start(&self, claims: usize) -> usize {
        if claims < 2 {
            return 0;
        }
        let number = self.kernel().random().unwrap_or(0);
        // It fits, being below a number of that type.
        (number % claims as u64) as usize
    }

    /// The claims of the root, by name, in the order of the listing.
    fn claims(&self) -> Answer<Vec<(Name, ClaimName)>> {
        let mut names = Vec::new();
        let mut restart = true;
        loop {
            let batch = self.fd().read_dir(restart)?;
            restart = false;
            if batch.is_empty() || names.len() >= CLAIMS_MAX {
                return Ok(names);
            }
            names.extend(batch.into_iter().filter_map(|entry| {
                let parsed = self.prefix().parse(&entry.name)?;
                Some((entry.name, parsed))
            }));
        }
    }
}

/// What was seen of one name.
enum Seen {
    /// Somebody else removed or renamed it meanwhile.
    Vanished,
    /// It is another user's (l5).
    Foreign,
    /// It got its verdict.
    Judged(Outcome),
}

struct Judge<'s, K: Kernel, P, R> {
    root: &'s Root<K>,
    me: &'s Identity,
    options: &'s SweepOptions,
    prober: &'s mut P,
    remover: &'s mut R,
}

impl<K: Kernel, P: Prober<K>, R: Remover<K>> Judge<'_, K, P, R> {
    fn judge(&mut self, name: &Name, parsed: ClaimName) -> Seen {
        let kept =
            |what| Seen::Judged(Outcome::Blocked(Obstacle { path: PathBytes::default(), what }));
        let opened = match self.options.dry_run {
            true => self.root.fd().open_dir(name),
            false => open_own(self.root.fd(), name),
        };
        let dir = match opened {
            Ok(dir) => dir,
            Err(Errno::ENOENT) => return Seen::Vanished,
            Err(Errno::EXDEV) => return kept(Hindrance::Mount),
            Err(errno) => return self.unopened(name, errno),
        };
        let stat = match dir.stat() {
            Ok(stat) => stat,
            Err(errno) => return kept(Hindrance::Call { what: "looking at", errno }),
        };
        if self.is_foreign(stat.uid) {
            return Seen::Foreign;
        }
        let (root, me, options) = (self.root, self.me, self.options);
        let claim = Candidate::new(root, me, options, (name, parsed), dir, stat);
        let lease = self.prober.lease(&claim);
        // CHECK(b1-lock-first): of a live claim nothing is read.
        if lease.proof != Proof::Gone {
            return Seen::Judged(Outcome::Kept(Findings::of_lease(lease)));
        }
        match still_named(self.root.fd(), name, claim.dir.fd()) {
            Ok(Some(_)) => {}
            // CHECK(c2-sweep): the lock is on what was opened, which is another directory's by now.
            Ok(None) => return Seen::Vanished,
            Err(errno) => return kept(Hindrance::Call { what: "looking at", errno }),
        }
        let owner = self.prober.owner(&claim);
        let commands = self.prober.commands(&claim);
        let proofs = (lease.proof, owner.proof, commands.proof);
        let findings = Findings { lease, owner: Some(owner), commands: Some(commands) };
        match verdict(proofs.0, proofs.1, proofs.2) {
            Verdict::Keep(_) => Seen::Judged(Outcome::Kept(findings)),
            Verdict::Remove => {
                let (random, place) = (parsed.random, parsed.place);
                let dir = claim.dir.fd();
                let condemned = Condemned::new(root, me, name, random, place, dir, stat);
                Seen::Judged(self.carry_out(&condemned, findings))
            }
        }
    }

    fn carry_out(&mut self, condemned: &Condemned<'_, K>, findings: Findings) -> Outcome {
        // CHECK(r1-dry-run): whoever asked to see only wants to see.
        if self.options.dry_run {
            return match condemned.look(false) {
                None => Outcome::WouldRemove(findings),
                Some(obstacle) => Outcome::Blocked(obstacle),
            };
        }
        match self.remover.remove(condemned) {
            Removal::Removed => Outcome::Removed(findings),
            Removal::Kept(obstacle) => Outcome::Blocked(obstacle),
            Removal::Partial(obstacles) => Outcome::Partial(obstacles),
        }
    }

    /// Whose directory it is not ours to judge.
    fn is_foreign(&self, uid: u32) -> bool {
        // CHECK(l5-own-uid): another user's claims are his sweeps' to judge.
        if uid != self.me.uid {
            return true;
        }
        // CHECK(l5-overflow-uid): in a user namespace every stranger looks like this one user.
        self.me.overflow_uid == Some(uid)
    }

    /// A name that could not be opened as a directory.
    fn unopened(&self, name: &Name, errno: Errno) -> Seen {
        match self.root.fd().stat_at(name) {
            Ok(stat) if self.is_foreign(stat.uid) => Seen::Foreign,
            Err(Errno::ENOENT) => Seen::Vanished,
            _ => {
                let finding = Finding::cannot_tell(Evidence::LeaseUnclear(errno));
                Seen::Judged(Outcome::Kept(Findings::of_lease(finding)))
            }
        }
    }
}

impl Findings {
    fn of_lease(lease: Finding) -> Findings {
        Findings { lease, owner: None, commands: None }
    }
}
