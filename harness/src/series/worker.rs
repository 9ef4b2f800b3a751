//! The process in a cell that runs the cases of a series, one after the other.
//!
//! It tells what it does on standard output, a line of JSON each ([`Told`]). It has one thread, since
//! it forks for each case.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use mortmain::sys::Host;

use super::judge::judge;
use super::operation::Operation;
use super::stage::{Lifeline, Stage, in_doomed_child, kill_self};
use super::{Case, Fault, Told};
use crate::faults::{Armed, FailAt, Fired, KillAt, Record, Tapped};
use crate::scratch::scratch_root;
use crate::tree::Tree;

/// Steps of the child's part, in order.
const CHILD_STEPS: [&str; 4] = ["new-group", "identity", "symlink", "keep-over-exec"];

/// The kind of error that says that an operation goes wrong when nothing disturbs it.
const UNSOUND: io::ErrorKind = io::ErrorKind::InvalidData;

/// What a worker is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    /// The operations.
    pub operations: Vec<Operation>,
    /// Only this fault.
    pub fault: Option<Fault>,
    /// Only this position.
    pub position: Option<u64>,
    /// The part of the cases that is this worker's: those whose number leaves this remainder …
    pub part: u64,
    /// … by this number of workers.
    pub parts: u64,
}

impl Job {
    /// The arguments that [`main`] reads the job from.
    #[must_use]
    pub fn to_args(&self) -> Vec<String> {
        let names = self.operations.iter().map(|operation| operation.name());
        vec![
            names.collect::<Vec<_>>().join(","),
            self.fault.map_or("-".into(), |fault| fault.to_string()),
            self.position.map_or("-".into(), |position| position.to_string()),
            format!("{}/{}", self.part, self.parts),
        ]
    }

    fn parse(args: impl IntoIterator<Item = OsString>) -> Option<Job> {
        let mut args = args.into_iter().map(OsString::into_string);
        let mut next = || args.next()?.ok();
        let operations = next()?.split(',').map(Operation::parse).collect::<Option<_>>()?;
        let fault = next()?;
        let fault = if fault == "-" { None } else { Some(Fault::parse(&fault)?) };
        let position = next()?;
        let position = if position == "-" { None } else { Some(position.parse().ok()?) };
        let part = next()?;
        let (part, parts) = part.split_once('/')?;
        Some(Job {
            operations,
            fault,
            position,
            part: part.parse().ok()?,
            parts: parts.parse().ok()?,
        })
    }
}

/// Runs the hidden subcommand with the arguments that follow its name. Only for a cell.
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let told = match Job::parse(args) {
        Some(job) => Worker::begin().and_then(|mut worker| worker.work(&job)),
        None => Err(io::Error::new(io::ErrorKind::InvalidInput, "a job cannot be read")),
    };
    match told {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has gone, and with it the wish to know.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _told = writeln!(io::stderr(), "mortmain-lab: a fault series broke off: {error}");
            ExitCode::from(if error.kind() == UNSOUND { 5 } else { 70 })
        }
    }
}

struct Worker {
    stage: Stage,
    /// Number of the next case, over all operations.
    number: u64,
}

impl Worker {
    fn begin() -> io::Result<Worker> {
        Ok(Worker { stage: Stage::build(&scratch_root())?, number: 0 })
    }

    fn work(&mut self, job: &Job) -> io::Result<()> {
        let mut recorded = Vec::new();
        for operation in &job.operations {
            let calls = self.record(*operation)?;
            tell(&Told::Recorded { operation: operation.name().into(), calls: calls.clone() })?;
            recorded.push((*operation, calls));
        }
        for (operation, calls) in recorded {
            for fault in operation.faults() {
                if job.fault.is_none_or(|only| only == fault) {
                    self.series(job, operation, fault, &calls)?;
                }
            }
        }
        tell(&Told::Done)
    }

    /// One operation, one fault, at every position, and at the first one that there is not.
    fn series(
        &mut self,
        job: &Job,
        operation: Operation,
        fault: Fault,
        calls: &[String],
    ) -> io::Result<()> {
        let end = calls.len() as u64 + 1;
        for position in 1..=end {
            // OK because positions count from 1.
            let call = calls.get(position as usize - 1).map_or("end", String::as_str);
            if !fault.fits(call) || job.position.is_some_and(|only| only != position) {
                continue;
            }
            self.number += 1;
            if job.parts > 1 && self.number % job.parts != job.part {
                continue;
            }
            let case = Case {
                operation: operation.name().into(),
                fault: fault.to_string(),
                position,
                call: call.into(),
            };
            let told = self.run(operation, fault, case)?;
            tell(&told)?;
        }
        Ok(())
    }

    /// Runs a case and judges it.
    fn run(&self, operation: Operation, fault: Fault, case: Case) -> io::Result<Told> {
        let lifeline = Lifeline::new()?;
        operation.prepare(&self.stage, &lifeline)?;
        let staged = Tree::read(&self.stage.root)?;
        let fired = self.disturb(operation, fault, case.position, &lifeline)?;
        let judgement = judge(&self.stage, operation, &staged, lifeline)?;
        Ok(Told::Judged { case, fired, left: judgement.left, wrong: judgement.wrong })
    }

    /// The calls of an operation when nothing disturbs it.
    fn record(&self, operation: Operation) -> io::Result<Vec<String>> {
        if operation == Operation::SpawnChild {
            return Ok(CHILD_STEPS.map(String::from).into());
        }
        let lifeline = Lifeline::new()?;
        operation.prepare(&self.stage, &lifeline)?;
        let staged = Tree::read(&self.stage.root)?;
        let (mut heard, tell) = io::pipe()?;
        let ended = in_doomed_child(|| {
            let kernel = Tapped::new(Host, Armed::off(Record::default()));
            let went = operation.run(&kernel, &self.stage, &lifeline)?;
            let calls = kernel.with_hook(|hook| hook.hook().calls().join("\n"));
            serde_json::to_writer(&tell, &went.map(|()| calls)).map_err(io::Error::other)
        });
        drop(tell);
        ended?;
        let mut text = String::new();
        heard.read_to_string(&mut text)?;
        let went: Result<String, String> = serde_json::from_str(&text).map_err(io::Error::other)?;
        let unsound =
            |wrong: &str| io::Error::new(UNSOUND, format!("{operation}, undisturbed: {wrong}"));
        let calls = went.map_err(|error| unsound(&error))?;
        let judgement = judge(&self.stage, operation, &staged, lifeline)?;
        if let Some(wrong) = judgement.wrong.first() {
            return Err(unsound(wrong));
        }
        Ok(calls.lines().map(String::from).collect())
    }

    /// Does the operation in a process that meets the fault; answers whether it did.
    fn disturb(
        &self,
        operation: Operation,
        fault: Fault,
        position: u64,
        lifeline: &Lifeline,
    ) -> io::Result<Fired> {
        let (mut heard, told) = io::pipe()?;
        let stage = &self.stage;
        let ended = in_doomed_child(|| {
            let fired = match (operation, fault) {
                (Operation::SpawnChild, fault) => {
                    operation.run_in_child(position, fault, stage, lifeline)?
                }
                (_, Fault::Fail(failure, repeat)) => {
                    let hook = FailAt::new(position, failure, repeat);
                    let kernel = Tapped::new(Host, Armed::off(hook));
                    // It may well fail.
                    let _went = operation.run(&kernel, stage, lifeline)?;
                    kernel.with_hook(|hook| hook.hook().fired())
                }
                (_, Fault::Kill(moment) | Fault::KillOwner(moment)) => {
                    let hook = KillAt::position(position, moment, kill_self);
                    let _went =
                        operation.run(&Tapped::new(Host, Armed::off(hook)), stage, lifeline)?;
                    Fired::No
                }
            };
            serde_json::to_writer(&told, &fired).map_err(io::Error::other)
        });
        drop(told);
        ended?;
        let mut said = String::new();
        heard.read_to_string(&mut said)?;
        if said.is_empty() {
            // It was killed before it could say anything.
            return Ok(Fired::Yes);
        }
        serde_json::from_str(&said).map_err(io::Error::other)
    }
}

fn tell(told: &Told) -> io::Result<()> {
    let mut line = serde_json::to_string(told).map_err(io::Error::other)?;
    line.push('\n');
    io::stdout().lock().write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_read_back_from_its_arguments() {
        for job in [
            Job {
                operations: Operation::ALL.into(),
                fault: None,
                position: None,
                part: 1,
                parts: 2,
            },
            Job {
                operations: vec![Operation::Close],
                fault: Fault::parse("EIO-for-ever"),
                position: Some(17),
                part: 0,
                parts: 1,
            },
        ] {
            let args = job.to_args().into_iter().map(OsString::from);
            assert_eq!(Job::parse(args), Some(job));
        }
        assert_eq!(Job::parse(["nothing".into()]), None);
    }
}
