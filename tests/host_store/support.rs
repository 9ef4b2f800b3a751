//! What the tests of stores share.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use mortmain::protocol::StoreFile;
use mortmain::sys::{Kernel, Name, PathBytes};
use mortmain::{Error, ErrorKind, FileLock, LockTable, Store};
use mortmain_harness::cell;
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::wait::Deadline;

pub(crate) const LAB: &str = env!("CARGO_BIN_EXE_mortmain-lab");

/// Runs the body of the current test in a cell, with the path of a file to be stored.
#[track_caller]
pub(crate) fn in_cell(body: impl FnOnce(&Path)) {
    cell::enter(LAB, || body(&scratch_root().join("data")));
}

/// Longer than anything here takes on a loaded machine.
pub(crate) fn soon() -> Deadline {
    Deadline::secs(20)
}

#[track_caller]
pub(crate) fn store_at(path: &Path) -> Store {
    Store::at(path).expect("its directory is there")
}

/// Whether another process could take the store's lock.
#[track_caller]
pub(crate) fn is_free(path: &Path) -> bool {
    let lock = FileLock::in_table(path, Arc::new(LockTable::new())).expect("it can be opened");
    lock.try_lock().expect("it can be asked for").is_some()
}

/// Writes a content, on a kernel of the test's.
pub(crate) fn put<K: Kernel>(kernel: &K, path: &Path, content: &[u8]) -> Result<(), Error> {
    let dir = path.parent().expect("it lies in a directory").as_os_str().as_bytes();
    let file = StoreFile::open(kernel, &PathBytes::from(dir), Name::fixed("data"))?;
    let lock = file.lock().attempt()?.expect("nobody else wants it");
    file.write(&lock, content)?;
    lock.unlock()
}

#[track_caller]
pub(crate) fn error_of<T>(answer: Result<T, Error>) -> (ErrorKind, String) {
    match answer {
        Ok(_) => panic!("it did not fail"),
        Err(error) => (error.kind(), error.to_string()),
    }
}
