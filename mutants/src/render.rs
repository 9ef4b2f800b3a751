//! Writes every change of a file into it, each behind a switch.
//!
//! ```text
//! a < b          (if on(7) { ((a) <= (b)) } else { (a < b) })
//! { body }       { if on(8) { return 0; } body }
//! 1 => c()       1 if !on(9) => c()
//! 1 if g => c()  1 if (on(10) || !on(11) && (g)) => c()
//! loop { }       loop { round(); }
//! ```
//!
//! Text is only put in, so that what stood there is found again, and switches nest. What a switch
//! chooses is the unchanged text, without the switches within it: one mutant is active at a time.
//!
//! Invariants:
//! * With nothing active the program does what the unchanged one does.
//! * Every byte that was put in is somebody's, so that a message of the compiler about it has an
//!   owner.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::operators::{Form, Found, Site};
use crate::runtime::MODULE;

/// A file with switches.
#[derive(Clone, Debug)]
pub(crate) struct Rendered {
    pub(crate) text: String,
    /// What a message about a range of bytes is due to.
    regions: Vec<Region>,
}

#[derive(Clone, Debug)]
struct Region {
    bytes: Range<usize>,
    mutants: Vec<u32>,
    /// Whether it is the text of one mutant, and no other text is in it.
    exact: bool,
}

/// Who may be to blame for an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The text of this one.
    Sure(u32),
    /// One of these, whose site or function it is about.
    Perhaps(Vec<u32>),
}

/// Text that is put in at a place.
struct Piece {
    at: usize,
    /// At one place, what closes comes before what opens; what opens first closes last.
    rank: (bool, usize, usize),
    parts: Vec<(String, Option<u32>)>,
    /// Of a site, what opens it and what closes it.
    edge: Option<(usize, Edge)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    Opens,
    Closes,
    Both,
}

/// Renders a file. `numbers` are those of the changes, in the order of the sites, and `dropped` are
/// those that stay out. In a crate without the standard library, plain values need their names.
pub(crate) fn render(
    source: &str,
    found: &Found,
    numbers: &[Vec<u32>],
    dropped: &BTreeSet<u32>,
    no_std: bool,
) -> Rendered {
    let mut pieces = Vec::new();
    for (index, (site, numbers)) in found.sites.iter().zip(numbers).enumerate() {
        let kept: Vec<(usize, u32)> = (0..)
            .zip(numbers.iter().copied())
            .filter(|(_, number)| !dropped.contains(number))
            .collect();
        if !kept.is_empty() {
            pieces.extend(switches(index, site, &kept, no_std));
        }
    }
    for &at in &found.loops {
        let parts = vec![(format!(" crate::{MODULE}::round();"), None)];
        pieces.push(Piece { at, rank: (true, 0, 0), parts, edge: None });
    }
    pieces.sort_by_key(|piece| (piece.at, piece.rank));
    write(source, found, numbers, pieces)
}

fn on(number: u32) -> String {
    format!("crate::{MODULE}::on({number})")
}

/// Names that the prelude has, and a crate without the standard library has not.
fn names(no_std: bool) -> String {
    if no_std {
        format!(
            "use crate::{MODULE}::std::{{borrow::ToOwned as _, boxed::Box, string::String, vec, vec::Vec}}; "
        )
    } else {
        String::new()
    }
}

fn switches(index: usize, site: &Site, kept: &[(usize, u32)], no_std: bool) -> Vec<Piece> {
    let range = site.form.range();
    // What opens a longer text comes first, what closes it last.
    // Of two around the same text, such as a guard and the comparison that it is, the first is the
    // outer one.
    let opens = |at: usize| (true, usize::MAX - (range.end - at), index);
    let closes = (false, usize::MAX - range.start, usize::MAX - index);
    let mut parts = Vec::new();
    let piece = |at, rank, parts, edge| Piece { at, rank, parts, edge: Some((index, edge)) };
    match &site.form {
        Form::Expression(_) => {
            let mut before = "(";
            for &(change, number) in kept {
                let text = &site.changes[change].text;
                parts.push((format!("{before}if {} {{ {text} }}", on(number)), Some(number)));
                before = " else ";
            }
            // In parentheses: a text that begins with a block would be taken for a statement.
            parts.push((" else { (".to_owned(), None));
            let end = vec![(") })".to_owned(), None)];
            vec![
                piece(range.start, opens(range.start), parts, Edge::Opens),
                piece(range.end, closes, end, Edge::Closes),
            ]
        }
        Form::Body(_) => {
            for &(change, number) in kept {
                let text = &site.changes[change].text;
                let names = names(no_std);
                let text = format!(" if {} {{ {names}return {text}; }}", on(number));
                parts.push((text, Some(number)));
            }
            vec![piece(range.start + 1, (true, 0, 0), parts, Edge::Both)]
        }
        Form::Arm { .. } => {
            for &(_, number) in kept {
                parts.push((format!(" if !{}", on(number)), Some(number)));
            }
            vec![piece(range.end, closes, parts, Edge::Both)]
        }
        Form::Guard(_) => {
            parts.push(("(".to_owned(), None));
            for &(change, number) in kept {
                let text = match change {
                    0 => format!("{} || ", on(number)),
                    _ => format!("!{} && ", on(number)),
                };
                parts.push((text, Some(number)));
            }
            parts.push(("(".to_owned(), None));
            let end = vec![("))".to_owned(), None)];
            vec![
                piece(range.start, opens(range.start), parts, Edge::Opens),
                piece(range.end, closes, end, Edge::Closes),
            ]
        }
    }
}

fn write(source: &str, found: &Found, numbers: &[Vec<u32>], pieces: Vec<Piece>) -> Rendered {
    let mut text = String::with_capacity(source.len() * 2);
    let mut regions = Vec::new();
    let mut began = vec![0; found.sites.len()];
    // Where each place of the source is in the text, for the bodies.
    let mut moved: Vec<(usize, usize)> = Vec::new();
    let mut done = 0;
    for piece in pieces {
        text.push_str(&source[done..piece.at]);
        done = piece.at;
        if let Some((site, Edge::Opens | Edge::Both)) = piece.edge {
            began[site] = text.len();
        }
        for (part, owner) in piece.parts {
            let start = text.len();
            text.push_str(&part);
            if let Some(number) = owner {
                let bytes = start..text.len();
                regions.push(Region { bytes, mutants: vec![number], exact: true });
            }
        }
        if let Some((site, Edge::Closes | Edge::Both)) = piece.edge {
            let bytes = began[site]..text.len();
            regions.push(Region { bytes, mutants: numbers[site].clone(), exact: false });
        }
        moved.push((piece.at, text.len()));
    }
    text.push_str(&source[done..]);
    for body in &found.bodies {
        let place = |at: usize| {
            let before = moved.partition_point(|(source, _)| *source <= at);
            let (source, output) = before.checked_sub(1).map_or((0, 0), |index| moved[index]);
            output + (at - source)
        };
        let inside = found.sites.iter().zip(numbers).filter(|(site, _)| {
            let range = site.form.range();
            body.start <= range.start && range.end <= body.end
        });
        let mutants = inside.flat_map(|(_, numbers)| numbers.clone()).collect();
        regions.push(Region { bytes: place(body.start)..place(body.end), mutants, exact: false });
    }
    Rendered { text, regions }
}

impl Rendered {
    /// Who is to blame for an error about a range of bytes.
    pub(crate) fn blame(&self, about: &Range<usize>, dropped: &BTreeSet<u32>) -> Option<Blame> {
        let around = self.regions.iter().filter_map(|region| {
            let inside = region.bytes.start <= about.start && about.end <= region.bytes.end;
            let left = region.mutants.iter().copied().filter(|number| !dropped.contains(number));
            let left: Vec<u32> = left.collect();
            (inside && !left.is_empty()).then_some((region, left))
        });
        let (region, mutants) =
            around.min_by_key(|(region, _)| (!region.exact, region.bytes.len()))?;
        Some(match mutants[..] {
            [one] if region.exact => Blame::Sure(one),
            _ => Blame::Perhaps(mutants),
        })
    }

    /// The mutant whose text a range of bytes is in.
    pub(crate) fn owner(&self, about: &Range<usize>) -> Option<u32> {
        match self.blame(about, &BTreeSet::new()) {
            Some(Blame::Sure(number)) => Some(number),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators;

    /// All changes of a source, numbered from 1.
    fn rendered(source: &str, dropped: &[u32]) -> Rendered {
        let found = operators::find(source).unwrap();
        let mut next = 0;
        let numbers: Vec<Vec<u32>> = found
            .sites
            .iter()
            .map(|site| {
                site.changes
                    .iter()
                    .map(|_| {
                        next += 1;
                        next
                    })
                    .collect()
            })
            .collect();
        let dropped = dropped.iter().copied().collect();
        let rendered = render(source, &found, &numbers, &dropped, false);
        assert!(syn::parse_file(&rendered.text).is_ok(), "{}", rendered.text);
        rendered
    }

    fn text(source: &str, dropped: &[u32]) -> String {
        rendered(source, dropped).text.replace("crate::__mutants::", "")
    }

    #[test]
    fn switches_stand_around_what_they_switch() {
        assert_eq!(
            text("fn f() -> T { a == b }", &[]),
            "fn f() -> T { if on(1) { return Default::default(); } (if on(2) { ((a) != (b)) } else { (a == b) }) }"
        );
        assert_eq!(text("fn f() -> T { a == b }", &[1, 2]), "fn f() -> T { a == b }");
        assert_eq!(
            text("fn f() { loop { a += 1; } }", &[1]),
            "fn f() { loop { round(); (if on(2) { a -= (1) } else if on(3) { a *= (1) } else { (a += 1) }); } }"
        );
    }

    #[test]
    fn arms_get_guards() {
        let source = "fn f() { match a { 1 | 2 => x, b if b > 3 => y, _ => z } }";
        assert_eq!(
            text(source, &[1, 5, 6, 7]),
            "fn f() { match a { 1 | 2 if !on(2) => x, b if (on(3) || !on(4) && (b > 3)) => y, _ => z } }"
        );
        assert_eq!(
            text(source, &[1, 3, 5, 6, 7]),
            "fn f() { match a { 1 | 2 if !on(2) => x, b if (!on(4) && (b > 3)) => y, _ => z } }"
        );
    }

    #[test]
    fn a_guard_stands_around_the_comparison_that_it_is() {
        assert_eq!(
            text("fn f() { match a { b if b > 3 => y, _ => z } }", &[1, 5, 6]),
            "fn f() { match a { b if (on(2) || !on(3) && ((if on(4) { ((b) == (3)) } else { (b > 3) }))) => y, _ => z } }"
        );
    }

    #[test]
    fn switches_nest_and_choose_unchanged_text() {
        assert_eq!(
            text("fn f() { !(a && b) && -c; }", &[1]),
            "fn f() { (if on(2) { ((!(a && b)) || (-c)) } else { ((if on(3) { ((a && b)) } else { (!((if on(4) { ((a) || (b)) } else { (a && b) }))) }) && (if on(5) { (c) } else { (-c) })) }); }"
        );
    }

    #[test]
    fn an_error_is_due_to_the_text_that_it_is_about() {
        let rendered = rendered("fn f() -> T { g(a + b); h }", &[]);
        let about = |needle: &str| {
            let at = rendered.text.find(needle).unwrap();
            at..at + needle.len()
        };
        let blame = |needle: &str| rendered.blame(&about(needle), &BTreeSet::new());
        assert_eq!(blame("Default::default()"), Some(Blame::Sure(1)));
        assert_eq!(blame("((a) - (b))"), Some(Blame::Sure(2)));
        assert_eq!(blame("a + b"), Some(Blame::Perhaps(vec![2, 3])));
        assert_eq!(blame("h }"), Some(Blame::Perhaps(vec![1, 2, 3])));
        let left = rendered.blame(&about("h }"), &BTreeSet::from([1, 2]));
        assert_eq!(left, Some(Blame::Perhaps(vec![3])));
        assert_eq!(rendered.blame(&about("fn"), &BTreeSet::new()), None);
        assert_eq!(rendered.owner(&about("::on(3)")), Some(3));
    }
}
