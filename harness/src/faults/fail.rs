//! Calls that fail: at once, for ever, after they were done, or in part.

use std::collections::BTreeMap;

use mortmain::sys::{Answer, Call, DirEntry, Errno, Handle, Reply};
use serde::{Deserialize, Serialize};

use super::tap::{Hook, Step};

/// How a call fails.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Failure {
    /// It does nothing and answers this number.
    Errno(Errno),
    /// It is done, and answers this number all the same, as a network file system does when the
    /// reply is lost. Only a call that changes something can fail so.
    DoneBut(Errno),
    /// It answers less than there is: one entry of a directory, half of a link's text.
    Short,
}

impl Failure {
    /// Whether a call can fail in this way at all.
    #[must_use]
    pub fn fits(self, call: &str) -> bool {
        match self {
            Failure::Errno(_) => true,
            Failure::DoneBut(_) => matches!(
                call,
                "create-file"
                    | "mkdir"
                    | "symlink"
                    | "rename"
                    | "unlink"
                    | "rmdir"
                    | "unseal"
                    | "chmod"
                    | "lock"
                    | "write"
                    | "sync"
            ),
            Failure::Short => matches!(call, "read-dir" | "readlink" | "read"),
        }
    }
}

/// For how long calls fail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Repeat {
    /// The one call.
    Once,
    /// It and every later one.
    ForEver,
}

/// Whether a fault that was asked for has happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fired {
    /// It has.
    Yes,
    /// The process made fewer calls.
    No,
    /// The call was made and could not fail so: one that fails by itself is not done, a listing of
    /// one entry cannot be cut.
    CannotHappen,
}

/// Lets the n-th call of a process fail, and perhaps all later ones.
#[derive(Debug)]
pub struct FailAt {
    n: u64,
    failure: Failure,
    repeat: Repeat,
    seen: u64,
    fired: Fired,
    /// What was withheld from listings that were cut short.
    withheld: BTreeMap<Handle, Vec<DirEntry>>,
}

impl FailAt {
    /// At call `n`, from 1.
    #[must_use]
    pub fn new(n: u64, failure: Failure, repeat: Repeat) -> FailAt {
        FailAt { n, failure, repeat, seen: 0, fired: Fired::No, withheld: BTreeMap::new() }
    }

    /// Whether a call has failed because of it.
    #[must_use]
    pub fn fired(&self) -> Fired {
        self.fired
    }

    fn is_due(&self) -> bool {
        match self.repeat {
            Repeat::Once => self.seen == self.n,
            Repeat::ForEver => self.seen >= self.n,
        }
    }

    /// What was withheld from this listing, if it goes on.
    fn rest(&mut self, step: Step<'_>) -> Option<Vec<DirEntry>> {
        match step {
            Step::Call(Call::ReadDir { dir, restart: false }) => self.withheld.remove(dir),
            Step::Call(Call::ReadDir { dir, restart: true } | Call::Close { fd: dir }) => {
                self.withheld.remove(dir);
                None
            }
            _ => None,
        }
    }
}

impl Hook for FailAt {
    fn before(&mut self, step: Step<'_>) -> Option<Answer<Reply>> {
        self.seen += 1;
        if let Some(rest) = self.rest(step) {
            return Some(Ok(Reply::Entries(rest)));
        }
        match self.failure {
            // A close that fails has closed, so it is made and then denied.
            Failure::Errno(errno) if self.is_due() && step.word() != "close" => {
                self.fired = Fired::Yes;
                Some(Err(errno))
            }
            _ => None,
        }
    }

    fn after(&mut self, step: Step<'_>, answer: Answer<Reply>) -> Answer<Reply> {
        if !self.is_due() || !self.failure.fits(step.word()) {
            return answer;
        }
        let changed = self.changed(step, answer);
        self.fired = match changed {
            Ok(_) => Fired::Yes,
            Err(_) if self.fired == Fired::Yes => Fired::Yes,
            Err(_) => Fired::CannotHappen,
        };
        changed.unwrap_or_else(|answer| answer)
    }
}

impl FailAt {
    /// The answer that a process gets for the one that the kernel gave; the kernel's own where it
    /// cannot be changed so.
    fn changed(
        &mut self,
        step: Step<'_>,
        answer: Answer<Reply>,
    ) -> Result<Answer<Reply>, Answer<Reply>> {
        match (self.failure, answer) {
            (Failure::Errno(errno), _) | (Failure::DoneBut(errno), Ok(_)) => Ok(Err(errno)),
            (Failure::Short, Ok(Reply::Entries(mut entries))) if entries.len() > 1 => {
                if let Step::Call(Call::ReadDir { dir, .. }) = step {
                    self.withheld.insert(*dir, entries.split_off(1));
                }
                Ok(Ok(Reply::Entries(entries)))
            }
            (Failure::Short, Ok(Reply::Bytes(mut bytes))) => {
                bytes.truncate(bytes.len() / 2);
                Ok(Ok(Reply::Bytes(bytes)))
            }
            (_, answer) => Err(answer),
        }
    }
}
