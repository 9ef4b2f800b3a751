//! What of a look at a process can be tried without one.

use std::io::Write as _;
use std::os::fd::AsRawFd as _;

use rustix::fs::MemfdFlags;

use super::*;

#[test]
fn what_is_not_seen_of_a_living_process_is_told() {
    let sought = Sought::new(&[]);
    for (miss, vanished) in [(Miss::Ended, true), (Miss::Refused, false), (Miss::TooLong, false)] {
        let mut look = Look::new(&sought);
        look.missed(&miss);
        assert_eq!((look.vanished, look.unread), (vanished, !vanished));
    }
}

#[test]
fn a_program_that_has_memory_and_no_place_for_an_environment_is_not_set_up() {
    let line = |memory: &str, environment: &str| {
        let mut fields = ["9"; 52];
        (fields[1], fields[22], fields[50]) = ("(a b) c)", memory, environment);
        fields.join(" ").into_bytes()
    };
    assert!(is_not_set_up(&line("4096", "0")));
    assert!(!is_not_set_up(&line("4096", "140737")));
    // A thread of the kernel's, and one of which nothing is told.
    assert!(!is_not_set_up(&line("0", "0")));
    assert!(!is_not_set_up(b""));
}

#[test]
fn escapes_stand_for_bytes() {
    for (written, named) in [
        ("/two\\040words", "/two words"),
        ("/back\\134slash", "/back\\slash"),
        ("/line\\012", "/line\n"),
        ("/\\400", "/\\400"),
        ("/\\18", "/\\18"),
    ] {
        assert_eq!(*as_named(written.as_bytes()), *named.as_bytes());
    }
}

/// What is shown of a file with this content, and so many zeros behind it; and whether it was all.
fn shown(content: &str, zeros: u64) -> (Vec<Vec<u8>>, bool) {
    let file = rustix::fs::memfd_create(c"records", MemfdFlags::CLOEXEC).expect("memory");
    let mut file = std::fs::File::from(file);
    file.write_all(content.as_bytes()).expect("memory");
    file.set_len(content.len() as u64 + zeros).expect("memory");
    let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("digits");
    let mut shown = Vec::new();
    let read = records(CWD, &path, b'\n', |record| shown.push(record.to_vec()));
    let Ok(Ok(whole)) = read else { panic!("it cannot be read") };
    (shown, whole)
}

#[test]
fn every_record_is_shown_once_with_its_end_or_without() {
    for (content, expected) in [("", &[][..]), ("a\n", &["a"]), ("a\nb", &["a", "b"])] {
        let (records, whole) = shown(content, 0);
        assert_eq!(records, expected.iter().map(|text| text.as_bytes()).collect::<Vec<_>>());
        assert!(whole);
    }
}

#[test]
fn a_record_of_many_reads_is_shown_as_one_up_to_a_bound() {
    for (length, seen) in
        [(3 * CHUNK_BYTES, 3 * CHUNK_BYTES), (RECORD_BYTES_MAX + 1, RECORD_BYTES_MAX)]
    {
        let content = format!("{}\nb", "a".repeat(length));
        let (records, _) = shown(&content, 0);
        assert_eq!(records.iter().map(Vec::len).collect::<Vec<_>>(), [seen, 1]);
    }
}

#[test]
fn a_file_is_read_to_a_bound() {
    let most = FILE_BYTES_MAX as u64;
    assert!(shown("", most).1);
    assert!(!shown("", most + 1).1);
}
