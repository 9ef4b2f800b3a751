//! The cases: each begins with a server in a root of its own.

mod deaths;
mod ends;
mod hostile;
mod python;
mod sockets;
mod tools;
mod usage;
