//! The simulated kernel beside the real one: the same programs, the same answers.

#[path = "lab/mod.rs"]
mod lab;

use std::ops::ControlFlow;

use mortmain::sys::{Call, Errno, Reply};
use mortmain_harness::conformance::{
    Class, Difference, InWorld, OnHost, Program, Tally, Trial, draw, every, shrink,
};

use self::lab::{LAB, lab, without_cells};

/// What programs are drawn from.
const SEED: u64 = 7;

/// Compares the world, as it is or with a lie in it, with the kernel; a difference is shrunk. `None`
/// where there is no cell.
#[track_caller]
fn compare(
    mut world: InWorld,
    programs: impl FnOnce(&mut dyn FnMut(Program) -> ControlFlow<()>),
) -> Option<(Tally, Option<Difference>)> {
    if without_cells() {
        return None;
    }
    let mut host = OnHost::start(LAB.as_ref()).expect("a player starts");
    let mut trial = Trial::new(&mut world, &mut host, Tally::default());
    programs(&mut |program| trial.add(program));
    let (tally, found) = trial.end().expect("both sides run all programs");
    let found = found.map(|found| shrink(found, &mut world, &mut host).expect("it is run again"));
    Some((tally, found))
}

/// All programs of up to so many steps that change something; these outcomes have to come.
#[track_caller]
fn check_every(class: Class, length: usize, reached: &[(&str, &str)]) {
    let compared = compare(InWorld::default(), |each| {
        // What ends it early is a difference.
        let _over = every(class, length, &mut |program| each(program));
    });
    let Some((tally, found)) = compared else { return };
    assert!(found.is_none(), "{}", found.expect("a difference"));
    for (operation, outcome) in reached {
        assert!(tally.count(operation, outcome) > 0, "{operation} was never {outcome}: {tally:?}");
    }
}

/// So many programs that are drawn; these outcomes have to come.
#[track_caller]
fn check_drawn(class: Class, programs: u64, reached: &[(&str, &str)]) {
    let compared = compare(InWorld::default(), |each| {
        // What ends it early is a difference.
        let _over = (0..programs).try_for_each(|nth| each(draw(class, SEED, nth, 24)));
    });
    let Some((tally, found)) = compared else { return };
    assert!(found.is_none(), "seed {SEED}: {}", found.expect("a difference"));
    assert_eq!(tally.programs, programs);
    for operation in class.many() {
        let word = operation.word();
        assert!(tally.count(word, "done") > 0, "{word} was never done: {tally:?}");
    }
    for (operation, outcome) in reached {
        assert!(tally.count(operation, outcome) > 0, "{operation} was never {outcome}: {tally:?}");
    }
}

#[test]
fn every_short_program_of_locks_goes_as_on_the_kernel() {
    check_every(Class::Locks, 3, &[("lock", "EAGAIN"), ("lock", "done"), ("spawn", "EEXIST")]);
}

#[test]
fn every_short_program_of_names_goes_as_on_the_kernel() {
    check_every(
        Class::Names,
        4,
        &[
            ("rename", "done"),
            ("rename", "ENOTEMPTY"),
            ("rename", "EISDIR"),
            ("rmdir", "ENOTEMPTY"),
            ("rmdir", "ENOTDIR"),
            ("unlink", "EISDIR"),
            ("open-file", "ELOOP"),
            ("open-root", "ELOOP"),
            ("mkdir", "ENOENT"),
            ("read-dir", "ENOENT"),
            ("write", "EBADF"),
        ],
    );
}

#[test]
fn every_short_program_of_specials_goes_as_on_the_kernel() {
    check_every(
        Class::Specials,
        3,
        &[
            ("open-plain", "waits"),
            ("open-plain", "EACCES"),
            ("open-plain", "done"),
            ("open-file", "EINVAL"),
            ("open-dir", "ENOTDIR"),
            ("rename", "EISDIR"),
            ("readlink", "EINVAL"),
        ],
    );
}

/// Whether mounts can be made here.
fn without_mounts() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: mounts are root's to make");
    }
    !is_root
}

#[test]
fn every_short_program_of_mounts_goes_as_on_the_kernel() {
    if without_mounts() {
        return;
    }
    check_every(
        Class::Mounts,
        3,
        &[
            ("mount", "done"),
            ("mount", "ENOTDIR"),
            ("open-dir", "EXDEV"),
            ("stat-at", "EXDEV"),
            ("create-file", "EXDEV"),
            ("rmdir", "EBUSY"),
            ("rename", "EBUSY"),
            ("unlink", "EBUSY"),
            ("open-plain", "done"),
        ],
    );
}

#[test]
fn drawn_programs_of_mounts_go_as_on_the_kernel() {
    if without_mounts() {
        return;
    }
    let reached = [("mount", "done"), ("open-dir", "EXDEV"), ("rename", "EBUSY")];
    check_drawn(Class::Mounts, 1000, &reached);
}

#[test]
fn every_short_program_of_processes_goes_as_on_the_kernel() {
    check_every(
        Class::Processes,
        3,
        &[
            ("wait", "done"),
            ("wait", "ECHILD"),
            ("kill-group", "done"),
            ("kill-group", "ESRCH"),
            ("kill-group", "EINVAL"),
            ("group-exists", "ESRCH"),
            ("process", "ENOENT"),
            ("pidfs", "ESRCH"),
        ],
    );
}

#[test]
fn drawn_programs_of_locks_go_as_on_the_kernel() {
    check_drawn(Class::Locks, 500, &[("lock", "EAGAIN"), ("spawn", "EEXIST")]);
}

#[test]
fn drawn_programs_of_names_go_as_on_the_kernel() {
    let reached =
        [("rename", "EISDIR"), ("rename", "ENOTDIR"), ("mkdir", "ENOENT"), ("open-root", "ELOOP")];
    check_drawn(Class::Names, 1000, &reached);
}

#[test]
fn drawn_programs_of_specials_go_as_on_the_kernel() {
    let reached = [("open-plain", "waits"), ("open-file", "EINVAL"), ("unseal", "ENOTDIR")];
    check_drawn(Class::Specials, 1000, &reached);
}

#[test]
fn drawn_programs_of_processes_go_as_on_the_kernel() {
    check_drawn(Class::Processes, 500, &[("wait", "done"), ("kill-group", "ESRCH")]);
}

#[test]
fn drawn_programs_of_everything_go_as_on_the_kernel() {
    check_drawn(Class::Mixed, 1000, &[("lock", "EAGAIN"), ("rename", "EISDIR"), ("wait", "done")]);
}

/// Drawn programs of a class, in a world with a lie: it has to be found, and be shrunk to these steps.
#[track_caller]
fn check_lie(world: InWorld, class: Class, steps: &[&str]) {
    let compared = compare(world, |each| {
        // What ends it early is the difference that is looked for.
        let _over = (0..500).try_for_each(|nth| each(draw(class, SEED, nth, 24)));
    });
    let Some((_, found)) = compared else { return };
    let found = found.expect("the lie is found");
    let shown: Vec<String> = found.program.steps.iter().map(ToString::to_string).collect();
    assert_eq!(shown, steps, "{found}");
}

#[test]
fn a_wrong_error_is_found_and_shrunk_to_the_steps_that_show_it() {
    let world = InWorld::that_lies(|call, answer| match call {
        Call::Unlink { .. } if answer == Err(Errno::EISDIR) => Err(Errno::EPERM),
        _ => answer,
    });
    check_lie(world, Class::Names, &["p0 mkdir 3/a", "p0 unlink 3/a"]);
}

#[test]
fn a_lie_about_locks_is_found_and_shrunk_to_one_process() {
    let world = InWorld::that_lies(|call, answer| match call {
        Call::Lock { .. } if answer == Err(Errno::EAGAIN) => Err(Errno::EINTR),
        _ => answer,
    });
    // That the lock is held is asked at the end.
    check_lie(world, Class::Locks, &["p0 lock 3"]);
}

#[test]
fn a_lie_about_a_child_is_found_and_shrunk_to_two_processes() {
    let world = InWorld::that_lies(|call, answer| match call {
        Call::Wait { reap: true, .. } if answer == Ok(Reply::Ending(None)) => Err(Errno::ECHILD),
        _ => answer,
    });
    check_lie(world, Class::Processes, &["p0 fork", "p0 wait p1 at most 0 ms and reap"]);
}

/// Runs the lab's command; answers its exit code and what it printed.
#[track_caller]
fn conformance(args: &[&str]) -> (Option<i32>, Vec<String>) {
    lab(&[&["conformance"], args].concat())
}

#[test]
fn the_command_prints_a_row_an_operation_and_a_verdict() {
    if without_cells() {
        return;
    }
    let args = ["--class", "names", "--every", "1", "--programs", "200", "--seed", "3"];
    let (code, lines) = conformance(&args);
    assert_eq!(code, Some(0), "{lines:#?}");
    assert!(lines[0].split_whitespace().eq(["operation", "done", "otherwise"]), "{lines:#?}");
    let rmdir = lines.iter().find(|line| line.trim_start().starts_with("rmdir"));
    assert!(rmdir.is_some_and(|line| line.contains("ENOENT")), "{lines:#?}");
    let verdict = lines.last().expect("a verdict");
    assert!(verdict.ends_with("seed 3: the world does what the kernel does"), "{verdict}");
}

#[test]
fn what_was_never_done_is_told_and_is_no_pass() {
    if without_cells() {
        return;
    }
    let args = ["--class", "locks", "--every", "0", "--programs", "1", "--length", "1"];
    let (code, lines) = conformance(&args);
    assert_eq!(code, Some(3), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("never done: ")), "{lines:#?}");

    let (code, lines) = conformance(&[&args[..], &["--json"]].concat());
    assert_eq!(code, Some(3), "{lines:#?}");
    let objects: Vec<serde_json::Value> =
        lines.iter().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert!(objects.iter().all(|object| object["schema"] == 1), "{lines:#?}");
    let last = objects.last().expect("a verdict");
    assert_eq!((&last["type"], &last["exit"]), (&"conformance".into(), &3.into()));
    assert!(last["never"].as_array().is_some_and(|never| never.len() > 1), "{last}");
}

#[test]
fn no_program_is_no_pass() {
    if without_cells() {
        return;
    }
    let (code, lines) = conformance(&["--every", "0", "--programs", "0"]);
    assert_eq!(
        (code, lines.last().map(String::as_str)),
        (Some(4), Some("no program was asked for"))
    );
}
