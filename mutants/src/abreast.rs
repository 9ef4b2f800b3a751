//! Several pieces of work at once, by workers, each with what it needs for itself.
//!
//! A test on real processes mostly waits: for programs to start, and where it is to fail, often for what
//! never comes. So several take little longer than one.
//!
//! Invariants:
//! * Results are told in the order of the pieces, whoever is done first, so that the same run says the
//!   same.
//! * When something goes wrong, or enough is known, no further piece is begun. Those that were begun are
//!   done to their end, and told as well, but for those behind the one that was enough.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// How all of it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// Every piece is done.
    All,
    /// It was interrupted, or enough was known.
    Early,
}

/// The pieces of work, as the workers share them.
struct Pile<'p, T> {
    pieces: &'p [T],
    next: AtomicUsize,
    stopped: AtomicBool,
}

impl<T> Pile<'_, T> {
    /// The next piece with its place, if there is one and none was enough.
    fn take(&self) -> Option<(usize, &T)> {
        if self.stopped.load(Ordering::SeqCst) {
            return None;
        }
        let place = self.next.fetch_add(1, Ordering::SeqCst);
        self.pieces.get(place).map(|piece| (place, piece))
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }
}

type Done<R> = (usize, anyhow::Result<Option<R>>);

/// Works on all pieces, on so many at once. `begin` makes what a worker needs, `work` does a piece, or
/// gives nothing if it was interrupted, and `tell` gets each result, and says whether it is enough.
///
/// # Errors
///
/// The first of any piece, when the others have been told.
pub(crate) fn abreast<T: Sync, W, R: Send>(
    pieces: &[T],
    at_once: u16,
    begin: impl Fn() -> anyhow::Result<W> + Sync,
    work: impl Fn(&mut W, &T) -> anyhow::Result<Option<R>> + Sync,
    tell: impl FnMut(R) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<Finish> {
    let pile = Pile { pieces, next: AtomicUsize::new(0), stopped: AtomicBool::new(false) };
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for _ in 0..pieces.len().min(usize::from(at_once)) {
            let (pile, begin, work, sender) = (&pile, &begin, &work, sender.clone());
            scope.spawn(move || labour(pile, begin, work, &sender));
        }
        drop(sender);
        Teller { pile: &pile, tell, enough: false, failure: None }.collect(&receiver)
    })
}

/// What one worker does.
fn labour<T, W, R>(
    pile: &Pile<'_, T>,
    begin: impl Fn() -> anyhow::Result<W>,
    work: impl Fn(&mut W, &T) -> anyhow::Result<Option<R>>,
    done: &Sender<Done<R>>,
) {
    let mut worker = None;
    while let Some((place, piece)) = pile.take() {
        let result = match &mut worker {
            Some(worker) => work(worker, piece),
            None => begin().and_then(|new| work(worker.insert(new), piece)),
        };
        if !matches!(result, Ok(Some(_))) {
            pile.stop();
        }
        // OK to go unheard: who collects ends early by a panic only.
        let _ = done.send((place, result));
    }
}

/// Collects what the workers have done, and tells it.
struct Teller<'p, T, F> {
    pile: &'p Pile<'p, T>,
    tell: F,
    enough: bool,
    failure: Option<anyhow::Error>,
}

impl<T, F> Teller<'_, T, F> {
    /// Tells the results in the order of their pieces; those behind a gap when all have ended.
    fn collect<R>(mut self, done: &Receiver<Done<R>>) -> anyhow::Result<Finish>
    where
        F: FnMut(R) -> anyhow::Result<ControlFlow<()>>,
    {
        let (mut held, mut due) = (BTreeMap::new(), 0);
        for (place, result) in done {
            match result {
                Ok(Some(result)) => {
                    held.insert(place, result);
                }
                Ok(None) => {}
                Err(error) => self.fail(error),
            }
            while let Some(result) = held.remove(&due) {
                self.tell(result);
                due += 1;
            }
        }
        for result in held.into_values() {
            self.tell(result);
        }
        match self.failure {
            Some(error) => Err(error),
            None if due == self.pile.pieces.len() && !self.enough => Ok(Finish::All),
            None => Ok(Finish::Early),
        }
    }

    fn tell<R>(&mut self, result: R)
    where
        F: FnMut(R) -> anyhow::Result<ControlFlow<()>>,
    {
        if self.enough {
            return;
        }
        match (self.tell)(result) {
            Ok(ControlFlow::Continue(())) => return,
            Ok(ControlFlow::Break(())) => {}
            Err(error) => self.fail(error),
        }
        self.enough = true;
        self.pile.stop();
    }

    fn fail(&mut self, error: anyhow::Error) {
        self.failure.get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// The results that are told of ten pieces, with how it ends.
    fn told(
        at_once: u16,
        work: impl Fn(u32) -> anyhow::Result<Option<u32>> + Sync,
        last: u32,
    ) -> (Vec<u32>, anyhow::Result<Finish>) {
        let pieces: Vec<u32> = (0..10).collect();
        let mut told = Vec::new();
        let finish = abreast(
            &pieces,
            at_once,
            || Ok(()),
            |(), &piece| work(piece),
            |piece| {
                told.push(piece);
                Ok(if piece == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            },
        );
        (told, finish)
    }

    #[test]
    fn they_work_at_the_same_time_and_tell_in_order() {
        // Each pair of pieces meets here, or nobody ends.
        let pair = Barrier::new(2);
        let meet = |piece| {
            pair.wait();
            Ok(Some(piece))
        };
        let (told, finish) = told(2, meet, 99);
        assert_eq!(told, (0..10).collect::<Vec<u32>>());
        assert_eq!(finish.unwrap(), Finish::All);
    }

    #[test]
    fn what_is_enough_is_the_last_that_is_told() {
        let (told, finish) = told(3, |piece| Ok(Some(piece)), 4);
        assert_eq!(told, [0, 1, 2, 3, 4]);
        assert_eq!(finish.unwrap(), Finish::Early);
    }

    #[test]
    fn what_was_found_out_before_and_beside_an_error_is_told() {
        let pair = Barrier::new(2);
        let meet = |piece| {
            // Who is quick may still begin the next one.
            if piece < 4 {
                pair.wait();
            }
            if piece == 2 { anyhow::bail!("two") } else { Ok(Some(piece)) }
        };
        let (told, finish) = told(2, meet, 99);
        assert_eq!(told[..3], [0, 1, 3]);
        assert_eq!(finish.unwrap_err().to_string(), "two");
    }

    #[test]
    fn an_interruption_ends_it_early() {
        let work = |piece| Ok((piece < 3).then_some(piece));
        let (told, finish) = told(1, work, 99);
        assert_eq!(told, [0, 1, 2]);
        assert_eq!(finish.unwrap(), Finish::Early);
    }

    #[test]
    fn who_cannot_begin_does_nothing() {
        let begin = || -> anyhow::Result<()> { anyhow::bail!("no socket") };
        let ended = abreast(
            &[1, 2],
            1,
            begin,
            |(), &piece| Ok(Some(piece)),
            |_: u32| panic!("nothing was done"),
        );
        assert_eq!(ended.unwrap_err().to_string(), "no socket");
    }
}
