//! The confinement: namespaces in which a program that has lost a safety check can
//! do no harm, and from which nothing escapes.
//!
//! This program starts itself as the *keeper*, which takes new user (for a plain
//! user), mount, pid and IPC namespaces and forks their *init*; init arranges the
//! mounts and starts the program, which stays what it was: the same user, the same
//! paths. Namespaces may be nested in it and mounts made in them, as tests on real
//! processes do.
//!
//! Invariants:
//! * In the confinement of a test everything is read-only but a few directories in
//!   memory, which are empty at the start and gone at the end. Another one holds the order of the
//!   test, so that several can run at once under different ones.
//! * No process outside can be seen or signalled; init and program lead process groups
//!   of their own.
//! * No process of a test maps more than so much memory, and with more than so many processes
//!   everything ends: a program that has lost the end of a loop does not take the machine along.
//! * When the program ends, everything in the namespace ends. The same happens when
//!   the keeper's standard input closes, which is the *lifeline*: whoever holds the
//!   other end need not be able to say that it dies.
//! * Whatever cannot be had is an error. There is no weaker form.
//!
//! What it deliberately does not do: the network, device files and System V limits are
//! those of the machine. The danger is a program that deletes the wrong directory or
//! signals the wrong process, not an adversary.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::ops::ControlFlow;
use std::os::unix::process::{CommandExt as _, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, getegid, geteuid, setsid};
use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind,
    mount_change, mount_remount, move_mount, open_tree,
};

use crate::cli::{ConfinedOrder, ProbeOrder};
use crate::exit::{Exit, Stop};
use crate::interrupt::Interrupt;
use crate::process::{self, End};
use crate::raw;
use crate::tree::Scratch;
use crate::workspace::Workspace;

/// The exit code of the keeper when there is no confinement, as `env` and `nohup` use
/// it for a failure of their own. No test binary ends with it.
pub(crate) const FAILED: i32 = 125;

/// What tells this program that it is to be a keeper.
pub(crate) const SUBCOMMAND: &str = "confined";

/// The exit code of init when the lifeline is cut; nobody is left to look at it.
const CUT: i32 = 124;

/// The exit code of init when there are too many processes: that of a program that was killed.
const TOO_MANY: i32 = 128 + Signal::SIGKILL as i32;

/// How much memory one process of a test may map, in bytes. The lab's own tests map below one
/// gibibyte.
const MEMORY_MAX: u64 = 8 << 30;

/// How often the processes are counted.
const COUNTED_EVERY: Duration = Duration::from_millis(200);

/// Directories that programs write to without being told.
const SHARED: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// How long the probe may take, which makes a handful of system calls.
const PROBE_LIMIT: Duration = Duration::from_secs(30);

/// How programs are to be confined.
#[derive(Clone, Debug)]
pub(crate) struct Confinement {
    /// Stay visible, read-only.
    pub(crate) keep: Vec<PathBuf>,
    /// Is covered by an empty directory, which can be written to.
    pub(crate) cover: PathBuf,
    /// The file with the order of a test, which it alone sees.
    pub(crate) orders: PathBuf,
}

impl Confinement {
    /// The confinement of the tests of a workspace, which was seen to hold.
    ///
    /// # Errors
    ///
    /// [`Exit::NotConfined`] when it does not.
    pub(crate) fn around(
        workspace: &Workspace,
        scratch: &Scratch,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Confinement> {
        let confinement = Confinement {
            keep: vec![workspace.root.clone(), scratch.root().to_owned()],
            cover: scratch.test_directory(),
            orders: scratch.order(),
        };
        confinement.probe(interrupt)?;
        Ok(confinement)
    }

    /// A command for a test binary: nothing can be written but directories in memory. If a line is
    /// given, that is what it finds in the file of orders, whatever becomes of its environment.
    pub(crate) fn for_test(&self, program: impl AsRef<OsStr>, line: Option<&str>) -> Command {
        let mut command = keeper();
        command.arg("--read-only");
        if let Some(line) = line {
            command.arg("--file").arg(&self.orders).arg("--line").arg(line);
        }
        for directory in &self.keep {
            command.arg("--keep").arg(directory);
        }
        for directory in self.covered() {
            command.arg("--cover").arg(directory);
        }
        command.arg("--").arg(program);
        command
    }

    /// A command for a compiler: it may write where it could anyway, but nothing of it
    /// stays behind.
    pub(crate) fn for_build(program: impl AsRef<OsStr>) -> Command {
        let mut command = keeper();
        command.arg("--").arg(program);
        command
    }

    /// The directories that are covered: those that are there, by their real names.
    fn covered(&self) -> Vec<PathBuf> {
        let shared = SHARED.iter().filter_map(|path| fs::canonicalize(path).ok());
        let mut covered: Vec<PathBuf> = shared.filter(|path| path.is_dir()).collect();
        covered.sort();
        covered.dedup();
        // Last, because it may be below one of the others.
        covered.push(self.cover.clone());
        covered
    }

    /// Sees from the inside that the confinement holds.
    ///
    /// # Errors
    ///
    /// [`Exit::NotConfined`] when it does not.
    fn probe(&self, interrupt: &Interrupt) -> anyhow::Result<()> {
        let mut command = self.for_test("/proc/self/exe", Some(""));
        command.arg("probe");
        command.args(["--read-only", "/"]);
        for directory in self.keep.iter().map(PathBuf::as_path).chain(self.orders.parent()) {
            command.arg("--read-only").arg(directory);
        }
        for directory in self.covered() {
            command.arg("--writable").arg(directory);
        }
        command.current_dir("/");
        let ended =
            process::run(command, PROBE_LIMIT, interrupt, &mut |_| ControlFlow::Continue(()))?;
        match ended.how {
            End::Exited(0) => Ok(()),
            End::Interrupted => Err(Stop::new(Exit::Undecided, "interrupted").into()),
            how => {
                let told = ended.stderr.trim();
                let message = format!("the confinement does not hold: {told} ({how:?})");
                Err(Stop::new(Exit::NotConfined, message).into())
            }
        }
    }
}

/// This program, told to be a keeper.
fn keeper() -> Command {
    // Not by its path, which may be gone: a build may replace the file meanwhile.
    let mut command = Command::new("/proc/self/exe");
    command.arg(SUBCOMMAND);
    // Keys pressed at the terminal reach the program that keeps, not the kept one.
    command.process_group(0);
    command
}

/// The keeper: makes the namespaces and waits for their init.
pub(crate) fn main(order: &ConfinedOrder) -> ExitCode {
    match keep(order) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _ = writeln!(io::stderr(), "tests cannot be confined here: {error:#}");
            // OK because the constant is below 256.
            ExitCode::from(FAILED as u8)
        }
    }
}

fn keep(order: &ConfinedOrder) -> anyhow::Result<u8> {
    let own_users = enter_namespaces()?;
    // After the change of user namespace, which would clear it.
    set_pdeathsig(Signal::SIGKILL)?;
    match raw::fork_single_threaded().context("cannot fork")? {
        ForkResult::Parent { child } => wait_for(child),
        ForkResult::Child => {
            let error = match be_init(order, own_users) {
                Ok(code) => raw::exit_now(code),
                Err(error) => error,
            };
            let _ = writeln!(io::stderr(), "tests cannot be confined here: {error:#}");
            raw::exit_now(FAILED)
        }
    }
}

/// Takes the namespaces, and says whether users have one, too.
fn enter_namespaces() -> anyhow::Result<bool> {
    let (user, group) = (geteuid(), getegid());
    let flags = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC;
    if user.is_root() {
        match unshare(flags) {
            Ok(()) => return Ok(false),
            // Root of a container, without its powers.
            Err(Errno::EPERM) => {}
            Err(error) => return Err(error).context("cannot make namespaces"),
        }
    }
    unshare(flags | CloneFlags::CLONE_NEWUSER)
        .context("cannot make namespaces for a user without privileges")?;
    let map = |file: &str, line: String| {
        fs::write(file, line).with_context(|| format!("cannot write {file}"))
    };
    map("/proc/self/setgroups", "deny".to_owned())?;
    map("/proc/self/uid_map", format!("{user} {user} 1"))?;
    map("/proc/self/gid_map", format!("{group} {group} 1"))?;
    Ok(true)
}

fn wait_for(init: Pid) -> anyhow::Result<u8> {
    loop {
        match waitpid(init, None) {
            Ok(WaitStatus::Exited(_, code)) => {
                return u8::try_from(code).context("an exit code above 255");
            }
            Ok(WaitStatus::Signaled(_, signal, _)) => bail!("init was killed by {signal}"),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("cannot wait for init"),
        }
    }
}

/// Init: the first process of the pid namespace, whose end is the end of all others.
/// Gives the exit code of the program.
fn be_init(order: &ConfinedOrder, own_users: bool) -> anyhow::Result<i32> {
    set_pdeathsig(Signal::SIGKILL)?;
    // Out of the keeper's process group: a program that signals its group must not
    // reach beyond the namespace.
    setsid().context("cannot begin a session")?;
    let directory = env::current_dir().context("cannot tell the current directory")?;
    arrange_mounts(order, own_users)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0).context("cannot forbid core dumps")?;
    if order.read_only {
        setrlimit(Resource::RLIMIT_AS, MEMORY_MAX, MEMORY_MAX).context("cannot limit memory")?;
    }

    // OK because the argument parser asks for one word at least.
    let (program, arguments) = order.program.split_first().context("no program")?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        // By its path once more: the directory under the old one may be covered now.
        .current_dir(directory)
        .stdin(Stdio::null())
        .process_group(0);
    #[expect(
        clippy::disallowed_methods,
        reason = "init does not return before the program has ended, and takes all else along"
    )]
    let child = command
        .spawn()
        .with_context(|| format!("cannot start {}", Path::new(program).display()))?;
    // OK because Linux gives no pid above 2^22.
    let program = Pid::from_raw(child.id() as i32);

    thread::spawn(|| {
        let mut lifeline = io::stdin();
        let mut byte = [0];
        // Nobody writes: it ends with the end of whoever holds the other end.
        while !matches!(lifeline.read(&mut byte), Ok(0)) {}
        raw::exit_now(CUT)
    });
    let processes_max = order.processes_max;
    thread::spawn(move || end_if_too_many(processes_max));
    loop {
        match waitpid(None::<Pid>, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == program => return Ok(code),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == program => {
                return Ok(128 + signal as i32);
            }
            // An orphan's end, which only init can take.
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("cannot wait for the program"),
        }
    }
}

/// Ends everything when there are more processes than that. A limit of the kernel's would count all
/// of the user, and root's not at all.
#[expect(clippy::disallowed_methods, reason = "it waits for nothing, it looks now and then")]
fn end_if_too_many(processes_max: usize) -> ! {
    // What cannot be counted is not too many.
    while processes().unwrap_or(0) <= processes_max {
        thread::sleep(COUNTED_EVERY);
    }
    let _ = writeln!(io::stderr(), "ended: more than {processes_max} processes at once");
    raw::exit_now(TOO_MANY)
}

/// How many processes there are in this namespace.
fn processes() -> io::Result<usize> {
    let names = fs::read_dir("/proc")?.flatten().map(|entry| entry.file_name());
    let numbers =
        names.filter(|name| name.to_str().is_some_and(|name| name.parse::<u32>().is_ok()));
    Ok(numbers.count())
}

fn arrange_mounts(order: &ConfinedOrder, own_users: bool) -> anyhow::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .context("cannot detach the mounts from those of the machine")?;
    if order.read_only {
        raw::make_all_mounts_read_only().context("cannot make everything read-only")?;
    }
    let plain = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // Can be written to, as a nested namespace needs it for a /proc of its own.
    mount("proc", "/proc", "proc", plain, None).context("cannot mount /proc")?;
    if order.read_only && !own_users {
        // Real root could turn the knobs of the whole machine.
        let path = "/proc/sys";
        mount_bind(path, path).context("cannot bind /proc/sys")?;
        let read_only = MountFlags::BIND | MountFlags::RDONLY | plain;
        mount_remount(path, read_only, c"").context("cannot make /proc/sys read-only")?;
    }
    for directory in &order.cover {
        cover(directory, &order.keep)
            .with_context(|| format!("cannot cover {}", directory.display()))?;
    }
    if let (Some(file), Some(line)) = (&order.file, &order.line) {
        post(file, line).with_context(|| format!("cannot put up {}", file.display()))?;
    }
    Ok(())
}

/// Covers the directory of a file, and leaves the file in it, which nobody can change.
fn post(file: &Path, line: &str) -> anyhow::Result<()> {
    let directory = file.parent().context("a file without a directory")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tmpfs", directory, "tmpfs", flags, Some(c"mode=755,size=64k"))?;
    fs::write(file, line)?;
    mount_remount(directory, MountFlags::BIND | MountFlags::RDONLY | flags, c"")?;
    Ok(())
}

/// Mounts an empty directory in memory, through which only `keep` shows.
fn cover(directory: &Path, keep: &[PathBuf]) -> anyhow::Result<()> {
    let mut kept = Vec::new();
    for path in keep.iter().filter(|path| path.starts_with(directory)) {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        let tree = open_tree(CWD, path, flags)?;
        kept.push((path, tree));
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", directory, "tmpfs", flags, Some(c"mode=1777,size=1g"))?;
    for (path, tree) in kept {
        fs::create_dir_all(path)?;
        move_mount(tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    }
    Ok(())
}

/// The probe: looks from the inside whether the confinement is what it says.
pub(crate) fn probe_main(order: &ProbeOrder) -> ExitCode {
    match probe(order) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn probe(order: &ProbeOrder) -> anyhow::Result<()> {
    if parent_id() != 1 {
        bail!("the parent has the pid {}: this is no pid namespace of its own", parent_id());
    }
    let init = fs::read("/proc/1/cmdline").context("/proc does not show init")?;
    if !init.split(|&byte| byte == 0).any(|word| word == SUBCOMMAND.as_bytes()) {
        bail!("/proc is not that of the pid namespace");
    }
    let name = format!(".mortmain-mutants-probe-{}", std::process::id());
    for directory in &order.read_only {
        let path = directory.join(&name);
        if fs::write(&path, "").is_ok() {
            let removed = fs::remove_file(&path).is_ok();
            return Err(anyhow!(
                "a file could be made in {} (and {})",
                directory.display(),
                if removed { "removed" } else { "not removed" }
            ));
        }
    }
    for directory in &order.writable {
        fs::write(directory.join(&name), "")
            .with_context(|| format!("nothing can be written in {}", directory.display()))?;
    }
    Ok(())
}
