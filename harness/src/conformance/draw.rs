//! Where programs come from: all short ones of a class, or some that are drawn from a seed.
//!
//! The world is asked what a step would do, to leave out what cannot show anything: nothing more. It is
//! believed in one thing only, that a step which changes nothing there can stand beside others of the
//! kind in one program; if it does change something on the real kernel, the rest of the program shows it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use mortmain::sys::Errno;

use super::in_world::Stage;
use super::operation::{Number, Operation, Who, Word};
use super::outcome::Outcome;
use super::program::{Orphans, PROCESSES_MAX, Program, Step};
use crate::lots::Lots;

/// What programs are about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Locks, and who shares them.
    Locks,
    /// Names, and what they stand for.
    Names,
    /// Births, deaths, groups.
    Processes,
    /// All of it in one program: drawn only.
    Mixed,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 4] = [Class::Locks, Class::Names, Class::Processes, Class::Mixed];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::Locks => "locks",
            Class::Names => "names",
            Class::Processes => "processes",
            Class::Mixed => "mixed",
        }
    }

    /// Processes at the beginning of a short program.
    fn first(self) -> usize {
        match self {
            Class::Locks | Class::Processes | Class::Mixed => 2,
            Class::Names => 1,
        }
    }

    /// What becomes of orphans where it matters.
    fn orphans(self) -> &'static [Orphans] {
        match self {
            Class::Locks | Class::Names | Class::Mixed => &[Orphans::Reaped],
            Class::Processes => &[Orphans::Reaped, Orphans::Kept],
        }
    }

    /// The operations of short programs: few names, few descriptors.
    #[must_use]
    pub fn few(self) -> Vec<Operation> {
        use Operation as Op;
        use Word::{A, B};
        match self {
            Class::Locks => vec![
                Op::OpenRoot,
                Op::Lock(3),
                Op::Lock(4),
                Op::Lock(255),
                Op::Unlock(3),
                Op::Unlock(4),
                Op::Unlock(255),
                Op::Close(3),
                Op::Close(4),
                Op::Close(255),
                Op::LockHolder(3),
                Op::LockHolder(4),
                Op::Fork,
                Op::Spawn(3, 3),
                Op::Killed,
            ],
            Class::Names => vec![
                Op::CreateFile(3, A),
                Op::Mkdir(3, A),
                Op::Mkdir(3, B),
                Op::Symlink(3, A, B),
                Op::Rename(3, A, A),
                Op::Rename(3, A, B),
                Op::Rename(3, B, A),
                Op::Unlink(3, A),
                Op::Rmdir(3, A),
                Op::Rmdir(3, B),
                Op::OpenDir(3, A),
                Op::OpenFile(3, A),
                Op::OpenRootBelow(A),
                Op::StatAt(3, A),
                Op::Readlink(3, A),
                Op::Unseal(3, A),
                Op::ReadDir(3),
                Op::ReadDirOn(3),
                Op::Mkdir(4, A),
                Op::CreateFile(4, A),
                Op::Unlink(4, A),
                Op::Rmdir(4, A),
                Op::Rename(4, A, B),
                Op::OpenDir(4, A),
                Op::StatAt(4, A),
                Op::ReadDir(4),
                Op::Stat(4),
                Op::Read(4),
                Op::Write(4),
                Op::Chmod(4),
                Op::Sync(4),
                Op::FsMagic(4),
                Op::Uses(0),
                Op::Close(4),
            ],
            Class::Mixed => Vec::new(),
            Class::Processes => {
                let mut few = vec![Op::Fork, Op::NewGroup, Op::Exit, Op::Killed, Op::Pids];
                for of in 0..3 {
                    few.extend([
                        Op::ProcessExists(of),
                        Op::GroupExists(of),
                        Op::Process(of),
                        Op::Pidfs(of),
                        Op::KillGroup(of),
                        Op::Look(of),
                        Op::Reap(of),
                    ]);
                }
                few.extend([Op::Whoami, Op::CloseAll]);
                few
            }
        }
    }

    /// An operation of a drawn program.
    fn any(self, lots: &mut Lots) -> Operation {
        use Operation as Op;
        if self == Class::Mixed {
            let parts = [Class::Locks, Class::Names, Class::Processes];
            return parts[lots.below(parts.len())].any(lots);
        }
        let fd = any_fd(lots);
        let (word, other) = (any_word(lots), any_word(lots));
        let of = lots.below(PROCESSES_MAX);
        let locks = [
            Op::OpenRoot,
            Op::OpenFile(fd, word),
            Op::OpenDir(fd, word),
            Op::CreateFile(fd, word),
            Op::Mkdir(fd, word),
            Op::Unlink(fd, word),
            Op::Rmdir(fd, word),
            Op::Rename(fd, word, other),
            Op::Lock(fd),
            Op::Lock(fd),
            Op::Unlock(fd),
            Op::Close(fd),
            Op::LockHolder(fd),
            Op::Uses(of),
            Op::Fork,
            Op::Spawn(any_fd(lots), fd),
            Op::CloseAll,
            Op::Killed,
            Op::Exit,
        ];
        // Directories in directories are what most of it is about.
        let names = [
            Op::OpenRoot,
            Op::OpenRootBelow(word),
            Op::OpenDir(fd, word),
            Op::OpenDir(fd, word),
            Op::OpenFile(fd, word),
            Op::CreateFile(fd, word),
            Op::Close(fd),
            Op::Close(fd),
            Op::Stat(fd),
            Op::StatAt(fd, word),
            Op::FsMagic(fd),
            Op::ReadDir(fd),
            Op::ReadDirOn(fd),
            Op::Mkdir(fd, word),
            Op::Mkdir(fd, word),
            Op::Mkdir(fd, word),
            Op::Symlink(fd, word, other),
            Op::Readlink(fd, word),
            Op::Rename(fd, word, other),
            Op::Rename(fd, word, other),
            Op::Rename(fd, word, other),
            Op::Unlink(fd, word),
            Op::Rmdir(fd, word),
            Op::Rmdir(fd, word),
            Op::Unseal(fd, word),
            Op::Chmod(fd),
            Op::Read(fd),
            Op::Write(fd),
            Op::Sync(fd),
        ];
        let processes = [
            Op::Whoami,
            Op::ProcessExists(of),
            Op::GroupExists(of),
            Op::Process(of),
            Op::Pidfs(of),
            Op::Pids,
            Op::Uses(of),
            Op::KillGroup(of),
            Op::Look(of),
            Op::Reap(of),
            Op::Fork,
            Op::Fork,
            Op::Spawn(fd, any_fd(lots)),
            Op::NewGroup,
            Op::CloseAll,
            Op::Exit,
            Op::Killed,
        ];
        match self {
            Class::Locks => locks[lots.below(locks.len())],
            Class::Names => names[lots.below(names.len())],
            Class::Processes | Class::Mixed => processes[lots.below(processes.len())],
        }
    }

    /// The operations of drawn programs, each with some names and numbers.
    #[must_use]
    pub fn many(self) -> Vec<Operation> {
        let mut lots = Lots::of(0, 0);
        // Far more than it takes to draw the rarest.
        (0..4096).map(|_| self.any(&mut lots)).collect()
    }
}

/// Goes through all programs of a class whose steps all change something, up to a length, with all steps
/// that change nothing as the end of each. By symmetry the first step is the first process's.
pub fn every(
    class: Class,
    length: usize,
    each: &mut impl FnMut(Program) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if class.few().is_empty() {
        return ControlFlow::Continue(());
    }
    for orphans in class.orphans() {
        let stage = Stage::begin(class.first(), *orphans);
        let program = Program { first: class.first(), orphans: *orphans, steps: Vec::new() };
        extend(class, &stage, &program, length, each)?;
    }
    ControlFlow::Continue(())
}

fn extend(
    class: Class,
    stage: &Stage,
    program: &Program,
    length: usize,
    each: &mut impl FnMut(Program) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut idle = program.clone();
    for who in (0..PROCESSES_MAX).filter(|who| stage.lives(*who)) {
        if program.steps.is_empty() && who > 0 {
            break;
        }
        for operation in class.few() {
            let step = Step { who, operation };
            let mut after = stage.clone();
            after.step(step);
            if after.fingerprint() == stage.fingerprint() {
                idle.steps.push(step);
            } else if program.steps.len() < length {
                let mut longer = program.clone();
                longer.steps.push(step);
                extend(class, &after, &longer, length, each)?;
            }
        }
    }
    each(idle)
}

/// Draws a program: the same for the same seed and number.
#[must_use]
pub fn draw(class: Class, seed: u64, nth: u64, length: usize) -> Program {
    let mut lots = Lots::of(seed, nth);
    let first = 1 + lots.below(2);
    let orphans = if lots.one_in(4) { Orphans::Kept } else { Orphans::Reaped };
    let mut stage = Stage::begin(first, orphans);
    let mut program = Program { first, orphans, steps: Vec::new() };
    let mut seen = BTreeMap::new();
    while program.steps.len() < length {
        let living: Vec<Who> = (0..PROCESSES_MAX).filter(|who| stage.lives(*who)).collect();
        let drawn = (0..CANDIDATES).filter_map(|_| {
            let who = living[lots.below(living.len())];
            Candidate::new(Step { who, operation: class.any(&mut lots) }, &stage)
        });
        // The first of those that have come least often: most of what is drawn fails or is the same
        // again, and too much of that tells nothing.
        let rarest = drawn.min_by_key(|drawn| {
            let before: u32 = seen.get(&drawn.kind).copied().unwrap_or_default();
            before + drawn.handicap
        });
        if let Some(Candidate { step, kind, after, .. }) = rarest {
            *seen.entry(kind).or_default() += 1;
            program.steps.push(step);
            stage = after;
        }
    }
    program
}

/// Steps of which one is taken.
const CANDIDATES: usize = 6;

/// A step that could be the next.
struct Candidate {
    step: Step,
    /// What it does, and what comes of it.
    kind: (&'static str, String),
    after: Stage,
    /// How many times less often it should be taken than others.
    handicap: u32,
}

impl Candidate {
    /// `None` where nobody would live after it.
    fn new(step: Step, stage: &Stage) -> Option<Candidate> {
        let mut after = stage.clone();
        let outcome = after.step(step);
        if !(0..PROCESSES_MAX).any(|who| after.lives(who)) {
            return None;
        }
        // What ends much leaves little to go on with.
        let handicap = match step.operation {
            _ if outcome == Outcome::Failed(Errno::EBADF.0) => 10,
            Operation::CloseAll | Operation::Exit | Operation::Killed => 2,
            _ => u32::from(!outcome.is_good()),
        };
        Some(Candidate { step, kind: (step.operation.word(), outcome.word()), after, handicap })
    }
}

fn any_fd(lots: &mut Lots) -> Number {
    [3, 3, 3, 3, 4, 4, 4, 4, 5, 255][lots.below(10)]
}

fn any_word(lots: &mut Lots) -> Word {
    use Word::{A, B, C, Id, Long};
    [A, A, A, A, A, B, B, B, B, C, Long, Id][lots.below(12)]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_draws_the_same_again_and_its_neighbours_draw_other_programs() {
        for class in Class::ALL {
            let drawn = |seed, nth| draw(class, seed, nth, 12);
            assert_eq!(drawn(1, 0), drawn(1, 0));
            let all: BTreeSet<Program> = (0..20).flat_map(|n| [drawn(1, n), drawn(2, n)]).collect();
            assert_eq!(all.len(), 40, "{}", class.name());
            assert!(all.iter().all(|program| program.steps.len() == 12));
        }
    }

    #[test]
    fn short_programs_change_something_in_each_step_and_end_with_all_that_changes_nothing() {
        let mut all = Vec::new();
        let over = every(Class::Locks, 1, &mut |program| {
            all.push(program);
            ControlFlow::Continue(())
        });
        assert!(over.is_continue());
        // Nothing, and each of what the first process can change with the root alone: another root,
        // a lock, a close, a fork, a spawn, its death.
        assert_eq!(all.len(), 7);
        assert!(all.iter().all(|program| program.first == 2));
        let locked = Step { who: 0, operation: Operation::Lock(3) };
        let refused = Step { who: 1, operation: Operation::Lock(3) };
        let after = all.iter().find(|program| program.steps.first() == Some(&locked));
        assert!(after.is_some_and(|program| program.steps[1..].contains(&refused)));
    }

    #[test]
    fn what_wants_no_more_gets_no_more() {
        let mut count = 0;
        let over = every(Class::Names, 2, &mut |_| {
            count += 1;
            ControlFlow::Break(())
        });
        assert!(over.is_break());
        assert_eq!(count, 1);
        let none = every(Class::Mixed, 2, &mut |_| unreachable!("these are only drawn"));
        assert!(none.is_continue());
    }
}
