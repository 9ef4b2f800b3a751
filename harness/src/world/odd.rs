//! What some processes are that most are not: short of descriptors, at work in a directory, without their
//! first thread, with a clock of their own, or with the number of somebody before them.
//!
//! Nobody gets so by a call of the seam. A program asks for its working directory, and the rest is done to
//! it by who starts it, or by itself in ways that the protocol does not see.

use mortmain::sys::{Answer, Call, Errno, PathBytes, Pid};

use super::World;
use super::ids::ProgramId;
use super::mounts::Place;

/// What a process may have open: more than anything here has.
const DESCRIPTORS_MAX: i32 = 1024;

/// Ticks of a second.
const TICKS: i64 = 100;

/// What is odd about a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct Odd {
    /// How many had its number before.
    pub(super) before: u32,
    /// Whether its first thread has ended, and another goes on.
    pub(super) headless: bool,
    /// The directory that it works in.
    pub(super) works_in: Option<Place>,
    /// The clock since the boot that it sees, if it is not everybody's.
    pub(super) clock: Option<Clock>,
    /// The lowest number of a descriptor that it does not get any more.
    refused: Option<i32>,
}

/// A time namespace.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Clock {
    pub(super) namespace: u32,
    ahead_ticks: i64,
}

impl Odd {
    /// What of it is left after an exec, by which all threads but one end.
    pub(super) fn after_exec(self) -> Odd {
        Odd { headless: false, ..self }
    }

    /// What it sees of a moment since the boot.
    pub(super) fn reads(self, ticks: u64) -> u64 {
        ticks.saturating_add_signed(self.clock.map_or(0, |clock| clock.ahead_ticks))
    }

    /// The lowest number that it does not get.
    pub(super) fn descriptors_end(self) -> i32 {
        self.refused.unwrap_or(DESCRIPTORS_MAX)
    }
}

impl World {
    /// Starts a process with a number that another one had which is gone.
    ///
    /// # Panics
    /// As [`World::start`].
    pub fn start_again(&mut self, pid: Pid, program: ProgramId) {
        self.start(pid, program);
        self.processes.update(pid, |process| process.odd.before += 1);
    }

    /// The first thread of a process ends, and another goes on.
    pub fn end_first_thread(&mut self, pid: Pid) {
        self.processes.update(pid, |process| process.odd.headless = true);
    }

    /// Gives a process a clock since the boot of its own, so many seconds ahead.
    pub fn set_clock(&mut self, pid: Pid, ahead: i64) {
        let clock = Clock { namespace: pid.0.cast_unsigned(), ahead_ticks: ahead * TICKS };
        self.processes.update(pid, |process| process.odd.clock = Some(clock));
    }

    /// Lets a process open so many descriptors more than it has open.
    pub fn limit_descriptors(&mut self, pid: Pid, more: u64) {
        let free = self.free_numbers(pid);
        // OK because there are fewer descriptors than pids.
        let refused = free.take(more as usize + 1).last();
        self.processes.update(pid, |process| process.odd.refused = refused);
    }

    /// A process goes to work in a directory.
    pub(super) fn work_in(&mut self, pid: Pid, path: &PathBytes) -> Answer<()> {
        let dir = self.open_path(path)?;
        self.processes.update(pid, |process| process.odd.works_in = Some(dir));
        Ok(())
    }

    /// Whether anybody works in a directory of which this is so.
    pub(super) fn anybody_works(&self, there: impl Fn(Place) -> bool) -> bool {
        self.processes.iter().any(|(_, process)| process.odd.works_in.is_some_and(&there))
    }

    /// Fails where a call needs a descriptor that its process does not get. Linux looks at that first.
    pub(super) fn lacks_descriptor(&self, pid: Pid, call: &Call) -> Answer<()> {
        let Some(end) = self.process(pid).odd.refused else { return Ok(()) };
        let free = self.free_numbers(pid).take_while(|number| *number < end);
        if free.count() < opens_at_once(call) { Err(Errno::EMFILE) } else { Ok(()) }
    }
}

/// How many descriptors a call needs at once on Linux, those that it closes again at its end among them:
/// `/proc` is read by opening what is in it, and so is what stands at a name looked at.
fn opens_at_once(call: &Call) -> usize {
    match call {
        Call::OpenRoot { .. }
        | Call::OpenDir { .. }
        | Call::OpenFile { .. }
        | Call::CreateFile { .. }
        | Call::StatAt { .. }
        | Call::Readlink { .. }
        | Call::Unseal { .. }
        | Call::Identity
        | Call::Process { .. }
        | Call::Pidfs { .. }
        | Call::Pids
        | Call::Wait { .. } => 1,
        // The process, what it has open or sees mounted, and a file of that.
        Call::Uses { .. } => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use mortmain::sys::{Handle, ProcessId, Reply, Sought, Use};
    use mortmain::{Prefix, Random};

    use super::*;
    use crate::world::hand::Thing;
    use crate::world::request::{Request, Response};
    use crate::world::{Effect, Rules};

    const PROGRAM: ProgramId = ProgramId { index: 0, name: "program" };
    const ONE: Pid = Pid(100);
    const OTHER: Pid = Pid(200);

    fn world() -> World {
        let mut world = World::new(Rules::default());
        world.start(ONE, PROGRAM);
        world.start(OTHER, PROGRAM);
        world
    }

    fn call(world: &mut World, pid: Pid, call: Call) -> Answer<Reply> {
        match world.exec(pid, &Request::Call(call)) {
            Effect::Answer(Response::Reply(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    fn open(world: &mut World) -> Answer<Reply> {
        call(world, ONE, Call::OpenRoot { path: World::root_path() })
    }

    fn identity(world: &mut World, pid: Pid) -> (ProcessId, u32) {
        match call(world, pid, Call::Identity) {
            Ok(Reply::Identity(identity)) => (identity.process, identity.home.time_ns),
            other => panic!("{other:?}"),
        }
    }

    fn start_of(world: &mut World, pid: Pid, to: Pid) -> u64 {
        match call(world, to, Call::Process { pid }) {
            Ok(Reply::Process(process)) => process.start_ticks,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nobody_opens_more_than_the_limit() {
        let mut world = world();
        assert!(open(&mut world).is_ok());
        world.limit_descriptors(ONE, 1);
        assert_eq!(open(&mut world), Ok(Reply::Handle(Handle(4))));
        assert_eq!(open(&mut world), Err(Errno::EMFILE));
        assert_eq!(call(&mut world, ONE, Call::DescriptorsMax), Ok(Reply::Number(5)));
        assert_eq!(call(&mut world, ONE, Call::Pids), Err(Errno::EMFILE), "it has to open /proc");
        assert!(call(&mut world, ONE, Call::Whoami).is_ok());
        assert!(call(&mut world, OTHER, Call::Pids).is_ok(), "the limit is another's");
        assert_eq!(call(&mut world, ONE, Call::Close { fd: Handle(3) }), Ok(Reply::Done));
        assert_eq!(open(&mut world), Ok(Reply::Handle(Handle(3))));
    }

    #[test]
    fn who_works_in_a_claim_is_seen_to_use_it() {
        let mut world = world();
        let random = Random::parse(b"aaaaaaaaaaa2").expect("it is one");
        let name = Prefix::new("p").expect("it is one").published(&random);
        let claim = World::root_path().join(name.bytes());
        world.put(&claim, Thing::Dir).expect("nothing is there");
        let uses = |world: &mut World| {
            let of = Sought::new(&[(&name, random)]).into();
            let uses = Call::Uses { pid: ONE, of, known: Vec::new() };
            match call(world, OTHER, uses) {
                Ok(Reply::Uses(uses)) => uses.found,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(uses(&mut world), []);
        let nowhere = Request::WorkIn { path: claim.join(b"nothing") };
        let refused = Effect::Answer(Response::Done(Err(Errno::ENOENT)));
        assert_eq!(world.exec(ONE, &nowhere), refused);
        assert_eq!(
            world.exec(ONE, &Request::WorkIn { path: claim }),
            Effect::Answer(Response::Done(Ok(())))
        );
        assert_eq!(uses(&mut world), [(0, Use::WorkingDirectory)]);
    }

    #[test]
    fn a_number_that_comes_again_is_another_process() {
        let mut world = world();
        let (before, _) = identity(&mut world, ONE);
        world.kill(ONE);
        world.start_again(ONE, PROGRAM);
        let (now, _) = identity(&mut world, ONE);
        assert_eq!(now.pid, before.pid);
        assert_ne!(now.start_ticks, before.start_ticks);
        assert_ne!(now.pidfs, before.pidfs);
        assert_eq!(call(&mut world, OTHER, Call::Pidfs { pid: ONE }), Ok(Reply::Number(now.pidfs)));
    }

    #[test]
    fn a_number_is_free_when_no_process_and_no_group_has_it() {
        let mut world = world();
        let fork = |world: &mut World, pid| match world.exec(pid, &Request::Fork) {
            Effect::Forked { child } => child,
            other => panic!("{other:?}"),
        };
        let child = fork(&mut world, ONE);
        let grandchild = fork(&mut world, child);
        assert_eq!(world.below(ONE), [child, grandchild]);
        assert_eq!(world.below(OTHER), []);
        world.kill(ONE);
        assert!(!world.is_free(ONE), "the child is in its group");
        assert_eq!(world.below(child), [grandchild]);
        world.kill(child);
        assert!(world.is_free(child) && !world.is_free(ONE), "the grandchild is");
        world.kill(grandchild);
        assert!(world.is_free(ONE));
    }

    #[test]
    fn after_a_restart_names_stay_and_the_boot_is_another() {
        let mut world = world();
        let boot = |world: &mut World| match call(world, ONE, Call::Identity) {
            Ok(Reply::Identity(identity)) => (identity.process, identity.home.boot),
            other => panic!("{other:?}"),
        };
        world.put(&World::root_path().join(b"p-aaaaaaaaaaa2"), Thing::Dir).expect("it is free");
        assert_eq!(open(&mut world), Ok(Reply::Handle(Handle(3))));
        assert_eq!(call(&mut world, ONE, Call::Lock { fd: Handle(3) }), Ok(Reply::Done));
        let (before, first) = boot(&mut world);
        world.reboot();
        assert_eq!(world.living().count(), 0);
        world.start(ONE, PROGRAM);
        let (after, second) = boot(&mut world);
        assert_eq!(after, before, "nothing but the boot tells them apart");
        assert_ne!(second, first);
        assert_eq!(world.tree().len(), 1);
        assert_eq!(open(&mut world), Ok(Reply::Handle(Handle(3))));
        let holder = Call::LockHolder { fd: Handle(3) };
        assert_eq!(call(&mut world, ONE, holder), Ok(Reply::Pids(Vec::new())));
    }

    #[test]
    fn who_has_lost_the_first_thread_looks_like_a_zombie_and_has_not_ended() {
        let mut world = world();
        world.end_first_thread(ONE);
        let Ok(Reply::Process(shown)) = call(&mut world, OTHER, Call::Process { pid: ONE }) else {
            panic!("it is there");
        };
        assert!(shown.zombie && !shown.ended(), "{shown:?}");
        assert!(world.lives(ONE));
    }

    #[test]
    fn a_clock_of_its_own_shifts_what_a_process_sees() {
        let mut world = world();
        let (before, everybodys) = identity(&mut world, ONE);
        world.set_clock(ONE, -1);
        let (now, own) = identity(&mut world, ONE);
        assert_eq!(now.start_ticks + 100, before.start_ticks);
        assert_eq!(now.pidfs, before.pidfs);
        assert_ne!(own, everybodys);
        assert_eq!(start_of(&mut world, ONE, ONE), now.start_ticks);
        assert_eq!(start_of(&mut world, ONE, OTHER), before.start_ticks);
    }
}
