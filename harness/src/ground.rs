//! A root in which the claims of a test lie, and the users of which the test makes and kills.
//!
//! Invariant: what is told here of a claim is told by a report of the implementation or by the
//! directory itself, never by what a test remembers of it.
//!
//! It deliberately has no way to make a dead claim but the one there is: somebody owned it and was
//! killed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use mortmain::protocol::Root;
use mortmain::sys::{Kernel, PathBytes};
use mortmain::{Namespace, Outcome, Prefix, Removes, Report, SweepOptions};

use crate::actor::Actor;
use crate::actor::wire::Swept;
use crate::answers::Answers;
use crate::scratch::scratch_root;

/// The prefix of the claims on a ground.
pub const PREFIX: &str = "t";

/// Nobody in particular, on any system: neither root nor the user who stands for all unknown ones.
const PLAIN_UID: u32 = 1000;

/// A root, and who works there.
#[derive(Debug)]
pub struct Ground {
    lab: PathBuf,
    root: PathBuf,
    /// Who its actors are, if not the current user.
    user: Option<u32>,
}

/// A claim and its owner.
#[derive(Debug)]
pub struct Owned {
    /// The owner.
    pub actor: Actor,
    /// The claim.
    pub claim: PathBuf,
}

impl Owned {
    /// The part of the claim that is the user's.
    #[must_use]
    pub fn files(&self) -> PathBuf {
        self.claim.join("files")
    }
}

/// Whether this process has the rights of root. Tells what is skipped if not.
#[must_use]
#[expect(clippy::print_stderr, reason = "a skipped test tells why where the runner captures it")]
pub fn is_root(skipped: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped without root: {skipped}");
    }
    root
}

impl Ground {
    /// A fresh root on the cell's own file system.
    #[must_use]
    #[track_caller]
    pub fn new(lab: impl AsRef<Path>) -> Self {
        Self::at(lab, scratch_root())
    }

    /// A root that is there already.
    #[must_use]
    pub fn at(lab: impl AsRef<Path>, root: PathBuf) -> Self {
        Self { lab: lab.as_ref().into(), root, user: None }
    }

    /// A fresh root of a user without any rights over others: the current one, or another if that is
    /// root.
    #[must_use]
    #[track_caller]
    pub fn of_plain_user(lab: impl AsRef<Path>) -> Self {
        if !rustix::process::geteuid().is_root() {
            return Self::new(lab);
        }
        // The build may lie where nobody else may look.
        let reachable = scratch_root().join("mortmain-lab");
        let copied = fs::copy(lab, &reachable)
            .and_then(|_| fs::set_permissions(&reachable, Permissions::from_mode(0o755)));
        copied.expect("the cell's scratch space takes it");
        Self::new(reachable).given_to(PLAIN_UID)
    }

    /// The same root, for actors of this user.
    #[must_use]
    #[track_caller]
    pub fn given_to(self, uid: u32) -> Self {
        chown(&self.root, Some(uid), Some(uid)).expect("root may give it away");
        Self { user: Some(uid), ..self }
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What lies in it, sorted.
    #[must_use]
    #[track_caller]
    pub fn names(&self) -> Vec<OsString> {
        names_in(&self.root)
    }

    /// The claims in it, as this process sees them.
    #[must_use]
    #[track_caller]
    pub fn namespace(&self) -> Namespace {
        Namespace::at(&self.root, PREFIX).expect("the root is there")
    }

    /// The same over any kernel.
    #[must_use]
    #[track_caller]
    pub fn over<K: Kernel>(&self, kernel: &K) -> Root<K> {
        let path = PathBytes::from(self.root.as_os_str().as_bytes());
        // OK because it is a letter.
        let prefix = Prefix::new(PREFIX).expect("it is a prefix");
        Root::open(kernel, path, prefix).expect("the root is there")
    }

    /// A sweep by this process.
    #[track_caller]
    pub fn sweep(&self) -> Report {
        self.namespace().sweep()
    }

    /// The same, by one that sees nobody use anything (l4): what keeps a claim then is the claim.
    #[track_caller]
    pub fn sweep_unseeing(&self) -> Report {
        self.namespace().sweep_with(
            &SweepOptions::default(),
            &mut Answers::nobody_seen(),
            &mut Removes,
        )
    }

    /// A sweep by a process of this ground's user.
    #[track_caller]
    pub fn sweep_as_user(&self) -> Swept {
        self.actor().sweep(PREFIX, &self.root)
    }

    /// A process of this ground's user, without a claim.
    #[must_use]
    #[track_caller]
    pub fn actor(&self) -> Actor {
        Actor::start_by(self.actor_command())
    }

    /// What starts such a process.
    #[must_use]
    pub fn actor_command(&self) -> Command {
        self.as_user(&self.lab, &["actor"])
    }

    /// What starts any program as this ground's user.
    #[must_use]
    pub fn as_user(&self, program: impl AsRef<OsStr>, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args);
        if let Some(user) = self.user {
            // Without root's groups, which go with the uid.
            command.gid(user).uid(user);
        }
        command
    }

    /// A claim with a living owner.
    #[must_use]
    #[track_caller]
    pub fn owned(&self) -> Owned {
        self.owned_by(self.actor())
    }

    /// The same, made by this actor.
    #[must_use]
    #[track_caller]
    pub fn owned_by(&self, mut actor: Actor) -> Owned {
        let claim = actor.create(PREFIX, &self.root);
        Owned { actor, claim }
    }

    /// A claim whose owner was killed.
    #[must_use]
    #[track_caller]
    pub fn dead(&self) -> PathBuf {
        let mut owned = self.owned();
        owned.actor.kill();
        owned.claim
    }

    /// A claim whose owner was killed after it had started a script, which runs on for as long as
    /// the answer lives.
    #[must_use]
    #[track_caller]
    pub fn orphaned(&self, script: &str) -> Owned {
        let mut owned = self.owned();
        let _shell = owned.actor.spawn(script);
        owned.actor.said("the script's first line");
        owned.actor.kill();
        owned
    }
}

/// What lies in a directory, sorted.
#[must_use]
#[track_caller]
pub fn names_in(dir: &Path) -> Vec<OsString> {
    let listed = fs::read_dir(dir).and_then(|entries| {
        let names = entries.map(|entry| Ok(entry?.file_name()));
        names.collect::<std::io::Result<Vec<_>>>()
    });
    match listed {
        Ok(mut names) => {
            names.sort_unstable();
            names
        }
        Err(e) => panic!("cannot list {}: {e}", dir.display()),
    }
}

/// What became of a claim, by a report.
#[must_use]
#[track_caller]
pub fn outcome<'r>(report: &'r Report, claim: &Path) -> &'r Outcome {
    let name = claim.file_name().map_or(&b""[..], OsStr::as_bytes);
    let entry = report.entries.iter().find(|entry| entry.name.bytes() == name);
    match entry {
        Some(entry) => &entry.outcome,
        None => panic!("nothing is said of {} in:\n{report}", claim.display()),
    }
}

/// The same as the sentence that a user reads.
#[must_use]
#[track_caller]
pub fn sentence(report: &Report, claim: &Path) -> String {
    outcome(report, claim).to_string()
}
