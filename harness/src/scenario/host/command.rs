//! The commands of a story: real shells, which serve orders for as long as they live.
//!
//! A command reads and writes FIFOs that lie outside of every claim, so that nobody's death but its
//! own closes them, and so that they hold nothing open in the claim.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{Failure, Outcome};
use crate::actor::HELD;
use crate::reader::Reader;
use crate::scenario::story::{Command, Lock};
use crate::wait::{Deadline, Watch};

/// Longer than anything takes on a loaded machine.
const PATIENCE_SECS: u64 = 20;

/// What a shell says when it is what it is meant to be, before its pid.
const READY: &str = "ready ";

/// Makes a program in the claim. A shell is ready when what it starts for that has ended: a child
/// of a killed one would be a user of the claim for a moment longer.
const PREPARES: &str = "printf '#!/bin/sh\\n' >tool && chmod 700 tool; ";

/// Serves orders: `use` runs the program in the claim, writes a file there, and tells when both are
/// done. The others do something to a path.
const SERVES: &str = "while read -r order at; do case $order in \
    use) if \"$d/tool\" && echo used >>\"$d/used\"; then echo works; else echo fails; fi;; \
    exit) exit 0;; \
    remove) rm -rf \"$at\" && echo done || echo fails;; \
    empty) find \"$at\" -mindepth 1 -delete && echo done || echo fails;; \
    file) echo somebody wrote this >\"$at\" && echo done || echo fails;; \
    directory) mkdir \"$at\" && echo done || echo fails;; \
    fifo) mkfifo \"$at\" && echo done || echo fails;; \
    dangling-link) ln -s nowhere \"$at\" && echo done || echo fails;; \
    esac; done";

/// A command that was started.
#[derive(Debug)]
pub(super) struct Running {
    /// Whose claim it uses.
    pub(super) by: String,
    /// The process that serves.
    pub(super) watch: Watch,
    orders: File,
    output: Reader,
    /// Whether it serves orders, or does something of the story's own.
    serves: bool,
    /// Whether it is still its server's copy, and held before its exec.
    pub(super) held: bool,
}

/// The pipes of a command.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) input: PathBuf,
    pub(super) output: PathBuf,
    /// Both, open from the beginning: what a command says that ends at once would be lost.
    open: (File, File),
}

impl Pipes {
    /// Makes them.
    pub(super) fn make(control: &Path, name: &str) -> Outcome<Pipes> {
        for path in Pipes::paths(control, name) {
            // A command that is started again gets new ones.
            let _gone = fs::remove_file(&path);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
                .map_err(std::io::Error::from)?;
            // Whatever user it is.
            fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        }
        Pipes::made(control, name)
    }

    /// Those that were made before.
    pub(super) fn made(control: &Path, name: &str) -> Outcome<Pipes> {
        let [input, output] = Pipes::paths(control, name);
        let both = |path: &Path| File::options().read(true).write(true).open(path);
        let open = (both(&input)?, both(&output)?);
        Ok(Pipes { input, output, open })
    }

    /// Where they lie, that for the input first.
    fn paths(control: &Path, name: &str) -> [PathBuf; 2] {
        ["in", "out"].map(|what| control.join(format!("{name}.{what}")))
    }

    /// Waits until the command is what it is meant to be, or is held before that. `hold` takes hold
    /// of who calls itself by a number.
    pub(super) fn open(
        self,
        name: &str,
        described: &Command,
        hold: impl Fn(i32) -> Outcome<Watch>,
    ) -> Outcome<Running> {
        let (orders, output) = self.open;
        let mut output = Reader::new(output, format!("command `{name}`"))?;
        let (held, pid) = first_words(name, &mut output)?;
        let watch = hold(pid)?;
        if !held {
            check_lock(name, watch.pid(), described.lock)?;
        }
        let serves = described.script.is_none();
        Ok(Running { by: described.by.clone(), watch, orders, output, serves, held })
    }
}

/// Whether a command is held, and its pid.
fn first_words(name: &str, output: &mut Reader) -> Outcome<(bool, i32)> {
    let deadline = Deadline::secs(PATIENCE_SECS);
    let said = output.next_line(deadline, "the command to be ready");
    let said = said.map_err(|error| Failure::new("waited", error.to_string()))?;
    let after = |word: &str| said.strip_prefix(word).and_then(|pid| pid.parse().ok());
    let held = after(HELD).map(|pid| (true, pid));
    held.or_else(|| after(READY).map(|pid| (false, pid))).ok_or_else(|| {
        let title = format!("command `{name}` said `{said}`, and not the pid of a process");
        Failure::new("waited", title)
    })
}

/// Looks whether the command has the descriptor that it is meant to have, or not to have.
fn check_lock(name: &str, pid: i32, lock: Lock) -> Outcome<()> {
    let open = fs::read_dir(format!("/proc/{pid}/fd"))?.filter_map(Result::ok);
    let targets = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    let has = targets.into_iter().any(|target| {
        target.parent().is_some_and(|dir| dir.file_name().is_some_and(|dir| dir == "commands"))
    });
    if has == (lock == Lock::Closed) {
        let whether = if has { "has" } else { "has not" };
        let title = format!("command `{name}` {whether} the descriptor of its entry's lock");
        return Err(Failure::new("command", title));
    }
    Ok(())
}

/// What a shell has to be told to become the command.
pub(super) fn script(command: &Command) -> String {
    let (before, serves) = match &command.script {
        Some(script) => ("", script.as_str()),
        None => (PREPARES, SERVES),
    };
    let place = if command.elsewhere { "cd /; " } else { "" };
    let body = format!("d=$PWD; {before}{place}echo {READY}$$; {serves}");
    let body = match command.lock {
        Lock::Kept => format!("sh -c {}", quoted(&body)),
        // The plain shell knows no number of a descriptor with more than one digit.
        Lock::Closed => format!("bash -c {}", quoted(&format!("exec 255>&-; {body}"))),
        Lock::Unlocked => format!("sh -c {}", quoted(&format!("flock -u 255; {body}"))),
    };
    // What a process has in its environment is what it was given when it became its program.
    let without = if command.without_cookie { "env -u MORTMAIN_CLAIM " } else { "" };
    let body = format!("{without}{body}");
    // A shell gives what it runs in the background no input but what it is told to.
    match (command.own_session, command.background) {
        // One that leads a group forks, and its parent ends at once.
        (true, _) => format!("exec setsid {body}"),
        (false, true) => format!("exec 3<&0; {body} <&3 3<&- & exit 0"),
        (false, false) => format!("exec {body}"),
    }
}

/// The text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl Running {
    /// Lets it become its program, which it was held before.
    pub(super) fn goes_on(
        &mut self,
        name: &str,
        described: &Command,
        hold: impl Fn(i32) -> Outcome<Watch>,
    ) -> Outcome<()> {
        self.order("go on")?;
        let (held, pid) = first_words(name, &mut self.output)?;
        self.held = held;
        self.watch = hold(pid)?;
        check_lock(name, self.watch.pid(), described.lock)
    }

    /// Tells it to use its claim.
    pub(super) fn uses(&mut self, name: &str) -> Outcome<()> {
        let said = self.does(name, "use")?;
        if said == "works" {
            return Ok(());
        }
        let title = format!("command `{name}` cannot use its claim any more");
        Err(Failure::new("S1", title).note(format!("asked to, it said `{said}`")))
    }

    /// Tells it to do something to a path.
    pub(super) fn does_to(&mut self, name: &str, what: &str, at: &Path) -> Outcome<()> {
        let order = format!("{what} {}", at.display());
        let said = self.does(name, &order)?;
        if said == "done" {
            return Ok(());
        }
        let title = format!("command `{name}` could not do what it was told");
        Err(Failure::new("command", title).note(format!("asked to `{order}`, it said `{said}`")))
    }

    /// Tells it something; answers what it says.
    fn does(&mut self, name: &str, order: &str) -> Outcome<String> {
        if !self.serves {
            let title = format!("command `{name}` has a script of its own, and serves no orders");
            return Err(Failure::new("command", title));
        }
        self.lives(name)?;
        self.order(order)?;
        let deadline = Deadline::secs(PATIENCE_SECS);
        let said = self.output.next_line(deadline, &format!("the command to `{order}`"));
        said.map_err(|error| Failure::new("waited", error.to_string()))
    }

    /// Fails if it has ended.
    pub(super) fn lives(&self, name: &str) -> Outcome<()> {
        match self.watch.is_gone()? {
            false => Ok(()),
            true => Err(Failure::new("not-running", format!("command `{name}` has ended"))),
        }
    }

    /// Tells it to exit, and waits for that.
    pub(super) fn exits(&mut self) -> Outcome<()> {
        self.order("exit")?;
        self.gone()
    }

    /// Waits for its end.
    pub(super) fn gone(&self) -> Outcome<()> {
        let gone = self.watch.gone(Deadline::secs(PATIENCE_SECS));
        gone.map_err(|error| Failure::new("waited", error.to_string()))
    }

    fn order(&mut self, order: &str) -> Outcome<()> {
        Ok(writeln!(self.orders, "{order}")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_shell_hold_quotes() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn a_script_becomes_what_the_story_says() {
        let plain = Command { script: Some("true".into()), ..Command::default() };
        assert_eq!(script(&plain), "exec sh -c 'd=$PWD; echo ready $$; true'");
        let background = Command { background: true, ..plain.clone() };
        assert_eq!(
            script(&background),
            "exec 3<&0; sh -c 'd=$PWD; echo ready $$; true' <&3 3<&- & exit 0"
        );
        let daemon = Command { own_session: true, lock: Lock::Closed, ..plain };
        assert_eq!(
            script(&daemon),
            "exec setsid bash -c 'exec 255>&-; d=$PWD; echo ready $$; true'"
        );
    }
}
