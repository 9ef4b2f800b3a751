//! SIGKILL at an exact call.

use mortmain::sys::{Answer, Reply};

use super::tap::{Hook, Step};

/// On which side of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Moment {
    /// It is not made any more.
    Before,
    /// It is made, and nobody hears the answer.
    After,
}

/// Kills the process at its n-th call, or at the first call of a kind.
pub struct KillAt {
    which: Box<dyn FnMut(Step<'_>) -> bool>,
    moment: Moment,
    /// On the real kernel a SIGKILL to the own process, which does not return.
    kill: fn(),
    here: bool,
}

impl KillAt {
    /// At call `n`, from 1.
    #[must_use]
    pub fn position(n: u64, moment: Moment, kill: fn()) -> KillAt {
        let mut seen = 0;
        KillAt::first(moment, kill, move |_| {
            seen += 1;
            seen == n
        })
    }

    /// At the first call that `which` picks; it is asked once for each call, in order.
    pub fn first(
        moment: Moment,
        kill: fn(),
        which: impl FnMut(Step<'_>) -> bool + 'static,
    ) -> KillAt {
        KillAt { which: Box::new(which), moment, kill, here: false }
    }
}

impl std::fmt::Debug for KillAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KillAt").field("moment", &self.moment).finish_non_exhaustive()
    }
}

impl Hook for KillAt {
    fn before(&mut self, step: Step<'_>) -> Option<Answer<Reply>> {
        self.here = (self.which)(step);
        if self.here && self.moment == Moment::Before {
            (self.kill)();
        }
        None
    }

    fn after(&mut self, _step: Step<'_>, answer: Answer<Reply>) -> Answer<Reply> {
        if self.here && self.moment == Moment::After {
            (self.kill)();
        }
        answer
    }
}
