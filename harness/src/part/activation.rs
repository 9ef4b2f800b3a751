//! A program that is started with sockets, as a service is.

use std::env;
use std::fs;
use std::io::{self, Read, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;

use mortmain::activation::{self, Socket};
use mortmain::{Claim, Namespace};

use super::say;

/// Makes a claim, takes the sockets, starts a command, and says what it has seen.
pub(super) fn adopt(root: &Path) -> io::Result<()> {
    let claim = Namespace::at(root, "t")?.create()?;
    say(&format!("the library has {}", own_numbers(root)?))?;
    let sockets = match activation::sockets() {
        Ok(sockets) => sockets,
        Err(error) => return say(&format!("error {:?}: {error}", error.kind())),
    };
    let names: Vec<&str> = sockets.iter().map(Socket::name).collect();
    say(&format!("took {}", names.join(" ")))?;
    for socket in sockets {
        let fd: OwnedFd = socket.into();
        say(&format!("{}: {}", fd.as_raw_fd(), flags_of(fd.as_raw_fd())?))?;
    }
    say(&format!("handed on: {}", handed_on(&claim)?))?;
    match activation::sockets() {
        Ok(_) => say("took them again"),
        Err(error) => say(&format!("again: {error}")),
    }
}

/// Takes one socket and serves one connection.
pub(super) fn serve() -> io::Result<()> {
    let mut sockets = activation::sockets()?;
    let socket = sockets.pop().ok_or_else(|| io::Error::other("none was passed"))?;
    let (mut client, _) = UnixListener::from(socket.into_fd()).accept()?;
    write!(client, "served by {}", std::process::id())
}

/// Takes the sockets as the crate `sd-notify` does, and says the same of them.
pub(super) fn sd_notify() -> io::Result<()> {
    match sd_notify::listen_fds_with_names() {
        Ok(sockets) => {
            let (numbers, names): (Vec<_>, Vec<_>) = sockets.unzip();
            say(&format!("took {}", names.join(" ")))?;
            numbers.iter().try_for_each(|number| say(&format!("{number}: {}", flags_of(*number)?)))
        }
        Err(error) => say(&format!("error {error}")),
    }
}

/// Numbers of descriptors on something below a directory.
fn own_numbers(root: &Path) -> io::Result<String> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        if fs::read_link(entry.path()).is_ok_and(|target| target.starts_with(root)) {
            let name = entry.file_name();
            numbers.push(name.to_string_lossy().parse::<i32>().map_err(io::Error::other)?);
        }
    }
    numbers.sort_unstable();
    let passed = env::var("LISTEN_FDS").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
    let among = numbers.iter().filter(|number| (3..3 + passed).contains(*number)).count();
    Ok(format!("{} descriptors, {among} of them among those that are passed", numbers.len()))
}

/// Whether a descriptor survives exec.
fn flags_of(number: i32) -> io::Result<&'static str> {
    /// `O_CLOEXEC`, as `/proc` shows it.
    const CLOSE_ON_EXEC: u32 = 0o2_000_000;
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{number}"))?;
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).unwrap_or(0);
    Ok(if flags & CLOSE_ON_EXEC == 0 { "is inherited" } else { "close-on-exec" })
}

/// The variables that a command of a claim gets.
fn handed_on(claim: &Claim) -> io::Result<String> {
    let (mut ours, theirs) = io::pipe()?;
    let mut command = claim.command("env");
    command.stdout(theirs);
    let mut child = command.spawn()?;
    drop(command);
    let mut environment = String::new();
    ours.read_to_string(&mut environment)?;
    child.wait()?;
    let passed: Vec<&str> =
        environment.lines().filter(|line| line.starts_with("LISTEN_")).collect();
    Ok(if passed.is_empty() { "nothing".into() } else { passed.join(" ") })
}
