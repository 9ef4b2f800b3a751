//! Edits of a text by byte ranges.
//!
//! Invariant: the ranges of one set of edits do not overlap, so that all of them
//! can be given as places in the unchanged text.

use std::ops::Range;

/// Replaces the bytes of `range` by `text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

impl Edit {
    /// Takes the range out and leaves every other character on its line and in its
    /// column, so that the compiler's messages and panics still point at the source.
    pub(crate) fn blank(source: &str, range: Range<usize>) -> Edit {
        let text = source[range.clone()].chars().map(|c| if c == '\n' { '\n' } else { ' ' });
        let text = text.collect();
        Edit { range, text }
    }
}

/// The text with all the edits made, or the two that overlap.
pub(crate) fn apply(source: &str, edits: &[Edit]) -> Result<String, (Edit, Edit)> {
    let mut ordered: Vec<&Edit> = edits.iter().collect();
    ordered.sort_by_key(|edit| edit.range.start);
    for pair in ordered.windows(2) {
        if pair[1].range.start < pair[0].range.end {
            return Err((pair[0].clone(), pair[1].clone()));
        }
    }
    let mut edited = String::with_capacity(source.len());
    let mut done = 0;
    for edit in ordered {
        edited.push_str(&source[done..edit.range.start]);
        edited.push_str(&edit.text);
        done = edit.range.end;
    }
    edited.push_str(&source[done..]);
    Ok(edited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanking_keeps_lines_and_columns() {
        let source = "a(); stop(\n  \"ü\",\n); b();";
        let start = source.find("stop").unwrap();
        let end = source.find(" b()").unwrap();
        let edited = apply(source, &[Edit::blank(source, start..end)]).unwrap();
        assert_eq!(edited, "a();      \n      \n   b();");
    }

    #[test]
    fn edits_are_places_in_the_unchanged_text() {
        let edit = |range, text: &str| Edit { range, text: text.to_owned() };
        let edits = [edit(4..5, "three"), edit(0..1, "one"), edit(2..3, "")];
        assert_eq!(apply("1 2 3", &edits).unwrap(), "one  three");
    }

    #[test]
    fn overlapping_edits_are_refused() {
        let edit = |range| Edit { range, text: String::new() };
        assert!(apply("abcdef", &[edit(0..3), edit(2..4)]).is_err());
        assert!(apply("abcdef", &[edit(0..3), edit(3..4)]).is_ok());
    }
}
