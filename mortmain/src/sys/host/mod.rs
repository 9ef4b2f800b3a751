//! The real kernel: Linux, 5.6 or later (`openat2`).
//!
//! One small function a [`Call`], with the meaning that the call's own
//! documentation gives it. What is shared by all of them:
//!
//! * Nothing is remembered between two calls: a forked child asks as well, and
//!   has to get its own answers (c6).
//! * Every descriptor that is handed out is close-on-exec and above the
//!   standard ones (c5).
//! * An error crosses as its number, as it came. Two are translated, and say
//!   so where it happens. Nothing is tried again but reads of `/proc` and
//!   waits, which an interruption cannot have changed.
//!
//! No policy stands here: what an answer proves is for those who ask.
//!
//! The one room for `unsafe` is `raw`.

#[cfg(not(target_os = "linux"))]
compile_error!("the feature `host` is for Linux; the protocol alone builds without it, anywhere");

pub(crate) mod activation;
mod child;
mod files;
mod identity;
mod passed;
mod proc;
mod processes;
mod raw;
mod spawn;
mod stat_line;
mod uses;

use std::boxed::Box;

pub use self::child::HostChild;
pub use self::spawn::HostProgram;
use super::{Answer, Call, ChildPlan, Errno, Kernel, Pid, Reply};

/// The kernel that this process runs on.
#[derive(Clone, Copy, Default, Debug)]
pub struct Host;

impl Kernel for Host {
    type Program = HostProgram;

    fn call(&self, call: Call) -> Answer<Reply> {
        match call {
            Call::OpenRoot { path } => files::open_root(&path).map(Reply::Handle),
            Call::OpenDir { dir, name } => files::open_dir(dir, &name).map(Reply::Handle),
            Call::OpenFile { dir, name } => files::open_file(dir, &name).map(Reply::Handle),
            Call::CreateFile { dir, name } => files::create_file(dir, &name).map(Reply::Handle),
            Call::Close { fd } => done(files::close(fd)),
            Call::Stat { fd } => files::stat(fd).map(Reply::Stat),
            Call::StatAt { dir, name } => files::stat_at(dir, &name).map(Reply::Stat),
            Call::FsMagic { fd } => files::fs_magic(fd).map(Reply::FsMagic),
            Call::ReadDir { dir, restart } => files::read_dir(dir, restart).map(Reply::Entries),
            Call::Mkdir { dir, name } => done(files::mkdir(dir, &name)),
            Call::Symlink { dir, name, text } => done(files::symlink(dir, &name, &text)),
            Call::Readlink { dir, name } => files::readlink(dir, &name).map(Reply::Bytes),
            Call::Rename { dir, from, to } => done(files::rename(dir, &from, &to)),
            Call::Unlink { dir, name } => done(files::unlink(dir, &name)),
            Call::Rmdir { dir, name } => done(files::rmdir(dir, &name)),
            Call::Unseal { dir, name } => done(files::unseal(dir, &name)),
            Call::Chmod { fd, mode } => done(files::chmod(fd, mode)),
            Call::Lock { fd } => done(files::lock(fd)),
            Call::Unlock { fd } => done(files::unlock(fd)),
            Call::LockHolder { fd } => files::lock_holder(fd).map(Reply::Pids),
            Call::Read { fd, offset, len } => files::read(fd, offset, len).map(Reply::Bytes),
            Call::Write { fd, offset, bytes } => {
                files::write(fd, offset, &bytes).map(Reply::Number)
            }
            Call::Sync { fd } => done(files::sync(fd)),
            Call::Identity => identity::identity().map(|me| Reply::Identity(Box::new(me))),
            Call::Whoami => identity::whoami().map(Reply::Whoami),
            Call::ProcessExists { pid } => done(processes::process_exists(pid)),
            Call::GroupExists { group } => done(processes::group_exists(group)),
            Call::Process { pid } => processes::process(pid).map(Reply::Process),
            Call::Pidfs { pid } => processes::pidfs(pid).map(Reply::Number),
            Call::Pids => processes::pids().map(Reply::Pids),
            Call::Uses { pid, of, known } => {
                uses::uses(pid, &of, &known).map(|uses| Reply::Uses(Box::new(uses)))
            }
            Call::DescriptorsMax => processes::descriptors_max().map(Reply::Number),
            Call::KillGroup { group } => done(processes::kill_group(group)),
            Call::Wait { pid, wait, reap } => processes::wait(pid, wait, reap).map(Reply::Ending),
            Call::Pause { millis } => {
                processes::pause(millis);
                Ok(Reply::Done)
            }
            Call::Random => processes::random().map(Reply::Number),
        }
    }

    fn spawn(&self, program: &mut HostProgram, plan: &ChildPlan) -> Answer<Pid> {
        program.spawn_planned(plan)
    }
}

fn done(answer: Answer<()>) -> Answer<Reply> {
    answer.map(|()| Reply::Done)
}

/// What a library calls an error, as the number that crosses the seam.
trait Number {
    fn number(self) -> Errno;
}

impl Number for nix::errno::Errno {
    fn number(self) -> Errno {
        Errno(self as i32)
    }
}

impl Number for rustix::io::Errno {
    fn number(self) -> Errno {
        Errno(self.raw_os_error())
    }
}

/// A library's result, as an answer.
trait IntoAnswer<T> {
    fn answer(self) -> Answer<T>;
}

impl<T, E: Number> IntoAnswer<T> for Result<T, E> {
    fn answer(self) -> Answer<T> {
        self.map_err(Number::number)
    }
}
