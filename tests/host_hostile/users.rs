//! Other users' claims, other users' directories in ours, and permissions that a command took away
//! (l5, h4).

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use mortmain::Outcome;
use mortmain_harness::actor::Actor;
use mortmain_harness::ground::{Ground, PREFIX, is_root, names_in, outcome, sentence};

use crate::support::{LAB, Precious, ground, in_cell};

/// The user who stands for all that a user namespace does not know, and who is nobody's elsewhere.
const OVERFLOW: u32 = 65_534;

fn give(path: &Path, uid: u32) {
    chown(path, Some(uid), Some(uid)).unwrap();
}

fn seal(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn another_users_claim_is_counted_and_left_alone() {
    in_cell(|| {
        if !is_root("nobody else's claim can be made") {
            return;
        }
        let ground = ground();
        let (claim, own) = (ground.dead(), ground.dead());
        fs::write(claim.join("files/file"), "theirs").unwrap();
        give(&claim, 1000);
        // Whether its owner lives is not looked at.
        let living = ground.owned();
        give(&living.claim, 1000);
        let report = ground.sweep();
        assert_eq!((report.foreign, report.entries.len()), (2, 1), "{report}");
        assert!(matches!(outcome(&report, &own), Outcome::Removed(_)), "{report}");
        assert_eq!(names_in(&claim), ["commands", "files", "owner"]);
        assert!(claim.join("files/file").is_file());
    });
}

#[test]
fn to_a_plain_user_a_claim_of_roots_is_another_users() {
    in_cell(|| {
        if !is_root("root cannot be asked for a claim") {
            return;
        }
        let ground = Ground::of_plain_user(LAB);
        let roots = Ground::at(LAB, ground.root().into()).dead();
        let own = ground.dead();
        let swept = ground.sweep_as_user();
        assert_eq!((swept.removed, swept.foreign), (1, 1), "{:?}", swept.report);
        assert!(!own.exists());
        assert_eq!(names_in(&roots), ["commands", "files", "owner"]);
    });
}

#[test]
fn in_a_user_namespace_the_user_who_stands_for_all_others_is_not_oneself() {
    in_cell(|| {
        if !is_root("nobody else can be become") {
            return;
        }
        let reachable = Ground::of_plain_user(LAB);
        let ground = ground();
        give(ground.root(), OVERFLOW);
        let theirs = ground.dead();
        // Without a map every stranger has that number there, and so has the sweep itself.
        let mut command = Command::new("unshare");
        let actor = reachable.actor_command();
        command.arg("--user").arg(actor.get_program()).args(actor.get_args());
        let swept = Actor::start_by(command).sweep(PREFIX, ground.root());
        let counts = (swept.removed, swept.kept, swept.blocked, swept.foreign);
        assert_eq!(counts, (0, 0, 0, 1), "{:?}", swept.report);
        assert_eq!(names_in(&theirs), ["commands", "files", "owner"]);
    });
}

#[test]
fn outside_of_any_user_namespace_the_same_number_is_a_user_like_others() {
    in_cell(|| {
        if !is_root("nobody else can be become") {
            return;
        }
        let ground = Ground::of_plain_user(LAB).given_to(OVERFLOW);
        let (dead, living) = (ground.dead(), ground.owned());
        let swept = ground.sweep_as_user();
        assert_eq!((swept.removed, swept.kept), (1, 1), "{:?}", swept.report);
        assert!(!dead.exists() && living.claim.exists());
    });
}

#[test]
fn another_users_directory_in_a_claim_is_not_entered_by_root() {
    in_cell(|| {
        if !is_root("nobody else's directory can be made") {
            return;
        }
        let ground = ground();
        let claim = ground.dead();
        // Moved in by somebody who could not empty it himself.
        let victim = claim.join("files/a/victim");
        fs::create_dir_all(victim.join("sub")).unwrap();
        fs::write(victim.join("sub/precious"), "a victim's").unwrap();
        fs::create_dir(claim.join("files/b")).unwrap();
        fs::write(claim.join("files/file"), "own").unwrap();
        for path in [victim.join("sub/precious"), victim.join("sub"), victim.clone()] {
            give(&path, 1000);
        }
        let report = ground.sweep();
        let expected = "removed in part: `files/a/victim` inside belongs to user 1000";
        assert_eq!(sentence(&report, &claim), expected);
        let tombstone = ground.root().join(&ground.names()[0]);
        assert_eq!(names_in(&tombstone.join("files")), ["a"], "the rest is gone");
        let precious = tombstone.join("files/a/victim/sub/precious");
        assert_eq!(fs::read_to_string(precious).unwrap(), "a victim's");
        assert_eq!(names_in(&tombstone), ["commands", "files", "owner"]);

        // It is told again, and goes when the victim is gone.
        let report = ground.sweep();
        assert_eq!(sentence(&report, &tombstone), expected);
        fs::rename(tombstone.join("files/a/victim"), ground.root().join("rescued")).unwrap();
        assert_eq!(ground.sweep().removed(), 1);
        assert!(ground.root().join("rescued/sub/precious").is_file());
    });
}

#[test]
fn a_stranger_in_the_place_of_a_registry_keeps_the_claim() {
    in_cell(|| {
        if !is_root("nobody else's directory can be made") {
            return;
        }
        let ground = Ground::of_plain_user(LAB);
        let claim = ground.dead();
        let commands = claim.join("commands");
        give(&commands, 0);
        seal(&commands, 0o700);
        let swept = ground.sweep_as_user();
        assert_eq!((swept.removed, swept.kept), (0, 1), "{:?}", swept.report);
        assert!(swept.report[0].contains("the registry of commands could not be read"));
        assert!(commands.is_dir());
    });
}

/// A dead claim of a plain user, filled by root and given to that user.
fn of_plain_user(ground: &Ground) -> PathBuf {
    let claim = ground.dead();
    let uid = std::os::unix::fs::MetadataExt::uid(&fs::metadata(&claim).unwrap());
    let files = claim.join("files");
    fs::create_dir_all(files.join("none/deep/deeper")).unwrap();
    fs::create_dir_all(files.join("read-only/deep")).unwrap();
    fs::write(files.join("none/file"), "text").unwrap();
    fs::write(files.join("none/deep/deeper/file"), "text").unwrap();
    fs::write(files.join("read-only/file"), "text").unwrap();
    let parts = ["none/file", "none/deep/deeper/file", "read-only/file", "none/deep/deeper"];
    let more = ["none/deep", "none", "read-only/deep", "read-only"];
    for part in parts.iter().chain(&more) {
        if may_give() {
            give(&files.join(part), uid);
        }
    }
    seal(&files.join("none/file"), 0o000);
    seal(&files.join("none/deep/deeper"), 0o000);
    seal(&files.join("none/deep"), 0o111);
    seal(&files.join("none"), 0o000);
    seal(&files.join("read-only/file"), 0o444);
    seal(&files.join("read-only/deep"), 0o500);
    seal(&files.join("read-only"), 0o555);
    claim
}

fn may_give() -> bool {
    nix::unistd::geteuid().is_root()
}

#[test]
fn directories_without_permissions_go_with_a_plain_users_claim() {
    in_cell(|| {
        let ground = Ground::of_plain_user(LAB);
        let claims = [0o700, 0o000, 0o500, 0o777].map(|mode| {
            let claim = of_plain_user(&ground);
            seal(&claim, mode);
            claim
        });
        let swept = ground.sweep_as_user();
        assert_eq!(swept.removed, claims.len(), "{:?}", swept.report);
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn control_parts_without_permissions_go_with_a_plain_users_claim() {
    in_cell(|| {
        let ground = Ground::of_plain_user(LAB);
        let mut owned = ground.owned();
        owned.actor.spawn("exit 0").gone(crate::support::soon()).unwrap();
        owned.actor.kill();
        seal(&owned.claim.join("commands"), 0o000);
        seal(&owned.claim.join("files"), 0o000);
        let swept = ground.sweep_as_user();
        assert_eq!(swept.removed, 1, "{:?}", swept.report);
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn a_living_claim_without_permissions_is_kept() {
    in_cell(|| {
        let ground = Ground::of_plain_user(LAB);
        let mut owned = ground.owned();
        seal(&owned.claim, 0o000);
        let swept = ground.sweep_as_user();
        assert_eq!((swept.removed, swept.kept), (0, 1), "{:?}", swept.report);
        assert_eq!(owned.actor.ask("close"), "removed");
    });
}

#[test]
fn a_strangers_directory_in_a_plain_users_claim_is_told_and_the_rest_goes() {
    in_cell(|| {
        if !is_root("nobody else's directory can be made") {
            return;
        }
        let ground = Ground::of_plain_user(LAB);
        let claim = of_plain_user(&ground);
        let stranger = claim.join("files/stranger");
        fs::create_dir(&stranger).unwrap();
        fs::write(stranger.join("precious"), "root's").unwrap();
        seal(&stranger, 0o700);
        let swept = ground.sweep_as_user();
        assert_eq!((swept.removed, swept.blocked), (0, 1), "{:?}", swept.report);
        let told = "removed in part: `files/stranger` inside belongs to user 0";
        assert!(swept.report[0].ends_with(told), "{:?}", swept.report);
        let tombstone = ground.root().join(&ground.names()[0]);
        assert_eq!(names_in(&tombstone.join("files")), ["stranger"]);
        assert_eq!(names_in(&tombstone.join("files/stranger")), ["precious"]);
    });
}

#[test]
fn a_file_that_others_own_or_may_only_read_goes_with_the_directory_it_lies_in() {
    in_cell(|| {
        let (ground, precious) = (Ground::of_plain_user(LAB), Precious::new());
        let claim = ground.dead();
        let files = claim.join("files");
        fs::write(files.join("theirs"), "root's, in our directory").unwrap();
        seal(&files.join("theirs"), 0o400);
        // A hard link is a name, and only the name is ours to remove.
        let linked = ground.root().join("linked");
        fs::write(&linked, "has two names").unwrap();
        fs::hard_link(&linked, files.join("second-name")).unwrap();
        let swept = ground.sweep_as_user();
        assert_eq!(swept.removed, 1, "{:?}", swept.report);
        assert_eq!(fs::read_to_string(&linked).unwrap(), "has two names");
        assert_eq!(fs::metadata(&linked).unwrap().permissions().mode() & 0o777, 0o644);
        precious.assert_untouched();
    });
}
