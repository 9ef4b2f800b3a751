//! `mutants/checks.toml`, and the plan of removals that it makes with the comments.
//!
//! A check is removed by deleting what its comment heads. Where that is not the
//! removal (a flag, an order, something that is absent on purpose), the catalogue
//! gives an edit under the check's id:
//!
//! ```toml
//! [c5-close-on-exec]
//! replace = "OFlags::CLOEXEC | OFlags::NOFOLLOW"
//! with = "OFlags::NOFOLLOW"
//!
//! [p5-id-first]
//! edits = [
//!     { replace = "first();", with = "second();" },
//!     { file = "mortmain/src/lib.rs", replace = "second();", with = "first();" },
//! ]
//! ```
//!
//! An id that begins with `canary-` belongs to no check. It is an edit that breaks the whole thing, and
//! that tests must notice however they are written; it gives its own `file` and `why`. A run that does
//! not catch its canaries says nothing about the checks either.
//!
//! `file` is the check's own if it is not given. A text is looked for between the
//! check and the end of the item around it, where the first place counts; a text that
//! is not there must stand exactly once in the file.
//!
//! Invariant: whatever does not fit is an error, and all errors are told at once. A
//! check without a removal, an edit without a check and a text that is gone are never
//! passed over.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;

use crate::checks::{self, Check, TargetKind};
use crate::document::read_toml;
use crate::edit::{self, Edit};
use crate::exit::{Exit, Stop};
use crate::workspace::Workspace;

/// Where the catalogue is, from the root of the workspace.
const PATH: &str = "mutants/checks.toml";

/// A check with the way to remove it.
#[derive(Clone, Debug)]
pub(crate) struct Removal {
    pub(crate) check: Check,
    /// The file of the check, from the root of the workspace.
    pub(crate) file: PathBuf,
    pub(crate) how: How,
    /// What is changed, by file.
    pub(crate) edits: BTreeMap<PathBuf, Vec<Edit>>,
    /// Each file that changes, with its whole text after the removal.
    pub(crate) files: BTreeMap<PathBuf, String>,
}

#[derive(Clone, Debug)]
pub(crate) enum How {
    /// The first line of what is deleted.
    Deletion(TargetKind, String),
    /// The number of edits.
    Patch(usize),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The reason, of a canary.
    why: Option<String>,
    file: Option<PathBuf>,
    replace: Option<String>,
    with: Option<String>,
    #[serde(default)]
    edits: Vec<EntryEdit>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryEdit {
    file: Option<PathBuf>,
    replace: String,
    with: String,
}

/// The removals of all checks of a workspace, by rule and then by place.
///
/// # Errors
///
/// [`Exit::CatalogueWrong`] with everything that does not fit.
pub(crate) fn plan(workspace: &Workspace, root: &Path) -> anyhow::Result<Vec<Removal>> {
    let sources = read_sources(workspace, root)?;
    let entries = read_toml(root, PATH)?.unwrap_or_default();
    match plan_texts(&sources, entries) {
        Ok(removals) => Ok(removals),
        Err(problems) => {
            let mut message = String::from("checks and catalogue do not fit together");
            for problem in problems {
                let _ = write!(message, "\n  {problem}");
            }
            Err(Stop::new(Exit::CatalogueWrong, message).into())
        }
    }
}

/// The Rust files below the `src` directories of the members.
pub(crate) fn read_sources(
    workspace: &Workspace,
    root: &Path,
) -> anyhow::Result<BTreeMap<PathBuf, String>> {
    let mut sources = BTreeMap::new();
    for member in workspace.subjects() {
        let mut directories = vec![member.directory.join("src")];
        while let Some(directory) = directories.pop() {
            let path = root.join(&directory);
            if !path.is_dir() {
                continue;
            }
            let entries =
                fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))?;
            for entry in entries {
                let entry = entry?;
                let file = directory.join(entry.file_name());
                if entry.file_type()?.is_dir() {
                    directories.push(file);
                } else if file.extension().is_some_and(|extension| extension == "rs") {
                    let text = fs::read_to_string(root.join(&file))
                        .with_context(|| format!("cannot read {}", file.display()))?;
                    sources.insert(file, text);
                }
            }
        }
    }
    Ok(sources)
}

/// The plan, from texts alone.
fn plan_texts(
    sources: &BTreeMap<PathBuf, String>,
    mut entries: BTreeMap<String, Entry>,
) -> Result<Vec<Removal>, Vec<String>> {
    let mut problems = Vec::new();
    let mut removals = Vec::new();
    let mut ids: BTreeMap<String, String> = BTreeMap::new();
    for (file, text) in sources {
        let (checks, malformed) = match checks::find(text) {
            Ok(found) => found,
            Err(error) => {
                problems.push(format!("{}: {error:#}", file.display()));
                continue;
            }
        };
        for comment in malformed {
            problems.push(format!("{}:{}: {}", file.display(), comment.line, comment.problem));
        }
        for check in checks {
            let place = format!("{}:{}", file.display(), check.line);
            if let Some(first) = ids.insert(check.id.clone(), place.clone()) {
                problems.push(format!("{place}: {} is already at {first}", check.id));
                continue;
            }
            let entry = entries.remove(&check.id);
            match remove(sources, file, &check, entry) {
                Ok(removal) => removals.push(removal),
                Err(problem) => problems.push(format!("{place}: {}: {problem}", check.id)),
            }
        }
    }
    let canaries: Vec<String> =
        entries.keys().filter(|id| id.starts_with(CANARY)).cloned().collect();
    for id in canaries {
        let planned = entries.remove(&id).ok_or_else(String::new);
        match planned.and_then(|entry| canary(sources, &id, entry)) {
            Ok(removal) => removals.push(removal),
            Err(problem) => problems.push(format!("{PATH}: {id}: {problem}")),
        }
    }
    for id in entries.keys().filter(|id| !ids.contains_key(*id)) {
        problems.push(format!("{PATH}: {id}: no such check in the source"));
    }
    if problems.is_empty() {
        removals.sort_by_cached_key(|removal| {
            let rule = removal.check.rule();
            let number: u32 = rule[1..].parse().unwrap_or(u32::MAX);
            (rule[..1].to_owned(), number, removal.file.clone(), removal.check.line)
        });
        Ok(removals)
    } else {
        Err(problems)
    }
}

/// What the id of an edit begins with that belongs to no check.
const CANARY: &str = "canary-";

/// An edit that belongs to no check, told by the place of its first change.
fn canary(
    sources: &BTreeMap<PathBuf, String>,
    id: &str,
    mut entry: Entry,
) -> Result<Removal, String> {
    let why = entry.why.take().filter(|why| !why.trim().is_empty());
    let why = why.ok_or("a canary gives its reason, `why`")?;
    let file = entry.file.clone().ok_or("a canary gives its `file`")?;
    let check = Check { id: id.to_owned(), why, line: 1, scope: 0..0, target: None };
    let mut removal = remove(sources, &file, &check, Some(entry))?;
    let first = removal.edits.get(&file).and_then(|edits| edits.first());
    if let (Some(edit), Some(text)) = (first, sources.get(&file)) {
        removal.check.line = text[..edit.range.start].matches('\n').count() + 1;
    }
    Ok(removal)
}

fn remove(
    sources: &BTreeMap<PathBuf, String>,
    file: &Path,
    check: &Check,
    entry: Option<Entry>,
) -> Result<Removal, String> {
    let mut edits: BTreeMap<PathBuf, Vec<Edit>> = BTreeMap::new();
    let how = if let Some(entry) = entry {
        if entry.why.is_some() {
            return Err("the reason of a check stands in its comment".to_owned());
        }
        let wanted = entry.into_edits()?;
        for edit in &wanted {
            let path = edit.file.clone().unwrap_or_else(|| file.to_owned());
            let found = locate(sources, file, check, &path, edit)?;
            edits.entry(path).or_default().push(found);
        }
        How::Patch(wanted.len())
    } else {
        let target = check.target.as_ref().ok_or_else(|| {
            format!(
                "nothing that can be deleted begins under the comment; {PATH} must give an edit"
            )
        })?;
        // OK because the check was found in this very text.
        let text = &sources[file];
        let first = text[target.range.clone()].lines().next().unwrap_or_default();
        let how = How::Deletion(target.kind, first.trim_end().to_owned());
        let edit = Edit::blank(text, target.range.clone());
        edits.insert(file.to_owned(), vec![edit]);
        how
    };

    let mut files = BTreeMap::new();
    for (path, edits) in &edits {
        let text = edit::apply(&sources[path], edits).map_err(|(a, b)| {
            format!("two edits overlap in {}: {a:?} and {b:?}", path.display())
        })?;
        files.insert(path.clone(), text);
    }
    Ok(Removal { check: check.clone(), file: file.to_owned(), how, edits, files })
}

impl Entry {
    fn into_edits(self) -> Result<Vec<EntryEdit>, String> {
        let Entry { why: _, file, replace, with, mut edits } = self;
        match (replace, with) {
            (Some(replace), Some(with)) if edits.is_empty() => {
                edits.push(EntryEdit { file, replace, with })
            }
            (None, None) if !edits.is_empty() => {
                for edit in &mut edits {
                    edit.file = edit.file.take().or_else(|| file.clone());
                }
            }
            _ => return Err("give either `replace` and `with`, or `edits`".to_owned()),
        }
        Ok(edits)
    }
}

/// Where the text of an edit stands.
fn locate(
    sources: &BTreeMap<PathBuf, String>,
    file: &Path,
    check: &Check,
    path: &Path,
    edit: &EntryEdit,
) -> Result<Edit, String> {
    let EntryEdit { replace, with, .. } = edit;
    if replace.is_empty() || replace == with {
        return Err(format!("an edit that changes nothing: {replace:?} by {with:?}"));
    }
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let text = sources
        .get(path)
        .filter(|_| plain)
        .ok_or_else(|| format!("{} is no source file of the workspace", path.display()))?;
    let at = |start: usize| -> Range<usize> { start..start + replace.len() };

    if path == file
        && let Some(offset) = text[check.scope.clone()].find(replace)
    {
        return Ok(Edit { range: at(check.scope.start + offset), text: with.clone() });
    }
    let places: BTreeSet<usize> = text.match_indices(replace).map(|(start, _)| start).collect();
    match places.len() {
        1 => Ok(Edit {
            range: places.first().copied().map(at).unwrap_or_default(),
            text: with.clone(),
        }),
        0 => Err(format!("the text {replace:?} is not in {}", path.display())),
        many => Err(format!(
            "the text {replace:?} is {many} times in {} and not in the item under the check; \
             a longer text would tell which is meant",
            path.display()
        )),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const SOURCE: &str = "\
fn first() {
    // CHECK(a10-guard): why
    guard();
    open(NOFOLLOW | CLOEXEC);
}
fn second() {
    // CHECK(a9-flag): why
    open(NOFOLLOW | CLOEXEC);
    open(NOFOLLOW | CLOEXEC);
}
fn third() {
    lock();
}
";

    /// The plan of one file.
    pub(crate) fn plan_one(source: &str, catalogue: &str) -> Result<Vec<Removal>, Vec<String>> {
        let sources = BTreeMap::from([(PathBuf::from("a/src/lib.rs"), source.to_owned())]);
        plan_texts(&sources, toml::from_str(catalogue).unwrap())
    }

    #[track_caller]
    fn problem(source: &str, catalogue: &str) -> String {
        let problems = plan_one(source, catalogue).unwrap_err();
        let [problem] = problems.as_slice() else {
            panic!("one problem expected: {problems:?}");
        };
        problem.clone()
    }

    fn text(removal: &Removal) -> &str {
        &removal.files[Path::new("a/src/lib.rs")]
    }

    #[test]
    fn without_an_entry_what_the_check_heads_is_deleted() {
        let plan = plan_one(SOURCE, "").unwrap();
        let ids: Vec<&str> = plan.iter().map(|removal| &*removal.check.id).collect();
        assert_eq!(ids, ["a9-flag", "a10-guard"], "rules are in the order of their numbers");
        assert_eq!(text(&plan[1]), SOURCE.replace("guard();", "        "));
    }

    #[test]
    fn an_edit_is_made_at_the_first_place_under_the_check() {
        let plan = plan_one(SOURCE, "[a9-flag]\nreplace = 'NOFOLLOW | '\nwith = ''").unwrap();
        let changed =
            SOURCE.replacen("NOFOLLOW | ", "", 2).replacen("open(", "open(NOFOLLOW | ", 1);
        assert_eq!(text(&plan[0]), changed);
        assert!(matches!(plan[0].how, How::Patch(1)));
    }

    #[test]
    fn the_words_of_the_comment_are_not_edited() {
        let source =
            SOURCE.replace("a9-flag): why", "a9-flag): why\n    // not open(NOFOLLOW | X)");
        let plan = plan_one(&source, "[a9-flag]\nreplace = 'NOFOLLOW'\nwith = '0'").unwrap();
        assert!(text(&plan[0]).contains("// not open(NOFOLLOW | X)\n    open(0 | CLOEXEC);"));
    }

    #[test]
    fn a_text_outside_the_item_must_be_the_only_one() {
        let elsewhere = "[a9-flag]\nreplace = 'lock();'\nwith = ''";
        assert_eq!(text(&plan_one(SOURCE, elsewhere).unwrap()[0]), SOURCE.replace("lock();", ""));

        let source = SOURCE.replace("lock();", "lock();lock();");
        assert!(problem(&source, elsewhere).contains("is 2 times in a/src/lib.rs"));
        let gone = SOURCE.replace("lock();", "");
        assert!(problem(&gone, elsewhere).contains("is not in a/src/lib.rs"));
    }

    #[test]
    fn several_edits_are_places_in_the_unchanged_text() {
        let catalogue = "[a10-guard]\nedits = [\n{ replace = 'open', with = 'guard' },\n{ replace = 'guard', with = 'open' } ]";
        let plan = plan_one(SOURCE, catalogue).unwrap();
        let swapped = "    open();\n    guard(NOFOLLOW | CLOEXEC);\n";
        assert!(text(&plan[1]).contains(swapped), "{}", text(&plan[1]));
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let nothing = SOURCE.replace("    guard();\n    open(NOFOLLOW | CLOEXEC);\n", "");
        assert!(problem(&nothing, "").contains("a/src/lib.rs:2: a10-guard: nothing that can be"));
        let stranger = "[b1-x]\nreplace = 'guard'\nwith = ''";
        assert!(problem(SOURCE, stranger).contains("b1-x: no such check"));
        let twice = SOURCE.replace("a9-flag", "a10-guard");
        assert!(problem(&twice, "").contains("a10-guard is already at a/src/lib.rs:2"));
        let idle = "[a9-flag]\nreplace = 'open'\nwith = 'open'";
        assert!(problem(SOURCE, idle).contains("changes nothing"));
        let half = "[a9-flag]\nreplace = 'open'";
        assert!(problem(SOURCE, half).contains("either"));
        let outside = "[a9-flag]\nfile = '../lib.rs'\nreplace = 'open'\nwith = ''";
        assert!(problem(SOURCE, outside).contains("no source file"));
        let overlap = "[a9-flag]\nedits = [{ replace = 'open(NO', with = '' }, { replace = '(NOF', with = '' }]";
        assert!(problem(SOURCE, overlap).contains("overlap"));
        let broken = SOURCE.replace("lock();", "lock(;");
        assert!(problem(&broken, "").starts_with("a/src/lib.rs: "));
    }

    #[test]
    fn a_canary_stands_alone() {
        let canary =
            "[canary-open]\nwhy = 'w'\nfile = 'a/src/lib.rs'\nreplace = 'lock();'\nwith = ''";
        let plan = plan_one(SOURCE, canary).unwrap();
        let ids: Vec<&str> = plan.iter().map(|removal| &*removal.check.id).collect();
        assert_eq!(ids, ["a9-flag", "a10-guard", "canary-open"]);
        assert_eq!((plan[2].check.line, plan[2].check.rule()), (12, "canary"));
        assert_eq!(text(&plan[2]), SOURCE.replace("lock();", ""));
        for (left_out, told) in [("why = 'w'\n", "`why`"), ("file = 'a/src/lib.rs'\n", "`file`")] {
            assert!(problem(SOURCE, &canary.replace(left_out, "")).contains(told));
        }
        let stray = "[a9-flag]\nwhy = 'w'\nreplace = 'open'\nwith = ''";
        assert!(problem(SOURCE, stray).contains("in its comment"));
        let twice = canary.replace("lock();", "open(");
        assert!(problem(SOURCE, &twice).contains("3 times"));
    }

    /// That those who look for holes would see one.
    #[test]
    fn this_repository_has_its_canaries() {
        let catalogue = include_str!("../checks.toml");
        let entries: BTreeMap<String, Entry> = toml::from_str(catalogue).unwrap();
        for canary in ["canary-cannot-tell-is-gone", "canary-start-without-sweep"] {
            assert!(entries.contains_key(canary), "{canary} has left mutants/checks.toml");
        }
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let source = SOURCE.replace("): why", ")");
        assert_eq!(plan_one(&source, "[b1-x]\nreplace = 'a'\nwith = ''").unwrap_err().len(), 3);
    }

    #[test]
    fn a_misspelt_key_is_refused() {
        let error =
            toml::from_str::<BTreeMap<String, Entry>>("[a9-flag]\nreplaces = 'x'").unwrap_err();
        assert!(error.message().contains("unknown field"), "{error}");
    }
}
