//! Claims that lack a part or have one too many: what is progress and what is damage (l2, l3, S3).

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use mortmain::protocol::SweepOptions;
use mortmain::sys::{Call, DirEntry, Errno, Host, Kind, Name, PathBytes, Reply};
use mortmain::{Evidence, Outcome, Proof};
use mortmain_harness::ground::{Ground, is_root, names_in, outcome, sentence};
use mortmain_harness::intercept::{Intercept, Moment};
use mortmain_harness::scripts::RUNS_ON;

use crate::support::{
    assert_cannot_tell, ground, id, in_cell, kill, of_commands, soon, with_ended,
};

#[test]
fn a_published_claim_without_its_registry_is_damaged() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        fs::remove_dir(claim.join("commands")).unwrap();
        let report = ground.sweep();
        assert_cannot_tell(of_commands(&report, &claim), &Evidence::CommandsMissing);
        let expected = "kept: damaged: the registry of commands is missing";
        assert_eq!(sentence(&report, &claim), expected);
        assert_eq!(names_in(&claim), ["files", "owner"]);
    });
}

/// More entries than any owner has at a time, of which the listing then fails.
fn endless(entries: u32) -> Intercept<Host> {
    let mut names: Vec<DirEntry> = (0..entries)
        .map(|entry| Name::new(entry.to_string().as_bytes()).expect("it is one component"))
        .map(|name| DirEntry { name, kind: Kind::File })
        .collect();
    let mut registry = None;
    let adversary = move |call: &Call, moment: Moment| match (call, moment) {
        (Call::OpenDir { name, .. }, Moment::Before) => {
            registry = (name.bytes() == b"commands").then_some(());
            None
        }
        (Call::ReadDir { .. }, Moment::Before) if registry.is_some() => match names.is_empty() {
            false => Some(Ok(Reply::Entries(std::mem::take(&mut names)))),
            true => Some(Err(Errno::EIO)),
        },
        _ => None,
    };
    Intercept::new(Host, Rc::new(RefCell::new(adversary)))
}

#[test]
fn a_registry_is_read_to_a_bound_that_no_owner_comes_to() {
    const MOST: u32 = 1 << 20;
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        for (entries, evidence) in
            [(MOST, Evidence::CommandsUnreadable(Errno::EIO)), (MOST + 1, Evidence::TooManyEntries)]
        {
            let report = ground.over(&endless(entries)).sweep(&SweepOptions::default());
            assert_cannot_tell(of_commands(&report, &claim), &evidence);
        }
    });
}

#[test]
fn a_published_claim_without_its_owner_is_damaged() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        fs::remove_file(claim.join("owner")).unwrap();
        let expected = "kept: damaged: the owner's record is missing";
        assert_eq!(sentence(&ground.sweep(), &claim), expected);
        assert_eq!(names_in(&claim), ["commands", "files"]);
    });
}

/// Leaves of a dead claim only its first so many parts, and gives it the name of this place.
fn stripped(ground: &Ground, count: usize, place: &str) -> PathBuf {
    let claim = ground.dead();
    for part in &["owner", "commands", "files"][count..] {
        let at = claim.join(part);
        fs::remove_file(&at).or_else(|_| fs::remove_dir(&at)).unwrap();
    }
    let name = claim.file_name().and_then(|name| name.to_str()).expect("it is text");
    let random = name.strip_prefix("t-").expect("it has the prefix");
    let moved = ground.root().join(place.replace("RANDOM", random));
    fs::rename(&claim, &moved).unwrap();
    moved
}

#[track_caller]
fn assert_goes(ground: &Ground, claim: &Path) {
    let report = ground.sweep();
    assert!(matches!(outcome(&report, claim), Outcome::Removed(_)), "{report}");
    assert_eq!(ground.names(), [""; 0]);
}

#[test]
fn what_a_killed_creator_or_remover_left_is_progress_where_it_is_not_published() {
    in_cell(|| {
        let ground = ground();
        for place in [".t-RANDOM.new", ".t-RANDOM.dead-aaaaaaaaaaa2"] {
            for count in 0..=3 {
                assert_goes(&ground, &stripped(&ground, count, place));
            }
        }
    });
}

#[test]
fn what_is_missing_from_a_published_claim_is_progress_where_it_was_given_up() {
    in_cell(|| {
        let ground = ground();
        // Its user may remove its files.
        assert_goes(&ground, &stripped(&ground, 2, "t-RANDOM"));
        for count in 1..=3 {
            let claim = stripped(&ground, count, "t-RANDOM");
            fs::rename(claim.join("owner"), claim.join("released")).unwrap();
            assert_goes(&ground, &claim);
        }
        // Of a removal in place that is all but done, the mode is left.
        for count in 0..=1 {
            let claim = stripped(&ground, count, "t-RANDOM");
            fs::set_permissions(&claim, fs::Permissions::from_mode(0o1700)).unwrap();
            assert_goes(&ground, &claim);
        }
        let empty = stripped(&ground, 0, "t-RANDOM");
        let report = ground.sweep();
        assert!(matches!(outcome(&report, &empty), Outcome::Kept(_)), "{report}");
    });
}

#[test]
fn what_no_owner_makes_in_a_registry_keeps_and_is_named() {
    in_cell(|| {
        let ground = ground();
        for name in ["notes", "00", "+1", "-1", "1e3", "0.ID", ".id", "4294967296", "0.id.id"] {
            let claim = ground.dead();
            fs::write(claim.join("commands").join(name), "").unwrap();
            let report = ground.sweep();
            let strange =
                Evidence::StrangeEntry { name: PathBytes::from(name.as_bytes()), kind: Kind::File };
            assert_cannot_tell(of_commands(&report, &claim), &strange);
            let expected =
                format!("kept: damaged: `{name}` in the registry is a file that no owner made");
            assert_eq!(sentence(&report, &claim), expected);
        }
    });
}

#[test]
fn an_identity_that_is_no_record_or_stands_alone_keeps() {
    in_cell(|| {
        let ground = ground();
        let damages: [fn(&Path); 4] = [
            |claim| fs::remove_file(claim.join("commands/0")).unwrap(),
            |claim| relink(claim, "no record"),
            |claim| relink(claim, &"A".repeat(200)),
            |claim| {
                fs::remove_file(id(claim)).unwrap();
                fs::create_dir(id(claim)).unwrap();
            },
        ];
        for damage in damages {
            let owned = with_ended(&ground, 1);
            damage(&owned.claim);
            let report = ground.sweep();
            let damaged = Evidence::IdentityDamaged { entry: 0 };
            assert_cannot_tell(of_commands(&report, &owned.claim), &damaged);
            let expected = "kept: damaged: the identity of command 0 cannot be understood";
            assert_eq!(sentence(&report, &owned.claim), expected);
        }
    });
}

fn relink(claim: &Path, text: &str) {
    fs::remove_file(id(claim)).unwrap();
    std::os::unix::fs::symlink(text, id(claim)).unwrap();
}

#[test]
fn one_living_command_keeps_whatever_cannot_be_told_of_others() {
    in_cell(|| {
        let ground = ground();
        let mut owned = ground.owned();
        owned.actor.spawn("exit 0").gone(soon()).unwrap();
        let living = owned.actor.spawn(RUNS_ON);
        owned.actor.said("the script's line");
        owned.actor.kill();
        relink(&owned.claim, "no record");
        let report = ground.sweep();
        let found = of_commands(&report, &owned.claim);
        assert_eq!(found.proof, Proof::Alive, "{report}");
        kill(&living);
        let report = ground.sweep();
        let damaged = Evidence::IdentityDamaged { entry: 0 };
        assert_cannot_tell(of_commands(&report, &owned.claim), &damaged);
    });
}

#[test]
fn a_lock_file_of_another_user_proves_nothing() {
    in_cell(|| {
        if !is_root("nobody else's file can be made") {
            return;
        }
        let ground = ground();
        let claim = ground.dead();
        let lock = claim.join("commands/0");
        fs::write(&lock, "").unwrap();
        chown(&lock, Some(65_534), None).unwrap();
        let report = ground.sweep();
        let unclear = Evidence::EntryUnclear { entry: 0, errno: Errno::EPERM };
        assert_cannot_tell(of_commands(&report, &claim), &unclear);
    });
}
