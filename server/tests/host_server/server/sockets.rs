//! Sockets that a service manager passes: a client a connection, and one claim for all.

use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use mortmain_harness::ground::names_in;
use mortmain_harness::scratch::scratch_root;
use nix::fcntl::{FcntlArg, fcntl};
use serde_json::json;

use crate::client::Client;
use crate::support::{SERVER, STAYS, in_cell, ran, soon};

/// The server, as a service manager starts it that passes this socket.
#[track_caller]
fn activated(root: &Path, socket: &impl AsFd) -> Command {
    // Inheritable, at a number that a plain shell can name.
    let number = fcntl(socket, FcntlArg::F_DUPFD(8)).expect("there are numbers left");
    assert!(number <= 9, "{number} is a number that a plain shell cannot name");
    let mut command = Command::new("sh");
    let script = format!(
        "export LISTEN_PID=$$ LISTEN_FDS=1; exec 3<&{number} {number}<&- 2>&1; exec \"$0\" \"$@\""
    );
    command.args(["-c", &script, SERVER, "--listen-fds", "--root"]).arg(root);
    command.env_remove("LISTEN_FDNAMES").env_remove("LISTEN_PIDFDID");
    command
}

#[test]
fn each_connection_has_commands_of_its_own_which_end_with_it() {
    in_cell(|| {
        let (root, outside) = (scratch_root(), scratch_root());
        let path = outside.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        // Its input has ended already, as a service's has.
        let mut server = Client::of(activated(&root, &listener));
        server.child().close_stdin();
        let [mut one, mut other] = [(), ()].map(|()| Client::connected(&path));
        assert_eq!(one.session(), other.session());
        let own = one.begins(STAYS);
        std::fs::remove_file(one.session().join("pid")).unwrap();
        let others = other.begins("mkfifo other; read x <other");
        // Its variables and its socket are the server's alone.
        let handed_on = other.shell("echo $LISTEN_FDS $LISTEN_PID; ls /proc/self/fd | wc -l");
        assert!(handed_on["stdout"].as_str().is_some_and(|said| said.starts_with('\n')));

        one.goes();
        own.shell.gone(soon()).unwrap();
        assert!(!others.shell.is_gone().unwrap());
        assert_eq!(other.shell("echo here")["stdout"], "here\n");

        let mut send = Command::new("kill");
        send.args(["-s", "TERM", &server.child().pid().to_string()]);
        assert_eq!(ran(send).0, Some(0));
        let answer = other.answer(others.id);
        let ran = &answer["result"]["structuredContent"];
        assert_eq!(ran["remark"], json!("it was ended with the connection"), "{answer}");
        assert!(server.ended().success());
        assert!(others.shell.is_gone().unwrap());
        assert!(names_in(&root).is_empty());
    });
}

#[test]
fn a_socket_that_anybody_could_reach_is_refused() {
    in_cell(|| {
        let root = scratch_root();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (code, said) = ran(activated(&root, &listener));
        assert_eq!(code, Some(2), "{said:#?}");
        assert!(said.concat().contains("is no Unix socket"), "{said:#?}");
        assert!(names_in(&root).is_empty());
    });
}
