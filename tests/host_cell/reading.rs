//! What a failing read of a child's output says.

use mortmain_harness::cell;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::reader::ReadErrorKind;

use crate::support::{LAB, briefly, sh, soon};

/// Runs the script, waits briefly for a line that does not come, and returns the failure with the
/// pid left out.
fn failure(script: &str) -> (String, ReadErrorKind, Option<i32>) {
    let mut child = ChildGuard::spawn_with_stdin(sh(script)).unwrap();
    let error =
        child.lines().expect_line(briefly(), "the banner", |line| line == "banner").unwrap_err();
    let text = error.to_string().replace(&format!("pid {}", child.pid()), "pid N");
    let code = error.status().and_then(|status| status.code());
    (text, error.into_kind(), code)
}

#[test]
fn of_a_silent_child() {
    cell::enter(LAB, || {
        let (text, kind, _) = failure("read line");
        assert!(matches!(kind, ReadErrorKind::Deadline));
        let expected = "waited up to 100ms for the banner from `sh` (pid N), but the deadline \
                        passed while it runs; it said nothing";
        assert_eq!(text, expected);
    });
}

#[test]
fn of_a_child_that_says_other_things() {
    cell::enter(LAB, || {
        let (text, _, _) = failure("echo bonnet; printf bann; read line");
        let expected = "waited up to 100ms for the banner from `sh` (pid N), but the deadline \
                        passed while it runs; it said:\n  | bonnet\n  | bann (not read)";
        assert_eq!(text, expected);
    });
}

#[test]
fn of_a_child_that_ended() {
    cell::enter(LAB, || {
        let (text, kind, code) = failure("echo bonnet; exit 3");
        assert!(matches!(kind, ReadErrorKind::Ended));
        assert_eq!(code, Some(3));
        let expected = "waited up to 100ms for the banner from `sh` (pid N), but it ended (exit \
                        status: 3); it said:\n  | bonnet";
        assert_eq!(text, expected);

        let (text, _, code) = failure("kill -9 $$");
        assert_eq!(code, None);
        let expected = "waited up to 100ms for the banner from `sh` (pid N), but it ended (signal: \
                        9 (SIGKILL)); it said nothing";
        assert_eq!(text, expected);
    });
}

#[test]
fn of_a_child_that_closed_its_output() {
    cell::enter(LAB, || {
        let (text, kind, _) = failure("exec 1>&-; read line");
        assert!(matches!(kind, ReadErrorKind::Ended));
        let expected = "waited up to 100ms for the banner from `sh` (pid N), but its output ended, \
                        though it still runs; it said nothing";
        assert_eq!(text, expected);
    });
}

#[test]
fn of_a_child_that_ended_while_another_holds_its_output() {
    cell::enter(LAB, || {
        let (text, kind, code) = failure("sleep 600 & exit 4");
        assert!(matches!(kind, ReadErrorKind::Deadline));
        assert_eq!(code, Some(4));
        let expected = "waited up to 100ms for the banner from `sh` (pid N), but it ended (exit \
                        status: 4), and others keep its output open; it said nothing";
        assert_eq!(text, expected);
    });
}

#[test]
fn what_a_child_said_is_read_after_it_was_killed() {
    cell::enter(LAB, || {
        let mut child = ChildGuard::spawn_with_stdin(sh("echo one; echo two; read line")).unwrap();
        assert_eq!(child.lines().next_line(soon(), "one").unwrap(), "one");
        child.kill_hard().unwrap();
        let rest = child.lines().expect_eof(soon(), "the end").unwrap();
        assert!(rest.is_empty() || rest == ["two"], "{rest:?}");
        let error = child.lines().next_line(soon(), "more").unwrap_err();
        assert!(error.to_string().contains("but it ended (signal: 9 (SIGKILL))"), "{error}");
    });
}
