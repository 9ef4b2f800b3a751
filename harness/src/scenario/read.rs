//! Reads a scenario file into a story, or tells everything that is wrong with it at once.
//!
//! Invariant: what is read can be told: each name that is mentioned is that of an actor of the right
//! kind, each step is one thing, each need that a step has is declared, each reason is one that a
//! sweep can give.

mod disks;
mod hostile;
mod lives;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use toml::de::DeTable;

use super::diagnostic::{Diagnostic, did_you_mean};
use super::each::{cases, unused};
use super::fields::{At, Count, Fields, Found};
use super::needs::Need;
use super::reasons;
use super::story::{
    Action, Actor, Base, Command, Copy, Deed, Disturbed, Expectation, Expected, LeftOver, Lock,
    Oddity, Place, Planted, Precious, State, Step, Story, Sweeper,
};
use crate::actor::wire::Asked;

/// The kinds of errors of the library that a step can be asked to fail with.
const ERROR_KINDS: [&str; 11] = [
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
    "System",
];

/// Reads a scenario. `name` is what it is called, `path` where it stands.
///
/// # Errors
///
/// Everything that is wrong with it, in the order of the file.
pub fn read(name: &str, path: &Path, text: &str) -> Result<Story, Vec<Diagnostic>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let syntax = errors.iter().map(|error| {
        let span = error.span().unwrap_or(0..0);
        Diagnostic::new("syntax", error.message().lines().next().unwrap_or_default(), span)
    });
    let syntax: Vec<Diagnostic> = syntax.collect();
    if !syntax.is_empty() {
        return Err(syntax);
    }
    let found = Found::default();
    let (cases, words) = cases(&Fields::new("a scenario", table.get_ref(), 0..0, &found));
    let mut wrong = found.into_diagnostics();
    let mut stories = Vec::new();
    let mut used = BTreeSet::new();
    for case in cases {
        let found = Found::with(case.values);
        let fields = Fields::new("a scenario", table.get_ref(), 0..0, &found);
        let story = Reader { fields: &fields, names: BTreeMap::new() }.story();
        used.extend(found.used().iter().cloned());
        let (name, path, text) = (name.into(), path.into(), text.into());
        stories.extend(story.map(|story| Story { name, path, text, case: case.label, ..story }));
        wrong.extend(found.into_diagnostics());
    }
    wrong.extend(unused(&words, &used));
    let mut stories = stories.into_iter();
    match stories.next() {
        Some(first) if wrong.is_empty() => Ok(Story { other_cases: stories.collect(), ..first }),
        _ => {
            wrong.sort_by_key(|diagnostic| diagnostic.span.start);
            // What is wrong in every case is told once.
            wrong.dedup();
            Err(wrong)
        }
    }
}

/// Every word that a scenario can say what happens, what is planted, and what is expected with; the
/// documentation has to explain each.
#[must_use]
pub fn vocabulary() -> Vec<&'static str> {
    let verbs = VERBS.iter().map(|(verb, _)| *verb);
    let planted = PLANTED.iter().map(|(word, _)| *word);
    verbs.chain(planted).chain(EXPECTATIONS.iter().copied()).collect()
}

/// The names in angle brackets in a path: each stands for the name of that server's claim.
pub(super) fn bracketed(path: &str) -> impl Iterator<Item = &str> {
    let after = path.split('<').skip(1);
    after.filter_map(|rest| Some(rest.split_once('>')?.0))
}

/// Who is called what.
pub(super) struct Named {
    pub(super) kind: &'static str,
    span: Range<usize>,
}

pub(super) struct Reader<'f> {
    pub(super) fields: &'f Fields<'f>,
    pub(super) names: BTreeMap<String, Named>,
}

/// An action, what it needs, and where it says so.
pub(super) struct Acted {
    pub(super) action: Action,
    pub(super) needs: Vec<Need>,
    /// Why it can happen on the real kernel only.
    pub(super) host_only: Option<&'static str>,
}

impl From<Action> for Acted {
    fn from(action: Action) -> Acted {
        Acted { action, needs: Vec::new(), host_only: None }
    }
}

/// What a file declares in its head.
struct Declared {
    needs: Vec<At<Need>>,
    host_only: bool,
}

/// How a verb is read.
type Verb = for<'r> fn(&'r Reader<'r>, &Fields<'r>) -> Option<Acted>;

/// What can happen, by its key.
const VERBS: &[(&str, Verb)] = &[
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
    ("lock", |r, f| Some(Action::Lock(r.place(f, "lock")?).into())),
    ("unlock", |r, f| Some(Action::Unlock(r.place(f, "unlock")?).into())),
    ("fill", |r, f| r.fill(f)),
    ("gather", |r, f| r.gather(f)),
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

const PLANTED: &[(&str, Planted)] = &[
    ("fifo", Planted::Fifo),
    ("directory", Planted::Directory),
    ("file", Planted::File),
    ("dangling-link", Planted::DanglingLink),
    ("link-to-precious", Planted::LinkToPrecious),
    ("link-to-zero", Planted::LinkToZero),
    ("socket", Planted::Socket),
    ("sparse-giant", Planted::SparseGiant),
    ("fifo-with-writer", Planted::FifoWithWriter),
    ("link-to-file", Planted::LinkToFile),
    ("garbage", Planted::Garbage),
    ("full-directory", Planted::FullDirectory),
    ("device", Planted::Device),
];

/// What can be expected, by its key.
const EXPECTATIONS: &[&str] = &[
    "claim",
    "works",
    "lives",
    "ended",
    "untouched",
    "there",
    "not-there",
    "told",
    "names",
    "foreign",
    "not-told",
];

impl<'f> Reader<'f> {
    fn story(mut self) -> Option<Story> {
        let fields = self.fields;
        let about = fields.required("about");
        let rules = self.rules();
        let classes = fields.strings("classes").unwrap_or_default();
        for class in &classes {
            let mut bytes = class.value.bytes();
            let letter = bytes.next().is_some_and(|byte| byte.is_ascii_uppercase());
            if !letter || !bytes.all(|byte| byte.is_ascii_digit()) {
                let title = format!("`{}` is no class of faults", class.value);
                let found = Diagnostic::new("unknown-class", title, class.span.clone());
                fields.report(found.note("a class is a letter, as in `E`, a case of it `E1`"));
            }
        }
        let needs: Vec<At<Need>> = fields
            .strings("needs")
            .unwrap_or_default()
            .into_iter()
            .filter_map(|at| self.need(at))
            .collect();
        let host_only = fields.string("host-only");
        let rounds_max = self.rounds("rounds-max");
        let rounds = self.rounds("rounds");
        if let (Some(_), Some(rounds)) = (&rounds_max, &rounds) {
            let title = "a story has `rounds` or `rounds-max`, not both";
            fields.report(Diagnostic::new("rounds", title, rounds.span.clone()));
        }
        let _read_before = fields.lists("each");
        let zombies_stay = fields.is("zombies-stay");
        let times = self.times(rounds.is_some() || rounds_max.is_some());
        let actors = self.everybody();
        let declared = Declared { needs, host_only: host_only.is_some() };
        self.demand_for_actors(&actors, &declared);
        let steps = self.steps(&declared, &actors, rounds_max.is_some(), rounds.is_some());
        let needs = declared.needs;
        let left_over = self.left_over();
        fields.finish();
        Some(Story {
            name: String::new(),
            path: Default::default(),
            text: String::new(),
            about: about?.value,
            rules,
            classes: classes.into_iter().map(|at| at.value).collect(),
            needs: needs.into_iter().map(|at| at.value).collect(),
            host_only: host_only.map(|at| at.value),
            rounds_max: rounds_max.map(|at| at.value),
            rounds: rounds.map(|at| at.value),
            case: String::new(),
            other_cases: Vec::new(),
            zombies_stay,
            times,
            actors,
            steps,
            left_over,
        })
    }

    fn rules(&self) -> Vec<String> {
        let fields = self.fields;
        if !fields.has("rules") {
            let title = "a scenario names the `rules` that it protects";
            fields.report(
                Diagnostic::new("missing-key", title, 0..0)
                    .note("their ids stand in docs/protocol.md: rules = [\"l3\", \"p2\"]"),
            );
        }
        let rules = fields.strings("rules").unwrap_or_default();
        for rule in &rules {
            let (letter, digits) = rule.value.split_at_checked(1).unwrap_or_default();
            let good = letter.bytes().all(|byte| byte.is_ascii_alphabetic())
                && !digits.is_empty()
                && digits.bytes().all(|byte| byte.is_ascii_digit());
            if !good {
                let title = format!("`{}` is no rule", rule.value);
                let found = Diagnostic::new("unknown-rule", title, rule.span.clone());
                fields
                    .report(found.note("a rule is a letter and a number, as in docs/protocol.md"));
            }
        }
        rules.into_iter().map(|at| at.value).collect()
    }

    fn need(&self, at: At<String>) -> Option<At<Need>> {
        if let Some(program) = at.value.strip_prefix("program:").filter(|name| !name.is_empty()) {
            return Some(At { value: Need::Program(program.into()), span: at.span });
        }
        let words = Need::WORDS.map(|(word, _)| word);
        match Need::WORDS.into_iter().find(|(word, _)| *word == at.value) {
            Some((_, need)) => Some(At { value: need, span: at.span }),
            None => {
                let title = format!("nothing is called `{}` that a machine can have", at.value);
                let found = Diagnostic::new("unknown-need", title, at.span)
                    .note(format!("it can be {}, or program:NAME", words.join(", ")));
                self.fields.report(found.help(did_you_mean(&at.value, words)));
                None
            }
        }
    }

    /// Reads all who are in it. Their names are known before any step is read.
    fn everybody(&mut self) -> BTreeMap<String, Actor> {
        let mut read = Vec::new();
        for (kind, what) in [
            ("server", "a server"),
            ("command", "a command"),
            ("sweeper", "a sweeper"),
            ("precious", "a precious directory"),
            ("disk", "a disk"),
            ("crowd", "a crowd"),
            ("stranger", "a stranger"),
            ("container", "a container"),
        ] {
            for (name, fields) in self.fields.named(kind, what) {
                self.name(&name, kind);
                read.push((name.value, kind, fields));
            }
        }
        let mut actors = BTreeMap::new();
        for (name, kind, fields) in read {
            let actor = match kind {
                "server" => self.server(&fields).map(Actor::Server),
                "command" => self.command(&fields).map(Actor::Command),
                "sweeper" => self.sweeper(&fields).map(Actor::Sweeper),
                "disk" => self.disk(&fields).map(Actor::Disk),
                "crowd" => self.crowd(&fields).map(Actor::Crowd),
                "stranger" => Some(Actor::Stranger),
                "container" => Some(Actor::Container(self.container(&fields))),
                _ => Some(Actor::Precious(Precious { plain_user: fields.is("plain-user") })),
            };
            fields.finish();
            actors.extend(actor.map(|actor| (name, actor)));
        }
        actors
    }

    fn name(&mut self, name: &At<String>, kind: &'static str) {
        const TAKEN: [&str; 2] = ["root", "n"];
        let slug = !name.value.is_empty()
            && name.value.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        if !slug || TAKEN.contains(&name.value.as_str()) {
            let title = format!("nobody can be called `{}`", name.value);
            let found = Diagnostic::new("name", title, name.span.clone());
            let note = "a name is small letters, digits and hyphens, and neither `root` nor `n`";
            self.fields.report(found.note(note));
        }
        if let Some(other) = self.names.get(&name.value) {
            let title = format!("two are called `{}`", name.value);
            let found = Diagnostic::new("name-twice", title, name.span.clone());
            self.fields.report(found.context(other.span.clone(), "the first"));
        }
        let named = Named { kind, span: name.span.clone() };
        self.names.insert(name.value.clone(), named);
    }

    fn command(&self, fields: &Fields<'_>) -> Option<Command> {
        let by = match fields.has("by") {
            true => self.actor(fields, "by", &["server"]),
            false => self.only("server", fields, "by"),
        };
        let script = fields.string("script");
        let command = Command {
            by: by?,
            script: script.map(|at| at.value),
            background: fields.is("in-background"),
            own_session: fields.is("own-session"),
            lock: fields
                .word(
                    "lock",
                    &[("kept", Lock::Kept), ("closed", Lock::Closed), ("unlocked", Lock::Unlocked)],
                )
                .map_or(Lock::Kept, |at| at.value),
        };
        Some(command)
    }

    /// The one actor of a kind, where there is one.
    fn only(&self, kind: &str, fields: &Fields<'_>, key: &str) -> Option<String> {
        let mut all = self.names.iter().filter(|(_, named)| named.kind == kind);
        match (all.next(), all.next()) {
            (Some((name, _)), None) => Some(name.clone()),
            _ => {
                let title = format!("it is not clear which {kind} is meant");
                let found = Diagnostic::new("which", title, fields.span());
                self.fields.report(found.help(Some(format!("say `{key}`"))));
                None
            }
        }
    }

    fn sweeper(&self, fields: &Fields<'_>) -> Option<Sweeper> {
        let asked =
            [("lease", Asked::Lease), ("owner", Asked::Owner), ("commands", Asked::Commands)];
        let cannot_tell = fields.strings("cannot-tell").unwrap_or_default();
        let cannot_tell =
            cannot_tell.into_iter().filter_map(|at| fields.one_of("cannot-tell", at, &asked));
        Some(Sweeper {
            dry_run: fields.is("dry-run"),
            plain_user: fields.is("plain-user"),
            prefix: hostile::prefix(fields),
            cannot_tell: cannot_tell.map(|at| at.value).collect(),
            not_removed: match fields.has("not-removed") {
                true => self.actors(fields, "not-removed", &["server"])?,
                false => Vec::new(),
            },
            descriptors: fields.count("descriptors").map(|at| at.value),
            on: self.optional(fields, "on", "disk")?,
            surroundings: self.surroundings(fields)?,
        })
    }

    fn steps(
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
        let mut uses_round = actors.values().any(disks::uses_round);
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

    fn plant(&self, fields: &Fields<'_>) -> Option<Acted> {
        let what = fields.word("plant", PLANTED);
        let at = self.place(fields, "at");
        let depth = fields.number("depth");
        let name_bytes = fields.number("name-bytes");
        if let (Some(what), Some(_)) = (&what, depth.or(name_bytes))
            && what.value != Planted::Directory
        {
            let title = "only of directories can there be one in the other";
            fields.report(Diagnostic::new("depth", title, what.span.clone()));
        }
        let if_there = fields.is("if-there");
        if let Some(by) = fields.string("by") {
            return self.planted_by_command(fields, by, what?, at?);
        }
        let (what, depth) = (what?.value, depth.unwrap_or(1));
        let needs = (what == Planted::Device).then_some(Need::Root).into_iter().collect();
        let action = Action::Plant { what, at: at?, depth, name_bytes, if_there };
        Some(Acted { action, needs, host_only: None })
    }

    fn mount(&self, fields: &Fields<'_>) -> Option<Acted> {
        let what = self.place(fields, "mount");
        let at = self.place(fields, "at");
        let elsewhere = fields.is("elsewhere");
        let mut needs = vec![Need::Mount];
        needs.extend(elsewhere.then(|| Need::Program("unshare".into())));
        let host_only = elsewhere.then_some("all simulated processes see the same mounts");
        Some(Acted { action: Action::Mount { what: what?, at: at?, elsewhere }, needs, host_only })
    }

    fn age(&self, fields: &Fields<'_>) -> Option<Acted> {
        let server = self.actor(fields, "age", &["server"]);
        let to = fields.integer("to");
        if to.is_none() && !fields.has("to") {
            let found = Diagnostic::new("missing-key", "`age` needs `to`", fields.span());
            fields.report(found.note("the time that everything is to have, in seconds since 1970"));
        }
        Some(Action::Age { server: server?, to: to?.value }.into())
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

    fn error_kind(&self, fields: &Fields<'_>) -> Option<String> {
        let words = ERROR_KINDS.map(|kind| (kind, kind));
        fields.word("fails", &words).map(|at| at.value.to_owned())
    }

    fn expectations(&self, fields: &Fields<'_>) -> Vec<Expectation> {
        let mut read = Vec::new();
        for fields in fields.tables("expect", "an expectation") {
            let what = self.expected(&fields);
            if what.is_none() && !EXPECTATIONS.iter().any(|key| fields.has(key)) {
                let title = "this expectation does not say what is expected";
                let found = Diagnostic::new("no-expectation", title, fields.span());
                fields.report(found.note(format!("it can be {}", EXPECTATIONS.join(", "))));
                continue;
            }
            fields.finish();
            read.extend(what.map(|what| Expectation { span: fields.span(), what }));
        }
        read
    }

    fn expected(&self, fields: &Fields<'_>) -> Option<Expected> {
        const STATES: [(&str, State); 4] = [
            ("kept", State::Kept),
            ("gone", State::Gone),
            ("tombstone", State::Tombstone),
            ("staging", State::Staging),
        ];
        let running = ["server", "command", "stranger"];
        if fields.has("claim") {
            let server = self.actor(fields, "claim", &["server"]);
            let is = fields.word("is", &STATES);
            if !fields.has("is") {
                let found = Diagnostic::new("missing-key", "it needs `is`", fields.span());
                fields.report(found.note("what it is: kept, gone, tombstone, staging"));
            }
            let because = fields.string("because").and_then(|at| self.reason(at));
            return Some(Expected::Claim { server: server?, is: is?.value, because });
        }
        let one = |key, kinds: &[&str]| fields.has(key).then(|| self.actor(fields, key, kinds));
        if let Some(command) = one("works", &["command", "server"]) {
            return command.map(Expected::Works);
        }
        if let Some(who) = one("lives", &running) {
            return who.map(Expected::Lives);
        }
        if let Some(who) = one("ended", &running) {
            return who.map(Expected::Ended);
        }
        if let Some(what) = one("untouched", &["precious"]) {
            return what.map(Expected::Untouched);
        }
        if fields.has("there") {
            let place = self.place(fields, "there");
            let because = fields.string("because").and_then(|at| self.reason(at));
            return Some(Expected::There { place: place?, because });
        }
        if fields.has("not-there") {
            return self.place(fields, "not-there").map(Expected::NotThere);
        }
        if fields.has("told") {
            return fields.string("told").map(|at| Expected::Told(at.value));
        }
        if fields.has("not-told") {
            return fields.string("not-told").map(|at| Expected::NotTold(at.value));
        }
        if fields.has("foreign") {
            return fields.number("foreign").map(Expected::Foreign);
        }
        let count = fields.number("names");
        let on = self.optional(fields, "on", "disk")?;
        count.map(|count| Expected::Names { count, on })
    }

    fn reason(&self, at: At<String>) -> Option<String> {
        if reasons::all().any(|code| code == at.value) {
            return Some(at.value);
        }
        let title = format!("no sweep gives the reason `{}`", at.value);
        let all: Vec<&str> = reasons::all().collect();
        let found = Diagnostic::new("unknown-reason", title, at.span)
            .note(format!("the reasons are {}", all.join(", ")));
        self.fields.report(found.help(did_you_mean(&at.value, reasons::all())));
        None
    }

    fn left_over(&self) -> Vec<LeftOver> {
        let mut read = Vec::new();
        for fields in self.fields.tables("left-over", "something left over") {
            let server = self.actor(&fields, "claim", &["server"]);
            let because = fields.required("because").and_then(|at| self.reason(at));
            fields.finish();
            if let (Some(server), Some(because)) = (server, because) {
                read.push(LeftOver { span: fields.span(), server, because });
            }
        }
        read
    }

    /// The actor under a key.
    pub(super) fn actor(
        &self,
        fields: &Fields<'_>,
        key: &'static str,
        kinds: &[&str],
    ) -> Option<String> {
        let at = fields.required(key)?;
        self.known(at, kinds)
    }

    /// One actor or several.
    pub(super) fn actors(
        &self,
        fields: &Fields<'_>,
        key: &'static str,
        kinds: &[&str],
    ) -> Option<Vec<String>> {
        let all = fields.strings(key)?;
        if all.is_empty() {
            let title = format!("`{key}` names nobody");
            fields.report(Diagnostic::new("nobody", title, fields.key_span(key)));
        }
        all.into_iter().map(|at| self.known(at, kinds)).collect()
    }

    pub(super) fn known(&self, at: At<String>, kinds: &[&str]) -> Option<String> {
        match self.names.get(&at.value) {
            Some(named) if kinds.contains(&named.kind) => Some(at.value),
            Some(named) => {
                let title = format!("`{}` is a {}", at.value, named.kind);
                let label = format!("this has to be a {}", kinds.join(" or a "));
                let found = Diagnostic::new("wrong-kind", title, at.span).label(label);
                self.fields.report(found.context(named.span.clone(), "defined here"));
                None
            }
            None => {
                let title = format!("there is no {} `{}`", kinds.join(" or "), at.value);
                let near = self.names.iter().filter(|(_, named)| kinds.contains(&named.kind));
                let near = did_you_mean(&at.value, near.map(|(name, _)| name.as_str()));
                let kind = kinds.first().unwrap_or(&"server");
                let help = near.or_else(|| Some(format!("define it: [{kind}.{}]", at.value)));
                let found = Diagnostic::new("unknown-actor", title, at.span);
                self.fields.report(found.label("not defined in this file").help(help));
                None
            }
        }
    }

    /// `root/…`, or a server and a path in its claim, or a precious directory and a path in that.
    pub(super) fn place(&self, fields: &Fields<'_>, key: &'static str) -> Option<Place> {
        let at = fields.required(key)?;
        let (base, rest) = at.value.split_once('/').unwrap_or((&at.value, ""));
        let odd = rest.split('/').any(|part| part == ".." || part == ".");
        for name in bracketed(rest) {
            self.known(At { value: name.into(), span: at.span.clone() }, &["server"])?;
        }
        if odd || rest.starts_with('/') {
            let title = "a place is named from above, without `.` and `..`";
            fields.report(Diagnostic::new("place", title, at.span.clone()));
            return None;
        }
        let rest = rest.to_owned();
        let place = Place { base: Base::Root, rest: rest.clone() };
        if place.rest_bytes().is_none() {
            let title = "a `%` stands before two digits, from `%80` to `%ff`";
            let found = Diagnostic::new("place", title, at.span.clone());
            fields.report(found.note("it is for names with bytes that are no text"));
            return None;
        }
        if base == "root" {
            return Some(Place { base: Base::Root, rest });
        }
        let base = At { value: base.to_owned(), span: at.span.clone() };
        let name = self.known(base, &["server", "precious"])?;
        let base = match self.names.get(&name)?.kind {
            "server" => Base::Claim(name),
            _ => Base::Precious(name),
        };
        Some(Place { base, rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENTATION: &str = include_str!("../../../docs/scenarios.md");

    /// What is wrong with a file, a line each: where, what, and what was meant.
    #[track_caller]
    fn wrong(text: &str) -> Vec<String> {
        let found = match read("a/story", Path::new("story.toml"), text) {
            Ok(story) => panic!("it is understood: {story:?}"),
            Err(found) => found,
        };
        let told = found.iter().map(|one| {
            let help = one.help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
            format!("{}: {}{help}", one.line(text), one.title)
        });
        told.collect()
    }

    /// A whole scenario around some steps.
    fn around(steps: &str) -> String {
        format!("about = \"a\"\nrules = [\"l1\"]\n[server.first]\n[command.tool]\n{steps}")
    }

    #[test]
    fn the_example_of_the_documentation_is_understood() {
        let example = DOCUMENTATION.split("```toml\n").nth(1).expect("it has an example");
        let example = example.split("```").next().expect("it has an end");
        let story = read("a/story", Path::new("story.toml"), example).expect("it is understood");
        assert_eq!(story.steps.len(), 5);
        assert!(story.tells_of_the_living());
    }

    #[test]
    fn every_word_is_documented() {
        let quoted = |word: &&str| {
            let ends = ["`", " =", ","];
            ends.iter().any(|end| DOCUMENTATION.contains(&format!("`{word}{end}")))
        };
        let missing: Vec<&str> = vocabulary().into_iter().filter(|word| !quoted(word)).collect();
        assert_eq!(missing, [""; 0], "docs/scenarios.md does not explain these");
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once_in_the_order_of_the_file() {
        let text = "about = \"a\"\nrules = [\"l1\", \"zz\"]\nneeds = [\"rood\"]\n\
            [server.first]\nplain-usr = true\n[command.tool]\nlock = \"closd\"\n\
            [[step]]\nstart = \"frist\"\n[[step]]\nspwan = \"tool\"\n\
            [[step]]\nkill = \"first\"\nsweep = \"first\"\n";
        let expected = [
            "2: `zz` is no rule",
            "3: nothing is called `rood` that a machine can have (did you mean `root`?)",
            "5: a server has no `plain-usr` (did you mean `plain-user`?)",
            "7: `lock` cannot be `closd` (did you mean `closed`?)",
            "9: there is no server `frist` (did you mean `first`?)",
            "10: this step does not say what happens (did you mean `spawn`?)",
            "14: a step is one thing, not `kill` and `sweep` (make it two steps)",
        ];
        assert_eq!(wrong(text), expected);
    }

    #[test]
    fn a_name_is_of_the_kind_that_is_meant() {
        let steps = "[[step]]\nclose = \"tool\"\nexpect = [{ untouched = \"first\" }]\n";
        let expected = ["6: `tool` is a command", "7: `first` is a server"];
        assert_eq!(wrong(&around(steps)), expected);
        let twice = "[sweeper.tool]\n[[step]]\nstart = \"first\"\n";
        assert_eq!(wrong(&around(twice))[0], "5: two are called `tool`");
    }

    #[test]
    fn a_need_of_a_step_is_declared() {
        let steps = "[precious.photos]\n[[step]]\nmount = \"photos\"\nat = \"first/files\"\n";
        let expected =
            "6: this step needs `mount` (add it to the head of the file: needs = [\"mount\"])";
        assert_eq!(wrong(&around(steps)), [expected]);
    }

    #[test]
    fn a_place_does_not_lead_out() {
        for place in ["first/../x", "root//etc", "first/./x"] {
            let steps = format!("[[step]]\nremove = \"{place}\"\n");
            let expected = "6: a place is named from above, without `.` and `..`";
            assert_eq!(wrong(&around(&steps)), [expected], "{place}");
        }
    }

    #[test]
    fn rounds_and_their_number_go_together() {
        let steps = "[[step]]\nstart = \"first\"\nkill-before = \"n\"\n";
        let title = "a step depends on the round, and there are no rounds";
        assert!(wrong(&around(steps))[0].contains(title));
        let text = format!("rounds-max = 9\n{}", around("[[step]]\nstart = \"first\"\n"));
        let expected = "`rounds-max` is given, and no step depends on the round";
        assert!(wrong(&text)[0].contains(expected));
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_place() {
        assert!(wrong("about = \n")[0].starts_with("1: "));
        assert!(!wrong("[server.first\n[[step]]").is_empty());
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[a-z\\[\\]\\{\\}=\", \n.0-9-]{0,200}") {
            let _read = read("a/story", Path::new("story.toml"), &text);
        }
    }
}
