//! The model as a whole: what holds in it, and that its shortcuts change nothing.

use std::collections::BTreeMap;

use crate::catalogue::gate;
use crate::explore::{Limits, Machine};
use crate::model::{Model, Verdict};
use crate::rules::Rule;
use crate::setting::{Content, FEATURES, Feature, Place, Setting};
use crate::state::{Look, State};
use crate::truth::{Escape, Property, Why};

const LIMITS: Limits = Limits { states_max: 1_000_000, bytes_max: 1 << 30, workers: 1 };

fn model(setting: Setting) -> Model {
    Model::new(setting).expect("bounds that the model has room for")
}

/// All states, as deep as a search goes, by the simplest means.
fn all_states(model: &Model) -> Vec<State> {
    let mut seen = BTreeMap::new();
    let mut open = vec![model.initial()];
    while let Some(state) = open.pop() {
        let key = model.pack(&state);
        if seen.insert((key.shared, key.own), state).is_none() {
            open.extend(model.steps(&state).into_iter().map(|step| step.next));
        }
    }
    seen.into_values().collect()
}

/// Bounds with everything in them, and few enough states for the simplest means.
fn varied() -> [Setting; 3] {
    let one = Setting::default();
    [
        Setting { closes: true, worker: true, commands: 0, ..one },
        Setting { owners: 2, commands: 0, batch: 2, kills: 1, ..one },
        Setting { reuse: true, stranger: true, failures: 1, ..one },
    ]
}

#[test]
fn the_search_meets_what_the_simplest_search_meets() {
    for setting in varied() {
        let model = model(setting);
        let searched = model.search(&LIMITS, &mut |_| true);
        assert!(matches!(searched.verdict, Verdict::Holds), "{setting}: {:?}", searched.verdict);
        let states = all_states(&model);
        assert_eq!(searched.counts.unique, states.len() as u64, "{setting}");
        let steps: usize = states.iter().map(|state| model.steps(state).len()).sum();
        assert_eq!(searched.counts.states, steps as u64 + 1, "{setting}");
    }
}

#[test]
fn a_state_that_is_kept_is_the_state() {
    for setting in varied() {
        let model = model(setting);
        for state in all_states(&model) {
            assert_eq!(model.unpack(&model.pack(&state)), state, "{setting}");
        }
    }
}

#[test]
fn two_workers_find_what_one_finds() {
    for rule in [Rule::L1Kept, Rule::R2Judged, Rule::R1Order] {
        let setting = rule.absent();
        let of = |workers| {
            let searched = model(setting).search(&Limits { workers, ..LIMITS }, &mut |_| true);
            let run = match searched.verdict {
                Verdict::Found(run) => run.to_string(),
                verdict => format!("{verdict:?}"),
            };
            (searched.counts, searched.escapes, run)
        };
        assert_eq!(of(2), of(1), "{rule}");
    }
}

/// Sweeps of one kind may be exchanged: with them told apart the verdict is the same.
#[test]
fn symmetry_changes_no_verdict() {
    let one = Setting::default();
    let bounds = [
        Setting { sweeps: 2, closes: true, worker: true, commands: 0, kills: 0, ..one },
        Setting { sweeps: 2, foreign: 2, commands: 0, kills: 2, ..one },
        Setting { sweeps: 2, loses_lease: true, kills: 0, ..one },
    ];
    let mut found = 0;
    for setting in bounds {
        for without in [None, Some(Rule::L1Kept), Some(Rule::L2Owner), Some(Rule::C7Afresh)] {
            let rules = without.map_or(setting.rules, |rule| setting.rules.without(rule));
            let model = model(setting.under(rules));
            let reduced = model.search(&LIMITS, &mut |_| true);
            let whole = model.told_apart().search(&LIMITS, &mut |_| true);
            let what = format!("{setting}, without {without:?}");
            match (&reduced.verdict, &whole.verdict) {
                (Verdict::Holds, Verdict::Holds) => {
                    let (few, all) = (reduced.counts.unique, whole.counts.unique);
                    assert!(few < all && all <= 2 * few, "{what}: {few} of {all}");
                    assert_eq!(reduced.counts.depth, whole.counts.depth, "{what}");
                }
                (Verdict::Found(run), Verdict::Found(other)) => {
                    found += 1;
                    assert_eq!(run.len(), other.len(), "{what}:\n{run}{other}");
                    assert_eq!(run.broken.property, other.broken.property, "{what}");
                }
                (reduced, whole) => panic!("{what}: {reduced:?} is not {whole:?}"),
            }
        }
    }
    assert!(found > 2, "only {found} were found: nothing was compared");
}

#[test]
fn what_is_remembered_changes_no_verdict() {
    // Without this rule some of the states are wrong, and others are not.
    let rules = Setting::default().rules.without(Rule::R2Again);
    let setting = Setting { reuse: true, closes: true, rules, ..Setting::default() };
    let model = model(setting);
    let mut memo = Default::default();
    let mut judged = [0_u32; 2];
    for state in all_states(&model) {
        let key = model.pack(&state);
        let fresh = model.judge(&key, &state, &mut Default::default());
        // The second time it is remembered.
        for _ in 0..2 {
            assert_eq!(model.judge(&key, &state, &mut memo), fresh);
        }
        judged[usize::from(fresh.is_some())] += 1;
    }
    assert!(judged.iter().all(|count| *count > 100), "{judged:?}");
}

#[test]
fn a_known_escape_is_met_where_it_can_be_and_nowhere_else() {
    let one = Setting::default();
    let escapes = |setting| model(setting).search(&LIMITS, &mut |_| true).escapes;
    assert_eq!(escapes(one), []);
    let mut unseen = one;
    for name in ["child", "daemon", "close-all", "leave", "forget"] {
        Feature::named(name).expect("a feature").put_into(&mut unseen);
    }
    assert_eq!(escapes(unseen), [Escape::Unseen]);
    let lost = Setting { commands: 0, loses_lease: true, foreign: 1, ..one };
    assert_eq!(escapes(lost), [Escape::OwnerElsewhere]);
    assert_eq!(escapes(Setting { foreign: 0, ..lost }), []);
    let mut daemon = Setting { foreign: 1, kills: 1, ..one };
    for name in ["child", "daemon", "close-all"] {
        Feature::named(name).expect("a feature").put_into(&mut daemon);
    }
    assert_eq!(escapes(daemon), [Escape::DaemonElsewhere]);
}

/// A close may be refused for what another thread forked, while that has copies of everything. One
/// that lives on has none.
#[test]
fn no_close_is_refused_for_a_stranger_that_has_nothing_of_the_claim() {
    let is_refused = |rules| {
        let setting = Setting { closes: true, stranger: true, kills: 0, ..Setting::default() };
        let model = model(setting.under(rules));
        let states = all_states(&model);
        let mut broken = states.iter().flat_map(|state| model.steps(state)).map(|step| step.broken);
        broken.any(|broken| broken.is_some_and(|broken| broken.why == Why::CloseRefused))
    };
    let all = Setting::default().rules;
    assert!(!is_refused(all));
    assert!(is_refused(all.without(Rule::P1Exec)), "it has the lock of an entry for good");
}

#[test]
fn what_must_stay_stays_and_what_may_go_goes() {
    for content in [Content::Plain, Content::Link, Content::Damage, Content::Mount, Content::Copy] {
        for word in [false, true] {
            let none = Setting { owners: 0, commands: 0, kills: 0, ..Setting::default() };
            let setting = Setting { content, word, ..none };
            let model = model(setting);
            let end = model.initial().swept(model.setting(), &mut |_| {});
            assert_eq!(end.sweeps[0].look(), Look::Idle, "{content:?}");
            let stays = end.dirs[0].name() != crate::state::Name::Removed;
            assert_eq!(stays, content.stays(word), "{content:?}, word: {word}");
        }
    }
}

#[test]
fn bounds_that_do_not_fit_are_refused_by_name() {
    #[track_caller]
    fn check(change: fn(&mut Setting), message: &str) {
        let mut setting = Setting::default();
        change(&mut setting);
        let error = Model::new(setting).map(|_| ()).expect_err("no room");
        assert_eq!(error.to_string(), message);
    }
    check(|it| it.sweeps = 3, "sweeps: 3 were asked for, 2 is the most");
    check(|it| it.kills = 4, "kills: 4 were asked for, 3 is the most");
    check(|it| it.foreign = 2, "sweeps in another pid namespace: 2 were asked for, 1 is the most");
    check(
        |it| (it.owners, it.content) = (2, Content::Mount),
        "owners beside what is there from the beginning: 2 were asked for, 1 is the most",
    );
    check(|it| it.owners = 0, "commands without an owner: 1 were asked for, 0 is the most");
    check(|it| it.batch = 0, "directories in a batch: 0 were asked for, 1 is the least");
    check(
        |it| (it.kills, it.batch) = (4, 3),
        "kills: 4 were asked for, 3 is the most; directories in a batch: 3 were asked for, 2 is \
         the most",
    );
}

#[test]
fn a_feature_is_put_in_by_its_name_and_told() {
    for feature in FEATURES {
        let mut setting = Setting::default();
        feature.put_into(&mut setting);
        let told = setting.to_string();
        assert_eq!(told, format!("1 owner, 1 command, 1 sweep, 1 kill; with {}", feature.name));
    }
    let mut full = Setting { sweeps: 2, foreign: 1, batch: 2, failures: 1, ..Setting::default() };
    full.place = Place::Full;
    insta::assert_snapshot!(full, @"1 owner, 1 command, 2 sweeps (1 in another pid namespace), 1 kill, 1 failing probe, batches of 2; with full");
}

/// Every property is one that some rule keeps: one that never breaks would judge nothing.
#[test]
fn every_property_can_break() {
    let mut broken: Vec<Property> = Vec::new();
    let rules = [Rule::L2Owner, Rule::H3Link, Rule::L2Damage, Rule::L2Zombie, Rule::R3Aside];
    for rule in rules.into_iter().chain([Rule::R5Told]) {
        match model(rule.absent()).search(&LIMITS, &mut |_| true).verdict {
            Verdict::Found(run) => broken.push(run.broken.property),
            verdict => panic!("{rule}: {verdict:?}"),
        }
    }
    use Property::{L1, L2, L3, S1, S2, S3};
    assert_eq!(broken, [S1, S2, S3, L1, L2, L3]);
}

#[test]
fn a_run_is_told_in_lines_that_say_who_and_what() {
    let run = |rule: Rule| match model(rule.absent()).search(&LIMITS, &mut |_| true).verdict {
        Verdict::Found(run) => run,
        verdict => panic!("{rule}: {verdict:?}"),
    };
    insta::assert_snapshot!("the_owner_is_not_asked_after", run(Rule::L2Owner));
    insta::assert_snapshot!("a_tombstone_is_left", format!("{:#}", run(Rule::R2Again)));
}

#[test]
fn the_named_bounds_have_names_of_their_own_and_fit() {
    let gate = gate();
    for (at, (name, setting)) in gate.iter().enumerate() {
        assert!(setting.check().is_ok(), "{name}");
        assert!(gate[..at].iter().all(|(other, _)| other != name), "{name} stands there twice");
    }
}
