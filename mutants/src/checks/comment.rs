//! The grammar of a check's comment: `// CHECK(rule-slug): why`.
//!
//! The comment stands on lines of its own and goes on in further `//` lines. A rule is a
//! letter and a number, a slug is words in lower case with hyphens between them. It
//! deliberately does not know which rules there are.

/// A `//` comment in which `CHECK(` comes first.
pub(super) struct Comment<'a> {
    source: &'a str,
    pub(super) line: usize,
    /// Whether nothing but space stands before it on its line.
    alone: bool,
    /// From `CHECK(` to the end of the line.
    text: &'a str,
    /// The end of the line.
    pub(super) after: usize,
}

impl<'a> Comment<'a> {
    pub(super) fn around(source: &'a str, at: usize) -> Option<Comment<'a>> {
        let start = source[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let before = source[start..at].trim_end_matches(' ').strip_suffix("//")?;
        let after = source[at..].find('\n').map_or(source.len(), |length| at + length);
        Some(Comment {
            source,
            line: source[..at].matches('\n').count() + 1,
            alone: before.trim().is_empty(),
            text: source[at..after].trim_end(),
            after,
        })
    }

    /// The id and the reason.
    pub(super) fn parse(&self) -> Result<(String, String), String> {
        if !self.alone {
            return Err("a CHECK stands on a line of its own, above its code".to_owned());
        }
        let inner = self.text.strip_prefix("CHECK(").unwrap_or(self.text);
        let (id, rest) = inner
            .split_once(')')
            .ok_or_else(|| "the parenthesis after CHECK is not closed".to_owned())?;
        if !is_id(id) {
            return Err(format!(
                "`{id}` is no id: a rule (a letter and a number), a hyphen, a slug in \
                 lower case, such as l3-lock-held"
            ));
        }
        let why = rest
            .strip_prefix(':')
            .ok_or_else(|| format!("`CHECK({id})` is not followed by a colon and a reason"))?;
        let why = self.with_continuation(why.trim());
        if why.is_empty() {
            return Err(format!("`CHECK({id})` gives no reason"));
        }
        Ok((id.to_owned(), why))
    }

    /// The reason with the comment lines that follow the first.
    fn with_continuation(&self, first: &str) -> String {
        let mut why = first.to_owned();
        for line in self.source[self.after..].lines().skip(1) {
            let Some(text) = line.trim_start().strip_prefix("//") else {
                break;
            };
            let other = text.starts_with(['/', '!']) || text.trim_start().starts_with("CHECK(");
            if other {
                break;
            }
            if !why.is_empty() {
                why.push(' ');
            }
            why.push_str(text.trim());
        }
        why.trim_end().to_owned()
    }
}

fn is_id(id: &str) -> bool {
    let Some((rule, slug)) = id.split_once('-') else {
        return false;
    };
    let mut rule = rule.chars();
    let letter = rule.next().is_some_and(|c| c.is_ascii_lowercase());
    let number = rule.as_str();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    letter
        && !number.is_empty()
        && number.chars().all(|c| c.is_ascii_digit())
        && slug.split('-').all(|word| !word.is_empty() && word.chars().all(plain))
}
