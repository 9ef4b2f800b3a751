//! Who this process is, on the real kernel.
//!
//! Without `/proc` there is no start time, and so no identity: the error of
//! the read is the answer.

use std::env;
use std::os::unix::ffi::OsStringExt;
use std::vec::Vec;

use super::child::HostChild;
use super::stat_line::number;
use super::{proc, processes};
use crate::cookie;
use crate::sys::{Answer, ChildKernel as _, Errno, Home, Identity, Pid, ProcView, Whoami};

/// What `/proc/sys/kernel/overflowuid` holds where nobody has changed it.
const OVERFLOW_UID: u32 = 65_534;

pub(super) fn identity() -> Answer<Identity> {
    let me = HostChild.identity()?;
    Ok(Identity {
        process: me.process,
        home: Home { boot: boot_id()?, pid_ns: me.pid_ns, time_ns: me.time_ns },
        uid: me.uid,
        gid: me.gid,
        overflow_uid: overflow_uid(),
        proc: proc_view(me.process.pid),
        program: processes::process_at(c"/proc/self/stat")?.program,
        cookie: env::var_os(cookie::VARIABLE).map_or_else(Vec::new, OsStringExt::into_vec),
    })
}

pub(super) fn whoami() -> Answer<Whoami> {
    Ok(Whoami { pid: own_pid(), pid_ns: proc::pid_namespace()? })
}

fn own_pid() -> Pid {
    Pid(nix::unistd::getpid().as_raw())
}

fn boot_id() -> Answer<[u8; 16]> {
    let mut buffer = [0u8; 64];
    let text = proc::read(c"/proc/sys/kernel/random/boot_id", &mut buffer)?;
    parse_boot_id(text).ok_or(Errno::EIO)
}

/// Reads a UUID: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12.
fn parse_boot_id(text: &[u8]) -> Option<[u8; 16]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let groups = text.split(|byte| *byte == b'-');
    if !groups.clone().map(<[u8]>::len).eq([8, 4, 4, 4, 12]) {
        return None;
    }
    let mut id = 0u128;
    for digit in groups.flatten() {
        id = id << 4 | u128::from(char::from(*digit).to_digit(16)?);
    }
    Some(id.to_be_bytes())
}

fn overflow_uid() -> Option<u32> {
    let mut buffer = [0u8; 16];
    let overflow = proc::read(c"/proc/sys/kernel/overflowuid", &mut buffer)
        .ok()
        .and_then(|text| number(text.trim_ascii_end()))
        .unwrap_or(OVERFLOW_UID);
    match std::fs::read("/proc/thread-self/uid_map") {
        Ok(map) if maps(&map, overflow) => None,
        _ => Some(overflow),
    }
}

/// Whether a `uid_map` gives a user of this namespace that number. Where it
/// does, the number is that user's.
fn maps(map: &[u8], uid: u32) -> bool {
    map.split(|byte| *byte == b'\n').any(|line| {
        let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
        let (Some(first), Some(count)) = (fields.next(), fields.nth(1)) else { return false };
        let (Some(first), Some(count)) = (number::<u64>(first), number::<u64>(count)) else {
            return false;
        };
        (first..first + count).contains(&u64::from(uid))
    })
}

/// How much `/proc` shows.
///
/// Init's `stat` alone does not tell: in a container it is often a process of
/// our own user, and our own are the ones that `hidepid` shows. So the mount's
/// options are asked as well. What cannot be read counts as hidden.
fn proc_view(me: Pid) -> ProcView {
    let mut target = [0u8; 16];
    let shown = rustix::fs::readlinkat_raw(rustix::fs::CWD, c"/proc/self", &mut target)
        .ok()
        .and_then(|len| number::<i32>(&target[..len]));
    if shown != Some(me.0) {
        return ProcView::Foreign;
    }
    if processes::process_at(c"/proc/1/stat").is_err() {
        return ProcView::Partial;
    }
    match std::fs::read("/proc/thread-self/mountinfo") {
        Ok(mounts) if !mounts.split(|byte| *byte == b'\n').any(hides_processes) => ProcView::Whole,
        _ => ProcView::Partial,
    }
}

/// Whether a line of `mountinfo` is that of a `/proc` with `hidepid`.
fn hides_processes(line: &[u8]) -> bool {
    let mut fields = line.split(|byte| *byte == b' ');
    if fields.nth(4) != Some(b"/proc") {
        return false;
    }
    // After the separator: type, source, options of the file system.
    let Some(options) = fields.skip_while(|field| *field != b"-").nth(3) else {
        return true;
    };
    options.split(|byte| *byte == b',').any(|option| {
        option.strip_prefix(b"hidepid=").is_some_and(|how| !matches!(how, b"0" | b"off"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_overflow_user_is_nobody_only_where_nobody_is_mapped_to_it() {
        assert!(maps(b"         0          0 4294967295\n", 65_534));
        assert!(maps(b"0 100000 65535\n", 65_534));
        assert!(!maps(b"0 100000 65534\n", 65_534));
        assert!(!maps(b"      1000       1000          1\n", 65_534));
        assert!(!maps(b"", 65_534));
        assert!(!maps(b"x y z\n", 65_534));
    }

    #[test]
    fn a_boot_id_is_its_sixteen_bytes() {
        let text = b"6ba37bb7-7940-4349-868d-c153925b50aa\n";
        let want = 0x6ba3_7bb7_7940_4349_868d_c153_925b_50aa_u128.to_be_bytes();
        assert_eq!(parse_boot_id(text), Some(want));
        assert_eq!(parse_boot_id(&text[..36]), Some(want), "without the line end");
    }

    #[test]
    fn what_is_no_boot_id_is_not_understood() {
        for text in [
            &b""[..],
            b"\n",
            b"6ba37bb7794043498 68dc153925b50aa",
            b"6ba37bb7-7940-4349-868d-c153925b50a",
            b"6ba37bb7-7940-4349-868d-c153925b50aa0",
            b"6ba37bb7-7940-4349-868d-c153925b50ag",
            b"6ba37bb7-7940-4349-868dc-153925b50aa",
            b"6ba37bb7-7940-4349-868d-c153925b50aa-",
            b"6ba37bb7-7940-4349-868d-c153925b50aa\n\n",
        ] {
            assert_eq!(parse_boot_id(text), None, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn a_proc_that_hides_processes_is_known_by_its_options() {
        for (hides, line) in [
            (false, "22 1 0:5 / /proc rw,relatime shared:12 - proc proc rw"),
            (false, "22 1 0:5 / /proc rw - proc proc rw,hidepid=0"),
            (false, "22 1 0:5 / /proc rw - proc proc rw,hidepid=off,gid=4"),
            (true, "22 1 0:5 / /proc rw shared:1 master:2 - proc proc rw,gid=4,hidepid=invisible"),
            (true, "22 1 0:5 / /proc rw - proc hidepid=0 rw,hidepid=2"),
            (true, "22 1 0:5 / /proc rw - proc proc rw,hidepid=ptraceable"),
            (true, "22 1 0:5 / /proc rw - proc"),
            (true, "22 1 0:5 / /proc"),
            // Another mount's business.
            (false, "23 1 0:6 / /jail/proc rw - proc proc rw,hidepid=2"),
            (false, "24 1 0:6 / /proc/sys ro - proc proc rw,hidepid=2"),
            (false, ""),
        ] {
            assert_eq!(hides_processes(line.as_bytes()), hides, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse_boot_id(&bytes);
            let _ = hides_processes(&bytes);
        }
    }
}
