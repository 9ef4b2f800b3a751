//! Reads what happens to files in a story: what is put somewhere, taken away, changed, mounted.

use super::{Acted, Reader};
use crate::scenario::diagnostic::Diagnostic;
use crate::scenario::fields::{At, Fields};
use crate::scenario::needs::Need;
use crate::scenario::story::{Action, Base, Deed, Filler, Forged, Place, Planted};

pub(super) const PLANTED: &[(&str, Planted)] = &[
    ("fifo", Planted::Fifo),
    ("directory", Planted::Directory),
    ("file", Planted::File),
    ("dangling-link", Planted::DanglingLink),
    ("link-to-precious", Planted::LinkToPrecious),
    ("link-to-zero", Planted::LinkToZero),
    ("socket", Planted::Socket),
    ("sparse-giant", Planted::SparseGiant),
    ("fifo-with-writer", Planted::FifoWithWriter),
    ("link-to-file", Planted::LinkToFile),
    ("garbage", Planted::Garbage),
    ("full-directory", Planted::FullDirectory),
    ("device", Planted::Device),
];

/// What the shell of a command can put somewhere.
const PLANTED_BY_COMMANDS: [Planted; 4] =
    [Planted::Fifo, Planted::Directory, Planted::File, Planted::DanglingLink];

impl Reader<'_> {
    pub(super) fn plant(&self, fields: &Fields<'_>) -> Option<Acted> {
        let what = fields.word("plant", PLANTED);
        let at = self.place(fields, "at");
        let depth = fields.number("depth");
        let name_bytes = fields.number("name-bytes");
        if let (Some(what), Some(_)) = (&what, depth.or(name_bytes))
            && what.value != Planted::Directory
        {
            let title = "only of directories can there be one in the other";
            fields.report(Diagnostic::new("depth", title, what.span.clone()));
        }
        let if_there = fields.is("if-there");
        if let Some(by) = fields.string("by") {
            return self.planted_by_command(fields, by, what?, at?);
        }
        let (what, depth) = (what?.value, depth.unwrap_or(1));
        let needs = (what == Planted::Device).then_some(Need::Root).into_iter().collect();
        let action = Action::Plant { what, at: at?, depth, name_bytes, if_there };
        Some(Acted { action, needs, host_only: None })
    }

    /// A command puts something somewhere.
    pub(super) fn planted_by_command(
        &self,
        fields: &Fields<'_>,
        by: At<String>,
        what: At<Planted>,
        at: Place,
    ) -> Option<Acted> {
        if !PLANTED_BY_COMMANDS.contains(&what.value) {
            let title = "a command cannot make this";
            let found = Diagnostic::new("unknown-word", title, what.span);
            let note = "it can be `fifo`, `directory`, `file`, `dangling-link`";
            fields.report(found.note(note));
        }
        let command = self.known(by, &["command"])?;
        Some(Action::ByCommand { command, does: Deed::Plant(what.value), at }.into())
    }

    /// Something is taken away, by a command if it says so.
    pub(super) fn take_away(
        &self,
        fields: &Fields<'_>,
        key: &'static str,
        does: Deed,
        otherwise: fn(Place) -> Action,
    ) -> Option<Acted> {
        let at = self.place(fields, key)?;
        match fields.string("by") {
            Some(by) => {
                let command = self.known(by, &["command"])?;
                Some(Action::ByCommand { command, does, at }.into())
            }
            None => Some(otherwise(at).into()),
        }
    }

    pub(super) fn link(&self, fields: &Fields<'_>) -> Option<Acted> {
        let text = fields.string("link");
        let at = self.place(fields, "at");
        Some(Action::Link { text: text?.value, at: at? }.into())
    }

    pub(super) fn forge(&self, fields: &Fields<'_>) -> Option<Acted> {
        let at = self.place(fields, "forge");
        let change = Forged { pid: fields.number("pid"), version: fields.number("version") };
        if change == Forged::default() && !fields.has("pid") && !fields.has("version") {
            let found = Diagnostic::new("missing-key", "`forge` changes nothing", fields.span());
            fields.report(found.note("say what the record is to have: `pid`, `version`"));
        }
        Some(Action::Forge { at: at?, change }.into())
    }

    pub(super) fn duplicate(&self, fields: &Fields<'_>) -> Option<Acted> {
        let (what, to) = (self.place(fields, "duplicate"), self.place(fields, "to"));
        Some(Action::Duplicate { what: what?, to: to? }.into())
    }

    pub(super) fn moves(&self, fields: &Fields<'_>) -> Option<Acted> {
        let (what, to) = (self.place(fields, "move"), self.place(fields, "to"));
        if to.as_ref().is_some_and(|to| matches!(to.base, Base::Precious(_))) {
            let title = "nothing is moved into a precious directory";
            fields.report(Diagnostic::new("place", title, fields.key_span("to")));
        }
        Some(Action::Move { what: what?, to: to? }.into())
    }

    pub(super) fn mount(&self, fields: &Fields<'_>) -> Option<Acted> {
        let what = self.place(fields, "mount");
        let at = self.place(fields, "at");
        let elsewhere = fields.is("elsewhere");
        let mut needs = vec![Need::Mount];
        needs.extend(elsewhere.then(|| Need::Program("unshare".into())));
        let host_only = elsewhere.then_some("all simulated processes see the same mounts");
        Some(Acted { action: Action::Mount { what: what?, at: at?, elsewhere }, needs, host_only })
    }

    pub(super) fn age(&self, fields: &Fields<'_>) -> Option<Acted> {
        let what = self.place(fields, "age");
        let to = fields.integer("to");
        if to.is_none() && !fields.has("to") {
            let found = Diagnostic::new("missing-key", "`age` needs `to`", fields.span());
            fields.report(found.note("the time that everything is to have, in seconds since 1970"));
        }
        Some(Action::Age { what: what?, to: to?.value }.into())
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

    pub(super) fn tmpfiles(&self, fields: &Fields<'_>) -> Option<Acted> {
        let age = fields.required("tmpfiles")?;
        if age.value.is_empty() || !age.value.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            let title = format!("`{}` is no age", age.value);
            let found = Diagnostic::new("age", title, age.span.clone());
            fields.report(found.note("an age is a number and a unit, as in `1s` or `10d`"));
        }
        let needs = vec![Need::Program("systemd-tmpfiles".into())];
        let host_only = Some("a real program of the machine runs");
        Some(Acted { action: Action::Tmpfiles(age.value), needs, host_only })
    }
}
