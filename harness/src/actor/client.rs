//! The other side: who tells an actor what to do, and kills it.
//!
//! Invariants: every answer is waited for under a deadline; what commands say is kept until it is
//! asked for, whenever it comes. What goes wrong panics with what was waited for and what came, as
//! it would be the end of the test anyway.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::guard::ChildGuard;
use crate::wait::{Deadline, Watch};

/// Longer than anything here takes on a loaded machine.
const PATIENCE_SECS: u64 = 20;

/// A running actor. It ends with this value, and everything below it.
#[derive(Debug)]
pub struct Actor {
    guard: ChildGuard,
    /// What its commands said and nobody asked for yet.
    said: VecDeque<String>,
    /// The lines of the last report.
    report: Vec<String>,
}

/// What a sweep of an actor's came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The report, a line an entry.
    pub report: Vec<String>,
    /// How many were removed.
    pub removed: usize,
    /// How many were kept because they may be in use.
    pub kept: usize,
    /// How many stay because something forbids their removal.
    pub blocked: usize,
    /// How many are other users'.
    pub foreign: usize,
}

impl Actor {
    /// Starts an actor by the lab's binary.
    #[must_use]
    #[track_caller]
    pub fn start(lab: impl AsRef<Path>) -> Self {
        let mut command = Command::new(lab.as_ref());
        command.arg("actor");
        Self::start_by(command)
    }

    /// Starts a command that becomes an actor.
    #[must_use]
    #[track_caller]
    pub fn start_by(command: Command) -> Self {
        match ChildGuard::spawn_with_stdin(command) {
            Ok(guard) => Self { guard, said: VecDeque::new(), report: Vec::new() },
            Err(e) => panic!("{e}"),
        }
    }

    /// Its pid.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.guard.pid()
    }

    /// Tells it something, and waits for its answer.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> String {
        self.begin(line);
        self.answer_to(line)
    }

    /// Tells it something, without waiting.
    #[track_caller]
    pub fn begin(&mut self, line: &str) {
        self.send(line);
    }

    /// Waits for the answer to what it was told.
    #[track_caller]
    pub fn answer_to(&mut self, line: &str) -> String {
        self.answer(&format!("the answer to `{line}`"))
    }

    /// The same, for what has to go well: the rest of the answer after this word.
    #[track_caller]
    pub fn must(&mut self, line: &str, word: &str) -> String {
        let answer = self.ask(line);
        match answer.strip_prefix(word) {
            Some(rest) => rest.trim_start().into(),
            None => panic!("asked to `{line}`, it answered `{answer}` and not `{word} …`"),
        }
    }

    /// Makes a claim; answers where it lies.
    #[track_caller]
    pub fn create(&mut self, prefix: &str, root: &Path) -> PathBuf {
        self.must(&format!("create {prefix} {}", root.display()), "created").into()
    }

    /// Starts a script in its claim; answers a hold on the shell.
    #[track_caller]
    pub fn spawn(&mut self, script: &str) -> Watch {
        let pid = self.must(&format!("spawn {script}"), "spawned");
        hold(&pid)
    }

    /// Sweeps.
    #[track_caller]
    pub fn sweep(&mut self, prefix: &str, root: &Path) -> Swept {
        let counts = self.must(&format!("sweep {prefix} {}", root.display()), "swept");
        let counts: Vec<usize> = counts.split(' ').filter_map(|count| count.parse().ok()).collect();
        let [removed, kept, blocked, foreign] = counts[..] else {
            panic!("a sweep is told in four numbers, not {counts:?}");
        };
        Swept { report: std::mem::take(&mut self.report), removed, kept, blocked, foreign }
    }

    /// Forks a copy of it by `fork-stay` or `fork-drop`; answers a hold on the copy.
    #[track_caller]
    pub fn copy(&mut self, how: &str) -> Watch {
        hold(&self.must(how, "stays"))
    }

    /// The next line that one of its commands says.
    #[track_caller]
    pub fn said(&mut self, what: &str) -> String {
        loop {
            if let Some(line) = self.said.pop_front() {
                return line;
            }
            if let Some(answer) = self.read(what) {
                panic!("it answered `{answer}` unasked");
            }
        }
    }

    /// Kills it with SIGKILL, it alone, and reaps it.
    #[track_caller]
    pub fn kill(&mut self) {
        if let Err(e) = self.guard.kill_hard() {
            panic!("{e}");
        }
    }

    /// Tells it something that ends it, and waits for that.
    #[track_caller]
    pub fn end(&mut self, line: &str) -> ExitStatus {
        self.send(line);
        match self.guard.wait(soon()) {
            Ok(status) => status,
            Err(e) => panic!("{e}"),
        }
    }

    /// The answer that it gives by itself, or to something that was sent.
    #[track_caller]
    fn answer(&mut self, what: &str) -> String {
        self.report.clear();
        loop {
            if let Some(answer) = self.read(what) {
                return answer;
            }
        }
    }

    /// Reads a line, and puts it where it belongs; answers it if it is an answer.
    #[track_caller]
    fn read(&mut self, what: &str) -> Option<String> {
        let line = match self.guard.lines().next_line(soon(), what) {
            Ok(line) => line,
            Err(e) => panic!("{e}"),
        };
        match line.split_at_checked(2) {
            Some(("= ", answer)) => return Some(answer.into()),
            Some(("| ", told)) => self.report.push(told.into()),
            _ => self.said.push_back(line),
        }
        None
    }

    #[track_caller]
    fn send(&mut self, line: &str) {
        if let Err(e) = self.guard.send_line(line, soon()) {
            panic!("{e}");
        }
    }
}

fn soon() -> Deadline {
    Deadline::secs(PATIENCE_SECS)
}

#[track_caller]
fn hold(pid: &str) -> Watch {
    let watch = pid.parse().ok().and_then(|pid| Watch::open(pid).ok()?);
    watch.unwrap_or_else(|| panic!("{pid} is no process that lives"))
}
