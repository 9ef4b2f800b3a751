//! A kernel by which a sweep begins at the first claim of its listing.
//!
//! A sweep begins at a random one, and then the same position is another call each time. Over this
//! kernel it is the same one. Nothing else is changed: the call is made, counted and can fail.

use std::cell::Cell;
use std::rc::Rc;

use mortmain::sys::{Answer, Call, ChildPlan, Kernel, Pid, Reply};

/// Answers the first random number that is asked for, if it gets one, with 0. Clones share what was
/// asked: they are handles of one process.
#[derive(Clone, Debug)]
pub struct FromTheFirst<K> {
    kernel: K,
    asked: Rc<Cell<bool>>,
}

impl<K> FromTheFirst<K> {
    /// Puts it before a kernel, for one sweep.
    pub fn new(kernel: K) -> FromTheFirst<K> {
        FromTheFirst { kernel, asked: Rc::default() }
    }
}

impl<K: Kernel> Kernel for FromTheFirst<K> {
    type Program = K::Program;

    fn call(&self, call: Call) -> Answer<Reply> {
        let first = matches!(call, Call::Random) && !self.asked.replace(true);
        let answer = self.kernel.call(call);
        if first { answer.map(|_| Reply::Number(0)) } else { answer }
    }

    fn spawn(&self, program: &mut K::Program, plan: &ChildPlan) -> Answer<Pid> {
        self.kernel.spawn(program, plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mortmain::sys::{Host, KernelExt};

    #[test]
    fn the_first_random_number_is_0_and_the_others_are_the_kernels() {
        let kernel = FromTheFirst::new(Host);
        let numbers = [(); 3].map(|()| kernel.random().expect("there is no end of it"));
        assert_eq!(numbers[0], 0);
        assert_ne!(numbers[1], numbers[2]);
        assert_eq!(FromTheFirst::new(Host).random(), Ok(0));
    }
}
