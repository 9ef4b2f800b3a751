//! What a sweep found and did: a verdict and its evidence for every entry (L3).

use alloc::vec::Vec;
use core::fmt;

use crate::evidence::{Evidence, Finding, Obstacle};
use crate::grammar::{Place, Prefix};
use crate::root::Root;
use crate::sys::{Errno, Kernel, Name, PathBytes};
use crate::verdict::Proof;

/// The report of one sweep. It prints as one sentence an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The root that was swept.
    pub root: PathBytes,
    /// The prefix whose claims were looked at.
    pub prefix: Prefix,
    /// Whether nothing was to be removed.
    pub dry_run: bool,
    /// What was seen, in the order in which it was looked at.
    pub entries: Vec<Entry>,
    /// How many claims belong to other users, and were left alone.
    pub foreign: u64,
    /// How many claims were not looked at, or not removed any more, since the
    /// sweep's time was over. The
    /// next sweep begins elsewhere.
    pub unseen: usize,
    /// How many processes could not be read when it was asked who uses what was
    /// to be removed (l4). They keep nothing.
    pub unread: u64,
    /// What kept the sweep from looking at the root, or at all of it.
    pub trouble: Option<Trouble>,
}

/// Why a sweep did not see everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// What was tried.
    pub what: &'static str,
    /// How it failed.
    pub errno: Errno,
}

/// One claim in a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The name that it had.
    pub name: Name,
    /// Where it stood in its life.
    pub place: Place,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// It is removed.
    Removed(Findings),
    /// It would have been, but for [`crate::protocol::SweepOptions::dry_run`].
    WouldRemove(Findings),
    /// It stays, since it may be in use.
    Kept(Findings),
    /// It stays whole, since something forbids its removal.
    Blocked(Obstacle),
    /// Some of it is removed; these stood in the way of the rest.
    Partial(Vec<Obstacle>),
}

/// The answers that a verdict rests on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Findings {
    /// l1.
    pub lease: Finding,
    /// l2, asked only when l1 is *gone*.
    pub owner: Option<Finding>,
    /// l3, asked only when l1 is *gone*.
    pub commands: Option<Finding>,
    /// l4, asked only when all three are *gone*. It can only keep.
    pub life: Option<Finding>,
}

impl Findings {
    /// The answers that are not *gone*, in the order of the questions.
    pub fn against(&self) -> impl Iterator<Item = &Finding> {
        self.all().filter(|finding| finding.proof != Proof::Gone)
    }

    fn all(&self) -> impl Iterator<Item = &Finding> {
        core::iter::once(&self.lease).chain(&self.owner).chain(&self.commands).chain(&self.life)
    }

    /// What a removal rests on: who has ended. That the lease was free, and that
    /// nobody was seen, goes without saying.
    fn ended(&self) -> impl Iterator<Item = &Evidence> {
        self.owner.iter().chain(&self.commands).map(|finding| &finding.evidence)
    }
}

impl Report {
    pub(crate) fn new<K: Kernel>(root: &Root<K>, dry_run: bool) -> Report {
        Report {
            root: root.path().clone(),
            prefix: root.prefix().clone(),
            dry_run,
            entries: Vec::new(),
            foreign: 0,
            unseen: 0,
            unread: 0,
            trouble: None,
        }
    }

    pub(crate) fn in_trouble(mut self, what: &'static str, errno: Errno) -> Report {
        self.trouble = Some(Trouble { what, errno });
        self
    }

    /// How many claims were removed.
    #[must_use]
    pub fn removed(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Removed(_)))
    }

    /// How many claims stay because they may be in use.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Kept(_)))
    }

    /// How many claims stay, whole or in part, because something forbids their
    /// removal.
    #[must_use]
    pub fn blocked(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Blocked(_) | Outcome::Partial(_)))
    }

    fn count(&self, of: impl Fn(&Outcome) -> bool) -> usize {
        self.entries.iter().filter(|entry| of(&entry.outcome)).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            writeln!(f, "{entry}")?;
        }
        if let Some(Trouble { what, errno }) = self.trouble {
            writeln!(f, "{}: {what} failed: {errno}", self.root)?;
        }
        match self.unread {
            0 => {}
            1 => writeln!(
                f,
                "{}: 1 process could not be read, so what it uses is not known",
                self.root
            )?,
            many => writeln!(
                f,
                "{}: {many} processes could not be read, so what they use is not known",
                self.root
            )?,
        }
        if self.foreign > 0 {
            writeln!(f, "{}: {} of other users, left alone", self.root, self.foreign)?;
        }
        if self.unseen > 0 {
            let (root, unseen) = (&self.root, self.unseen);
            writeln!(f, "{root}: {unseen} left for later, since the sweep's time was over")?;
        }
        Ok(())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.outcome)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Removed(findings) => {
                f.write_str("removed: ")?;
                join(f, findings.ended())
            }
            Outcome::WouldRemove(findings) => {
                f.write_str("would be removed: ")?;
                join(f, findings.ended())
            }
            Outcome::Kept(findings) => {
                f.write_str("kept: ")?;
                join(f, findings.against().map(|finding| &finding.evidence))
            }
            Outcome::Blocked(obstacle) => write!(f, "kept: {obstacle}"),
            Outcome::Partial(obstacles) => {
                f.write_str("removed in part: ")?;
                join(f, obstacles)
            }
        }
    }
}

/// Writes the parts of a sentence.
fn join<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    parts: impl IntoIterator<Item = T>,
) -> fmt::Result {
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            f.write_str("; ")?;
        }
        write!(f, "{part}")?;
    }
    Ok(())
}
