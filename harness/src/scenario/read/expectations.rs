//! Reads what must be true in a story: after its steps, and at its end.

use super::Reader;
use crate::scenario::diagnostic::{Diagnostic, did_you_mean};
use crate::scenario::fields::{At, Fields};
use crate::scenario::reasons;
use crate::scenario::story::{Expectation, Expected, LeftOver, State};

/// What can be expected, by its key.
pub(super) const EXPECTATIONS: &[&str] = &[
    "claim",
    "works",
    "lives",
    "ended",
    "untouched",
    "there",
    "not-there",
    "told",
    "names",
    "foreign",
    "not-told",
    "lock",
    "content",
    "listens",
    "not-listens",
];

impl Reader<'_> {
    pub(super) fn expectations(&self, fields: &Fields<'_>) -> Vec<Expectation> {
        let mut read = Vec::new();
        for fields in fields.tables("expect", "an expectation") {
            let what = self.expected(&fields);
            if what.is_none() && !EXPECTATIONS.iter().any(|key| fields.has(key)) {
                let title = "this expectation does not say what is expected";
                let found = Diagnostic::new("no-expectation", title, fields.span());
                fields.report(found.note(format!("it can be {}", EXPECTATIONS.join(", "))));
                continue;
            }
            fields.finish();
            read.extend(what.map(|what| Expectation { span: fields.span(), what }));
        }
        read
    }

    fn expected(&self, fields: &Fields<'_>) -> Option<Expected> {
        const STATES: [(&str, State); 4] = [
            ("kept", State::Kept),
            ("gone", State::Gone),
            ("tombstone", State::Tombstone),
            ("staging", State::Staging),
        ];
        let running = ["server", "command", "stranger"];
        if fields.has("claim") {
            let server = self.actor(fields, "claim", &["server"]);
            let is = fields.word("is", &STATES);
            if !fields.has("is") {
                let found = Diagnostic::new("missing-key", "it needs `is`", fields.span());
                fields.report(found.note("what it is: kept, gone, tombstone, staging"));
            }
            let because = fields.string("because").and_then(|at| self.reason(at));
            return Some(Expected::Claim { server: server?, is: is?.value, because });
        }
        let one = |key, kinds: &[&str]| fields.has(key).then(|| self.actor(fields, key, kinds));
        if let Some(command) = one("works", &["command", "server"]) {
            return command.map(Expected::Works);
        }
        if let Some(who) = one("lives", &running) {
            return who.map(Expected::Lives);
        }
        if let Some(who) = one("ended", &running) {
            return who.map(Expected::Ended);
        }
        if let Some(what) = one("untouched", &["precious"]) {
            return what.map(Expected::Untouched);
        }
        if fields.has("there") {
            let place = self.place(fields, "there");
            let because = fields.string("because").and_then(|at| self.reason(at));
            return Some(Expected::There { place: place?, because });
        }
        if fields.has("not-there") {
            return self.place(fields, "not-there").map(Expected::NotThere);
        }
        if fields.has("told") {
            return fields.string("told").map(|at| Expected::Told(at.value));
        }
        if fields.has("not-told") {
            return fields.string("not-told").map(|at| Expected::NotTold(at.value));
        }
        if fields.has("foreign") {
            return fields.number("foreign").map(Expected::Foreign);
        }
        if fields.has("lock") {
            return self.expected_lock(fields);
        }
        if fields.has("content") {
            let file = self.place(fields, "content");
            if !fields.has("is") {
                let found = Diagnostic::new("missing-key", "it needs `is`", fields.span());
                fields.report(found.note("what the file has in it, or a list of what it may have"));
            }
            let is = fields.strings("is")?.into_iter().map(|at| at.value).collect();
            return Some(Expected::Content { file: file?, is });
        }
        if let Some(server) = one("listens", &["server"]) {
            return server.map(Expected::Listens);
        }
        if let Some(server) = one("not-listens", &["server"]) {
            return server.map(Expected::NotListens);
        }
        let count = fields.number("names");
        let on = self.optional(fields, "on", "disk")?;
        let within = if fields.has("in") { Some(self.place(fields, "in")?) } else { None };
        count.map(|count| Expected::Names { count, on, within })
    }

    fn reason(&self, at: At<String>) -> Option<String> {
        if reasons::all().any(|code| code == at.value) {
            return Some(at.value);
        }
        let title = format!("no sweep gives the reason `{}`", at.value);
        let all: Vec<&str> = reasons::all().collect();
        let found = Diagnostic::new("unknown-reason", title, at.span)
            .note(format!("the reasons are {}", all.join(", ")));
        self.fields.report(found.help(did_you_mean(&at.value, reasons::all())));
        None
    }

    pub(super) fn left_over(&self) -> Vec<LeftOver> {
        let mut read = Vec::new();
        for fields in self.fields.tables("left-over", "something left over") {
            let server = self.actor(&fields, "claim", &["server"]);
            let because = fields.required("because").and_then(|at| self.reason(at));
            fields.finish();
            if let (Some(server), Some(because)) = (server, because) {
                read.push(LeftOver { span: fields.span(), server, because });
            }
        }
        read
    }
}
