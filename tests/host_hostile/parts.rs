//! Something else in the place of every part of a claim, and of the claim itself (h1, S3).
//!
//! Whatever it is, the sweep ends, keeps what it cannot understand, says so, and goes on to the
//! neighbours.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use mortmain::sys::Errno;
use mortmain::{Evidence, Outcome, Proof};
use mortmain_harness::ground::{is_root, outcome};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};

use crate::support::{Precious, ground, in_cell, kept};

/// Something that is no part of a claim, by its kind.
struct Planted {
    kind: &'static str,
    plant: fn(&Path, &Precious),
}

const PLANTED: [Planted; 9] = [
    Planted { kind: "a FIFO", plant: |at, _| fifo(at) },
    Planted {
        kind: "a socket",
        plant: |at, _| {
            // Its name stays when the listener goes. A name must be short, so it is made elsewhere.
            let short = at.ancestors().nth(2).expect("claims lie deep enough").join("s");
            UnixListener::bind(&short).unwrap();
            fs::rename(short, at).unwrap();
        },
    },
    Planted {
        kind: "a link to an endless device",
        plant: |at, _| symlink("/dev/zero", at).unwrap(),
    },
    Planted {
        kind: "a link to a directory",
        plant: |at, precious| symlink(&precious.dir, at).unwrap(),
    },
    Planted {
        kind: "a link to a file",
        plant: |at, precious| symlink(precious.dir.join("file"), at).unwrap(),
    },
    Planted {
        kind: "a link of the longest text there can be",
        plant: |at, _| symlink("x".repeat(4095), at).unwrap(),
    },
    Planted { kind: "garbage", plant: |at, _| fs::write(at, [0; 64]).unwrap() },
    Planted {
        kind: "ten gigabytes",
        plant: |at, _| File::create(at).unwrap().set_len(10 << 30).unwrap(),
    },
    Planted {
        kind: "a full directory",
        plant: |at, _| fs::create_dir_all(at.join("x/y")).unwrap(),
    },
];

fn fifo(at: &Path) {
    nix::unistd::mkfifo(at, Mode::S_IRWXU).unwrap();
}

/// A part of a claim, and what a sweep says when it is something else.
struct Part {
    name: &'static str,
    /// Whether this is what is said, for what was planted.
    said: fn(&str, &Evidence) -> bool,
    which: fn(&mortmain::Findings) -> Option<&mortmain::Finding>,
}

const PARTS: [Part; 5] = [
    Part {
        name: "released",
        said: |_, evidence| *evidence == Evidence::OwnerDamaged,
        which: |findings| findings.owner.as_ref(),
    },
    Part {
        name: "owner",
        said: |_, evidence| *evidence == Evidence::OwnerDamaged,
        which: |findings| findings.owner.as_ref(),
    },
    Part {
        name: "commands",
        said: |kind, evidence| {
            let found = Errno::ENOTDIR;
            let link = Errno::ELOOP;
            match evidence {
                // A directory is one; what is in it is no entry.
                Evidence::StrangeEntry { .. } => kind == "a full directory",
                Evidence::CommandsUnreadable(errno) => *errno == found || *errno == link,
                _ => false,
            }
        },
        which: |findings| findings.commands.as_ref(),
    },
    Part {
        name: "commands/0",
        said: |kind, evidence| match evidence {
            Evidence::EntryUnclear { entry: 0, .. } => true,
            // A file is a lock file, whatever is in it: free, and nobody has named himself.
            Evidence::CommandsEnded { entries: 1 } => kind == "garbage" || kind == "ten gigabytes",
            _ => false,
        },
        which: |findings| findings.commands.as_ref(),
    },
    Part {
        name: "commands/0.id",
        said: |_, evidence| *evidence == Evidence::IdentityDamaged { entry: 0 },
        which: |findings| findings.commands.as_ref(),
    },
];

#[test]
fn whatever_is_in_the_place_of_a_control_part_keeps_the_claim_and_stops_nothing() {
    in_cell(|| {
        let (ground, precious) = (ground(), Precious::new());
        let mut claims: Vec<(&Part, &str, PathBuf)> = Vec::new();
        for part in &PARTS {
            for planted in &PLANTED {
                let claim = ground.dead();
                if part.name == "commands/0.id" {
                    fs::write(claim.join("commands/0"), "").unwrap();
                }
                if part.name == "released" {
                    fs::remove_file(claim.join("owner")).unwrap();
                }
                let at = claim.join(part.name);
                let _ = fs::remove_file(&at);
                let _ = fs::remove_dir(&at);
                (planted.plant)(&at, &precious);
                claims.push((part, planted.kind, claim));
            }
        }
        let neighbour = ground.dead();
        let report = ground.sweep();
        assert!(matches!(outcome(&report, &neighbour), Outcome::Removed(_)), "{report}");
        for (part, kind, claim) in &claims {
            let harmless =
                part.name == "commands/0" && matches!(*kind, "garbage" | "ten gigabytes");
            if harmless {
                let removed = matches!(outcome(&report, claim), Outcome::Removed(_));
                assert!(removed, "{kind} as {}: {}", part.name, outcome(&report, claim));
                continue;
            }
            let finding = (part.which)(kept(&report, claim)).expect("it was asked");
            assert_eq!(finding.proof, Proof::CannotTell, "{kind} as {}", part.name);
            let said = (part.said)(kind, &finding.evidence);
            assert!(said, "{kind} as {}: {}", part.name, finding.evidence);
            assert!(claim.join(part.name).symlink_metadata().is_ok(), "{kind} as {}", part.name);
        }
        precious.assert_untouched();
    });
}

#[test]
fn whatever_is_in_the_place_of_the_files_goes_with_the_claim() {
    in_cell(|| {
        let (ground, precious) = (ground(), Precious::new());
        for planted in &PLANTED {
            let claim = ground.dead();
            fs::remove_dir(claim.join("files")).unwrap();
            (planted.plant)(&claim.join("files"), &precious);
        }
        assert_eq!(ground.sweep().removed(), PLANTED.len());
        assert_eq!(ground.names(), [""; 0]);
        precious.assert_untouched();
    });
}

#[test]
fn whatever_has_the_name_of_a_claim_and_is_no_directory_is_told_and_left_alone() {
    in_cell(|| {
        let (ground, precious) = (ground(), Precious::new());
        // One letter for each of the three places in a claim's life.
        for place in ["t-aaaaaaaaaaX2", ".t-aaaaaaaaaaX2.new", ".t-aaaaaaaaaaX2.dead-bbbbbbbbbbb2"]
        {
            let nest = ground.root().join("nest/deep");
            for (planted, letter) in PLANTED.iter().take(8).zip("abcdefgh".chars()) {
                fs::create_dir_all(&nest).unwrap();
                let at = ground.root().join(place.replace('X', &letter.to_string()));
                (planted.plant)(&nest.join("it"), &precious);
                fs::rename(nest.join("it"), &at).unwrap();
            }
        }
        fs::remove_dir(ground.root().join("nest/deep")).unwrap();
        fs::remove_dir(ground.root().join("nest")).unwrap();
        let before = ground.names();
        let neighbour = ground.dead();
        let report = ground.sweep();
        assert!(matches!(outcome(&report, &neighbour), Outcome::Removed(_)), "{report}");
        assert_eq!(ground.names(), before);
        assert_eq!(report.kept(), before.len(), "{report}");
        for name in &before {
            let findings = kept(&report, Path::new(name));
            let Evidence::LeaseUnclear(errno) = findings.lease.evidence else { panic!("{report}") };
            assert!(matches!(errno, Errno::ENOTDIR | Errno::ELOOP), "{}: {errno}", name.display());
            assert_eq!(findings.lease.proof, Proof::CannotTell);
        }
        precious.assert_untouched();
    });
}

#[test]
fn a_device_is_never_opened_nor_taken_for_a_part() {
    in_cell(|| {
        if !is_root("no device can be made") {
            return;
        }
        let ground = ground();
        let zero = |at: &Path| {
            mknod(at, SFlag::S_IFCHR, Mode::S_IRWXU, makedev(1, 5)).unwrap();
        };
        let (entry, owner, inside) = (ground.dead(), ground.dead(), ground.dead());
        zero(&entry.join("commands/0"));
        fs::remove_file(owner.join("owner")).unwrap();
        zero(&owner.join("owner"));
        zero(&inside.join("files/zero"));
        let report = ground.sweep();
        let unclear = Evidence::EntryUnclear { entry: 0, errno: Errno::EINVAL };
        let found = kept(&report, &entry).commands.as_ref().map(|it| &it.evidence);
        assert_eq!(found, Some(&unclear));
        let found = kept(&report, &owner).owner.as_ref().map(|it| &it.evidence);
        assert_eq!(found, Some(&Evidence::OwnerDamaged));
        assert!(matches!(outcome(&report, &inside), Outcome::Removed(_)), "{report}");
    });
}
