//! The records: who owns a claim, and who a command is.
//!
//! A record is the target text of a symbolic link, so it is made by one call
//! with its whole content, and is read without opening anything. Its fields
//! are fixed binary ones in base64url without padding. A text that is not
//! exactly what [`encode_owner`] or [`encode_command`] would write is damage:
//! it decodes to `None`, which keeps (S3).
//!
//! | field | owner | command | bytes |
//! |---|---|---|---|
//! | version | 1 | 1 | 1 |
//! | the claim's own random part | yes | no | 8 |
//! | pid | yes | yes | 4 |
//! | start ticks | yes | yes | 6 |
//! | pidfs inode | yes | yes | 8 |
//! | pid namespace | yes | yes | 4 |
//! | time namespace | yes | yes | 4 |
//! | boot id | yes | yes | 16 |
//! | kind of file system | yes | no | 1 |
//! | program | rest, at most 15 | no | |
//!
//! A command's text is 58 bytes, so that it stands even on a full ext4, which
//! takes 59 bytes inside an inode (measured). All numbers are big-endian.

use alloc::vec::Vec;

use crate::fskind::FsKind;
use crate::grammar::Random;
use crate::sys::{Errno, Home, Pid, ProcessId};

const VERSION: u8 = 1;
const PROCESS_BYTES: usize = 4 + 6 + 8;
const HOME_BYTES: usize = 4 + 4 + 16;
const COMMAND_BYTES: usize = 1 + PROCESS_BYTES + HOME_BYTES;
const OWNER_BYTES: usize = 1 + 8 + PROCESS_BYTES + HOME_BYTES + 1;
/// Longest program name in a record: the kernel's own limit (`TASK_COMM_LEN`).
const PROGRAM_BYTES_MAX: usize = 15;

/// Length of a command's record as text, in bytes.
pub(crate) const COMMAND_TEXT_BYTES: usize = (COMMAND_BYTES * 4).div_ceil(3);

/// The owner of a claim, as it recorded itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OwnerRecord {
    /// The random part of the claim's name when it was made.
    pub(crate) random: Random,
    /// The owner.
    pub(crate) process: ProcessId,
    /// Where its numbers count.
    pub(crate) home: Home,
    /// The file system as the owner saw it.
    pub(crate) fs: FsKind,
    /// The owner's program.
    pub(crate) program: Vec<u8>,
}

/// A command, as it recorded itself between fork and exec.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CommandRecord {
    /// The command; its pid is the number of its group.
    pub(crate) process: ProcessId,
    /// Where its numbers count.
    pub(crate) home: Home,
}

/// Writes into a buffer that was sized for what is written.
struct Cursor<'b> {
    buffer: &'b mut [u8],
    at: usize,
}

impl Cursor<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.buffer[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    fn put_process(&mut self, process: &ProcessId) -> Result<(), Errno> {
        let [high, low, ticks @ ..] = process.start_ticks.to_be_bytes();
        if (high, low) != (0, 0) {
            return Err(Errno::EOVERFLOW);
        }
        self.put(&process.pid.0.to_be_bytes());
        self.put(&ticks);
        self.put(&process.pidfs.to_be_bytes());
        Ok(())
    }

    fn put_home(&mut self, home: &Home) {
        self.put(&home.pid_ns.to_be_bytes());
        self.put(&home.time_ns.to_be_bytes());
        self.put(&home.boot);
    }
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn take_process(&mut self, lowest: i32) -> Option<ProcessId> {
        let pid = Pid(i32::from_be_bytes(self.take()?));
        let [a, b, c, d, e, f] = self.take::<6>()?;
        let start_ticks = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        let pidfs = u64::from_be_bytes(self.take()?);
        // CHECK(h7-no-special-record): a forged record must not make such a number a target.
        if pid.0 < lowest {
            return None;
        }
        Some(ProcessId { pid, start_ticks, pidfs })
    }

    fn take_home(&mut self) -> Option<Home> {
        let pid_ns = u32::from_be_bytes(self.take()?);
        let time_ns = u32::from_be_bytes(self.take()?);
        Some(Home { pid_ns, time_ns, boot: self.take()? })
    }
}

/// Writes a command's record as text, without allocating.
pub(crate) fn encode_command(
    process: &ProcessId,
    home: &Home,
    text: &mut [u8; COMMAND_TEXT_BYTES],
) -> Result<(), Errno> {
    let mut bytes = [0u8; COMMAND_BYTES];
    let mut cursor = Cursor { buffer: &mut bytes, at: 0 };
    cursor.put(&[VERSION]);
    cursor.put_process(process)?;
    cursor.put_home(home);
    base64(&bytes, text);
    Ok(())
}

/// Reads a command's record.
pub(crate) fn decode_command(text: &[u8]) -> Option<CommandRecord> {
    let mut bytes = [0u8; COMMAND_BYTES];
    unbase64(text, &mut bytes)?;
    let mut reader = Reader(&bytes);
    if reader.take()? != [VERSION] {
        return None;
    }
    // The number is a group's, too, and 1 stands for everybody there.
    Some(CommandRecord { process: reader.take_process(2)?, home: reader.take_home()? })
}

/// Writes an owner's record as text, at most 93 bytes.
///
/// # Errors
/// `EOVERFLOW` when the start time does not fit, which no machine reaches.
pub(crate) fn encode_owner(owner: &OwnerRecord) -> Result<Vec<u8>, Errno> {
    let program = &owner.program[..owner.program.len().min(PROGRAM_BYTES_MAX)];
    let mut bytes = alloc::vec![0u8; OWNER_BYTES + program.len()];
    let mut cursor = Cursor { buffer: &mut bytes, at: 0 };
    cursor.put(&[VERSION]);
    cursor.put(&owner.random.number().to_be_bytes());
    cursor.put_process(&owner.process)?;
    cursor.put_home(&owner.home);
    cursor.put(&[owner.fs.code()]);
    cursor.put(program);
    let mut text = alloc::vec![0u8; (bytes.len() * 4).div_ceil(3)];
    base64(&bytes, &mut text);
    Ok(text)
}

/// Reads an owner's record.
pub(crate) fn decode_owner(text: &[u8]) -> Option<OwnerRecord> {
    let len = text.len() * 3 / 4;
    if !(OWNER_BYTES..=OWNER_BYTES + PROGRAM_BYTES_MAX).contains(&len) {
        return None;
    }
    let mut bytes = alloc::vec![0u8; len];
    unbase64(text, &mut bytes)?;
    let mut reader = Reader(&bytes);
    if reader.take()? != [VERSION] {
        return None;
    }
    Some(OwnerRecord {
        random: Random::from_number(u64::from_be_bytes(reader.take()?))?,
        // Init may own claims, in a container above all.
        process: reader.take_process(1)?,
        home: reader.take_home()?,
        fs: FsKind::from_code(reader.take::<1>()?[0])?,
        program: reader.0.into(),
    })
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// base64url without padding, into a buffer of just the right length. By hand,
/// because a child between fork and exec must not allocate.
fn base64(bytes: &[u8], text: &mut [u8]) {
    let mut out = text.iter_mut();
    for chunk in bytes.chunks(3) {
        let word = u32::from_be_bytes([
            0,
            chunk[0],
            chunk.get(1).copied().unwrap_or(0),
            chunk.get(2).copied().unwrap_or(0),
        ]);
        for (position, slot) in (0..=chunk.len()).zip(&mut out) {
            *slot = ALPHABET[(word >> (18 - 6 * position)) as usize & 63];
        }
    }
}

/// The inverse, strict: only the one text that [`base64`] writes for some
/// bytes of this length is read.
fn unbase64(text: &[u8], bytes: &mut [u8]) -> Option<()> {
    if text.len() != (bytes.len() * 4).div_ceil(3) {
        return None;
    }
    for (source, target) in text.chunks(4).zip(bytes.chunks_mut(3)) {
        let mut word = 0u32;
        for position in 0..4 {
            let digit = match source.get(position) {
                Some(byte) => ALPHABET.iter().position(|known| known == byte)?,
                None => 0,
            };
            word = word << 6 | u32::try_from(digit).ok()?;
        }
        let decoded = &word.to_be_bytes()[1..];
        let (wanted, spare) = decoded.split_at(target.len());
        if spare.iter().any(|byte| *byte != 0) {
            return None;
        }
        target.copy_from_slice(wanted);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn home(boot: u8) -> Home {
        Home { boot: [boot; 16], pid_ns: Home::INITIAL_PID_NS, time_ns: 4_026_531_834 }
    }

    fn process() -> ProcessId {
        ProcessId { pid: Pid(4242), start_ticks: 81_579, pidfs: 261_763 }
    }

    fn owner() -> OwnerRecord {
        OwnerRecord {
            random: Random::parse(b"abcdefghij27").expect("twelve of the alphabet"),
            process: process(),
            home: home(7),
            fs: FsKind::Ext4,
            program: b"server".to_vec(),
        }
    }

    fn command_text() -> [u8; COMMAND_TEXT_BYTES] {
        let mut text = [0; COMMAND_TEXT_BYTES];
        encode_command(&process(), &home(7), &mut text).expect("ticks fit");
        text
    }

    #[test]
    fn a_command_record_fits_a_full_ext4() {
        const { assert!(COMMAND_TEXT_BYTES <= 59) };
        let record = decode_command(&command_text()).expect("what was written is read");
        assert_eq!(record, CommandRecord { process: process(), home: home(7) });
    }

    #[test]
    fn an_owner_record_is_at_most_127_bytes() {
        let mut longest = owner();
        longest.program = b"a-name-that-is-longer-than-comm".to_vec();
        let text = encode_owner(&longest).expect("ticks fit");
        assert!(text.len() <= 127, "{}", text.len());
        longest.program.truncate(PROGRAM_BYTES_MAX);
        assert_eq!(decode_owner(&text), Some(longest));
    }

    #[test]
    fn ticks_that_do_not_fit_are_an_error_not_another_process() {
        let mut late = process();
        late.start_ticks = 1 << 48;
        let mut text = [0; COMMAND_TEXT_BYTES];
        assert_eq!(encode_command(&late, &home(1), &mut text), Err(Errno::EOVERFLOW));
    }

    #[test]
    fn special_process_numbers_are_damage() {
        for pid in [1, 0, -1, i32::MIN] {
            let special = ProcessId { pid: Pid(pid), ..process() };
            let mut text = [0; COMMAND_TEXT_BYTES];
            encode_command(&special, &home(1), &mut text).expect("ticks fit");
            assert_eq!(decode_command(&text), None, "pid {pid}");
            let text = encode_owner(&OwnerRecord { process: special, ..owner() });
            let read = decode_owner(&text.expect("ticks fit"));
            assert_eq!(read.is_some(), pid == 1, "pid {pid}");
        }
    }

    #[test]
    fn every_single_byte_changed_reads_as_damage_or_as_another_record() {
        let text = encode_owner(&owner()).expect("ticks fit");
        for at in 0..text.len() {
            for byte in 0..=255u8 {
                let mut changed = text.clone();
                changed[at] = byte;
                if byte != text[at] {
                    assert_ne!(decode_owner(&changed), Some(owner()));
                }
            }
        }
    }

    #[test]
    fn shorter_longer_and_other_versions_are_damage() {
        let text = command_text();
        for len in 0..text.len() {
            assert_eq!(decode_command(&text[..len]), None, "{len} bytes");
        }
        assert_eq!(decode_command(&[&text[..], b"A"].concat()), None);
        let mut other_version = text;
        other_version[0] = b'B';
        assert_eq!(decode_command(&other_version), None);
        assert_eq!(decode_owner(&[b'A'; 300]), None);
    }

    #[test]
    fn a_program_with_a_longer_name_than_a_kernel_keeps_is_damage() {
        let mut bytes = alloc::vec![0; OWNER_BYTES + PROGRAM_BYTES_MAX];
        let longest = OwnerRecord { program: alloc::vec![b'x'; PROGRAM_BYTES_MAX], ..owner() };
        let text = encode_owner(&longest).expect("ticks fit");
        unbase64(&text, &mut bytes).expect("what was written is read");
        bytes.push(b'x');
        let mut text = alloc::vec![0; (bytes.len() * 4).div_ceil(3)];
        base64(&bytes, &mut text);
        assert_eq!(decode_owner(&text), None);
    }

    proptest! {
        #[test]
        fn any_text_decodes_without_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_command(&text);
            let _ = decode_owner(&text);
        }

        #[test]
        fn one_text_a_record(bytes in proptest::collection::vec(any::<u8>(), 1..80)) {
            let mut text = alloc::vec![0; (bytes.len() * 4).div_ceil(3)];
            base64(&bytes, &mut text);
            let mut back = alloc::vec![0; bytes.len()];
            prop_assert_eq!(unbase64(&text, &mut back), Some(()));
            prop_assert_eq!(back, bytes);
        }
    }
}
