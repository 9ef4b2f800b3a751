//! The notes: texts in one file, which servers and helper programs change one after the other.
//!
//! The file is a list of strings in JSON, and is changed as a whole ([`Store`]): whoever is killed at
//! whatever moment leaves the old notes or the new ones. What somebody else has made of the file is
//! put aside and told.

use std::path::Path;

use mortmain::{Error, Store};

/// The longest file of notes, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// A file of notes.
#[derive(Clone, Debug)]
pub(crate) struct Notes(Store);

/// What is to be done to the notes.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A new one at the end.
    Add(String),
    /// The one of this number, counted from 1, is taken away.
    Remove(usize),
}

impl Change {
    /// The new notes; `None` when there is nothing to be done.
    fn of(&self, old: Option<&[u8]>) -> Option<Vec<u8>> {
        // OK because the store has asked `parse` before.
        let mut notes = old.and_then(|old| parse(old).ok()).unwrap_or_default();
        match self {
            Change::Add(text) => notes.push(text.clone()),
            Change::Remove(number) => {
                let at = number.checked_sub(1).filter(|at| *at < notes.len())?;
                notes.remove(at);
            }
        }
        serde_json::to_vec(&notes).ok()
    }
}

impl Notes {
    /// Those of a file, which need not exist.
    pub(crate) fn at(path: &Path) -> Result<Notes, Error> {
        let valid = |content: &[u8]| parse(content).map(drop);
        Ok(Notes(Store::at(path)?.bytes_max(BYTES_MAX).valid_if(valid)))
    }

    /// All of them.
    pub(crate) async fn all(&self) -> Result<Vec<String>, Error> {
        let content = self.0.read_async().await?;
        // OK because the store has asked `parse` before.
        Ok(content.and_then(|content| parse(&content).ok()).unwrap_or_default())
    }

    /// Changes them. Answers whether there was anything to be done.
    pub(crate) fn change(&self, change: &Change) -> Result<bool, Error> {
        self.0.update(|old| change.of(old))
    }

    /// The same without holding up anything else.
    pub(crate) async fn change_async(&self, change: Change) -> Result<bool, Error> {
        self.0.update_async(move |old| change.of(old)).await
    }
}

fn parse(content: &[u8]) -> Result<Vec<String>, String> {
    serde_json::from_slice(content).map_err(|error| format!("it is no list of notes: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_added_at_the_end_and_removed_by_their_number() {
        let add = |old: Option<&[u8]>, text: &str| Change::Add(text.into()).of(old);
        let one = add(None, "one").expect("there is something to be done");
        let two = add(Some(&one), "two").expect("there is something to be done");
        assert_eq!(two, br#"["one","two"]"#);
        assert_eq!(Change::Remove(1).of(Some(&two)).as_deref(), Some(&br#"["two"]"#[..]));
        for none in [0, 3, usize::MAX] {
            assert_eq!(Change::Remove(none).of(Some(&two)), None);
        }
    }

    #[test]
    fn what_is_no_list_of_texts_is_refused() {
        for wrong in ["", "{}", "[1]", "[\"a\"", "\"a\""] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert_eq!(parse(b"[]"), Ok(vec![]));
    }
}
