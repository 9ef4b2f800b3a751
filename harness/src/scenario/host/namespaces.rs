//! Servers and sweepers that see another machine than the teller does, and who they are to it.
//!
//! Who has a namespace of its own is not the process that was started, and knows itself, its copies
//! and its commands by other numbers. The teller believes `/proc` about who is who.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use super::stage::Stage;
use super::{Failure, Outcome};
use crate::actor::Actor as Process;
use crate::forge::Record;
use crate::processes::{process, processes};
use crate::scenario::story::{Surroundings, Sweeper};
use crate::wait::Watch;

impl Stage<'_> {
    /// Starts a server as it is described.
    pub(super) fn start_server(&mut self, name: &str) -> Outcome<Process> {
        let described = self.story.server(name);
        let lab = if described.unreadable { self.unreadable_lab()? } else { self.lab.clone() };
        let (plain_user, first) = (described.plain_user, described.first);
        let mut actor = Command::new(lab);
        actor.arg("actor");
        if let Some(passed) = &described.passed {
            actor.args(self.launch(name, passed).args());
        }
        let mut command = self.placed(actor, plain_user, &described.surroundings, first)?;
        if described.background {
            // The first process of the cell is its parent from now on.
            let inner = std::mem::replace(&mut command, Command::new("sh"));
            command.args(["-c", "exec 3<&0; \"$@\" <&3 3<&- & exit 0", "sh"]);
            command.arg(inner.get_program()).args(inner.get_args());
            self.drop_rights(
                &mut command,
                plain_user && described.surroundings.container.is_none(),
            );
        }
        Ok(Process::start_by(command))
    }

    /// Starts a sweeper as it is described.
    pub(super) fn start_sweeper(&mut self, described: &Sweeper) -> Outcome<Process> {
        let mut actor = Command::new(&self.lab);
        actor.arg("actor");
        let surroundings = &described.surroundings;
        Ok(Process::start_by(self.placed(actor, described.plain_user, surroundings, false)?))
    }

    /// What becomes this actor where it is to see what it is to see.
    fn placed(
        &mut self,
        command: Command,
        plain_user: bool,
        surroundings: &Surroundings,
        first: bool,
    ) -> Outcome<Command> {
        let offset = surroundings.boottime_offset;
        match &surroundings.container {
            Some(container) if first => Ok(with_clock(offset, self.first_in(container, &command))),
            // Who enters needs rights that it drops there.
            Some(container) => self.inside(container, &with_clock(offset, command), plain_user),
            None => {
                let mut command = with_clock(offset, command);
                self.drop_rights(&mut command, plain_user);
                Ok(command)
            }
        }
    }

    /// Takes hold of the owner of a claim, where that is not the process that was started.
    pub(super) fn hold_owner(&mut self, server: &str, claim: &Path) -> Outcome<()> {
        let described = self.story.server(server);
        if described.background || described.surroundings.are_own() {
            let recorded = Record::read(&claim.join("owner"))?.process;
            let owner = seen_here(recorded.pid, recorded.pid_ns)?;
            self.serving(server)?.owner = Some(owner);
        }
        Ok(())
    }

    /// Takes hold of a process that a server, or its command, calls by this number.
    pub(super) fn hold(&self, server: &str, pid: i32) -> Outcome<Watch> {
        let own = match self.servers.get(server).and_then(|serving| serving.owner.as_ref()) {
            Some(owner) => pid_namespace(owner.pid())?,
            None => pid_namespace(rustix::process::getpid().as_raw_nonzero().get())?,
        };
        match own {
            Some(own) => seen_here(pid, own),
            None => Err(Failure::new("not-running", format!("`{server}` has ended"))),
        }
    }

    /// Remembers the number and the start of somebody, for when they have ended.
    pub(super) fn remember(&mut self, who: &str, pid: i32) -> Outcome<()> {
        if let Some(info) = process(pid)? {
            self.numbers.insert(who.into(), (pid, info.start_ticks));
        }
        Ok(())
    }
}

/// The command, with a clock of its own.
fn with_clock(offset: Option<i64>, actor: Command) -> Command {
    let Some(offset) = offset else { return actor };
    let mut command = Command::new("unshare");
    command.args(["--fork", "--kill-child", "--time", "--boottime", &offset.to_string()]);
    command.arg("--").arg(actor.get_program()).args(actor.get_args());
    command
}

/// The process that has this number in that pid namespace.
fn seen_here(pid: i32, namespace: u32) -> Outcome<Watch> {
    for info in processes()? {
        if innermost(info.pid)? == Some(pid) && pid_namespace(info.pid)? == Some(namespace) {
            return Watch::open(info.pid)?
                .ok_or_else(|| Failure::new("not-running", format!("process {pid} has ended")));
        }
    }
    let title = format!("no process that can be seen here has the number {pid} where it lives");
    Err(Failure::new("not-running", title))
}

/// The number of a process in the innermost of its pid namespaces.
fn innermost(pid: i32) -> Outcome<Option<i32>> {
    let Some(status) = while_it_lives(fs::read_to_string(format!("/proc/{pid}/status")))? else {
        return Ok(None);
    };
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    Ok(line.and_then(|line| line.split_ascii_whitespace().last()?.parse().ok()))
}

/// The number of a process's pid namespace.
fn pid_namespace(pid: i32) -> Outcome<Option<u32>> {
    let Some(link) = while_it_lives(fs::read_link(format!("/proc/{pid}/ns/pid")))? else {
        return Ok(None);
    };
    let link = link.to_string_lossy();
    let number = link.strip_prefix("pid:[").and_then(|rest| rest.strip_suffix(']'));
    Ok(number.and_then(|number| number.parse().ok()))
}

/// What was read, if the process had not ended, or is not another user's.
fn while_it_lives<T>(read: io::Result<T>) -> Outcome<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            ) || error.raw_os_error() == Some(nix::libc::ESRCH) =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}
