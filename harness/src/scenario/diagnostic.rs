//! What is wrong with a scenario, at its place in the file: as compilers show it.
//!
//! The same form serves a file that cannot be understood and a story that did not hold.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::{Deserialize, Serialize};

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// A word for the kind of it, for programs and searches.
    pub code: String,
    /// What is wrong, in a sentence without an end.
    pub title: String,
    /// The bytes of the file that it is about.
    pub span: Range<usize>,
    /// What is said at that place; may be empty.
    pub label: String,
    /// Another place that has to do with it, and how.
    pub context: Option<(Range<usize>, String)>,
    /// More about it, a paragraph each.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic without notes.
    pub fn new(code: &str, title: impl Into<String>, span: Range<usize>) -> Diagnostic {
        Diagnostic {
            code: code.into(),
            title: title.into(),
            span,
            label: String::new(),
            context: None,
            notes: Vec::new(),
            help: None,
        }
    }

    /// With something said at the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// With another place.
    #[must_use]
    pub fn context(mut self, span: Range<usize>, label: impl Into<String>) -> Diagnostic {
        self.context = Some((span, label.into()));
        self
    }

    /// With a paragraph more.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// With what to do.
    #[must_use]
    pub fn help(mut self, help: Option<String>) -> Diagnostic {
        self.help = help;
        self
    }

    /// The line that it is about, from 1.
    #[must_use]
    pub fn line(&self, text: &str) -> usize {
        let before = text.get(..self.span.start).unwrap_or(text);
        before.bytes().filter(|&byte| byte == b'\n').count() + 1
    }

    /// The diagnostic as a user reads it, with the lines of the file that it is about.
    #[must_use]
    pub fn render(&self, path: &str, text: &str, colour: bool) -> String {
        let within = |span: &Range<usize>| {
            let end = span.end.min(text.len());
            span.start.min(end)..end
        };
        let primary = AnnotationKind::Primary.span(within(&self.span));
        let mut snippet = Snippet::source(text).path(path).annotation(match self.label.as_str() {
            "" => primary,
            label => primary.label(label),
        });
        if let Some((span, label)) = &self.context {
            let context = AnnotationKind::Context.span(within(span));
            snippet = snippet.annotation(context.label(label.as_str()));
        }
        let title = Level::ERROR.primary_title(self.title.as_str()).id(self.code.as_str());
        let mut group = title.element(snippet);
        group = group.elements(self.notes.iter().map(|note| Level::NOTE.message(note.as_str())));
        let mut report: Vec<Group<'_>> = vec![group];
        if let Some(help) = &self.help {
            let level = report.pop().map(|group| group.element(Level::HELP.message(help.as_str())));
            report.extend(level);
        }
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        format!("{}\n", renderer.render(&report))
    }
}

/// The candidate that somebody who wrote `word` may have meant.
#[must_use]
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    const LIKE: f64 = 0.75;
    let rated = candidates.into_iter().map(|c| (strsim::jaro_winkler(word, c), c));
    let best = rated.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= LIKE).then_some(best.1)
}

/// "did you mean …?", if anything is near.
#[must_use]
pub fn did_you_mean<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<String> {
    nearest(word, candidates).map(|near| format!("did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_shows_the_line_and_what_to_do() {
        let text = "about = \"x\"\nkill = \"sever\"\n";
        let found = Diagnostic::new("unknown-actor", "there is no actor `sever`", 19..26)
            .label("not defined in this file")
            .help(did_you_mean("sever", ["server", "tool"]));
        let shown = found.render("scenarios/x.toml", text, false);
        let expected = "\
error[unknown-actor]: there is no actor `sever`
 --> scenarios/x.toml:2:8
  |
2 | kill = \"sever\"
  |        ^^^^^^^ not defined in this file
  |
  = help: did you mean `server`?
";
        assert_eq!(shown, expected);
        assert_eq!(found.line(text), 2);
    }

    #[test]
    fn a_place_beyond_the_text_is_its_end() {
        let found = Diagnostic::new("odd", "something is odd", 90..99);
        assert!(found.render("x", "a = 1", false).contains("x:1:"), "{found:?}");
        assert_eq!(found.line("a = 1"), 1);
    }

    #[test]
    fn what_is_far_from_everything_has_no_suggestion() {
        assert_eq!(did_you_mean("zebra", ["server", "tool"]), None);
        assert_eq!(nearest("servre", ["server", "sweeper"]), Some("server"));
    }
}
