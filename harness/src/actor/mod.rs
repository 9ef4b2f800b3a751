//! A program that owns claims, to be killed: the lab's hidden subcommand `actor`.
//!
//! Death in a test is a SIGKILL of a real process; this is the process. It does what it is told on
//! standard input, a command a line, and says on standard output how it went. The commands that it
//! starts inherit its output, so what they say comes by the same pipe, also when it is dead.
//!
//! | it is told | it does | it answers |
//! |---|---|---|
//! | `create PREFIX ROOT` | makes a claim, of which it has one at a time | `= created CLAIM` |
//! | `unclaimed PREFIX ROOT` | makes an unclaimed directory | `= created DIRECTORY` |
//! | `spawn SCRIPT` | starts `sh -c SCRIPT` in the claim | `= spawned PID` |
//! | `write NAME` | writes a file in the claim | `= written` |
//! | `close`, `release`, `drop` | does so | `= removed`, `= released`, `= obstructed …`, `= dropped` |
//! | `sweep PREFIX ROOT` | sweeps, with a line `\| …` for each of the report's | `= swept REMOVED KEPT BLOCKED FOREIGN` |
//! | `fork-exit` | forks a copy that tries to use what it has, drops it and exits | `= exited: spawn KIND, close KIND`, or `remove KIND` |
//! | `fork-stay`, `fork-drop` | forks a copy that stays, the second without the claim | `= stays PID` |
//! | `lose-lease` | closes the lease's descriptor behind its own back | `= lost COUNT` |
//! | `end-main-thread` | goes on as another thread, and ends the first | `= goes on` |
//! | `exec-self` | becomes this program anew | `= executed` |
//! | `exit` | exits, by way of the destructors | |
//!
//! What fails is answered by `= error KIND: MESSAGE`.
//!
//! Invariant: it ends with its input, so that nobody has to look for it.
//!
//! With the argument `--leave-group` it is the opposite, a command that is hard to see: it closes
//! every descriptor that it inherited, joins its parent's group, says `left`, and stays until it is
//! killed.

mod client;
mod play;

pub use client::{Actor, Swept};
pub use play::main;
