//! What is true at one moment: directories, locks, processes, and how far each has come.
//!
//! Two directories, two owners, two commands and two sweeps at most. What a setting does not
//! use stays at its beginning. All of it is truth; what a process believes is nothing but the
//! place in its program that it has come to.
//!
//! Not here: the content of `files`, which is either there or not; pids as numbers, since a
//! process is either the recorded one, its zombie, gone, or somebody else with its number.

use crate::bits::{Few, choices, word};
use crate::rules::{Rule, Rules};
use crate::setting::Setting;

/// Directories that can be made under the root.
pub const DIRS: usize = 2;
/// Owners that can run.
pub const OWNERS: usize = 2;
/// Commands that the first owner can start.
pub const COMMANDS: usize = 2;
/// Sweeps that can run at the same time.
pub const SWEEPS: usize = 2;

choices! {
    /// Under which name a directory is.
    Name: 3 {
        /// It was not made yet.
        Absent,
        /// Being made.
        Staging,
        /// A claim.
        Published,
        /// Being removed.
        Tombstone,
        /// It is removed; who has it open has it still.
        Removed,
        /// Somebody moved it elsewhere, and a directory of his own is at its name.
        Aside,
    }
}

choices! {
    /// What the owner's link has become.
    Record: 2 {
        /// There is none.
        Missing,
        /// The owner's record.
        Owner,
        /// The same, renamed: its owner has given the claim up.
        Released,
    }
}

choices! {
    /// Whose open file description holds the lock of a claim directory.
    Holder: 3 {
        /// Nobody's.
        Nobody,
        /// The one that its owner opened when it made the claim; a fork shares it.
        Owner,
        /// One that the owner opened in order to close.
        Closer,
        /// One that a forked worker opened in order to close.
        Rogue,
        /// The first sweep's.
        First,
        /// The second sweep's.
        Second,
        /// That of a process that swept before, and is shared by a worker of it.
        Leftover,
    }
}

impl Holder {
    /// The sweep of this index.
    pub fn sweep(sweep: usize) -> Holder {
        if sweep == 0 { Holder::First } else { Holder::Second }
    }

    /// The same with the two sweeps exchanged.
    pub(crate) fn exchanged(self) -> Holder {
        match self {
            Holder::First => Holder::Second,
            Holder::Second => Holder::First,
            other => other,
        }
    }
}

word! {
    /// A claim directory.
    Dir {
        /// Its name.
        name, set_name: Name = 0;
        /// Its owner's link.
        record, set_record: Record = 3;
        /// Whether `commands` is there.
        commands, set_commands: bool = 5;
        /// Whether `files` is there.
        files, set_files: bool = 6;
        /// Whether it has the mode 01700: its removal in place has begun.
        begun, set_begun: bool = 7;
        /// Who holds its lock.
        lock, set_lock: Holder = 8;
        /// Whether a known escape has removed something of it: what follows is its consequence.
        lost, set_lost: bool = 11;
    }
}

word! {
    /// The entry of a command, in the registry of the first owner's claim.
    Entry {
        /// Whether the file `n` is there.
        file, set_file: bool = 0;
        /// Whether the link `n.id` is there.
        id, set_id: bool = 1;
        /// Whether the file's lock is held, by the description that the owner made for it.
        locked, set_locked: bool = 2;
    }
}

choices! {
    /// How a process lives that may be recorded somewhere.
    Life: 3 {
        /// It was not started yet.
        Unborn,
        /// It runs.
        Alive,
        /// It has ended, and nobody has reaped it.
        Zombie,
        /// It has ended, and its number is free.
        Gone,
        /// It has ended, and somebody else has its number.
        Reused,
        /// It ran before the last boot.
        Before,
    }
}

choices! {
    /// What an owner does next, or a worker of it that acts for it.
    Task: 6 {
        /// Make the staging directory.
        Make,
        /// Open it.
        Open,
        /// Lock it, without waiting.
        Lock,
        /// Compare the locked directory with the name.
        Compare,
        /// Write the owner's record.
        Record,
        /// Make `commands`.
        Commands,
        /// Make `files`.
        Files,
        /// Rename it to the published name.
        Publish,
        /// Remove the staging that it lost, and begin anew.
        Unmake,
        /// Nothing: it uses its claim.
        Hold,
        /// Make the entry of a command.
        EntryMake,
        /// Lock it.
        EntryLock,
        /// Fork.
        Fork,
        /// Write the command's identity, where the child does not.
        EntryName,
        /// Close its copy of the entry's descriptor.
        EntryClose,
        /// Remove the first part of the entry.
        WithdrawFirst,
        /// Remove the second.
        WithdrawSecond,
        /// Rename `owner` to `released`.
        CloseRelease,
        /// Close the lease's description.
        CloseLease,
        /// Open the claim anew.
        CloseOpen,
        /// Lock it anew.
        CloseLock,
        /// Compare it with the name.
        CloseCompare,
        /// Ask after the commands under the lease.
        CloseCommands,
        /// Look for evidence of life.
        CloseScan,
        /// Look for what forbids a removal.
        Walk,
        /// Rename it to a tombstone.
        Rename,
        /// Mark a removal in place.
        Mark,
        /// Empty `files`, and remove it.
        EmptyFiles,
        /// Empty `commands`, and remove it.
        EmptyCommands,
        /// Unlink the owner's record.
        Unlink,
        /// Remove the directory.
        RemoveDir,
        /// Give the lock back.
        GiveBack,
        /// Nothing: its part is over.
        Done,
    }
}

word! {
    /// An owner.
    Owner {
        /// Whether it lives.
        life, set_life: Life = 0;
        /// What it does next.
        task, set_task: Task = 3;
        /// The directory that it makes or has.
        dir, set_dir: Few = 9;
        /// Whether it has the lease's descriptor.
        lease, set_lease: bool = 11;
        /// The command that it starts, or whose entry it withdraws.
        command, set_command: bool = 12;
        /// Whether it gives up what it may not remove (a `Drop`).
        drops, set_drops: bool = 13;
        /// Whether it has descriptors of the first entry, and of the second.
        entry_first, set_entry_first: bool = 14;
        /// The same of the second.
        entry_second, set_entry_second: bool = 15;
    }
}

choices! {
    /// How far a command has come.
    Stage: 4 {
        /// It was not started.
        None,
        /// It is forked.
        Forked,
        /// It has a group of its own.
        Grouped,
        /// It has written its identity.
        Named,
        /// It is the program that it was to become.
        Running,
        /// It has ended, and nobody has reaped it.
        Zombie,
        /// It has ended, and its number is free.
        Gone,
        /// It has ended, and somebody else has its number.
        Reused,
        /// It ran before the last boot.
        Before,
    }
}

impl Stage {
    /// Whether there is a process that may use the claim.
    pub fn lives(self) -> bool {
        matches!(self, Stage::Forked | Stage::Grouped | Stage::Named | Stage::Running)
    }
}

choices! {
    /// Where a command's child is.
    Child: 2 {
        /// There is none.
        None,
        /// In the command's group.
        InGroup,
        /// In a session of its own.
        Outside,
        /// It has ended.
        Ended,
    }
}

impl Child {
    /// Whether there is a process that may use the claim.
    pub fn lives(self) -> bool {
        matches!(self, Child::InGroup | Child::Outside)
    }
}

word! {
    /// A command, and the child that it may leave.
    Command {
        /// How far it has come.
        stage, set_stage: Stage = 0;
        /// Whether it has not closed the entry's descriptor, if it ever got it.
        entry, set_entry: bool = 4;
        /// Whether it is seen in the claim: a working directory, a descriptor, a map.
        inside, set_inside: bool = 5;
        /// Whether it has the environment that it was started with.
        environment, set_environment: bool = 6;
        /// Whether it has the lease's descriptor.
        lease, set_lease: bool = 7;
        /// Where its child is.
        child, set_child: Child = 8;
        /// Whether the child has the entry's descriptor.
        child_entry, set_child_entry: bool = 10;
        /// Whether the child is seen in the claim.
        child_inside, set_child_inside: bool = 11;
        /// Whether the child has the environment.
        child_environment, set_child_environment: bool = 12;
        /// Whether the child has the lease's descriptor.
        child_lease, set_child_lease: bool = 13;
        /// Whether its owner had lost the lease's descriptor when it was started.
        unleased, set_unleased: bool = 14;
        /// Whether the child has once been out of everybody's sight.
        strayed, set_strayed: bool = 15;
    }
}

choices! {
    /// A process that the owner forked: a worker, which works on in the claim, or the child of
    /// another thread, which has nothing to do with it.
    Forked: 2 {
        /// There is none.
        None,
        /// It has copies of all descriptors.
        Copied,
        /// It has those that survive exec (the other thread's child), or none (the worker).
        Parted,
        /// It has ended.
        Ended,
    }
}

word! {
    /// A process that the first owner forked: a worker without exec, or the child of another thread.
    ForkedProcess {
        /// What it is.
        life, set_life: Forked = 0;
        /// Whether it has the lease's descriptor.
        lease, set_lease: bool = 2;
        /// Whether it has the first entry's descriptor.
        entry_first, set_entry_first: bool = 3;
        /// Whether it has the second entry's.
        entry_second, set_entry_second: bool = 4;
        /// What it does next, where it is a worker and acts for the owner.
        task, set_task: Task = 5;
    }
}

word! {
    /// What may still happen.
    Left {
        /// Kills.
        kills, set_kills: Few = 0;
        /// Probes that fail.
        failures, set_failures: Few = 2;
        /// A number that is given to somebody else.
        reuse, set_reuse: bool = 4;
        /// A reboot.
        reboot, set_reboot: bool = 5;
        /// A directory that is moved, and another one put at its name.
        swap, set_swap: bool = 6;
    }
}

choices! {
    /// What a sweep does next.
    Look: 5 {
        /// List the root: it has not begun, or is at its end.
        Idle,
        /// Open the next directory, or go on with those that it holds.
        Open,
        /// Ask for the lock.
        Lock,
        /// Compare the locked directory with the name.
        Compare,
        /// Ask after the owner.
        Owner,
        /// Ask for the lock of the next entry.
        Entry,
        /// Read the entry's identity, and ask after its process and group.
        Group,
        /// Look for evidence of life.
        Scan,
        /// Go on with the next directory that may be removed.
        Next,
        /// Look for what forbids a removal.
        Walk,
        /// Rename it to a tombstone.
        Rename,
        /// Mark a removal in place.
        Mark,
        /// Empty `files`, and remove it.
        EmptyFiles,
        /// Empty `commands`, and remove it.
        EmptyCommands,
        /// Unlink the owner's record.
        Unlink,
        /// Remove the directory.
        RemoveDir,
    }
}

choices! {
    /// How far a sweep has come with a directory.
    Seen: 2 {
        /// Not there yet.
        Unseen,
        /// Its proofs are there; the lease is held.
        Candidate,
        /// It is removed, or was told with the reason why not.
        Told,
        /// It was passed over, and not told.
        Silent,
    }
}

word! {
    /// A sweep.
    Sweep {
        /// What it does next.
        look, set_look: Look = 0;
        /// The directory that it is at.
        second, set_second: bool = 5;
        /// The name that it opened it by.
        opened, set_opened: Name = 6;
        /// The entry that it is at.
        entry, set_entry: bool = 9;
        /// How far it is with the first directory.
        seen_first, set_seen_first: Seen = 10;
        /// How far it is with the second.
        seen_second, set_seen_second: Seen = 12;
        /// Whether its process has forked a worker, which shares its descriptors.
        shared, set_shared: bool = 14;
    }
}

impl Sweep {
    /// The directory that it is at.
    pub fn dir(self) -> usize {
        usize::from(self.second())
    }

    /// How far it is with a directory.
    pub fn seen(self, dir: usize) -> Seen {
        if dir == 0 { self.seen_first() } else { self.seen_second() }
    }

    pub(crate) fn set_seen(&mut self, dir: usize, seen: Seen) {
        if dir == 0 { self.set_seen_first(seen) } else { self.set_seen_second(seen) }
    }
}

/// Descriptors of entries, by the command's index.
macro_rules! entries {
    ($($name:ident)+) => {
        $(impl $name {
            /// Whether it has the descriptor of a command's entry.
            pub fn entry(self, command: usize) -> bool {
                if command == 0 { self.entry_first() } else { self.entry_second() }
            }

            pub(crate) fn set_entry(&mut self, command: usize, has: bool) {
                if command == 0 { self.set_entry_first(has) } else { self.set_entry_second(has) }
            }
        })+
    };
}

entries!(Owner ForkedProcess);

/// Everything at one moment.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct State {
    /// The directories.
    pub dirs: [Dir; DIRS],
    /// The entries of the first owner's commands.
    pub entries: [Entry; COMMANDS],
    /// The owners.
    pub owners: [Owner; OWNERS],
    /// The commands of the first owner.
    pub commands: [Command; COMMANDS],
    /// A worker that the first owner forked.
    pub worker: ForkedProcess,
    /// A child of another thread of the first owner.
    pub stranger: ForkedProcess,
    /// What may still happen.
    pub left: Left,
    /// The sweeps.
    pub sweeps: [Sweep; SWEEPS],
}

impl State {
    /// The directory of the first owner: its commands, its worker and their child use this one.
    pub fn claim(&self) -> usize {
        self.owners[0].dir().get()
    }

    /// Whether the description of a directory's lease has a copy left.
    fn has_lease(&self, dir: usize) -> bool {
        let owned = self.owners.iter().any(|owner| owner.lease() && owner.dir().get() == dir);
        let command = |command: &Command| command.lease() || command.child_lease();
        let forked =
            self.worker.lease() || self.stranger.lease() || self.commands.iter().any(command);
        owned || (forked && self.claim() == dir)
    }

    /// Whether the description of an entry has a copy left.
    fn has_entry(&self, rules: Rules, command: usize) -> bool {
        self.command_has_entry(rules, command)
            || self.owners[0].entry(command)
            || self.worker.entry(command)
            || self.stranger.entry(command)
    }

    /// Whether the command or its child has the entry's descriptor: it did not close it, and
    /// the descriptor survived exec (p2).
    pub(crate) fn command_has_entry(&self, rules: Rules, command: usize) -> bool {
        let process = self.commands[command];
        let survives = rules.has(Rule::P2Lock);
        let itself = process.entry() && (survives || process.stage() != Stage::Running);
        itself || (process.child_entry() && survives)
    }

    /// What follows from a step: the kernel drops a lock with the last copy of its description,
    /// and who is out of sight has been so for good.
    pub(crate) fn settle(&mut self, setting: &Setting) {
        for dir in 0..DIRS {
            if self.dirs[dir].lock() == Holder::Owner && !self.has_lease(dir) {
                self.dirs[dir].set_lock(Holder::Nobody);
            }
        }
        for command in 0..COMMANDS {
            if self.entries[command].locked() && !self.has_entry(setting.rules, command) {
                self.entries[command].set_locked(false);
            }
            if self.child_is_out_of_sight(setting, command) {
                self.commands[command].set_strayed(true);
            }
        }
    }
}
