//! Two explorers meet the same states and come to the same verdicts.

use mortmain_model::catalogue::gate;
use mortmain_model::rules::Rule;
use mortmain_model_peer::{ours, peer};

/// Bounds with few enough states for a test.
const NAMES: [&str; 4] =
    ["commands that cannot be read", "a forked worker", "another thread", "numbers given again"];

#[test]
fn both_meet_the_same_states() {
    let mut compared = 0;
    for (name, setting) in gate().into_iter().filter(|(name, _)| NAMES.contains(name)) {
        let (our, other) = (ours(setting, 1), peer(setting, 1));
        assert!(our.holds, "{name}: {our:?}");
        assert_eq!(our, other, "{name}");
        compared += 1;
    }
    assert_eq!(compared, NAMES.len(), "bounds have other names by now");
}

#[test]
fn both_see_the_absence_of_a_rule() {
    let mut broken = 0;
    for rule in [Rule::C2Sweep, Rule::C7Afresh, Rule::P2Lock, Rule::L2Owner, Rule::L3Order] {
        let setting = rule.absent();
        let (our, other) = (ours(setting, 1), peer(setting, 1));
        assert_eq!(our.holds, other.holds, "without {rule}");
        broken += u32::from(!our.holds);
    }
    assert_eq!(broken, 5, "without a rule something is seen to go wrong");
}
