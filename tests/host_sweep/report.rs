//! What a sweep says: one sentence for every claim, and what it could not do at all (L3); and that a
//! dry run says the same and does nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use mortmain::protocol;
use mortmain::sys::{Call, Errno, Host, Name, PathBytes};
use mortmain::{
    Candidate, Condemned, Evidence, Finding, Hindrance, Obstacle, Outcome, Place, Prober, Probes,
    Removal, Remover, Removes, SweepOptions,
};
use mortmain_harness::answers::{Answers, dry_run};
use mortmain_harness::ground::{PREFIX, is_root, names_in, outcome, sentence};
use mortmain_harness::intercept::Intercept;
use mortmain_harness::scripts::RUNS_ON;
use mortmain_harness::tree::Tree;

use crate::support::{ground, in_cell, kill};

#[test]
fn a_report_is_one_sentence_for_each_claim_and_a_count_of_strangers() {
    in_cell(|| {
        let ground = ground();
        let living = ground.owned();
        let dead = ground.dead();
        let as_root = is_root("nobody else's claim can be made");
        let strangers = if as_root {
            chown(ground.dead(), Some(65_534), Some(65_534)).unwrap();
            1
        } else {
            0
        };
        fs::create_dir(ground.root().join("unrelated")).unwrap();
        fs::create_dir(ground.root().join("t-2short")).unwrap();
        let owner = mortmain_harness::forge::Record::read(&dead.join("owner")).unwrap().process.pid;

        let report = ground.sweep();
        let name = |claim: &std::path::Path| claim.file_name().unwrap().display().to_string();
        let removed = format!(
            "{}: removed: owner {owner} `mortmain-lab` has ended; no command is registered",
            name(&dead)
        );
        let kept = format!("{}: kept: its lease is held", name(&living.claim));
        let foreign = format!("{}: 1 of other users, left alone", ground.root().display());
        let mut expected = vec![removed, kept];
        expected.extend((strangers == 1).then_some(foreign));
        let text = report.to_string();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        expected.sort_unstable();
        assert_eq!(lines, expected);
        assert_eq!((report.removed(), report.kept(), report.blocked()), (1, 1, 0));
        assert_eq!((report.foreign, report.trouble), (strangers, None));
        assert!(report.entries.iter().all(|entry| entry.place == Place::Published));
        let root = PathBytes::from(ground.root().as_os_str().as_encoded_bytes());
        assert_eq!((&report.root, report.prefix.text()), (&root, PREFIX));
    });
}

#[test]
fn who_is_recorded_as_an_owner_can_be_asked_of_any_claim() {
    in_cell(|| {
        let ground = ground();
        let mut owned = ground.owned();
        let copy = ground.root().join("t-abcdefghij27");
        fs::create_dir(&copy).unwrap();
        std::os::unix::fs::symlink(
            fs::read_link(owned.claim.join("owner")).unwrap(),
            copy.join("owner"),
        )
        .unwrap();
        let empty = ground.root().join("t-abcdefghij22");
        fs::create_dir(&empty).unwrap();
        let recorded = |claim: &std::path::Path| {
            let name = Name::new(claim.file_name().unwrap().as_encoded_bytes()).unwrap();
            ground.namespace().recorded_owner(&name).map(|seen| (seen.pid.0, seen.program))
        };
        let owner = Some((owned.actor.pid(), b"mortmain-lab".to_vec()));
        assert_eq!(recorded(&owned.claim), owner);
        assert_eq!(recorded(&copy), None, "its record is another claim's");
        assert_eq!(recorded(&empty), None);
        assert_eq!(recorded(&ground.root().join("t-other")), None);
        let command = owned.actor.spawn(RUNS_ON);
        owned.actor.said("the script's line");
        owned.actor.must("release", "released");
        assert_eq!(recorded(&owned.claim), owner, "under the record's other name");
        kill(&command);
    });
}

#[test]
fn a_sweep_that_cannot_begin_says_why_and_touches_nothing() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        for (word, what) in
            [("identity", "finding out who sweeps"), ("read-dir", "listing the root")]
        {
            let kernel =
                Intercept::refusing(Host, Errno::EMFILE, move |call: &Call| call.word() == word);
            let report = ground.over(&kernel).sweep(&protocol::SweepOptions::default());
            let expected = format!(
                "{}: {what} failed: too many open files in this process (EMFILE)\n",
                ground.root().display()
            );
            assert_eq!(report.to_string(), expected);
            assert!(claim.is_dir());
        }
    });
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    in_cell(|| {
        let ground = ground();
        let dead = ground.dead();
        fs::write(dead.join("files/file"), "text").unwrap();
        let mut used = ground.owned();
        let command = used.actor.spawn(RUNS_ON);
        used.actor.said("the script's line");
        used.actor.kill();
        let blocked = ground.dead();
        let nested = blocked.join("files/nested");
        fs::create_dir(&nested).unwrap();
        let lock = fs::File::open(&nested).unwrap();
        lock.try_lock().unwrap();
        let sealed = ground.dead();
        fs::create_dir(sealed.join("files/sealed")).unwrap();
        for path in [&sealed.join("files/sealed"), &sealed] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o500)).unwrap();
        }

        let before = Tree::read(ground.root()).unwrap();
        let report = ground.namespace().dry_run();
        assert_eq!(Tree::read(ground.root()).unwrap(), before);
        assert!(report.dry_run);
        let would = sentence(&report, &dead);
        assert!(would.starts_with("would be removed: owner "), "{would}");
        let keeps = sentence(&report, &used.claim);
        assert!(keeps.starts_with("kept: the lock of command 0 is held"), "{keeps}");
        let sees = sentence(&report, &blocked);
        assert!(sees.ends_with("has something in it open"), "{sees}");
        let counts = (report.removed(), report.kept(), report.blocked());
        assert_eq!(counts, (0, 2, 0), "{report}");
        // Seen by nobody, it is the lock that keeps it.
        let report = dry_run(&ground.over(&Host), &mut Answers::nobody_seen());
        let blocks = sentence(&report, &blocked);
        assert_eq!(blocks, "kept: `files/nested` inside is locked by somebody");

        drop(lock);
        kill(&command);
        assert_eq!(ground.sweep().removed(), 4);
    });
}

#[test]
fn a_claim_that_is_locked_by_a_stopped_sweep_is_left_to_it() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let stopped = fs::File::open(&claim).unwrap();
        stopped.try_lock().unwrap();
        assert_eq!(sentence(&ground.sweep(), &claim), "kept: its lease is held");
        assert_eq!(names_in(&claim), ["commands", "files", "owner"]);
        stopped.unlock().unwrap();
        assert_eq!(ground.sweep().removed(), 1);
    });
}

/// A prober that cannot tell of one claim whether its owner lives.
struct Doubtful<'p>(&'p [u8]);

impl Prober<Host> for Doubtful<'_> {
    fn lease(&mut self, claim: &Candidate<'_, Host>) -> Finding {
        Probes.lease(claim)
    }

    fn owner(&mut self, claim: &Candidate<'_, Host>) -> Finding {
        if claim.name().bytes() == self.0 {
            return Finding::cannot_tell(Evidence::Injected);
        }
        Probes.owner(claim)
    }

    fn commands(&mut self, claim: &Candidate<'_, Host>) -> Finding {
        Probes.commands(claim)
    }
}

/// A remover that fails for one claim.
struct Clumsy<'p>(&'p [u8]);

impl Remover<Host> for Clumsy<'_> {
    fn remove(&mut self, claim: &Condemned<'_, Host>) -> Removal {
        if claim.name().bytes() == self.0 {
            let what = Hindrance::Call { what: "removing", errno: Errno::EIO };
            let path = PathBytes::from(&b"files/stuck"[..]);
            return Removal::Partial(vec![Obstacle { path, what }]);
        }
        Removes.remove(claim)
    }
}

#[test]
fn a_probe_that_cannot_tell_and_a_removal_that_fails_stop_nothing_else() {
    in_cell(|| {
        let ground = ground();
        let claims = [(); 4].map(|()| ground.dead());
        let name = |at: usize| claims[at].file_name().unwrap().as_encoded_bytes();
        let (mut doubtful, mut clumsy) = (Doubtful(name(0)), Clumsy(name(1)));
        let report =
            ground.namespace().sweep_with(&SweepOptions::default(), &mut doubtful, &mut clumsy);
        assert_eq!(sentence(&report, &claims[0]), "kept: a prober of the caller's own says so");
        let expected = "removed in part: removing `files/stuck` failed: input/output error (EIO)";
        assert_eq!(sentence(&report, &claims[1]), expected);
        for claim in &claims[2..] {
            assert!(matches!(outcome(&report, claim), Outcome::Removed(_)), "{report}");
        }
        let counts = (report.removed(), report.kept(), report.blocked());
        assert_eq!(counts, (2, 1, 1), "{report}");
        assert_eq!(ground.sweep().removed(), 2);
    });
}
