//! What came of a step, with nothing in it that only one side knows.
//!
//! Inodes, pidfds and processes are counted in the order in which they come, descriptors have their
//! numbers, listings are sorted. A moment, a device and a program's name are left out.
//!
//! [`observe`] is the look at everything after the last step. It is the same code for both sides, and
//! made of calls of the seam alone.

use std::fmt;

use mortmain::sys::{Answer, Call, Errno, Handle, Kind, PathBytes, Pid, Reply};
use serde::{Deserialize, Serialize};

use super::operation::Word;

/// What came of a step.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// It failed with this number.
    Failed(i32),
    /// It was done.
    Done,
    /// A descriptor.
    Handle(i32),
    /// What an inode is: its kind, its mode, and which it is.
    Inode(String, u32, u64),
    /// Names with their kinds.
    Entries(Vec<(String, String)>),
    /// What a link says or a file holds.
    Bytes(String),
    /// A process: its group, whether it has ended, and its threads.
    Process(i32, bool, u32),
    /// Processes.
    Pids(Vec<i32>),
    /// How a child ended, as a shell reports it; nothing if it lives.
    Ending(Option<i32>),
    /// A number.
    Number(u64),
    /// A number that stands for a process.
    Pidfs(u64),
    /// Which claims a process uses, and how.
    Uses(Vec<String>),
    /// A process was born.
    Born(i32),
    /// It waits, and nobody is there who could end that.
    Waits,
    /// The process has ended by it.
    Ended,
    /// Nobody was there to do it.
    Nobody,
    /// There are as many processes as a program may have.
    Full,
}

impl Outcome {
    /// What a call answered, with the numbers of the side that it was made on.
    pub(super) fn of(call: &Call, answer: Answer<Reply>) -> Outcome {
        match answer {
            Err(errno) => Outcome::Failed(errno.0),
            Ok(Reply::Done) => Outcome::Done,
            Ok(Reply::Handle(handle)) => Outcome::Handle(handle.0),
            Ok(Reply::Stat(stat)) => Outcome::Inode(stat.kind.word().into(), stat.mode, stat.ino),
            Ok(Reply::FsMagic(magic)) => Outcome::Number(magic.0),
            Ok(Reply::Entries(entries)) => {
                let entries = entries.iter();
                let named = entries.map(|e| (e.name.to_string(), e.kind.word().to_string()));
                let mut named: Vec<(String, String)> = named.collect();
                named.sort();
                Outcome::Entries(named)
            }
            Ok(Reply::Bytes(bytes)) => Outcome::Bytes(match call {
                // What a child says of itself in its link has numbers of one side.
                Call::Readlink { .. } if !Word::ALL.iter().any(|w| w.name().bytes() == bytes) => {
                    format!("a record of {} bytes", bytes.len())
                }
                _ => bytes.escape_ascii().to_string(),
            }),
            Ok(Reply::Whoami(whoami)) => Outcome::Pids(vec![whoami.pid.0]),
            Ok(Reply::Process(process)) => {
                Outcome::Process(process.group.0, process.zombie, process.threads)
            }
            Ok(Reply::Pids(pids)) => Outcome::Pids(pids.iter().map(|pid| pid.0).collect()),
            Ok(Reply::Ending(ending)) => Outcome::Ending(ending.map(|ending| ending.code())),
            Ok(Reply::Number(number)) => match call {
                Call::Pidfs { .. } => Outcome::Pidfs(number),
                _ => Outcome::Number(number),
            },
            Ok(Reply::Uses(uses)) => {
                let found = uses.found.iter().map(|(claim, how)| format!("{claim} by {how:?}"));
                let rest = [(uses.ended, "it has ended"), (uses.unread, "not all is read")];
                let rest = rest.into_iter().filter(|(is, _)| *is).map(|(_, text)| text.into());
                Outcome::Uses(found.chain(rest).collect())
            }
            Ok(Reply::Identity(_)) => {
                unreachable!("no operation asks for what has such an answer")
            }
        }
    }

    /// Whether it went well.
    #[must_use]
    pub fn is_good(&self) -> bool {
        !matches!(self, Outcome::Failed(_) | Outcome::Waits | Outcome::Nobody | Outcome::Full)
    }

    /// The kind of outcome in a word, for tables: of a failure, the error's symbol.
    #[must_use]
    pub fn word(&self) -> String {
        match self {
            Outcome::Failed(number) => symbol(*number),
            Outcome::Process(_, true, _) => "zombie".into(),
            Outcome::Ending(None) => "alive".into(),
            Outcome::Uses(uses) if uses.is_empty() => "none".into(),
            Outcome::Waits => "waits".into(),
            Outcome::Nobody => "nobody".into(),
            Outcome::Full => "full".into(),
            Outcome::Ended => "ended".into(),
            _ => "done".into(),
        }
    }
}

fn symbol(number: i32) -> String {
    Errno(number).symbol().map_or_else(|| format!("error {number}"), String::from)
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processes = |pids: &[i32]| {
            let pids = pids.iter().map(|pid| format!("p{pid}"));
            pids.collect::<Vec<_>>().join(" ")
        };
        match self {
            Outcome::Failed(number) => f.write_str(&symbol(*number)),
            Outcome::Done => f.write_str("done"),
            Outcome::Handle(number) => write!(f, "descriptor {number}"),
            Outcome::Inode(kind, mode, inode) => write!(f, "{kind}, {mode:04o}, inode {inode}"),
            Outcome::Entries(entries) if entries.is_empty() => f.write_str("no entries"),
            Outcome::Entries(entries) => {
                let entries = entries.iter().map(|(name, kind)| format!("{name} ({kind})"));
                f.write_str(&entries.collect::<Vec<_>>().join(", "))
            }
            Outcome::Bytes(bytes) => write!(f, "`{bytes}`"),
            Outcome::Process(group, ended, threads) => {
                let life = if *ended { "zombie" } else { "alive" };
                write!(f, "{life}, group p{group}, {threads} threads")
            }
            Outcome::Pids(pids) if pids.is_empty() => f.write_str("nobody is told"),
            Outcome::Pids(pids) => f.write_str(&processes(pids)),
            Outcome::Ending(None) => f.write_str("it lives"),
            Outcome::Ending(Some(code)) => write!(f, "it ended with {code}"),
            Outcome::Number(number) => write!(f, "{number:#x}"),
            Outcome::Pidfs(nth) => write!(f, "pidfd {nth}"),
            Outcome::Uses(uses) if uses.is_empty() => f.write_str("no claim"),
            Outcome::Uses(uses) => f.write_str(&uses.join(", ")),
            Outcome::Born(pid) => write!(f, "p{pid} is born"),
            Outcome::Ended => f.write_str("ended"),
            Outcome::Waits => f.write_str("it waits for ever"),
            Outcome::Nobody => f.write_str("nobody is there to do it"),
            Outcome::Full => f.write_str("not tried: there are too many"),
        }
    }
}

/// What one side has shown so far, to count it.
#[derive(Clone, Default, Debug)]
pub(super) struct Known {
    /// Every process, in the order of birth.
    pub(super) pids: Vec<i32>,
    inodes: Vec<u64>,
    pidfds: Vec<u64>,
}

/// Stands for a process that is none of the program's.
const STRANGER: i32 = -1;
/// A number that no process has on either side.
pub(super) const NOBODY: Pid = Pid(4_000_000);

impl Known {
    /// The number of a process, or one that nobody has.
    pub(super) fn pid(&self, who: usize) -> Pid {
        self.pids.get(who).map_or(NOBODY, |pid| Pid(*pid))
    }

    /// The outcome with everything counted.
    pub(super) fn count(&mut self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Inode(kind, mode, ino) => {
                Outcome::Inode(kind, mode, place(&mut self.inodes, ino))
            }
            Outcome::Pidfs(number) => Outcome::Pidfs(place(&mut self.pidfds, number)),
            Outcome::Process(group, ended, threads) => {
                Outcome::Process(self.who(group), ended, threads)
            }
            // Others than the program's live on the real side.
            Outcome::Pids(pids) => {
                let mut pids: Vec<i32> = pids.iter().map(|pid| self.who(*pid)).collect();
                pids.retain(|who| *who != STRANGER);
                pids.sort_unstable();
                Outcome::Pids(pids)
            }
            Outcome::Born(pid) => {
                self.pids.push(pid);
                Outcome::Born(self.who(pid))
            }
            other => other,
        }
    }

    fn who(&self, pid: i32) -> i32 {
        let place = self.pids.iter().position(|known| *known == pid);
        // OK because there are few processes.
        place.map_or(STRANGER, |place| i32::try_from(place).expect("few processes"))
    }
}

/// The place of a number among those that came before, at the end if it is new.
fn place(known: &mut Vec<u64>, number: u64) -> u64 {
    let place = known.iter().position(|known| *known == number).unwrap_or_else(|| {
        known.push(number);
        known.len() - 1
    });
    place as u64
}

/// What came of a program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Run {
    /// What came of each step.
    pub outcomes: Vec<Outcome>,
    /// What was there after the last, a line each.
    pub end: Vec<String>,
}

/// Looks at every name, every lock and every process.
pub(super) fn observe(
    known: &mut Known,
    root: &PathBytes,
    call: &mut impl FnMut(Call) -> Answer<Reply>,
) -> Vec<String> {
    let mut lines = Vec::new();
    match call(Call::OpenRoot { path: root.clone() }) {
        Ok(Reply::Handle(dir)) => {
            observe_dir(known, dir, "/r", call, &mut lines);
        }
        other => lines.push(format!("the root cannot be opened: {other:?}")),
    }
    for who in 0..known.pids.len() {
        let pid = known.pid(who);
        let mut seen = |wanted: Call| {
            let answer = call(wanted.clone());
            known.count(Outcome::of(&wanted, answer)).to_string()
        };
        let process = seen(Call::Process { pid });
        let exists = seen(Call::ProcessExists { pid });
        let group = seen(Call::GroupExists { group: pid });
        lines.push(format!("p{who}: {process}; exists: {exists}; its group: {group}"));
    }
    lines
}

/// One directory, and what is in it; closes it.
fn observe_dir(
    known: &mut Known,
    dir: Handle,
    path: &str,
    call: &mut impl FnMut(Call) -> Answer<Reply>,
    lines: &mut Vec<String>,
) {
    let mut seen = |wanted: Call| {
        let answer = call(wanted.clone());
        known.count(Outcome::of(&wanted, answer)).to_string()
    };
    let stat = seen(Call::Stat { fd: dir });
    lines.push(format!("{path}: {stat}; lock: {}", seen(Call::Lock { fd: dir })));
    seen(Call::Unlock { fd: dir });
    let mut entries = match call(Call::ReadDir { dir, restart: true }) {
        Ok(Reply::Entries(entries)) => entries,
        other => {
            lines.push(format!("{path} cannot be listed: {other:?}"));
            Vec::new()
        }
    };
    entries.sort();
    for entry in entries {
        let path = format!("{path}/{}", entry.name);
        let open = match entry.kind {
            Kind::Dir => Call::OpenDir { dir, name: entry.name },
            Kind::File => Call::OpenFile { dir, name: entry.name },
            kind => {
                lines.push(format!("{path}: {}", kind.word()));
                continue;
            }
        };
        match (call(open), entry.kind) {
            (Ok(Reply::Handle(below)), Kind::Dir) => {
                observe_dir(known, below, &path, call, lines);
            }
            (Ok(Reply::Handle(fd)), _) => {
                let mut seen = |wanted: Call| {
                    let answer = call(wanted.clone());
                    known.count(Outcome::of(&wanted, answer)).to_string()
                };
                let stat = seen(Call::Stat { fd });
                let lock = seen(Call::Lock { fd });
                let bytes = seen(Call::Read { fd, offset: 0, len: 16 });
                lines.push(format!("{path}: {stat}; lock: {lock}; holds {bytes}"));
                seen(Call::Close { fd });
            }
            (other, _) => lines.push(format!("{path} cannot be opened: {other:?}")),
        }
    }
    // It cannot fail for what is open; and if it does, later descriptors have other numbers.
    let _closed = call(Call::Close { fd: dir });
}
