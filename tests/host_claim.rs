//! How a claim is made, held, used by commands, closed, dropped and left behind, on the real kernel
//! and with real deaths.

#[path = "host_claim/support.rs"]
mod support;

#[path = "host_claim/close.rs"]
mod close;
#[path = "host_claim/create.rs"]
mod create;
#[path = "host_claim/forked.rs"]
mod forked;
#[path = "host_claim/hold.rs"]
mod hold;
#[path = "host_claim/passing.rs"]
mod passing;
#[path = "host_claim/registry.rs"]
mod registry;
#[path = "host_claim/spawn.rs"]
mod spawn;
#[path = "host_claim/story.rs"]
mod story;
#[path = "host_claim/unclaimed.rs"]
mod unclaimed;
#[path = "host_claim/user_hook.rs"]
mod user_hook;
