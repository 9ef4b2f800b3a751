//! What the server says when it is used in a wrong way, and where it says it.

use std::fs;
use std::process::Command;

use mortmain_harness::ground::names_in;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::scratch::scratch_root;
use serde_json::{Value, json};

use crate::support::{SERVER, in_cell, ran, server, soon};

#[test]
fn what_it_cannot_use_is_named_and_nothing_is_left() {
    in_cell(|| {
        let root = scratch_root();
        let file = root.join("file");
        fs::write(&file, "").unwrap();
        let (none, file) = (root.join("none"), file.to_str().expect("it is ASCII"));
        let none = none.to_str().expect("it is ASCII");
        let notes = format!("{none}/notes");
        for (options, why) in [
            (&["--root", none][..], "none"),
            (&["--root", file], "file"),
            (&["--prefix", "a b"], "`a b` is not a prefix"),
            (&["--notes", &notes], "notes"),
            (&["--notes", "/dev"], "the notes cannot be kept in /dev, which is no file"),
            (&["--notes", "/dev/null"], "the notes cannot be kept in /dev/null, which is no file"),
            (&["--listen-fds"], "LISTEN_PID: it is not set"),
            (&["--lisen-fds"], "--lisen-fds"),
            (&["word"], "'word'"),
        ] {
            let mut command = match options {
                ["--root", ..] => {
                    let mut command = Command::new("sh");
                    command.args(["-c", "exec \"$0\" \"$@\" 2>&1", SERVER]);
                    command
                }
                _ => server(&root, &[]),
            };
            command.args(options).env_remove("LISTEN_PID");
            let (code, said) = ran(command);
            assert_eq!(code, Some(2), "{options:?}: {said:#?}");
            let said = said.join("\n");
            assert!(said.contains(why) && !said.contains("panicked"), "{options:?}: {said}");
        }
        assert_eq!(names_in(&root), ["file"]);
    });
}

#[test]
fn its_help_tells_every_default() {
    in_cell(|| {
        let mut help = Command::new(SERVER);
        help.arg("--help");
        let (code, said) = ran(help);
        assert_eq!(code, Some(0));
        let said = said.join(" ");
        let said: Vec<&str> = said.split_whitespace().collect();
        let said = said.join(" ");
        for default in [
            "[default: $TMPDIR, or /tmp]",
            "[default: mortmain-server]",
            "[default: one in the claim, which goes with it]",
            "[default: end them, each with its process group]",
            "[default: one client, at standard input and output]",
        ] {
            assert!(said.contains(default), "{default}: {said}");
        }
    });
}

#[test]
fn standard_output_carries_the_protocol_alone() {
    in_cell(|| {
        let root = scratch_root();
        // There is something to be said beside it.
        fs::write(root.join("mortmain-server-aaaaaaaaaaa2"), "").unwrap();
        let mut command = Command::new(SERVER);
        command.arg("--root").arg(&root);
        let mut server = ChildGuard::spawn_with_stdin(command).unwrap();
        for line in ["no JSON", "", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"] {
            server.send_line(line, soon()).unwrap();
        }
        server.close_stdin();
        let said = server.lines().expect_eof(soon(), "the end of its output").unwrap();
        assert!(server.wait(soon()).unwrap().success());
        let said: Vec<Value> =
            said.iter().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
        assert_eq!(said, [json!({ "jsonrpc": "2.0", "id": 1, "result": {} })]);
    });
}
