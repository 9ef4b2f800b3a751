//! The source files of a crate: its root, and what its modules name, as the compiler finds them.
//!
//! Files that no module names are none of the crate, and those that only tests name
//! are left out, as `operators` leaves such modules out. What `include!` and macros bring in is not
//! seen.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;

use crate::operators::{self, Found, OuterModule};

/// A file with what was found in it.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) source: String,
    pub(crate) found: Found,
}

/// Reads the files below a root file, by their paths from `directory`.
///
/// # Errors
///
/// When the root or a file that a module names cannot be read as Rust.
pub(crate) fn read(
    directory: &Path,
    root: &Path,
    files: &mut BTreeMap<PathBuf, File>,
) -> anyhow::Result<()> {
    let mut waiting = vec![(root.to_owned(), true)];
    while let Some((path, owns_directory)) = waiting.pop() {
        if files.contains_key(&path) {
            continue;
        }
        let source = fs::read_to_string(directory.join(&path))
            .with_context(|| format!("cannot read {}", path.display()))?;
        let found =
            operators::find(&source).with_context(|| format!("cannot parse {}", path.display()))?;
        for module in &found.modules {
            waiting.extend(file_of(directory, &path, owns_directory, module));
        }
        files.insert(path, File { source, found });
    }
    Ok(())
}

/// The file of a module, and whether the modules in it are looked for beside it. Nothing if there is
/// none, since the compiler may never ask for it.
fn file_of(
    directory: &Path,
    parent: &Path,
    owns_directory: bool,
    module: &OuterModule,
) -> Option<(PathBuf, bool)> {
    let beside = parent.parent().unwrap_or(Path::new(""));
    let mut below = beside.to_owned();
    if !owns_directory {
        below.push(parent.file_stem()?);
    }
    let inside: PathBuf = module.inside.iter().collect();
    let candidates = match &module.path {
        Some(path) if module.inside.is_empty() => vec![(beside.join(path), true)],
        Some(path) => vec![(below.join(inside).join(path), true)],
        None => {
            let here = below.join(inside).join(&module.name);
            vec![(here.with_extension("rs"), false), (here.join("mod.rs"), true)]
        }
    };
    let mut there = candidates.into_iter().map(|(path, owns)| (plain(&path), owns));
    there.find(|(path, _)| directory.join(path).is_file())
}

/// A path without `.` and, where a name stands before it, `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            _ => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_where_the_compiler_looks() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = BTreeMap::new();
        read(here, Path::new("src/main.rs"), &mut files).unwrap();
        read(here, Path::new("src/lib.rs"), &mut files).unwrap();
        let names: Vec<&Path> = files.keys().map(PathBuf::as_path).collect();
        for name in ["src/main.rs", "src/lib.rs", "src/checks/target.rs", "src/operators/visit.rs"]
        {
            assert!(names.contains(&Path::new(name)), "{name} is not in {names:?}");
        }
    }

    #[test]
    fn inline_modules_and_paths_lead_into_directories() {
        let of = |parent: &str, owns, inside: &[&str], name: &str, path: Option<&str>| {
            let module = OuterModule {
                inside: inside.iter().map(|&name| name.to_owned()).collect(),
                name: name.to_owned(),
                path: path.map(str::to_owned),
            };
            let here = Path::new(env!("CARGO_MANIFEST_DIR"));
            file_of(here, Path::new(parent), owns, &module)
        };
        let found = |path: &str, owns| Some((PathBuf::from(path), owns));
        assert_eq!(of("src/lib.rs", true, &[], "checks", None), found("src/checks.rs", false));
        assert_eq!(
            of("src/checks.rs", false, &[], "target", None),
            found("src/checks/target.rs", false)
        );
        assert_eq!(
            of("src/lib.rs", true, &["checks"], "target", None),
            found("src/checks/target.rs", false)
        );
        assert_eq!(
            of("tests/x.rs", true, &[], "support", None),
            found("tests/support/mod.rs", true)
        );
        assert_eq!(
            of("tests/x.rs", true, &[], "x", Some("../src/lib.rs")),
            found("src/lib.rs", true)
        );
        assert_eq!(of("src/lib.rs", true, &[], "no_such_module", None), None);
    }
}
