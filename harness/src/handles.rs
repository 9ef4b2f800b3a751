//! What the handles in a timeline stand for, and which locks are held through them.
//!
//! Worked out from the calls and their answers alone, as a reader would do it, so that a picture can
//! name a file where the call has a number, and draw a lock for as long as somebody has a descriptor of
//! it: copies that a fork made count, and end with their process.
//!
//! Invariant: what it holds for locked is what the world has locked. A test compares the two after every
//! choice of drawn runs.

use std::collections::{BTreeMap, BTreeSet};

use mortmain::sys::{Call, Handle, Name, Pid, Reply};
use mortmain_subjects::Beyond;

use crate::timeline::{Called, Event};
use crate::world::request::{ChildCall, Request, Response};
use crate::world::{Effect, World};

/// Where copies of descriptors that survive exec are put, or above: as in the world.
const KEPT_AT: i32 = 255;

/// An open file description, by the order in which they were opened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Opened(usize);

#[derive(Clone, Copy, Debug)]
struct Descriptor {
    of: Opened,
    /// Whether it survives exec.
    kept: bool,
}

/// What is open in each process.
#[derive(Clone, Default, Debug)]
pub(crate) struct Handles {
    /// The path that each description was opened by, below the root, as renames have left it.
    paths: Vec<String>,
    descriptors: BTreeMap<(Pid, i32), Descriptor>,
    locked: BTreeSet<Opened>,
}

impl Handles {
    /// Takes one event more into account.
    pub(crate) fn follow(&mut self, event: &Event) {
        let pid = event.who.pid;
        if let Some(Called { request, effect }) = &event.called {
            self.step(pid, request, effect);
        }
        if event.kind.is_end() {
            self.close(|(owner, _), _| *owner == pid);
        }
    }

    /// The path of a handle below the root, the root's own in full.
    pub(crate) fn path(&self, pid: Pid, fd: Handle) -> &str {
        self.opened(pid, fd).map_or("?", |of| self.path_of(of))
    }

    /// The path of a name in a directory.
    pub(crate) fn path_in(&self, pid: Pid, dir: Handle, name: &Name) -> String {
        match self.path(pid, dir) {
            World::ROOT => name.to_string(),
            path => format!("{path}/{name}"),
        }
    }

    /// The path of a description.
    pub(crate) fn path_of(&self, of: Opened) -> &str {
        &self.paths[of.0]
    }

    /// Who has a descriptor of what is locked.
    pub(crate) fn held(&self) -> BTreeSet<(Pid, Opened)> {
        let all = self.descriptors.iter().map(|((pid, _), descriptor)| (*pid, descriptor.of));
        all.filter(|(_, of)| self.locked.contains(of)).collect()
    }

    fn opened(&self, pid: Pid, fd: Handle) -> Option<Opened> {
        self.descriptors.get(&(pid, fd.0)).map(|descriptor| descriptor.of)
    }

    fn step(&mut self, pid: Pid, request: &Request, effect: &Effect) {
        match (request, effect) {
            (Request::Call(call), Effect::Answer(Response::Reply(Ok(reply)))) => {
                self.call(pid, call, reply);
            }
            (
                Request::Beyond(Beyond::OpenPlain { dir, name }),
                Effect::Answer(Response::Reply(Ok(Reply::Handle(fd)))),
            ) => self.open(pid, *fd, self.path_in(pid, *dir, name)),
            (Request::CloseAll, _) => self.close(|(owner, _), _| *owner == pid),
            (_, Effect::Image(_)) => self.close(|(owner, _), fd| *owner == pid && !fd.kept),
            (
                Request::Child(ChildCall::KeepOverExec { fd }),
                Effect::Answer(Response::Done(Ok(()))),
            ) => {
                let free = (KEPT_AT..).find(|fd| !self.descriptors.contains_key(&(pid, *fd)));
                if let (Some(number), Some(of)) = (free, self.opened(pid, *fd)) {
                    self.descriptors.insert((pid, number), Descriptor { of, kept: true });
                }
            }
            (_, Effect::Born { child } | Effect::Forked { child }) => {
                let of_parent = self.descriptors.range((pid, i32::MIN)..=(pid, i32::MAX));
                let copies: Vec<_> =
                    of_parent.map(|((_, fd), copied)| ((*child, *fd), *copied)).collect();
                self.descriptors.extend(copies);
            }
            _ => {}
        }
    }

    fn call(&mut self, pid: Pid, call: &Call, reply: &Reply) {
        match (call, reply) {
            (Call::OpenRoot { path }, Reply::Handle(fd)) => self.open(pid, *fd, path.to_string()),
            (
                Call::OpenDir { dir, name }
                | Call::OpenFile { dir, name }
                | Call::CreateFile { dir, name },
                Reply::Handle(fd),
            ) => self.open(pid, *fd, self.path_in(pid, *dir, name)),
            (Call::Close { fd }, _) => self.close(|of, _| *of == (pid, fd.0)),
            (Call::Lock { fd }, _) => self.locked.extend(self.opened(pid, *fd)),
            (Call::Unlock { fd }, _) => {
                let of = self.opened(pid, *fd);
                self.locked.retain(|locked| Some(*locked) != of);
            }
            (Call::Rename { dir, from, to }, _) => {
                let (from, to) = (self.path_in(pid, *dir, from), self.path_in(pid, *dir, to));
                for path in &mut self.paths {
                    let below = path.strip_prefix(&from);
                    let below = below.filter(|rest| rest.is_empty() || rest.starts_with('/'));
                    if let Some(below) = below {
                        *path = format!("{to}{below}");
                    }
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, pid: Pid, Handle(fd): Handle, path: String) {
        let of = Opened(self.paths.len());
        self.paths.push(path);
        self.descriptors.insert((pid, fd), Descriptor { of, kept: false });
    }

    /// Closes descriptors; the last one of a description gives its lock back.
    fn close(&mut self, which: impl Fn(&(Pid, i32), &Descriptor) -> bool) {
        self.descriptors.retain(|key, descriptor| !which(key, descriptor));
        let open: BTreeSet<Opened> = self.descriptors.values().map(|fd| fd.of).collect();
        self.locked.retain(|of| open.contains(of));
    }
}
