//! A child's output is read through the guard, and so under a deadline.
//!
//! `ChildGuard` takes the pipes off the child when it starts it, ends its group and everything
//! below it, and reaps it. Whoever gets at a pipe past it, or starts a child without it, has a
//! test that a silent child holds up for ever, and that leaves something behind. So is a call that
//! starts a child and collects what it says: `output` and `wait_with_output` read to the end,
//! which may never come, and count for a claim's own command as well. Its `status` and `wait`
//! read nothing, and its `spawn` is known to a registry; these are left alone.
//!
//! A test about the pipe itself says so, directly above the statement or the item:
//! `// PIPE(slug): why`. Each slug stands once, none without a reason, none where nothing goes
//! around the guard. A failure lists them.
//!
//! It reads syntax, in which no value has a type but the one that is written. What it can't see:
//!
//! * a pipe that is lent without `mut` out of a value whose type is not told, and then used in
//!   other hands; `iter` and `as_slice` of one, which bytes have as well;
//! * fields of a value that it takes for another type, because a type of that name is written, or
//!   because a method `command` made it, which it takes for a claim's; the lint
//!   `disallowed_methods` knows the types, and sees such a start all the same;
//! * a child of another name: behind `Deref`, behind a generic, made by a macro of another file,
//!   brought in by `include!`, or in an example of the documentation;
//! * reads of a pipe of one's own that a command was given, or of a socket. A `Reader` has a
//!   deadline for them.

#[path = "child_output/arguments.rs"]
mod arguments;
#[path = "child_output/cases.rs"]
mod cases;
#[path = "child_output/hatches.rs"]
mod hatches;
#[path = "child_output/shapes.rs"]
mod shapes;
#[path = "child_output/sources.rs"]
mod sources;
#[path = "child_output/values.rs"]
mod values;
#[path = "child_output/ways.rs"]
mod ways;

use std::collections::BTreeMap;

use crate::tree::{Outcome, Tree};

fn check(tree: &Tree) -> Outcome {
    let mut outcome = Outcome::default();
    let mut slugs = BTreeMap::new();
    for held in sources::held(tree, &mut outcome) {
        let file = held.file;
        let found = ways::find(&held.syntax, held.all);
        outcome.looked_at += usize::from(held.all);
        let hatches = hatches::of(file, &found, &mut outcome);
        for way in found.ways {
            if !hatches.iter().any(|hatch| hatch.has(way.line)) {
                let place = format_args!("{}:{}:{}", file.path, way.line, way.column);
                outcome.findings.push(format!("{place}: {}", way.what));
            }
        }
        for hatch in hatches {
            let place = format!("{}:{}", file.path, hatch.line);
            outcome.excused.push(format!("{place}: {hatch}"));
            if let Some(first) = slugs.insert(hatch.slug.clone(), place) {
                let what = format_args!("PIPE({}) stands at {first} already", hatch.slug);
                outcome.find(&file.path, hatch.line, what);
            }
        }
    }
    outcome
}

#[test]
fn a_childs_output_is_read_through_the_guard() {
    check(&Tree::real()).assert_clean();
}
