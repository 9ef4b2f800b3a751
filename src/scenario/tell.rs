//! Tells stories, as many at once as there are processors, on the host, in the world, or both.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use mortmain_harness::scenario::Story;
use mortmain_harness::scenario::runner::{self, RunError};
use mortmain_harness::scenario::telling::{Difference, Told, differences};
use mortmain_harness::scenario::world::Tellable;

use super::{Options, missing};
use crate::interrupt::Interrupt;

/// How it went with a story.
pub(super) struct Went {
    /// With real processes, if it was to be told so.
    pub(super) host: Option<OnHost>,
    /// In the simulated kernel; `None` also where that lacks what every case needs.
    pub(super) world: Option<Told>,
    /// What the two do not agree on.
    pub(super) differences: Vec<Difference>,
}

/// How it went with real processes.
pub(super) enum OnHost {
    Told(Told),
    Skipped(String),
    BrokeOff(RunError),
}

/// Tells them. What nobody wants to know any more is left out.
pub(super) fn tell(
    stories: &[&Story],
    lab: &Path,
    options: &Options,
    interrupt: &Interrupt,
    mut progress: impl FnMut(u64, &str),
) -> Vec<Option<Went>> {
    let queue: Mutex<VecDeque<usize>> = Mutex::new((0..stories.len()).collect());
    let mut went: Vec<Option<Went>> = stories.iter().map(|_| None).collect();
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let (tell, told) = channel();
        for _ in 0..jobs {
            let tell = tell.clone();
            let queue = &queue;
            scope.spawn(move || work(queue, stories, lab, options, interrupt, &tell));
        }
        drop(tell);
        let mut done = 0;
        while let Ok((at, one)) = told.recv() {
            done += 1;
            progress(done, &stories[at].name);
            went[at] = Some(one);
        }
    });
    went
}

fn work(
    queue: &Mutex<VecDeque<usize>>,
    stories: &[&Story],
    lab: &Path,
    options: &Options,
    interrupt: &Interrupt,
    tell: &Sender<(usize, Went)>,
) {
    while !interrupt.is_asked() {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(at) = next else { return };
        if tell.send((at, tell_one(stories[at], lab, options))).is_err() {
            return;
        }
    }
}

fn tell_one(story: &Story, lab: &Path, options: &Options) -> Went {
    let host = options.on.host().then(|| match missing(story) {
        Some(reason) => OnHost::Skipped(reason),
        None => match runner::run(lab, story, options.subject) {
            Ok(told) => OnHost::Told(told),
            Err(error) => OnHost::BrokeOff(error),
        },
    });
    let tellable = Tellable::of(story);
    let told_there = options.on.world() && !tellable.cases.is_empty();
    let world = told_there.then(|| tellable.tell(options.subject));
    let differences = match (&host, &world) {
        (
            Some(OnHost::Told(Told::Held { verdicts: host, .. })),
            Some(Told::Held { verdicts: world, .. }),
        ) => differences(story, host, world),
        _ => Vec::new(),
    };
    Went { host, world, differences }
}
