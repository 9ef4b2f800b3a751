//! How a claim is held: by a lock that dies with its owner, is nobody else's, and is missed when it
//! is lost (c5, c7).

use std::fs::{self, File};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use mortmain::{Claim, ErrorKind};
use mortmain_harness::descriptors;
use mortmain_harness::ground::sentence;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::scratch::scratch_root;

use crate::support::{closes, dir, ground, in_cell, kind_of, refused, soon};

#[track_caller]
fn descriptors_on(path: &Path) -> Vec<RawFd> {
    descriptors::on(path).expect("/proc is there")
}

#[track_caller]
fn replace(number: RawFd, with: &Path) -> Vec<File> {
    descriptors::replace(number, with).expect("it is open, and its number free then")
}

/// Lets a claim of this process go out of scope.
fn let_go(claim: Claim) {
    let _claim = claim;
}

#[test]
fn a_strangers_process_does_not_keep_the_lease() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        // Another thread of the owner could start it just as well.
        let mut cat = ChildGuard::spawn_with_stdin(Command::new("cat")).unwrap();
        cat.send_line("it runs", soon()).unwrap();
        cat.lines().next_line(soon(), "its line").unwrap();
        // A lease that it had inherited could not be taken afresh.
        closes(claim);
    });
}

#[test]
fn no_descriptor_of_a_claim_takes_the_place_of_a_standard_stream() {
    in_cell(|| {
        let ground = ground();
        nix::unistd::close(0).expect("it is open");
        let claim = ground.namespace().create().unwrap();
        let path = dir(&claim);
        for of in [ground.root(), path] {
            let numbers = descriptors_on(of);
            assert!(!numbers.is_empty() && numbers.iter().all(|fd| *fd > 2), "{numbers:?}");
        }
        // A command's own input is put at 0 before the child does its part.
        assert!(claim.command("true").status().unwrap().success());
        closes(claim);
    });
}

#[test]
fn a_killed_owner_holds_nothing_whatever_it_started() {
    in_cell(|| {
        let ground = ground();
        let mut owned = ground.owned();
        let before = ground.sweep();
        assert_eq!(sentence(&before, &owned.claim), "kept: its lease is held");
        owned.actor.kill();
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_claim_whose_lease_was_closed_is_used_no_more() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let leases = descriptors_on(dir(&claim));
        assert_eq!(leases.len(), 1, "{leases:?}");
        nix::unistd::close(leases[0]).expect("it is open");
        assert_eq!(kind_of(claim.command("true").spawn()), ErrorKind::LeaseLost);
        let (claim, error) = refused(claim);
        assert_eq!(error.kind(), ErrorKind::LeaseLost);
        let path = dir(&claim).to_owned();
        let_go(claim);
        assert!(path.join("owner").is_symlink(), "without its lease it is the sweeps' to judge");
    });
}

#[test]
fn a_number_that_was_the_leases_and_is_a_strangers_stays_open() {
    in_cell(|| {
        let ground = ground();
        let stranger = ground.root().join("stranger");
        fs::write(&stranger, "").unwrap();
        let claim = ground.namespace().create().unwrap();
        let lease = descriptors_on(dir(&claim))[0];
        let _strangers = replace(lease, &stranger);
        assert_eq!(kind_of(claim.command("true").spawn()), ErrorKind::LeaseLost);
        let_go(claim);
        assert!(descriptors_on(&stranger).contains(&lease), "number {lease} was closed");
    });
}

#[test]
fn of_all_numbers_that_were_the_librarys_none_is_closed_when_it_is_a_strangers() {
    in_cell(|| {
        let ground = ground();
        let stranger = scratch_root().join("stranger");
        fs::write(&stranger, "").unwrap();
        let namespace = ground.namespace();
        let claim = namespace.create().unwrap();
        // What a daemon does that closes everything, and then opens files of its own.
        let all =
            descriptors::all().unwrap().into_iter().filter(|(_, to)| to.starts_with(ground.root()));
        let numbers: Vec<RawFd> = all.map(|(fd, _)| fd).collect();
        assert!(numbers.len() >= 2, "the root's and the lease's are among {numbers:?}");
        let _strangers: Vec<Vec<File>> = numbers.iter().map(|fd| replace(*fd, &stranger)).collect();
        assert_eq!(kind_of(claim.command("true").spawn()), ErrorKind::LeaseLost);
        let_go(claim);
        {
            let _namespace = namespace;
        }
        let open = descriptors_on(&stranger);
        let closed: Vec<&RawFd> = numbers.iter().filter(|fd| !open.contains(fd)).collect();
        assert_eq!(closed, [&0; 0], "of {numbers:?}");
    });
}

#[test]
fn a_claim_that_was_renamed_is_used_no_more_until_it_is_back() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let (path, aside) = (dir(&claim).to_owned(), ground.root().join("aside"));
        fs::rename(&path, &aside).unwrap();
        assert_eq!(kind_of(claim.command("true").spawn()), ErrorKind::LeaseLost);
        let (claim, error) = refused(claim);
        assert_eq!(error.kind(), ErrorKind::LeaseLost);
        assert!(aside.join("files").is_dir());
        fs::rename(&aside, &path).unwrap();
        closes(claim);
    });
}

#[test]
fn a_directory_in_the_place_of_a_renamed_claim_is_left_alone() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let (path, aside) = (dir(&claim).to_owned(), ground.root().join("aside"));
        fs::rename(&path, &aside).unwrap();
        fs::create_dir_all(path.join("files")).unwrap();
        fs::write(path.join("files/precious"), "somebody's").unwrap();
        let_go(claim);
        assert_eq!(fs::read_to_string(path.join("files/precious")).unwrap(), "somebody's");
        assert_eq!(left_of(&aside), ["commands", "files", "owner"].map(PathBuf::from));
    });
}

fn left_of(dir: &Path) -> Vec<PathBuf> {
    mortmain_harness::ground::names_in(dir).into_iter().map(PathBuf::from).collect()
}
