//! The world: a small simulated machine, as plain data.
//!
//! Its processes run the real implementation, or a design in its place; a call
//! that they make is one step, done here. The same requests in the same order give the same answers
//! in every run, a clone shares what it does not change, and every world has a
//! fingerprint, so that explorers can keep, compare and forget worlds by the
//! million. Numbers of things are made so that independent steps commute
//! ([`ids`]).
//!
//! There is: one user, one pid namespace, a whole `/proc`, one tmpfs with one root for
//! claims; processes with parents, groups, zombies, and an init that reaps orphans at
//! once or never; fork and exec with descriptors, close-on-exec; what a look at a
//! process shows of its working directory, its descriptors and its cookie; a limit of
//! descriptors; directories, files, symbolic links, FIFOs, sockets, devices, files
//! without an end, names and inodes; mounts of one part of the tmpfs over another;
//! `flock` on open file descriptions; SIGKILL; a wall clock, which stands still until
//! the explorer lets time pass (waiting with a limit ends at a moment that it chooses,
//! a pause takes no time); a restart, after which all that has a name is still there;
//! and, if he is invited, an adversary, who changes what names stand for ([`Trick`]).
//!
//! There is not (yet): threads (but a first one that has ended), sessions, signals
//! other than SIGKILL; other users, permissions (modes are kept, and forbid nothing);
//! other namespaces, file systems, hard links; somebody who writes at the other end of
//! a FIFO, or listens at a socket (who waits at one waits for ever), devices that do
//! anything; what is lost when the power goes; limits of space and inodes. A call is
//! done whole or not at all, but for a spawn, which forks, lets the child make its
//! steps, and is answered. That calls fail for no reason of their own, that a number
//! comes again, and that a directory has its names in another order are the explorer's
//! doing.

mod adversary;
mod claims;
mod describe;
mod files;
mod fingerprint;
pub mod hand;
pub mod ids;
mod lookup;
mod mounts;
mod odd;
mod process;
pub mod request;
pub mod seen;
mod table;
#[cfg(test)]
mod tests;

use mortmain::sys::{Answer, Call, Ending, Errno, Handle, Name, PathBytes, Pid, Reply};
use mortmain_subjects::Beyond;

pub use self::adversary::{Spot, Trick};
use self::claims::Claim;
pub use self::claims::Harm;
pub use self::files::Special;
use self::files::{Inode, Node, OpenFile};
pub use self::fingerprint::Fingerprint;
use self::ids::{ClaimId, FileId, InodeId, Made, MountId, ProgramId};
use self::mounts::{Mount, Place};
use self::process::{INIT, Process};
use self::request::{ChildCall, Request, Response};
use self::table::Table;

/// When the world begins: any moment will do.
const EPOCH: u64 = 1_800_000_000;

/// What init does with what has ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reaping {
    /// It reaps at once.
    AtOnce,
    /// It never reaps: orphans stay zombies for ever.
    Never,
}

/// Whether a directory in use may be away from its place for a while.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Moves {
    /// It may not: who looks for it finds nothing.
    Harm,
    /// It may, whole, as long as whoever gave it another name lives and may give it the old one
    /// back: for designs that promise just that.
    ForgivenWhileTheMoverLives,
}

/// What kind of world it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rules {
    /// What init does with what has ended.
    pub reaping: Reaping,
    /// How many entries one reading of a directory gives at most.
    pub entries_a_read: usize,
    /// What the judge says of a directory in use that was moved.
    pub moves: Moves,
    /// Whether a number may come again: if not, what is gone is gone for ever.
    pub numbers_again: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            reaping: Reaping::AtOnce,
            entries_a_read: usize::MAX,
            moves: Moves::Harm,
            numbers_again: false,
        }
    }
}

/// What came of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It was done, with this answer.
    Answer(Response),
    /// The first half of a spawn: a child is there, the caller's request goes on.
    Born {
        /// The child.
        child: Pid,
    },
    /// The process was doubled. Both are answered, each with its own answer.
    Forked {
        /// The second process.
        child: Pid,
    },
    /// The process is now at the beginning of another program.
    Image(ProgramId),
    /// The process has ended.
    Ended,
}

/// A simulated machine.
#[derive(Clone, Debug)]
pub struct World {
    rules: Rules,
    /// The wall clock, in seconds since 1970.
    now: u64,
    processes: Table<Pid, Process>,
    inodes: Table<InodeId, Inode>,
    files: Table<FileId, OpenFile>,
    claims: Table<ClaimId, Claim>,
    mounts: Table<MountId, Mount>,
    /// How many tricks the adversary has played, where there is one.
    tricks: Option<u32>,
    /// How often the machine was started anew.
    boots: u32,
    /// The directory `/`.
    top: InodeId,
    /// The directory that claims are made in.
    root: InodeId,
    /// How many things somebody has put somewhere who is no process ([`hand`]).
    put_so_far: u32,
}

impl World {
    /// Path of the directory that claims are made in.
    pub const ROOT: &'static str = "/r";

    /// A machine without processes, with an empty root.
    #[must_use]
    pub fn new(rules: Rules) -> World {
        let nowhere = InodeId(Made { by: INIT, nth: u32::MAX });
        let mut world = World {
            rules,
            now: EPOCH,
            processes: Table::new(0),
            inodes: Table::new(1),
            files: Table::new(2),
            claims: Table::new(3),
            mounts: Table::new(4),
            tricks: None,
            boots: 0,
            top: nowhere,
            root: nowhere,
            put_so_far: 0,
        };
        world.make_root(&Name::fixed("r"));
        world
    }

    /// [`World::ROOT`] as the seam takes it.
    #[must_use]
    pub fn root_path() -> PathBytes {
        PathBytes::from(World::ROOT.as_bytes())
    }

    /// Stands for the whole machine.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.processes
            .fingerprint()
            .with(self.inodes.fingerprint())
            .with(self.files.fingerprint())
            .with(self.claims.fingerprint())
            .with(self.mounts.fingerprint())
            .with(Fingerprint::of(&(self.now, self.boots)))
    }

    /// Stands for what is left when every process is killed: equal ones lead
    /// to equal worlds.
    #[must_use]
    pub fn remains(&self) -> Fingerprint {
        match self.rules.reaping {
            Reaping::AtOnce => self.inodes.fingerprint(),
            Reaping::Never => self.inodes.fingerprint().with(self.processes.fingerprint()),
        }
        .with(self.mounts.fingerprint())
        .with(Fingerprint::of(&(self.now, self.boots)))
    }

    /// What lies in the root, as paths of everything in it, in order.
    #[must_use]
    pub fn tree(&self) -> Vec<PathBytes> {
        let mut found = Vec::new();
        self.list(self.root, &PathBytes::default(), &mut found);
        found
    }

    fn list(&self, dir: InodeId, path: &PathBytes, found: &mut Vec<PathBytes>) {
        for (name, inode) in self.names_in(dir) {
            let path = path.join(name.bytes());
            found.push(path.clone());
            self.list(inode, &path, found);
        }
    }

    /// Starts the machine anew: nobody is there any more, nothing is open, locked or mounted, and the boot
    /// has another id. What has a name stays.
    pub fn reboot(&mut self) {
        for pid in self.processes.iter().map(|(pid, _)| pid).collect::<Vec<_>>() {
            self.kill(pid);
            self.processes.remove(pid);
        }
        self.end_mounts();
        self.boots += 1;
    }

    /// Lets time pass, which the wall clock alone shows.
    pub fn pass(&mut self, seconds: u64) {
        self.now += seconds;
    }

    /// Whether a request of a process could be done now.
    #[must_use]
    pub fn enabled(&self, pid: Pid, request: &Request) -> bool {
        match request {
            Request::Call(Call::Wait { pid: child, wait, .. }) => {
                self.wait_can_go_on(pid, *child, *wait)
            }
            Request::Beyond(Beyond::OpenPlain { dir, name }) => {
                !self.file_of(pid, *dir).is_ok_and(|dir| self.waits_to_read(dir, name))
            }
            Request::Spawn { .. } => self.spawn_can_go_on(pid),
            Request::Idle | Request::Line { .. } => false,
            _ => true,
        }
    }

    /// Whether a request concerns nobody but the process itself: its answer
    /// and its effect are the same whatever others do before it, and nothing
    /// that others or a judge see depends on it. So only one moment for it
    /// need be looked at. A request that is not known to be so is not.
    #[must_use]
    pub fn is_private(&self, pid: Pid, request: &Request) -> bool {
        match request {
            Request::Call(call) => match call {
                Call::Identity
                | Call::Whoami
                | Call::DescriptorsMax
                | Call::Random
                | Call::Sync { .. }
                | Call::Pause { .. } => true,
                // Nothing that these two answer changes while an inode is open.
                Call::Stat { .. } | Call::FsMagic { .. } => true,
                Call::Close { fd } => self.is_private_file(pid, *fd),
                Call::Uses { pid: looked_at, .. } => self.uses_for_ever(pid, *looked_at),
                _ => false,
            },
            // The process has the description open already, so the copy keeps
            // nothing alive that would not live without it.
            Request::Child(ChildCall::Identity | ChildCall::KeepOverExec { .. }) => true,
            _ => false,
        }
    }

    /// Does one request of a living process; it must be enabled.
    pub fn exec(&mut self, pid: Pid, request: &Request) -> Effect {
        match request {
            Request::Call(call) => Effect::Answer(Response::Reply(self.call(pid, call))),
            Request::Beyond(call) => Effect::Answer(Response::Reply(self.beyond(pid, call))),
            Request::Spawn { command, .. } => self.spawn(pid, command),
            Request::Child(call) => Effect::Answer(self.child_call(pid, call)),
            Request::ChildFailed(errno) => {
                self.child_failed(pid, *errno);
                Effect::Ended
            }
            Request::Exec { program, cookie } => self.exec_image(pid, *program, cookie),
            Request::Fork => self.fork_whole(pid),
            Request::CloseAll => {
                self.close_but(pid, |_| false);
                Effect::Answer(Response::Done(Ok(())))
            }
            Request::WorkIn { path } => Effect::Answer(Response::Done(self.work_in(pid, path))),
            Request::MakeSpecial { dir, name, special } => {
                let made = self.make_named(pid, *dir, name, Node::Special(*special));
                Effect::Answer(Response::Done(made.map(drop)))
            }
            Request::Mount { dir, from, on } => {
                let dir = self.file_of(pid, *dir);
                let done = dir.and_then(|dir| self.bind_names(pid, dir, [from, on]));
                Effect::Answer(Response::Done(done))
            }
            Request::Unmount { dir, on } => {
                let done = self.file_of(pid, *dir).and_then(|dir| self.unbind(dir, on));
                Effect::Answer(Response::Done(done))
            }
            Request::Touch { name } => Effect::Answer(Response::Done(self.touch(pid, name))),
            Request::Hold { claim, files } => {
                Effect::Answer(Response::Held(self.hold(pid, claim, files)))
            }
            Request::GiveUp { claim } => {
                self.give_up(pid, *claim);
                Effect::Answer(Response::Done(Ok(())))
            }
            Request::Alone { begins } => {
                self.set_alone(pid, *begins);
                Effect::Answer(Response::Done(Ok(())))
            }
            Request::Aside | Request::Result { .. } => Effect::Answer(Response::Done(Ok(()))),
            Request::Idle | Request::Line { .. } => {
                unreachable!("who is idle, or waits for an order, takes no step")
            }
            Request::Exit { status } => {
                self.end(pid, Ending::Exited(*status));
                Effect::Ended
            }
            Request::Panicked { .. } => {
                self.end(pid, Ending::Exited(101));
                Effect::Ended
            }
        }
    }

    fn child_call(&mut self, pid: Pid, call: &ChildCall) -> Response {
        Response::Done(match call {
            ChildCall::Identity => return Response::Identity(self.child_identity(pid)),
            ChildCall::NewGroup => {
                self.new_group(pid);
                Ok(())
            }
            ChildCall::Symlink { dir, name, text } => self.file_of(pid, *dir).and_then(|dir| {
                let inode = self.next_inode(pid);
                self.make(inode, dir, name, Node::Link(text.clone()))
            }),
            ChildCall::KeepOverExec { fd } => self.keep_over_exec(pid, *fd),
        })
    }

    fn beyond(&mut self, pid: Pid, call: &Beyond) -> Answer<Reply> {
        match call {
            Beyond::Now => Ok(Reply::Number(self.now)),
            Beyond::Modified { dir, name } => self.modified(self.file_of(pid, *dir)?, name),
            Beyond::OpenPlain { dir, name } => {
                self.open_for(pid, self.find_to_read(self.file_of(pid, *dir)?, name)?)
            }
        }
    }

    fn call(&mut self, pid: Pid, call: &Call) -> Answer<Reply> {
        self.lacks_descriptor(pid, call)?;
        match call {
            Call::OpenRoot { path } => self.open_for(pid, self.open_path(path)?),
            Call::OpenDir { dir, name } => {
                self.open_for(pid, self.find_dir(self.file_of(pid, *dir)?, name)?)
            }
            Call::OpenFile { dir, name } => {
                self.open_for(pid, self.find_file(self.file_of(pid, *dir)?, name)?)
            }
            Call::CreateFile { dir, name } => {
                let file = self.file_of(pid, *dir)?;
                if self.find_below(file, name) == Err(Errno::EXDEV) {
                    return Err(Errno::EXDEV);
                }
                let inode = self.make_named(pid, *dir, name, Node::File(Box::default()))?;
                let at = Place { inode, ..self.open_file(file).place() };
                let reply = self.open_for(pid, at)?;
                if let Reply::Handle(fd) = reply {
                    self.make_writable(self.file_of(pid, fd)?);
                }
                Ok(reply)
            }
            Call::Close { fd } => self.close(pid, *fd),
            Call::Stat { fd } => self.stat(self.file_of(pid, *fd)?),
            Call::StatAt { dir, name } => self.stat_at(self.file_of(pid, *dir)?, name),
            Call::FsMagic { fd } => self.file_of(pid, *fd).and_then(|_| self.fs_magic()),
            Call::ReadDir { dir, restart } => self.read_dir(self.file_of(pid, *dir)?, *restart),
            Call::Mkdir { dir, name } => self.made(pid, *dir, name, Node::Dir(Vec::new())),
            Call::Symlink { dir, name, text } => {
                self.made(pid, *dir, name, Node::Link(text.clone()))
            }
            Call::Readlink { dir, name } => self.readlink(self.file_of(pid, *dir)?, name),
            Call::Rename { dir, from, to } => self.rename(pid, self.file_of(pid, *dir)?, from, to),
            Call::Unlink { dir, name } => self.unlink(self.file_of(pid, *dir)?, name),
            Call::Rmdir { dir, name } => self.rmdir(self.file_of(pid, *dir)?, name),
            Call::Unseal { dir, name } => self.unseal(self.file_of(pid, *dir)?, name),
            Call::Chmod { fd, mode } => self.chmod(self.file_of(pid, *fd)?, *mode),
            Call::Lock { fd } => self.lock(pid, self.file_of(pid, *fd)?),
            Call::Unlock { fd } => self.unlock(self.file_of(pid, *fd)?),
            Call::LockHolder { fd } => self.lock_holder(self.file_of(pid, *fd)?),
            Call::Read { fd, offset, len } => self.read(self.file_of(pid, *fd)?, *offset, *len),
            Call::Write { fd, offset, bytes } => {
                self.write(self.file_of(pid, *fd)?, *offset, bytes)
            }
            // There is no power that could fail.
            Call::Sync { fd } => self.file_of(pid, *fd).map(|_| Reply::Done),
            Call::Identity => self.identity(pid),
            Call::Whoami => self.whoami(pid),
            Call::ProcessExists { pid } => self.process_exists(*pid),
            Call::GroupExists { group } => self.group_exists(*group),
            Call::Process { pid: shown } => self.show(pid, *shown),
            Call::Pidfs { pid } => self.pidfs(*pid),
            Call::Pids => self.pids(),
            Call::Uses { pid, of, known } => self.uses(*pid, of, known),
            Call::DescriptorsMax => {
                let end = self.process(pid).odd.descriptors_end();
                Ok(Reply::Number(end.unsigned_abs().into()))
            }
            Call::KillGroup { group } => self.kill_group(pid, *group),
            Call::Wait { pid: child, reap, .. } => self.wait(pid, *child, *reap),
            Call::Pause { .. } => Ok(Reply::Done),
            Call::Random => self.random(pid),
        }
    }

    /// Makes a name for a new inode in an open directory.
    fn make_named(&mut self, pid: Pid, dir: Handle, name: &Name, node: Node) -> Answer<InodeId> {
        let dir = self.file_of(pid, dir)?;
        let inode = self.next_inode(pid);
        self.make(inode, dir, name, node)?;
        Ok(inode)
    }

    fn made(&mut self, pid: Pid, dir: Handle, name: &Name, node: Node) -> Answer<Reply> {
        self.make_named(pid, dir, name, node).map(|_| Reply::Done)
    }
}
