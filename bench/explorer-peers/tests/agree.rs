//! All explorers come to the same ends of the same work.

use mortmain_explorer_peers::{Work, ours, peers};
use mortmain_harness::ArenaAllocator;
use mortmain_harness::explore::{Bounds, Verdict, exhaust};

#[global_allocator]
static ALLOCATOR: ArenaAllocator = ArenaAllocator;

#[test]
fn all_orders_of_the_small_work_lead_to_the_same_end() {
    let orders = ours::orders(&Work::SMALL);
    for peer in [peers::shuttle_all(&Work::SMALL, None), peers::loom_all(&Work::SMALL, None)] {
        assert_eq!((&peer.ends, peer.bad), (&orders.ends, 0));
        // Those who remember no state run every order, and some more for the ends of threads.
        assert!(u128::from(peer.executions) >= orders.count, "{}: {peer:?}", orders.count);
    }
}

#[test]
fn a_bound_on_runs_is_kept() {
    assert_eq!(peers::shuttle_all(&Work::REAL, Some(30)).executions, 30);
    assert_eq!(peers::loom_all(&Work::REAL, Some(30)).executions, 30);
}

#[test]
fn a_race_is_seen_by_ours_and_by_shuttle() {
    let orders = ours::orders(&Work::RACY);
    let verdict = exhaust(&Work::RACY.setup(0), &Bounds { states_max: 100_000 }).verdict;
    assert!(matches!(verdict, Verdict::Found(_)), "{verdict:?}");
    let drawn = peers::shuttle_drawn(&Work::RACY, false, 1, 4_000);
    assert_eq!(drawn.ends, orders.ends);
    assert!(orders.ends.len() > 1 && drawn.bad > 0, "{drawn:?}");
}

#[test]
fn drawn_runs_of_the_implementation_end_as_ours_do() {
    let orders = ours::orders(&Work::REAL);
    let shuttle = peers::shuttle_drawn(&Work::REAL, false, 1, 300);
    assert!(shuttle.ends.len() > 1 && shuttle.ends.is_subset(&orders.ends), "{shuttle:?}");
    assert_eq!((shuttle.executions, shuttle.bad), (300, 0));
    let killed = peers::shuttle_drawn(&Work::REAL, true, 1, 300);
    assert_eq!((killed.executions, killed.bad), (300, 0));
    assert!(killed.calls < shuttle.calls, "nobody was killed: {killed:?}");
    assert!(!killed.ends.is_subset(&orders.ends), "{killed:?}");
}
