//! The copies of the workspace in which checks are removed and operators changed.
//!
//! Layout, below the target directory of the workspace:
//!
//! ```text
//! mutants/lock         held while a run uses the rest, and a CACHEDIR.TAG beside it
//! mutants/tree/        the copy in which checks are removed
//! mutants/switched/    another, with every operator's changes behind switches
//! mutants/target/      what is built from both
//! mutants/log/         what the compiler and the tests printed in this run, by check and by story
//! mutants/mutate.json  what `mutate` remembers
//! mutants/building     there while a build runs
//! mutants/active/      empty; in a confinement the order is here, for programs that are started
//!                      without their environment
//! ```
//!
//! Invariants:
//! * After [`Scratch::synchronise`] the copy is equal to the source, but for what is left out, and
//!   whatever a killed run has left in it. Files that are equal keep their time of change, so that cargo
//!   builds again only what differs.
//! * A removal is undone when its [`Applied`] ends, also by a panic.
//! * Nothing is ever switched on but inside of a confinement.
//! * What a killed build left is never built upon: a compiler that dies at its work can leave
//!   objects that no longer link, and cargo takes them for finished.
//!
//! What it deliberately does not do: it copies no build output (directories with a
//! `CACHEDIR.TAG`), no `.git`, and nothing that is neither file, directory nor link.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::exit::{Exit, Stop};

/// The first line is the standard's.
const CACHE_TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55
# Made by mortmain-mutants. See https://bford.info/cachedir/
";

/// The directory that one run at a time has for itself.
#[derive(Debug)]
pub(crate) struct Scratch {
    root: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Takes the scratch directory below a target directory, making it if needed.
    ///
    /// # Errors
    ///
    /// [`Exit::Undecided`] when another run has it.
    pub(crate) fn take(target_directory: &Path) -> anyhow::Result<Scratch> {
        let root = Scratch::path(target_directory);
        let make = |path: &Path| {
            fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))
        };
        make(&root)?;
        let root = fs::canonicalize(&root)?;
        let lock = File::create(root.join("lock")).context("cannot make the lock file")?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("another run is at work in {}", root.display());
                return Err(Stop::new(Exit::Undecided, message).into());
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", root.display()));
            }
        }
        // Backups leave it out, and so does a copy of a tree that it is in.
        fs::write(root.join("CACHEDIR.TAG"), CACHE_TAG).context("cannot write CACHEDIR.TAG")?;
        let scratch = Scratch { root, _lock: lock };
        remove(&scratch.logs())?;
        if scratch.building().try_exists()? {
            remove(&scratch.target())?;
            remove(&scratch.building())?;
        }
        // Of an older version, a file.
        remove(&scratch.active())?;
        let directories = [
            scratch.tree(),
            scratch.switched(),
            scratch.test_directory(),
            scratch.logs(),
            scratch.active(),
        ];
        for path in directories {
            make(&path)?;
        }
        Ok(scratch)
    }

    /// Where it is below a target directory.
    pub(crate) fn path(target_directory: &Path) -> PathBuf {
        target_directory.join("mutants")
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.root.join("tree")
    }

    /// The copy that has switches in it.
    pub(crate) fn switched(&self) -> PathBuf {
        self.root.join("switched")
    }

    pub(crate) fn target(&self) -> PathBuf {
        self.root.join("target")
    }

    /// Where cargo tells integration tests to put their files.
    pub(crate) fn test_directory(&self) -> PathBuf {
        self.target().join("tmp")
    }

    fn logs(&self) -> PathBuf {
        self.root.join("log")
    }

    /// Keeps what a compiler or a test printed.
    pub(crate) fn log(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.logs().join(format!("{name}.txt"));
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn active(&self) -> PathBuf {
        self.root.join("active")
    }

    /// The file that says what is switched on; it is there in a confinement only.
    pub(crate) fn order(&self) -> PathBuf {
        self.active().join("order")
    }

    fn building(&self) -> PathBuf {
        self.root.join("building")
    }

    /// Notes that a build runs, until [`Scratch::build_ends`].
    pub(crate) fn build_begins(&self) -> anyhow::Result<()> {
        fs::write(self.building(), "").context("cannot note that a build begins")
    }

    /// Notes that the build ended by itself, well or not.
    pub(crate) fn build_ends(&self) -> anyhow::Result<()> {
        remove(&self.building()).context("cannot note that a build has ended")
    }

    /// Makes the copy equal to `source`, which may hold the scratch directory itself.
    pub(crate) fn synchronise(&self, source: &Path) -> anyhow::Result<()> {
        synchronise(source, &self.tree(), &Texts::new(), Path::new(""))
            .context("cannot copy the workspace")
    }

    /// Makes the copy with switches equal to `source`, but for the files that have other texts.
    pub(crate) fn synchronise_switched(&self, source: &Path, texts: &Texts) -> anyhow::Result<()> {
        synchronise(source, &self.switched(), texts, Path::new(""))
            .context("cannot copy the workspace")
    }

    /// Writes changed files into the copy, until the value that is returned ends.
    pub(crate) fn apply(&self, files: &BTreeMap<PathBuf, String>) -> anyhow::Result<Applied> {
        let mut applied = Applied { originals: Vec::new() };
        for (file, text) in files {
            let path = self.tree().join(file);
            let context = || format!("cannot change {}", path.display());
            let original = fs::read(&path).with_context(context)?;
            applied.originals.push((path.clone(), original));
            fs::write(&path, text).with_context(context)?;
        }
        Ok(applied)
    }
}

/// A removal that is in the copy now.
#[derive(Debug)]
#[must_use = "the removal is undone when this ends"]
pub(crate) struct Applied {
    originals: Vec<(PathBuf, Vec<u8>)>,
}

impl Applied {
    /// Puts the files back, and says so if that fails.
    pub(crate) fn undo(mut self) -> anyhow::Result<()> {
        while let Some((path, original)) = self.originals.pop() {
            fs::write(&path, original)
                .with_context(|| format!("cannot put {} back", path.display()))?;
        }
        Ok(())
    }
}

impl Drop for Applied {
    fn drop(&mut self) {
        for (path, original) in self.originals.drain(..) {
            // The next run compares contents and repairs what stays wrong here.
            let _ = fs::write(path, original);
        }
    }
}

/// Texts of files, by their paths from the root.
pub(crate) type Texts = BTreeMap<PathBuf, String>;

/// Makes the directory `copy` equal to the directory `source`, which is `here` from the root, but for
/// the files that have other texts.
fn synchronise(source: &Path, copy: &Path, texts: &Texts, here: &Path) -> io::Result<()> {
    let mut wanted = Vec::new();
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let name = entry.file_name();
        let from = entry.path();
        let to = copy.join(&name);
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if is_left_out(&from) {
                continue;
            }
            if !is_directory(&to)? {
                remove(&to)?;
                fs::create_dir(&to)?;
            }
            synchronise(&from, &to, texts, &here.join(&name))?;
        } else if kind.is_symlink() {
            let target = fs::read_link(&from)?;
            if fs::read_link(&to).ok().as_ref() != Some(&target) {
                remove(&to)?;
                symlink(target, &to)?;
            }
        } else if fs::metadata(&from)?.is_file() {
            let content = match texts.get(&here.join(&name)) {
                Some(text) => text.clone().into_bytes(),
                None => fs::read(&from)?,
            };
            write_file(&content, &fs::metadata(&from)?.permissions(), &to)?;
        } else {
            continue;
        }
        wanted.push(name);
    }
    for entry in fs::read_dir(copy)? {
        let entry = entry?;
        if !wanted.contains(&entry.file_name()) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Whether a directory is none of the source: what was built from it, and its history.
pub(crate) fn is_left_out(directory: &Path) -> bool {
    directory.file_name() == Some(OsStr::new(".git")) || directory.join("CACHEDIR.TAG").exists()
}

/// Writes a file where it differs.
fn write_file(content: &[u8], permissions: &fs::Permissions, to: &Path) -> io::Result<()> {
    if let Ok(metadata) = fs::symlink_metadata(to) {
        let same = metadata.is_file()
            && metadata.permissions().mode() == permissions.mode()
            && fs::read(to)? == content;
        if same {
            return Ok(());
        }
        remove(to)?;
    }
    fs::write(to, content)?;
    fs::set_permissions(to, permissions.clone())
}

fn is_directory(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(metadata.is_dir()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes whatever is at the path, following no link. That nothing is there is fine.
fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            for entry in fs::read_dir(path)? {
                remove(&entry?.path())?;
            }
            fs::remove_dir(path)
        }
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A directory of this test's own, empty at its start and gone at its end.
    pub(crate) struct Directory(pub(crate) PathBuf);

    impl Directory {
        pub(crate) fn new(tag: &str) -> Directory {
            let exe = std::env::current_exe().unwrap();
            // OK because a test binary is in `deps` below the profile's directory.
            let path = exe.ancestors().nth(2).unwrap().join(format!("mutants-tree-{tag}"));
            remove(&path).unwrap();
            fs::create_dir(&path).unwrap();
            Directory(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            remove(&self.0).unwrap();
        }
    }

    pub(crate) fn put(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Every path below, with the content of files and the targets of links.
    fn listing(root: &Path) -> Vec<String> {
        let mut lines = Vec::new();
        let mut directories = vec![PathBuf::new()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(root.join(&directory)).unwrap() {
                let entry = entry.unwrap();
                let path = directory.join(entry.file_name());
                let kind = entry.file_type().unwrap();
                let content = if kind.is_dir() {
                    directories.push(path.clone());
                    "/".to_owned()
                } else if kind.is_symlink() {
                    format!("-> {}", fs::read_link(entry.path()).unwrap().display())
                } else {
                    let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
                    format!("{mode:o} {}", fs::read_to_string(entry.path()).unwrap())
                };
                lines.push(format!("{} {content}", path.display()));
            }
        }
        lines.sort();
        lines
    }

    #[test]
    fn the_copy_is_made_equal_whatever_was_there() {
        let base = Directory::new("equal");
        let (source, copy) = (base.0.join("source"), base.0.join("copy"));
        put(source.join("src/lib.rs"), "code");
        put(source.join("ci/run"), "#!");
        fs::set_permissions(source.join("ci/run"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("src/lib.rs", source.join("link")).unwrap();
        let wanted = listing(&source);
        put(source.join(".git/HEAD"), "not copied");
        put(source.join("build/CACHEDIR.TAG"), "not copied");

        put(copy.join("src/lib.rs"), "edit");
        put(copy.join("src/gone.rs"), "gone");
        put(copy.join("ci/run/was/a/directory"), "gone");
        put(copy.join("link"), "was a file");
        symlink("/nonexistent", copy.join("dangling")).unwrap();

        synchronise(&source, &copy, &Texts::new(), Path::new("")).unwrap();
        assert_eq!(listing(&copy), wanted);

        let texts = Texts::from([("src/lib.rs".into(), "other".to_owned())]);
        synchronise(&source, &copy, &texts, Path::new("")).unwrap();
        let other: Vec<String> =
            wanted.iter().map(|line| line.replace("644 code", "644 other")).collect();
        assert_ne!(other, wanted);
        assert_eq!(listing(&copy), other);
    }

    #[test]
    fn the_copy_does_not_hold_itself() {
        let source = Directory::new("itself");
        put(source.0.join("a.rs"), "code");
        let scratch = Scratch::take(&source.0.join("target")).unwrap();
        for _ in 0..2 {
            scratch.synchronise(&source.0).unwrap();
            let copied = listing(&scratch.tree());
            let names: Vec<_> = copied.iter().map(|line| line.split(' ').next()).collect();
            assert_eq!(names, [Some("a.rs"), Some("target")]);
        }
    }

    #[test]
    fn equal_files_keep_their_time() {
        let base = Directory::new("time");
        let (source, copy) = (base.0.join("source"), base.0.join("copy"));
        fs::create_dir(&copy).unwrap();
        put(source.join("same"), "same");
        put(source.join("other"), "before");
        synchronise(&source, &copy, &Texts::new(), Path::new("")).unwrap();
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        for name in ["same", "other"] {
            let file = File::options().write(true).open(copy.join(name)).unwrap();
            file.set_modified(long_ago).unwrap();
        }
        put(source.join("other"), "behind");
        synchronise(&source, &copy, &Texts::new(), Path::new("")).unwrap();
        let time = |name| fs::metadata(copy.join(name)).unwrap().modified().unwrap();
        assert_eq!(time("same"), long_ago);
        assert_ne!(time("other"), long_ago);
    }

    #[test]
    fn a_removal_is_undone_also_by_a_panic() {
        let base = Directory::new("undo");
        let scratch = Scratch::take(&base.0).unwrap();
        let file = scratch.tree().join("a.rs");
        put(file.clone(), "before");
        let files = BTreeMap::from([(PathBuf::from("a.rs"), "after".to_owned())]);

        let applied = scratch.apply(&files).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
        applied.undo().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "before");

        let panicked = std::panic::catch_unwind(|| {
            let _applied = scratch.apply(&files).unwrap();
            panic!("in the middle of a run");
        });
        assert!(panicked.is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "before");
    }

    #[test]
    fn nothing_is_built_upon_a_build_that_was_killed() {
        let base = Directory::new("killed-build");
        let built = |scratch: &Scratch| scratch.target().join("debug/deps");
        let first = Scratch::take(&base.0).unwrap();
        first.build_begins().unwrap();
        first.build_ends().unwrap();
        put(built(&first), "whole");
        drop(first);
        let second = Scratch::take(&base.0).unwrap();
        assert!(built(&second).exists(), "a build that ended is built upon");
        second.build_begins().unwrap();
        drop(second);
        let third = Scratch::take(&base.0).unwrap();
        assert!(!built(&third).exists());
        assert!(third.test_directory().exists());
        assert!(!third.building().exists());
    }

    #[test]
    fn nothing_is_switched_on_when_a_run_begins() {
        let base = Directory::new("order");
        let order = Scratch::take(&base.0).unwrap().order();
        fs::write(&order, "7").unwrap();
        let scratch = Scratch::take(&base.0).unwrap();
        assert_eq!(scratch.order(), order);
        assert_eq!(fs::read_dir(order.parent().unwrap()).unwrap().count(), 0);
    }

    #[test]
    fn one_run_at_a_time_has_the_scratch_directory() {
        let base = Directory::new("lock");
        let first = Scratch::take(&base.0).unwrap();
        let refused = Scratch::take(&base.0).unwrap_err();
        assert!(refused.to_string().contains("another run is at work"), "{refused:#}");
        drop(first);
        assert!(Scratch::take(&base.0).is_ok());
    }
}
