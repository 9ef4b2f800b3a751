//! The command `mutate` on tiny workspaces, from the outside.
//!
//! Every test here starts cargo, and real processes in namespaces, so that the binary
//! is one of the host.

mod support;

mod starts_cargo {
    use std::collections::BTreeMap;
    use std::fs;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use serde_json::Value;

    use crate::support::{Finished, Fixture, soon};

    /// A JSON object for each line.
    fn objects(finished: &Finished) -> Vec<Value> {
        let each = finished.stdout.lines().map(|line| {
            assert!(line.starts_with(r#"{"schema":1,"#), "{line}");
            serde_json::from_str(line).expect("a line is a JSON object")
        });
        each.collect()
    }

    fn text(object: &Value, key: &str) -> String {
        object[key].as_str().unwrap_or_else(|| panic!("{key} of {object}")).to_owned()
    }

    /// `function: from -> to` of each mutant, by verdict.
    fn by_verdict(objects: &[Value]) -> BTreeMap<String, Vec<String>> {
        let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for object in objects {
            let (function, from, to) =
                (text(object, "function"), text(object, "from"), text(object, "to"));
            let change = format!("{function}: {from} -> {to}");
            told.entry(text(object, "verdict")).or_default().push(change);
        }
        told
    }

    /// What is told of one mutant.
    fn show(fixture: &Fixture, id: &str) -> Finished {
        fixture.run_by("exec \"$1\" \"$2\" show \"$4\"", "mutate", &[id])
    }

    #[test]
    fn each_mutant_gets_its_fate() {
        let fixture = Fixture::new("operators");
        let source = fs::read(fixture.source().join("src/lib.rs")).unwrap();
        let finished = fixture.run("mutate", &["--json", "--file=src/lib.rs"]);
        let objects = objects(&finished);
        let told = by_verdict(&objects);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert_eq!(
            told["missed"],
            [
                "is_small: number < 10 -> number <= 10",
                "wait: let (send, receive) = std::sync::mpsc::channel(); let held = if !come { Some(send.clone()) } else { None }; drop(send); let nobody: Result<(), _> = receive.recv(); assert!(nobody.is_err()); drop(held); -> ()",
                "room: Vec::with_capacity(length * 2) -> vec![]",
                "room: length * 2 -> length + 2",
                "room: length * 2 -> length / 2",
            ]
        );
        assert_eq!(
            told["not-reached"],
            [
                "unused: number + 1 -> 0",
                "unused: number + 1 -> 1",
                "unused: number + 1 -> number - 1",
                "unused: number + 1 -> number * 1",
            ]
        );
        assert_eq!(told["hung"], ["count_to: count += 1 -> count *= 1", "wait: !come -> come"]);
        assert_eq!(told["does-not-compile"], ["no_default: NoDefault(1) -> Default::default()"]);
        assert_eq!(told["not-compiled"].len(), 4, "those of another system");
        assert!(
            told["caught"].contains(&"strict: strict: true -> ..Options::default()".to_owned())
        );
        assert!(told["caught"].contains(&"shade: 0 => \"black\" -> (left out)".to_owned()));
        // How it was seen that they hang.
        let how: Vec<&Value> = objects.iter().filter_map(|object| object.get("how")).collect();
        assert_eq!(how, ["rounds", "time"]);
        // The declared ones are missed, and no finding.
        let declared = objects.iter().filter(|object| object.get("equivalent").is_some());
        assert_eq!(declared.count(), 2);
        let now = fs::read(fixture.source().join("src/lib.rs")).unwrap();
        assert_eq!(now, source, "the source is as it was");
        let active = fs::read_dir(fixture.scratch().join("active")).unwrap();
        assert_eq!(active.count(), 0, "nothing is active outside of a confinement");
    }

    #[test]
    fn awkward_code_compiles_with_every_switch_in_it() {
        let fixture = Fixture::new("operators");
        let finished = fixture.run("mutate", &["--json", "--file=src/awkward.rs"]);
        let objects = objects(&finished);
        let told = by_verdict(&objects);
        // Those with the wrong types alone; and nobody is out because of a neighbour.
        assert_eq!(
            told["does-not-compile"],
            [
                "generic: sum + part -> sum - part",
                "generic: sum + part -> sum * part",
                "moves: text + \"!\" -> text - \"!\"",
                "moves: text + \"!\" -> text * \"!\"",
            ],
            "{finished:?}"
        );
        assert_eq!(
            told["caught"].len()
                + told["missed"].len()
                + told["not-reached"].len()
                + told["hung"].len()
                + 4,
            objects.len()
        );
    }

    #[test]
    fn a_mutant_is_seen_in_a_child_without_an_environment() {
        let fixture = Fixture::new("operators");
        let finished = fixture.run("mutate", &["--json", "--function=Names::add", "--kind=host"]);
        let objects = objects(&finished);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!(objects.len(), 2, "{objects:?}");
        for object in &objects {
            // Whether a name was added is asked by nobody, but what is in the list is printed.
            let killer = &object["killers"][0];
            assert_eq!(killer["test"], "empty_names_are_left_out", "{object}");
            assert_eq!(killer["kind"], "host");
        }
    }

    #[test]
    fn a_run_builds_upon_the_last_and_slices_share_the_work() {
        let fixture = Fixture::new("operators");
        let all = fixture.run("mutate", &["--list", "--function=is_"]);
        let ids = |finished: &Finished| -> Vec<String> {
            let first = |line: &str| line.split("  ").next().map(str::to_owned);
            finished.stdout.lines().filter_map(first).collect()
        };
        let all = ids(&all);
        let mut shared: Vec<String> = Vec::new();
        for slice in ["slice:1/2", "slice:2/2"] {
            let partition = format!("--partition={slice}");
            let listed = fixture.run("mutate", &["--list", "--function=is_", &partition]);
            shared.extend(ids(&listed));
        }
        assert_ne!(shared, all);
        shared.sort_by_key(|id| all.iter().position(|other| other == id));
        assert_eq!(shared, all, "each is in one slice");

        // What is known of earlier runs; or the next one would have nothing to do.
        let _ = fs::remove_file(fixture.scratch().join("mutate.json"));
        let first = fixture.run("mutate", &["--function=is_small", "--verbose"]);
        assert!(first.stderr.contains("asking the compiler"), "{first:?}");
        assert!(first.stderr.contains("recording 1 of"), "{first:?}");
        let again = fixture.run("mutate", &["--missed", "--function=is_small", "--verbose"]);
        assert!(!again.stderr.contains("asking the compiler"), "{again:?}");
        assert!(!again.stderr.contains("recording "), "{again:?}");
        let [missed, tests, summary] = again.stdout.lines().collect::<Vec<_>>()[..] else {
            panic!("one mutant and a summary expected: {again:?}");
        };
        let id = missed.split_whitespace().nth(1).unwrap();
        let told =
            format!("missed          {id}  src/lib.rs:19  is_small: number < 10 → number <= 10");
        assert_eq!(missed, told);
        let passed = "reached by (1): operators operators tests::three_is_small_and_thirty_is_not";
        assert_eq!(tests.trim(), passed);
        assert!(summary.starts_with("1 mutant: 0 caught, 1 missed; "), "{summary}");

        let listed = fixture.run("mutate", &["--missed", "--list", "--function=is_small"]);
        assert_eq!(listed.code, Some(0), "{listed:?}");
        assert_eq!(ids(&listed), [id]);
        let none = fixture.run("mutate", &["--missed", "--list", "--function=is_adult"]);
        assert_eq!(none.code, Some(4), "{none:?}");

        let quick =
            fixture.run("mutate", &["--json", "--missed", "--function=is_small", "--quick=1us"]);
        let object = &objects(&quick)[0];
        assert_eq!((&object["tests"], &object["left_out"]), (&Value::from(0), &Value::from(1)));

        let shown = show(&fixture, id);
        let mut lines = shown.stdout.lines();
        assert_eq!(lines.next(), Some("src/lib.rs:19:12 in is_small (binary, operators)"));
        assert_eq!(lines.next(), Some("- number < 10"));
        assert_eq!(lines.next(), Some("+ number <= 10"));
        assert_eq!(lines.next(), Some("missed"));
        assert_eq!(lines.next(), Some("1 test comes by it:"));
        assert_eq!(show(&fixture, "0000000000").code, Some(4));
    }

    #[test]
    fn a_matrix_names_every_test_that_notices() {
        let fixture = Fixture::new("operators");
        let arguments = ["--json", "--matrix", "--function=Names::lines"];
        let finished = fixture.run("mutate", &arguments);
        let first = &objects(&finished)[0];
        let killers = first["killers"].as_array().expect("it is caught");
        let mut tests: Vec<&str> = killers.iter().filter_map(|one| one["test"].as_str()).collect();
        tests.sort_unstable();
        assert_eq!(tests, ["empty_names_are_left_out", "names::tests::lines_are_joined"]);
    }

    #[test]
    fn a_wrong_declaration_is_told() {
        let fixture = Fixture::new("unequal");
        let finished = fixture.run("mutate", &[]);
        assert_eq!(finished.code, Some(7), "{finished:?}");
        let first = finished.stdout.lines().next().unwrap_or_default();
        assert!(first.starts_with("not equivalent  "), "{finished:?}");
        assert!(finished.stdout.contains("noticed by (1): tests::five_is_not_four"));
    }

    #[test]
    fn the_declarations_of_this_repository_fit() {
        let fixture = Fixture::new("red");
        let arguments = ["--list", "--manifest-path=../../../Cargo.toml", "--package=mortmain"];
        let listed = fixture.run("mutate", &arguments);
        assert_eq!((listed.code, &*listed.stderr), (Some(0), ""));
    }

    #[test]
    fn a_failing_baseline_is_told_and_nothing_is_tried() {
        let fixture = Fixture::new("red");
        let finished = fixture.run("mutate", &[]);
        assert_eq!(finished.code, Some(5), "{finished:?}");
        assert_eq!(finished.stdout, "");
        let told = "tests fail in the unchanged workspace: red tests::is_wrong_about_the_bound";
        assert!(finished.stderr.contains(told), "{}", finished.stderr);
    }

    #[test]
    fn a_selection_without_a_match_is_told() {
        let fixture = Fixture::new("operators");
        for arguments in [
            ["--list", "--file=no/such/file.rs"],
            ["--list", "--package=nobody"],
            ["--list", "--mutant=0123456789"],
            ["--kind=world", "--function=is_small"],
        ] {
            assert_eq!(fixture.run("mutate", &arguments).code, Some(4), "{arguments:?}");
        }
        assert_eq!(fixture.run("mutate", &["--partition=slice:3/2"]).code, Some(2));
        for option in ["--package", "--test-package"] {
            let itself = fixture.run("mutate", &["--list", option, "mortmain-mutants"]);
            assert_eq!(itself.code, Some(2), "{itself:?}");
            assert!(itself.stderr.contains("mortmain-mutants is this program"), "{itself:?}");
        }
    }

    #[test]
    fn an_interrupt_ends_the_hunt_and_prints_what_is_known() {
        let fixture = Fixture::new("operators");
        let mut guard = fixture.start("mutate", &["--verbose", "--function=wait"]);
        let hunts = |line: &str| line.ends_with(": tests::waits") && !line.starts_with("recording");
        guard.lines().expect_line(soon(), "the hunt", hunts).unwrap();
        kill(Pid::from_raw(guard.pid()), Signal::SIGINT).unwrap();
        let status = guard.wait(soon()).unwrap();
        let lines = guard.lines().expect_eof(soon(), "the end of the results").unwrap();
        let summary = lines.last().expect("a summary");
        assert!(summary.starts_with("2 mutants: "), "{lines:?}");
        assert!(summary.contains(" not tried; "), "{lines:?}");
        assert!(matches!(status.code(), Some(1 | 3)), "{lines:?}");
    }
}
