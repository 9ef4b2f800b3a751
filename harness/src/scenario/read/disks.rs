//! Reads what a scenario says of disks, crowds, and of what is done to files; and demands that the
//! head of the file declares what all that needs.

use std::collections::BTreeMap;
use std::ops::Range;

use super::hostile::prefix;
use super::{Acted, Declared, Reader};
use crate::scenario::diagnostic::Diagnostic;
use crate::scenario::fields::{At, Count, Fields};
use crate::scenario::needs::Need;
use crate::scenario::story::{
    Action, Actor, Crowd, Disk, DiskKind, Filler, Precious, Server, Sweeper,
};

const KINDS: [(&str, DiskKind); 4] = [
    ("tmpfs", DiskKind::Tmpfs),
    ("ext4", DiskKind::Ext4),
    ("overlay", DiskKind::Overlay),
    ("ramfs", DiskKind::Ramfs),
];

/// Whether an actor is another in each round.
pub(super) fn uses_round(actor: &Actor) -> bool {
    let descriptors = match actor {
        Actor::Server(server) => server.descriptors,
        Actor::Sweeper(sweeper) => sweeper.descriptors,
        Actor::Command(_)
        | Actor::Precious(_)
        | Actor::Disk(_)
        | Actor::Crowd(_)
        | Actor::Stranger
        | Actor::Container(_) => None,
    };
    descriptors == Some(Count::Round)
}

impl Reader<'_> {
    /// A number of rounds, from 1.
    pub(super) fn rounds(&self, key: &'static str) -> Option<At<u64>> {
        let at = self.fields.integer(key)?;
        match u64::try_from(at.value) {
            Ok(value) if value > 0 => Some(At { value, span: at.span }),
            _ => {
                let title = format!("`{key}` is at least 1");
                self.fields.report(Diagnostic::new("wrong-number", title, at.span));
                None
            }
        }
    }

    /// The actor under a key that need not be there.
    #[expect(clippy::option_option, reason = "absent is good, wrong is not")]
    pub(super) fn optional(
        &self,
        fields: &Fields<'_>,
        key: &'static str,
        kind: &'static str,
    ) -> Option<Option<String>> {
        match fields.string(key) {
            Some(at) => self.known(at, &[kind]).map(Some),
            None => Some(None),
        }
    }

    pub(super) fn server(&self, fields: &Fields<'_>) -> Option<Server> {
        let plain_user = fields.is("plain-user");
        let on = self.optional(fields, "on", "disk");
        let within = self.optional(fields, "within", "server");
        let descriptors = fields.count("descriptors").map(|at| at.value);
        if fields.has("on") && fields.has("within") {
            let title = "a claim lies on a disk or within another claim, not both";
            fields.report(Diagnostic::new("two-places", title, fields.key_span("within")));
        }
        let prefix = prefix(fields);
        let background = fields.is("in-background");
        let unreadable = fields.is("unreadable-program");
        let first_in = self.optional(fields, "first-in", "container");
        let surroundings = self.surroundings(fields);
        if unreadable && !(fields.has("in") && plain_user) {
            let title = "an unreadable program hides a plain user in a container";
            let span = fields.key_span("unreadable-program");
            let found = Diagnostic::new("unreadable", title, span);
            fields.report(found.help(Some("say `in` and `plain-user`".into())));
        }
        let (on, within, first_in, mut surroundings) = (on?, within?, first_in?, surroundings?);
        let first = first_in.is_some();
        surroundings.container = surroundings.container.or(first_in);
        Some(Server {
            plain_user,
            prefix,
            on,
            within,
            descriptors,
            background,
            surroundings,
            first,
            unreadable,
        })
    }

    pub(super) fn disk(&self, fields: &Fields<'_>) -> Option<Disk> {
        if !fields.has("kind") {
            let kinds = KINDS.map(|(word, _)| word).join(", ");
            let found = Diagnostic::new("missing-key", "a disk needs `kind`", fields.span());
            fields.report(found.note(format!("it can be {kinds}")));
        }
        let kind = fields.word("kind", &KINDS).map(|at| at.value);
        let size_kib = fields.number("size-kib");
        let inodes = fields.number("inodes");
        let lower = self.optional(fields, "lower", "disk")?;
        let only = |key: &str, kinds: &[DiskKind]| {
            if fields.has(key) && kind.is_some_and(|kind| !kinds.contains(&kind)) {
                let title = format!("a disk of this kind has no `{key}`");
                fields.report(Diagnostic::new("disk", title, fields.key_span(key)));
            }
        };
        only("size-kib", &[DiskKind::Tmpfs, DiskKind::Ext4]);
        only("inodes", &[DiskKind::Tmpfs, DiskKind::Ext4]);
        only("lower", &[DiskKind::Overlay]);
        Some(Disk { kind: kind?, size_kib, inodes, lower })
    }

    pub(super) fn crowd(&self, fields: &Fields<'_>) -> Option<Crowd> {
        let of = |key| fields.number::<u64>(key).unwrap_or_default();
        let (dead, half_made, living) = (of("dead"), of("half-made"), of("living"));
        Some(Crowd { dead, half_made, living, on: self.optional(fields, "on", "disk")? })
    }

    pub(super) fn chmod(&self, fields: &Fields<'_>) -> Option<Acted> {
        let at = self.place(fields, "chmod");
        let to = self.attribute(fields, "chmod", "the mode, such as 0o555")?;
        if to > 0o7777 {
            let title = "no mode is like this";
            let found = Diagnostic::new("wrong-number", title, fields.key_span("to"));
            fields.report(found.help(Some("write it with 0o in front: to = 0o755".into())));
        }
        Some(Action::Chmod { at: at?, to }.into())
    }

    pub(super) fn chown(&self, fields: &Fields<'_>) -> Option<Acted> {
        let at = self.place(fields, "chown");
        let to = self.attribute(fields, "chown", "the number of a user")?;
        let action = Action::Chown { at: at?, to };
        Some(Acted { action, needs: vec![Need::Root], host_only: None })
    }

    /// What a file is to get.
    fn attribute(&self, fields: &Fields<'_>, verb: &str, what: &str) -> Option<u32> {
        if !fields.has("to") {
            let title = format!("`{verb}` needs `to`");
            let found = Diagnostic::new("missing-key", title, fields.span());
            fields.report(found.note(what.to_owned()));
        }
        fields.number("to")
    }

    pub(super) fn chattr(&self, fields: &Fields<'_>) -> Option<Acted> {
        let at = self.place(fields, "chattr");
        if !fields.has("to") {
            let found = Diagnostic::new("missing-key", "`chattr` needs `to`", fields.span());
            fields.report(found.note("`+i`: it cannot be removed by anybody; `-i`: it can"));
        }
        let immutable = fields.word("to", &[("+i", true), ("-i", false)])?.value;
        let action = Action::Chattr { at: at?, immutable };
        let needs = vec![Need::Root, Need::Program("chattr".into())];
        let host_only = Some("nothing simulated is immutable");
        Some(Acted { action, needs, host_only })
    }

    pub(super) fn fill(&self, fields: &Fields<'_>) -> Option<Acted> {
        const WITH: [(&str, Filler); 3] =
            [("blocks", Filler::Blocks), ("inodes", Filler::Inodes), ("names", Filler::Names)];
        let disk = self.actor(fields, "fill", &["disk"]);
        if !fields.has("with") {
            let found = Diagnostic::new("missing-key", "`fill` needs `with`", fields.span());
            fields.report(found.note("what it is to have no room for: blocks, inodes, names"));
        }
        let with = fields.word("with", &WITH);
        let leaving = fields.count("leaving");
        if let (Some(with), Some(leaving)) = (&with, &leaving)
            && with.value != Filler::Inodes
        {
            let title = "only of inodes can some be left";
            fields.report(Diagnostic::new("disk", title, leaving.span.clone()));
        }
        let (with, leaving) = (with?.value, leaving.map(|at| at.value));
        Some(Action::Fill { disk: disk?, with, leaving }.into())
    }

    pub(super) fn gather(&self, fields: &Fields<'_>) -> Option<Acted> {
        Some(Action::Gather(self.actor(fields, "gather", &["crowd"])?).into())
    }

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
                Actor::Server(Server { descriptors: Some(_), .. }) => {
                    (Vec::new(), Some("no simulated process is short of descriptors"))
                }
                Actor::Sweeper(sweeper) if sweeper.descriptors.is_some() => {
                    (Vec::new(), Some("no simulated process is short of descriptors"))
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::scenario::read;

    /// The codes of what is wrong with a story of this head and these steps.
    fn wrong(text: &str) -> Vec<String> {
        let head = "about = \"x\"\nrules = [\"l1\"]\n";
        match read("x", Path::new("x.toml"), &format!("{head}{text}")) {
            Ok(_) => Vec::new(),
            Err(found) => found.into_iter().map(|diagnostic| diagnostic.code).collect(),
        }
    }

    #[test]
    fn a_disk_demands_what_it_needs_and_the_real_kernel() {
        let steps = "[disk.d]\nkind = \"ext4\"\n[server.a]\non = \"d\"\n[[step]]\nstart = \"a\"\n";
        let expected = ["undeclared-need", "undeclared-need", "undeclared-host-only"];
        assert_eq!(wrong(steps), expected);
        let head = "needs = [\"loop\", \"program:mkfs.ext4\"]\nhost-only = \"a disk\"\n";
        assert_eq!(wrong(&format!("{head}{steps}")), [""; 0]);
    }

    #[test]
    fn no_disk_lies_on_itself() {
        let head = "needs = [\"mount\"]\nhost-only = \"disks\"\n";
        let steps = "[server.s]\non = \"a\"\n[[step]]\nstart = \"s\"\n";
        let disk = |name: &str, lower: &str| {
            format!("[disk.{name}]\nkind = \"overlay\"\nlower = \"{lower}\"\n")
        };
        let round = disk("a", "b") + &disk("b", "a");
        assert_eq!(wrong(&format!("{head}{round}{steps}")), ["disk", "disk"]);
        let chain = disk("a", "b") + "[disk.b]\nkind = \"overlay\"\n";
        assert_eq!(wrong(&format!("{head}{chain}{steps}")), [""; 0]);
    }

    #[test]
    fn rounds_are_so_many_or_to_the_end() {
        let steps = "[server.a]\n[[step]]\nstart = \"a\"\n";
        assert_eq!(wrong(&format!("rounds = 3\n{steps}")), [""; 0]);
        assert_eq!(wrong(&format!("rounds-max = 3\n{steps}")), ["rounds"]);
        let by_round = format!("{steps}kill-before = \"n\"\n");
        assert_eq!(wrong(&by_round), ["rounds"]);
        assert_eq!(wrong(&format!("rounds = 3\n{by_round}")), [""; 0]);
        assert_eq!(wrong(&format!("rounds = 3\nrounds-max = 3\n{by_round}")), ["rounds"]);
    }

    #[test]
    fn a_place_can_hold_any_byte_but_those_that_text_can_hold_are_written_so() {
        let plant = |at: &str| {
            format!(
                "[server.a]\n[[step]]\nstart = \"a\"\n[[step]]\nplant = \"file\"\nat = \"{at}\"\n"
            )
        };
        assert_eq!(wrong(&plant("a/files/%ff%80")), [""; 0]);
        assert_eq!(wrong(&plant("a/files/%2f")), ["place"]);
        assert_eq!(wrong(&plant("a/files/100%")), ["place"]);
    }

    #[test]
    fn a_mode_is_no_decimal_number() {
        let chmod = "[server.a]\n[[step]]\nstart = \"a\"\n[[step]]\nchmod = \"a/files\"\n";
        assert_eq!(wrong(&format!("{chmod}to = 0o755\n")), [""; 0]);
        assert_eq!(wrong(&format!("{chmod}to = 7550\n")), ["wrong-number"]);
        assert_eq!(wrong(chmod), ["missing-key"]);
    }
}
