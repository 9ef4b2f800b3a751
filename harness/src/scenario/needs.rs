//! What a machine must have for a story, and whether this one has it.
//!
//! A story that needs what is not there is not run, and says so; it never passes for that.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

/// Something that a machine must have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// The rights of root.
    Root,
    /// User namespaces, for who is not root.
    UserNamespace,
    /// Mounts can be made.
    Mount,
    /// File systems in memory can be mounted.
    Tmpfs,
    /// File systems in a file can be mounted.
    Loop,
    /// A program of this name.
    Program(String),
    /// Pid and mount namespaces can be made and entered.
    Container,
    /// Processes can be given clocks of their own.
    TimeNamespace,
}

impl Need {
    /// The words for those without a name of their own.
    pub(super) const WORDS: [(&'static str, Need); 7] = [
        ("root", Need::Root),
        ("user-namespace", Need::UserNamespace),
        ("mount", Need::Mount),
        ("tmpfs", Need::Tmpfs),
        ("loop", Need::Loop),
        ("container", Need::Container),
        ("time-namespace", Need::TimeNamespace),
    ];

    /// Why it is not there; `None` if it is.
    ///
    /// A story runs in a cell, which has mounts of its own; only root may add to them.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        let root = rustix::process::geteuid().is_root();
        let only_root = |what: &str| (!root).then(|| format!("only root may {what}"));
        match self {
            Need::Root => only_root("tell it"),
            Need::UserNamespace => user_namespaces_forbidden(),
            Need::Mount => only_root("mount"),
            Need::Tmpfs => only_root("mount a tmpfs"),
            Need::Loop => only_root("mount a file system in a file").or_else(|| {
                (!Path::new("/dev/loop-control").exists()).then(|| "there is no loop device".into())
            }),
            Need::Container => only_root("make namespaces").or_else(|| {
                let programs =
                    ["unshare", "nsenter", "mount"].map(|name| Need::Program(name.into()));
                programs.iter().find_map(Need::missing)
            }),
            Need::TimeNamespace => only_root("make namespaces").or_else(|| {
                let none = !Path::new("/proc/self/ns/time").exists();
                let none = none.then(|| "this kernel has no time namespaces".into());
                none.or_else(|| Need::Program("unshare".into()).missing())
            }),
            Need::Program(name) => {
                find_program(name).is_none().then(|| format!("`{name}` is not installed"))
            }
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Need::Program(name) = self {
            return write!(f, "program:{name}");
        }
        let word = Need::WORDS.iter().find(|(_, need)| need == self).map_or("", |(word, _)| word);
        f.write_str(word)
    }
}

fn user_namespaces_forbidden() -> Option<String> {
    let max = std::fs::read_to_string("/proc/sys/user/max_user_namespaces").ok()?;
    (max.trim() == "0").then(|| "user namespaces are forbidden here".into())
}

/// Looks a program up as a shell does, and where administrators' programs lie.
pub(super) fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    let places = env::split_paths(&path).chain(usual);
    places.map(|dir| dir.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_there_or_is_missed_by_its_name() {
        assert_eq!(Need::Program("sh".into()).missing(), None);
        let missing = Need::Program("no-such-program".into()).missing();
        assert_eq!(missing.as_deref(), Some("`no-such-program` is not installed"));
        assert_eq!(Need::Program("x".into()).to_string(), "program:x");
        assert_eq!(Need::Loop.to_string(), "loop");
    }
}
