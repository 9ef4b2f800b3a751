//! Directories for tests, as users of the library take them.

use std::env;
use std::ffi::OsStr;
use std::format;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::prelude::rust_2024::*;

use super::{bytes, path_buf};
use crate::error::{Error, ErrorKind};
use crate::grammar::Prefix;
use crate::protocol;
use crate::sys::{Errno, Host, Name};

/// A directory for a test, at a fixed place, empty when it is taken.
///
/// It is taken by [`sandbox!`](crate::sandbox!) or
/// [`detached_sandbox!`](crate::detached_sandbox!), which name a *tag*: the same tag is
/// the same directory in every run. So a suite that is killed leaves at most one
/// directory a tag, and the next run empties it, also where it was taken by a static
/// that is never dropped. A pid, a time or a random number in the path would leave one
/// for every run.
///
/// It takes the place of a helper such as this one, which leaves a directory for every
/// run that is killed, and for every static that holds one, in a place that fills up
/// (`cargo run --package mortmain --example sandbox` shows both at work):
///
/// ```no_run
/// fn scratch(test: &str) -> std::path::PathBuf {
///     let dir = std::env::temp_dir().join(format!("{test}-{}", std::process::id()));
///     std::fs::create_dir_all(&dir).unwrap();
///     dir
/// }
/// ```
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = mortmain::sandbox!("parses-its-own-output")?;
/// std::fs::write(sandbox.path().join("input"), "…")?;
/// # Ok(()) }
/// ```
///
/// Two live users of one tag are an error that names both places in the source, not a
/// race; it holds between processes, too. Dropping a sandbox removes it; in a forked
/// child that did not exec, dropping it does nothing.
///
/// # What it is not
/// It is for tests. A program that a killed test has left running loses its directory
/// to the next run, unless it holds the `flock` of a directory in there, as the owner of
/// a claim does.
///
/// # Crash behaviour
/// When its user is killed at any system call, it stays until the next one of the same
/// tag takes it.
#[derive(Debug)]
#[must_use = "a sandbox that is dropped is removed at once"]
pub struct Sandbox {
    _inner: protocol::Sandbox<Host>,
    path: PathBuf,
}

/// Where in the source, and of which package, a sandbox is wanted. Made by the macros.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// `CARGO_TARGET_TMPDIR`, where cargo gives it: to integration tests and benches.
    pub target_tmpdir: Option<&'static str>,
    /// `CARGO_MANIFEST_DIR`.
    pub manifest_dir: &'static str,
    /// `CARGO_PKG_NAME`.
    pub package: &'static str,
    /// File, line and column.
    pub place: &'static str,
}

/// Where a sandbox is wanted.
#[doc(hidden)]
#[macro_export]
macro_rules! __sandbox_site {
    () => {
        $crate::SandboxSite {
            target_tmpdir: ::core::option_env!("CARGO_TARGET_TMPDIR"),
            manifest_dir: ::core::env!("CARGO_MANIFEST_DIR"),
            package: ::core::env!("CARGO_PKG_NAME"),
            place: ::core::concat!(::core::file!(), ":", ::core::line!(), ":", ::core::column!()),
        }
    };
}

/// Takes the directory of a tag in the build tree: below `CARGO_TARGET_TMPDIR`, or the
/// same directory in unit tests, which cargo does not tell it; whatever the target
/// directory is. See [`Sandbox`].
///
/// The tag is a literal: letters, digits, `_`, `-` and `.`, at most 64, beginning with a
/// letter or digit. It is one package's own: two packages may use the same.
///
/// # Errors
/// As a `Result<Sandbox, Error>`:
/// * [`ErrorKind::TagInUse`]: another place has it, or the
///   same one in another process. The message names both.
/// * [`ErrorKind::Obstructed`]: something stands there
///   that must not be removed: a mount, a directory that somebody has locked, another
///   user's directory.
/// * [`ErrorKind::InvalidPrefix`]: it is no tag.
/// * [`ErrorKind::NoSpace`],
///   [`ErrorKind::System`].
#[macro_export]
macro_rules! sandbox {
    ($tag:literal) => {
        $crate::Sandbox::__in_build_tree($crate::__sandbox_site!(), $tag)
    };
}

/// Takes the directory of a tag outside of any work tree: in the system's temporary
/// directory, with a hash of the checkout in its name. For tests of programs that look
/// upwards for a repository or a manifest. Otherwise as [`sandbox!`](crate::sandbox!).
///
/// # Errors
/// As [`sandbox!`](crate::sandbox!); and
/// [`ErrorKind::Obstructed`] where the temporary directory
/// lies in a work tree itself.
#[macro_export]
macro_rules! detached_sandbox {
    ($tag:literal) => {
        $crate::Sandbox::__detached($crate::__sandbox_site!(), $tag)
    };
}

const OPERATION: &str = "take the test directory";

/// What makes a directory a work tree, or a part of one.
const WORK_TREE_SIGNS: [&str; 4] = [".git", ".hg", ".jj", ".svn"];

impl Sandbox {
    #[doc(hidden)]
    pub fn __in_build_tree(site: Site, tag: &str) -> Result<Sandbox, Error> {
        let base = base_of(&site);
        std::fs::create_dir_all(&base).map_err(|error| {
            let errno = error.raw_os_error().map_or(Errno::EIO, Errno);
            Error::system(OPERATION, &bytes(&base), errno)
        })?;
        Sandbox::take(&base, checked(tag, &base)?, site)
    }

    #[doc(hidden)]
    #[expect(
        clippy::disallowed_methods,
        reason = "what is to lie outside of every work tree lies in the system's own place"
    )]
    pub fn __detached(site: Site, tag: &str) -> Result<Sandbox, Error> {
        let temp = env::temp_dir();
        let temp = temp.canonicalize().unwrap_or(temp);
        // CHECK(x4-no-work-tree): a program that looks upwards would find somebody's repository.
        if let Some(tree) = work_tree(&temp) {
            let text = format!("the temporary directory lies in the work tree {}", tree.display());
            return Err(Error::because(ErrorKind::Obstructed, OPERATION, &bytes(&temp), text));
        }
        let tag = checked(tag, &temp)?;
        let checkout = Path::new(site.manifest_dir);
        let checkout = checkout.canonicalize().unwrap_or_else(|_| checkout.into());
        let name = format!("sandbox-{}-{:016x}-{tag}", site.package, hash(&checkout));
        Sandbox::take(&temp, &name, site)
    }

    fn take(base: &Path, name: &str, site: Site) -> Result<Sandbox, Error> {
        let base = bytes(base);
        let name = Name::new(name.as_bytes());
        let name = name.ok_or_else(|| Error::system(OPERATION, &base, Errno::ENAMETOOLONG))?;
        let inner = protocol::Sandbox::take(&Host, &base, name, site.place)?;
        Ok(Sandbox { path: path_buf(inner.files()), _inner: inner })
    }

    /// The directory to use. It was empty when it was taken.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for Sandbox {
    fn as_ref(&self) -> &Path {
        self.path()
    }
}

impl AsRef<OsStr> for Sandbox {
    fn as_ref(&self) -> &OsStr {
        self.path().as_os_str()
    }
}

/// A tag, if it is one.
fn checked<'t>(tag: &'t str, base: &Path) -> Result<&'t str, Error> {
    match Prefix::new(tag) {
        Some(_) => Ok(tag),
        None => {
            let text = format!("`{}` is no tag", tag.escape_debug());
            Err(Error::because(ErrorKind::InvalidPrefix, OPERATION, &bytes(base), text))
        }
    }
}

/// The directory that a package's sandboxes lie in.
fn base_of(site: &Site) -> PathBuf {
    let exe = env::current_exe().ok();
    let target_dir = env::var_os("CARGO_TARGET_DIR");
    let is_workspace = |dir: &Path| dir.join("Cargo.lock").is_file();
    let tmp = build_tmp(site, exe.as_deref(), target_dir.as_deref(), is_workspace);
    tmp.join(format!("sandbox-{}", site.package))
}

/// The directory for temporary files of the build tree, as `CARGO_TARGET_TMPDIR` has it.
/// Who is not told finds it beside the program: cargo puts a test into `deps`, two below
/// the directory that `tmp` lies in, wherever the target directory is. A documentation
/// test lies elsewhere, and has the manifest to go by.
fn build_tmp(
    site: &Site,
    exe: Option<&Path>,
    target_dir: Option<&OsStr>,
    is_workspace: impl Fn(&Path) -> bool,
) -> PathBuf {
    if let Some(told) = site.target_tmpdir {
        return told.into();
    }
    let deps = exe.and_then(Path::parent).filter(|dir| dir.ends_with("deps"));
    if let Some(tree) = deps.and_then(Path::parent).and_then(Path::parent) {
        return tree.join("tmp");
    }
    let manifest = Path::new(site.manifest_dir);
    let workspace = manifest.ancestors().find(|dir| is_workspace(dir)).unwrap_or(manifest);
    let target = target_dir.filter(|dir| !dir.is_empty()).unwrap_or(OsStr::new("target"));
    workspace.join(target).join("tmp")
}

/// The work tree that a directory lies in.
fn work_tree(dir: &Path) -> Option<&Path> {
    dir.ancestors()
        .find(|dir| WORK_TREE_SIGNS.iter().any(|sign| dir.join(sign).symlink_metadata().is_ok()))
}

/// FNV-1a, 64 bits: the same in every run, which the standard library's need not be.
fn hash(path: &Path) -> u64 {
    path.as_os_str().as_bytes().iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: Site =
        Site { target_tmpdir: None, manifest_dir: "/src/a/b", package: "b", place: "x.rs:1:1" };

    #[test]
    fn the_build_tree_is_found_by_whatever_cargo_tells() {
        let deps = Path::new("/elsewhere/debug/deps/b-0123");
        let triple = Path::new("/elsewhere/x86_64-unknown-none/release/deps/b-0123");
        let doc = Path::new("/scratch/rustdoctest1/rust_out");
        let in_a = |dir: &Path| dir == Path::new("/src/a");
        let told = Site { target_tmpdir: Some("/told/tmp"), ..SITE };
        for (site, exe, target_dir, expected) in [
            (told, Some(deps), None, "/told/tmp"),
            (SITE, Some(deps), None, "/elsewhere/tmp"),
            (SITE, Some(triple), None, "/elsewhere/x86_64-unknown-none/tmp"),
            (SITE, Some(doc), None, "/src/a/target/tmp"),
            (SITE, None, Some("/custom"), "/custom/tmp"),
            (SITE, None, Some("custom"), "/src/a/custom/tmp"),
            (SITE, None, Some(""), "/src/a/target/tmp"),
        ] {
            let found = build_tmp(&site, exe, target_dir.map(OsStr::new), in_a);
            assert_eq!(found, Path::new(expected));
        }
        assert_eq!(build_tmp(&SITE, None, None, |_| false), Path::new("/src/a/b/target/tmp"));
    }

    #[test]
    fn a_unit_test_has_its_directory_in_the_build_tree() {
        let exe = env::current_exe().expect("it is running");
        let tree = exe.ancestors().nth(3).expect("it lies in a target directory");
        assert_eq!(base_of(&crate::__sandbox_site!()), tree.join("tmp/sandbox-mortmain"));
    }

    #[test]
    fn a_checkout_has_its_own_hash_in_every_run() {
        assert_eq!(hash(Path::new("")), 0xCBF2_9CE4_8422_2325);
        assert_eq!(hash(Path::new("a")), 0xAF63_DC4C_8601_EC8C);
        assert_ne!(hash(Path::new("/one")), hash(Path::new("/two")));
    }

    #[test]
    fn what_is_no_tag_is_refused() {
        for tag in ["", ".", "..", "a/b", "-a", "a b", &"a".repeat(65)] {
            let error = checked(tag, Path::new("/base")).expect_err("it is no tag");
            assert_eq!(error.kind(), ErrorKind::InvalidPrefix, "{tag}");
        }
    }
}
