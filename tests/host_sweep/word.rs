//! What an operator's word for one claim overrules, and what it does not (l7).

use std::fs::{self, File};
use std::os::unix::fs::{chown, symlink};
use std::path::Path;

use mortmain::protocol::SweepOptions;
use mortmain::sys::{Call, Errno, Host, Name};
use mortmain::{ErrorKind, Evidence, Outcome, Proof, Report};
use mortmain_harness::forge::Record;
use mortmain_harness::ground::{Ground, is_root, outcome, sentence};
use mortmain_harness::intercept::Intercept;
use mortmain_harness::scripts::RUNS_ON;

use crate::support::{ground, id, in_cell, kill, of_commands, orphaned, with_ended};

fn name(claim: &Path) -> &std::ffi::OsStr {
    claim.file_name().expect("it has one")
}

/// What comes of a word for a claim.
#[track_caller]
fn word(ground: &Ground, claim: &Path) -> Report {
    ground.namespace().reclaim_on_word(name(claim), false).unwrap()
}

/// Asserts that sweeps keep a claim, and that it goes on an operator's word.
#[track_caller]
fn assert_goes_on_word(ground: &Ground, claim: &Path) {
    let neighbour = ground.dead();
    fs::remove_file(neighbour.join("owner")).unwrap();
    let report = ground.sweep();
    assert!(matches!(outcome(&report, claim), Outcome::Kept(_)), "{report}");
    let report = ground.namespace().reclaim_on_word(name(claim), true).unwrap();
    assert!(matches!(outcome(&report, claim), Outcome::WouldRemove(_)), "{report}");
    assert!(claim.exists(), "that was a dry run");
    let report = word(ground, claim);
    assert!(matches!(outcome(&report, claim), Outcome::Removed(_)), "{report}");
    assert_eq!((report.entries.len(), claim.exists()), (1, false), "{report}");
    assert!(neighbour.join("files").is_dir(), "it was no word for this one");
}

/// Asserts that a claim stays, whatever an operator says.
#[track_caller]
fn assert_stays(ground: &Ground, claim: &Path, expected: &str) {
    let report = word(ground, claim);
    assert_eq!(sentence(&report, claim), expected);
    assert!(claim.join("files").is_dir());
}

#[test]
fn a_command_of_another_namespace_goes_on_a_word_and_is_told() {
    in_cell(|| {
        let ground = ground();
        let owned = with_ended(&ground, 1);
        let pid = Record::read(&id(&owned.claim)).unwrap().process.pid;
        Record::change(&id(&owned.claim), |record| record.process.pid_ns += 1).unwrap();
        let keeps = sentence(&ground.sweep(), &owned.claim);
        assert!(keeps.starts_with("kept: command 0 was started as"), "{keeps}");
        let expected = format!(
            "removed: owner {} `mortmain-lab` has ended; command 0 was started as {pid} in another \
             pid namespace, where we cannot look (removed on an operator's word)",
            owned.actor.pid()
        );
        let report = word(&ground, &owned.claim);
        assert_eq!(sentence(&report, &owned.claim), expected);
        let Outcome::Removed(findings) = outcome(&report, &owned.claim) else { panic!("{report}") };
        assert_eq!(findings.commands.as_ref().map(|found| found.evidence.code()), Some("on-word"));
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn damage_of_every_kind_goes_on_a_word() {
    in_cell(|| {
        let damages: [fn(&Path); 9] = [
            |claim| fs::remove_file(claim.join("owner")).unwrap(),
            |claim| {
                fs::remove_file(claim.join("owner")).unwrap();
                symlink("no record", claim.join("owner")).unwrap();
            },
            |claim| {
                fs::remove_file(claim.join("owner")).unwrap();
                fs::create_dir_all(claim.join("owner/deep")).unwrap();
            },
            |claim| fs::remove_dir(claim.join("commands")).unwrap(),
            |claim| {
                fs::remove_dir(claim.join("commands")).unwrap();
                fs::write(claim.join("commands"), "").unwrap();
            },
            |claim| {
                fs::remove_dir(claim.join("commands")).unwrap();
                symlink("/", claim.join("commands")).unwrap();
            },
            |claim| fs::write(claim.join("commands/notes"), "").unwrap(),
            |claim| fs::create_dir(claim.join("commands/0")).unwrap(),
            |claim| symlink("an identity without its lock", claim.join("commands/0.id")).unwrap(),
        ];
        for damage in damages {
            let ground = ground();
            let claim = ground.dead();
            damage(&claim);
            assert_goes_on_word(&ground, &claim);
        }
    });
}

#[test]
fn who_lives_keeps_his_claim_whatever_an_operator_says() {
    in_cell(|| {
        let ground = ground();
        let mut owned = ground.owned();
        assert_stays(&ground, &owned.claim, "kept: its lease is held");
        owned.actor.must("lose-lease", "lost 1");
        let expected = format!("kept: owner {} `mortmain-lab` runs", owned.actor.pid());
        assert_stays(&ground, &owned.claim, &expected);
    });
}

#[test]
fn a_command_that_runs_beside_damage_keeps_its_claim() {
    in_cell(|| {
        let ground = ground();
        let (owned, command, _) = orphaned(&ground, RUNS_ON);
        fs::write(owned.claim.join("commands/a-note"), "").unwrap();
        symlink("no record", owned.claim.join("commands/7.id")).unwrap();
        let expected = format!(
            "kept: the lock of command 0 is held; it was started as {} `sh`",
            command.pid()
        );
        assert_stays(&ground, &owned.claim, &expected);
        kill(&command);
        let report = word(&ground, &owned.claim);
        assert_eq!(report.removed(), 1, "{report}");
    });
}

#[test]
fn what_could_not_be_asked_at_the_moment_is_no_damage() {
    in_cell(|| {
        let ground = ground();
        let owned = with_ended(&ground, 2);
        let copy = owned.claim.join("commands/1.id");
        Record::change(&id(&owned.claim), |record| record.process.pid_ns += 1).unwrap();
        assert!(copy.is_symlink(), "entries are withdrawn by living owners only");
        let options = SweepOptions::default();
        let name = Name::new(name(&owned.claim).as_encoded_bytes()).unwrap();
        for (word, errno) in
            [("process-exists", Errno::EPERM), ("readlink", Errno::EMFILE), ("uses", Errno::EIO)]
        {
            // Of the owner's record, nothing can be read; of the second command, nothing be asked.
            let pick = move |call: &Call| call.word() == word;
            let root = ground.over(&Intercept::refusing(Host, errno, pick));
            let report = root.reclaim_on_word(&name, &options).unwrap();
            assert_eq!(report.kept(), 1, "{word} answers {errno}: {report}");
        }
        Record::change(&copy, |record| record.process.pid_ns += 1).unwrap();
        // Before an entry that a word speaks for, and after one.
        for entry in [0, 1] {
            let digit = [b'0' + entry];
            let picked = move |call: &Call| matches!(call, Call::OpenFile { name, .. } if name.bytes() == digit);
            let root = ground.over(&Intercept::refusing(Host, Errno::EMFILE, picked));
            let report = root.reclaim_on_word(&name, &options).unwrap();
            let found = of_commands(&report, &owned.claim);
            let expected = Evidence::EntryUnclear { entry: entry.into(), errno: Errno::EMFILE };
            assert_eq!((found.proof, &found.evidence), (Proof::CannotTell, &expected));
        }
        assert_goes_on_word(&ground, &owned.claim);
    });
}

#[test]
fn what_is_seen_in_a_claim_or_lies_in_it_keeps_it_whatever_an_operator_says() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        fs::remove_file(claim.join("owner")).unwrap();
        let log = File::create(claim.join("files/log")).unwrap();
        let report = word(&ground, &claim);
        let said = sentence(&report, &claim);
        assert!(said.ends_with("has something in it open"), "{said}");
        drop(log);
        // Held by whoever has a claim in there.
        let nested = claim.join("files/nested");
        fs::create_dir(&nested).unwrap();
        let lock = File::open(&nested).unwrap();
        lock.try_lock().unwrap();
        let report = word(&ground, &claim);
        let said = sentence(&report, &claim);
        assert!(said.starts_with("kept: process"), "{said}");
        drop(lock);
        assert_eq!(word(&ground, &claim).removed(), 1);
    });
}

#[test]
fn a_copy_of_a_claim_stays_whatever_an_operator_says() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let copy = ground.root().join("t-aaaaaaaaaaa2");
        fs::rename(&claim, &copy).unwrap();
        let report = word(&ground, &copy);
        assert!(sentence(&report, &copy).ends_with("a copy"), "{report}");
        assert!(copy.join("files").is_dir());
    });
}

#[test]
fn a_word_for_nothing_is_an_error() {
    in_cell(|| {
        let ground = ground();
        let namespace = ground.namespace();
        for name in ["t-aaaaaaaaaaa2", "t-short", "other-aaaaaaaaaaa2", "a/b", "..", ""] {
            let error = namespace.reclaim_on_word(name, false).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoSuchClaim, "{name}: {error}");
        }
        if is_root("nothing can be given away") {
            let claim = ground.dead();
            fs::remove_file(claim.join("owner")).unwrap();
            chown(&claim, Some(1000), Some(1000)).unwrap();
            let error = namespace.reclaim_on_word(name(&claim), false).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoSuchClaim, "{error}");
            assert!(error.to_string().contains("it belongs to another user"), "{error}");
            assert!(claim.join("files").is_dir());
        }
    });
}
