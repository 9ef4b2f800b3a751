//! A kernel that keeps a rule from working, for tests that show what the rule is for.

use std::cell::RefCell;
use std::rc::Rc;

use mortmain::sys::{Answer, Call, ChildPlan, Handle, Kernel, Pid, Reply};
use mortmain_harness::simulated::WorldKernel;
use mortmain_harness::world::request::Command;

/// What does not work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Without {
    /// Everything does.
    Nothing,
    /// Whoever asks is told that the lock is free (f1, x1).
    Lock,
    /// What was locked is taken for what is at the name (f2, x1).
    Comparison,
}

#[derive(Clone)]
pub(crate) struct Blind {
    inner: WorldKernel,
    without: Without,
    name: &'static str,
    /// What this process has locked, in that order.
    locked: Rc<RefCell<Vec<Handle>>>,
}

impl Blind {
    /// The comparison is that of what is locked first with what is at `name`.
    pub(crate) fn new(inner: &WorldKernel, without: Without, name: &'static str) -> Blind {
        Blind { inner: inner.clone(), without, name, locked: Rc::default() }
    }
}

impl Kernel for Blind {
    type Program = Command;

    fn call(&self, call: Call) -> Answer<Reply> {
        match (self.without, &call) {
            (Without::Lock, Call::Lock { .. }) => return Ok(Reply::Done),
            (Without::Comparison, Call::Lock { fd }) => self.locked.borrow_mut().push(*fd),
            (Without::Comparison, Call::Unlock { fd }) => {
                self.locked.borrow_mut().retain(|locked| locked != fd);
            }
            (Without::Comparison, Call::StatAt { name, .. })
                if name.bytes() == self.name.as_bytes() =>
            {
                if let Some(&fd) = self.locked.borrow().first() {
                    return self.inner.call(Call::Stat { fd });
                }
            }
            _ => {}
        }
        self.inner.call(call)
    }

    fn spawn(&self, program: &mut Command, plan: &ChildPlan) -> Answer<Pid> {
        self.inner.spawn(program, plan)
    }
}
