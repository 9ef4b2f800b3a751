//! `mortmain run`: what the command finds, how it ends, and what is left.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use mortmain_harness::ground::{is_root, names_in};
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::scratch::scratch_root;

use crate::support::{TOOL, hold, in_cell, kill, ran, run_in, said, tool};

#[test]
fn the_command_ends_it_with_its_own_status() {
    in_cell(|| {
        let root = scratch_root();
        for (script, code) in [
            ("exit 0", 0),
            ("exit 3", 3),
            ("exit 255", 255),
            ("kill -TERM $$", 143),
            ("kill -KILL $$", 137),
        ] {
            assert_eq!(ran(run_in(&root, &[], script)).told(), (Some(code), vec![]), "{script}");
        }
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn a_command_that_cannot_be_run_ends_it_as_in_a_shell_and_leaves_nothing() {
    in_cell(|| {
        let root = scratch_root();
        let no_program = root.join("no-program");
        fs::write(&no_program, "").unwrap();
        fs::set_permissions(&no_program, fs::Permissions::from_mode(0o600)).unwrap();
        let run = |program: &Path| {
            let command = [Path::new("run"), "--root".as_ref(), &root, "--".as_ref(), program];
            ran(tool(command))
        };
        let said =
            "mortmain: error: cannot run `there-is-none`: No such file or directory (os error 2)";
        assert_eq!(run("there-is-none".as_ref()).told(), (Some(127), vec![said]));
        let said = format!(
            "mortmain: error: cannot run `{}`: Permission denied (os error 13)",
            no_program.display()
        );
        assert_eq!(run(&no_program).told(), (Some(126), vec![said.as_str()]));
        assert_eq!(names_in(&root), ["no-program"]);
    });
}

#[test]
fn wrong_usage_is_told_and_nothing_is_run() {
    in_cell(|| {
        let nowhere = scratch_root().join("nowhere");
        let nowhere = nowhere.to_str().expect("it is text");
        for args in [
            &["run"][..],
            &["run", "--prefix", "a/b", "--", "true"],
            &["run", "--budget", "soon", "--", "true"],
            &["run", "--root", nowhere, "--", "true"],
            &["no-such-command"],
        ] {
            let ran = ran(tool(args));
            assert_eq!(ran.status.code(), Some(2), "{args:?}: {:#?}", ran.lines);
            assert!(ran.lines.iter().any(|line| line.contains("error:")), "{:#?}", ran.lines);
        }
    });
}

#[test]
fn the_command_finds_a_fresh_directory_by_three_names_and_it_is_gone_afterwards() {
    in_cell(|| {
        let root = scratch_root();
        let script = "echo $TMPDIR; echo $TMP; echo $TEMP; ls -A $TMPDIR; touch $TMPDIR/a; \
                      stat -c %a $TMPDIR; echo $MORTMAIN_CLAIM";
        let ran = ran(run_in(&root, &["--prefix", "my-tool"], script));
        let [tmpdir, tmp, temp, mode, cookie] = &ran.lines[..] else { panic!("{ran:#?}") };
        assert_eq!((tmp, temp, mode.as_str()), (tmpdir, tmpdir, "700"));
        let claim = root.join(format!("my-tool-{cookie}"));
        assert_eq!(Path::new(tmpdir), claim.join("files"));
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn without_options_it_works_in_the_systems_temporary_directory() {
    in_cell(|| {
        let root = scratch_root();
        let mut command = tool(["run", "sh", "-c", "dirname $(dirname $TMPDIR)"]);
        command.env("TMPDIR", &root);
        let root = root.to_str().expect("it is text");
        assert_eq!(ran(command).told(), (Some(0), vec![root]));
    });
}

#[test]
fn runs_may_be_nested() {
    in_cell(|| {
        let root = scratch_root();
        let script = format!("{TOOL} run -- sh -c 'echo $TMPDIR; echo $MORTMAIN_CLAIM'");
        let ran = ran(run_in(&root, &[], &script));
        let [inner, cookies] = &ran.lines[..] else { panic!("{ran:#?}") };
        let (outer, innermost) = cookies.split_once(':').or(cookies.split_once(',')).unwrap();
        let expected = root.join(format!("mortmain-{outer}/files/mortmain-{innermost}/files"));
        assert_eq!(Path::new(inner), expected);
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn what_the_command_left_running_keeps_the_directory_until_its_end() {
    in_cell(|| {
        let root = scratch_root();
        let script = "cd $TMPDIR; mkfifo never; exec 3<>never; \
                      setsid sh -c 'echo $$; exec >/dev/null 2>&1; read x <&3' & read line";
        let mut run = ChildGuard::spawn_with_stdin(run_in(&root, &[], script)).unwrap();
        let daemon = hold(&said(&mut run, "the daemon's pid"));
        run.close_stdin();
        let ended = crate::support::finished(run);
        let [told] = &ended.lines[..] else { panic!("{ended:#?}") };
        assert!(told.starts_with("mortmain: "), "{told}");
        assert!(
            told.contains("stays, since something still uses it (the lock of command 0 is held")
        );
        assert_eq!(names_in(&root).len(), 1);

        let next = ran(run_in(&root, &["--verbose"], "true"));
        assert_eq!(next.lines.len(), 1, "{next:#?}");
        assert!(next.lines[0].contains(": kept: the lock of command 0 is held"), "{next:#?}");
        kill(&daemon);
        let last = ran(run_in(&root, &["--verbose"], "true"));
        assert!(last.lines[0].contains(": removed: its owner gave it up; "), "{last:#?}");
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn a_directory_to_keep_stays_at_the_path_that_the_command_knew() {
    in_cell(|| {
        let root = scratch_root();
        let ran = ran(run_in(&root, &["--keep"], "echo text > $TMPDIR/log; echo $TMPDIR; exit 4"));
        let [path, told] = &ran.lines[..] else { panic!("{ran:#?}") };
        assert_eq!(ran.status.code(), Some(4));
        assert_eq!(*told, format!("mortmain: kept {path}"));
        assert_eq!(fs::read_to_string(Path::new(path).join("log")).unwrap(), "text\n");
        let swept =
            crate::support::ran(tool(["sweep".as_ref(), "--root".as_ref(), root.as_os_str()]));
        assert_eq!(swept.told(), (Some(0), vec!["0 claims removed"]));
        assert!(Path::new(path).is_dir());
    });
}

#[test]
fn where_no_claim_can_be_had_it_warns_and_runs_in_an_unclaimed_directory() {
    in_cell(|| {
        if !is_root("no file system can be mounted") {
            return;
        }
        let root = scratch_root();
        let mut mount = Command::new("mount");
        mount.args(["-t", "ramfs", "ramfs"]).arg(&root);
        assert!(ran(mount).status.success());
        let script = "echo $TMPDIR; touch $TMPDIR/file; exit 6";
        let loud = ran(run_in(&root, &[], script));
        assert_eq!(loud.status.code(), Some(6));
        let [why, what, path] = &loud.lines[..] else { panic!("{loud:#?}") };
        assert!(why.starts_with("mortmain: warning: cannot create a claim in "), "{why}");
        assert!(why.contains("locks on a file system of kind 0x858458f6"), "{why}");
        assert!(what.ends_with("will stay for good if this run is killed"), "{what}");
        assert!(path.contains("/mortmain~"), "{path}");
        let quiet = ran(run_in(&root, &["--quiet"], script));
        assert_eq!(quiet.lines.len(), 1, "{quiet:#?}");
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn it_says_nothing_of_its_own_where_nothing_is_wrong() {
    in_cell(|| {
        let root = scratch_root();
        // It says its pid when it is all that is left to kill: `mkfifo` is a process, too.
        let script = "mkfifo $TMPDIR/never; echo $$; read x <$TMPDIR/never";
        let mut killed = ChildGuard::spawn(run_in(&root, &[], script)).unwrap();
        let command = hold(&said(&mut killed, "the command's pid"));
        killed.kill_hard().unwrap();
        kill(&command);
        assert_eq!(ran(run_in(&root, &[], "true")).told(), (Some(0), vec![]));
        assert!(names_in(&root).is_empty());
    });
}
