//! Programs that have nothing to do with any claim: a stranger who gets the number of somebody who
//! has ended, and a cleaner of temporary directories.

use std::fs;
use std::process::Command;

use super::plant;
use super::stage::Stage;
use super::{Failure, Outcome};
use crate::guard::ChildGuard;
use crate::processes::process;
use crate::scenario::needs::find_program;
use crate::scenario::telling::not_running;
use crate::wait::Deadline;

/// Longer than anything takes on a loaded machine.
const PATIENCE_SECS: u64 = 20;

/// The program that cleans temporary directories.
const TMPFILES: &str = "systemd-tmpfiles";

impl Stage<'_> {
    /// Starts a stranger, with the number of somebody who has ended if that is meant.
    pub(super) fn start_stranger(&mut self, name: &str, pid_of: Option<&str>) -> Outcome<()> {
        let stranger = match pid_of {
            None => stranger()?,
            Some(of) => {
                let (pid, start) = *self.numbers.get(of).ok_or_else(|| not_running(of))?;
                stranger_with(pid, start)?
            }
        };
        self.strangers.insert(name.into(), stranger);
        Ok(())
    }

    /// Lets `systemd-tmpfiles` clean the root, by a rule of the story's own.
    pub(super) fn tmpfiles(&mut self, age: &str) -> Outcome<()> {
        let decoy = self.root.join("left-by-somebody");
        fs::create_dir(&decoy)?;
        fs::write(decoy.join("file"), "nobody needs this\n")?;
        plant::set_times(&decoy, 0)?;
        let rule = self.control.join("age-rule.conf");
        // By the times of access and modification, of files and of directories; nobody can set the
        // others.
        fs::write(&rule, format!("e {} - - - amAM:{age}\n", self.root.display()))?;
        let Some(program) = find_program(TMPFILES) else {
            return Err(Failure::new("program", format!("`{TMPFILES}` is not installed")));
        };
        let mut command = Command::new(program);
        command.arg("--clean").arg(&rule);
        let mut cleaner = ChildGuard::spawn(command).map_err(refused)?;
        let ended = cleaner.wait(Deadline::secs(PATIENCE_SECS));
        let status = ended.map_err(|error| Failure::new("waited", error.to_string()))?;
        if !status.success() {
            return Err(Failure::new("program", format!("`{TMPFILES}` ended with {status}")));
        }
        if decoy.exists() {
            let title = "the cleaner did not remove an old directory, so what it left says nothing";
            return Err(Failure::new("canary", title));
        }
        Ok(())
    }
}

/// A process that waits for its input to end.
fn stranger() -> Outcome<ChildGuard> {
    ChildGuard::spawn_with_stdin(Command::new("cat")).map_err(refused)
}

/// A stranger with this number, begun in a later tick of the clock than the one who had it.
fn stranger_with(pid: i32, start: u64) -> Outcome<ChildGuard> {
    let deadline = Deadline::secs(PATIENCE_SECS);
    while !deadline.passed() {
        // It is not enough that it has ended: somebody has to reap it. There is no event for that.
        if process(pid)?.is_some() {
            std::thread::yield_now();
            continue;
        }
        fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string())?;
        let stranger = stranger()?;
        if stranger.pid() == pid && process(pid)?.is_some_and(|info| info.start_ticks != start) {
            return Ok(stranger);
        }
    }
    Err(Failure::new("waited", format!("nobody could be given the number {pid}")))
}

fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::new("system", error.to_string())
}
