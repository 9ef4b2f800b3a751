//! A lock that dies with its holder, on the real kernel and with real deaths.

#[path = "host_lock/support.rs"]
mod support;

#[path = "host_lock/file.rs"]
mod file;
#[path = "host_lock/held.rs"]
mod held;
#[path = "host_lock/runtime.rs"]
mod runtime;
#[path = "host_lock/waits.rs"]
mod waits;
