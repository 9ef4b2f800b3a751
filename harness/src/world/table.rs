//! Tables that are forked cheaply and fingerprinted as they change.
//!
//! A clone shares every row with its original; a change copies the list of
//! rows and the one row that it touches. The fingerprint of the whole is the
//! sum of those of the rows, so a change costs one row, too.
//!
//! Rows stand in the order of their keys, so whoever walks a table meets the
//! same rows in the same order in every run.

use std::hash::Hash;
use std::sync::Arc;

use super::fingerprint::Fingerprint;

#[derive(Clone, Debug)]
struct Row<K, V> {
    key: K,
    print: Fingerprint,
    value: Arc<V>,
}

/// A table of few rows.
#[derive(Clone, Debug)]
pub(crate) struct Table<K, V> {
    /// Goes into every fingerprint, so that rows of different tables with the
    /// same bits differ.
    tag: u8,
    rows: Arc<Vec<Row<K, V>>>,
    print: Fingerprint,
}

impl<K: Copy + Ord + Hash, V: Clone + Hash> Table<K, V> {
    pub(crate) fn new(tag: u8) -> Table<K, V> {
        Table { tag, rows: Arc::default(), print: Fingerprint::default() }
    }

    /// The fingerprint of all rows.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.print
    }

    fn find(&self, key: K) -> Result<usize, usize> {
        self.rows.binary_search_by(|row| row.key.cmp(&key))
    }

    pub(crate) fn get(&self, key: K) -> Option<&V> {
        let at = self.find(key).ok()?;
        Some(&self.rows[at].value)
    }

    pub(crate) fn contains(&self, key: K) -> bool {
        self.find(key).is_ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.rows.iter().map(|row| (row.key, &*row.value))
    }

    /// Puts a row in, in place of one with the same key.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        let print = Fingerprint::of(&(self.tag, key, &value));
        self.print = self.print.with(print);
        let row = Row { key, print, value: Arc::new(value) };
        let found = self.find(key);
        let rows = Arc::make_mut(&mut self.rows);
        match found {
            Ok(at) => {
                self.print = self.print.without(rows[at].print);
                rows[at] = row;
            }
            Err(at) => rows.insert(at, row),
        }
    }

    pub(crate) fn remove(&mut self, key: K) {
        if let Ok(at) = self.find(key) {
            let row = Arc::make_mut(&mut self.rows).remove(at);
            self.print = self.print.without(row.print);
        }
    }

    /// Changes a row.
    ///
    /// # Panics
    /// When there is none with this key.
    pub(crate) fn update<R>(&mut self, key: K, change: impl FnOnce(&mut V) -> R) -> R {
        let at = self.find(key).unwrap_or_else(|_| panic!("no such row"));
        let row = &mut Arc::make_mut(&mut self.rows)[at];
        let value = Arc::make_mut(&mut row.value);
        let result = change(value);
        let print = Fingerprint::of(&(self.tag, key, &*value));
        self.print = self.print.without(row.print).with(print);
        row.print = print;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_clone_keeps_what_the_original_changes() {
        let mut table = Table::new(0);
        table.insert(2, "two");
        let before = table.clone();
        table.update(2, |value| *value = "deux");
        table.insert(1, "un");
        assert_eq!(before.iter().collect::<Vec<_>>(), [(2, &"two")]);
        assert_eq!(table.iter().collect::<Vec<_>>(), [(1, &"un"), (2, &"deux")]);
        assert_ne!(before.fingerprint(), table.fingerprint());
    }

    proptest! {
        /// Whatever the way, tables with the same rows have the same
        /// fingerprint, and tables with other rows another.
        #[test]
        fn the_fingerprint_is_that_of_the_rows(moves in prop::collection::vec((0u8..3, 0u8..6, 0u8..3), 0..40)) {
            let mut table = Table::new(0);
            let mut model = std::collections::BTreeMap::new();
            for (kind, key, value) in moves {
                match kind {
                    0 => { table.insert(key, value); model.insert(key, value); }
                    1 => { table.remove(key); model.remove(&key); }
                    _ => if model.contains_key(&key) {
                        table.update(key, |old| *old = value);
                        model.insert(key, value);
                    }
                }
            }
            let mut fresh = Table::new(0);
            for (key, value) in &model {
                fresh.insert(*key, *value);
            }
            prop_assert_eq!(table.fingerprint(), fresh.fingerprint());
            prop_assert_eq!(table.is_empty(), model.is_empty());
            prop_assert!(table.iter().map(|(k, v)| (k, *v)).eq(model));
            fresh.insert(77, 1);
            prop_assert_ne!(table.fingerprint(), fresh.fingerprint());
        }
    }
}
