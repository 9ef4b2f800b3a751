//! Walking a tree that may be hostile (h2–h6).
//!
//! Every directory is opened by one name below an open handle, never through
//! `..`, never across a mount, never through a link. The walk keeps its way
//! back in memory, not on the stack and not in descriptors: at most [`WINDOW`]
//! handles on the way are open, spread over its length. One that was closed is
//! opened again by walking down from the nearest one that is open, and is
//! compared with what it was the first time. So depth costs time, a little more
//! than in proportion, and nothing else.

use alloc::vec::Vec;

use crate::evidence::{Hindrance, Obstacle};
use crate::sys::{Answer, DirEntry, Errno, Fd, Kernel, Kind, Name, PathBytes, Stat};

/// Handles that a walk keeps open at most.
const WINDOW: usize = 16;

/// Times that a directory is visited again after something in it was in the
/// way, before the walk believes it.
const PASSES: u8 = 3;

/// Obstacles that are told of one claim; the rest are as good as known.
const TOLD_MAX: usize = 16;

/// What is done to a tree on the way.
pub(crate) trait Visitor<K: Kernel> {
    /// Before a directory is entered; `parent` and `name` are where it was
    /// found.
    fn enter(
        &mut self,
        parent: &Fd<K>,
        name: &Name,
        dir: &Fd<K>,
        stat: &Stat,
    ) -> Result<Enter, Hindrance>;

    /// For everything that is not a directory.
    fn leaf(&mut self, parent: &Fd<K>, name: &Name) -> Result<(), Hindrance>;

    /// After everything in a directory was visited and nothing stood in the
    /// way. Answers whether to visit it once more.
    fn leave(&mut self, parent: &Fd<K>, name: &Name) -> Result<Again, Hindrance>;

    /// Whether an obstacle ends the walk.
    fn stops(&self, what: &Hindrance) -> bool;

    /// Opens a directory.
    fn open(&self, parent: &Fd<K>, name: &Name) -> Answer<Fd<K>>;

    /// What stands in the way, where a directory could not be opened.
    fn explain(&self, parent: &Fd<K>, name: &Name, errno: Errno) -> Hindrance;
}

/// What becomes of a directory before its visit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Enter {
    /// It is visited.
    Visit,
    /// It is passed by: there is nothing left to do about it.
    Pass,
}

/// What becomes of a directory after its visit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Again {
    No,
    Yes,
}

/// What a walk met.
#[derive(Debug, Default)]
pub(crate) struct Met {
    /// What stood in the way, as far as it is told.
    pub(crate) told: Vec<Obstacle>,
    /// What ended the walk, if something did.
    pub(crate) stopped_by: Option<Obstacle>,
}

struct Frame<K: Kernel> {
    name: Name,
    stat: Stat,
    /// `None` while others are open instead.
    fd: Option<Fd<K>>,
    /// Directories in it that are still to be visited.
    dirs: Vec<Name>,
    clean: bool,
    passes: u8,
}

/// A walk below `base`.
pub(crate) struct Walk<'w, K: Kernel, V> {
    base: &'w Fd<K>,
    visitor: &'w mut V,
    frames: Vec<Frame<K>>,
    met: Met,
}

impl<'w, K: Kernel, V: Visitor<K>> Walk<'w, K, V> {
    /// Visits everything in `base` but what `skip` names.
    pub(crate) fn run(base: &'w Fd<K>, skip: &[&str], visitor: &'w mut V) -> Met {
        let mut walk = Walk { base, visitor, frames: Vec::new(), met: Met::default() };
        let mut top = match walk.list(base, skip) {
            Ok(dirs) => dirs,
            Err(errno) => {
                walk.meet(None, Hindrance::Call { what: "reading", errno });
                Vec::new()
            }
        };
        while walk.met.stopped_by.is_none() {
            let next = match walk.frames.last_mut() {
                Some(frame) => frame.dirs.pop(),
                None => match top.pop() {
                    Some(name) => Some(name),
                    None => break,
                },
            };
            match next {
                Some(name) => walk.descend(name),
                None => walk.ascend(),
            }
        }
        walk.met
    }

    /// Visits the leaves of a directory and answers the directories in it.
    fn list(&mut self, dir: &Fd<K>, skip: &[&str]) -> Answer<Vec<Name>> {
        let mut dirs = Vec::new();
        let mut restart = true;
        loop {
            let batch = dir.read_dir(restart)?;
            restart = false;
            if batch.is_empty() || self.met.stopped_by.is_some() {
                return Ok(dirs);
            }
            for entry in batch {
                if skip.iter().any(|name| name.as_bytes() == entry.name.bytes()) {
                    continue;
                }
                if is_dir(dir, &entry) {
                    dirs.push(entry.name);
                    continue;
                }
                let visited = loop {
                    match self.visitor.leaf(dir, &entry.name) {
                        // CHECK(h6-leaf): to look at a name takes a descriptor, too.
                        Err(Hindrance::Call { errno: Errno::EMFILE, .. }) if self.give_back() => {}
                        visited => break visited,
                    }
                };
                if let Err(what) = visited {
                    self.meet(Some(&entry.name), what);
                }
            }
        }
    }

    fn descend(&mut self, name: Name) {
        let opened = loop {
            let opened = self.visitor.open(current(&self.frames, self.base), &name);
            match opened {
                Err(Errno::EMFILE) if self.give_back() => {}
                answer => break answer,
            }
        };
        let opened = opened.and_then(|fd| {
            let stat = fd.stat()?;
            Ok((fd, stat))
        });
        let parent = current(&self.frames, self.base);
        let (fd, stat) = match opened {
            Ok(opened) => opened,
            // Gone meanwhile.
            Err(Errno::ENOENT) => return,
            Err(errno) => {
                let what = self.visitor.explain(parent, &name, errno);
                return self.meet(Some(&name), what);
            }
        };
        match self.visitor.enter(parent, &name, &fd, &stat) {
            Ok(Enter::Visit) => {}
            Ok(Enter::Pass) => return,
            Err(what) => return self.meet(Some(&name), what),
        }
        let (dirs, clean, passes) = (Vec::new(), true, 0);
        self.frames.push(Frame { name, stat, fd: None, dirs, clean, passes });
        let listed = self.list(&fd, &[]);
        match listed {
            Ok(dirs) => self.top_frame(|frame| frame.dirs = dirs),
            Err(errno) => self.meet(None, Hindrance::Call { what: "reading", errno }),
        }
        self.top_frame(|frame| frame.fd = Some(fd));
        // CHECK(h6-window): a descriptor a level ends at the limit, in the middle of a tree.
        if self.frames.iter().filter(|frame| frame.fd.is_some()).count() > WINDOW {
            self.give_back();
        }
    }

    fn top_frame(&mut self, change: impl FnOnce(&mut Frame<K>)) {
        if let Some(frame) = self.frames.last_mut() {
            change(frame);
        }
    }

    fn ascend(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        if let Err(what) = self.reopen() {
            // Nothing more can be done in the directory above; go on above that.
            self.meet(None, what);
            return self.top_frame(|above| above.dirs.clear());
        }
        if !frame.clean {
            // Told where it was met; the directories above cannot be empty.
            return self.top_frame(|above| above.clean = false);
        }
        let parent = current(&self.frames, self.base);
        match self.visitor.leave(parent, &frame.name) {
            Ok(Again::No) => {}
            Ok(Again::Yes) if frame.passes < PASSES => self.again(frame),
            Ok(Again::Yes) => {
                let errno = Errno::ENOTEMPTY;
                self.meet(Some(&frame.name), Hindrance::Call { what: "removing", errno });
            }
            Err(what) => self.meet(Some(&frame.name), what),
        }
    }

    /// Visits a directory once more: it was not empty after everything in it
    /// was visited, so something came, or the listing skipped something.
    fn again(&mut self, frame: Frame<K>) {
        let passes = frame.passes + 1;
        let depth = self.frames.len();
        self.descend(frame.name);
        if let Some(again) = self.frames.get_mut(depth) {
            again.passes = passes;
        }
    }

    /// Closes the open handle that is missed least: the one whose neighbours
    /// on the way are nearest to each other. Never the current one; answers
    /// whether there was one.
    fn give_back(&mut self) -> bool {
        let open: Vec<usize> = open_levels(&self.frames).collect();
        let gap = |at: usize| {
            let before = at.checked_sub(1).map_or(0, |before| open[before] + 1);
            open[at + 1] - before
        };
        // The last one is the current one, or is needed to come to it.
        let spare = (0..open.len().saturating_sub(1)).min_by_key(|at| gap(*at));
        match spare {
            Some(at) => {
                self.frames[open[at]].fd = None;
                true
            }
            None => false,
        }
    }

    /// Sees to it that the current directory is open, where its handle was
    /// given back.
    fn reopen(&mut self) -> Result<(), Hindrance> {
        let depth = self.frames.len();
        if self.frames.last().is_none_or(|frame| frame.fd.is_some()) {
            return Ok(());
        }
        let nearest = open_levels(&self.frames).last();
        let first = nearest.map_or(0, |level| level + 1);
        // Some of them stay open on the way, so that the way back is not walked for each.
        let room = WINDOW.saturating_sub(open_levels(&self.frames).count()).max(2);
        let stride = (depth - first).div_ceil(room).max(1);
        let mut passing: Option<Fd<K>> = None;
        for level in first..depth {
            let fd = self.open_again(level, passing.as_ref())?;
            let stays = level + 1 == depth || (level - first) % stride == stride - 1;
            if stays {
                self.frames[level].fd = Some(fd);
                passing = None;
            } else {
                passing = Some(fd);
            }
        }
        Ok(())
    }

    /// Opens the directory of one level, below the one above it.
    fn open_again(&mut self, level: usize, passing: Option<&Fd<K>>) -> Result<Fd<K>, Hindrance> {
        let failed = |errno| Hindrance::Call { what: "opening again", errno };
        let fd = loop {
            let frame = &self.frames[level];
            let above = level.checked_sub(1).and_then(|above| self.frames[above].fd.as_ref());
            let parent = passing.or(above).unwrap_or(self.base);
            match self.visitor.open(parent, &frame.name) {
                Err(Errno::EMFILE) if self.give_back() => {}
                answer => break answer.map_err(failed)?,
            }
        };
        let stat = fd.stat().map_err(failed)?;
        // CHECK(h1-same-on-return): by its name alone it may be another directory now.
        if !stat.same_inode(&self.frames[level].stat) {
            return Err(Hindrance::NameChanged);
        }
        Ok(fd)
    }

    /// Notes an obstacle at `name` in the current directory.
    fn meet(&mut self, name: Option<&Name>, what: Hindrance) {
        if let Some(frame) = self.frames.last_mut() {
            frame.clean = false;
        }
        let above = path_of(&self.frames);
        let path = name.map_or(above.clone(), |name| above.join(name.bytes()));
        let obstacle = Obstacle { path, what };
        if self.visitor.stops(&what) {
            // Beside the others, whose number is bounded: it decides.
            self.met.stopped_by.get_or_insert(obstacle);
        } else if self.met.told.len() < TOLD_MAX {
            self.met.told.push(obstacle);
        }
    }
}

fn is_dir<K: Kernel>(dir: &Fd<K>, entry: &DirEntry) -> bool {
    match entry.kind {
        Kind::Dir => true,
        // A directory that is taken for a leaf is refused by `unlink` and told.
        Kind::Unknown => dir.stat_at(&entry.name).is_ok_and(|stat| stat.kind == Kind::Dir),
        // CHECK(h3-link-is-leaf): what it points to is not in the claim.
        Kind::File | Kind::Link | Kind::Other => false,
    }
}

/// The levels whose handles are open, from the top.
fn open_levels<K: Kernel>(frames: &[Frame<K>]) -> impl Iterator<Item = usize> {
    frames.iter().enumerate().filter(|(_, frame)| frame.fd.is_some()).map(|(level, _)| level)
}

fn current<'f, K: Kernel>(frames: &'f [Frame<K>], base: &'f Fd<K>) -> &'f Fd<K> {
    // OK because `reopen` opened the last one before anything is done in it.
    frames.last().map_or(base, |frame| frame.fd.as_ref().expect("the current directory is open"))
}

fn path_of<K: Kernel>(frames: &[Frame<K>]) -> PathBytes {
    frames.iter().fold(PathBytes::default(), |path, frame| path.join(frame.name.bytes()))
}
