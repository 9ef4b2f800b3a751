//! Reads what servers have beside their claims: locks, stores, test directories, passed sockets.

use super::{Acted, Reader};
use crate::actor::Passed;
use crate::scenario::diagnostic::Diagnostic;
use crate::scenario::fields::Fields;
use crate::scenario::story::{Action, Asking, Base, Expected, PassedSockets, Place};

const PASSED: [(&str, Passed); 4] = [
    ("listening", Passed::Listening),
    ("connected", Passed::Connected),
    ("file", Passed::File),
    ("closed", Passed::Closed),
];

/// As many sockets as a server of a story may be passed.
const PASSED_MAX: usize = 16;

impl Reader<'_> {
    /// A directory that is locked by somebody, or a lock that a server takes.
    pub(super) fn lock(&self, fields: &Fields<'_>) -> Option<Acted> {
        if !fields.has("by") {
            return Some(Action::Lock(self.place(fields, "lock")?).into());
        }
        let server = self.actor(fields, "by", &["server"]);
        let file = self.shared(fields, "lock");
        let how = self.asking(fields);
        Some(Action::TakeLock { server: server?, file: file?, how: how? }.into())
    }

    pub(super) fn unlock(&self, fields: &Fields<'_>) -> Option<Acted> {
        if !fields.has("by") {
            return Some(Action::Unlock(self.place(fields, "unlock")?).into());
        }
        let server = self.actor(fields, "by", &["server"]);
        let file = self.shared(fields, "unlock");
        let fails = self.error_kind(fields);
        Some(Action::GiveLockBack { server: server?, file: file?, fails }.into())
    }

    pub(super) fn write(&self, fields: &Fields<'_>) -> Option<Acted> {
        let file = self.shared(fields, "write");
        if !fields.has("by") {
            let found = Diagnostic::new("missing-key", "`write` needs `by`", fields.span());
            fields.report(found.note("the server that does it, or several at once"));
        }
        let by = self.actors(fields, "by", &["server"]);
        let text = fields.required("text");
        let (by, how) = (by?, self.asking(fields)?);
        let odd = how.disturbed.is_some() || how.waits || how.fails.is_some();
        if by.len() > 1 && odd {
            let title = "several who write at once wait for each other, and for nothing else";
            let found = Diagnostic::new("several", title, fields.entry_span("by"));
            fields.report(found.help(Some("make it several steps".into())));
        }
        Some(Action::Write { by, file: file?, text: text?.value, how }.into())
    }

    pub(super) fn reads(&self, fields: &Fields<'_>) -> Option<Acted> {
        let file = self.shared(fields, "read");
        let server = self.actor(fields, "by", &["server"]);
        let answer = fields.string("answer").map(|at| at.value);
        let fails = self.error_kind(fields);
        Some(Action::Read { server: server?, file: file?, answer, fails }.into())
    }

    pub(super) fn take(&self, fields: &Fields<'_>) -> Option<Acted> {
        let at = self.shared(fields, "take");
        let server = self.actor(fields, "by", &["server"]);
        let disturbed = self.disturbed(fields);
        let how = Asking { waits: false, disturbed, fails: self.error_kind(fields) };
        Some(Action::TakeSandbox { server: server?, at: at?, how }.into())
    }

    pub(super) fn take_sockets(&self, fields: &Fields<'_>) -> Option<Acted> {
        let server = self.actor(fields, "take-sockets", &["server"]);
        let answer = fields.strings("answer");
        let answer = answer.map(|names| names.into_iter().map(|at| at.value).collect());
        let fails = self.error_kind(fields);
        Some(Action::TakeSockets { server: server?, answer, fails }.into())
    }

    /// Whether a lock is held, and by whom.
    pub(super) fn expected_lock(&self, fields: &Fields<'_>) -> Option<Expected> {
        let file = self.shared(fields, "lock");
        if !fields.has("is") {
            let found = Diagnostic::new("missing-key", "it needs `is`", fields.span());
            fields.report(found.note("what it is: held, free"));
        }
        let held = fields.word("is", &[("held", true), ("free", false)]).map(|at| at.value);
        // Who is named where it is neither is read, too: one thing is wrong then, not two.
        let named = held == Some(true) || held.is_none() && fields.has("by");
        let holder = named.then(|| self.actor(fields, "by", &["server"]));
        let holder = if held? { Some(holder.flatten()?) } else { None };
        Some(Expected::Lock { file: file?, holder })
    }

    /// What is passed to a server.
    pub(super) fn passed(&self, fields: &Fields<'_>) -> Option<PassedSockets> {
        let listed = fields.strings("passed");
        let to = fields.word("passed-to", &[("itself", false), ("another", true)]);
        let names = fields.strings("passed-names");
        if listed.is_none() {
            for key in ["passed-to", "passed-names"].into_iter().filter(|key| fields.has(key)) {
                let title = format!("`{key}` is about what is `passed`, and nothing is");
                fields.report(Diagnostic::new("passed", title, fields.key_span(key)));
            }
        }
        let what: Vec<Passed> = listed?
            .into_iter()
            .filter_map(|at| fields.one_of("passed", at, &PASSED))
            .map(|at| at.value)
            .collect();
        if what.len() > PASSED_MAX {
            let title = format!("a server is passed at most {PASSED_MAX}");
            fields.report(Diagnostic::new("passed", title, fields.key_span("passed")));
        }
        let names = names.map(|names| names.into_iter().map(|at| at.value).collect());
        Some(PassedSockets { what, to_another: to.is_some_and(|at| at.value), names })
    }

    /// Something in the directory that programs share.
    fn shared(&self, fields: &Fields<'_>, key: &'static str) -> Option<Place> {
        let place = self.place(fields, key)?;
        if place.base != Base::Shared || place.rest.is_empty() || place.rest.contains('/') {
            let title = "this has a name in the directory that programs share";
            let found = Diagnostic::new("place", title, fields.entry_span(key));
            fields.report(found.help(Some(format!("write {key} = \"shared/NAME\""))));
            return None;
        }
        Some(place)
    }

    /// How something is asked for that another may have.
    fn asking(&self, fields: &Fields<'_>) -> Option<Asking> {
        let waits = fields.is("waits");
        let (disturbed, fails) = (self.disturbed(fields), self.error_kind(fields));
        if waits && (disturbed.is_some() || fails.is_some()) {
            let title = "who waits is not disturbed, and does not fail";
            fields.report(Diagnostic::new("wrong-together", title, fields.key_span("waits")));
            return None;
        }
        Some(Asking { waits, disturbed, fails })
    }
}
