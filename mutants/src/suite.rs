//! The tests of a workspace, sorted into suites.
//!
//! A suite is the tests of one kind in one test binary. The kinds follow the layout of
//! the repository:
//!
//! | kind | tests |
//! |---|---|
//! | host | of a binary whose name begins with `host`, or with a name that begins with `host::` |
//! | world | of `mortmain-harness`, of a binary whose name begins with `world`, or with a name that begins with `world::` |
//! | unit | all others |
//!
//! Tests of a binary whose name begins with `tidy` belong to no suite: they read the
//! source, and would notice that a line is gone, not that the program does wrong.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::builder::BinaryId;

/// What a test works on. In the order in which suites run: from quick to slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Functions
    Unit,
    /// The simulated kernel
    World,
    /// The real kernel, with real processes
    Host,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Unit, Kind::World, Kind::Host];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Unit => "unit",
            Kind::World => "world",
            Kind::Host => "host",
        }
    }

    /// The kind of a test, or none for one that cannot prove anything.
    fn of(binary: &BinaryId, test: &str) -> Option<Kind> {
        if binary.name.starts_with("tidy") {
            None
        } else if binary.name.starts_with("host") || test.starts_with("host::") {
            Some(Kind::Host)
        } else if binary.name.starts_with("world")
            || binary.package == "mortmain-harness"
            || test.starts_with("world::")
        {
            Some(Kind::World)
        } else {
            Some(Kind::Unit)
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Tests of one kind in one binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suite {
    pub(crate) binary: BinaryId,
    pub(crate) kind: Kind,
    pub(crate) tests: Vec<String>,
    /// Whether these are all tests that the binary runs unasked.
    pub(crate) whole: bool,
}

impl Suite {
    /// A suite of one test; none if it can prove nothing.
    pub(crate) fn alone(binary: &BinaryId, test: &str) -> Option<Suite> {
        let kind = Kind::of(binary, test)?;
        Some(Suite { binary: binary.clone(), kind, tests: vec![test.to_owned()], whole: false })
    }

    /// Sorts the tests of a binary, given what it lists and what it lists as ignored.
    pub(crate) fn sort(binary: &BinaryId, listed: &str, ignored: &str) -> Vec<Suite> {
        let ignored: Vec<&str> = names(ignored).collect();
        let tests: Vec<&str> = names(listed).filter(|name| !ignored.contains(name)).collect();
        let mut suites = Vec::new();
        for kind in Kind::ALL {
            let own = tests.iter().filter(|test| Kind::of(binary, test) == Some(kind));
            let own: Vec<String> = own.map(|&test| test.to_owned()).collect();
            if !own.is_empty() {
                suites.push(Suite {
                    binary: binary.clone(),
                    kind,
                    whole: own.len() == tests.len(),
                    tests: own,
                });
            }
        }
        suites
    }
}

/// The tests in a terse list, whose lines are `path::name: test`.
fn names(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter_map(|line| line.strip_suffix(": test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(package: &str, name: &str) -> BinaryId {
        BinaryId { package: package.to_owned(), target: "test".to_owned(), name: name.to_owned() }
    }

    #[test]
    fn kinds_follow_package_binary_and_name() {
        let of = |package, name, test| Kind::of(&binary(package, name), test);
        assert_eq!(of("mortmain", "mortmain", "sweep::tests::x"), Some(Kind::Unit));
        assert_eq!(of("mortmain", "mortmain", "host::x"), Some(Kind::Host));
        assert_eq!(of("mortmain", "host_files", "x"), Some(Kind::Host));
        assert_eq!(of("mortmain-harness", "mortmain_harness", "x"), Some(Kind::World));
        assert_eq!(of("mortmain-harness", "host_cell", "x"), Some(Kind::Host));
        assert_eq!(of("mortmain-lab", "world_sweep", "x"), Some(Kind::World));
        assert_eq!(of("mortmain-lab", "scenarios", "world::x"), Some(Kind::World));
        assert_eq!(of("mortmain-lab", "cli", "x"), Some(Kind::Unit));
        assert_eq!(of("mortmain-lab", "tidy", "x"), None);
    }

    #[test]
    fn a_binary_with_two_kinds_becomes_two_suites() {
        let listed = "a: test\nhost::b: test\nc: test\nd: benchmark\n";
        let suites = Suite::sort(&binary("p", "p"), listed, "c: test\n");
        let told: Vec<(Kind, &[String], bool)> =
            suites.iter().map(|s| (s.kind, &*s.tests, s.whole)).collect();
        let (unit, host) = (["a".to_owned()], ["host::b".to_owned()]);
        assert_eq!(told, [(Kind::Unit, &unit[..], false), (Kind::Host, &host[..], false)]);
    }

    #[test]
    fn a_suite_of_all_tests_is_whole() {
        let suites = Suite::sort(&binary("p", "p"), "a: test\nb: test\n", "b: test\n");
        assert_eq!(suites.len(), 1);
        assert!(suites[0].whole);
        assert!(Suite::sort(&binary("p", "tidy"), "a: test\n", "").is_empty());
    }
}
