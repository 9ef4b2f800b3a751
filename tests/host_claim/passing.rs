//! What is in the way of a close for a moment only: another thread's child has copies of every lock and
//! descriptor between its fork and its exec.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mortmain::protocol::{Claim, CloseError};
use mortmain::sys::{Answer, Call, Errno, Host, HostProgram, Reply, Use, Uses, Wait};
use mortmain::{Closed, ErrorKind};
use mortmain_harness::ground::{Ground, names_in};
use mortmain_harness::intercept::{Intercept, Moment};

use crate::support::{ground, in_cell};

/// So often a close asks again.
const ROUNDS: u32 = 3;

/// Something that is in the way until there were so many pauses.
struct InTheWay {
    kernel: Intercept<Host>,
    begins: Rc<Cell<bool>>,
    pauses: Rc<Cell<u32>>,
}

fn in_the_way(until: u32, what: impl Fn(&Call) -> Option<Answer<Reply>> + 'static) -> InTheWay {
    let (begins, pauses) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
    let (begun, counted) = (Rc::clone(&begins), Rc::clone(&pauses));
    let adversary = move |call: &Call, moment: Moment| match (call, moment) {
        (Call::Pause { .. }, Moment::Before) => {
            counted.set(counted.get() + 1);
            None
        }
        (call, Moment::Before) if begun.get() && counted.get() < until => what(call),
        _ => None,
    };
    let kernel = Intercept::new(Host, Rc::new(RefCell::new(adversary)));
    InTheWay { kernel, begins, pauses }
}

/// Somebody has every lock.
fn locked(call: &Call) -> Option<Answer<Reply>> {
    matches!(call, Call::Lock { .. }).then_some(Err(Errno::EAGAIN))
}

/// Everybody uses the claim.
fn used(how: Use) -> impl Fn(&Call) -> Option<Answer<Reply>> {
    let own = rustix::process::geteuid().as_raw();
    move |call| {
        let found = vec![(0, how)];
        let uses = Uses { found, program: b"tool".into(), uids: vec![own; 4], ..Uses::default() };
        matches!(call, Call::Uses { .. }).then(|| Ok(Reply::Uses(Box::new(uses))))
    }
}

impl InTheWay {
    /// A claim with a command that has ended. It is in the way from then on, so that the command
    /// keeps its entry if it is a lock.
    fn claim(&self, ground: &Ground, reaped: bool) -> Claim<Intercept<Host>> {
        let mut claim = ground.over(&self.kernel).create().unwrap();
        let started = claim.spawn(&mut HostProgram::new("true")).unwrap();
        self.begins.set(true);
        if reaped {
            claim.wait(&started, Wait::Forever).unwrap().expect("it has ended");
        }
        claim
    }
}

#[track_caller]
fn check(closed: Result<Closed, CloseError<Intercept<Host>>>, passes: bool) {
    let kind = |refused: CloseError<Intercept<Host>>| refused.error.kind();
    let expected = if passes { Ok(Closed::Removed) } else { Err(ErrorKind::InUse) };
    assert_eq!(closed.map_err(kind), expected);
}

#[test]
fn a_lock_of_who_has_ended_is_asked_for_a_few_times() {
    in_cell(|| {
        for until in 1..=ROUNDS + 1 {
            let (ground, held) = (ground(), in_the_way(until, locked));
            let claim = held.claim(&ground, true);
            check(claim.close(), until <= ROUNDS);
            assert_eq!(held.pauses.get(), until.min(ROUNDS));
        }
    });
}

#[test]
fn a_use_that_may_pass_is_looked_for_a_few_times() {
    in_cell(|| {
        for until in 1..=ROUNDS + 1 {
            let (ground, used) = (ground(), in_the_way(until, used(Use::Descriptor)));
            let claim = used.claim(&ground, true);
            check(claim.close(), until <= ROUNDS);
            assert_eq!(used.pauses.get(), until.min(ROUNDS));
        }
    });
}

#[test]
fn nobody_waits_for_what_does_not_pass_by_itself() {
    in_cell(|| {
        let ground = ground();
        // Who was not reaped may run; who was started under the claim does not lose its cookie.
        let (held, carried) = (in_the_way(1, locked), in_the_way(1, used(Use::Cookie)));
        for (stays, reaped) in [(held, false), (carried, true)] {
            check(stays.claim(&ground, reaped).close(), false);
            assert_eq!(stays.pauses.get(), 0);
        }
    });
}

#[test]
fn what_is_released_is_not_waited_for() {
    in_cell(|| {
        let ground = ground();
        let (held, used) = (in_the_way(1, locked), in_the_way(1, used(Use::Descriptor)));
        for passing in [held, used] {
            let path = passing.claim(&ground, true).path();
            assert_eq!(passing.pauses.get(), 0);
            assert!(names_in(path.to_string().as_ref()).contains(&"released".into()));
        }
    });
}
