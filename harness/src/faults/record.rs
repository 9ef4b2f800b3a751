//! What a process called, call by call.

use mortmain::sys::{Answer, Reply};

use super::tap::{Hook, Step};

/// Notes every call, as a word.
#[derive(Debug, Default)]
pub struct Record {
    calls: Vec<&'static str>,
}

impl Record {
    /// The calls so far; the n-th is at position n, that is, at index n - 1.
    #[must_use]
    pub fn calls(&self) -> &[&'static str] {
        &self.calls
    }
}

impl Hook for Record {
    fn before(&mut self, step: Step<'_>) -> Option<Answer<Reply>> {
        self.calls.push(step.word());
        None
    }
}
