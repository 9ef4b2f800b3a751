//! The terminal, and who has it.
//!
//! A command of a claim has a process group of its own, so the terminal has to be handed over to it
//! and taken back, as a shell does for its jobs. The command takes it itself, before it becomes its
//! program: handed over by us after that, it could come too late for a program that asks at once.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;

use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use crate::exit::Exit;
use crate::output;
use crate::process::not_started;

/// The first argument of this program where it is to take the terminal and become another one.
pub(crate) const ROLE: &str = "exec-in-foreground";

/// The controlling terminal of this process.
#[derive(Debug)]
pub(crate) struct Terminal {
    tty: File,
    /// The settings that it had before the command.
    before: Termios,
    /// Those that the command had made when it was stopped.
    of_command: Option<Termios>,
}

impl Terminal {
    /// The controlling terminal, if there is one.
    pub(crate) fn controlling() -> Option<Terminal> {
        let tty = open().ok()?;
        let before = tcgetattr(&tty).ok()?;
        Some(Terminal { tty, before, of_command: None })
    }

    /// Whether our group is the one that the terminal listens to.
    pub(crate) fn is_ours(&self) -> bool {
        tcgetpgrp(&self.tty) == Ok(getpgrp())
    }

    /// Hands it over to the command's group, with the settings that the command had made.
    pub(crate) fn give(&mut self, group: Pid) {
        unstopped(|| {
            if let Some(of_command) = self.of_command.take() {
                let _ = tcsetattr(&self.tty, SetArg::TCSADRAIN, &of_command);
            }
            // A terminal that has gone is nobody's.
            let _ = tcsetpgrp(&self.tty, group);
        });
    }

    /// Takes it back from the command, which is stopped: its settings are kept for it.
    pub(crate) fn take_from_stopped(&mut self, group: Pid) {
        if self.take(group) {
            self.of_command = tcgetattr(&self.tty).ok();
            self.restore();
        }
    }

    /// Takes it back from the command, which has ended. One that was killed could not put its
    /// settings back.
    pub(crate) fn take_from_ended(&mut self, group: Pid, killed: bool) {
        if self.take(group) && killed {
            self.restore();
        }
    }

    fn restore(&self) {
        unstopped(|| {
            let _ = tcsetattr(&self.tty, SetArg::TCSADRAIN, &self.before);
        });
    }

    /// Answers whether it was the command's. In the background it is our shell's, who must keep it.
    fn take(&self, group: Pid) -> bool {
        let Ok(now) = tcgetpgrp(&self.tty) else { return false };
        let nobodys = || kill(Pid::from_raw(-now.as_raw()), None) == Err(nix::errno::Errno::ESRCH);
        let was_given = now == group || nobodys();
        if was_given {
            unstopped(|| {
                let _ = tcsetpgrp(&self.tty, getpgrp());
            });
        }
        was_given
    }
}

fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

/// Whether the command is to have the terminal from the start. In a pipeline it may be a neighbour's
/// as well, a pager's say; the command then gets it when it asks for it.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Does something that the kernel would stop a background process for.
fn unstopped(work: impl FnOnce()) {
    let mut stop = SigSet::empty();
    stop.add(Signal::SIGTTOU);
    let before = stop.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    work();
    if let Ok(before) = before {
        // It was valid before.
        let _ = before.thread_set_mask();
    }
}

/// A command line that takes the terminal, if it still is our group's, and becomes this one.
pub(crate) fn in_foreground(line: &[OsString]) -> Vec<OsString> {
    let own = ["/proc/self/exe".into(), ROLE.into(), getpgrp().to_string().into()];
    own.into_iter().chain(line.iter().cloned()).collect()
}

/// The child's part of [`in_foreground`]: takes the terminal from a group and becomes a program.
pub(crate) fn exec_in_foreground(args: impl IntoIterator<Item = OsString>) -> Exit {
    let mut args = args.into_iter();
    let from = args.next().and_then(|group| group.to_str()?.parse().ok()).map(Pid::from_raw);
    let (Some(from), Some(program)) = (from, args.next()) else {
        output::error(format_args!("`{ROLE}` is for this program's own use"));
        return Exit::Usage;
    };
    if let Ok(tty) = open()
        && tcgetpgrp(&tty) == Ok(from)
    {
        unstopped(|| {
            let _ = tcsetpgrp(&tty, getpgrp());
        });
    }
    let failure = not_started(&program, std::process::Command::new(&program).args(args).exec());
    output::error(&failure);
    failure.exit
}
