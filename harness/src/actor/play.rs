//! The actor's own side: read a line, do it, answer.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io::{self, BufRead, Write};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use mortmain::{Claim, Closed, Error, Namespace, Report, Unclaimed};

use crate::raw::fork::fork;
use crate::raw::thread::end_this_thread;

/// Its argument when it has become itself anew.
const AGAIN: &str = "--again";
/// Its argument when it is to be a command that left its group.
const LEAVE_GROUP: &str = "--leave-group";

/// The exit code for a line that it does not understand: wrong usage.
const NOT_UNDERSTOOD: u8 = 2;

/// Runs the subcommand with the arguments that follow its name.
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match args.into_iter().next() {
        Some(arg) if arg == AGAIN => answer("executed"),
        Some(arg) if arg == LEAVE_GROUP => return leave_group(),
        _ => {}
    }
    serve(Actor::default())
}

/// Keeps the standard streams and nothing else, and stays in another group.
fn leave_group() -> ExitCode {
    match close_inherited().and_then(|()| join_parents_group()) {
        Ok(()) => {
            // To who asked for the command; no answer of an actor's.
            let _written = writeln!(io::stdout(), "left");
            loop {
                std::thread::park();
            }
        }
        Err(error) => {
            answer(&format!("error {error}"));
            ExitCode::FAILURE
        }
    }
}

fn close_inherited() -> io::Result<()> {
    let inherited = descriptors()?.into_iter().filter(|(number, _)| *number > 2);
    for (number, _) in inherited {
        match nix::unistd::close(number) {
            // The listing's own.
            Ok(()) | Err(nix::errno::Errno::EBADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn join_parents_group() -> io::Result<()> {
    let group = rustix::process::getpgid(rustix::process::getppid())?;
    Ok(rustix::process::setpgid(None, Some(group))?)
}

/// Does what it is told until there is nothing more.
fn serve(mut actor: Actor) -> ExitCode {
    let mut line = String::new();
    loop {
        line.clear();
        // The input is not kept locked: a thread that goes on after the first one needs it.
        match io::stdin().read_line(&mut line) {
            Ok(1..) => {}
            Ok(0) | Err(_) => break,
        }
        let line = line.trim_end();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "exit" => break,
            "end-main-thread" => go_on_elsewhere(actor),
            _ => {}
        }
        match actor.act(word, rest) {
            Ok(said) => answer(&said),
            Err(Failure::NotUnderstood) => {
                answer(&format!("not understood: {line}"));
                return ExitCode::from(NOT_UNDERSTOOD);
            }
            Err(failure) => answer(&format!("error {failure}")),
        }
    }
    ExitCode::SUCCESS
}

/// Lets another thread serve, and ends this one.
#[expect(
    clippy::exit,
    reason = "the thread that is left speaks for a process whose main function never returns"
)]
fn go_on_elsewhere(actor: Actor) -> ! {
    std::thread::spawn(move || {
        answer("goes on");
        serve(actor);
        std::process::exit(0);
    });
    end_this_thread()
}

/// Says a line that is meant for the one who asked.
fn answer(text: &str) {
    say("=", text);
}

fn say(mark: &str, text: &str) {
    // Whoever does not listen any more will end this process by the end of its input.
    let _written = writeln!(io::stdout(), "{mark} {text}");
}

/// What the actor has.
#[derive(Default)]
struct Actor {
    claim: Option<Claim>,
    unclaimed: Option<Unclaimed>,
}

/// Why something was not done.
enum Failure {
    NotUnderstood,
    Nothing,
    Mortmain(Error),
    System(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NotUnderstood => f.write_str("NotUnderstood"),
            Failure::Nothing => f.write_str("Nothing: there is no claim"),
            Failure::Mortmain(error) => write!(f, "{:?}: {error}", error.kind()),
            Failure::System(error) => write!(f, "System: {error}"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Mortmain(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::System(error)
    }
}

impl Actor {
    fn act(&mut self, word: &str, rest: &str) -> Result<String, Failure> {
        match word {
            "create" => {
                let claim = namespace(rest)?.create()?;
                // OK because what the user is given lies in the claim.
                let path = claim.path().parent().expect("it has a parent").display();
                let said = format!("created {path}");
                self.claim = Some(claim);
                Ok(said)
            }
            "unclaimed" => {
                let made = namespace(rest)?.create_unclaimed()?;
                let said = format!("created {}", made.path().display());
                self.unclaimed = Some(made);
                Ok(said)
            }
            "spawn" => {
                let claim = self.claim()?;
                let mut command = claim.command("sh");
                command.arg("-c").arg(rest).current_dir(claim.path()).stdin(Stdio::null());
                Ok(format!("spawned {}", command.spawn()?.id()))
            }
            "write" => {
                fs::write(self.claim()?.path().join(rest), "written by its owner\n")?;
                Ok("written".into())
            }
            "close" => match self.claim.take().ok_or(Failure::Nothing)?.close() {
                Ok(closed) => Ok(told(&closed)),
                Err(refused) => {
                    self.claim = Some(refused.claim);
                    Err(refused.error.into())
                }
            },
            "release" => match self.claim.take().ok_or(Failure::Nothing)?.release() {
                Ok(()) => Ok("released".into()),
                Err(refused) => {
                    self.claim = Some(refused.claim);
                    Err(refused.error.into())
                }
            },
            "drop" => {
                self.claim = None;
                self.unclaimed = None;
                Ok("dropped".into())
            }
            "sweep" => Ok(swept(&namespace(rest)?.sweep())),
            "fork-exit" => self.copy_that_exits(),
            "fork-stay" => self.copy_that_stays(false),
            "fork-drop" => self.copy_that_stays(true),
            "lose-lease" => self.lose_lease(),
            "exec-self" => {
                let mut command = Command::new("/proc/self/exe");
                Err(command.args(["actor", AGAIN]).exec().into())
            }
            _ => Err(Failure::NotUnderstood),
        }
    }

    fn claim(&self) -> Result<&Claim, Failure> {
        self.claim.as_ref().ok_or(Failure::Nothing)
    }

    /// A copy that tries everything, and then exits as a worker does whose work is done.
    fn copy_that_exits(&mut self) -> Result<String, Failure> {
        let (read, mut write) = io::pipe()?;
        let pid = fork(|| {
            let mut kinds = Vec::new();
            if let Some(claim) = self.claim.take() {
                let spawned = claim.command("true").spawn();
                kinds.push(format!("spawn {}", kind(spawned.err().as_ref())));
                match claim.close() {
                    Ok(closed) => kinds.push(format!("close {closed:?}")),
                    Err(refused) => {
                        kinds.push(format!("close {}", kind(Some(&refused.error))));
                        drop(refused.claim);
                    }
                }
            }
            if let Some(mut unclaimed) = self.unclaimed.take() {
                kinds.push(format!("remove {}", kind(unclaimed.remove().err().as_ref())));
            }
            u8::from(writeln!(write, "{}", kinds.join(", ")).is_err())
        })?;
        drop(write);
        let mut said = String::new();
        io::BufReader::new(read).read_line(&mut said)?;
        // It is our child, and has written its last line.
        let pid = rustix::process::Pid::from_raw(pid);
        rustix::process::waitpid(pid, rustix::process::WaitOptions::empty())
            .map_err(io::Error::from)?;
        Ok(format!("exited: {}", said.trim_end()))
    }

    /// A copy that lives on, with or without what it was copied with.
    fn copy_that_stays(&mut self, without: bool) -> Result<String, Failure> {
        let (read, write) = io::pipe()?;
        let mut write = Some(write);
        let pid = fork(|| {
            if without {
                drop(self.claim.take());
            }
            // Its parent hears that this is done by the end of the pipe.
            drop(write.take());
            loop {
                std::thread::park();
            }
        })?;
        drop(write);
        io::BufReader::new(read).read_line(&mut String::new())?;
        Ok(format!("stays {pid}"))
    }

    /// Closes whatever descriptor is of the claim itself, as a careless daemon would.
    fn lose_lease(&self) -> Result<String, Failure> {
        // OK because what the user is given lies in the claim.
        let claim = self.claim()?.path().parent().expect("it has a parent");
        let mut count = 0;
        for (number, _) in descriptors()?.iter().filter(|(_, target)| target == claim) {
            nix::unistd::close(*number).map_err(io::Error::from)?;
            count += 1;
        }
        Ok(format!("lost {count}"))
    }
}

/// The descriptors of this process, and what each is open on.
fn descriptors() -> io::Result<Vec<(RawFd, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc/thread-self/fd")? {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let (Some(number), Ok(target)) = (number, fs::read_link(entry.path())) {
            found.push((number, target));
        }
    }
    Ok(found)
}

/// Opens what `PREFIX ROOT` names.
fn namespace(arguments: &str) -> Result<Namespace, Failure> {
    let (prefix, root) = arguments.split_once(' ').ok_or(Failure::NotUnderstood)?;
    Ok(Namespace::at(OsStr::new(root), prefix)?)
}

fn kind(error: Option<&Error>) -> String {
    error.map_or_else(|| "done".into(), |error| format!("{:?}", error.kind()))
}

fn told(closed: &Closed) -> String {
    match closed {
        Closed::Removed => "removed".into(),
        Closed::Released => "released".into(),
        Closed::Obstructed(obstacles) => {
            let obstacles: Vec<String> = obstacles.iter().map(ToString::to_string).collect();
            format!("obstructed {}", obstacles.join("; "))
        }
        other => format!("{other:?}"),
    }
}

fn swept(report: &Report) -> String {
    report.to_string().lines().for_each(|line| say("|", line));
    let (removed, kept, blocked) = (report.removed(), report.kept(), report.blocked());
    format!("swept {removed} {kept} {blocked} {}", report.foreign)
}
