//! A copy of the owner that did not exec can do no more than close what it has (c6, c7).

use mortmain_harness::ground::{names_in, sentence};

use crate::support::{ground, in_cell, soon};

#[test]
fn a_forked_child_cannot_use_the_claim_and_takes_nothing_with_it() {
    in_cell(|| {
        let ground = ground();
        let mut owned = ground.owned();
        owned.actor.must("write kept", "written");
        assert_eq!(owned.actor.ask("fork-exit"), "exited: spawn Forked, close Forked");
        assert!(owned.files().join("kept").is_file(), "the child removed it at its end");
        let parts = names_in(&owned.claim);
        assert_eq!(parts, ["commands", "files", "owner"], "the child gave it up at its end");
        let command = owned.actor.spawn("true");
        command.gone(soon()).unwrap();
        assert_eq!(sentence(&ground.sweep(), &owned.claim), "kept: its lease is held");
        assert_eq!(owned.actor.ask("close"), "removed");
    });
}

#[test]
fn a_close_while_a_forked_copy_lives_leaves_the_claim_to_the_sweeps() {
    in_cell(|| {
        let ground = ground();
        let mut owned = ground.owned();
        let worker = owned.actor.copy("fork-stay");
        assert_eq!(owned.actor.ask("close"), "released");
        let report = ground.sweep();
        assert_eq!(sentence(&report, &owned.claim), "kept: its lease is held");
        worker.kill().unwrap();
        worker.gone(soon()).unwrap();
        // The owner still lives, and pins nothing that it gave up.
        let report = ground.sweep();
        let expected = "removed: its owner gave it up; no command is registered";
        assert_eq!(sentence(&report, &owned.claim), expected);
    });
}

#[test]
fn a_claim_that_is_dropped_while_a_forked_copy_lives_is_left_to_the_sweeps() {
    in_cell(|| {
        let ground = ground();
        let mut owned = ground.owned();
        let worker = owned.actor.copy("fork-stay");
        owned.actor.must("drop", "dropped");
        assert_eq!(sentence(&ground.sweep(), &owned.claim), "kept: its lease is held");
        worker.kill().unwrap();
        worker.gone(soon()).unwrap();
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_killed_owner_is_survived_by_the_copy_that_holds_its_lease() {
    in_cell(|| {
        let ground = ground();
        let mut owned = ground.owned();
        let worker = owned.actor.copy("fork-stay");
        owned.actor.kill();
        assert!(!worker.is_gone().unwrap());
        assert_eq!(sentence(&ground.sweep(), &owned.claim), "kept: its lease is held");
        worker.kill().unwrap();
        worker.gone(soon()).unwrap();
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_forked_copy_that_lets_go_of_the_claim_closes_all_of_it() {
    in_cell(|| {
        let ground = ground();
        let mut owned = ground.owned();
        let worker = owned.actor.copy("fork-drop");
        assert_eq!(owned.actor.ask("close"), "removed", "the copy had none of its descriptors");
        assert!(!worker.is_gone().unwrap());
    });
}
