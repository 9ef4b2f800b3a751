//! Commands are started: as products do, with their server killed or stopped meanwhile, or held
//! between fork and exec.

use std::fs;

use super::act::hears;
use super::command::{Pipes, Running, script};
use super::present::is_a_zombie;
use super::stage::Stage;
use super::{Failure, Outcome};
use crate::actor::wire::{Done, Order};
use crate::processes::processes;
use crate::scenario::fields::Count;
use crate::scenario::story::Disturbed;
use crate::scenario::telling::{Doing, Ordered, not_running};

impl Stage<'_> {
    /// Lets a server start a command.
    pub(super) fn spawn(
        &mut self,
        name: &str,
        disturbed: Option<(Disturbed, Count)>,
        held: Option<Count>,
    ) -> Outcome<()> {
        let described = self.story.command(name);
        let by = &described.by;
        let pipes = Pipes::make(&self.control, name)?;
        let order = Order::Spawn {
            script: script(described),
            input: Some(pipes.input.clone()),
            output: Some(pipes.output.clone()),
            disturbed: self.disturbance(disturbed),
            held: held.map(|count| self.number(count)),
        };
        let serving = self.serving(by)?;
        serving.process.order(order);
        if held.is_some() {
            return self.held(name, pipes);
        }
        match hears(&mut serving.process, "a command to be started")? {
            Ordered::Done(Done::Spawned { .. }) => {
                self.over |= disturbed.is_some();
                self.runs(name, pipes)
            }
            Ordered::Stopped if disturbed.is_some() => {
                serving.stopped = Some(Doing::Spawning(name.into()));
                self.heard.counts.disturbed = true;
                self.runs_perhaps(name, pipes)
            }
            Ordered::Killed if disturbed.is_some() => {
                self.heard.counts.disturbed = true;
                self.reap(by)?;
                self.runs_perhaps(name, pipes)
            }
            other => Err(other.unexpected()),
        }
    }

    /// Waits until a command is what it is meant to be.
    fn runs(&mut self, name: &str, pipes: Pipes) -> Outcome<()> {
        let described = self.story.command(name);
        let running = pipes.open(name, described, |pid| self.hold(&described.by, pid))?;
        self.remember(name, running.watch.pid())?;
        self.commands.insert(name.into(), running);
        Ok(())
    }

    /// The same, if there is one. Its server was disturbed between two calls of the library, the
    /// spawn being one of them: by then it is its program, or it is not.
    fn runs_perhaps(&mut self, name: &str, pipes: Pipes) -> Outcome<()> {
        for info in processes()? {
            let input = fs::read_link(format!("/proc/{}/fd/0", info.pid));
            // One that ends meanwhile, or is another user's, has no input to be seen.
            if input.is_ok_and(|input| input == pipes.input) {
                return self.runs(name, pipes);
            }
        }
        Ok(())
    }

    /// The command that a stopped server was starting is started, unless it ran before.
    pub(super) fn spawned(&mut self, name: &str) -> Outcome<()> {
        match self.commands.contains_key(name) {
            true => Ok(()),
            false => {
                let pipes = Pipes::made(&self.control, name)?;
                self.runs(name, pipes)
            }
        }
    }

    /// Waits until the child of a spawn is held. Its server waits for it.
    fn held(&mut self, name: &str, pipes: Pipes) -> Outcome<()> {
        self.runs(name, pipes)?;
        let by = &self.story.command(name).by;
        if self.running(name)?.held {
            self.heard.counts.disturbed = true;
            self.serving(by)?.stopped = Some(Doing::Held(name.into()));
            return Ok(());
        }
        // It has no such call.
        self.over = true;
        self.has_spawned(name)
    }

    /// Lets a child that was held become its program.
    pub(super) fn let_go(&mut self, name: &str) -> Outcome<()> {
        let described = self.story.command(name);
        let by = &described.by;
        let mut running: Running = self.commands.remove(name).ok_or_else(|| not_running(name))?;
        running.goes_on(name, described, |pid| self.hold(by, pid))?;
        self.commands.insert(name.into(), running);
        let Some(serving) = self.servers.get_mut(by) else { return Ok(()) };
        serving.stopped = None;
        match is_a_zombie(serving)? {
            // It says nothing any more.
            true => Ok(()),
            false => self.has_spawned(name),
        }
    }

    /// The server of a command says that it is started.
    fn has_spawned(&mut self, name: &str) -> Outcome<()> {
        let by = &self.story.command(name).by;
        match hears(&mut self.serving(by)?.process, "a command to be started")? {
            Ordered::Done(Done::Spawned { .. }) => Ok(()),
            other => Err(other.unexpected()),
        }
    }

    /// A server does what a claim is for: it writes a file there.
    pub(super) fn server_works(&mut self, server: &str) -> Outcome<()> {
        const NAME: &str = "used-by-owner";
        let order = Order::Write { name: NAME.into() };
        self.ask(server, order, |done| *done == Done::Written)?;
        let claim = self.claim(server)?;
        let written = self.path_of(claim).map(|path| path.join("files").join(NAME));
        match written.is_some_and(|path| path.is_file()) {
            true => Ok(()),
            false => {
                let title = format!("what server `{server}` has written is not in its claim");
                Err(self.with_reports(Failure::new("S1", title)))
            }
        }
    }
}
