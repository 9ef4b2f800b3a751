//! Directories for tests: where they lie, who has them, and what is left of suites that are killed
//! (x1–x4).

use std::cell::RefCell;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use mortmain::protocol::Sandbox;
use mortmain::sys::{Call, Host, Kernel, Name, PathBytes};
use mortmain::{Error, ErrorKind};
use mortmain_harness::ground::names_in;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::intercept::{Intercept, Moment, copy_of};
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::wait::Deadline;
use mortmain_harness::{cell, descriptors};

const LAB: &str = env!("CARGO_BIN_EXE_mortmain-lab");

/// Suites that are killed at a moment of the seed's.
const SUITES: u64 = 20;

fn soon() -> Deadline {
    Deadline::secs(20)
}

/// A build tree and a temporary directory, as a suite sees them.
struct Trees {
    target: PathBuf,
    temp: PathBuf,
}

#[track_caller]
fn in_cell(body: impl FnOnce(&Trees)) {
    cell::enter(LAB, || {
        let root = scratch_root();
        let trees = Trees { target: root.join("target"), temp: root.join("temp") };
        fs::create_dir(&trees.temp).unwrap();
        body(&trees);
    });
}

impl Trees {
    #[track_caller]
    fn start(&self, role: &str) -> ChildGuard {
        let mut command = Command::new(LAB);
        command.args(["part", role]);
        command.env("CARGO_TARGET_DIR", &self.target).env("TMPDIR", &self.temp);
        ChildGuard::spawn_with_stdin(command).expect("the lab can be started")
    }

    /// What lies where sandboxes lie.
    fn left(&self) -> Vec<PathBuf> {
        let base = self.target.join("tmp/sandbox-mortmain-harness");
        let mut left = Vec::new();
        for dir in [base, self.temp.clone()] {
            if dir.is_dir() {
                left.extend(names_in(&dir).into_iter().map(|name| dir.join(name)));
            }
        }
        left
    }
}

/// What cannot be killed is what comes next; so the numbers that it draws are the seed's.
fn next(random: &mut u64) -> u64 {
    *random =
        random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *random >> 33
}

#[test]
fn of_suites_that_are_killed_at_any_moment_one_directory_a_tag_is_left() {
    let seed = std::env::var("MORTMAIN_SEED").map_or(1, |seed| match seed.parse() {
        Ok(seed) => seed,
        Err(wrong) => panic!("MORTMAIN_SEED={seed}: {wrong}"),
    });
    println!("again with MORTMAIN_SEED={seed}");
    in_cell(|trees| {
        let mut random = seed;
        let mut paths = Vec::new();
        let mut left_once = false;
        for _ in 0..SUITES {
            let mut suite = trees.start("sandbox-suite");
            let mut pid = suite.pid().to_string();
            pid.insert(0, '/');
            for _ in 0..1 + next(&mut random) % 12 {
                let path = suite.lines().next_line(soon(), "where it works").unwrap();
                assert!(!path.contains(&pid), "{path} tells the process");
                let at = Path::new(&path);
                assert_eq!(at.starts_with(&trees.temp), path.contains("suite-detached"), "{path}");
                assert!(at.starts_with(&trees.target) || at.starts_with(&trees.temp), "{path}");
                paths.push(path);
            }
            suite.kill_hard().unwrap();
            // Between two tags it has none.
            let left = trees.left();
            assert!(left.len() <= 3, "{left:?}");
            left_once |= !left.is_empty();
        }
        assert!(left_once, "no suite was killed in its directory, so nothing was tried");
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), 3, "each tag is one directory in every run: {paths:?}");
    });
}

/// How many directories there are after each of five suites that were killed with one.
#[track_caller]
fn left_by(trees: &Trees, role: &str) -> [usize; 5] {
    [(); 5].map(|()| {
        let mut suite = trees.start(role);
        suite.lines().next_line(soon(), "where it works").unwrap();
        suite.kill_hard().unwrap();
        trees.left().len()
    })
}

/// The design that tags were chosen over.
#[test]
fn names_with_a_pid_leave_a_directory_for_every_suite_that_is_killed() {
    in_cell(|trees| {
        assert_eq!(left_by(trees, "sandbox-hold"), [1; 5]);
        // Beside that one.
        assert_eq!(left_by(trees, "sandbox-hold-by-pid"), [2, 3, 4, 5, 6]);
    });
}

/// The example shows what it says, and leaves nothing.
#[test]
fn the_example_of_a_helper_that_leaks_tells_the_same() {
    in_cell(|trees| {
        let example = Path::new(LAB).with_file_name("examples").join("sandbox");
        assert!(example.exists(), "`cargo build --package mortmain --examples` first");
        let mut command = Command::new(example);
        command.env("CARGO_TARGET_DIR", &trees.target).env("TMPDIR", &trees.temp);
        let mut example = ChildGuard::spawn(command).unwrap();
        let said = example.lines().expect_eof(soon(), "the end of the example").unwrap();
        assert!(example.wait(soon()).unwrap().success(), "{said:?}");
        let expected = [
            "a pid in its name: 5 killed suites left 5 behind",
            "a tag: 5 killed suites left 1 behind",
        ];
        assert_eq!(said, expected);
        assert!(trees.left().is_empty(), "{:?}", trees.left());
        assert_eq!(names_in(&trees.target.join("tmp/sandbox-mortmain")), [""; 0]);
    });
}

#[test]
fn a_static_that_is_never_dropped_finds_its_directory_empty_in_the_next_run() {
    in_cell(|trees| {
        let mut paths = Vec::new();
        for _ in 0..2 {
            let mut part = trees.start("sandbox-static");
            paths.push(part.lines().next_line(soon(), "that it found it empty").unwrap());
            assert!(part.wait(soon()).unwrap().success());
        }
        assert_eq!(paths[0], paths[1]);
        assert_eq!(trees.left().len(), 1);
    });
}

#[test]
fn what_is_let_go_leaves_nothing() {
    in_cell(|trees| {
        let mut holder = trees.start("sandbox-hold");
        holder.lines().next_line(soon(), "that it has it").unwrap();
        assert_eq!(trees.left().len(), 1);
        holder.close_stdin();
        assert!(holder.wait(soon()).unwrap().success());
        assert!(trees.left().is_empty(), "{:?}", trees.left());
    });
}

#[test]
fn a_forked_child_that_drops_its_copy_removes_nothing() {
    in_cell(|trees| {
        let mut forked = trees.start("sandbox-forked");
        assert_eq!(forked.lines().next_line(soon(), "how it went").unwrap(), "as it should be");
        assert!(forked.wait(soon()).unwrap().success());
    });
}

/// Cargo tells integration tests where it is; a unit test of the library finds the same.
#[test]
fn an_integration_test_has_its_directory_where_cargo_says() {
    let site = mortmain::__sandbox_site!();
    assert_eq!(site.target_tmpdir, Some(env!("CARGO_TARGET_TMPDIR")));
    assert_eq!(site.package, "mortmain-lab");
    assert!(site.place.starts_with("tests/host_sandbox.rs:"), "{}", site.place);
}

fn take<K: Kernel>(kernel: &K, base: &Path, site: &str) -> Result<Sandbox<K>, Error> {
    let base = PathBytes::from(base.as_os_str().as_bytes());
    Sandbox::take(kernel, &base, Name::fixed("tag"), site)
}

#[track_caller]
fn error_of<T>(answer: Result<T, Error>) -> (ErrorKind, String) {
    match answer {
        Ok(_) => panic!("it did not fail"),
        Err(error) => (error.kind(), error.to_string()),
    }
}

#[test]
fn two_users_of_one_tag_are_an_error_that_names_both() {
    in_cell(|trees| {
        let first = take(&Host, &trees.temp, "tests/one.rs:3:5").unwrap();
        let (kind, said) = error_of(take(&Host, &trees.temp, "tests/two.rs:7:9"));
        assert_eq!(kind, ErrorKind::TagInUse);
        let expected = format!(
            "cannot take the test directory {}: it is in use by tests/one.rs:3:5, and wanted by \
             tests/two.rs:7:9; give each user a tag of its own, or wait until the other one has \
             ended",
            trees.temp.join("tag").display()
        );
        assert_eq!(said, expected);
        let files = first.files();
        assert_eq!(names_in(Path::new(std::ffi::OsStr::from_bytes(&files.0))), [""; 0]);
        {
            let _ends = first;
        }
        let _second = take(&Host, &trees.temp, "tests/two.rs:7:9").unwrap();
    });
}

#[test]
fn what_a_killed_test_left_is_removed_by_the_rules_of_the_remover() {
    in_cell(|trees| {
        let (left, outside) = (trees.temp.join("tag"), trees.temp.join("outside"));
        fs::create_dir_all(left.join("files/deep/er")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("precious"), "somebody's").unwrap();
        symlink(&outside, left.join("files/link")).unwrap();
        symlink("tests/dead.rs:1:1", left.join("user")).unwrap();
        let sandbox = take(&Host, &trees.temp, "x").unwrap();
        assert_eq!(names_in(&left), ["files", "user"]);
        assert_eq!(names_in(&left.join("files")), [""; 0]);
        assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "somebody's");
        {
            let _ends = sandbox;
        }
        assert_eq!(names_in(&trees.temp), ["outside"]);
    });
}

#[test]
fn a_strangers_directory_at_the_number_of_a_closed_descriptor_is_let_be() {
    in_cell(|trees| {
        let theirs = trees.temp.join("theirs");
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("precious"), "somebody's").unwrap();
        let sandbox = take(&Host, &trees.temp, "x").unwrap();
        let [number] = descriptors::on(&trees.temp.join("tag")).unwrap()[..] else {
            panic!("it has one descriptor on its directory")
        };
        let mut others = descriptors::replace(number, &theirs).unwrap();
        let holder = others.pop().expect("it has just been opened");
        holder.lock().unwrap();
        {
            let _ends = sandbox;
        }
        assert_eq!(fs::read_to_string(theirs.join("precious")).unwrap(), "somebody's");
        holder.metadata().expect("it was not closed");
        let asks = File::open(&theirs).unwrap();
        assert!(asks.try_lock().is_err(), "a stranger's lock was given back");
    });
}

#[test]
fn what_was_moved_away_to_be_kept_is_kept() {
    in_cell(|trees| {
        let (tag, kept) = (trees.temp.join("tag"), trees.temp.join("kept"));
        let sandbox = take(&Host, &trees.temp, "x").unwrap();
        fs::write(tag.join("files/result"), "to look at").unwrap();
        fs::rename(&tag, &kept).unwrap();
        {
            let _ends = sandbox;
        }
        assert_eq!(fs::read_to_string(kept.join("files/result")).unwrap(), "to look at");
        let _next = take(&Host, &trees.temp, "y").expect("the tag is free");
    });
}

#[test]
fn what_came_to_the_name_while_it_was_emptied_stays() {
    in_cell(|trees| {
        let (tag, kept) = (trees.temp.join("tag"), trees.temp.join("kept"));
        let at = tag.clone();
        let last =
            |call: &Call| matches!(call, Call::Unlink { name, .. } if name.bytes() == b"user");
        let act = move || {
            fs::rename(&at, &kept).unwrap();
            fs::create_dir(&at).unwrap();
        };
        let kernel = Intercept::once(Host, Moment::After, last, act);
        {
            let _ends = take(&kernel, &trees.temp, "x").unwrap();
        }
        assert!(tag.is_dir(), "it is another one's");
    });
}

#[test]
fn what_must_not_be_removed_is_told_and_left() {
    in_cell(|trees| {
        let locked = trees.temp.join("tag/files/locked");
        fs::create_dir_all(&locked).unwrap();
        let holder = File::open(&locked).unwrap();
        holder.lock().unwrap();
        let (kind, said) = error_of(take(&Host, &trees.temp, "x"));
        assert_eq!(kind, ErrorKind::Obstructed, "{said}");
        assert!(said.contains("files/locked"), "{said}");
        assert!(locked.is_dir());
        holder.unlock().unwrap();
        let _taken = take(&Host, &trees.temp, "x").expect("nobody has locked it any more");
    });
}

#[test]
fn what_is_no_directory_of_ours_is_refused() {
    in_cell(|trees| {
        let at = trees.temp.join("tag");
        fs::write(&at, "a file").unwrap();
        let (kind, said) = error_of(take(&Host, &trees.temp, "x"));
        assert_eq!(kind, ErrorKind::Obstructed, "{said}");
        fs::remove_file(&at).unwrap();
        let elsewhere = trees.temp.join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("precious"), "").unwrap();
        symlink(&elsewhere, &at).unwrap();
        let (kind, said) = error_of(take(&Host, &trees.temp, "x"));
        assert_eq!(kind, ErrorKind::Obstructed, "{said}");
        assert!(elsewhere.join("precious").exists());
        if !nix::unistd::geteuid().is_root() {
            eprintln!("skipped without root: another user's directory");
            return;
        }
        fs::remove_file(&at).unwrap();
        fs::create_dir(&at).unwrap();
        fs::write(at.join("precious"), "").unwrap();
        chown(&at, Some(1000), Some(1000)).unwrap();
        let (kind, said) = error_of(take(&Host, &trees.temp, "x"));
        assert_eq!(kind, ErrorKind::Obstructed, "{said}");
        assert!(said.contains("it belongs to user 1000"), "{said}");
        assert!(at.join("precious").exists());
    });
}

/// Its last user removes it between the opening and the lock.
#[test]
fn a_directory_that_was_removed_before_the_lock_is_not_what_is_taken() {
    in_cell(|trees| {
        let at = trees.temp.join("tag");
        let removed = at.clone();
        let is_lock = |call: &Call| matches!(call, Call::Lock { .. });
        let act = move || fs::remove_dir(&removed).unwrap();
        let kernel = Intercept::once(Host, Moment::Before, is_lock, act);
        let _taken = take(&kernel, &trees.temp, "x").unwrap();
        assert_eq!(names_in(&at), ["files", "user"]);
        let (kind, said) = error_of(take(&Host, &trees.temp, "y"));
        assert_eq!(kind, ErrorKind::TagInUse, "{said}");
    });
}

/// What a program has that was forked meanwhile and is still running.
#[test]
fn a_copy_of_its_descriptor_does_not_keep_the_tag() {
    in_cell(|trees| {
        let lock = Rc::new(RefCell::new(None));
        let seen = Rc::clone(&lock);
        let adversary = move |call: &Call, _: Moment| {
            if let Call::Lock { fd } = call {
                seen.borrow_mut().get_or_insert(*fd);
            }
            None
        };
        let kernel = Intercept::new(Host, Rc::new(RefCell::new(adversary)));
        let sandbox = take(&kernel, &trees.temp, "x").unwrap();
        let _copy = copy_of(lock.borrow().expect("it was locked")).unwrap();
        // It stays, since this must not be removed, and is free all the same.
        let locked = trees.temp.join("tag/files/locked");
        fs::create_dir(&locked).unwrap();
        let holder = File::open(&locked).unwrap();
        holder.lock().unwrap();
        {
            let _ends = sandbox;
        }
        holder.unlock().unwrap();
        let _next = take(&Host, &trees.temp, "y").expect("its user has let it go");
    });
}

#[test]
fn a_temporary_directory_in_a_work_tree_is_refused() {
    in_cell(|trees| {
        fs::create_dir(trees.temp.join(".git")).unwrap();
        let mut suite = trees.start("sandbox-suite");
        for of in ["the first tag", "the second tag"] {
            suite.lines().next_line(soon(), of).unwrap();
        }
        // The third is the detached one.
        assert!(suite.lines().next_line(soon(), "nothing more").is_err());
        assert_eq!(suite.wait(soon()).unwrap().code(), Some(1));
        assert_eq!(names_in(&trees.temp), [".git"]);
    });
}
