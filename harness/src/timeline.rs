//! What happened, for people: a lane a process, a line an event.

use std::fmt::{self, Write as _};

use mortmain::sys::Pid;

use crate::judge::Who;

/// What an event means for its process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// It made a step.
    Step,
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
            EventKind::Born => '+',
            EventKind::Ended => '.',
            EventKind::Killed => 'X',
        }
    }
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
}

/// Events in order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Timeline {
    /// The events.
    pub events: Vec<Event>,
}

impl Timeline {
    /// The processes, in the order in which they turn up.
    fn lanes(&self) -> Vec<Pid> {
        let mut lanes = Vec::new();
        for event in &self.events {
            if !lanes.contains(&event.who.pid) {
                lanes.push(event.who.pid);
            }
        }
        lanes
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
                    alive[lane] = !matches!(event.kind, EventKind::Ended | EventKind::Killed);
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
        };
        let timeline = Timeline {
            events: vec![
                event(10, "owner", EventKind::Born, "starts"),
                event(20, "sweep", EventKind::Born, "starts"),
                event(10, "owner", EventKind::Step, "mkdir"),
                event(10, "owner", EventKind::Killed, "is killed"),
                event(20, "sweep", EventKind::Ended, "exit 0"),
            ],
        };
        let want = "    1  +    owner 10: starts\n    \
                        2  | +  sweep 20: starts\n    \
                        3  o |  owner 10: mkdir\n    \
                        4  X |  owner 10: is killed\n    \
                        5    .  sweep 20: exit 0\n";
        assert_eq!(timeline.to_string(), want);
    }
}
