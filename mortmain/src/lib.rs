//! Directories that are reclaimed safely after their owner is killed.
//!
//! A process that is killed leaves its directories behind, and perhaps a
//! command that still works in one of them. Whoever cleans up later has to
//! decide, from another process, that nobody needs them any more. This crate
//! makes that decision by proofs: a lock that the kernel drops at the owner's
//! death, the owner's identity, and a registry of the commands that the owner
//! started. What cannot be proved is kept, and told.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scratch = mortmain::sandbox!("doc-crate")?;
//! # let root = scratch.path();
//! use mortmain::Namespace;
//!
//! let namespace = Namespace::at(root, "my-tool")?;
//! let claim = namespace.create()?;
//!
//! // Survives a SIGKILL of this process, and is known to whoever sweeps then.
//! let mut command = claim.command("sh");
//! let mut child = command.args(["-c", "echo done > result"]).current_dir(claim.path()).spawn()?;
//! child.wait()?;
//!
//! // What killed instances left behind, with a verdict for each.
//! for entry in &namespace.sweep().entries {
//!     println!("{entry}"); // my-tool-mfzxgylcmfzg: kept: its lease is held
//! }
//! claim.close()?;
//! # Ok(()) }
//! ```
//!
//! Beside claims there are, for the same programs: [`FileLock`], a lock on a file's
//! name that dies with its holder; [`Store`], a file that is changed as a whole;
//! [`activation`], the sockets that a service manager passes; and [`Sandbox`],
//! directories for tests that do not pile up.
//!
//! # What it promises
//!
//! A claim is not removed while its owner, or a command that was started
//! through it, lives; nothing outside a claim is touched; a probe that cannot
//! tell keeps. When all of them have ended, the next sweep removes it, whatever
//! was killed at whatever system call before. Every claim that is kept is told
//! with its reason.
//!
//! # What it does not
//!
//! A process that left its command's process group *and* closed the descriptors
//! that it inherited is not seen. The rules, with the known escapes and leaks,
//! stand in `docs/protocol.md` of the repository.
//!
//! # Platform
//!
//! Linux 5.6 or newer, with `/proc` mounted, on a local file system; elsewhere
//! creation fails and says why. With the feature `tokio` locks and stores can be
//! awaited. Without the feature `host` (on by default) the
//! crate is the protocol alone, over any [`sys::Kernel`], without std.
#![no_std]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(feature = "host")]
extern crate std;

mod claim;
pub mod cookie;
mod create;
mod error;
mod evidence;
#[cfg(feature = "host")]
mod face;
mod fskind;
mod grammar;
mod life;
mod lock;
mod probe;
mod record;
mod registry;
mod remove;
mod report;
mod root;
mod sandbox;
mod store;
mod stray;
mod sweep;
pub mod sys;
#[cfg(feature = "host")]
mod turns;
mod unclaimed;
mod verdict;
mod walk;

pub use self::claim::Closed;
pub use self::error::{Error, ErrorKind};
pub use self::evidence::{Ended, Evidence, Finding, Hindrance, Obstacle, Seen, User};
#[cfg(feature = "host")]
#[doc(hidden)]
pub use self::face::SandboxSite;
#[cfg(feature = "host")]
pub use self::face::{
    BackgroundSweep, Child, Claim, CloseError, Command, FileLock, FileLockGuard, LockTable,
    Namespace, Sandbox, Store, SweepOptions, Unclaimed, activation,
};
pub use self::fskind::FsKind;
pub use self::grammar::{ClaimName, Place, Prefix, Random};
pub use self::life::Scan;
pub use self::probe::{Candidate, Prober, Probes};
pub use self::remove::{Condemned, Removal, Remover, Removes};
pub use self::report::{Entry, Findings, Outcome, Report, Trouble};
pub use self::stray::{Stray, Strays};
pub use self::verdict::{Proof, Question, Verdict, verdict};

#[cfg(all(doctest, feature = "host"))]
#[doc = include_str!("../../README.md")]
struct Readme;

/// The protocol over any kernel: what the public face and the lab drive.
pub mod protocol {
    pub use crate::claim::{Claim, CloseError};
    pub use crate::lock::{Held, LockFile};
    pub use crate::registry::Started;
    pub use crate::root::Root;
    pub use crate::sandbox::Sandbox;
    pub use crate::store::StoreFile;
    pub use crate::sweep::SweepOptions;
    pub use crate::unclaimed::Unclaimed;
}
