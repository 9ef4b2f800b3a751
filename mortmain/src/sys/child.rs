//! What a child does between fork and exec.
//!
//! The window in which a command exists and nothing is known of it. It is
//! closed by the order of three steps, before any hook or limit of the user:
//! the child leaves its owner's group, says who it is, and only then lets the
//! lock of its entry survive exec. If any of them fails the child ends and the
//! spawn says so. Whoever is killed in between, a sweep finds one of:
//! no identity and the lock free, so nothing ran; or the lock held; or an
//! identity.
//!
//! Everything here is async-signal-safe by construction: no allocation, no
//! lock, only the calls of [`ChildKernel`].

use alloc::boxed::Box;

use super::errno::Errno;
use super::types::{Handle, Home, ProcessId};
use crate::record::{COMMAND_TEXT_BYTES, encode_command};

/// The system as a child sees it between fork and exec: async-signal-safe
/// calls only.
pub trait ChildKernel {
    /// Makes a process group of the calling process's own.
    ///
    /// # Errors
    /// The kernel's.
    fn new_group(&self) -> Result<(), Errno>;

    /// Who the calling process is.
    ///
    /// # Errors
    /// The kernel's.
    fn identity(&self) -> Result<ChildIdentity, Errno>;

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// The kernel's.
    fn symlink(&self, dir: Handle, name: &IdName, text: &[u8]) -> Result<(), Errno>;

    /// Makes a copy of a descriptor, at a high number, that survives exec.
    ///
    /// # Errors
    /// The kernel's.
    fn keep_over_exec(&self, fd: Handle) -> Result<(), Errno>;
}

/// Who a child is, between fork and exec.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChildIdentity {
    /// Which process.
    pub process: ProcessId,
    /// Its pid namespace, which the owner may have chosen to differ from its own.
    pub pid_ns: u32,
    /// Its time namespace.
    pub time_ns: u32,
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
}

/// The name of a command's identity, `<n>.id`, without allocation and ending in
/// a NUL for the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdName {
    bytes: [u8; IdName::BYTES],
    len: u8,
}

impl IdName {
    /// Ten digits, `.id`, and the NUL.
    const BYTES: usize = 14;

    /// The name of entry `n`'s identity.
    #[must_use]
    pub fn new(n: u32) -> IdName {
        let mut digits = [0u8; 10];
        let mut start = digits.len();
        let mut rest = n;
        loop {
            start -= 1;
            digits[start] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        let mut bytes = [0u8; IdName::BYTES];
        let digits = &digits[start..];
        bytes[..digits.len()].copy_from_slice(digits);
        bytes[digits.len()..digits.len() + 3].copy_from_slice(b".id");
        let len = u8::try_from(digits.len() + 3).unwrap_or(0);
        IdName { bytes, len }
    }

    /// The name, without the NUL.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The name with the NUL after it.
    #[must_use]
    pub fn with_nul(&self) -> &[u8] {
        &self.bytes[..=usize::from(self.len)]
    }
}

/// What a child needs to know to do its part: data, no code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChildPlan {
    /// The claim's `commands` directory.
    pub commands: Handle,
    /// Name of the identity to write there.
    pub id_name: IdName,
    /// The entry's lock, held by a description that the child inherits.
    pub lock: Handle,
    /// Where the owner's numbers count.
    pub home: Home,
    /// The owner's user, which the command must keep.
    pub uid: u32,
    /// The owner's group, likewise.
    pub gid: u32,
    /// Value of `MORTMAIN_CLAIM` for the command (p4).
    pub cookie: Box<[u8]>,
}

/// The answer to a command that would run under another user or group: none of
/// the calls of the child's part fails with this number otherwise.
pub(crate) const OTHER_USER: Errno = Errno::EOPNOTSUPP;

/// The child's part of a spawn (p2). What follows it is exec.
///
/// # Errors
/// The number that a step failed with; the child then has to end without
/// running anything. `EOPNOTSUPP` means that the command would run as another
/// user or group than its owner, whose entry it could not be judged by.
///
/// # Crash behaviour
/// Killed before its end: the entry's lock falls with the child, so the entry
/// is *gone*, with or without an identity.
pub fn child_part<C: ChildKernel>(kernel: &C, plan: &ChildPlan) -> Result<(), Errno> {
    // CHECK(p2-own-group): the group is what is asked when the command has closed the lock.
    kernel.new_group()?;
    let me = kernel.identity()?;
    // CHECK(p2-same-user): another user's group answers EPERM, and its files could not be judged.
    if (me.uid, me.gid) != (plan.uid, plan.gid) {
        return Err(OTHER_USER);
    }
    let home = Home { pid_ns: me.pid_ns, time_ns: me.time_ns, ..plan.home };
    let mut text = [0u8; COMMAND_TEXT_BYTES];
    encode_command(&me.process, &home, &mut text)?;
    // CHECK(p2-id-before-exec): a command that runs without a name looks like one that never ran
    // as soon as it closes the lock.
    kernel.symlink(plan.commands, &plan.id_name, &text)?;
    // CHECK(p2-lock-survives): held, it says alive in every pid namespace.
    kernel.keep_over_exec(plan.lock)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::decode_command;
    use crate::sys::Pid;
    use alloc::vec::Vec;
    use core::cell::RefCell;

    /// A child in other namespaces than its owner.
    #[derive(Default)]
    struct Elsewhere(RefCell<Vec<u8>>);

    impl ChildKernel for Elsewhere {
        fn new_group(&self) -> Result<(), Errno> {
            Ok(())
        }

        fn identity(&self) -> Result<ChildIdentity, Errno> {
            let process = ProcessId { pid: Pid(10), start_ticks: 7, pidfs: 0 };
            Ok(ChildIdentity { process, pid_ns: 3, time_ns: 4, uid: 0, gid: 0 })
        }

        fn symlink(&self, _: Handle, _: &IdName, text: &[u8]) -> Result<(), Errno> {
            self.0.borrow_mut().extend(text);
            Ok(())
        }

        fn keep_over_exec(&self, _: Handle) -> Result<(), Errno> {
            Ok(())
        }
    }

    #[test]
    fn a_command_is_recorded_where_it_counts_its_own_number() {
        let owner = Home { boot: [9; 16], pid_ns: 1, time_ns: 2 };
        let plan = ChildPlan {
            commands: Handle(3),
            id_name: IdName::new(0),
            lock: Handle(4),
            home: owner,
            uid: 0,
            gid: 0,
            cookie: Box::default(),
        };
        let child = Elsewhere::default();
        child_part(&child, &plan).expect("nothing fails");
        let record = decode_command(&child.0.borrow()).expect("it can be read");
        assert_eq!(record.home, Home { pid_ns: 3, time_ns: 4, ..owner });
    }

    #[test]
    fn id_names_are_decimal_and_end_in_nul() {
        for (n, want) in [(0, "0.id"), (7, "7.id"), (10, "10.id"), (u32::MAX, "4294967295.id")] {
            let name = IdName::new(n);
            assert_eq!(name.bytes(), want.as_bytes());
            assert_eq!(name.with_nul().last(), Some(&0));
        }
    }
}
