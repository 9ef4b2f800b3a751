//! Reads who and what is meant: the names of actors, and places in the file system of a story.

use super::{Named, Reader};
use crate::scenario::diagnostic::{Diagnostic, did_you_mean};
use crate::scenario::fields::{At, Fields};
use crate::scenario::story::{Base, Place, bracketed};

impl Reader<'_> {
    pub(super) fn name(&mut self, name: &At<String>, kind: &'static str) {
        const TAKEN: [&str; 3] = ["root", "shared", "n"];
        let slug = !name.value.is_empty()
            && name.value.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        if !slug || TAKEN.contains(&name.value.as_str()) {
            let title = format!("nobody can be called `{}`", name.value);
            let found = Diagnostic::new("name", title, name.span.clone());
            let note =
                "a name is small letters, digits and hyphens, and not `root`, `shared` or `n`";
            self.fields.report(found.note(note));
        }
        if let Some(other) = self.names.get(&name.value) {
            let title = format!("two are called `{}`", name.value);
            let found = Diagnostic::new("name-twice", title, name.span.clone());
            self.fields.report(found.context(other.span.clone(), "the first"));
        }
        let named = Named { kind, span: name.span.clone() };
        self.names.insert(name.value.clone(), named);
    }

    /// The one actor of a kind, where there is one.
    pub(super) fn only(&self, kind: &str, fields: &Fields<'_>, key: &str) -> Option<String> {
        let mut all = self.names.iter().filter(|(_, named)| named.kind == kind);
        match (all.next(), all.next()) {
            (Some((name, _)), None) => Some(name.clone()),
            _ => {
                let title = format!("it is not clear which {kind} is meant");
                let found = Diagnostic::new("which", title, fields.span());
                self.fields.report(found.help(Some(format!("say `{key}`"))));
                None
            }
        }
    }

    /// The actor under a key.
    pub(super) fn actor(
        &self,
        fields: &Fields<'_>,
        key: &'static str,
        kinds: &[&str],
    ) -> Option<String> {
        let at = fields.required(key)?;
        self.known(at, kinds)
    }

    /// One actor or several.
    pub(super) fn actors(
        &self,
        fields: &Fields<'_>,
        key: &'static str,
        kinds: &[&str],
    ) -> Option<Vec<String>> {
        let all = fields.strings(key)?;
        if all.is_empty() {
            let title = format!("`{key}` names nobody");
            fields.report(Diagnostic::new("nobody", title, fields.key_span(key)));
        }
        all.into_iter().map(|at| self.known(at, kinds)).collect()
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

    pub(super) fn known(&self, at: At<String>, kinds: &[&str]) -> Option<String> {
        match self.names.get(&at.value) {
            Some(named) if kinds.contains(&named.kind) => Some(at.value),
            Some(named) => {
                let title = format!("`{}` is a {}", at.value, named.kind);
                let label = format!("this has to be a {}", kinds.join(" or a "));
                let found = Diagnostic::new("wrong-kind", title, at.span).label(label);
                self.fields.report(found.context(named.span.clone(), "defined here"));
                None
            }
            None => {
                let title = format!("there is no {} `{}`", kinds.join(" or "), at.value);
                let near = self.names.iter().filter(|(_, named)| kinds.contains(&named.kind));
                let near = did_you_mean(&at.value, near.map(|(name, _)| name.as_str()));
                let kind = kinds.first().unwrap_or(&"server");
                let help = near.or_else(|| Some(format!("define it: [{kind}.{}]", at.value)));
                let found = Diagnostic::new("unknown-actor", title, at.span);
                self.fields.report(found.label("not defined in this file").help(help));
                None
            }
        }
    }

    /// `root/…`, `shared/…`, or a server and a path in its claim, or a precious directory and a path
    /// in that.
    pub(super) fn place(&self, fields: &Fields<'_>, key: &'static str) -> Option<Place> {
        let at = fields.required(key)?;
        let (base, rest) = at.value.split_once('/').unwrap_or((&at.value, ""));
        let odd = rest.split('/').any(|part| part == ".." || part == ".");
        for name in bracketed(rest) {
            self.known(At { value: name.into(), span: at.span.clone() }, &["server"])?;
        }
        if odd || rest.starts_with('/') {
            let title = "a place is named from above, without `.` and `..`";
            fields.report(Diagnostic::new("place", title, at.span.clone()));
            return None;
        }
        let rest = rest.to_owned();
        let place = Place { base: Base::Root, rest: rest.clone() };
        if place.rest_bytes().is_none() {
            let title = "a `%` stands before two digits, from `%80` to `%ff`";
            let found = Diagnostic::new("place", title, at.span.clone());
            fields.report(found.note("it is for names with bytes that are no text"));
            return None;
        }
        match base {
            "root" => return Some(Place { base: Base::Root, rest }),
            "shared" => return Some(Place { base: Base::Shared, rest }),
            _ => {}
        }
        let near =
            did_you_mean(base, ["root", "shared"]).filter(|_| !self.names.contains_key(base));
        if near.is_some() {
            let title = format!("no place begins with `{base}`");
            fields.report(Diagnostic::new("place", title, at.span.clone()).help(near));
            return None;
        }
        let base = At { value: base.to_owned(), span: at.span.clone() };
        let name = self.known(base, &["server", "precious"])?;
        let base = match self.names.get(&name)?.kind {
            "server" => Base::Claim(name),
            _ => Base::Precious(name),
        };
        Some(Place { base, rest })
    }

    pub(super) fn is_stranger(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|named| named.kind == "stranger")
    }
}
