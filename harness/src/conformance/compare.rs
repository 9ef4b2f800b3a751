//! What the two sides say of one program, beside each other.

use std::collections::BTreeSet;
use std::fmt;

use super::operation::Operation;
use super::outcome::{Outcome, Run};
use super::program::{Program, Step};

/// A difference that is known and may stay.
#[derive(Debug)]
pub struct Declared {
    /// What it is called.
    pub id: &'static str,
    /// What differs, and why that is as it should be.
    pub why: &'static str,
    /// Whether the outcomes of a step differ by no more than that.
    covers: fn(&Place<'_>) -> bool,
}

/// A step whose outcomes differ.
#[derive(Debug)]
struct Place<'p> {
    program: &'p Program,
    at: usize,
    world: &'p Run,
    host: &'p Run,
}

impl<'p> Place<'p> {
    fn outcomes(&self) -> (&'p Outcome, &'p Outcome) {
        (&self.world.outcomes[self.at], &self.host.outcomes[self.at])
    }

    /// What was done before, on both sides.
    fn done(&self) -> impl Iterator<Item = &'p Step> {
        let outcomes = self.world.outcomes.iter().zip(&self.host.outcomes);
        let steps = self.program.steps[..self.at].iter().zip(outcomes);
        steps.filter(|(_, (world, host))| world.is_good() && host.is_good()).map(|(step, _)| step)
    }

    fn operation(&self) -> Operation {
        self.program.steps[self.at].operation
    }
}

/// Everything that may differ.
pub const DECLARED: &[Declared] = &[
    Declared {
        id: "listing-while-changed",
        why: "POSIX leaves open whether a listing that is gone on with has names that came or went \
              since it was last read, and kernels differ. Nothing here relies on either",
        covers: listing_while_changed,
    },
    Declared {
        id: "holder-that-is-gone",
        why: "the world is the initial pid namespace, where Linux tells whoever took a lock also when \
              it is long reaped; a cell is another one, where Linux tells it as long as its number is \
              in use",
        covers: holder_that_is_gone,
    },
    Declared {
        id: "use-of-what-is-removed",
        why: "a path in `/proc` keeps leading through a claim when what it leads to is removed, be it open \
              or mounted, and is evidence of life; in the world what is removed has no path. So the world removes more, \
              and is the stricter judge",
        covers: use_of_what_is_removed,
    },
];

fn holder_that_is_gone(place: &Place<'_>) -> bool {
    let (Outcome::Pids(world), Outcome::Pids(host)) = place.outcomes() else { return false };
    let [holder] = world[..] else { return false };
    let ended = place.done().any(|step| match step.operation {
        Operation::Killed | Operation::Exit => usize::try_from(holder) == Ok(step.who),
        Operation::KillGroup(_) => true,
        _ => false,
    });
    // That it has ended is not enough: until it is reaped, its number is in use.
    let gone = format!("p{holder}: ENOENT;");
    let gone = place.host.end.iter().any(|line| line.starts_with(&gone));
    matches!(place.operation(), Operation::LockHolder(_)) && host.is_empty() && ended && gone
}

fn use_of_what_is_removed(place: &Place<'_>) -> bool {
    let (Outcome::Uses(world), Outcome::Uses(host)) = place.outcomes() else { return false };
    let removed = place.done().any(|step| {
        use Operation::{Rename, Rmdir, Unlink};
        matches!(step.operation, Rename(..) | Rmdir(..) | Unlink(..))
    });
    let more = host.iter().filter(|how| !world.contains(how));
    removed
        && world.iter().all(|how| host.contains(how))
        && more.into_iter().all(|how| how.ends_with("Descriptor") || how.ends_with("MountOf"))
}

fn listing_while_changed(place: &Place<'_>) -> bool {
    let (Outcome::Entries(world), Outcome::Entries(host)) = place.outcomes() else { return false };
    if !matches!(place.operation(), Operation::ReadDirOn(_)) {
        return false;
    }
    // Whichever listing this goes on with cannot have begun before the first of the program.
    let lists =
        |step: &&Step| matches!(step.operation, Operation::ReadDir(_) | Operation::ReadDirOn(_));
    let since = place.done().skip_while(|step| !lists(step));
    let changed: BTreeSet<String> = since
        .flat_map(|step| step.operation.changes())
        .map(|word| word.name().to_string())
        .collect();
    let settled = |entries: &[(String, String)]| {
        let settled = entries.iter().filter(|(name, _)| !changed.contains(name));
        settled.cloned().collect::<Vec<_>>()
    };
    settled(world) == settled(host)
}

/// Where two runs of a program differ first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The program.
    pub program: Program,
    /// The step, counted from 0; the number of steps for the look at the end.
    pub at: usize,
    /// What came of it in the world.
    pub world: Run,
    /// What came of it on the real kernel.
    pub host: Run,
    /// Whether it is known not to come again.
    pub once: bool,
}

/// Compares two runs of a program, first the world's.
#[must_use]
pub fn compare(program: &Program, world: &Run, host: &Run) -> Option<Difference> {
    let differs = |at: &usize| match (world.outcomes.get(*at), host.outcomes.get(*at)) {
        (Some(one), Some(other)) => {
            let place = Place { program, at: *at, world, host };
            one != other && !DECLARED.iter().any(|declared| (declared.covers)(&place))
        }
        (one, other) => one != other,
    };
    let step = (0..program.steps.len()).find(differs);
    let at = step.or_else(|| (world.end != host.end).then_some(program.steps.len()))?;
    let (world, host) = (world.clone(), host.clone());
    Some(Difference { program: program.clone(), at, world, host, once: false })
}

/// The program, with what came of each step: of those that differ, on both sides.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = Program { steps: Vec::new(), ..self.program.clone() };
        write!(f, "{head}")?;
        for (at, step) in self.program.steps.iter().enumerate().take(self.at + 1) {
            write!(f, "\n{:>3}. {:<32} ", at + 1, step.to_string())?;
            let (world, host) = (&self.world.outcomes[at], &self.host.outcomes[at]);
            if world == host {
                write!(f, "{world}")?;
            } else {
                write!(f, "in the world: {world}; on the kernel: {host}")?;
            }
        }
        if self.at == self.program.steps.len() {
            f.write_str("\nat the end")?;
            for (side, mine, other) in [
                ("in the world", &self.world.end, &self.host.end),
                ("on the kernel", &self.host.end, &self.world.end),
            ] {
                for line in mine.iter().filter(|line| !other.contains(line)) {
                    write!(f, "\n     {side}: {line}")?;
                }
            }
        }
        if self.once {
            f.write_str("\nthe same program showed no difference when it was run again")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{Orphans, Word};

    fn program(steps: &[(usize, Operation)]) -> Program {
        let steps = steps.iter().map(|(who, operation)| Step { who: *who, operation: *operation });
        Program { first: 2, orphans: Orphans::Reaped, steps: steps.collect() }
    }

    /// Where runs differ whose last steps have these outcomes, all others having come to `before`, and
    /// the end being this.
    fn differ_after(
        before: &Outcome,
        end: &[&str],
        program: &Program,
        world: Outcome,
        host: Outcome,
    ) -> Option<usize> {
        let run = |last| {
            let mut outcomes = vec![before.clone(); program.steps.len() - 1];
            outcomes.push(last);
            Run { outcomes, end: end.iter().map(|line| (*line).into()).collect() }
        };
        compare(program, &run(world), &run(host)).map(|difference| difference.at)
    }

    /// The same where all others were done.
    fn differ(program: &Program, world: Outcome, host: Outcome) -> Option<usize> {
        differ_after(&Outcome::Done, &[], program, world, host)
    }

    fn entries(names: &[&str]) -> Outcome {
        Outcome::Entries(names.iter().map(|name| ((*name).into(), "a file".into())).collect())
    }

    #[test]
    fn the_first_step_that_differs_is_told_or_the_end() {
        let steps = program(&[(0, Operation::Lock(3)), (1, Operation::Lock(3))]);
        assert_eq!(differ(&steps, Outcome::Done, Outcome::Done), None);
        assert_eq!(differ(&steps, Outcome::Done, Outcome::Failed(11)), Some(1));
        let run = |end: &str| Run { outcomes: vec![Outcome::Done; 2], end: vec![end.into()] };
        let found = compare(&steps, &run("held"), &run("free")).expect("a difference");
        assert_eq!(found.at, 2);
        let shown = found.to_string();
        assert!(shown.ends_with("in the world: held\n     on the kernel: free"), "{shown}");
    }

    #[test]
    fn a_listing_may_lack_only_what_came_or_went_since_the_first() {
        let create = Operation::CreateFile(3, Word::B);
        let on = Operation::ReadDirOn(3);
        let changed = program(&[(0, Operation::ReadDir(3)), (0, create), (0, on)]);
        assert_eq!(differ(&changed, entries(&["b"]), entries(&[])), None);
        assert_eq!(differ(&changed, entries(&["a", "b"]), entries(&[])), Some(2));
        assert_eq!(differ(&changed, entries(&["b"]), Outcome::Failed(2)), Some(2));
        let anew = program(&[(0, Operation::ReadDir(3)), (0, create), (0, Operation::ReadDir(3))]);
        assert_eq!(differ(&anew, entries(&["b"]), entries(&[])), Some(2));
        let before = program(&[(0, create), (0, on)]);
        assert_eq!(differ(&before, entries(&["b"]), entries(&[])), Some(1));
        let failed = Outcome::Failed(17);
        let (world, host) = (entries(&["b"]), entries(&[]));
        assert_eq!(differ_after(&failed, &[], &changed, world, host), Some(2));
    }

    #[test]
    fn a_holder_may_be_untold_only_when_it_has_ended() {
        let told = || Outcome::Pids(vec![1]);
        let untold = || Outcome::Pids(Vec::new());
        let ask = (0, Operation::LockHolder(3));
        let gone = &["p1: ENOENT; exists: ESRCH; its group: ESRCH"][..];
        let gone_then = |program: &Program, world, host| {
            differ_after(&Outcome::Done, gone, program, world, host)
        };
        let dead = program(&[(1, Operation::Lock(3)), (1, Operation::Killed), ask]);
        assert_eq!(gone_then(&dead, told(), untold()), None);
        assert_eq!(gone_then(&dead, untold(), told()), Some(2));
        assert_eq!(gone_then(&dead, told(), Outcome::Pids(vec![0])), Some(2));
        let zombie = &["p1: zombie, group p1, 1 threads; exists: done; its group: done"];
        assert_eq!(differ_after(&Outcome::Done, zombie, &dead, told(), untold()), Some(2));
        let other = program(&[(1, Operation::Lock(3)), (0, Operation::Killed), ask]);
        assert_eq!(gone_then(&other, told(), untold()), Some(2));
        let not_asked = program(&[(1, Operation::Killed), (0, Operation::Pids)]);
        assert_eq!(gone_then(&not_asked, told(), untold()), Some(1));
        let group = program(&[(1, Operation::Lock(3)), (0, Operation::KillGroup(1)), ask]);
        assert_eq!(gone_then(&group, told(), untold()), None);
        let refused = Outcome::Failed(1);
        assert_eq!(differ_after(&refused, gone, &group, told(), untold()), Some(2));
    }

    #[test]
    fn more_use_may_be_seen_only_of_what_is_removed_and_open() {
        let uses = |how: &[&str]| Outcome::Uses(how.iter().map(|how| (*how).into()).collect());
        let (open, carried) = ("0 by Descriptor", "0 by Cookie");
        let ask = (0, Operation::Uses(1));
        let removed = program(&[(0, Operation::Rmdir(4, Word::A)), ask]);
        assert_eq!(differ(&removed, uses(&[]), uses(&[open])), None);
        assert_eq!(differ(&removed, uses(&[open]), uses(&[])), Some(1));
        assert_eq!(differ(&removed, uses(&[]), uses(&[carried])), Some(1));
        let whole = program(&[(0, Operation::Mkdir(4, Word::A)), ask]);
        assert_eq!(differ(&whole, uses(&[]), uses(&[open])), Some(1));
        let failed = Outcome::Failed(39);
        assert_eq!(differ_after(&failed, &[], &removed, uses(&[]), uses(&[open])), Some(1));
    }
}
