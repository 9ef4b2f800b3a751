//! `mutants/killed-by.toml`: the test that noticed each removal the last time.
//!
//! ```toml
//! l3-lock-held = "mortmain-lab host_sweep commands::a_command_that_holds_its_lock_is_named"
//! ```
//!
//! It is a memory and decides nothing: a test that is named there has to fail again, and where it
//! does not, others are asked. But it is committed, so that a change of what proves a rule is seen.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use crate::builder::TestBinaries;
use crate::document::{read_toml, wrong};
use crate::run::Killer;
use crate::suite::Suite;

const PATH: &str = "mutants/killed-by.toml";

const HEAD: &str = "\
# The test that notices when the code under a check is gone: package, test binary, test.
# Written by `ci/prove --bless`; `ci/prove` lets each fail again.

";

/// A test by its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    pub(crate) package: String,
    pub(crate) binary: String,
    pub(crate) test: String,
}

impl Named {
    pub(crate) fn of(killer: &Killer) -> Named {
        let Killer { package, binary, test, .. } = killer.clone();
        Named { package, binary, test }
    }

    /// The suite of this test alone, if its binary was built and it can prove anything.
    pub(crate) fn suite(&self, binaries: &TestBinaries) -> Option<Suite> {
        let mut own = binaries
            .keys()
            .filter(|binary| binary.package == self.package && binary.name == self.binary);
        Suite::alone(own.next()?, &self.test)
    }

    fn parse(text: &str) -> Option<Named> {
        let mut words = text.splitn(3, ' ');
        let mut word = || words.next().filter(|word| !word.is_empty()).map(str::to_owned);
        Some(Named { package: word()?, binary: word()?, test: word()? })
    }
}

/// By the id of the check.
pub(crate) type KilledBy = BTreeMap<String, Named>;

/// Reads it from the root of a workspace.
///
/// # Errors
///
/// [`Exit::CatalogueWrong`](crate::exit::Exit::CatalogueWrong) when it cannot be understood.
pub(crate) fn read(root: &Path) -> anyhow::Result<KilledBy> {
    let entries: BTreeMap<String, String> = read_toml(root, PATH)?.unwrap_or_default();
    let named = entries.into_iter().map(|(id, text)| match Named::parse(&text) {
        Some(named) => Ok((id, named)),
        None => Err(wrong(PATH, format_args!("{id}: give package, test binary and test"))),
    });
    named.collect()
}

/// Writes it below the root of a workspace.
pub(crate) fn write(root: &Path, killed_by: &KilledBy) -> anyhow::Result<()> {
    fs::write(root.join(PATH), render(killed_by)).with_context(|| format!("cannot write {PATH}"))
}

fn render(killed_by: &KilledBy) -> String {
    let mut text = HEAD.to_owned();
    for (id, Named { package, binary, test }) in killed_by {
        let _ = writeln!(text, "{id} = \"{package} {binary} {test}\"");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let named = Named::parse("lab host_sweep a::b").expect("three words");
        let killed_by = KilledBy::from([("l1-x".to_owned(), named)]);
        let text = render(&killed_by);
        assert!(text.ends_with("\nl1-x = \"lab host_sweep a::b\"\n"), "{text}");
        let entries: BTreeMap<String, String> = toml::from_str(&text).unwrap();
        assert_eq!(Named::parse(&entries["l1-x"]).as_ref(), killed_by.get("l1-x"));
        assert_eq!(Named::parse("lab host_sweep"), None);
    }
}
