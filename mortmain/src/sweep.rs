//! The sweep: every claim under a root gets its verdict, and what may go goes.
//!
//! One judge for all names: a staging, a claim and a tombstone pass the same
//! three questions, and there is no path to a removal that goes round them. A
//! sweep asks and never waits; what it cannot tell it keeps; what it meets in
//! one claim stops it at no other.
//!
//! The fourth question, who is seen to use what is to go, needs a look at every
//! process, so it is asked of many claims at once: those of which the three
//! answers are in are held in a batch, lease and all, and removed after the one
//! scan for the whole batch.

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::evidence::{Evidence, Finding, Hindrance, Obstacle};
use crate::grammar::{ClaimName, Random};
use crate::life::Scan;
use crate::probe::{Candidate, Prober, Probes};
use crate::remove::{Condemned, Removal, Remover, Removes};
use crate::report::{Entry, Findings, Outcome, Report};
use crate::root::{Root, open_own, still_named};
use crate::sys::{Answer, Errno, Identity, Kernel, KernelExt, Name, PathBytes, Stat};
use crate::verdict::{Proof, Verdict, verdict};

/// Claims that one sweep looks at; a root with more is finished by later ones.
const CLAIMS_MAX: usize = 1 << 20;

/// Most claims of one batch, each of which has a descriptor; beside that, half
/// of what the process may have open.
const BATCH_MAX: usize = 4096;

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
        let mut judge = Judge { root: self, me: &me, options, prober, remover, word: false };
        judge.judge_all(&names, report, enough)
    }

    /// Judges one claim, of which an operator says that nothing uses it, and
    /// removes it if nothing contradicts him.
    ///
    /// His word stands in the place of an answer that could not be given because
    /// what it is about is of another boot or namespace, or is damaged (l7); and
    /// of no other. Whatever lives keeps the claim as it does in a sweep.
    ///
    /// # Errors
    /// [`ErrorKind::NoSuchClaim`] when there is no claim of this name, or it is
    /// another user's; [`ErrorKind::System`] when it could not be found out who
    /// asks.
    ///
    /// # Crash behaviour
    /// Killed at any call, it leaves the claim as it was, or a tombstone that
    /// the next sweep judges again. What is then still damaged is kept until the
    /// operator gives his word for the tombstone.
    pub fn reclaim_on_word(&self, name: &Name, options: &SweepOptions) -> Result<Report, Error> {
        let operation = "reclaim on an operator's word";
        let path = self.path_of(name);
        let no_such =
            |text: &str| Error::because(ErrorKind::NoSuchClaim, operation, &path, text.to_string());
        let parsed = self.prefix().parse(name);
        let parsed = parsed.ok_or_else(|| no_such("that is not the name of a claim here"))?;
        let me = self.kernel().identity();
        let me = me.map_err(|errno| Error::system(operation, &path, errno))?;
        let (prober, remover) = (&mut Probes, &mut Removes);
        let mut judge = Judge { root: self, me: &me, options, prober, remover, word: true };
        // CHECK(l7-one-named): a word for one claim is no word for its neighbours.
        let names = [(name.clone(), parsed)];
        let report = judge.judge_all(&names, Report::new(self, options.dry_run), &mut || false);
        match (report.entries.is_empty(), report.foreign) {
            (false, _) => Ok(report),
            (true, 0) => Err(no_such("there is no such claim")),
            (true, _) => Err(no_such("it belongs to another user")),
        }
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
enum Seen<'s, K: Kernel> {
    /// Somebody else removed or renamed it meanwhile.
    Vanished,
    /// It is another user's (l5).
    Foreign,
    /// Its directory could not be opened for want of descriptors.
    Starved(Errno),
    /// It stays.
    Judged(Box<Outcome>),
    /// It may go, if nobody is seen to use it.
    Condemned(Box<Judged<'s, K>>),
}

/// A claim with three answers that are *gone*, under its lease.
struct Judged<'s, K: Kernel> {
    claim: Candidate<'s, K>,
    findings: Findings,
    stat: Stat,
    /// Its place in the listing.
    at: usize,
}

struct Judge<'s, K: Kernel, P, R> {
    root: &'s Root<K>,
    me: &'s Identity,
    options: &'s SweepOptions,
    prober: &'s mut P,
    remover: &'s mut R,
    /// Whether an operator speaks for what cannot be told (l7).
    word: bool,
}

impl<'s, K: Kernel, P: Prober<K>, R: Remover<K>> Judge<'s, K, P, R> {
    /// Judges every name, and tells what became of each.
    fn judge_all(
        &mut self,
        names: &'s [(Name, ClaimName)],
        mut report: Report,
        enough: &mut dyn FnMut() -> bool,
    ) -> Report {
        let mut outcomes: Vec<(usize, Outcome)> = Vec::new();
        let mut waiting: VecDeque<usize> = (0..names.len()).collect();
        let mut batch: Vec<Judged<'s, K>> = Vec::new();
        let mut batch_max = None;
        while let Some(at) = waiting.pop_front() {
            match self.judge(at, &names[at]) {
                Seen::Vanished => {}
                Seen::Foreign => report.foreign += 1,
                // Those that the batch has are given back first.
                Seen::Starved(_) if !batch.is_empty() => {
                    waiting.push_front(at);
                    batch_max = Some(batch.len());
                }
                Seen::Starved(errno) => {
                    let finding = Finding::cannot_tell(Evidence::LeaseUnclear(errno));
                    outcomes.push((at, Outcome::Kept(Findings::of_lease(finding))));
                }
                Seen::Judged(outcome) => outcomes.push((at, *outcome)),
                Seen::Condemned(judged) => batch.push(*judged),
            }
            // CHECK(b2-budget): whoever gave it so much time has none left to give.
            if enough() {
                report.unseen += waiting.len();
                waiting.clear();
            }
            while !batch.is_empty() {
                let most = *batch_max.get_or_insert_with(|| self.batch_max());
                if batch.len() < most && !waiting.is_empty() {
                    break;
                }
                let whole = core::mem::take(&mut batch);
                let put_off = self.carry_out_all(whole, &mut outcomes, &mut report, enough);
                if let Some(put_off) = put_off {
                    batch_max = Some(put_off.len().max(1));
                    waiting.extend(put_off);
                }
            }
        }
        outcomes.sort_unstable_by_key(|(at, _)| *at);
        report.entries.extend(outcomes.into_iter().map(|(at, outcome)| {
            let (name, parsed) = &names[at];
            Entry { name: name.clone(), place: parsed.place, outcome }
        }));
        report
    }

    /// How many claims may be held at once.
    fn batch_max(&self) -> usize {
        // CHECK(l4-half-the-descriptors): the program that sweeps needs some for itself.
        let half = self.root.kernel().descriptors_max().unwrap_or(0) / 2;
        usize::try_from(half).unwrap_or(BATCH_MAX).clamp(1, BATCH_MAX)
    }

    /// Asks who uses the claims of a batch, and removes those that nobody is
    /// seen to use. Where there are too few descriptors left for the question,
    /// answers those that were given back to make room.
    fn carry_out_all(
        &mut self,
        mut batch: Vec<Judged<'s, K>>,
        outcomes: &mut Vec<(usize, Outcome)>,
        report: &mut Report,
        enough: &mut dyn FnMut() -> bool,
    ) -> Option<Vec<usize>> {
        let claims: Vec<&Candidate<'s, K>> = batch.iter().map(|judged| &judged.claim).collect();
        // CHECK(l4-order): before the last lease was held and the last command asked about, a
        // command may have left somebody behind.
        let Scan { findings, unread } = self.prober.life(&claims);
        let starved = |finding: &Finding| {
            matches!(finding.evidence, Evidence::UseUnclear(Errno::EMFILE | Errno::ENFILE))
        };
        if batch.len() > 1 && findings.iter().any(starved) {
            let given_back = batch.split_off(batch.len() / 2);
            let mut put_off: Vec<usize> = given_back.iter().map(|judged| judged.at).collect();
            drop(given_back);
            put_off.extend(self.carry_out_all(batch, outcomes, report, enough).unwrap_or_default());
            return Some(put_off);
        }
        report.unread = report.unread.max(unread);
        // An answer that a prober owes is none.
        let owed = core::iter::repeat_with(|| Finding::cannot_tell(Evidence::Injected));
        let mut left = batch.len();
        for (judged, life) in batch.into_iter().zip(findings.into_iter().chain(owed)) {
            let at = judged.at;
            outcomes.push((at, self.finish(judged, life)));
            left -= 1;
            // CHECK(b2-budget-in-batch): the removals of one batch can take longer than all the rest.
            if enough() {
                report.unseen += left;
                break;
            }
        }
        None
    }

    /// The end of one claim of a batch.
    fn finish(&mut self, judged: Judged<'s, K>, life: Finding) -> Outcome {
        let Judged { claim, mut findings, stat, .. } = judged;
        let seen = life.proof;
        findings.life = Some(life);
        // CHECK(l4-keeps): a daemon that left its group and closed everything is seen by nothing
        // else.
        if seen != Proof::Gone {
            return Outcome::Kept(findings);
        }
        let (root, me, parsed, dir) = (self.root, self.me, claim.parsed, claim.dir.fd());
        let condemned =
            Condemned::new(root, me, claim.name, parsed.random, parsed.place, dir, stat);
        self.carry_out(&condemned, findings)
    }

    fn judge(&mut self, at: usize, (name, parsed): &'s (Name, ClaimName)) -> Seen<'s, K> {
        let kept = |what| {
            Seen::Judged(Box::new(Outcome::Blocked(Obstacle { path: PathBytes::default(), what })))
        };
        let opened = match self.options.dry_run {
            true => self.root.fd().open_dir(name),
            false => open_own(self.root.fd(), name),
        };
        let dir = match opened {
            Ok(dir) => dir,
            Err(Errno::ENOENT) => return Seen::Vanished,
            Err(Errno::EXDEV) => return kept(Hindrance::Mount),
            // CHECK(h8-starved): that there is no descriptor left says nothing about the claim.
            Err(errno @ (Errno::EMFILE | Errno::ENFILE)) => return Seen::Starved(errno),
            Err(errno) => return self.unopened(name, errno),
        };
        let stat = match dir.stat() {
            Ok(stat) => stat,
            Err(errno) => return kept(Hindrance::Call { what: "looking at", errno }),
        };
        if is_foreign(self.me, stat.uid) {
            return Seen::Foreign;
        }
        let (root, me, options) = (self.root, self.me, self.options);
        let claim = Candidate::new(root, me, options, (name, *parsed), dir, stat);
        let lease = self.prober.lease(&claim);
        // CHECK(b1-lock-first): of a live claim nothing is read.
        if lease.proof != Proof::Gone {
            return Seen::Judged(Box::new(Outcome::Kept(Findings::of_lease(lease))));
        }
        match still_named(self.root.fd(), name, claim.dir.fd()) {
            Ok(Some(_)) => {}
            // CHECK(c2-sweep): the lock is on what was opened, which is another directory's by now.
            Ok(None) => return Seen::Vanished,
            Err(errno) => return kept(Hindrance::Call { what: "looking at", errno }),
        }
        let owner = weighed(self.word, self.prober.owner(&claim));
        let commands = weighed(self.word, self.prober.commands(&claim));
        let proofs = (lease.proof, owner.proof, commands.proof);
        let (owner, commands) = (Some(owner), Some(commands));
        let findings = Findings { lease, owner, commands, life: None };
        match verdict(proofs.0, proofs.1, proofs.2) {
            Verdict::Keep(_) => Seen::Judged(Box::new(Outcome::Kept(findings))),
            Verdict::Remove => Seen::Condemned(Box::new(Judged { claim, findings, stat, at })),
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

    /// A name that could not be opened as a directory.
    fn unopened(&self, name: &Name, errno: Errno) -> Seen<'s, K> {
        match self.root.fd().stat_at(name) {
            Ok(stat) if is_foreign(self.me, stat.uid) => Seen::Foreign,
            Err(Errno::ENOENT) => Seen::Vanished,
            _ => {
                let finding = Finding::cannot_tell(Evidence::LeaseUnclear(errno));
                Seen::Judged(Box::new(Outcome::Kept(Findings::of_lease(finding))))
            }
        }
    }
}

/// Whose directory it is not ours to judge.
pub(crate) fn is_foreign(me: &Identity, uid: u32) -> bool {
    // CHECK(l5-own-uid): another user's claims are his sweeps' to judge.
    if uid != me.uid {
        return true;
    }
    // CHECK(l5-overflow-uid): in a user namespace every stranger looks like this one user.
    me.overflow_uid == Some(uid)
}

/// An answer, or what stands in its place where an operator gave his word.
fn weighed(word: bool, finding: Finding) -> Finding {
    match word && finding.evidence.yields_to_word() {
        true => Finding::gone(Evidence::OnWord(Box::new(finding.evidence))),
        false => finding,
    }
}

impl Findings {
    pub(crate) fn of_lease(lease: Finding) -> Findings {
        Findings { lease, owner: None, commands: None, life: None }
    }
}
