//! `bench backlog`: many leftovers, no room, several starts at once, each of them killed (b2).
//!
//! Programs start among the leftovers, some at a time, sweep beside their work, and are killed as
//! soon as the first of them has removed something. After every such start some of those from
//! before have to be gone (each that is killed leaves a claim of its own); whoever lives among the
//! leftovers keeps its claim; and no start is to be late.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;
use mortmain::Random;

use super::contender::sweep;
use super::field::{Living, dead, living};
use super::place::{Kind, Place};
use super::start::{self, start};
use super::told::{Row, Told};

pub(super) const HELP: &str = "\
Examples:
  mortmain-lab bench backlog                       fifty thousand leftovers on each file system
  mortmain-lab bench backlog --leftovers 2000      a quick look

Programs start among the leftovers, each with a sweep beside its work, and are killed when the first
of them has removed something. After every such start some of the leftovers from before it have to be
gone, and after one whole sweep at the end all of them; whoever lives keeps its claim. How late the
first answers come is told beside those in a root without leftovers.

This is done on a tmpfs whose every inode is taken, and on ext4, in a file in memory, with room. Only
root may mount them.

Exit codes:
  0   whoever lives has kept its claim, every start and the last sweep removed what they had to, and
      with --gate no first answer was late
  1   a claim of somebody who lives is gone, a start removed none of the leftovers, the last sweep left
      one, or (with --gate) a first answer was late
  2   wrong usage
  3   interrupted; what was measured is printed
  70  a bug in the lab
  77  the platform lacks what is needed";

/// What to begin with.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// How many leftovers there are
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    leftovers: u64,
    /// How many claims of owners who live lie among them
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000))]
    living: u64,
    /// How many programs start at once
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=64))]
    at_once: u64,
    /// How often they start, and are killed
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000))]
    starts: u64,
    /// End with 1 also where a first answer was late
    #[arg(long)]
    pub(super) gate: bool,
}

impl Options {
    /// What [`work`] reads them from.
    pub(super) fn to_args(&self) -> Vec<String> {
        let numbers = [self.leftovers, self.living, self.at_once, self.starts];
        std::iter::once("backlog".into()).chain(numbers.map(|n| n.to_string())).collect()
    }
}

/// Does all of it. It runs in a cell.
pub(super) fn work(args: &[&str]) -> io::Result<()> {
    let numbers: Result<Vec<u64>, _> = args.iter().map(|arg| arg.parse()).collect();
    let numbers = numbers.map_err(io::Error::other)?;
    let [leftovers, living, at_once, starts] = numbers[..] else {
        return Err(io::Error::other("it was not told what to begin with"));
    };
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| kind.is_there()).collect();
    let of = kinds.len() as u64 * (starts + 3);
    for (at, kind) in kinds.into_iter().enumerate() {
        let done = at as u64 * (starts + 3);
        Backlog { kind, leftovers, living, at_once, starts, done, of }.work()?;
    }
    Told::Done.tell();
    Ok(())
}

struct Backlog {
    kind: Kind,
    leftovers: u64,
    living: u64,
    at_once: u64,
    starts: u64,
    done: u64,
    of: u64,
}

impl Backlog {
    fn step(&mut self, now: &str) {
        Told::At { done: self.done, of: self.of, now: now.into() }.tell();
        self.done += 1;
    }

    fn work(mut self) -> io::Result<()> {
        // A claim without files has four inodes; the rest is for the directories around them.
        let inodes = (self.leftovers + self.living) * 4 + 100;
        let inodes = (self.kind == Kind::Tmpfs).then_some(inodes);
        let mut place = Place::mount(self.kind, self.leftovers + self.living, inodes)?;
        let (empty, root) = (place.root()?, place.root()?);
        self.step("leftovers are made");
        let (_owners, whole) = self.among(&root)?;
        if self.kind == Kind::Tmpfs {
            take_inodes(place.path())?;
        }
        self.step("starts without leftovers");
        let mut alone = Vec::new();
        for _ in 0..self.starts {
            alone.extend(start(&empty, self.at_once, false)?);
        }
        let mut among = Vec::new();
        let (mut before, mut gone) = (claims(&root)?, 0);
        for number in 1..=self.starts {
            self.step("starts among leftovers");
            if before.len() as u64 == self.living {
                break;
            }
            among.extend(start(&root, self.at_once, true)?);
            // Those that start and are killed leave claims of their own.
            let now = claims(&root)?;
            let went = before.difference(&now).count() as u64;
            if went == 0 {
                let all = before.len();
                Told::Wrong(format!("after start {number} all {all} from before are left")).tell();
            }
            (before, gone) = (now, gone + went);
            unharmed(&whole);
        }
        let what = format!("first answer among leftovers, of which {gone} went");
        start::tell(self.kind.name(), &alone, self.leftovers, &what, &among);
        self.step("a sweep to the end");
        let (report, swept) = sweep(&root)?;
        unharmed(&whole);
        let left = claims(&root)?.len() as u64;
        if left != self.living {
            Told::Wrong(format!("{left} are left after a whole sweep: {report}")).tell();
        }
        let removed = report.removed() as u64;
        Row::of_claims(self.kind.name(), removed, "the sweep to the end", &[swept.whole]).tell();
        Ok(())
    }

    /// Makes leftovers, with the living spread among them.
    fn among(&self, root: &Path) -> io::Result<(Vec<Living>, Whole)> {
        let mut owners = Vec::new();
        for part in 0..self.living {
            let share = |of: u64| of * (part + 1) / self.living - of * part / self.living;
            dead(root, share(self.leftovers), 0)?;
            owners.push(living(root, 1, 0)?);
        }
        let living = owners.iter().flat_map(Living::claims);
        let whole = living.map(|claim| Ok((claim.clone(), fs::metadata(claim)?.ino())));
        let whole = whole.collect::<io::Result<_>>()?;
        Ok((owners, whole))
    }
}

/// The claims of the living, and their inodes.
type Whole = BTreeMap<PathBuf, u64>;

/// Says which claim of somebody who lives is not what it was.
fn unharmed(whole: &Whole) {
    for (claim, inode) in whole {
        let parts = ["owner", "commands", "files"].map(|part| claim.join(part));
        let is_whole = parts.iter().all(|part| part.symlink_metadata().is_ok());
        if !is_whole || fs::metadata(claim).ok().map(|meta| meta.ino()) != Some(*inode) {
            Told::Wrong(format!("{} is gone, and its owner lives", claim.display())).tell();
        }
    }
}

/// The claims that there are, by their random parts, which stagings and tombstones have as well.
fn claims(root: &Path) -> io::Result<BTreeSet<String>> {
    let names = fs::read_dir(root)?.map(|entry| Ok(entry?.file_name()));
    let random = |name: OsString| {
        let name = name.into_string().ok()?;
        let (_, rest) = name.trim_start_matches('.').split_once('-')?;
        rest.get(..Random::BYTES).map(str::to_owned)
    };
    let randoms = names.filter_map(|name| name.map(random).transpose());
    randoms.collect()
}

/// Makes empty files until there is no inode for another.
fn take_inodes(at: &Path) -> io::Result<()> {
    let dir = at.join("taken");
    fs::create_dir(&dir)?;
    for number in 0_u64.. {
        match fs::File::create(dir.join(number.to_string())) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
