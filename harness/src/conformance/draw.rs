//! Where programs come from: all short ones of a class, or some that are drawn from a seed.
//!
//! The world is asked what a step would do, to leave out what cannot show anything: nothing more. It is
//! believed in one thing only, that a step which changes nothing there can stand beside others of the
//! kind in one program; if it does change something on the real kernel, the rest of the program shows it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use mortmain::sys::Errno;

use super::class::Class;
use super::in_world::Stage;
use super::operation::{Operation, Who};
use super::outcome::Outcome;
use super::program::{Orphans, PROCESSES_MAX, Program, Step};
use crate::lots::Lots;

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
