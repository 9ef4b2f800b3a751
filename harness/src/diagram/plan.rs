//! A run worked out for drawing: the lanes, how long what lasts, and a label for each event.

use std::collections::{BTreeMap, BTreeSet};

use mortmain::sys::{Call, Pid, Reply};

use super::{BAR, GUTTER, LABEL_AT, LETTER, MARGIN};
use crate::handles::{Handles, Opened};
use crate::judge::Who;
use crate::timeline::{Called, Event, EventKind};
use crate::world::Effect;
use crate::world::request::{ChildCall, Request, Response};

/// Letters of a label at most; the whole is in the tooltip.
const LABEL_MAX: usize = 48;
/// Of which at most so many are for what comes of it.
const OUTCOME_MAX: usize = 32;

/// One process.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) who: Who,
    /// Where its line is.
    pub(super) x: usize,
    pub(super) width: usize,
}

/// What lasts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Thing {
    /// The process lives.
    Life,
    /// It may use a directory.
    Use,
    /// It has a descriptor of what is locked: its path.
    Lock(String),
}

/// Something that lasts from one event to another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Span {
    pub(super) lane: usize,
    pub(super) thing: Thing,
    pub(super) from: usize,
    pub(super) to: usize,
    /// Which of several locks of its lane it is, so that none hides another.
    pub(super) slot: usize,
}

/// All that is drawn.
#[derive(Default, Debug)]
pub(super) struct Plan {
    pub(super) lanes: Vec<Lane>,
    /// One for each event.
    pub(super) labels: Vec<String>,
    /// Lives before uses before locks, in each lane.
    pub(super) spans: Vec<Span>,
    /// The lanes of a parent and of its child, and the event with which that begins.
    pub(super) forks: Vec<(usize, usize, usize)>,
}

/// What is true between two events.
#[derive(Default)]
struct Now {
    handles: Handles,
    alive: BTreeSet<Pid>,
    users: BTreeSet<Pid>,
    parents: BTreeMap<Pid, Pid>,
}

/// What lasts, by its process; of a lock, which.
type Lasting = (Pid, u8, Option<Opened>);

impl Now {
    fn follow(&mut self, event: &Event) {
        let pid = event.who.pid;
        self.handles.follow(event);
        match event.kind {
            EventKind::Born => {
                self.alive.insert(pid);
            }
            EventKind::Ended | EventKind::Killed => {
                self.alive.remove(&pid);
                self.users.remove(&pid);
            }
            EventKind::Step | EventKind::Failed => {}
        }
        let Some(Called { request, effect }) = &event.called else { return };
        match (&**request, effect) {
            (Request::Hold { .. }, _) => {
                self.users.insert(pid);
            }
            (Request::GiveUp { .. }, _) => {
                self.users.remove(&pid);
            }
            (request, Effect::Born { child } | Effect::Forked { child }) => {
                self.parents.insert(*child, pid);
                let uses = match request {
                    Request::Spawn { command, .. } => !command.uses.is_empty(),
                    _ => self.users.contains(&pid),
                };
                self.users.extend(uses.then_some(*child));
            }
            _ => {}
        }
    }

    /// All that lasts, of those who have a line.
    fn lasting(&self) -> BTreeSet<Lasting> {
        let alive = self.alive.iter().map(|pid| (*pid, 0, None));
        let users = self.users.iter().map(|pid| (*pid, 1, None));
        let locks = self.handles.held().into_iter().map(|(pid, of)| (pid, 2, Some(of)));
        alive.chain(users).chain(locks).filter(|(pid, _, _)| self.alive.contains(pid)).collect()
    }
}

impl Plan {
    pub(super) fn of(events: &[Event]) -> Plan {
        let mut plan = Plan::default();
        let mut whos: Vec<Who> = Vec::new();
        let mut came_again = BTreeSet::new();
        for event in events.iter().filter(|event| event.who.is_process()) {
            match whos.iter_mut().find(|who| who.pid == event.who.pid) {
                // A lane is called after the first who had its number.
                Some(_) if event.kind == EventKind::Born || came_again.contains(&event.who.pid) => {
                    came_again.insert(event.who.pid);
                }
                // It may have become another program.
                Some(who) => *who = event.who_then(),
                None => whos.push(event.who),
            }
        }
        // OK because every process turns up with its birth.
        let lane_of = |pid: Pid| whos.iter().position(|who| who.pid == pid).unwrap_or_default();
        let mut now = Now::default();
        let mut open: BTreeMap<Lasting, (usize, usize)> = BTreeMap::new();
        for (at, event) in events.iter().enumerate() {
            plan.labels.push(label(&now.handles, event));
            now.follow(event);
            let parent = now.parents.get(&event.who.pid).filter(|_| event.kind == EventKind::Born);
            plan.forks.extend(parent.map(|parent| (lane_of(*parent), lane_of(event.who.pid), at)));
            plan.follow(&mut open, &now, at, lane_of);
        }
        // What lasts beyond the last event ends with the picture.
        now.alive.clear();
        plan.follow(&mut open, &now, events.len(), lane_of);
        plan.spans.sort();
        plan.place(events, &whos);
        plan
    }

    /// Ends what does not last any more, and begins what does.
    fn follow(
        &mut self,
        open: &mut BTreeMap<Lasting, (usize, usize)>,
        now: &Now,
        at: usize,
        lane_of: impl Fn(Pid) -> usize,
    ) {
        let lasting = now.lasting();
        let over: Vec<Lasting> =
            open.keys().filter(|key| !lasting.contains(*key)).copied().collect();
        for key in over {
            let Some((from, slot)) = open.remove(&key) else { continue };
            let thing = match key {
                (_, _, Some(of)) => Thing::Lock(now.handles.path_of(of).into()),
                (_, 0, None) => Thing::Life,
                _ => Thing::Use,
            };
            self.spans.push(Span { lane: lane_of(key.0), thing, from, to: at, slot });
        }
        for key in lasting {
            let locks = open.iter().filter(|((pid, _, of), _)| *pid == key.0 && of.is_some());
            let taken: BTreeSet<usize> = locks.map(|(_, (_, slot))| *slot).collect();
            let free = (0..).find(|slot| !taken.contains(slot)).unwrap_or_default();
            open.entry(key).or_insert((at, free));
        }
    }

    /// Gives each lane its place, wide enough for its labels.
    fn place(&mut self, events: &[Event], whos: &[Who]) {
        let mut x = GUTTER;
        for (at, who) in whos.iter().enumerate() {
            let bars = self.spans.iter().filter(|span| span.lane == at);
            let bars = bars.filter(|span| matches!(span.thing, Thing::Lock(_)));
            x += 8 + bars.map(|span| span.slot + 1).max().unwrap_or_default() * BAR;
            let labels = events.iter().zip(&self.labels);
            let own = labels.filter(|(event, _)| event.who.pid == who.pid);
            let letters = own.map(|(_, label)| label.chars().count()).max().unwrap_or_default();
            let width = LABEL_AT + letters.max(who.to_string().chars().count()) * LETTER;
            self.lanes.push(Lane { who: *who, x, width });
            x += width + MARGIN;
        }
    }
}

/// A step in a few words: what is done, with names in the place of numbers, and what comes of it, which
/// a long name does not push out.
fn label(handles: &Handles, event: &Event) -> String {
    let outcome = shortened(&outcome(event), OUTCOME_MAX);
    let letters = LABEL_MAX.saturating_sub(outcome.chars().count());
    shortened(&what(handles, event), letters) + &outcome
}

fn what(handles: &Handles, event: &Event) -> String {
    let pid = event.who.pid;
    let Some(Called { request, .. }) = &event.called else { return event.text.clone() };
    let path = match &**request {
        Request::Call(Call::Rename { dir, from, to }) => {
            format!("{} -> {to}", handles.path_in(pid, *dir, from))
        }
        Request::Call(
            Call::Close { fd }
            | Call::Stat { fd }
            | Call::FsMagic { fd }
            | Call::Lock { fd }
            | Call::Unlock { fd }
            | Call::LockHolder { fd }
            | Call::Chmod { fd, .. }
            | Call::Read { fd, .. }
            | Call::Write { fd, .. }
            | Call::Sync { fd }
            | Call::ReadDir { dir: fd, .. },
        )
        | Request::Child(ChildCall::KeepOverExec { fd }) => handles.path(pid, *fd).to_string(),
        request => match request.named() {
            Some((dir, name)) => handles.path_in(pid, dir, name),
            None => return request.to_string(),
        },
    };
    let told = request.to_string();
    let word = told.split_once(' ').map_or(&*told, |(word, _)| word);
    format!("{word} {path}")
}

/// What comes of a step, if there is anything to tell.
fn outcome(event: &Event) -> String {
    let Some(Called { effect, .. }) = &event.called else { return String::new() };
    if event.kind == EventKind::Failed {
        // OK because what is told of a failing step ends with how.
        let how = event.text.rsplit(": ").next().unwrap_or_default();
        let done = format!(": is done, and fails: {how}");
        return if event.text.ends_with(&done[1..]) { done } else { format!(": fails: {how}") };
    }
    match effect {
        Effect::Answer(Response::Reply(Ok(
            Reply::Done
            | Reply::Handle(_)
            | Reply::Stat(_)
            | Reply::FsMagic(_)
            | Reply::Bytes(_)
            | Reply::Identity(_)
            | Reply::Whoami(_),
        ))) => String::new(),
        Effect::Answer(Response::Done(Ok(())) | Response::Identity(Ok(_)) | Response::Held(_)) => {
            String::new()
        }
        Effect::Answer(response) => format!(": {response}"),
        Effect::Image(program) => format!(": {program}"),
        Effect::Born { child } | Effect::Forked { child } => format!(": {}", child.0),
        Effect::Ended => String::new(),
    }
}

/// At most so many letters.
fn shortened(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.into();
    }
    text.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
}
