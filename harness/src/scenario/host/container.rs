//! Containers: pid namespaces with a `/proc` that shows what the story says.
//!
//! A container is there from the moment at which somebody is first started in it, until the end of
//! the story, and its first process does nothing; or a server is its first process, and it begins and
//! ends with that. Who else is in it was started from outside, by a process that waits for it out
//! there, so that it is reaped whenever it ends.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use super::act::gone;
use super::stage::{PLAIN_UID, Serving, Stage};
use super::{Failure, Outcome};
use crate::actor::Actor as Process;
use crate::guard::ChildGuard;
use crate::processes::processes;
use crate::scenario::story::{self, Actor, Proc, Surroundings};
use crate::scenario::telling::not_running;
use crate::wait::{Deadline, Watch};

/// Longer than anything takes on a loaded machine.
const PATIENCE_SECS: u64 = 20;

/// A container whose first process does nothing.
#[derive(Debug)]
pub(super) struct Entered {
    /// Whoever made it; it ends with this.
    _guard: ChildGuard,
    first: i32,
}

impl Stage<'_> {
    /// The program, as the first process of a container that begins with it.
    pub(super) fn first_in(&self, container: &str, program: &Command) -> Command {
        let proc = match self.story.actors.get(container) {
            Some(Actor::Container(container)) => container.proc,
            _ => panic!("`{container}` is no container"),
        };
        let mount = match proc {
            Proc::Own => "mount -t proc proc /proc && ",
            Proc::Outer => "",
            Proc::HidesProcesses => "mount -t proc -o hidepid=2 proc /proc && ",
        };
        let mut command = Command::new("unshare");
        command.args(["--pid", "--mount", "--fork", "--kill-child", "sh", "-c"]);
        command.arg(format!("{mount}exec \"$@\"")).arg("sh");
        command.arg(program.get_program()).args(program.get_args());
        command
    }

    /// The program, in a container that is there, or is made.
    pub(super) fn inside(
        &mut self,
        container: &str,
        program: &Command,
        plain_user: bool,
    ) -> Outcome<Command> {
        let first = self.first_of(container)?;
        let mut command = Command::new("nsenter");
        command.args(["--target", &first.to_string(), "--pid", "--mount"]);
        if plain_user {
            let user = PLAIN_UID.to_string();
            command.args(["--setgid", &user, "--setuid", &user]);
        }
        command.arg("--").arg(program.get_program()).args(program.get_args());
        Ok(command)
    }

    /// The first process of a container.
    fn first_of(&mut self, name: &str) -> Outcome<i32> {
        if let Some(entered) = self.containers.get(name) {
            return Ok(entered.first);
        }
        let is_first = |server: &story::Server| {
            server.first && server.surroundings.container.as_deref() == Some(name)
        };
        let mut firsts = self.story.actors.iter().filter_map(|(server, actor)| match actor {
            Actor::Server(described) if is_first(described) => Some(server),
            _ => None,
        });
        if let Some(any) = firsts.clone().next() {
            // One after the other may be it.
            let running = firsts.find_map(|server| self.servers.get(server));
            return running.map(Serving::pid).ok_or_else(|| not_running(any));
        }
        let mut idle = Command::new("sh");
        idle.args(["-c", "echo ready && read -r never"]);
        let failed = |error: String| Failure::new("container", error);
        let guard = ChildGuard::spawn_with_stdin(self.first_in(name, &idle));
        let mut guard = guard.map_err(|error| failed(error.to_string()))?;
        let deadline = Deadline::secs(PATIENCE_SECS);
        let ready = guard.lines().next_line(deadline, "a container to be made");
        ready.map_err(|error| failed(error.to_string()))?;
        let first = processes()?.into_iter().find(|info| info.ppid == guard.pid());
        let first = first.ok_or_else(|| failed("its first process has ended".into()))?.pid;
        self.containers.insert(name.into(), Entered { _guard: guard, first });
        Ok(first)
    }

    /// A copy of the program that others may run and not read.
    pub(super) fn unreadable_lab(&self) -> Outcome<PathBuf> {
        let copy = self.attic.with_file_name("unreadable-lab");
        if !copy.exists() {
            fs::copy(&self.lab, &copy)?;
            fs::set_permissions(&copy, Permissions::from_mode(0o711))?;
        }
        Ok(copy)
    }
}

/// Kills whoever is in a container below the process that was started, which does not take them along.
pub(super) fn kill_inside(surroundings: &Surroundings, outside: &Process) -> Outcome<()> {
    if surroundings.container.is_none() {
        return Ok(());
    }
    for inside in processes()?.iter().filter(|info| info.ppid == outside.pid()) {
        if let Some(watch) = Watch::open(inside.pid)? {
            watch.kill()?;
            gone(&watch)?;
        }
    }
    Ok(())
}
