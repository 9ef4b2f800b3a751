//! The table of 27: what three answers add up to, and the rows of it that the real kernel can show.

use std::fs;
use std::path::{Path, PathBuf};

use mortmain::Proof::{Alive, CannotTell, Gone};
use mortmain::{Outcome, Proof, Question, Removes, SweepOptions};
use mortmain_harness::answers::Answers;
use mortmain_harness::ground::{Ground, Owned, names_in, outcome};
use mortmain_harness::scripts::RUNS_ON;

use crate::support::{findings, ground, in_cell};

/// A claim that nobody uses and whose lease is free.
fn given_up(ground: &Ground) -> PathBuf {
    let claim = ground.namespace().create().unwrap();
    let path = claim.path().parent().expect("it lies in the claim").to_owned();
    claim.release().unwrap();
    path
}

#[test]
fn of_27_answers_one_removes_and_with_the_lease_not_gone_nothing_else_is_asked() {
    in_cell(|| {
        let ground = ground();
        let claim = given_up(&ground);
        for lease in Proof::ALL {
            for owner in Proof::ALL {
                for commands in Proof::ALL {
                    let row = (lease, owner, commands);
                    let mut answers = Answers {
                        lease: Some(lease),
                        owner: Some(owner),
                        commands: Some(commands),
                        ..Answers::default()
                    };
                    if row == (Gone, Gone, Gone) {
                        continue;
                    }
                    let report = ground.namespace().sweep_with(
                        &SweepOptions::default(),
                        &mut answers,
                        &mut Removes,
                    );
                    let kept = matches!(outcome(&report, &claim), Outcome::Kept(_));
                    assert!(kept, "{row:?}: {report}");
                    assert_eq!(names_in(&claim), ["commands", "files", "released"], "{row:?}");
                    let all = [Question::Lease, Question::Owner, Question::Commands];
                    let asked = if lease == Gone { &all[..] } else { &all[..1] };
                    assert_eq!(answers.asked, asked, "{row:?}");
                }
            }
        }
        let mut answers = Answers { commands: Some(Gone), ..Answers::but_for_commands() };
        let report =
            ground.namespace().sweep_with(&SweepOptions::default(), &mut answers, &mut Removes);
        assert!(matches!(outcome(&report, &claim), Outcome::Removed(_)), "{report}");
        assert_eq!(ground.names(), [""; 0]);
    });
}

/// Makes the owner's record unreadable for anybody.
fn damage_owner(claim: &Path) {
    fs::remove_file(claim.join("owner")).unwrap();
    fs::write(claim.join("owner"), "a file").unwrap();
}

/// Puts something into the registry that no owner makes.
fn damage_registry(claim: &Path) {
    fs::write(claim.join("commands/notes"), "what is this?").unwrap();
}

/// A claim whose owner lives and has lost its lease, with a command or without.
fn lost(ground: &Ground, script: Option<&str>) -> Owned {
    let mut owned = ground.owned();
    if let Some(script) = script {
        let _command = owned.actor.spawn(script);
        owned.actor.said("the command's line");
    }
    owned.actor.must("lose-lease", "lost 1");
    owned
}

#[test]
fn every_row_with_the_lease_gone_is_met_with_real_processes() {
    in_cell(|| {
        let ground = ground();
        let orphaned = [ground.orphaned(RUNS_ON), ground.orphaned(RUNS_ON)];
        let lost = [lost(&ground, None), lost(&ground, Some(RUNS_ON)), lost(&ground, None)];
        let rows = [
            (ground.dead(), (Gone, Gone)),
            (orphaned[0].claim.clone(), (Gone, Alive)),
            (ground.dead(), (Gone, CannotTell)),
            (lost[0].claim.clone(), (Alive, Gone)),
            (lost[1].claim.clone(), (Alive, Alive)),
            (lost[2].claim.clone(), (Alive, CannotTell)),
            (ground.dead(), (CannotTell, Gone)),
            (orphaned[1].claim.clone(), (CannotTell, Alive)),
            (ground.dead(), (CannotTell, CannotTell)),
        ];
        for (claim, (owner, commands)) in &rows {
            if *owner == CannotTell {
                damage_owner(claim);
            }
            if *commands == CannotTell {
                damage_registry(claim);
            }
        }
        let living = ground.owned();

        let report = ground.sweep();
        assert_eq!((report.removed(), report.kept()), (1, 9), "{report}");
        for (claim, (owner, commands)) in &rows {
            let found = findings(&report, claim);
            let of = |finding: &Option<mortmain::Finding>| finding.as_ref().map(|it| it.proof);
            let answers = (found.lease.proof, of(&found.owner), of(&found.commands));
            assert_eq!(answers, (Gone, Some(*owner), Some(*commands)), "{report}");
            let removed = matches!(outcome(&report, claim), Outcome::Removed(_));
            assert_eq!(removed, (*owner, *commands) == (Gone, Gone), "{report}");
            if !removed {
                assert_eq!(names_in(claim), ["commands", "files", "owner"], "{report}");
            }
        }
        let of_living = findings(&report, &living.claim);
        let asked = (of_living.owner.as_ref(), of_living.commands.as_ref());
        assert_eq!((of_living.lease.proof, asked), (Alive, (None, None)), "lease first");
    });
}
