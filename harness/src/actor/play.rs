//! The actor's own side: read an order, do it, answer.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use mortmain::sys::HostProgram;
use mortmain::{Claim, Closed, Error, Namespace, Random, Unclaimed};

use super::beside::{self, Beside};
use super::disturbed::{Refusal, Tap, TappedClaim, tapped_root};
use super::held::HeldChild;
use super::launch::{LAUNCH, Launch};
use super::many::{create_many, path_of};
use super::sweep::{self, Holding};
use super::wire::{Disturbance, Done, Order, Request, Said, VERSION, What};
use crate::descriptors;
use crate::raw::fork::fork;
use crate::raw::thread::end_this_thread;

/// Its argument when it has become itself anew.
const AGAIN: &str = "--again";
/// Its argument when it is to be a command that left its group.
const LEAVE_GROUP: &str = "--leave-group";

/// Runs the subcommand with the arguments that follow its name.
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    match args.next() {
        Some(arg) if arg == AGAIN => {
            // It wrote the number itself, before it became this.
            let id = args.next().and_then(|id| id.to_str()?.parse().ok());
            answer(id.unwrap_or(0), Ok(Done::Executed));
        }
        Some(arg) if arg == LEAVE_GROUP => return leave_group(),
        Some(arg) if arg == LAUNCH => return launch(args.next()),
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
            answer(0, Err(error.into()));
            ExitCode::FAILURE
        }
    }
}

/// Becomes an actor with what is passed to it.
fn launch(launch: Option<OsString>) -> ExitCode {
    let launch = launch.unwrap_or_default();
    let done = match serde_json::from_slice::<Launch>(launch.as_bytes()) {
        Ok(launch) => close_inherited().map_or_else(Failure::from, |()| launch.exec().into()),
        Err(error) => Failure::NotUnderstood(error),
    };
    answer(0, Err(done));
    ExitCode::FAILURE
}

fn close_inherited() -> io::Result<()> {
    let inherited = descriptors::all()?.into_iter().filter(|(number, _)| *number > 2);
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
    // The input is not kept locked: a thread that goes on after the first one needs it.
    while let Ok(Some(Request { v, id, order })) = next_order() {
        let did = match order {
            _ if v != VERSION => {
                Err(Failure::Version(format!("this is version {VERSION}, not {v}")))
            }
            Order::Exit => break,
            Order::EndMainThread => go_on_elsewhere(actor, id),
            order => actor.act(id, order),
        };
        answer(id, did);
    }
    ExitCode::SUCCESS
}

/// The next line of the input; `None` at its end. One that is no order is answered here.
pub(super) fn next_order() -> io::Result<Option<Request>> {
    let mut line = String::new();
    loop {
        line.clear();
        if io::stdin().read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match serde_json::from_str(&line) {
            Ok(request) => return Ok(Some(request)),
            Err(error) => answer(0, Err(Failure::NotUnderstood(error))),
        }
    }
}

/// Lets another thread serve, and ends this one.
#[expect(
    clippy::exit,
    reason = "the thread that is left speaks for a process whose main function never returns"
)]
fn go_on_elsewhere(actor: Actor, id: u64) -> ! {
    // A kernel that is tapped belongs to its thread; the claim ends with it.
    let claim = actor.claim.and_then(|claim| match claim {
        Mine::Face(claim) => Some(claim),
        Mine::Tapped(..) => None,
    });
    let unclaimed = actor.unclaimed;
    std::thread::spawn(move || {
        answer(id, Ok(Done::GoesOn));
        serve(Actor { claim: claim.map(Mine::Face), unclaimed, ..Actor::default() });
        std::process::exit(0);
    });
    end_this_thread()
}

/// Says how an order went.
fn answer(id: u64, did: Result<Done, Failure>) {
    let what = match did {
        Ok(done) => What::Done(done),
        Err(failure) => {
            let (kind, message) = failure.kind_and_message();
            What::Failed { kind, message }
        }
    };
    say(&Said { v: VERSION, id, what });
}

/// Says a line that is meant for the one who asked.
pub(super) fn say(said: &Said) {
    let Ok(mut line) = serde_json::to_string(said) else { return };
    line.push('\n');
    // Whoever does not listen any more will end this process by the end of its input.
    let _written = io::stdout().lock().write_all(line.as_bytes());
}

/// What the actor has.
#[derive(Default)]
struct Actor {
    claim: Option<Mine>,
    unclaimed: Option<Unclaimed>,
    /// Claims that it will be killed with.
    many: Vec<Claim>,
    beside: Beside,
}

/// A claim, as a product has it, or over a kernel whose calls can be disturbed.
enum Mine {
    Face(Claim),
    Tapped(Tap, TappedClaim),
}

impl Mine {
    /// What the user is given.
    fn files(&self) -> PathBuf {
        match self {
            Mine::Face(claim) => claim.path().into(),
            Mine::Tapped(_, claim) => OsStr::from_bytes(&claim.files().0).into(),
        }
    }

    /// The claim itself.
    fn path(&self) -> PathBuf {
        let mut path = self.files();
        path.pop();
        path
    }

    /// Starts a shell, which reads and writes where it is told.
    fn spawn(
        &mut self,
        script: &str,
        input: Option<&Path>,
        output: Option<&Path>,
        held: Option<u64>,
    ) -> Result<i32, Failure> {
        // Both ends, so that no open of a FIFO waits for somebody at the other.
        let both = |path: &Path| File::options().read(true).write(true).open(path);
        let input = input.map(both).transpose()?.map_or_else(Stdio::null, Stdio::from);
        let output = output.map(both).transpose()?.map_or_else(Stdio::inherit, Stdio::from);
        let files = self.files();
        match self {
            Mine::Face(claim) => {
                let mut command = claim.command("sh");
                command.arg("-c").arg(script).current_dir(files).stdin(input).stdout(output);
                // OK because pids are below 2^22.
                Ok(command.spawn()?.id().cast_signed())
            }
            Mine::Tapped(_, claim) => {
                let mut program = match held {
                    Some(n) => HostProgram::with_child("sh", HeldChild::before(n)),
                    None => HostProgram::new("sh"),
                };
                program.arg("-c").arg(script).current_dir(files).stdin(input).stdout(output);
                Ok(claim.spawn(&mut program)?.pid.0)
            }
        }
    }
}

/// Why something was not done.
pub(super) enum Failure {
    NotUnderstood(serde_json::Error),
    Version(String),
    Nothing,
    NotLocked,
    NotTapped,
    Held,
    Refused(Refusal),
    Mortmain(Error),
    System(io::Error),
}

impl Failure {
    fn kind_and_message(&self) -> (String, String) {
        let of = |kind: &str, message: &dyn fmt::Display| (kind.to_owned(), message.to_string());
        match self {
            Failure::NotUnderstood(error) => of("NotUnderstood", error),
            Failure::Version(told) => of("Version", told),
            Failure::Nothing => of("Nothing", &"there is no claim"),
            Failure::NotLocked => of("Nothing", &"it has no such lock"),
            Failure::NotTapped => of("NotTapped", &"the calls of its claim cannot be disturbed"),
            Failure::Held => of("TimedOut", &"somebody has the lock"),
            Failure::Refused(refusal) => refusal.kind_and_message(),
            Failure::Mortmain(error) => of(&format!("{:?}", error.kind()), error),
            Failure::System(error) => of("System", error),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Mortmain(error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Failure::Refused(refusal)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::System(error)
    }
}

impl Actor {
    fn act(&mut self, id: u64, order: Order) -> Result<Done, Failure> {
        match order {
            Order::Create { prefix, root, tapped: false, disturbed: None } => {
                let claim = Namespace::at(root, &prefix)?.create()?;
                Ok(self.created(Mine::Face(claim)))
            }
            Order::Create { prefix, root, tapped: _, disturbed } => {
                let (tap, root) = tapped_root(&prefix, &root)?;
                tap.with_hook(|hook| hook.arm(id, disturbed));
                let claim = root.create()?;
                tap.with_hook(|hook| hook.arm(id, None));
                Ok(self.created(Mine::Tapped(tap, claim)))
            }
            Order::Unclaimed { prefix, root } => {
                let made = Namespace::at(root, &prefix)?.create_unclaimed()?;
                let claim = made.path().into();
                self.unclaimed = Some(made);
                Ok(Done::Created { claim })
            }
            Order::Spawn { script, input, output, disturbed, held } => {
                let claim = self.claim.as_mut().ok_or(Failure::Nothing)?;
                match claim {
                    Mine::Tapped(tap, _) => tap.with_hook(|hook| hook.arm(id, disturbed)),
                    Mine::Face(_) if disturbed.is_none() && held.is_none() => {}
                    Mine::Face(_) => return Err(Failure::NotTapped),
                }
                let spawned = claim.spawn(&script, input.as_deref(), output.as_deref(), held);
                if let Mine::Tapped(tap, _) = claim {
                    tap.with_hook(|hook| hook.arm(id, None));
                }
                Ok(Done::Spawned { pid: spawned? })
            }
            Order::Write { name } => {
                fs::write(self.claim()?.files().join(name), "written by its owner\n")?;
                Ok(Done::Written)
            }
            Order::Close { disturbed } => self.close(id, disturbed),
            Order::Release => self.release(),
            Order::Drop => {
                self.claim = None;
                self.unclaimed = None;
                Ok(Done::Dropped)
            }
            Order::Reclaim { prefix, root, name } => {
                Ok(Done::Swept(sweep::reclaim(&prefix, &root, &name)?))
            }
            Order::Sweep { prefix, root, how } => {
                Ok(Done::Swept(sweep::sweep(id, &prefix, &root, &how, self.holding())?))
            }
            Order::ForkExit => self.copy_that_exits(),
            Order::ForkStay => self.copy_that_stays(false),
            Order::ForkDrop => self.copy_that_stays(true),
            Order::LoseLease => self.lose_lease(),
            Order::ChangeRoot { to } => {
                rustix::process::chroot(to).map_err(io::Error::from)?;
                Ok(Done::Rooted)
            }
            Order::ExecSelf => {
                let mut command = Command::new("/proc/self/exe");
                Err(command.args(["actor", AGAIN, &id.to_string()]).exec().into())
            }
            Order::LimitDescriptors { more } => limit_descriptors(more),
            Order::CreateMany { prefix, root, whole, half_made } => {
                let made = create_many(&prefix, &root, whole, half_made)?;
                let claims = made.iter().map(path_of).collect();
                self.many.extend(made);
                Ok(Done::CreatedMany { claims })
            }
            Order::Lock { file, waits, disturbed } => self.beside.lock(id, file, waits, disturbed),
            Order::Unlock { file } => self.beside.unlock(&file),
            Order::Append { file, line, waits, disturbed } => {
                beside::append(id, &file, &line, waits, disturbed)
            }
            Order::Read { file } => beside::read(&file),
            Order::TakeSandbox { base, tag, place, disturbed } => {
                self.beside.take_sandbox(id, &base, &tag, &place, disturbed)
            }
            Order::TakeSockets => self.beside.take_sockets(),
            // The first ends the process and the second thread goes on; who has not stopped has
            // nothing to continue with.
            Order::Exit | Order::EndMainThread | Order::Continue => Err(Failure::Nothing),
        }
    }

    fn holding(&self) -> Holding {
        let name = |claim: &Mine| {
            let path = claim.path();
            let (_, random) =
                path.file_name()?.as_bytes().split_last_chunk::<{ Random::BYTES }>()?;
            Random::parse(random)
        };
        Holding {
            claims: self.claim.iter().filter_map(name).collect(),
            unlisted: matches!(self.claim, Some(Mine::Tapped(..))),
        }
    }

    fn created(&mut self, claim: Mine) -> Done {
        let done = Done::Created { claim: claim.path() };
        self.claim = Some(claim);
        done
    }

    fn close(&mut self, id: u64, disturbed: Option<Disturbance>) -> Result<Done, Failure> {
        match self.claim.take().ok_or(Failure::Nothing)? {
            Mine::Face(claim) => match claim.close() {
                Ok(closed) => Ok(told(&closed)),
                Err(refused) => {
                    self.claim = Some(Mine::Face(refused.claim));
                    Err(refused.error.into())
                }
            },
            Mine::Tapped(tap, claim) => {
                tap.with_hook(|hook| hook.arm(id, disturbed));
                let closed = claim.close();
                tap.with_hook(|hook| hook.arm(id, None));
                match closed {
                    Ok(closed) => Ok(told(&closed)),
                    Err(refused) => {
                        self.claim = Some(Mine::Tapped(tap, *refused.claim));
                        Err(refused.error.into())
                    }
                }
            }
        }
    }

    fn release(&mut self) -> Result<Done, Failure> {
        let (kept, error) = match self.claim.take().ok_or(Failure::Nothing)? {
            Mine::Face(claim) => match claim.release() {
                Ok(()) => return Ok(Done::Released),
                Err(refused) => (Mine::Face(refused.claim), refused.error),
            },
            Mine::Tapped(tap, claim) => match claim.release() {
                Ok(()) => return Ok(Done::Released),
                Err(refused) => (Mine::Tapped(tap, *refused.claim), refused.error),
            },
        };
        self.claim = Some(kept);
        Err(error.into())
    }

    fn claim(&self) -> Result<&Mine, Failure> {
        self.claim.as_ref().ok_or(Failure::Nothing)
    }

    /// A copy that tries everything, and then exits as a worker does whose work is done.
    fn copy_that_exits(&mut self) -> Result<Done, Failure> {
        let (read, mut write) = io::pipe()?;
        let pid = fork(|| {
            let mut kinds = Vec::new();
            if let Some(Mine::Face(claim)) = self.claim.take() {
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
            drop(std::mem::take(&mut self.beside));
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
        Ok(Done::Exited { said: said.trim_end().into() })
    }

    /// A copy that lives on, with or without what it was copied with.
    fn copy_that_stays(&mut self, without: bool) -> Result<Done, Failure> {
        let (read, write) = io::pipe()?;
        let mut write = Some(write);
        let pid = fork(|| {
            if without {
                drop(self.claim.take());
                drop(std::mem::take(&mut self.beside));
            }
            // Its parent hears that this is done by the end of the pipe.
            drop(write.take());
            loop {
                std::thread::park();
            }
        })?;
        drop(write);
        io::BufReader::new(read).read_line(&mut String::new())?;
        Ok(Done::Stays { pid })
    }

    /// Closes whatever descriptor is of the claim itself, as a careless daemon would.
    fn lose_lease(&self) -> Result<Done, Failure> {
        let claim = self.claim()?.path();
        let mut count = 0;
        for (number, _) in descriptors::all()?.iter().filter(|(_, target)| *target == claim) {
            nix::unistd::close(*number).map_err(io::Error::from)?;
            count += 1;
        }
        Ok(Done::Lost { count })
    }
}

/// Lets this process open so many descriptors more than it has now. They are given out from the
/// lowest free number on, so the limit stands above the lowest `more` that are free.
fn limit_descriptors(more: u64) -> Result<Done, Failure> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    // The listing's own is closed by now.
    let listing = |target: &Path| target.starts_with("/proc") && target.ends_with("fd");
    let open = descriptors::all()?.into_iter().filter(|(_, target)| !listing(target));
    let used: BTreeSet<RawFd> = open.map(|(number, _)| number).collect();
    let free = (0..).filter(|number| !used.contains(number));
    // OK because there are fewer descriptors than pids.
    let first_refused = free.take(more as usize + 1).last().unwrap_or(0);
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(first_refused.cast_unsigned().into());
    setrlimit(Resource::Nofile, limit).map_err(io::Error::from)?;
    Ok(Done::Limited)
}

fn kind(error: Option<&Error>) -> String {
    error.map_or_else(|| "done".into(), |error| format!("{:?}", error.kind()))
}

fn told(closed: &Closed) -> Done {
    match closed {
        Closed::Removed => Done::Removed,
        Closed::Obstructed(obstacles) => {
            Done::Obstructed { obstacles: obstacles.iter().map(ToString::to_string).collect() }
        }
        // What is added to these leaves the claim to the sweeps, too.
        _ => Done::Released,
    }
}
