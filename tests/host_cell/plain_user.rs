//! A cell for who is not root: the same, and no more rights than without one.
//!
//! Root runs these tests as nobody, a plain user as itself.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use mortmain_harness::cell;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::scratch::scratch_root;

use crate::support::{
    Guardians, Inhabited, LAB, WITH_ORPHAN, assert_all_gone, cell_command, own_pid, soon,
    wait_for_all,
};

/// The uid and gid that are nobody's on every system.
const NOBODY: u32 = 65534;

/// A plain user's way to the lab.
struct PlainUser {
    lab: PathBuf,
    /// Who that is, if it is not the current user anyway.
    id: Option<u32>,
}

impl PlainUser {
    /// `None`, with the reason told, when such a user may have no cell here.
    fn new() -> Option<Self> {
        // The build may lie where nobody may look.
        let dir = scratch_root();
        let lab = dir.join("mortmain-lab");
        fs::copy(LAB, &lab).unwrap();
        let root = fs::metadata("/proc/self").unwrap().uid() == 0;
        let user = Self { lab, id: root.then_some(NOBODY) };

        let mut probe = Command::new(&user.lab);
        probe.args(["cell", "--probe"]);
        let mut probe = ChildGuard::spawn(user.becoming(probe)).unwrap();
        let said = probe.lines().expect_eof(soon(), "the end of the probe").unwrap();
        match probe.wait(soon()).unwrap().code() {
            Some(0) => Some(user),
            Some(77) => {
                println!("skipped for a plain user: {}", said.join(" "));
                None
            }
            other => panic!("the probe ended with {other:?}: {said:?}"),
        }
    }

    fn becoming(&self, mut command: Command) -> Command {
        if let Some(id) = self.id {
            // Without root's groups, which go with the uid.
            command.gid(id).uid(id);
        }
        command
    }

    fn cell(&self, script: &str) -> Command {
        let test = own_pid().to_string();
        self.becoming(cell_command(&self.lab, &["--test", &test], script))
    }
}

#[test]
fn a_plain_user_stays_plain_in_its_cell() {
    cell::enter(LAB, || {
        let Some(user) = PlainUser::new() else { return };
        let script = "
            mkdir -m 000 $MORTMAIN_SCRATCH/closed
            ls $MORTMAIN_SCRATCH/closed 2>/dev/null || echo closed
            mkdir $MORTMAIN_SCRATCH/open && echo open
            id -u; cat /proc/1/comm; grep CapEff /proc/self/status";
        let mut cell = ChildGuard::spawn(user.cell(script)).unwrap();
        let said = cell.lines().expect_eof(soon(), "the end").unwrap();
        let uid = user.id.unwrap_or_else(|| fs::metadata("/proc/self").unwrap().uid()).to_string();
        let expected = ["closed", "open", &uid, "mortmain-init", "CapEff:\t0000000000000000"];
        assert_eq!(said, expected);
        assert!(cell.wait(soon()).unwrap().success());
    });
}

#[test]
fn a_plain_users_cell_ends_with_its_program() {
    cell::enter(LAB, || {
        let Some(user) = PlainUser::new() else { return };
        let mut cell = Inhabited::start(user.cell(WITH_ORPHAN));
        cell.outside.close_stdin();
        assert_eq!(cell.outside.wait(soon()).unwrap().code(), Some(5));
        assert_all_gone(&cell.inside);
    });
}

#[test]
fn a_plain_users_cell_ends_with_its_supervisor() {
    cell::enter(LAB, || {
        let Some(user) = PlainUser::new() else { return };
        let mut cell = Inhabited::start(user.cell(WITH_ORPHAN));
        cell.outside.kill_hard().unwrap();
        wait_for_all(&cell.inside);
    });
}

#[test]
fn a_plain_users_cell_ends_with_its_runner() {
    cell::enter(LAB, || {
        let Some(user) = PlainUser::new() else { return };
        let mut guardians = Guardians::start();
        let command = user.becoming(guardians.command(&user.lab, WITH_ORPHAN));
        let mut cell = Inhabited::start(command);
        guardians.runner.kill_hard().unwrap();
        assert_eq!(cell.outside.wait(soon()).unwrap().code(), Some(128 + 15));
        assert_all_gone(&cell.inside);
    });
}

#[test]
fn in_a_user_namespace_root_has_a_cell_too() {
    cell::enter(LAB, || {
        let test = own_pid().to_string();
        let options = ["--test", &test, "--uid-map", "current"];
        let script = "cat /proc/self/uid_map /proc/1/comm";
        let mut cell = ChildGuard::spawn(cell_command(Path::new(LAB), &options, script)).unwrap();
        let said = cell.lines().expect_eof(soon(), "the end").unwrap();
        let uid = fs::metadata("/proc/self").unwrap().uid().to_string();
        let words: Vec<&str> = said[0].split_whitespace().collect();
        assert_eq!(words, [&uid, &uid, "1"]);
        assert_eq!(said[1], "mortmain-init");
    });
}
