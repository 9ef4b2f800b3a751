//! A hook of a user's own that uses the claim between fork and exec, which takes an `unsafe` to
//! install: the only one of these tests.

#![expect(unsafe_code, reason = "a hook between fork and exec is unsafe to install")]

use std::io;
use std::os::unix::process::CommandExt;
use std::sync::Arc;
use std::time::Duration;

use mortmain::{Claim, ErrorKind};
use mortmain_harness::cell::Entry;

use crate::support::{LAB, ground};

#[test]
fn a_hook_that_uses_the_claim_is_refused_and_does_not_wait_for_its_parent() {
    // Its parent has the claim locked while it waits for this child.
    Entry::new(LAB).deadline(Duration::from_secs(15)).run(|| {
        let ground = ground();
        let claim = Arc::new(ground.namespace().create().unwrap());
        let mut command = claim.command("true");
        let used = Arc::clone(&claim);
        let hook = move || match use_claim(&used) {
            Some(ErrorKind::Forked) => Ok(()),
            _ => Err(io::Error::from_raw_os_error(nix::errno::Errno::EPROTO as i32)),
        };
        // SAFETY: the hook allocates, which is more than a hook may do beside other threads. Here
        // the only other thread waits for this test's to end, and holds no lock of the allocator.
        unsafe { command.pre_exec(hook) };
        assert!(command.status().unwrap().success());
    });
}

fn use_claim(claim: &Claim) -> Option<ErrorKind> {
    claim.command("true").spawn().err().map(|error| error.kind())
}
