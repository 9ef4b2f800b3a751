//! What the tests of sweeps share: the way into a cell, and looks at a report.

use std::path::{Path, PathBuf};
use std::process::Command;

use mortmain::{Evidence, Finding, Findings, Outcome, Proof, Report};
use mortmain_harness::cell;
use mortmain_harness::forge::Record;
use mortmain_harness::ground::{Ground, Owned, outcome};
use mortmain_harness::guard::ChildGuard;
pub(crate) use mortmain_harness::wait::hold;
use mortmain_harness::wait::{Deadline, Watch};

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

/// Kills a process and waits for its end, without reaping it.
#[track_caller]
pub(crate) fn kill(process: &Watch) {
    process.kill().unwrap();
    process.gone(soon()).unwrap();
}

/// What a report rests on, whatever came of it.
#[track_caller]
pub(crate) fn findings<'r>(report: &'r Report, claim: &Path) -> &'r Findings {
    match outcome(report, claim) {
        Outcome::Removed(findings) | Outcome::WouldRemove(findings) | Outcome::Kept(findings) => {
            findings
        }
        other => panic!("it was removed or kept by its verdict, not {other}"),
    }
}

/// The answer to l2.
#[track_caller]
pub(crate) fn of_owner<'r>(report: &'r Report, claim: &Path) -> &'r Finding {
    findings(report, claim).owner.as_ref().expect("it was asked")
}

/// The answer to l3.
#[track_caller]
pub(crate) fn of_commands<'r>(report: &'r Report, claim: &Path) -> &'r Finding {
    findings(report, claim).commands.as_ref().expect("it was asked")
}

/// Asserts that a claim is kept because something could not be told, and of this.
#[track_caller]
pub(crate) fn assert_cannot_tell(finding: &Finding, evidence: &Evidence) {
    assert_eq!((finding.proof, &finding.evidence), (Proof::CannotTell, evidence));
}

/// A claim whose owner was killed after it had started a script, of which this line came.
pub(crate) fn orphaned(ground: &Ground, script: &str) -> (Owned, Watch, String) {
    let mut owned = ground.owned();
    let shell = owned.actor.spawn(script);
    let said = owned.actor.said("the script's line");
    owned.actor.kill();
    (owned, shell, said)
}

/// A claim with this many commands that have ended.
pub(crate) fn with_ended(ground: &Ground, count: usize) -> Owned {
    let mut owned = ground.owned();
    for _ in 0..count {
        owned.actor.spawn("exit 0").gone(soon()).unwrap();
    }
    owned.actor.kill();
    owned
}

/// The record of the first command.
pub(crate) fn id(claim: &Path) -> PathBuf {
    claim.join("commands/0.id")
}

/// Who is recorded as the owner of a claim.
#[track_caller]
pub(crate) fn recorded(claim: &Path) -> i32 {
    Record::read(&claim.join("owner")).unwrap().process.pid
}

/// A process that has nothing to do with any claim.
pub(crate) fn stranger() -> ChildGuard {
    ChildGuard::spawn_with_stdin(Command::new("cat")).unwrap()
}
