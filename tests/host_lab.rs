//! The lab's command as its users see it: what it prints, and how it ends.

#[path = "lab/mod.rs"]
mod lab;

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use mortmain::Sandbox;
use mortmain_harness::cell;
use mortmain_harness::ground::{is_root, names_in};
use mortmain_harness::scratch::scratch_root;

use self::lab::{LAB, lab, run, without_cells};

/// The uid and gid that are nobody's on every system.
const NOBODY: u32 = 65534;

/// Runs the lab; answers its exit code and what it says on standard error.
#[track_caller]
fn lab_errors(args: &[&str]) -> (Option<i32>, Vec<String>) {
    let errors = "exec \"$0\" \"$@\" 2>&1 >/dev/null";
    run(Command::new("sh").args(["-c", errors, LAB]).args(args))
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
fn a_series_whose_operation_fails_undisturbed_ends_with_5() {
    if without_cells() {
        return;
    }
    let args = ["faults", "--operation", "spawn", "--fault", "kill-before"];
    // There is no program to start.
    let (code, lines) = run(Command::new(LAB).args(args).env("PATH", "/nowhere"));
    assert_eq!(code, Some(5), "{lines:#?}");
    assert!(lines.last().is_some_and(|line| line.contains("The run broke off")), "{lines:#?}");
}

#[test]
fn wrong_usage_ends_with_2() {
    for args in [
        &["faults", "--operation", "crate"][..],
        &["faults", "--fault", "EWHAT"],
        &["faults", "--at", "0"],
        &["explore", "--without", "l9"],
        &["explore", "--subject", "l9"],
        &["explore", "--subject", "pid", "--without", "l3"],
        &["explore", "--property", "S9"],
        &["compare", "l9"],
        &["explore", "--seed", "7"],
        &["explore", "--engine", "luck"],
        &["explore", "--engine", "series", "--threads", "2"],
        &["explore", "--engine", "pct", "--iteration", "1", "--iterations", "2"],
        &["explore", "--engine", "pct", "--iteration", "18446744073709551615"],
        &["explore", "--engine", "pct", "--threads", "1000000"],
        &["explore", "--list", "--engine", "pct"],
        &["no-such-command"],
    ] {
        let (code, lines) = lab(args);
        assert_eq!((code, lines.len()), (Some(2), 0), "{args:?}");
    }
}

#[test]
fn an_option_of_another_engine_is_refused() {
    for (args, expected) in [
        (
            &["--seed", "7"][..],
            "--seed is for --engine random, sticky, pct or series, and not for exhaustive",
        ),
        (
            &["--engine", "series", "--iteration", "1"],
            "--iteration is for --engine random, sticky or pct, and not for series",
        ),
        (
            &["--engine", "sticky", "--depth", "3"],
            "--depth is for --engine pct, and not for sticky",
        ),
        (
            &["--engine", "random", "--states", "9"],
            "--states is for --engine exhaustive, and not for random",
        ),
        (
            &["--engine", "series", "--failures", "1"],
            "--failures is for --engine exhaustive, random, sticky or pct, and not for series",
        ),
    ] {
        let args = [&["explore"], args].concat();
        assert_eq!(lab_errors(&args), (Some(2), vec![expected.to_owned()]), "{args:?}");
    }
}

#[test]
fn a_rule_that_is_switched_off_is_a_finding_with_its_timeline() {
    for (rule, property) in [("l3", "S1: "), ("p1", "S1: "), ("p2", "S1: "), ("r2", "L1: ")] {
        let (code, lines) = lab(&["explore", "--without", rule]);
        assert_eq!(code, Some(1), "{rule}: {lines:#?}");
        assert!(lines[0].starts_with(property), "{rule}: {lines:#?}");
        assert!(lines.iter().any(|line| line.contains("X")), "{rule}: nobody is killed");
        let verdict =
            format!("1 owner, 1 command, 1 sweep, 1 kill, without {rule}: does not hold, ");
        assert!(lines.last().is_some_and(|line| line.starts_with(&verdict)), "{lines:#?}");
        // The same schedule, the same bytes.
        assert_eq!(lab(&["explore", "--without", rule]), (code, lines));
    }
}

#[test]
fn a_finding_is_saved_and_replays_to_the_same_end_step_by_step() {
    let scratch = mortmain::sandbox!("replays").expect("it is free");
    let dir = text_of(scratch.path());
    let (code, explored) = lab(&["explore", "--without", "l3", "--save", dir]);
    assert_eq!(code, Some(1), "{explored:#?}");
    let again =
        explored.iter().find_map(|line| line.strip_prefix("to see it again: mortmain-lab "));
    let again: Vec<&str> = again.expect("it says how").split(' ').collect();
    let (code, lines) = lab(&again);
    assert_eq!(code, Some(1), "{lines:#?}");
    // The same timeline, line by line.
    let timeline = |lines: &[String]| {
        let events =
            lines.iter().filter(|line| line.starts_with("    ") || line.starts_with("   "));
        events.cloned().collect::<Vec<_>>()
    };
    assert!(timeline(&lines).len() > 40);
    assert_eq!(timeline(&explored), timeline(&lines));
    let (code, lines) = lab(&[again[0], again[1], "--step", "2"]);
    assert_eq!(
        (code, lines[0].as_str()),
        (Some(1), "before choice 2, `step 10`: mkdir 3/.p-3jrdr6ortbt5.new")
    );
    assert!(lines.contains(&"  + /r/.p-3jrdr6ortbt5.new".to_owned()), "{lines:#?}");
    let event = "    8  o |    owner 10: mkdir 3/.p-3jrdr6ortbt5.new: done";
    assert!(lines.contains(&event.to_owned()), "{lines:#?}");
    // A lock is taken: one line before it, the same with its holder after it.
    let (_, lines) = lab(&[again[0], again[1], "--step", "4"]);
    let lock = lines.iter().position(|line| line == "  - /r/.p-3jrdr6ortbt5.new");
    let lock = lock.unwrap_or_else(|| panic!("{lines:#?}"));
    assert_eq!(lines[lock + 1], "  + /r/.p-3jrdr6ortbt5.new, locked by 10");

    let file = again[1];
    let text = fs::read_to_string(file).expect("it was saved");
    let picture = scratch.path().join("a-run.svg");
    let (code, lines) = lab(&["replay", file, "--svg", text_of(&picture)]);
    assert_eq!(code, Some(1), "{lines:#?}");
    let drawn = fs::read_to_string(&picture).expect("it was drawn");
    assert!(drawn.starts_with("<svg ") && drawn.contains(">command 101</text>"), "{drawn}");
    // Why, in the caption and in the text.
    let why = "because nobody asks for the commands (l3)";
    assert!(drawn.contains(why) && lines.iter().any(|line| line.ends_with(why)), "{lines:#?}");
    let nowhere = scratch.path().join("nowhere").join("a-run.svg");
    let nowhere = text_of(&nowhere);
    let expected = format!("cannot draw it as {nowhere}: No such file or directory (os error 2)");
    assert_eq!(lab_errors(&["replay", file, "--svg", nowhere]), (Some(2), vec![expected]));
    let other = file_in(&scratch, "another-run.toml", &text.replacen("| lock 4", "| lock 5", 1));
    let (code, lines) = lab(&["replay", &other]);
    let expected = "not the run that was saved: \
        choice 4 did `lock 5` when it was saved, and does `lock 4`";
    assert_eq!((code, lines), (Some(6), vec![expected.to_owned()]));
    // It ends before the step that is asked for.
    let early =
        file_in(&scratch, "a-short-run.toml", &text.replacen("\"step 10 |", "\"step 99 |", 1));
    let last = text.matches(" |").count().to_string();
    let (code, lines) = lab(&["replay", &early, "--step", &last]);
    let nothing = format!("it does not come to choice {last}");
    assert_eq!((code, &lines[0], lines.len()), (Some(6), &nothing, 2), "{lines:#?}");
    let odd = file_in(&scratch, "no-run.toml", "version = 1\n");
    let many = text.replacen(" sweeps=1", " sweeps=4000000000", 1);
    let many = file_in(&scratch, "many-sweeps.toml", &many);
    for (odd, expected) in [
        (&odd, "`choices` has to be a list of strings"),
        (&many, "`sweeps` of the case cannot be `4000000000`: at most 4"),
    ] {
        let path = odd.as_str();
        let expected = format!("cannot replay {path}: {expected}");
        assert_eq!(lab_errors(&["replay", path]), (Some(2), vec![expected]));
    }
    let choices = text.matches(" |").count();
    let expected = format!("{file} has {choices} choices, and no choice 999");
    assert_eq!(lab_errors(&["replay", file, "--step", "999"]), (Some(2), vec![expected]));
    assert_eq!(names_in(scratch.path()).len(), 6, "nothing else is in it");
}

/// To make it anew: `cargo lab replay regressions/s1-pid-plain-idle-1-1-0-1.toml --svg docs/pid.svg`.
#[test]
fn the_picture_of_the_documentation_is_real() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let run = run.join("s1-pid-plain-idle-1-1-0-1.toml");
    let scratch = mortmain::sandbox!("picture").expect("it is free");
    let drawn = scratch.path().join("pid.svg");
    let (code, lines) = lab(&["replay", text_of(&run), "--svg", text_of(&drawn)]);
    assert_eq!(code, Some(1), "{lines:#?}");
    let drawn = fs::read_to_string(&drawn).expect("it was drawn");
    assert_eq!(drawn, include_str!("../docs/pid.svg"));
}

#[test]
fn a_finding_that_is_told_as_json_says_where_it_is_saved() {
    let scratch = mortmain::sandbox!("saved").expect("it is free");
    let dir = text_of(scratch.path());
    for engine in ["exhaustive", "pct", "series"] {
        let args = ["explore", "--subject", "marker", "--engine", engine, "--save", dir, "--json"];
        let (code, lines) = lab(&args);
        let line: serde_json::Value = serde_json::from_str(&lines[0]).expect("a line is JSON");
        assert_eq!((code, &line["exit"]), (Some(1), &1.into()), "{line}");
        let explained = line["explained"].as_str().unwrap_or_else(|| panic!("{engine}: {line}"));
        assert!(explained.contains(", because "), "{explained}");
        if engine != "exhaustive" {
            let choices = ["choices_before", "choices_after"].map(|name| line[name].as_u64());
            assert!(choices[1].is_some() && choices[1] <= choices[0], "{line}");
        }
        let saved = line["saved"].as_str().unwrap_or_else(|| panic!("{engine}: {line}"));
        assert_eq!(lab(&["replay", saved]).0, Some(1), "{saved}");
        fs::remove_file(saved).expect("it was saved");
    }
    assert_eq!(names_in(scratch.path()), [""; 0]);
}

#[test]
fn a_design_that_is_rejected_is_a_finding_that_replays() {
    let scratch = mortmain::sandbox!("rejected").expect("it is free");
    let dir = text_of(scratch.path());
    let (code, lines) = lab(&["explore", "--subject", "marker", "--property", "L1", "--save", dir]);
    assert_eq!(code, Some(1), "{lines:#?}");
    let told =
        "sweep 30 left p-568f26aaed74c935 when everybody was dead, because the marker comes ";
    let told = |line: &&String| line.starts_with(told) && line.ends_with(" (c3)");
    assert_eq!(lines.iter().filter(told).count(), 1, "{lines:#?}");
    let verdict = "marker: 1 owner, 1 command, 1 sweep, 1 kill, 1 wait of a day, L1 alone: ";
    assert!(lines.last().is_some_and(|line| line.starts_with(verdict)), "{lines:#?}");
    let again = lines.iter().find_map(|line| line.strip_prefix("to see it again: mortmain-lab "));
    let again: Vec<&str> = again.expect("it says how").split(' ').collect();
    let (code, lines) = lab(&again);
    assert_eq!(code, Some(1), "{lines:#?}");
    assert_eq!(lines.iter().filter(told).count(), 1, "{lines:#?}");
    let end = lines.last().expect("it prints a verdict");
    assert!(end.starts_with("3 choices, and the same end: L1: "), "{end}");
    assert_eq!(names_in(scratch.path()).len(), 1, "nothing else is in it");
}

#[test]
fn drawn_schedules_print_their_seed_and_one_of_them_runs_alone() {
    let scratch = mortmain::sandbox!("drawn").expect("it is free");
    let dir = text_of(scratch.path());
    let drawn = ["explore", "--subject", "pid", "--engine", "pct", "--seed", "3", "--save", dir];
    let (code, lines) = lab(&drawn);
    assert_eq!(code, Some(1), "{lines:#?}");
    let verdict = lines.last().expect("it prints a verdict");
    assert!(verdict.contains("pct of depth 3, seed 3: iteration "), "{verdict}");
    // With any number of threads the same bytes.
    assert_eq!(lab(&[&drawn[..], &["--threads", "2"]].concat()), (code, lines.clone()));
    let again = lines.iter().find_map(|line| line.strip_prefix("to see it again: mortmain-lab "));
    let again: Vec<&str> = again.expect("it says how").split(' ').collect();
    // What is saved is as short as can be, and says what it was drawn from.
    let short = |line: &&String| line.starts_with("made short: 11 choices instead of ");
    assert_eq!(lines.iter().filter(short).count(), 1, "{lines:#?}");
    let (code, lines) = lab(&again);
    assert_eq!(code, Some(1), "{lines:#?}");
    let [.., drawn, end] = &lines[..] else { panic!("{lines:#?}") };
    assert!(drawn.starts_with("it was drawn: pct of depth 3, seed 3, iteration "), "{drawn}");
    assert!(end.starts_with("11 choices, and the same end: S1: "), "{end}");
    assert_eq!(names_in(scratch.path()).len(), 1, "nothing else is in it");

    let args = ["explore", "--engine", "sticky", "--iterations", "200", "--json"];
    let (code, lines) = lab(&args);
    assert_eq!(code, Some(0), "{lines:#?}");
    let line: serde_json::Value = serde_json::from_str(&lines[0]).expect("a line is JSON");
    assert_eq!((&line["schema"], &line["type"]), (&1.into(), &"sample".into()));
    assert_eq!(
        (&line["seed"], &line["runs"], &line["found"]),
        (&1.into(), &200.into(), &serde_json::Value::Null)
    );
}

#[test]
fn a_series_of_faults_along_a_schedule_counts_what_struck() {
    let args = ["explore", "--engine", "series", "--iterations", "1", "--json"];
    let (code, lines) = lab(&args);
    assert_eq!(code, Some(0), "{lines:#?}");
    let line: serde_json::Value = serde_json::from_str(&lines[0]).expect("a line is JSON");
    assert_eq!(
        (&line["type"], &line["bases"], &line["seed"]),
        (&"series".into(), &1.into(), &1.into())
    );
    assert_eq!(line["kills"], line["positions"]);
    assert!(line["for_ever"].as_u64() > line["kills"].as_u64(), "{line}");
}

#[test]
fn a_series_that_goes_on_counts_its_findings_by_cause() {
    let scratch = mortmain::sandbox!("causes").expect("it is free");
    let dir = text_of(scratch.path());
    let args = ["explore", "--subject", "marker", "--engine", "series", "--iterations", "1"];
    let args = [&args[..], &["--all", "--save", dir]].concat();
    let (code, lines) = lab(&args);
    assert_eq!(code, Some(1), "{lines:#?}");
    let cause =
        " findings of L1, the end after `mkdir` of the owner, lacks c3, the shortest in 3 choices";
    assert!(lines[0].ends_with(cause) && lines[1].ends_with(" (c3)"), "{lines:#?}");
    let (code, lines) = lab(&[&args[..], &["--json"]].concat());
    let lines = lines.iter().map(|line| serde_json::from_str(line).expect("a line is JSON"));
    let lines: Vec<serde_json::Value> = lines.collect();
    let [cause, series] = &lines[..] else { panic!("{lines:#?}") };
    assert_eq!((code, &cause["type"], &cause["rule"]), (Some(1), &"cause".into(), &"c3".into()));
    assert!(cause["count"].as_u64() > Some(1), "{cause}");
    assert_eq!((&series["type"], &series["exit"]), (&"series".into(), &1.into()), "{series}");
    let saved = cause["saved"].as_str().unwrap_or_else(|| panic!("{cause}"));
    assert_eq!(lab(&["replay", saved]).0, Some(1), "{saved}");
    assert_eq!(names_in(scratch.path()).len(), 1, "nothing else is in it");

    let expected = "--all is for --engine random, sticky, pct or series, and not for exhaustive";
    assert_eq!(lab_errors(&["explore", "--all"]), (Some(2), vec![expected.to_owned()]));
}

#[test]
fn drawn_schedules_that_go_on_count_their_findings_by_cause() {
    let scratch = mortmain::sandbox!("drawn-causes").expect("it is free");
    let dir = text_of(scratch.path());
    let args = ["explore", "--subject", "marker", "--engine", "pct", "--iterations", "300"];
    let args = [&args[..], &["--all", "--json", "--save", dir]].concat();
    let told = |threads| {
        let (code, lines) = lab(&[&args[..], &["--threads", threads]].concat());
        assert_eq!(code, Some(1), "{lines:#?}");
        let lines = lines.iter().map(|line| serde_json::from_str(line).expect("a line is JSON"));
        lines.collect::<Vec<serde_json::Value>>()
    };
    let lines = told("2");
    let (sample, causes) = lines.split_last().expect("there is a line");
    assert_eq!((&sample["type"], &sample["exit"]), (&"sample".into(), &1.into()), "{sample}");
    assert_eq!(sample["runs"], 300, "{sample}");
    let [cause] = causes else { panic!("{causes:#?}") };
    assert_eq!((&cause["property"], &cause["rule"]), (&"L1".into(), &"c3".into()), "{cause}");
    assert!(cause["count"].as_u64() > Some(1), "{cause}");
    let saved = cause["saved"].as_str().unwrap_or_else(|| panic!("{cause}"));
    assert_eq!(lab(&["replay", saved]).0, Some(1), "{saved}");
    assert_eq!(told("1"), lines, "one thread comes to the same");
}

#[test]
fn an_exploration_counts_how_often_each_property_was_judged() {
    let args = ["explore", "--sweeps", "1", "--kills", "1", "--json"];
    let (code, lines) = lab(&args);
    let line: serde_json::Value = serde_json::from_str(&lines[0]).expect("a line is JSON");
    assert_eq!((code, &line["found"]), (Some(0), &serde_json::Value::Null));
    let count = |name: &str| line[name].as_u64().expect("a count");
    assert!(count("in_use") > 100 && count("recoveries") > 100, "{line}");
    assert!(count("in_use") < count("states"), "{line}");
}

#[test]
fn designs_are_listed_with_the_rules_that_they_lack() {
    let (code, lines) = lab(&["explore", "--list"]);
    assert_eq!(code, Some(0), "{lines:#?}");
    assert!(lines[0].starts_with("mortmain ") && !lines[0].contains("lacks"), "{lines:#?}");
    assert!(lines.iter().any(|line| line.ends_with("; lacks c1, c2")), "{lines:#?}");
}

#[test]
fn designs_are_compared_with_the_shortest_run_behind_each_cell() {
    let (code, lines) = lab(&["compare", "pid", "marker", "--json"]);
    assert_eq!(code, Some(0), "{lines:#?}");
    let objects: Vec<serde_json::Value> =
        lines.iter().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert!(objects.iter().all(|object| object["schema"] == 1), "{lines:#?}");
    let cell = |subject: &str, property: &str| {
        let mut cells = objects.iter();
        let found = cells.find(|cell| cell["subject"] == subject && cell["property"] == property);
        found.unwrap_or_else(|| panic!("no {property} of {subject} in {lines:#?}"))
    };
    let pid = cell("pid", "S1");
    assert_eq!((&pid["held"], &pid["rule"]), (&"fails".into(), &"l3".into()));
    assert_eq!((&pid["by"], &pid["victims"][0]), (&"sweep 20".into(), &"owner 101".into()));
    assert_eq!(cell("pid", "L1")["held"], "holds");
    assert_eq!(cell("marker", "L1")["choices"], 3);
    let mut causes = objects.iter().filter(|object| object["type"] == "cause");
    let cause = causes.next().expect("what fails has a cause");
    assert_eq!(
        (&cause["subject"], &cause["deed"]),
        (&"pid".into(), &"`rmdir` of the sweep".into())
    );
    assert_eq!((&cause["rule"], &cause["count"]), (&"l3".into(), &15.into()), "{cause}");
    assert_eq!(causes.count(), 2, "{lines:#?}");
    // What nothing here can judge is never a pass.
    assert_eq!(cell("pid", "S2")["held"], "never-evaluated");
    assert_eq!(objects.last().map(|last| &last["exit"]), Some(&0.into()));

    let (code, lines) = lab(&["compare", "pid"]);
    assert_eq!(code, Some(0), "{lines:#?}");
    let row: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(row, ["pid", "fails", "in", "11", "-", "-", "holds", "holds", "-"]);
    assert!(lines.iter().any(|line| line.starts_with("S2 was never evaluated")), "{lines:#?}");
}

#[test]
fn a_comparison_that_meets_its_bound_has_not_decided() {
    let (code, lines) = lab(&["compare", "pid", "--states", "1000"]);
    assert_eq!(code, Some(3), "{lines:#?}");
    let told = "L1 of pid is not decided: a search met 1000 states";
    assert!(lines.iter().any(|line| line == told), "{lines:#?}");
}

#[test]
fn a_search_that_meets_its_bound_has_not_decided() {
    let (code, lines) = lab(&["explore", "--states", "100"]);
    assert_eq!(code, Some(3), "{lines:#?}");
    assert!(lines.last().is_some_and(|line| line.contains("not decided at 100 states")));
}

#[test]
fn the_model_holds_in_named_bounds_and_not_without_a_rule() {
    let (code, lines) = lab(&["model", "numbers", "another thread"]);
    assert_eq!((code, lines.len()), (Some(0), 2), "{lines:#?}");
    for (line, name) in lines.iter().zip(["another thread: ", "numbers given again: "]) {
        assert!(line.starts_with(name) && line.contains(": holds, states="), "{line}");
    }
    let (code, lines) = lab(&["model", "--without", "l2"]);
    assert_eq!(code, Some(1), "{lines:#?}");
    assert!(lines[0].starts_with("S1: "), "{lines:#?}");
    assert!(lines.last().is_some_and(|line| line.contains("without l2: does not hold, ")));
    // The same states and steps at any number of threads.
    for jobs in ["1", "2", "3"] {
        assert_eq!(lab(&["model", "--without", "l2", "--jobs", jobs]), (code, lines.clone()));
    }
    let (code, lines) = lab(&["model", "--without", "l2", "--json"]);
    assert_eq!((code, lines.len()), (Some(1), 1), "{lines:#?}");
    let line: serde_json::Value = serde_json::from_str(&lines[0]).expect("it is JSON");
    assert_eq!((&line["schema"], &line["type"]), (&1.into(), &"model".into()), "{line}");
    assert_eq!(line["without"], "l2", "{line}");
    assert!(line["steps"].as_array().is_some_and(|steps| steps.len() > 10), "{line}");
}

#[test]
fn a_model_that_is_too_large_or_that_nobody_knows_says_so() {
    let (code, lines) = lab(&["model", "--sweeps", "2", "--states", "100"]);
    assert_eq!(code, Some(3), "{lines:#?}");
    assert!(lines[0].contains(": not decided: there are more states, "), "{lines:#?}");
    let (code, lines) = lab(&["model", "--sweeps", "2", "--kills", "2", "--memory", "1"]);
    assert_eq!(code, Some(3), "{lines:#?}");
    assert!(lines[0].contains(": not decided: they take more memory, "), "{lines:#?}");
    for (args, exit) in [
        (&["model", "no such bounds"][..], 4),
        (&["model", "another thread", "no such bounds"], 4),
        (&["model", "--sweeps", "3"], 2),
        (&["model", "--owners", "0"], 2),
        (&["model", "--batch", "0"], 2),
        (&["model", "--with", "full,no-locks"], 2),
        (&["model", "--list", "--table"], 2),
        (&["model", "--list", "numbers"], 2),
        (&["model", "--write-docs", "--without", "l2"], 2),
        (&["model", "--write-docs", "--states", "10"], 3),
        (&["model", "--without", "l9"], 2),
        (&["model", "--with", "wings"], 2),
        (&["model", "another thread", "--kills", "2"], 2),
    ] {
        let (code, lines) = lab(args);
        assert_eq!((code, lines.len()), (Some(exit), 0), "{args:?}: {lines:#?}");
    }
}

#[test]
fn the_model_lists_what_it_can_be_asked_and_its_table() {
    let (code, lines) = lab(&["model", "--list"]);
    assert_eq!(code, Some(0));
    for there in ["  c2:sweep ", "  loses-lease ", "  two sweeps: 1 owner, "] {
        assert!(lines.iter().any(|line| line.starts_with(there)), "{there}: {lines:#?}");
    }
    let (code, lines) = lab(&["model", "--table"]);
    assert_eq!((code, lines.len()), (Some(0), 28), "{lines:#?}");
    assert_eq!(lines.iter().filter(|line| line.ends_with("go on to l4")).count(), 1);
}

#[test]
fn every_step_of_the_code_is_held_against_the_model() {
    let (code, lines) = lab(&["refine", "--then", "idle"]);
    assert_eq!((code, lines.len()), (Some(0), 2), "{lines:#?}");
    assert_eq!(lines[0], "never taken: owner 1: removes the file of an entry");
    assert!(lines[1].contains(", beside the model: holds, "), "{lines:#?}");
    let (code, lines) = lab(&["refine", "--without", "l3"]);
    assert_eq!(code, Some(1), "{lines:#?}");
    assert!(lines[0].starts_with("the model allows no such step: "), "{lines:#?}");
    let last = lines.last().expect("a verdict");
    assert!(last.contains(", without l3, beside the model: does not hold, "), "{last}");
    let (code, lines) = lab(&["refine", "--then", "idle", "--kills", "0", "--json"]);
    assert_eq!((code, lines.len()), (Some(0), 1), "{lines:#?}");
    let line: serde_json::Value = serde_json::from_str(&lines[0]).expect("it is JSON");
    assert_eq!((&line["schema"], &line["type"]), (&1.into(), &"refinement".into()), "{line}");
    assert_eq!((&line["beyond"], &line["found"]), (&0.into(), &serde_json::Value::Null), "{line}");
    assert!(line["taken"].as_array().is_some_and(|steps| steps.len() > 30), "{line}");
    let (code, lines) = lab(&["refine", "--states", "100"]);
    assert_eq!(code, Some(3), "{lines:#?}");
    assert!(lines[0].ends_with(", beside the model: not decided at 100 states"), "{lines:#?}");
    for bound in [["--kills", "3"], ["--sweeps", "3"], ["--without", "l9"]] {
        let (code, lines) = lab(&["refine", bound[0], bound[1]]);
        assert_eq!((code, lines.len()), (Some(2), 0), "{bound:?}: {lines:#?}");
    }
}

/// A file with a text, in a test's own directory.
#[track_caller]
fn file_in(scratch: &Sandbox, name: &str, text: &str) -> String {
    let path = scratch.path().join(name);
    fs::write(&path, text).expect("it can be written");
    text_of(&path).to_owned()
}

#[track_caller]
fn text_of(path: &Path) -> &str {
    path.to_str().expect("it is text")
}

#[test]
fn the_scenario_of_the_documentation_holds_and_fails_where_everything_counts_as_dead() {
    if without_cells() {
        return;
    }
    let documentation = include_str!("../docs/scenarios.md");
    let example = documentation.split("```toml\n").nth(1).expect("it has an example");
    let example = example.split("```").next().expect("it has an end");
    let scratch = mortmain::sandbox!("first-try").expect("it is free");
    let file = file_in(&scratch, "first-try.toml", example);
    let (code, lines) = lab(&["scenario", "--check", &file]);
    assert_eq!((code, lines), (Some(0), vec!["1 scenario can be told".to_owned()]));
    let (code, lines) = lab(&["scenario", &file]);
    assert_eq!(code, Some(0), "{lines:#?}");
    let verdict = lines.last().map(String::as_str);
    assert_eq!(verdict, Some("1 scenario holds: 2 sweeps, 1 canary; in the world 1"));
    let (code, lines) = lab(&["scenario", &file, "--subject", "always-gone"]);
    assert_eq!(code, Some(1), "{lines:#?}");
    assert!(
        lines[0].starts_with("error[S1]: the claim of `first` is not at its place"),
        "{lines:#?}"
    );
    assert!(lines.iter().any(|line| line.contains("to see it again: mortmain-lab scenario")));
}

#[test]
fn an_escape_is_no_pass_and_has_to_happen() {
    if without_cells() {
        return;
    }
    let known = include_str!("../scenarios/commands/daemon-without-a-trace.toml");
    let scratch = mortmain::sandbox!("escapes").expect("it is free");
    let file = file_in(&scratch, "escapes.toml", known);
    let (code, lines) = lab(&["scenario", &file]);
    assert_eq!(code, Some(0), "{lines:#?}");
    let verdict = lines.last().map(String::as_str);
    let expected = "0 scenarios hold, 1 shows a known escape: 2 sweeps, 1 canary; in the world 1";
    assert_eq!(verdict, Some(expected));
    let seen = known.replace("own-session = true\nlock = \"closed\"\n", "");
    let seen = seen.replace("is = \"gone\" }, ", "is = \"kept\" }, ");
    let file = file_in(&scratch, "no-escape.toml", &seen);
    let (code, lines) = lab(&["scenario", &file]);
    assert_eq!(code, Some(1), "{lines:#?}");
    let expected = "error[escape]: command `daemon` was to escape, and kept its claim";
    assert!(lines[0].starts_with(expected), "{lines:#?}");
}

#[test]
fn a_story_is_told_in_the_world_as_far_as_that_has_what_it_needs() {
    let stories = ["scenario", "--on", "world", "owners/zombie", "sockets/passed-to-another"];
    let (code, lines) = lab(&stories);
    assert_eq!(code, Some(0), "{lines:#?}");
    let why = "not told in the world, host only: no simulated process is passed a socket:";
    let at = lines.iter().position(|line| line == why).expect("it is told what is missing");
    assert_eq!(lines[at + 1].trim(), "sockets/passed-to-another");
    let verdict = lines.last().map(String::as_str);
    assert_eq!(verdict, Some("1 scenario holds, 1 skipped: 2 sweeps, 1 canary"));
    let (code, lines) = lab(&[&stories[..], &["--json"]].concat());
    let line: serde_json::Value = serde_json::from_str(&lines[0]).expect("a line is JSON");
    assert_eq!(
        (code, &line["schema"], &line["world"]["result"]),
        (Some(0), &1.into(), &"held".into())
    );
    let (code, _) = lab(&["scenario", "--on", "world", "sockets/passed-to-another"]);
    assert_eq!(code, Some(4), "nothing was told");
}

#[test]
fn a_scenario_file_that_is_wrong_ends_with_2_and_shows_where() {
    let text = "about = \"a\"\nrules = [\"l1\"]\n[server.first]\n[[step]]\nstart = \"frist\"\n";
    let scratch = mortmain::sandbox!("wrong-story").expect("it is free");
    let file = file_in(&scratch, "wrong.toml", text);
    for args in [&["scenario", "--check", &file][..], &["scenario", &file]] {
        let (code, lines) = lab(args);
        assert_eq!(code, Some(2), "{lines:#?}");
        assert_eq!(lines[0], "error[unknown-actor]: there is no server `frist`");
        assert_eq!(lines[1], format!(" --> {}:5:9", file));
        assert_eq!(lines.last().map(String::as_str), Some("1 error in 1 file"));
    }
    let (code, lines) = lab(&["scenario", "--check", &file, "--json"]);
    let line: serde_json::Value = serde_json::from_str(&lines[0]).expect("a line is JSON");
    assert_eq!((code, &line["schema"], &line["line"]), (Some(2), &1.into(), &5.into()));
}

#[test]
fn a_scenario_that_there_is_not_ends_with_4_and_a_file_that_there_is_not_with_2() {
    let (code, lines) = lab_errors(&["scenario", "commands/outlives-its-owners"]);
    let expected = "no scenario is called `commands/outlives-its-owners`; \
        did you mean `commands/outlives-its-owner`?";
    assert_eq!((code, lines), (Some(4), vec![expected.to_owned()]));
    let (code, lines) = lab_errors(&["scenario", "no-such-file.toml"]);
    assert_eq!(code, Some(2));
    assert!(lines[0].starts_with("cannot read no-such-file.toml: "), "{lines:#?}");
}

#[test]
fn what_is_explored_can_have_several_owners_and_has_to_go_together() {
    let args = ["explore", "--owners", "2", "--beside", "nothing", "--sweeps", "1", "--kills", "0"];
    let (code, lines) = lab(&args);
    assert_eq!(code, Some(0), "{lines:#?}");
    let verdict = lines.last().expect("a verdict");
    assert!(verdict.starts_with("2 owners, 1 sweep, 0 kills: holds, states="), "{verdict}");
    let scratch = mortmain::sandbox!("owners").expect("it is free");
    let dir = text_of(scratch.path());
    let (code, lines) = lab(&["explore", "--subject", "pid", "--beside", "nested", "--save", dir]);
    assert_eq!(code, Some(1), "{lines:#?}");
    let verdict = lines.last().expect("a verdict");
    assert!(verdict.starts_with("pid: 1 owner, 1 copy with a nested directory, "), "{verdict}");
    let saved = scratch.path().join("s1-pid-1-nested-plain-idle-1-1-0-1.toml");
    let (code, lines) = lab(&["replay", text_of(&saved)]);
    assert_eq!(code, Some(1), "{lines:#?}");
    let (code, lines) = lab_errors(&["explore", "--beside", "copy", "--then", "wait"]);
    let expected = "`wait` is about a command, and there is none beside `copy`";
    assert_eq!((code, lines), (Some(2), vec![expected.to_owned()]));
}

#[test]
fn the_table_of_stories_is_that_of_the_documentation() {
    let (code, lines) = lab(&["scenario", "--table"]);
    assert_eq!(code, Some(0));
    let documentation = include_str!("../docs/stories.md").lines();
    let table: Vec<&str> = documentation.filter(|line| line.starts_with('|')).collect();
    for (line, expected) in lines.iter().zip(&table) {
        assert_eq!(line, expected, "make it anew: cargo lab scenario --table");
    }
    assert_eq!(lines.len(), table.len(), "make it anew: cargo lab scenario --table");
}

#[test]
fn scenarios_are_listed_with_what_they_tell() {
    let (code, lines) = lab(&["scenario", "--list", "--json", "commands/outlives-its-owner"]);
    let line: serde_json::Value = serde_json::from_str(&lines[0]).expect("a line is JSON");
    assert_eq!((code, &line["schema"]), (Some(0), &1.into()));
    assert_eq!(line["name"], "commands/outlives-its-owner");
    assert!(line["about"].is_string() && line["rules"].is_array(), "{line}");
}

/// Runs a benchmark; answers its figures and what it says at the end.
#[track_caller]
fn bench(args: &[&str]) -> (Vec<serde_json::Value>, serde_json::Value) {
    let args: Vec<&str> =
        ["bench"].into_iter().chain(args.iter().copied()).chain(["--json"]).collect();
    let (code, lines) = lab(&args);
    assert_eq!(code, Some(0), "{lines:#?}");
    let mut objects: Vec<serde_json::Value> =
        lines.iter().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    let verdict = objects.pop().expect("it ends with a verdict");
    assert_eq!((&verdict["type"], &verdict["wrong"]), (&"verdict".into(), &serde_json::json!([])));
    (objects, verdict)
}

/// Whether a benchmark can have file systems of its own here.
fn can_bench() -> bool {
    !without_cells() && is_root("no file system can be mounted")
}

#[test]
fn a_benchmark_tells_every_figure_beside_its_yardstick() {
    if !can_bench() {
        return;
    }
    let size = ["--claims", "20", "--leftovers", "20", "--processes", "20", "--rounds", "1"];
    let args: Vec<&str> = ["sweep", "--on", "tmpfs"].into_iter().chain(size).collect();
    let (figures, _) = bench(&args);
    let named = |what: &str| {
        let found = figures.iter().find(|figure| figure["what"] == what);
        found.unwrap_or_else(|| panic!("no `{what}` in {figures:#?}"))
    };
    for (yardstick, what) in [
        ("bare probe of the living", "sweep of the living"),
        ("rm -rf", "sweep of the dead without scans"),
        ("first answer without leftovers", "first answer among leftovers"),
    ] {
        let times = named(what)["times_wall"].as_f64().expect("it is a number");
        let [own, other] = [what, yardstick].map(|what| named(what)["wall_us"].as_f64());
        let exact = own.zip(other).map(|(own, other)| own / other).expect("they are numbers");
        // The last digits are lost in JSON.
        assert!((times / exact - 1.0).abs() < 1e-9, "{what}: {times} is not {exact}");
        assert!(named(what)["reached"].is_boolean() && named(yardstick)["aim"].is_null());
    }
    assert_eq!(named("its scans, of which it made 1")["claims"], 20);
    assert_eq!(named("one scan among 20 processes")["unit"], "scan");
}

/// Starts that are killed get ahead, without an inode to be had, and nobody who lives is harmed (b2).
#[test]
fn a_backlog_shrinks_by_every_start_and_the_living_stay() {
    if !can_bench() {
        return;
    }
    let size = ["--leftovers", "300", "--living", "5", "--at-once", "2", "--starts", "3"];
    let args: Vec<&str> = ["backlog"].into_iter().chain(size).collect();
    let (figures, _) = bench(&args);
    let answers = figures.iter().filter(|figure| figure["unit"] == "start");
    assert!(answers.count() >= 2, "{figures:#?}");
    // How many the starts have removed is a matter of time, but for the first.
    let went = |figure: &serde_json::Value| -> Option<u64> {
        let what = figure["what"].as_str()?;
        let count = what.strip_prefix("first answer among leftovers, of which ")?;
        count.strip_suffix(" went")?.parse().ok()
    };
    let went: Vec<u64> = figures.iter().filter_map(went).collect();
    assert!(!went.is_empty() && went.iter().all(|count| *count > 0), "{figures:#?}");
}

/// Who is not root may mount nothing.
#[test]
fn a_benchmark_that_can_measure_nothing_says_so_without_a_table() {
    cell::enter(LAB, || {
        // The build may lie where nobody may look.
        let lab = scratch_root().join("mortmain-lab");
        fs::copy(LAB, &lab).expect("the cell's scratch space takes it");
        for which in ["sweep", "backlog"] {
            let mut command = Command::new(&lab);
            command.args(["bench", which]);
            if is_root("to become nobody") {
                command.gid(NOBODY).uid(NOBODY);
            }
            let said = "nothing could be measured here".to_owned();
            assert_eq!(run(&mut command), (Some(77), vec![said]));
        }
    });
}

#[test]
fn a_benchmark_of_nothing_is_wrong_usage() {
    for args in [
        &["bench", "sweep", "--claims", "0"][..],
        &["bench", "sweep", "--on", "nfs"],
        &["bench", "backlog", "--starts", "many"],
        &["bench"],
    ] {
        assert_eq!(lab(args).0, Some(2), "{args:?}");
    }
}
