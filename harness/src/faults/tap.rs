//! A kernel that lets a hook see every call.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use mortmain::sys::{Answer, Call, ChildPlan, Kernel, Pid, Reply};

/// What a process asks of its kernel.
#[derive(Clone, Copy, Debug)]
pub enum Step<'c> {
    /// A call of the seam.
    Call(&'c Call),
    /// A spawn.
    Spawn,
}

impl Step<'_> {
    /// The kind of call in a word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Step::Call(call) => call.word(),
            Step::Spawn => "spawn",
        }
    }
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Call(call) => call.fmt(f),
            Step::Spawn => f.write_str("spawn"),
        }
    }
}

/// Something that sees every call of a process.
pub trait Hook {
    /// Before a call; an answer here is given in the kernel's place, which is then not asked. A
    /// spawn can only be refused.
    fn before(&mut self, step: Step<'_>) -> Option<Answer<Reply>> {
        let _ = step;
        None
    }

    /// After a call that the kernel was asked; the answer here is the one that the process gets.
    fn after(&mut self, step: Step<'_>, answer: Answer<Reply>) -> Answer<Reply> {
        let _ = step;
        answer
    }
}

/// A kernel behind a hook. Clones share the hook: they are handles of one process.
#[derive(Debug)]
pub struct Tapped<K, H> {
    kernel: K,
    hook: Rc<RefCell<H>>,
}

impl<K: Kernel, H: Hook> Tapped<K, H> {
    /// Puts a hook before a kernel.
    pub fn new(kernel: K, hook: H) -> Tapped<K, H> {
        Tapped { kernel, hook: Rc::new(RefCell::new(hook)) }
    }

    /// Looks at the hook, or changes it, between two calls.
    pub fn with_hook<T>(&self, look: impl FnOnce(&mut H) -> T) -> T {
        look(&mut self.hook.borrow_mut())
    }
}

impl<K: Clone, H> Clone for Tapped<K, H> {
    fn clone(&self) -> Self {
        Tapped { kernel: self.kernel.clone(), hook: Rc::clone(&self.hook) }
    }
}

impl<K: Kernel, H: Hook> Kernel for Tapped<K, H> {
    type Program = K::Program;

    fn call(&self, call: Call) -> Answer<Reply> {
        let before = self.hook.borrow_mut().before(Step::Call(&call));
        if let Some(answer) = before {
            return answer;
        }
        let answer = self.kernel.call(call.clone());
        self.hook.borrow_mut().after(Step::Call(&call), answer)
    }

    fn spawn(&self, program: &mut K::Program, plan: &ChildPlan) -> Answer<Pid> {
        let before = self.hook.borrow_mut().before(Step::Spawn);
        if let Some(Err(errno)) = before {
            return Err(errno);
        }
        let spawned = self.kernel.spawn(program, plan);
        // A hook sees whether it went well; the pid is not its to choose.
        let seen = spawned.map(|_| Reply::Done);
        self.hook.borrow_mut().after(Step::Spawn, seen).and(spawned)
    }
}
