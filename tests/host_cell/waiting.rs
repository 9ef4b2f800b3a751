//! Waits for files and for processes that are nobody's children.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use mortmain_harness::cell;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::wait::{WaitError, Watch, file_appears, gone};

use crate::support::{LAB, briefly, own_pid, sh, soon};

/// A shell that does the rest of the script once it is sent a line.
fn on_request(script: &str, dir: &std::path::Path) -> ChildGuard {
    let mut command: Command = sh(&format!("echo ready; read line; {script}"));
    command.current_dir(dir);
    let mut child = ChildGuard::spawn_with_stdin(command).unwrap();
    child.lines().next_line(soon(), "`ready`").unwrap();
    child
}

#[test]
fn a_file_that_is_there_is_found_at_once_whatever_it_is() {
    cell::enter(LAB, || {
        let dir = scratch_root();
        fs::write(dir.join("file"), "").unwrap();
        fs::create_dir(dir.join("dir")).unwrap();
        symlink("nowhere", dir.join("link")).unwrap();
        for name in ["file", "dir", "link"] {
            let found = file_appears(&dir, OsStr::new(name), briefly()).unwrap();
            assert_eq!(found, dir.join(name));
        }
    });
}

#[test]
fn a_file_that_comes_later_is_found_by_whatever_name_it_came() {
    cell::enter(LAB, || {
        for how in [": > made", ": > other; mv other made", "ln -s x made", ": > made; rm made"] {
            let dir = scratch_root();
            let mut child = on_request(how, &dir);
            // It may come before the watch stands, or after: both must do.
            child.send_line("", soon()).unwrap();
            let vanishes = how.ends_with("rm made");
            match file_appears(&dir, OsStr::new("made"), if vanishes { briefly() } else { soon() })
            {
                Ok(path) => assert_eq!(path, dir.join("made")),
                Err(e) => {
                    assert!(vanishes && matches!(e, WaitError::Deadline { .. }), "{how}: {e}")
                }
            }
        }
    });
}

#[test]
fn a_file_that_does_not_come_is_told_with_what_is_there() {
    cell::enter(LAB, || {
        let dir = scratch_root();
        let wait = || file_appears(&dir, OsStr::new("made"), briefly()).unwrap_err().to_string();
        let expected = format!("waited 100ms for {}/made to appear, in vain: ", dir.display());
        assert_eq!(wait(), format!("{expected}the directory is empty"));
        fs::write(dir.join("b"), "").unwrap();
        fs::write(dir.join("a"), "").unwrap();
        assert_eq!(wait(), format!("{expected}the directory holds a, b"));
    });
}

#[test]
fn a_file_cannot_come_into_a_directory_that_goes() {
    cell::enter(LAB, || {
        let root = scratch_root();
        let dir = root.join("dir");
        fs::create_dir(&dir).unwrap();
        let mut child = on_request("rmdir dir", &root);
        child.send_line("", soon()).unwrap();
        match file_appears(&dir, OsStr::new("made"), soon()).unwrap_err() {
            // The directory went while it was watched, or before.
            WaitError::Never { because, .. } => {
                assert!(because.contains("was removed"), "{because}")
            }
            WaitError::System { source, .. } => {
                assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
            }
            other => panic!("{other}"),
        }
    });
}

#[test]
fn the_end_of_another_processs_child_can_be_waited_for() {
    cell::enter(LAB, || {
        let script = "exec 3<&0; sh -c 'read line; exit' <&3 & echo $!; wait; echo waited";
        let mut parent = ChildGuard::spawn_with_stdin(sh(script)).unwrap();
        let pid = parent.lines().next_line(soon(), "a pid").unwrap().parse().unwrap();
        let error = gone(pid, briefly()).unwrap_err().to_string();
        let expected = format!(
            "waited 100ms for the end of process {pid}, in vain: `sh` of group {} ",
            parent.pid()
        );
        assert!(error.starts_with(&expected), "{error}");
        let watch = Watch::open(pid).unwrap().expect("it lives");
        parent.send_line("", soon()).unwrap();
        watch.gone(soon()).unwrap();
        parent.lines().expect_line(soon(), "`waited`", |line| line == "waited").unwrap();
        // Reaped by its parent, it is nobody's pid.
        gone(pid, briefly()).unwrap();
        assert!(Watch::open(pid).unwrap().is_none());
    });
}

#[test]
fn what_is_no_pid_cannot_be_watched() {
    for pid in [0, -1, i32::MIN] {
        let error = Watch::open(pid).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
    assert!(!Watch::open(own_pid()).unwrap().expect("it lives").is_gone().unwrap());
}
