//! A fault at every step of drawn schedules: kills, errors that come once, and errors that stay.

use std::convert::Infallible;

use mortmain::sys::{Answer, ChildKernel, ChildPlan, Errno, Fd, KernelExt as _, Name, PathBytes};
use mortmain_harness::ArenaAllocator;
use mortmain_harness::explore::{
    Bounds, Case, Choice, Struck, Subject, Trace, Turn, Verdict, exhaust, explain, replay, series,
    series_case, series_causes, shrink,
};
use mortmain_harness::judge::{Judged, Property};
use mortmain_subjects::{Design, Error, System};

#[global_allocator]
static ALLOCATOR: ArenaAllocator = ArenaAllocator;

#[test]
fn no_fault_at_any_step_harms_or_leaks() {
    let (struck, counts) = series(Case::GATE, 7, 12, &mut |_| true);
    println!("{counts}");
    assert_eq!(struck, Struck::Nothing);
    assert_eq!(counts.bases, 12);
    assert!(counts.positions > 300 && counts.kills == counts.positions, "{counts}");
    assert!(counts.once > counts.positions && counts.for_ever > counts.positions, "{counts}");
    assert!(counts.in_use * 2 > counts.cases(), "S1 was seldom at stake: {counts}");
    for call in ["owner: mkdir", "owner: lock", "owner: symlink", "owner: rename", "sweep: lock"] {
        assert!(counts.failed.contains(call), "{call} never failed: {:?}", counts.failed);
    }
    assert_eq!(series(Case::GATE, 7, 12, &mut |_| true), (Struck::Nothing, counts));
}

#[test]
fn a_series_finds_what_is_wrong_with_a_marker_and_saves_it() {
    let case = Subject::named("marker").expect("the lab knows it").shown_by();
    let (Struck::Found(found), _) = series(case, 7, 12, &mut |_| true) else {
        panic!("it finds nothing");
    };
    let trace = Trace::of(series_case(case), &found).expect("live processes do the same again");
    let read = Trace::parse(&trace.to_string()).expect("it was written just now");
    read.replay(&mut |_, _, _| {}).expect("nothing has changed");
}

/// What a series finds when it goes on: how often there was which cause.
#[track_caller]
fn check_causes(case: Case, expected: &[&str]) {
    let (causes, whole, counts) = series_causes(case, 7, 12, &mut |_| true);
    assert!(whole && counts.bases == 12, "{counts}");
    let lines: Vec<String> = causes
        .iter()
        .map(|(cause, group)| {
            format!("{} of {cause}, in {}", group.count, group.shortest.schedule.len())
        })
        .collect();
    assert_eq!(lines, expected);
    for (cause, group) in causes.iter() {
        let again = replay(&group.case.setup(), &group.shortest.schedule).expect("it fits");
        assert_eq!(again.failure.as_ref().map(|failure| failure.property()), Some(cause.property));
    }
}

#[test]
fn findings_are_counted_by_their_cause() {
    let of = |name| Subject::named(name).expect("the lab knows it").shown_by();
    let marker = "614 of L1, the end after `mkdir` of the owner, lacks c3, in 3";
    check_causes(of("marker"), &[marker]);
    check_causes(of("pid"), &["1 of S1, `rmdir` of the sweep, lacks l3, in 12"]);
    check_causes(Case::SMALL, &[]);
}

#[test]
fn a_series_of_causes_that_is_ended_says_so() {
    let case = Subject::named("marker").expect("the lab knows it").shown_by();
    let mut findings = 0;
    let (causes, whole, _) = series_causes(case, 7, 12, &mut |counts| {
        findings += u32::from(counts.positions > 0);
        findings < 3
    });
    let counted: u64 = causes.iter().map(|(_, group)| group.count).sum();
    assert_eq!((whole, counted), (false, 3));
}

#[test]
fn a_series_that_is_ended_says_so() {
    let (struck, counts) = series(Case::SMALL, 7, 12, &mut |counts| counts.bases < 2);
    assert_eq!((struck, counts.bases), (Struck::Ended, 2));
}

/// Makes its directory again and again until it is there.
struct Stubborn;

impl Design for Stubborn {
    type Dir<K: System> = Fd<K>;
    type Started = Infallible;

    fn create<K: System>(kernel: &K, root: &PathBytes) -> Result<Fd<K>, Error> {
        let failed = |errno| Error::System { operation: "open", path: root.clone(), errno };
        let fd = kernel.open_root(root).map_err(failed)?;
        loop {
            match fd.mkdir(&Name::fixed("d")) {
                Ok(()) | Err(Errno::EEXIST) => return Ok(fd),
                Err(_) => {}
            }
        }
    }

    fn path<K: System>(_: &Fd<K>) -> PathBytes {
        PathBytes::from(&b"/r/d"[..])
    }

    fn spawn<K: System>(_: &mut Fd<K>, _: &mut K::Program) -> Result<Infallible, Error> {
        let path = PathBytes::default();
        Err(Error::System { operation: "start a command in", path, errno: Errno::ENOSYS })
    }

    fn child<C: ChildKernel>(_: &C, _: &ChildPlan) -> Answer<()> {
        Ok(())
    }

    fn wait<K: System>(_: &mut Fd<K>, started: &Infallible) -> Result<(), Error> {
        match *started {}
    }

    fn end<K: System>(_: &mut Fd<K>, started: &Infallible) -> Result<(), Error> {
        match *started {}
    }

    fn close<K: System>(_: Fd<K>) -> Result<(), Error> {
        Ok(())
    }

    fn sweep<K: System>(_: &K, _: &PathBytes) -> Result<(), Error> {
        Ok(())
    }
}

/// Its sweeps remove nothing, so what its owner made is left, whether or not anything strikes.
#[test]
fn what_goes_wrong_before_anything_strikes_is_found() {
    let subject = Subject::of::<Stubborn>("stubborn", "tries again until it works");
    let case = Case { subject, kills: 0, ..Case::SMALL };
    let (Struck::Found(found), _) = series(case, 7, 12, &mut |_| true) else {
        panic!("it finds nothing");
    };
    assert!(found.failure.to_string().starts_with("L1: "), "{found}");
    let undisturbed = |choice: &Choice| matches!(choice, Choice::Step(_) | Choice::Recover);
    assert!(found.schedule.iter().all(undisturbed), "{found}");
    // Nothing that comes otherwise would make it hold.
    let explanation = explain(&series_case(case), &found);
    assert_eq!(explanation.turn, Some(Turn::Nothing), "{explanation}");
    let last = "no two steps in another order, and no fault less, would make it hold";
    assert_eq!(explanation.to_string(), format!("sweep 30 left d when everybody was dead\n{last}"));
}

/// One failing call is too few to show it, at whatever moment.
#[test]
fn whoever_tries_again_for_ever_is_found_by_an_error_that_stays() {
    let subject = Subject::of::<Stubborn>("stubborn", "tries again until it works");
    let only = Judged::Only(Property::L2);
    let case = Case { subject, judged: only, failures: 1, ..Case::SMALL };
    let once = exhaust(&case.setup(), &Bounds { states_max: 100_000 });
    assert_eq!(once.verdict, Verdict::Holds);

    let case = Case { failures: 0, ..case };
    let (Struck::Found(found), counts) = series(case, 7, 12, &mut |_| true) else {
        panic!("it finds nothing");
    };
    assert!(counts.for_ever > 0, "{counts}");
    let said = found.failure.to_string();
    assert_eq!(said, "L2: owner 10 has made more than 2000 calls and goes on");
    let fails = |choice: &&Choice| matches!(choice, Choice::Fail { .. });
    assert!(found.schedule.iter().filter(fails).count() > 1_000, "{said}");
    // Each of them is needed; nobody waits until each was left out.
    let shrunk = shrink(&series_case(case).setup(), &found);
    assert!(!shrunk.done && shrunk.executions < 200, "{}", shrunk.executions);
    assert!(shrunk.found.schedule.iter().filter(fails).count() > 1_000, "{said}");
    let replayed = replay(&series_case(case).setup(), &found.schedule).expect("the schedule fits");
    assert_eq!(replayed.failure.as_ref(), Some(&found.failure));
}
