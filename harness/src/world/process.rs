//! Processes: birth, groups, exec, death, zombies, and who reaps them.
//!
//! A process number is its parent's with a digit more, so that it says who
//! started it and depends on no other process's steps: command 101 is the
//! first child of owner 10. Nobody else gets a number by himself; who starts a process may give it one
//! that is free again.

use std::collections::BTreeSet;
use std::sync::Arc;

use mortmain::sys::{
    Answer, ChildIdentity, Ending, Errno, Handle, Home, Identity, MountView, Pid, ProcView,
    Process as Shown, ProcessId, Reply, Sought, Use, Uses, Wait, Whoami,
};

use super::files::UID;
use super::ids::{ClaimId, FileId, InodeId, Made, MountId, ProgramId};
use super::mounts::Place;
use super::odd::Odd;
use super::request::{Command, Response};
use super::{Effect, Reaping, World};

/// The first process, which adopts orphans. It has no row in the table.
pub(super) const INIT: Pid = Pid(1);
/// Children that one process can have in its life: one digit.
const CHILDREN_MAX: u32 = 9;
/// Where copies of descriptors that survive exec are put, or above.
const KEPT_AT: i32 = 255;
/// Lowest number that is given out: the first three are what every program is
/// started with.
const LOWEST: i32 = 3;
const SIGKILL: i32 = 9;
const TIME_NS: u32 = 0xEFFF_FFFA;

/// How far a process is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Life {
    /// Between fork and exec.
    Forked,
    Running,
    Zombie(Ending),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Descriptor {
    pub(super) number: i32,
    pub(super) file: FileId,
    /// Whether it survives exec.
    keep: bool,
}

/// A spawn that waits for its child's report.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Spawning {
    child: Pid,
    failed: Option<Errno>,
}

/// How many of each kind it has made: the second half of their names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct Counts {
    children: u32,
    inodes: u32,
    files: u32,
    claims: u32,
    mounts: u32,
    randoms: u32,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Process {
    parent: Pid,
    group: Pid,
    pub(super) life: Life,
    program: &'static str,
    cookie: Arc<[u8]>,
    /// Sorted by number.
    pub(super) descriptors: Vec<Descriptor>,
    /// The claims that it may use.
    pub(super) uses: Vec<ClaimId>,
    /// Whether it does what only one at a time may do.
    alone: bool,
    spawning: Option<Spawning>,
    counts: Counts,
    pub(super) odd: Odd,
}

impl Process {
    pub(super) fn program(&self) -> &'static str {
        self.program
    }

    pub(super) fn group(&self) -> Pid {
        self.group
    }

    fn lives(&self) -> bool {
        !matches!(self.life, Life::Zombie(_))
    }

    fn add_descriptor(&mut self, descriptor: Descriptor) {
        let at = self.descriptors.partition_point(|other| other.number < descriptor.number);
        self.descriptors.insert(at, descriptor);
    }

    /// The descriptor numbers from here on that are not in use.
    fn free_numbers(&self, lowest: i32) -> impl Iterator<Item = i32> {
        let taken = |number| self.descriptors.iter().any(|other| other.number == number);
        (lowest..).filter(move |number| !taken(*number))
    }

    /// The lowest of them.
    fn free_number(&self, lowest: i32) -> i32 {
        self.free_numbers(lowest).next().expect("few descriptors are open")
    }

    /// Who it is, the number being its own, to somebody with this clock.
    fn id(&self, pid: Pid, to: Odd) -> ProcessId {
        let number = u64::from(pid.0.cast_unsigned());
        let before = u64::from(self.odd.before);
        let start_ticks = to.reads(1000 + number + before);
        ProcessId { pid, start_ticks, pidfs: (number << 8) | (1 + before) }
    }
}

/// Spreads a small number over 64 bits, each with its own result.
fn spread(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

impl World {
    /// Starts a process of its own group, as a login would.
    ///
    /// # Panics
    /// When the number is taken or reserved.
    pub fn start(&mut self, pid: Pid, program: ProgramId) {
        assert!(pid.0 > 1 && !self.processes.contains(pid), "process {} is taken", pid.0);
        let process = Process {
            parent: INIT,
            group: pid,
            life: Life::Running,
            program: program.name,
            cookie: Arc::default(),
            descriptors: Vec::new(),
            uses: Vec::new(),
            alone: false,
            spawning: None,
            counts: Counts::default(),
            odd: Odd::default(),
        };
        self.processes.insert(pid, process);
    }

    /// Where a process is.
    fn home(&self, odd: Odd) -> Home {
        let time_ns = odd.clock.map_or(TIME_NS, |clock| clock.namespace);
        let mut boot = *b"the boot no. ...";
        boot[12..].copy_from_slice(&self.boots.to_be_bytes());
        Home { boot, pid_ns: Home::INITIAL_PID_NS, time_ns }
    }

    /// Whether a process could be started with this number: no process and no group has it.
    #[must_use]
    pub fn is_free(&self, pid: Pid) -> bool {
        !self.processes.contains(pid) && self.members(pid).is_empty()
    }

    /// Everybody who lives and was started by a process, or by one of those, in order.
    #[must_use]
    pub fn below(&self, pid: Pid) -> Vec<Pid> {
        let (mut below, mut known) = (Vec::new(), vec![pid]);
        // Whose parent has ended is a child of init, so nobody is missed.
        while let Some(parent) = known.pop() {
            let all = self.processes.iter();
            let children = all.filter(|(_, child)| child.parent == parent && child.lives());
            let children: Vec<Pid> = children.map(|(child, _)| child).collect();
            known.extend(&children);
            below.extend(children);
        }
        below.sort_unstable();
        below
    }

    pub(super) fn process(&self, pid: Pid) -> &Process {
        self.processes.get(pid).expect("only processes that live take steps")
    }

    /// Whether a process is there and has not ended.
    #[must_use]
    pub fn lives(&self, pid: Pid) -> bool {
        self.processes.get(pid).is_some_and(Process::lives)
    }

    /// Everybody who lives, in order.
    pub fn living(&self) -> impl Iterator<Item = Pid> {
        self.processes.iter().filter(|(_, process)| process.lives()).map(|(pid, _)| pid)
    }

    /// The program that a process runs, zombies included.
    #[must_use]
    pub fn program_name(&self, pid: Pid) -> Option<&'static str> {
        self.processes.get(pid).map(|process| process.program)
    }

    fn count<T>(
        &mut self,
        pid: Pid,
        which: impl FnOnce(&mut Counts) -> &mut u32,
        name: impl FnOnce(Made) -> T,
    ) -> T {
        self.processes.update(pid, |process| {
            let count = which(&mut process.counts);
            let made = Made { by: pid, nth: *count };
            *count += 1;
            name(made)
        })
    }

    pub(super) fn next_inode(&mut self, pid: Pid) -> InodeId {
        self.count(pid, |counts| &mut counts.inodes, InodeId)
    }

    pub(super) fn next_claim(&mut self, pid: Pid) -> ClaimId {
        self.count(pid, |counts| &mut counts.claims, ClaimId)
    }

    pub(super) fn next_mount(&mut self, pid: Pid) -> MountId {
        self.count(pid, |counts| &mut counts.mounts, MountId)
    }

    /// The numbers of descriptors that a process could get, the lowest first.
    pub(super) fn free_numbers(&self, pid: Pid) -> impl Iterator<Item = i32> {
        self.process(pid).free_numbers(LOWEST)
    }

    /// The description behind a descriptor.
    pub(super) fn file_of(&self, pid: Pid, fd: Handle) -> Answer<FileId> {
        let descriptors = &self.process(pid).descriptors;
        let found = descriptors.iter().find(|descriptor| descriptor.number == fd.0);
        found.map(|descriptor| descriptor.file).ok_or(Errno::EBADF)
    }

    /// Opens an inode at the lowest free number, close-on-exec.
    pub(super) fn open_for(&mut self, pid: Pid, at: Place) -> Answer<Reply> {
        let file = self.count(pid, |counts| &mut counts.files, FileId);
        self.open(file, at);
        let number = self.processes.update(pid, |process| {
            let number = process.free_number(LOWEST);
            process.add_descriptor(Descriptor { number, file, keep: false });
            number
        });
        Ok(Reply::Handle(Handle(number)))
    }

    pub(super) fn close(&mut self, pid: Pid, fd: Handle) -> Answer<Reply> {
        let file = self.file_of(pid, fd)?;
        self.processes.update(pid, |process| {
            process.descriptors.retain(|descriptor| descriptor.number != fd.0);
        });
        self.unshare(file);
        Ok(Reply::Done)
    }

    /// Closes the descriptors that do not survive.
    pub(super) fn close_but(&mut self, pid: Pid, survives: impl Fn(&Descriptor) -> bool) {
        let closed = self.processes.update(pid, |process| {
            let all = std::mem::take(&mut process.descriptors);
            let (kept, closed): (Vec<_>, Vec<_>) = all.into_iter().partition(survives);
            process.descriptors = kept;
            closed
        });
        for descriptor in closed {
            self.unshare(descriptor.file);
        }
    }

    pub(super) fn keep_over_exec(&mut self, pid: Pid, fd: Handle) -> Answer<()> {
        let file = self.file_of(pid, fd)?;
        self.share(file);
        self.processes.update(pid, |process| {
            let number = process.free_number(KEPT_AT);
            process.add_descriptor(Descriptor { number, file, keep: true });
        });
        Ok(())
    }

    /// Makes a child with copies of all descriptors.
    fn fork(&mut self, pid: Pid, life: Life, uses: Vec<ClaimId>) -> Answer<Pid> {
        if self.process(pid).counts.children == CHILDREN_MAX {
            return Err(Errno::EAGAIN);
        }
        let Made { nth, .. } = self.count(pid, |counts| &mut counts.children, |made| made);
        let child = Pid(pid.0 * 10 + 1 + nth.cast_signed());
        let process = Process {
            parent: pid,
            life,
            uses,
            alone: false,
            spawning: None,
            counts: Counts::default(),
            ..self.process(pid).clone()
        };
        let files: Vec<FileId> = process.descriptors.iter().map(|d| d.file).collect();
        self.processes.insert(child, process);
        for file in files {
            self.share(file);
        }
        Ok(child)
    }

    /// A fork without exec: the child uses what its parent uses.
    pub(super) fn fork_whole(&mut self, pid: Pid) -> Effect {
        let uses = self.process(pid).uses.clone();
        match self.fork(pid, Life::Running, uses) {
            Ok(child) => Effect::Forked { child },
            Err(errno) => Effect::Answer(Response::Forked(Err(errno))),
        }
    }

    /// One of the two halves of a spawn.
    pub(super) fn spawn(&mut self, pid: Pid, command: &Command) -> Effect {
        let Some(Spawning { child, failed }) = self.process(pid).spawning else {
            return match self.fork(pid, Life::Forked, command.uses.clone()) {
                Ok(child) => {
                    let spawning = Some(Spawning { child, failed: None });
                    self.processes.update(pid, |process| process.spawning = spawning);
                    Effect::Born { child }
                }
                Err(errno) => Effect::Answer(Response::Spawned(Err(errno))),
            };
        };
        self.processes.update(pid, |process| process.spawning = None);
        let answer = match failed {
            Some(errno) => {
                self.processes.remove(child);
                Err(errno)
            }
            // A child that was killed before its exec looks like one that got
            // there: the pipe of the report closes in both cases.
            None => Ok(child),
        };
        Effect::Answer(Response::Spawned(answer))
    }

    /// Whether the report of a spawn's child is there, or the child is still
    /// to be made.
    pub(super) fn spawn_can_go_on(&self, pid: Pid) -> bool {
        let Some(Spawning { child, .. }) = self.process(pid).spawning else { return true };
        self.processes.get(child).is_none_or(|child| child.life != Life::Forked)
    }

    pub(super) fn child_failed(&mut self, pid: Pid, errno: Errno) {
        let parent = self.process(pid).parent;
        let waits = self.processes.get(parent).and_then(|parent| parent.spawning);
        if waits.is_some_and(|spawning| spawning.child == pid) {
            self.processes.update(parent, |process| {
                process.spawning = Some(Spawning { child: pid, failed: Some(errno) });
            });
        }
        self.end(pid, Ending::Exited(127));
    }

    pub(super) fn child_identity(&self, pid: Pid) -> Answer<ChildIdentity> {
        let process = self.process(pid);
        let Home { pid_ns, time_ns, .. } = self.home(process.odd);
        let process = process.id(pid, process.odd);
        Ok(ChildIdentity { process, pid_ns, time_ns, uid: UID, gid: UID })
    }

    pub(super) fn new_group(&mut self, pid: Pid) {
        self.processes.update(pid, |process| process.group = pid);
    }

    /// Becomes another program: what is not kept is closed.
    pub(super) fn exec_image(&mut self, pid: Pid, program: ProgramId, cookie: &[u8]) -> Effect {
        self.processes.update(pid, |process| {
            process.life = Life::Running;
            process.program = program.name;
            process.cookie = cookie.into();
            process.odd = process.odd.after_exec();
        });
        self.close_but(pid, |descriptor| descriptor.keep);
        Effect::Image(program)
    }

    /// SIGKILL. Nothing of the process runs any more.
    pub fn kill(&mut self, pid: Pid) {
        if self.lives(pid) {
            self.end(pid, Ending::Killed(SIGKILL));
        }
    }

    /// The end of a process, however it came.
    pub(super) fn end(&mut self, pid: Pid, ending: Ending) {
        self.close_but(pid, |_| false);
        self.processes.update(pid, |process| {
            process.life = Life::Zombie(ending);
            process.uses = Vec::new();
            process.alone = false;
            process.spawning = None;
            // A zombie makes nothing more, so the counts would only tell apart
            // what is the same.
            process.counts = Counts::default();
        });
        self.forget_unused_claims();
        let orphans: Vec<Pid> = self
            .processes
            .iter()
            .filter(|(_, process)| process.parent == pid)
            .map(|(orphan, _)| orphan)
            .collect();
        for orphan in orphans {
            self.adopt(orphan);
        }
        if self.process(pid).parent == INIT {
            self.adopt(pid);
        }
    }

    /// Gives a process to init, which reaps what has ended, or never does.
    fn adopt(&mut self, pid: Pid) {
        if self.rules.reaping == Reaping::AtOnce && !self.process(pid).lives() {
            self.processes.remove(pid);
        } else if self.process(pid).parent != INIT {
            self.processes.update(pid, |process| process.parent = INIT);
        }
    }

    pub(super) fn set_alone(&mut self, pid: Pid, alone: bool) {
        self.processes.update(pid, |process| process.alone = alone);
    }

    /// Who does what only one at a time may do.
    pub(crate) fn alone(&self) -> impl Iterator<Item = Pid> {
        self.processes.iter().filter(|(_, process)| process.alone).map(|(pid, _)| pid)
    }

    fn child_of(&self, pid: Pid, child: Pid) -> Option<&Process> {
        self.processes.get(child).filter(|process| process.parent == pid)
    }

    /// Whether a wait would be answered.
    pub(super) fn wait_can_go_on(&self, pid: Pid, child: Pid, wait: Wait) -> bool {
        wait != Wait::Forever || self.child_of(pid, child).is_none_or(|child| !child.lives())
    }

    /// A limited wait is over at once when the child lives: the steps of the
    /// others before it are the time that passed.
    pub(super) fn wait(&mut self, pid: Pid, child: Pid, reap: bool) -> Answer<Reply> {
        match self.child_of(pid, child).ok_or(Errno::ECHILD)?.life {
            Life::Zombie(ending) => {
                if reap {
                    self.processes.remove(child);
                }
                Ok(Reply::Ending(Some(ending)))
            }
            Life::Forked | Life::Running => Ok(Reply::Ending(None)),
        }
    }

    fn members(&self, group: Pid) -> Vec<Pid> {
        let members = self.processes.iter().filter(|(_, process)| process.group == group);
        members.map(|(pid, _)| pid).collect()
    }

    pub(super) fn group_exists(&self, group: Pid) -> Answer<Reply> {
        if self.members(group).is_empty() { Err(Errno::ESRCH) } else { Ok(Reply::Done) }
    }

    pub(super) fn kill_group(&mut self, by: Pid, group: Pid) -> Answer<Reply> {
        // The seam refuses it.
        if self.process(by).group == group {
            return Err(Errno::EINVAL);
        }
        self.group_exists(group)?;
        for member in self.members(group) {
            self.kill(member);
        }
        Ok(Reply::Done)
    }

    pub(super) fn process_exists(&self, pid: Pid) -> Answer<Reply> {
        if self.processes.contains(pid) { Ok(Reply::Done) } else { Err(Errno::ESRCH) }
    }

    pub(super) fn show(&self, to: Pid, pid: Pid) -> Answer<Reply> {
        let process = self.processes.get(pid).ok_or(Errno::ENOENT)?;
        Ok(Reply::Process(Shown {
            start_ticks: process.id(pid, self.process(to).odd).start_ticks,
            group: process.group,
            zombie: !process.lives() || process.odd.headless,
            threads: if process.lives() && process.odd.headless { 2 } else { 1 },
            program: short(process.program),
        }))
    }

    pub(super) fn pidfs(&self, pid: Pid) -> Answer<Reply> {
        let process = self.processes.get(pid).ok_or(Errno::ESRCH)?;
        Ok(Reply::Number(process.id(pid, process.odd).pidfs))
    }

    pub(super) fn pids(&self) -> Answer<Reply> {
        Ok(Reply::Pids(self.processes.iter().map(|(pid, _)| pid).collect()))
    }

    /// What a process uses of some claims: by the directory that it works in, by its descriptors, by its
    /// cookie, and by the mounts that all processes see, where these are not known.
    pub(super) fn uses(&self, pid: Pid, of: &Sought, known: &[MountView]) -> Answer<Reply> {
        let mut uses = Uses::default();
        if let Some(process) = self.processes.get(pid).filter(|process| process.lives()) {
            let mut found = BTreeSet::new();
            for descriptor in &process.descriptors {
                let path = self.path_of(descriptor.file);
                found.extend(of.below(&path.0).map(|claim| (claim, Use::Descriptor)));
            }
            if let Some(dir) = process.odd.works_in {
                let path = self.path_to(dir).unwrap_or_default();
                let claims = of.at_or_below(&path.0);
                found.extend(claims.map(|claim| (claim, Use::WorkingDirectory)));
            }
            uses.mounts = self.mount_view().filter(|view| !known.contains(view));
            for root in uses.mounts.iter().flat_map(|_| self.mounted_paths()) {
                let claims: Vec<usize> = of.at_or_below(&root.0).collect();
                found.extend(claims.into_iter().map(|claim| (claim, Use::MountOf)));
            }
            let cookie = [b"MORTMAIN_CLAIM=", &process.cookie[..]].concat();
            found.extend(of.carried(&cookie).map(|claim| (claim, Use::Cookie)));
            if !found.is_empty() {
                uses.program = short(process.program);
                uses.uids = vec![UID; 4];
            }
            uses.found = found.into_iter().collect();
        } else {
            uses.ended = true;
        }
        Ok(Reply::Uses(Box::new(uses)))
    }

    /// Whether what a process uses is the same at every moment until `asking`
    /// makes its next step: nothing where the process has ended and no number
    /// comes again; and of itself what it has open, unless that lies so deep
    /// that a rename by somebody else could change which claim it is in.
    pub(super) fn uses_for_ever(&self, asking: Pid, pid: Pid) -> bool {
        (!self.lives(pid) && !self.rules.numbers_again)
            || pid == asking
                && self.process(pid).odd.works_in.is_none()
                && self.process(pid).descriptors.iter().all(|fd| !self.is_below_claims(fd.file))
    }

    pub(super) fn identity(&self, pid: Pid) -> Answer<Reply> {
        let process = self.process(pid);
        Ok(Reply::Identity(Box::new(Identity {
            process: process.id(pid, process.odd),
            home: self.home(process.odd),
            uid: UID,
            gid: UID,
            overflow_uid: Some(65_534),
            proc: ProcView::Whole,
            program: short(process.program),
            cookie: process.cookie.to_vec(),
        })))
    }

    pub(super) fn whoami(&self, pid: Pid) -> Answer<Reply> {
        Ok(Reply::Whoami(Whoami { pid, pid_ns: Home::INITIAL_PID_NS }))
    }

    pub(super) fn random(&mut self, pid: Pid) -> Answer<Reply> {
        let made = self.count(pid, |counts| &mut counts.randoms, |made| made);
        Ok(Reply::Number(spread(made.number())))
    }
}

/// A program's name as the kernel keeps it: at most 15 bytes.
fn short(program: &str) -> Vec<u8> {
    program.bytes().take(15).collect()
}
