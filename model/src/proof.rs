//! The three proofs, and what they add up to.
//!
//! Each is asked for as one question with three answers. Only gone, gone, gone goes on; every
//! other row keeps, and says by which proof. Nine of the 27 rows can be met: lock first ends the
//! matter where the lease is not gone, and nothing further is asked.

use crate::bits::choices;

choices! {
    /// What a probe says.
    Answer: 2 {
        /// Positively gone: a proof that supports removal.
        Gone,
        /// There is somebody.
        Alive,
        /// Neither: never a proof.
        CannotTell,
    }
}

/// The answers to the three questions, in the order in which they are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proofs {
    /// l1: the lease.
    pub lease: Answer,
    /// l2: the owner.
    pub owner: Answer,
    /// l3: the commands.
    pub commands: Answer,
}

/// One of the three questions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Question {
    /// l1
    Lease,
    /// l2
    Owner,
    /// l3
    Commands,
}

/// What three answers add up to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// On to the evidence of life (l4), which can only keep.
    GoOn,
    /// Keep, since this question was answered so, which is not *gone*. It is the first such one.
    Keep(Question, Answer),
}

impl Proofs {
    /// All 27, in the order of the questions.
    pub fn all() -> impl Iterator<Item = Proofs> {
        Answer::ALL.iter().flat_map(|&lease| {
            Answer::ALL.iter().flat_map(move |&owner| {
                Answer::ALL.iter().map(move |&commands| Proofs { lease, owner, commands })
            })
        })
    }

    /// What they add up to.
    pub fn verdict(self) -> Verdict {
        let asked = [
            (Question::Lease, self.lease),
            (Question::Owner, self.owner),
            (Question::Commands, self.commands),
        ];
        let kept_by = asked.into_iter().find(|(_, answer)| *answer != Answer::Gone);
        kept_by.map_or(Verdict::GoOn, |(question, answer)| Verdict::Keep(question, answer))
    }

    /// Whether a sweep ever has these answers: without the lease it asks nothing further (b1).
    pub fn is_reachable(self) -> bool {
        self.lease == Answer::Gone
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Answer::Gone => "gone",
            Answer::Alive => "alive",
            Answer::CannotTell => "cannot tell",
        })
    }
}

impl std::fmt::Display for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Question::Lease => "l1, the lease",
            Question::Owner => "l2, the owner",
            Question::Commands => "l3, the commands",
        })
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::GoOn => f.write_str("go on to l4"),
            Verdict::Keep(question, answer) => write!(f, "keep: {question}: {answer}"),
        }
    }
}

/// The table of 27, as text.
pub fn table() -> String {
    let mut text = String::from("lease        owner        commands     verdict\n");
    for proofs in Proofs::all() {
        let Proofs { lease, owner, commands } = proofs;
        let reached = if proofs.is_reachable() { "" } else { " (never met: lock first)" };
        let row = [lease, owner, commands].map(|answer| format!("{:<13}", answer.to_string()));
        text += &format!("{}{}{reached}\n", row.concat(), proofs.verdict());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_27() {
        insta::assert_snapshot!(table());
    }

    #[test]
    fn only_gone_gone_gone_goes_on() {
        let on: Vec<_> = Proofs::all().filter(|p| p.verdict() == Verdict::GoOn).collect();
        let gone = Answer::Gone;
        assert_eq!(on, [Proofs { lease: gone, owner: gone, commands: gone }]);
        assert_eq!(Proofs::all().count(), 27);
        assert_eq!(Proofs::all().filter(|proofs| proofs.is_reachable()).count(), 9);
    }

    #[test]
    fn a_row_that_keeps_names_the_first_answer_that_is_no_proof() {
        let proofs =
            Proofs { lease: Answer::Gone, owner: Answer::CannotTell, commands: Answer::Alive };
        assert_eq!(proofs.verdict(), Verdict::Keep(Question::Owner, Answer::CannotTell));
    }
}
