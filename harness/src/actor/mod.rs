//! A program that owns claims, to be killed: the lab's hidden subcommand `actor`.
//!
//! Death in a test is a SIGKILL of a real process; this is the process, and it uses the library as a
//! product would. It does what it is told on standard input, an order a line, and says on standard
//! output how it went. The commands that it
//! starts inherit its output, so what they say comes by the same pipe, also when it is dead.
//!
//! Both sides speak the protocol of [`wire`]. Tests use its short form, `create PREFIX ROOT` or
//! `spawn SCRIPT`, and compare answers in theirs, `created CLAIM` or `error KIND: …`.
//!
//! Invariant: it ends with its input, so that nobody has to look for it.
//!
//! Beside its claim it takes locks, test directories and the sockets that were passed to it, and
//! changes stores. With the argument `--launch` it is first what starts a program with sockets.
//!
//! With the argument `--leave-group` it is the opposite, a command that is hard to see: it closes
//! every descriptor that it inherited, joins its parent's group, says `left`, and stays until it is
//! killed.

mod beside;
mod client;
mod disturbed;
mod held;
mod launch;
mod many;
mod play;
pub(crate) mod sweep;
pub mod wire;

pub(crate) use beside::lines_of_text;
pub use client::Actor;
pub(crate) use held::HELD;
pub use launch::{Launch, Passed};
pub use play::main;
