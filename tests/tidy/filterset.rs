//! The filtersets of nextest: what they are made of, and what a name must be like
//! to be matched.
//!
//! Operators are read to know where a predicate ends; what they make of the
//! predicates is not evaluated. Of regular expressions only `^beginning` and
//! `^whole$` are understood.

use crate::tree::glob;

/// One `name(matcher)` of a filterset.
#[derive(Debug, PartialEq)]
pub(crate) struct Predicate {
    pub(crate) name: String,
    pub(crate) matcher: Matcher,
}

/// What stands in its brackets.
#[derive(Debug, PartialEq)]
pub(crate) enum Matcher {
    /// `all()`
    None,
    /// `binary(=x)`
    Exactly(String),
    /// `test(~x)`, and `test(x)`
    Contains(String),
    /// `binary(#x*)`, and `binary(x)`
    Glob(String),
    /// `binary(/^x/)`
    Regex(String),
}

/// A filterset's predicates, or what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Vec<Predicate>, String> {
    let mut parser = Parser { rest: text.trim(), found: Vec::new() };
    parser.either()?;
    if parser.rest.is_empty() {
        Ok(parser.found)
    } else {
        Err(format!("cannot read `{}`", parser.rest))
    }
}

struct Parser<'t> {
    rest: &'t str,
    found: Vec<Predicate>,
}

impl Parser<'_> {
    fn either(&mut self) -> Result<(), String> {
        self.both()?;
        while self.takes(&["|", "+", "or "]) {
            self.both()?;
        }
        Ok(())
    }

    fn both(&mut self) -> Result<(), String> {
        self.one()?;
        while self.takes(&["&", "-", "and "]) {
            self.one()?;
        }
        Ok(())
    }

    fn one(&mut self) -> Result<(), String> {
        if self.takes(&["not ", "!"]) {
            return self.one();
        }
        if self.takes(&["("]) {
            self.either()?;
            return if self.takes(&[")"]) { Ok(()) } else { Err("a `)` is missing".to_owned()) };
        }
        let end = self.rest.find('(').ok_or_else(|| format!("cannot read `{}`", self.rest))?;
        let name = self.rest[..end].trim().to_owned();
        self.rest = self.rest[end + 1..].trim_start();
        let matcher = self.matcher(&name)?;
        if !self.takes(&[")"]) {
            return Err(format!("a `)` is missing after `{name}(`"));
        }
        self.found.push(Predicate { name, matcher });
        Ok(())
    }

    fn matcher(&mut self, name: &str) -> Result<Matcher, String> {
        let plain = match name {
            "all" | "none" => return Ok(Matcher::None),
            "test" => Matcher::Contains,
            "binary" | "package" | "binary_id" | "deps" | "rdeps" | "group" => Matcher::Glob,
            "kind" | "platform" => Matcher::Exactly,
            _ => return Err(format!("there is no predicate `{name}`")),
        };
        if let Some(rest) = self.rest.strip_prefix('/') {
            let end = rest.find('/').ok_or("a pattern does not end")?;
            self.rest = rest[end + 1..].trim_start();
            return Ok(Matcher::Regex(rest[..end].to_owned()));
        }
        let end = self.rest.find(')').ok_or_else(|| format!("`{name}(` is not closed"))?;
        let text = self.rest[..end].trim();
        self.rest = &self.rest[end..];
        let (make, text): (fn(String) -> Matcher, _) = match text.as_bytes().first() {
            Some(b'=') => (Matcher::Exactly, &text[1..]),
            Some(b'~') => (Matcher::Contains, &text[1..]),
            Some(b'#') => (Matcher::Glob, &text[1..]),
            Some(_) => (plain, text),
            None => return Err(format!("`{name}()` needs something to match")),
        };
        Ok(make(text.to_owned()))
    }

    fn takes(&mut self, tokens: &[&str]) -> bool {
        let rest = tokens.iter().find_map(|token| self.rest.strip_prefix(token));
        if let Some(rest) = rest {
            self.rest = rest.trim_start();
        }
        rest.is_some()
    }
}

impl Matcher {
    /// Whether it is something that [`Matcher::matches`] understands.
    pub(crate) fn is_simple(&self) -> bool {
        let Matcher::Regex(pattern) = self else {
            return true;
        };
        let body = pattern.strip_prefix('^');
        let body = body.map(|body| body.strip_suffix('$').unwrap_or(body));
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        body.is_some_and(|body| body.chars().all(plain))
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        match self {
            Matcher::None => true,
            Matcher::Exactly(text) => name == text,
            Matcher::Contains(text) => name.contains(text.as_str()),
            Matcher::Glob(pattern) => glob(pattern, name),
            Matcher::Regex(pattern) => {
                let body = pattern.trim_start_matches('^');
                match body.strip_suffix('$') {
                    Some(whole) => name == whole,
                    None => name.starts_with(body),
                }
            }
        }
    }
}

#[test]
fn a_filterset_is_read_as_nextest_reads_it() {
    let predicate = |name: &str, matcher| Predicate { name: name.to_owned(), matcher };
    assert_eq!(
        parse("not (binary(=a) | test(b)) & package(#m*) - test(/^c::/) or all()"),
        Ok(vec![
            predicate("binary", Matcher::Exactly("a".to_owned())),
            predicate("test", Matcher::Contains("b".to_owned())),
            predicate("package", Matcher::Glob("m*".to_owned())),
            predicate("test", Matcher::Regex("^c::".to_owned())),
            predicate("all", Matcher::None),
        ])
    );
    for wrong in ["", "test", "test()", "tests(a)", "(all()", "all() all()", "test(/a)"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_name_is_matched_as_its_matcher_says() {
    #[track_caller]
    fn check(filterset: &str, yes: &[&str], no: &[&str]) {
        let [predicate] = parse(filterset).unwrap().try_into().unwrap();
        for (names, expected) in [(yes, true), (no, false)] {
            for name in names {
                assert_eq!(predicate.matcher.matches(name), expected, "{filterset} on {name}");
            }
        }
    }
    check("binary(=host)", &["host"], &["hosts", "ghost"]);
    check("binary(host*)", &["host", "hosts"], &["ghost"]);
    check("binary(/^host/)", &["host", "hosts"], &["ghost"]);
    check("binary(/^host$/)", &["host"], &["hosts", "ghost"]);
    check("test(host)", &["host", "hosts", "ghost"], &["hos"]);
    for (pattern, simple) in [("^host_$", true), ("host", false), ("^ho(s)t", false)] {
        assert_eq!(Matcher::Regex(pattern.to_owned()).is_simple(), simple, "{pattern}");
    }
}
