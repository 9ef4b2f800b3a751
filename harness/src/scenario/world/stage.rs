//! What a story is told on in the world: a root, precious directories, and who is running.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use mortmain::sys::{Errno, PathBytes, Pid};

use super::ledger::{Claim, Home, Ledger};
use super::machine::{Machine, Parent};
use super::program;
use crate::actor::wire::{Disturbance, Done, Order, Subject, What};
use crate::scenario::fields::Count;
use crate::scenario::story::{self, Base, Disturbed, Place, Story, bracketed};
use crate::scenario::telling::{Doing, Failure, Heard, Ordered, Outcome, PREFIX};
use crate::world::hand::Thing;
use crate::world::{Reaping, Rules, World};

/// The precious directory that every story has.
const OUTSIDE: &str = "outside";

/// Where links lead that are to lead to a device without end: to a file, which nobody may read.
const ZERO: &str = "/dev/zero";

/// All that is at a path and below it.
type Things = BTreeMap<Vec<u8>, Thing>;

/// Everything that is there while a story is told.
pub(super) struct Stage<'s> {
    pub(super) story: &'s Story,
    pub(super) subject: Subject,
    pub(super) round: u64,
    pub(super) machine: Machine,
    pub(super) ledger: Ledger,
    pub(super) precious: BTreeMap<String, Things>,
    pub(super) servers: BTreeMap<String, Serving>,
    pub(super) sweepers: BTreeMap<String, Pid>,
    pub(super) commands: BTreeMap<String, Running>,
    /// Copies of servers that were forked and live on with the claim.
    pub(super) copies: BTreeMap<String, Vec<Pid>>,
    pub(super) strangers: BTreeMap<String, Pid>,
    /// The pids of servers and commands, also when they have ended.
    pub(super) numbers: BTreeMap<String, Pid>,
    /// What the sweeps said.
    pub(super) heard: Heard,
    /// Who has locked a directory and has to do with no claim.
    pub(super) locks: Vec<(PathBytes, Pid)>,
    /// Commands that live and have lost their claim, as it was foreseen.
    pub(super) escaped: BTreeSet<String>,
    /// How many things lie where things are that something else was put in the place of.
    pub(super) aside: usize,
    /// Precious directories that were moved, and where they are now.
    pub(super) moved: BTreeMap<String, Place>,
    /// Whether an operation ended before the call at which something was to happen.
    pub(super) over: bool,
}

/// A server that runs.
#[derive(Clone, Debug)]
pub(super) struct Serving {
    pub(super) pid: Pid,
    /// What it was doing when it stopped.
    pub(super) stopped: Option<Doing>,
}

/// A command that was started.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) pid: Pid,
    /// Whether it is still its server's copy, and held before its exec.
    pub(super) held: bool,
}

impl<'s> Stage<'s> {
    /// Sets everything up.
    pub(super) fn set(story: &'s Story, subject: Subject, round: u64) -> Outcome<Stage<'s>> {
        let reaping = if story.zombies_stay { Reaping::Never } else { Reaping::AtOnce };
        let mut machine = Machine::new(Rules { reaping, ..Rules::default() });
        for dir in ["/shared", "/attic", "/dev"] {
            put(&mut machine.world, dir, Thing::Dir)?;
        }
        put(&mut machine.world, ZERO, file(&[0; 4096]))?;
        let named = story.actors.iter();
        let named = named.filter(|(_, actor)| matches!(actor, story::Actor::Precious(_)));
        let named = named.map(|(name, _)| name.as_str()).chain([OUTSIDE]);
        let mut precious = BTreeMap::new();
        for name in named {
            let at = format!("/precious-{name}");
            for dir in ["", "/deep", "/deep/er"] {
                put(&mut machine.world, &format!("{at}{dir}"), Thing::Dir)?;
            }
            let text = format!("{name}: nobody may touch this\n");
            put(&mut machine.world, &format!("{at}/file"), file(text.as_bytes()))?;
            put(&mut machine.world, &format!("{at}/deep/er/file"), file(b"nor this\n"))?;
            let things = machine.world.things_at(&path(&at)).map_err(refused)?;
            precious.insert(name.to_owned(), things);
        }
        Ok(Stage {
            story,
            subject,
            round,
            machine,
            ledger: Ledger::default(),
            precious,
            servers: BTreeMap::new(),
            sweepers: BTreeMap::new(),
            commands: BTreeMap::new(),
            copies: BTreeMap::new(),
            strangers: BTreeMap::new(),
            numbers: BTreeMap::new(),
            heard: Heard::default(),
            locks: Vec::new(),
            escaped: BTreeSet::new(),
            aside: 0,
            moved: BTreeMap::new(),
            over: false,
        })
    }

    /// A server that runs.
    pub(super) fn serving(&mut self, name: &str) -> Outcome<&mut Serving> {
        let running = self.servers.get_mut(name);
        running.ok_or_else(|| Failure::new("not-running", format!("server `{name}` does not run")))
    }

    /// A command that was started.
    pub(super) fn running(&self, name: &str) -> Outcome<&Running> {
        let running = self.commands.get(name);
        running
            .ok_or_else(|| Failure::new("not-running", format!("command `{name}` was not started")))
    }

    /// A command that was started and lives.
    pub(super) fn lives(&self, name: &str) -> Outcome<Pid> {
        let pid = self.running(name)?.pid;
        match self.machine.world.lives(pid) {
            true => Ok(pid),
            false => Err(Failure::new("not-running", format!("command `{name}` has ended"))),
        }
    }

    /// The path of a claim, by whatever name it has now.
    pub(super) fn path_of(&self, claim: &Claim) -> Option<PathBytes> {
        self.ledger.path_of(&self.machine.world, claim)
    }

    /// Where an actor makes claims, or sweeps.
    pub(super) fn home_of(&self, actor: &str) -> Home {
        match self.story.actors.get(actor) {
            Some(story::Actor::Server(story::Server { within: Some(outer), .. })) => {
                Home::Within(outer.clone())
            }
            _ => Home::Root,
        }
    }

    /// The directory of that, for an actor who is about to go there.
    pub(super) fn root_for(&self, actor: &str) -> Outcome<PathBuf> {
        let root = self.ledger.root_of(&self.machine.world, &self.home_of(actor));
        root.map(path_buf).ok_or_else(|| {
            Failure::new("no-claim", format!("the claim is gone that `{actor}` is within"))
        })
    }

    /// The prefix of the claim of a server.
    pub(super) fn prefix_of(&self, server: &str) -> String {
        self.story.server(server).prefix.clone().unwrap_or_else(|| PREFIX.into())
    }

    /// Where a precious directory is by now.
    pub(super) fn precious_path(&self, name: &str) -> Outcome<PathBytes> {
        match self.moved.get(name) {
            // A place in a precious directory that was moved is found by this, too.
            Some(place) => self.resolve(place),
            None => Ok(path(&format!("/precious-{name}"))),
        }
    }

    /// That of the one that every story has.
    pub(super) fn outside(&self) -> Outcome<PathBytes> {
        self.precious_path(OUTSIDE)
    }

    /// The path of a place of the story.
    pub(super) fn resolve(&self, place: &Place) -> Outcome<PathBytes> {
        let base = match &place.base {
            Base::Root => World::root_path(),
            Base::Shared => path("/shared"),
            Base::Claim(server) => self.path_of(self.ledger.claim(server)?).ok_or_else(|| {
                Failure::new("no-claim", format!("nothing is left of the claim of `{server}`"))
            })?,
            Base::Precious(name) => self.precious_path(name)?,
        };
        let mut rest = place.rest.clone();
        for server in bracketed(&place.rest) {
            let name = self.ledger.claim(server)?.name();
            rest = rest.replace(&format!("<{server}>"), &name);
        }
        // OK because whoever read the story has seen to it.
        let rest = Place { base: Base::Root, rest }.rest_bytes().unwrap_or_default();
        Ok(if rest.is_empty() { base } else { base.join(&rest) })
    }

    /// The path of a place as an order has it.
    pub(super) fn resolve_for_order(&self, place: &Place) -> Outcome<PathBuf> {
        Ok(path_buf(self.resolve(place)?))
    }

    /// A process that takes orders, and waits for its first.
    pub(super) fn start_actor(&mut self, parent: Parent) -> Outcome<Pid> {
        let pid = self.machine.start(program::SERVER, parent);
        self.run()?;
        Ok(pid)
    }

    /// Lets a process see what it is meant to see of the machine.
    pub(super) fn surround(&mut self, pid: Pid, surroundings: &story::Surroundings) {
        if let Some(ahead) = surroundings.boottime_offset {
            self.machine.world.set_clock(pid, ahead);
        }
    }

    /// Lets everybody go on until nobody can.
    pub(super) fn run(&mut self) -> Outcome<()> {
        let Stage { machine, ledger, heard, .. } = self;
        machine.run(|world| ledger.check(world)).map_err(|failure| heard.with(failure))
    }

    /// Gives an order to a process, and lets everybody go on. What is to happen to it happens from
    /// where it says that it begins.
    pub(super) fn order(
        &mut self,
        pid: Pid,
        order: &Order,
        disturbed: Option<(Disturbed, Count)>,
    ) -> Outcome<()> {
        self.machine.tell(pid, &program::line(order))?;
        self.run()?;
        self.begins(pid, disturbed)?;
        self.run()
    }

    /// Lets a process go on that has said that it begins, with what is to happen to it from there on.
    pub(super) fn begins(
        &mut self,
        pid: Pid,
        disturbed: Option<(Disturbed, Count)>,
    ) -> Outcome<()> {
        let (Some((how, at)), Some(What::Stopped { .. })) = (disturbed, self.said(pid)) else {
            return Ok(());
        };
        let at = match at {
            Count::Round => Count::Fixed(self.round),
            at => at,
        };
        self.machine.disturb(pid, how, at);
        self.machine.tell(pid, &program::line(&Order::Continue))
    }

    fn said(&self, pid: Pid) -> Option<What> {
        self.machine.said(pid).map(program::understood)
    }

    /// What an order came to that a process was given.
    pub(super) fn hears(&mut self, pid: Pid) -> Outcome<Ordered> {
        let struck = self.machine.was_struck(pid);
        if !self.machine.world.lives(pid) {
            return match struck {
                true => Ok(Ordered::Killed),
                false => Err(Failure::new("actor", "it ended before it said anything")),
            };
        }
        match self.said(pid) {
            Some(What::Done(done)) => Ok(Ordered::Done(done)),
            Some(What::Failed { kind, message }) => Ok(Ordered::Failed { kind, message }),
            None if self.machine.has_stopped(pid) => Ok(Ordered::Stopped),
            Some(What::Stopped { .. }) | None => {
                let title = format!("process {} is neither done nor stopped", pid.0);
                Err(Failure::new("L2", title))
            }
        }
    }

    /// Asks a process for something that has to go well.
    pub(super) fn ask(
        &mut self,
        pid: Pid,
        order: &Order,
        good: impl Fn(&Done) -> bool,
    ) -> Outcome<Done> {
        self.order(pid, order, None)?;
        match self.hears(pid)? {
            Ordered::Done(done) if good(&done) => Ok(done),
            other => Err(other.unexpected().note(format!("it was asked to {order:?}"))),
        }
    }

    /// The word by which an order is told that something happens meanwhile; what, only the teller
    /// knows.
    pub(super) fn told_of(disturbed: Option<(Disturbed, Count)>) -> Option<Disturbance> {
        disturbed.map(|_| Disturbance::StopBefore(1))
    }

    pub(super) fn number(&self, count: Count) -> u64 {
        match count {
            Count::Fixed(number) => number,
            Count::Round => self.round,
            // Only a call has a name, and is found by it.
            Count::First(_) => 1,
        }
    }
}

pub(super) fn refused(errno: Errno) -> Failure {
    Failure::new("system", format!("the world refused: {errno}"))
}

pub(super) fn path(text: &str) -> PathBytes {
    PathBytes::from(text.as_bytes())
}

pub(super) fn path_buf(path: PathBytes) -> PathBuf {
    OsString::from_vec(path.0).into()
}

pub(super) fn file(content: &[u8]) -> Thing {
    Thing::File(content.into())
}

fn put(world: &mut World, at: &str, thing: Thing) -> Outcome<()> {
    world.put(&path(at), thing).map(drop).map_err(refused)
}
