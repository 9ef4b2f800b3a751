//! Sweeps at once, and sweeps beside creators and closers (r3, S1).

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use mortmain::{Outcome, Report};
use mortmain_harness::ground::PREFIX;

use crate::support::{ground, in_cell};

fn removed(report: &Report) -> impl Iterator<Item = String> + '_ {
    let gone = report.entries.iter().filter(|entry| matches!(entry.outcome, Outcome::Removed(_)));
    gone.map(|entry| entry.name.to_string())
}

#[test]
fn sweeps_at_once_remove_each_claim_once_and_what_they_leave_goes_with_the_next() {
    in_cell(|| {
        let ground = ground();
        let namespace = ground.namespace();
        let count = 60;
        for _ in 0..count {
            namespace.create().unwrap().release().unwrap();
        }
        let living = ground.owned();
        let reports: Vec<Report> = std::thread::scope(|scope| {
            let sweeps: Vec<_> =
                (0..4).map(|_| scope.spawn(|| ground.namespace().sweep())).collect();
            sweeps.into_iter().map(|sweep| sweep.join().expect("it does not panic")).collect()
        });
        let all: Vec<String> = reports.iter().flat_map(removed).collect();
        let once: BTreeSet<&String> = all.iter().collect();
        assert_eq!(once.len(), all.len(), "removed twice: {all:?}");
        assert!(all.len() <= count, "{}", all.len());
        for report in &reports {
            assert_eq!((report.blocked(), report.trouble), (0, None), "{report}");
        }
        let last = ground.sweep();
        assert_eq!(last.kept(), 1, "{last}");
        assert_eq!(ground.names(), [living.claim.file_name().expect("it has a name")]);
    });
}

#[test]
fn creators_and_closers_beside_endless_sweeps_lose_nothing_and_leave_nothing() {
    in_cell(|| {
        let ground = ground();
        // Each is another process, as sweeps and servers are.
        let mut sweepers = [ground.actor(), ground.actor()];
        let line = format!("sweep {PREFIX} {}", ground.root().display());
        let namespace = ground.namespace();
        for _ in 0..40 {
            for sweeper in &mut sweepers {
                sweeper.begin(&line);
            }
            let claim = namespace.create().expect("a sweep in the way is met by another attempt");
            fs::write(claim.path().join("file"), "mine").unwrap();
            let path: PathBuf = claim.path().into();
            for sweeper in &mut sweepers {
                let swept = sweeper.answer_to(&line);
                assert!(swept.starts_with("swept "), "{swept}");
            }
            assert_eq!(fs::read_to_string(path.join("file")).unwrap(), "mine");
            for sweeper in &mut sweepers {
                sweeper.begin(&line);
            }
            let _closed = claim.close().expect("nothing uses it");
            for sweeper in &mut sweepers {
                sweeper.answer_to(&line);
            }
        }
        let last = ground.sweep();
        assert_eq!(last.kept() + last.blocked(), 0, "{last}");
        assert_eq!(ground.names(), [""; 0]);
    });
}
