//! The real kernel keeps the contract of the seam, call by call.
//!
//! Each test asks one thing of one call, directly, with nothing of the protocol
//! in between: what holds here is what the simulated kernel imitates. All of
//! them run in a cell, so that a test may close descriptors, mount, change its
//! limits and leave processes behind.

mod descriptors;
mod files;
mod identity;
mod locks;
mod mounts;
mod processes;
mod spawn;
mod support;
mod user_hook;
mod waits;
