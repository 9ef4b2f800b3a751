//! What the tests of locks share.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mortmain::protocol::LockFile;
use mortmain::sys::{Kernel, Name, PathBytes};
use mortmain::{Error, ErrorKind, FileLock, LockTable};
use mortmain_harness::cell;
use mortmain_harness::guard::ChildGuard;
use mortmain_harness::part;
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::wait::Deadline;

pub(crate) const LAB: &str = env!("CARGO_BIN_EXE_mortmain-lab");

/// Runs the body of the current test in a cell, with the path of a file to be locked.
#[track_caller]
pub(crate) fn in_cell(body: impl FnOnce(&Path)) {
    cell::enter(LAB, || body(&scratch_root().join("ledger")));
}

/// Longer than anything here takes on a loaded machine.
pub(crate) fn soon() -> Deadline {
    Deadline::secs(20)
}

#[track_caller]
pub(crate) fn start(role: &str, path: &Path) -> ChildGuard {
    part::start(LAB, role, path).expect("the lab can be started")
}

/// A process that holds the lock.
#[track_caller]
pub(crate) fn holder(path: &Path) -> ChildGuard {
    let mut holder = start("lock-hold", path);
    assert_eq!(holder.lines().next_line(soon(), "that it has the lock").unwrap(), "locked");
    holder
}

/// The lock's own file.
pub(crate) fn file_of(path: &Path) -> PathBuf {
    path.with_extension("lock")
}

#[track_caller]
pub(crate) fn lock_at(path: &Path) -> FileLock {
    FileLock::at(path).expect("its directory is there")
}

/// The same lock, as another process would ask for it.
#[track_caller]
pub(crate) fn stranger(path: &Path) -> FileLock {
    FileLock::in_table(path, Arc::new(LockTable::new())).expect("its directory is there")
}

#[track_caller]
pub(crate) fn is_free(path: &Path) -> bool {
    stranger(path).try_lock().expect("it can be asked for").is_some()
}

/// One attempt after the other, on a kernel of the test's.
#[track_caller]
pub(crate) fn over<K: Kernel>(kernel: &K, path: &Path) -> LockFile<K> {
    let dir = path.parent().expect("it lies in a directory");
    let dir = PathBytes::from(dir.as_os_str().as_bytes());
    LockFile::open(kernel, &dir, Name::fixed("ledger.lock")).expect("its directory is there")
}

#[track_caller]
pub(crate) fn error_of<T>(answer: Result<T, Error>) -> (ErrorKind, String) {
    match answer {
        Ok(_) => panic!("it did not fail"),
        Err(error) => (error.kind(), error.to_string()),
    }
}
