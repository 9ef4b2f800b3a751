//! What a sweep finds out, what it does, and what it says, on the real kernel and after real deaths.

#[path = "host_sweep/support.rs"]
mod support;

#[path = "host_sweep/background.rs"]
mod background;
#[path = "host_sweep/commands.rs"]
mod commands;
#[path = "host_sweep/damage.rs"]
mod damage;
#[path = "host_sweep/evidence.rs"]
mod evidence;
#[path = "host_sweep/lease.rs"]
mod lease;
#[path = "host_sweep/namespaces.rs"]
mod namespaces;
#[path = "host_sweep/owner.rs"]
mod owner;
#[path = "host_sweep/removal.rs"]
mod removal;
#[path = "host_sweep/report.rs"]
mod report;
#[path = "host_sweep/stray.rs"]
mod stray;
#[path = "host_sweep/table.rs"]
mod table;
#[path = "host_sweep/together.rs"]
mod together;
#[path = "host_sweep/word.rs"]
mod word;
