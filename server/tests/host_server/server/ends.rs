//! What ends a command: its time, its client, the server's end; and what that leaves alone.

use std::process::Command;

use mortmain_harness::ground::names_in;
use mortmain_harness::scratch::scratch_root;
use serde_json::json;

use crate::client::Client;
use crate::support::{STAYS, group, hold, in_cell, kill, ran, server, soon};

/// A script with a child in its group, and one in a session of its own, which both stay. Says their
/// pids when they are there. Each has a FIFO of its own: whoever opens the first one again could meet
/// its writer, which is about to close it.
const LEAVES_TWO: &str = "mkfifo one two never; \
    setsid sh -c 'echo $$ >one; read x <never' & read daemon <one; \
    sh -c 'echo $$ >two; read x <never' & read member <two; echo $daemon $member";

#[test]
fn the_end_of_its_input_ends_its_commands_and_then_its_claim() {
    in_cell(|| {
        let root = scratch_root();
        let mut server = Client::start(&root, &[]);
        let [one, two] = [(), ()].map(|()| server.begins(&format!("echo begun; {STAYS}")));
        assert!(server.ends().success());
        for call in [&one, &two] {
            let ran = server.answer(call.id)["result"]["structuredContent"].take();
            assert_eq!(ran["remark"], "it was ended with the connection", "{ran}");
            assert_eq!(ran["signal"], 9, "{ran}");
            assert!(call.shell.is_gone().unwrap());
            assert!(group(call.shell.pid()).is_empty());
        }
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn commands_that_are_left_keep_the_claim_until_they_have_ended() {
    in_cell(|| {
        let root = scratch_root();
        let mut server = Client::start(&root, &["--leave-commands"]);
        let claim = server.claim();
        let call = server.begins(STAYS);
        assert!(server.ends().success());
        let ran = server.answer(call.id)["result"]["structuredContent"].take();
        let remark = format!("it is left running, as process {}", call.shell.pid());
        assert_eq!(ran["remark"], json!(remark), "{ran}");
        server.note("what becomes of the claim", |note| note.contains("its claim stays until "));
        assert!(!call.shell.is_gone().unwrap());

        let mut next = Client::start(&root, &[]);
        assert!(claim.exists());
        call.dies();
        assert!(next.ends().success());
        assert!(Client::start(&root, &[]).ends().success());
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn a_signal_ends_it_as_the_end_of_its_input_does() {
    in_cell(|| {
        let root = scratch_root();
        for signal in ["TERM", "INT"] {
            let mut server = Client::start(&root, &[]);
            let call = server.begins(STAYS);
            let mut send = Command::new("kill");
            send.args(["-s", signal, &server.child().pid().to_string()]);
            assert_eq!(ran(send).0, Some(0));
            assert!(server.ended().success());
            assert!(call.shell.is_gone().unwrap());
            assert!(names_in(&root).is_empty());
        }
    });
}

#[test]
fn a_client_that_goes_before_it_says_anything_is_no_failure() {
    in_cell(|| {
        let root = scratch_root();
        let mut server = Client::of(server(&root, &[]));
        assert!(server.ends().success());
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn a_time_out_ends_the_whole_group() {
    in_cell(|| {
        let root = scratch_root();
        let mut server = Client::start(&root, &[]);
        let script = "mkfifo never; echo $$; sh -c 'read x <never' & read x <never";
        // However far it has come by then.
        let ran = server.tool("shell", json!({ "command": script, "timeout_ms": 500 }));
        assert_eq!(ran["isError"], true, "{ran}");
        let ran = &ran["structuredContent"];
        assert_eq!((&ran["timed_out"], &ran["signal"]), (&json!(true), &json!(9)), "{ran}");
        if let Ok(shell) = ran["stdout"].as_str().expect("it is text").trim_end().parse() {
            assert!(group(shell).is_empty());
        }
        // It was all of the claim's users.
        assert!(server.ends().success());
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn a_withdrawn_request_ends_its_command() {
    in_cell(|| {
        let root = scratch_root();
        let mut server = Client::start(&root, &[]);
        let call = server.begins(STAYS);
        server.says(&json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call.id },
        }));
        call.shell.gone(soon()).unwrap();
        assert_eq!(server.shell("echo next")["stdout"], "next\n");
        assert!(server.ends().success());
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn what_a_command_leaves_in_its_group_goes_with_it_and_a_session_of_its_own_keeps_the_claim() {
    in_cell(|| {
        let root = scratch_root();
        let mut server = Client::start(&root, &[]);
        let claim = server.claim();
        let ran = server.shell(LEAVES_TWO);
        assert_eq!(ran["remark"], "something of it runs on outside of its process group", "{ran}");
        assert_eq!(ran["status"], 0, "{ran}");
        let said = ran["stdout"].as_str().expect("it is text").trim_end();
        let (daemon, member) = said.split_once(' ').expect("they are two");
        let daemon = hold(daemon);
        let member: i32 = member.parse().expect("it is a pid");
        let info = mortmain_harness::processes::process(member).unwrap();
        assert!(info.is_none_or(|info| !info.lives()), "{member}");

        assert!(server.ends().success());
        server.note("what becomes of the claim", |note| note.contains("its claim stays until "));
        let mut next = Client::start(&root, &[]);
        assert!(claim.exists());
        kill(&daemon);
        assert!(next.ends().success());
        assert!(Client::start(&root, &[]).ends().success());
        assert!(names_in(&root).is_empty());
    });
}
