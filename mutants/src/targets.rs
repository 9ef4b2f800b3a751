//! Test binaries that are asked of cargo by name, where not all of them are needed.
//!
//! Most of a build's time goes into test binaries, and most of those prove nothing in a given run.

use std::collections::BTreeSet;

use crate::stories;
use crate::workspace::Workspace;

/// Integration tests by name, and the tests in the libraries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Targets {
    packages: BTreeSet<String>,
    integration: BTreeSet<String>,
    libraries: bool,
}

impl Targets {
    /// Adds a test binary of a package. False if cargo cannot be asked for it alone.
    #[must_use]
    pub(crate) fn add(&mut self, workspace: &Workspace, package: &str, binary: &str) -> bool {
        let member = workspace.members.iter().find(|member| member.name == package);
        let Some(member) = member else { return false };
        if member.integration.contains(binary) {
            self.integration.insert(binary.to_owned());
        } else if member.library.as_deref() == Some(binary) {
            self.libraries = true;
        } else {
            return false;
        }
        self.packages.insert(package.to_owned());
        true
    }

    /// The binaries of these names, in these packages or all. Nothing if none is named, or cargo
    /// cannot be asked for one of them alone.
    pub(crate) fn of(
        workspace: &Workspace,
        packages: &[String],
        binaries: &[String],
    ) -> Option<Targets> {
        let mut targets = Targets::default();
        for binary in binaries {
            let members = workspace.subjects();
            let selected = members
                .filter(|member| packages.is_empty() || packages.contains(&member.name))
                .map(|member| (member.name.clone(), binary.clone()));
            let added: Vec<bool> = selected
                .map(|(package, binary)| targets.add(workspace, &package, &binary))
                .collect();
            if !added.contains(&true) {
                return None;
            }
        }
        (!binaries.is_empty()).then_some(targets)
    }

    /// Adds the binary that tells the stories. False if there is none.
    #[must_use]
    pub(crate) fn add_stories(&mut self, workspace: &Workspace) -> bool {
        let tells = |name: &&String| **name == stories::BINARY;
        let mut members = workspace.subjects();
        let teller = members.find(|member| member.integration.iter().any(|name| tells(&name)));
        let Some(teller) = teller else { return false };
        self.packages.insert(teller.name.clone());
        self.integration.insert(stories::BINARY.to_owned());
        true
    }

    /// The arguments for `cargo test`.
    pub(crate) fn arguments(&self) -> Vec<&str> {
        let packages = self.packages.iter().flat_map(|name| ["--package", name]);
        let tests = self.integration.iter().flat_map(|name| ["--test", name]);
        packages.chain(tests).chain(self.libraries.then_some("--lib")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::{member, workspace};

    #[test]
    fn what_is_needed_is_asked_for_by_name() {
        let mut lab = member("lab", "");
        lab.integration = ["host_sweep", "scenarios", "world_core"].map(str::to_owned).into();
        let mut core = member("core", "core");
        core.library = Some("core_of_it".to_owned());
        let workspace = workspace(vec![lab, core]);
        let mut targets = Targets::default();
        assert!(targets.add(&workspace, "lab", "host_sweep"));
        assert_eq!(targets.arguments(), ["--package", "lab", "--test", "host_sweep"]);
        assert!(targets.add(&workspace, "core", "core_of_it"));
        assert!(targets.add_stories(&workspace));
        let expected = [
            "--package",
            "core",
            "--package",
            "lab",
            "--test",
            "host_sweep",
            "--test",
            "scenarios",
        ];
        assert_eq!(targets.arguments(), [&expected[..], &["--lib"]].concat());
        for (package, binary) in [("lab", "lab"), ("core", "host_sweep"), ("other", "host_sweep")] {
            assert!(!targets.add(&workspace, package, binary), "{package} {binary}");
        }
    }

    #[test]
    fn a_name_stands_for_what_has_it_in_any_package_that_is_asked_for() {
        let mut lab = member("lab", "");
        lab.integration = ["host_sweep"].map(str::to_owned).into();
        let mut core = member("core", "core");
        core.library = Some("core".to_owned());
        let workspace = workspace(vec![lab, core]);
        let of = |packages: &[&str], binaries: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            let (packages, binaries): (Vec<String>, Vec<String>) =
                (owned(packages), owned(binaries));
            let targets = Targets::of(&workspace, &packages, &binaries)?;
            Some(targets.arguments().join(" "))
        };
        assert_eq!(of(&[], &["core"]).as_deref(), Some("--package core --lib"));
        let both = "--package core --package lab --test host_sweep --lib";
        assert_eq!(of(&[], &["core", "host_sweep"]).as_deref(), Some(both));
        assert_eq!(of(&["lab"], &["core"]), None);
        assert_eq!(of(&[], &[]), None);
    }

    #[test]
    fn where_nothing_tells_stories_none_is_asked_for() {
        let workspace = workspace(vec![member("lab", "")]);
        assert!(!Targets::default().add_stories(&workspace));
    }
}
