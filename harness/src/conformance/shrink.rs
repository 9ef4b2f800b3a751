//! The shortest program that shows a difference, as far as leaving out and simplifying leads to it.

use std::collections::BTreeSet;

use super::compare::{Difference, compare};
use super::operation::{Number, Who, Word};
use super::outcome::Outcome;
use super::program::{Orphans, PROCESSES_MAX, Program, Step};
use super::{Side, SideError};

/// Makes a difference as short as it gets: no step can be left out any more, no process, and no name,
/// descriptor or process be replaced by an earlier one. One that does not come again stays as it is, and
/// says so.
///
/// # Errors
///
/// When a side breaks.
pub fn shrink(
    found: Difference,
    world: &mut impl Side,
    host: &mut impl Side,
) -> Result<Difference, SideError> {
    let mut again = |program: &Program| {
        let programs = std::slice::from_ref(program);
        let (world, host) = (world.play(programs)?, host.play(programs)?);
        let mut runs = world.iter().zip(&host);
        Ok(runs.find_map(|(world, host)| compare(program, world, host)))
    };
    let Some(mut found) = again(&found.program)? else {
        return Ok(Difference { once: true, ..found });
    };
    'shorter: loop {
        for program in simpler(&found) {
            if let Some(difference) = again(&program)? {
                found = difference;
                continue 'shorter;
            }
        }
        return Ok(found);
    }
}

/// Programs that are one bit simpler, the shorter ones first.
fn simpler(found: &Difference) -> Vec<Program> {
    let program = &found.program;
    let mut all = Vec::new();
    if found.at + 1 < program.steps.len() {
        // What follows the difference has nothing to do with it.
        let mut shorter = program.clone();
        shorter.steps.truncate(found.at + 1);
        all.push(shorter);
    }
    for at in (0..program.steps.len()).rev() {
        let mut shorter = program.clone();
        let gone = shorter.steps.remove(at);
        if let Some(Outcome::Born(born)) = found.world.outcomes.get(at)
            && let Ok(born) = Who::try_from(*born)
        {
            all.push(without(&shorter, born, None));
            all.push(without(&shorter, born, Some(gone.who)));
        }
        all.push(shorter);
    }
    if let Some(last) = program.first.checked_sub(1).filter(|last| *last > 0) {
        for instead in [None, Some(0)] {
            all.push(Program { first: last, ..without(program, last, instead) });
        }
    }
    if program.orphans == Orphans::Kept {
        all.push(Program { orphans: Orphans::Reaped, ..program.clone() });
    }
    all.extend(replaced(program, |step| step.operation.words_mut(), &Word::ALL));
    all.extend(replaced(program, |step| step.operation.numbers_mut(), &numbers(program)));
    let processes: Vec<Who> = (0..PROCESSES_MAX).collect();
    all.extend(replaced(program, whos, &processes));
    all
}

/// A program without a process, whose steps another one makes, or nobody.
fn without(program: &Program, gone: Who, instead: Option<Who>) -> Program {
    let mut fewer = program.clone();
    fewer.steps.retain(|step| step.who != gone || instead.is_some());
    for who in fewer.steps.iter_mut().flat_map(whos) {
        if *who == gone {
            *who = instead.unwrap_or(gone);
        } else if *who > gone {
            *who -= 1;
        }
    }
    fewer
}

/// Programs with an earlier one of a list in the place of a later one: everywhere, or at one place.
fn replaced<T: Copy + Eq>(
    program: &Program,
    places: impl Fn(&mut Step) -> Vec<&mut T>,
    list: &[T],
) -> Vec<Program> {
    let mut all = Vec::new();
    for (at, later) in list.iter().enumerate() {
        for earlier in &list[..at] {
            let mut everywhere = program.clone();
            for place in everywhere.steps.iter_mut().flat_map(&places) {
                if place == later {
                    *place = *earlier;
                }
            }
            if everywhere == *program {
                continue;
            }
            all.push(everywhere);
            for at in 0..program.steps.len() {
                let mut once = program.clone();
                let mut found = places(&mut once.steps[at]);
                if let Some(place) = found.iter_mut().find(|place| **place == later) {
                    **place = *earlier;
                    all.push(once);
                }
            }
        }
    }
    all
}

/// The processes that a step is about.
fn whos(step: &mut Step) -> Vec<&mut Who> {
    std::iter::once(&mut step.who).chain(step.operation.who_mut()).collect()
}

/// The descriptors of a program and those that it could have in their place, rising.
fn numbers(program: &Program) -> Vec<Number> {
    let mut steps = program.steps.clone();
    let used = steps.iter_mut().flat_map(|step| step.operation.numbers_mut());
    let used = used.map(|number| *number);
    used.chain(3..6).collect::<BTreeSet<_>>().into_iter().collect()
}
