//! A `/proc` that hides what lives proves nothing (l2, l3).
//!
//! A plain user sees of `/proc` with `hidepid` only the processes that he might trace. A process of
//! his own that runs a program which he may execute and not read is none of those.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use mortmain_harness::actor::Actor;
use mortmain_harness::cell::{Entry, Reaping};
use mortmain_harness::ground::{Ground, PREFIX, is_root};
use mortmain_harness::processes::process;
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::wait::Watch;
use nix::mount::{MsFlags, mount};

use crate::support::{LAB, in_cell, soon};

/// Hides from each user what is not his to trace.
fn hide_processes() {
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(None::<&str>, "/proc", None::<&str>, flags, Some("hidepid=2")).unwrap();
}

/// A copy of a program that others may run and not read.
fn unreadable(program: &str) -> PathBuf {
    let copy = scratch_root().join("hidden");
    fs::copy(program, &copy).unwrap();
    fs::set_permissions(&copy, Permissions::from_mode(0o711)).unwrap();
    copy
}

#[test]
fn a_living_owner_that_proc_hides_is_kept() {
    in_cell(|| {
        if !is_root("/proc cannot be mounted otherwise") {
            return;
        }
        let ground = Ground::of_plain_user(LAB);
        let hidden = ground.as_user(unreadable(LAB), &["actor"]);
        let mut owned = ground.owned_by(Actor::start_by(hidden));
        owned.actor.must("lose-lease", "lost 1");
        hide_processes();
        let swept = ground.sweep_as_user();
        assert_eq!((swept.removed, swept.kept), (0, 1), "{:?}", swept.report);
        let expected = format!(
            "kept: whether owner {} `hidden` runs could not be found out: \
             no such file or directory (ENOENT)",
            owned.actor.pid()
        );
        assert!(swept.report[0].ends_with(&expected), "{:?}", swept.report);
        owned.actor.kill();
        assert_eq!(ground.sweep_as_user().removed, 1);
    });
}

#[test]
fn a_group_of_which_proc_shows_only_a_zombie_is_kept() {
    Entry::new(LAB).reaping(Reaping::Never).run(|| {
        if !is_root("/proc cannot be mounted otherwise") {
            return;
        }
        let ground = Ground::of_plain_user(LAB);
        let cat = ["/bin/cat", "/usr/bin/cat"].into_iter().find(|path| fs::exists(path).unwrap());
        let hidden = unreadable(cat.expect("every system has it"));
        let mut owned = ground.owned();
        let script = format!(
            "mkfifo never; bash -c 'exec 255>&-; echo $$; exec {} never' &",
            hidden.display()
        );
        let leader = owned.actor.spawn(&script);
        let member = owned.actor.said("the member's pid").parse().unwrap();
        let member = Watch::open(member).unwrap().expect("it lives");
        leader.gone(soon()).unwrap();
        // There is no event for an exec that all kernels have; it follows the line at once.
        let deadline = soon();
        while process(member.pid()).unwrap().is_some_and(|info| info.comm != "hidden") {
            assert!(!deadline.passed(), "it does not become what it is to be");
            std::thread::yield_now();
        }
        owned.actor.kill();
        hide_processes();
        let swept = ground.actor().sweep(PREFIX, ground.root());
        assert_eq!((swept.removed, swept.kept), (0, 1), "{:?}", swept.report);
        let expected = format!(
            "kept: who is in group {} could not be seen: /proc is of another namespace, or hides \
             processes",
            leader.pid()
        );
        assert!(swept.report[0].ends_with(&expected), "{:?}", swept.report);
        assert!(!member.is_gone().unwrap());
    });
}
