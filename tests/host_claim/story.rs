//! The story that all of this is about, and the one of a server that is killed over and over.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mortmain_harness::ground::PREFIX;
use nix::sys::stat::Mode;

use crate::support::{ground, in_cell, soon};

/// A command that runs a program of the claim whenever it is told to.
const SERVES: &str = "exec 3<>orders; echo ready; \
    while read -r order <&3; do case $order in use) ./tool;; end) exit;; esac; done";

fn furnish(files: &Path) {
    fs::write(files.join("tool"), "#!/bin/sh\necho the tool runs\n").unwrap();
    fs::set_permissions(files.join("tool"), Permissions::from_mode(0o700)).unwrap();
    nix::unistd::mkfifo(&files.join("orders"), Mode::S_IRWXU).unwrap();
}

fn order(files: &Path, text: &str) {
    // With both ends open an open does not wait for the command, should it have gone.
    let orders = OpenOptions::new().read(true).write(true).open(files.join("orders"));
    let mut orders: File = orders.expect("the command's files are there");
    writeln!(orders, "{text}").unwrap();
}

#[test]
fn what_a_killed_server_left_is_reclaimed_once_its_command_has_ended() {
    in_cell(|| {
        let ground = ground();
        let mut server = ground.owned();
        furnish(&server.files());
        let command = server.actor.spawn(SERVES);
        assert_eq!(server.actor.said("the command's first line"), "ready");
        server.actor.kill();

        // Another server died meanwhile, with nothing running.
        let canary = ground.dead();

        let mut replacement = ground.actor();
        let swept = replacement.sweep(PREFIX, ground.root());
        assert_eq!((swept.removed, swept.kept), (1, 1), "{:?}", swept.report);
        assert!(!canary.exists(), "the canary is gone");
        let mut replacement = ground.owned_by(replacement);

        order(&server.files(), "use");
        assert_eq!(server.actor.said("the tool's line"), "the tool runs");
        order(&server.files(), "end");
        command.gone(soon()).unwrap();
        replacement.actor.kill();

        let swept = ground.actor().sweep(PREFIX, ground.root());
        assert_eq!((swept.removed, swept.kept), (2, 0), "{:?}", swept.report);
        assert_eq!(ground.names(), [""; 0]);
    });
}

#[test]
fn ten_generations_that_are_killed_as_a_whole_leave_one() {
    in_cell(|| {
        let ground = ground();
        for generation in 1..=10 {
            let mut actor = ground.actor();
            let swept = actor.sweep(PREFIX, ground.root());
            let before = usize::from(generation > 1);
            assert_eq!((swept.removed, swept.kept), (before, 0), "{:?}", swept.report);
            let mut server = ground.owned_by(actor);
            let script = "setsid sleep 600 & sleep 600 & echo up; wait";
            let _command = server.actor.spawn(script);
            assert_eq!(server.actor.said("the command's first line"), "up");
            assert_eq!(ground.names(), [server.claim.file_name().expect("it has a name")]);
            // Here the server's guard kills it and everything below it.
        }
        assert_eq!(ground.sweep().removed(), 1);
        assert_eq!(ground.names(), [""; 0]);
    });
}
