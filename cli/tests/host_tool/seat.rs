//! A terminal of its own for a test, a program on it, and who sits there.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::Command;

use mortmain_harness::guard::ChildGuard;
use mortmain_harness::reader::Reader;
use mortmain_harness::scratch::scratch_root;
use nix::pty::openpty;
use nix::unistd::ttyname;

use crate::support::{TOOL, soon};

pub(crate) const BASH: [&str; 4] = ["bash", "--norc", "--noediting", "-i"];

/// A shell on a terminal of its own, and who sits at it.
pub(crate) struct Seat {
    keyboard: File,
    screen: Reader,
    _program: ChildGuard,
    /// Without it the terminal would be gone with its last user, and what was said last with it.
    _line: OwnedFd,
}

impl Seat {
    /// Sits down at a shell. `$RUN` runs the tool.
    #[track_caller]
    pub(crate) fn at(shell: &[&str]) -> Seat {
        let mut seat = Seat::bare(shell);
        // What is typed is not shown, so that all that is seen was said by somebody.
        seat.types("stty -echo\n");
        seat.types("echo at ease\n");
        seat.sees("at ease");
        seat
    }

    /// The same at any program.
    #[track_caller]
    pub(crate) fn bare(program: &[&str]) -> Seat {
        let pty = openpty(None, None).unwrap();
        let mut command = Command::new("sh");
        let line = "exec setsid --ctty --wait \"$@\" <\"$0\" >\"$0\" 2>&1";
        command.args(["-c", line]).arg(ttyname(&pty.slave).unwrap()).args(program);
        let run = format!("{TOOL} run --root {} --budget 20s --", scratch_root().display());
        command.env("RUN", run).env("PS1", "").env("PS2", "").env("TERM", "dumb");
        // A dumb terminal alone is none without colours to everybody: not where `CI` is set.
        command.env("NO_COLOR", "1").env("PROMPT_COMMAND", "echo prompt").env_remove("ENV");
        let program = ChildGuard::spawn(command).unwrap();
        let keyboard = File::from(pty.master.try_clone().unwrap());
        let screen = Reader::new(pty.master, "the terminal").unwrap();
        Seat { keyboard, screen, _program: program, _line: pty.slave }
    }

    #[track_caller]
    pub(crate) fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for a line.
    #[track_caller]
    pub(crate) fn sees(&mut self, line: &str) {
        self.sees_where(line, |seen| seen == line);
    }

    #[track_caller]
    pub(crate) fn sees_where(
        &mut self,
        what: &str,
        mut wanted: impl FnMut(&str) -> bool,
    ) -> String {
        let seen = |line: &str| wanted(line.trim_end_matches('\r'));
        self.screen.expect_line(soon(), what, seen).unwrap()
    }

    /// Fails if what comes after the command says `next` before the shell asks again.
    #[track_caller]
    pub(crate) fn is_back_at_the_prompt(&mut self) {
        let line = self.sees_where("who goes on", |line| ["next", "prompt"].contains(&line));
        assert_eq!(line.trim_end(), "prompt");
    }
}
