//! The real kernel as one side: players, each in a cell at the other end of a pipe.
//!
//! A player waits for its processes most of the time. So there are several, and what they are given at
//! once is shared out among them; what comes of a program does not depend on who plays it.

use std::fmt;
use std::path::Path;
use std::process::Command;

use super::player::ROLE;
use super::program::Program;
use super::{Run, Side, SideError};
use crate::guard::ChildGuard;
use crate::wait::Deadline;

/// How long a player may take for the programs that it was given at once.
const PATIENCE_SECS: u64 = 120;

/// How many players there are: more than processors, since each waits about half of the time.
const PLAYERS: usize = 3;

/// The players, which end with this value.
#[derive(Debug)]
pub struct OnHost {
    players: Vec<ChildGuard>,
}

impl OnHost {
    /// Starts them by the lab's binary, each in a cell of its own.
    ///
    /// # Errors
    ///
    /// When one cannot be started.
    pub fn start(lab: &Path) -> Result<OnHost, SideError> {
        let player = |_| {
            let mut command = Command::new(lab);
            command.args(["cell", "--test", &std::process::id().to_string(), "--"]);
            command.arg(lab).arg(ROLE);
            ChildGuard::spawn_with_stdin(command).map_err(SideError::new)
        };
        Ok(OnHost { players: (0..PLAYERS).map(player).collect::<Result<_, _>>()? })
    }
}

impl Side for OnHost {
    fn play(&mut self, programs: &[Program]) -> Result<Vec<Run>, SideError> {
        let soon = Deadline::secs(PATIENCE_SECS);
        let shares = programs.chunks(programs.len().div_ceil(PLAYERS).max(1));
        for (player, share) in self.players.iter_mut().zip(shares.clone()) {
            let line = serde_json::to_string(share).map_err(SideError::new)?;
            player.send_line(&line, soon).map_err(|error| broken(player, error))?;
        }
        let mut runs = Vec::new();
        for (player, _) in self.players.iter_mut().zip(shares) {
            let line = player.lines().next_line(soon, "what came of some programs");
            let line = line.map_err(|error| broken(player, error))?;
            runs.extend(serde_json::from_str::<Vec<Run>>(&line).map_err(SideError::new)?);
        }
        Ok(runs)
    }
}

/// Why a player does not answer, with its exit code if it has ended.
fn broken(player: &mut ChildGuard, error: impl fmt::Display) -> SideError {
    let ended = player.wait(Deadline::secs(5)).ok();
    SideError { code: ended.and_then(|status| status.code()), why: error.to_string() }
}
