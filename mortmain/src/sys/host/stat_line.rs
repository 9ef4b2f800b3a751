//! The line that is `/proc/<pid>/stat`.
//!
//! The program's name stands in it between parentheses and may itself hold
//! parentheses, spaces and, escaped, line ends. So the fields are counted from
//! the *last* parenthesis. Read without allocating, for the child between fork
//! and exec; a line that is not understood is `None`, never a guess.

use alloc::vec::Vec;
use core::str::{self, FromStr};

/// Room for a whole line up to its field 22, at the widest that its numbers
/// and the name of a kernel thread can be.
pub(super) const STAT_LINE_BYTES: usize = 1024;

/// Longest name of a program, as the kernel has it for all but its own threads
/// (`TASK_COMM_LEN`).
const PROGRAM_BYTES_MAX: usize = 15;

/// `PF_KTHREAD` of linux/sched.h, which has kept its number since 2.6.27.
const PF_KTHREAD: u32 = 0x0020_0000;

/// What is used of the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StatLine<'line> {
    name: &'line [u8],
    state: u8,
    pub(super) group: i32,
    flags: u32,
    pub(super) threads: u32,
    pub(super) start_ticks: u64,
}

impl<'line> StatLine<'line> {
    /// Reads a line, or the beginning of one.
    pub(super) fn parse(line: &'line [u8]) -> Option<StatLine<'line>> {
        let open = line.iter().position(|byte| *byte == b'(')?;
        let close = line.iter().rposition(|byte| *byte == b')')?;
        let name = line.get(open + 1..close)?;
        let rest = line[close + 1..].strip_prefix(b" ")?;
        let mut fields = rest.split(|byte| matches!(byte, b' ' | b'\n'));
        // Fields are numbered as in proc_pid_stat(5); `nth(n)` passes over n of them.
        let &[state] = fields.next()? else { return None };
        let group = number(fields.nth(1)?)?; // 5, past 4
        let flags = number(fields.nth(3)?)?; // 9, past 6 to 8
        let threads = number(fields.nth(10)?)?; // 20, past 10 to 19
        let start_ticks = number(fields.nth(1)?)?; // 22, past 21
        // A line that was cut in its field 22 would show another start time.
        fields.next()?;
        Some(StatLine { name, state, group, flags, threads, start_ticks })
    }

    /// Whether the main thread has ended: a zombie, or one that is being reaped
    /// at this moment.
    pub(super) fn zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Whether it is a thread of the kernel's own, which has no program and no
    /// memory.
    pub(super) fn of_kernel(&self) -> bool {
        self.flags & PF_KTHREAD != 0
    }

    /// The name of the program, at most 15 bytes.
    pub(super) fn program(&self) -> Vec<u8> {
        let mut program = Vec::with_capacity(PROGRAM_BYTES_MAX);
        let mut bytes = self.name.iter().copied();
        while let Some(byte) = bytes.next() {
            // The kernel escapes these two, and only these two, in this file.
            program.push(match byte {
                b'\\' => match bytes.next() {
                    Some(b'n') => b'\n',
                    Some(escaped) => escaped,
                    None => byte,
                },
                _ => byte,
            });
        }
        program.truncate(PROGRAM_BYTES_MAX);
        program
    }
}

/// A decimal number, whole and in range.
pub(super) fn number<N: FromStr>(digits: &[u8]) -> Option<N> {
    str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use proptest::prelude::*;

    const TAIL: &str = "0 -1 4194560 120 0 0 0 0 0 0 0 20 0";

    fn line(
        name: &str,
        state: &str,
        group: &str,
        threads: &str,
        ticks: &str,
    ) -> alloc::string::String {
        format!(
            "4242 ({name}) {state} 1 {group} 4242 {TAIL} {threads} 0 {ticks} 2301952 205 184467440\n"
        )
    }

    #[test]
    fn a_thread_of_the_kernels_own_is_told_by_its_flag() {
        let own = line("kworker/0:1", "I", "0", "1", "26");
        let of_kernel = |flags: u32| {
            let line = own.replace("4194560", &format!("{flags}"));
            StatLine::parse(line.as_bytes()).expect("a line of the kernel's is read").of_kernel()
        };
        assert!(of_kernel(PF_KTHREAD));
        assert!(of_kernel(PF_KTHREAD | 0x0400_0000));
        assert!(!of_kernel(0x0040_0100), "a program's usual flags");
    }

    #[track_caller]
    fn check(name: &str, program: &[u8]) {
        let line = line(name, "S", "77", "3", "81579");
        let parsed = StatLine::parse(line.as_bytes()).expect("a line of the kernel's is read");
        assert_eq!(parsed.program(), program, "{name:?}");
        assert_eq!((parsed.group, parsed.threads, parsed.start_ticks), (77, 3, 81_579), "{name:?}");
        assert!(!parsed.zombie(), "{name:?}");
    }

    #[test]
    fn a_name_may_hold_what_ends_a_name() {
        check("sleep", b"sleep");
        check("", b"");
        check(") (", b") (");
        check("a) Z 1 2 3 (b", b"a) Z 1 2 3 (b");
        check("((((", b"((((");
        check("two words", b"two words");
        check("a\\nb", b"a\nb");
        check("a\\\\nb", b"a\\nb");
        check("tail\\", b"tail\\");
        check("kworker/u8:0-events_unbound", b"kworker/u8:0-ev");
        // A kernel that does not escape is understood as well.
        check("a\nb", b"a\nb");
    }

    #[test]
    fn a_name_need_not_be_text() {
        let mut line = line("x", "S", "77", "3", "81579").into_bytes();
        line[6] = 0xff;
        assert_eq!(StatLine::parse(&line).expect("bytes").program(), b"\xff");
    }

    #[test]
    fn what_has_ended_is_a_zombie_and_nothing_else() {
        for (state, zombie) in [
            ("R", false),
            ("S", false),
            ("D", false),
            ("T", false),
            ("t", false),
            ("I", false),
            ("Z", true),
            ("X", true),
            ("x", true),
        ] {
            let line = line("x", state, "7", "1", "9");
            let parsed = StatLine::parse(line.as_bytes()).expect("a line");
            assert_eq!(parsed.zombie(), zombie, "{state}");
        }
    }

    #[test]
    fn the_widest_numbers_are_read() {
        let ticks = format!("{}", u64::MAX);
        let line = line("x", "S", "-1", "4294967295", &ticks);
        let parsed = StatLine::parse(line.as_bytes()).expect("a line");
        assert_eq!((parsed.group, parsed.threads, parsed.start_ticks), (-1, u32::MAX, u64::MAX));
    }

    #[test]
    fn what_is_no_line_is_not_understood() {
        let beyond = format!("{}0", u64::MAX);
        for (why, line) in [
            ("ticks out of range", line("x", "S", "1", "1", &beyond)),
            ("group out of range", line("x", "S", "2147483648", "1", "9")),
            ("negative threads", line("x", "S", "1", "-1", "9")),
            ("no number", line("x", "S", "1", "1", "9x")),
            ("empty field", line("x", "S", "1", "1", "")),
            ("long state", line("x", "SS", "1", "1", "9")),
            ("empty", "".into()),
            ("no name", "4242 S 1 77".into()),
            ("turned round", "4242 )x( S 1 77".into()),
            ("no fields", "4242 (x)".into()),
            ("few fields", "4242 (x) S 1 77 4242\n".into()),
        ] {
            assert_eq!(StatLine::parse(line.as_bytes()), None, "{why}: {line}");
        }
    }

    #[test]
    fn a_line_that_is_cut_is_the_same_or_not_understood() {
        let line = line("a) (b", "Z", "77", "3", "81579");
        let whole = StatLine::parse(line.as_bytes()).expect("a line");
        for len in 0..line.len() {
            if let Some(cut) = StatLine::parse(&line.as_bytes()[..len]) {
                assert_eq!(cut, whole, "{len} bytes");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..STAT_LINE_BYTES)) {
            if let Some(parsed) = StatLine::parse(&bytes) {
                prop_assert!(parsed.program().len() <= PROGRAM_BYTES_MAX);
            }
        }

        #[test]
        fn near_lines_are_read_without_panic(text in "[0-9]{1,5} \\([a-z() \\\\]{0,16}\\) [RSZ]( -?[0-9]{1,22}){0,30}\n?") {
            if let Some(parsed) = StatLine::parse(text.as_bytes()) {
                prop_assert!(parsed.program().len() <= PROGRAM_BYTES_MAX);
            }
        }
    }
}
