//! A server that is killed: its commands live on in a directory that nobody takes, and after their
//! end the next start takes it.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use mortmain_harness::ground::names_in;
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::wait::file_appears;

use crate::client::Client;
use crate::support::{in_cell, server, soon, text};

fn name_of(claim: &Path) -> String {
    let name = claim.file_name().expect("it has one");
    name.to_str().expect("it is ASCII").into()
}

#[test]
fn the_command_of_a_killed_server_goes_on_with_its_helpers_and_its_claim_goes_after_it() {
    in_cell(|| {
        let root = scratch_root();
        let mut first = Client::start(&root, &[]);
        let (session, claim) = (first.session(), first.claim());
        // The first helper is there before the death, the other one is called for long after it.
        let script = "echo alive >file; mkfifo go; read x <go; mortmain-note from an orphan; \
                      mortmain-session >said; mv said helped; mkfifo never; read x <never";
        let command = first.begins(script);
        let mut canary = Client::start(&root, &[]);
        let canary_claim = canary.claim();
        first.dies();
        canary.dies();

        let mut next = Client::start(&root, &[]);
        assert!(!canary_claim.exists(), "the sweep at the start removes what nobody uses");
        let kept = format!("{}: kept: the lock of command ", name_of(&claim));
        next.note("why the claim stays", |note| note.contains(&kept));
        let (verdict, sentence) = &next.claims()[&name_of(&claim)];
        assert_eq!(verdict, "keep");
        assert!(sentence.starts_with("kept: the lock of command "), "{sentence}");

        file_appears(&session, "go".as_ref(), soon()).unwrap();
        File::options().write(true).open(session.join("go")).unwrap().write_all(b"\n").unwrap();
        let helped = file_appears(&session, "helped".as_ref(), soon()).unwrap();
        assert_eq!(text(helped).trim_end(), session.to_str().expect("it is ASCII"));
        assert_eq!(text(session.with_file_name("notes.json")), r#"["from an orphan"]"#);
        assert_eq!(text(session.join("file")), "alive\n");
        assert!(!command.shell.is_gone().unwrap());

        command.dies();
        assert_eq!(next.claims()[&name_of(&claim)].0, "remove");
        let mut last = Client::start(&root, &[]);
        assert!(!claim.exists(), "the sweep after its end removes it");
        assert!(next.ends().success());
        assert!(last.ends().success());
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn ten_respawns_with_the_whole_tree_killed_leave_at_most_one_generation() {
    in_cell(|| {
        let root = scratch_root();
        for _ in 0..10 {
            let mut server = Client::start(&root, &[]);
            let claim = server.claim();
            assert_eq!(names_in(&root), [name_of(&claim).as_str()], "the one before it is gone");
            let command = server.begins("mkfifo never; read x <never & read x <never");
            server.dies();
            command.dies();
        }
        assert!(Client::start(&root, &[]).ends().success());
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn a_server_that_is_killed_before_its_client_speaks_leaves_what_the_next_one_removes() {
    in_cell(|| {
        let root = scratch_root();
        for _ in 0..4 {
            let mut server = Client::of(server(&root, &[]));
            server.note("what came of the sweep", |note| note.contains(": swept "));
            server.dies();
        }
        assert!(Client::start(&root, &[]).ends().success());
        assert!(names_in(&root).is_empty());
    });
}
