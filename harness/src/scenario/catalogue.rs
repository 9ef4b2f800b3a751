//! Finds scenario files and reads them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Diagnostic, Story, read};

/// A file, and what was read from it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// `<chapter>/<slug>`, or the path of a file that is given by its path.
    pub name: String,
    /// Where it stands.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// The story, or everything that is wrong with it.
    pub story: Result<Story, Vec<Diagnostic>>,
}

/// Reads one file under a name.
///
/// # Errors
///
/// When it cannot be read. What is wrong in it is in the answer.
pub fn load(name: &str, path: &Path) -> io::Result<Loaded> {
    let text = fs::read_to_string(path)?;
    let story = read(name, path, &text);
    Ok(Loaded { name: name.into(), path: path.into(), text, story })
}

/// Reads all files below a directory, in the order of their names.
///
/// # Errors
///
/// When the directory or one of the files cannot be read.
pub fn load_all(dir: &Path) -> io::Result<Vec<Loaded>> {
    let mut paths = Vec::new();
    collect(dir, &mut paths)?;
    paths.sort_unstable();
    let each = paths.iter().map(|path| load(&name_of(dir, path), path));
    each.collect()
}

fn collect(dir: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    Ok(())
}

/// The path below the directory, without the extension.
fn name_of(dir: &Path, path: &Path) -> String {
    let below = path.strip_prefix(dir).unwrap_or(path).with_extension("");
    below.to_string_lossy().into_owned()
}
