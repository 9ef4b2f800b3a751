//! Strays: what an operator's word for a directory without a record removes, and everything that
//! contradicts it (l8).

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use mortmain::sys::{Call, Errno, Host, Name, Use};
use mortmain::{Error, ErrorKind, Outcome, Stray, Strays};
use mortmain_harness::ground::{Ground, is_root, names_in};
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::intercept::{Intercept, Moment};
use mortmain_harness::tree::Tree;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::evidence::{in_another_mount_namespace, mapped, program_at, script, start, waits};
use crate::support::{ground, in_cell};

const NOTHING: Option<&str> = None;

/// A stray with something in it.
fn stray(ground: &Ground, name: &str) -> PathBuf {
    let stray = ground.root().join(name);
    fs::create_dir_all(stray.join("deep/er")).unwrap();
    fs::write(stray.join("deep/file"), "left").unwrap();
    symlink("/nowhere", stray.join("link")).unwrap();
    stray
}

fn name(path: &Path) -> &OsStr {
    path.file_name().expect("it has one")
}

/// The one entry of an answer.
#[track_caller]
fn only(strays: Strays) -> Stray {
    let [stray] = <[Stray; 1]>::try_from(strays.entries).expect("there is one");
    stray
}

#[track_caller]
fn adopt(ground: &Ground, stray: &Path) -> Stray {
    only(ground.namespace().adopt(name(stray)).unwrap())
}

/// What a look at one name says.
#[track_caller]
fn look(ground: &Ground, stray: &Path) -> Stray {
    only(ground.namespace().strays(|wanted| wanted == name(stray)).unwrap())
}

/// Asserts that a stray stays as it is, both looked at and named, and why.
#[track_caller]
fn assert_stays(ground: &Ground, stray: &Path, why: &str) {
    let before = Tree::read(stray).unwrap();
    for stray in [look(ground, stray), adopt(ground, stray)] {
        assert_eq!(stray.outcome.to_string(), format!("kept: {why}"));
    }
    assert_eq!(Tree::read(stray).unwrap(), before, "nothing was touched");
}

#[track_caller]
fn assert_goes(ground: &Ground, stray: &Path) {
    let seen = look(ground, stray);
    assert!(matches!(seen.outcome, Outcome::WouldRemove(_)), "{seen}");
    assert!(stray.is_dir(), "that was a look");
    let gone = adopt(ground, stray);
    let told = "removed: nobody recorded who uses it (removed on an operator's word)";
    assert_eq!(gone.outcome.to_string(), told);
    assert!(!stray.exists());
}

/// Asserts that a process keeps a stray, is named, and after its end keeps it no more.
#[track_caller]
fn assert_kept_by(ground: &Ground, stray: &Path, mut user: ChildGuard, program: &str, does: &str) {
    assert_stays(ground, stray, &format!("process {} `{program}` {does}", user.pid()));
    user.kill_hard().unwrap();
    assert_goes(ground, stray);
}

#[test]
fn a_stray_goes_by_its_exact_name_and_no_neighbour_with_it() {
    in_cell(|| {
        let ground = ground();
        let (one, other) = (stray(&ground, "pytest-1"), stray(&ground, "pytest-2"));
        fs::set_permissions(&one, fs::Permissions::from_mode(0o000)).unwrap();
        let told = adopt(&ground, &one);
        assert!(matches!(told.outcome, Outcome::Removed(_)), "{told}");
        assert_eq!(ground.names(), ["pytest-2"]);
        assert_goes(&ground, &other);
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn a_look_at_strays_tells_those_that_are_wanted_in_the_order_of_their_names() {
    in_cell(|| {
        let ground = ground();
        for name in ["b", "c", "a", "other"] {
            stray(&ground, name);
        }
        let dead = ground.dead();
        fs::write(ground.root().join("file"), "").unwrap();
        symlink(ground.root().join("a"), ground.root().join("link")).unwrap();
        let strays = ground.namespace().strays(|name| name != "other").unwrap();
        let names: Vec<String> =
            strays.entries.iter().map(|stray| stray.name.to_string()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!((strays.claims, strays.foreign), (1, 0));
        assert!(strays.partial_view, "a cell is not the machine's first pid namespace");
        assert!(dead.is_dir());
    });
}

/// Asserts that a name stands for no stray.
#[track_caller]
fn assert_none(ground: &Ground, name: &str, why: &str) -> Error {
    let error = ground.namespace().adopt(name).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSuchStray, "{name}: {error}");
    assert!(error.to_string().contains(why), "{name}: {error}");
    error
}

#[test]
fn nothing_that_the_protocol_makes_is_a_stray_of_any_prefix() {
    in_cell(|| {
        let ground = ground();
        let dead = ground.dead();
        let given = [
            "other-abcdefghij27",
            "other~abcdefghij27",
            ".other-abcdefghij27.new",
            ".other-abcdefghij27.dead-aaaaaaaaaaa2",
        ];
        for name in given {
            stray(&ground, name);
        }
        let before = Tree::read(ground.root()).unwrap();
        let strays = ground.namespace().strays(|_| true).unwrap();
        assert_eq!((strays.entries.len(), strays.claims), (0, 5));
        let dead = name(&dead).to_str().expect("it is text");
        for name in given.into_iter().chain([dead]) {
            assert_none(&ground, name, "it is called as claims are");
        }
        assert_eq!(Tree::read(ground.root()).unwrap(), before);
    });
}

#[test]
fn what_is_no_directory_is_no_stray() {
    in_cell(|| {
        let ground = ground();
        let precious = stray(&ground, "precious");
        fs::write(ground.root().join("file"), "").unwrap();
        symlink(&precious, ground.root().join("link")).unwrap();
        nix::unistd::mkfifo(&ground.root().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for name in ["file", "link", "fifo"] {
            assert_none(&ground, name, "it is no directory");
        }
        assert_none(&ground, "nothing", "there is nothing of that name");
        for name in ["", ".", "..", "a/b", "precious/deep"] {
            assert_none(&ground, name, "that is not the name of a directory in it");
        }
        assert_eq!(ground.names(), ["fifo", "file", "link", "precious"]);
    });
}

#[test]
fn another_users_directory_is_no_stray_and_one_inside_keeps_the_whole() {
    in_cell(|| {
        if !is_root("nobody else's directory can be made") {
            return;
        }
        let ground = ground();
        let (theirs, ours) = (stray(&ground, "theirs"), stray(&ground, "ours"));
        chown(&theirs, Some(1000), Some(1000)).unwrap();
        assert_none(&ground, "theirs", "it belongs to user 1000");
        let strays = ground.namespace().strays(|_| true).unwrap();
        assert_eq!((strays.entries.len(), strays.foreign), (1, 1));
        chown(ours.join("deep/er"), Some(1000), Some(1000)).unwrap();
        assert_stays(&ground, &ours, "`deep/er` inside belongs to user 1000");
        assert!(theirs.join("deep/file").exists());
    });
}

#[test]
fn a_lock_on_a_stray_or_in_it_keeps_it() {
    in_cell(|| {
        for (at, told) in [
            ("", "it is locked by somebody"),
            ("deep/er", "`deep/er` inside is locked by somebody"),
        ] {
            let ground = ground();
            let stray = stray(&ground, "stray");
            let locked = File::open(stray.join(at)).unwrap();
            locked.lock().unwrap();
            // The lock counts, and not that somebody has it open.
            let kernel = unseeing();
            let strays = ground.over(&kernel).adopt(&exact("stray")).unwrap();
            assert_eq!(only(strays).outcome.to_string(), format!("kept: {told}"));
            assert!(stray.join("deep/file").exists());
            locked.unlock().unwrap();
            drop(locked);
            assert_goes(&ground, &stray);
        }
    });
}

#[test]
fn where_locks_prove_nothing_strays_stay() {
    in_cell(|| {
        if !is_root("nothing can be mounted") {
            return;
        }
        let ground = ground();
        mount(NOTHING, ground.root(), Some("ramfs"), MsFlags::empty(), NOTHING).unwrap();
        let stray = stray(&ground, "stray");
        assert_stays(&ground, &stray, "locks on a file system of kind 0x858458f6 prove nothing");
        umount2(ground.root(), MntFlags::empty()).unwrap();
    });
}

#[test]
fn a_mount_on_a_stray_or_in_it_keeps_it() {
    in_cell(|| {
        if !is_root("nothing can be mounted") {
            return;
        }
        for (at, told) in
            [("", "a mount lies on it"), ("deep/er", "a mount lies on `deep/er` inside")]
        {
            let ground = ground();
            let (stray, precious) = (stray(&ground, "stray"), stray(&ground, "precious"));
            let on = stray.join(at);
            mount(Some(&precious), &on, NOTHING, MsFlags::MS_BIND, NOTHING).unwrap();
            // The mount itself counts, and not who sees it.
            let strays = ground.over(&unseeing()).adopt(&exact("stray")).unwrap();
            assert_eq!(only(strays).outcome.to_string(), format!("kept: {told}"));
            umount2(&on, MntFlags::empty()).unwrap();
            assert!(precious.join("deep/file").exists());
            assert_goes(&ground, &stray);
        }
    });
}

#[test]
fn a_claim_in_a_stray_keeps_it_dead_or_alive() {
    in_cell(|| {
        let ground = ground();
        let stray = stray(&ground, "stray");
        for at in ["deep/t-abcdefghij27", "deep/renamed"] {
            let dead = ground.dead();
            let inside = stray.join(at);
            fs::rename(&dead, &inside).unwrap();
            assert_stays(
                &ground,
                &stray,
                &format!("`{at}` inside is a claim, which a sweep judges"),
            );
            fs::rename(&inside, &dead).unwrap();
            assert_eq!(ground.sweep().removed(), 1);
        }
        // By its name alone, as a staging has no more.
        fs::create_dir(stray.join(".t-abcdefghij27.new")).unwrap();
        let told = "`.t-abcdefghij27.new` inside is a claim, which a sweep judges";
        assert_stays(&ground, &stray, told);
        fs::remove_dir(stray.join(".t-abcdefghij27.new")).unwrap();
        assert_goes(&ground, &stray);
    });
}

#[test]
fn a_claim_under_another_name_is_none_to_be_adopted() {
    in_cell(|| {
        let ground = ground();
        let (dead, renamed) = (ground.dead(), ground.root().join("renamed"));
        fs::rename(&dead, &renamed).unwrap();
        assert_stays(&ground, &renamed, "it is a claim under another name, or a copy");
        fs::rename(renamed.join("owner"), renamed.join("released")).unwrap();
        assert_stays(&ground, &renamed, "it is a claim under another name, or a copy");
    });
}

#[test]
fn a_record_that_could_not_be_read_is_not_taken_for_none() {
    in_cell(|| {
        let ground = ground();
        let renamed = ground.root().join("renamed");
        fs::rename(ground.dead(), &renamed).unwrap();
        let before = Tree::read(&renamed).unwrap();
        for errno in [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, Errno::EIO, Errno::EACCES] {
            let reads = |call: &Call| matches!(call, Call::Readlink { .. });
            let root = ground.over(&Intercept::refusing(Host, errno, reads));
            let kept = only(root.adopt(&exact("renamed")).unwrap());
            let told = format!("kept: reading the record of `.` failed: {errno}");
            assert_eq!(kept.outcome.to_string(), told);
            assert_eq!(Tree::read(&renamed).unwrap(), before);
        }
    });
}

#[test]
fn what_came_to_the_name_before_the_lock_is_not_what_is_adopted() {
    in_cell(|| {
        let ground = ground();
        let stray = stray(&ground, "stray");
        let (at, away) = (stray.clone(), ground.root().join("away"));
        let swaps = move || {
            fs::rename(&at, &away).unwrap();
            fs::create_dir(&at).unwrap();
        };
        let locks = |call: &Call| matches!(call, Call::Lock { .. });
        let kernel = Intercept::once(Host, Moment::Before, locks, swaps);
        let error = ground.over(&kernel).adopt(&exact("stray")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSuchStray, "{error}");
        assert_eq!(ground.names(), ["away", "stray"]);
    });
}

#[test]
fn what_nobody_could_look_at_after_its_renaming_gets_its_name_back() {
    in_cell(|| {
        let ground = ground();
        let stray = stray(&ground, "stray");
        let before = Tree::read(&stray).unwrap();
        for errno in [Errno::EMFILE, Errno::EIO] {
            let mut is_renamed = false;
            let adversary = move |call: &Call, moment: Moment| match (moment, call) {
                (Moment::After, Call::Rename { .. }) => {
                    is_renamed = true;
                    None
                }
                (Moment::Before, Call::StatAt { .. }) if is_renamed => {
                    is_renamed = false;
                    Some(Err(errno))
                }
                _ => None,
            };
            let kernel = Intercept::new(Host, Rc::new(RefCell::new(adversary)));
            let kept = only(ground.over(&kernel).adopt(&exact("stray")).unwrap());
            assert_eq!(kept.outcome.to_string(), format!("kept: looking at `.` failed: {errno}"));
            assert_eq!(ground.names(), ["stray"]);
            assert_eq!(Tree::read(&stray).unwrap(), before);
        }
        assert_goes(&ground, &stray);
    });
}

#[test]
fn everybody_who_uses_a_stray_is_told_with_all_that_they_do_in_it() {
    in_cell(|| {
        let ground = ground();
        let stray = stray(&ground, "stray");
        let log = stray.join("log");
        let mut works = waits();
        works.current_dir(stray.join("deep"));
        let works = start(works);
        let text = format!("cd {}; exec 3>{}; echo open; read x", stray.display(), log.display());
        let (writes, _) = script(&text);
        let seen = look(&ground, &stray);
        let told: Vec<String> = seen.users.iter().map(ToString::to_string).collect();
        let of = |pid: i32, does: &str| format!("process {pid} {does}");
        let mut expected = [
            (works.pid(), of(works.pid(), "`cat` has its working directory in it")),
            (
                writes.pid(),
                of(writes.pid(), "`sh` has its working directory in it, has something in it open"),
            ),
        ];
        expected.sort();
        assert_eq!(told, expected.map(|(_, told)| told));
        let codes: Vec<&str> =
            seen.users.iter().flat_map(|user| &user.uses).map(|how| how.code()).collect();
        assert!(codes.contains(&Use::Descriptor.code()), "{codes:?}");
        assert!(seen.outcome.to_string().ends_with(", and 1 more process uses it"), "{seen}");
        assert_eq!(adopt(&ground, &stray).users, seen.users);
    });
}

#[test]
fn a_stray_with_an_odd_name_is_kept_by_its_users_all_the_same() {
    in_cell(|| {
        for name in ["two words", "line\nend", "back\\slash", "\\012"] {
            let ground = ground();
            let stray = stray(&ground, name);
            let mut works = waits();
            works.current_dir(&stray);
            assert_kept_by(&ground, &stray, start(works), "cat", "has its working directory in it");
        }
        let root = ground();
        let odd = stray(&root, "line\nend");
        if let Some((user, program)) = mapped(&program_at(odd.join("waits"))) {
            assert_kept_by(&root, &odd, user, &program, "has a file in it mapped");
        }
        if is_root("nothing can be mounted") {
            let root = ground();
            let odd = stray(&root, "two words");
            let mount = format!("mount --bind \"{}\" $at", odd.join("deep").display());
            let (user, _) = in_another_mount_namespace(&root, &mount);
            assert_kept_by(&root, &odd, user, "sh", "sees a mount of something in it");
        }
    });
}

fn exact(name: &str) -> Name {
    Name::new(name.as_bytes()).expect("one component")
}

/// The real kernel, which shows no process.
fn unseeing() -> Intercept<Host> {
    let adversary = |call: &Call, moment: Moment| {
        let asks = moment == Moment::Before && matches!(call, Call::Pids);
        asks.then(|| Ok(mortmain::sys::Reply::Pids(Vec::new())))
    };
    Intercept::new(Host, Rc::new(RefCell::new(adversary)))
}

#[test]
fn a_stray_that_is_used_is_not_even_renamed() {
    in_cell(|| {
        let ground = ground();
        let stray = stray(&ground, "stray");
        let mut works = waits();
        works.current_dir(&stray);
        let _user = start(works);
        let is_rename = |call: &Call| matches!(call, Call::Rename { .. });
        let (kernel, renames) = Intercept::counting(Host, is_rename);
        let kept = only(ground.over(&kernel).adopt(&exact("stray")).unwrap());
        assert!(matches!(kept.outcome, Outcome::Kept(_)), "{kept}");
        assert_eq!(renames.get(), 0);
    });
}

#[test]
fn who_comes_in_at_the_last_moment_keeps_the_stray_under_its_own_name() {
    in_cell(|| {
        let ground = ground();
        let stray = stray(&ground, "stray");
        let before = Tree::read(&stray).unwrap();
        let user = Rc::new(RefCell::new(None));
        let (came, at) = (Rc::clone(&user), stray.join("deep"));
        let comes_in = move || {
            let mut works = waits();
            works.current_dir(&at);
            *came.borrow_mut() = Some(start(works));
        };
        let renames = |call: &Call| matches!(call, Call::Rename { .. });
        let kernel = Intercept::once(Host, Moment::Before, renames, comes_in);
        let kept = only(ground.over(&kernel).adopt(&exact("stray")).unwrap());
        let mut user = user.borrow_mut().take().expect("it came in");
        let told = format!("kept: process {} `cat` has its working directory in it", user.pid());
        assert_eq!(kept.outcome.to_string(), told);
        assert_eq!(kept.users.len(), 1);
        assert_eq!(Tree::read(&stray).unwrap(), before);
        assert_eq!(ground.names(), ["stray"]);
        user.kill_hard().unwrap();
        assert_goes(&ground, &stray);
    });
}

#[test]
fn who_finds_the_name_of_a_stray_free_and_takes_it_keeps_what_he_made() {
    in_cell(|| {
        let ground = ground();
        let stray = stray(&ground, "stray");
        let user = Rc::new(RefCell::new(None));
        let (came, at) = (Rc::clone(&user), stray.clone());
        let mut renamed = 0;
        let adversary = move |call: &Call, moment: Moment| {
            if matches!((call, moment), (Call::Rename { .. }, Moment::Before)) && renamed == 0 {
                let mut works = waits();
                works.current_dir(&at);
                *came.borrow_mut() = Some(start(works));
            } else if matches!((call, moment), (Call::Rename { .. }, Moment::After)) && renamed == 0
            {
                renamed += 1;
                fs::create_dir(&at).unwrap();
            }
            None
        };
        let kernel = Intercept::new(Host, Rc::new(RefCell::new(adversary)));
        let kept = only(ground.over(&kernel).adopt(&exact("stray")).unwrap());
        assert_eq!(kept.outcome.to_string(), "kept: its name stands for something else now");
        assert!(names_in(&stray).is_empty(), "what was made anew is not replaced");
        // The other has a name by which sweeps know it, and stays while it is used.
        assert_eq!((ground.sweep().kept(), ground.names().len()), (1, 2));
        user.borrow_mut().take().expect("it came in").kill_hard().unwrap();
        assert_eq!(ground.sweep().removed(), 1);
        assert_eq!(ground.names(), ["stray"]);
    });
}

#[test]
fn a_removal_that_stopped_half_way_is_finished_by_a_sweep() {
    in_cell(|| {
        let ground = ground();
        let stray = stray(&ground, "stray");
        // As after a kill: nothing is removed any more once it has its tombstone's name.
        let removals = |call: &Call| matches!(call, Call::Unlink { .. } | Call::Rmdir { .. });
        let kernel = Intercept::refusing(Host, Errno::EIO, removals);
        let told = only(ground.over(&kernel).adopt(&exact("stray")).unwrap());
        assert!(matches!(told.outcome, Outcome::Partial(_)), "{told}");
        assert!(!stray.exists());
        assert_eq!(ground.sweep().removed(), 1);
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn a_stray_that_its_owner_has_sealed_is_told_as_one_that_may_go_and_is_given_its_mode_back_then() {
    in_cell(|| {
        let ground = ground();
        let stray = stray(&ground, "stray");
        fs::set_permissions(&stray, fs::Permissions::from_mode(0o000)).unwrap();
        // As to anybody but root: a sealed directory cannot be opened.
        let sealed = |call: &Call| match call {
            Call::OpenDir { name, .. } => name == &exact("stray"),
            _ => false,
        };
        let at = stray.clone();
        let adversary = move |call: &Call, moment: Moment| {
            let is_sealed =
                fs::metadata(&at).is_ok_and(|meta| meta.permissions().mode() & 0o777 == 0);
            let refused = moment == Moment::Before && sealed(call) && is_sealed;
            refused.then_some(Err(Errno::EACCES))
        };
        let kernel = Intercept::new(Host, Rc::new(RefCell::new(adversary)));
        let root = ground.over(&kernel);
        let seen = only(root.strays(&mut |_| true).unwrap());
        assert!(matches!(seen.outcome, Outcome::WouldRemove(_)), "{seen}");
        assert_eq!(
            fs::metadata(&stray).unwrap().permissions().mode() & 0o777,
            0,
            "that was a look"
        );
        let mut works = waits();
        works.current_dir(&stray);
        let mut works = start(works);
        assert!(matches!(only(root.strays(&mut |_| true).unwrap()).outcome, Outcome::Kept(_)));
        works.kill_hard().unwrap();
        let gone = only(root.adopt(&exact("stray")).unwrap());
        assert!(matches!(gone.outcome, Outcome::Removed(_)), "{gone}");
        assert_eq!(ground.names(), [""; 0]);
    });
}

/// As to anybody but root, again.
#[test]
fn a_stray_that_cannot_be_opened_is_sealed_only_if_it_is_ours_and_its_mode_is_the_reason() {
    in_cell(|| {
        if !is_root("nobody else's directory can be made") {
            return;
        }
        let ground = ground();
        let path = stray(&ground, "stray");
        let opens = |call: &Call| match call {
            Call::OpenDir { name, .. } => name == &exact("stray"),
            _ => false,
        };
        let seen = |errno| {
            let kernel = Intercept::refusing(Host, errno, opens);
            ground.over(&kernel).strays(&mut |_| true).unwrap()
        };
        let told = only(seen(Errno::EIO)).to_string();
        assert_eq!(told, "stray: kept: opening `.` failed: input/output error (EIO)");
        chown(&path, Some(65_534), Some(65_534)).unwrap();
        let strays = seen(Errno::EACCES);
        assert_eq!((strays.entries.len(), strays.foreign), (0, 1));
    });
}

#[test]
fn a_stray_is_given_its_mode_back_if_it_lacks_it_and_not_otherwise() {
    in_cell(|| {
        let ground = ground();
        for (mode, changes) in [(0o700, 0), (0o755, 0), (0o500, 1)] {
            let path = stray(&ground, "stray");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let is_change = |call: &Call| matches!(call, Call::Chmod { .. });
            let (kernel, counted) = Intercept::counting(Host, is_change);
            let gone = only(ground.over(&kernel).adopt(&exact("stray")).unwrap());
            assert!(matches!(gone.outcome, Outcome::Removed(_)), "{gone}");
            assert_eq!(counted.get(), changes, "{mode:o}");
        }
    });
}

#[test]
fn a_stray_that_cannot_be_renamed_or_whose_users_cannot_be_found_out_stays() {
    in_cell(|| {
        let ground = ground();
        let stray = stray(&ground, "stray");
        for (errno, call, told) in [
            (Errno::ENOSPC, "rename", "renaming `.` failed: no space left on device (ENOSPC)"),
            (
                Errno::EMFILE,
                "pids",
                "whether a process uses it could not be found out: too many open files in \
                 this process (EMFILE)",
            ),
        ] {
            let kernel = Intercept::refusing(Host, errno, move |made| made.word() == call);
            let kept = only(ground.over(&kernel).adopt(&exact("stray")).unwrap());
            assert_eq!(kept.outcome.to_string(), format!("kept: {told}"));
            assert!(stray.join("deep/file").exists());
        }
        assert_goes(&ground, &stray);
    });
}
