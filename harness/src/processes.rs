//! Who lives: the processes that this pid namespace can see, read from `/proc`.
//!
//! A listing is no snapshot: it is read one process at a time while the system moves on. A process
//! that ended meanwhile is left out, one that started meanwhile may be missing. Who needs certainty
//! about one process holds a [`crate::wait::Watch`] on it; who needs it about a whole tree stops
//! the tree first, as [`crate::guard`] does.
//!
//! It deliberately does not read anything but `stat`: descriptors, environments and maps are
//! questions of other judges, and other processes may refuse them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// One process, as its `stat` told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcInfo {
    /// Its id in the namespace of the `/proc` that was read.
    pub pid: i32,
    /// Its parent, 0 when the parent is outside the namespace.
    pub ppid: i32,
    /// Its process group.
    pub pgid: i32,
    /// Its session.
    pub session: i32,
    /// The kernel's letter for its state: `R`, `S`, `D`, `T`, `t`, `Z`, `X`, `I`.
    pub state: char,
    /// How many of its threads are left; a zombie that can do nothing any more has at most one.
    pub threads: u32,
    /// Its start, in clock ticks since boot.
    pub start_ticks: u64,
    /// The first fifteen bytes of its name.
    pub comm: String,
}

impl ProcInfo {
    /// Whether any thread of it can still act.
    ///
    /// The state letter is that of the main thread alone. When that has ended while others run, the
    /// process shows `Z` and yet goes on reading and writing, hence the look at the number of
    /// threads.
    #[must_use]
    pub fn lives(&self) -> bool {
        !(matches!(self.state, 'Z' | 'X') && self.threads <= 1)
    }
}

/// Lists all processes of this pid namespace, in ascending order of pid, zombies included.
///
/// # Errors
///
/// When `/proc` cannot be listed, or holds a `stat` that cannot be understood.
pub fn processes() -> io::Result<Vec<ProcInfo>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        if let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok())
            && let Some(info) = process(pid)?
        {
            found.push(info);
        }
    }
    found.sort_unstable_by_key(|info| info.pid);
    Ok(found)
}

/// Looks at one process; `None` when there is none of that id.
///
/// # Errors
///
/// When its `stat` cannot be read for another reason than its end, or cannot be understood.
pub fn process(pid: i32) -> io::Result<Option<ProcInfo>> {
    let path = Path::new("/proc").join(pid.to_string()).join("stat");
    let stat = match fs::read(&path) {
        Ok(stat) => stat,
        // ENOENT when it was gone before the open, ESRCH when it went between the open and the read.
        Err(e)
            if e.kind() == io::ErrorKind::NotFound
                || e.raw_os_error() == Some(nix::libc::ESRCH) =>
        {
            return Ok(None);
        }
        Err(e) => return Err(e),
    };
    match parse(&stat) {
        // Caught while it was being reaped: it has left its group, its parent and its threads.
        Some(info) if info.pgid == -1 => Ok(None),
        Some(info) => Ok(Some(info)),
        None => {
            let text = String::from_utf8_lossy(&stat);
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{} says {text:?}", path.display()),
            ))
        }
    }
}

/// The roots and, by their pids, all that a listing shows below them.
#[must_use]
pub fn with_descendants(all: &[ProcInfo], mut roots: BTreeSet<i32>) -> BTreeSet<i32> {
    loop {
        let next = all.iter().filter(|info| roots.contains(&info.ppid)).map(|info| info.pid);
        let next: Vec<i32> = next.filter(|pid| !roots.contains(pid)).collect();
        if next.is_empty() {
            return roots;
        }
        roots.extend(next);
    }
}

/// Parses `pid (comm) state ppid pgrp session …`. The name may hold anything, blanks and
/// parentheses included, so the last `)` is the one that ends it: no later field has one.
fn parse(stat: &[u8]) -> Option<ProcInfo> {
    let open = stat.iter().position(|&byte| byte == b'(')?;
    let close = stat.iter().rposition(|&byte| byte == b')')?;
    let pid = str::from_utf8(&stat[..open]).ok()?.trim().parse().ok()?;
    let comm = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
    // Counted from 0 at `state`, which proc(5) counts as the third field.
    let fields: Vec<&str> =
        str::from_utf8(&stat[close + 1..]).ok()?.split_ascii_whitespace().collect();
    Some(ProcInfo {
        pid,
        ppid: fields.get(1)?.parse().ok()?,
        pgid: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        state: fields.first()?.chars().next()?,
        threads: fields.get(17)?.parse().ok()?,
        start_ticks: fields.get(19)?.parse().ok()?,
        comm,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str =
        "17 42 41 0 -1 4194560 96 0 0 0 0 0 0 0 20 0 1 0 81216 2437120 224 18446744073709551615";

    #[test]
    fn a_name_of_blanks_and_parentheses_shifts_no_field() {
        let info = parse(format!("42 (a) Z 1 (b) S {TAIL}").as_bytes()).expect("it is well-formed");
        let expected = ProcInfo {
            pid: 42,
            ppid: 17,
            pgid: 42,
            session: 41,
            state: 'S',
            threads: 1,
            start_ticks: 81216,
            comm: "a) Z 1 (b".into(),
        };
        assert_eq!(info, expected);
    }

    #[test]
    fn what_is_no_stat_is_refused() {
        for text in
            ["", "42", "42 (x", ") 42 (", "42 (x) S", "x (x) S 1 1 1", "42 (x) S 17 42 41 0 -1"]
        {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn a_zombie_leader_lives_while_another_thread_does() {
        let zombie = |threads: u32| {
            let tail = TAIL.replace(" 20 0 1 0 ", &format!(" 20 0 {threads} 0 "));
            parse(format!("42 (x) Z {tail}").as_bytes()).expect("it is well-formed").lives()
        };
        assert!(!zombie(0));
        assert!(!zombie(1));
        assert!(zombie(2));
    }

    #[test]
    fn descendants_are_found_in_any_order_of_pids() {
        let of = |pid: i32, ppid: i32| {
            let line = format!("{pid} (x) S {ppid} {}", TAIL.split_once(' ').expect("blanks").1);
            parse(line.as_bytes()).expect("it is well-formed")
        };
        let all = [of(2, 9), of(5, 7), of(7, 1), of(8, 1), of(9, 5)];
        assert_eq!(with_descendants(&all, [7].into()), [2, 5, 7, 9].into());
        assert_eq!(with_descendants(&all, [8, 9].into()), [2, 8, 9].into());
    }

    #[test]
    fn the_own_process_is_listed() {
        let own = i32::try_from(std::process::id()).expect("pids are positive");
        let all = processes().expect("/proc can be read");
        let me = all.iter().find(|info| info.pid == own).expect("this process lives");
        assert!(me.lives());
        assert!(all.is_sorted_by_key(|info| info.pid));
    }
}
