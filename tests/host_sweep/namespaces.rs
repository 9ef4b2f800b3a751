//! Owners and commands of other namespaces and other boots: what their numbers mean, and what only the
//! locks tell (l2, l3).

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use mortmain::protocol::SweepOptions;
use mortmain::sys::{Call, Host, KernelExt, Reply};
use mortmain::{Evidence, Proof};
use mortmain_harness::actor::Actor;
use mortmain_harness::forge::{INITIAL_PID_NS, Record};
use mortmain_harness::ground::{Ground, Owned, PREFIX, is_root, names_in, sentence};
use mortmain_harness::intercept::{Intercept, Moment};
use mortmain_harness::processes::{process, processes, with_descendants};
use mortmain_harness::scripts::RUNS_ON;
use mortmain_harness::wait::Watch;

use crate::support::{
    LAB, ground, hold, id, in_cell, kill, of_commands, recorded, soon, stranger, with_ended,
};

#[test]
fn an_owner_of_another_boot_or_namespace_is_judged_by_its_lease_alone() {
    in_cell(|| {
        let ground = ground();
        // A number that lives here says nothing about the one that was recorded.
        let living = stranger();
        let changes: [fn(&mut Record); 2] =
            [|record| record.process.boot[0] ^= 1, |record| record.process.pid_ns += 1];
        for change in changes {
            let claim = ground.dead();
            let link = claim.join("owner");
            Record::change(&link, change).unwrap();
            Record::change(&link, |record| record.process.pid = living.pid()).unwrap();
            let expected = format!(
                "removed: owner {} `mortmain-lab` was of another boot or namespace, and its lease \
                 is free; no command is registered",
                living.pid()
            );
            assert_eq!(sentence(&ground.sweep(), &claim), expected);
        }
    });
}

#[test]
fn an_owner_of_another_time_namespace_is_known_by_its_number_and_not_by_its_start() {
    in_cell(|| {
        let ground = ground();
        // As it recorded itself by a clock that is a day ahead.
        let ahead = |record: &mut Record| {
            record.process.time_ns += 1;
            record.process.start_ticks += 8_640_000;
        };
        let mut owned = ground.owned();
        Record::change(&owned.claim.join("owner"), ahead).unwrap();
        owned.actor.must("lose-lease", "lost 1");
        let expected = format!("kept: owner {} `mortmain-lab` runs", owned.actor.pid());
        assert_eq!(sentence(&ground.sweep(), &owned.claim), expected);
        owned.actor.kill();
        let expected = format!(
            "removed: owner {} `mortmain-lab` has ended; no command is registered",
            owned.actor.pid()
        );
        assert_eq!(sentence(&ground.sweep(), &owned.claim), expected);
    });
}

#[test]
fn an_owner_whose_clock_was_set_ahead_lives_to_a_sweep_with_another_clock() {
    in_cell(|| {
        if !is_root("no namespace can be made") {
            return;
        }
        let mut command = Command::new("unshare");
        command.args(["--time", "--boottime", "100000", "--fork", "--kill-child", LAB, "actor"]);
        let ground = ground();
        let mut owned = ground.owned_by(Actor::start_by(command));
        let recorded = Record::read(&owned.claim.join("owner")).unwrap().process;
        let seen = process(recorded.pid).unwrap().expect("it lives").start_ticks;
        assert!(recorded.start_ticks > seen, "its clock is ahead: {recorded:?} and {seen}");
        owned.actor.must("lose-lease", "lost 1");
        let expected = format!("kept: owner {} `mortmain-lab` runs", recorded.pid);
        assert_eq!(sentence(&ground.sweep(), &owned.claim), expected);
        kill_with_all_below(&mut owned);
        assert_eq!(ground.sweep().removed(), 1);
    });
}

/// What starts an actor in a pid namespace of its own, with a `/proc` of its own or without; it is
/// not the first process there unless asked to be.
fn elsewhere(proc: bool, first: bool) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child"]);
    if proc {
        command.arg("--mount-proc");
    }
    match first {
        true => command.args([LAB, "actor"]),
        // The shell stays the first, as there is more to do afterwards.
        false => command.args(["sh", "-c", &format!("{LAB} actor; exit")]),
    };
    command
}

/// An owner in a pid namespace of its own lives by its lease, and is reclaimed by it.
#[track_caller]
fn check_elsewhere(first: bool) {
    if !is_root("no namespace can be made") {
        return;
    }
    let ground = ground();
    let mut owned = ground.owned_by(Actor::start_by(elsewhere(true, first)));
    let owner = recorded(&owned.claim);
    assert_eq!(owner == 1, first, "{owner}");
    assert_eq!(sentence(&ground.sweep(), &owned.claim), "kept: its lease is held");
    kill_with_all_below(&mut owned);
    let expected = format!(
        "removed: owner {owner} `mortmain-lab` was of another boot or namespace, and its lease is \
         free; no command is registered"
    );
    assert_eq!(sentence(&ground.sweep(), &owned.claim), expected);
}

#[test]
fn an_owner_in_another_pid_namespace_lives_by_its_lease_and_is_reclaimed_without_it() {
    in_cell(|| check_elsewhere(false));
}

#[test]
fn an_owner_that_was_the_first_process_of_a_container_is_reclaimed_after_it() {
    in_cell(|| check_elsewhere(true));
}

/// Kills the one who made a namespace, and waits for the end of everybody in it.
fn kill_with_all_below(owned: &mut Owned) {
    let all = processes().unwrap();
    let below = with_descendants(&all, [owned.actor.pid()].into());
    let below: Vec<Watch> = below.iter().map(|pid| hold(&pid.to_string())).collect();
    owned.actor.kill();
    below.iter().for_each(|process| process.gone(soon()).unwrap());
}

#[test]
fn two_owners_with_one_number_in_two_namespaces_do_not_take_each_others_claims() {
    in_cell(|| {
        if !is_root("no namespace can be made") {
            return;
        }
        let ground = ground();
        let [mut one, mut other] =
            [(); 2].map(|()| ground.owned_by(Actor::start_by(elsewhere(true, false))));
        assert_eq!(recorded(&one.claim), recorded(&other.claim));
        for owned in [&mut one, &mut other] {
            let swept = owned.actor.sweep(PREFIX, ground.root());
            assert_eq!((swept.removed, swept.kept), (0, 2), "{:?}", swept.report);
        }
        kill_with_all_below(&mut one);
        assert_eq!(ground.sweep().removed(), 1);
        let swept = other.actor.sweep(PREFIX, ground.root());
        assert_eq!((swept.removed, swept.kept), (0, 1), "{:?}", swept.report);
    });
}

#[test]
fn with_the_proc_of_an_outer_namespace_a_living_owner_is_kept() {
    in_cell(|| {
        if !is_root("no namespace can be made") {
            return;
        }
        // What `/proc` shows under the owner's number is a process of this cell, which is told
        // apart by its start, once the clock has ticked since.
        let (ground, mut owned) = loop {
            let ground = ground();
            let owned = ground.owned_by(Actor::start_by(elsewhere(false, false)));
            if !same_start(&owned.claim) {
                break (ground, owned);
            }
        };
        let owner = recorded(&owned.claim);
        owned.actor.must("lose-lease", "lost 1");
        let report = sweep_inside(&owned, &ground);
        let expected = format!(
            "kept: whether owner {owner} `mortmain-lab` runs could not be found out: /proc is of \
             another namespace, or hides processes"
        );
        assert!(report.iter().any(|line| line.ends_with(&expected)), "{report:?}");
        assert!(owned.files().is_dir());
    });
}

/// Whether what `/proc` shows here under the number of an owner elsewhere began in the same tick.
fn same_start(claim: &Path) -> bool {
    let owner = Record::read(&claim.join("owner")).unwrap().process;
    let shown = process(owner.pid).unwrap().expect("a process of this cell has that number");
    shown.start_ticks == owner.start_ticks
}

/// A sweep by another process of the owner's pid namespace, with the `/proc` that the owner has.
fn sweep_inside(owned: &Owned, ground: &Ground) -> Vec<String> {
    // The owner's parent is the shell that is the first there, below the process that was started.
    let all = processes().unwrap();
    let first = all.iter().find(|info| info.ppid == owned.actor.pid()).expect("it has a child");
    let mut command = Command::new("nsenter");
    command.args(["--target", &first.pid.to_string(), "--pid", LAB, "actor"]);
    let swept = Actor::start_by(command).sweep(PREFIX, ground.root());
    assert_eq!((swept.removed, swept.kept), (0, 1), "{:?}", swept.report);
    swept.report
}

/// A claim made in a pid namespace of its own, where a command was started.
fn with_command_elsewhere(ground: &Ground, script: &str) -> Owned {
    let mut command = Command::new("unshare");
    // The shell is the first there: when it ends everybody does, so it outlives the actor.
    let inside = format!("{LAB} actor; read never");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", &inside]);
    let mut owned = ground.owned_by(Actor::start_by(command));
    // Its pid is one of the other namespace.
    owned.actor.must(&format!("spawn {script}"), "spawned");
    owned.actor.said("the script's line");
    owned
}

#[test]
fn a_command_of_another_pid_namespace_keeps_by_its_lock_and_then_because_it_cannot_be_told() {
    in_cell(|| {
        if !is_root("no namespace can be made") {
            return;
        }
        let ground = ground();
        let mut owned = with_command_elsewhere(&ground, RUNS_ON);
        let id = Record::read(&id(&owned.claim)).unwrap();
        let inside = id.process.pid;
        let all = processes().unwrap();
        let below = with_descendants(&all, [owned.actor.pid()].into());
        let below: Vec<Watch> = below.iter().map(|pid| hold(&pid.to_string())).collect();
        let actor = all.iter().find(|info| info.comm == "mortmain-lab" && info.ppid != 1);
        let actor = actor.filter(|info| info.pid != owned.actor.pid()).expect("it lives");
        kill(&hold(&actor.pid.to_string()));
        let keeps = sentence(&ground.sweep(), &owned.claim);
        let expected = format!("kept: the lock of command 0 is held; it was started as {inside}");
        assert_eq!(keeps, expected);
        owned.actor.kill();
        below.iter().for_each(|process| process.gone(soon()).unwrap());
        let report = ground.sweep();
        let expected = format!(
            "kept: command 0 was started as {inside} in another pid namespace, where we cannot look"
        );
        assert_eq!(sentence(&report, &owned.claim), expected);
        assert_eq!(names_in(&owned.claim), ["commands", "files", "owner"]);
    });
}

#[test]
fn a_command_of_another_boot_has_ended_only_where_no_container_could_be_meant() {
    in_cell(|| {
        let ground = ground();
        let owned = with_ended(&ground, 1);
        let rebooted = |record: &mut Record| record.process.boot[0] ^= 1;
        Record::change(&id(&owned.claim), rebooted).unwrap();
        // This cell is a namespace of its own, as a container is.
        let report = ground.sweep();
        let found = of_commands(&report, &owned.claim);
        assert_eq!(found.proof, Proof::CannotTell, "{report}");
        assert!(matches!(found.evidence, Evidence::CommandElsewhere { entry: 0, .. }), "{report}");

        // As it is outside of any.
        Record::change(&id(&owned.claim), |record| record.process.pid_ns = INITIAL_PID_NS).unwrap();
        let report = ground.sweep();
        assert_eq!(of_commands(&report, &owned.claim).proof, Proof::CannotTell, "{report}");
        let initial = |call: &Call, moment| {
            let asked = matches!((call, moment), (Call::Identity, Moment::Before));
            asked.then(|| {
                let mut me = Host.identity()?;
                me.home.pid_ns = INITIAL_PID_NS;
                Ok(Reply::Identity(me))
            })
        };
        let outside = Intercept::new(Host, Rc::new(RefCell::new(initial)));
        let report = ground.over(&outside).sweep(&SweepOptions::default());
        let sentence = sentence(&report, &owned.claim);
        assert!(sentence.ends_with("its command has ended"), "{sentence}");
    });
}
