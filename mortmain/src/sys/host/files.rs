//! Files, directories, links and locks on the real kernel.
//!
//! Every lookup is one component below a directory descriptor and goes through
//! [`open_below`], or through a call that by itself neither follows a link nor
//! enters a mount at the last component: mkdir, symlink, rename, unlink and
//! rmdir. (`readlink` does enter a mount there, and asks its server.)

use std::format;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, IntoRawFd as _, OwnedFd};
use std::vec;
use std::vec::Vec;

use nix::errno::Errno as Raw;
use nix::fcntl::{AT_FDCWD, FcntlArg, OFlag, OpenHow, ResolveFlag};
use nix::sys::stat::{FchmodatFlags, Mode};
use nix::unistd::{UnlinkatFlags, Whence};
use rustix::fs::{FileType, FlockOperation, RawDir};

use super::child::{ABOVE_STDIO, LINK_TEXT_BYTES_MAX};
use super::{IntoAnswer as _, passed, proc, raw};
use crate::sys::{Answer, DirEntry, Errno, FsMagic, Handle, Kind, Name, PathBytes, Pid, Stat};

/// Of everything that is opened.
fn close_on_exec() -> OFlag {
    // CHECK(c5-close-on-exec): any command that any thread starts would keep the lease for its life.
    OFlag::O_CLOEXEC
}

/// Of everything below a root.
fn no_follow() -> OFlag {
    // CHECK(h1-no-follow): a link is looked at as what it is, never as what it points at.
    OFlag::O_NOFOLLOW
}

/// Of everything that is opened and not only named (which never blocks).
fn non_blocking() -> OFlag {
    // CHECK(h1-non-blocking): a FIFO that takes a file's place would hold a sweep for ever.
    OFlag::O_NONBLOCK
}

/// Of everything below a root.
fn no_mount() -> ResolveFlag {
    // CHECK(h2-no-xdev): decided before the mount is asked anything; device numbers come too late
    // and do not show a bind mount.
    ResolveFlag::RESOLVE_NO_XDEV
}

/// What a [`Name`] cannot express anyway, said to the kernel as well.
const ONE_COMPONENT: ResolveFlag =
    ResolveFlag::RESOLVE_BENEATH.union(ResolveFlag::RESOLVE_NO_SYMLINKS);

/// How often a lookup is tried that the kernel could not make up its mind on.
const TRIES: usize = 16;

/// Bytes of entries that one listing asks for: 1,365 of the shortest.
const LISTING_BYTES: usize = 32 * 1024;

const OWNER_ONLY_DIR: Mode = Mode::S_IRWXU;
const OWNER_ONLY_FILE: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);

fn open_below(dir: Handle, name: &Name, flags: OFlag, mode: Mode) -> Answer<OwnedFd> {
    let dir = raw::borrow(dir)?;
    let how = OpenHow::new()
        .flags(flags | no_follow() | close_on_exec())
        .mode(mode)
        .resolve(ONE_COMPONENT | no_mount());
    for _ in 0..TRIES {
        match nix::fcntl::openat2(dir, name.bytes(), how) {
            Err(Raw::EAGAIN) => {}
            opened => return opened.answer(),
        }
    }
    // A rename raced with each try, or somebody has a lease on the file (fcntl(2)) that an open
    // would have to wait for. As it came, the number would say that a lock is held.
    Err(Errno::EINTR)
}

/// A handle that names what is there without opening it: nothing happens to
/// it, no permission on it is needed, and it cannot block.
fn name_below(dir: Handle, name: &Name) -> Answer<OwnedFd> {
    open_below(dir, name, OFlag::O_PATH, Mode::empty())
}

/// Gives a descriptor to the caller.
fn hand_out(fd: OwnedFd) -> Answer<Handle> {
    let mut lowest = 0;
    // CHECK(c5-above-stdio): a program that has closed its stdin would be given a lock at 0, and
    // the child's own stdin is put there before the child's part runs.
    lowest = lowest.max(ABOVE_STDIO);
    // CHECK(a6-not-among-passed): where fewer sockets were passed than it was said, a lease would be
    // looked at for one.
    lowest = lowest.max(passed::lowest());
    if fd.as_raw_fd() < lowest {
        return nix::fcntl::fcntl(&fd, FcntlArg::F_DUPFD_CLOEXEC(lowest)).answer().map(Handle);
    }
    Ok(Handle(fd.into_raw_fd()))
}

pub(super) fn open_root(path: &PathBytes) -> Answer<Handle> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | non_blocking() | close_on_exec();
    hand_out(nix::fcntl::open(&path.0[..], flags, Mode::empty()).answer()?)
}

pub(super) fn open_dir(dir: Handle, name: &Name) -> Answer<Handle> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | non_blocking();
    hand_out(open_below(dir, name, flags, Mode::empty())?)
}

pub(super) fn open_file(dir: Handle, name: &Name) -> Answer<Handle> {
    // CHECK(h1-look-before-open): to open a FIFO wakes who waits at its other end, and to open a
    // device may do anything.
    regular(&name_below(dir, name)?)?;
    let file = open_below(dir, name, OFlag::O_RDONLY | non_blocking(), Mode::empty())?;
    // CHECK(h1-opened-is-file): what was looked at need not be what was opened.
    regular(&file)?;
    hand_out(file)
}

fn regular(fd: &OwnedFd) -> Answer<()> {
    match stat_of(fd.as_fd())?.kind {
        Kind::File => Ok(()),
        Kind::Dir => Err(Errno::EISDIR),
        Kind::Link => Err(Errno::ELOOP),
        Kind::Other | Kind::Unknown => Err(Errno::EINVAL),
    }
}

pub(super) fn create_file(dir: Handle, name: &Name) -> Answer<Handle> {
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | non_blocking();
    let file = open_below(dir, name, flags, OWNER_ONLY_FILE)?;
    // CHECK(c1-mode-despite-umask): with the mode that an odd umask leaves, nobody could ask for
    // its lock again.
    nix::sys::stat::fchmod(&file, OWNER_ONLY_FILE).answer()?;
    hand_out(file)
}

pub(super) fn close(fd: Handle) -> Answer<()> {
    nix::unistd::close(fd.0).answer()
}

pub(super) fn stat(fd: Handle) -> Answer<Stat> {
    stat_of(raw::borrow(fd)?)
}

pub(super) fn stat_at(dir: Handle, name: &Name) -> Answer<Stat> {
    stat_of(name_below(dir, name)?.as_fd())
}

fn stat_of(fd: BorrowedFd<'_>) -> Answer<Stat> {
    let stat = rustix::fs::fstat(fd).answer()?;
    Ok(Stat {
        dev: stat.st_dev,
        ino: stat.st_ino,
        kind: match kind(FileType::from_raw_mode(stat.st_mode)) {
            // Here nothing is left unsaid: it is a kind that has no name.
            Kind::Unknown => Kind::Other,
            known => known,
        },
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
    })
}

fn kind(file_type: FileType) -> Kind {
    match file_type {
        FileType::Directory => Kind::Dir,
        FileType::RegularFile => Kind::File,
        FileType::Symlink => Kind::Link,
        FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice => {
            Kind::Other
        }
        FileType::Unknown => Kind::Unknown,
    }
}

pub(super) fn fs_magic(fd: Handle) -> Answer<FsMagic> {
    proc::fs_magic(raw::borrow(fd)?).map(FsMagic)
}

pub(super) fn read_dir(dir: Handle, restart: bool) -> Answer<Vec<DirEntry>> {
    let dir = raw::borrow(dir)?;
    if restart {
        nix::unistd::lseek(dir, 0, Whence::SeekSet).answer()?;
    }
    let mut buffer = Vec::with_capacity(LISTING_BYTES);
    let mut listing = RawDir::new(dir, buffer.spare_capacity_mut());
    let mut entries = Vec::new();
    while let Some(entry) = listing.next() {
        let entry = entry.answer()?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            // The kernel answers EIO as well where a file system gives a name with a slash.
            let name = Name::new(name).ok_or(Errno::EIO)?;
            entries.push(DirEntry { name, kind: kind(entry.file_type()) });
        }
        // One system call, unless it answered with `.` and `..` alone: none means the end.
        if listing.is_buffer_empty() && !entries.is_empty() {
            break;
        }
    }
    Ok(entries)
}

pub(super) fn mkdir(dir: Handle, name: &Name) -> Answer<()> {
    nix::sys::stat::mkdirat(raw::borrow(dir)?, name.bytes(), OWNER_ONLY_DIR).answer()
}

pub(super) fn symlink(dir: Handle, name: &Name, text: &[u8]) -> Answer<()> {
    if text.len() > LINK_TEXT_BYTES_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    nix::unistd::symlinkat(text, raw::borrow(dir)?, name.bytes()).answer()
}

pub(super) fn readlink(dir: Handle, name: &Name) -> Answer<Vec<u8>> {
    let link = name_below(dir, name)?;
    let mut text = [0u8; LINK_TEXT_BYTES_MAX + 1];
    match rustix::fs::readlinkat_raw(&link, c"", &mut text) {
        Ok(len) if len > LINK_TEXT_BYTES_MAX => Err(Errno::EOVERFLOW),
        Ok(len) => Ok(text[..len].into()),
        // How the kernel says of a handle, which cannot be missing, that it is not a link.
        Err(rustix::io::Errno::NOENT) => Err(Errno::EINVAL),
        Err(other) => Err(other).answer(),
    }
}

pub(super) fn rename(dir: Handle, from: &Name, to: &Name) -> Answer<()> {
    let dir = raw::borrow(dir)?;
    nix::fcntl::renameat(dir, from.bytes(), dir, to.bytes()).answer()
}

pub(super) fn unlink(dir: Handle, name: &Name) -> Answer<()> {
    remove(dir, name, UnlinkatFlags::NoRemoveDir)
}

pub(super) fn rmdir(dir: Handle, name: &Name) -> Answer<()> {
    remove(dir, name, UnlinkatFlags::RemoveDir)
}

fn remove(dir: Handle, name: &Name, how: UnlinkatFlags) -> Answer<()> {
    nix::unistd::unlinkat(raw::borrow(dir)?, name.bytes(), how).answer()
}

pub(super) fn chmod(fd: Handle, mode: u32) -> Answer<()> {
    nix::sys::stat::fchmod(raw::borrow(fd)?, Mode::from_bits_truncate(mode)).answer()
}

pub(super) fn unseal(dir: Handle, name: &Name) -> Answer<()> {
    let sealed = open_below(dir, name, OFlag::O_PATH | OFlag::O_DIRECTORY, Mode::empty())?;
    // CHECK(h4-unseal-own): root could open up the directory of anybody.
    if stat_of(sealed.as_fd())?.uid != nix::unistd::geteuid().as_raw() {
        return Err(Errno::EPERM);
    }
    // A handle that only names takes no fchmod; this path is the handle itself, wherever its name
    // has gone meanwhile. (By `thread-self`: once the main thread has ended `self` has none.)
    let handle = format!("/proc/thread-self/fd/{}", sealed.as_raw_fd());
    let how = FchmodatFlags::FollowSymlink;
    nix::sys::stat::fchmodat(AT_FDCWD, handle.as_str(), OWNER_ONLY_DIR, how).answer()
}

pub(super) fn lock(fd: Handle) -> Answer<()> {
    // CHECK(l6-never-waits): whoever holds the lock may be stopped.
    let how = FlockOperation::NonBlockingLockExclusive;
    rustix::fs::flock(raw::borrow(fd)?, how).answer()
}

pub(super) fn unlock(fd: Handle) -> Answer<()> {
    rustix::fs::flock(raw::borrow(fd)?, FlockOperation::Unlock).answer()
}

pub(super) fn lock_holder(fd: Handle) -> Answer<Vec<Pid>> {
    let stat = rustix::fs::fstat(raw::borrow(fd)?).answer()?;
    let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    let wanted = format!("{major:02x}:{minor:02x}:{}", stat.st_ino);
    let locks = std::fs::read("/proc/locks").or(Err(Errno::ENOENT))?;
    let holder = locks.split(|byte| *byte == b'\n').find_map(|line| holder_in(line, &wanted));
    Ok(holder.into_iter().collect())
}

/// The holder that a line of `/proc/locks` tells, if it is of a `flock` of this
/// inode: `1: FLOCK  ADVISORY  WRITE 512 fe:00:77 0 EOF`. Who waits stands after
/// an arrow; a holder of another pid namespace has no number here.
fn holder_in(line: &[u8], inode: &str) -> Option<Pid> {
    let line = std::str::from_utf8(line).ok()?;
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, "FLOCK", _, _, pid, of, ..] = fields[..] else { return None };
    let pid = pid.parse().ok().filter(|pid| *pid > 0)?;
    (of == inode).then_some(Pid(pid))
}

pub(super) fn read(fd: Handle, offset: u64, len: u32) -> Answer<Vec<u8>> {
    // OK because a `usize` has at least 32 bits wherever `/proc` is.
    let mut bytes = vec![0u8; len as usize];
    let read = rustix::io::pread(raw::borrow(fd)?, &mut bytes[..], offset).answer()?;
    bytes.truncate(read);
    Ok(bytes)
}

pub(super) fn write(fd: Handle, offset: u64, bytes: &[u8]) -> Answer<u64> {
    match rustix::io::pwrite(raw::borrow(fd)?, bytes, offset).answer()? {
        // The kernel may answer so, and whoever goes on until all is written would go on for ever.
        0 => Err(Errno::EIO),
        written => Ok(written as u64),
    }
}

pub(super) fn sync(fd: Handle) -> Answer<()> {
    rustix::fs::fsync(raw::borrow(fd)?).answer()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_read_and_whoever_waits_is_not() {
        for (line, holder) in [
            ("1: FLOCK  ADVISORY  WRITE 512 fe:00:77 0 EOF", Some(Pid(512))),
            ("1: -> FLOCK  ADVISORY  WRITE 513 fe:00:77 0 EOF", None),
            ("2: POSIX  ADVISORY  WRITE 512 fe:00:77 0 EOF", None),
            ("3: FLOCK  ADVISORY  WRITE 512 fe:00:78 0 EOF", None),
            ("4: FLOCK  ADVISORY  WRITE 0 fe:00:77 0 EOF", None),
            ("5: FLOCK  ADVISORY  WRITE -1 fe:00:77 0 EOF", None),
            ("6: FLOCK", None),
            ("", None),
        ] {
            assert_eq!(holder_in(line.as_bytes(), "fe:00:77"), holder, "{line}");
        }
        assert_eq!(holder_in(b"\xff: FLOCK A W 1 fe:00:77", "fe:00:77"), None);
    }

    #[test]
    fn this_process_is_told_as_the_holder_of_what_it_has_locked() {
        let dir = crate::sandbox!("files-holder").unwrap();
        let file = std::fs::File::create(dir.path().join("lock")).unwrap();
        let handle = Handle(file.as_raw_fd());
        assert_eq!(lock_holder(handle), Ok(vec![]));
        lock(handle).unwrap();
        let me = nix::unistd::getpid().as_raw();
        assert_eq!(lock_holder(handle), Ok(vec![Pid(me)]));
    }

    #[test]
    fn a_lock_that_is_held_is_refused_and_not_waited_for() {
        let dir = crate::sandbox!("files-refused").unwrap();
        let open = || std::fs::File::create(dir.path().join("lock")).unwrap();
        let holder = open();
        holder.lock().unwrap();
        let asker = open();
        let handle = Handle(asker.as_raw_fd());
        // A thread of its own, so that one that waits fails the test instead of holding it up.
        let (tell, told) = channel();
        std::thread::spawn(move || tell.send(lock(handle)));
        let answer = told.recv_timeout(Duration::from_secs(20));
        assert_eq!(answer, Ok(Err(Errno::EAGAIN)), "while another description holds the lock");
        drop(holder);
        assert_eq!(lock(handle), Ok(()));
    }
}
