//! Every design that reviewers rejected is rejected by the lab, for the reason that they had; and the
//! implementation is accepted by the same searches.
//!
//! For each: what fails, in how many choices, which step of whom does the harm, to whom, and the rule
//! that would have prevented it. A design that is changed, or a search that finds something shorter,
//! changes a line here, and somebody has to read it.

use std::convert::Infallible;

use mortmain::sys::{Answer, ChildKernel, ChildPlan, KernelExt as _, PathBytes};
use mortmain_harness::ArenaAllocator;
use mortmain_harness::explore::{
    Bounds, Case, Cell, Counterexample, Cut, Failure, Held, Rejection, Row, Subject, Trace,
    Verdict, Witness, cases, compare, compare_in, exhaust,
};
use mortmain_harness::judge::{Judged, Property};
use mortmain_harness::simulated::subject::Manner;
use mortmain_harness::world::Moves;
use mortmain_subjects::{Design, Error, System};

#[global_allocator]
static ALLOCATOR: ArenaAllocator = ArenaAllocator;

const BOUNDS: Bounds = Bounds { states_max: 1_000_000 };

/// A witness in a line; it is also saved, read again and run on live processes.
#[track_caller]
fn line_of(cell: &Cell, witness: &Witness) -> String {
    let trace = Trace::of(witness.case, &witness.found).expect("live processes do the same");
    let read = Trace::parse(&trace.to_string()).expect("it was written just now");
    assert_eq!(read.to_string(), trace.to_string());
    read.replay(&mut |_, _, _| {}).expect("nothing has changed");

    let Failure::Violation(violation) = &witness.found.failure else { panic!("{witness:?}") };
    let (id, choices) = (cell.property.id(), witness.choices());
    let victims = violation.victims().join(", ");
    match violation.blamed() {
        Some((by, step)) => format!("{id} in {choices}: `{step}` of {by} harms {victims}"),
        None => format!("{id} in {choices}: left for ever: {victims}"),
    }
}

/// A property that is not broken was at stake, unless nothing here can judge it.
#[track_caller]
fn check_not_broken(cell: &Cell) {
    match &cell.held {
        Held::Holds => assert!(cell.judged > 100, "{cell:?}"),
        Held::NeverEvaluated(_) => {
            assert!(!Property::SEARCHED.contains(&cell.property), "{cell:?}");
        }
        Held::Fails(witness) => panic!("{}", witness.found),
        Held::NotDecided(_) | Held::Ended => panic!("{cell:?}"),
    }
}

#[track_caller]
fn check_rejected(name: &str, expected: &[&str]) {
    let subject = Subject::named(name).expect("the lab knows it");
    let row = compare(subject, &BOUNDS, &mut |_| true);
    let mut lines = Vec::new();
    let mut shown_by = Vec::new();
    for cell in &row.cells {
        match &cell.held {
            Held::Fails(witness) => {
                println!("{}", witness.found);
                let known = subject.rejection(cell.property.id());
                let rule = known.map_or("?", |known| known.rule);
                lines.push(format!("{}; lacks {rule}", line_of(cell, witness)));
                shown_by.push((cell.property, (witness.case.manner, witness.case.then)));
            }
            _ => check_not_broken(cell),
        }
    }
    assert_eq!(lines, expected);
    let known = subject.rejections().iter().map(|known| (known.property, known.shown_by));
    assert_eq!(shown_by, known.collect::<Vec<_>>());
}

#[test]
fn age_takes_the_directory_of_an_owner_that_is_idle() {
    check_rejected(
        "age",
        &["S1 in 13: `rmdir 3/p-568f26aaed74c935` of sweep 20 harms owner 10; lacks l5"],
    );
}

#[test]
fn an_owners_pid_says_nothing_of_its_commands() {
    check_rejected(
        "pid",
        &["S1 in 11: `rmdir 3/p-10-1010-568f26aaed74c935` of sweep 20 harms owner 101; lacks l3"],
    );
}

#[test]
fn an_inherited_lease_is_closed_by_careful_commands() {
    check_rejected(
        "inherited-lease",
        &["S1 in 18: `rmdir 3/p-10-1010-568f26aaed74c935` of sweep 20 harms command 101; lacks p2"],
    );
}

#[test]
fn a_marker_comes_too_late_for_the_command_and_for_the_directory() {
    check_rejected(
        "marker",
        &[
            "S1 in 21: `rmdir 3/p-568f26aaed74c935` of sweep 20 harms owner 101; lacks p1",
            "L1 in 3: left for ever: p-568f26aaed74c935; lacks c3",
        ],
    );
}

#[test]
fn a_lock_file_is_locked_by_the_sweep_first() {
    check_rejected(
        "lock-file",
        &[
            "S1 in 16: `lock 5` of owner 10 harms owner 10; lacks c1",
            "L1 in 20: left for ever: p-568f26aaed74c935, p-568f26aaed74c935/work; lacks c2",
        ],
    );
}

#[test]
fn a_second_look_hides_a_directory_when_the_sweep_is_killed() {
    check_rejected("second-look", &["S1 in 15: `SIGKILL` of sweep 20 harms command 101; lacks l4"]);
}

/// The implementation, against one manner of command.
#[track_caller]
fn check_accepted(manner: Manner) {
    let subject = Subject::MORTMAIN;
    let cases: Vec<Case> = cases(subject).filter(|case| case.manner == manner).collect();
    assert!(cases.len() > 1, "{manner:?}");
    let row = compare_in(subject, &cases, &BOUNDS, &mut |_| true);
    for cell in &row.cells {
        check_not_broken(cell);
    }
}

#[test]
fn mortmain_is_accepted_with_a_plain_command() {
    check_accepted(Manner::Plain);
}

#[test]
fn mortmain_is_accepted_with_a_command_that_closes_everything() {
    check_accepted(Manner::ClosesAll);
}

#[test]
fn mortmain_is_accepted_with_a_command_that_leaves_a_child() {
    check_accepted(Manner::LeavesChild);
}

#[test]
fn mortmain_is_accepted_with_a_command_that_leaves_a_daemon() {
    check_accepted(Manner::LeavesDaemon);
}

#[test]
fn mortmain_is_accepted_with_a_daemon_by_the_book() {
    check_accepted(Manner::Escapes);
}

/// Makes no directory, so that none is ever harmed or left; it says so, or panics.
struct Refuses<const PANICS: bool>;

impl<const PANICS: bool> Design for Refuses<PANICS> {
    type Dir<K: System> = Infallible;
    type Started = Infallible;

    fn create<K: System>(kernel: &K, root: &PathBytes) -> Result<Infallible, Error> {
        drop(kernel.open_root(root));
        assert!(!PANICS, "it is one that panics");
        Err(Error::Contended { path: root.clone(), attempts: 0 })
    }

    fn path<K: System>(dir: &Infallible) -> PathBytes {
        match *dir {}
    }

    fn spawn<K: System>(dir: &mut Infallible, _: &mut K::Program) -> Result<Infallible, Error> {
        match *dir {}
    }

    fn child<C: ChildKernel>(_: &C, _: &ChildPlan) -> Answer<()> {
        Ok(())
    }

    fn wait<K: System>(dir: &mut Infallible, _: &Infallible) -> Result<(), Error> {
        match *dir {}
    }

    fn end<K: System>(dir: &mut Infallible, _: &Infallible) -> Result<(), Error> {
        match *dir {}
    }

    fn close<K: System>(dir: Infallible) -> Result<(), Error> {
        match dir {}
    }

    fn sweep<K: System>(_: &K, _: &PathBytes) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn a_design_that_makes_nothing_is_not_accepted_for_that() {
    let subject = Subject::of::<Refuses<false>>("refuses", "makes nothing");
    let row = compare(subject, &BOUNDS, &mut |_| true);
    let cell = |property| row.cells.iter().find(|cell| cell.property == property);
    let in_use = cell(Property::S1).expect("each property has a cell");
    assert!(matches!(in_use.held, Held::NeverEvaluated(_)), "{in_use:?}");
    assert_eq!(cell(Property::L1).map(|cell| &cell.held), Some(&Held::Holds));
}

/// A panic ends every search, so nothing is known of what comes after it.
#[test]
fn a_property_whose_search_ended_with_another_finding_is_not_decided() {
    let subject = Subject::of::<Refuses<true>>("panics", "makes nothing");
    let row = compare(subject, &BOUNDS, &mut |_| true);
    let held = |property| row.cells.iter().find(|cell| cell.property == property).map(|c| &c.held);
    assert!(matches!(held(Property::L2), Some(Held::Fails(_))), "{row:?}");
    let cut = Held::NotDecided(Cut::Finding(Property::L2));
    assert_eq!(held(Property::S1), Some(&cut));
    assert_eq!(held(Property::L1), Some(&cut));
    // Three searches of a setup end with it, and it is one cause in that setup.
    let counts: Vec<u64> = row.causes.iter().map(|(_, group)| group.count).collect();
    assert_eq!(counts, [cases(subject).count() as u64]);
}

/// It leaks after three choices and harms after some more; whether it ends is asked for by itself.
#[test]
fn what_breaks_two_properties_is_searched_to_the_end_for_the_third() {
    let subject = Subject::named("marker").expect("the lab knows it");
    let case = subject.shown_by();
    let row = compare_in(subject, &[case], &BOUNDS, &mut |_| true);
    let alone = Case { judged: Judged::Only(Property::L2), ..case };
    let alone = exhaust(&alone.setup(), &BOUNDS);
    assert_eq!(alone.verdict, Verdict::Holds);
    let ends = row.cells.iter().find(|cell| cell.property == Property::L2).expect("it has a cell");
    assert_eq!(ends.held, Held::Holds);
    assert!(ends.judged >= alone.counts.transitions, "{ends:?}");
}

#[test]
fn a_comparison_that_is_cut_short_says_so() {
    let subject = Subject::named("pid").expect("the lab knows it");
    let bound = Bounds { states_max: 200 };
    let held = |row: Row| row.cells.into_iter().map(|cell| cell.held).collect::<Vec<_>>();
    let cut = held(compare(subject, &bound, &mut |_| true));
    let not_decided = cut.iter().filter(|held| **held == Held::NotDecided(Cut::States(200)));
    assert_eq!(not_decided.count(), 3, "{cut:?}");
    let ended = held(compare(subject, &BOUNDS, &mut |_| false));
    assert_eq!(ended.iter().filter(|held| **held == Held::Ended).count(), 3, "{ended:?}");
}

/// `second-look` is judged by its own promise. Judged like the others it fails earlier, at the rename.
#[test]
fn a_rename_that_is_taken_back_is_harm_to_everybody_else() {
    let subject = Subject::named("second-look").expect("the lab knows it");
    let strict = subject.judged_by(Moves::Harm);
    let strictly = found(strict.shown_by());
    let by_its_promise = found(subject.shown_by());
    let Failure::Violation(violation) = &strictly.failure else { panic!("{strictly}") };
    let (by, step) = violation.blamed().expect("a step is to blame");
    assert!(by.program == "sweep" && step.starts_with("rename "), "{strictly}");
    assert!(strictly.schedule.len() < by_its_promise.schedule.len());
}

#[track_caller]
fn found(case: Case) -> Counterexample {
    match exhaust(&case.setup(), &BOUNDS).verdict {
        Verdict::Found(found) => *found,
        other => panic!("{case:?}: {other:?}"),
    }
}

/// The shortest run that shows what a design is rejected for.
#[track_caller]
fn found_by(subject: Subject, known: &Rejection) -> Counterexample {
    let (manner, then) = known.shown_by;
    found(Case { manner, then, judged: Judged::Only(known.property), ..subject.shown_by() })
}

/// Whether the lines of an excerpt are lines of a text, in order. Where `…` stands some may be left out.
fn is_excerpt(excerpt: &[&str], text: &[String]) -> bool {
    let mut rest = text.iter();
    let mut may_skip = true;
    for line in excerpt {
        if line.trim() == "…" {
            may_skip = true;
            continue;
        }
        let found = match may_skip {
            true => rest.any(|other| other == line),
            false => rest.next().is_some_and(|other| other == line),
        };
        if !found {
            return false;
        }
        may_skip = false;
    }
    may_skip || rest.next().is_none()
}

#[test]
fn the_timelines_of_the_documentation_are_real() {
    let page = include_str!("../docs/subjects.md");
    for subject in Subject::ALL.into_iter().filter(|subject| !subject.rejections().is_empty()) {
        let title = format!("\n## {}\n", subject.name());
        let section = page.split(&title).nth(1).unwrap_or_else(|| panic!("no section{title}"));
        let section = section.split("\n## ").next().expect("a split has a first part");
        let blocks: Vec<&str> = section.split("```").skip(1).step_by(2).collect();
        assert_eq!(blocks.len(), subject.rejections().len(), "timelines of {}", subject.name());
        for (known, block) in subject.rejections().iter().zip(blocks) {
            let found = found_by(subject, known).to_string();
            let text: Vec<String> = found.lines().map(str::trim_end).map(str::to_owned).collect();
            let excerpt: Vec<&str> = block.lines().skip(1).collect();
            assert!(excerpt.len() > 5, "{}: {excerpt:?}", subject.name());
            assert!(is_excerpt(&excerpt, &text), "{}: {block}\nis not of\n{found}", subject.name());
            assert!(
                section.contains(&format!("(protocol.md#{})", anchor(known.rule))),
                "{}",
                known.rule
            );
        }
    }
}

/// Where a rule stands in the protocol.
fn anchor(rule: &str) -> &'static str {
    match rule.as_bytes()[0] {
        b'c' => "create-and-hold",
        b'p' => "spawn",
        b'l' => "look",
        b'r' => "remove",
        b'h' => "hostile-root",
        _ => "cost",
    }
}

#[test]
fn every_rule_that_a_design_lacks_is_one_of_the_protocol() {
    let protocol = include_str!("../docs/protocol.md");
    for subject in Subject::ALL {
        for known in subject.rejections() {
            assert!(protocol.contains(&format!("\n**{}** ", known.rule)), "{known:?}");
        }
    }
}
