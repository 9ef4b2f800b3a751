//! The questions and how they are asked (l1–l3, h1, h7, h8); the fourth, whose
//! answer only keeps, stands in a module of its own.
//!
//! Every error is mapped by hand, and the default is *cannot tell*: only the
//! answers that are named here are proofs.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cell::OnceCell;

use crate::claim::{COMMANDS, OWNER, RELEASED};
use crate::evidence::{Ended, Evidence, Finding, Seen};
use crate::fskind::FsKind;
use crate::grammar::{ClaimName, Place, Random};
use crate::life::{self, Scan};
use crate::record::{OwnerRecord, decode_command, decode_owner};
use crate::registry::{entry_name, id_name};
use crate::root::{Root, open_own};
use crate::sweep::SweepOptions;
use crate::sys::{
    Answer, Errno, Fd, Home, Identity, Kernel, KernelExt, Name, PathBytes, Pid, Probed, ProcView,
    Process, ProcessId, Stat,
};
use crate::verdict::Proof;

/// Entries of a registry that are asked, so that a registry cannot make a sweep
/// endless. An owner withdraws them as its commands end.
const ENTRIES_MAX: usize = 1 << 20;

/// A claim that a sweep has opened, and what it needs to judge it.
#[derive(Debug)]
pub struct Candidate<'s, K: Kernel> {
    pub(crate) root: &'s Root<K>,
    pub(crate) me: &'s Identity,
    pub(crate) holding: &'s BTreeSet<Random>,
    pub(crate) name: &'s Name,
    pub(crate) parsed: ClaimName,
    pub(crate) dir: Probed<K>,
    /// Whether nothing may be changed, not even a mode.
    dry_run: bool,
    stat: Stat,
    record: OnceCell<OwnerPart>,
}

/// The mode of a claim that is half-removed under its published name: a mark
/// that needs no room, and that no user's directory has.
pub(crate) const CONDEMNED_MODE: u32 = 0o1700;

/// What stands for an error where `/proc` is not mounted, is another
/// namespace's, or hides what is asked for.
pub(crate) const PROC_UNUSABLE: Errno = Errno::ENODEV;

/// What is in the place of the owner's record.
#[derive(Clone, PartialEq, Eq, Debug)]
enum OwnerPart {
    Record(OwnerRecord),
    /// The same record under its other name.
    Released(OwnerRecord),
    Missing,
    Damaged,
    Unreadable(Errno),
}

impl<'s, K: Kernel> Candidate<'s, K> {
    pub(crate) fn new(
        root: &'s Root<K>,
        me: &'s Identity,
        options: &'s SweepOptions,
        (name, parsed): (&'s Name, ClaimName),
        dir: Fd<K>,
        stat: Stat,
    ) -> Candidate<'s, K> {
        let (holding, dry_run) = (&options.holding, options.dry_run);
        let (dir, record) = (Probed::new(dir), OnceCell::new());
        Candidate { root, me, holding, name, parsed, dir, dry_run, stat, record }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.name
    }

    /// The random part of its name.
    #[must_use]
    pub fn random(&self) -> Random {
        self.parsed.random
    }

    /// Where it stands in its life.
    #[must_use]
    pub fn place(&self) -> Place {
        self.parsed.place
    }

    pub(crate) fn kernel(&self) -> &K {
        self.root.kernel()
    }

    /// What it is known by to a scan.
    fn sought(&self) -> (&Name, Random) {
        (self.name, self.parsed.random)
    }

    fn fd(&self) -> &Fd<K> {
        self.dir.fd()
    }

    /// What is in the place of the owner's record, read once.
    fn owner_part(&self) -> &OwnerPart {
        let read = |name| match self.fd().readlink(&Name::fixed(name)) {
            Ok(text) => decode_owner(&text).ok_or(OwnerPart::Damaged),
            Err(Errno::ENOENT) => Err(OwnerPart::Missing),
            // Not a link, or one that is longer than any record.
            Err(Errno::EINVAL | Errno::EOVERFLOW | Errno::EXDEV) => Err(OwnerPart::Damaged),
            Err(errno) => Err(OwnerPart::Unreadable(errno)),
        };
        self.record.get_or_init(|| match read(OWNER) {
            Ok(record) => OwnerPart::Record(record),
            Err(OwnerPart::Missing) => match read(RELEASED) {
                Ok(record) => OwnerPart::Released(record),
                Err(part) => part,
            },
            Err(part) => part,
        })
    }

    /// The record, under either name.
    fn record(&self) -> Option<&OwnerRecord> {
        match self.owner_part() {
            OwnerPart::Record(record) | OwnerPart::Released(record) => Some(record),
            _ => None,
        }
    }

    /// Whether a part that is missing is a step of making or removing, not
    /// damage.
    fn in_progress(&self) -> bool {
        self.parsed.place != Place::Published
            || self.stat.mode == CONDEMNED_MODE
            || matches!(self.owner_part(), OwnerPart::Released(_))
    }

    fn open_registry(&self) -> Answer<Fd<K>> {
        let name = Name::fixed(COMMANDS);
        if self.dry_run { self.fd().open_dir(&name) } else { open_own(self.fd(), &name) }
    }
}

/// Who answers the questions. [`Probes`] is the real one; a test can put
/// its own in its place, or around it.
pub trait Prober<K: Kernel> {
    /// l1: is the lease free, and held by us from now on?
    fn lease(&mut self, claim: &Candidate<'_, K>) -> Finding;

    /// l2: has the owner ended? Asked only when the lease is *gone*.
    fn owner(&mut self, claim: &Candidate<'_, K>) -> Finding;

    /// l3: have all commands ended? Asked only when the lease is *gone*.
    fn commands(&mut self, claim: &Candidate<'_, K>) -> Finding;

    /// l4: who is seen to use these claims? Asked once for a batch of claims of
    /// one root of which the three answers were *gone*, and whose leases are
    /// held. Its answers can only keep.
    fn life(&mut self, claims: &[&Candidate<'_, K>]) -> Scan {
        let Some(first) = claims.first() else {
            return Scan { findings: Vec::new(), unread: 0 };
        };
        let sought: Vec<_> = claims.iter().map(|claim| claim.sought()).collect();
        life::scan(first.kernel(), first.me, &sought, None)
    }
}

/// The real prober.
#[derive(Clone, Copy, Debug, Default)]
pub struct Probes;

impl<K: Kernel> Prober<K> for Probes {
    fn lease(&mut self, claim: &Candidate<'_, K>) -> Finding {
        match claim.dir.lock() {
            Ok(()) => {}
            // CHECK(l1-held): whoever holds the lock may use the claim.
            // CHECK(r3-step-aside): an owner has it, or another sweep that is at it now.
            Err(Errno::EAGAIN) => return Finding::alive(Evidence::LeaseHeld),
            // CHECK(h8-lock-error): a kernel that has no lock to give has not said that it is free.
            Err(errno) => return Finding::cannot_tell(Evidence::LeaseUnclear(errno)),
        }
        let magic = match claim.fd().fs_magic() {
            Ok(magic) => magic,
            Err(errno) => return Finding::cannot_tell(Evidence::LeaseUnclear(errno)),
        };
        // CHECK(l1-listed-file-system): elsewhere the holder may be asked about in vain.
        let Some(found) = FsKind::from_magic(magic) else {
            return Finding::cannot_tell(Evidence::UnlistedFileSystem(magic));
        };
        if let Some(record) = claim.record() {
            let recorded = record.fs;
            // CHECK(l1-recorded-file-system): through another view of the same tree, a lock that is
            // held looks free.
            if recorded != found {
                return Finding::cannot_tell(Evidence::OtherFileSystem { recorded, found });
            }
        }
        Finding::gone(Evidence::LeaseFree)
    }

    fn owner(&mut self, claim: &Candidate<'_, K>) -> Finding {
        // CHECK(l5-names-its-claim): a copy carries a valid record, of another claim.
        if let Some(record) = claim.record().filter(|record| record.random != claim.parsed.random) {
            return Finding::cannot_tell(Evidence::OwnerOfAnother(record.random));
        }
        match claim.owner_part() {
            OwnerPart::Record(record) => {
                let holds = claim.holding.contains(&record.random);
                owner_process(claim.kernel(), claim.me, record, holds)
            }
            OwnerPart::Released(_) => Finding::gone(Evidence::Released),
            OwnerPart::Missing if claim.in_progress() => Finding::gone(Evidence::NoOwner),
            OwnerPart::Missing => Finding::cannot_tell(Evidence::OwnerMissing),
            OwnerPart::Damaged => Finding::cannot_tell(Evidence::OwnerDamaged),
            OwnerPart::Unreadable(errno) => Finding::cannot_tell(Evidence::OwnerUnreadable(*errno)),
        }
    }

    fn commands(&mut self, claim: &Candidate<'_, K>) -> Finding {
        match claim.open_registry() {
            Ok(opened) => registry(&opened, claim.me),
            Err(Errno::ENOENT) if claim.in_progress() => Finding::gone(Evidence::NoCommands),
            // CHECK(l3-missing-registry): only damage takes the registry from a claim, and with it
            // the trace of what may still run.
            Err(Errno::ENOENT) => Finding::cannot_tell(Evidence::CommandsMissing),
            Err(errno) => Finding::cannot_tell(Evidence::CommandsUnreadable(errno)),
        }
    }
}

/// The answer to l2 by a record; `holds` is whether our own process holds that claim.
pub(crate) fn owner_process<K: Kernel>(
    kernel: &K,
    me: &Identity,
    record: &OwnerRecord,
    holds: bool,
) -> Finding {
    let seen = Seen { pid: record.process.pid, program: record.program.clone() };
    // CHECK(l2-same-home): in another boot or namespace the number is another process's, or
    // nobody's.
    if !record.home.same_processes(&me.home) {
        return Finding::gone(Evidence::OwnerElsewhere(seen));
    }
    let wanted = Wanted { process: record.process, home: record.home };
    match process_ended(kernel, me, &wanted) {
        Life::Ended(how) => Finding::gone(Evidence::OwnerEnded(seen, how)),
        // CHECK(l2-replaced-by-exec): its program knows nothing of the claim any more, and would
        // pin it for its own life.
        Life::Runs if seen.pid == me.process.pid && !holds => {
            Finding::gone(Evidence::OwnerEnded(seen, Ended::ReplacedByExec))
        }
        Life::Runs => Finding::alive(Evidence::OwnerRuns(seen)),
        Life::Unclear(errno) => Finding::cannot_tell(Evidence::OwnerUnclear(seen, errno)),
    }
}

/// A process as it was recorded.
struct Wanted {
    process: ProcessId,
    home: Home,
}

/// What was found out about one process.
enum Life {
    Ended(Ended),
    Runs,
    Unclear(Errno),
}

/// Whether a process of our own boot and pid namespace has ended.
fn process_ended<K: Kernel>(kernel: &K, me: &Identity, wanted: &Wanted) -> Life {
    let pid = wanted.process.pid;
    let existing = kernel.process_exists(pid);
    match existing {
        // CHECK(l2-no-such-process): the kernel's own word; /proc may hide what lives.
        Err(Errno::ESRCH) => return Life::Ended(Ended::NoSuchProcess),
        Ok(()) | Err(Errno::EPERM) => {}
        Err(errno) => return Life::Unclear(errno),
    }
    // CHECK(l2-pidfs): a number can be reused within one tick of the start time.
    if wanted.process.pidfs != 0
        && kernel.pidfs(pid).is_ok_and(|now| now != 0 && now != wanted.process.pidfs)
    {
        return Life::Ended(Ended::NumberReused);
    }
    let process = match described(kernel, me, pid) {
        Ok(process) => process,
        // It was reaped between the two questions, or /proc hides it.
        Err(errno @ (Errno::ENOENT | Errno::ESRCH)) => {
            return match kernel.process_exists(pid) {
                Err(Errno::ESRCH) => Life::Ended(Ended::NoSuchProcess),
                _ => Life::Unclear(errno),
            };
        }
        Err(errno) => return Life::Unclear(errno),
    };
    // CHECK(l2-ticks-of-one-clock): another time namespace shifts the start time of one process.
    let comparable = wanted.home.time_ns == me.home.time_ns;
    // CHECK(l2-number-reused): with only the number, a stranger pins the claim for as long as it
    // runs.
    if comparable && process.start_ticks != wanted.process.start_ticks {
        return Life::Ended(Ended::NumberReused);
    }
    // CHECK(l2-zombie): where nobody reaps, an owner that has ended looks alive for ever.
    if process.ended() {
        return Life::Ended(Ended::Zombie);
    }
    match existing {
        Err(errno) => Life::Unclear(errno),
        Ok(()) => Life::Runs,
    }
}

/// What `/proc` says of a process, if it is one to be believed.
fn described<K: Kernel>(kernel: &K, me: &Identity, pid: Pid) -> Answer<Process> {
    // CHECK(l2-our-proc): the /proc of an outer namespace shows a stranger under this number.
    if me.proc == ProcView::Foreign {
        return Err(PROC_UNUSABLE);
    }
    kernel.process(pid)
}

/// The answer to l3 for a whole registry.
pub(crate) fn registry<K: Kernel>(registry: &Fd<K>, me: &Identity) -> Finding {
    registry.kernel().aside(|_| ask_registry(registry, me))
}

fn ask_registry<K: Kernel>(registry: &Fd<K>, me: &Identity) -> Finding {
    let Listed { entries, strange } = match list(registry) {
        Ok(listed) => listed,
        Err(Unlisted::TooMany) => return Finding::cannot_tell(Evidence::TooManyEntries),
        Err(Unlisted::Failed(errno)) => {
            return Finding::cannot_tell(Evidence::CommandsUnreadable(errno));
        }
    };
    // CHECK(l7-ask-beside-damage): an operator speaks of what cannot be told, not of who lives
    // beside it.
    let mut unclear = strange.map(Finding::cannot_tell);
    for (number, has_lock) in &entries {
        let finding = if *has_lock {
            entry(registry, *number, me)
        } else {
            // Never made by the protocol: the identity goes before the lock file.
            Finding::cannot_tell(Evidence::IdentityDamaged { entry: *number })
        };
        match finding.proof {
            Proof::Gone => {}
            // The best reason there is; the rest need not be asked.
            Proof::Alive => return finding,
            Proof::CannotTell => match &unclear {
                // CHECK(l7-worst-first): what no word overrules must not hide behind what one does.
                Some(_) if finding.evidence.yields_to_word() => {}
                _ => unclear = Some(finding),
            },
        }
    }
    unclear.unwrap_or_else(|| {
        Finding::gone(match entries.len() {
            0 => Evidence::NoCommands,
            entries => Evidence::CommandsEnded { entries },
        })
    })
}

/// What is in a registry.
#[derive(Default)]
struct Listed {
    /// The entries, and whether each has its lock file.
    entries: BTreeMap<u32, bool>,
    /// The first thing that is none.
    strange: Option<Evidence>,
}

/// Why a registry could not be listed.
enum Unlisted {
    TooMany,
    Failed(Errno),
}

fn list<K: Kernel>(registry: &Fd<K>) -> Result<Listed, Unlisted> {
    let mut listed = Listed::default();
    let mut restart = true;
    loop {
        let batch = registry.read_dir(restart).map_err(Unlisted::Failed)?;
        restart = false;
        if batch.is_empty() {
            return Ok(listed);
        }
        for found in batch {
            let Some((entry, is_lock)) = parse_entry(&found.name) else {
                listed.strange.get_or_insert_with(|| Evidence::StrangeEntry {
                    name: PathBytes::from(found.name.bytes()),
                    kind: found.kind,
                });
                continue;
            };
            *listed.entries.entry(entry).or_insert(false) |= is_lock;
        }
        if listed.entries.len() > ENTRIES_MAX {
            return Err(Unlisted::TooMany);
        }
    }
}

/// Reads the name of a lock file (`true`) or of an identity.
fn parse_entry(name: &Name) -> Option<(u32, bool)> {
    let bytes = name.bytes();
    let (digits, is_lock) = match bytes.strip_suffix(b".id") {
        Some(digits) => (digits, false),
        None => (bytes, true),
    };
    let entry: u32 = core::str::from_utf8(digits).ok()?.parse().ok()?;
    // Only the one way in which the protocol writes the number.
    (entry_name(entry).bytes() == digits).then_some((entry, is_lock))
}

/// The answer to l3 for one entry.
pub(crate) fn entry<K: Kernel>(registry: &Fd<K>, entry: u32, me: &Identity) -> Finding {
    let unclear = |errno| Finding::cannot_tell(Evidence::EntryUnclear { entry, errno });
    // A fresh description, since the owner's own copy would answer for itself.
    let lock = match registry.open_file(&entry_name(entry)) {
        Ok(fd) => Probed::new(fd),
        Err(errno) => return unclear(errno),
    };
    match lock.fd().stat() {
        // CHECK(h1-own-entry): a lock on a stranger's file is not a command's.
        Ok(stat) if stat.uid != me.uid => return unclear(Errno::EPERM),
        Ok(_) => {}
        Err(errno) => return unclear(errno),
    }
    match lock.lock() {
        Ok(()) => {}
        // CHECK(l3-lock-held): the one proof that crosses namespaces, and that a new session keeps.
        Err(Errno::EAGAIN) => {
            let command = holder(registry, entry, me);
            return Finding::alive(Evidence::CommandHoldsLock { entry, command });
        }
        Err(errno) => return unclear(errno),
    }
    // CHECK(l3-lock-before-id): read before the lock was ours, "no identity" is of a child that may
    // have named itself, become its program and closed the lock since.
    let text = match registry.readlink(&id_name(entry)) {
        Ok(text) => text,
        // It never came to its exec, so nothing ran.
        Err(Errno::ENOENT) => return Finding::gone(Evidence::CommandsEnded { entries: 1 }),
        Err(Errno::EINVAL | Errno::EOVERFLOW | Errno::EXDEV) => {
            return Finding::cannot_tell(Evidence::IdentityDamaged { entry });
        }
        Err(errno) => return unclear(errno),
    };
    let Some(command) = decode_command(&text) else {
        return Finding::cannot_tell(Evidence::IdentityDamaged { entry });
    };
    if command.home.same_processes(&me.home) {
        let wanted = Wanted { process: command.process, home: command.home };
        // CHECK(l3-ask-group): a command may close and unlock what it owns, and live.
        return group(registry.kernel(), me, &wanted);
    }
    if another_boot(&command.home, &me.home) {
        return Finding::gone(Evidence::CommandsEnded { entries: 1 });
    }
    // CHECK(l3-other-namespace): a number of another namespace says nothing here.
    Finding::cannot_tell(Evidence::CommandElsewhere { entry, pid: command.process.pid })
}

/// Who was started as the command of an entry, for the report only.
fn holder<K: Kernel>(registry: &Fd<K>, entry: u32, me: &Identity) -> Option<Seen> {
    let record = decode_command(&registry.readlink(&id_name(entry)).ok()?)?;
    let pid = record.process.pid;
    let process =
        record.home.same_processes(&me.home).then(|| described(registry.kernel(), me, pid).ok());
    let program = process.flatten().map(|process| process.program).unwrap_or_default();
    Some(Seen { pid, program })
}

/// Whether another process has the number of the command of an entry by now.
pub(crate) fn number_reused<K: Kernel>(registry: &Fd<K>, entry: u32, me: &Identity) -> bool {
    let record = registry.readlink(&id_name(entry)).ok();
    let record = record.and_then(|text| decode_command(&text));
    record.filter(|record| record.home.same_processes(&me.home)).is_some_and(|record| {
        let wanted = Wanted { process: record.process, home: record.home };
        let life = process_ended(registry.kernel(), me, &wanted);
        matches!(life, Life::Ended(Ended::NumberReused))
    })
}

/// Whether a boot lies between two homes that cannot be containers of one
/// machine.
fn another_boot(recorded: &Home, ours: &Home) -> bool {
    let initial = |home: &Home| home.pid_ns == Home::INITIAL_PID_NS;
    // CHECK(l3-initial-namespaces): a container may be given a boot id of its own.
    recorded.boot != ours.boot && initial(recorded) && initial(ours)
}

/// The answer to l3 by a command and its group, of our own boot and namespaces.
fn group<K: Kernel>(kernel: &K, me: &Identity, leader: &Wanted) -> Finding {
    let group = leader.process.pid;
    let gone = || Finding::gone(Evidence::CommandsEnded { entries: 1 });
    let unclear = |errno| Finding::cannot_tell(Evidence::GroupUnclear { group, errno });
    match process_ended(kernel, me, leader) {
        // CHECK(l3-leader-runs): it may have joined another group.
        Life::Runs => {
            let (first, more) = match members(kernel, me, group) {
                Ok(Members { live: Some(first), more, .. }) => (first, more),
                _ => {
                    let program = described(kernel, me, group).map(|process| process.program);
                    (Seen { pid: group, program: program.unwrap_or_default() }, 0)
                }
            };
            return Finding::alive(Evidence::GroupRuns { group, first, more });
        }
        // CHECK(l3-leader-reused): a new process can have the number only when the group is empty,
        // so the group that exists now is a stranger's.
        Life::Ended(Ended::NumberReused) => return gone(),
        Life::Ended(_) => {}
        Life::Unclear(errno) => return unclear(errno),
    }
    match kernel.group_exists(group) {
        Err(Errno::ESRCH) => return gone(),
        Ok(()) => {}
        Err(errno) => return unclear(errno),
    }
    match members(kernel, me, group) {
        Ok(Members { live: Some(first), more, .. }) => {
            Finding::alive(Evidence::GroupRuns { group, first, more })
        }
        // CHECK(l3-zombies): where nobody reaps, a group of zombies exists for ever.
        Ok(Members { live: None, zombies: 1.., .. }) => gone(),
        // Not one member seen: it ended meanwhile, or /proc hides it.
        Ok(_) => match kernel.group_exists(group) {
            Err(Errno::ESRCH) => gone(),
            _ => unclear(Errno::ENOENT),
        },
        Err(errno) => unclear(errno),
    }
}

/// Who is in a group.
#[derive(Default)]
struct Members {
    live: Option<Seen>,
    more: usize,
    zombies: usize,
}

/// Passes over a group before it is called restless.
const PASSES: usize = 16;

/// Looks for the members of a group, one process at a time, until a pass finds
/// nobody who lives and nothing that the pass before it had not found: a member
/// that is seen as a zombie may have forked since the list was made, and one
/// that vanished, too. Where numbers wrap round during a listing, a chain of
/// forks can still outrun it: a known escape.
fn members<K: Kernel>(kernel: &K, me: &Identity, group: Pid) -> Answer<Members> {
    // CHECK(l3-whole-proc): where /proc hides processes, "only zombies" means nothing.
    if me.proc != ProcView::Whole {
        return Err(PROC_UNUSABLE);
    }
    let mut members = Members::default();
    let mut zombies = BTreeSet::new();
    for _ in 0..PASSES {
        let mut restless = false;
        for pid in kernel.pids()? {
            if zombies.contains(&pid) {
                continue;
            }
            let process = match kernel.process(pid) {
                Ok(process) => process,
                // It ended between the list and the look.
                Err(Errno::ENOENT | Errno::ESRCH) => {
                    restless = true;
                    continue;
                }
                Err(errno) => return Err(errno),
            };
            if process.group != group {
                continue;
            }
            if process.ended() {
                zombies.insert(pid);
                restless = true;
            } else if members.live.is_none() {
                members.live = Some(Seen { pid, program: process.program });
            } else {
                members.more += 1;
            }
        }
        members.zombies = zombies.len();
        // CHECK(l3-second-pass): a child in the group is in no list that is older than it.
        if members.live.is_some() || !restless {
            return Ok(members);
        }
    }
    Err(Errno::EAGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_exactly() {
        for (name, want) in [
            (&b"0"[..], Some((0, true))),
            (b"12", Some((12, true))),
            (b"12.id", Some((12, false))),
            (b"012", None),
            (b"+1", None),
            (b"-1", None),
            (b"1e3", None),
            (b".id", None),
            (b"12.ID", None),
            (b"4294967296", None),
            (b"\xff", None),
        ] {
            let name = Name::new(name).expect("one component");
            assert_eq!(parse_entry(&name), want, "{name}");
        }
    }

    #[test]
    fn only_two_initial_namespaces_tell_a_boot_from_a_container() {
        let initial = Home { boot: [1; 16], pid_ns: Home::INITIAL_PID_NS, time_ns: 7 };
        let rebooted = Home { boot: [2; 16], ..initial };
        let container = Home { pid_ns: 4_026_532_000, ..rebooted };
        assert!(another_boot(&initial, &rebooted));
        assert!(!another_boot(&initial, &initial));
        assert!(!another_boot(&initial, &container));
        assert!(!another_boot(&container, &initial));
    }
}
