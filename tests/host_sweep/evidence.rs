//! Who is seen to use a claim of which owner and commands are gone: by whatever means it uses it, it
//! keeps it; and nothing else does (l4).

use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use mortmain::protocol::SweepOptions;
use mortmain::sys::{Answer, Call, Errno, Host, Kernel, KernelExt, ProcView, Reply, Uses};
use mortmain::{Evidence, Finding, Proof};
use mortmain_harness::actor::Actor;
use mortmain_harness::ground::{Ground, PREFIX, is_root, names_in, sentence};
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::intercept::{Intercept, Moment};

use crate::support::{LAB, findings, ground, hold, in_cell, kill, soon};

/// The answer to l4.
#[track_caller]
fn of_life<'r>(report: &'r mortmain::Report, claim: &Path) -> &'r Finding {
    findings(report, claim).life.as_ref().expect("it was asked")
}

/// A process that waits, away from every claim.
pub(crate) fn waits() -> Command {
    let mut command = Command::new("cat");
    command.current_dir("/");
    command
}

/// Starts a program that says what it is told, as `cat` does, and waits until it is that program: a
/// spawn can return a moment before it has its name and its environment.
#[track_caller]
pub(crate) fn start(command: Command) -> ChildGuard {
    let mut guard = ChildGuard::spawn_with_stdin(command).unwrap();
    guard.send_line("up", soon()).unwrap();
    assert_eq!(guard.lines().next_line(soon(), "its answer").unwrap(), "up");
    guard
}

/// Runs a script that says a line when it is ready.
pub(crate) fn script(text: &str) -> (ChildGuard, String) {
    let mut command = Command::new("sh");
    command.args(["-c", text]).current_dir("/");
    let mut guard = ChildGuard::spawn_with_stdin(command).unwrap();
    let said = guard.lines().next_line(soon(), "the script's line").unwrap();
    (guard, said)
}

/// Asserts that a claim is kept because of this process, and goes after its end.
#[track_caller]
fn assert_kept_by(ground: &Ground, claim: &Path, mut user: ChildGuard, program: &str, does: &str) {
    let expected = format!("kept: process {} `{program}` {does}", user.pid());
    let report = ground.sweep();
    assert_eq!(sentence(&report, claim), expected);
    assert_eq!(of_life(&report, claim).proof, Proof::Alive);
    assert_eq!(names_in(claim), ["commands", "files", "owner"], "nothing was touched");
    user.kill_hard().unwrap();
    let report = ground.sweep();
    assert_eq!(report.removed(), 1, "{report}");
    assert_eq!(report.unread, 0, "{report}");
}

/// The part of a claim's name that a cookie has.
fn random(claim: &Path) -> &str {
    let name = claim.file_name().and_then(|name| name.to_str()).expect("it is text");
    name.strip_prefix("t-").expect("it has the prefix")
}

#[test]
fn who_works_in_a_claim_keeps_it() {
    in_cell(|| {
        for at in [".", "files", "files/deep/er"] {
            let ground = ground();
            let claim = ground.dead();
            fs::create_dir_all(claim.join(at)).unwrap();
            let mut command = waits();
            command.current_dir(claim.join(at));
            let does = "has its working directory in it";
            assert_kept_by(&ground, &claim, start(command), "cat", does);
        }
    });
}

#[test]
fn who_works_in_a_directory_that_was_deleted_keeps_the_claim_that_it_lay_in() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let gone = claim.join("files/gone");
        fs::create_dir(&gone).unwrap();
        let mut command = waits();
        command.current_dir(&gone);
        let user = start(command);
        fs::remove_dir(&gone).unwrap();
        assert_kept_by(&ground, &claim, user, "cat", "has its working directory in it");
    });
}

#[test]
fn who_has_a_file_of_a_claim_open_keeps_it_deleted_or_not() {
    in_cell(|| {
        for deleted in [false, true] {
            let ground = ground();
            let claim = ground.dead();
            let log = claim.join("files/log");
            let (user, _) = script(&format!("exec 3>{}; echo open; read x", log.display()));
            if deleted {
                fs::remove_file(&log).unwrap();
            }
            assert_kept_by(&ground, &claim, user, "sh", "has something in it open");
        }
    });
}

#[test]
fn who_was_in_a_claim_when_it_became_a_tombstone_keeps_it_under_its_new_name() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let mut command = waits();
        command.current_dir(claim.join("files"));
        let user = start(command);
        let tombstone = format!(".t-{}.dead-aaaaaaaaaaa2", random(&claim));
        let tombstone = ground.root().join(tombstone);
        fs::rename(&claim, &tombstone).unwrap();
        assert_kept_by(&ground, &tombstone, user, "cat", "has its working directory in it");
    });
}

/// A program that waits, in a claim.
fn program_in(claim: &Path) -> PathBuf {
    program_at(claim.join("files/waits"))
}

/// The same at any path.
pub(crate) fn program_at(program: PathBuf) -> PathBuf {
    let found = std::env::var_os("PATH").and_then(|path| {
        std::env::split_paths(&path).map(|dir| dir.join("cat")).find(|cat| cat.exists())
    });
    fs::copy(found.expect("there is a `cat`"), &program).unwrap();
    program
}

#[test]
fn who_runs_a_program_of_a_claim_keeps_it() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let mut command = Command::new(program_in(&claim));
        // A binary that is many programs goes by its name.
        command.arg0("cat").current_dir("/");
        assert_kept_by(&ground, &claim, start(command), "waits", "runs a program that lies in it");
    });
}

/// A process that has a program mapped and does not run it, and what it runs.
#[track_caller]
pub(crate) fn mapped(program: &Path) -> Option<(ChildGuard, String)> {
    let maps = fs::read_to_string("/proc/thread-self/maps").unwrap();
    let loader = maps.lines().find_map(|line| {
        let path = line.split_whitespace().nth(5)?;
        path.contains("/ld-").then(|| path.to_owned())
    });
    let Some(loader) = loader else {
        eprintln!("skipped: this program was not put together by a loader");
        return None;
    };
    // The loader is what runs, and maps the program.
    let mut command = Command::new(&loader);
    command.arg(program).current_dir("/");
    // It is mapped once it answers.
    let user = start(command);
    let runs = Path::new(&loader).file_name().unwrap().to_str().unwrap();
    Some((user, runs.get(..15).unwrap_or(runs).to_owned()))
}

#[test]
fn who_has_a_file_of_a_claim_mapped_and_nothing_of_it_open_keeps_it() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let Some((user, program)) = mapped(&program_in(&claim)) else { return };
        assert_kept_by(&ground, &claim, user, &program, "has a file in it mapped");
    });
}

#[test]
fn whose_root_is_in_a_claim_keeps_it() {
    in_cell(|| {
        if !is_root("no root can be changed") {
            return;
        }
        let ground = ground();
        let claim = ground.dead();
        let mut command = Command::new(LAB);
        command.arg("actor").current_dir("/");
        let mut actor = Actor::start_by(command);
        actor.must(&format!("root {}", claim.join("files").display()), "rooted");
        let expected =
            format!("kept: process {} `mortmain-lab` has its root directory in it", actor.pid());
        assert_eq!(sentence(&ground.sweep(), &claim), expected);
        actor.kill();
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn who_was_started_under_a_claim_keeps_it_wherever_the_cookie_stands() {
    in_cell(|| {
        for (before, after, vast) in [("", "", 0), ("aaaaaaaaaaa2:", ":aaaaaaaaaaa3", 12)] {
            let ground = ground();
            let claim = ground.dead();
            let mut command = waits();
            // In an environment that no single read takes; variables are put in by name.
            for number in 0..vast {
                command.env(format!("A{number}"), "x".repeat(100_000));
            }
            command.env("MORTMAIN_CLAIM", format!("{before}{}{after}", random(&claim)));
            let does = "was started under it (MORTMAIN_CLAIM)";
            assert_kept_by(&ground, &claim, start(command), "cat", does);
        }
    });
}

#[test]
fn what_only_looks_like_a_cookie_keeps_nothing() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let random = random(&claim);
        let mut longer = waits();
        longer.env("MORTMAIN_CLAIM", format!("x{random}:{random}2"));
        let mut other = waits();
        other.env("OTHER", format!("MORTMAIN_CLAIM={random}"));
        other.env("MORTMAIN_CLAIMS", random);
        other.arg("-").arg("-");
        let _users = [start(longer), start(other)];
        let report = ground.sweep();
        assert_eq!(report.removed(), 1, "{report}");
    });
}

#[test]
fn another_users_cookie_keeps_nothing() {
    in_cell(|| {
        if !is_root("nobody else can be") {
            return;
        }
        let ground = ground();
        let claim = ground.dead();
        let mut command = waits();
        command.env("MORTMAIN_CLAIM", random(&claim)).gid(1000).uid(1000);
        let _user = start(command);
        let report = ground.sweep();
        assert_eq!(report.removed(), 1, "{report}");
    });
}

#[test]
fn a_process_whose_first_thread_has_ended_keeps_what_the_others_use() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let mut command = Command::new(LAB);
        command.arg("actor").current_dir(claim.join("files"));
        let mut actor = Actor::start_by(command);
        actor.must("end-main-thread", "goes on");
        // The first thread ends a moment after the other one has spoken.
        let cwd = format!("/proc/{}/cwd", actor.pid());
        let deadline = soon();
        while fs::read_link(&cwd).is_ok() {
            assert!(!deadline.passed(), "the first thread goes on");
            std::thread::yield_now();
        }
        let report = ground.sweep();
        let said = sentence(&report, &claim);
        let expected = format!("kept: process {} `", actor.pid());
        assert!(said.starts_with(&expected), "{said}");
        assert!(said.ends_with("has its working directory in it"), "{said}");
        actor.kill();
        assert_eq!(ground.sweep().removed(), 1);
    });
}

/// Runs a script in a mount namespace of its own, with a place to mount something at.
pub(crate) fn in_another_mount_namespace(ground: &Ground, text: &str) -> (ChildGuard, String) {
    let at = ground.root().join("mnt");
    fs::create_dir(&at).unwrap();
    let inner = format!("at={}; {text}", at.display());
    script(&format!("exec unshare --mount sh -c '{inner}; echo $$; read x'"))
}

#[test]
fn a_mount_of_something_in_a_claim_keeps_it_in_whichever_namespace_it_is_seen() {
    in_cell(|| {
        if !is_root("nothing can be mounted") {
            return;
        }
        for part in [".", "files"] {
            let ground = ground();
            let claim = ground.dead();
            let mount = format!("mount --bind {} $at", claim.join(part).display());
            let (user, _) = in_another_mount_namespace(&ground, &mount);
            assert_kept_by(&ground, &claim, user, "sh", "sees a mount of something in it");
        }
        // In our own, whoever is the first to see it.
        let ground = ground();
        let claim = ground.dead();
        let at = ground.root().join("mnt");
        fs::create_dir(&at).unwrap();
        let none = None::<&str>;
        let bind = nix::mount::MsFlags::MS_BIND;
        nix::mount::mount(Some(&claim.join("files")), &at, none, bind, none).unwrap();
        let report = ground.sweep();
        let said = sentence(&report, &claim);
        assert!(said.ends_with("sees a mount of something in it"), "{said}");
        nix::mount::umount(&at).unwrap();
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_mount_on_something_in_a_claim_that_only_others_see_keeps_it() {
    in_cell(|| {
        if !is_root("nothing can be mounted") {
            return;
        }
        let ground = ground();
        let claim = ground.dead();
        let on = claim.join("files/on");
        fs::create_dir(&on).unwrap();
        let mount = format!("mount --bind $at {}", on.display());
        let (user, _) = in_another_mount_namespace(&ground, &mount);
        assert_kept_by(&ground, &claim, user, "sh", "sees a mount on something in it");
    });
}

#[test]
fn who_works_in_a_claim_by_another_way_than_ours_keeps_it() {
    in_cell(|| {
        if !is_root("nothing can be mounted") {
            return;
        }
        let ground = ground();
        let claim = ground.dead();
        let name = claim.file_name().unwrap().to_str().unwrap();
        let enter = format!("mount --bind {} $at && cd $at/{name}/files", ground.root().display());
        let (user, _) = in_another_mount_namespace(&ground, &enter);
        assert_kept_by(&ground, &claim, user, "sh", "has its working directory in it");
    });
}

#[test]
fn a_sweep_that_works_in_what_it_judges_keeps_it() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let mut command = Command::new(LAB);
        command.arg("actor").current_dir(claim.join("files"));
        let mut actor = Actor::start_by(command);
        let swept = actor.sweep(PREFIX, ground.root());
        assert_eq!((swept.removed, swept.kept), (0, 1), "{:?}", swept.report);
        let does =
            format!("kept: process {} `mortmain-lab` has its working directory in it", actor.pid());
        assert!(swept.report[0].ends_with(&does), "{:?}", swept.report);
        actor.kill();
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn who_only_has_the_claim_itself_open_as_every_sweep_has_keeps_nothing() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let _user = script(&format!("exec 3<{}; echo open; read x", claim.display()));
        let _ours = File::open(&claim).unwrap();
        let report = ground.sweep();
        assert_eq!(report.removed(), 1, "{report}");
    });
}

#[test]
fn all_who_use_a_claim_are_counted() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let users: Vec<ChildGuard> = (0..3)
            .map(|_| {
                let mut command = waits();
                command.current_dir(claim.join("files"));
                start(command)
            })
            .collect();
        let lowest = users.iter().map(ChildGuard::pid).min().unwrap();
        let expected = format!(
            "kept: process {lowest} `cat` has its working directory in it, and 2 more processes \
             use it"
        );
        assert_eq!(sentence(&ground.sweep(), &claim), expected);
        let dry = ground.namespace().dry_run();
        assert_eq!(sentence(&dry, &claim), expected);
    });
}

/// Counts the scans that are begun, and the most claims that one asks about.
fn counting(kernel: Host) -> (Intercept<Host>, Rc<Cell<(u32, usize)>>) {
    let counts = Rc::new(Cell::new((0, 0)));
    let seen = Rc::clone(&counts);
    let adversary = move |call: &Call, moment: Moment| {
        let (scans, most) = seen.get();
        match (call, moment) {
            (Call::Pids, Moment::Before) => seen.set((scans + 1, most)),
            (Call::Uses { of, .. }, Moment::Before) => seen.set((scans, most.max(of.len()))),
            _ => {}
        }
        None
    };
    (Intercept::new(kernel, Rc::new(RefCell::new(adversary))), counts)
}

#[test]
fn one_scan_is_made_for_a_whole_batch_and_none_for_nothing() {
    in_cell(|| {
        let ground = ground();
        let living = ground.owned();
        let (kernel, counts) = counting(Host);
        let report = ground.over(&kernel).sweep(&SweepOptions::default());
        assert_eq!((report.kept(), counts.get()), (1, (0, 0)), "{report}");
        let _dead = [(); 5].map(|()| ground.dead());
        let report = ground.over(&kernel).sweep(&SweepOptions::default());
        assert_eq!((report.removed(), counts.get().1), (5, 5), "{report}");
        assert!(living.files().is_dir());
    });
}

/// A kernel that answers a call with something else than the kernel does.
fn answering(mut answer: impl FnMut(&Call) -> Option<Answer<Reply>> + 'static) -> Intercept<Host> {
    let adversary = move |call: &Call, moment: Moment| match moment {
        Moment::Before => answer(call),
        _ => None,
    };
    Intercept::new(Host, Rc::new(RefCell::new(adversary)))
}

#[test]
fn a_batch_has_at_most_half_of_the_descriptors() {
    in_cell(|| {
        let ground = ground();
        let _dead = [(); 10].map(|()| ground.dead());
        let most = Rc::new(Cell::new(0));
        let seen = Rc::clone(&most);
        let kernel = answering(move |call| match call {
            Call::DescriptorsMax => Some(Ok(Reply::Number(8))),
            Call::Uses { of, .. } => {
                seen.set(of.len().max(seen.get()));
                None
            }
            _ => None,
        });
        let report = ground.over(&kernel).sweep(&SweepOptions::default());
        assert_eq!((report.removed(), most.get()), (10, 4), "{report}");
        let sorted: Vec<_> = report.entries.iter().map(|entry| entry.name.clone()).collect();
        assert_eq!(sorted.len(), 10, "each is told once");
    });
}

#[test]
fn a_scan_that_lacks_descriptors_is_made_again_for_fewer_claims() {
    in_cell(|| {
        let ground = ground();
        let _dead = [(); 9].map(|()| ground.dead());
        let kernel = answering(|call| match call {
            Call::Uses { of, .. } if of.len() > 2 => Some(Err(Errno::EMFILE)),
            _ => None,
        });
        let report = ground.over(&kernel).sweep(&SweepOptions::default());
        assert_eq!((report.removed(), report.entries.len()), (9, 9), "{report}");
    });
}

#[test]
fn a_scan_that_could_not_be_made_keeps() {
    in_cell(|| {
        let ground = ground();
        let claims = [(); 2].map(|()| ground.dead());
        for word in ["pids", "uses"] {
            for errno in [Errno::EMFILE, Errno::EIO, Errno::ENOMEM, Errno::EACCES, Errno(199)] {
                let pick = move |call: &Call| call.word() == word;
                let root = ground.over(&Intercept::refusing(Host, errno, pick));
                let report = root.sweep(&SweepOptions::default());
                for claim in &claims {
                    let found = of_life(&report, claim);
                    let expected = Finding::cannot_tell(Evidence::UseUnclear(errno));
                    assert_eq!(*found, expected, "{word} answers {errno}");
                    assert_eq!(names_in(claim), ["commands", "files", "owner"]);
                }
            }
        }
        assert_eq!(ground.sweep().removed(), 2);
    });
}

#[test]
fn a_proc_of_another_namespace_keeps() {
    in_cell(|| {
        let ground = ground();
        let mut owned = ground.owned();
        owned.actor.must("release", "released");
        let foreign = |call: &Call| match call {
            Call::Identity => {
                let mut me = Host.identity().unwrap();
                me.proc = ProcView::Foreign;
                Some(Ok(Reply::Identity(me)))
            }
            _ => None,
        };
        let report = ground.over(&answering(foreign)).sweep(&SweepOptions::default());
        let expected = "kept: whether a process uses it could not be found out: /proc is of \
                        another namespace, or hides processes";
        assert_eq!(sentence(&report, &owned.claim), expected);
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn who_comes_into_a_claim_while_its_commands_are_asked_about_is_seen() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let user = Rc::new(RefCell::new(None));
        let (found, files) = (Rc::clone(&user), claim.join("files"));
        let act = move || {
            let mut command = waits();
            command.current_dir(files);
            *found.borrow_mut() = Some(start(command));
        };
        // The last listing is that of the registry.
        let mut registry = None;
        let lists = move |call: &Call| {
            let was = registry;
            if let Call::OpenDir { name, .. } = call {
                registry = Some(name.bytes() == b"commands");
            }
            was == Some(true) && matches!(call, Call::ReadDir { .. })
        };
        let kernel = Intercept::once(Host, Moment::After, lists, act);
        let report = ground.over(&kernel).sweep(&SweepOptions::default());
        let user = user.borrow_mut().take().expect("it came");
        let expected =
            format!("kept: process {} `cat` has its working directory in it", user.pid());
        assert_eq!(sentence(&report, &claim), expected);
    });
}

#[test]
fn who_was_forked_by_a_process_that_ended_before_it_was_looked_at_is_seen() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let mut command = Command::new("sh");
        let text = "mkfifo go never; echo ready; read x <go; { read x <never; } & echo $!";
        command.args(["-c", text]).current_dir(claim.join("files"));
        let mut parent = ChildGuard::spawn_with_stdin(command).unwrap();
        parent.lines().next_line(soon(), "the script's line").unwrap();
        let ended = parent.watch().unwrap();
        let (child, files) = (Rc::new(RefCell::new(None)), claim.join("files"));
        let found = Rc::clone(&child);
        let parent = RefCell::new(parent);
        let act = move || {
            fs::write(files.join("go"), "\n").unwrap();
            let said = parent.borrow_mut().lines().next_line(soon(), "the child's pid").unwrap();
            ended.gone(soon()).unwrap();
            *found.borrow_mut() = Some((hold(&said), parent.into_inner()));
        };
        // The list is made, with the parent in it and without the child.
        let lists = |call: &Call| matches!(call, Call::Pids);
        let kernel = Intercept::once(Host, Moment::After, lists, act);
        let report = ground.over(&kernel).sweep(&SweepOptions::default());
        let (child, _parent) = child.borrow_mut().take().expect("it was forked");
        let expected =
            format!("kept: process {} `sh` has its working directory in it", child.pid());
        assert_eq!(sentence(&report, &claim), expected);
        kill(&child);
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn who_is_just_becoming_another_program_is_looked_at_again() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.dead();
        let mut command = waits();
        command.env("MORTMAIN_CLAIM", random(&claim));
        let mut user = start(command);
        // At the first look its memory is not set up yet.
        let (pid, mut looks) = (user.pid(), 0);
        let kernel = answering(move |call| match call {
            Call::Uses { pid: looked_at, .. } if looked_at.0 == pid => {
                looks += 1;
                let uses = Uses { unsettled: true, ..Uses::default() };
                (looks == 1).then(|| Ok(Reply::Uses(Box::new(uses))))
            }
            _ => None,
        });
        let report = ground.over(&kernel).sweep(&SweepOptions::default());
        let said = sentence(&report, &claim);
        assert!(said.ends_with("was started under it (MORTMAIN_CLAIM)"), "{said}");
        assert_eq!(report.unread, 0);
        user.kill_hard().unwrap();
        // One that never comes to it is told.
        let init = answering(|call| match call {
            Call::Uses { pid, .. } if pid.0 == 1 => {
                let uses = Uses { unsettled: true, ..Uses::default() };
                Some(Ok(Reply::Uses(Box::new(uses))))
            }
            _ => None,
        });
        let report = ground.over(&init).sweep(&SweepOptions::default());
        assert_eq!((report.removed(), report.unread), (1, 1), "{report}");
    });
}

#[test]
fn a_program_without_an_environment_is_not_waited_for() {
    in_cell(|| {
        let ground = ground();
        let _dead = ground.dead();
        let mut bare = waits();
        bare.env_clear();
        let _bare = start(bare);
        let pauses = |call: &Call| matches!(call, Call::Pause { .. });
        let root = ground.over(&Intercept::refusing(Host, Errno::EIO, pauses));
        let report = root.sweep(&SweepOptions::default());
        assert_eq!((report.removed(), report.unread), (1, 0), "{report}");
    });
}

#[test]
fn a_scan_lets_time_pass_only_for_who_is_becoming_another_program() {
    in_cell(|| {
        let ground = ground();
        for (unsettled, ended, pauses) in [(true, false, 1), (false, true, 0), (false, false, 0)] {
            let _dead = ground.dead();
            let (counted, mut looks) = (Rc::new(Cell::new(0)), 0);
            let count = Rc::clone(&counted);
            let kernel = answering(move |call| match call {
                Call::Uses { .. } => {
                    looks += 1;
                    let uses = Uses { unsettled, ended, ..Uses::default() };
                    (looks == 1).then(|| Ok(Reply::Uses(Box::new(uses))))
                }
                Call::Pause { .. } => {
                    count.set(count.get() + 1);
                    None
                }
                _ => None,
            });
            let report = ground.over(&kernel).sweep(&SweepOptions::default());
            assert_eq!((report.removed(), counted.get()), (1, pauses), "{report}");
        }
    });
}

#[test]
fn what_cannot_be_read_keeps_nothing_and_is_told() {
    in_cell(|| {
        if !is_root("whatever there is can be read") {
            return;
        }
        let ground = Ground::of_plain_user(LAB);
        let claim = ground.dead();
        // Root's, which works in the claim and which its owner may not look at.
        let mut command = waits();
        command.current_dir(claim.join("files"));
        let _user = start(command);
        let swept = ground.sweep_as_user();
        assert_eq!(swept.removed, 1, "{:?}", swept.report);
        let told = swept.report.iter().any(|line| line.contains("could not be read"));
        assert!(told, "{:?}", swept.report);
    });
}

/// What the calls themselves say, on the real kernel.
#[test]
fn a_process_that_has_ended_uses_nothing_and_fails_nothing() {
    in_cell(|| {
        let of = mortmain::sys::Sought::new(&[]);
        let mut ended = start(waits());
        let pid = mortmain::sys::Pid(ended.pid());
        let uses = Host.uses(pid, &of, &[]).unwrap();
        assert!(!uses.ended && uses.mounts.is_some(), "{uses:?}");
        let known: Vec<_> = uses.mounts.clone().into_iter().collect();
        assert_eq!(Host.uses(pid, &of, &known).unwrap().mounts, None);
        hold(&ended.pid().to_string()).kill().unwrap();
        ended.watch().unwrap().gone(soon()).unwrap();
        // A zombie, and then nothing.
        assert!(Host.uses(pid, &of, &[]).unwrap().ended);
        ended.kill_hard().unwrap();
        assert!(Host.uses(pid, &of, &[]).unwrap().ended);
        let special = Call::Uses { pid: mortmain::sys::Pid(0), of: Box::new(of), known };
        assert_eq!(Host.call(special), Err(Errno::EINVAL));
    });
}
