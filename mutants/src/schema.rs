//! All removals in one build: each changed function body beside the unchanged one, behind a switch
//! that is read when a process first comes by one.
//!
//! ```text
//! fn f() -> T { body }
//! fn f() -> T { match crate::__mutants::chosen(&[7]) { 7 => { body without check 7 }, _ => { body } } }
//! ```
//!
//! A body is copied as a whole, so that any edit of it can be switched, whatever it is: a statement,
//! an arm, an operand, a call in a chain, an order.
//!
//! Invariants:
//! * With no removal active the program does what the unchanged one does.
//! * What a switch cannot express is named, never left out: an edit outside of the body of a
//!   function, in a `const fn`, or in a function inside another that is changed. It gets a build of
//!   its own, and so does what the compiler refuses.
//!
//! What it deliberately does not know: types. The compiler says which bodies cannot stand beside the
//! unchanged one (two closures behind one `impl Trait`, say), and [`Schema::blame`] finds them by the
//! lines of its messages.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use crate::catalogue::Removal;
use crate::checks;
use crate::edit::{self, Edit};
use crate::runtime::{self, MODULE};

/// A workspace with switches.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    /// Each file that changes, with its whole text.
    pub(crate) files: BTreeMap<PathBuf, String>,
    /// The copies of bodies in each file that changes, the unchanged ones as well.
    copies: BTreeMap<PathBuf, Vec<Copy>>,
    /// The removals that need a build of their own, by their places in the plan.
    pub(crate) apart: BTreeSet<usize>,
}

/// The body of a function, by its file and its bytes.
type Body = (PathBuf, (usize, usize));

/// The bodies that change, and for each the removals that change it, with their edits.
type Changed = BTreeMap<Body, Vec<(usize, Vec<Edit>)>>;

#[derive(Clone, Debug)]
struct Copy {
    /// From 1.
    lines: Range<usize>,
    /// That whose copy it is; of an unchanged body, all that change it.
    removals: Vec<usize>,
}

/// The number by which a removal is switched on.
pub(crate) fn number(place: usize) -> u32 {
    // OK because there are fewer checks than lines of code.
    u32::try_from(place).unwrap_or(u32::MAX) + 1
}

impl Schema {
    /// Renders the switches of all removals but those that have to stay apart.
    ///
    /// `sources` are the unchanged texts, `switch` is the file that says which removal is active,
    /// and `roots` are the root files of the crates, by the directories of their sources.
    ///
    /// # Errors
    ///
    /// When a source cannot be read as Rust.
    pub(crate) fn render(
        removals: &[&Removal],
        apart: &BTreeSet<usize>,
        sources: &BTreeMap<PathBuf, String>,
        roots: &BTreeMap<PathBuf, PathBuf>,
        switch: &Path,
    ) -> anyhow::Result<Schema> {
        let mut schema = Schema { apart: apart.clone(), ..Schema::default() };
        let mut bodies = BTreeMap::new();
        for removal in removals {
            for file in removal.edits.keys() {
                if !bodies.contains_key(file) {
                    let found = Bodies::of(&sources[file])
                        .with_context(|| format!("cannot parse {}", file.display()))?;
                    bodies.insert(file.clone(), found);
                }
            }
        }
        // By file and body: who changes it, and how.
        let mut changed = Changed::new();
        for (place, removal) in removals.iter().enumerate() {
            if schema.apart.contains(&place) {
                continue;
            }
            match bodies_of(removal, &bodies) {
                Some(own) => {
                    for (key, edits) in own {
                        changed.entry(key).or_default().push((place, edits));
                    }
                }
                None => {
                    schema.apart.insert(place);
                }
            }
        }
        schema.separate_nested(&mut changed);
        schema.write(&changed, sources, roots, switch)?;
        Ok(schema)
    }

    /// A function inside another that is changed, too, would be copied along with its switch.
    fn separate_nested(&mut self, changed: &mut Changed) {
        let keys: Vec<_> = changed.keys().cloned().collect();
        for (file, (start, end)) in &keys {
            let inside = keys.iter().any(|(other, (s, e))| {
                other == file && (s, e) != (start, end) && s <= start && end <= e
            });
            if inside {
                let removed = changed.remove(&(file.clone(), (*start, *end)));
                self.apart.extend(removed.into_iter().flatten().map(|(place, _)| place));
            }
        }
        // Whoever stays apart stays so in all of its files.
        for removals in changed.values_mut() {
            removals.retain(|(place, _)| !self.apart.contains(place));
        }
        changed.retain(|_, removals| !removals.is_empty());
    }

    fn write(
        &mut self,
        changed: &Changed,
        sources: &BTreeMap<PathBuf, String>,
        roots: &BTreeMap<PathBuf, PathBuf>,
        switch: &Path,
    ) -> anyhow::Result<()> {
        let files: BTreeSet<&PathBuf> = changed.keys().map(|(file, _)| file).collect();
        let mut crates = BTreeSet::new();
        for file in files {
            let source = &sources[file];
            let mut text = String::with_capacity(source.len() * 2);
            let mut copies = Vec::new();
            let mut done = 0;
            // In the order of the file, since the map is ordered by it.
            for ((_, (start, end)), removals) in changed.iter().filter(|((f, _), _)| f == file) {
                text.push_str(&source[done..*start]);
                let body = &source[*start..*end];
                let all: Vec<usize> = removals.iter().map(|(place, _)| *place).collect();
                let numbers: Vec<u32> = all.iter().map(|&place| number(place)).collect();
                let _ = write!(text, "{{ match crate::{MODULE}::chosen(&{numbers:?}) {{");
                for (place, edits) in removals {
                    let shifted: Vec<Edit> = edits
                        .iter()
                        .map(|edit| Edit {
                            range: edit.range.start - start..edit.range.end - start,
                            text: edit.text.clone(),
                        })
                        .collect();
                    let mutated = edit::apply(body, &shifted).map_err(|(a, b)| {
                        anyhow!("{} has edits that overlap: {a:?}, {b:?}", file.display())
                    })?;
                    let first = lines(&text);
                    let _ = write!(text, " {} => {mutated}", number(*place));
                    copies.push(Copy { lines: first..lines(&text) + 1, removals: vec![*place] });
                }
                let first = lines(&text);
                let _ = write!(text, " _ => {body} }} }}");
                copies.push(Copy { lines: first..lines(&text) + 1, removals: all });
                done = *end;
            }
            text.push_str(&source[done..]);
            self.files.insert(file.clone(), text);
            self.copies.insert(file.clone(), copies);
            let root = roots.iter().find(|(directory, _)| file.starts_with(directory));
            let (_, root) = root.with_context(|| format!("{} is of no crate", file.display()))?;
            crates.insert(root.clone());
        }
        let numbered = changed.values().flatten().map(|(place, _)| *place + 1);
        let count = numbered.max().unwrap_or(0);
        for root in crates {
            let source = &sources[&root];
            let text = self.files.entry(root).or_insert_with(|| source.clone());
            text.push_str(&runtime::module(count, switch));
        }
        Ok(())
    }

    /// The removals that a message of the compiler about a line may be due to: that of the copy that
    /// the line is in, or, if it is in none, all of the functions whose copies surround it.
    pub(crate) fn blame(&self, file: &Path, line: usize) -> Vec<usize> {
        let Some(copies) = self.copies.get(file) else { return Vec::new() };
        let around = copies.iter().filter(|copy| copy.lines.contains(&line));
        let exact = around.min_by_key(|copy| (copy.removals.len(), copy.lines.len()));
        exact.map(|copy| copy.removals.clone()).unwrap_or_default()
    }
}

/// The bodies that a removal changes, each with its edits; `None` if an edit is in none.
fn bodies_of(
    removal: &Removal,
    bodies: &BTreeMap<PathBuf, Bodies>,
) -> Option<BTreeMap<Body, Vec<Edit>>> {
    let mut own: BTreeMap<Body, Vec<Edit>> = BTreeMap::new();
    for (file, edits) in &removal.edits {
        for edit in edits {
            let body = bodies.get(file)?.around(&edit.range)?;
            own.entry((file.clone(), body)).or_default().push(edit.clone());
        }
    }
    Some(own)
}

/// The number of the line at the end of a text, from 1.
fn lines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count() + 1
}

/// The bodies of the functions of a file.
struct Bodies {
    base: usize,
    /// With whether it can hold a switch.
    found: Vec<(Range<usize>, bool)>,
}

impl Bodies {
    fn of(source: &str) -> anyhow::Result<Bodies> {
        let (file, base) = checks::parse(source)?;
        let mut bodies = Bodies { base, found: Vec::new() };
        bodies.visit_file(&file);
        Ok(bodies)
    }

    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let range = block.span().byte_range();
        let range = range.start + self.base..range.end + self.base;
        self.found.push((range, signature.constness.is_none()));
    }

    /// The innermost body that an edit lies in, if it can hold a switch.
    fn around(&self, edit: &Range<usize>) -> Option<(usize, usize)> {
        let inside = |body: &Range<usize>| body.start < edit.start && edit.end < body.end;
        let around = self.found.iter().filter(|(body, _)| inside(body));
        let (body, switchable) = around.min_by_key(|(body, _)| body.len())?;
        switchable.then_some((body.start, body.end))
    }
}

impl<'ast> Visit<'ast> for Bodies {
    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.add(&node.sig, &node.block);
        visit::visit_item_fn(self, node);
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.add(&node.sig, &node.block);
        visit::visit_impl_item_fn(self, node);
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        if let Some(block) = &node.default {
            self.add(&node.sig, block);
        }
        visit::visit_trait_item_fn(self, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::tests::plan_one;

    const SOURCE: &str = "\
fn f(a: u8) -> u8 {
    // CHECK(a1-small): why
    if a > 9 {
        return 0;
    }
    // CHECK(a2-more): why
    g();
    a
}

// CHECK(a3-number): why
const K: u8 = 1;

const fn k() -> u8 {
    // CHECK(a4-const): why
    k();
    1
}
";

    fn rendered(source: &str, apart: &[usize]) -> Schema {
        let removals = plan_one(source, "[a3-number]\nreplace = '1'\nwith = '2'").unwrap();
        let removals: Vec<&Removal> = removals.iter().collect();
        let file = PathBuf::from("a/src/lib.rs");
        let sources = [(file.clone(), source.to_owned())].into();
        let roots = [(PathBuf::from("a/src"), file)].into();
        let apart = apart.iter().copied().collect();
        Schema::render(&removals, &apart, &sources, &roots, Path::new("/switch")).unwrap()
    }

    #[test]
    fn each_removal_is_a_copy_of_the_body_beside_the_unchanged() {
        let schema = rendered(SOURCE, &[]);
        let text = &schema.files[Path::new("a/src/lib.rs")];
        let (changed, _) = text.split_once("#[doc(hidden)]").expect("it has a module");
        let tidy: Vec<&str> =
            changed.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let head = "fn f(a: u8) -> u8 { match crate::__mutants::chosen(&[1, 2]) { 1 => {";
        assert_eq!(tidy[0], head);
        assert_eq!(tidy.iter().filter(|line| **line == "if a > 9 {").count(), 2);
        assert_eq!(tidy.iter().filter(|line| **line == "g();").count(), 2);
        assert!(syn::parse_file(text).is_ok(), "{text}");
    }

    #[test]
    fn what_no_switch_can_express_stays_apart() {
        assert_eq!(rendered(SOURCE, &[]).apart, [2, 3].into());
        let nested = "fn f() {\n  // CHECK(a1-x): why\n  a();\n  fn g() {\n    // CHECK(a2-x): why\n    b();\n  }\n  // CHECK(a3-number): why\n  c(1);\n}";
        assert_eq!(rendered(nested, &[]).apart, [1].into());
    }

    #[test]
    fn a_message_of_the_compiler_is_due_to_the_copy_that_it_is_in() {
        let schema = rendered(SOURCE, &[]);
        let text = schema.files[Path::new("a/src/lib.rs")].clone();
        let line = |needle: &str| {
            let at = text.find(needle).expect("it is there");
            lines(&text[..at])
        };
        let file = Path::new("a/src/lib.rs");
        assert_eq!(schema.blame(file, line(" 2 => {") + 1), [1]);
        assert_eq!(schema.blame(file, line(" _ => {") + 2), [0, 1]);
        assert_eq!(schema.blame(file, line("const K")), [0; 0]);
        assert_eq!(rendered(SOURCE, &[1]).apart, [1, 2, 3].into());
    }
}
