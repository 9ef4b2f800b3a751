//! What was found, in a form that explains itself (L3).
//!
//! Every answer carries the evidence it rests on; every entry of a report
//! prints as one sentence.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::fskind::FsKind;
use crate::grammar::Random;
use crate::probe::PROC_UNUSABLE;
use crate::sys::{Errno, FsMagic, Kind, PathBytes, Pid, Use};
use crate::verdict::Proof;

/// An answer and what it rests on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Finding {
    /// The answer.
    pub proof: Proof,
    /// What it rests on.
    pub evidence: Evidence,
}

impl Finding {
    /// *Gone*, for this reason.
    #[must_use]
    pub fn gone(evidence: Evidence) -> Finding {
        Finding { proof: Proof::Gone, evidence }
    }

    /// *Alive*, for this reason.
    #[must_use]
    pub fn alive(evidence: Evidence) -> Finding {
        Finding { proof: Proof::Alive, evidence }
    }

    /// *Cannot tell*, for this reason.
    #[must_use]
    pub fn cannot_tell(evidence: Evidence) -> Finding {
        Finding { proof: Proof::CannotTell, evidence }
    }
}

/// A process that was seen.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Seen {
    /// Its number.
    pub pid: Pid,
    /// Its program, as far as it is known.
    pub program: Vec<u8>,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pid.0)?;
        if !self.program.is_empty() {
            write!(f, " `{}`", PathBytes::from(&self.program[..]))?;
        }
        Ok(())
    }
}

/// A process that is seen to use a directory, and how.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct User {
    /// The process.
    pub process: Seen,
    /// How it uses it, each once and at least one.
    pub uses: Vec<Use>,
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.process)?;
        for (at, how) in self.uses.iter().enumerate() {
            f.write_str(if at == 0 { " " } else { ", " })?;
            f.write_str(sentence_of(*how))?;
        }
        Ok(())
    }
}

/// How a process was found to have ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ended {
    /// No process has its number.
    NoSuchProcess,
    /// Another process has its number.
    NumberReused,
    /// It is a zombie, and none of its threads runs.
    Zombie,
    /// It is this very process before it called exec: its program knows
    /// nothing of the claim any more.
    ReplacedByExec,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ended::NoSuchProcess => "has ended",
            Ended::NumberReused => "has ended, and another process has its number",
            Ended::Zombie => "has ended and was not reaped",
            Ended::ReplacedByExec => "has become another program",
        })
    }
}

/// What an answer rests on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Evidence {
    /// l1: we hold the lease.
    LeaseFree,
    /// l1: somebody else holds it.
    LeaseHeld,
    /// l1: it could not be asked for.
    LeaseUnclear(Errno),
    /// l1: locks on this file system prove nothing.
    UnlistedFileSystem(FsMagic),
    /// l1: the owner saw another kind of file system here.
    OtherFileSystem {
        /// What the owner saw.
        recorded: FsKind,
        /// What we see.
        found: FsKind,
    },

    /// l2: the owner runs.
    OwnerRuns(Seen),
    /// l2: the owner has ended.
    OwnerEnded(Seen, Ended),
    /// l2: the owner's numbers mean nothing here, so its lease speaks alone.
    OwnerElsewhere(Seen),
    /// l2: it is not recorded yet or any more, which is progress here.
    NoOwner,
    /// l2: the owner gave the claim up.
    Released,
    /// l2: there should be a record and is none.
    OwnerMissing,
    /// l2: the record could not be read.
    OwnerUnreadable(Errno),
    /// l2: there is something else in the place of the record.
    OwnerDamaged,
    /// l2: the record is that of another claim, so this is a copy.
    OwnerOfAnother(Random),
    /// l2: whether it runs could not be found out.
    OwnerUnclear(Seen, Errno),

    /// l3: no command has an entry.
    NoCommands,
    /// l3: every command with an entry has ended.
    CommandsEnded {
        /// How many.
        entries: usize,
    },
    /// l3: a command's lock is held.
    CommandHoldsLock {
        /// The entry.
        entry: u32,
        /// The command, where its identity could be read.
        command: Option<Seen>,
    },
    /// l3: a command's group has live members.
    GroupRuns {
        /// The group.
        group: Pid,
        /// The member with the lowest number.
        first: Seen,
        /// How many more there are.
        more: usize,
    },
    /// l3: there should be a registry and is none.
    CommandsMissing,
    /// l3: the registry could not be read.
    CommandsUnreadable(Errno),
    /// l3: the registry has more entries than any owner makes.
    TooManyEntries,
    /// l3: something that the protocol did not make lies in the registry.
    StrangeEntry {
        /// Its name.
        name: PathBytes,
        /// Its kind.
        kind: Kind,
    },
    /// l3: an entry could not be asked.
    EntryUnclear {
        /// The entry.
        entry: u32,
        /// Why not.
        errno: Errno,
    },
    /// l3: a command's identity cannot be understood.
    IdentityDamaged {
        /// The entry.
        entry: u32,
    },
    /// l3: the command lives, or lived, in another pid namespace.
    CommandElsewhere {
        /// The entry.
        entry: u32,
        /// Its number there.
        pid: Pid,
    },
    /// l3: who is in the group could not be seen.
    GroupUnclear {
        /// The group.
        group: Pid,
        /// Why not.
        errno: Errno,
    },

    /// l4: no process is seen to use it.
    Unused,
    /// l4: a process uses it.
    Used {
        /// The process with the lowest number.
        by: Seen,
        /// How it uses it; the first of several.
        how: Use,
        /// How many more processes do.
        more: usize,
    },
    /// l4: whether a process uses it could not be found out.
    UseUnclear(Errno),

    /// l7, l8: an answer that nobody could give, overruled by an operator.
    OnWord(Box<Evidence>),
    /// l8: it never was a claim, so nobody recorded who uses it.
    NeverRecorded,

    /// An answer that a caller's own prober gave.
    Injected,
}

impl Evidence {
    /// What it is, in a word that stays the same from one version to the next,
    /// for programs that read a report: its sentence is for people.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Evidence::LeaseFree => "lease-free",
            Evidence::LeaseHeld => "lease-held",
            Evidence::LeaseUnclear(_) => "lease-unclear",
            Evidence::UnlistedFileSystem(_) => "unlisted-file-system",
            Evidence::OtherFileSystem { .. } => "other-file-system",
            Evidence::OwnerRuns(_) => "owner-runs",
            Evidence::OwnerEnded(..) => "owner-ended",
            Evidence::OwnerElsewhere(_) => "owner-elsewhere",
            Evidence::NoOwner => "no-owner",
            Evidence::Released => "released",
            Evidence::OwnerMissing => "owner-missing",
            Evidence::OwnerUnreadable(_) => "owner-unreadable",
            Evidence::OwnerDamaged => "owner-damaged",
            Evidence::OwnerOfAnother(_) => "owner-of-another",
            Evidence::OwnerUnclear(..) => "owner-unclear",
            Evidence::NoCommands => "no-commands",
            Evidence::CommandsEnded { .. } => "commands-ended",
            Evidence::CommandHoldsLock { .. } => "command-holds-lock",
            Evidence::GroupRuns { .. } => "group-runs",
            Evidence::CommandsMissing => "commands-missing",
            Evidence::CommandsUnreadable(_) => "commands-unreadable",
            Evidence::TooManyEntries => "too-many-entries",
            Evidence::StrangeEntry { .. } => "strange-entry",
            Evidence::EntryUnclear { .. } => "entry-unclear",
            Evidence::IdentityDamaged { .. } => "identity-damaged",
            Evidence::CommandElsewhere { .. } => "command-elsewhere",
            Evidence::GroupUnclear { .. } => "group-unclear",
            Evidence::Unused => "unused",
            Evidence::Used { how, .. } => how.code(),
            Evidence::UseUnclear(_) => "use-unclear",
            Evidence::OnWord(_) => "on-word",
            Evidence::NeverRecorded => "never-recorded",
            Evidence::Injected => "injected",
        }
    }
}

impl Evidence {
    /// Whether an operator's word can stand in the place of this answer: it
    /// could not be given because what it is about is of another boot or
    /// namespace, or is damaged.
    pub(crate) fn yields_to_word(&self) -> bool {
        match self {
            Evidence::CommandElsewhere { .. } => true,
            Evidence::OwnerMissing
            | Evidence::OwnerDamaged
            | Evidence::CommandsMissing
            | Evidence::StrangeEntry { .. }
            | Evidence::IdentityDamaged { .. } => true,
            Evidence::OwnerUnreadable(Errno::EIO | Errno::ESTALE | Errno::EUCLEAN) => true,
            // Something else is in its place.
            Evidence::CommandsUnreadable(Errno::ENOTDIR | Errno::ELOOP) => true,
            Evidence::EntryUnclear {
                errno: Errno::EISDIR | Errno::ELOOP | Errno::EINVAL, ..
            } => true,
            // CHECK(l7-nothing-else): whoever lives, lives; and what failed for want of a
            // descriptor, or because a process may not be asked about, says nothing of the claim.
            _ => false,
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Evidence::LeaseFree => f.write_str("nobody holds its lease"),
            Evidence::LeaseHeld => f.write_str("its lease is held"),
            Evidence::LeaseUnclear(errno) => write!(f, "its lease could not be asked for: {errno}"),
            Evidence::UnlistedFileSystem(magic) => {
                write!(f, "locks on a file system of kind {:#x} prove nothing", magic.0)
            }
            Evidence::OtherFileSystem { recorded, found } => write!(
                f,
                "its owner saw {} here and we see {}, so the lease is not asked of the same kernel or mount",
                recorded.name(),
                found.name()
            ),
            Evidence::OwnerRuns(seen) => write!(f, "owner {seen} runs"),
            Evidence::OwnerEnded(seen, how) => write!(f, "owner {seen} {how}"),
            Evidence::OwnerElsewhere(seen) => {
                write!(f, "owner {seen} was of another boot or namespace, and its lease is free")
            }
            Evidence::NoOwner => f.write_str("no owner is recorded, and the lease is free"),
            Evidence::Released => f.write_str("its owner gave it up"),
            Evidence::OwnerMissing => f.write_str("damaged: the owner's record is missing"),
            Evidence::OwnerUnreadable(errno) => {
                write!(f, "the owner's record could not be read: {errno}")
            }
            Evidence::OwnerDamaged => {
                f.write_str("damaged: the owner's record cannot be understood")
            }
            Evidence::OwnerOfAnother(random) => {
                write!(f, "the owner's record is that of claim {random}: a copy")
            }
            Evidence::OwnerUnclear(seen, errno) => {
                write!(f, "whether owner {seen} runs could not be found out: {}", Reason(*errno))
            }
            Evidence::NoCommands => f.write_str("no command is registered"),
            Evidence::CommandsEnded { entries: 1 } => f.write_str("its command has ended"),
            Evidence::CommandsEnded { entries } => write!(f, "all {entries} commands have ended"),
            Evidence::CommandHoldsLock { entry, command: Some(seen) } => {
                write!(f, "the lock of command {entry} is held; it was started as {seen}")
            }
            Evidence::CommandHoldsLock { entry, command: None } => {
                write!(f, "the lock of command {entry} is held")
            }
            Evidence::GroupRuns { group, first, more: 0 } => {
                write!(f, "command {first} runs in group {}", group.0)
            }
            Evidence::GroupRuns { group, first, more } => {
                write!(f, "command {first} and {more} more run in group {}", group.0)
            }
            Evidence::CommandsMissing => {
                f.write_str("damaged: the registry of commands is missing")
            }
            Evidence::CommandsUnreadable(errno) => {
                write!(f, "the registry of commands could not be read: {errno}")
            }
            Evidence::TooManyEntries => {
                f.write_str("damaged: the registry has more entries than can be asked")
            }
            Evidence::StrangeEntry { name, kind } => {
                write!(f, "damaged: `{name}` in the registry is {} that no owner made", kind.word())
            }
            Evidence::EntryUnclear { entry, errno } => {
                write!(f, "whether command {entry} runs could not be found out: {errno}")
            }
            Evidence::IdentityDamaged { entry } => {
                write!(f, "damaged: the identity of command {entry} cannot be understood")
            }
            Evidence::CommandElsewhere { entry, pid } => write!(
                f,
                "command {entry} was started as {} in another pid namespace, where we cannot look",
                pid.0
            ),
            Evidence::GroupUnclear { group, errno } => {
                write!(f, "who is in group {} could not be seen: {}", group.0, Reason(*errno))
            }
            Evidence::Unused => f.write_str("no process is seen to use it"),
            Evidence::Used { by, how, more } => {
                write!(f, "process {by} {}", sentence_of(*how))?;
                match more {
                    0 => Ok(()),
                    1 => f.write_str(", and 1 more process uses it"),
                    more => write!(f, ", and {more} more processes use it"),
                }
            }
            Evidence::UseUnclear(errno) => {
                write!(f, "whether a process uses it could not be found out: {}", Reason(*errno))
            }
            Evidence::OnWord(evidence) => write!(f, "{evidence} (removed on an operator's word)"),
            Evidence::NeverRecorded => f.write_str("nobody recorded who uses it"),
            Evidence::Injected => f.write_str("a prober of the caller's own says so"),
        }
    }
}

impl Use {
    /// What it is, in a word that stays the same from one version to the next,
    /// as [`Evidence::code`].
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Use::WorkingDirectory => "used-as-working-directory",
            Use::Root => "used-as-root",
            Use::Executable => "used-as-executable",
            Use::Descriptor => "used-by-descriptor",
            Use::Map => "used-by-map",
            Use::MountOf => "used-by-mount-of-it",
            Use::MountOn => "used-by-mount-on-it",
            Use::Cookie => "used-by-cookie",
        }
    }
}

/// What a process that uses a claim does with it.
fn sentence_of(how: Use) -> &'static str {
    match how {
        Use::WorkingDirectory => "has its working directory in it",
        Use::Root => "has its root directory in it",
        Use::Executable => "runs a program that lies in it",
        Use::Descriptor => "has something in it open",
        Use::Map => "has a file in it mapped",
        Use::MountOf => "sees a mount of something in it",
        Use::MountOn => "sees a mount on something in it",
        Use::Cookie => "was started under it (MORTMAIN_CLAIM)",
    }
}

/// An error, where that of a `/proc` that cannot be used has a better text than
/// its number.
struct Reason(Errno);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            PROC_UNUSABLE => f.write_str("/proc is of another namespace, or hides processes"),
            errno => errno.fmt(f),
        }
    }
}

/// Something in a claim that stands in the way of its removal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Obstacle {
    /// Where, below the claim; empty for the claim itself.
    pub path: PathBytes,
    /// What it is.
    pub what: Hindrance,
}

/// What an obstacle is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Hindrance {
    /// A mount (h2).
    Mount,
    /// A directory whose `flock` somebody holds (h5).
    Locked,
    /// A claim inside, whose owner or commands run, or might (h5).
    InUse,
    /// A directory of another user (h4).
    Foreign {
        /// That user.
        uid: u32,
    },
    /// A call failed.
    Call {
        /// What was tried.
        what: &'static str,
        /// How it failed.
        errno: Errno,
    },
    /// The name now stands for something else.
    NameChanged,
    /// A claim, in a directory that is none (l8).
    Claim,
}

impl Hindrance {
    /// What it is, in a word that stays the same from one version to the next,
    /// as [`Evidence::code`].
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Hindrance::Mount => "mount",
            Hindrance::Locked => "locked",
            Hindrance::InUse => "in-use",
            Hindrance::Foreign { .. } => "foreign",
            Hindrance::Call { .. } => "call",
            Hindrance::NameChanged => "name-changed",
            Hindrance::Claim => "claim",
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let here = self.path.0.is_empty();
        let path = if here { PathBytes::from(&b"."[..]) } else { self.path.clone() };
        match self.what {
            Hindrance::Mount if here => f.write_str("a mount lies on it"),
            Hindrance::Mount => write!(f, "a mount lies on `{path}` inside"),
            Hindrance::Locked if here => f.write_str("it is locked by somebody"),
            Hindrance::Locked => write!(f, "`{path}` inside is locked by somebody"),
            Hindrance::InUse => {
                write!(f, "a claim inside is in use, or might be: `{path}`")
            }
            Hindrance::Foreign { uid } => write!(f, "`{path}` inside belongs to user {uid}"),
            Hindrance::Call { what, errno } => write!(f, "{what} `{path}` failed: {errno}"),
            Hindrance::NameChanged => f.write_str("its name stands for something else now"),
            Hindrance::Claim if here => f.write_str("it is a claim under another name, or a copy"),
            Hindrance::Claim => write!(f, "`{path}` inside is a claim, which a sweep judges"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::string::ToString;

    /// One of every kind; a new one is added here as well.
    fn one_of_each() -> Vec<Evidence> {
        let seen = || Seen { pid: Pid(7), program: b"sh".to_vec() };
        let random = Random::parse(b"aaaaaaaaaaa2").expect("twelve of the alphabet");
        let errno = Errno::EIO;
        alloc::vec![
            Evidence::LeaseFree,
            Evidence::LeaseHeld,
            Evidence::LeaseUnclear(errno),
            Evidence::UnlistedFileSystem(FsMagic(0x6969)),
            Evidence::OtherFileSystem { recorded: FsKind::Ext4, found: FsKind::Tmpfs },
            Evidence::OwnerRuns(seen()),
            Evidence::OwnerEnded(seen(), Ended::Zombie),
            Evidence::OwnerElsewhere(seen()),
            Evidence::NoOwner,
            Evidence::Released,
            Evidence::OwnerMissing,
            Evidence::OwnerUnreadable(errno),
            Evidence::OwnerDamaged,
            Evidence::OwnerOfAnother(random),
            Evidence::OwnerUnclear(seen(), errno),
            Evidence::NoCommands,
            Evidence::CommandsEnded { entries: 2 },
            Evidence::CommandHoldsLock { entry: 0, command: Some(seen()) },
            Evidence::GroupRuns { group: Pid(7), first: seen(), more: 1 },
            Evidence::CommandsMissing,
            Evidence::CommandsUnreadable(errno),
            Evidence::TooManyEntries,
            Evidence::StrangeEntry { name: PathBytes::default(), kind: Kind::File },
            Evidence::EntryUnclear { entry: 0, errno },
            Evidence::IdentityDamaged { entry: 0 },
            Evidence::CommandElsewhere { entry: 0, pid: Pid(7) },
            Evidence::GroupUnclear { group: Pid(7), errno },
            used(Use::WorkingDirectory),
            used(Use::Root),
            used(Use::Executable),
            used(Use::Descriptor),
            used(Use::Map),
            used(Use::MountOf),
            used(Use::MountOn),
            used(Use::Cookie),
            Evidence::Unused,
            Evidence::UseUnclear(errno),
            Evidence::OnWord(Box::new(Evidence::OwnerMissing)),
            Evidence::NeverRecorded,
            Evidence::Injected,
        ]
    }

    fn used(how: Use) -> Evidence {
        Evidence::Used { by: Seen { pid: Pid(7), program: b"sh".to_vec() }, how, more: 0 }
    }

    fn hindrances() -> [Hindrance; 7] {
        [
            Hindrance::Mount,
            Hindrance::Locked,
            Hindrance::InUse,
            Hindrance::Foreign { uid: 7 },
            Hindrance::Call { what: "reading", errno: Errno::EIO },
            Hindrance::NameChanged,
            Hindrance::Claim,
        ]
    }

    #[track_caller]
    fn check_unique(codes: &[&str]) {
        for code in codes {
            let slug = !code.is_empty()
                && code.split('-').all(|part| {
                    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase())
                });
            assert!(slug, "{code:?} is not a slug");
        }
        let distinct: BTreeSet<_> = codes.iter().collect();
        assert_eq!(distinct.len(), codes.len(), "a code stands twice in {codes:?}");
    }

    #[test]
    fn each_kind_has_a_code_and_a_sentence_of_its_own() {
        let evidence = one_of_each();
        check_unique(&evidence.iter().map(Evidence::code).collect::<Vec<_>>());
        let sentences: BTreeSet<_> = evidence.iter().map(ToString::to_string).collect();
        assert_eq!(sentences.len(), evidence.len(), "{sentences:#?}");
        check_unique(&hindrances().each_ref().map(Hindrance::code));
    }

    #[test]
    fn an_operators_word_stands_for_what_is_elsewhere_or_damaged_and_for_nothing_else() {
        let all = one_of_each();
        let yielding = all.iter().filter(|evidence| evidence.yields_to_word());
        assert_eq!(
            yielding.map(Evidence::code).collect::<Vec<_>>(),
            [
                "owner-missing",
                "owner-unreadable",
                "owner-damaged",
                "commands-missing",
                "strange-entry",
                "identity-damaged",
                "command-elsewhere",
            ]
        );
        let owner = |errno| Evidence::OwnerUnreadable(errno).yields_to_word();
        assert!(owner(Errno::EIO) && owner(Errno::ESTALE) && owner(Errno::EUCLEAN));
        let commands = |errno| Evidence::CommandsUnreadable(errno).yields_to_word();
        assert!(commands(Errno::ENOTDIR) && commands(Errno::ELOOP));
        let entry = |errno| Evidence::EntryUnclear { entry: 0, errno }.yields_to_word();
        assert!(entry(Errno::EISDIR) && entry(Errno::ELOOP) && entry(Errno::EINVAL));
        for errno in [Errno::EACCES, Errno::EMFILE, Errno::ENOMEM] {
            assert!(!owner(errno) && !commands(errno) && !entry(errno), "{errno}");
        }
    }

    /// Programs depend on them: one that changes here breaks them.
    #[test]
    fn the_codes_stay() {
        let codes: Vec<_> = one_of_each().iter().map(Evidence::code).collect();
        let hindrances = hindrances();
        let hindrances: Vec<_> = hindrances.iter().map(Hindrance::code).collect();
        insta::assert_snapshot!(alloc::format!(
            "{}\n\n{}",
            codes.join("\n"),
            hindrances.join("\n")
        ));
    }
}
