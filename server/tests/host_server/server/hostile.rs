//! Whatever lies in its root, a server becomes ready, removes what is dead and touches nothing else.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use mortmain_harness::forge::Record;
use mortmain_harness::ground::{Ground, PREFIX, is_root};
use mortmain_harness::scenario::host::plant::plant;
use mortmain_harness::scenario::story::Planted;
use mortmain_harness::scratch::scratch_root;

use crate::client::Client;
use crate::support::{in_cell, lab, text};

const ALL: [Planted; 13] = [
    Planted::Fifo,
    Planted::Directory,
    Planted::File,
    Planted::DanglingLink,
    Planted::LinkToPrecious,
    Planted::LinkToZero,
    Planted::Socket,
    Planted::SparseGiant,
    Planted::FifoWithWriter,
    Planted::LinkToFile,
    Planted::Garbage,
    Planted::FullDirectory,
    Planted::Device,
];

/// Names of a claim, a staging and a tombstone, and one that is none.
const NAMES: [&str; 4] =
    ["-aaaaaaaaaaa2", "-bbbbbbbbbbb2.new", "-ccccccccccc2.dead-ddddddddddd2", "-certificates"];

/// Parts of a dead claim.
const PARTS: [&str; 5] = ["owner", "commands", "commands/0", "files", "files/inside"];

#[test]
fn whatever_stands_in_the_place_of_a_claim_or_a_part_of_one_the_server_becomes_ready() {
    in_cell(|| {
        let (precious, short) = (scratch_root(), scratch_root());
        fs::write(precious.join("file"), "text").unwrap();
        for what in ALL {
            if what == Planted::Device && !is_root("no device can be made") {
                continue;
            }
            let ground = Ground::new(lab());
            let mut held = Vec::new();
            for rest in NAMES {
                let dot = if rest.contains('.') { "." } else { "" };
                let at = ground.root().join(format!("{dot}{PREFIX}{rest}"));
                held.extend(plant(what, &at, &precious, &short).unwrap());
            }
            for part in PARTS {
                let at = ground.dead().join(part);
                let aside = scratch_root().join("aside");
                if at.symlink_metadata().is_ok() {
                    fs::rename(&at, aside).unwrap();
                }
                held.extend(plant(what, &at, &precious, &short).unwrap());
            }
            let canary = ground.dead();

            let mut server = Client::start(ground.root(), &["--prefix", PREFIX]);
            assert!(!canary.exists(), "{what:?}: a sweep that removes nothing keeps everything");
            assert_eq!(server.shell("echo ready")["stdout"], "ready\n", "{what:?}");
            let listed = server.claims();
            let own = server.claim();
            assert!(listed.contains_key(own.file_name().and_then(|name| name.to_str()).unwrap()));
            assert!(server.ends().success(), "{what:?}");
            assert!(!own.exists(), "{what:?}");
            let none = ground.root().join(format!("{PREFIX}-certificates"));
            assert!(none.symlink_metadata().is_ok(), "{what:?}: it has not even a claim's name");
            assert_eq!(text(precious.join("file")), "text", "{what:?}");
        }
    });
}

/// Records that name nobody who may be asked about, or that this version cannot read.
#[test]
fn whatever_the_records_say_the_server_becomes_ready_and_keeps_what_it_cannot_understand() {
    in_cell(|| {
        let ground = Ground::new(lab());
        let mut kept: Vec<PathBuf> = Vec::new();
        let mut forged = |change: &dyn Fn(&mut Record)| {
            let claim = ground.dead();
            Record::change(&claim.join("owner"), change).unwrap();
            kept.push(claim);
        };
        for pid in [0, -1, -2, i32::MIN] {
            forged(&|record| record.process.pid = pid);
        }
        for version in [0, 2, 255] {
            forged(&|record| record.version = version);
        }
        let living = ground.owned();
        let of_another = Record::read(&living.claim.join("owner")).unwrap();
        forged(&|record| *record = of_another.clone());
        for text in ["0", "-1", "2147483648", "no record!", "AAAA", ".", "/"] {
            let claim = ground.dead();
            fs::remove_file(claim.join("owner")).unwrap();
            symlink(text, claim.join("owner")).unwrap();
            kept.push(claim);
        }
        // Somebody works there who has told nobody.
        let used = ground.dead();
        let lock = File::open(used.join("files")).unwrap();
        lock.try_lock().unwrap();
        kept.extend([used, living.claim.clone()]);
        let canary = ground.dead();

        let mut server = Client::start(ground.root(), &["--prefix", PREFIX]);
        assert!(!canary.exists());
        assert_eq!(server.shell("echo ready")["stdout"], "ready\n");
        let claims = server.claims();
        for claim in &kept {
            let name = claim.file_name().and_then(|name| name.to_str()).unwrap();
            assert_ne!(claims[name].0, "remove", "{}", claims[name].1);
            assert!(claim.join("files").exists(), "{name}");
        }
        assert!(server.ends().success());
    });
}
