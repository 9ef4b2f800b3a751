//! The real kernel as one side: a player in a cell, at the other end of a pipe.

use std::path::Path;
use std::process::Command;

use super::player::ROLE;
use super::program::Program;
use super::{Run, Side, SideError};
use crate::guard::ChildGuard;
use crate::wait::Deadline;

/// How long a player may take for the programs that it was given at once.
const PATIENCE_SECS: u64 = 120;

/// A player, which ends with this value.
#[derive(Debug)]
pub struct OnHost {
    guard: ChildGuard,
}

impl OnHost {
    /// Starts one by the lab's binary, in a cell of its own.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(lab: &Path) -> Result<OnHost, SideError> {
        let mut command = Command::new(lab);
        command.args(["cell", "--test", &std::process::id().to_string(), "--"]);
        command.arg(lab).arg(ROLE);
        let guard = ChildGuard::spawn_with_stdin(command).map_err(SideError::new)?;
        Ok(OnHost { guard })
    }
}

impl Side for OnHost {
    fn play(&mut self, programs: &[Program]) -> Result<Vec<Run>, SideError> {
        let soon = Deadline::secs(PATIENCE_SECS);
        let line = serde_json::to_string(programs).map_err(SideError::new)?;
        self.guard.send_line(&line, soon).map_err(SideError::new)?;
        match self.guard.lines().next_line(soon, "what came of some programs") {
            Ok(line) => serde_json::from_str(&line).map_err(SideError::new),
            Err(error) => {
                let ended = self.guard.wait(Deadline::secs(5)).ok();
                Err(SideError {
                    code: ended.and_then(|status| status.code()),
                    why: error.to_string(),
                })
            }
        }
    }
}
