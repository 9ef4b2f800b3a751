//! What the proofs add up to.
//!
//! Three questions, each answered *gone*, *alive* or *cannot tell*, in this
//! order: who holds the lease (l1), does the owner run (l2), do commands run
//! (l3). Only three times *gone* is a verdict to remove; "I could not tell" is
//! never a proof (S3). The table below is the whole of it; the code of
//! [`verdict`] is kept so plain that it can be read against the table.

use core::fmt;

/// The answer to one question.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Proof {
    /// Positive support for removal.
    Gone,
    /// Positive evidence against it.
    Alive,
    /// Neither.
    CannotTell,
}

impl Proof {
    /// All three, for tables.
    pub const ALL: [Proof; 3] = [Proof::Gone, Proof::Alive, Proof::CannotTell];
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Proof::Gone => "gone",
            Proof::Alive => "alive",
            Proof::CannotTell => "cannot tell",
        })
    }
}

/// One of the three questions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Question {
    /// Is the lease free, and do we hold it now (l1)?
    Lease,
    /// Has the owner ended (l2)?
    Owner,
    /// Have all commands ended (l3)?
    Commands,
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Question::Lease => "lease",
            Question::Owner => "owner",
            Question::Commands => "commands",
        })
    }
}

/// What is to be done with a claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Verdict {
    /// It may go.
    Remove,
    /// It stays, because of the answer to this question.
    Keep(Question),
}

/// The verdict of three answers.
#[must_use]
pub fn verdict(lease: Proof, owner: Proof, commands: Proof) -> Verdict {
    // CHECK(l1-needs-lease): whoever holds the lease may use the claim.
    if lease != Proof::Gone {
        return Verdict::Keep(Question::Lease);
    }
    // CHECK(l2-needs-owner): an owner can have lost its lease's descriptor and live.
    if owner != Proof::Gone {
        return Verdict::Keep(Question::Owner);
    }
    // CHECK(l3-needs-commands): a command outlives its owner.
    if commands != Proof::Gone {
        return Verdict::Keep(Question::Commands);
    }
    Verdict::Remove
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use core::fmt::Write as _;

    #[test]
    fn the_table_of_27() {
        let mut table = String::new();
        for lease in Proof::ALL {
            for owner in Proof::ALL {
                for commands in Proof::ALL {
                    let verdict = match verdict(lease, owner, commands) {
                        Verdict::Remove => "remove".into(),
                        Verdict::Keep(why) => alloc::format!("keep: {why}"),
                    };
                    // b1: with the lease not gone, the other two are not even asked.
                    let asked = lease == Proof::Gone;
                    let note = if asked { "" } else { " (not asked: lease first)" };
                    writeln!(table, "{lease:11} {owner:11} {commands:11} {verdict}{note}")
                        .expect("a string takes it");
                }
            }
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn one_row_of_27_removes() {
        let removing = Proof::ALL
            .iter()
            .flat_map(|a| Proof::ALL.iter().map(move |b| (a, b)))
            .flat_map(|(a, b)| Proof::ALL.iter().map(move |c| (*a, *b, *c)))
            .filter(|(a, b, c)| verdict(*a, *b, *c) == Verdict::Remove);
        assert_eq!(
            removing.collect::<alloc::vec::Vec<_>>(),
            [(Proof::Gone, Proof::Gone, Proof::Gone)]
        );
    }
}
