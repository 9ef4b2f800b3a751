//! The harness's own promises, kept by real processes: whoever dies, and by whatever, nothing stays.
//!
//! "Gone" is always asked of a pidfd that was opened while the process lived. Whatever a test starts
//! here it starts inside a cell, so that a broken promise does not leak either.

#[path = "host_cell/support.rs"]
mod support;

#[path = "host_cell/deaths.rs"]
mod deaths;
#[path = "host_cell/entry.rs"]
mod entry;
#[path = "host_cell/guard.rs"]
mod guard;
#[path = "host_cell/plain_user.rs"]
mod plain_user;
#[path = "host_cell/reading.rs"]
mod reading;
#[path = "host_cell/waiting.rs"]
mod waiting;
#[path = "host_cell/world.rs"]
mod world;
