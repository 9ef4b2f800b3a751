//! What happened, for people: a lane a process, a line an event.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use mortmain::sys::Pid;

use crate::judge::{Violation, Who};
use crate::world::Effect;
use crate::world::request::Request;

/// The step that a kill is, in what a judge says.
pub(crate) const SIGKILL: &str = "SIGKILL";

/// What an event means for its process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// It made a step.
    Step,
    /// It made a step that failed for no reason of its own.
    Failed,
    /// It was born.
    Born,
    /// It ended by itself.
    Ended,
    /// It was killed.
    Killed,
}

impl EventKind {
    fn letter(self) -> char {
        match self {
            EventKind::Step => 'o',
            EventKind::Failed => '!',
            EventKind::Born => '+',
            EventKind::Ended => '.',
            EventKind::Killed => 'X',
        }
    }

    /// Whether it is the last one of its process.
    pub(crate) fn is_end(self) -> bool {
        matches!(self, EventKind::Ended | EventKind::Killed)
    }
}

/// A step as the world saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Called {
    /// What was asked for.
    pub request: Arc<Request>,
    /// What came of it, whatever its process was told.
    pub effect: Effect,
}

/// One event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Whose.
    pub who: Who,
    /// What it means.
    pub kind: EventKind,
    /// In words.
    pub text: String,
    /// The step, where it is one of a process.
    pub called: Option<Called>,
}

impl Event {
    /// Its process as it is called after it: it may have become another program.
    pub(crate) fn who_then(&self) -> Who {
        match &self.called {
            Some(Called { effect: Effect::Image(program), .. }) => {
                Who { program: program.name, ..self.who }
            }
            _ => self.who,
        }
    }
}

/// Events in order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Timeline {
    /// The events.
    pub events: Vec<Event>,
}

impl Timeline {
    /// The processes, in the order in which they turn up.
    pub(crate) fn lanes(&self) -> Vec<Pid> {
        let mut lanes = Vec::new();
        for event in &self.events {
            if !lanes.contains(&event.who.pid) {
                lanes.push(event.who.pid);
            }
        }
        lanes
    }

    /// The event that a violation blames, by its place: the last of that process with that step.
    pub(crate) fn blamed(&self, violation: &Violation) -> Option<usize> {
        let (by, step) = violation.blamed()?;
        self.events.iter().rposition(|event| {
            event.who == by
                && match &event.called {
                    Some(called) => called.request.to_string() == step,
                    None => event.kind == EventKind::Killed && step == SIGKILL,
                }
        })
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lanes = self.lanes();
        let mut alive = vec![false; lanes.len()];
        for (at, event) in self.events.iter().enumerate() {
            let mut line = String::new();
            for (lane, pid) in lanes.iter().enumerate() {
                let mine = *pid == event.who.pid;
                let letter = match (mine, alive[lane]) {
                    (true, _) => event.kind.letter(),
                    (false, true) => '|',
                    (false, false) => ' ',
                };
                write!(line, " {letter}")?;
                if mine {
                    alive[lane] = !event.kind.is_end();
                }
            }
            writeln!(f, "{:>5} {line}  {}: {}", at + 1, event.who, event.text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_a_lane_from_birth_to_death() {
        let event = |pid, program, kind, text: &str| Event {
            who: Who { pid: Pid(pid), program },
            kind,
            text: text.into(),
            called: None,
        };
        let timeline = Timeline {
            events: vec![
                event(10, "owner", EventKind::Born, "starts"),
                event(20, "sweep", EventKind::Born, "starts"),
                event(10, "owner", EventKind::Step, "mkdir"),
                event(20, "sweep", EventKind::Failed, "lock: fails: EIO"),
                event(10, "owner", EventKind::Killed, "is killed"),
                event(20, "sweep", EventKind::Ended, "exit 0"),
            ],
        };
        let want = "    1  +    owner 10: starts\n    \
                        2  | +  sweep 20: starts\n    \
                        3  o |  owner 10: mkdir\n    \
                        4  | !  sweep 20: lock: fails: EIO\n    \
                        5  X |  owner 10: is killed\n    \
                        6    .  sweep 20: exit 0\n";
        assert_eq!(timeline.to_string(), want);
    }
}
