//! The rules that the model can be without, each with what is done in its place.
//!
//! The names are those of `docs/protocol.md`, with a word where a rule has several parts.

use std::fmt;

macro_rules! rules {
    ($($variant:ident $id:literal $rule:literal $without:literal,)+) => {
        /// A rule, or a part of one, that a run can be without.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Rule {
            $(#[doc = $without] $variant,)+
        }

        impl Rule {
            /// All of them, in the order of the protocol.
            pub const ALL: &[Rule] = &[$(Rule::$variant,)+];

            /// Its name, for people and for the command line.
            pub fn id(self) -> &'static str {
                match self { $(Rule::$variant => $id,)+ }
            }

            /// The rule of the protocol that it is, or is a part of.
            pub fn of(self) -> &'static str {
                match self { $(Rule::$variant => $rule,)+ }
            }

            /// What is done in its place.
            pub fn without(self) -> &'static str {
                match self { $(Rule::$variant => $without,)+ }
            }
        }
    };
}

rules! {
    C1Lock "c1" "c1" "The lock is taken after the claim has its published name.",
    C2Creator "c2:creator" "c2" "The creator does not compare the directory that it locked with the name.",
    C2Sweep "c2:sweep" "c2" "A sweep does not compare the directory that it locked with the name.",
    C3Publish "c3" "c3" "The claim is made under its published name from the beginning.",
    C4Place "c4" "c4" "A claim is made wherever it is asked for, also where locks exclude nobody.",
    C5Exec "c5:exec" "c5" "The lease's descriptor survives exec.",
    C5Unlock "c5:unlock" "c5" "The owner unlocks its lease before it closes it.",
    C6Worker "c6" "c6" "In a forked child a close acts, as it does in the owner.",
    C7Afresh "c7" "c7" "A close keeps the description that it has, on which it would be granted the lock.",
    P1First "p1:first" "p1" "The entry is made and locked after the fork.",
    P1Exec "p1:exec" "p1" "The entry's descriptor survives exec in the owner's other children.",
    P2Group "p2:group" "p2" "The command stays in the group of its owner.",
    P2Id "p2:id" "p2" "No identity is written.",
    P2Child "p2:child" "p2" "The owner writes the identity, after the fork.",
    P2Lock "p2:lock" "p2" "The entry's descriptor does not survive the command's exec.",
    P3Copy "p3" "p3" "The owner keeps its copy of the entry's descriptor.",
    P4Cookie "p4" "p4" "No cookie is put into the environment.",
    P5Proof "p5:proof" "p5" "An entry is withdrawn when its command was reaped, and nothing is asked.",
    P5Lock "p5:lock" "p5" "An entry is withdrawn when its group is gone; its lock is not asked for.",
    P5Group "p5:group" "p5" "An entry is withdrawn when its lock is free; its group is not asked after.",
    P5Order "p5:order" "p5" "The entry's file is removed before its identity.",
    L1Lease "l1" "l1" "The lease is not asked for.",
    L1Kept "l1:kept" "l1" "The lease is given back when the proofs are there.",
    L1Kind "l1:kind" "l1" "The kind of the file system is not compared with the recorded one.",
    L2Owner "l2" "l2" "The owner is not asked after.",
    L2Ticks "l2:ticks" "l2" "A process at the recorded number is taken for the recorded one.",
    L2Zombie "l2:zombie" "l2" "A zombie is taken for alive.",
    L2Boot "l2:boot" "l2" "The boot id is not compared: a number of an earlier boot is asked after.",
    L2Damage "l2:damage" "l2" "A published claim without a record is taken for one whose owner is gone.",
    L3Commands "l3" "l3" "The commands are not asked after.",
    L3Lock "l3:lock" "l3" "The lock of an entry is not asked for.",
    L3Group "l3:group" "l3" "Where an entry's lock is free, its group is not asked after.",
    L3Zombie "l3:zombie" "l3" "A group of zombies is taken for alive.",
    L3Order "l3:order" "l3" "The commands are asked after before the owner.",
    L3Namespace "l3:namespace" "l3" "An entry of another pid namespace is gone when its lock is free.",
    L4Scan "l4" "l4" "A sweep does not look for evidence of life.",
    L4Last "l4:last" "l4" "The scan is made before the commands are asked after.",
    L5Uid "l5:uid" "l5" "A claim of another user is swept, too.",
    L5Name "l5:name" "l5" "The record need not name its claim.",
    L6Unlock "l6" "l6" "A sweep closes what it probed, and does not unlock it.",
    L7Word "l7" "l7" "An operator's word stands in the place of every answer.",
    R1Walk "r1:walk" "r1" "Nobody looks for a mount or a held directory before the rename.",
    R1Order "r1:order" "r1" "The owner's link goes first, then `commands`, then `files`.",
    R1Mark "r1:mark" "r1" "A removal in place is not marked.",
    R2Again "r2:again" "r2" "A tombstone is nobody's business any more.",
    R2Judged "r2:judged" "r2" "A tombstone is removed under its lease, and nothing else is asked.",
    R3Aside "r3" "r3" "A sweep waits for the lock.",
    R4Scan "r4:scan" "r4" "A close does not look for evidence of life.",
    R4Release "r4:release" "r4" "A close that may not remove, and a drop, leave no mark.",
    R5Goes "r5" "r5" "A sweep ends at the first entry that it cannot remove.",
    R5Told "r5:told" "r5" "An entry that cannot be removed is passed over in silence.",
    H2Mount "h2" "h2" "A mount is entered.",
    H3Link "h3" "h3" "A link is followed.",
    H4Uid "h4" "h4" "A directory of another user is entered.",
    H5Held "h5" "h5" "A directory whose lock somebody holds is emptied.",
    H8Errno "h8" "h8" "A probe that fails is taken for the proof that it was to give.",
    B1First "b1" "b1" "The lease is asked for last.",
}

impl Rule {
    /// The rule of this name.
    pub fn named(id: &str) -> Option<Rule> {
        Rule::ALL.iter().copied().find(|rule| rule.id() == id)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// The rules that are in force.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Rules(u64);

impl Rules {
    /// All of them.
    pub fn all() -> Rules {
        const { assert!(Rule::ALL.len() <= 64, "a word has 64 bits") };
        Rules(u64::MAX)
    }

    /// All but this one of these.
    #[must_use]
    pub fn without(self, rule: Rule) -> Rules {
        Rules(self.0 & !(1 << rule as u8))
    }

    /// Whether it is in force.
    #[inline]
    pub fn has(self, rule: Rule) -> bool {
        self.0 & (1 << rule as u8) != 0
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let off = Rule::ALL.iter().filter(|rule| !self.has(**rule)).map(|rule| rule.id());
        f.write_str("all but ")?;
        f.debug_set().entries(off).finish()
    }
}
