//! What is true after a case: who lives, what is still there.
//!
//! The implementation's own opinion, its reports included, is quoted in a complaint but never
//! decides one.

use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use mortmain::protocol::SweepOptions;
use mortmain::sys::{Host, Name};
use mortmain::{Place, Prefix, Report};

use super::operation::{Operation, adopt};
use super::stage::{Lifeline, PREFIX, STRAY, Stage, open_root};
use crate::processes::processes;
use crate::tree::Tree;
use crate::wait::{Deadline, Watch};

/// How long an ended command may take to vanish before the case is given up.
const END: Duration = Duration::from_secs(20);

/// What was found out about one case.
pub(super) struct Judgement {
    /// The shape of what the operation left behind, as a number.
    pub(super) left: u64,
    /// What is wrong; nothing when all is well.
    pub(super) wrong: Vec<String>,
}

/// Judges what a case left behind. `staged` is what lay in the root when the operation began.
pub(super) fn judge(
    stage: &Stage,
    operation: Operation,
    staged: &Tree,
    lifeline: Lifeline,
) -> io::Result<Judgement> {
    let mut wrong = Vec::new();
    let left = Tree::read(&stage.root)?;
    let alive = commands()?;
    if alive.is_empty() {
        // Nothing is in use any more.
    } else if operation == Operation::SweepInUse {
        unchanged("the faulty sweep", staged, &left, &mut wrong);
    } else {
        in_place(&left, &mut wrong);
    }
    if !alive.is_empty() {
        let report = sweep(stage)?;
        let now = Tree::read(&stage.root)?;
        // One that has ended since, because its owner had killed it, was in nobody's way.
        let mut lives_on = false;
        for watch in &alive {
            lives_on |= !watch.is_gone()?;
        }
        let before = wrong.len();
        if lives_on {
            unchanged("an undisturbed sweep", &left, &now, &mut wrong);
        }
        if wrong.len() > before {
            wrong.push(format!("that sweep reported:\n{report}"));
        }
    }
    end(alive, lifeline)?;
    if operation == Operation::Adopt && stage.root.join(STRAY).exists() {
        still_whole(staged, &left, &mut wrong);
        // Nobody but who named it knows that it is to go.
        wrong.extend(adopt(&Host, stage).err().map(|why| format!("leaked: {why}")));
    }
    let report = sweep(stage)?;
    let finally = Tree::read(&stage.root)?;
    let before = wrong.len();
    compare("root", &stage.root_before, &finally, &mut wrong);
    compare("directory beside it", &stage.outside_before, &Tree::read(&stage.outside)?, &mut wrong);
    if wrong.len() > before {
        wrong.push(format!("the last sweep reported:\n{report}"));
    }
    clean_up(stage, &finally)?;
    Ok(Judgement { left: shape(&stage.root_before, &left), wrong })
}

/// Sweeps, undisturbed, as any later process would.
fn sweep(stage: &Stage) -> io::Result<Report> {
    Ok(open_root(&Host, &stage.root)?.sweep(&SweepOptions::default()))
}

/// The processes of the cell that may still use something: all but init and ourselves.
fn commands() -> io::Result<Vec<Watch>> {
    let me = rustix::process::getpid().as_raw_nonzero().get();
    let mut watches = Vec::new();
    for process in processes()? {
        if process.lives() && process.pid != 1 && process.pid != me {
            watches.extend(Watch::open(process.pid)?);
        }
    }
    Ok(watches)
}

/// Lets the commands end and waits until they have.
fn end(alive: Vec<Watch>, lifeline: Lifeline) -> io::Result<()> {
    drop(lifeline);
    let deadline = Deadline::after(END);
    for watch in alive {
        watch.gone(deadline).map_err(io::Error::other)?;
    }
    Ok(())
}

/// A command lives, so a claim has to be there for it: one, published, with what was put into it.
fn in_place(left: &Tree, wrong: &mut Vec<String>) {
    let prefix = Prefix::new(PREFIX).expect("a plain word is a prefix");
    let is_whole = |name: &OsStr| {
        let parsed = Name::new(name.as_bytes())
            .and_then(|name| prefix.parse(&name))
            .map(|claim| claim.place);
        let tool = [name, OsStr::new("files"), OsStr::new("tool")].iter().collect();
        parsed == Some(Place::Published) && left.0.contains_key::<std::path::PathBuf>(&tool)
    };
    // One of them is the worker's own.
    if left.top().filter(|name| is_whole(name)).count() != 2 {
        wrong.push(format!("harmed: a command lives, and its claim is not whole:\n{}", list(left)));
    }
}

fn unchanged(who: &str, before: &Tree, after: &Tree, wrong: &mut Vec<String>) {
    for (path, _) in after.beyond(before) {
        wrong.push(format!("harmed: {who} changed {} while a command lived", path.display()));
    }
}

/// A stray has its own name for as long as nothing of it is gone.
fn still_whole(staged: &Tree, left: &Tree, wrong: &mut Vec<String>) {
    let [staged, left] = [staged, left].map(|tree| tree.below(OsStr::new(STRAY)));
    for (path, _) in left.beyond(&staged) {
        let path = path.display();
        wrong.push(format!("harmed: {path} of a stray is gone, which still has its own name"));
    }
}

/// Compares what must be with what is: less is harm, more is a leak.
fn compare(place: &str, before: &Tree, after: &Tree, wrong: &mut Vec<String>) {
    for (path, _) in after.beyond(before) {
        wrong.push(format!("harmed: {} in the {place} is gone or changed", path.display()));
    }
    for (path, _) in before.beyond(after) {
        if !before.0.contains_key(path) {
            wrong.push(format!("leaked: {} in the {place}", path.display()));
        }
    }
}

/// What lies there beyond the stage itself, as a number that is the same for the same shape.
fn shape(before: &Tree, left: &Tree) -> u64 {
    let beyond = before.beyond(left).into_iter();
    let beyond = Tree(beyond.map(|(path, node)| (path.into(), node.clone())).collect());
    let mut hasher = DefaultHasher::new();
    beyond.shape().hash(&mut hasher);
    hasher.finish()
}

fn list(tree: &Tree) -> String {
    tree.shape().iter().map(|line| format!("  {line}\n")).collect()
}

/// Takes away what a case that went wrong left, so that the next one begins where this one did.
#[expect(
    clippy::disallowed_methods,
    reason = "on the cell's own tmpfs, by another way than the code that is judged"
)]
fn clean_up(stage: &Stage, finally: &Tree) -> io::Result<()> {
    let known: Vec<OsString> = stage.root_before.top().map(OsString::from).collect();
    for name in finally.top().filter(|name| !known.iter().any(|known| known == name)) {
        std::fs::remove_dir_all(stage.root.join(name))?;
    }
    Ok(())
}
