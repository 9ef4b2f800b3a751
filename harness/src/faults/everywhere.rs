//! A piece of work that dies at each of its calls in turn.

use std::io;

use mortmain::sys::{Ending, Host, KernelExt as _, Pid, Wait};

use super::{KillAt, Moment, Tapped};
use crate::raw::fork::fork;

/// The signal that nobody survives.
const SIGKILL: i32 = 9;

/// The code of a piece of work that came to its end.
const DONE: u8 = 0;

/// The death of the calling process. Async-signal-safe.
pub fn kill_self() {
    let me = rustix::process::getpid();
    // It can fail only for a process that is not there.
    let _sent = rustix::process::kill_process(me, rustix::process::Signal::KILL);
}

/// Does a piece of work in a forked process that is killed before its first call, in another that is
/// killed after it, and so on to its end, and looks at what each left behind. Answers how many died.
///
/// # Errors
///
/// When a process ends in another way, when one cannot be forked (of a process with threads none
/// can), and what `look` answers.
pub fn kill_everywhere(
    mut work: impl FnMut(&Tapped<Host, KillAt>) -> io::Result<()>,
    mut look: impl FnMut(u64, Moment) -> io::Result<()>,
) -> io::Result<u64> {
    let mut deaths = 0;
    for position in 1.. {
        for moment in [Moment::Before, Moment::After] {
            let pid = fork(|| {
                let kernel = Tapped::new(Host, KillAt::position(position, moment, kill_self));
                u8::from(work(&kernel).is_err())
            })?;
            match Host.reap(Pid(pid), Wait::Forever)? {
                Some(Ending::Killed(SIGKILL)) => {
                    deaths += 1;
                    look(position, moment)?;
                }
                Some(Ending::Exited(code)) if code == i32::from(DONE) => return Ok(deaths),
                other => {
                    let text = format!("at call {position}, {moment:?}, it ended so: {other:?}");
                    return Err(io::Error::other(text));
                }
            }
        }
    }
    Ok(deaths)
}
