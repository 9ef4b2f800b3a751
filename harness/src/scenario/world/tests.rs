//! That what is not as it must be is found in the world, each by its word; and that a story is told in
//! the same steps each time.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::scenario::read;

const HEAD: &str = "about = \"a\"\nrules = [\"l1\"]\n";
const CAST: &str = "[server.a]\n[server.b]\n[command.tool]\nby = \"a\"\n[sweeper.later]\n\
    [precious.photos]\n";

fn story(head: &str, steps: &[&str]) -> Story {
    let steps: Vec<String> = steps.iter().map(|step| format!("[[step]]\n{step}\n")).collect();
    let text = format!("{HEAD}{head}\n{CAST}\n{}", steps.join("\n"));
    match read("a", Path::new("a.toml"), &text) {
        Ok(story) => story,
        Err(found) => panic!("{found:#?} in\n{text}"),
    }
}

#[track_caller]
fn check_with(subject: Subject, head: &str, steps: &[&str], code: &str) {
    match Tellable::of(&story(head, steps)).tell(subject) {
        Told::Failed { finding, .. } => assert_eq!(finding.code, code, "{finding:#?}"),
        Told::Held { .. } => panic!("it holds"),
    }
}

#[track_caller]
fn check(steps: &[&str], code: &str) {
    check_with(Subject::Mortmain, "", steps, code);
}

const START: &str = "start = \"a\"";
const SPAWN: &str = "spawn = \"tool\"";
const KILL: &str = "kill = \"a\"";
const SWEEP: &str = "sweep = \"later\"";

#[test]
fn an_expectation_that_does_not_hold_is_found() {
    let swept = |expect: &str| format!("{SWEEP}\nexpect = [{{ {expect} }}]");
    for (expect, code) in [
        ("claim = \"a\", is = \"gone\"", "claim"),
        ("claim = \"a\", is = \"kept\", because = \"owner-runs\"", "because"),
        ("claim = \"b\", is = \"gone\"", "no-claim"),
        ("works = \"tool\"", "not-running"),
        ("ended = \"a\"", "ended"),
        ("told = \"nothing of that\"", "told"),
        ("not-told = \"kept\"", "told"),
        ("names = 7", "names"),
        ("there = \"a/nothing\"", "there"),
        ("not-there = \"a/owner\"", "there"),
        ("lock = \"shared/x\", is = \"held\", by = \"a\"", "lock"),
        ("content = \"shared/x\", is = \"words\"", "content"),
    ] {
        check(&[START, &swept(expect)], code);
    }
    check(&[START, KILL, "plant = \"file\"\nat = \"a/commands/0.id\"", SWEEP], "L1");
}

#[test]
fn what_a_step_says_must_come_has_to_come() {
    check(&[START, "close = \"a\"\nanswer = \"released\""], "answer");
    check(&["start = \"a\"\nfails = \"NoSpace\""], "fails");
    check(&[START, SPAWN, "close = \"a\""], "fails");
    check(&[START, "close = \"a\"\nkill-before = 9000"], "no-call");
    check(
        &[
            START,
            "lock = \"shared/x\"\nby = \"a\"",
            "start = \"b\"",
            "lock = \"shared/x\"\nby = \"b\"",
        ],
        "fails",
    );
    let closed = [START, "close = \"a\"\nkill-before = \"n\""];
    check_with(Subject::Mortmain, "rounds-max = 3", &closed, "more-rounds");
}

#[test]
fn the_judges_look_without_being_asked() {
    check_with(Subject::AlwaysGone, "", &[START, SWEEP], "S1");
    check_with(Subject::AlwaysGone, "", &[START, SPAWN, KILL, SWEEP], "S1");
    check(&[START, "remove = \"photos/file\""], "S2");
    check(&[START, KILL, "forge = \"a/owner\"\npid = 0"], "L1");
    let mut escapes = story("", &[START, SPAWN]);
    let Some(crate::scenario::story::Actor::Command(tool)) = escapes.actors.get_mut("tool") else {
        panic!("it is a command");
    };
    tool.escapes = Some("it does not".into());
    match Tellable::of(&escapes).tell(Subject::Mortmain) {
        Told::Failed { finding, .. } => assert_eq!(finding.code, "escape"),
        Told::Held { .. } => panic!("it holds"),
    }
}

#[test]
fn what_befalls_several_sweeps_at_once_befalls_each() {
    let at_once = "sweep = [\"later\", \"b\"]\nkill-before = 5\nexpect = [{ ended = \"b\" }]";
    let killed = story("", &[START, "start = \"b\"", KILL, at_once, SWEEP]);
    match Tellable::of(&killed).tell(Subject::Mortmain) {
        // The one that is killed is no sweep that ended; after it comes the last one of all.
        Told::Held { sweeps: 2, .. } => {}
        other => panic!("{other:?}"),
    }
    let at_once = "sweep = [\"later\", \"b\"]\nstop-before = 5";
    let goes_on = "continue = [\"later\", \"b\"]\nexpect = [{ claim = \"a\", is = \"gone\" }]";
    let stopped = story("", &[START, "start = \"b\"", KILL, at_once, goes_on, SWEEP]);
    match Tellable::of(&stopped).tell(Subject::Mortmain) {
        Told::Held { sweeps: 4, .. } => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_story_is_told_in_the_same_steps_each_time() {
    let at_once = "sweep = [\"later\", \"b\"]";
    let story = story("rounds = 20", &[START, "start = \"b\"", KILL, at_once, SWEEP]);
    let tellable = Tellable::of(&story);
    let told = [(); 2].map(|()| tellable.tell(Subject::Mortmain));
    assert_eq!(told[0], told[1]);
    let Told::Held { rounds: 20, sweeps, verdicts, .. } = &told[0] else {
        panic!("{:?}", told[0]);
    };
    assert_eq!(*sweeps, 20 * 4);
    // Who comes to what first is drawn.
    let rows = verdicts.chunk_by(|one, next| one.round == next.round);
    let rows = rows.map(|row| row.iter().map(|one| (one.sweep, &one.of, one.outcome)).collect());
    let rows: BTreeSet<Vec<_>> = rows.collect();
    assert!(rows.len() > 1, "{rows:?}");
}

/// As on the real kernel: what somebody has mounted is his to unmount.
#[test]
fn what_is_mounted_at_the_end_is_no_reason_to_leave_anything() {
    let plant = "plant = \"directory\"\nat = \"a/files/mounted\"";
    let mount = "mount = \"photos/deep\"\nat = \"a/files/mounted\"";
    let story = story("needs = [\"mount\"]", &[START, plant, mount]);
    let told = Tellable::of(&story).tell(Subject::Mortmain);
    assert!(matches!(told, Told::Held { .. }), "{told:?}");
}
