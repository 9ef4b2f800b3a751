//! The mutants of some packages: every change that an operator would make, with a name that stays.
//!
//! A mutant is told by file, function and change, and by its number among those that are alike; its
//! *id* is a hash of these. So a line that moves, and a change in another function, leave the id what
//! it was. Its *number* is its place in the list, by which it is switched on; it stays only as long as
//! the list does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;

use crate::hash::Hash;
use crate::modules::{self, File};
use crate::operators::Operator;
use crate::workspace::{Member, Workspace};

/// One change of one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Mutant {
    #[serde(rename = "mutant")]
    pub(crate) id: String,
    #[serde(skip)]
    pub(crate) number: u32,
    pub(crate) package: String,
    /// From the root of the workspace.
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) function: String,
    pub(crate) operator: Operator,
    pub(crate) from: String,
    pub(crate) to: String,
}

/// The mutants of some packages, with the files that they are in.
#[derive(Debug)]
pub(crate) struct Plan {
    /// In the order of packages, files and places; the first has the number 1.
    pub(crate) mutants: Vec<Mutant>,
    pub(crate) files: BTreeMap<PathBuf, PlannedFile>,
    /// The root files of the crates, which get the module.
    pub(crate) roots: Vec<PathBuf>,
}

#[derive(Debug)]
pub(crate) struct PlannedFile {
    pub(crate) file: File,
    /// The numbers of the changes of each site.
    pub(crate) numbers: Vec<Vec<u32>>,
    /// Whether the crate goes without the standard library.
    pub(crate) no_std: bool,
}

impl Plan {
    /// Finds the mutants of the packages in a workspace.
    ///
    /// # Errors
    ///
    /// When a source file cannot be read as Rust.
    pub(crate) fn of(workspace: &Workspace, packages: &[String]) -> anyhow::Result<Plan> {
        let mut plan = Plan { mutants: Vec::new(), files: BTreeMap::new(), roots: Vec::new() };
        let chosen = workspace.members.iter().filter(|member| packages.contains(&member.name));
        for member in chosen {
            let mut files = BTreeMap::new();
            for root in &member.roots {
                modules::read(&workspace.root, root, &mut files)?;
                plan.roots.push(root.clone());
            }
            plan.add(member, files)?;
        }
        plan.roots.sort();
        plan.roots.dedup();
        Ok(plan)
    }

    /// A hash of the ids in their order: with another, the numbers are those of other mutants.
    pub(crate) fn key(&self) -> String {
        let mut hash = Hash::new();
        for mutant in &self.mutants {
            hash.add(mutant.id.as_bytes());
        }
        hash.text()
    }

    fn add(&mut self, member: &Member, files: BTreeMap<PathBuf, File>) -> anyhow::Result<()> {
        let no_std =
            member.roots.iter().any(|root| files.get(root).is_some_and(|f| f.found.no_std));
        for (path, file) in files {
            let mut alike: BTreeMap<(String, Operator, String, String), usize> = BTreeMap::new();
            let mut numbers = Vec::new();
            for site in &file.found.sites {
                let mut own = Vec::new();
                for change in &site.changes {
                    let (line, column) = position(&file.source, change.at);
                    let number =
                        u32::try_from(self.mutants.len() + 1).context("too many mutants")?;
                    let key = (
                        site.function.clone(),
                        change.operator,
                        change.from.clone(),
                        change.to.clone(),
                    );
                    let nth = alike.entry(key).and_modify(|nth| *nth += 1).or_insert(1);
                    self.mutants.push(Mutant {
                        id: id(
                            &path,
                            &site.function,
                            change.operator,
                            &change.from,
                            &change.to,
                            *nth,
                        ),
                        number,
                        package: member.name.clone(),
                        file: path.clone(),
                        line,
                        column,
                        function: site.function.clone(),
                        operator: change.operator,
                        from: change.from.clone(),
                        to: change.to.clone(),
                    });
                    own.push(number);
                }
                numbers.push(own);
            }
            self.files.insert(path, PlannedFile { file, numbers, no_std });
        }
        Ok(())
    }
}

fn id(file: &Path, function: &str, operator: Operator, from: &str, to: &str, nth: usize) -> String {
    let mut hash = Hash::new();
    for part in [&*file.to_string_lossy(), function, &operator.to_string(), from, to] {
        hash.add(part.as_bytes());
    }
    hash.add(nth.to_string().as_bytes());
    hash.text()
}

/// Line and column, both from 1, of a place in a text.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    (line, before[start..].chars().count() + 1)
}

/// What differs between two texts, with some of what stands around it in both.
pub(crate) fn difference(from: &str, to: &str) -> (String, String) {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let before = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let rest = from.len().min(to.len()) - before;
    let (backward, other) = (from.iter().rev(), to.iter().rev());
    let after = backward.zip(other).take(rest).take_while(|(a, b)| a == b).count();
    (around(&from, before, after), around(&to, before, after))
}

/// The widest part that is shown of what two texts have in common, on each side, in characters.
const COMMON: usize = 24;

/// The widest part of what differs.
const DIFFERENT: usize = 60;

/// A text without most of its first `before` and last `after` characters.
fn around(text: &[char], before: usize, after: usize) -> String {
    let start = before.saturating_sub(COMMON);
    let end = text.len() - after.saturating_sub(COMMON);
    let different = &text[start..end];
    let shown: String = different.iter().take(DIFFERENT + 2 * COMMON).collect();
    let first = if start > 0 { "…" } else { "" };
    let last = if end < text.len() || shown.chars().count() < different.len() { "…" } else { "" };
    format!("{first}{}{last}", shown.trim())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::operators;

    /// The plan of one file of one package.
    pub(crate) fn plan_one(source: &str) -> Plan {
        let path = PathBuf::from("src/lib.rs");
        let member =
            Member { roots: vec![path.clone()], ..crate::workspace::tests::member("p", "") };
        let found = operators::find(source).unwrap();
        let file = File { source: source.to_owned(), found };
        let mut plan =
            Plan { mutants: Vec::new(), files: BTreeMap::new(), roots: vec![path.clone()] };
        plan.add(&member, BTreeMap::from([(path, file)])).unwrap();
        plan
    }

    #[test]
    fn a_name_stays_when_lines_move() {
        let before = plan_one("fn f() { g(a == b); }\nfn h() { g(a == b); g(a == b); }\n");
        let after =
            plan_one("// moved\n\nfn h() { g(a == b); g(a == b); }\nfn f() { x(); g(a == b); }\n");
        let of = |plan: &Plan, function: &str| -> Vec<String> {
            let own = plan.mutants.iter().filter(|m| m.function == function);
            own.filter(|m| m.operator == Operator::Binary).map(|m| m.id.clone()).collect()
        };
        assert_eq!(of(&before, "f"), of(&after, "f"));
        assert_eq!(of(&before, "h"), of(&after, "h"));
        let mut all: Vec<&str> = before.mutants.iter().map(|mutant| &*mutant.id).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), before.mutants.len(), "no two have one name");
    }

    #[test]
    fn places_are_told_by_line_and_column() {
        let plan = plan_one("fn f() {\n    g(ä == b);\n}\n");
        let binary = &plan.mutants[1];
        assert_eq!((binary.line, binary.column), (2, 9));
    }

    #[test]
    fn a_difference_is_shown_with_what_is_around_it() {
        let told = |from: &str, to: &str| {
            let (from, to) = difference(from, to);
            format!("{from} -> {to}")
        };
        assert_eq!(told("a < b", "a <= b"), "a < b -> a <= b");
        assert_eq!(told("aa", "a"), "aa -> a");
        let (long, end) = ("x".repeat(40), "y".repeat(40));
        let (x, y) = ("x".repeat(23), "y".repeat(23));
        assert_eq!(
            told(&format!("{long} + {end}"), &format!("{long} * {end}")),
            format!("…{x} + {y}… -> …{x} * {y}…")
        );
        let (from, _) = difference(&"ä".repeat(200), "");
        assert_eq!(from.chars().count(), 109);
    }
}
