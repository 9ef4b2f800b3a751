//! A command while it runs: its signals, its stops and its end.
//!
//! What a shell does for a job is done here for the command, since it has a process group of its
//! own: signals that come to us go on to that group, a stop of it is a stop of ours, and whoever
//! continues us continues it. Everything that happens comes as a signal, so there is one loop, and
//! nothing in it waits for anything else.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::errno::Errno;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, getpgrp, getpid};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::exit::Failure;
use crate::process::{Process, is_ignored, is_orphaned};
use crate::terminal::Terminal;

/// What is passed on to the command's group.
const PASSED_ON: [Signal; 8] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
    Signal::SIGWINCH,
];

/// Listens for signals. It is made before the command is started, so that none is lost.
#[derive(Debug)]
pub(crate) struct Listener(Signals);

impl Listener {
    /// Listens from now on.
    pub(crate) fn new() -> io::Result<Listener> {
        // Whoever started us may have blocked it, and then no end would ever be heard of.
        SigSet::from(Signal::SIGCHLD).thread_unblock()?;
        let passed_on = PASSED_ON.into_iter().map(|signal| signal as i32);
        // What is ignored stays so, as `nohup` wants it.
        let heard = passed_on.filter(|signal| !is_ignored(*signal));
        let own = [Signal::SIGCHLD as i32, Signal::SIGCONT as i32];
        Ok(Listener(Signals::new(own.into_iter().chain(heard))?))
    }

    /// From now on every signal does what it does to a program that does not listen.
    pub(crate) fn close(self) -> io::Result<()> {
        let heard = PASSED_ON.into_iter().map(|signal| signal as i32);
        for signal in heard.filter(|signal| !is_ignored(*signal)) {
            signal_hook::flag::register_conditional_default(signal, always())?;
        }
        self.0.handle().close();
        Ok(())
    }
}

fn always() -> std::sync::Arc<std::sync::atomic::AtomicBool> {
    std::sync::Arc::new(true.into())
}

/// A command that runs.
#[derive(Debug)]
pub(crate) struct Job {
    process: Process,
    group: Pid,
    terminal: Option<Terminal>,
    /// Whether the command has the terminal whenever we could have it.
    in_foreground: bool,
    /// Whether the next SIGTSTP is one that we have sent to our own group.
    own_stop: bool,
    /// Whether the next SIGCONT is the one that ended a stop of ours, after which the command was
    /// continued at once.
    own_continue: bool,
    /// Whether the terminal, while it was ours, has interrupted us and our group.
    interrupted: bool,
}

impl Job {
    /// A command that was just started.
    pub(crate) fn new(process: Process, terminal: Option<Terminal>, in_foreground: bool) -> Job {
        let group = process.pid();
        Job {
            process,
            group,
            terminal,
            in_foreground,
            own_stop: false,
            own_continue: false,
            interrupted: false,
        }
    }

    /// Waits for the command's end, and does for it meanwhile what a shell does for a job.
    pub(crate) fn wait(&mut self, listener: &mut Listener) -> Result<ExitStatus, Failure> {
        loop {
            if let Some(status) = self.process.try_wait()? {
                if let Some(terminal) = &mut self.terminal {
                    terminal.take_from_ended(self.group, status.signal().is_some());
                }
                return Ok(status);
            }
            if let Some(by) = self.stopped() {
                self.on_stop(by);
                continue;
            }
            self.reap_orphans();
            let came: Vec<i32> = listener.0.wait().collect();
            for signal in came.into_iter().filter_map(|signal| Signal::try_from(signal).ok()) {
                match signal {
                    Signal::SIGCHLD => {}
                    // It is heard of late, and the command may have been stopped anew by now.
                    Signal::SIGCONT if self.own_continue => {
                        self.own_continue = false;
                        self.hand_over();
                    }
                    Signal::SIGCONT => self.resume(),
                    Signal::SIGTSTP if self.own_stop => self.own_stop = false,
                    signal => self.pass_on(signal),
                }
            }
        }
    }

    /// Ends as the command did that somebody at the terminal interrupted: by the same signal, so
    /// that a shell ends its loop or its script, too. Returns where that does not end us.
    pub(crate) fn end_with_it(&self, status: ExitStatus) {
        let by = status.signal().and_then(|signal| Signal::try_from(signal).ok());
        let Some(by @ (Signal::SIGINT | Signal::SIGQUIT)) = by else { return };
        // The first process of a container does not end by a signal.
        if self.terminal.is_none() || getpid() == Pid::from_raw(1) {
            return;
        }
        // Our memory is not what somebody wants to look at.
        let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
        if self.interrupted {
            let _ = kill(getpid(), by);
        } else if self.in_foreground {
            // The terminal knew the command's group alone, and would have told ours as well.
            let _ = killpg(getpgrp(), by);
        }
    }

    fn pass_on(&mut self, signal: Signal) {
        if matches!(signal, Signal::SIGINT | Signal::SIGQUIT) {
            self.interrupted = self.terminal.as_ref().is_some_and(Terminal::is_ours);
        }
        // It was not reaped, so the number is still its own; but it may have left the group.
        if killpg(self.group, signal) == Err(Errno::ESRCH) {
            let _ = kill(self.group, signal);
        }
    }

    /// The signal that the command was stopped by, if it was since the last look. Without a terminal
    /// a stop is between the command and whoever stopped it.
    fn stopped(&self) -> Option<Signal> {
        self.terminal.as_ref()?;
        let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG;
        match waitid(Id::Pid(self.group), flags) {
            Ok(WaitStatus::Stopped(_, by)) => Some(by),
            _ => None,
        }
    }

    fn on_stop(&mut self, by: Signal) {
        let Some(terminal) = &mut self.terminal else { return };
        let asks = matches!(by, Signal::SIGTTIN | Signal::SIGTTOU);
        if asks && terminal.is_ours() {
            // It was started beside others who may have wanted the terminal, and asks for it now.
            self.in_foreground = true;
            self.resume();
            return;
        }
        if !is_orphaned() {
            terminal.take_from_stopped(self.group);
            self.stop_with_it();
            self.resume();
            return;
        }
        // There is no shell above that could continue it. The kernel does the same to a program in
        // our place: it ignores Ctrl-Z, and lets reading from a terminal that it has not fail.
        match by {
            Signal::SIGSTOP => return,
            Signal::SIGTSTP => {}
            _ => self.pass_on(Signal::SIGHUP),
        }
        self.resume();
    }

    /// Stops us and our group, until somebody continues us.
    fn stop_with_it(&mut self) {
        // Of the shell's job we are one process; those beside us would have been stopped, too.
        self.own_stop = !is_ignored(Signal::SIGTSTP as i32);
        let _ = killpg(getpgrp(), Signal::SIGTSTP);
        // Our own part of it is caught by the listener.
        self.own_continue = emulate_default_handler(Signal::SIGTSTP as i32).is_ok();
    }

    /// Continues the command, in the foreground if we are.
    fn resume(&mut self) {
        self.hand_over();
        self.pass_on(Signal::SIGCONT);
    }

    /// Gives the command the terminal, if it is ours to give.
    fn hand_over(&mut self) {
        if let Some(terminal) = &mut self.terminal
            && self.in_foreground
            && terminal.is_ours()
        {
            terminal.give(self.group);
        }
    }

    /// As the first process of a container we are the parent of all that lost theirs.
    fn reap_orphans(&self) {
        if getpid() != Pid::from_raw(1) {
            return;
        }
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        while let Ok(found) = waitid(Id::All, look) {
            let ended = found.pid().filter(|pid| *pid != self.group);
            let Some(orphan) = ended else { return };
            let _ = waitid(Id::Pid(orphan), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG);
        }
    }
}
