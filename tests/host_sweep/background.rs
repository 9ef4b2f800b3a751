//! Sweeps beside a program: where they begin, when they stop, and what is gained by one that is
//! killed (b2, b3).

use std::cell::Cell;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use mortmain::sys::{Answer, Call, Errno, Host, Name, Reply};
use mortmain::{Namespace, Place, Probes, Removes, SweepOptions, protocol};
use mortmain_harness::actor::Actor;
use mortmain_harness::ground::{Ground, PREFIX, is_root, sentence};
use mortmain_harness::intercept::{Intercept, Moment};
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::scripts::RUNS_ON;
use nix::mount::{MsFlags, mount};

use crate::support::{LAB, ground, in_cell, kill};

/// A kernel whose random numbers are all this one, or fail.
fn random(number: Answer<u64>) -> Intercept<Host> {
    let answer = move |call: &Call, moment: Moment| {
        let asked = matches!((call, moment), (Call::Random, Moment::Before));
        asked.then_some(number.map(Reply::Number))
    };
    Intercept::new(Host, Rc::new(std::cell::RefCell::new(answer)))
}

#[test]
fn a_sweep_begins_at_a_random_claim_and_comes_to_every_one() {
    in_cell(|| {
        let ground = ground();
        let _dead = [(); 5].map(|()| ground.dead());
        let look = protocol::SweepOptions { dry_run: true, ..protocol::SweepOptions::default() };
        let order = |number| -> Vec<Name> {
            let report = ground.over(&random(number)).sweep(&look);
            assert_eq!(report.entries.len(), 5, "{report}");
            report.entries.into_iter().map(|entry| entry.name).collect()
        };
        let listed = order(Ok(0));
        for number in 0..12 {
            let mut rotated = listed.clone();
            rotated.rotate_left(number as usize % 5);
            assert_eq!(order(Ok(number)), rotated, "{number}");
        }
        assert_eq!(order(Err(Errno::ENOSYS)), listed, "it begins somewhere in any case");
        assert_eq!(ground.sweep().removed(), 5);
    });
}

#[test]
fn of_two_claims_the_second_is_begun_with_as_well() {
    in_cell(|| {
        let ground = ground();
        let _dead = [ground.dead(), ground.dead()];
        let look = protocol::SweepOptions { dry_run: true, ..protocol::SweepOptions::default() };
        let first = |number| ground.over(&random(Ok(number))).sweep(&look).entries[0].name.clone();
        assert_ne!(first(0), first(1));
    });
}

#[test]
fn a_sweep_whose_time_is_over_stops_after_the_claim_that_it_is_at_and_tells_the_rest() {
    in_cell(|| {
        // Over after the second question, while claims are judged; and after the sixth, when all
        // five are judged and one is removed.
        for (over_at, asked_in_all) in [(2, 3), (6, 6)] {
            let ground = ground();
            let _dead = [(); 5].map(|()| ground.dead());
            let asked = Cell::new(0);
            let mut enough = || {
                asked.set(asked.get() + 1);
                asked.get() >= over_at
            };
            let options = protocol::SweepOptions::default();
            let root = ground.over(&Host);
            let report = root.sweep_until(&options, &mut Probes, &mut Removes, &mut enough);
            let told = (report.removed(), report.unseen, asked.get());
            assert_eq!(told, (1, 4, asked_in_all), "{report}");
            let last = report.to_string().lines().last().map(str::to_owned);
            let expected = format!(
                "{}: 4 left for later, since the sweep's time was over",
                ground.root().display()
            );
            assert_eq!(last, Some(expected));
            assert_eq!(ground.names().len(), 4);
        }
        let ground = ground();
        let _dead = [(); 3].map(|()| ground.dead());
        let asked = Cell::new(0);
        let options = protocol::SweepOptions::default();
        let root = ground.over(&Host);

        // The last claim is no reason to say that something was left out.
        let report = root.sweep_until(&options, &mut Probes, &mut Removes, &mut || {
            asked.set(asked.get() + 1);
            asked.get() >= 6
        });
        assert_eq!((report.removed(), report.unseen), (3, 0), "{report}");
        assert!(!report.to_string().contains("time was over"), "{report}");
    });
}

#[test]
fn a_budget_of_nothing_still_looks_at_one_claim_each_time() {
    in_cell(|| {
        let ground = ground();
        let _dead = [(); 4].map(|()| ground.dead());
        let options = SweepOptions { budget: Some(Duration::ZERO), ..SweepOptions::default() };
        for left in (0..4).rev() {
            let report = ground.namespace().sweep_with(&options, &mut Probes, &mut Removes);
            assert_eq!((report.removed(), report.unseen), (1, left), "{report}");
        }
        let ample = SweepOptions { budget: Some(Duration::MAX), ..SweepOptions::default() };
        let _dead = [(); 2].map(|()| ground.dead());
        let beside = ground.namespace().sweep_in_background_with(ample, Probes, Removes);
        let report = beside.join().unwrap();
        assert_eq!((report.removed(), report.unseen), (2, 0), "{report}");
    });
}

#[test]
fn of_sweeps_that_are_all_killed_each_leaves_fewer() {
    in_cell(|| {
        let ground = ground();
        let _dead = [(); 6].map(|()| ground.dead());
        let living = ground.owned();
        for left in (0..6).rev() {
            let mut actor = ground.actor();
            let ended = actor.end(&format!("sweep-and-die {PREFIX} {}", ground.root().display()));
            assert_eq!(ended.signal(), Some(9), "it is killed");
            assert_eq!(ground.names().len(), left + 1, "each removal is for good");
        }
        assert_eq!(sentence(&ground.sweep(), &living.claim), "kept: its lease is held");
    });
}

#[test]
fn a_sweep_in_the_background_takes_the_dead_from_between_the_living() {
    in_cell(|| {
        let ground = ground();
        let mut programs = [(); 2].map(|()| ground.owned());
        let _dead = [(); 3].map(|()| ground.dead());
        let mut used = ground.owned();
        let command = used.actor.spawn(RUNS_ON);
        used.actor.said("the command's line");
        used.actor.kill();

        let beside = format!("sweep-beside {PREFIX} {}", ground.root().display());
        assert_eq!(programs[0].actor.must(&beside, "swept"), "3 3 0 0");
        // Its program goes on as before.
        assert_eq!(programs[0].actor.ask("write file"), "written");
        assert!(used.claim.join("owner").is_symlink());
        kill(&command);
        assert_eq!(programs[1].actor.must(&beside, "swept"), "1 2 0 0");
        assert_eq!(programs[0].actor.ask("close"), "removed");
        assert_eq!(programs[1].actor.ask("close"), "removed");
        assert!(ground.names().is_empty());
    });
}

#[test]
fn a_program_that_may_not_start_a_thread_goes_on_and_can_learn_why() {
    in_cell(|| {
        let ground = Ground::of_plain_user(LAB);
        let lab = PathBuf::from(ground.actor_command().get_program());
        let limited = ["--nproc=1", "--", lab.to_str().expect("it is text"), "actor"];
        let mut actor = Actor::start_by(ground.as_user("prlimit", &limited));
        let claim = actor.create(PREFIX, ground.root());
        let answer = actor.ask(&format!("sweep-beside {PREFIX} {}", ground.root().display()));
        let expected =
            format!("error System: cannot sweep in the background {}: ", ground.root().display());
        assert!(answer.starts_with(&expected), "{answer}");
        assert!(answer.contains("(EAGAIN)"), "{answer}");
        assert_eq!(actor.ask("close"), "removed");
        assert!(!claim.exists());
    });
}

#[test]
fn without_a_free_inode_a_sweep_in_the_background_gets_everything_done() {
    in_cell(|| {
        if !is_root("no file system can be mounted") {
            return;
        }
        let root = scratch_root();
        let nothing = None::<&str>;
        mount(nothing, &root, Some("tmpfs"), MsFlags::empty(), Some("nr_inodes=80")).unwrap();
        let ground = Ground::at(LAB, root);
        let living = ground.owned();
        let _dead = [(); 6].map(|()| ground.dead());
        let filled = (0..200)
            .take_while(|n| fs::write(living.files().join(n.to_string()), "").is_ok())
            .count();
        assert!(filled > 0 && filled < 200, "{filled} inodes were free");
        let namespace: Namespace = ground.namespace();
        namespace.create().expect_err("nothing can be made any more");

        let report = namespace.sweep_in_background().join().unwrap();
        assert_eq!((report.removed(), report.kept(), report.blocked()), (6, 1, 0), "{report}");
        assert!(report.entries.iter().all(|entry| entry.place == Place::Published), "{report}");
    });
}
