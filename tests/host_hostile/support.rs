//! What the tests of hostile roots share: the way into a cell, precious things beside the claims, and
//! looks at a report.

use std::fs;
use std::path::{Path, PathBuf};

use mortmain::{Findings, Outcome, Report};
use mortmain_harness::cell;
use mortmain_harness::ground::{Ground, outcome};
use mortmain_harness::scratch::scratch_root;
use mortmain_harness::tree::Tree;
use mortmain_harness::wait::Deadline;

pub(crate) const LAB: &str = env!("CARGO_BIN_EXE_mortmain-lab");

/// Runs the body of the current test in a cell.
#[track_caller]
pub(crate) fn in_cell(body: impl FnOnce()) {
    cell::enter(LAB, body);
}

pub(crate) fn ground() -> Ground {
    Ground::new(LAB)
}

/// Longer than anything here takes on a loaded machine.
pub(crate) fn soon() -> Deadline {
    Deadline::secs(20)
}

/// What must not be touched, whoever points at it.
pub(crate) struct Precious {
    pub(crate) dir: PathBuf,
    before: Tree,
}

impl Precious {
    pub(crate) fn new() -> Precious {
        let dir = scratch_root();
        fs::create_dir_all(dir.join("sub/empty")).unwrap();
        fs::write(dir.join("file"), "precious").unwrap();
        fs::write(dir.join("sub/file"), "precious, too").unwrap();
        let before = Tree::read(&dir).unwrap();
        Precious { dir, before }
    }

    #[track_caller]
    pub(crate) fn assert_untouched(&self) {
        assert_eq!(Tree::read(&self.dir).unwrap(), self.before);
    }
}

/// What the verdict on a kept claim rests on.
#[track_caller]
pub(crate) fn kept<'r>(report: &'r Report, claim: &Path) -> &'r Findings {
    match outcome(report, claim) {
        Outcome::Kept(findings) => findings,
        other => panic!("{} was {other}", claim.display()),
    }
}
