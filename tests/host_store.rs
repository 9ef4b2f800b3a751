//! A file that is changed as a whole, on the real kernel: with real deaths, on full disks, and
//! when the power goes.

#[path = "host_store/support.rs"]
mod support;

#[path = "host_store/content.rs"]
mod content;
#[path = "host_store/power.rs"]
mod power;
#[path = "host_store/runtime.rs"]
mod runtime;
