//! An adversary at an exact moment: something happens to the system between two calls of a process.
//!
//! An [`Intercept`] shows each call to a closure, before it is made and after, in the process that
//! makes it. The closure can do what another process might just have done: rename a directory, take
//! a lock, plant a file. It can also answer in the kernel's place. So a race that needs luck between
//! two processes is met at will, and in one process.
//!
//! Invariant: calls that the adversary makes through the same kernel are not shown to it again.
//!
//! It deliberately does not record, fail or kill: that is what [`crate::faults`] does.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use mortmain::sys::{Answer, Call, ChildPlan, Handle, Kernel, Pid, Reply};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd};

pub use crate::faults::Moment;

/// What is shown each call. An answer of its own before a call is given in the kernel's place, which
/// is then not asked; after a call it replaces the kernel's.
pub type Adversary = dyn FnMut(&Call, Moment) -> Option<Answer<Reply>>;

/// A kernel whose calls an adversary sees. Clones share the adversary: they are handles of one
/// process.
pub struct Intercept<K> {
    kernel: K,
    adversary: Rc<RefCell<Adversary>>,
}

/// A copy of a descriptor of this process, of the same description: what a child has of it that was
/// forked at this moment and did not exec.
///
/// # Errors
///
/// When there is no such descriptor, or no room for the copy.
pub fn copy_of(fd: Handle) -> io::Result<OwnedFd> {
    let this = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    Ok(pidfd_getfd(this, fd.0, PidfdGetfdFlags::empty())?)
}

impl<K: Kernel> Intercept<K> {
    /// Puts an adversary before a kernel.
    pub fn new(kernel: K, adversary: Rc<RefCell<Adversary>>) -> Self {
        Self { kernel, adversary }
    }

    /// One that acts once: at the first call that `which` picks, before or after it.
    pub fn once(
        kernel: K,
        moment: Moment,
        mut which: impl FnMut(&Call) -> bool + 'static,
        act: impl FnOnce() + 'static,
    ) -> Self {
        let mut act = Some(act);
        let adversary = move |call: &Call, now: Moment| {
            if now == moment && act.is_some() && which(call) {
                // OK because it was there in the line above.
                act.take().expect("it has not acted yet")();
            }
            None
        };
        Self::new(kernel, Rc::new(RefCell::new(adversary)))
    }

    /// One that only counts: the calls that `which` picks, before they are made.
    pub fn counting(
        kernel: K,
        mut which: impl FnMut(&Call) -> bool + 'static,
    ) -> (Self, Rc<Cell<u32>>) {
        let counted = Rc::new(Cell::new(0));
        let count = Rc::clone(&counted);
        let adversary = move |call: &Call, now: Moment| {
            count.set(count.get() + u32::from(now == Moment::Before && which(call)));
            None
        };
        (Self::new(kernel, Rc::new(RefCell::new(adversary))), counted)
    }

    /// One that answers every call that `which` picks with an error number of its own.
    pub fn refusing(
        kernel: K,
        errno: mortmain::sys::Errno,
        mut which: impl FnMut(&Call) -> bool + 'static,
    ) -> Self {
        let adversary = move |call: &Call, now: Moment| {
            (now == Moment::Before && which(call)).then_some(Err(errno))
        };
        Self::new(kernel, Rc::new(RefCell::new(adversary)))
    }

    fn show(&self, call: &Call, moment: Moment) -> Option<Answer<Reply>> {
        // Borrowed already means that the adversary itself is calling.
        let mut adversary = self.adversary.try_borrow_mut().ok()?;
        adversary(call, moment)
    }
}

impl<K: Clone> Clone for Intercept<K> {
    fn clone(&self) -> Self {
        Self { kernel: self.kernel.clone(), adversary: Rc::clone(&self.adversary) }
    }
}

impl<K: fmt::Debug> fmt::Debug for Intercept<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intercept").field("kernel", &self.kernel).finish_non_exhaustive()
    }
}

impl<K: Kernel> Kernel for Intercept<K> {
    type Program = K::Program;

    fn call(&self, call: Call) -> Answer<Reply> {
        if let Some(answer) = self.show(&call, Moment::Before) {
            return answer;
        }
        let answer = self.kernel.call(call.clone());
        self.show(&call, Moment::After).unwrap_or(answer)
    }

    fn spawn(&self, program: &mut K::Program, plan: &ChildPlan) -> Answer<Pid> {
        self.kernel.spawn(program, plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mortmain::sys::{Errno, Host, KernelExt};

    fn is_random(call: &Call) -> bool {
        matches!(call, Call::Random)
    }

    #[test]
    fn an_adversary_acts_once_at_its_moment_and_its_own_calls_are_not_shown() {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let (inner, noted) = (Rc::new(RefCell::new(None::<Intercept<Host>>)), Rc::clone(&seen));
        let own = Rc::clone(&inner);
        let adversary = move |call: &Call, moment: Moment| {
            noted.borrow_mut().push((call.word(), moment));
            if let Some(kernel) = &*own.borrow() {
                kernel.random().expect("it is not refused");
            }
            None
        };
        let kernel = Intercept::new(Host, Rc::new(RefCell::new(adversary)));
        *inner.borrow_mut() = Some(kernel.clone());
        kernel.whoami().expect("/proc is there");
        let expected = [("whoami", Moment::Before), ("whoami", Moment::After)];
        assert_eq!(*seen.borrow(), expected);
        // The two hold each other.
        *inner.borrow_mut() = None;
    }

    #[test]
    fn what_is_refused_is_not_asked_of_the_kernel() {
        let kernel = Intercept::refusing(Host, Errno::ENOLCK, is_random);
        assert_eq!(kernel.random(), Err(Errno::ENOLCK));
        assert!(kernel.whoami().is_ok());
    }

    #[test]
    fn an_act_happens_at_the_first_call_that_is_picked_and_never_again() {
        let count = Rc::new(RefCell::new(0));
        let counted = Rc::clone(&count);
        let act = move || *counted.borrow_mut() += 1;
        let kernel = Intercept::once(Host, Moment::After, is_random, act);
        kernel.whoami().expect("/proc is there");
        assert_eq!(*count.borrow(), 0);
        for _ in 0..2 {
            kernel.random().expect("there is no end of it");
            assert_eq!(*count.borrow(), 1);
        }
    }
}
