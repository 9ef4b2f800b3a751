//! What a story needs of a machine that the world has not.
//!
//! Found out from who is in it and from what happens, in matches without a rest: a new word of the
//! format does not compile before somebody has decided.

use std::collections::BTreeSet;
use std::fmt;

use crate::scenario::story::{self, Action, Actor, Deed, Expected, Oddity, Step, Story};

/// Something of a machine that a story needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Feature {
    /// More users than one.
    Users,
    /// Permissions that forbid something.
    Permissions,
    /// More file systems than one, or one that is full.
    Disks,
    /// More mount namespaces than one.
    MountNamespaces,
    /// More pid namespaces than one.
    PidNamespaces,
    /// Programs that may be run and not read.
    UnreadablePrograms,
    /// Flags of files.
    FileFlags,
    /// Sockets that are passed to a program.
    PassedSockets,
    /// A shell for scripts.
    Shells,
    /// Very many owners.
    Crowds,
    /// Cleaners that are programs of others.
    Cleaners,
}

/// What the world has not. A line less is a limit less.
const LACKS: [(Feature, &str); 11] = [
    (Feature::Users, "other users"),
    (Feature::Permissions, "permissions"),
    (Feature::Disks, "other file systems"),
    (Feature::MountNamespaces, "other mount namespaces"),
    (Feature::PidNamespaces, "other pid namespaces"),
    (Feature::UnreadablePrograms, "programs that cannot be read"),
    (Feature::FileFlags, "flags of files"),
    (Feature::PassedSockets, "passed sockets"),
    (Feature::Shells, "shells"),
    (Feature::Crowds, "crowds"),
    (Feature::Cleaners, "other programs"),
];

/// Why a story, or a case of one, is not told in the world.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WhyNot {
    /// Its file says so, for this reason.
    HostOnly(String),
    /// The world has none of these.
    Lacks(Vec<&'static str>),
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyNot::HostOnly(reason) => write!(f, "host only: {reason}"),
            WhyNot::Lacks(what) => write!(f, "no {}", what.join(", no ")),
        }
    }
}

/// Why one case of a story cannot be told in the world; `None` if it can.
#[must_use]
pub fn why_not(case: &Story) -> Option<WhyNot> {
    let needed = needed(case);
    let lacks = LACKS.iter().filter(|(feature, _)| needed.contains(feature));
    let lacks: Vec<&str> = lacks.map(|(_, word)| *word).collect();
    match &case.host_only {
        Some(reason) => Some(WhyNot::HostOnly(reason.clone())),
        None if lacks.is_empty() => None,
        None => Some(WhyNot::Lacks(lacks)),
    }
}

/// Everything that a case needs which a machine may lack.
fn needed(case: &Story) -> BTreeSet<Feature> {
    let mut needed = BTreeSet::new();
    let plain: BTreeSet<bool> = case.actors.values().filter_map(is_plain_user).collect();
    if plain.len() > 1 {
        needed.insert(Feature::Users);
    }
    for actor in case.actors.values() {
        of_actor(actor, &mut needed);
    }
    for Step { action, expects, .. } in &case.steps {
        of_action(action, &mut needed);
        for expected in expects {
            of_expected(&expected.what, &mut needed);
        }
    }
    needed
}

/// Whether an actor that makes or sweeps claims is a plain user. Where all are, that is what the
/// world's one user is.
fn is_plain_user(actor: &Actor) -> Option<bool> {
    match actor {
        Actor::Server(server) => Some(server.plain_user),
        Actor::Sweeper(sweeper) => Some(sweeper.plain_user),
        Actor::Command(_)
        | Actor::Precious(_)
        | Actor::Disk(_)
        | Actor::Crowd(_)
        | Actor::Stranger
        | Actor::Container(_) => None,
    }
}

fn of_actor(actor: &Actor, needed: &mut BTreeSet<Feature>) {
    match actor {
        Actor::Server(server) => of_server(server, needed),
        Actor::Command(command) => of_command(command, needed),
        Actor::Sweeper(story::Sweeper {
            dry_run: _,
            plain_user: _,
            prefix: _,
            cannot_tell: _,
            not_removed: _,
            descriptors: _,
            on,
            surroundings,
        }) => {
            needed.extend(on.as_ref().map(|_| Feature::Disks));
            of_surroundings(surroundings, needed);
        }
        Actor::Precious(story::Precious { plain_user }) => {
            needed.extend(plain_user.then_some(Feature::Users));
        }
        Actor::Disk(_) => drop(needed.insert(Feature::Disks)),
        Actor::Crowd(_) => drop(needed.insert(Feature::Crowds)),
        Actor::Container(_) => drop(needed.insert(Feature::PidNamespaces)),
        Actor::Stranger => {}
    }
}

fn of_server(server: &story::Server, needed: &mut BTreeSet<Feature>) {
    let story::Server {
        plain_user: _,
        prefix: _,
        on,
        within: _,
        descriptors: _,
        background: _,
        surroundings,
        first,
        unreadable,
        passed,
    } = server;
    needed.extend(on.as_ref().map(|_| Feature::Disks));
    needed.extend(first.then_some(Feature::PidNamespaces));
    needed.extend(unreadable.then_some(Feature::UnreadablePrograms));
    needed.extend(passed.as_ref().map(|_| Feature::PassedSockets));
    of_surroundings(surroundings, needed);
}

fn of_surroundings(surroundings: &story::Surroundings, needed: &mut BTreeSet<Feature>) {
    let story::Surroundings { container, boottime_offset: _ } = surroundings;
    needed.extend(container.as_ref().map(|_| Feature::PidNamespaces));
}

fn of_command(command: &story::Command, needed: &mut BTreeSet<Feature>) {
    let story::Command {
        by: _,
        script,
        background: _,
        own_session: _,
        lock: _,
        elsewhere: _,
        without_cookie: _,
        escapes: _,
    } = command;
    needed.extend(script.as_ref().map(|_| Feature::Shells));
}

fn of_action(action: &Action, needed: &mut BTreeSet<Feature>) {
    let feature = match action {
        Action::Start { .. }
        | Action::Spawn { .. }
        | Action::Kill { .. }
        | Action::Exit(_)
        | Action::Stop(_)
        | Action::Continue(_)
        | Action::Close { .. }
        | Action::Release(_)
        | Action::Drop(_)
        | Action::Fork { .. }
        | Action::Odd(_, Oddity::ReExec | Oddity::EndMainThread | Oddity::LoseLease)
        | Action::Sweep { .. }
        | Action::Link { .. }
        | Action::Forge { .. }
        | Action::Duplicate { .. }
        | Action::Move { .. }
        | Action::Remove(_)
        | Action::Age { .. }
        | Action::Lock(_)
        | Action::Unlock(_)
        | Action::TakeLock { .. }
        | Action::GiveLockBack { .. }
        | Action::Write { .. }
        | Action::Read { .. }
        | Action::TakeSandbox { .. }
        | Action::Reclaim(_)
        | Action::KillCopies(_)
        | Action::KillTree(_)
        | Action::StartStranger { .. }
        | Action::Empty(_)
        | Action::Plant { .. }
        | Action::ByCommand { does: Deed::Remove | Deed::Empty | Deed::Plant(_), .. }
        | Action::Unmount(_) => None,
        Action::Mount { elsewhere, .. } => elsewhere.then_some(Feature::MountNamespaces),
        Action::Chmod { .. } => Some(Feature::Permissions),
        Action::Chown { .. } => Some(Feature::Users),
        Action::Chattr { .. } => Some(Feature::FileFlags),
        Action::TakeSockets { .. } => Some(Feature::PassedSockets),
        Action::Fill { .. } => Some(Feature::Disks),
        Action::Gather(_) => Some(Feature::Crowds),
        Action::Tmpfiles(_) => Some(Feature::Cleaners),
    };
    needed.extend(feature);
}

fn of_expected(expected: &Expected, needed: &mut BTreeSet<Feature>) {
    let feature = match expected {
        Expected::Claim { .. }
        | Expected::Works(_)
        | Expected::Lives(_)
        | Expected::Ended(_)
        | Expected::Untouched(_)
        | Expected::There { .. }
        | Expected::NotThere(_)
        | Expected::Told(_)
        | Expected::NotTold(_)
        | Expected::Names { on: None, .. }
        | Expected::Lock { .. }
        | Expected::Content { .. }
        | Expected::Foreign(_) => None,
        Expected::Names { on: Some(_), .. } => Some(Feature::Disks),
        Expected::Listens(_) | Expected::NotListens(_) => Some(Feature::PassedSockets),
    };
    needed.extend(feature);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::catalogue::load_all;

    fn cases() -> Vec<Story> {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios");
        let all = load_all(Path::new(dir)).expect("the scenarios can be read");
        let stories = all.into_iter().map(|loaded| loaded.story.expect("it is understood"));
        stories.flat_map(|story| [vec![story.clone()], story.other_cases].concat()).collect()
    }

    #[test]
    fn every_limit_keeps_some_story_from_being_told() {
        let needed: BTreeSet<Feature> = cases().iter().flat_map(needed).collect();
        let lacking: BTreeSet<Feature> = LACKS.iter().map(|(feature, _)| *feature).collect();
        assert_eq!(lacking.len(), LACKS.len(), "one stands there twice");
        let idle: Vec<_> = lacking.difference(&needed).collect();
        assert!(idle.is_empty(), "no story needs {idle:?}");
    }

    #[test]
    fn what_is_missing_is_told_in_words() {
        let why = |name: &str| {
            let cases = cases();
            let case = cases.iter().find(|case| case.name == name).expect("it is there");
            why_not(case).map(|why| why.to_string())
        };
        assert_eq!(why("commands/outlives-its-owner"), None);
        assert_eq!(
            why("contents/file-of-another-user").as_deref(),
            Some("no other users, no permissions")
        );
        let cleaner = why("owners/idle-since-1970-beside-tmpfiles");
        assert_eq!(cleaner.as_deref(), Some("host only: the cleaner is a real program"));
    }
}
