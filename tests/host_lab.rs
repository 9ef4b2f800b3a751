//! The lab's command as its users see it: what it prints, and how it ends.

use std::process::Command;
use std::time::Duration;

use mortmain_harness::cell;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::wait::Deadline;

const LAB: &str = env!("CARGO_BIN_EXE_mortmain-lab");

/// Runs the lab; answers its exit code and what it printed. A run makes cells of its own.
#[track_caller]
fn lab(args: &[&str]) -> (Option<i32>, Vec<String>) {
    let mut command = Command::new(LAB);
    command.args(args).env("NO_COLOR", "1").env_remove("MORTMAIN_JOBS");
    let mut child = ChildGuard::spawn(command).expect("the lab starts");
    let deadline = Deadline::after(Duration::from_secs(100));
    let lines = child.lines().expect_eof(deadline, "the end of the lab's output").expect("it ends");
    let status = child.wait(deadline).expect("it ends");
    (status.code(), lines)
}

/// Whether series can run here; a test that cannot says why.
fn without_cells() -> bool {
    let Err(missing) = cell::probe(LAB.as_ref()) else { return false };
    assert!(std::env::var_os(cell::REQUIRED).is_none(), "{missing}");
    eprintln!("skipped: {missing}");
    true
}

#[test]
fn a_series_prints_a_row_an_operation_and_a_verdict() {
    if without_cells() {
        return;
    }
    let (code, lines) = lab(&["faults", "--operation", "spawn-child", "--fault", "kill-after"]);
    assert_eq!(code, Some(0), "{lines:#?}");
    let cells: Vec<Vec<&str>> =
        lines.iter().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(cells[0][0], "operation");
    assert_eq!(cells[1][..4], ["spawn-child", "4", "4", "0"], "{lines:#?}");
    let verdict = lines.last().map(String::as_str);
    assert_eq!(
        verdict,
        Some("5 cases at 4 calls of 1 operation: harmed 0, leaked 0. What was asked holds.")
    );
}

#[test]
fn one_case_can_be_run_again_by_its_name() {
    if without_cells() {
        return;
    }
    let args = ["faults", "--operation", "create", "--fault", "kill-before", "--at", "3"];
    let (code, lines) = lab(&args);
    assert_eq!(code, Some(0), "{lines:#?}");
    assert!(lines.last().is_some_and(|line| line.starts_with("1 case at")), "{lines:#?}");
}

#[test]
fn json_is_one_object_a_line_with_its_schema() {
    if without_cells() {
        return;
    }
    let args = ["faults", "--operation", "create", "--fault", "kill-before", "--json"];
    let (code, lines) = lab(&args);
    assert_eq!(code, Some(0), "{lines:#?}");
    let objects: Vec<serde_json::Value> =
        lines.iter().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert!(objects.iter().all(|object| object["schema"] == 1), "{lines:#?}");
    let types: Vec<_> = objects.iter().map(|object| object["type"].as_str()).collect();
    assert_eq!(types, [Some("operation"), Some("verdict")]);
    assert_eq!(objects[0]["harmed"], 0);
    assert_eq!(objects[1]["exit"], 0);
}

#[test]
fn what_matches_nothing_ends_with_4() {
    if without_cells() {
        return;
    }
    let args = ["faults", "--operation", "create", "--fault", "EIO", "--at", "999"];
    let (code, lines) = lab(&args);
    assert_eq!(
        (code, lines.last().map(String::as_str)),
        (Some(4), Some("no case matches what was asked for"))
    );
}

#[test]
fn wrong_usage_ends_with_2() {
    for args in [
        &["faults", "--operation", "crate"][..],
        &["faults", "--fault", "EWHAT"],
        &["faults", "--at", "0"],
        &["explore", "--without", "l9"],
        &["no-such-command"],
    ] {
        let (code, lines) = lab(args);
        assert_eq!((code, lines.len()), (Some(2), 0), "{args:?}");
    }
}

#[test]
fn a_rule_that_is_switched_off_is_a_finding_with_its_timeline() {
    for (rule, property) in [("l3", "S1: "), ("p1", "S1: "), ("p2", "S1: "), ("r2", "L1: ")] {
        let (code, lines) = lab(&["explore", "--without", rule]);
        assert_eq!(code, Some(1), "{rule}: {lines:#?}");
        assert!(lines[0].starts_with(property), "{rule}: {lines:#?}");
        assert!(lines.iter().any(|line| line.contains("X")), "{rule}: nobody is killed");
        // The same schedule, the same bytes.
        assert_eq!(lab(&["explore", "--without", rule]), (code, lines));
    }
}

#[test]
fn a_search_that_meets_its_bound_has_not_decided() {
    let (code, lines) = lab(&["explore", "--states", "100"]);
    assert_eq!(code, Some(3), "{lines:#?}");
    assert!(lines.last().is_some_and(|line| line.contains("not decided at 100 states")));
}
