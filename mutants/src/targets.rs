//! Test binaries that are asked of cargo by name, where not all of them are needed.
//!
//! Most of a build's time goes into test binaries, and most of those prove nothing in a given run.

use std::collections::BTreeSet;

use crate::killed_by::Named;
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
    /// Adds the binary of a test. False if cargo cannot be asked for it alone.
    #[must_use]
    pub(crate) fn add(&mut self, workspace: &Workspace, named: &Named) -> bool {
        let member = workspace.members.iter().find(|member| member.name == named.package);
        let Some(member) = member else { return false };
        if member.integration.contains(&named.binary) {
            self.integration.insert(named.binary.clone());
        } else if member.library.as_ref() == Some(&named.binary) {
            self.libraries = true;
        } else {
            return false;
        }
        self.packages.insert(named.package.clone());
        true
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

    fn named(package: &str, binary: &str) -> Named {
        let (package, binary) = (package.to_owned(), binary.to_owned());
        Named { package, binary, test: "t".to_owned() }
    }

    #[test]
    fn what_is_needed_is_asked_for_by_name() {
        let mut lab = member("lab", "");
        lab.integration = ["host_sweep", "scenarios", "world_core"].map(str::to_owned).into();
        let mut core = member("core", "core");
        core.library = Some("core_of_it".to_owned());
        let workspace = workspace(vec![lab, core]);
        let mut targets = Targets::default();
        assert!(targets.add(&workspace, &named("lab", "host_sweep")));
        assert_eq!(targets.arguments(), ["--package", "lab", "--test", "host_sweep"]);
        assert!(targets.add(&workspace, &named("core", "core_of_it")));
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
            assert!(!targets.add(&workspace, &named(package, binary)), "{package} {binary}");
        }
    }

    #[test]
    fn where_nothing_tells_stories_none_is_asked_for() {
        let workspace = workspace(vec![member("lab", "")]);
        assert!(!Targets::default().add_stories(&workspace));
    }
}
