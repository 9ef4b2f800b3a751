//! Reads what happens in a story: its steps, and what processes do in them.

use std::collections::BTreeMap;

use super::demands::Declared;
use super::{Acted, Reader};
use crate::scenario::diagnostic::{Diagnostic, did_you_mean};
use crate::scenario::fields::{Count, Fields};
use crate::scenario::needs::Need;
use crate::scenario::story::{Action, Actor, Copy, Deed, Disturbed, Expected, Oddity, Step};

/// How a verb is read.
type Verb = for<'r> fn(&'r Reader<'r>, &Fields<'r>) -> Option<Acted>;

/// What can happen, by its key.
pub(super) const VERBS: &[(&str, Verb)] = &[
    ("start", |r, f| r.start(f, "start")),
    ("restart", |r, f| r.start(f, "restart")),
    ("spawn", |r, f| r.spawn(f)),
    ("kill", |r, f| r.kill(f)),
    ("exit", |r, f| Some(Action::Exit(r.actors(f, "exit", &["server", "command"])?).into())),
    ("stop", |r, f| Some(Action::Stop(r.actors(f, "stop", &["server", "command"])?).into())),
    ("continue", |r, f| Some(Action::Continue(r.actors(f, "continue", PROCESSES)?).into())),
    ("close", |r, f| r.close(f)),
    ("release", |r, f| Some(Action::Release(r.actor(f, "release", &["server"])?).into())),
    ("drop", |r, f| Some(Action::Drop(r.actor(f, "drop", &["server"])?).into())),
    ("fork", |r, f| r.fork(f)),
    ("re-exec", |r, f| r.odd(f, "re-exec", Oddity::ReExec)),
    ("end-main-thread", |r, f| r.odd(f, "end-main-thread", Oddity::EndMainThread)),
    ("lose-lease", |r, f| r.odd(f, "lose-lease", Oddity::LoseLease)),
    ("sweep", |r, f| r.sweep(f)),
    ("plant", |r, f| r.plant(f)),
    ("remove", |r, f| r.take_away(f, "remove", Deed::Remove, Action::Remove)),
    ("mount", |r, f| r.mount(f)),
    ("unmount", |r, f| Some(Action::Unmount(r.place(f, "unmount")?).into())),
    ("age", |r, f| r.age(f)),
    ("chmod", |r, f| r.chmod(f)),
    ("chown", |r, f| r.chown(f)),
    ("chattr", |r, f| r.chattr(f)),
    ("lock", |r, f| r.lock(f)),
    ("unlock", |r, f| r.unlock(f)),
    ("write", |r, f| r.write(f)),
    ("read", |r, f| r.reads(f)),
    ("take", |r, f| r.take(f)),
    ("take-sockets", |r, f| r.take_sockets(f)),
    ("fill", |r, f| r.fill(f)),
    ("gather", |r, f| r.gather(f)),
    ("reclaim", |r, f| Some(Action::Reclaim(r.actor(f, "reclaim", &["server"])?).into())),
    ("kill-copies", |r, f| {
        Some(Action::KillCopies(r.actor(f, "kill-copies", &["server"])?).into())
    }),
    ("kill-tree", |r, f| Some(Action::KillTree(r.actor(f, "kill-tree", &["server"])?).into())),
    ("empty", |r, f| r.take_away(f, "empty", Deed::Empty, Action::Empty)),
    ("tmpfiles", |r, f| r.tmpfiles(f)),
    ("link", |r, f| r.link(f)),
    ("forge", |r, f| r.forge(f)),
    ("duplicate", |r, f| r.duplicate(f)),
    ("move", |r, f| r.moves(f)),
];

const PROCESSES: &[&str] = &["server", "command", "sweeper"];

/// The kinds of errors of the library that a step can be asked to fail with.
const ERROR_KINDS: [&str; 20] = [
    "InvalidPrefix",
    "Unprotected",
    "NoSpace",
    "Contended",
    "InUse",
    "LeaseLost",
    "Forked",
    "OtherUser",
    "NotStarted",
    "Closed",
    "NoLocks",
    "Obstructed",
    "Replaced",
    "TimedOut",
    "LockLost",
    "Corrupt",
    "TooLarge",
    "NotActivated",
    "TagInUse",
    "System",
];

impl Reader<'_> {
    pub(super) fn steps(
        &self,
        declared: &Declared,
        actors: &BTreeMap<String, Actor>,
        to_the_end: bool,
        so_often: bool,
    ) -> Vec<Step> {
        let steps = self.fields.tables("step", "a step");
        if steps.is_empty() {
            let found = Diagnostic::new("no-step", "nothing happens in this scenario", 0..0);
            self.fields.report(found.help(Some("add a step: [[step]]".into())));
        }
        let mut uses_round = actors.values().any(Actor::uses_round);
        let mut read = Vec::new();
        for fields in &steps {
            let mut verbs = VERBS.iter().filter(|(verb, _)| fields.has(verb));
            let (acted, span) = match (verbs.next(), verbs.next()) {
                (Some((key, verb)), None) => (verb(self, fields), fields.entry_span(key)),
                (Some((first, _)), Some((second, _))) => {
                    let title = format!("a step is one thing, not `{first}` and `{second}`");
                    let found = Diagnostic::new("two-verbs", title, fields.key_span(second));
                    fields.report(found.help(Some("make it two steps".into())));
                    continue;
                }
                (None, _) => {
                    let title = "this step does not say what happens";
                    let keys = fields.keys().map(|(key, _)| key.to_owned());
                    let verbs = || VERBS.iter().map(|(verb, _)| *verb);
                    let near = keys.into_iter().find_map(|key| did_you_mean(&key, verbs()));
                    let all: Vec<&str> = verbs().collect();
                    let found = Diagnostic::new("no-verb", title, fields.span())
                        .note(format!("it can be {}", all.join(", ")));
                    fields.report(found.help(near));
                    continue;
                }
            };
            let expects = self.expectations(fields);
            if expects.iter().any(|one| matches!(one.what, Expected::Foreign(1..))) {
                let needs = [Need::Root];
                self.demand("another user's claim", &needs, None, declared, fields.span());
            }
            let calls =
                ["stop-before", "kill-before"].map(|key| fields.has(key).then(|| fields.call(key)));
            let counts =
                ["leaving", "hold-before"].map(|key| fields.has(key).then(|| fields.count(key)));
            let counts = calls.into_iter().chain(counts).flatten().flatten();
            uses_round |= counts.into_iter().any(|at| at.value == Count::Round);
            fields.finish();
            let Some(Acted { action, needs, host_only }) = acted else { continue };
            self.demand("this step", &needs, host_only, declared, fields.span());
            read.push(Step { span, action, expects });
        }
        let wrong = if uses_round { !to_the_end && !so_often } else { to_the_end };
        if wrong && !steps.is_empty() {
            let (title, help) = match to_the_end {
                true => (
                    "`rounds-max` is given, and no step depends on the round",
                    "write \"n\" where the number of the round is meant",
                ),
                false => (
                    "a step depends on the round, and there are no rounds",
                    "say how many at most, rounds-max = 40, or how many, rounds = 12",
                ),
            };
            let found = Diagnostic::new("rounds", title, self.fields.key_span("rounds-max"));
            self.fields.report(found.help(Some(help.into())));
        }
        read
    }

    fn start(&self, fields: &Fields<'_>, key: &'static str) -> Option<Acted> {
        let fails = self.error_kind(fields);
        let who = fields.required(key)?;
        if key == "start" && self.is_stranger(&who.value) {
            return self.start_stranger(fields, who.value);
        }
        let action = Action::Start {
            server: self.known(who, &["server"])?,
            sweeps: key == "restart",
            disturbed: self.disturbed(fields),
            fails,
        };
        Some(action.into())
    }

    pub(super) fn start_stranger(&self, fields: &Fields<'_>, stranger: String) -> Option<Acted> {
        let pid_of = match fields.string("with-pid-of") {
            Some(at) => Some(self.known(at, &["server", "command"])?),
            None => None,
        };
        // Who may choose the next pid.
        let needs = pid_of.iter().map(|_| Need::Root).collect();
        let action = Action::StartStranger { stranger, pid_of };
        Some(Acted { action, needs, host_only: None })
    }

    pub(super) fn spawn(&self, fields: &Fields<'_>) -> Option<Acted> {
        let commands = self.actors(fields, "spawn", &["command"])?;
        let disturbed = self.disturbed(fields);
        let held = fields.count("hold-before");
        if let (Some(_), Some(held)) = (&disturbed, &held) {
            let title = "a step holds the child or disturbs its server, not both";
            fields.report(Diagnostic::new("two-ends", title, held.span.clone()));
        }
        if (disturbed.is_some() || held.is_some()) && commands.len() > 1 {
            let title = "one command at a time can be held or disturbed while it starts";
            let found = Diagnostic::new("several", title, fields.entry_span("spawn"));
            fields.report(found.help(Some("make it several steps".into())));
        }
        Some(Action::Spawn { commands, disturbed, held: held.map(|at| at.value) }.into())
    }

    fn kill(&self, fields: &Fields<'_>) -> Option<Acted> {
        let who = self.actors(fields, "kill", PROCESSES)?;
        Some(Action::Kill { who, unreaped: fields.is("unreaped") }.into())
    }

    fn close(&self, fields: &Fields<'_>) -> Option<Acted> {
        let answers =
            [("removed", "removed"), ("released", "released"), ("obstructed", "obstructed")];
        let action = Action::Close {
            server: self.actor(fields, "close", &["server"])?,
            disturbed: self.disturbed(fields),
            answer: fields.word("answer", &answers).map(|at| at.value.to_owned()),
            fails: self.error_kind(fields),
        };
        Some(action.into())
    }

    fn fork(&self, fields: &Fields<'_>) -> Option<Acted> {
        let server = self.actor(fields, "fork", &["server"])?;
        let copies = [("exits", Copy::Exits), ("stays", Copy::Stays), ("drops", Copy::Drops)];
        if !fields.has("copy") {
            let found = Diagnostic::new("missing-key", "a fork needs `copy`", fields.span());
            fields.report(found.note("what the copy does: exits, stays, drops"));
        }
        let copy = fields.word("copy", &copies)?.value;
        Some(Action::Fork { server, copy }.into())
    }

    fn odd(&self, fields: &Fields<'_>, key: &'static str, oddity: Oddity) -> Option<Acted> {
        Some(Action::Odd(self.actor(fields, key, &["server"])?, oddity).into())
    }

    fn sweep(&self, fields: &Fields<'_>) -> Option<Acted> {
        let by = self.actors(fields, "sweep", &["server", "sweeper"])?;
        let disturbed = self.disturbed(fields);
        let no_canary = fields.string("no-canary").map(|at| at.value);
        Some(Action::Sweep { by, disturbed, no_canary }.into())
    }

    pub(super) fn gather(&self, fields: &Fields<'_>) -> Option<Acted> {
        Some(Action::Gather(self.actor(fields, "gather", &["crowd"])?).into())
    }

    /// `stop-before` or `kill-before`.
    pub(super) fn disturbed(&self, fields: &Fields<'_>) -> Option<(Disturbed, Count)> {
        let stopped = fields.call("stop-before").map(|at| (Disturbed::Stopped, at));
        let killed = fields.call("kill-before").map(|at| (Disturbed::Killed, at));
        if let (Some(_), Some((_, second))) = (&stopped, &killed) {
            let title = "a step stops or kills, not both";
            fields.report(Diagnostic::new("two-ends", title, second.span.clone()));
        }
        stopped.or(killed).map(|(how, at)| (how, at.value))
    }

    pub(super) fn error_kind(&self, fields: &Fields<'_>) -> Option<String> {
        let words = ERROR_KINDS.map(|kind| (kind, kind));
        fields.word("fails", &words).map(|at| at.value.to_owned())
    }
}
