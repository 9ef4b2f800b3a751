//! The comments that name a safety check: `// CHECK(id-slug): why`, directly above
//! the code that does it.
//!
//! What means to be one and is not well-formed is read, too, so that it can be
//! complained about. Other comments of this form, under another word, are read by
//! the same lines.

use crate::source::Source;
use crate::tree::File;

/// A comment that begins with CHECK, or with another word of the kind.
#[derive(Debug)]
pub(crate) struct Check<'t> {
    pub(crate) path: &'t str,
    pub(crate) line: usize,
    pub(crate) slug: String,
    pub(crate) reason: String,
    /// The line of the code that follows at once, if it does.
    pub(crate) code: Option<usize>,
}

impl Check<'_> {
    /// The rule that it belongs to, if the slug is `[a-z][0-9]-[a-z0-9-]+`.
    pub(crate) fn rule(&self) -> Option<&str> {
        let (id, name) = self.slug.split_once('-')?;
        let shape = matches!(id.as_bytes(), [b'a'..=b'z', b'0'..=b'9'])
            && name.split('-').all(|part| {
                !part.is_empty()
                    && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            });
        shape.then_some(id)
    }
}

/// All comments of the file that mean to be a check, well-formed or not.
pub(crate) fn checks_of(file: &File) -> Vec<Check<'_>> {
    comments_of(file, "CHECK", means_a_check)
}

/// All comments `// WORD(slug): why` of the file, and those that mean to be one.
pub(crate) fn comments_of<'f>(
    file: &'f File,
    word: &str,
    means_one: fn(&str) -> bool,
) -> Vec<Check<'f>> {
    let opening = format!("{word}(");
    let source = Source::of(&file.text);
    let comments: Vec<&str> = source.comments.lines().map(str::trim).collect();
    let code: Vec<&str> = source.code.lines().map(str::trim).collect();
    let mut checks = Vec::new();
    for (index, comment) in comments.iter().enumerate() {
        let Some(text) = comment.strip_prefix("//").map(str::trim_start) else {
            continue;
        };
        if !means_one(text) {
            continue;
        }
        let exact = text.strip_prefix(&opening).and_then(|rest| rest.split_once("):"));
        let (slug, first) = exact.unwrap_or_default();
        let more = comments[index + 1..]
            .iter()
            .zip(&code[index + 1..])
            .take_while(|(comment, code)| code.is_empty() && is_continued_by(comment, &opening))
            .map(|(comment, _)| comment.trim_start_matches('/'));
        let reason = std::iter::once(first).chain(more).collect::<Vec<_>>().join(" ");
        // Other comments, lints and attributes may stand between.
        let below = (index + 1..comments.len())
            .find(|&at| !code[at].is_empty() && !code[at].starts_with("#["))
            .filter(|&at| {
                (index + 1..at).all(|at| !(code[at].is_empty() && comments[at].is_empty()))
            });
        let code = below.filter(|at| !code[*at].starts_with(['}', ')', ']'])).map(|at| at + 1);
        checks.push(Check {
            path: &file.path,
            line: index + 1,
            slug: slug.to_owned(),
            reason,
            code,
        });
    }
    checks
}

/// `CHECK(`, or a slip of the pen: small letters or a space, and then an id.
fn means_a_check(text: &str) -> bool {
    if text.starts_with("CHECK(") {
        return true;
    }
    let Some((word, rest)) = text.split_at_checked("check".len()) else {
        return false;
    };
    let id = rest.trim_start().strip_prefix('(').map(str::as_bytes);
    word.eq_ignore_ascii_case("check")
        && id.is_some_and(|id| {
            matches!(id, [b'a'..=b'z' | b'A'..=b'Z', b'0'..=b'9', b'-' | b')', ..])
        })
}

fn is_continued_by(comment: &str, opening: &str) -> bool {
    comment.strip_prefix("//").is_some_and(|text| !text.trim_start().starts_with(opening))
}

#[test]
fn a_comment_is_read_with_its_reason_and_its_code() {
    #[track_caller]
    fn check(text: &str, slug: &str, reason: &str, has_code: bool) {
        let file = File { path: "a.rs".to_owned(), text: text.to_owned(), executable: false };
        let checks = checks_of(&file);
        let [check] = checks.as_slice() else {
            panic!("{} checks in {text:?}", checks.len());
        };
        let words: Vec<&str> = check.reason.split_whitespace().collect();
        assert_eq!((check.slug.as_str(), words.join(" ").as_str()), (slug, reason));
        assert_eq!(check.code.is_some(), has_code, "{text:?}");
    }
    check("// CHECK(c1-a): so it is.\na();\n", "c1-a", "so it is.", true);
    check("// CHECK(c1-a): so\n//   it is.\n#[b]\na();\n", "c1-a", "so it is.", true);
    check("x( // CHECK(c1-a): so\n a)\n", "c1-a", "so", true);
    check("// CHECK(c1-a): so\n\na();\n", "c1-a", "so", false);
    check("{\n    // CHECK(c1-a): so\n}\n", "c1-a", "so", false);
    check("// CHECK(c1-a): so", "c1-a", "so", false);
    check("// check(c1-a): so\na();\n", "", "", true);
    for none in ["// Check it: so\n", "// check(x) is true\n", "let a = \"// CHECK(c1-a): b\";\n"] {
        let file = File { path: String::new(), text: none.to_owned(), executable: false };
        assert!(checks_of(&file).is_empty(), "{none:?}");
    }
}
