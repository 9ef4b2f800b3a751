//! Demands that the head of a file declares what its actors and steps need.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Reader;
use crate::scenario::diagnostic::Diagnostic;
use crate::scenario::fields::At;
use crate::scenario::needs::Need;
use crate::scenario::story::{Actor, DiskKind, Precious, Server, Sweeper};

/// What a file declares in its head.
pub(super) struct Declared {
    pub(super) needs: Vec<At<Need>>,
    pub(super) host_only: bool,
}

impl Reader<'_> {
    /// Demands what actors need.
    pub(super) fn demand_for_actors(&self, actors: &BTreeMap<String, Actor>, declared: &Declared) {
        for (name, actor) in actors {
            // OK because an actor that was read has its name in the file.
            let span = self.names.get(name).map_or(0..0, |named| named.span.clone());
            let (needs, host_only) = match actor {
                Actor::Disk(disk) => (
                    match disk.kind {
                        DiskKind::Tmpfs => vec![Need::Tmpfs],
                        DiskKind::Ext4 => vec![Need::Loop, Need::Program("mkfs.ext4".into())],
                        DiskKind::Overlay | DiskKind::Ramfs => vec![Need::Mount],
                    },
                    Some("the simulated machine has one disk, which is never full"),
                ),
                Actor::Crowd(_) => (Vec::new(), Some("so many are too many for a search")),
                Actor::Server(Server { passed: Some(_), .. }) => {
                    (Vec::new(), Some("no simulated process is passed a socket"))
                }
                Actor::Server(Server { unreadable: true, .. }) => {
                    (Vec::new(), Some("only a real program can be run and not read"))
                }
                Actor::Server(Server { surroundings, .. })
                | Actor::Sweeper(Sweeper { surroundings, .. })
                    if surroundings.boottime_offset.is_some() =>
                {
                    (vec![Need::TimeNamespace], None)
                }
                Actor::Container(_) => (vec![Need::Container], None),
                // It is given to him.
                Actor::Precious(Precious { plain_user: true }) => (vec![Need::Root], None),
                Actor::Server(_)
                | Actor::Command(_)
                | Actor::Sweeper(_)
                | Actor::Precious(_)
                | Actor::Stranger => continue,
            };
            if lies_on(actors, name).any(|below| below == name) {
                let title = format!("`{name}` lies on itself");
                self.fields.report(Diagnostic::new("disk", title, span.clone()));
            }
            self.demand(&format!("`{name}`"), &needs, host_only, declared, span);
        }
    }

    /// Reports what something needs and the head of the file does not declare.
    pub(super) fn demand(
        &self,
        who: &str,
        needs: &[Need],
        host_only: Option<&str>,
        declared: &Declared,
        span: Range<usize>,
    ) {
        for need in needs {
            let implied = *need == Need::Mount;
            let has = |at: &At<Need>| at.value == *need || implied && at.value == Need::Root;
            if declared.needs.iter().any(has) {
                continue;
            }
            let title = format!("{who} needs `{need}`");
            let found = Diagnostic::new("undeclared-need", title, span.clone());
            let help = format!("add it to the head of the file: needs = [\"{need}\"]");
            self.fields.report(found.help(Some(help)));
        }
        if let Some(why) = host_only.filter(|_| !declared.host_only) {
            let title = format!("{who} is for the real kernel only");
            let found = Diagnostic::new("undeclared-host-only", title, span);
            let help = format!("say so in the head of the file: host-only = \"{why}\"");
            self.fields.report(found.help(Some(help)));
        }
    }
}

/// The disks below a disk, each once; where they go round, itself among them.
fn lies_on<'a>(
    actors: &'a BTreeMap<String, Actor>,
    disk: &'a str,
) -> impl Iterator<Item = &'a str> {
    let below = |name: &str| match actors.get(name) {
        Some(Actor::Disk(disk)) => disk.lower.as_deref(),
        _ => None,
    };
    std::iter::successors(below(disk), move |name| below(name)).take(actors.len())
}
