//! `mortmain list`, `mortmain sweep`, and what is printed of the tool itself.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::process::Command;

use mortmain_harness::ground::{Ground, PREFIX};
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::scripts::RUNS_ON;
use serde_json::Value;

use crate::support::{Ran, TOOL, in_cell, lab, ran, tool};

/// Runs a command of the tool on the claims of a ground.
#[track_caller]
fn on(ground: &Ground, args: &[&str]) -> Ran {
    let place =
        ["--prefix".as_ref(), PREFIX.as_ref(), "--root".as_ref(), ground.root().as_os_str()];
    ran(tool(args.iter().map(OsStr::new).chain(place)))
}

/// Each line as JSON of the schema that is promised.
#[track_caller]
fn objects(ran: &Ran) -> Vec<Value> {
    let parsed = ran.lines.iter().map(|line| {
        assert!(line.starts_with(r#"{"schema":1,"type":""#), "{line}");
        serde_json::from_str(line).expect("a line is a JSON object")
    });
    parsed.collect()
}

fn name(path: &std::path::Path) -> String {
    path.file_name().expect("it has a name").display().to_string()
}

/// A row of a table, its columns apart.
fn columns(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|column| !column.is_empty()).collect()
}

#[test]
fn a_list_tells_each_claim_its_owner_and_its_verdict_and_changes_nothing() {
    in_cell(|| {
        let ground = Ground::new(lab());
        let (living, dead) = (ground.owned(), ground.dead());
        let used = ground.orphaned(RUNS_ON);
        fs::create_dir(ground.root().join("t-other")).unwrap();

        let listed = on(&ground, &["list"]);
        assert_eq!(listed.status.code(), Some(0));
        assert_eq!(columns(&listed.lines[0]), ["claim", "owner", "age", "verdict", "why"]);
        assert_eq!(listed.lines.len(), 4, "{listed:#?}");
        let row = |claim: &std::path::Path| {
            let row = listed.lines.iter().find(|line| line.starts_with(&name(claim)));
            columns(row.unwrap_or_else(|| panic!("{listed:#?}")))
        };
        let owner = |pid: i32| format!("{pid} `mortmain-lab`");
        let of_living = row(&living.claim);
        assert_eq!(of_living[1], owner(living.actor.pid()));
        assert_eq!(of_living[3..], ["keep", "its lease is held"]);
        let of_dead = row(&dead);
        assert_eq!(of_dead[3], "remove");
        assert!(of_dead[4].ends_with("has ended; no command is registered"), "{of_dead:?}");
        let of_used = row(&used.claim);
        assert_eq!(of_used[1], owner(used.actor.pid()));
        assert_eq!(of_used[3], "keep");
        assert!(of_used[4].starts_with("the lock of command 0 is held"), "{of_used:?}");
        assert!(dead.is_dir());

        fs::write(living.claim.join("files/data"), vec![1; 3 << 20]).unwrap();
        let sized = on(&ground, &["list", "--size"]);
        assert_eq!(columns(&sized.lines[0])[3], "size");
        let row = sized.lines.iter().find(|line| line.starts_with(&name(&living.claim)));
        assert_eq!(columns(row.expect("it is listed"))[3], "3.0 MiB", "{sized:#?}");
    });
}

#[test]
fn json_has_a_line_a_claim_and_a_summary() {
    in_cell(|| {
        let ground = Ground::new(lab());
        let (living, dead) = (ground.owned(), ground.dead());
        let listed = objects(&on(&ground, &["list", "--json", "--size"]));
        let [claims @ .., summary] = &listed[..] else { panic!("{listed:#?}") };
        assert_eq!(claims.len(), 2);
        let of = |path: &std::path::Path| {
            let claim = claims.iter().find(|claim| claim["name"] == *name(path));
            claim.unwrap_or_else(|| panic!("{listed:#?}"))
        };
        let kept = of(&living.claim);
        assert_eq!(kept["type"], "claim");
        assert_eq!(kept["path"]["text"], living.claim.to_str().expect("it is text"));
        assert_eq!((&kept["place"], &kept["verdict"]), (&"claim".into(), &"keep".into()));
        assert_eq!(kept["owner"]["pid"], living.actor.pid());
        assert_eq!(kept["owner"]["program"]["text"], "mortmain-lab");
        assert_eq!(kept["proofs"]["lease"], "alive");
        assert_eq!(kept["because"], serde_json::json!(["lease-held"]));
        assert!(kept["proofs"]["owner"].is_null() && kept["age_seconds"].is_u64(), "{kept}");
        let gone = of(&dead);
        assert_eq!(gone["verdict"], "remove");
        assert_eq!(gone["proofs"]["commands"], "gone");
        assert_eq!(gone["proofs"]["life"], "gone");
        assert_eq!(gone["because"], serde_json::json!(["owner-ended", "no-commands"]));
        assert_eq!((&summary["type"], &summary["kept"]), (&"summary".into(), &1.into()));
        assert_eq!((&summary["removable"], &summary["removed"]), (&1.into(), &0.into()));

        let swept = objects(&on(&ground, &["sweep", "--json"]));
        let verdicts: Vec<&Value> = swept.iter().map(|line| &line["verdict"]).collect();
        assert!(verdicts.contains(&&"removed".into()), "{swept:#?}");
        assert_eq!(swept.last().expect("there is a summary")["removed"], 1);
    });
}

#[test]
fn a_root_whose_name_is_no_text_is_told_without_loss() {
    in_cell(|| {
        let root = scratch_root().join(OsString::from_vec(b"r\xff".to_vec()));
        fs::create_dir(&root).unwrap();
        let ground = Ground::at(lab(), root);
        let listed = objects(&on(&ground, &["list", "--json"]));
        let mut encode = Command::new("sh");
        encode.args(["-c", "printf %s \"$0\" | base64 --wrap=0"]).arg(ground.root());
        assert_eq!(listed[0]["root"]["base64"], *ran(encode).lines[0]);
        assert!(listed[0]["root"]["text"].is_null());
    });
}

#[test]
fn a_sweep_removes_what_nobody_uses_and_tells_every_claim() {
    in_cell(|| {
        let ground = Ground::new(lab());
        let living = ground.owned();
        let dead = [(); 3].map(|()| ground.dead());
        let look = on(&ground, &["sweep", "--dry-run"]);
        assert_eq!(
            look.lines.last().map(String::as_str),
            Some("3 claims would be removed, 1 kept")
        );
        assert!(dead.iter().all(|claim| claim.is_dir()));

        let one = on(&ground, &["sweep", "--budget", "0s"]);
        let last = one.lines.last().expect("there is a summary");
        assert!(last.ends_with(", 3 left for later"), "{last}");

        let swept = on(&ground, &["sweep"]);
        assert_eq!(swept.status.code(), Some(0));
        let kept = format!("{}: kept: its lease is held", name(&living.claim));
        assert!(swept.lines.contains(&kept), "{swept:#?}");
        assert_eq!(ground.names(), [OsString::from(name(&living.claim))]);
        assert_eq!(on(&ground, &["sweep", "--quiet"]).lines, [""; 0]);
    });
}

#[test]
fn an_empty_root_is_told_beside_the_results() {
    in_cell(|| {
        let ground = Ground::new(lab());
        let listed = on(&ground, &["list"]);
        let told =
            format!("mortmain: there is no claim of prefix `t` in {}", ground.root().display());
        assert_eq!(listed.told(), (Some(0), vec![told.as_str()]));
        assert_eq!(on(&ground, &["sweep"]).told(), (Some(0), vec!["0 claims removed"]));
    });
}

#[test]
fn colours_are_for_terminals_and_for_who_asks() {
    in_cell(|| {
        let ground = Ground::new(lab());
        let _dead = ground.dead();
        let escapes = |args: &[&str]| on(&ground, args).lines.iter().any(|l| l.contains('\u{1b}'));
        assert!(!escapes(&["list"]));
        assert!(escapes(&["list", "--color", "always"]), "it is asked for, whatever NO_COLOR says");
        assert!(!escapes(&["list", "--color", "never"]));
    });
}

#[test]
fn a_reader_that_has_gone_is_no_error_and_a_full_disk_is_one() {
    in_cell(|| {
        let ground = Ground::new(lab());
        let _dead = ground.dead();
        let ends = |line: &str| {
            let mut command = Command::new("sh");
            let list = "\"$0\" list --prefix t --root \"$1\"";
            command.args(["-c", &format!("{}; echo $?", line.replace("LIST", list)), TOOL]);
            command.arg(ground.root()).current_dir(scratch_root()).env("NO_COLOR", "1");
            ran(command).lines
        };
        assert_eq!(ends("mkfifo pipe; exec 3<>pipe 4>pipe 3<&-; LIST >&4 2>&1"), ["0"]);
        let full = "mortmain: error: No space left on device (os error 28)";
        assert_eq!(ends("LIST 2>&1 >/dev/full"), [full, "70"]);
    });
}

#[test]
fn completions_and_manual_pages_come_whole() {
    in_cell(|| {
        for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
            let script = ran(tool(["completions", shell]));
            assert_eq!(script.status.code(), Some(0));
            let text = script.lines.join("\n");
            for word in ["dry-run", "budget", "sweep", "adopt", "interactive"] {
                assert!(text.contains(word), "{shell} knows no {word}");
            }
            assert!(
                !text.contains("exec-in-foreground"),
                "{shell} completes what is not for people"
            );
        }
        for page in ["", "run", "list", "sweep", "adopt"] {
            let page: Vec<&str> =
                ["man", page].into_iter().filter(|word| !word.is_empty()).collect();
            let page = ran(tool(page));
            assert_eq!(page.status.code(), Some(0));
            assert!(page.lines.iter().any(|line| line.starts_with(".TH mortmain")), "{page:#?}");
        }
    });
}

#[test]
fn a_claim_that_nobody_can_answer_for_goes_by_the_word_of_who_knows() {
    in_cell(|| {
        let ground = Ground::new(lab());
        let (damaged, living) = (ground.dead(), ground.owned());
        fs::remove_file(damaged.join("owner")).unwrap();
        assert_eq!(on(&ground, &["sweep"]).status.code(), Some(0));
        assert!(damaged.is_dir(), "a sweep cannot tell");

        let (damaged_name, living_name) = (name(&damaged), name(&living.claim));
        let dry = on(&ground, &["sweep", "--claim", &damaged_name, "--trust-me", "--dry-run"]);
        assert!(dry.lines[0].contains("would be removed"), "{dry:#?}");
        assert!(damaged.is_dir());
        let swept = on(&ground, &["sweep", "--claim", &damaged_name, "--trust-me"]);
        assert_eq!(swept.status.code(), Some(0), "{swept:#?}");
        assert!(!damaged.exists(), "{swept:#?}");

        // What lives is no matter of anybody's word.
        let kept = on(&ground, &["sweep", "--claim", &living_name, "--trust-me"]);
        assert!(kept.lines[0].ends_with("kept: its lease is held"), "{kept:#?}");
        assert!(living.claim.is_dir());

        let gone = on(&ground, &["sweep", "--claim", &damaged_name, "--trust-me"]);
        assert_eq!(gone.status.code(), Some(2), "{gone:#?}");
        for args in [&["sweep", "--claim", &living_name][..], &["sweep", "--trust-me"]] {
            assert_eq!(on(&ground, args).status.code(), Some(2), "{args:?}");
        }
    });
}
