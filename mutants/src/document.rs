//! The TOML files of a workspace: what people declare in them, and what is remembered.
//!
//! Invariant: one that cannot be understood is an error, and never taken for one that is not there.

use std::fmt::Display;
use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use serde::de::DeserializeOwned;

use crate::exit::{Exit, Stop};

/// Reads a file, by its path from the root of a workspace. Nothing if it is not there.
///
/// # Errors
///
/// [`Exit::CatalogueWrong`] when it cannot be understood.
pub(crate) fn read_toml<T: DeserializeOwned>(root: &Path, path: &str) -> anyhow::Result<Option<T>> {
    match fs::read_to_string(root.join(path)) {
        Ok(text) => Ok(Some(toml::from_str(&text).map_err(|error| wrong(path, error))?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {path}")),
    }
}

/// What does not fit in a file.
pub(crate) fn wrong(path: &str, what: impl Display) -> anyhow::Error {
    Stop::new(Exit::CatalogueWrong, format!("{path}: {what}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::exit_of;
    use crate::tree::tests::{Directory, put};
    use std::collections::BTreeMap;

    #[test]
    fn what_is_not_there_is_nothing_and_what_is_no_toml_an_error() {
        let base = Directory::new("document");
        let read = || read_toml::<BTreeMap<String, u8>>(&base.0, "a.toml");
        assert_eq!(read().unwrap(), None);
        put(base.0.join("a.toml"), "one = 1");
        assert_eq!(read().unwrap(), Some(BTreeMap::from([("one".to_owned(), 1)])));
        put(base.0.join("a.toml"), "one = ");
        let error = read().unwrap_err();
        assert_eq!(exit_of(&error), Exit::CatalogueWrong);
        assert!(error.to_string().starts_with("a.toml: "), "{error}");
    }
}
