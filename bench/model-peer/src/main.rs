//! Runs our explorer and its peer on the same bounds, in turn, and prints rate and memory.
//!
//! usage: mortmain-model-peer [THREADS [NAME]]
//!
//! NAME is a part of the name of bounds that `mortmain-lab model --list` has; without it the
//! bounds are the ones below, of twenty-two million states: some minutes, and more than a
//! gigabyte.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs};

use mortmain_model::catalogue::gate;
use mortmain_model::setting::Setting;
use mortmain_model_peer::{Said, ours, peer};
use nix::time::{ClockId, clock_gettime};

/// Twenty-two million states.
fn large() -> Setting {
    Setting { owners: 2, sweeps: 2, kills: 3, closes: true, ..Setting::default() }
}

/// What a run took.
struct Took {
    said: Said,
    cpu: Duration,
    bytes: u64,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let threads: usize = args.next().map_or(Ok(1), |text| text.parse())?;
    let setting = match args.next() {
        None => large(),
        Some(part) => {
            let named = gate().into_iter().find(|(name, _)| name.contains(&part));
            named.ok_or_else(|| format!("no bounds have {part:?} in their name"))?.1
        }
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{setting}; threads: {threads}")?;
    let our = took(|| ours(setting, threads))?;
    row(&mut out, "ours", &our)?;
    let other = took(|| peer(setting, threads))?;
    row(&mut out, "stateright", &other)?;
    let faster = other.cpu.as_secs_f64() / our.cpu.as_secs_f64();
    let memory = our.bytes as f64 / other.bytes as f64;
    writeln!(out, "rate: {faster:.1} times, memory: {memory:.2} times")?;
    let mut other_said = other.said;
    if threads > 1 {
        // Its threads do not wait for each other at the end of a level, so that it comes to
        // some states by a way that is not the shortest.
        other_said.depth = our.said.depth;
    }
    let agree = our.said == other_said;
    writeln!(out, "{}", if agree { "they agree" } else { "THEY DO NOT AGREE" })?;
    Ok(if agree { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn row(out: &mut impl Write, name: &str, took: &Took) -> io::Result<()> {
    let Said { holds, states, unique, depth } = took.said;
    let verdict = if holds { "holds" } else { "does not hold" };
    let seconds = took.cpu.as_secs_f64();
    let rate = unique as f64 / seconds / 1e6;
    let each = took.bytes as f64 / unique as f64;
    let mib = took.bytes >> 20;
    writeln!(
        out,
        "{name:<11} {verdict}, states={states} unique={unique} depth={depth}: {seconds:.2} s of \
         processor time, {rate:.2} million a second, {mib} MiB, {each:.1} bytes a state"
    )
}

/// Runs it, with the processor time of all threads, and the most memory beyond what was there.
fn took(run: impl FnOnce() -> Said) -> Result<Took, Box<dyn Error>> {
    // Makes the kernel forget the most memory so far.
    fs::write("/proc/self/clear_refs", "5")?;
    let memory = status("VmRSS:")?;
    let time = cpu()?;
    let said = run();
    let cpu = cpu()? - time;
    let bytes = status("VmHWM:")?.saturating_sub(memory);
    Ok(Took { said, cpu, bytes })
}

fn cpu() -> nix::Result<Duration> {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from)
}

/// A field of the kernel's account of this process, in bytes.
fn status(field: &str) -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next());
    let number = number.ok_or_else(|| format!("/proc/self/status has no {field}"))?;
    Ok(number.parse::<u64>()? * 1024)
}
