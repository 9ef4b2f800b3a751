//! What somebody does to a root who means no good, or who only made a backup.

use std::fs;
use std::io;
use std::os::unix::fs::{lchown, symlink};
use std::path::{Path, PathBuf};

use super::Outcome;
use super::plant;
use super::stage::Stage;
use super::truth::inode;
use crate::forge::Record;
use crate::scenario::story::{Base, Forged, Place, Sweeper};
use crate::scenario::telling::PREFIX;

impl Stage<'_> {
    /// Puts a link in the place of whatever is there.
    pub(super) fn plant_link(&mut self, text: &str, at: &Place) -> Outcome<()> {
        let path = self.resolve_to_change(at)?;
        plant::set_aside(&path, &self.attic)?;
        symlink(text, &path)?;
        self.know(&path)
    }

    /// Remembers what was put into the root.
    pub(super) fn know(&mut self, path: &Path) -> Outcome<()> {
        if path.parent() == Some(&self.root) {
            self.planted_inodes.push(inode(path)?);
        }
        Ok(())
    }

    /// Changes a record, as who may write to the claim can.
    pub(super) fn forge(&mut self, at: &Place, change: Forged) -> Outcome<()> {
        let path = self.resolve(at)?;
        Record::change(&path, |record| {
            record.process.pid = change.pid.unwrap_or(record.process.pid);
            record.version = change.version.unwrap_or(record.version);
        })?;
        Ok(())
    }

    /// Copies something, in the place of whatever is there.
    pub(super) fn duplicate(&mut self, what: &Place, to: &Place) -> Outcome<()> {
        let from = self.resolve(what)?;
        let to = self.resolve_to_change(to)?;
        plant::set_aside(&to, &self.attic)?;
        plant::copy(&from, &to)?;
        self.know(&to)
    }

    /// Renames something.
    pub(super) fn move_to(&mut self, what: &Place, to: &Place) -> Outcome<()> {
        let from = self.resolve_to_change(what)?;
        let target = self.resolve_to_change(to)?;
        fs::rename(&from, &target)?;
        let came_from = self.moved.iter().find(|(_, place)| *place == what);
        let precious = match &what.base {
            Base::Precious(name) if what.rest.is_empty() => Some(name.clone()),
            _ => came_from.map(|(name, _)| name.clone()),
        };
        if let Some(name) = precious {
            self.moved.insert(name, to.clone());
        }
        self.know(&target)
    }

    /// Where a precious directory is by now.
    pub(super) fn precious_path(&self, name: &str) -> Outcome<PathBuf> {
        match self.moved.get(name) {
            // A place in a precious directory that was moved is found by this, too.
            Some(place) => self.resolve(place),
            None => Ok(self.precious[name].0.clone()),
        }
    }

    /// Whether there is anything at a place.
    pub(super) fn is_there(&self, place: &Place) -> bool {
        self.resolve(place).is_ok_and(|path| path.symlink_metadata().is_ok())
    }

    /// The prefix of the claim of a server.
    pub(super) fn prefix_of(&self, server: &str) -> String {
        self.story.server(server).prefix.clone().unwrap_or_else(|| PREFIX.into())
    }

    /// The prefix of the claims that a sweeper looks at.
    pub(super) fn prefix_for(&self, sweeper: &Sweeper) -> String {
        sweeper.prefix.clone().unwrap_or_else(|| PREFIX.into())
    }
}

/// Gives a tree to a user.
pub(super) fn give(path: &Path, uid: u32) -> io::Result<()> {
    lchown(path, Some(uid), Some(uid))?;
    if path.symlink_metadata()?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), uid)?;
        }
    }
    Ok(())
}
