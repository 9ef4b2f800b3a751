//! A server: it makes a claim, starts commands, sweeps, forks, and gives up, as it is told.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use mortmain::protocol::{Claim, Root, SweepOptions};
use mortmain::sys::{Answer, Errno, Kernel, KernelExt, Name, PathBytes, Wait};
use mortmain::{Closed, Error, Prefix};

use super::beside::Beside;
use super::{COMMAND, SERVER, next};
use crate::actor::sweep::{Refuses, answers, told};
use crate::actor::wire::{Done, Order, SweepHow, What};
use crate::faults::FromTheFirst;
use crate::simulated::WorldKernel;
use crate::world::request::Command;

/// What is written by an owner.
const WRITTEN: &[u8] = b"written by its owner\n";

/// Does what it is told until it is told to exit; its status is 0 unless it had to unwind.
pub(in crate::scenario::world) fn serve(kernel: &WorldKernel) -> i32 {
    let mut server = Server { kernel, claim: None, beside: Beside::default() };
    let mut said = What::Done(Done::Executed);
    loop {
        said = match next::<Order>(kernel, &said) {
            // What it has is dropped as it returns.
            Ok(Order::Exit) => return 0,
            Ok(order) => server.act(order).map_or_else(Failure::told, What::Done),
            Err(_) => return 1,
        };
    }
}

/// What it has.
struct Server<'k> {
    kernel: &'k WorldKernel,
    claim: Option<Claim<WorldKernel>>,
    beside: Beside,
}

/// Why something was not done.
pub(super) struct Failure {
    kind: String,
    message: String,
}

impl Failure {
    pub(super) fn new(kind: &str, message: &str) -> Failure {
        Failure { kind: kind.into(), message: message.into() }
    }

    fn told(self) -> What {
        What::Failed { kind: self.kind, message: self.message }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(&format!("{:?}", error.kind()), &error.to_string())
    }
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Failure {
        Failure::new("System", &errno.to_string())
    }
}

impl Server<'_> {
    fn act(&mut self, order: Order) -> Result<Done, Failure> {
        match order {
            Order::Create { prefix, root, disturbed, .. } => {
                let root = open(self.kernel, &prefix, &root)?;
                about_to_begin(self.kernel, disturbed.is_some())?;
                let claim = root.create()?;
                let done = Done::Created { claim: path_buf(&claim.path()) };
                self.claim = Some(claim);
                Ok(done)
            }
            Order::Spawn { disturbed, .. } => {
                let mut command = Command { program: COMMAND, uses: Vec::new() };
                about_to_begin(self.kernel, disturbed.is_some())?;
                Ok(Done::Spawned { pid: self.claim()?.spawn(&mut command)?.pid.0 })
            }
            Order::Write { name } => {
                let files = self.claim()?.files();
                write(self.kernel, &files, &name, WRITTEN)?;
                Ok(Done::Written)
            }
            Order::Close { disturbed } => {
                about_to_begin(self.kernel, disturbed.is_some())?;
                self.close()
            }
            Order::Release => self.release(),
            Order::Drop => {
                self.claim = None;
                Ok(Done::Dropped)
            }
            Order::Reclaim { prefix, root, name } => {
                let root = open(self.kernel, &prefix, &root)?;
                let name = Name::new(name.as_bytes()).ok_or(Errno::EINVAL)?;
                let report = root.reclaim_on_word(&name, &SweepOptions::default())?;
                Ok(Done::Swept(told(&report)))
            }
            Order::Sweep { prefix, root, how } => match &how.disturbed {
                None => self.sweep(self.kernel, &prefix, &root, &how),
                Some(_) => {
                    let kernel = FromTheFirst::new(self.kernel.clone());
                    self.sweep(&kernel, &prefix, &root, &how)
                }
            },
            Order::ForkExit => self.fork_a_copy_that_exits(),
            Order::ForkStay => self.fork_a_copy_that_stays(false),
            Order::ForkDrop => self.fork_a_copy_that_stays(true),
            Order::ExecSelf => {
                let cookie = self.kernel.identity()?.cookie;
                self.kernel.exec(SERVER, &cookie)
            }
            order => self.beside.act(self.kernel, order),
        }
    }

    fn claim(&mut self) -> Result<&mut Claim<WorldKernel>, Failure> {
        self.claim.as_mut().ok_or_else(no_claim)
    }

    fn close(&mut self) -> Result<Done, Failure> {
        match self.claim.take().ok_or_else(no_claim)?.close() {
            Ok(Closed::Removed) => Ok(Done::Removed),
            Ok(Closed::Obstructed(obstacles)) => {
                let obstacles = obstacles.iter().map(ToString::to_string).collect();
                Ok(Done::Obstructed { obstacles })
            }
            // What is added to these leaves the claim to the sweeps, too.
            Ok(_) => Ok(Done::Released),
            Err(refused) => {
                self.claim = Some(*refused.claim);
                Err(refused.error.into())
            }
        }
    }

    fn release(&mut self) -> Result<Done, Failure> {
        match self.claim.take().ok_or_else(no_claim)?.release() {
            Ok(()) => Ok(Done::Released),
            Err(refused) => {
                self.claim = Some(*refused.claim);
                Err(refused.error.into())
            }
        }
    }

    fn sweep<K: Kernel>(
        &self,
        kernel: &K,
        prefix: &str,
        root: &Path,
        how: &SweepHow,
    ) -> Result<Done, Failure> {
        let root = open(kernel, prefix, root)?;
        about_to_begin(self.kernel, how.disturbed.is_some())?;
        let holding = self.claim.iter().map(Claim::random).collect();
        let options = SweepOptions { dry_run: how.dry_run, holding };
        let report = root.sweep_with(&options, &mut answers(how), &mut Refuses::of(how));
        Ok(Done::Swept(told(&report)))
    }

    /// A copy that tries everything, and then ends as a worker does whose work is done.
    fn fork_a_copy_that_exits(&mut self) -> Result<Done, Failure> {
        let Some(pid) = self.kernel.fork()? else {
            if let Some(mut claim) = self.claim.take() {
                let mut command = Command { program: COMMAND, uses: Vec::new() };
                // Neither is its own to do; what comes of it the story sees.
                let _refused = claim.spawn(&mut command);
                let _refused = claim.close();
            }
            drop(std::mem::take(&mut self.beside));
            self.kernel.exit(0)
        };
        self.kernel.reap(pid, Wait::Forever)?;
        Ok(Done::Exited { said: String::new() })
    }

    /// A copy that lives on, with or without what it was copied with.
    fn fork_a_copy_that_stays(&mut self, without: bool) -> Result<Done, Failure> {
        let Some(pid) = self.kernel.fork()? else {
            if without {
                self.claim = None;
                drop(std::mem::take(&mut self.beside));
            }
            self.kernel.idle()
        };
        Ok(Done::Stays { pid: pid.0 })
    }
}

fn no_claim() -> Failure {
    Failure::new("Nothing", "there is no claim")
}

/// Says that what is counted begins now, if anything is.
pub(super) fn about_to_begin(kernel: &WorldKernel, counts: bool) -> Result<(), Failure> {
    if counts {
        let begins = What::Stopped { before: 1, call: String::new() };
        let order: Order = next(kernel, &begins)?;
        assert_eq!(order, Order::Continue, "who is about to begin is told to go on");
    }
    Ok(())
}

fn open<K: Kernel>(kernel: &K, prefix: &str, root: &Path) -> Result<Root<K>, Failure> {
    // OK because a story's prefix was looked at when it was read.
    let prefix = Prefix::new(prefix).ok_or(Errno::EINVAL)?;
    Ok(Root::open(kernel, PathBytes::from(root.as_os_str().as_bytes()), prefix)?)
}

fn path_buf(path: &PathBytes) -> PathBuf {
    OsString::from_vec(path.0.clone()).into()
}

/// Writes a file by its path, anew if there is one.
pub(super) fn write(
    kernel: &WorldKernel,
    dir: &PathBytes,
    name: &str,
    content: &[u8],
) -> Answer<()> {
    let dir = kernel.open_root(dir)?;
    let name = Name::new(name.as_bytes()).ok_or(Errno::EINVAL)?;
    match dir.unlink(&name) {
        Ok(()) | Err(Errno::ENOENT) => {}
        Err(errno) => return Err(errno),
    }
    dir.create_file(&name)?.write(0, content).map(drop)
}
