//! Records as anybody may write them: read, changed, and written again.
//!
//! A second reading of the page that defines the format, made from it and not from the code that is
//! judged. A test takes a record that the implementation wrote, changes what it is about (another
//! pid, another boot, a process that never was) and puts it back.
//!
//! Invariant: what is read and not changed is written as it was, byte for byte.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::Path;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const RANDOM_LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The pid namespace of a machine's first process, on every machine.
pub const INITIAL_PID_NS: u32 = 0xEFFF_FFFC;

/// A process, and where its numbers count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its start, in clock ticks after the boot; 48 bits.
    pub start_ticks: u64,
    /// The inode number of its pidfd.
    pub pidfs: u64,
    /// Its pid namespace.
    pub pid_ns: u32,
    /// Its time namespace.
    pub time_ns: u32,
    /// Its boot.
    pub boot: [u8; 16],
}

/// The record of an owner, or of a command, which lacks `claim`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The version of the format.
    pub version: u8,
    /// Who it is.
    pub process: Process,
    /// What only an owner's record has.
    pub claim: Option<ClaimPart>,
}

/// What an owner's record says of the claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimPart {
    /// The random part of its name.
    pub random: String,
    /// The number of the kind of file system.
    pub fs: u8,
    /// The owner's program.
    pub program: Vec<u8>,
}

impl Record {
    /// Reads the record that is the text of a link. The name tells whose it is: `owner` and
    /// `released` are an owner's, others a command's.
    ///
    /// # Errors
    ///
    /// When there is no link, or its text is no record.
    pub fn read(link: &Path) -> io::Result<Self> {
        let text = fs::read_link(link)?.into_os_string().into_vec();
        let name = link.file_name().unwrap_or_default().as_bytes();
        Self::of_link(name, &text).ok_or_else(|| {
            let what = format!("{} is no record: {}", link.display(), text.escape_ascii());
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    }

    /// The record that is the text of a link of this name.
    #[must_use]
    pub fn of_link(name: &[u8], text: &[u8]) -> Option<Self> {
        Self::parse(text, matches!(name, b"owner" | b"released"))
    }

    /// Puts the record into the place of the link, whatever is there.
    ///
    /// # Errors
    ///
    /// When the link cannot be made.
    pub fn write(&self, link: &Path) -> io::Result<()> {
        match fs::remove_file(link) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        symlink(OsString::from_vec(self.text()), link)
    }

    /// Reads a record, changes it, and puts it back.
    ///
    /// # Errors
    ///
    /// Those of [`Record::read`] and [`Record::write`].
    pub fn change(link: &Path, change: impl FnOnce(&mut Self)) -> io::Result<()> {
        let mut record = Self::read(link)?;
        change(&mut record);
        record.write(link)
    }

    /// The text of the link.
    #[must_use]
    pub fn text(&self) -> Vec<u8> {
        let Process { pid, start_ticks, pidfs, pid_ns, time_ns, boot } = &self.process;
        let mut bytes = vec![self.version];
        if let Some(claim) = &self.claim {
            bytes.extend(number(&claim.random).to_be_bytes());
        }
        bytes.extend(pid.to_be_bytes());
        bytes.extend(&start_ticks.to_be_bytes()[2..]);
        bytes.extend(pidfs.to_be_bytes());
        bytes.extend(pid_ns.to_be_bytes());
        bytes.extend(time_ns.to_be_bytes());
        bytes.extend(boot);
        if let Some(claim) = &self.claim {
            bytes.push(claim.fs);
            bytes.extend(&claim.program);
        }
        base64(&bytes)
    }

    fn parse(text: &[u8], of_owner: bool) -> Option<Self> {
        let bytes = unbase64(text)?;
        let mut rest = &bytes[..];
        let version = u8::from_be_bytes(take(&mut rest)?);
        let random = match of_owner {
            true => Some(random_text(u64::from_be_bytes(take(&mut rest)?))),
            false => None,
        };
        let process = Process {
            pid: i32::from_be_bytes(take(&mut rest)?),
            start_ticks: {
                let [a, b, c, d, e, f] = take(&mut rest)?;
                u64::from_be_bytes([0, 0, a, b, c, d, e, f])
            },
            pidfs: u64::from_be_bytes(take(&mut rest)?),
            pid_ns: u32::from_be_bytes(take(&mut rest)?),
            time_ns: u32::from_be_bytes(take(&mut rest)?),
            boot: take(&mut rest)?,
        };
        let claim = match random {
            Some(random) => Some(ClaimPart {
                random,
                fs: u8::from_be_bytes(take(&mut rest)?),
                program: std::mem::take(&mut rest).into(),
            }),
            None => None,
        };
        rest.is_empty().then_some(Self { version, process, claim })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

/// The number that a random part stands for: five bits for each of eleven letters, and then one of
/// the six digits at the end of the alphabet.
fn number(random: &str) -> u64 {
    let value = |letter: u8| {
        let at = RANDOM_LETTERS.iter().position(|known| *known == letter);
        // OK because a test that forges a name has it from a claim, or from these letters.
        at.expect("a letter of a random part") as u64
    };
    let (last, letters) = random.as_bytes().split_last().expect("it has twelve letters");
    let letters = letters.iter().fold(0, |number, letter| number * 32 + value(*letter));
    letters * 6 + (value(*last) - 26)
}

fn random_text(number: u64) -> String {
    let (letters, last) = (number / 6, number % 6);
    let letter = |at: u32| char::from(RANDOM_LETTERS[(letters >> (5 * at)) as usize % 32]);
    // OK because the remainder is below six.
    let last = char::from(RANDOM_LETTERS[26 + last as usize]);
    (0..11).rev().map(letter).chain([last]).collect()
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .chain([0, 0].iter().take(3 - chunk.len()))
            .fold(0usize, |word, byte| word << 8 | usize::from(*byte));
        let letters = [18, 12, 6, 0].map(|shift| LETTERS[word >> shift & 63]);
        text.extend(&letters[..=chunk.len()]);
    }
    text
}

fn unbase64(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for chunk in text.chunks(4) {
        let mut word = 0u32;
        for at in 0..4 {
            let digit = match chunk.get(at) {
                Some(letter) => LETTERS.iter().position(|known| known == letter)?,
                None => 0,
            };
            word = word << 6 | u32::try_from(digit).ok()?;
        }
        bytes.extend(&word.to_be_bytes()[1..chunk.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Record {
        let process = Process {
            pid: -7,
            start_ticks: 0x0000_0102_0304_0506,
            pidfs: u64::MAX,
            pid_ns: INITIAL_PID_NS,
            time_ns: 3,
            boot: *b"0123456789abcdef",
        };
        let claim =
            ClaimPart { random: "abcdefghij27".into(), fs: 255, program: b"\xffx".to_vec() };
        Record { version: 9, process, claim: Some(claim) }
    }

    #[test]
    fn what_was_written_is_read() {
        let owner = owner();
        assert_eq!(Record::parse(&owner.text(), true), Some(owner.clone()));
        let command = Record { claim: None, ..owner };
        assert_eq!(command.text().len(), 58);
        assert_eq!(Record::parse(&command.text(), false), Some(command));
    }

    #[test]
    fn what_is_no_record_is_not_read() {
        assert_eq!(Record::parse(b"", true), None);
        assert_eq!(Record::parse(b"no record!", false), None);
        assert_eq!(Record::parse(&owner().text(), false), None);
    }
}
