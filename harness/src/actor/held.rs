//! A child that is held between fork and exec, until it is told to go on.
//!
//! The window in which a command exists and is not its program yet: it is a copy of its owner, with
//! whatever that had open. It says so by its standard output and waits at its standard input, both
//! of which are those of the command already.
//!
//! Invariant: what runs here runs in a forked child: no allocation, no lock, only system calls.

use std::sync::atomic::{AtomicU64, Ordering};

use mortmain::sys::{ChildIdentity, ChildKernel, Errno, Handle, HostChild, IdName};
use rustix::process::getpid;
use rustix::stdio::{stdin, stdout};

/// What a held child says, before its pid.
pub(crate) const HELD: &str = "held ";

/// The real kernel, which a child is held before the n-th call of.
#[derive(Debug)]
pub(super) struct HeldChild {
    n: u64,
    seen: AtomicU64,
}

impl HeldChild {
    /// Held before this call, from 1. The one after the last is the exec.
    pub(super) fn before(n: u64) -> HeldChild {
        HeldChild { n, seen: AtomicU64::new(0) }
    }

    fn step(&self) -> Result<(), Errno> {
        if self.seen.fetch_add(1, Ordering::Relaxed) + 1 == self.n { hold() } else { Ok(()) }
    }
}

impl ChildKernel for HeldChild {
    fn new_group(&self) -> Result<(), Errno> {
        self.step()?;
        HostChild.new_group()
    }

    fn identity(&self) -> Result<ChildIdentity, Errno> {
        self.step()?;
        HostChild.identity()
    }

    fn symlink(&self, dir: Handle, name: &IdName, text: &[u8]) -> Result<(), Errno> {
        self.step()?;
        HostChild.symlink(dir, name, text)
    }

    fn keep_over_exec(&self, fd: Handle) -> Result<(), Errno> {
        self.step()?;
        HostChild.keep_over_exec(fd)?;
        // The last call of the child's part; what follows is the exec.
        self.step()
    }
}

/// Says that it is held, and waits for a line.
fn hold() -> Result<(), Errno> {
    let answer = |errno: rustix::io::Errno| Errno(errno.raw_os_error());
    let mut line = [0; LINE_BYTES];
    let pid = getpid().as_raw_nonzero().get().unsigned_abs();
    // Fewer bytes than a pipe takes at once.
    rustix::io::write(stdout(), held_line(pid, &mut line)).map_err(answer)?;
    let mut byte = [0];
    loop {
        match rustix::io::read(stdin(), &mut byte) {
            Ok(0) => return Err(Errno::EIO),
            Ok(_) if byte == *b"\n" => return Ok(()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(answer(errno)),
        }
    }
}

/// The word, ten digits and the end of the line.
const LINE_BYTES: usize = HELD.len() + 11;

/// Writes the line from the end of the space, since digits come in that order.
fn held_line(pid: u32, line: &mut [u8; LINE_BYTES]) -> &[u8] {
    let mut start = LINE_BYTES - 1;
    line[start] = b'\n';
    let mut rest = pid;
    loop {
        start -= 1;
        line[start] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    start -= HELD.len();
    line[start..start + HELD.len()].copy_from_slice(HELD.as_bytes());
    &line[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_whole_number() {
        for pid in [1, 20, 4_194_304, u32::MAX] {
            let mut line = [0; LINE_BYTES];
            assert_eq!(held_line(pid, &mut line), format!("held {pid}\n").as_bytes());
        }
    }
}
