//! Why no cell can be made here, said so that the reader knows which switch to turn.
//!
//! The kernel's errno alone does not help: EPERM comes from a dozen places. So the settings that
//! are known to forbid namespaces are looked at, and those that do are named.
//!
//! It deliberately decides nothing: a setting is named only after the kernel has refused.

use std::fs;
use std::io;

use super::init::Failed;

/// What a cell needs and cannot have here, with the reason in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", Self::PREFIX)]
pub struct Missing {
    /// What is missing, and which setting forbids it if that is known.
    pub reason: String,
}

impl Missing {
    /// How the sentence begins.
    pub(super) const PREFIX: &str = "no cell can be made here: ";

    pub(super) fn namespaces(error: &io::Error) -> Self {
        Self { reason: format!("the kernel refuses new namespaces: {error}{}", switches()) }
    }

    pub(super) fn step(failed: Failed) -> Self {
        let error = io::Error::from_raw_os_error(failed.errno);
        Self { reason: format!("init cannot {}: {error}{}", failed.step.doing(), switches()) }
    }
}

/// The settings that forbid what a cell needs, and the value by which they do.
const SWITCHES: [(&str, &str); 5] = [
    ("user.max_user_namespaces", "0"),
    ("user.max_pid_namespaces", "0"),
    ("user.max_mnt_namespaces", "0"),
    ("kernel.unprivileged_userns_clone", "0"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1"),
];

/// `" (sysctl a is 0, b is 1)"`, or nothing.
fn switches() -> String {
    let forbids = |(name, forbidding): &(&str, &str)| {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        fs::read_to_string(path).is_ok_and(|value| value.trim() == *forbidding)
    };
    let found: Vec<String> = SWITCHES
        .iter()
        .filter(|s| forbids(s))
        .map(|(name, value)| format!("{name} is {value}"))
        .collect();
    if found.is_empty() { String::new() } else { format!(" (sysctl {})", found.join(", ")) }
}
