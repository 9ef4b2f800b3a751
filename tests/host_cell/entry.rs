//! How a test enters its cell, and that one which did not run there never passes.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use mortmain_harness::cell::{self, Entry, Reaping};
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::wait::Watch;

use crate::support::{Inhabited, LAB, WITH_ORPHAN, own_pid, sh, soon, wait_for_all};

/// Asks [`a_test_runs_in_a_cell_of_its_own`] not to end.
const HOLD: &str = "MORTMAIN_TEST_HOLD";
/// Asks [`outside_a_cell_there_is_no_scratch_directory`] for one.
const ASK: &str = "MORTMAIN_TEST_ASK";

/// This test binary for one test, as if it were started outside any cell.
fn this_binary(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]);
    command.env_remove(cell::CELL).env_remove(cell::REQUIRED);
    command
}

#[test]
fn a_test_runs_in_a_cell_of_its_own() {
    cell::enter(LAB, || {
        let init = std::fs::read_to_string("/proc/1/comm").unwrap();
        assert_eq!(init, "mortmain-init\n");
        assert_eq!(own_pid(), 2, "the test is the first and only program of its cell");
        if std::env::var_os(HOLD).is_some() {
            let mut orphaned = ChildGuard::spawn_with_stdin(sh(WITH_ORPHAN)).unwrap();
            for _ in 0..2 {
                println!("{}", orphaned.lines().next_line(soon(), "a sign of life").unwrap());
            }
            // Its input never ends; the test's cell must end first, or this fails.
            orphaned.wait(soon()).unwrap();
        }
    });
}

#[test]
fn when_its_runner_is_killed_a_test_ends_with_its_cell() {
    cell::enter(LAB, || {
        // The shell is the runner; it stays, as there is more to do after the test.
        let mut runner = sh("\"$@\"; exit");
        let test = this_binary("entry::a_test_runs_in_a_cell_of_its_own");
        runner.arg("sh").arg(test.get_program()).args(test.get_args());
        runner.env_remove(cell::CELL).env(HOLD, "1");
        let mut world = Inhabited::start(runner);
        world.outside.kill_hard().unwrap();
        wait_for_all(&world.inside);
        // The test, its supervisor and whoever else held the runner's output.
        world.outside.lines().expect_eof(soon(), "the end of the test").unwrap();
    });
}

/// A kind of cell that no test runner is in, so that the entry makes one in any case.
fn other_cell() -> Entry {
    Entry::new(LAB).reaping(Reaping::Never)
}

/// The message with which an entry fails; `None` when no cell can be made here at all. Inside the
/// cell the failure goes on, as it does in any other test.
#[track_caller]
fn failure(entry: Entry, body: impl FnOnce()) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| entry.run(body))) {
        Err(panic) if std::env::var(cell::REAPING).is_ok_and(|word| word == "never") => {
            resume_unwind(panic)
        }
        Err(panic) => Some(message(panic.as_ref())),
        Ok(()) => {
            assert!(cell::probe(Path::new(LAB)).is_err(), "the entry should have failed");
            None
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into())).expect("a text")
}

#[test]
fn a_body_that_fails_fails_the_test() {
    let body = || panic!("this failure is a part of the test");
    let Some(said) = failure(other_cell(), body) else {
        return;
    };
    let expected = "`entry::a_body_that_fails_fails_the_test` failed in its cell \
                    (exit status: 101); what it said is above";
    assert_eq!(said, expected);
}

#[test]
#[expect(clippy::exit, reason = "it is what the test is about")]
fn a_body_that_exits_early_fails_the_test() {
    let Some(said) = failure(other_cell(), || std::process::exit(0)) else {
        return;
    };
    let expected = "`entry::a_body_that_exits_early_fails_the_test` failed in its cell \
                    (exit status: 0); what it said is above";
    assert_eq!(said, expected);
}

#[test]
fn a_name_that_no_test_has_fails() {
    // libtest itself is content when no test of that name is there to fail.
    let entry = other_cell().test("entry::no_such_test");
    let Some(said) = failure(entry, || unreachable!("no test of that name calls this")) else {
        return;
    };
    let expected =
        "`entry::no_such_test` never ran in its cell: is that the whole name of the test?";
    assert_eq!(said, expected);
}

#[test]
fn a_body_that_does_not_end_fails_at_the_deadline_and_is_ended() {
    let entry = other_cell().deadline(Duration::from_millis(500));
    let body = || {
        let mut idle = ChildGuard::spawn(sh("exec sleep 600")).unwrap();
        idle.wait(soon()).unwrap();
    };
    let Some(said) = failure(entry, body) else {
        return;
    };
    let name = "entry::a_body_that_does_not_end_fails_at_the_deadline_and_is_ended";
    let (before, after) = said.split_once(" (pid ").expect("it names the supervisor");
    assert_eq!(
        before,
        format!(
            "the cell of `{name}` does not end: waited up to 500ms for the end of `{name}` in its \
             cell from `{LAB}`"
        )
    );
    let (pid, after) = after.split_once("), ").expect("it names the supervisor");
    assert!(after.starts_with("but the deadline passed while it runs; it said"), "{said}");
    assert!(after.contains("\nin it live: "), "{said}");
    assert!(after.contains(" `mortmain-init` in state "), "{said}");
    assert!(Watch::open(pid.parse().unwrap()).unwrap().is_none(), "the supervisor was reaped");
}

/// Runs the command with its errors among its output, and returns that and its exit code.
fn output_of(command: &Command) -> (String, Option<i32>) {
    let mut shell = sh("exec \"$@\" 2>&1");
    shell.arg("sh").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let mut child = ChildGuard::spawn(shell).unwrap();
    let lines = child.lines().expect_eof(soon(), "the end").unwrap();
    (lines.join("\n"), child.wait(soon()).unwrap().code())
}

#[test]
fn without_a_cell_a_test_is_skipped_with_the_reason_or_fails_if_it_must_not() {
    cell::enter(LAB, || {
        let test = this_binary("entry::a_test_runs_in_a_cell_of_its_own");
        let forbid = "echo 0 > /proc/sys/user/max_pid_namespaces && exec \"$@\"";
        let mut without = Command::new("unshare");
        without.args(["--user", "--map-root-user", "sh", "-c", forbid, "sh"]);
        without.arg(test.get_program()).args(test.get_args());
        without.env_remove(cell::CELL).env_remove(cell::REQUIRED);
        let reason = "no cell can be made here: the kernel refuses new namespaces: \
                      No space left on device (os error 28) (sysctl user.max_pid_namespaces is 0)";

        let (said, code) = output_of(&without);
        let skipped = format!("skipped: entry::a_test_runs_in_a_cell_of_its_own: {reason}");
        assert!(said.lines().any(|line| line == skipped), "{said}");
        assert_eq!(code, Some(0), "{said}");

        let (said, code) = output_of(without.env(cell::REQUIRED, "1"));
        assert!(said.lines().any(|line| line == reason), "{said}");
        assert_eq!(code, Some(101), "{said}");
    });
}

#[test]
fn outside_a_cell_there_is_no_scratch_directory() {
    if std::env::var_os(ASK).is_some() {
        println!("got {}", scratch_root().display());
        return;
    }
    cell::enter(LAB, || {
        let test = this_binary("entry::outside_a_cell_there_is_no_scratch_directory");
        // In a pid namespace of another make, whatever the environment says.
        let mut outside = Command::new("unshare");
        outside.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]);
        outside.arg(test.get_program()).args(test.get_args()).env(ASK, "1");
        for forged in [false, true] {
            match forged {
                true => outside.env(cell::CELL, "1"),
                false => outside.env_remove(cell::CELL),
            };
            let (said, code) = output_of(&outside);
            assert!(said.contains("there is no scratch directory outside a cell"), "{said}");
            assert_eq!(code, Some(101), "{said}");
        }
    });
}
