//! What is shown and said of runs that end badly: pictures, explanations, and short runs made of long
//! ones.

use std::fs;
use std::path::Path;

use mortmain_harness::ArenaAllocator;
use mortmain_harness::diagram::Diagram;
use mortmain_harness::explore::{
    Bounds, Case, Choice, Counterexample, Failure, Sampled, Sampling, Shrunk, Strategy, Subject,
    Trace, Verdict, Without, exhaust, explain, sample, shrink,
};
use mortmain_harness::judge::Judged;

#[global_allocator]
static ALLOCATOR: ArenaAllocator = ArenaAllocator;

/// The saved runs, by the names of their files.
fn saved() -> Vec<(String, Trace)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("the saved runs can be listed") {
        let path = entry.expect("the saved runs can be listed").path();
        let text = fs::read_to_string(&path).expect("a saved run can be read");
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        found.push((name, Trace::parse(&text).expect("a saved run can be read")));
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

/// A saved run as a picture, and how many events it blames.
fn drawn(trace: &Trace) -> (String, usize) {
    let replayed = trace.replay(&mut |_, _, _| {}).expect("nothing has changed");
    let Some(Failure::Violation(violation)) = &replayed.failure else { panic!("{replayed:?}") };
    let caption = [trace.says.clone()];
    let diagram = Diagram {
        timeline: &replayed.timeline,
        violation: Some(violation),
        title: &trace.found,
        caption: &caption,
        swap: Some([0, 1]),
    };
    (diagram.to_string(), usize::from(violation.blamed().is_some()))
}

/// Whether markup closes what it opens, quotes its attributes, and escapes its text.
fn check_markup(name: &str, text: &str) {
    let mut open = Vec::new();
    for part in text.split('<').skip(1) {
        let (tag, content) = part.split_once('>').unwrap_or_else(|| panic!("{name}: <{part}"));
        let word = tag.split([' ', '/']).find(|word| !word.is_empty()).expect("a tag has a name");
        match (tag.starts_with('/'), tag.ends_with('/')) {
            (true, _) => assert_eq!(open.pop(), Some(word), "{name}: <{tag}>"),
            (false, true) => {}
            (false, false) => open.push(word),
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{name}: <{tag}>");
        let entities = ["amp;", "lt;", "gt;", "quot;"];
        for after in content.split('&').skip(1) {
            assert!(entities.iter().any(|entity| after.starts_with(entity)), "{name}: &{after}");
        }
    }
    assert_eq!(open, [""; 0], "{name}");
}

#[test]
fn every_saved_run_is_a_picture_of_its_own() {
    for (name, trace) in saved() {
        let (text, blamed) = drawn(&trace);
        check_markup(&name, &text);
        assert_eq!(text, drawn(&trace).0, "{name}: other bytes");
        // The other one is in the legend.
        assert_eq!(text.matches("class=\"blow\"").count(), 1 + blamed, "{name}");
        assert_eq!(text.matches("class=\"swap\"").count(), 2, "{name}");
        assert!(text.contains("class=\"head\"") && text.contains(">sweep 20</text>"), "{name}");
        for outside in ["<script", "href", "url(", "@import", "@font-face"] {
            assert!(!text.contains(outside), "{name}: {outside}");
        }
        assert_eq!(text.matches("http").count(), 1, "{name}: more than the name of the format");
        assert!(text.contains("prefers-color-scheme:dark"), "{name}");
    }
}

/// The sweep has the lock while it removes; its owner gets one of a file that has no name any more.
#[test]
fn a_picture_shows_who_has_which_lock() {
    let (_, trace) = saved()
        .into_iter()
        .find(|(name, _)| name.starts_with("s1-lock-file"))
        .expect("it is saved");
    let (text, _) = drawn(&trace);
    for who in ["owner 10", "sweep 20"] {
        let lock = format!("<title>{who} has the lock of p-568f26aaed74c935/lock</title>");
        assert_eq!(text.matches(&lock).count(), 1, "{text}");
    }
}

const BOUNDS: Bounds = Bounds { states_max: 1_000_000 };

/// The cases in which a design or a rule that is switched off is known to fail, one a property.
fn known() -> Vec<Case> {
    let mut cases = Vec::new();
    for subject in Subject::ALL {
        for known in subject.rejections() {
            let (manner, then) = known.shown_by;
            let judged = Judged::Only(known.property);
            cases.push(Case { manner, then, judged, ..subject.shown_by() });
        }
    }
    cases.extend(Without::RULES.map(|(_, rule)| rule.shown_by()));
    cases
}

fn name_of(case: &Case) -> String {
    let rule = Without::RULES.iter().find(|(_, rule)| *rule == case.without);
    match (rule, case.judged) {
        (Some((id, _)), _) => format!("without {id}"),
        (None, Judged::Only(property)) => format!("{} {}", case.subject.name(), property.id()),
        (None, Judged::All | Judged::Nothing) => case.subject.name().into(),
    }
}

#[track_caller]
fn shortest(case: &Case) -> Counterexample {
    match exhaust(&case.setup(), &BOUNDS).verdict {
        Verdict::Found(found) => *found,
        other => panic!("{case:?}: {other:?}"),
    }
}

/// Of each the shortest run: who did what to whom, the rule that is missing, and the two choices, one
/// after the other, whose order makes the difference.
#[test]
fn whatever_fails_is_explained_by_the_rule_that_is_missing() {
    let expected: [(&str, &[&str]); 16] = [
        (
            "age S1",
            &[
                "sweep 20 removed p-568f26aaed74c935 while owner 10 was alive, because time is \
                 no proof: an owner that is idle for a day loses its directory (l5)",
                "if `now` of sweep 20 had come before the 25 hours, it would hold",
                "  it was       the clock: 25 hours pass",
                "               sweep 20: now: 0x6b4b3190",
                "  it would be  sweep 20: now: 0x6b49d200",
                "               the clock: 25 hours pass",
            ],
        ),
        (
            "pid S1",
            &[
                "sweep 20 removed p-10-1010-568f26aaed74c935 while owner 101 was alive, \
                 because nobody asks for the commands: one outlives its owner and loses its \
                 directory (l3)",
                "if `process-exists 10` of sweep 20 had come before the kill of owner 10, it \
                 would hold",
                "  it was       owner 10: is killed",
                "               sweep 20: process-exists 10: ESRCH",
                "  it would be  sweep 20: process-exists 10: done",
                "               owner 10: is killed",
            ],
        ),
        (
            "inherited-lease S1",
            &[
                "sweep 20 removed p-10-1010-568f26aaed74c935 while command 101 was alive, \
                 because nobody has written down that a command is there: one that closes what \
                 it inherited is known by nothing else (p2)",
                "if `lock 4` of sweep 20 had come before `close every descriptor` of command \
                 101, it would hold",
                "  it was       command 101: close every descriptor: done",
                "               sweep 20: lock 4: done",
                "  it would be  sweep 20: lock 4: EAGAIN",
                "               command 101: close every descriptor: done",
            ],
        ),
        (
            "marker S1",
            &[
                "sweep 20 removed p-568f26aaed74c935 while owner 101 was alive, because the \
                 entry comes after the spawn: an owner killed in between leaves a command that \
                 nobody knows of (p1)",
                "if `process-exists 10` of sweep 20 had come before the kill of owner 10, it \
                 would hold",
                "  it was       owner 10: is killed",
                "               sweep 20: process-exists 10: ESRCH",
                "  it would be  sweep 20: process-exists 10: done",
                "               owner 10: is killed",
            ],
        ),
        (
            "marker L1",
            &[
                "sweep 30 left p-568f26aaed74c935 when everybody was dead, because the marker \
                 comes after the name: what was half made looks for ever as if somebody were \
                 making it (c3)",
                "without the kill of everybody at that moment, it would hold",
            ],
        ),
        (
            "lock-file S1",
            &[
                "sweep 20 removed p-568f26aaed74c935, and owner 10 relied on it from its `lock \
                 5` on, because the lock comes after the name: a sweep gets the newborn's lock \
                 first and removes it (c1)",
                "if `lock 5` of owner 10 had come before `unlock 5` of sweep 20, it would hold",
                "  it was       sweep 20: unlock 5: done",
                "               owner 10: lock 5: done",
                "  it would be  owner 10: lock 5: EAGAIN",
                "               sweep 20: unlock 5: done",
            ],
        ),
        (
            "lock-file L1",
            &[
                "sweep 30 left p-568f26aaed74c935 when everybody was dead, because the lock is \
                 not compared with the name: its holder fills a directory without a lock file, \
                 which nobody ever removes (c2)",
                "if `lock 5` of owner 10 had come before the kill of sweep 20, it would hold",
                "  it was       sweep 20: is killed",
                "               owner 10: lock 5: done",
                "  it would be  owner 10: lock 5: EAGAIN",
                "               sweep 20: is killed",
            ],
        ),
        (
            "second-look S1",
            &[
                "sweep 20 moved p-10-1010-vjsjxwlvgzd7 away and was killed, while command 101 \
                 was alive, because the look is stale by the time of the rename, and a kill \
                 before it is taken back hides a directory from its users (l4)",
                "without the kill of sweep 20, it would hold",
            ],
        ),
        (
            "without l3",
            &[
                "sweep 20 moved p-3jrdr6ortbt5 away while command 101 was alive, because \
                 nobody asks for the commands (l3)",
                "if `lock 4` of sweep 20 had come before the kill of owner 10, it would hold",
                "  it was       owner 10: is killed",
                "               sweep 20: lock 4: done",
                "  it would be  sweep 20: lock 4: EAGAIN",
                "               owner 10: is killed",
            ],
        ),
        (
            "without l4",
            &[
                "sweep 20 moved p-3jrdr6ortbt5 away while command 1011 was alive, because \
                 nobody looks at who uses a claim (l4)",
                "if `lock 4` of sweep 20 had come before the kill of owner 10, it would hold",
                "  it was       owner 10: is killed",
                "               sweep 20: lock 4: done",
                "  it would be  sweep 20: lock 4: EAGAIN",
                "               owner 10: is killed",
            ],
        ),
        (
            "without p1",
            &[
                "sweep 20 moved p-3jrdr6ortbt5 away while command 1011 was alive, because the \
                 lock of a command's entry is taken only when the command has been started \
                 (p1)",
                "if `lock 4` of sweep 20 had come before the kill of owner 10, it would hold",
                "  it was       owner 10: is killed",
                "               sweep 20: lock 4: done",
                "  it would be  sweep 20: lock 4: EAGAIN",
                "               owner 10: is killed",
            ],
        ),
        (
            "without p2",
            &[
                "sweep 20 moved p-3jrdr6ortbt5 away while command 101 was alive, because the \
                 child does not say who it is (p2)",
                "if `lock 6` of sweep 20 had come before `close every descriptor` of command \
                 101, it would hold",
                "  it was       command 101: close every descriptor: done",
                "               sweep 20: lock 6: done",
                "  it would be  sweep 20: lock 6: EAGAIN",
                "               command 101: close every descriptor: done",
            ],
        ),
        (
            "without r2",
            &[
                "sweep 30 left .p-3jrdr6ortbt5.dead-sb3iz6ospxr3 when everybody was dead, \
                 because what was left half-removed is not judged again (r2)",
                "if `lock 4` of sweep 20 had come before the kill of owner 10, it would hold",
                "  it was       owner 10: is killed",
                "               sweep 20: lock 4: done",
                "  it would be  sweep 20: lock 4: EAGAIN",
                "               owner 10: is killed",
            ],
        ),
        (
            "without h1",
            &[
                "sweep 30 waits in `open-plain 3/.p-3jrdr6ortbt5.new`, and nobody is left who could \
                 end that, because what stands at a name is opened as it comes (h1)",
                "without the adversary, who puts a FIFO at /r/.p-3jrdr6ortbt5.new, it would hold",
            ],
        ),
        (
            "without h2",
            &[
                "sweep 30 changed /precious/kept with `unlink 5/kept`, because mounts are entered (h2)",
                "without the adversary, who mounts /precious on /r/.p-3jrdr6ortbt5.new/files, it \
                 would hold",
            ],
        ),
        (
            "without h3",
            &[
                "sweep 30 changed /precious/kept with `unlink 5/kept`, because a link is taken for \
                 what it points at (h3)",
                "without the adversary, who puts a link to /precious at \
                 /r/.p-3jrdr6ortbt5.new/files, it would hold",
            ],
        ),
    ];
    let cases = known();
    assert_eq!(cases.iter().map(name_of).collect::<Vec<_>>(), expected.map(|(name, _)| name));
    for (case, (name, lines)) in cases.iter().zip(expected) {
        let explanation = explain(case, &shortest(case));
        assert_eq!(explanation.to_string().lines().collect::<Vec<_>>(), lines, "{name}");
        if name == "pid S1" {
            let page = include_str!("../docs/exploring.md");
            assert!(page.contains(&format!("```text\n{explanation}\n```")), "{explanation}");
        }
        let rule = case.subject.rejections().iter().map(|known| known.rule);
        let rule = rule.chain(Without::RULES.map(|(id, _)| id));
        let mut named = rule.filter(|rule| explanation.told.ends_with(&format!(" ({rule})")));
        assert!(named.next().is_some(), "{name}: {}", explanation.told);
    }
}

/// A run that was drawn, made short; `None` where nothing was found.
fn shortened(case: &Case, strategy: Strategy, seed: u64) -> Option<Shrunk> {
    let setup = case.setup();
    let sampling = Sampling { strategy, seed, iterations: 0..2_000, threads: 2, early_ends: true };
    let (Sampled::Found { found, .. }, _) = sample(&setup, &sampling, &mut |_| true) else {
        return None;
    };
    let shrunk = shrink(&setup, &found);
    assert_eq!(shrunk.found.failure.property(), found.failure.property());
    assert_eq!((shrunk.choices_before, shrunk.done), (found.schedule.len(), true));
    Some(shrunk)
}

/// Measured: of all but one they are the shortest that there are; `second-look` once more steps aside.
#[test]
fn what_was_drawn_becomes_as_short_as_what_was_searched() {
    let (mut executions, mut found_of) = (Vec::new(), 0);
    for case in known() {
        let name = name_of(&case);
        let choices = shortest(&case).schedule.len();
        let choices_max = choices + usize::from(name == "second-look S1");
        let before = executions.len();
        for strategy in [Strategy::Sticky, Strategy::Pct { depth: 3 }] {
            for shrunk in (1..=2).filter_map(|seed| shortened(&case, strategy, seed)) {
                let after = shrunk.found.schedule.len();
                // A trick stays at the call before which it was drawn, and the shortest run may have it at
                // another one.
                let as_short = case.tricks > 0 || after <= choices_max;
                assert!(as_short && after >= choices, "{name}: {}", shrunk.found);
                executions.push(shrunk.executions);
            }
        }
        found_of += u32::from(executions.len() > before);
    }
    // Every one of them is drawn by one of the two at least.
    assert_eq!(found_of, 16);
    executions.sort_unstable();
    let (median, most) = (executions[executions.len() / 2], executions[executions.len() - 1]);
    println!("{} runs, {median} executions in the median, {most} at most", executions.len());
    assert!(median <= 25 && most <= 60, "{executions:?}");
}

/// Time means nothing to the implementation, so no day that passes is in a short run.
#[test]
fn a_fault_that_does_nothing_is_left_out() {
    let case = Case { waits: 2, ..Without::R2.shown_by() };
    let setup = case.setup();
    let days = |run: &Counterexample| {
        run.schedule.iter().filter(|choice| **choice == Choice::Wait).count()
    };
    let strategy = Strategy::Pct { depth: 3 };
    let mut left_out = 0;
    for seed in 1..=4 {
        let sampling =
            Sampling { strategy, seed, iterations: 0..1_000, threads: 2, early_ends: true };
        let (Sampled::Found { found, .. }, _) = sample(&setup, &sampling, &mut |_| true) else {
            panic!("seed {seed} draws nothing");
        };
        let shrunk = shrink(&setup, &found).found;
        assert_eq!(days(&shrunk), 0, "{shrunk}");
        left_out += days(&found);
    }
    assert!(left_out > 0, "no run had one");
}

#[test]
fn the_shortest_run_cannot_be_made_shorter() {
    for case in known() {
        let found = shortest(&case);
        let shrunk = shrink(&case.setup(), &found);
        assert_eq!(shrunk.found.schedule.len(), found.schedule.len(), "{}", name_of(&case));
    }
}
