//! Somebody else changes what names stand for, at any moment, while owners make their claims and sweeps
//! remove them: whatever he puts in the way, nothing in use is harmed (S1), nothing outside is touched (S2),
//! what he had no hand in is removed (L1), and nobody waits at what he has put there (L2).
//!
//! The implementation holds. A design that opens what stands at a name as it comes does not, nor does the
//! implementation with a rule of the hostile root switched off.

use mortmain::sys::{
    Answer, ChildKernel, ChildPlan, Errno, Fd, KernelExt as _, Kind, Name, PathBytes, Pid,
};
use mortmain_harness::ArenaAllocator;
use mortmain_harness::explore::{
    Bounds, Case, Choice, Counterexample, Exploration, Struck, Subject, Trace, Verdict, Without,
    exhaust, explain, series,
};
use mortmain_harness::judge::{Judged, Property};
use mortmain_harness::simulated::subject::{Manner, Then};
use mortmain_harness::world::Reaping;
use mortmain_subjects::{Design, Error, OwnerPid, System, SystemExt as _};

#[global_allocator]
static ALLOCATOR: ArenaAllocator = ArenaAllocator;

const BOUNDS: Bounds = Bounds { states_max: 4_000_000 };

/// One trick, one sweep, one kill.
const TRICKED: Case = Case { tricks: 1, ..Case::SMALL };

#[track_caller]
fn check_holds(case: Case) -> Exploration {
    let exploration = exhaust(&case.setup(), &BOUNDS);
    match &exploration.verdict {
        Verdict::Holds => println!("{case:?}\n    {}", exploration.counts),
        Verdict::Found(found) => panic!("{case:?}\n{found}"),
        other => panic!("{case:?}: {other:?}"),
    }
    exploration
}

#[test]
fn one_trick_beside_a_plain_command_holds() {
    let counts = check_holds(TRICKED).counts;
    let without = check_holds(Case::SMALL).counts;
    assert!(counts.states > 10 * without.states, "{counts}");
    check_holds(Case { reaping: Reaping::Never, kills: 0, ..TRICKED });
}

#[test]
fn one_trick_beside_an_owner_that_ends_without_a_word_holds() {
    check_holds(Case { then: Then::Exit, ..TRICKED });
}

/// By itself: with a sweep beside it there are more states than room.
#[test]
fn one_trick_beside_an_owner_that_closes_holds() {
    check_holds(Case { then: Then::Close, sweeps: 0, ..TRICKED });
}

#[test]
fn one_trick_beside_a_command_that_closes_everything_holds() {
    check_holds(Case { manner: Manner::ClosesAll, ..TRICKED });
}

/// Every trick at every step of drawn schedules, which have one already.
#[test]
fn every_trick_at_every_step_of_drawn_schedules_holds() {
    let (struck, counts) = series(TRICKED, 1, 8, &mut |_| true);
    assert_eq!(struck, Struck::Nothing);
    assert!(counts.tricks > 150, "{counts}");
}

/// What a case ends with, saved and replayed on live processes.
#[track_caller]
fn check_finds(case: Case, says: &str) -> Counterexample {
    let exploration = exhaust(&case.setup(), &BOUNDS);
    let Verdict::Found(found) = exploration.verdict else {
        panic!("{case:?}: {:?}, {}", exploration.verdict, exploration.counts);
    };
    println!("{case:?}\n{found}\n{}", explain(&case, &found));
    assert_eq!(found.failure.to_string(), says, "{found}");
    let trace = Trace::of(case, &found).expect("live processes do the same");
    trace.replay(&mut |_, _, _| {}).expect("nothing has changed");
    *found
}

/// Its choices but for plain steps.
fn in_words(found: &Counterexample) -> Vec<String> {
    let others = found.schedule.iter().filter(|choice| !matches!(choice, Choice::Step(_)));
    others.map(ToString::to_string).collect()
}

/// What belongs to a process that has ended is removed, as [`OwnerPid`] has it, by a removal that opens
/// what it finds without any care.
struct OpensAsItComes;

impl Design for OpensAsItComes {
    type Dir<K: System> = <OwnerPid as Design>::Dir<K>;
    type Started = <OwnerPid as Design>::Started;

    fn create<K: System>(kernel: &K, root: &PathBytes) -> Result<Self::Dir<K>, Error> {
        OwnerPid::create(kernel, root)
    }

    fn path<K: System>(dir: &Self::Dir<K>) -> PathBytes {
        OwnerPid::path(dir)
    }

    fn spawn<K: System>(
        dir: &mut Self::Dir<K>,
        program: &mut K::Program,
    ) -> Result<Self::Started, Error> {
        OwnerPid::spawn(dir, program)
    }

    fn child<C: ChildKernel>(child: &C, plan: &ChildPlan) -> Answer<()> {
        OwnerPid::child(child, plan)
    }

    fn wait<K: System>(dir: &mut Self::Dir<K>, started: &Self::Started) -> Result<(), Error> {
        OwnerPid::wait(dir, started)
    }

    fn end<K: System>(dir: &mut Self::Dir<K>, started: &Self::Started) -> Result<(), Error> {
        OwnerPid::end(dir, started)
    }

    fn close<K: System>(dir: Self::Dir<K>) -> Result<(), Error> {
        OwnerPid::close(dir)
    }

    fn sweep<K: System>(kernel: &K, root: &PathBytes) -> Result<(), Error> {
        let Ok(root) = kernel.open_root(root) else { return Ok(()) };
        for (name, _) in names_in(&root).unwrap_or_default() {
            if owner_of(&name).is_some_and(|pid| kernel.process_exists(pid) == Err(Errno::ESRCH)) {
                // What is left is for the next sweep.
                let _ = remove(&root, &name);
            }
        }
        Ok(())
    }
}

/// The owner that a name says: `p-<pid>-…`.
fn owner_of(name: &Name) -> Option<Pid> {
    let text = std::str::from_utf8(name.bytes()).ok()?;
    Some(Pid(text.split('-').nth(1)?.parse().ok()?))
}

fn names_in<K: System>(dir: &Fd<K>) -> Answer<Vec<(Name, Kind)>> {
    let entries = dir.read_dir(true)?;
    Ok(entries.into_iter().map(|entry| (entry.name, entry.kind)).collect())
}

fn remove<K: System>(parent: &Fd<K>, name: &Name) -> Answer<()> {
    let dir = parent.kernel().open_plain(parent, name)?;
    for (name, kind) in names_in(&dir)? {
        match kind {
            Kind::Dir => remove(&dir, &name)?,
            _ => dir.unlink(&name)?,
        }
    }
    parent.rmdir(name)
}

const PLANTED: Subject =
    Subject::of::<OpensAsItComes>("opens-as-it-comes", "a removal without any care");

fn planted(property: Property) -> Case {
    Case { subject: PLANTED, judged: Judged::Only(property), waits: 0, ..TRICKED }
}

#[test]
fn a_removal_that_opens_as_it_comes_empties_what_a_link_leads_to() {
    let found = check_finds(
        planted(Property::S2),
        "S2: after `unlink 4/kept` of sweep 30, /precious/kept is not as it was",
    );
    // Where its owner is about to make the directory.
    assert_eq!(in_words(&found), ["trick 10 link", "recover"]);
}

#[test]
fn a_removal_that_opens_as_it_comes_waits_at_a_fifo() {
    let found = check_finds(
        planted(Property::L2),
        "L2: sweep 30 waits in `open-plain 3/p-10-1010-568f26aaed74c935`, and nobody is left who \
         could end that",
    );
    assert_eq!(in_words(&found), ["trick 10 fifo", "recover"]);
}

#[test]
fn the_same_removal_holds_without_an_adversary() {
    check_holds(Case { tricks: 0, ..planted(Property::S2) });
    check_holds(Case { tricks: 0, ..planted(Property::L2) });
}

#[test]
fn without_h1_a_sweep_waits_at_a_fifo_and_empties_what_a_link_leads_to() {
    let case = Without::H1.shown_by();
    let waits = "L2: sweep 30 waits in `open-plain 3/.p-3jrdr6ortbt5.new`, and nobody is left who could \
                 end that";
    assert_eq!(in_words(&check_finds(case, waits)), ["trick 10 fifo", "recover"]);
    let case = Case { judged: Judged::Only(Property::S2), ..case };
    let changed = "S2: after `unlink 5/kept` of sweep 20, /precious/kept is not as it was";
    // Between the listing and the opening: the owner has to be dead, and the sweep far.
    assert_eq!(in_words(&check_finds(case, changed)), ["kill 10", "trick 20 link"]);
}

#[test]
fn without_h2_a_sweep_empties_what_is_mounted_in_the_claim() {
    let changed = "S2: after `unlink 5/kept` of sweep 30, /precious/kept is not as it was";
    let found = check_finds(Without::H2.shown_by(), changed);
    assert_eq!(in_words(&found), ["trick 10 mount", "recover"]);
}

#[test]
fn without_h3_a_sweep_empties_what_a_link_in_the_claim_leads_to() {
    let changed = "S2: after `unlink 5/kept` of sweep 30, /precious/kept is not as it was";
    let found = check_finds(Without::H3.shown_by(), changed);
    assert_eq!(in_words(&found), ["trick 10 link", "recover"]);
}
