//! Plays programs on the real kernel: has their processes made, tells each what to do, one step at a
//! time, and sees to it that a step is over before the next begins.
//!
//! It is the init of the processes' small world: orphans become its children, and it reaps them at once
//! or never, as the program says. Whoever ends has ended before the next step, with its descriptors
//! closed: a pidfd says so.
//!
//! It runs in a cell, has one thread, and speaks JSON lines: programs come, runs go.

use std::ffi::OsString;
use std::io::{self, BufRead as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use mortmain::sys::{
    Call, ChildKernel as _, Handle, Host, HostChild, Kernel as _, PathBytes, Pid, Reply, Wait,
};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{getpid, set_child_subreaper};

use super::operation::Operation;
use super::outcome::{Known, NOBODY, Outcome, Run, observe};
use super::process::{Order, SOCKETS, serve};
use super::program::{Orphans, PROCESSES_MAX, Program, Step};
use crate::descriptors;
use crate::mounts::unmount_below;
use crate::raw::fork::fork;
use crate::reader::Reader;
use crate::scratch::scratch_root;
use crate::wait::{Deadline, Watch, write_whole};

/// The argument by which the lab becomes the player.
pub const ROLE: &str = "conformance-player";

/// Where the player has its own ends of the sockets, which no process of a program keeps.
const OWN: i32 = 700;
/// How long a step may take, on a machine that has other things to do.
const STEP: Duration = Duration::from_secs(30);

/// Runs the hidden subcommand. Only for a cell.
#[must_use]
pub fn main(_: impl IntoIterator<Item = OsString>) -> ExitCode {
    match Player::begin().and_then(|mut player| player.serve()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has gone, and with it the wish to know.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _told = writeln!(io::stderr(), "mortmain-lab: a program broke off: {error}");
            ExitCode::from(70)
        }
    }
}

/// The two ends of a process's socket.
struct Socket {
    ours: Reader,
    /// The process's, open over exec.
    _theirs: OwnedFd,
}

struct Player {
    sockets: Vec<Socket>,
    scratch: PathBuf,
    /// Programs that were played.
    count: u64,
}

impl Player {
    fn begin() -> io::Result<Player> {
        for (number, _) in descriptors::all()? {
            if number > 2 {
                // One of them was the listing's own. What a program opens has to begin at 3.
                let _closed = nix::unistd::close(number);
            }
        }
        set_child_subreaper(Some(getpid()))?;
        let sockets = (SOCKETS..).zip(OWN..).take(PROCESSES_MAX).map(|(theirs, ours)| {
            let (one, other) = UnixStream::pair()?;
            let one = fcntl_dupfd_cloexec(&one, ours)?;
            let other = fcntl_dupfd_cloexec(&other, theirs)?;
            fcntl_setfd(&other, FdFlags::empty())?;
            if (one.as_raw_fd(), other.as_raw_fd()) != (ours, theirs) {
                return Err(io::Error::other("the number of a socket is taken"));
            }
            let ours = Reader::new(one, format!("p{}", theirs - SOCKETS))?;
            Ok(Socket { ours, _theirs: other })
        });
        Ok(Player {
            sockets: sockets.collect::<io::Result<_>>()?,
            scratch: scratch_root(),
            count: 0,
        })
    }

    fn serve(&mut self) -> io::Result<()> {
        for line in io::stdin().lock().lines() {
            let programs: Vec<Program> = serde_json::from_str(&line?)?;
            let runs = programs.iter().map(|program| {
                let run = self.play(program);
                run.map_err(|error| io::Error::new(error.kind(), format!("{error}, of\n{program}")))
            });
            let runs = runs.collect::<io::Result<Vec<Run>>>()?;
            let mut line = serde_json::to_vec(&runs)?;
            line.push(b'\n');
            io::stdout().lock().write_all(&line)?;
        }
        Ok(())
    }

    fn play(&mut self, program: &Program) -> io::Result<Run> {
        self.count += 1;
        let root = self.scratch.join(self.count.to_string());
        std::fs::create_dir(&root)?;
        // Also where an umask has taken something away.
        std::fs::set_permissions(&root, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        let mut scene = Scene {
            player: self,
            orphans: program.orphans,
            root: PathBytes::from(root.as_os_str().as_bytes()),
            known: Known::default(),
            watches: Vec::new(),
        };
        scene.first(program.first)?;
        let mut outcomes = Vec::new();
        for step in &program.steps {
            outcomes.push(scene.step(*step)?);
        }
        let mut known = std::mem::take(&mut scene.known);
        let pids = known.pids.clone();
        let end = observe(&mut known, &scene.root, &mut |call| Host.call(call));
        scene.clear(&pids)?;
        let mounts = |step: &Step| matches!(step.operation, Operation::Mount(..));
        if program.steps.iter().any(mounts) {
            unmount_below(&root)?;
        }
        clear_dir(&root)?;
        Ok(Run { outcomes, end })
    }

    fn hear(&mut self, who: usize) -> io::Result<Outcome> {
        let line = self.sockets[who].ours.next_line(Deadline::after(STEP), "what came of a step");
        Ok(serde_json::from_str(&line.map_err(io::Error::other)?)?)
    }
}

/// A program that is being played.
struct Scene<'p> {
    player: &'p mut Player,
    orphans: Orphans,
    root: PathBytes,
    known: Known,
    /// A hold on each process.
    watches: Vec<Watch>,
}

impl Scene<'_> {
    /// Makes the first processes, each with a group of its own and the root at 3.
    fn first(&mut self, count: usize) -> io::Result<()> {
        let root = &self.root;
        let pids = (0..count).map(|who| {
            fork(|| {
                for ours in (OWN..).take(PROCESSES_MAX) {
                    let _closed = nix::unistd::close(ours);
                }
                let begun = HostChild.new_group();
                let root = Host.call(Call::OpenRoot { path: root.clone() });
                match (begun, root) {
                    // OK because there are few processes.
                    (Ok(()), Ok(Reply::Handle(Handle(3)))) => serve(SOCKETS + who as i32),
                    _ => 70,
                }
            })
        });
        let pids: Vec<i32> = pids.collect::<io::Result<_>>()?;
        for pid in pids {
            self.born(pid)?;
        }
        Ok(())
    }

    /// Notes a process, which says that it is there.
    fn born(&mut self, pid: i32) -> io::Result<()> {
        let who = self.watches.len();
        let watch = Watch::open(pid)?.ok_or_else(|| io::Error::other("it is not there"))?;
        self.watches.push(watch);
        if who == self.known.pids.len() {
            self.known.pids.push(pid);
        }
        self.player.hear(who).map(drop)
    }

    fn lives(&self, who: usize) -> io::Result<bool> {
        self.watches.get(who).map_or(Ok(false), |watch| watch.is_gone().map(|gone| !gone))
    }

    fn step(&mut self, step: Step) -> io::Result<Outcome> {
        let Step { who, operation } = step;
        if !self.lives(who)? {
            return Ok(Outcome::Nobody);
        }
        let births = matches!(operation, Operation::Fork | Operation::Spawn(..));
        if births && self.watches.len() == PROCESSES_MAX {
            return Ok(Outcome::Full);
        }
        match operation {
            Operation::Killed => {
                self.watches[who].kill()?;
                self.ended(&[who])?;
                return Ok(Outcome::Ended);
            }
            Operation::Exit => {
                self.tell(who, operation)?;
                self.ended(&[who])?;
                return Ok(Outcome::Ended);
            }
            _ => {}
        }
        let members = match operation {
            Operation::KillGroup(group) => self.members(self.known.pid(group))?,
            _ => Vec::new(),
        };
        self.tell(who, operation)?;
        let outcome = self.player.hear(who)?;
        if outcome.is_good() {
            self.ended(&members)?;
        }
        let born = if let Outcome::Born(pid) = outcome { Some(pid) } else { None };
        let outcome = self.known.count(outcome);
        if let Some(pid) = born {
            self.born(pid)?;
        }
        Ok(outcome)
    }

    fn tell(&mut self, who: usize, operation: Operation) -> io::Result<()> {
        let order = Order {
            operation,
            pids: self.known.pids.clone(),
            nobody: NOBODY.0,
            root: self.root.0.clone(),
            // OK because there are few processes.
            socket: SOCKETS + self.watches.len() as i32,
        };
        let mut line = serde_json::to_vec(&order)?;
        line.push(b'\n');
        let taken = || format!("p{who} to take an order");
        let to = &self.player.sockets[who].ours;
        write_whole(to, &line, Deadline::after(STEP), taken).map_err(io::Error::other)
    }

    /// Who lives and is in a group.
    fn members(&self, group: Pid) -> io::Result<Vec<usize>> {
        let mut members = Vec::new();
        for (who, pid) in self.known.pids.iter().enumerate() {
            if self.lives(who)?
                && let Ok(Reply::Process(shown)) = Host.call(Call::Process { pid: Pid(*pid) })
                && shown.group == group
            {
                members.push(who);
            }
        }
        Ok(members)
    }

    /// Waits for the end of some, and is an init to those that it has made orphans.
    fn ended(&self, who: &[usize]) -> io::Result<()> {
        for who in who {
            self.watches[*who].gone(Deadline::after(STEP)).map_err(io::Error::other)?;
        }
        if !who.is_empty() && self.orphans == Orphans::Reaped {
            self.known.pids.iter().for_each(|pid| reap(*pid));
        }
        Ok(())
    }

    /// Ends every process.
    fn clear(&self, pids: &[i32]) -> io::Result<()> {
        for watch in &self.watches {
            watch.kill()?;
        }
        for watch in &self.watches {
            watch.gone(Deadline::after(STEP)).map_err(io::Error::other)?;
        }
        // All are orphans now.
        pids.iter().for_each(|pid| reap(*pid));
        Ok(())
    }
}

/// Reaps a process that has ended, if it is a child of ours.
fn reap(pid: i32) {
    let wait = Call::Wait { pid: Pid(pid), wait: Wait::AtMost(0), reap: true };
    // Others' children, and those that were reaped, are none of ours.
    let _ending = Host.call(wait);
}

/// Removes a directory that nobody changes any more.
fn clear_dir(dir: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            clear_dir(&entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    std::fs::remove_dir(dir)
}
