//! The commands that the README shows: a suite under each of three runners, killed at random.
//!
//! Each suite leaves what suites leave: directories, some of which nobody may enter, links outwards,
//! a child in a session of its own that goes on for a while. The run is killed after so many lines of
//! its output, and the runner with it or not. When everybody has ended, the next run has to leave
//! nothing.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use mortmain_harness::cell::Entry;
use mortmain_harness::ground::names_in;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::processes::processes;
use mortmain_harness::reader::ReadErrorKind;
use mortmain_harness::scenario::Need;
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::wait::{Deadline, Watch};

use crate::chance::Numbers;
use crate::support::{lab, others_end, ran, run_in, tool};

/// Kills in one test.
const ROUNDS: u64 = 4;

/// Of a runner that compiles its suite first, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// Of the whole test: who waits in vain in it can say for what.
const WHOLE: Duration = Duration::from_secs(230);

/// A runner, and a suite for it.
struct Suite {
    /// The programs that have to be there.
    needs: &'static [&'static str],
    /// What stands after `mortmain run --`.
    command: &'static [&'static str],
    /// The files of the suite. `OUTSIDE` stands for what a link leads to.
    files: &'static [(&'static str, &'static str)],
    /// About how many lines the runner says.
    lines: u64,
}

const NEXTEST: Suite = Suite {
    needs: &["cargo", "cargo-nextest"],
    command: &["cargo", "nextest", "run", "--offline", "--no-fail-fast"],
    files: &[
        (
            "Cargo.toml",
            "[package]\nname = \"leaves\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n",
        ),
        ("src/lib.rs", ""),
        (
            "tests/leaves.rs",
            r#"use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::{env, fs};

fn leaves(name: &str) {
    let dir = env::temp_dir().join(name);
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("file"), name).unwrap();
    symlink("OUTSIDE", dir.join("link")).unwrap();
    let child = "i=0; while [ $i -lt 200 ]; do i=$((i + 1)); echo $i > count; done";
    Command::new("setsid").args(["sh", "-c", child]).current_dir(&dir).spawn().unwrap();
    let sealed = dir.join("sealed");
    fs::create_dir(&sealed).unwrap();
    fs::set_permissions(&sealed, fs::Permissions::from_mode(0)).unwrap();
}

#[test] fn one() { leaves("one") }
#[test] fn two() { leaves("two") }
#[test] fn three() { leaves("three") }
#[test] fn four() { leaves("four") }
#[test] fn five() { leaves("five") }
#[test] fn six() { leaves("six") }
"#,
        ),
    ],
    lines: 14,
};

const PYTEST: Suite = Suite {
    needs: &["pytest"],
    command: &["pytest", "-v", "-p", "no:cacheprovider"],
    files: &[(
        "test_leaves.py",
        r#"import os, subprocess, tempfile, pytest

@pytest.mark.parametrize("number", range(8))
def test_leaves(number, tmp_path):
    for at in (str(tmp_path), tempfile.mkdtemp()):
        with open(os.path.join(at, "file"), "w") as file:
            file.write(str(number))
        os.symlink("OUTSIDE", os.path.join(at, "link"))
        child = "i=0; while [ $i -lt 200 ]; do i=$((i + 1)); echo $i > count; done"
        subprocess.Popen(["sh", "-c", child], cwd=at, start_new_session=True)
        os.mkdir(os.path.join(at, "sealed"), 0)
"#,
    )],
    lines: 14,
};

const NPM: Suite = Suite {
    needs: &["npm", "node"],
    command: &["npm", "test"],
    files: &[
        (
            "package.json",
            r#"{ "name": "leaves", "version": "0.0.0", "scripts": { "test": "node leaves.test.js" } }"#,
        ),
        (
            "leaves.test.js",
            r#"const { test } = require("node:test");
const { spawn } = require("node:child_process");
const fs = require("node:fs"), os = require("node:os"), path = require("node:path");

for (let number = 0; number < 8; number++) {
  test(`leaves ${number}`, () => {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), "leaves-"));
    fs.writeFileSync(path.join(dir, "file"), String(number));
    fs.symlinkSync("OUTSIDE", path.join(dir, "link"));
    const child = "i=0; while [ $i -lt 200 ]; do i=$((i + 1)); echo $i > count; done";
    spawn("sh", ["-c", child], { cwd: dir, detached: true, stdio: "ignore" }).unref();
    fs.mkdirSync(path.join(dir, "sealed"), { mode: 0 });
  });
}
"#,
        ),
    ],
    lines: 30,
};

impl Suite {
    /// Whether all is there that it needs; says what is not, where the runner captures it.
    fn is_possible(&self) -> bool {
        let missing = |name: &&str| Need::Program((*name).into()).missing();
        let missing = self.needs.iter().find_map(missing);
        if let Some(why) = &missing {
            eprintln!("skipped: {why}, so nothing is known here of `{}`", self.command.join(" "));
        }
        missing.is_none()
    }

    fn write(&self, project: &Path, outside: &Path) {
        let outside = outside.to_str().expect("it is text");
        for (name, text) in self.files {
            let path = project.join(name);
            // OK because it lies below the project.
            fs::create_dir_all(path.parent().expect("it has one")).unwrap();
            fs::write(path, text.replace("OUTSIDE", outside)).unwrap();
        }
    }

    /// `mortmain run --` with it.
    fn run(&self, project: &Path, root: &Path) -> Command {
        let own = ["run", "--budget", "60s", "--root"].map(OsStr::new);
        let args = own.into_iter().chain([root.as_os_str(), "--".as_ref()]);
        let mut run = tool(args.chain(self.command.iter().map(OsStr::new)));
        // Those of the runner that runs this test are not for this one.
        for (name, _) in std::env::vars_os() {
            let foreign = ["NEXTEST", "CARGO_", "RUST_TEST", "RUSTFLAGS", "npm_", "PYTEST"];
            if foreign.iter().any(|own| name.to_string_lossy().starts_with(own)) {
                run.env_remove(&name);
            }
        }
        run.current_dir(project).env("PYTHONDONTWRITEBYTECODE", "1");
        // Nothing of the runners themselves goes to where they keep it for their user.
        run.env("CARGO_HOME", project.join("cargo-home")).env("npm_config_cache", project);
        run.env("npm_config_update_notifier", "false");
        run
    }

    fn leaves_nothing(&self) {
        if !self.is_possible() {
            return;
        }
        let mut numbers = Numbers::announced();
        let [project, root, outside] = [(); 3].map(|()| scratch_root());
        fs::write(outside.join("precious"), "text").unwrap();
        self.write(&project, &outside);
        let mut left_once = false;
        for round in 0..=ROUNDS {
            let after = match round {
                // To its end: nothing below says anything of a suite that cannot run.
                0 => u64::MAX,
                // Once in any case while it runs.
                1 => 1,
                _ => numbers.below(self.lines),
            };
            let with_runner = round > 0 && numbers.below(2) == 0;
            match round {
                0 => println!("round 0: to its end"),
                _ => println!("round {round}: {after} lines, with its runner: {with_runner}"),
            }
            let mut run = ChildGuard::spawn(self.run(&project, &root)).unwrap();
            let said = lines_of(&mut run, after);
            if round == 0 {
                let status = run.wait(Deadline::after(PATIENCE)).unwrap();
                assert!(status.success(), "the suite itself fails: {said:#?}");
            } else {
                kill(&mut run, with_runner);
            }
            others_end(Deadline::after(PATIENCE));
            left_once |= round > 0 && !names_in(&root).is_empty();
            let next = ran(run_in(&root, &["--verbose"], "true"));
            assert!(names_in(&root).is_empty(), "{next:#?}");
            assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "text");
        }
        assert!(left_once, "no run was killed before its end, so nothing was tried");
    }
}

/// So many lines of a run, or fewer if it ends before.
fn lines_of(run: &mut ChildGuard, count: u64) -> Vec<String> {
    let mut lines = Vec::new();
    while (lines.len() as u64) < count {
        match run.lines().next_line(Deadline::after(PATIENCE), "a line of the suite") {
            Ok(line) => lines.push(line),
            Err(error) if matches!(error.kind(), ReadErrorKind::Ended) => break,
            Err(error) => panic!("{error}"),
        }
    }
    lines
}

/// Kills the tool, and the process that it runs if asked to.
fn kill(run: &mut ChildGuard, with_runner: bool) {
    let (tool, all) = (run.pid(), processes().unwrap());
    let children = all.iter().filter(|info| info.ppid == tool).map(|info| info.pid);
    let runners: Vec<Watch> = children.filter_map(|pid| Watch::open(pid).unwrap()).collect();
    run.kill_hard().unwrap();
    for runner in runners.iter().filter(|_| with_runner) {
        runner.kill().unwrap();
    }
}

#[track_caller]
fn check(suite: &'static Suite) {
    Entry::new(lab()).deadline(WHOLE).run(|| suite.leaves_nothing());
}

#[test]
fn a_cargo_nextest_run_that_is_killed_at_random_leaves_nothing_after_the_next_run() {
    check(&NEXTEST);
}

#[test]
fn a_pytest_run_that_is_killed_at_random_leaves_nothing_after_the_next_run() {
    check(&PYTEST);
}

#[test]
fn an_npm_test_run_that_is_killed_at_random_leaves_nothing_after_the_next_run() {
    check(&NPM);
}
