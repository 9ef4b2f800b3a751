//! Builds a workspace with all mutants behind switches, without those that the compiler refuses.
//!
//! Rounds of `cargo check` drop them: first those whose own text an error is about; where there is
//! no such error, all whose site or function it is about. The latter are *suspects*, and tried again
//! in ever smaller groups, until each is in or is refused alone.
//!
//! Which of the rest are compiled at all the compiler tells by a warning at each switch.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::builder::{Build, Builder, Check, CompilerError, Failure, Place, TestBinaries};
use crate::exit::{Exit, Stop};
use crate::hash::Hash;
use crate::mutant::Plan;
use crate::progress::Progress;
use crate::render::{self, Blame, Rendered};
use crate::runtime;
use crate::session::last_lines;
use crate::state::Settled;
use crate::targets::Targets;
use crate::tree::Texts;

/// How often the compiler is asked before the suspects are.
const ROUNDS_MAX: usize = 20;

/// How often it is asked about suspects. The rest stays out.
const SUSPECTS_MAX: usize = 60;

/// The reason of a suspect that was not tried again.
const NOT_TRIED: &str = "an error is about its function; it was not tried alone";

pub(crate) struct Switched<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) builder: &'a Builder<'a>,
    /// The packages with mutants.
    pub(crate) packages: &'a [String],
    /// The file that says what is active.
    pub(crate) order: PathBuf,
    pub(crate) progress: &'a Progress,
}

type Dropped = BTreeMap<u32, String>;

impl Switched<'_> {
    /// A hash of all that the compiler's answers depend on.
    pub(crate) fn key(&self) -> anyhow::Result<String> {
        let texts = self.texts(&self.render(&Dropped::new()))?;
        key(&self.builder.workspace.root, &texts)
    }

    /// Finds out what the compiler refuses. Nothing if it was interrupted.
    pub(crate) fn settle(&self, key: String) -> anyhow::Result<Option<Settled>> {
        let begun = Instant::now();
        let (mut dropped, mut suspects) = (Dropped::new(), Dropped::new());
        let mut compiled = None;
        for round in 1..=ROUNDS_MAX {
            self.progress.doing(format_args!("asking the compiler, round {round}"));
            let out = joined(&dropped, &suspects);
            let rendered = self.write(&out)?;
            match self.builder.check(self.packages)? {
                Check::Done(places) => {
                    compiled = Some(self.compiled(&rendered, &places));
                    break;
                }
                Check::Interrupted => return Ok(None),
                Check::Failed(failure) => {
                    let (sure, unsure) = self.attribute(&rendered, &failure.errors, &out);
                    if sure.is_empty() && unsure.is_empty() {
                        return Err(does_not_build(&failure));
                    }
                    // An error that has no text of its own may follow from one that has.
                    if sure.is_empty() {
                        suspects.extend(unsure);
                    } else {
                        dropped.extend(sure);
                    }
                }
            }
        }
        let Some(mut compiled) = compiled else {
            bail!("the compiler refuses mutants in round after round");
        };
        if !suspects.is_empty() {
            match self.try_again(&mut dropped, &suspects)? {
                Some(now) => compiled = now.unwrap_or(compiled),
                None => return Ok(None),
            }
        }
        let (out, all) = (dropped.len(), self.plan.mutants.len());
        let seconds = begun.elapsed().as_secs_f64();
        self.progress
            .done("compiled", format_args!("{} of {all} mutants ({seconds:.1} s)", all - out));
        Ok(Some(Settled { key, dropped, compiled }))
    }

    /// Tries suspects in groups, and drops those that are refused alone. Gives what is compiled with
    /// the last group that was not refused; nothing if it was interrupted.
    fn try_again(
        &self,
        dropped: &mut Dropped,
        suspects: &Dropped,
    ) -> anyhow::Result<Option<Option<BTreeSet<u32>>>> {
        let mut compiled = None;
        let mut groups = vec![suspects.clone()];
        let mut waiting = suspects.clone();
        for _ in 0..SUSPECTS_MAX {
            let Some(group) = groups.pop() else { break };
            let left = groups.len();
            self.progress
                .doing(format_args!("trying {} suspects again, {left} groups left", group.len()));
            waiting.retain(|number, _| !group.contains_key(number));
            let out = joined(dropped, &waiting);
            let rendered = self.write(&out)?;
            match self.builder.check(self.packages)? {
                Check::Done(places) => compiled = Some(self.compiled(&rendered, &places)),
                Check::Interrupted => return Ok(None),
                Check::Failed(failure) => {
                    let (sure, _) = self.attribute(&rendered, &failure.errors, &out);
                    let (guilty, rest): (Dropped, Dropped) =
                        group.into_iter().partition(|(number, _)| sure.contains_key(number));
                    dropped.extend(guilty.clone());
                    let parts = match (guilty.is_empty(), rest.len()) {
                        // Refused alone.
                        (true, 1) => {
                            dropped.extend(rest);
                            Vec::new()
                        }
                        (true, _) => halve(rest),
                        // Without the guilty it may be well.
                        (false, _) => vec![rest],
                    };
                    for part in parts.into_iter().filter(|part| !part.is_empty()) {
                        waiting.extend(part.clone());
                        groups.push(part);
                    }
                }
            }
        }
        for number in waiting.into_keys() {
            dropped.insert(number, NOT_TRIED.to_owned());
        }
        Ok(Some(compiled))
    }

    /// Builds tests, these or all, for running them. Nothing if it was interrupted.
    pub(crate) fn build(
        &self,
        settled: &mut Settled,
        only: Option<&Targets>,
    ) -> anyhow::Result<Option<TestBinaries>> {
        self.builder.tell_left_out(self.progress);
        for round in 1..=ROUNDS_MAX {
            let begun = Instant::now();
            self.progress.doing(format_args!("building the tests, round {round}"));
            let rendered = self.write(&settled.dropped)?;
            match self.builder.build(only)? {
                Build::Done(binaries) => {
                    let seconds = begun.elapsed().as_secs_f64();
                    let count = binaries.len();
                    self.progress
                        .done("built", format_args!("{count} test binaries ({seconds:.1} s)"));
                    return Ok(Some(binaries));
                }
                Build::Interrupted => return Ok(None),
                // Other features than those of the packages alone.
                Build::Failed(failure) => {
                    let (sure, unsure) =
                        self.attribute(&rendered, &failure.errors, &settled.dropped);
                    if sure.is_empty() && unsure.is_empty() {
                        return Err(does_not_build(&failure));
                    }
                    settled.dropped.extend(if sure.is_empty() { unsure } else { sure });
                }
            }
        }
        bail!("the compiler refuses mutants in round after round");
    }

    fn render(&self, dropped: &Dropped) -> BTreeMap<PathBuf, Rendered> {
        let dropped: BTreeSet<u32> = dropped.keys().copied().collect();
        let each = self.plan.files.iter().map(|(path, planned)| {
            let (source, found) = (&planned.file.source, &planned.file.found);
            let rendered =
                render::render(source, found, &planned.numbers, &dropped, planned.no_std);
            (path.clone(), rendered)
        });
        each.collect()
    }

    /// The texts of the files that change.
    fn texts(&self, rendered: &BTreeMap<PathBuf, Rendered>) -> anyhow::Result<Texts> {
        let each = rendered.iter().map(|(path, rendered)| (path.clone(), rendered.text.clone()));
        let mut texts: Texts = each.collect();
        let module = runtime::module(self.plan.mutants.len(), &self.order);
        for root in &self.plan.roots {
            let text =
                texts.get_mut(root).with_context(|| format!("{} was not read", root.display()))?;
            text.push_str(&module);
        }
        Ok(texts)
    }

    /// Writes the copy.
    fn write(&self, dropped: &Dropped) -> anyhow::Result<BTreeMap<PathBuf, Rendered>> {
        let rendered = self.render(dropped);
        let texts = self.texts(&rendered)?;
        self.builder.scratch.synchronise_switched(&self.builder.workspace.root, &texts)?;
        Ok(rendered)
    }

    fn within<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(&self.builder.tree).unwrap_or(path)
    }

    fn compiled(&self, rendered: &BTreeMap<PathBuf, Rendered>, places: &[Place]) -> BTreeSet<u32> {
        let each = places
            .iter()
            .filter_map(|place| rendered.get(self.within(&place.file))?.owner(&place.bytes));
        each.collect()
    }

    /// Those whose text the errors are about, and those whose surroundings they are about.
    fn attribute(
        &self,
        rendered: &BTreeMap<PathBuf, Rendered>,
        errors: &[CompilerError],
        dropped: &Dropped,
    ) -> (Dropped, Dropped) {
        let dropped: BTreeSet<u32> = dropped.keys().copied().collect();
        let (mut sure, mut unsure) = (Dropped::new(), Dropped::new());
        for error in errors {
            let blamed = error.places.iter().filter_map(|place| {
                rendered.get(self.within(&place.file))?.blame(&place.bytes, &dropped)
            });
            let blamed: Vec<Blame> = blamed.collect();
            let exact = blamed.iter().find_map(|blame| match blame {
                Blame::Sure(number) => Some(*number),
                Blame::Perhaps(_) => None,
            });
            match (exact, blamed.first()) {
                (Some(number), _) => {
                    sure.entry(number).or_insert(error.message.clone());
                }
                (None, Some(Blame::Perhaps(numbers))) => {
                    for &number in numbers {
                        unsure.entry(number).or_insert(error.message.clone());
                    }
                }
                (None, _) => {}
            }
        }
        (sure, unsure)
    }
}

/// A hash of a workspace, and of its sources with all switches. Manifests and sources without mutants
/// decide about features and types as well.
fn key(root: &Path, texts: &Texts) -> anyhow::Result<String> {
    let mut hash = Hash::new();
    hash.add_tree(root).with_context(|| format!("cannot read {}", root.display()))?;
    for (path, text) in texts {
        hash.add(path.as_os_str().as_encoded_bytes());
        hash.add(text.as_bytes());
    }
    Ok(hash.text())
}

fn joined(one: &Dropped, other: &Dropped) -> Dropped {
    one.iter().chain(other).map(|(number, reason)| (*number, reason.clone())).collect()
}

/// Two halves of two or more.
fn halve(mut group: Dropped) -> Vec<Dropped> {
    let middle = group.keys().nth(group.len() / 2).copied();
    let second = middle.map(|middle| group.split_off(&middle)).unwrap_or_default();
    vec![second, group]
}

fn does_not_build(failure: &Failure) -> anyhow::Error {
    let (reason, log) = (&failure.reason, last_lines(&failure.log));
    let message = format!("the workspace does not build: {reason}\n{log}");
    Stop::new(Exit::BaselineFails, message).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::{Directory, put};

    #[test]
    fn the_key_is_of_all_that_is_built_and_of_nothing_that_was() {
        let base = Directory::new("key");
        let texts = Texts::from([("src/lib.rs".into(), "switches".to_owned())]);
        let mut keys = Vec::new();
        let mut key_with = |path: &str, text: &str| {
            put(base.0.join(path), text);
            keys.push(key(&base.0, &texts).unwrap());
        };
        key_with("Cargo.toml", "one");
        key_with("Cargo.toml", "other");
        key_with("build.rs", "one");
        key_with("other/src/lib.rs", "one");
        key_with("target/CACHEDIR.TAG", "");
        key_with("target/debug/built", "one");
        let (source, built) = keys.split_at(4);
        assert!((1..4).all(|at| !source[..at].contains(&source[at])), "{keys:?}");
        assert!(built.iter().all(|key| *key == source[3]), "{keys:?}");
        assert_ne!(key(&base.0, &Texts::new()).unwrap(), source[3]);
    }
}
