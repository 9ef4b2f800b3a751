//! The texts of the repository, and the form of a check's answer.
//!
//! The tree is walked with a short list of what to leave out. It does not follow
//! links and does not read what is not text.

use std::fs;
use std::path::{Path, PathBuf};

/// One text file.
#[derive(Debug)]
pub(crate) struct File {
    /// From the root of the repository, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) executable: bool,
}

impl File {
    /// The name without its directories.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        self.name().rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && end == extension)
    }

    /// The lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        numbered(&self.text)
    }
}

/// The lines of a text with their numbers, from 1.
pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

/// All text files, in the order of their paths.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
    /// Paths below a `testdata`. They exist, but are wrong on purpose.
    data: Vec<String>,
}

impl Tree {
    /// The repository that this test belongs to.
    pub(crate) fn real() -> Tree {
        // At run time first, so that the test binary may be moved with the tree.
        let root = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let mut files = Vec::new();
        walk(&root, "", &mut files);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let (data, files): (Vec<File>, _) =
            files.into_iter().partition(|file| file.path.split('/').any(|part| part == "testdata"));
        let data = data.into_iter().map(|file| file.path).collect();
        Tree { files, data }
    }

    /// A planted tree of paths and texts. What begins with `#!` is executable.
    pub(crate) fn planted(files: &[(&str, &str)]) -> Tree {
        let files = files
            .iter()
            .map(|&(path, text)| File {
                path: path.to_owned(),
                text: text.to_owned(),
                executable: text.starts_with("#!/"),
            })
            .collect();
        let data = Vec::new();
        Tree { files, data }
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(crate) fn with_extension<'t>(
        &'t self,
        extension: &'static str,
    ) -> impl Iterator<Item = &'t File> {
        self.files.iter().filter(move |file| file.has_extension(extension))
    }

    /// The directory of the package that a file belongs to; nothing for that in the root.
    pub(crate) fn package_of<'f>(&self, file: &'f File) -> &'f str {
        let mut at = file.path.as_str();
        while let Some((directory, _)) = at.rsplit_once('/') {
            if self.file(&format!("{directory}/Cargo.toml")).is_some() {
                return directory;
            }
            at = directory;
        }
        ""
    }

    /// Whether there is a file or a directory of this path. A `*` stands for any
    /// characters within a name.
    pub(crate) fn has(&self, path: &str) -> bool {
        let wanted: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        let mut all = self.files.iter().map(|file| &file.path).chain(&self.data);
        all.any(|path| {
            let mut there = path.split('/');
            wanted.iter().all(|part| there.next().is_some_and(|name| glob(part, name)))
        })
    }
}

/// Whether `name` is one of `pattern`, in which `*` stands for any characters.
pub(crate) fn glob(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(tail) = name.strip_prefix(first) else {
        return false;
    };
    (0..=tail.len()).any(|at| tail.is_char_boundary(at) && glob(rest, &tail[at..]))
}

fn walk(root: &Path, below: &str, files: &mut Vec<File>) {
    use std::os::unix::fs::FileTypeExt as _;

    let directory = root.join(below);
    let entries = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("cannot list {}: {error}", directory.display()));
    for entry in entries {
        let entry =
            entry.unwrap_or_else(|error| panic!("cannot list {}: {error}", directory.display()));
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            continue;
        };
        let path = if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
        let kind =
            entry.file_type().unwrap_or_else(|error| panic!("cannot look at {path}: {error}"));
        if kind.is_dir() {
            if !is_left_out(&entry.path(), name) {
                walk(root, &path, files);
            }
        } else if kind.is_symlink() || kind.is_fifo() || kind.is_socket() || path == ".git" {
            // A link leads elsewhere, and to open a FIFO is to wait. In a second work tree `.git` is
            // a file, which says where the machine has the first.
            continue;
        } else if let Some(file) = read(&entry.path(), path) {
            files.push(file);
        }
    }
}

/// Directories of tools: what cargo builds into (it marks it, under any name),
/// git's own, an editor's.
fn is_left_out(directory: &Path, name: &str) -> bool {
    let hidden = name.starts_with('.') && ![".cargo", ".ci", ".config"].contains(&name);
    hidden || name == "target" || directory.join("CACHEDIR.TAG").exists()
}

/// `None` for what is no text, or has gone since it was listed.
fn read(file: &Path, path: String) -> Option<File> {
    use std::os::unix::fs::PermissionsExt as _;

    let executable = file.metadata().ok()?.permissions().mode() & 0o111 != 0;
    let text = fs::read_to_string(file).ok()?;
    Some(File { path, text, executable })
}

/// What a check found.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// How many things were checked.
    pub(crate) looked_at: usize,
    /// What is wrong, as `path:line: what`.
    pub(crate) findings: Vec<String>,
    /// What would be wrong but for a reason that is given; a failure tells it as well.
    pub(crate) excused: Vec<String>,
}

impl Outcome {
    pub(crate) fn find(&mut self, path: &str, line: usize, what: impl std::fmt::Display) {
        self.findings.push(format!("{path}:{line}: {what}"));
    }

    /// Why the tree is not clean: a finding, or that nothing was looked at.
    fn complaint(&self) -> Option<String> {
        if !self.findings.is_empty() {
            let count = self.findings.len();
            let mut complaint = format!("{count} finding(s):\n{}", self.findings.join("\n"));
            if !self.excused.is_empty() {
                complaint += &format!("\nexcused:\n{}", self.excused.join("\n"));
            }
            return Some(complaint);
        }
        (self.looked_at == 0).then(|| "nothing to look at: the check checks nothing".to_owned())
    }

    /// For the real tree: nothing is wrong, and something was looked at.
    #[track_caller]
    pub(crate) fn assert_clean(self) {
        if let Some(complaint) = self.complaint() {
            panic!("{complaint}");
        }
    }

    /// For a planted tree: just these findings.
    #[track_caller]
    pub(crate) fn assert_found(self, expected: &[&str]) {
        assert_ne!(self.looked_at, 0, "nothing to look at: the check checks nothing");
        assert_eq!(self.findings, expected);
    }
}

#[test]
fn a_star_stands_for_any_part_of_one_name() {
    let tree = Tree::planted(&[("tests/host_kill.rs", ""), ("src/main.rs", "")]);
    for there in ["tests", "tests/", "tests/host_kill.rs", "tests/host*.rs", "*/main.rs", "s*c"] {
        assert!(tree.has(there), "{there}");
    }
    for missing in ["test", "tests/host.rs", "tests/ghost*.rs", "*.rs", "src/main.rs/x"] {
        assert!(!tree.has(missing), "{missing}");
    }
}

#[test]
fn the_real_tree_is_this_one() {
    let tree = Tree::real();
    assert!(tree.has("tests/tidy/tree.rs") && tree.has("Cargo.toml"));
    assert!(!tree.files.iter().any(|file| file.path.starts_with(".git/")));
    assert!(!tree.files.iter().any(|file| file.path.starts_with("target/")));
}

#[test]
fn a_check_that_looks_at_nothing_is_not_clean() {
    let mut outcome = Outcome::default();
    assert!(outcome.complaint().is_some_and(|text| text.contains("nothing to look at")));
    outcome.looked_at = 1;
    assert_eq!(outcome.complaint(), None);
    outcome.find("a.rs", 3, "wrong");
    assert_eq!(outcome.complaint().as_deref(), Some("1 finding(s):\na.rs:3: wrong"));
    outcome.excused.push("b.rs:4: a reason".to_owned());
    let told = "1 finding(s):\na.rs:3: wrong\nexcused:\nb.rs:4: a reason";
    assert_eq!(outcome.complaint().as_deref(), Some(told));
}
