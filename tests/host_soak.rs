//! Stories that are drawn: they hold, a mistake is found by them, and what is found is a story file.

#[path = "lab/mod.rs"]
mod lab;

use std::fs;
use std::path::Path;

use self::lab::{lab, without_cells};

#[test]
fn what_is_drawn_holds_and_is_counted() {
    if without_cells() {
        return;
    }
    let (code, lines) = lab(&["soak", "--seed", "3", "--iterations", "6", "--json"]);
    assert_eq!(code, Some(0), "{lines:#?}");
    let [line] = &lines[..] else { panic!("it is one object: {lines:#?}") };
    let line: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
    assert_eq!((&line["type"], &line["exit"]), (&"soak".into(), &0.into()));
    let count = |value: &serde_json::Value| -> u64 {
        value.as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum()
    };
    assert_eq!(line["stories"], 6, "{line}");
    assert!(count(&line["steps"]) > 60, "{line}");
    assert!(count(&line["disturbed"]) > 0, "nobody was stopped or killed at a call: {line}");
    assert!(line["canaries"].as_u64() > Some(0), "{line}");
    assert!(line["in-the-world"].as_u64() > Some(0), "{line}");
    for verdict in ["removed", "kept-in-use"] {
        assert!(count(&line["verdicts"][verdict]) > 0, "no claim was {verdict}: {line}");
    }
}

#[test]
fn a_sweep_that_takes_everything_for_dead_is_found_and_saved_as_a_story() {
    if without_cells() {
        return;
    }
    let scratch = mortmain::sandbox!("drawn-and-saved").expect("it is free");
    let save = scratch.path().to_str().expect("it is text");
    let args = ["soak", "--iterations", "40", "--subject", "always-gone", "--save", save];
    let (code, lines) = lab(&args);
    assert_eq!(code, Some(1), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("error[S1]: ")), "{lines:#?}");
    let world = "  in the simulated kernel it fails as well: S1";
    assert!(lines.iter().any(|line| line == world), "{lines:#?}");
    let again = lines.iter().find_map(|line| line.split_once("to see it again: mortmain-lab "));
    let (_, again) =
        again.unwrap_or_else(|| panic!("nothing says how to see it again: {lines:#?}"));
    let words: Vec<&str> = again.split_whitespace().collect();
    let file = Path::new(words[1]);
    let text = fs::read_to_string(file).expect("it is saved");
    let steps = text.matches("[[step]]").count();
    assert!(steps <= 5, "{steps} steps are more than that takes:\n{text}");
    assert_eq!(
        scratch.path().read_dir().expect("it is there").count(),
        1,
        "what was tried is gone"
    );

    let (code, lines) = lab(&words);
    assert_eq!(code, Some(1), "told again, it holds: {lines:#?}");
    let (code, lines) = lab(&words[..2]);
    assert_eq!(code, Some(0), "it does not hold with the library: {lines:#?}");
}

#[test]
fn what_cannot_be_meant_ends_with_2() {
    for args in [
        &["soak", "--for", "soon"][..],
        &["soak", "--for", "1m", "--iterations", "2"],
        &["soak", "--iteration", "1", "--iterations", "2"],
        &["soak", "--steps", "0"],
        &["soak", "--subject", "always"],
    ] {
        let (code, lines) = lab(args);
        assert_eq!((code, lines.len()), (Some(2), 0), "{args:?}: {lines:#?}");
    }
}
