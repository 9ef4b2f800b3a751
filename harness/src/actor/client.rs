//! The other side: who tells an actor what to do, and kills it.
//!
//! Invariants: every answer is waited for under a deadline; what commands say is kept until it is
//! asked for, whenever it comes. What goes wrong panics with what was waited for and what came, as
//! it would be the end of the test anyway.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use super::wire::{Done, Order, Request, Said, SweepHow, Swept, VERSION, What};
use crate::guard::ChildGuard;
use crate::reader::ReadError;
use crate::wait::{Deadline, WaitError, Watch};

/// Longer than anything here takes on a loaded machine.
const PATIENCE_SECS: u64 = 20;

/// A running actor. It ends with this value, and everything below it.
#[derive(Debug)]
pub struct Actor {
    guard: ChildGuard,
    /// What its commands said and nobody asked for yet.
    said: VecDeque<String>,
    /// The number of the last order.
    id: u64,
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
            Ok(guard) => Self { guard, said: VecDeque::new(), id: 0 },
            Err(e) => panic!("{e}"),
        }
    }

    /// Its pid.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.guard.pid()
    }

    /// Tells it something in the short form, and waits for its answer in the short form.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> String {
        self.begin(line);
        self.answer_to(line)
    }

    /// Tells it something in the short form, without waiting.
    #[track_caller]
    pub fn begin(&mut self, line: &str) {
        match line.parse() {
            Ok(order) => self.order(order),
            Err(wrong) => panic!("{wrong}"),
        }
    }

    /// Waits for the answer to what it was told last.
    #[track_caller]
    pub fn answer_to(&mut self, line: &str) -> String {
        self.answer(&format!("the answer to `{line}`")).to_string()
    }

    /// Tells it something, without waiting.
    #[track_caller]
    pub fn order(&mut self, order: Order) {
        self.id += 1;
        let request = Request { v: VERSION, id: self.id, order };
        // OK because an order is made of text and numbers.
        let line = serde_json::to_string(&request).expect("an order is JSON");
        self.send(&line);
    }

    /// Waits for what it says about what it was told last: that it is done, or has failed, or has
    /// stopped.
    ///
    /// # Errors
    ///
    /// When it says nothing before the deadline, or ends.
    pub fn hears(&mut self, what: &str) -> Result<What, ReadError> {
        loop {
            if let Some(said) = self.read(what)? {
                return Ok(said);
            }
        }
    }

    /// The same, where it cannot end.
    #[track_caller]
    fn answer(&mut self, what: &str) -> What {
        match self.hears(what) {
            Ok(said) => said,
            Err(e) => panic!("{e}"),
        }
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
        let order =
            Order::Sweep { prefix: prefix.into(), root: root.into(), how: SweepHow::default() };
        self.order(order);
        match self.answer("the end of a sweep") {
            What::Done(Done::Swept(swept)) => swept,
            other => panic!("asked to sweep, it answered `{other}`"),
        }
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
            match self.read(what) {
                Ok(None) => {}
                Ok(Some(said)) => panic!("it answered `{said}` unasked"),
                Err(e) => panic!("{e}"),
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

    /// Lets it go on after it has stopped before a call.
    #[track_caller]
    pub fn go_on(&mut self) {
        // Not an order of its own: what it says next is about the one that it stopped in.
        let request = Request { v: VERSION, id: self.id, order: Order::Continue };
        // OK because an order is made of text and numbers.
        let line = serde_json::to_string(&request).expect("an order is JSON");
        self.send(&line);
    }

    /// Whether it was killed by a SIGKILL, its own or another's. It is reaped.
    ///
    /// # Errors
    ///
    /// When it has not ended.
    pub fn is_killed(&mut self) -> Result<bool, WaitError> {
        let status = self.guard.wait(soon())?;
        Ok(status.signal() == Some(9))
    }

    /// Tells it something that ends it, and waits for that.
    #[track_caller]
    pub fn end(&mut self, line: &str) -> ExitStatus {
        self.begin(line);
        match self.guard.wait(soon()) {
            Ok(status) => status,
            Err(e) => panic!("{e}"),
        }
    }

    /// Reads a line, and puts it where it belongs; answers it if it is about the last order.
    fn read(&mut self, what: &str) -> Result<Option<What>, ReadError> {
        let line = self.guard.lines().next_line(soon(), what)?;
        match serde_json::from_str::<Said>(&line) {
            Ok(said) if said.id == self.id || said.id == 0 => return Ok(Some(said.what)),
            // That of an order whose answer nobody waited for.
            Ok(_) => {}
            Err(_) => self.said.push_back(line),
        }
        Ok(None)
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
