//! The workspace as cargo tells it: where it is, where it builds, its members.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::exit::{Exit, Stop};
use crate::modules;

/// A workspace on disk.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target_directory: PathBuf,
    pub(crate) members: Vec<Member>,
    /// The names of those that cargo works on unasked.
    pub(crate) default_members: Vec<String>,
    /// See [`Workspace::borrowers`].
    pub(crate) known_borrowers: OnceLock<Vec<String>>,
}

/// A package of the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Relative to the root; empty for a package in the root itself.
    pub(crate) directory: PathBuf,
    /// The root files of its library and its programs, relative to the workspace's.
    pub(crate) roots: Vec<PathBuf>,
    /// The name of its library.
    pub(crate) library: Option<String>,
    /// The names of its integration tests.
    pub(crate) integration: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Metadata {
    workspace_root: PathBuf,
    target_directory: PathBuf,
    packages: Vec<Package>,
    workspace_default_members: Vec<String>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    id: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

impl Target {
    fn is(&self, kind: &str) -> bool {
        self.kind.iter().any(|own| own == kind)
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    /// Whether it is part of what the package is for, and runs when that runs.
    fn is_product(&self) -> bool {
        ["bin", "cdylib", "dylib", "lib", "rlib", "staticlib"].iter().any(|kind| self.is(kind))
    }
}

impl Workspace {
    /// Asks cargo for the workspace of `manifest`, or of the current directory.
    pub(crate) fn find(manifest: Option<&Path>) -> anyhow::Result<Workspace> {
        let mut command = Command::new(cargo());
        command.args(["metadata", "--no-deps", "--format-version=1"]);
        if let Some(manifest) = manifest {
            command.arg("--manifest-path").arg(manifest);
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "it reads manifests, starts nothing and ends by itself"
        )]
        let output = command.output().context("cannot start cargo")?;
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            let told = told.trim().trim_start_matches("error: ");
            return Err(Stop::new(Exit::Usage, format!("no workspace here: {told}")).into());
        }
        let metadata: Metadata =
            serde_json::from_slice(&output.stdout).context("cannot read cargo's metadata")?;
        Workspace::from_metadata(metadata)
    }

    fn from_metadata(metadata: Metadata) -> anyhow::Result<Workspace> {
        let root = fs::canonicalize(&metadata.workspace_root)
            .with_context(|| format!("cannot find {}", metadata.workspace_root.display()))?;
        let mut members = Vec::new();
        let mut default_members = Vec::new();
        for package in metadata.packages {
            let manifest = fs::canonicalize(&package.manifest_path)?;
            let directory = manifest.parent().and_then(|path| path.strip_prefix(&root).ok());
            let Some(directory) = directory else {
                bail!(
                    "the package {} is outside the workspace's directory, so that a copy of \
                     the directory would not hold it",
                    package.name
                );
            };
            let products = package.targets.iter().filter(|target| target.is_product());
            let roots = products.filter_map(|target| {
                let path = fs::canonicalize(&target.src_path).ok()?;
                path.strip_prefix(&root).ok().map(Path::to_owned)
            });
            if metadata.workspace_default_members.contains(&package.id) {
                default_members.push(package.name.clone());
            }
            members.push(Member {
                name: package.name,
                directory: directory.to_owned(),
                roots: roots.collect(),
                library: package.targets.iter().find(|one| one.is("lib")).map(Target::name),
                integration: package
                    .targets
                    .iter()
                    .filter(|one| one.is("test"))
                    .map(Target::name)
                    .collect(),
            });
        }
        members.sort_by(|a, b| a.directory.cmp(&b.directory));
        Ok(Workspace {
            root,
            target_directory: metadata.target_directory,
            members,
            default_members,
            known_borrowers: OnceLock::new(),
        })
    }

    /// The members without this program's own package: the source of this program
    /// quotes checks, and its tests start it.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.name != own_package())
    }

    /// The member that a file belongs to, by its path from the root.
    pub(crate) fn member_of(&self, file: &Path) -> Option<&Member> {
        let around = self.members.iter().filter(|member| file.starts_with(&member.directory));
        around.max_by_key(|member| member.directory.components().count())
    }

    /// The names of members that take in a source of another one by its path. A switch in there names
    /// a module of the crate that it was made for, so that they would not build.
    pub(crate) fn borrowers(&self) -> &[String] {
        self.known_borrowers.get_or_init(|| {
            let borrows = |member: &&Member| {
                let mut files = BTreeMap::new();
                for root in &member.roots {
                    // What cannot be read the compiler tells better.
                    let _unreadable = modules::read(&self.root, root, &mut files);
                }
                let own = |file: &PathBuf| file.starts_with(&member.directory);
                !files.keys().all(own)
            };
            self.subjects().filter(borrows).map(|member| member.name.clone()).collect()
        })
    }

    pub(crate) fn has_own_package(&self) -> bool {
        self.members.iter().any(|member| member.name == own_package())
    }
}

/// The name of the package that this program is built from.
pub(crate) fn own_package() -> &'static str {
    env!("CARGO_PKG_NAME")
}

/// The cargo that started this program, or the first in the path.
pub(crate) fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn member(name: &str, directory: &str) -> Member {
        Member {
            name: name.to_owned(),
            directory: directory.into(),
            roots: Vec::new(),
            library: None,
            integration: BTreeSet::new(),
        }
    }

    pub(crate) fn workspace(members: Vec<Member>) -> Workspace {
        Workspace {
            root: PathBuf::new(),
            target_directory: PathBuf::new(),
            members,
            default_members: Vec::new(),
            known_borrowers: OnceLock::new(),
        }
    }

    #[test]
    fn a_file_belongs_to_the_innermost_member() {
        let workspace = workspace(vec![member("root", ""), member("a", "a"), member("b", "a/b")]);
        let of = |file: &str| workspace.member_of(Path::new(file)).map(|member| &*member.name);
        assert_eq!(
            ["src/lib.rs", "a/src/lib.rs", "a/b/src/lib.rs", "ab/lib.rs"].map(of),
            [Some("root"), Some("a"), Some("b"), Some("root")]
        );
    }

    #[test]
    fn a_member_that_takes_in_a_source_of_another_is_known() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let workspace = Workspace::find(Some(&manifest)).unwrap();
        assert_eq!(workspace.borrowers(), ["mortmain-loom"]);
    }
}
