//! The command `prove` on tiny workspaces, from the outside.
//!
//! Every test here starts cargo, and real processes in namespaces, so that the binary
//! is one of the host.

mod support;

mod starts_cargo {
    use std::collections::BTreeSet;
    use std::fs;
    use std::process::Command;

    use mortmain_harness::guard::ChildGuard;
    use mortmain_harness::processes::{processes, with_descendants};
    use mortmain_harness::wait::Watch;
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use serde_json::Value;

    use crate::support::{Finished, Fixture, soon};

    /// `check verdict [killer kind]` of each line of JSON.
    fn verdicts(finished: &Finished) -> Vec<String> {
        let objects = finished.stdout.lines().map(|line| {
            let object: Value = serde_json::from_str(line).expect("a line is a JSON object");
            assert!(line.starts_with(r#"{"schema":1,"#), "{line}");
            object
        });
        let told = objects.map(|object| {
            let text = |value: &Value| value.as_str().expect("a string").to_owned();
            let mut told = format!("{} {}", text(&object["check"]), text(&object["verdict"]));
            if let Some(killer) = object.get("killer") {
                told += &format!(" {} {}", text(&killer["test"]), text(&killer["kind"]));
            }
            told
        });
        told.collect()
    }

    #[test]
    fn each_check_gets_its_verdict_and_its_killer() {
        let fixture = Fixture::new("proofs");
        let source = fs::read(fixture.source().join("src/lib.rs")).unwrap();
        let rules = ["a1", "a2", "a3", "a4", "a5", "a7", "a9"].map(|rule| format!("--rule={rule}"));
        let mut arguments = vec!["--json"];
        arguments.extend(rules.iter().map(String::as_str));
        let finished = fixture.run("prove", &arguments);
        let mut told = verdicts(&finished);
        told.sort_unstable();
        assert_eq!(
            told,
            [
                "a1-even proved tests::an_odd_number_is_refused unit",
                "a2-unnoticed not proved",
                "a3-typed does not compile",
                "a4-strict proved flags_are_strict world",
                "a5-inside proved nothing_is_removed_outside host",
                "a7-zero proved tests::there_is_no_quotient_by_zero unit",
                "a9-number proved tests::the_bound_is_ten unit",
            ],
            "{finished:?}"
        );
        assert_eq!(finished.code, Some(1), "a check that is not proved is a finding");
        // The first cannot stand beside the unchanged function, the second has no function.
        let built = finished.stderr.lines().find(|line| line.contains("behind switches, "));
        assert!(
            built.is_some_and(|line| line.contains("5 behind switches, 2 apart")),
            "{finished:?}"
        );
        assert!(finished.stdout.contains("error[E0425]: cannot find value `number`"));
        assert!(finished.stdout.contains("ended by signal 6"), "{}", finished.stdout);

        // The mutant tried, and the confinement was what stopped it.
        let log = fs::read_to_string(fixture.scratch().join("log/a5-inside.txt")).unwrap();
        assert!(log.contains("left: ReadOnlyFilesystem"), "{log}");
        assert!(fixture.scratch().join("tree/precious.txt").exists());

        let copy = fs::read(fixture.scratch().join("tree/src/lib.rs")).unwrap();
        assert_eq!(copy, source, "the copy is as it was");
        let now = fs::read(fixture.source().join("src/lib.rs")).unwrap();
        assert_eq!(now, source, "the source is as it was");
        let active = fs::read_dir(fixture.scratch().join("active")).unwrap();
        assert_eq!(active.count(), 0, "nothing is active outside of a confinement");
        // Whichever binary the test is in, and however many have one of the name.
        for id in ["a1-even", "a4-strict", "a7-zero", "a9-number"] {
            let log = fixture.scratch().join(format!("log/{id}.txt"));
            assert!(log.exists(), "{}", log.display());
        }
    }

    #[test]
    fn the_first_that_is_not_proved_may_end_the_run() {
        let fixture = Fixture::new("proofs");
        let arguments = ["--fail-fast", "--kind=world", "--rule=a2", "--rule=a4", "--rule=a9"];
        let finished = fixture.run("prove", &arguments);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        let summary = finished.stdout.lines().last().unwrap_or_default();
        // The one that is remembered comes first, and what needs a build of its own last.
        let told = "3 checks: 1 proved, 1 not proved, 1 not tried; ";
        assert!(summary.starts_with(told), "{finished:?}");

        let finished = fixture.run("prove", &["--fail-fast", "--story=sums", "--story=turns"]);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        let summary = finished.stdout.lines().last().unwrap_or_default();
        let told = "1 story protects 2 rules: 1 shown, 1 not shown";
        assert_eq!(summary, told, "{finished:?}");
    }

    #[test]
    fn the_test_of_the_last_time_may_take_no_longer_than_the_limit() {
        let fixture = Fixture::new("proofs");
        // It is remembered, and does not end without the check.
        let arguments = ["--check=a6-end", "--kind=unit", "--timeout=2s"];
        let finished = fixture.run("prove", &arguments);
        assert_eq!(finished.code, Some(3), "{finished:?}");
        let told =
            "a6  a6-end  timeout  src/lib.rs:61, in proofs proofs tests::counts_to_the_end\n";
        assert!(finished.stdout.starts_with(told), "{finished:?}");
    }

    #[test]
    fn the_test_of_the_last_time_is_asked_only_where_its_kind_is() {
        let fixture = Fixture::new("proofs");
        let finished = fixture.run("prove", &["--check=a1-even", "--kind=world"]);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        let told = "a1  a1-even  NOT PROVED  src/lib.rs:14, passed: no test\n";
        assert!(finished.stdout.starts_with(told), "{finished:?}");
    }

    #[test]
    fn a_story_that_fails_anyway_shows_nothing_and_hides_nothing() {
        let fixture = Fixture::new("proofs");
        let finished = fixture.run("prove", &["--story=broken", "--story=numbers"]);
        assert_eq!(finished.code, Some(5), "{finished:?}");
        assert_eq!(finished.stdout, "1 story protects 1 rule: 1 shown\n", "{finished:?}");
        let told = "with all checks in place broken fails";
        assert!(finished.stderr.contains(told), "{finished:?}");
    }

    #[test]
    fn a_story_has_to_fail_for_each_rule_that_it_protects() {
        let fixture = Fixture::new("proofs");
        let finished = fixture.run("prove", &["--story=sums", "--story=numbers"]);
        assert_eq!(
            finished.stdout,
            "sums: a2 not shown, holds without a2-unnoticed\n\
             2 stories protect 3 rules: 2 shown, 1 not shown\n",
            "{finished:?}"
        );
        assert_eq!(finished.code, Some(1), "a rule that is not shown is a finding");

        let finished = fixture.run("prove", &["--story=sums", "--json"]);
        assert_eq!(
            finished.stdout,
            "{\"schema\":1,\"story\":\"sums\",\"rule\":\"a8\",\"verdict\":\"shown\",\
             \"check\":\"a8-second\"}\n\
             {\"schema\":1,\"story\":\"sums\",\"rule\":\"a2\",\"verdict\":\"not shown\",\
             \"holds_without\":[\"a2-unnoticed\"]}\n",
            "{finished:?}"
        );
        assert_eq!(fixture.run("prove", &["--story=numbers"]).code, Some(0));
        assert_eq!(fixture.run("prove", &["--story=nothing"]).code, Some(4), "it has no file");
    }

    #[test]
    fn a_table_is_printed_for_people_and_a_timeout_proves_nothing() {
        let fixture = Fixture::new("proofs");
        let arguments = ["--check=a8-second", "--rule=a6", "--binary=proofs", "--timeout=2s"];
        let finished = fixture.run("prove", &arguments);
        let (table, summary) = finished.stdout.split_once("\n\n").expect("a table and a summary");
        assert_eq!(
            table,
            "a6  a6-end     timeout  src/lib.rs:61, in proofs proofs tests::counts_to_the_end\n\
             a8  a8-second  → tests::sums (unit, proofs)"
        );
        assert!(summary.starts_with("2 checks: 1 proved, 1 timeout; "), "{summary}");
        assert_eq!(finished.code, Some(3));
        assert!(finished.stderr.contains("recorded 7 tests"), "{finished:?}");
    }

    #[test]
    fn checks_are_listed_without_a_run() {
        let fixture = Fixture::new("proofs");
        let finished = fixture.run("prove", &["--list", "--rule=a1", "--rule=a4"]);
        assert_eq!(
            finished.stdout,
            "a1  a1-even    src/lib.rs:14  delete the statement `if odd {`\n\
             a4  a4-strict  src/lib.rs:43  edit of the catalogue\n"
        );
        assert_eq!(finished.code, Some(0));
        assert_eq!(finished.stderr, "");
        let same = fixture.run("mutate", &["--list", "--rule=a1", "--check=a4-strict"]);
        assert_eq!(same.stdout, finished.stdout, "both commands know the named checks");
    }

    #[test]
    fn a_selection_without_a_match_is_told() {
        let fixture = Fixture::new("proofs");
        for arguments in [["--list", "--check=a1"], ["--list", "--rule=z9"]] {
            let finished = fixture.run("prove", &arguments);
            assert_eq!(finished.code, Some(4), "{finished:?}");
            assert_eq!(finished.stdout, "");
        }
        let finished = fixture.run("prove", &["--test-package=nobody"]);
        assert_eq!(finished.code, Some(4), "{finished:?}");
        let finished = fixture.run("prove", &["--check=a1-even", "--binary=no_such_binary"]);
        assert_eq!(finished.code, Some(4), "{finished:?}");
        assert_eq!(fixture.run("prove", &["--no-such-option"]).code, Some(2));
        assert_eq!(fixture.run("prove", &["--manifest-path=/nonexistent"]).code, Some(2));
    }

    #[test]
    fn a_failing_baseline_is_told_and_nothing_is_tried() {
        let fixture = Fixture::new("red");
        let finished = fixture.run("prove", &[]);
        assert_eq!(finished.code, Some(5), "{finished:?}");
        let told = "1 check: 0 proved, 1 not tried; ";
        assert!(finished.stdout.starts_with(told), "{finished:?}");
        let told = "tests fail in the unchanged workspace: red tests::is_wrong_about_the_bound";
        assert!(finished.stderr.contains(told), "{}", finished.stderr);
        assert!(finished.stderr.contains("the bound is ten"), "{}", finished.stderr);
    }

    #[test]
    fn comments_and_catalogue_that_do_not_fit_are_told_at_once() {
        let fixture = Fixture::new("astray");
        for arguments in [&["--list"][..], &[]] {
            let finished = fixture.run("prove", arguments);
            assert_eq!(finished.code, Some(7), "{finished:?}");
            let problems: Vec<&str> = finished.stderr.lines().skip(1).map(str::trim).collect();
            let expected = [
                "src/lib.rs:24: `CHECK(a3-unexplained)` is not followed by a colon",
                "src/lib.rs:6: a1-nothing: nothing that can be deleted begins under the comment",
                "src/lib.rs:15: a2-twice is already at src/lib.rs:11",
                "src/lib.rs:33: a4-moved: the text \"number.max(1)\" is not in src/lib.rs",
                "mutants/checks.toml: a5-stranger: no such check in the source",
            ];
            assert_eq!(problems.len(), expected.len(), "{problems:#?}");
            for (problem, start) in problems.iter().zip(expected) {
                assert!(problem.starts_with(start), "{problem:?} does not begin with {start:?}");
            }
        }
    }

    #[test]
    fn an_interrupt_ends_the_test_and_prints_what_is_known() {
        let fixture = Fixture::new("proofs");
        let mut guard = searching(&fixture, &["--jobs=1", "--rule=a6", "--rule=a7"]);
        kill(Pid::from_raw(guard.pid()), Signal::SIGINT).unwrap();
        let status = guard.wait(soon()).unwrap();
        let lines = guard.lines().expect_eof(soon(), "the end of the results").unwrap();
        assert_eq!(status.code(), Some(3), "{lines:?}");
        let [.., row, empty, summary] = lines.as_slice() else {
            panic!("a table and a summary expected: {lines:?}");
        };
        assert_eq!((row.as_str(), empty.as_str()), ("a6  a6-end  interrupted", ""));
        let told = "2 checks: 0 proved, 1 interrupted, 1 not tried; ";
        assert!(summary.starts_with(told), "{summary}");
    }

    #[test]
    fn nothing_outlives_a_killed_run_and_the_next_one_repairs() {
        let fixture = Fixture::new("proofs");
        let mut guard = searching(&fixture, &["--check=a6-end", "--kind=unit"]);
        let below = below_with(guard.pid(), "proofs-");
        guard.kill_hard().unwrap();
        for process in below {
            process.gone(soon()).unwrap();
        }
        drop(guard);

        let copy = || fs::read(fixture.scratch().join("tree/src/lib.rs")).unwrap();
        let source = fs::read(fixture.source().join("src/lib.rs")).unwrap();
        assert_ne!(copy(), source, "the switches were still in the copy");
        let finished = fixture.run("prove", &["--check=a1-even", "--kind=unit"]);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!(copy(), source);
    }

    #[test]
    fn without_confinement_nothing_runs() {
        let fixture = Fixture::new("red");
        // A namespace of users that may not have any of the others.
        let script = "exec unshare --map-root-user sh -c \
                      'echo 0 >/proc/sys/user/max_mnt_namespaces && exec \"$@\"' sh \"$@\"";
        let finished = fixture.run_by(script, "prove", &[]);
        assert_eq!(finished.code, Some(77), "{finished:?}");
        let told = "error: tests cannot be confined here: cannot make namespaces";
        assert!(finished.stderr.starts_with(told), "{finished:?}");
    }

    #[test]
    fn a_program_with_too_many_processes_is_ended_with_all_of_them() {
        let stays = "for each in $(seq 64); do sh -c 'kill -STOP $$' & done; wait";
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" 2>&1", "sh", env!("CARGO_BIN_EXE_mortmain-mutants")]);
        command.args(["confined", "--processes-max=32", "--", "sh", "-c", stays]);
        let mut guard = ChildGuard::spawn_with_stdin(command).unwrap();
        let told = guard.lines().expect_eof(soon(), "the end of all of them").unwrap();
        assert_eq!(told, ["ended: more than 32 processes at once"]);
        assert_eq!(guard.wait(soon()).unwrap().code(), Some(137));
    }

    /// A run that is at a test which does not end without its check.
    fn searching(fixture: &Fixture, arguments: &[&str]) -> ChildGuard {
        let mut guard = fixture.start("prove", &[&["--verbose"], arguments].concat());
        let hangs = |line: &str| line == "a6-end: tests::counts_to_the_end";
        guard.lines().expect_line(soon(), "the search for a killer", hangs).unwrap();
        guard
    }

    /// All processes below another, as soon as one of them has such a name and lives, with the keeper
    /// and its init.
    fn below_with(root: i32, name: &str) -> Vec<Watch> {
        let deadline = soon();
        loop {
            let all = processes().unwrap();
            let mut below = with_descendants(&all, BTreeSet::from([root]));
            below.remove(&root);
            let named = |pid| all.iter().any(|one| one.pid == pid && one.comm.starts_with(name));
            if below.iter().any(|&pid| named(pid)) {
                // The first runs of a test are short: some may have ended meanwhile.
                let watched: Vec<Watch> =
                    below.iter().filter_map(|&pid| Watch::open(pid).unwrap()).collect();
                if watched.len() >= 3 {
                    return watched;
                }
            }
            assert!(!deadline.passed(), "no {name}… was started, but {all:?}");
            std::thread::yield_now();
        }
    }
}
