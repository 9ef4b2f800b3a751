//! The pages beside the model say what the model says.

use std::collections::BTreeSet;
use std::path::PathBuf;

use mortmain_model::catalogue::{NOT_EXPRESSED, OTHER_SYSTEMS};
use mortmain_model::explore::Limits;
use mortmain_model::rules::Rule;
use mortmain_model::{NoPage, page};

fn read(path: &str) -> String {
    // At run time first, so that the test binary may be moved with the tree.
    let root = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let path = root.join("..").join(path);
    std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

#[test]
fn the_page_of_rules_is_what_the_model_says() {
    let limits = Limits { states_max: 1_000_000, bytes_max: 1 << 30, workers: 1 };
    let made = page(&limits, &mut |_| {}, &mut |_| true).expect("model and catalogue agree");
    let committed = read("docs/why-each-rule.md");
    let differs = made.lines().zip(committed.lines()).find(|(made, there)| made != there);
    assert!(
        made == committed,
        "docs/why-each-rule.md is not what the model says; read the difference that `cargo lab \
         model --write-docs` makes, and commit it. The first line that differs: {differs:?}"
    );
}

#[test]
fn what_is_not_decided_is_no_disagreement() {
    let few = Limits { states_max: 10, bytes_max: 1 << 30, workers: 1 };
    let why = NoPage::NotDecided("c1: there are more states".into());
    assert_eq!(page(&few, &mut |_| {}, &mut |_| true), Err(why));
    let limits = Limits { states_max: 1_000_000, ..few };
    let why = NoPage::NotDecided("c1: it was interrupted".into());
    assert_eq!(page(&limits, &mut |_| {}, &mut |_| false), Err(why));
}

/// The rules of the protocol's page with a small letter: what begins a line in bold.
fn rules_of_the_protocol(page: &str) -> BTreeSet<&str> {
    page.lines()
        .filter_map(|line| line.strip_prefix("**")?.split_once("**"))
        .map(|(id, _)| id)
        .filter(|id| matches!(id.as_bytes(), [b'a'..=b'z', b'1'..=b'9']))
        .collect()
}

#[test]
fn every_rule_of_the_protocol_is_in_the_model_or_said_not_to_be() {
    let text = read("docs/protocol.md");
    let protocol = rules_of_the_protocol(&text);
    assert!(protocol.len() > 30, "only {} rules: the page is written otherwise", protocol.len());
    let expressed: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.of()).collect();
    let missing: BTreeSet<&str> = NOT_EXPRESSED.iter().map(|it| it.rule).collect();
    assert!(expressed.is_disjoint(&missing), "both: {:?}", expressed.intersection(&missing));
    let of = |letter| protocol.iter().copied().filter(move |rule| rule.starts_with(letter));
    for (letter, what) in OTHER_SYSTEMS {
        assert!(of(*letter).next().is_some(), "no rule is about {what}");
    }
    let others: BTreeSet<&str> = OTHER_SYSTEMS.iter().flat_map(|(letter, _)| of(*letter)).collect();
    let here: BTreeSet<&str> = expressed.union(&missing).copied().collect();
    assert_eq!(here, protocol.difference(&others).copied().collect());
}

#[test]
fn names_of_rules_begin_with_their_rule() {
    for rule in Rule::ALL {
        let (of, part) = rule.id().split_once(':').unwrap_or((rule.id(), "whole"));
        assert_eq!(of, rule.of(), "{rule}");
        assert!(!part.is_empty(), "{rule}");
        assert_eq!(Rule::named(rule.id()), Some(*rule), "{rule} stands there twice");
    }
}
