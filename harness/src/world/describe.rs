//! A world in words, for people who go through a run step by step.

use std::fmt::Write as _;

use mortmain::sys::{Kind, PathBytes, Pid};

use super::World;
use super::files::Node;
use super::ids::InodeId;
use super::process::Life;

impl World {
    /// What is below the root, who holds which lock, and who is there: a line each, in an order that
    /// depends on nothing but the world.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.describe_names(self.root, &PathBytes::from(World::ROOT.as_bytes()), &mut lines);
        for (pid, process) in self.processes.iter() {
            let mut line = format!("process {}", pid.0);
            let _ = match process.life {
                Life::Forked => write!(line, " is between fork and exec"),
                Life::Running => write!(line, " runs `{}`", process.program()),
                Life::Zombie(ending) => write!(line, " is a zombie: {ending:?}"),
            };
            let _ = write!(line, ", group {}", process.group().0);
            if !process.uses.is_empty() {
                let uses = process.uses.iter().map(|claim| format!("{}", claim.0.by.0));
                let uses: Vec<String> = uses.collect();
                let _ = write!(line, ", may use the claim of {}", uses.join(", "));
            }
            lines.push(line);
        }
        lines
    }

    fn describe_names(&self, dir: InodeId, path: &PathBytes, lines: &mut Vec<String>) {
        let mut line = path.to_string();
        if self.not_mounted_on(dir).is_err() {
            line += ", below a mount";
        }
        self.describe_lock(dir, &mut line);
        lines.push(line);
        for (name, inode) in self.names_in(dir) {
            let path = path.join(name.bytes());
            let kind = match self.inodes.get(inode).map(|inode| &inode.node) {
                Some(Node::Dir(_)) => {
                    self.describe_names(inode, &path, lines);
                    continue;
                }
                Some(Node::Link(_)) => Kind::Link.word(),
                Some(Node::Special(special)) => special.word(),
                _ => Kind::File.word(),
            };
            let mut line = format!("{path}, {kind}");
            self.describe_lock(inode, &mut line);
            lines.push(line);
        }
    }

    /// Who can give the lock of an inode back.
    fn describe_lock(&self, inode: InodeId, line: &mut String) {
        let Some(file) = self.inodes.get(inode).and_then(|inode| inode.lock()) else { return };
        let holders = self.processes.iter().filter(|(_, process)| {
            process.descriptors.iter().any(|descriptor| descriptor.file == file)
        });
        let holders: Vec<String> = holders.map(|(pid, _): (Pid, _)| pid.0.to_string()).collect();
        let _ = write!(line, ", locked by {}", holders.join(" and "));
    }
}
