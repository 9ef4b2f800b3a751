//! What goes over an actor's pipes: JSON, one object a line, in version 1.
//!
//! ```text
//! {"v":1,"id":7,"order":{"create":{"prefix":"t","root":"/r"}}}      to it
//! {"v":1,"id":7,"done":{"created":{"claim":"/r/t-abcdefghij2k"}}}   from it
//! {"v":1,"id":8,"failed":{"kind":"NoSpace","message":"…"}}
//! {"v":1,"id":9,"stopped":{"before":14,"call":"rename"}}            and it waits for a "continue"
//! ```
//!
//! Invariants: each order has one `done` or `failed` with its id, whatever else is said in between;
//! a `stopped` is followed by nothing until `{"v":1,"id":…,"order":"continue"}`, which has no answer
//! of its own. Within a version orders and fields may be added, none changes its meaning; an order of
//! another version is answered by `failed` with the kind `Version`. Lines that are no such object are
//! the words of commands, which share the pipe unless they are given another.
//!
//! Paths are text: they are made by the lab, below directories of its own.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The version of the protocol.
pub const VERSION: u32 = 1;

/// What an actor is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The version.
    pub v: u32,
    /// Of the asker's choice; the answer has the same.
    pub id: u64,
    /// What is to be done.
    pub order: Order,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// Make a claim. An actor has one at a time.
    Create {
        /// The prefix of its name.
        prefix: String,
        /// Where it is to lie.
        root: PathBuf,
        /// Whether the claim's calls can be disturbed from now on.
        #[serde(default)]
        tapped: bool,
        /// What is to happen while it is made.
        #[serde(default)]
        disturbed: Option<Disturbance>,
    },
    /// Make an unclaimed directory.
    Unclaimed {
        /// The prefix of its name.
        prefix: String,
        /// Where it is to lie.
        root: PathBuf,
    },
    /// Start `sh -c SCRIPT` in the claim.
    Spawn {
        /// What the shell is to do.
        script: String,
        /// What it reads from; nothing if it is not given.
        #[serde(default)]
        input: Option<PathBuf>,
        /// What it writes to; the actor's own output if it is not given.
        #[serde(default)]
        output: Option<PathBuf>,
        /// What is to happen meanwhile; only to a claim that is tapped.
        #[serde(default)]
        disturbed: Option<Disturbance>,
        /// The child is held before this call of its part between fork and exec, until it reads a
        /// line; only in a claim that is tapped.
        #[serde(default)]
        held: Option<u64>,
    },
    /// Write a file in the claim.
    Write {
        /// Its name.
        name: String,
    },
    /// Close the claim.
    Close {
        /// What is to happen meanwhile.
        #[serde(default)]
        disturbed: Option<Disturbance>,
    },
    /// Give the claim up.
    Release,
    /// Drop what it has.
    Drop,
    /// Sweep.
    Sweep {
        /// The prefix of the claims.
        prefix: String,
        /// Where they lie.
        root: PathBuf,
        /// How.
        #[serde(default, flatten)]
        how: SweepHow,
    },
    /// Remove a claim on an operator's word.
    Reclaim {
        /// The prefix of the claims.
        prefix: String,
        /// Where it lies.
        root: PathBuf,
        /// Its name.
        name: String,
    },
    /// Fork a copy that tries to use what it has, drops it, and exits.
    ForkExit,
    /// Fork a copy that stays.
    ForkStay,
    /// Fork a copy that drops what it has and stays.
    ForkDrop,
    /// Close the lease's descriptor behind one's own back.
    LoseLease,
    /// Make a directory one's root, and go on working where one was.
    ChangeRoot {
        /// The directory.
        to: PathBuf,
    },
    /// Go on as another thread, and end the first.
    EndMainThread,
    /// Become this program anew.
    ExecSelf,
    /// Let so many more descriptors be opened than are open now.
    LimitDescriptors {
        /// How many.
        more: u64,
    },
    /// Make many claims, to be killed with them.
    CreateMany {
        /// The prefix of their names.
        prefix: String,
        /// Where they are to lie.
        root: PathBuf,
        /// So many as they are.
        whole: u64,
        /// So many as they are while they are being made.
        #[serde(rename = "half-made")]
        half_made: u64,
    },
    /// Take the lock of a file.
    Lock {
        /// The file; that of the lock is beside it.
        file: PathBuf,
        /// Wait for it as long as that takes, and not ask once.
        #[serde(default)]
        waits: bool,
        /// What is to happen meanwhile; only to who does not wait.
        #[serde(default)]
        disturbed: Option<Disturbance>,
    },
    /// Give the lock of a file back.
    Unlock {
        /// The file.
        file: PathBuf,
    },
    /// Add a line to a store.
    Append {
        /// Its file.
        file: PathBuf,
        /// The line, without its end.
        line: String,
        /// Wait for its lock as long as that takes, and not ask once.
        #[serde(default)]
        waits: bool,
        /// What is to happen meanwhile; only to who does not wait.
        #[serde(default)]
        disturbed: Option<Disturbance>,
    },
    /// Read a store.
    Read {
        /// Its file.
        file: PathBuf,
    },
    /// Take the test directory of a tag.
    TakeSandbox {
        /// Where such directories lie.
        base: PathBuf,
        /// The tag.
        tag: String,
        /// What is noted in it as the place in the source.
        place: String,
        /// What is to happen meanwhile.
        #[serde(default)]
        disturbed: Option<Disturbance>,
    },
    /// Take the sockets that were passed to it.
    TakeSockets,
    /// Exit, by way of the destructors.
    Exit,
    /// Go on after having stopped before a call.
    Continue,
}

/// How a sweep is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct SweepHow {
    /// Remove nothing.
    pub dry_run: bool,
    /// Which implementation.
    pub subject: Subject,
    /// The questions to which the answer is "cannot tell".
    pub cannot_tell: Vec<Asked>,
    /// The claims, by the whole name, whose removal fails.
    pub not_removed: Vec<String>,
    /// Sweep in the background, and wait for that.
    pub beside: bool,
    /// Be killed by a SIGKILL of one's own when a claim is removed.
    pub dies_after_one: bool,
    /// What is to happen meanwhile.
    pub disturbed: Option<Disturbance>,
}

/// Which implementation is under test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// Ours.
    #[default]
    Mortmain,
    /// Ours, with a prober that answers *gone* to every question. Every story must fail with it.
    AlwaysGone,
}

impl Subject {
    /// All there are.
    pub const ALL: [Subject; 2] = [Subject::Mortmain, Subject::AlwaysGone];

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Subject> {
        Subject::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Subject::Mortmain => "mortmain",
            Subject::AlwaysGone => "always-gone",
        }
    }
}

/// One of the questions of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asked {
    /// l1.
    Lease,
    /// l2.
    Owner,
    /// l3.
    Commands,
    /// l4: who is seen to use it?
    Life,
}

/// What happens at an exact call of an operation. Positions count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disturbance {
    /// The actor stops before this call, says so, and waits for `continue`.
    StopBefore(u64),
    /// The actor is killed by a SIGKILL of its own before this call.
    KillBefore(u64),
    /// It stops before the first call of this name.
    StopBeforeFirst(String),
    /// It is killed before the first call of this name.
    KillBeforeFirst(String),
}

/// What an actor says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// The version.
    pub v: u32,
    /// That of the order; 0 for what an actor says by itself.
    pub id: u64,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What an actor says about an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// It is done.
    Done(Done),
    /// It is not done.
    Failed {
        /// The kind of the library's error, or `NotUnderstood`, `Version`, `Nothing`, `NotTapped`,
        /// `System`; `TimedOut` also where a lock was asked for once.
        kind: String,
        /// The error in a sentence.
        message: String,
    },
    /// It waits before a call.
    Stopped {
        /// The position.
        before: u64,
        /// The call.
        call: String,
    },
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Done {
    /// A claim, or an unclaimed directory, was made here.
    Created {
        /// Its path.
        claim: PathBuf,
    },
    /// A shell was started.
    Spawned {
        /// Its pid.
        pid: i32,
    },
    /// A file was written.
    Written,
    /// A close removed the claim.
    Removed,
    /// The claim was given up, by a close or a release.
    Released,
    /// A close removed what it could.
    Obstructed {
        /// What stood in the way.
        obstacles: Vec<String>,
    },
    /// What it had was dropped.
    Dropped,
    /// A sweep has ended.
    Swept(Swept),
    /// A copy tried this, and exited.
    Exited {
        /// How what it tried went.
        said: String,
    },
    /// A copy stays.
    Stays {
        /// Its pid.
        pid: i32,
    },
    /// Descriptors were closed.
    Lost {
        /// How many.
        count: usize,
    },
    /// It has another root.
    Rooted,
    /// Another thread goes on.
    GoesOn,
    /// It has become itself anew.
    Executed,
    /// The limit is set.
    Limited,
    /// The lock is taken.
    Locked,
    /// It is given back.
    Unlocked,
    /// What a store holds.
    Read {
        /// The content; nothing where there is no file.
        content: String,
    },
    /// The test directory is taken.
    Taken,
    /// The sockets are taken.
    Sockets {
        /// Their names.
        names: Vec<String>,
    },
    /// Many claims were made here.
    CreatedMany {
        /// Their paths, also of those that are stagings now.
        claims: Vec<PathBuf>,
    },
}

/// What a sweep came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swept {
    /// The report as text, a line an entry.
    pub report: Vec<String>,
    /// How many were removed.
    pub removed: usize,
    /// How many were kept because they may be in use.
    pub kept: usize,
    /// How many stay because something forbids their removal.
    pub blocked: usize,
    /// How many are other users'.
    pub foreign: usize,
    /// What kept the sweep from looking at everything, if anything did.
    pub trouble: Option<String>,
    /// What became of each claim.
    pub claims: Vec<Judged>,
}

/// What became of a claim in a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// The name that it had.
    pub name: String,
    /// What became of it.
    pub outcome: Outcome,
    /// The codes of what the outcome rests on.
    pub because: Vec<String>,
    /// The same as a sentence.
    pub told: String,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is removed.
    Removed,
    /// It would have been.
    WouldRemove,
    /// It stays, since it may be in use.
    Kept,
    /// It stays whole, since something forbids its removal.
    Blocked,
    /// Some of it is removed.
    Partial,
}

/// The short form of the orders, for tests: `create PREFIX ROOT`, `spawn SCRIPT`, `close`, ….
impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let place = || {
            let (prefix, root) = rest.split_once(' ').ok_or("it needs a prefix and a root")?;
            Ok::<_, String>((prefix.to_owned(), PathBuf::from(root)))
        };
        Ok(match word {
            "create" => {
                let (prefix, root) = place()?;
                Order::Create { prefix, root, tapped: false, disturbed: None }
            }
            "unclaimed" => {
                let (prefix, root) = place()?;
                Order::Unclaimed { prefix, root }
            }
            "spawn" => spawn(rest),
            "write" => Order::Write { name: rest.into() },
            "close" => Order::Close { disturbed: None },
            "release" => Order::Release,
            "drop" => Order::Drop,
            "sweep" => {
                let (prefix, root) = place()?;
                Order::Sweep { prefix, root, how: SweepHow::default() }
            }
            "sweep-beside" => {
                let (prefix, root) = place()?;
                let how = SweepHow { beside: true, ..SweepHow::default() };
                Order::Sweep { prefix, root, how }
            }
            "sweep-and-die" => {
                let (prefix, root) = place()?;
                let how = SweepHow { dies_after_one: true, ..SweepHow::default() };
                Order::Sweep { prefix, root, how }
            }
            "fork-exit" => Order::ForkExit,
            "fork-stay" => Order::ForkStay,
            "fork-drop" => Order::ForkDrop,
            "lose-lease" => Order::LoseLease,
            "root" => Order::ChangeRoot { to: rest.into() },
            "end-main-thread" => Order::EndMainThread,
            "exec-self" => Order::ExecSelf,
            "exit" => Order::Exit,
            "continue" => Order::Continue,
            _ => return Err(format!("`{word}` is no order")),
        })
    }
}

fn spawn(script: &str) -> Order {
    Order::Spawn { script: script.into(), input: None, output: None, disturbed: None, held: None }
}

/// The short form of an answer, as tests compare it.
impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Done(done) => done.fmt(f),
            What::Failed { kind, message } => write!(f, "error {kind}: {message}"),
            What::Stopped { before, call } => write!(f, "stopped before call {before}, {call}"),
        }
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Done::Created { claim } => write!(f, "created {}", claim.display()),
            Done::Spawned { pid } => write!(f, "spawned {pid}"),
            Done::Written => f.write_str("written"),
            Done::Removed => f.write_str("removed"),
            Done::Released => f.write_str("released"),
            Done::Obstructed { obstacles } => write!(f, "obstructed {}", obstacles.join("; ")),
            Done::Dropped => f.write_str("dropped"),
            Done::Swept(swept) => {
                let Swept { removed, kept, blocked, foreign, .. } = swept;
                write!(f, "swept {removed} {kept} {blocked} {foreign}")
            }
            Done::Exited { said } => write!(f, "exited: {said}"),
            Done::Stays { pid } => write!(f, "stays {pid}"),
            Done::Lost { count } => write!(f, "lost {count}"),
            Done::Rooted => f.write_str("rooted"),
            Done::GoesOn => f.write_str("goes on"),
            Done::Executed => f.write_str("executed"),
            Done::Limited => f.write_str("limited"),
            Done::Locked => f.write_str("locked"),
            Done::Unlocked => f.write_str("unlocked"),
            Done::Read { content } => write!(f, "read {content}"),
            Done::Taken => f.write_str("taken"),
            Done::Sockets { names } => write!(f, "sockets {}", names.join(" ")),
            Done::CreatedMany { claims } => write!(f, "created {}", claims.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_version_1_stay_what_they_are() {
        let order = r#"{"v":1,"id":7,"order":{"sweep":{"prefix":"t","root":"/r","dry-run":true,"cannot-tell":["lease"],"disturbed":{"stop-before":3}}}}"#;
        let request: Request = serde_json::from_str(order).expect("it is an order");
        let how = SweepHow {
            dry_run: true,
            cannot_tell: vec![Asked::Lease],
            disturbed: Some(Disturbance::StopBefore(3)),
            ..SweepHow::default()
        };
        assert_eq!(request.order, Order::Sweep { prefix: "t".into(), root: "/r".into(), how });
        let stopped = What::Stopped { before: 3, call: "lock".into() };
        let said = Said { v: VERSION, id: 7, what: stopped };
        let line = r#"{"v":1,"id":7,"stopped":{"before":3,"call":"lock"}}"#;
        assert_eq!(serde_json::to_string(&said).expect("it is JSON"), line);
        assert_eq!(serde_json::from_str::<Said>(line).expect("it is read again"), said);
        let done = Said { v: VERSION, id: 8, what: What::Done(Done::Spawned { pid: 4 }) };
        let line = r#"{"v":1,"id":8,"done":{"spawned":{"pid":4}}}"#;
        assert_eq!(serde_json::to_string(&done).expect("it is JSON"), line);
    }

    #[test]
    fn who_does_not_say_it_asks_for_a_lock_once_and_undisturbed() {
        let lock: Order = serde_json::from_str(r#"{"lock":{"file":"/d/ledger"}}"#).expect("one");
        assert_eq!(lock, Order::Lock { file: "/d/ledger".into(), waits: false, disturbed: None });
        let order = r#"{"append":{"file":"/d/notes","line":"a","disturbed":{"kill-before":2}}}"#;
        let (file, line) = ("/d/notes".into(), "a".into());
        let disturbed = Some(Disturbance::KillBefore(2));
        let append = Order::Append { file, line, waits: false, disturbed };
        assert_eq!(serde_json::from_str::<Order>(order).expect("an order"), append);
    }

    #[test]
    fn a_field_that_no_order_has_is_refused_by_its_name() {
        for order in [
            r#"{"write":{"name":"x","mode":7}}"#,
            r#"{"create":{"prefix":"t","root":"/r","mode":7}}"#,
            r#"{"sweep":{"prefix":"t","root":"/r","mode":7}}"#,
        ] {
            let error = serde_json::from_str::<Order>(order).expect_err("it has a strange field");
            assert!(error.to_string().starts_with("unknown field `mode`"), "{order}: {error}");
        }
    }

    #[test]
    fn the_short_form_is_read_and_what_it_does_not_know_is_named() {
        let order: Order = "spawn echo a b".parse().expect("it is an order");
        assert_eq!(order, spawn("echo a b"));
        assert_eq!("create t".parse::<Order>(), Err("it needs a prefix and a root".into()));
        assert_eq!("crate t /r".parse::<Order>(), Err("`crate` is no order".into()));
    }
}
