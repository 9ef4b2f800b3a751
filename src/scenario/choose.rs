//! Which scenarios are meant: all, or those that are named by chapter, by name, or by the path of a file.

use std::io;
use std::path::{Path, PathBuf};

use mortmain_harness::scenario::catalogue::{Loaded, load, load_all};
use mortmain_harness::scenario::diagnostic::did_you_mean;

use super::Options;
use crate::exit::Exit;

/// Why nothing was chosen.
pub(super) struct Refusal(pub(super) Exit, pub(super) String);

/// The files that are asked for.
pub(super) fn chosen(options: &Options) -> Result<Vec<Loaded>, Refusal> {
    let unreadable = |path: &Path, error: &io::Error| {
        Refusal(Exit::Usage, format!("cannot read {}: {error}", path.display()))
    };
    let (files, names): (Vec<&String>, Vec<&String>) =
        options.names.iter().partition(|name| name.ends_with(".toml"));
    let mut chosen = Vec::new();
    for file in &files {
        let path = Path::new(file);
        chosen.push(load(file, path).map_err(|error| unreadable(path, &error))?);
    }
    if !files.is_empty() && names.is_empty() {
        return Ok(chosen);
    }
    let dir = match &options.dir {
        Some(dir) => dir.clone(),
        None => find_dir().ok_or_else(|| {
            let text = "there is no directory `scenarios` here or above; give one with --dir";
            Refusal(Exit::Usage, text.into())
        })?,
    };
    let all = load_all(&dir).map_err(|error| unreadable(&dir, &error))?;
    if names.is_empty() {
        return Ok(all);
    }
    for name in names {
        let before = chosen.len();
        let matches = |one: &&Loaded| {
            let rest = one.name.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || name.ends_with('/'))
                || one.name.rsplit('/').next() == Some(name)
        };
        chosen.extend(all.iter().filter(matches).cloned());
        if chosen.len() == before {
            let near = did_you_mean(name, all.iter().map(|one| one.name.as_str()));
            let near = near.map_or(String::new(), |near| format!("; {near}"));
            return Err(Refusal(Exit::Nothing, format!("no scenario is called `{name}`{near}")));
        }
    }
    Ok(chosen)
}

/// `scenarios` in the current directory or the nearest above that has one.
fn find_dir() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let found = here.ancestors().map(|dir| dir.join("scenarios")).find(|dir| dir.is_dir())?;
    Some(found.strip_prefix(&here).map(Path::to_owned).unwrap_or(found))
}
