//! Designs for directories that outlive their owner: the implementation, and those that it was
//! chosen over.
//!
//! Each is written as a product would write it, as well as its idea lets it be, over the same seam
//! as the implementation ([`mortmain::sys::Kernel`]); what some of them need beside that stands in
//! [`System`]. None knows that it is tested. The lab runs them all with the same programs, and
//! `docs/subjects.md` shows what it finds.
//!
//! A [`Design`] of one's own is one more implementation of that trait.
//!
//! Invariants: no state outlives a call; a process's next call depends on the answers so far and on
//! nothing else. The crate has no standard library, which is how the compiler holds it to that.
#![no_std]

extern crate alloc;

mod age;
mod design;
mod directory;
mod inherited_lease;
mod lock_file;
mod marker;
mod mortmain_itself;
mod pid;
mod second_look;
mod system;

pub use self::age::Age;
pub use self::design::{Design, Error};
pub use self::inherited_lease::InheritedLease;
pub use self::lock_file::LockFile;
pub use self::marker::Marker;
pub use self::mortmain_itself::Mortmain;
pub use self::pid::OwnerPid;
pub use self::second_look::SecondLook;
pub use self::system::{Beyond, System, SystemExt};
