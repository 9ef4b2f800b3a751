//! What the tools answer to arguments that fit, and to those that do not.

use std::path::Path;

use mortmain_harness::ground::names_in;
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::wait::file_appears;
use serde_json::{Value, json};

use crate::client::Client;
use crate::support::{in_cell, soon, text};

#[test]
fn a_command_runs_in_the_session_directory_without_input_and_with_the_helpers_first() {
    in_cell(|| {
        let root = scratch_root();
        let mut server = Client::start(&root, &[]);
        let ran = server.shell("pwd; cat; command -v mortmain-session; echo no >&2; exit 3");
        let session = server.session();
        let helper = session.with_file_name("bin").join("mortmain-session");
        let expected = format!("{}\n{}\n", session.display(), helper.display());
        assert_eq!(ran["stdout"], json!(expected));
        assert_eq!((&ran["stderr"], &ran["status"]), (&json!("no\n"), &json!(3)));
        assert_eq!((&ran["timed_out"], ran.get("signal")), (&json!(false), None));

        let path = server.shell("echo $PATH");
        let bin = helper.parent().and_then(Path::to_str).expect("it is ASCII");
        assert!(path["stdout"].as_str().expect("it is text").starts_with(bin), "{path}");
        assert_eq!(server.shell("kill -KILL $$")["signal"], 9);
        assert_eq!(server.shell("printf 'a\\377b'")["stdout"], "a\u{fffd}b");
        assert_eq!(server.shell("-no-option")["status"], 127);
        assert!(server.ends().success());
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn of_what_is_too_much_the_beginning_is_told_and_the_rest_is_counted() {
    in_cell(|| {
        let root = scratch_root();
        let mut server = Client::start(&root, &[]);
        let ran = server.shell("head -c 1000000 /dev/zero | tr '\\0' x; echo end >&2");
        assert_eq!(ran["stdout"].as_str().expect("it is text").len(), 64 << 10);
        assert_eq!(ran["stdout_cut"], 1_000_000 - (64 << 10));
        assert_eq!((&ran["stderr"], &ran["stderr_cut"]), (&json!("end\n"), &json!(0)));
        assert!(server.ends().success());
    });
}

#[test]
fn commands_run_beside_each_other() {
    in_cell(|| {
        let root = scratch_root();
        let mut server = Client::start(&root, &[]);
        let call = server.begins("mkfifo talk; read word <talk; echo heard $word");
        file_appears(&server.session(), "talk".as_ref(), soon()).unwrap();
        // Each waits for the other one.
        assert_eq!(server.shell("echo hello >talk")["status"], 0);
        let heard = server.answer(call.id);
        assert_eq!(heard["result"]["structuredContent"]["stdout"], "heard hello\n");
        assert!(server.ends().success());
    });
}

fn notes(server: &mut Client, arguments: Value) -> Value {
    server.tool("notes", arguments)["structuredContent"]["notes"].take()
}

#[test]
fn notes_in_a_file_outlive_the_server_and_commands_write_them_too() {
    in_cell(|| {
        let (root, elsewhere) = (scratch_root(), scratch_root());
        let file = elsewhere.join("notes");
        let option = ["--notes", file.to_str().expect("it is ASCII")];
        let mut first = Client::start(&root, &option);
        assert_eq!(notes(&mut first, json!({})), json!([]));
        assert_eq!(notes(&mut first, json!({ "add": "one" })), json!(["one"]));
        assert_eq!(first.shell("mortmain-note two words")["status"], 0);
        first.dies();

        let mut next = Client::start(&root, &option);
        assert_eq!(notes(&mut next, json!({})), json!(["one", "two words"]));
        assert_eq!(notes(&mut next, json!({ "remove": 1 })), json!(["two words"]));
        let none = next.tool("notes", json!({ "remove": 2 }));
        assert_eq!(none["content"][0]["text"], "there is no note of that number");
        assert_eq!(none["isError"], true);
        assert!(next.ends().success());
        assert_eq!(text(file), r#"["two words"]"#);
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn arguments_that_do_not_fit_are_refused_with_a_reason() {
    in_cell(|| {
        let root = scratch_root();
        let mut server = Client::start(&root, &[]);
        for (tool, arguments, why) in [
            ("shell", json!({}), "missing field `command`"),
            ("shell", json!({ "command": 1 }), "invalid type: integer `1`"),
            ("shell", json!({ "command": "a\u{0}b" }), "no command line has a NUL in it"),
            (
                "shell",
                json!({ "command": "true", "timeout_ms": 0 }),
                "timeout_ms is 0; it has to be from 1 to 3600000",
            ),
            ("shell", json!({ "command": "true", "timeout": 1 }), "unknown field `timeout`"),
            ("list_claims", json!({ "all": true }), "unknown field `all`"),
            (
                "shell",
                json!({ "command": ":".repeat(128 * 1024) }),
                "command has 131072 bytes; the system takes at most 131071",
            ),
            ("notes", json!({ "add": "a", "remove": 1 }), "give `add` or `remove`"),
            ("notes", json!({ "remove": 0 }), "notes are counted from 1"),
            ("sweep", json!({}), "there is no tool `sweep`"),
        ] {
            let id = server.send("tools/call", json!({ "name": tool, "arguments": arguments }));
            let answer = server.answer(id);
            let told = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(told.contains(why), "{answer}");
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
        for parameters in [json!({}), json!({ "name": "shell", "arguments": [1] })] {
            let id = server.send("tools/call", parameters);
            let answer = server.answer(id);
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            assert_eq!(answer["error"]["message"], "these are no parameters of `tools/call`");
        }
        let id = server.send("tools/sing", json!({}));
        assert_eq!(server.answer(id)["error"]["code"], -32601);
        assert!(server.ends().success());
    });
}

#[test]
fn the_longest_command_line_that_is_taken_is_run() {
    in_cell(|| {
        let root = scratch_root();
        let mut server = Client::start(&root, &[]);
        let line = format!("echo there #{}", "x".repeat(128 * 1024 - 1 - 12));
        assert_eq!(server.shell(&line)["stdout"], "there\n");
        assert!(server.ends().success());
    });
}

#[test]
fn a_line_that_nobody_can_read_is_told_beside_the_protocol() {
    in_cell(|| {
        let root = scratch_root();
        let mut server = Client::start(&root, &[]);
        // What some clients make of half a character.
        let line = r#"{"jsonrpc":"2.0","id":7,"method":"\ud800"}"#;
        server.child().send_line(line, soon()).unwrap();
        let told = "the client wrote a line that is no JSON, which is not answered: ";
        server.note("what is wrong with the line", |note| note.contains(told));
        assert_eq!(server.shell("echo here")["stdout"], "here\n");
        assert!(server.ends().success());
    });
}
