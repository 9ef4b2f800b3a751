//! Where the cell's tmpfs is mounted.
//!
//! A directory made for the purpose would be one more thing that a SIGKILL leaves behind. So the
//! tmpfs hides, for the cell only, a directory that machines have anyway. `/dev/shm` is the first
//! choice, since it is a tmpfs everywhere and nothing is installed there; then the directories that
//! are empty on most machines; then `/tmp`, which is the likeliest to hold something needed.
//!
//! Invariant: no path that the program was told of lies below the one chosen. Those are its own
//! path and the supervisor's, the working directory, and whatever looks like an absolute path in
//! its arguments and its environment (the manifest's directory, the linker's search path and an
//! outer cell's scratch space are there).
//!
//! It deliberately does not look into configuration files or at what the program may open later.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const CANDIDATES: [&str; 5] = ["/dev/shm", "/mnt", "/media", "/srv", "/tmp"];

/// The first candidate that is a directory and that hides none of `needed`. It is given by the path
/// that leads to it through no link.
pub(super) fn choose(needed: &BTreeSet<PathBuf>) -> Result<PathBuf, String> {
    let mut refused = Vec::new();
    for candidate in CANDIDATES {
        match Path::new(candidate).canonicalize() {
            Ok(real) if !real.is_dir() => refused.push(format!("{candidate} is no directory")),
            Ok(real) => match hidden_by(&real, Path::new(candidate), needed) {
                None => return Ok(real),
                Some(path) => refused.push(format!("{candidate} would hide {}", path.display())),
            },
            Err(e) => refused.push(format!("{candidate}: {e}")),
        }
    }
    Err(format!("its tmpfs has no place: {}", refused.join("; ")))
}

/// A needed path at or below the candidate, whichever of its two names is used.
fn hidden_by<'a>(real: &Path, named: &Path, needed: &'a BTreeSet<PathBuf>) -> Option<&'a PathBuf> {
    needed.iter().find(|path| path.starts_with(real) || path.starts_with(named))
}

/// What the program needs: its arguments' paths, the working directory, the running executable, and
/// the environment's paths; each as it is written and as it is without links.
pub(super) fn needed<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> BTreeSet<PathBuf> {
    let mut paths = BTreeSet::new();
    for word in words {
        add_paths_in(word, &mut paths);
    }
    for (_, value) in std::env::vars_os() {
        add_paths_in(&value, &mut paths);
    }
    paths.extend(std::env::current_dir());
    paths.extend(std::env::current_exe());
    let real: Vec<PathBuf> = paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
    paths.extend(real);
    paths
}

/// Takes `/a:/b`, `--x=/a`, `/a,/b` and `cat '/a'` apart, since paths come so in variables and
/// arguments.
fn add_paths_in(word: &OsStr, paths: &mut BTreeSet<PathBuf>) {
    let separates = |byte: &u8| byte.is_ascii_whitespace() || b":=,;'\"<>".contains(byte);
    // The whole, too, as a file's name may hold any of these.
    let parts = word.as_bytes().split(separates).chain([word.as_bytes()]);
    let absolute = parts.filter(|part| part.starts_with(b"/"));
    paths.extend(absolute.map(|part| PathBuf::from(OsStr::from_bytes(part))));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(words: &[&str]) -> BTreeSet<PathBuf> {
        let mut paths = BTreeSet::new();
        for word in words {
            add_paths_in(OsStr::new(word), &mut paths);
        }
        paths
    }

    #[test]
    fn paths_are_found_within_words() {
        let found = paths(&["plain", "/a", "--root=/b/c", "/d:/e:f", "-I,/g", "cat x '/h' >/i"]);
        let expected =
            ["/a", "/b/c", "/d", "/d:/e:f", "/e", "/g", "/h", "/i"].map(PathBuf::from).to_vec();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_path_is_hidden_by_whole_components_only() {
        let hidden = |needed: &str, mount: &str| {
            hidden_by(Path::new(mount), Path::new(mount), &paths(&[needed])).is_some()
        };
        assert!(hidden("/mnt/x", "/mnt"));
        assert!(hidden("/mnt", "/mnt"));
        assert!(!hidden("/mntx", "/mnt"));
        assert!(!hidden("/", "/mnt"));
    }

    #[test]
    fn either_name_of_a_linked_directory_counts() {
        let needed = paths(&["/dev/shm/x"]);
        assert!(hidden_by(Path::new("/run/shm"), Path::new("/dev/shm"), &needed).is_some());
        let needed = paths(&["/run/shm/x"]);
        assert!(hidden_by(Path::new("/run/shm"), Path::new("/dev/shm"), &needed).is_some());
    }

    #[test]
    fn with_every_place_needed_the_reason_names_each() {
        let reason = choose(&paths(&CANDIDATES)).expect_err("no place is left");
        for candidate in CANDIDATES {
            assert!(reason.contains(candidate), "{candidate} is not in {reason:?}");
        }
    }
}
