//! How soon programs answer that start among leftovers, each with a sweep beside its work.

use std::io;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use mortmain_harness::guard::ChildGuard;
use mortmain_harness::reader::ReadErrorKind;
use mortmain_harness::wait::Deadline;

use super::ROLE;
use super::cost::Cost;
use super::parts::{ANSWER, REMOVED};
use super::told::Row;

/// Most that the first answer may come later among leftovers, in microseconds.
const LATE_US: f64 = 5_000.0;
/// Longer than a scan and a removal take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long one of several servers is listened to before the next.
const TURN: Duration = Duration::from_millis(5);

/// Starts some servers at once; answers how late each said its first answer. They are killed when one
/// of them has removed something, if that is waited for.
pub(super) fn start(root: &Path, at_once: u64, to_a_removal: bool) -> io::Result<Vec<Cost>> {
    let mut servers = Vec::new();
    for _ in 0..at_once {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([ROLE, "server"]).arg(root);
        let begun = Instant::now();
        let server = ChildGuard::spawn_with_stdin(command).map_err(io::Error::other)?;
        servers.push((server, begun));
    }
    // Each is listened to by a thread of its own: nobody's time goes on until another has answered.
    let answers: Vec<io::Result<(bool, Cost)>> = thread::scope(|scope| {
        let listen = |(server, begun): &mut (ChildGuard, Instant)| {
            let removed = answered(server)?;
            Ok((removed, Cost { cpu: Duration::ZERO, wall: begun.elapsed() }))
        };
        let listening: Vec<_> =
            servers.iter_mut().map(|server| scope.spawn(move || listen(server))).collect();
        // OK because it panics only if the guard did.
        listening.into_iter().map(|thread| thread.join().expect("a listener ends")).collect()
    });
    let mut costs = Vec::new();
    let mut removed = !to_a_removal;
    for answer in answers {
        let (has_removed, cost) = answer?;
        removed |= has_removed;
        costs.push(cost);
    }
    // One of them has the leases, and it may be any.
    let deadline = Deadline::after(PATIENCE);
    let mut turn = (0..servers.len()).cycle();
    while !removed {
        // OK because there is a server at least.
        let (server, _) = &mut servers[turn.next().unwrap_or_default()];
        match server.lines().next_line(deadline.or_sooner(TURN), "its first removal") {
            Ok(line) => removed = line == REMOVED,
            Err(error) if matches!(error.kind(), ReadErrorKind::Deadline) && !deadline.passed() => {
            }
            Err(error) => return Err(io::Error::other(error)),
        }
    }
    for (server, _) in &mut servers {
        server.kill_hard().map_err(io::Error::other)?;
    }
    Ok(costs)
}

/// Waits for the first answer of a server; says whether it has removed something by then.
fn answered(server: &mut ChildGuard) -> io::Result<bool> {
    let mut removed = false;
    loop {
        let line = server.lines().next_line(Deadline::after(PATIENCE), ANSWER);
        let line = line.map_err(io::Error::other)?;
        removed |= line == REMOVED;
        if line == ANSWER {
            return Ok(removed);
        }
    }
}

/// Tells first answers among so many leftovers beside those without any.
pub(super) fn tell(place: &str, alone: &[Cost], leftovers: u64, what: &str, among: &[Cost]) {
    let yardstick = Row::of_starts(place, 0, "first answer without leftovers", alone);
    let late = Row::of_starts(place, leftovers, what, among).beside(&yardstick);
    let reached = late.wall_us - yardstick.wall_us <= LATE_US;
    yardstick.tell();
    late.aiming("at most 5 ms later", reached).tell();
}
