//! Names that only look like claims, records of other claims, and records that nobody would write
//! (l5, h7).

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use mortmain::protocol::SweepOptions;
use mortmain::sys::{Call, Errno, Host, KernelExt, Pid};
use mortmain::{Evidence, Namespace, Outcome, Proof};
use mortmain_harness::forge::Record;
use mortmain_harness::ground::{names_in, outcome, sentence};
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::intercept::Intercept;

use crate::support::{ground, in_cell, kept, soon};

/// `cp -a`, as somebody makes a backup.
fn copy(from: &Path, to: &Path) {
    let mut command = Command::new("cp");
    command.arg("-a").args([from, to]);
    assert!(ChildGuard::spawn(command).unwrap().wait(soon()).unwrap().success());
}

fn random_of(claim: &Path) -> String {
    let name = claim.file_name().and_then(|name| name.to_str()).expect("it is text");
    name.strip_prefix("t-").expect("it has the prefix").into()
}

#[test]
fn a_copy_of_a_claim_is_kept_whether_the_original_lives_or_not() {
    in_cell(|| {
        let ground = ground();
        let living = ground.owned();
        for original in [ground.dead(), living.claim.clone()] {
            let random = random_of(&original);
            let copies =
                ["t-bbbbbbbbbbb2", ".t-bbbbbbbbbbb2.new", ".t-bbbbbbbbbbb2.dead-ccccccccccc2"]
                    .map(|name| ground.root().join(name));
            copies.iter().for_each(|to| copy(&original, to));
            let report = ground.sweep();
            for copy in &copies {
                let expected =
                    format!("kept: the owner's record is that of claim {random}: a copy");
                assert_eq!(sentence(&report, copy), expected);
                assert_eq!(names_in(copy), ["commands", "files", "owner"]);
                fs::remove_file(copy.join("owner")).unwrap();
                fs::remove_dir(copy.join("commands")).unwrap();
                fs::remove_dir(copy.join("files")).unwrap();
                fs::remove_dir(copy).unwrap();
            }
        }
        assert_eq!(ground.names(), [living.claim.file_name().expect("it has a name")]);
    });
}

#[test]
fn names_that_only_look_like_claims_are_not_looked_at() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let random = random_of(&claim);
        let names = [
            format!("t-{random}.bak"),
            format!("t-{random}a"),
            format!("t-{}", &random[1..]),
            format!("t-{}", random.to_uppercase()),
            format!("t{random}"),
            format!("tt-{random}"),
            format!("T-{random}"),
            format!(".t-{random}"),
            format!(".t-{random}.newer"),
            format!("t-{random}.new"),
            format!(".t-{random}.dead"),
            format!(".t-{random}.dead-short"),
            format!("t-{random}.dead-aaaaaaaaaaa2"),
            format!(".t-{random}.dead-aaaaaaaaaaaa"),
            "t-certificates".into(),
            "t-aaaaaaaaaaa1".into(),
            "t-aaaaaaaaaaaa".into(),
            "t-aaaaaaaaaaa ".into(),
            "t-".into(),
            "t".into(),
        ];
        names.iter().for_each(|name| copy(&claim, &ground.root().join(name)));
        let report = ground.sweep();
        assert_eq!(report.entries.len(), 1, "{report}");
        assert_eq!(report.removed(), 1, "{report}");
        assert_eq!(ground.names().len(), names.len());
        for name in &names {
            let parts = names_in(&ground.root().join(name));
            assert_eq!(parts, ["commands", "files", "owner"], "{name}");
        }
    });
}

#[test]
fn a_prefix_that_begins_like_another_has_its_own_claims() {
    in_cell(|| {
        let ground = ground();
        let prefixes = ["t", "t-t", "tt", "t.t", "t-aaaaaaaaaaa2"];
        let make = |prefix: &str| {
            let namespace = Namespace::at(ground.root(), prefix).unwrap();
            let claim = namespace.create().unwrap();
            let path: PathBuf = claim.path().parent().expect("it lies in the claim").into();
            claim.release().unwrap();
            (namespace, path)
        };
        let all = prefixes.map(make);
        for (at, (namespace, claim)) in all.iter().enumerate() {
            let report = namespace.sweep();
            assert_eq!(report.entries.len(), 1, "{}: {report}", prefixes[at]);
            assert!(matches!(outcome(&report, claim), Outcome::Removed(_)), "{report}");
            for (_, other) in &all[at + 1..] {
                assert!(other.is_dir(), "{} took {}", prefixes[at], other.display());
            }
        }
    });
}

#[test]
fn a_directory_that_is_no_claim_and_has_the_name_of_one_is_kept_be_it_empty_or_not() {
    in_cell(|| {
        let ground = ground();
        let (empty, filled) =
            (ground.root().join("t-aaaaaaaaaaa2"), ground.root().join("t-ccccccccccc2"));
        fs::create_dir(&empty).unwrap();
        fs::create_dir(&filled).unwrap();
        fs::write(filled.join("precious"), "somebody's").unwrap();
        let report = ground.sweep();
        let expected = "kept: damaged: the owner's record is missing; damaged: the registry of commands is missing";
        for claim in [&empty, &filled] {
            assert_eq!(sentence(&report, claim), expected);
        }
        assert_eq!(names_in(&filled), ["precious"]);
        assert!(empty.is_dir());
    });
}

/// A kernel that notes which processes and groups are asked about.
fn noting() -> (Intercept<Host>, Rc<RefCell<Vec<i32>>>) {
    let asked: Rc<RefCell<Vec<i32>>> = Rc::default();
    let noted = Rc::clone(&asked);
    let note = move |call: &Call, _| {
        let (Call::ProcessExists { pid }
        | Call::GroupExists { group: pid }
        | Call::KillGroup { group: pid }
        | Call::Process { pid }
        | Call::Pidfs { pid }) = call
        else {
            return None;
        };
        noted.borrow_mut().push(pid.0);
        // Nothing is killed here, whatever comes.
        matches!(call, Call::KillGroup { .. }).then_some(Err(Errno::EINVAL))
    };
    (Intercept::new(Host, Rc::new(RefCell::new(note))), asked)
}

/// Our own group, everybody, and groups.
const SPECIAL: [i32; 4] = [0, -1, -2, i32::MIN];

#[test]
fn a_number_that_means_many_or_init_never_comes_to_the_kernel() {
    let (kernel, asked) = noting();
    let refused = Err(Errno::EINVAL);
    for pid in SPECIAL.map(Pid) {
        assert_eq!(kernel.process_exists(pid), refused, "{pid:?}");
    }
    for group in SPECIAL.into_iter().chain([1]).map(Pid) {
        assert_eq!(kernel.group_exists(group), refused, "{group:?}");
        assert_eq!(kernel.kill_group(group), refused, "{group:?}");
    }
    assert_eq!(*asked.borrow(), [0; 0]);
}

#[test]
fn an_owner_with_a_number_that_means_many_is_never_asked_about() {
    in_cell(|| {
        let ground = ground();
        for pid in SPECIAL {
            let claim = ground.dead();
            Record::change(&claim.join("owner"), |record| record.process.pid = pid).unwrap();
            let (kernel, asked) = noting();
            let report = ground.over(&kernel).sweep(&SweepOptions::default());
            let found = kept(&report, &claim).owner.as_ref().expect("it was asked");
            let damaged = Evidence::OwnerDamaged;
            assert_eq!((found.proof, &found.evidence), (Proof::CannotTell, &damaged), "pid {pid}");
            assert_eq!(*asked.borrow(), [0; 0], "pid {pid}");
            fs::rename(&claim, ground.root().join(format!("done{pid}"))).unwrap();
        }
    });
}

#[test]
fn a_command_with_a_number_that_means_many_is_never_asked_about() {
    in_cell(|| {
        let ground = ground();
        let mut owned = ground.owned();
        owned.actor.spawn("exit 0").gone(soon()).unwrap();
        owned.actor.kill();
        let owner = Record::read(&owned.claim.join("owner")).unwrap().process.pid;
        for pid in SPECIAL {
            let id = owned.claim.join("commands/0.id");
            Record::change(&id, |record| record.process.pid = pid).unwrap();
            let (kernel, asked) = noting();
            let report = ground.over(&kernel).sweep(&SweepOptions::default());
            let found = kept(&report, &owned.claim).commands.as_ref().expect("it was asked");
            let damaged = Evidence::IdentityDamaged { entry: 0 };
            assert_eq!((found.proof, &found.evidence), (Proof::CannotTell, &damaged), "pid {pid}");
            let of_command = asked.borrow().iter().any(|asked| *asked != owner);
            assert!(!of_command, "pid {pid}: {:?}", asked.borrow());
        }
    });
}

#[test]
fn a_record_of_another_version_or_with_a_tail_is_damage() {
    in_cell(|| {
        let ground = ground();
        let changes: [fn(&mut Record); 4] = [
            |record| record.version += 1,
            |record| record.version = 0,
            |record| record.claim.as_mut().expect("an owner's").program = vec![b'x'; 100],
            |record| record.claim.as_mut().expect("an owner's").fs = 200,
        ];
        for change in changes {
            let claim = ground.dead();
            Record::change(&claim.join("owner"), change).unwrap();
            let report = ground.sweep();
            let expected = "kept: damaged: the owner's record cannot be understood";
            assert_eq!(sentence(&report, &claim), expected);
        }
    });
}
