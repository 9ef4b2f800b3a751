//! A hook as a user of the library may install one, which takes an `unsafe`:
//! the only one of these tests.

#![expect(unsafe_code, reason = "a hook between fork and exec is unsafe to install")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Adds a hook that refuses with this number.
pub(crate) fn refuse(command: &mut Command, number: i32) {
    let hook = move || Err(io::Error::from_raw_os_error(number));
    // SAFETY: the hook makes an error of a number, which allocates nothing, and does nothing else.
    unsafe { command.pre_exec(hook) };
}
