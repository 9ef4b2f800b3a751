//! Rust source taken apart into its code and its comments.
//!
//! It knows just enough of the language to tell where a comment or a string
//! begins and ends. Both halves keep every line where it was.

/// The two halves of a source file. Each has the length and the lines of the
/// whole; what belongs to the other half, or is the content of a string or a
/// character literal, is blank.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) code: String,
    pub(crate) comments: String,
}

impl Source {
    pub(crate) fn of(text: &str) -> Source {
        let mut splitter =
            Splitter { text: text.as_bytes(), at: 0, code: Vec::new(), comments: Vec::new() };
        splitter.run();
        // OK because each half takes the bytes of whole tokens, or blanks.
        let code = String::from_utf8(splitter.code).unwrap();
        let comments = String::from_utf8(splitter.comments).unwrap();
        Source { code, comments }
    }

    /// The code without the items on which one of these attributes stands.
    /// `text` is what the source was made of.
    pub(crate) fn code_without(&self, text: &str, attributes: &[&str]) -> String {
        let mut code = self.code.clone();
        for attribute in attributes {
            for (at, _) in text.match_indices(attribute) {
                // In a comment or a string it is blank in the code.
                if code[at..].starts_with('#') {
                    let end = end_of_item(&code, at);
                    let blanks: String = code[at..end].chars().flat_map(blank).collect();
                    code.replace_range(at..end, &blanks);
                }
            }
        }
        code
    }
}

/// As many bytes as the character has, to keep the offsets.
fn blank(character: char) -> impl Iterator<Item = char> {
    let (with, times) = if character == '\n' { ('\n', 1) } else { (' ', character.len_utf8()) };
    std::iter::repeat_n(with, times)
}

/// Where the item that begins at `at`, with its attributes, ends: after its block
/// or its semicolon.
fn end_of_item(code: &str, at: usize) -> usize {
    let mut depth = 0usize;
    for (offset, character) in code[at..].char_indices() {
        match character {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && character == '}' {
                    return at + offset + 1;
                }
            }
            ';' if depth == 0 => return at + offset + 1,
            _ => {}
        }
    }
    code.len()
}

struct Splitter<'t> {
    text: &'t [u8],
    at: usize,
    code: Vec<u8>,
    comments: Vec<u8>,
}

impl Splitter<'_> {
    fn run(&mut self) {
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            if rest.starts_with(b"//") {
                let length = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
                self.comment(length);
            } else if rest.starts_with(b"/*") {
                self.comment(block_comment(rest));
            } else if let Some(length) = self.raw_string(rest) {
                self.literal(length);
            } else if rest[0] == b'"' {
                self.literal(quoted(rest, b'"'));
            } else if rest[0] == b'\'' && is_char_literal(rest) {
                self.literal(quoted(rest, b'\''));
            } else {
                self.code.push(rest[0]);
                self.comments.push(if rest[0] == b'\n' { b'\n' } else { b' ' });
                self.at += 1;
            }
        }
    }

    fn comment(&mut self, length: usize) {
        let text = &self.text[self.at..self.at + length];
        self.comments.extend_from_slice(text);
        self.code.extend(text.iter().map(|&b| if b == b'\n' { b'\n' } else { b' ' }));
        self.at += length;
    }

    /// The quotes stay in the code, so that a string is still seen to be one.
    fn literal(&mut self, length: usize) {
        for (index, &byte) in self.text[self.at..self.at + length].iter().enumerate() {
            let outer = index == 0 || index + 1 == length;
            self.code.push(if byte == b'\n' || (outer && byte.is_ascii()) { byte } else { b' ' });
            self.comments.push(if byte == b'\n' { b'\n' } else { b' ' });
        }
        self.at += length;
    }

    /// The length of the raw string that begins here, if one does. `r#name` is a
    /// name, and the `r` at the end of one begins nothing.
    fn raw_string(&self, rest: &[u8]) -> Option<usize> {
        if rest[0] != b'r' || self.at.checked_sub(1).is_some_and(|at| is_end_of_name(self.text, at))
        {
            return None;
        }
        let hashes = rest[1..].iter().take_while(|&&b| b == b'#').count();
        if rest.get(1 + hashes) != Some(&b'"') {
            return None;
        }
        let mut close = vec![b'"'];
        close.resize(1 + hashes, b'#');
        let body = &rest[2 + hashes..];
        let end = body.windows(close.len()).position(|window| window == close);
        Some(end.map_or(rest.len(), |end| 2 + hashes + end + close.len()))
    }
}

/// Whether a name ends at this byte, other than the `b` or `c` that may stand
/// before a raw string.
fn is_end_of_name(text: &[u8], at: usize) -> bool {
    if !is_name_byte(text[at]) {
        return false;
    }
    let is_prefix = matches!(text[at], b'b' | b'c');
    !is_prefix || at.checked_sub(1).is_some_and(|before| is_name_byte(text[before]))
}

pub(crate) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `'a'` and `'\n'` are, `'a` (a lifetime) is not.
fn is_char_literal(rest: &[u8]) -> bool {
    match rest.get(1) {
        None => false,
        Some(b'\\') => true,
        Some(&first) => {
            let length = match first {
                0x00..=0x7f => 1,
                0x80..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xff => 4,
            };
            rest.get(1 + length) == Some(&b'\'')
        }
    }
}

/// Where `word` stands as a whole, not as a part of a longer name.
pub(crate) fn words<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let bytes = text.as_bytes();
        let before = at.checked_sub(1).is_some_and(|at| is_name_byte(bytes[at]));
        let after = bytes.get(at + word.len()).is_some_and(|&byte| is_name_byte(byte));
        !before && !after
    })
}

/// The number of the line, from 1, in which the offset lies.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// What stands between the bracket that opens at `open` and the one that closes
/// it; to the end where none does.
pub(crate) fn in_brackets(code: &str, open: usize) -> &str {
    let mut depth = 0usize;
    for (offset, character) in code[open..].char_indices() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return &code[open + 1..open + offset];
                }
            }
            _ => {}
        }
    }
    &code[open + 1..]
}

#[track_caller]
fn check(text: &str, code: &str, comments: &str) {
    let source = Source::of(text);
    assert_eq!(source.code, code);
    assert_eq!(source.comments, comments);
}

#[test]
fn comments_and_strings_are_told_apart() {
    check(
        "a; // b \"c\nd /* e /* f */ g */ h",
        "a;        \nd                   h",
        "   // b \"c\n  /* e /* f */ g */  ",
    );
    check("x(\"// no\", 'a', '\\'', b'\"')", "x(\"     \", ' ', '  ', b' ')", &" ".repeat(27));
    check("r#\"a // \"# br\"\\\" c", "r        # br  \" c", &" ".repeat(18));
}

#[test]
fn names_and_lifetimes_are_no_strings() {
    for text in ["fn f<'a>(x: &'a str) {}", "let r#type = for_r; x.r", "'label: loop {}"] {
        check(text, text, &" ".repeat(text.len()));
    }
}

#[test]
fn lines_stay_where_they_are() {
    let text = "/* one\ntwo */ three \"four\nfive\" // six\n";
    let source = Source::of(text);
    assert_eq!(source.code.lines().count(), text.lines().count());
    assert_eq!(source.comments.lines().count(), text.lines().count());
    assert_eq!(line_of(text, text.find("six").unwrap()), 3);
}

#[test]
fn items_are_left_out_by_their_attributes_and_nothing_else() {
    #[track_caller]
    fn check(text: &str, left: &str) {
        let attributes = ["#[cfg(test)]", "#[cfg(feature = \"x\")]"];
        let code = Source::of(text).code_without(text, &attributes);
        assert_eq!(code.len(), text.len());
        assert_eq!(code.split_whitespace().collect::<Vec<_>>().join(" "), left);
    }
    check("fn a() {}\n#[cfg(test)]\nmod t { fn b() { {} } }\nfn c() {}\n", "fn a() {} fn c() {}");
    check("#[cfg(test)]\nmod t;\nfn c() {}\n", "fn c() {}");
    check("#[cfg(feature = \"x\")]\nuse a::b;\nfn d(e: [u8; 3]) {}", "fn d(e: [u8; 3]) {}");
    check("// #[cfg(test)]\nfn a() {}\n", "fn a() {}");
}

#[test]
fn a_word_is_not_a_part_of_a_name() {
    assert_eq!(words("drop(x); dropped; b_drop; drop", "drop").collect::<Vec<_>>(), [0, 26]);
    assert_eq!(in_brackets("f(a[0], (b)) c", 1), "a[0], (b)");
}
