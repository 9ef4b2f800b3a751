//! A hook that is off until it is armed.

use mortmain::sys::{Answer, Reply};

use super::tap::{Hook, Step};

/// Passes everything by until it is armed, so that what leads up to an operation is neither counted
/// nor disturbed.
#[derive(Debug)]
pub struct Armed<H> {
    on: bool,
    hook: H,
}

impl<H> Armed<H> {
    /// Off, for now.
    pub fn off(hook: H) -> Armed<H> {
        Armed { on: false, hook }
    }

    /// From now on the hook is asked.
    pub fn arm(&mut self) {
        self.on = true;
    }

    /// The hook.
    pub fn hook(&self) -> &H {
        &self.hook
    }
}

impl<H: Hook> Hook for Armed<H> {
    fn before(&mut self, step: Step<'_>) -> Option<Answer<Reply>> {
        if self.on { self.hook.before(step) } else { None }
    }

    fn after(&mut self, step: Step<'_>, answer: Answer<Reply>) -> Answer<Reply> {
        if self.on { self.hook.after(step, answer) } else { answer }
    }
}
