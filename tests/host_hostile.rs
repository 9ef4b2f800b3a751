//! A root in which anybody may put anything, claims in which there is anything, and a process that is
//! short of everything (h1 to h8, r5).

#[path = "host_hostile/support.rs"]
mod support;

#[path = "host_hostile/contents.rs"]
mod contents;
#[path = "host_hostile/copies.rs"]
mod copies;
#[path = "host_hostile/depth.rs"]
mod depth;
#[path = "host_hostile/hidden.rs"]
mod hidden;
#[path = "host_hostile/limits.rs"]
mod limits;
#[path = "host_hostile/mounts.rs"]
mod mounts;
#[path = "host_hostile/parts.rs"]
mod parts;
#[path = "host_hostile/users.rs"]
mod users;
#[path = "host_hostile/walk.rs"]
mod walk;
