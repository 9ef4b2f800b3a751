//! What can be seen of a world in the model's terms, and whether a state of the model shows the same.

use std::fmt;

use mortmain::Place;
use mortmain::sys::{Name as FileName, Pid};
use mortmain_model::state::{
    COMMANDS, Child, DIRS, Holder, Life, Look, Name, Record, SWEEPS, Stage, State, Task,
};

use super::cast::{Cast, Dir, Players};
use crate::world::World;
use crate::world::seen;

/// The mode of a claim whose removal in place has begun (r1).
const CONDEMNED_MODE: u32 = 0o1700;

/// A claim directory that has a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct ShownDir {
    name: Name,
    record: Record,
    commands: bool,
    files: bool,
    begun: bool,
    lock: Holder,
}

/// A process that a claim's record or registry could name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum ShownProcess {
    Unborn,
    /// Between fork and exec; whether it leads a group.
    Forked(bool),
    Running,
    Zombie,
    Gone,
}

/// What is seen at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Shown {
    dirs: [Option<ShownDir>; DIRS],
    /// Whether a directory was once there, with a name or not.
    made: [bool; DIRS],
    /// File, identity and lock.
    entries: [[bool; 3]; COMMANDS],
    /// Whether it lives.
    owner: bool,
    commands: [ShownProcess; COMMANDS],
    children: [Child; COMMANDS],
    /// Whether it has ended.
    ended: [bool; SWEEPS],
}

impl Shown {
    /// What is seen of a world.
    ///
    /// # Errors
    /// When somebody holds a lock who cannot.
    pub(super) fn of(world: &World, players: &Players, cast: &Cast) -> Result<Shown, String> {
        let mut dirs = [None; DIRS];
        for (shown, dir) in dirs.iter_mut().zip(&cast.dirs) {
            if let Some(dir) = dir {
                *shown = shown_dir(world, players, dir)?;
            }
        }
        let child = |at: usize| match cast.children[at] {
            None => Child::None,
            Some(pid) if !world.lives(pid) => Child::Ended,
            Some(pid) if world.group(pid) == cast.commands[at] => Child::InGroup,
            Some(_) => Child::Outside,
        };
        let ended = |at: usize| players.sweeps.get(at).is_some_and(|pid| !world.lives(*pid));
        Ok(Shown {
            dirs,
            made: std::array::from_fn(|at| cast.dirs[at].is_some()),
            entries: std::array::from_fn(|at| shown_entry(world, cast, at)),
            owner: world.lives(players.owner),
            commands: std::array::from_fn(|at| shown_process(world, cast.commands[at])),
            children: std::array::from_fn(child),
            ended: std::array::from_fn(ended),
        })
    }

    /// Whether a state of the model shows the same.
    pub(super) fn is_of(&self, state: &State) -> bool {
        (0..DIRS).all(|at| self.dir_is_of(state, at))
            && self.owner_is_of(state)
            && (0..COMMANDS).all(|at| self.command_is_of(state, at))
            && (0..SWEEPS).all(|at| !self.ended[at] || state.sweeps[at].look() == Look::Idle)
    }

    fn dir_is_of(&self, state: &State, at: usize) -> bool {
        let dir = state.dirs[at];
        match self.dirs[at] {
            Some(shown) => {
                shown.name == dir.name()
                    && shown.record == dir.record()
                    && shown.commands == dir.commands()
                    && shown.files == dir.files()
                    && shown.begun == dir.begun()
                    && shown.lock == dir.lock()
            }
            None if self.made[at] => dir.name() == Name::Removed,
            None => dir.name() == Name::Absent,
        }
    }

    fn owner_is_of(&self, state: &State) -> bool {
        let owner = state.owners[0];
        match owner.life() {
            // Who has made nothing yet, and who has given its claim up, is to others as good as dead.
            Life::Unborn => true,
            Life::Alive => self.owner || owner.task() == Task::Done,
            _ => !self.owner,
        }
    }

    fn command_is_of(&self, state: &State, at: usize) -> bool {
        let entry = state.entries[at];
        let command = state.commands[at];
        let stages: &[Stage] = match self.commands[at] {
            ShownProcess::Unborn => &[Stage::None],
            ShownProcess::Forked(false) => &[Stage::Forked],
            ShownProcess::Forked(true) => &[Stage::Grouped, Stage::Named],
            ShownProcess::Running => &[Stage::Running],
            ShownProcess::Zombie => &[Stage::Zombie],
            ShownProcess::Gone => &[Stage::Gone],
        };
        self.entries[at] == [entry.file(), entry.id(), entry.locked()]
            && stages.contains(&command.stage())
            && self.children[at] == command.child()
    }
}

fn shown_dir(world: &World, players: &Players, dir: &Dir) -> Result<Option<ShownDir>, String> {
    let named = world.in_root().into_iter().find(|(_, inode)| *inode == dir.inode);
    let Some((name, _)) = named else { return Ok(None) };
    let name = match players.prefix.parse(&name).map(|name| name.place) {
        Some(Place::Staging) => Name::Staging,
        Some(Place::Published) => Name::Published,
        Some(Place::Tombstone) => Name::Tombstone,
        None => return Err(format!("a claim is called {name}")),
    };
    let has = |part: &'static str| world.named_in(dir.inode, &FileName::fixed(part)).is_some();
    let record = match (has("owner"), has("released")) {
        (true, _) => Record::Owner,
        (false, true) => Record::Released,
        (false, false) => Record::Missing,
    };
    let lock = match world.holder(dir.inode) {
        None => Holder::Nobody,
        Some(holder) if Some(holder.file) == dir.lease => Holder::Owner,
        Some(holder) if holder.by == players.owner => Holder::Closer,
        Some(holder) => {
            let sweep = players.sweeps.iter().position(|pid| *pid == holder.by);
            let by = holder.by.0;
            Holder::sweep(sweep.ok_or_else(|| format!("process {by} holds a lease"))?)
        }
    };
    Ok(Some(ShownDir {
        name,
        record,
        commands: has("commands"),
        files: has("files"),
        begun: world.mode(dir.inode) == Some(CONDEMNED_MODE),
        lock,
    }))
}

fn shown_entry(world: &World, cast: &Cast, at: usize) -> [bool; 3] {
    let Some(entry) = &cast.entries[at] else { return [false; 3] };
    let registry = cast.registry(world);
    let named = |name| registry.and_then(|registry| world.named_in(registry, name));
    let id = [entry.name.bytes(), b".id"].concat();
    // OK because digits and these letters are a name.
    let id = FileName::new(&id).expect("a name");
    let locked = world.holder(entry.file).is_some_and(|holder| Some(holder.file) == entry.lock);
    [named(&entry.name) == Some(entry.file), named(&id).is_some(), locked]
}

fn shown_process(world: &World, pid: Option<Pid>) -> ShownProcess {
    let Some(pid) = pid else { return ShownProcess::Unborn };
    match world.stage(pid) {
        seen::Stage::Absent => ShownProcess::Gone,
        seen::Stage::Forked => ShownProcess::Forked(world.group(pid) == Some(pid)),
        seen::Stage::Running => ShownProcess::Running,
        seen::Stage::Zombie => ShownProcess::Zombie,
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = Vec::new();
        for (at, made) in self.made.iter().enumerate() {
            match self.dirs[at] {
                Some(dir) => told.push(format!("directory {} is {dir}", at + 1)),
                None if *made => told.push(format!("directory {} is removed", at + 1)),
                None => {}
            }
        }
        told.push(format!("the owner {}", if self.owner { "lives" } else { "is dead" }));
        for (at, [file, id, locked]) in self.entries.iter().enumerate() {
            let process = match self.commands[at] {
                ShownProcess::Unborn if !(*file || *id || *locked) => continue,
                ShownProcess::Unborn => "is not started",
                ShownProcess::Forked(_) => "is forked",
                ShownProcess::Running => "runs",
                ShownProcess::Zombie => "is a zombie",
                ShownProcess::Gone => "is gone",
            };
            let parts = [(file, "a file"), (id, "an identity"), (locked, "a lock that is held")];
            let parts: Vec<&str> =
                parts.into_iter().filter(|(has, _)| **has).map(|(_, part)| part).collect();
            let parts = if parts.is_empty() { "nothing".into() } else { parts.join(", ") };
            let child = match self.children[at] {
                Child::None => "",
                Child::InGroup => ", has a child in its group",
                Child::Outside => ", has a child outside of its group",
                Child::Ended => ", had a child",
            };
            told.push(format!("command {} {process}{child}, and its entry has {parts}", at + 1));
        }
        for (at, _) in self.ended.iter().enumerate().filter(|(_, ended)| **ended) {
            told.push(format!("sweep {} has ended", at + 1));
        }
        f.write_str(&told.join("; "))
    }
}

impl fmt::Display for ShownDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = match self.record {
            Record::Missing => "no record",
            Record::Owner => "an owner's record",
            Record::Released => "a released record",
        };
        write!(f, "{} with {record}", self.name)?;
        for (has, part) in [(self.commands, "commands"), (self.files, "files")] {
            if has {
                write!(f, ", {part}")?;
            }
        }
        if self.begun {
            f.write_str(", being removed in place")?;
        }
        match self.lock {
            Holder::Nobody => f.write_str(", unlocked"),
            Holder::Owner => f.write_str(", under its lease"),
            Holder::Closer | Holder::Rogue => f.write_str(", locked by who closes it"),
            Holder::First | Holder::Second | Holder::Leftover => f.write_str(", locked by a sweep"),
        }
    }
}
