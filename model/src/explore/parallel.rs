//! Jobs for several workers. In which order they are done must not matter.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does every job once, with at most so many workers. Each worker has something of its own to
/// work with. One job is done where it is asked for.
pub(super) fn each<J: Send, W: Send>(
    workers: &mut [W],
    jobs: &mut [J],
    work: impl Fn(&mut W, &mut J) + Sync,
) {
    let (first, others) = workers.split_first_mut().expect("a worker at least");
    if jobs.len() < 2 || others.is_empty() {
        jobs.iter_mut().for_each(|job| work(first, job));
        return;
    }
    let next = AtomicUsize::new(0);
    let jobs: Vec<Mutex<&mut J>> = jobs.iter_mut().map(Mutex::new).collect();
    let run = |worker: &mut W| {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            // OK because no two workers get one number, and a panic ends them all.
            work(worker, &mut job.lock().expect("a job that nobody else has"));
        }
    };
    let run = &run;
    thread::scope(|scope| {
        for worker in others {
            scope.spawn(move || run(worker));
        }
        run(first);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_done_once_at_any_number_of_workers() {
        for workers in 1..=3 {
            let mut jobs: Vec<u32> = (0..100).collect();
            let mut done = vec![0_usize; workers];
            each(&mut done, &mut jobs, |done, job| {
                *done += 1;
                *job += 1000;
            });
            assert_eq!(jobs, (1000..1100).collect::<Vec<u32>>());
            assert_eq!(done.iter().sum::<usize>(), 100);
        }
    }
}
