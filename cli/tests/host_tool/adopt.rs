//! `mortmain adopt`: what it shows of directories that are no claims, and that it removes what it is
//! told to, and nothing else.

use std::fs::{self, File};
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use mortmain_harness::ground::{Ground, is_root, names_in};
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::scratch::scratch_root;
use serde_json::Value;

use crate::seat::{BASH, Seat};
use crate::support::{Ran, TOOL, in_cell, lab, ran, said, tool};

/// A directory that some other program left.
fn left(root: &Path, name: &str) -> PathBuf {
    let dir = root.join(name);
    fs::create_dir_all(dir.join("deep/er")).unwrap();
    fs::write(dir.join("deep/file"), "left").unwrap();
    dir
}

/// A process that works in a directory and has something in it open.
fn works_in(dir: &Path) -> ChildGuard {
    let mut command = Command::new("sh");
    command.args(["-c", "exec 3>log; echo works; read x"]).current_dir(dir);
    let mut works = ChildGuard::spawn_with_stdin(command).unwrap();
    said(&mut works, "that it works there");
    works
}

#[track_caller]
fn adopt(root: &Path, args: &[&str]) -> Ran {
    let place = ["adopt".as_ref(), "--root".as_ref(), root.as_os_str()];
    ran(tool(place.into_iter().chain(args.iter().map(AsRef::as_ref))))
}

/// What was said of a directory: its row, and those below it.
#[track_caller]
fn rows_of<'r>(ran: &'r Ran, name: &str) -> Vec<&'r str> {
    let mut rows = ran.lines.iter().map(String::as_str);
    let row = rows.find(|line| line.split(' ').next() == Some(name));
    let row = row.unwrap_or_else(|| panic!("{ran:#?}"));
    std::iter::once(row).chain(rows.take_while(|line| line.starts_with(' '))).collect()
}

/// The warning of a cell, which is a pid namespace of its own.
const OTHERS_UNSEEN: &str = "mortmain: warning: this is not the machine's first pid namespace, or /proc hides processes: \
     those that are not seen from here may use any of these";

#[test]
fn it_shows_what_the_pattern_matches_with_everybody_who_uses_it_and_removes_nothing() {
    in_cell(|| {
        let root = scratch_root();
        let (used, unused) = (left(&root, "build-1"), left(&root, "build-2"));
        left(&root, "other");
        left(&root, ".build-3");
        fs::write(root.join("build-file"), "").unwrap();
        symlink(&unused, root.join("build-link")).unwrap();
        let (one, two) = (works_in(&used), works_in(&used));
        let shown = adopt(&root, &["build-*", "--size"]);
        assert_eq!(shown.status.code(), Some(0), "{shown:#?}");
        let headings: Vec<&str> = shown.lines[0].split_whitespace().collect();
        assert_eq!(headings, ["directory", "age", "size", "verdict", "why"]);
        let of_used = rows_of(&shown, "build-1");
        assert!(of_used[0].contains("  keep "), "{shown:#?}");
        let mut pids = [one.pid(), two.pid()];
        pids.sort_unstable();
        for (line, pid) in of_used.iter().zip(pids) {
            let does = "has its working directory in it, has something in it open";
            assert!(line.ends_with(&format!("process {pid} `sh` {does}")), "{shown:#?}");
        }
        assert_eq!(of_used.len(), 2);
        let of_unused = rows_of(&shown, "build-2");
        assert!(of_unused[0].ends_with("  unused   no process is seen to use it"), "{shown:#?}");
        let next = "mortmain: nothing was removed; name what is to go by --remove NAME…, or use \
                    --interactive";
        assert_eq!(shown.lines[4..], [OTHERS_UNSEEN, next], "{shown:#?}");
        assert!(unused.join("deep/file").exists());

        let hidden = adopt(&root, &[".b*", "othe?"]);
        let names: Vec<_> = hidden.lines[1..3].iter().map(|line| line.split(' ').next()).collect();
        assert_eq!(names, [Some(".build-3"), Some("other")]);
        let none = adopt(&root, &["nothing-*"]);
        let said =
            format!("mortmain: there is no such directory in {} that is no claim", root.display());
        assert_eq!(none.told(), (Some(0), vec![said.as_str()]));
    });
}

#[test]
fn what_is_named_goes_if_nobody_uses_it_and_what_is_used_stays() {
    in_cell(|| {
        let root = scratch_root();
        let (used, _unused, _stays) =
            (left(&root, "build-1"), left(&root, "build-2"), left(&root, "build-3"));
        let mut works = works_in(&used);
        let done = adopt(&root, &["--remove", "build-1", "build-2"]);
        assert_eq!(done.status.code(), Some(0), "{done:#?}");
        assert!(rows_of(&done, "build-1")[0].contains("  keep "), "{done:#?}");
        let removed = "nobody recorded who uses it (removed on an operator's word)";
        assert!(rows_of(&done, "build-2")[0].ends_with(removed), "{done:#?}");
        assert_eq!(names_in(&root), ["build-1", "build-3"]);
        works.kill_hard().unwrap();
        adopt(&root, &["--remove", "build-1"]);
        assert_eq!(names_in(&root), ["build-3"]);
    });
}

#[test]
fn json_has_a_line_a_directory_with_its_users_and_a_summary() {
    in_cell(|| {
        let root = scratch_root();
        let (used, _) = (left(&root, "build-1"), left(&root, "build-2"));
        let works = works_in(&used);
        let objects = |ran: &Ran| -> Vec<Value> {
            let parsed = ran.lines.iter().map(|line| serde_json::from_str(line));
            parsed.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}: {ran:#?}"))
        };
        let shown = objects(&adopt(&root, &["build-?", "--json", "--size"]));
        let [one, two, summary] = &shown[..] else { panic!("{shown:#?}") };
        assert_eq!((&one["schema"], &one["type"]), (&1.into(), &"stray".into()));
        assert_eq!(one["name"]["text"], "build-1");
        assert_eq!(one["path"]["text"], used.to_str().expect("it is text"));
        assert_eq!((&one["verdict"], &two["verdict"]), (&"keep".into(), &"unused".into()));
        assert_eq!(one["because"], serde_json::json!(["used-as-working-directory"]));
        assert_eq!(two["because"], serde_json::json!(["never-recorded"]));
        let uses = serde_json::json!([{
            "pid": works.pid(),
            "program": { "text": "sh" },
            "uses": ["used-as-working-directory", "used-by-descriptor"],
        }]);
        assert_eq!((&one["users"], &two["users"]), (&uses, &serde_json::json!([])));
        assert!(one["age_seconds"].is_u64() && one["bytes"].is_u64(), "{one}");
        let counts = ["unused", "kept", "removed", "blocked"].map(|field| &summary[field]);
        assert_eq!(counts, [1, 1, 0, 0]);
        assert_eq!((&summary["dry_run"], &summary["partial_view"]), (&true.into(), &true.into()));

        // The same sentences as in the table.
        let table = adopt(&root, &["build-?"]);
        for (object, name) in [(one, "build-1"), (two, "build-2")] {
            let why = object["why"].as_str().expect("it is text");
            assert!(rows_of(&table, name)[0].ends_with(why), "{why}: {table:#?}");
        }

        let done = objects(&adopt(&root, &["--json", "--size", "--remove", "build-2"]));
        assert_eq!((&done[0]["verdict"], &done[1]["removed"]), (&"removed".into(), &1.into()));
        // What it was before it went.
        assert_eq!(done[0]["bytes"], two["bytes"]);
        assert!(done[0]["age_seconds"].is_u64(), "{done:#?}");
        assert_eq!(done[1]["dry_run"], false);
    });
}

#[test]
fn what_is_no_such_directory_is_told_and_the_rest_is_done() {
    in_cell(|| {
        let ground = Ground::new(lab());
        let root = ground.root();
        let (dead, goes) = (ground.dead(), left(root, "goes"));
        fs::write(root.join("file"), "").unwrap();
        symlink(&dead, root.join("link")).unwrap();
        nix::unistd::mkfifo(&root.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let dead_name = dead.file_name().and_then(|name| name.to_str()).expect("it is text");
        let names = ["file", "link", "fifo", "nothing", "a/b", "..", dead_name];
        let args: Vec<&str> = ["--remove"].into_iter().chain(names).chain(["goes"]).collect();
        let done = adopt(root, &args);
        assert_eq!(done.status.code(), Some(2), "{done:#?}");
        let wrong = done.lines.iter().filter(|line| line.starts_with("mortmain: error: cannot"));
        assert_eq!(wrong.count(), names.len(), "{done:#?}");
        assert!(!goes.exists() && dead.join("owner").is_symlink());
        let none = adopt(root, &["--json", "--remove", "nothing"]);
        let [error, summary] = &none.lines[..] else { panic!("{none:#?}") };
        assert!(error.starts_with("mortmain: error: cannot"), "{none:#?}");
        let summary: Value = serde_json::from_str(summary).unwrap();
        assert_eq!((&summary["type"], &summary["removed"]), (&"summary".into(), &0.into()));
        assert_eq!(none.status.code(), Some(2));
        assert_eq!(ground.names().len(), 4);

        let shown = adopt(root, &["*"]);
        let claims = format!(
            "mortmain: {}: 1 called as claims are, which `mortmain sweep` judges",
            root.display()
        );
        assert!(shown.lines.contains(&claims), "{shown:#?}");
    });
}

#[test]
fn hostile_things_in_it_hold_nothing_up_and_nothing_outside_is_touched() {
    in_cell(|| {
        let (root, outside) = (scratch_root(), scratch_root());
        fs::write(outside.join("precious"), "text").unwrap();
        let dir = left(&root, "build-1");
        symlink(&outside, dir.join("link")).unwrap();
        nix::unistd::mkfifo(&dir.join("owner"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut deep = dir.join("x".repeat(255));
        for _ in 0..8 {
            fs::create_dir(&deep).unwrap();
            deep.push("y");
        }
        let done = adopt(&root, &["--remove", "build-1"]);
        assert!(rows_of(&done, "build-1")[0].contains("  removed "), "{done:#?}");
        assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "text");
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn a_descriptor_a_mount_and_others_directories_keep_it_whole_and_are_told() {
    in_cell(|| {
        let root = scratch_root();
        let opened = left(&root, "opened");
        let _descriptor = File::open(opened.join("deep")).unwrap();
        let mut names = vec!["opened"];
        let mut told = vec!["process"];
        if is_root("nothing can be mounted or given away") {
            let (mounted, others) = (left(&root, "mounted"), left(&root, "others"));
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "tmpfs"]).arg(mounted.join("deep/er"));
            assert!(ran(mount).status.success());
            chown(others.join("deep"), Some(1000), None).unwrap();
            names.extend(["mounted", "others"]);
            told.extend(["a mount lies on `deep/er` inside", "`deep` inside belongs to user 1000"]);
        }
        let args: Vec<&str> = ["--remove"].into_iter().chain(names.iter().copied()).collect();
        let done = adopt(&root, &args);
        for (name, why) in names.into_iter().zip(told) {
            assert!(rows_of(&done, name)[0].contains(why), "{name}: {done:#?}");
            assert!(root.join(name).join("deep").is_dir());
        }
    });
}

#[test]
fn a_claim_inside_keeps_it_until_a_sweep_took_the_claim() {
    in_cell(|| {
        let root = scratch_root();
        let dir = left(&root, "build-1");
        let ground = Ground::at(lab(), dir.join("deep"));
        let mut owned = ground.owned();
        let living = adopt(&root, &["--remove", "build-1"]);
        let told = format!("process {} `mortmain-lab` has something in it open", owned.actor.pid());
        assert!(rows_of(&living, "build-1")[0].ends_with(&told), "{living:#?}");
        owned.actor.kill();
        let claim = owned.claim.strip_prefix(&dir).unwrap().display();
        let dead = adopt(&root, &["--remove", "build-1"]);
        let told = format!("`{claim}` inside is a claim, which a sweep judges");
        assert!(rows_of(&dead, "build-1")[0].ends_with(&told), "{dead:#?}");
        assert_eq!(ground.sweep().removed(), 1);
        adopt(&root, &["--remove", "build-1"]);
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn wrong_usage_is_told() {
    in_cell(|| {
        let root = scratch_root();
        left(&root, "build-1");
        for (args, why) in [
            (&[][..], "PATTERN"),
            (&["a/b"], "a pattern is of one name; give the directory by --root"),
            (&["[a"], "the `[` at character 1 has no `]`; write `[[]` for the character itself"),
            (&["a***"], "`*` alone is any text"),
            (&["build-1", "--remove", "build-1"], "cannot be used with"),
            (&["build-1", "--interactive", "--json"], "cannot be used with"),
            (&["build-1", "--interactive"], "there is no terminal to ask at"),
        ] {
            let ran = adopt(&root, args);
            assert_eq!(ran.status.code(), Some(2), "{args:?}: {ran:#?}");
            assert!(ran.lines.iter().any(|line| line.contains(why)), "{args:?}: {ran:#?}");
        }
        assert_eq!(names_in(&root), ["build-1"]);
    });
}

#[test]
fn on_a_terminal_it_asks_for_each_and_removes_what_it_is_told_to() {
    in_cell(|| {
        let root = scratch_root();
        for name in ["build-1", "build-2", "build-3", "build-4"] {
            left(&root, name);
        }
        let mut seat = Seat::at(&BASH);
        let line = format!("{TOOL} adopt --root {} -i 'build-*'; echo code $?\n", root.display());
        seat.types(&line);
        seat.sees_where("the last row", |line| line.starts_with("build-4 "));
        // The questions end no line; the answer to the first ends the line of the second.
        seat.types("n\ny\n");
        seat.sees_where("what came of it", |line| {
            line.ends_with(
                "build-2: removed: nobody recorded who uses it (removed on an operator's word)",
            )
        });
        seat.types("q\n");
        seat.sees_where("its end", |line| line.ends_with("code 0"));
        assert_eq!(names_in(&root), ["build-1", "build-3", "build-4"]);
        // Ctrl-D is no word.
        seat.types(&line);
        seat.sees_where("the last row", |line| line.starts_with("build-4 "));
        seat.types("\u{4}");
        seat.sees_where("its end", |line| line.ends_with("code 0"));
        assert_eq!(names_in(&root), ["build-1", "build-3", "build-4"]);
    });
}

#[test]
fn what_somebody_came_to_use_since_it_was_shown_stays_for_all_the_answer() {
    in_cell(|| {
        let root = scratch_root();
        let dir = left(&root, "build-1");
        let mut seat = Seat::at(&BASH);
        seat.types(&format!("{TOOL} adopt --root {} -i 'build-*'\n", root.display()));
        seat.sees_where("the row", |line| line.contains("no process is seen to use it"));
        let works = works_in(&dir);
        seat.types("y\n");
        let told = format!("build-1: kept: process {} `sh` has its working", works.pid());
        seat.sees_where("what keeps it", |line| line.contains(&told));
        assert!(dir.join("deep/file").exists());
    });
}
