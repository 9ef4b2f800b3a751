//! `bench sweep`: the living, the dead, the scans, and the first answer of who starts among them.

use std::fs::File;
use std::io;
use std::path::Path;

use clap::Args;
use rustix::fs::{CWD, Dir, FlockOperation, Mode, OFlags, flock, openat};

use super::contender::{ALL, Contender, Swept, sweep};
use super::cost::Cost;
use super::field::{Crowd, FILES, dead, living};
use super::place::{Kind, Place};
use super::start::{self, start};
use super::told::{Medians, Row, Told};

pub(super) const HELP: &str = "\
Examples:
  mortmain-lab bench sweep                             about a minute
  mortmain-lab bench sweep --claims 1000,50000 --leftovers 50000 --rounds 3
                                                       the figures of the documentation
  mortmain-lab bench sweep --on tmpfs --gate --json    for a program to judge

What is aimed at:
  a sweep of the living, beside a bare probe of the same directories (getdents, open, flock): at
  most 1.5 times its processor time, and 5 µs a claim
  a sweep of the dead without its scans of all processes, beside `rm -rf` of the same tree: at most
  1.3 times its processor time; the scans stand beside it
  the first answer of a server that starts among leftovers: at most 5 ms later than without any

It is measured on file systems that only root may mount.

Exit codes:
  0   it was measured, and with --gate every aim was reached
  1   a claim of somebody who lives was removed, something was left, or (with --gate) an aim missed
  2   wrong usage
  3   interrupted; what was measured is printed
  70  a bug in the lab
  77  the platform lacks what is needed";

/// Most processor time of a sweep of the living, as a multiple of the probe's.
const LIVING_TIMES: f64 = 1.5;
/// The same in microseconds a claim.
const LIVING_US: f64 = 5.0;
/// Most processor time of a sweep of the dead, as a multiple of `rm -rf`.
const DEAD_TIMES: f64 = 1.3;
/// Starts for each round of the rest, as they are short and scatter.
const STARTS_A_ROUND: u64 = 4;

/// What to measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// How many claims there are
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1000,5000")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    claims: Vec<u64>,
    /// On which file systems: tmpfs, ext4 (in a file in memory)
    #[arg(long, value_name = "KIND", value_delimiter = ',', default_value = "tmpfs,ext4")]
    #[arg(value_parser = ["tmpfs", "ext4"])]
    on: Vec<String>,
    /// Among how many processes a scan looks
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "100,1000")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=30_000))]
    processes: Vec<u64>,
    /// Leftovers that a server finds at its start
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    leftovers: u64,
    /// How often everything is measured, in turn
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000))]
    rounds: u64,
    /// End with 1 where an aim was missed
    #[arg(long)]
    pub(super) gate: bool,
}

impl Options {
    /// What [`work`] reads them from.
    pub(super) fn to_args(&self) -> Vec<String> {
        let joined =
            |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        vec![
            "sweep".into(),
            joined(&self.claims),
            self.on.join(","),
            joined(&self.processes),
            self.leftovers.to_string(),
            self.rounds.to_string(),
        ]
    }
}

/// Reads numbers that commas part.
fn numbers(text: &str) -> io::Result<Vec<u64>> {
    text.split(',').map(|part| part.parse().map_err(io::Error::other)).collect()
}

/// Measures everything. It runs in a cell.
pub(super) fn work(args: &[&str]) -> io::Result<()> {
    let [claims, on, processes, leftovers, rounds] = args else {
        return Err(io::Error::other("it was not told what to measure"));
    };
    let (claims, processes) = (numbers(claims)?, numbers(processes)?);
    let (leftovers, rounds) = (numbers(leftovers)?[0], numbers(rounds)?[0]);
    let kinds: Vec<Kind> =
        on.split(',').filter_map(Kind::parse).filter(|kind| kind.is_there()).collect();
    let contenders = contenders();
    let steps = kinds.len() * claims.len() * (2 + contenders.len() + 1)
        + usize::from(!kinds.is_empty()) * (processes.len() + 1);
    let mut bench = Bench { rounds, done: 0, of: steps as u64 * rounds, contenders };
    for kind in &kinds {
        for count in &claims {
            let mut place = Place::mount(*kind, *count * 2, None)?;
            bench.living(&mut place, *count)?;
            bench.dead(&mut place, *count)?;
        }
    }
    if let Some(kind) = kinds.first() {
        let mut place = Place::mount(*kind, leftovers * 2, None)?;
        for count in processes {
            bench.scan(&mut place, count)?;
        }
        bench.starts(&mut place, leftovers)?;
    }
    Told::Done.tell();
    Ok(())
}

/// Those that are installed; says which are not.
fn contenders() -> Vec<Contender> {
    let there = |contender: &Contender| match contender.missing() {
        Some(why) => {
            Told::Note(format!("`{}` was not asked: {why}", contender.name)).tell();
            false
        }
        None => true,
    };
    ALL.into_iter().filter(there).collect()
}

struct Bench {
    rounds: u64,
    done: u64,
    of: u64,
    contenders: Vec<Contender>,
}

impl Bench {
    fn step(&mut self, now: &str) {
        Told::At { done: self.done, of: self.of, now: now.into() }.tell();
        self.done += 1;
    }

    /// Claims of owners who live: a sweep looks at each, and that is all.
    fn living(&mut self, place: &mut Place, count: u64) -> io::Result<()> {
        let root = place.root()?;
        let _owners = living(&root, count, 0)?;
        let (mut probes, mut sweeps) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            self.step("a probe of the living");
            let (held, cost) = Cost::of(|| probe(&root))?;
            if held? != count {
                return Err(io::Error::other("a probe has not met every lock"));
            }
            probes.push(cost);
            self.step("a sweep of the living");
            let (report, swept) = sweep(&root)?;
            if report.kept() as u64 != count {
                Told::Wrong(format!("a sweep has not kept all of {count} who live")).tell();
            }
            sweeps.push(swept.whole);
        }
        let name = place.kind.name();
        let row = |what, costs: &[Cost]| Row::of_claims(name, count, what, costs);
        let yardstick = row("bare probe of the living", &probes);
        let swept = row("sweep of the living", &sweeps).beside(&yardstick);
        let reached = swept.times_cpu.is_some_and(|times| times <= LIVING_TIMES)
            && swept.cpu_us.is_some_and(|cpu| cpu <= LIVING_US);
        yardstick.tell();
        swept.aiming("≤ 1.5 × and ≤ 5 µs", reached).tell();
        Ok(())
    }

    /// Claims of owners who were killed: the same tree is removed by each in turn.
    fn dead(&mut self, place: &mut Place, count: u64) -> io::Result<()> {
        let (mut sweeps, mut others) = (Vec::new(), vec![Vec::new(); self.contenders.len()]);
        for round in 0..self.rounds {
            let all = self.contenders.len() as u64 + 1;
            for turn in 0..all {
                // Who comes first finds another cache than who comes last.
                let who = ((turn + round) % all) as usize;
                let contender = self.contenders.get(who).copied();
                self.step(contender.map_or("a sweep of the dead", |other| other.name));
                let root = place.root()?;
                dead(&root, count, FILES)?;
                settle(&root)?;
                match contender.map(|other| other.clean(&root)) {
                    Some(Ok(cost)) => others[who].push(cost),
                    // There is nothing to tell without the yardstick.
                    Some(Err(error)) if who == 0 => return Err(error),
                    Some(Err(error)) => {
                        Told::Note(format!("a round is not told: {error}")).tell();
                    }
                    None => sweeps.push(swept_all(&root, count)?),
                }
            }
        }
        let name = place.kind.name();
        let row = |what, costs: &[Cost]| Row::of_claims(name, count, what, costs);
        let told = self.contenders.iter().zip(&others).filter(|(_, costs)| !costs.is_empty());
        let rows: Vec<Row> = told.map(|(other, costs)| row(other.name, costs)).collect();
        let Some(yardstick) = rows.first().cloned() else { return Ok(()) };
        let without: Vec<Cost> =
            sweeps.iter().map(|swept: &Swept| swept.whole.without(swept.scans)).collect();
        let swept = row("sweep of the dead without scans", &without).beside(&yardstick);
        let reached = swept.times_cpu.is_some_and(|times| times <= DEAD_TIMES);
        let scans: Vec<Cost> = sweeps.iter().map(|swept| swept.scans).collect();
        let made = sweeps.first().map_or(0, |swept| swept.scans_made);
        for (at, row) in rows.into_iter().enumerate() {
            if at == 0 { row.tell() } else { row.beside(&yardstick).tell() }
        }
        swept.aiming("≤ 1.3 × rm -rf", reached).tell();
        row(&format!("its scans, of which it made {made}"), &scans).beside(&yardstick).tell();
        Ok(())
    }

    /// One scan, among so many processes.
    fn scan(&mut self, place: &mut Place, processes: u64) -> io::Result<()> {
        let _crowd = Crowd::up_to(processes)?;
        // What there is, not what was asked for.
        let there = mortmain_harness::processes::processes()?.len();
        let root = place.root()?;
        let mut scans = Vec::new();
        for _ in 0..self.rounds {
            self.step("a scan");
            dead(&root, 1, 0)?;
            scans.push(swept_all(&root, 1)?.scans);
        }
        let what = format!("one scan among {there} processes");
        Row::new(place.kind.name(), 1, &what, "scan", Medians::of(&scans, 1)).tell();
        Ok(())
    }

    /// The first answer of a server among leftovers, and of one without any.
    fn starts(&mut self, place: &mut Place, leftovers: u64) -> io::Result<()> {
        let (empty, full) = (place.root()?, place.root()?);
        dead(&full, leftovers, 0)?;
        let (mut alone, mut among) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            self.step("starts");
            for _ in 0..STARTS_A_ROUND {
                alone.extend(start(&empty, 1, false)?);
                among.extend(start(&full, 1, false)?);
            }
        }
        let name = place.kind.name();
        start::tell(name, &alone, leftovers, "first answer among leftovers", &among);
        Ok(())
    }
}

/// A sweep that has to remove so many claims.
fn swept_all(root: &Path, count: u64) -> io::Result<Swept> {
    let (report, swept) = sweep(root)?;
    if report.removed() as u64 != count {
        let removed = report.removed();
        Told::Wrong(format!("a sweep has removed {removed} of {count} who are dead")).tell();
    }
    Ok(swept)
}

/// What nobody can do without who asks every claim whether its lock is held; answers how many are.
fn probe(root: &Path) -> io::Result<u64> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = openat(CWD, root, flags, Mode::empty())?;
    let mut held = 0;
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        if entry.file_name().to_bytes().starts_with(b".") {
            continue;
        }
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let claim = openat(&dir, entry.file_name(), flags, Mode::empty())?;
        held += u64::from(flock(&claim, FlockOperation::NonBlockingLockExclusive).is_err());
    }
    Ok(held)
}

/// Waits until what was made before is on its disk, so that nobody else pays for it.
fn settle(root: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(root)?)?)
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command};

    use super::*;

    #[test]
    fn a_default_of_the_help_can_be_typed_as_it_stands_there() {
        let command = Options::augment_args(Command::new("sweep"));
        let mut lists = 0;
        for arg in command.get_arguments().filter(|arg| arg.get_value_delimiter().is_some()) {
            lists += 1;
            assert_eq!(arg.get_default_values().len(), 1, "{arg}");
        }
        assert_eq!(lists, 3);
        let parsed = Options::augment_args(Command::new("sweep")).get_matches_from(["sweep"]);
        let numbers = |name: &str| parsed.get_many::<u64>(name).into_iter().flatten().copied();
        assert_eq!(numbers("claims").collect::<Vec<_>>(), [1_000, 5_000]);
        assert_eq!(numbers("processes").collect::<Vec<_>>(), [100, 1_000]);
    }
}
