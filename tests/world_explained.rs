//! What is shown and said of runs that end badly: pictures, explanations, and short runs made of long
//! ones.

use std::fs;
use std::path::Path;

use mortmain_harness::ArenaAllocator;
use mortmain_harness::diagram::Diagram;
use mortmain_harness::explore::{Failure, Trace};

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
