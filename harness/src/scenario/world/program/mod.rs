//! What runs in the world while a story is told there: servers and sweepers, which take the orders of
//! an actor ([`crate::actor::wire`]) and do them by the code that ships, and commands.
//!
//! A program says a line and gets a line, in JSON. What happens at one of its calls is not its business:
//! where something is to happen it says that it is about to begin, so that what comes before is not
//! counted, as an actor opens its root before its calls are.

mod beside;
mod command;
mod server;

use mortmain::sys::{Answer, Errno, PathBytes};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(super) use self::command::{Become, Commanded, Deed, command};
pub(super) use self::server::serve;
use crate::simulated::WorldKernel;
use crate::world::ids::ProgramId;

/// The program of servers and sweepers.
pub(super) const SERVER: ProgramId = ProgramId { index: 0, name: "server" };
/// The program of commands.
pub(super) const COMMAND: ProgramId = ProgramId { index: 1, name: "command" };
/// The program of those who have nothing to do with any claim.
pub(super) const STRANGER: ProgramId = ProgramId { index: 2, name: "stranger" };

/// A line.
pub(super) fn line(value: &impl Serialize) -> Vec<u8> {
    // OK because what is said here has no map with keys that are no text.
    serde_json::to_vec(value).expect("it can be written as JSON")
}

/// What a line says.
///
/// # Panics
/// When it is not what has to come: both sides are written here.
pub(super) fn understood<T: DeserializeOwned>(line: &[u8]) -> T {
    match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => panic!("{error} in {}", String::from_utf8_lossy(line)),
    }
}

/// Says something, and waits for the next order.
fn next<T: DeserializeOwned>(kernel: &WorldKernel, said: &impl Serialize) -> Answer<T> {
    Ok(understood(&kernel.line(&line(said))?))
}

/// The directory that a path leads to, and the last name.
fn parts(path: &[u8]) -> Answer<(PathBytes, &[u8])> {
    let cut = path.iter().rposition(|byte| *byte == b'/').ok_or(Errno::ENOENT)?;
    Ok((PathBytes::from(&path[..cut]), &path[cut + 1..]))
}
