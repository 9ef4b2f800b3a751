//! Reads what hostile users do to a root, and others who mean no harm: what they put there, forge,
//! duplicate and rename.

use super::{Acted, Reader};
use crate::scenario::diagnostic::Diagnostic;
use crate::scenario::fields::Fields;
use crate::scenario::story::{Action, Base, Forged};

/// The prefix of claims.
pub(super) fn prefix(fields: &Fields<'_>) -> Option<String> {
    let at = fields.string("prefix")?;
    if mortmain::Prefix::new(&at.value).is_none() {
        let title = format!("`{}` cannot be the prefix of a claim", at.value);
        fields.report(Diagnostic::new("prefix", title, at.span.clone()));
    }
    Some(at.value)
}

impl Reader<'_> {
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
}
