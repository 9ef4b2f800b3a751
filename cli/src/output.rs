//! How the tool talks: results on standard output, everything else on standard error.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use clap::Args;
use serde::{Serialize, Serializer};

/// Version of the JSON lines. A field may be added within a version; none changes its meaning.
const SCHEMA: u32 = 1;

/// How results are printed.
#[derive(Args, Clone, Debug)]
pub(crate) struct Output {
    /// Print one JSON object a line instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    color: colorchoice_clap::Color,
}

impl Output {
    /// Follows `--color` and the environment from now on.
    pub(crate) fn begin(&self) {
        self.color.write_global();
    }

    pub(crate) fn json(&self) -> bool {
        self.json
    }
}

/// One line of JSON: the schema, the type, and what a value has.
pub(crate) fn json_line(
    out: &mut impl Write,
    kind: &str,
    value: &impl Serialize,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct Line<'l, T: Serialize> {
        schema: u32,
        r#type: &'l str,
        #[serde(flatten)]
        value: &'l T,
    }
    let line = Line { schema: SCHEMA, r#type: kind, value };
    let text = serde_json::to_string(&line).map_err(io::Error::other)?;
    writeln!(out, "{text}")
}

/// Says something that is no result.
pub(crate) fn note(text: impl std::fmt::Display) {
    // There is nowhere to tell that standard error is closed.
    let _ = writeln!(anstream::stderr(), "mortmain: {text}");
}

/// Something that a reader should not miss.
pub(crate) fn warn(text: impl std::fmt::Display) {
    note(styled(AnsiColor::Yellow.on_default().bold(), &format!("warning: {text}")));
}

/// Why the tool fails.
pub(crate) fn error(text: impl std::fmt::Display) {
    note(styled(AnsiColor::Red.on_default().bold(), "error:") + &format!(" {text}"));
}

pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// So many of a thing, in words.
pub(crate) fn several(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Bytes of a name or path, in JSON without loss: `{"text": …}` where they are UTF-8, and
/// `{"base64": …}` where they are not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Text(pub(crate) Vec<u8>);

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Text {
        Text(bytes.into())
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "snake_case")]
        enum Kind<'t> {
            Text(&'t str),
            Base64(String),
        }
        let kind = match std::str::from_utf8(&self.0) {
            Ok(text) => Kind::Text(text),
            Err(_) => Kind::Base64(base64(&self.0)),
        };
        kind.serialize(serializer)
    }
}

/// The usual alphabet, with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let at = |n: usize| u32::from(chunk.get(n).copied().unwrap_or(0));
        let group = at(0) << 16 | at(1) << 8 | at(2);
        for letter in 0..4 {
            let value = (group >> (18 - 6 * letter)) as usize & 63;
            text.push(if letter <= chunk.len() { char::from(LETTERS[value]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_the_usual_one() {
        for (bytes, want) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foobar", "Zm9vYmFy"),
            (b"\xff\xfe\xfd\x00", "//79AA=="),
        ] {
            assert_eq!(base64(bytes), want);
        }
    }

    #[test]
    fn text_is_text_and_bytes_are_not_lost() {
        let json = |bytes: &[u8]| serde_json::to_string(&Text::from(bytes)).expect("it is plain");
        assert_eq!(json(b"/tmp/a"), r#"{"text":"/tmp/a"}"#);
        assert_eq!(json(b"/tmp/\xff"), r#"{"base64":"L3RtcC//"}"#);
    }

    #[test]
    fn a_line_begins_with_its_schema_and_type() {
        #[derive(Serialize)]
        struct Value {
            n: u32,
        }
        let mut out = Vec::new();
        json_line(&mut out, "thing", &Value { n: 3 }).expect("memory takes it");
        assert_eq!(out, b"{\"schema\":1,\"type\":\"thing\",\"n\":3}\n");
    }
}
