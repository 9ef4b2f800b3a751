//! Reads who is in a story.

use std::collections::BTreeMap;

use super::Reader;
use crate::actor::wire::Asked;
use crate::scenario::diagnostic::Diagnostic;
use crate::scenario::fields::Fields;
use crate::scenario::story::{
    Actor, Command, Container, Crowd, Disk, DiskKind, Lock, Precious, Proc, Server, Surroundings,
    Sweeper,
};

const KINDS: [(&str, DiskKind); 4] = [
    ("tmpfs", DiskKind::Tmpfs),
    ("ext4", DiskKind::Ext4),
    ("overlay", DiskKind::Overlay),
    ("ramfs", DiskKind::Ramfs),
];

impl Reader<'_> {
    /// Reads all who are in it. Their names are known before any step is read.
    pub(super) fn everybody(&mut self) -> BTreeMap<String, Actor> {
        let mut read = Vec::new();
        for (kind, what) in [
            ("server", "a server"),
            ("command", "a command"),
            ("sweeper", "a sweeper"),
            ("precious", "a precious directory"),
            ("disk", "a disk"),
            ("crowd", "a crowd"),
            ("stranger", "a stranger"),
            ("container", "a container"),
        ] {
            for (name, fields) in self.fields.named(kind, what) {
                self.name(&name, kind);
                read.push((name.value, kind, fields));
            }
        }
        let mut actors = BTreeMap::new();
        for (name, kind, fields) in read {
            let actor = match kind {
                "server" => self.server(&fields).map(Actor::Server),
                "command" => self.command(&fields).map(Actor::Command),
                "sweeper" => self.sweeper(&fields).map(Actor::Sweeper),
                "disk" => self.disk(&fields).map(Actor::Disk),
                "crowd" => self.crowd(&fields).map(Actor::Crowd),
                "stranger" => Some(Actor::Stranger),
                "container" => Some(Actor::Container(self.container(&fields))),
                _ => Some(Actor::Precious(Precious { plain_user: fields.is("plain-user") })),
            };
            fields.finish();
            actors.extend(actor.map(|actor| (name, actor)));
        }
        actors
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
        let passed = self.passed(fields);
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
            passed,
        })
    }

    fn command(&self, fields: &Fields<'_>) -> Option<Command> {
        let by = match fields.has("by") {
            true => self.actor(fields, "by", &["server"]),
            false => self.only("server", fields, "by"),
        };
        let script = fields.string("script");
        let command = Command {
            by: by?,
            script: script.map(|at| at.value),
            background: fields.is("in-background"),
            own_session: fields.is("own-session"),
            lock: fields
                .word(
                    "lock",
                    &[("kept", Lock::Kept), ("closed", Lock::Closed), ("unlocked", Lock::Unlocked)],
                )
                .map_or(Lock::Kept, |at| at.value),
            elsewhere: fields.is("elsewhere"),
            without_cookie: fields.is("without-cookie"),
            escapes: fields.string("escapes").map(|at| at.value),
        };
        Some(command)
    }

    fn sweeper(&self, fields: &Fields<'_>) -> Option<Sweeper> {
        let asked = [
            ("lease", Asked::Lease),
            ("owner", Asked::Owner),
            ("commands", Asked::Commands),
            ("life", Asked::Life),
        ];
        let cannot_tell = fields.strings("cannot-tell").unwrap_or_default();
        let cannot_tell =
            cannot_tell.into_iter().filter_map(|at| fields.one_of("cannot-tell", at, &asked));
        Some(Sweeper {
            dry_run: fields.is("dry-run"),
            plain_user: fields.is("plain-user"),
            prefix: prefix(fields),
            cannot_tell: cannot_tell.map(|at| at.value).collect(),
            not_removed: match fields.has("not-removed") {
                true => self.actors(fields, "not-removed", &["server"])?,
                false => Vec::new(),
            },
            descriptors: fields.count("descriptors").map(|at| at.value),
            on: self.optional(fields, "on", "disk")?,
            surroundings: self.surroundings(fields)?,
        })
    }

    /// What somebody sees of the machine that others do not see so.
    pub(super) fn surroundings(&self, fields: &Fields<'_>) -> Option<Surroundings> {
        let container = self.optional(fields, "in", "container");
        let boottime_offset = fields.integer("boottime-offset").map(|at| at.value);
        let made_for_it = boottime_offset.is_some() || fields.has("first-in");
        let wrong = |title: &str, key: &str| {
            fields.report(Diagnostic::new("wrong-together", title, fields.key_span(key)));
        };
        if made_for_it && fields.has("plain-user") {
            wrong("a plain user cannot make namespaces", "plain-user");
        }
        if fields.has("in") && fields.has("first-in") {
            wrong("who is the first in a container is in it", "in");
        }
        Some(Surroundings { container: container?, boottime_offset })
    }

    /// A container.
    pub(super) fn container(&self, fields: &Fields<'_>) -> Container {
        const SHOWN: [(&str, Proc); 3] =
            [("own", Proc::Own), ("outer", Proc::Outer), ("hides-processes", Proc::HidesProcesses)];
        Container { proc: fields.word("proc", &SHOWN).map_or(Proc::Own, |at| at.value) }
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
}

/// The prefix of claims.
pub(super) fn prefix(fields: &Fields<'_>) -> Option<String> {
    let at = fields.string("prefix")?;
    if mortmain::Prefix::new(&at.value).is_none() {
        let title = format!("`{}` cannot be the prefix of a claim", at.value);
        fields.report(Diagnostic::new("prefix", title, at.span.clone()));
    }
    Some(at.value)
}
