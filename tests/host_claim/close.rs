//! Giving a claim up: a close is a removal that asks first, and what it may not remove is left to the
//! sweeps (c7, r4).

use std::cell::{Cell, RefCell};
use std::error::Error as _;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use mortmain::sys::{Call, Errno, Host, HostProgram, Wait};
use mortmain::{Closed, ErrorKind, Hindrance};
use mortmain_harness::ground::{is_root, names_in, sentence};
use mortmain_harness::intercept::{Intercept, Moment};
use mortmain_harness::scripts::{LEAVES_DAEMON, RUNS_ON};

use crate::support::{Script, closes, dir, ground, hold, in_cell, kind_of, refused, soon};

#[test]
fn a_close_removes_the_claim_and_all_that_is_in_it() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        fs::create_dir_all(claim.path().join("a/b/c")).unwrap();
        fs::write(claim.path().join("a/b/file"), "text").unwrap();
        closes(claim);
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn a_refused_close_tells_what_its_error_tells() {
    in_cell(|| {
        let ground = ground();
        let namespace = ground.namespace();
        let claim = namespace.create().unwrap();
        assert_eq!(claim.path().ancestors().nth(2), Some(&*namespace.root()));
        let mut script = Script::start(&claim, RUNS_ON);
        script.says("its line");
        let refused = claim.close().expect_err("it is in use");
        assert_eq!(refused.to_string(), refused.error.to_string());
        assert!(refused.to_string().contains("end what still runs"), "{refused}");
        assert!(refused.source().is_none(), "no system call failed");
        script.child.end().unwrap();
        closes(refused.claim);
    });
}

#[test]
fn a_close_that_fails_has_the_calls_failure_as_its_source() {
    in_cell(|| {
        let ground = ground();
        let nobody = |call: &Call| matches!(call, Call::Whoami);
        let claims = ground.over(&Intercept::refusing(Host, Errno::EIO, nobody));
        let refused = claims.create().unwrap().close().expect_err("who closes is not known");
        assert_eq!(refused.to_string(), refused.error.to_string());
        let source = refused.source().and_then(|source| source.downcast_ref());
        assert_eq!(source, Some(&Errno::EIO));
        drop(refused);
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_claim_that_loses_its_scope_is_removed() {
    in_cell(|| {
        let ground = ground();
        {
            let claim = ground.namespace().create().unwrap();
            fs::write(claim.path().join("file"), "text").unwrap();
        }
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn a_claim_whose_files_were_removed_by_its_user_is_closed_like_any_other() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        fs::remove_dir(claim.path()).unwrap();
        closes(claim);
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn a_close_is_refused_while_a_command_runs_and_names_it() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let mut script = Script::start(&claim, RUNS_ON);
        script.says("its line");
        let (claim, error) = refused(claim);
        assert_eq!(error.kind(), ErrorKind::InUse);
        let said = format!(
            "cannot close {}: the lock of command 0 is held; it was started as {} `sh`; \
             end what still runs and close again, or drop the claim: a later sweep removes it",
            dir(&claim).display(),
            script.child.id()
        );
        assert_eq!(error.to_string(), said);
        assert!(claim.path().is_dir());
        // It came back whole: another command can be started.
        assert_eq!(Script::start(&claim, "echo works").all(), ["works"]);
        script.child.end().unwrap();
        closes(claim);
    });
}

#[test]
fn a_close_is_refused_while_a_daemon_of_a_command_holds_its_lock() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let mut script = Script::start(&claim, LEAVES_DAEMON);
        let daemon = hold(&script.says("the daemon's pid"));
        assert!(script.child.wait().unwrap().success(), "the command itself has ended");
        let (claim, error) = refused(claim);
        assert_eq!(error.kind(), ErrorKind::InUse);
        daemon.kill().unwrap();
        daemon.gone(soon()).unwrap();
        closes(claim);
    });
}

/// A shell that ends at once and leaves a daemon by the book: in a session of its own, without any
/// descriptor but the standard ones, and working elsewhere. Says the daemon's pid, and waits at a
/// FIFO there.
fn escapes(fifo: &Path) -> String {
    format!("setsid bash -c 'exec 255>&-; cd /; echo $$; read x <$0' {} &", fifo.display())
}

#[test]
fn a_close_is_refused_while_a_daemon_that_closed_everything_carries_its_cookie() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let fifo = ground.root().join("never");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut script = Script::start(&claim, &escapes(&fifo));
        let daemon = hold(&script.says("the daemon's pid"));
        assert!(script.child.wait().unwrap().success(), "the command itself has ended");
        assert_eq!(names_in(&dir(&claim).join("commands")), [""; 0], "it was withdrawn");
        let said = format!("process {} `bash` was started under it", daemon.pid());
        let path = {
            let (claim, error) = refused(claim);
            assert_eq!(error.kind(), ErrorKind::InUse);
            assert!(error.to_string().contains(&said), "{error}");
            dir(&claim).to_owned()
        };
        // Out of its scope it is released, and sweeps see the same.
        let keeps = sentence(&ground.sweep(), &path);
        assert!(keeps.contains(&said), "{keeps}");
        daemon.kill().unwrap();
        daemon.gone(soon()).unwrap();
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn what_the_owner_itself_has_open_does_not_keep_it_from_closing() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let _log = File::create(claim.path().join("log")).unwrap();
        assert!(claim.command("true").status().unwrap().success());
        closes(claim);
    });
}

#[test]
fn who_never_started_a_command_looks_at_no_process_when_it_closes() {
    in_cell(|| {
        let ground = ground();
        let kernel = Intercept::refusing(Host, Errno::EIO, |call| matches!(call, Call::Pids));
        let claim = ground.over(&kernel).create().unwrap();
        assert_eq!(claim.close().expect("nothing uses it"), Closed::Removed);
    });
}

#[test]
fn a_close_is_refused_when_nobody_can_be_looked_at() {
    in_cell(|| {
        let ground = ground();
        let kernel = Intercept::refusing(Host, Errno::EIO, |call| call.word() == "uses");
        let mut claim = ground.over(&kernel).create().unwrap();
        let started = claim.spawn(&mut HostProgram::new("true")).unwrap();
        claim.wait(&started, Wait::Forever).unwrap();
        let refused = claim.close().expect_err("somebody may be there");
        assert_eq!(refused.error.kind(), ErrorKind::InUse);
        let said = "whether a process uses it could not be found out: input/output error (EIO)";
        assert!(refused.to_string().contains(said), "{refused}");
        drop(refused);
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_claim_in_use_that_loses_its_scope_is_released_and_its_living_owner_does_not_pin_it() {
    in_cell(|| {
        for how in ["drop", "release"] {
            let ground = ground();
            let mut owned = ground.owned();
            let command = owned.actor.spawn(RUNS_ON);
            owned.actor.said("the command's line");
            owned.actor.ask(how);
            let report = ground.sweep();
            let expected = format!(
                "kept: the lock of command 0 is held; it was started as {} `sh`",
                command.pid()
            );
            assert_eq!(sentence(&report, &owned.claim), expected, "after {how}");
            assert_eq!(names_in(&owned.claim), ["commands", "files", "released"]);
            command.kill().unwrap();
            command.gone(soon()).unwrap();
            let report = ground.sweep();
            let expected = "removed: its owner gave it up; its command has ended";
            assert_eq!(sentence(&report, &owned.claim), expected, "after {how}");
            assert_eq!(owned.actor.ask("close"), "error Nothing: there is no claim");
        }
    });
}

#[test]
fn a_claim_that_was_given_up_starts_nothing_more() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let mut command = claim.command("true");
        claim.release().unwrap();
        assert_eq!(kind_of(command.spawn()), ErrorKind::Closed);
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_command_is_waited_for_after_its_claim_was_given_up() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let mut script = Script::start(&claim, RUNS_ON);
        script.says("its line");
        claim.release().unwrap();
        hold(&script.child.id().to_string()).kill().unwrap();
        assert!(!script.child.wait().unwrap().success());
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_command_is_ended_with_its_group_after_its_claim_was_given_up() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let mut script = Script::start(&claim, "sleep 600 & echo $!; wait");
        let member = hold(&script.says("the member's pid"));
        claim.release().unwrap();
        for _ in 0..2 {
            let status = script.child.end().unwrap().expect("nobody else has reaped it");
            assert_eq!(status.signal(), Some(9));
        }
        member.gone(soon()).unwrap();
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_command_of_a_claim_that_was_moved_away_is_not_ended_as_if_that_had_been_given_up() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let mut script = Script::start(&claim, RUNS_ON);
        script.says("its line");
        let (path, away) = (dir(&claim).to_owned(), ground.root().join("away"));
        fs::rename(&path, &away).unwrap();
        assert_eq!(kind_of(script.child.end()), ErrorKind::LeaseLost);
        fs::rename(&away, &path).unwrap();
        script.child.end().unwrap().expect("it ran on");
        closes(claim);
    });
}

#[test]
fn a_command_that_the_program_has_reaped_by_itself_cannot_be_waited_for_and_need_not_be_ended() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let mut script = Script::start(&claim, "exit 0");
        let pid = nix::unistd::Pid::from_raw(script.child.id().try_into().unwrap());
        nix::sys::wait::waitpid(pid, None).unwrap();
        let error = script.child.wait().expect_err("it is nobody's child any more");
        assert_eq!(error.errno(), Some(Errno::ECHILD));
        let said = format!("cannot wait for a command of {}: ", dir(&claim).display());
        assert!(error.to_string().starts_with(&said), "{error}");
        claim.release().unwrap();
        assert_eq!(script.child.end().unwrap(), None);
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_close_that_meets_a_sweep_leaves_the_claim_to_the_sweeps() {
    in_cell(|| {
        let ground = ground();
        // A sweep that was stopped just after it got the lease, which the owner had just let go.
        let (root, sweep) = (ground.root().to_owned(), Rc::new(RefCell::new(None)));
        let held = Rc::clone(&sweep);
        let take = move || {
            let lease = File::open(only(&root)).unwrap();
            lease.try_lock().expect("the owner has let it go");
            *held.borrow_mut() = Some(lease);
        };
        let kernel = Intercept::once(Host, Moment::Before, close_has_opened(), take);
        let claim = ground.over(&kernel).create().unwrap();
        let path = PathBuf::from(claim.path().to_string());
        assert_eq!(claim.close().expect("nothing uses it"), Closed::Released);
        assert!(path.join("released").is_symlink());
        *sweep.borrow_mut() = None;
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_close_that_comes_after_a_sweep_touches_nothing_at_the_name() {
    in_cell(|| {
        let ground = ground();
        // A sweep that was killed after its rename, and then there is a directory at the name.
        let root = ground.root().to_owned();
        let take = move || {
            let claim = only(&root);
            fs::rename(&claim, root.join(".t-aaaaaaaaaaa2.dead-aaaaaaaaaaa2")).unwrap();
            fs::create_dir(&claim).unwrap();
            fs::write(claim.join("precious"), "somebody's").unwrap();
        };
        let kernel = Intercept::once(Host, Moment::Before, close_has_opened(), take);
        let claim = ground.over(&kernel).create().unwrap();
        let path = PathBuf::from(claim.path().to_string());
        assert_eq!(claim.close().expect("nothing uses it"), Closed::Released);
        assert_eq!(fs::read_to_string(path.join("precious")).unwrap(), "somebody's");
    });
}

/// Picks the lock that a close takes afresh: the first after the owner's record was renamed.
fn close_has_opened() -> impl FnMut(&Call) -> bool {
    let released = Cell::new(false);
    move |call| {
        let rename = matches!(call, Call::Rename { to, .. } if to.bytes() == b"released");
        released.set(released.get() || rename);
        released.get() && matches!(call, Call::Lock { .. })
    }
}

/// The one claim in a root.
fn only(root: &Path) -> PathBuf {
    let names = names_in(root);
    assert_eq!(names.len(), 1, "{names:?}");
    root.join(&names[0])
}

#[test]
fn a_close_is_refused_while_a_directory_inside_is_locked_and_names_it() {
    in_cell(|| {
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        fs::create_dir(claim.path().join("nested")).unwrap();
        fs::write(claim.path().join("file"), "text").unwrap();
        let lock = File::open(claim.path().join("nested")).unwrap();
        lock.try_lock().unwrap();
        let (claim, error) = refused(claim);
        assert_eq!(error.kind(), ErrorKind::InUse);
        assert!(
            error.to_string().contains("`files/nested` inside is locked by somebody"),
            "{error}"
        );
        assert_eq!(names_in(claim.path()), ["file", "nested"], "nothing was touched");
        assert!(dir(&claim).join("owner").is_symlink(), "it is held as before");
        lock.unlock().unwrap();
        closes(claim);
    });
}

#[test]
fn a_claim_with_a_locked_directory_inside_that_loses_its_scope_is_left_to_the_sweeps() {
    in_cell(|| {
        let ground = ground();
        let (path, lock) = {
            let claim = ground.namespace().create().unwrap();
            fs::create_dir(claim.path().join("nested")).unwrap();
            let lock = File::open(claim.path().join("nested")).unwrap();
            lock.try_lock().unwrap();
            (dir(&claim).to_owned(), lock)
        };
        let report = ground.sweep_unseeing();
        let expected = "kept: `files/nested` inside is locked by somebody";
        assert_eq!(sentence(&report, &path), expected);
        drop(lock);
        let report = ground.sweep();
        let expected = "removed: its owner gave it up; no command is registered";
        assert_eq!(sentence(&report, &path), expected);
    });
}

#[test]
fn a_close_is_refused_while_a_file_system_is_mounted_inside() {
    in_cell(|| {
        if !is_root("no file system can be mounted") {
            return;
        }
        let ground = ground();
        let claim = ground.namespace().create().unwrap();
        let at = claim.path().join("mnt");
        fs::create_dir(&at).unwrap();
        fs::write(claim.path().join("file"), "text").unwrap();
        let none = None::<&str>;
        nix::mount::mount(Some("x"), &at, Some("tmpfs"), nix::mount::MsFlags::empty(), none)
            .unwrap();
        let (claim, error) = refused(claim);
        assert_eq!(error.kind(), ErrorKind::InUse);
        assert!(error.to_string().contains("a mount lies on `files/mnt` inside"), "{error}");
        assert_eq!(names_in(claim.path()), ["file", "mnt"], "nothing was touched");
        nix::mount::umount(&at).unwrap();
        closes(claim);
    });
}

#[test]
fn what_comes_in_the_way_of_a_close_after_its_look_is_told_and_left_to_the_sweeps() {
    in_cell(|| {
        let ground = ground();
        let (root, held) = (ground.root().to_owned(), Rc::new(RefCell::new(None)));
        let lock = Rc::clone(&held);
        let act = move || {
            let nested = only(&root).join("files/nested");
            fs::create_dir(&nested).unwrap();
            let nested = File::open(nested).unwrap();
            nested.try_lock().unwrap();
            *lock.borrow_mut() = Some(nested);
        };
        let gives_up =
            |call: &Call| matches!(call, Call::Rename { to, .. } if to.bytes() == b"released");
        let kernel = Intercept::once(Host, Moment::After, gives_up, act);
        let claim = ground.over(&kernel).create().unwrap();
        let path = PathBuf::from(claim.path().to_string());
        let Ok(Closed::Obstructed(obstacles)) = claim.close() else {
            panic!("it was not obstructed")
        };
        let whats: Vec<Hindrance> = obstacles.iter().map(|obstacle| obstacle.what).collect();
        assert_eq!(whats, [Hindrance::Locked]);
        assert_eq!(names_in(&path), ["commands", "files", "released"]);
        *held.borrow_mut() = None;
        assert_eq!(ground.sweep().removed(), 1);
    });
}

#[test]
fn a_claim_that_loses_its_scope_while_calls_fail_is_given_up_all_the_same() {
    in_cell(|| {
        let ground = ground();
        let short = Rc::new(Cell::new(false));
        let now = Rc::clone(&short);
        let lacking = move |call: &Call| {
            // Everything that needs a descriptor of its own.
            let opens = matches!(
                call,
                Call::OpenDir { .. } | Call::OpenFile { .. } | Call::StatAt { .. } | Call::Identity
            );
            now.get() && opens
        };
        let kernel = Intercept::refusing(Host, Errno::EMFILE, lacking);
        let path = {
            let claim = ground.over(&kernel).create().unwrap();
            let path = PathBuf::from(claim.path().to_string());
            short.set(true);
            path
        };
        let given_up = names_in(&path);
        assert_eq!(given_up, ["commands", "files", "released"], "its living owner would pin it");
        assert_eq!(ground.sweep().removed(), 1);
    });
}
