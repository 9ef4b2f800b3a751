//! Directories for tests on real processes. They lie on the cell's own tmpfs and vanish with it.
//!
//! Invariant: outside a cell there is no scratch directory. So a test that forgot its cell fails
//! before it leaves anything in a real temporary directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cell;

/// Makes a fresh directory on the cell's own tmpfs.
///
/// # Panics
///
/// Outside a cell, and when the directory cannot be made.
#[must_use]
#[track_caller]
pub fn scratch_root() -> PathBuf {
    let Some(root) = cell::scratch_mount() else {
        panic!(
            "there is no scratch directory outside a cell: tests on real processes run in a cell, \
             so wrap the body of this test in `mortmain_harness::cell::enter`"
        );
    };
    match fresh_below(&root) {
        Ok(dir) => dir,
        Err(e) => panic!("cannot make a scratch directory below {}: {e}", root.display()),
    }
}

/// The name holds the pid, since several processes of a cell may ask at once; a pid that has come
/// round again meets its predecessor's names and counts past them.
fn fresh_below(root: &Path) -> io::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = root.join(format!("scratch-{}-{number}", std::process::id()));
        match fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}
