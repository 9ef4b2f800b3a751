//! What one process uses of some claims, read from its directory in `/proc`.
//!
//! Nothing that it uses is opened or asked anything, which could block: links
//! are read as text, and files of `/proc` alone are opened. The process's
//! directory is held meanwhile, so that all of it is said of one process,
//! whoever gets its number next.
//!
//! What is read is bounded. What cannot be read, or is too much, leaves a mark
//! ([`Uses::unread`]). A call that fails for a reason of our own, such as a lack
//! of descriptors, fails the whole.

use core::ffi::CStr;
use core::mem::MaybeUninit;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::format;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::vec::Vec;

use rustix::fs::{CWD, Mode, OFlags, RawDir};
use rustix::io::{Errno as Raw, retry_on_intr};

use super::IntoAnswer as _;
use super::stat_line::{STAT_LINE_BYTES, StatLine, number};
use crate::sys::{Answer, Errno, MountView, PathBytes, Pid, Sought, Use, Uses};

/// Longest text of a link that the kernel gives.
const LINK_BYTES_MAX: usize = 4096;
/// Bytes of one read: what the kernel writes at once.
const CHUNK_BYTES: usize = 4096;
/// Longest record that is looked at whole; of a longer one, this much. An entry
/// of an environment has at most half of it when a program is started.
const RECORD_BYTES_MAX: usize = 256 * 1024;
/// Most bytes of one file: a million maps.
const FILE_BYTES_MAX: usize = 128 << 20;
/// Most descriptors of one process, those of all threads together where each is
/// looked at.
const DESCRIPTORS_MAX: usize = 1 << 18;
/// Most threads of a process whose first one has ended.
const THREADS_MAX: usize = 1 << 12;

/// Why something was not read.
enum Miss {
    /// There is nothing any more.
    Ended,
    /// It may not be read, or cannot be.
    Refused,
    /// It is a path that is longer than the kernel tells.
    TooLong,
}

/// What was done, or why not; and where a call failed for another reason, that.
type Tried<T> = Answer<Result<T, Miss>>;

/// Maps a number by hand: every other one is a failure of our own.
fn tried<T>(result: Result<T, Raw>) -> Tried<T> {
    match result {
        Ok(done) => Ok(Ok(done)),
        Err(Raw::NOENT | Raw::SRCH) => Ok(Err(Miss::Ended)),
        Err(Raw::ACCESS | Raw::PERM) => Ok(Err(Miss::Refused)),
        Err(Raw::NAMETOOLONG) => Ok(Err(Miss::TooLong)),
        Err(other) => Err(other).answer(),
    }
}

pub(super) fn uses(pid: Pid, of: &Sought, known: &[MountView]) -> Answer<Uses> {
    if pid.0 <= 0 {
        return Err(Errno::EINVAL);
    }
    let path = CString::new(format!("/proc/{}", pid.0)).expect("OK because digits are no NUL");
    let process = match tried(open(CWD, &path, OFlags::PATH | OFlags::DIRECTORY))? {
        Ok(process) => process,
        Err(Miss::Ended) => return Ok(Uses { ended: true, ..Uses::default() }),
        Err(_) => return Ok(Uses { unread: true, ..Uses::default() }),
    };
    let mut look = Look::new(of);
    let process = process.as_fd();
    look.ended = look.task(process, true)? == Seen::Ended;
    if look.ended || look.vanished {
        // CHECK(l4-zombie-leader-threads): the first thread has ended, and shows nothing of what
        // the others go on using.
        look.threads(process, pid)?;
    }
    look.done(process, known)
}

fn open(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd, Raw> {
    retry_on_intr(|| rustix::fs::openat(dir, name, flags | OFlags::CLOEXEC, Mode::empty()))
}

/// The text of a link.
fn text<'b>(
    dir: BorrowedFd<'_>,
    name: &CStr,
    buffer: &'b mut [u8; LINK_BYTES_MAX],
) -> Result<&'b [u8], Raw> {
    let len = retry_on_intr(|| rustix::fs::readlinkat_raw(dir, name, &mut buffer[..]))?;
    Ok(&buffer[..len])
}

/// The beginning of a file.
fn head<'b>(dir: BorrowedFd<'_>, name: &CStr, buffer: &'b mut [u8]) -> Result<&'b [u8], Raw> {
    let file = open(dir, name, OFlags::RDONLY)?;
    let len = retry_on_intr(|| rustix::io::read(&file, &mut *buffer))?;
    Ok(&buffer[..len])
}

/// What became of the look at one thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Ended,
    /// Nothing that it uses may be read.
    Refused,
    Read,
}

/// A look at one process.
struct Look<'o> {
    of: &'o Sought,
    found: BTreeSet<(usize, Use)>,
    unread: bool,
    /// Its root directory, as far as it could be read.
    root: PathBytes,
    descriptors: usize,
    unsettled: bool,
    /// The directory of the thread whose mounts are to be looked at, if that is
    /// not the first one's.
    thread: Option<OwnedFd>,
    /// Whether nothing of it is left, as far as was seen.
    ended: bool,
    /// Whether something was not there that a thread which runs has.
    vanished: bool,
}

impl<'o> Look<'o> {
    fn new(of: &'o Sought) -> Look<'o> {
        let (found, root) = (BTreeSet::new(), PathBytes::default());
        let (unread, unsettled, ended, vanished) = (false, false, false, false);
        let (descriptors, thread) = (0, None);
        Look { of, found, unread, root, descriptors, unsettled, thread, ended, vanished }
    }

    /// Looks at what one thread uses; at what all threads share, if asked to.
    fn task(&mut self, task: BorrowedFd<'_>, shared: bool) -> Answer<Seen> {
        let mut buffer = [0u8; LINK_BYTES_MAX];
        match tried(text(task, c"cwd", &mut buffer))? {
            // CHECK(l4-cwd): what a process does without a path, it does there.
            Ok(text) => note(&mut self.found, Use::WorkingDirectory, self.of.at_or_below(text)),
            Err(Miss::Ended) => return Ok(Seen::Ended),
            Err(Miss::TooLong) => self.unread = true,
            Err(Miss::Refused) => {
                // The same permission stands before all that follows.
                self.unread |= !of_kernel(task);
                return Ok(Seen::Refused);
            }
        }
        match tried(text(task, c"root", &mut buffer))? {
            Ok(text) => {
                self.root = PathBytes::from(text);
                // CHECK(l4-root): all of its paths begin there.
                note(&mut self.found, Use::Root, self.of.at_or_below(text));
            }
            Err(miss) => self.missed(&miss),
        }
        self.open_files(task, &mut buffer)?;
        if shared {
            match tried(text(task, c"exe", &mut buffer))? {
                // CHECK(l4-executable): a program reads more of itself while it runs.
                Ok(text) => note(&mut self.found, Use::Executable, self.of.below(text)),
                Err(miss) => self.missed(&miss),
            }
            self.environment(task)?;
            self.maps(task)?;
        }
        Ok(Seen::Read)
    }

    fn missed(&mut self, miss: &Miss) {
        match miss {
            Miss::Ended => self.vanished = true,
            Miss::Refused | Miss::TooLong => self.unread = true,
        }
    }

    /// The same, where it is the end of what was read.
    fn stopped(&mut self, miss: &Miss) -> Answer<()> {
        self.missed(miss);
        Ok(())
    }

    fn open_files(
        &mut self,
        task: BorrowedFd<'_>,
        buffer: &mut [u8; LINK_BYTES_MAX],
    ) -> Answer<()> {
        let fds = match tried(open(task, c"fd", OFlags::RDONLY | OFlags::DIRECTORY))? {
            Ok(fds) => fds,
            Err(miss) => return self.stopped(&miss),
        };
        let mut names = [MaybeUninit::uninit(); CHUNK_BYTES];
        let mut listing = RawDir::new(&fds, &mut names);
        while let Some(entry) = listing.next() {
            let entry = match tried(entry)? {
                Ok(entry) => entry,
                Err(miss) => return self.stopped(&miss),
            };
            if entry.file_name().to_bytes().starts_with(b".") {
                continue;
            }
            if self.descriptors == DESCRIPTORS_MAX {
                self.unread = true;
                return Ok(());
            }
            self.descriptors += 1;
            match tried(text(fds.as_fd(), entry.file_name(), buffer))? {
                // CHECK(l4-descriptors): a file that is open is used, under whatever name.
                Ok(text) => note(&mut self.found, Use::Descriptor, self.of.below(text)),
                // Closed meanwhile.
                Err(Miss::Ended) => {}
                Err(miss) => self.missed(&miss),
            }
        }
        Ok(())
    }

    fn environment(&mut self, task: BorrowedFd<'_>) -> Answer<()> {
        let (of, found) = (self.of, &mut self.found);
        let mut empty = true;
        let read = records(task, c"environ", 0, |entry| {
            empty = false;
            // CHECK(l4-cookie): who closed everything and went elsewhere still carries it.
            note(found, Use::Cookie, of.carried(entry));
        });
        self.unsettled |= empty && is_becoming_another(task);
        self.all_of(read)
    }

    fn maps(&mut self, task: BorrowedFd<'_>) -> Answer<()> {
        let (of, found) = (self.of, &mut self.found);
        let mut last = Vec::new();
        let read = records(task, c"maps", b'\n', |line| {
            // No field before the path has a slash in it.
            let Some(start) = line.iter().position(|byte| *byte == b'/') else { return };
            let path = &line[start..];
            if path != last {
                // CHECK(l4-maps): a mapped file needs no descriptor.
                note(found, Use::Map, of.below(path));
                // CHECK(l4-escaped-map): a stray's name may have a line end in it.
                if let Cow::Owned(named) = as_named(path) {
                    note(found, Use::Map, of.below(&named));
                }
                last.clear();
                last.extend_from_slice(path);
            }
        });
        self.all_of(read)
    }

    fn all_of(&mut self, read: Tried<bool>) -> Answer<()> {
        match read? {
            Ok(whole) => self.unread |= !whole,
            Err(miss) => self.missed(&miss),
        }
        Ok(())
    }

    /// Looks at every thread of a process whose first one has ended.
    fn threads(&mut self, process: BorrowedFd<'_>, first: Pid) -> Answer<()> {
        let tasks = match tried(open(process, c"task", OFlags::RDONLY | OFlags::DIRECTORY))? {
            Ok(tasks) => tasks,
            Err(miss) => return self.stopped(&miss),
        };
        let mut names = [MaybeUninit::uninit(); CHUNK_BYTES];
        let mut listing = RawDir::new(&tasks, &mut names);
        let mut count = 0;
        while let Some(entry) = listing.next() {
            let entry = match tried(entry)? {
                Ok(entry) => entry,
                Err(miss) => return self.stopped(&miss),
            };
            let id: Option<i32> = number(entry.file_name().to_bytes());
            if id.is_none_or(|id| id == first.0) {
                continue;
            }
            if count == THREADS_MAX {
                self.unread = true;
                return Ok(());
            }
            count += 1;
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            let Ok(task) = tried(open(tasks.as_fd(), entry.file_name(), flags))? else { continue };
            let shared = self.thread.is_none();
            if self.task(task.as_fd(), shared)? != Seen::Ended {
                self.ended = false;
                self.thread.get_or_insert(task);
            }
        }
        Ok(())
    }

    /// Looks at the mounts and puts together what was found.
    fn done(mut self, process: BorrowedFd<'_>, known: &[MountView]) -> Answer<Uses> {
        if self.ended {
            return Ok(Uses { ended: true, ..Uses::default() });
        }
        let thread = self.thread.take();
        let task = thread.as_ref().map_or(process, AsFd::as_fd);
        let mounts = self.mounts(task, known)?;
        let (unread, unsettled) = (self.unread, self.unsettled);
        let mut uses = Uses { mounts, unread, unsettled, ..Uses::default() };
        if !self.found.is_empty() {
            uses.program = program(task)?;
        }
        if self.found.iter().any(|(_, how)| *how == Use::Cookie) {
            uses.uids = users(task)?;
        }
        uses.found = self.found.into_iter().collect();
        Ok(uses)
    }

    /// Looks at the mounts that the process sees, unless they are known.
    fn mounts(&mut self, task: BorrowedFd<'_>, known: &[MountView]) -> Answer<Option<MountView>> {
        let Some(namespace) = mount_namespace(task)? else { return Ok(None) };
        let view = MountView { namespace, root: self.root.clone() };
        if known.contains(&view) {
            return Ok(None);
        }
        let own = open(CWD, c"/proc/thread-self", OFlags::PATH | OFlags::DIRECTORY).answer()?;
        let ours = [by_link(own.as_fd())?, by_first_mount(own.as_fd())?].contains(&Some(namespace));
        let (of, found) = (self.of, &mut self.found);
        let read = records(task, c"mountinfo", b'\n', |line| {
            let mut fields = line.split(|byte| *byte == b' ').skip(3);
            let (Some(root), Some(at)) = (fields.next(), fields.next()) else { return };
            // CHECK(l4-escaped-mount): a stray's name may have a blank in it.
            let (root, at) = (as_named(root), as_named(at));
            // CHECK(l4-mount-elsewhere): a container that was given a part of the claim has no
            // path with the claim in it.
            note(found, Use::MountOf, of.at_or_below(&root));
            // What is mounted in our own sight is found and told with its place before a removal.
            if !ours {
                // CHECK(l4-mounted-on-elsewhere): a mount that we do not see vanishes with the
                // directory that it is on.
                note(found, Use::MountOn, of.at_or_below(&at));
            }
        });
        match read {
            // How the kernel says that the process has ended.
            Err(Errno::EINVAL) => return Ok(None),
            read => self.all_of(read)?,
        }
        Ok(Some(view))
    }
}

fn note(found: &mut BTreeSet<(usize, Use)>, how: Use, claims: impl Iterator<Item = usize>) {
    found.extend(claims.map(|claim| (claim, how)));
}

/// A path without the escapes in whose place the kernel writes what would end
/// it: a backslash and three octal digits for a byte.
fn as_named(path: &[u8]) -> Cow<'_, [u8]> {
    if !path.contains(&b'\\') {
        return Cow::Borrowed(path);
    }
    let digit = |byte: &u8| matches!(byte, b'0'..=b'7').then(|| u32::from(byte - b'0'));
    let mut named = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [first, others @ ..] = rest {
        let escaped = match rest {
            [b'\\', a, b, c, ..] => {
                let value = |a, b, c| Some(digit(a)? << 6 | digit(b)? << 3 | digit(c)?);
                value(a, b, c).and_then(|value| u8::try_from(value).ok())
            }
            _ => None,
        };
        named.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &rest[4..] } else { others };
    }
    Cow::Owned(named)
}

/// Shows each record of a file; answers whether that was all of it.
fn records(dir: BorrowedFd<'_>, name: &CStr, end: u8, mut each: impl FnMut(&[u8])) -> Tried<bool> {
    let file = match tried(open(dir, name, OFlags::RDONLY))? {
        Ok(file) => file,
        Err(miss) => return Ok(Err(miss)),
    };
    let mut chunk = [0u8; CHUNK_BYTES];
    // The beginning of a record whose end is still to come.
    let mut begun = Vec::new();
    let mut bytes = 0;
    loop {
        let len = match retry_on_intr(|| rustix::io::read(&file, &mut chunk)) {
            // A process may take the memory that this is read from out of its own reach.
            Err(Raw::IO) => return Ok(Err(Miss::Refused)),
            read => match tried(read)? {
                Ok(len) => len,
                Err(miss) => return Ok(Err(miss)),
            },
        };
        if len == 0 {
            if !begun.is_empty() {
                each(&begun);
            }
            return Ok(Ok(true));
        }
        bytes += len;
        if bytes > FILE_BYTES_MAX {
            return Ok(Ok(false));
        }
        let mut parts = chunk[..len].split(|byte| *byte == end);
        // The last part has no end yet; there is one, if an empty one.
        let last = parts.next_back().unwrap_or_default();
        for part in parts {
            if begun.is_empty() {
                each(part);
            } else {
                extend(&mut begun, part);
                each(&begun);
                begun.clear();
            }
        }
        extend(&mut begun, last);
    }
}

fn extend(record: &mut Vec<u8>, part: &[u8]) {
    let room = RECORD_BYTES_MAX - record.len();
    record.extend_from_slice(&part[..part.len().min(room)]);
}

/// What stands for the mount namespace of a thread; `None` when it has ended.
fn mount_namespace(task: BorrowedFd<'_>) -> Answer<Option<u64>> {
    match by_link(task)? {
        // Everybody's mounts may be read, and each mount is in one namespace.
        None => by_first_mount(task),
        namespace => Ok(namespace),
    }
}

fn by_link(task: BorrowedFd<'_>) -> Answer<Option<u64>> {
    let mut buffer = [0u8; LINK_BYTES_MAX];
    let Ok(text) = tried(text(task, c"ns/mnt", &mut buffer))? else { return Ok(None) };
    let digits = text.strip_prefix(b"mnt:[").and_then(|rest| rest.strip_suffix(b"]"));
    Ok(digits.and_then(number))
}

/// So many are no inode of a namespace's.
const FIRST_MOUNT: u64 = 1 << 63;

fn by_first_mount(task: BorrowedFd<'_>) -> Answer<Option<u64>> {
    // Enough for a number; the kernel then writes no more than one line.
    let mut buffer = [0u8; 16];
    match head(task, c"mountinfo", &mut buffer) {
        Err(Raw::INVAL) => Ok(None),
        read => match tried(read)? {
            Ok(line) => {
                let id = line.split(|byte| *byte == b' ').next().and_then(number::<u64>);
                Ok(id.map(|id| FIRST_MOUNT | id))
            }
            Err(_) => Ok(None),
        },
    }
}

/// Whether it is a thread of the kernel's, of which there is nothing to read.
fn of_kernel(task: BorrowedFd<'_>) -> bool {
    let mut buffer = [0u8; STAT_LINE_BYTES];
    let line = head(task, c"stat", &mut buffer).ok().and_then(StatLine::parse);
    line.is_some_and(|line| line.of_kernel())
}

/// Whether a program without an environment is one that is still being set up:
/// it has memory, and no place for an environment in it.
fn is_becoming_another(task: BorrowedFd<'_>) -> bool {
    let mut buffer = [0u8; STAT_LINE_BYTES];
    head(task, c"stat", &mut buffer).is_ok_and(is_not_set_up)
}

/// The same by its `stat`.
fn is_not_set_up(line: &[u8]) -> bool {
    let Some(name_ends) = line.iter().rposition(|byte| *byte == b')') else { return false };
    // Fields 23 and 51 of proc_pid_stat(5): the size of its memory, and the end of its environment.
    let mut fields = line[name_ends..].split(|byte| *byte == b' ').skip(23 - 2);
    let (memory, environment) = (fields.next(), fields.nth(51 - 24));
    memory.is_some_and(|bytes| bytes != b"0") && environment == Some(b"0")
}

fn program(task: BorrowedFd<'_>) -> Answer<Vec<u8>> {
    let mut buffer = [0u8; 64];
    let name = tried(head(task, c"comm", &mut buffer))?.unwrap_or_default();
    Ok(name.strip_suffix(b"\n").unwrap_or(name).into())
}

/// The users of a process.
fn users(task: BorrowedFd<'_>) -> Answer<Vec<u32>> {
    let mut buffer = [0u8; 1024];
    let status = tried(head(task, c"status", &mut buffer))?.unwrap_or_default();
    let mut lines = status.split(|byte| *byte == b'\n');
    let uids = lines.find_map(|line| line.strip_prefix(b"Uid:")).unwrap_or_default();
    Ok(uids.split(u8::is_ascii_whitespace).filter_map(number).collect())
}

#[cfg(test)]
mod tests;
