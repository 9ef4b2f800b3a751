//! Who did what: the steps of a run, in words.

use std::fmt;

use crate::proof::Answer;
use crate::state::Name;

/// Who acts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Actor {
    /// An owner.
    Owner(usize),
    /// A command of the first owner.
    Command(usize),
    /// The child of a command.
    Child(usize),
    /// A worker that the first owner forked.
    Worker,
    /// The child of another thread of the first owner.
    Stranger,
    /// A sweep.
    Sweep(usize),
    /// Everything else.
    World,
}

/// What is done, with what came of it. `bool` says whether it could be done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Act {
    /// Makes the staging directory of this index, or the claim itself.
    Make(usize),
    /// Lists the root.
    List,
    /// Opens a directory by a name.
    Open(usize, Name),
    /// Asks for the lock of the directory.
    Lock(bool),
    /// Takes the lock where locks exclude nobody.
    LockNothing,
    /// Compares the directory that it locked with the name.
    Compare(bool),
    /// Gives the lock of a directory back.
    GiveBack,
    /// Refuses to make a claim here.
    Refuse,
    /// Writes the owner's record.
    Record(bool),
    /// Makes `commands`.
    Commands(bool),
    /// Makes `files`.
    Files(bool),
    /// Renames to the published name.
    Publish(bool),
    /// Removes the staging that it lost.
    Unmake(bool),
    /// Makes an entry.
    EntryMake(bool),
    /// Locks it.
    EntryLock,
    /// Forks the command of this index.
    Fork(usize),
    /// Writes the identity of its command.
    Name(bool),
    /// Closes its copy of the entry's descriptor.
    EntryClose(bool),
    /// Asks whether the entry may be withdrawn.
    Withdraw(Answer),
    /// Removes an entry's identity.
    RemoveId,
    /// Removes an entry's file.
    RemoveEntry,
    /// Begins to close: asks after the commands.
    CloseAsk(Answer),
    /// Drops the claim although something lives.
    Drop,
    /// Renames `owner` to `released`.
    Release(bool),
    /// Closes the lease's description.
    CloseLease,
    /// Unlocks the lease, and closes it.
    UnlockLease,
    /// Asks after the commands, under the lease.
    AskCommands(Answer),
    /// Looks for evidence of life: whether there is none.
    Scan(bool),
    /// Loses the lease's descriptor.
    LoseLease,
    /// Forks a worker.
    ForkWorker,
    /// Another thread forks a child.
    ForkStranger,
    /// Makes a group of its own.
    Group(bool),
    /// Executes its program.
    Exec,
    /// Closes every descriptor.
    CloseAll,
    /// Unlocks what it got.
    Unlock,
    /// Leaves a child behind.
    LeaveChild,
    /// Leaves the group.
    LeaveGroup,
    /// Is not seen in the claim any more.
    LeaveClaim,
    /// Is seen in the claim again.
    EnterClaim,
    /// Loses the environment.
    Forget,
    /// Ends.
    End,
    /// Is reaped.
    Reaped,
    /// Is killed.
    Killed,
    /// Its number is given to another process.
    Reuse,
    /// Asks after the owner.
    AskOwner(Answer),
    /// Asks for the lock of an entry.
    AskEntry(Answer),
    /// Reads an entry's identity and asks after process and group.
    AskGroup(Answer),
    /// Has no question left about what it holds.
    Judged,
    /// Is done with all that it found.
    Finish,
    /// Looks for more directories.
    Again,
    /// Does not ask what it should.
    Skip,
    /// A probe of it fails.
    Fail,
    /// Keeps the directory, for what it is.
    KeepForWhatItIs,
    /// Looks for what forbids a removal: whether there is nothing.
    Walk(bool),
    /// Renames to a tombstone.
    Rename(bool),
    /// Gives the directory the mode 01700.
    Mark,
    /// Empties and removes `files`.
    EmptyFiles(bool),
    /// Removes `commands`.
    RemoveCommands,
    /// Unlinks the owner's record.
    Unlink,
    /// Removes the directory.
    RemoveDir(bool),
    /// Waits for the lock.
    Wait,
    /// Boots anew.
    Reboot,
    /// A claim is moved, and another directory put at its name.
    Swap(usize),
    /// Everybody ends who uses anything.
    AllEnd,
}

/// One step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Step {
    /// Who.
    pub actor: Actor,
    /// What.
    pub act: Act,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Actor::Owner(n) => write!(f, "owner {}", n + 1),
            Actor::Command(n) => write!(f, "command {}", n + 1),
            Actor::Child(n) => write!(f, "child of command {}", n + 1),
            Actor::Worker => f.write_str("worker"),
            Actor::Stranger => f.write_str("stranger"),
            Actor::Sweep(n) => write!(f, "sweep {}", n + 1),
            Actor::World => f.write_str("world"),
        }
    }
}

/// `yes` or `no`, as words that stand behind what was done.
fn or(done: bool, yes: &'static str, no: &'static str) -> &'static str {
    if done { yes } else { no }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Act::Make(dir) => return write!(f, "makes directory {}", dir + 1),
            Act::Open(dir, name) => return write!(f, "opens directory {}, {name}", dir + 1),
            Act::Swap(dir) => {
                let dir = dir + 1;
                return write!(f, "directory {dir} is moved, another one put at its name");
            }
            Act::Lock(done) => or(done, "locks it", "does not get its lock"),
            Act::List => "lists the root",
            Act::LockNothing => "locks it, which excludes nobody",
            Act::GiveBack => "gives the lock back",
            Act::Compare(same) => or(same, "it is the one at the name", "it is not at the name"),
            Act::Refuse => "refuses: there is no protection here",
            Act::Record(done) => or(done, "writes its record", "cannot write its record"),
            Act::Commands(done) => or(done, "makes commands", "cannot make commands"),
            Act::Files(done) => or(done, "makes files", "cannot make files"),
            Act::Publish(done) => or(done, "publishes it", "cannot publish it"),
            Act::Unmake(done) => or(done, "removes what it lost", "cannot remove what it lost"),
            Act::EntryMake(done) => or(done, "makes an entry", "cannot make an entry"),
            Act::EntryLock => "locks the entry",
            Act::Fork(command) => return write!(f, "forks command {}", command + 1),
            Act::Name(done) => or(done, "writes the identity", "cannot write the identity"),
            Act::EntryClose(done) => {
                or(done, "closes its copy of the entry", "keeps its copy of the entry")
            }
            Act::Withdraw(answer) => return write!(f, "may it withdraw the entry? {answer}"),
            Act::RemoveId => "removes the identity of an entry",
            Act::RemoveEntry => "removes the file of an entry",
            Act::CloseAsk(answer) => return write!(f, "wants to close, its commands: {answer}"),
            Act::Drop => "drops the claim",
            Act::Release(done) => or(done, "renames owner to released", "does not rename owner"),
            Act::CloseLease => "closes the lease's description",
            Act::UnlockLease => "unlocks the lease",
            Act::AskCommands(answer) => return write!(f, "asks after the commands: {answer}"),
            Act::Scan(none) => or(none, "sees nobody in it", "sees somebody in it"),
            Act::LoseLease => "loses the lease's descriptor",
            Act::ForkWorker => "forks the worker",
            Act::ForkStranger => "forks the stranger, in another thread",
            Act::Group(done) => or(done, "makes its own group", "stays in its owner's group"),
            Act::Exec => "executes its program",
            Act::CloseAll => "closes all descriptors",
            Act::Unlock => "unlocks the descriptors that it got",
            Act::LeaveChild => "leaves a child behind",
            Act::LeaveGroup => "leaves the group",
            Act::LeaveClaim => "is not seen in the claim any more",
            Act::EnterClaim => "comes back to the claim by its path",
            Act::Forget => "loses the environment",
            Act::End => "ends",
            Act::Reaped => "is reaped",
            Act::Killed => "is killed",
            Act::Reuse => "its number is given to another process",
            Act::AskOwner(answer) => return write!(f, "asks after the owner: {answer}"),
            Act::AskEntry(answer) => return write!(f, "asks for the entry's lock: {answer}"),
            Act::AskGroup(answer) => return write!(f, "asks after process and group: {answer}"),
            Act::Judged => "has its proofs",
            Act::Finish => "is done",
            Act::Again => "looks for more",
            Act::Skip => "does not ask",
            Act::Fail => "a probe of it fails",
            Act::KeepForWhatItIs => "keeps it for what it is",
            Act::Walk(clear) => or(clear, "finds nothing in the way", "finds something in the way"),
            Act::Rename(done) => or(done, "renames it to a tombstone", "cannot rename it"),
            Act::Mark => "gives it the mode 01700",
            Act::EmptyFiles(done) => or(done, "empties files", "cannot empty files"),
            Act::RemoveCommands => "removes commands",
            Act::Unlink => "unlinks the record",
            Act::RemoveDir(done) => {
                or(done, "removes the directory", "cannot remove the directory")
            }
            Act::Wait => "waits for the lock",
            Act::Reboot => "boots anew",
            Act::AllEnd => "everybody ends who uses anything",
        };
        f.write_str(text)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.actor, self.act)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Name::Absent => "not made",
            Name::Staging => "a staging",
            Name::Published => "a claim",
            Name::Tombstone => "a tombstone",
            Name::Removed => "removed",
            Name::Aside => "moved aside",
        })
    }
}
